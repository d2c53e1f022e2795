"""What each layer keeps in MLX-LM 0.32.2's caches, by the model's type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    Component,
    CompressedAttention,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.mlx.caches import Chunked, Growing, Rotating, Run, rows_after
from kvcore.engines.mlx.formats import Codes
from kvcore.engines.mlx.models import (
    DOUBLE_INDEXERS,
    EXPANDED,
    LISTED,
    keeps_windows,
)
from kvcore.errors import MissingField, UnsupportedModel
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Group, Model
from kvcore.states import RecurrentState


class Rows(NamedTuple):
    """What one layer keeps in one cache: rows, and the widths of keys and values."""

    component: Component
    rows: int
    key: int
    value: int
    quantised: bool
    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One generation: a model, what it holds, and how its caches are run."""

    model: Model
    family: str
    scope: Scope
    formats: CacheFormats
    run: Run
    max_rows: int | None
    codes: Codes | None

    @property
    def size(self) -> int:
        """Bytes of one element in the model's dtype."""
        return self.formats.conv.layout.block_bits // 8

    @property
    def tokens(self) -> int:
        return self.run.tokens


def groups_of(request: Request) -> tuple[Group, ...]:
    """Layers as MLX-LM builds them: some keep more than the architecture asks for."""
    if request.family == "bailing_hybrid":
        return _without_left_over_states(request.model)
    if request.family in DOUBLE_INDEXERS:
        layers = request.model.num_layers
        return tuple(
            (spec, layers if isinstance(spec, IndexerKeys) else count)
            for spec, count in request.model.groups
        )
    return request.model.groups


def _without_left_over_states(model: Model) -> tuple[Group, ...]:
    """Ling: layers past the last whole group are latent ones."""
    latent = [
        i
        for i, layer in enumerate(model.layers)
        if any(isinstance(spec, LatentAttention) for spec in layer)
    ]
    if not latent:
        return model.groups
    size = latent[0] + 1
    last = model.num_layers // size * size
    left = sum(1 for i in range(last, model.num_layers) if i not in latent)
    kept = [
        (spec, count - left if isinstance(spec, RecurrentState) else count)
        for spec, count in model.groups
    ]
    added = tuple((spec, left) for spec in model.layers[latent[0]])
    return (*kept, *added) if left else model.groups


def kept_of(request: Request, spec: CacheSpec) -> Iterator[tuple[Component, int, str]]:
    """(component, bytes of all sequences, item) of one layer of that spec."""
    sequences = request.scope.sequences
    if isinstance(spec, RecurrentState):
        if request.scope.state:
            yield "state", sequences * _state_bytes(request, spec), "states"
    elif isinstance(spec, CompressedAttention):
        for component, kept, item in _compressed(request, spec):
            yield component, sequences * kept, item
    elif isinstance(spec, CrossAttention):
        raise UnsupportedModel(
            model_type=request.model.model_type,
            reason="MLX-LM 0.32.2 has no cross attention",
        )
    else:
        for found in _rows(request, spec):
            yield found.component, sequences * _row_bytes(request, found), found.item


def _rows(request: Request, spec: CacheSpec) -> Iterator[Rows]:
    family = request.family
    quantised = family not in LISTED
    if isinstance(spec, IndexerKeys):
        key = spec.index_head_dim
        value = key if family in DOUBLE_INDEXERS else 0
        rows = rows_after(Growing(), request.run)
        yield Rows("indexer", rows, key, value, False, "steps")
    elif isinstance(spec, ChunkedAttention):
        rows = rows_after(Chunked(spec.chunk), request.run)
        yield Rows("window", rows, *_widths(spec, family), False, "steps")
    elif isinstance(spec, SlidingWindowAttention) and keeps_windows(
        family, request.model
    ):
        rows = rows_after(Rotating(spec.window), request.run)
        yield Rows("window", rows, *_widths(spec, family), False, "steps")
    elif isinstance(spec, Heads | LatentAttention):
        cache: Growing | Rotating = Growing()
        if request.max_rows is not None:
            cache, quantised = Rotating(request.max_rows), False
        rows = rows_after(cache, request.run)
        windowed = isinstance(spec, SlidingWindowAttention)
        component: Component = "window" if windowed else "kv"
        item = "window_ignored" if windowed else "steps"
        if isinstance(spec, LatentAttention) and family in EXPANDED:
            item = "latent_expanded"
        yield Rows(component, rows, *_widths(spec, family), quantised, item)


def _widths(spec: Heads | LatentAttention, family: str) -> tuple[int, int]:
    """Elements of all heads' keys and values in one row."""
    if isinstance(spec, Heads):
        heads = spec.num_kv_heads
        return heads * spec.head_dim, heads * spec.value_head_dim
    if family not in EXPANDED:
        return spec.kv_lora_rank, spec.qk_rope_head_dim
    if not spec.num_heads:
        raise MissingField(field="v_head_dim")
    heads = spec.num_heads
    return heads * spec.head_dim, heads * spec.value_head_dim


def _row_bytes(request: Request, found: Rows) -> int:
    size, codes = request.size, request.codes
    if codes is None or not found.quantised:
        return found.rows * (found.key + found.value) * size
    return found.rows * (
        codes.row_bytes(found.key, size) + codes.row_bytes(found.value, size)
    )


def _state_bytes(request: Request, spec: RecurrentState) -> int:
    """Exact, without growth: columns in the model's dtype, the state mostly in f32."""
    rows, width = spec.recurrent_shape
    columns = max(spec.kernel - 1, 0) * spec.conv_channels
    state = request.formats.state.layout.block_bits // 8
    return columns * request.size + rows * width * state


def _compressed(
    request: Request, spec: CompressedAttention
) -> Iterator[tuple[Component, int, str]]:
    """DeepSeek-V4.1: exact rows, and the open group's entries and gates in f32."""
    tokens, size = request.tokens, request.size
    yield "window", size * min(tokens, spec.window) * spec.head_dim, "steps"
    if spec.ratio:
        rows, rest = divmod(tokens, spec.ratio)
        yield "kv", size * rows * spec.head_dim, "steps"
        yield "indexer", size * rows * spec.index_head_dim, "steps"
        yield "state", 2 * 4 * rest * spec.head_dim, "open_group"
