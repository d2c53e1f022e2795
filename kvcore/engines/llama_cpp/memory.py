"""Bytes of llama.cpp's caches: of a model's layers in a context, on one device.

Sources: as in `caches`; layers over devices by `load_tensors` in
src/llama-model.cpp of llama.cpp 0c1e570 (split mode layer, equal devices).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kvcore.cache import CacheSpec, Component
from kvcore.engines.base import no_bytes
from kvcore.engines.items import differ, logical_components
from kvcore.engines.llama_cpp.arch import DRAFTS_IN_MAIN, NO_MEMORY, ROLLBACK
from kvcore.engines.llama_cpp.caches import (
    Rows,
    Shape,
    Store,
    compressors_of,
    draft_specs,
    empty_rows,
    rows_of,
    states_of,
    store_cells,
)
from kvcore.engines.llama_cpp.context import Context, Launch
from kvcore.engines.llama_cpp.types import TYPES, GgmlType
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Group, Layer, Model, grouped
from kvcore.states import RecurrentState

F32_BYTES: Final = 4

Types = tuple[GgmlType, GgmlType]
"""Of keys and of values."""


@dataclass(slots=True, kw_only=True)
class Cache:
    """One of the library's KV caches: what its log line says."""

    cells: int
    streams: int
    layers: int = 0
    key_bytes: int = 0
    value_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Recurrent:
    """The recurrent memory: conv (R), state (S) and n-gram (P) bytes."""

    layers: int = 0
    conv_bytes: int = 0
    state_bytes: int = 0
    ngram_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Memory:
    """All caches of one context on one device, by cache, component and item.

    `items` are what the library adds to the logical bytes (or leaves out: negative).
    """

    caches: dict[Store, Cache] = field(default_factory=dict)
    recurrent: Recurrent = field(default_factory=Recurrent)
    compressors: dict[str, int] = field(default_factory=dict)
    components: dict[Component, int] = field(default_factory=no_bytes)
    items: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(self.components.values())

    def add(self, component: Component, kept: int, logical: int, item: str) -> None:
        self.components[component] += kept
        differ(self.items, item, kept - logical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model in a context, and everything that decides its bytes."""

    model: Model
    shape: Shape
    context: Context
    launch: Launch
    scope: Scope
    formats: CacheFormats

    @property
    def flash(self) -> bool:
        return flash_attention(self.shape.architecture, self.launch)

    @property
    def snapshots(self) -> int:
        """Rollback snapshots of every state, where the architecture has them."""
        rolled_back = self.shape.architecture in ROLLBACK
        return self.launch.n_rs_seq if rolled_back else 0

    @property
    def state_rows(self) -> int:
        return self.context.slots * (1 + self.snapshots)

    @property
    def model_has_states(self) -> bool:
        return any(isinstance(s, RecurrentState) for s, _ in self.model.groups)

    @property
    def types(self) -> Types:
        key, value = self.formats.kv, self.formats.value
        return TYPES[key.id], TYPES[key.id if value is None else value.id]

    @property
    def draft_types(self) -> Types:
        return TYPES[self.launch.type_k_draft], TYPES[self.launch.type_v_draft]


def flash_attention(architecture: str, launch: Launch) -> bool:
    """Whether it may be on; it is not compatible with Grok and forced off there."""
    return launch.flash_attn != "off" and architecture != "grok"


def devices(request: Request, count: int) -> tuple[Memory, ...]:
    """The memory of each of `count` equal devices that share the layers in order.

    Draft layers of the model's own follow the others; a draft model is split anew.
    """
    model = request.model
    if count == 1:
        share = Share(
            groups=model.groups,
            empty=model.layers.count(()),
            drafts=model.draft_layers,
        )
        return (_memory(request, share),)
    layers, drafts = model.layers, model.draft_layers
    if model.draft_is_model:
        device, draft_device = (_dealt(len(each), count) for each in (layers, drafts))
    else:
        every = _dealt(len(layers) + len(drafts), count)
        device, draft_device = every[: len(layers)], every[len(layers) :]
    found: list[Memory] = []
    for d in range(count):
        own = tuple(layer for layer, at in zip(layers, device, strict=True) if at == d)
        share = Share(
            groups=grouped(own),
            empty=own.count(()),
            drafts=tuple(
                layer for layer, at in zip(drafts, draft_device, strict=True) if at == d
            ),
            first=d == 0,
        )
        found.append(_memory(request, share))
    return tuple(found)


def _dealt(layers: int, count: int) -> list[int]:
    """The device of each layer of a model, its output layer counted as one more."""
    return [i * count // (layers + 1) for i in range(layers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The layers of one device; `empty` is how many of them keep nothing."""

    groups: tuple[Group, ...]
    empty: int
    drafts: tuple[Layer, ...]
    first: bool = True


def _memory(request: Request, share: Share) -> Memory:
    memory = Memory()
    if request.shape.architecture in NO_MEMORY:
        return memory
    if share.empty and not request.model_has_states:
        rows = empty_rows(request.shape, flash=request.flash)
        _add_row(memory, request, rows, share.empty, {}, request.types)
    for spec, count in share.groups:
        logical = _logical(request, spec)
        _add_rows(memory, request, (spec, count), logical, request.types)
        if request.scope.state:
            _add_states(memory, request, (spec, count), logical)
        differ(memory.items, "not_cached", -count * sum(logical.values()))
    if request.shape.architecture in DRAFTS_IN_MAIN:
        _add_unasked_drafts(memory, request, share.drafts)
    if share.first and request.model.ngram_history and request.scope.state:
        kept = F32_BYTES * request.state_rows * request.model.ngram_history
        memory.recurrent.ngram_bytes = kept
        memory.add("state", kept, 0, "ngram_history")
    if request.scope.draft and share.drafts:
        _add_drafts(memory, request, share.drafts)
    return memory


def _logical(request: Request, spec: CacheSpec) -> dict[Component, int]:
    return logical_components(request.model, spec, request.scope, request.formats)


def _add_rows(
    memory: Memory,
    request: Request,
    group: Group,
    logical: dict[Component, int],
    types: Types,
) -> None:
    """Rows of one group of equal layers; takes what it accounts for from `logical`."""
    spec, count = group
    for rows in rows_of(spec, request.shape, flash=request.flash):
        _add_row(memory, request, rows, count, logical, types)


def _add_row(
    memory: Memory,
    request: Request,
    rows: Rows,
    count: int,
    logical: dict[Component, int],
    types: Types,
) -> None:
    cells, streams = store_cells(rows.store, request.context, request.shape)
    each = count * cells * streams
    key = each * types[0].row_bytes(rows.key)
    value = each * types[1].row_bytes(rows.value)
    more = each * types[1].row_bytes(rows.unused_values)
    cache = memory.caches.setdefault(rows.store, Cache(cells=cells, streams=streams))
    cache.layers += count
    cache.key_bytes += key
    cache.value_bytes += value + more
    known = count * logical.pop(rows.component, 0)
    memory.add(rows.component, key + value, known, rows.item)
    memory.add(rows.component, more, 0, "unused_values")


def _add_states(
    memory: Memory, request: Request, group: Group, logical: dict[Component, int]
) -> None:
    """States are f32, one row per slot and snapshot, whatever the length."""
    spec, count = group
    each = F32_BYTES * count * request.state_rows
    states = states_of(spec)
    if states is not None:
        recurrent = memory.recurrent
        recurrent.layers += count
        recurrent.conv_bytes += each * states.conv
        recurrent.state_bytes += each * states.recurrent
        kept = each * (states.conv + states.recurrent)
        known = count * logical.pop("state", 0)
        memory.add("state", kept, known, "state_rows")
    for compressor in compressors_of(spec):
        kept = each * compressor.elements
        found = memory.compressors
        found[compressor.kind] = found.get(compressor.kind, 0) + kept
        memory.add("state", kept, 0, "compressor_state")


def _add_drafts(memory: Memory, request: Request, drafts: tuple[Layer, ...]) -> None:
    """The MTP context: as many cells as the main one, types of its own."""
    shape = replace(
        request.shape,
        windowed=request.shape.windowed or request.shape.architecture == "deepseek4",
    )
    kept = Memory()
    drafted = replace(request, shape=shape)
    layers = (tuple(draft_specs(layer, shape)) for layer in drafts)
    for spec, count in grouped(layers):
        _add_rows(kept, drafted, (spec, count), {}, request.draft_types)
    logical = sum(
        count * sum(_logical(request, spec).values()) for spec, count in grouped(drafts)
    )
    memory.add("draft", kept.bytes, logical, "draft_context")


def _add_unasked_drafts(
    memory: Memory, request: Request, drafts: tuple[Layer, ...]
) -> None:
    """Draft layers that the main context keeps rows for, and never reads."""
    layers = (tuple(draft_specs(layer, request.shape)) for layer in drafts)
    kept = Memory(caches=memory.caches)
    for spec, count in grouped(layers):
        _add_rows(kept, request, (spec, count), {}, request.types)
    memory.add("kv", kept.bytes, 0, "draft_layers")


def fullest(memories: tuple[Memory, ...]) -> Memory:
    return max(memories, key=lambda memory: memory.bytes)


def totals(memories: tuple[Memory, ...]) -> Mapping[Store, Cache]:
    """Each cache over all devices, as its log line counts it."""
    found: dict[Store, Cache] = {}
    for memory in memories:
        for store, cache in memory.caches.items():
            total = found.setdefault(
                store, Cache(cells=cache.cells, streams=cache.streams)
            )
            total.layers += cache.layers
            total.key_bytes += cache.key_bytes
            total.value_bytes += cache.value_bytes
    return found
