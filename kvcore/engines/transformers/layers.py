"""What each layer of a transformers cache holds, by kind of attention or state.

Where a rule differs from the logical one, its docstring says so and names the file of
transformers 5.24.0 (or 4.57.6) under src/transformers/models it was read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Final

from kvcore import formats as number_formats
from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    Component,
    CompressedAttention,
    CrossAttention,
    FullAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.engines.transformers.caches import CacheClass, plain_bytes
from kvcore.errors import UnsupportedModel
from kvcore.estimate import CacheFormats
from kvcore.formats import NumberFormat
from kvcore.model import Group, Model
from kvcore.states import (
    CompressedConvolution,
    GatedLinearRecurrence,
    RecurrentState,
    Rwkv4,
    RwkvMatrix,
    ShortConvolution,
)

CURRENT: Final = "5.24.0"
OLDER: Final = "4.57.6"

WINDOW_WITHOUT_CURRENT_TOKEN: Final = frozenset({"mimo_v2_flash"})
"""Their class adds 1 to the published window (configuration_mimo_v2_flash.py)."""

WINDOW_BY_MASK_ALONE: Final = frozenset({"gpt_neo"})
"""Local attention by mask: the cache keeps everything (modeling_gpt_neo.py)."""

POSITIONS_CACHED: Final = frozenset({"qwen4_exp"})
"""Indexers share 3 int64 positions per token (modeling_qwen4_exp.py)."""

CONVOLVED_IN_EVERY_LAYER: Final = frozenset({"lfm2"})
"""4.57.6 made a convolution state for attention layers, too (Lfm2HybridConvCache)."""

Part = tuple[Component, int]
"""A component, and the bytes of one or more tensors for all sequences."""


def family_of(model: Model) -> str:
    """The model_type without what marks a nested text config."""
    return model.model_type.removesuffix("_model").removesuffix("_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One filled cache: whose, of which class, and how much is in it."""

    model: Model
    version: str
    cache: CacheClass
    formats: CacheFormats
    tokens: int
    prefill_tokens: int
    encoder_tokens: int
    sequences: int
    float32_modules: bool

    @property
    def family(self) -> str:
        return family_of(self.model)

    def tensor(self, width: int, kept: int, fmt: NumberFormat | None = None) -> int:
        """Bytes of one tensor with `width` elements per token and sequence."""
        return self.cache.tensor_bytes(
            self.sequences * width, kept, fmt or self.formats.kv
        )

    def fixed(self, elements: int, fmt: NumberFormat) -> int:
        """Bytes of a tensor that no cache class changes."""
        return plain_bytes(self.sequences * elements, fmt)


def layer_parts(run: Run, groups: tuple[Group, ...]) -> Iterator[Part]:
    for spec, layers in groups:
        for component, size in parts(spec, run):
            yield component, layers * size


@singledispatch
def parts(spec: CacheSpec, run: Run) -> tuple[Part, ...]:
    """What one layer holds of one spec."""
    raise NotImplementedError(spec.kind)


@parts.register
def _no_code(spec: RwkvMatrix, run: Run) -> tuple[Part, ...]:
    """RWKV 5 and later have code of their own beside their weights."""
    raise UnsupportedModel(
        model_type=run.model.model_type, reason=f"transformers has no {spec.kind}"
    )


@parts.register
def _full(spec: FullAttention, run: Run) -> tuple[Part, ...]:
    return _heads(spec, run, "kv", run.cache.everything())


def _heads(spec: Heads, run: Run, component: Component, kept: int) -> tuple[Part, ...]:
    """K and V. Falcon's new architecture caches them repeated for every query head.

    Source: modeling_falcon.py, `_split_heads` broadcasts before `update`.
    """
    heads = spec.num_kv_heads
    if run.family == "falcon" and heads > 1:
        heads = run.model.num_heads or heads
    widths = (spec.head_dim, spec.value_head_dim)
    return tuple((component, run.tensor(heads * width, kept)) for width in widths)


@parts.register
def _sliding(spec: SlidingWindowAttention, run: Run) -> tuple[Part, ...]:
    if run.family in WINDOW_BY_MASK_ALONE:
        return _heads(spec, run, "kv", run.cache.everything())
    if run.family == "unlimited_ocr":
        return _reference_window(spec, run)
    window = spec.window + (run.family in WINDOW_WITHOUT_CURRENT_TOKEN)
    return _heads(spec, run, *run.cache.windowed(window))


def _reference_window(spec: SlidingWindowAttention, run: Run) -> tuple[Part, ...]:
    """Unlimited-OCR: the prompt whole, and a window over what was generated."""
    generated = run.tokens - run.prefill_tokens
    kept = min(generated, spec.window - 1)
    return (
        *_heads(spec, run, "kv", run.prefill_tokens),
        *_heads(spec, run, "window", kept),
    )


@parts.register
def _chunked(spec: ChunkedAttention, run: Run) -> tuple[Part, ...]:
    """A chunk is cached as a window of its size (DynamicSlidingWindowLayer)."""
    return _heads(spec, run, *run.cache.windowed(spec.chunk))


@parts.register
def _cross(spec: CrossAttention, run: Run) -> tuple[Part, ...]:
    source = spec.source_tokens
    return _heads(spec, run, "cross", run.encoder_tokens if source is None else source)


@parts.register
def _latent(spec: LatentAttention, run: Run) -> tuple[Part, ...]:
    """5 keeps the latent and the rotary key; 4.57 every head's key and value."""
    component: Component = "kv"
    if spec.window is None:
        kept = run.cache.everything()
    else:
        component, kept = run.cache.windowed(spec.window)
    if run.version == CURRENT:
        widths = (spec.kv_lora_rank, spec.qk_rope_head_dim)
    else:
        if not spec.num_heads * spec.head_dim:
            raise UnsupportedModel(
                model_type=run.model.model_type,
                reason="its config does not say what the latent expands to",
            )
        widths = (
            spec.num_heads * spec.head_dim,
            spec.num_heads * spec.value_head_dim,
        )
    return tuple((component, run.tensor(width, kept)) for width in widths if width)


@parts.register
def _indexer(spec: IndexerKeys, run: Run) -> tuple[Part, ...]:
    width = spec.index_kv_heads * spec.index_head_dim
    kept = run.cache.everything()
    return (("indexer", run.tensor(width, kept, run.formats.indexer)),)


@parts.register
def _compressed(spec: CompressedAttention, run: Run) -> tuple[Part, ...]:
    """DeepSeek-V4: windows, compressed rows, and the compressor's working state.

    Layers without compression keep the window's keys and values apart, the others
    one tensor for both. Tokens of the open group wait as (kv, gate) pairs; 4-to-1
    layers (with an indexer) project twice as wide and remember the last group.
    Source: modeling_deepseek_v4.py, DeepseekV4HCACache and DeepseekV4CSACache.
    """
    component, kept = run.cache.windowed(spec.window)
    window = run.tensor(spec.head_dim, kept)
    if not spec.ratio:
        return ((component, 2 * window),)
    groups, waiting = divmod(run.tokens, spec.ratio)
    dtype = run.formats.kv
    width, series = spec.head_dim + spec.index_head_dim, 2 if spec.index_head_dim else 1
    state = run.fixed(2 * waiting * series * width, dtype)
    if spec.index_head_dim and groups:
        last_group = spec.ratio * width
        gate = number_formats.find("fp32") if run.float32_modules else dtype
        state += run.fixed(last_group, dtype) + run.fixed(last_group, gate)
    return (
        (component, window),
        ("kv", run.fixed(groups * spec.head_dim, dtype)),
        ("indexer", run.fixed(groups * spec.index_head_dim, dtype)),
        ("state", state),
    )


@parts.register
def _state(spec: RecurrentState, run: Run) -> tuple[Part, ...]:
    """A convolution of kernel k keeps k columns (LinearAttentionLayer), not k - 1.

    RWKV's shifted tokens, RecurrentGemma's columns and Zaya's are kept as they must
    be (modeling_rwkv.py, modeling_recurrent_gemma.py, modeling_zaya.py).
    """
    rows, width = spec.recurrent_shape
    columns = spec.kernel
    if isinstance(spec, Rwkv4 | GatedLinearRecurrence | CompressedConvolution):
        columns -= 1
    return (
        ("state", run.fixed(rows * width, run.formats.state)),
        ("state", run.fixed(columns * spec.conv_channels, run.formats.conv)),
    )


@parts.register
def _shared(spec: SharedCache, run: Run) -> tuple[Part, ...]:
    return ()


def parts_beside_layers(run: Run) -> Iterator[Part]:
    """What is kept once, beside the layers' own caches.

    N-gram embeddings also remember 2 token ids (int64), which are not counted.
    """
    specs = dict(run.model.groups)
    if run.model.ngram_history:
        yield "state", run.fixed(run.model.ngram_history, run.formats.kv)
    indexed = any(isinstance(spec, IndexerKeys) for spec in specs)
    if run.family in POSITIONS_CACHED and indexed:
        yield "indexer", run.sequences * run.tokens * 3 * 8
    if run.version == OLDER:
        yield from _spare_convolutions(run)
        if run.model.num_shared_layers:
            yield from _handed_over(run)


def _spare_convolutions(run: Run) -> Iterator[Part]:
    if run.family not in CONVOLVED_IN_EVERY_LAYER:
        return
    for spec, layers in run.model.groups:
        if isinstance(spec, ShortConvolution):
            for component, size in parts(spec, run):
                yield component, (run.model.num_layers - layers) * size


def _handed_over(run: Run) -> Iterator[Part]:
    """4.57.6 Gemma 3n holds, beside the layers, what it hands to those that share.

    Those are the states of the last full and the last windowed layer, as the latest
    step saw them (Cache.shared_layers).
    """
    for spec, _ in run.model.groups:
        if isinstance(spec, SlidingWindowAttention):
            seen = min(run.tokens, spec.window)
            prefilled = run.tokens == run.prefill_tokens
            yield from _heads(spec, run, "window", run.tokens if prefilled else seen)
        elif isinstance(spec, FullAttention):
            yield from _heads(spec, run, "kv", run.tokens)
