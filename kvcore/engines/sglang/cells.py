"""Bytes of one row: what SGLang keeps for one token on one rank, over its layers.

Source: sglang/srt/model_executor/pool_configurator.py (DefaultPoolConfigurator,
HybridSWAPoolConfigurator) and distributed/utils.py (get_pp_indices) of the 0.5.23
wheel. Sizing goes by one shape for all layers of a kind, so layers that reuse another
layer's cache, or keep nothing, are charged as well; only models with states are
counted by the layers that attend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kvcore import formats
from kvcore.cache import (
    CacheSpec,
    Component,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
)
from kvcore.engines.sglang.arguments import Arguments
from kvcore.engines.sglang.models import (
    class_of,
    has_states,
    is_windowed,
    keeps_latents,
)
from kvcore.errors import UnsupportedModel
from kvcore.estimate import CacheFormats
from kvcore.formats import NumberFormat
from kvcore.model import Layer, Model
from kvcore.states import RecurrentState

UNCOUNTED_HEADS = (
    "Qwen3Next",
    "Qwen3_5",
    "Qwen4Exp",
    "MiMoV2",
    "InternS2",
    "MiniMax",
)
"""Classes whose configs name their draft heads in a key the sizing does not read:
the draft's pool is then taken from the memory outside the static fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Bytes of one row of each pool of one rank.

    `full` by component; `window` is a row of the window pool (0 without one); the
    draft's rows live in the full pool (`draft`) or the window pool (`draft_window`).
    """

    full: Mapping[Component, int]
    window: int = 0
    draft: int = 0
    draft_window: int = 0
    layers: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def full_bytes(self) -> int:
        """One row of the full pool, the draft's included."""
        return sum(self.full.values()) + self.draft

    @property
    def window_bytes(self) -> int:
        return self.window + self.draft_window


def stages(num_layers: int, pp: int) -> tuple[range, ...]:
    """Layers of each pipeline stage: the last stages are one longer.

    >>> [len(stage) for stage in stages(80, 3)]
    [26, 27, 27]
    """
    size, rest = divmod(num_layers, pp)
    found, start = [], 0
    for stage in range(pp):
        length = size + (stage >= pp - rest)
        found.append(range(start, start + length))
        start += length
    return tuple(found)


def stage_cells(
    model: Model, stage: range, arguments: Arguments, formats: CacheFormats
) -> Cells:
    """Rows of one stage's pools."""
    layers = [model.layers[i] for i in stage]
    if arguments.split_windows:
        cells = _split_cells(model, layers, arguments, formats)
    else:
        cells = _plain_cells(model, layers, arguments, formats)
    return _with_draft(model, cells, arguments, formats)


def _plain_cells(
    model: Model, layers: list[Layer], arguments: Arguments, formats: CacheFormats
) -> Cells:
    """Every layer at full length, all of the most common shape."""
    count = (
        sum(1 for layer in layers if any(map(_attends, layer)))
        if has_states(model)
        else len(layers)
    )
    shape = unsplit_shape(model)
    full: dict[Component, int] = {}
    if shape is not None:
        full["kv"] = count * shape_bytes(model, shape, arguments, formats.kv)
        full["kv"] += _fp4_extra(shape, count, arguments)
    indexers = _indexer_bytes(model, layers, formats.indexer)
    if indexers:
        # Keys of the indexer are whole on every DCP rank.
        full["indexer"] = indexers * arguments.dcp
    return Cells(full=full, layers={"full": count})


def _fp4_extra(shape: CacheSpec, layers: int, arguments: Arguments) -> int:
    """What nvfp4 needs where prefill reads another layout than decoding.

    A second copy of the scales for each layer, and one layer's keys and values in fp8
    (layers/quantization/fp4_kv_cache_quant_method.py).
    """
    if not isinstance(shape, Heads):
        return 0
    local = max(1, shape.num_kv_heads // arguments.kv_ranks) * shape.head_dim
    scales = 2 * local // 16 * layers if arguments.fp4_scales_twice else 0
    return scales + (2 * local if arguments.fp4_workspace else 0)


def _split_cells(
    model: Model, layers: list[Layer], arguments: Arguments, formats: CacheFormats
) -> Cells:
    """Full and window layers apart, each of its own shape."""
    fmt = _split_format(formats.kv)
    # Split pools never widen under DCP, and deal their heads to all ranks.
    arguments = replace(arguments, dcp=1)
    full = Counter(_stored(model, layer, windowed=False) for layer in layers)
    window = Counter(_stored(model, layer, windowed=True) for layer in layers)
    full.pop(None, None)
    window.pop(None, None)
    cell: dict[Component, int] = {"kv": _counted(model, full, arguments, fmt)}
    indexers = _indexer_bytes(model, layers, formats.indexer)
    if indexers:
        cell["indexer"] = indexers
    return Cells(
        full=cell,
        window=_counted(model, window, arguments, fmt),
        layers={"full": full.total(), "window": window.total()},
    )


def _split_format(kv: NumberFormat) -> NumberFormat:
    """Split pools charge a 4-bit element its storage dtype's whole byte."""
    four_bit = kv.id in ("nvfp4", "fp4_mx_block16")
    return formats.find("fp8") if four_bit else kv


def _counted(
    model: Model,
    shapes: Mapping[CacheSpec | None, int],
    arguments: Arguments,
    kv: NumberFormat,
) -> int:
    return sum(
        count * shape_bytes(model, shape, arguments, kv)
        for shape, count in shapes.items()
        if shape is not None
    )


def _stored(model: Model, layer: Layer, *, windowed: bool) -> CacheSpec | None:
    """The attention a layer stores; a layer that shares one is given its own."""
    for spec in layer:
        found = spec
        if isinstance(spec, SharedCache) and spec.source_layer is not None:
            source = model.layers[spec.source_layer]
            found = next((other for other in source if _attends(other)), spec)
        if _attends(found) and is_windowed(found) == windowed:
            return found
    return None


def _attends(spec: CacheSpec) -> bool:
    return isinstance(spec, Heads | LatentAttention) and not isinstance(
        spec, CrossAttention
    )


def common_shape(model: Model) -> CacheSpec | None:
    """The shape of most attending layers; None for models of states alone."""
    found = [(n, spec) for spec, n in model.groups if _attends(spec)]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def unsplit_shape(model: Model) -> CacheSpec | None:
    """The one shape of all layers: what a config's plain keys describe.

    In MiMo-V2, Inkling and Gemma 4 those are the full layers, elsewhere most layers.
    """
    if class_of(model).startswith(("MiMoV2", "Inkling", "Gemma4")):
        for spec, _ in model.groups:
            if _attends(spec) and not is_windowed(spec):
                return spec
    return common_shape(model)


def shape_bytes(
    model: Model, shape: CacheSpec, arguments: Arguments, kv: NumberFormat
) -> int:
    """One row of one layer on one rank.

    Heads are dealt to the ranks, one at least to each; latents are whole on all.
    Latents of a class SGLang does not know as such are kept as full heads.
    """
    if isinstance(shape, LatentAttention):
        if keeps_latents(model):
            bits = kv.row_bits(shape.kv_lora_rank, "latent")
            if shape.qk_rope_head_dim:
                bits += kv.row_bits(shape.qk_rope_head_dim, "rope")
            return -(-bits // 8)
        return _heads_bytes(
            shape.num_heads, shape.head_dim, shape.value_head_dim, arguments, kv
        )
    if isinstance(shape, Heads):
        return _heads_bytes(
            shape.num_kv_heads, shape.head_dim, shape.value_head_dim, arguments, kv
        )
    raise UnsupportedModel(
        model_type=model.model_type, reason=f"SGLang has no pool for {shape.kind}"
    )


def _heads_bytes(
    heads: int, key: int, value: int, arguments: Arguments, kv: NumberFormat
) -> int:
    local = max(1, heads // arguments.kv_ranks)
    bits = local * (kv.row_bits(key, "key") + kv.row_bits(value, "value"))
    return -(-bits // 8)


def _indexer_bytes(model: Model, layers: Iterable[Layer], indexer: NumberFormat) -> int:
    """Index keys of the layers that own an indexer, before DCP copies them."""
    total = 0
    for layer in layers:
        for spec in layer:
            if isinstance(spec, IndexerKeys):
                bits = indexer.row_bits(spec.index_head_dim, "indexer")
                total += spec.index_kv_heads * -(-bits // 8)
    return total


def _with_draft(
    model: Model, cells: Cells, arguments: Arguments, formats: CacheFormats
) -> Cells:
    """Cells with the draft's layers: a share of the target's row for each."""
    drafting = arguments.drafting
    if drafting is None or drafting.algorithm == "NGRAM" or drafts_uncounted(model):
        return cells
    drafts = len(model.draft_layers)
    if not drafts or not cells.layers.get("full"):
        return cells
    layers = cells.layers["full"]
    if cells.window:
        # A head described by the target's own config is taken for a window layer.
        windowed = min(drafts, window_layers(model))
        row = sum(cells.full.values()) // layers
        narrow = cells.window // cells.layers["window"]
        return Cells(
            full=cells.full,
            window=cells.window,
            draft=row * (drafts - windowed),
            draft_window=narrow * windowed,
            layers=cells.layers,
        )
    indexer = cells.full.get("indexer", 0)
    latent = sum(cells.full.values()) - indexer
    draft = latent * drafts // layers
    if indexer:
        draft *= arguments.dcp
        draft += arguments.dcp * _indexer_bytes(
            model, model.draft_layers, formats.indexer
        )
    return Cells(full=cells.full, draft=draft, layers=cells.layers)


def window_layers(model: Model) -> int:
    return sum(n for spec, n in model.groups if is_windowed(spec))


def drafts_uncounted(model: Model) -> bool:
    return class_of(model).startswith(UNCOUNTED_HEADS)


def stage_states(model: Model, stage: range) -> tuple[RecurrentState, ...]:
    """The states of a stage's layers."""
    return tuple(
        spec
        for i in stage
        for spec in model.layers[i]
        if isinstance(spec, RecurrentState)
    )
