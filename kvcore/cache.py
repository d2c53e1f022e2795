"""CacheSpec: what one layer keeps for one sequence of n tokens.

One frozen class per kind of attention or state. Each answers with `terms`: how
many rows of which width it keeps, in which component. A term is
`rows x width` elements *per role*; the number format turns rows into bytes, so the
widths are those of the vectors an engine writes (one head's key, one latent).

Logical rules, independent of any engine: a window keeps min(tokens, window) rows, a
compressed cache keeps whole groups. States of fixed size are in `kvcore.states`.
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

    `window` is set on layers whose latents are windowed (dots3). The last three are
    what the latent expands to, for engines that keep that instead: heads and the
    widths of one head's key and value (0 where the config does not say).
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    window: int | None = None
    num_heads: int = 0
    head_dim: int = 0
    value_head_dim: int = 0
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
