"""CacheSpec: what one layer keeps for one sequence of n tokens.

One frozen class per kind of attention or state. Each answers with `terms`: how
many rows of which width it keeps, in which component. A term is
`rows x width` elements *per role*; the number format turns rows into bytes, so the
widths are those of the vectors an engine writes (one head's key, one latent).

Logical rules, independent of any engine: a window keeps min(tokens, window) rows, a
convolution of kernel k keeps k - 1 columns, a compressed cache keeps whole groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, Final, Literal, NamedTuple

from kvcore.formats import Role

Component = Literal["kv", "window", "indexer", "state", "cross", "draft"]

COMPONENTS: Final[tuple[Component, ...]] = (
    "kv",
    "window",
    "indexer",
    "state",
    "cross",
    "draft",
)

_KEY_VALUE: Final[tuple[Role, ...]] = ("key", "value")
_KEY: Final[tuple[Role, ...]] = ("key",)
_VALUE: Final[tuple[Role, ...]] = ("value",)
_LATENT: Final[tuple[Role, ...]] = ("latent",)
_ROPE: Final[tuple[Role, ...]] = ("rope",)
_INDEXER: Final[tuple[Role, ...]] = ("indexer",)
_CONV: Final[tuple[Role, ...]] = ("conv",)
_RECURRENT: Final[tuple[Role, ...]] = ("recurrent",)


class Term(NamedTuple):
    """`rows` rows of `width` elements for each of `roles`, and how they came about.

    The two expressions name the spec's fields, `tokens` and `encoder_tokens`.
    """

    component: Component
    roles: tuple[Role, ...]
    rows: int
    width: int
    rows_expression: str
    width_expression: str


@dataclass(frozen=True, kw_only=True)
class CacheSpec:
    """Base of all kinds; subclasses are frozen, hashable and shared by equal layers."""

    kind: ClassVar[str]
    source: ClassVar[str]

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        """What is kept for one sequence of `tokens` tokens."""
        raise NotImplementedError

    @property
    def period(self) -> int:
        """Tokens after which growth repeats (the compression ratio; 1 if linear)."""
        return 1

    @cached_property
    def values(self) -> Mapping[str, int]:
        """The spec's own numbers by name, for formulas and for `show`."""
        return {
            f.name: value
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), int)
        }


@dataclass(frozen=True, kw_only=True)
class Heads(CacheSpec):
    """Per-head keys and values; their widths may differ (MiMo-V2: 192 and 128)."""

    num_kv_heads: int
    head_dim: int
    value_head_dim: int

    def _key_value(
        self, component: Component, kept: int, kept_expression: str
    ) -> tuple[Term, ...]:
        rows = self.num_kv_heads * kept
        expression = f"num_kv_heads * {kept_expression}"
        if self.head_dim == self.value_head_dim:
            return (
                Term(
                    component, _KEY_VALUE, rows, self.head_dim, expression, "head_dim"
                ),
            )
        return (
            Term(component, _KEY, rows, self.head_dim, expression, "head_dim"),
            Term(
                component,
                _VALUE,
                rows,
                self.value_head_dim,
                expression,
                "value_head_dim",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class FullAttention(Heads):
    """MHA, GQA or MQA: every token's keys and values."""

    kind: ClassVar[str] = "full_attention"
    source: ClassVar[str] = "Attention Is All You Need; GQA: arXiv 2305.13245"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return self._key_value("kv", tokens, "tokens")


@dataclass(frozen=True, kw_only=True)
class SlidingWindowAttention(Heads):
    """A layer that sees the last `window` tokens, itself included."""

    window: int
    kind: ClassVar[str] = "sliding_window_attention"
    source: ClassVar[str] = "Mistral 7B, arXiv 2310.06825"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return self._key_value(
            "window", min(tokens, self.window), "min(tokens, window)"
        )


@dataclass(frozen=True, kw_only=True)
class ChunkedAttention(Heads):
    """A layer that sees its own chunk of `chunk` tokens (Llama 4)."""

    chunk: int
    kind: ClassVar[str] = "chunked_attention"
    source: ClassVar[str] = "Llama 4: attention_chunk_size"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return self._key_value("window", min(tokens, self.chunk), "min(tokens, chunk)")


@dataclass(frozen=True, kw_only=True)
class CrossAttention(Heads):
    """Keys and values of an encoder's output, computed once.

    `source_tokens` is set where the encoder's length is fixed (Whisper: 1500).
    """

    source_tokens: int | None = None
    kind: ClassVar[str] = "cross_attention"
    source: ClassVar[str] = "Attention Is All You Need, section 3.2.3"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        if self.source_tokens is not None:
            return self._key_value("cross", self.source_tokens, "source_tokens")
        return self._key_value("cross", encoder_tokens, "encoder_tokens")


@dataclass(frozen=True, kw_only=True)
class LatentAttention(CacheSpec):
    """MLA: one latent and one decoupled rotary key per token, for all heads.

    `window` is set on layers whose latents are windowed (dots3).
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    window: int | None = None
    kind: ClassVar[str] = "latent_attention"
    source: ClassVar[str] = "DeepSeek-V2, arXiv 2405.04434, section 2.1"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        component: Component = "kv"
        kept, expression = tokens, "tokens"
        if self.window is not None:
            component = "window"
            kept, expression = min(tokens, self.window), "min(tokens, window)"
        latent = Term(
            component, _LATENT, kept, self.kv_lora_rank, expression, "kv_lora_rank"
        )
        if not self.qk_rope_head_dim:
            return (latent,)
        rope = Term(
            component,
            _ROPE,
            kept,
            self.qk_rope_head_dim,
            expression,
            "qk_rope_head_dim",
        )
        return (latent, rope)


@dataclass(frozen=True, kw_only=True)
class IndexerKeys(CacheSpec):
    """Keys of a sparse-attention indexer (DSA): what is searched, not attended."""

    index_head_dim: int
    index_kv_heads: int = 1
    kind: ClassVar[str] = "indexer_keys"
    source: ClassVar[str] = "DeepSeek-V3.2, arXiv 2512.02556: lightning indexer"

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return (
            Term(
                "indexer",
                _INDEXER,
                self.index_kv_heads * tokens,
                self.index_head_dim,
                "index_kv_heads * tokens",
                "index_head_dim",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class CompressedAttention(CacheSpec):
    """DeepSeek-V4: a window of shared key-value vectors, and compressed groups.

    `ratio` tokens become one row of `head_dim` (key and value at once, rotary part
    `qk_rope_head_dim` included); ratio 0 is a window alone. Layers with an
    `index_head_dim` keep an indexer key per compressed row. Tokens of the group that
    is still open live in the compressor's working state, which is an engine's matter.
    """

    head_dim: int
    qk_rope_head_dim: int
    ratio: int
    window: int
    index_head_dim: int = 0
    kind: ClassVar[str] = "compressed_attention"
    source: ClassVar[str] = "DeepSeek-V4: compress_ratios, sliding_window"

    @property
    def period(self) -> int:
        return max(self.ratio, 1)

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        kept = min(tokens, self.window)
        found = self._vectors("window", kept, "min(tokens, window)") if kept else ()
        if self.ratio:
            groups = tokens // self.ratio
            found += self._vectors("kv", groups, "floor(tokens / ratio)")
            if self.index_head_dim:
                found += (
                    Term(
                        "indexer",
                        _INDEXER,
                        groups,
                        self.index_head_dim,
                        "floor(tokens / ratio)",
                        "index_head_dim",
                    ),
                )
        return found

    def _vectors(
        self, component: Component, rows: int, expression: str
    ) -> tuple[Term, ...]:
        return (Term(component, _LATENT, rows, self.head_dim, expression, "head_dim"),)


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
    """RWKV-5, 6 and 7: one square state per head, and two shifted tokens."""

    num_heads: int
    head_dim: int
    hidden_size: int
    kind: ClassVar[str] = "rwkv_matrix"
    source: ClassVar[str] = "Eagle and Finch, arXiv 2404.05892; Goose, arXiv 2503.14456"
    recurrent_expression = ("num_heads * head_dim", "head_dim")
    conv_expression = "(2 * hidden_size)"
    columns_expression = "1"

    @property
    def recurrent_shape(self) -> tuple[int, int]:
        return self.num_heads * self.head_dim, self.head_dim

    @property
    def conv_channels(self) -> int:
        return 2 * self.hidden_size

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


@dataclass(frozen=True, kw_only=True)
class SharedCache(CacheSpec):
    """A layer that reads another layer's cache and stores nothing.

    `source_layer` is the 0-based layer it reads, where the config says which.
    """

    source_layer: int | None = None
    kind: ClassVar[str] = "shared_cache"
    source: ClassVar[str] = (
        "Gemma 3n and 4: num_kv_shared_layers; CLA: arXiv 2405.12981"
    )

    def terms(self, tokens: int, encoder_tokens: int = 0) -> tuple[Term, ...]:
        return ()
