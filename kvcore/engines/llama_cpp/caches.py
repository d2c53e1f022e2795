"""The caches llama.cpp creates for a model: what each layer keeps per cell or slot.

Sources, llama.cpp 0c1e570: src/llama-kv-cache.cpp (keys and values),
-iswa (windows), -dsa and -msa (indexers), -dsv4 (DeepSeek-V4),
llama-memory-recurrent.cpp and llama-hparams.cpp `n_embd_r`, `n_embd_s` (states).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    Component,
    CompressedAttention,
    FullAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.llama_cpp.arch import (
    EXPANDED,
    FORCED_WINDOWS,
    architecture_of,
    keeps_windows,
)
from kvcore.engines.llama_cpp.context import Context, padded
from kvcore.errors import MissingField
from kvcore.model import Layer, Model
from kvcore.states import RecurrentState

CSA_RATIO: Final = 4
HCA_RATIO: Final = 128

Store = Literal["base", "swa", "indexer", "raw", "csa", "hca", "lid"]
"""Which of the library's caches a layer's rows are in."""


class Rows(NamedTuple):
    """Elements one cell of a layer takes: keys, values, and what llama.cpp adds."""

    store: Store
    component: Component
    key: int
    value: int
    item: str
    unused_values: int = 0


class States(NamedTuple):
    """f32 elements of one layer per slot and snapshot."""

    conv: int
    recurrent: int


class Compressor(NamedTuple):
    """A DeepSeek-V4 layer's open groups: f32 rows of entries and of their scores."""

    kind: Literal["csa", "hca", "lid"]
    rows: int
    width: int

    @property
    def elements(self) -> int:
        """Per slot and snapshot."""
        return 2 * self.rows * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What decides the layout of a model's layers, taken from all of them at once."""

    architecture: str
    windowed: bool
    window: int
    expanded: bool
    value_width: int
    attention_value_dim: int


def shape_of(model: Model) -> Shape:
    architecture = architecture_of(model)
    specs = [spec for spec, _ in (*model.groups, *model.draft_groups)]
    expanded = model.latent_expanded or architecture in EXPANDED
    windows = [_window(spec) for spec in specs]
    return Shape(
        architecture=architecture,
        windowed=keeps_windows(architecture, model),
        window=FORCED_WINDOWS.get(architecture) or max(windows, default=0),
        expanded=expanded,
        value_width=max((value_width(s, expanded) for s in specs), default=0),
        attention_value_dim=max(
            (s.value_head_dim for s in specs if isinstance(s, Heads)), default=0
        ),
    )


def _window(spec: CacheSpec) -> int:
    if isinstance(spec, ChunkedAttention):
        return spec.chunk
    if isinstance(spec, SlidingWindowAttention | LatentAttention | CompressedAttention):
        return spec.window or 0
    return 0


def value_width(spec: CacheSpec, expanded: bool) -> int:
    """Elements of a layer's values in one cell (`n_embd_v_gqa`)."""
    if isinstance(spec, Heads):
        return spec.num_kv_heads * spec.value_head_dim
    if isinstance(spec, LatentAttention):
        kept = spec.num_heads * spec.value_head_dim
        return kept if expanded else spec.kv_lora_rank
    return 0


def keeps_keys_only(model: Model, shape: Shape) -> bool:
    """MLA and DeepSeek-V4: one row stands for keys and values."""
    kinds = (LatentAttention, CompressedAttention)
    return not shape.expanded and any(isinstance(s, kinds) for s, _ in model.groups)


def rows_of(spec: CacheSpec, shape: Shape, *, flash: bool) -> Iterator[Rows]:
    """What one layer of that spec keeps in each cell of each cache."""
    if isinstance(spec, FullAttention):
        key, value = _widths(spec)
        yield Rows("base", "kv", key, value, "cells", _padding(shape, value, flash))
    elif isinstance(spec, SlidingWindowAttention | ChunkedAttention):
        key, value = _widths(spec)
        more = _padding(shape, value, flash)
        store: Store = "swa" if shape.windowed else "base"
        item = "window_reserve" if shape.windowed else "window_ignored"
        yield Rows(store, "window", key, value, item, more)
    elif isinstance(spec, LatentAttention):
        yield _latent(spec, shape, flash)
    elif isinstance(spec, IndexerKeys):
        key, unused = _indexer(spec, shape)
        yield Rows("indexer", "indexer", key, 0, "cells", unused)
    elif isinstance(spec, CompressedAttention):
        yield from _compressed(spec)


def empty_rows(shape: Shape, *, flash: bool) -> Rows:
    """A layer without KV heads (Nemotron-NAS) is in the cache all the same."""
    return Rows("base", "kv", 0, 0, "cells", _padding(shape, 0, flash))


def _widths(spec: Heads) -> tuple[int, int]:
    heads = spec.num_kv_heads
    return heads * spec.head_dim, heads * spec.value_head_dim


def _padding(shape: Shape, value: int, flash: bool) -> int:
    """Without flash attention values are transposed, all as wide as the widest."""
    return 0 if flash else shape.value_width - value


def _latent(spec: LatentAttention, shape: Shape, flash: bool) -> Rows:
    windowed = spec.window is not None
    component: Component = "window" if windowed else "kv"
    if not shape.expanded:
        store: Store = "swa" if windowed and shape.windowed else "base"
        item = "window_reserve" if windowed else "cells"
        width = spec.kv_lora_rank + spec.qk_rope_head_dim
        return Rows(store, component, width, 0, item)
    if not spec.num_heads:
        raise MissingField(field="v_head_dim")
    key = spec.num_heads * spec.head_dim
    value = spec.num_heads * spec.value_head_dim
    more = _padding(shape, value, flash)
    return Rows("base", component, key, value, "latent_expanded", more)


def _indexer(spec: IndexerKeys, shape: Shape) -> tuple[int, int]:
    """Width of the keys, and of values that are reserved and never used."""
    if shape.architecture == "glm5-next":
        # Key, gate and pooled key; the spec counts key, pooled key and one gate.
        return 3 * (spec.index_head_dim // 2), 0
    if shape.architecture == "minimax-m3":
        return spec.index_head_dim, shape.attention_value_dim
    return spec.index_head_dim, 0


def _compressed(spec: CompressedAttention) -> Iterator[Rows]:
    yield Rows("raw", "window", spec.head_dim, 0, "window_reserve")
    if spec.ratio == CSA_RATIO:
        yield Rows("csa", "kv", spec.head_dim, 0, "cells")
        yield Rows("lid", "indexer", spec.index_head_dim, 0, "cells")
    elif spec.ratio == HCA_RATIO:
        yield Rows("hca", "kv", spec.head_dim, 0, "cells")


def compressors_of(spec: CacheSpec) -> tuple[Compressor, ...]:
    """Key-value and score rows of the groups that are still open."""
    if not isinstance(spec, CompressedAttention):
        return ()
    if spec.ratio == CSA_RATIO:
        rows = 2 * CSA_RATIO
        return (
            Compressor("csa", rows, 2 * spec.head_dim),
            Compressor("lid", rows, 2 * spec.index_head_dim),
        )
    if spec.ratio == HCA_RATIO:
        return (Compressor("hca", HCA_RATIO, spec.head_dim),)
    return ()


def states_of(spec: CacheSpec) -> States | None:
    if not isinstance(spec, RecurrentState):
        return None
    rows, width = spec.recurrent_shape
    return States(max(spec.kernel - 1, 0) * spec.conv_channels, rows * width)


def store_cells(store: Store, context: Context, shape: Shape) -> tuple[int, int]:
    """(cells, streams) of a cache in a context."""
    if store == "swa":
        return context.window_cells(shape.window), context.streams
    if store in ("base", "indexer"):
        return context.cells, context.streams
    # DeepSeek-V4 keeps a stream per sequence even where the cache is unified.
    if store == "raw":
        return context.window_cells(shape.window, apart=True), context.slots
    ratio = HCA_RATIO if store == "hca" else CSA_RATIO
    return padded(max(1, -(-context.cells // ratio))), context.slots


def draft_specs(layer: Layer, shape: Shape) -> Iterator[CacheSpec]:
    """A draft layer as the MTP context keeps it.

    `create_memory`: plain attention, without an indexer for all but GLM5-Next;
    DeepSeek-V4's draft rows are kept as keys and values of one head.
    """
    for spec in layer:
        if isinstance(spec, IndexerKeys) and shape.architecture != "glm5-next":
            continue
        if isinstance(spec, CompressedAttention):
            yield SlidingWindowAttention(
                num_kv_heads=1,
                head_dim=spec.head_dim,
                value_head_dim=spec.head_dim,
                window=spec.window,
            )
        elif isinstance(spec, LatentAttention):
            yield replace(spec, window=None)
        elif not isinstance(spec, RecurrentState):
            yield spec
