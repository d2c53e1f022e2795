"""Recurrent and convolutional states: what a layer keeps whatever the length.

Logical rule, independent of any engine: a convolution of kernel k keeps k - 1 columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from kvcore.cache import CacheSpec, Term
from kvcore.formats import Role

_CONV: Final[tuple[Role, ...]] = ("conv",)
_RECURRENT: Final[tuple[Role, ...]] = ("recurrent",)


@dataclass(frozen=True, kw_only=True)
class RecurrentState(CacheSpec):
    """A state of fixed size per sequence: a recurrent part and convolution columns.

    Subclasses give `recurrent_rows` x `recurrent_width`, `conv_channels` and
    `conv_kernel` (0 where there is no convolution) from their own dimensions.
    """

    recurrent_expression: ClassVar[tuple[str, str]] = ("", "")
    conv_expression: ClassVar[str] = ""
    columns_expression: ClassVar[str] = "(conv_kernel - 1)"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        """(rows, width) of the recurrent part; (0, 0) where there is none."""
        return (0, 0)

    @property
    def conv_channels(self) -> int:
        return 0

    @property
    def kernel(self) -> int:
        """Width of the causal convolution, 0 where there is none."""
        return self.values.get("conv_kernel", 0)

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return self._terms

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        found: list[Term] = []
        rows, width = self.recurrent_shape
        if rows:
            rows_expression, width_expression = self.recurrent_expression
            found.append(
                Term(
                    "state", _RECURRENT, rows, width, rows_expression, width_expression
                )
            )
        if self.kernel > 1 and self.conv_channels:
            found.append(
                Term(
                    "state",
                    _CONV,
                    self.kernel - 1,
                    self.conv_channels,
                    self.columns_expression,
                    self.conv_expression,
                )
            )
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(RecurrentState):
    """Gated delta rule (Qwen3-Next, Qwen3.5, OLMo hybrid)."""

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    kind: ClassVar[str] = "gated_delta_net"
    source: ClassVar[str] = "Gated Delta Networks, arXiv 2412.06464"
    recurrent_expression = ("num_value_heads * key_head_dim", "value_head_dim")
    conv_expression = (
        "(2 * num_key_heads * key_head_dim + num_value_heads * value_head_dim)"
    )

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_value_heads * self.key_head_dim, self.value_head_dim

    @property
    def conv_channels(self) -> int:
        return (
            2 * self.num_key_heads * self.key_head_dim
            + self.num_value_heads * self.value_head_dim
        )


@dataclass(frozen=True, kw_only=True)
class KimiDeltaAttention(RecurrentState):
    """KDA: a delta rule with per-channel decay; q, k and v are convolved apart."""

    num_heads: int
    head_dim: int
    conv_kernel: int
    kind: ClassVar[str] = "kimi_delta_attention"
    source: ClassVar[str] = "Kimi Linear, arXiv 2510.26692"
    recurrent_expression = ("num_heads * head_dim", "head_dim")
    conv_expression = "(3 * num_heads * head_dim)"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_heads * self.head_dim, self.head_dim

    @property
    def conv_channels(self) -> int:
        return 3 * self.num_heads * self.head_dim


@dataclass(frozen=True, kw_only=True)
class Mamba(RecurrentState):
    """Mamba-1: one state of `state_size` per inner channel."""

    inner_size: int
    state_size: int
    conv_kernel: int
    kind: ClassVar[str] = "mamba"
    source: ClassVar[str] = "Mamba, arXiv 2312.00752"
    recurrent_expression = ("inner_size", "state_size")
    conv_expression = "inner_size"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.inner_size, self.state_size

    @property
    def conv_channels(self) -> int:
        return self.inner_size


@dataclass(frozen=True, kw_only=True)
class Mamba2(RecurrentState):
    """Mamba-2: one state matrix per head; B and C are convolved with x."""

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    conv_kernel: int
    kind: ClassVar[str] = "mamba2"
    source: ClassVar[str] = "Mamba-2, arXiv 2405.21060"
    recurrent_expression = ("num_heads * head_dim", "state_size")
    conv_expression = "(num_heads * head_dim + 2 * num_groups * state_size)"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_heads * self.head_dim, self.state_size

    @property
    def conv_channels(self) -> int:
        return self.num_heads * self.head_dim + 2 * self.num_groups * self.state_size


@dataclass(frozen=True, kw_only=True)
class LightningAttention(RecurrentState):
    """Linear attention with one square state per head (MiniMax-01)."""

    num_heads: int
    head_dim: int
    kind: ClassVar[str] = "lightning_attention"
    source: ClassVar[str] = "MiniMax-01, arXiv 2501.08313"
    recurrent_expression = ("num_heads * head_dim", "head_dim")

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_heads * self.head_dim, self.head_dim


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(RecurrentState):
    """A gated short convolution without a recurrent part (LFM2)."""

    channels: int
    conv_kernel: int
    kind: ClassVar[str] = "short_convolution"
    source: ClassVar[str] = "LFM2: conv_L_cache"
    conv_expression = "channels"

    @property
    def conv_channels(self) -> int:
        return self.channels


@dataclass(frozen=True, kw_only=True)
class CompressedConvolution(RecurrentState):
    """Zaya's CCA: convolved queries and keys, and half of each value shifted by one."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    conv_kernel: int
    kind: ClassVar[str] = "compressed_convolution"
    source: ClassVar[str] = "Compressed Convolutional Attention, arXiv 2510.04476"
    recurrent_expression = ("num_kv_heads", "(head_dim / 2)")
    conv_expression = "((num_heads + num_kv_heads) * head_dim)"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_kv_heads, self.head_dim // 2

    @property
    def conv_channels(self) -> int:
        return (self.num_heads + self.num_kv_heads) * self.head_dim


@dataclass(frozen=True, kw_only=True)
class GatedLinearRecurrence(RecurrentState):
    """RG-LRU (RecurrentGemma): one number per channel, and a short convolution."""

    width: int
    conv_kernel: int
    kind: ClassVar[str] = "gated_linear_recurrence"
    source: ClassVar[str] = "Griffin, arXiv 2402.19427"
    recurrent_expression = ("1", "width")
    conv_expression = "width"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return 1, self.width

    @property
    def conv_channels(self) -> int:
        return self.width


@dataclass(frozen=True, kw_only=True)
class Rwkv4(RecurrentState):
    """RWKV-4: numerator, denominator and maximum, and two shifted tokens."""

    attention_size: int
    hidden_size: int
    kind: ClassVar[str] = "rwkv4"
    source: ClassVar[str] = "RWKV, arXiv 2305.13048"
    recurrent_expression = ("3", "attention_size")
    conv_expression = "(2 * hidden_size)"
    columns_expression = "1"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return 3, self.attention_size

    @property
    def conv_channels(self) -> int:
        return 2 * self.hidden_size

    @property
    def kernel(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class RwkvMatrix(RecurrentState):
    """RWKV-5, 6 and 7: one square state per head, and two shifted tokens.

    Attention models converted to RWKV (QRWKV, ARWKV) shift one token alone.
    """

    num_heads: int
    head_dim: int
    hidden_size: int
    token_shifts: int = 2
    kind: ClassVar[str] = "rwkv_matrix"
    source: ClassVar[str] = "Eagle and Finch, arXiv 2404.05892; Goose, arXiv 2503.14456"
    recurrent_expression = ("num_heads * head_dim", "head_dim")
    conv_expression = "(token_shifts * hidden_size)"
    columns_expression = "1"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_heads * self.head_dim, self.head_dim

    @property
    def conv_channels(self) -> int:
        return self.token_shifts * self.hidden_size

    @property
    def kernel(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class Xlstm(RecurrentState):
    """mLSTM: a matrix memory, a normaliser and a stabiliser per head."""

    num_heads: int
    qk_head_dim: int
    value_head_dim: int
    kind: ClassVar[str] = "xlstm"
    source: ClassVar[str] = "xLSTM, arXiv 2405.04517"
    recurrent_expression = (
        "num_heads",
        "(qk_head_dim * value_head_dim + qk_head_dim + 1)",
    )

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        elements = self.qk_head_dim * self.value_head_dim + self.qk_head_dim + 1
        return self.num_heads, elements
