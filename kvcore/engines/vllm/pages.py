"""A page of vLLM's KV cache: one block of one cache of one layer, on one rank.

    page = head slots x stored states x bytes of a state        (then padding)

Source: vllm/v1/kv_cache_interface.py 0.33.0 (AttentionSpec, MambaSpec and kin).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from kvcore.cache import Component

Kind = Literal[
    "full",
    "latent",
    "sliding",
    "sliding_latent",
    "chunked",
    "state",
    "cross",
]

ALL_TOKENS: Final[frozenset[Kind]] = frozenset({"full", "latent"})
"""Kinds that keep every token; they may share one group whatever their widths."""

WINDOWED: Final[frozenset[Kind]] = frozenset({"sliding", "sliding_latent"})


def ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One cache of one layer; equal pages are one kind of layer to the planner.

    `row_bytes` is what one stored row takes on this rank (all its head slots): a
    token, `tokens_per_row` tokens of a compressed cache, or a whole state. `bound` is
    a window or chunk in tokens, `retained` what is kept below a window for chained
    draft modules, `copies` the blocks a request keeps of a state. `shape` tells apart
    what has the same size by chance.
    """

    kind: Kind
    spec_kind: str = field(compare=False)
    component: Component = field(compare=False)
    block_tokens: int
    row_bytes: int
    tokens_per_row: int = 1
    bound: int = 0
    retained: int = 0
    copies: int = 1
    padded_bytes: int | None = None
    shape: tuple[int | str, ...] = ()
    draft: bool = field(default=False, compare=False)

    @property
    def natural_bytes(self) -> int:
        if self.kind == "state":
            return self.row_bytes
        return self.block_tokens // self.tokens_per_row * self.row_bytes

    @property
    def page_bytes(self) -> int:
        return self.padded_bytes or self.natural_bytes

    def blocks(self, tokens: int, in_flight: int, dcp: int, encoder: int) -> int:
        """Blocks one request of `tokens` tokens is given at most.

        A window may begin inside a block, hence one more; tokens of the batches in
        flight are not freed before they are settled.
        """
        if self.kind == "state":
            return self.copies
        if self.kind == "cross":
            return ceil_div(encoder, self.block_tokens)
        if self.kind in ALL_TOKENS:
            return ceil_div(ceil_div(tokens, dcp), self.block_tokens)
        if self.kind == "chunked":
            return ceil_div(min(self.bound + in_flight, tokens), self.block_tokens)
        kept = min(self.bound - 1 + self.retained + in_flight, tokens)
        return ceil_div(kept, self.block_tokens) + 1

    def logical_bytes(self, tokens: int, dcp: int, encoder: int) -> int:
        """What these tokens need in this layer on this rank, without the paging."""
        if self.kind == "state":
            return self.row_bytes
        if self.kind == "cross":
            return encoder * self.row_bytes
        if self.kind in ALL_TOKENS:
            return ceil_div(tokens, dcp) // self.tokens_per_row * self.row_bytes
        return min(self.bound, tokens) * self.row_bytes

    def scaled(self, ratio: int) -> Page:
        return replace(self, block_tokens=self.block_tokens * ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A page of a certain layer: where the layer is, and on which stage."""

    layer: int
    stage: int
    page: Page
