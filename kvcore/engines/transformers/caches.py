"""The cache classes of Hugging Face transformers: rows and bytes of one K or V tensor.

Sources: transformers 5.24.0 and 4.57.6, src/transformers/cache_utils.py;
optimum-quanto 0.2.7 tensor/grouped.py, hqq 0.2.8 core/quantize.py and bitpack.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Literal

from kvcore.cache import Component
from kvcore.errors import InvalidArgument
from kvcore.formats import NumberFormat

Kept = tuple[Component, int]
"""Tokens kept, and whether they are bounded (`window`) or grow (`kv`)."""

ONE_GROUP_PER_INT32: Final = 10
"""HQQ packs ten 3-bit codes into 32 bits and leaves two bits unused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheClass(ABC):
    """How many tokens keys (or values) are kept for, and in how many bytes."""

    tokens: int

    @abstractmethod
    def everything(self) -> int:
        """Tokens a full-attention layer holds."""

    @abstractmethod
    def windowed(self, window: int) -> Kept:
        """Tokens a layer holds that sees `window` tokens."""

    def tensor_bytes(
        self, elements_per_token: int, kept: int, fmt: NumberFormat
    ) -> int:
        """One tensor of all sequences."""
        return plain_bytes(elements_per_token * kept, fmt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamic(CacheClass):
    """DynamicCache(config=...): a window keeps one token less than it sees.

    `keys[:, :, -window + 1 :]`: the token being computed is the window's last. With a
    window of 1 the slice starts at 0 and keeps everything (measured).
    """

    def everything(self) -> int:
        return self.tokens

    def windowed(self, window: int) -> Kept:
        return "window", min(self.tokens, window - 1) if window > 1 else self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutConfig(Dynamic):
    """DynamicCache(): it cannot know of windows, every layer keeps everything."""

    def windowed(self, window: int) -> Kept:
        return "kv", self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(CacheClass):
    """StaticCache: `max_cache_len` tokens, or the window, allocated at first use."""

    max_cache_len: int

    def everything(self) -> int:
        if self.tokens > self.max_cache_len:
            raise InvalidArgument(
                argument="max_cache_len",
                value=str(self.max_cache_len),
                expected=f"at least the {self.tokens} tokens it must hold",
            )
        return self.max_cache_len

    def windowed(self, window: int) -> Kept:
        return "window", min(window, self.max_cache_len)


Backend = Literal["quanto", "hqq", "fp8"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized(Dynamic):
    """QuantizedCache: what came first in codes, the newest tokens in the model's dtype.

    The first prefill is quantised whole. Then tokens gather unquantised until there
    are `residual_length` of them, and everything is quantised again. fp8 appends codes
    and has no residual; its one scale per tensor is not counted.
    """

    backend: Backend
    nbits: int
    q_group_size: int
    residual_length: int
    prefill_tokens: int

    @property
    def residual(self) -> int:
        """Tokens still in the model's dtype, decoding one at a time after prefill."""
        if self.backend == "fp8":
            return 0
        first = min(max(self.prefill_tokens, 1), self.tokens)
        return (self.tokens - first) % max(self.residual_length, 1)

    def tensor_bytes(
        self, elements_per_token: int, kept: int, fmt: NumberFormat
    ) -> int:
        coded = elements_per_token * (kept - self.residual)
        rest = plain_bytes(elements_per_token * self.residual, fmt)
        if self.backend == "fp8":
            return coded + rest
        groups, over = divmod(coded, self.q_group_size)
        if over:
            raise InvalidArgument(
                argument="q_group_size",
                value=str(self.q_group_size),
                expected=f"a divisor of the {coded} elements of a tensor",
            )
        scales_and_zeros = plain_bytes(2 * groups, fmt)
        return self._code_bytes(groups) + scales_and_zeros + rest

    def _code_bytes(self, groups: int) -> int:
        """Codes of groups: quanto packs across groups, HQQ within each."""
        if self.backend == "quanto":
            return -(-groups * self.nbits // 8) * self.q_group_size
        if self.nbits == 3:
            return groups * 4 * -(-self.q_group_size // ONE_GROUP_PER_INT32)
        return groups * (self.q_group_size * self.nbits // 8)


def plain_bytes(elements: int, fmt: NumberFormat) -> int:
    """Elements of a format without scales (fp32, fp16, bf16)."""
    return elements * fmt.layout.block_bits // 8
