"""Model: the layers of a language model as CacheSpecs, and the facts around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import lcm

from kvcore.cache import (
    CacheSpec,
    CompressedAttention,
    CrossAttention,
    Heads,
    LatentAttention,
    SharedCache,
)
from kvcore.errors import Notice

Layer = tuple[CacheSpec, ...]
"""What one layer keeps: nothing, one cache, or several (attention beside a state)."""

Group = tuple[CacheSpec, int]
"""A spec and how many layers hold an equal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One language model, as far as its cache is concerned.

    `layers` are in order; `draft_layers` are extra (MTP, EAGLE) and never counted
    unless asked for. Formats are the ids an `auto` resolves to. `max_context` is the
    trained context in tokens, rope scaling counted; None if the config does not say.

    `latent_expanded` marks files whose weights hold MLA only expanded to full heads
    (GGUF made before llama.cpp knew latents). `ngram_history` is what an n-gram
    embedding's convolution remembers, in elements per sequence (Qwen 4).

    `architecture` is the class the file names for itself, by which engines choose
    their rules; `vision_tower` its vision encoder's layers and width, where it has one.
    `kv_quantization` is what a checkpoint's KV scales are made for, if it has any.
    """

    name: str
    model_type: str
    layers: tuple[Layer, ...]
    draft_layers: tuple[Layer, ...] = ()
    draft_is_model: bool = False
    num_heads: int | None = None
    hidden_size: int | None = None
    max_context: int | None = None
    kv_format: str = "bf16"
    indexer_format: str | None = None
    state_format: str = "fp32"
    encoder_tokens: int = 0
    extra_tokens: int = 0
    latent_expanded: bool = False
    ngram_history: int = 0
    architecture: str | None = None
    kv_quantization: str | None = None
    vision_tower: tuple[int | None, int | None] | None = None
    notices: tuple[Notice, ...] = ()
    groups: tuple[Group, ...] = field(init=False)
    draft_groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", grouped(self.layers))
        object.__setattr__(self, "draft_groups", grouped(self.draft_layers))

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def period(self) -> int:
        """Tokens after which growth repeats (lcm of the compression ratios)."""
        return lcm(*(spec.period for spec, _ in self.groups))

    @property
    def components(self) -> frozenset[str]:
        """The components this model can have, whatever the number of tokens."""
        return frozenset(
            term.component
            for spec, _ in self.groups
            for term in spec.terms(2**20, 2**20)
        )

    @property
    def has_encoder(self) -> bool:
        """Whether a layer attends to an encoder whose length is not fixed."""
        return any(
            isinstance(spec, CrossAttention) and spec.source_tokens is None
            for spec, _ in self.groups
        )

    @property
    def num_shared_layers(self) -> int:
        return sum(n for spec, n in self.groups if isinstance(spec, SharedCache))

    @property
    def is_latent(self) -> bool:
        """Whether a layer keeps what no tensor parallelism can cut: MLA, V4 rows."""
        whole = (LatentAttention, CompressedAttention)
        return any(isinstance(spec, whole) for spec, _ in self.groups)

    @property
    def num_kv_heads(self) -> int | None:
        """KV heads of the most common per-head attention, None without one."""
        common = self._common_heads()
        return common.num_kv_heads if common else None

    @property
    def head_dim(self) -> int | None:
        """Key width of the most common per-head attention, None without one."""
        common = self._common_heads()
        return common.head_dim if common else None

    def _common_heads(self) -> Heads | None:
        found = [(n, spec) for spec, n in self.groups if isinstance(spec, Heads)]
        return max(found, key=lambda pair: pair[0])[1] if found else None


def grouped(layers: Iterable[Layer]) -> tuple[Group, ...]:
    """Equal specs counted once, in order of first appearance."""
    return tuple(Counter(spec for layer in layers for spec in layer).items())
