"""Every cache of every layer as vLLM's pages on one rank.

Sources, 0.33.0: get_kv_cache_spec of vllm/model_executor/layers/attention/*.py,
vllm/models/deepseek_v4/*.py and vllm/v1/attention/backends/mla/sparse_swa.py; the
packing of each format from its backend's customize_spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    CompressedAttention,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.engines.vllm import states
from kvcore.engines.vllm.blocks import Blocks, blocks_of
from kvcore.engines.vllm.deployment import Deployment, draft_layers
from kvcore.engines.vllm.formats import head_bytes, indexer_bytes, latent_bytes
from kvcore.engines.vllm.pages import Cache, Kind, Page
from kvcore.errors import UnsupportedModel
from kvcore.estimate import CacheFormats
from kvcore.formats import FORMATS, NumberFormat
from kvcore.model import Layer, Model
from kvcore.states import RecurrentState

PACKED_ALIGNMENT: Final = 576
PLAIN_ALIGNMENT: Final = 512
COMPRESSED_BLOCK: Final = 256
COMPRESSED_WINDOW_BLOCK: Final = 64
PACKED_EXTRA: Final = 8
"""Scales of a DeepSeek-V4 record: seven UE8M0 bytes and one of padding."""

COMPRESSOR_BLOCK: Final = {4: 4, 128: 8}
"""Tokens in a block of compressor state, by ratio."""


def caches_of(model: Model, formats: CacheFormats, d: Deployment) -> list[Cache]:
    """All caches of the model, in order, drafts last and on the last stage."""
    blocks = blocks_of(model, formats, d)
    stages = stage_of_layer(len(model.layers), d.pp)
    found: list[Cache] = []
    for index, layer in enumerate(model.layers):
        fmt = blocks.format_of(index)
        found += (
            Cache(layer=index, stage=stages[index], page=page)
            for page in _pages(layer, fmt, formats, d, blocks)
        )
    if d.drafts:
        for index, layer in enumerate(draft_layers(model), len(model.layers)):
            found += (
                Cache(layer=index, stage=d.pp - 1, page=replace(page, draft=True))
                for page in _pages(layer, formats.kv, formats, d, blocks)
            )
    return found


def stage_of_layer(layers: int, pp: int) -> list[int]:
    """Even stages; what remains goes to the last but one and backwards.

    >>> [stage_of_layer(80, 3).count(stage) for stage in range(3)]
    [27, 27, 26]

    Source: vllm/distributed/utils.py 0.33.0, get_pp_indices.
    """
    sizes = [layers // pp] * pp
    for i in range(2, layers % pp + 2):
        sizes[-i] += 1
    return [stage for stage, size in enumerate(sizes) for _ in range(size)]


def _pages(
    layer: Layer,
    fmt: NumberFormat,
    formats: CacheFormats,
    d: Deployment,
    blocks: Blocks,
) -> Iterator[Page]:
    for spec in layer:
        if isinstance(spec, SharedCache):
            continue
        if isinstance(spec, RecurrentState):
            yield _state(spec, formats, d, blocks)
        elif isinstance(spec, Heads):
            yield _heads(spec, fmt, d, blocks)
        elif isinstance(spec, LatentAttention):
            yield _latent(spec, fmt, d, blocks)
        elif isinstance(spec, IndexerKeys):
            yield _indexer(spec, formats, blocks)
        elif isinstance(spec, CompressedAttention):
            yield from _compressed(spec, formats)
        else:
            raise UnsupportedModel(
                model_type=spec.kind, reason="vLLM has no cache of this kind"
            )


def heads_on_rank(spec: Heads, tp: int) -> int:
    """KV heads of one rank: divided, or one repeated on several ranks."""
    return max(1, spec.num_kv_heads // tp)


def _heads(spec: Heads, fmt: NumberFormat, d: Deployment, blocks: Blocks) -> Page:
    heads = heads_on_rank(spec, d.tp)
    row = heads * head_bytes(spec.head_dim, spec.value_head_dim, fmt)
    page = Page(
        kind="full",
        spec_kind=spec.kind,
        component="kv",
        block_tokens=blocks.block,
        row_bytes=row,
        shape=(heads, spec.head_dim, spec.value_head_dim, fmt.id),
    )
    if isinstance(spec, SlidingWindowAttention):
        return replace(
            page,
            kind="sliding",
            component="window",
            block_tokens=blocks.window_block(spec, row, fmt),
            bound=spec.window,
            retained=d.retained_tokens,
            padded_bytes=blocks.shared_page,
        )
    if isinstance(spec, ChunkedAttention):
        return replace(page, kind="chunked", component="window", bound=spec.chunk)
    if isinstance(spec, CrossAttention):
        return replace(page, kind="cross", component="cross")
    return page


def _latent(
    spec: LatentAttention, fmt: NumberFormat, d: Deployment, blocks: Blocks
) -> Page:
    """The whole latent on every rank."""
    windowed = spec.window is not None
    kind: Kind = "sliding_latent" if windowed else "latent"
    return Page(
        kind=kind,
        spec_kind=spec.kind,
        component="window" if windowed else "kv",
        block_tokens=blocks.block,
        row_bytes=latent_bytes(spec, fmt),
        bound=spec.window or 0,
        retained=d.retained_tokens if windowed else 0,
        shape=(spec.kv_lora_rank, spec.qk_rope_head_dim, fmt.id),
    )


def _indexer(spec: IndexerKeys, formats: CacheFormats, blocks: Blocks) -> Page:
    return Page(
        kind="latent",
        spec_kind=spec.kind,
        component="indexer",
        block_tokens=blocks.block,
        row_bytes=spec.index_kv_heads
        * indexer_bytes(spec.index_head_dim, formats.indexer),
        shape=("indexer", spec.index_head_dim, formats.indexer.id),
    )


def _state(
    spec: RecurrentState, formats: CacheFormats, d: Deployment, blocks: Blocks
) -> Page:
    return Page(
        kind="state",
        spec_kind=spec.kind,
        component="state",
        block_tokens=blocks.block,
        row_bytes=states.state_bytes(spec, formats, d),
        copies=states.copies(spec, d),
        padded_bytes=blocks.state_page,
        shape=(spec.kind, *spec.values.values()),
    )


def _compressed(spec: CompressedAttention, formats: CacheFormats) -> Iterator[Page]:
    """DeepSeek-V4: window, compressed rows, indexer and the compressor's states."""
    record = _record_bytes(spec, formats.kv)
    align = PACKED_ALIGNMENT if formats.kv.id == "fp8" else PLAIN_ALIGNMENT
    yield _aligned(
        Page(
            kind="sliding_latent",
            spec_kind=spec.kind,
            component="window",
            block_tokens=COMPRESSED_WINDOW_BLOCK,
            row_bytes=record,
            bound=spec.window,
            shape=("window", formats.kv.id),
        ),
        align,
    )
    if spec.ratio <= 1:
        return
    if spec.index_head_dim:
        index = indexer_bytes(spec.index_head_dim, formats.indexer)
        yield _aligned(_rows(spec, "indexer", index, formats.indexer), align)
        yield _aligned(_compressor(spec, spec.index_head_dim, "indexer"), align)
    yield _aligned(_rows(spec, "kv", record, formats.kv), align)
    yield _aligned(_compressor(spec, spec.head_dim, "kv"), align)


def _record_bytes(spec: CompressedAttention, fmt: NumberFormat) -> int:
    """A packed record (fp8 with a 16-bit rotary part and scales), or plain 16-bit."""
    if fmt.id != "fp8":
        return spec.head_dim * 2
    rope = spec.qk_rope_head_dim
    return spec.head_dim - rope + 2 * rope + PACKED_EXTRA


def _rows(
    spec: CompressedAttention, component: str, row_bytes: int, fmt: NumberFormat
) -> Page:
    return Page(
        kind="latent",
        spec_kind=spec.kind,
        component="indexer" if component == "indexer" else "kv",
        block_tokens=COMPRESSED_BLOCK,
        row_bytes=row_bytes,
        tokens_per_row=spec.ratio,
        shape=(component, spec.ratio, fmt.id),
    )


def _compressor(spec: CompressedAttention, width: int, component: str) -> Page:
    """Keys and scores of the open groups, in fp32; ratio 4 overlaps two groups."""
    if spec.ratio not in COMPRESSOR_BLOCK:
        raise UnsupportedModel(
            model_type=spec.kind, reason=f"vLLM has no compressor of {spec.ratio} to 1"
        )
    overlap = 2 if spec.ratio == 4 else 1
    return Page(
        kind="sliding_latent",
        spec_kind="compressor_state",
        component="state",
        block_tokens=COMPRESSOR_BLOCK[spec.ratio],
        row_bytes=overlap * 2 * width * FORMATS["fp32"].layout.block_bits // 8,
        bound=overlap * spec.ratio,
        shape=("compressor", component, spec.ratio),
    )


def _aligned(page: Page, unit: int) -> Page:
    return replace(page, padded_bytes=-(-page.natural_bytes // unit) * unit)


def is_block_outermost(model: Model) -> bool:
    """Whether pages of several sizes lie side by side in a block (DeepSeek-V4)."""

    def compressed(spec: CacheSpec) -> bool:
        return isinstance(spec, CompressedAttention) and bool(spec.index_head_dim)

    return any(compressed(spec) for spec, _ in model.groups)
