"""The attention caches of all layers: overrides, indexers, layers that share."""

from __future__ import annotations

from collections.abc import Mapping

from kvcore.cache import SharedCache
from kvcore.errors import InvalidField
from kvcore.importers.attention import attention_of, is_latent, layer_overrides
from kvcore.importers.fields import Fields, shown
from kvcore.importers.indexers import index_kinds, indexer_keys
from kvcore.importers.layer_kinds import Kind, Kinds, family_of
from kvcore.model import Layer


def attention_layers(fields: Fields, kinds: Kinds) -> tuple[Layer, ...]:
    """The attention and indexer caches of every layer, states left out."""
    overrides = layer_overrides(fields)
    stored = index_kinds(fields, kinds)
    shared = shared_layers(fields, kinds)
    unrotated = _layers_without_rope(fields, len(kinds))
    known: dict[tuple[Kind, bool, bool], Layer] = {}

    def build(i: int, kind: Kind) -> Layer:
        own = fields.overlaid(overrides[i]) if i in overrides else fields
        if i in unrotated and is_latent(own):
            own = own.overlaid({"qk_rope_head_dim": 0})
        layer = attention_of(kind, own)
        return (*layer, indexer_keys(own)) if stored[i] and layer else layer

    layers: list[Layer] = []
    for i, kind in enumerate(kinds):
        if i in shared and kind not in ("linear", "conv", "none"):
            source = shared[i]
            kept = (indexer_keys(fields),) if stored[i] else ()
            layers.append((SharedCache(source_layer=source), *kept))
        elif i in overrides:
            layers.append(build(i, kind))
        else:
            key = (kind, stored[i], i in unrotated)
            if key not in known:
                known[key] = build(i, kind)
            layers.append(known[key])
    return tuple(layers)


def _layers_without_rope(fields: Fields, count: int) -> frozenset[int]:
    """Mistral Large 4 latents without rotary part: `no_rope_layers` 0."""
    if family_of(fields.model_type) != "mistral_large4":
        return frozenset()
    interval = fields.optional_integer("no_rope_layer_interval") or 4
    rope = fields.integers("no_rope_layers") or tuple(
        int((i + 1) % interval != 0) for i in range(count)
    )
    return frozenset(i for i, r in enumerate(rope[:count]) if not r)


def shared_layers(fields: Fields, kinds: Kinds) -> Mapping[int, int | None]:
    """Layers that store nothing, and the layer they read where it is known.

    Gemma 3n and 4: the last layers read the last storing layer of their own kind.
    """
    count = len(kinds)
    last = fields.optional_integer("num_kv_shared_layers", minimum=0) or 0
    if last > count:
        raise InvalidField(
            field="num_kv_shared_layers",
            value=shown(last),
            expected=f"at most {count} layers",
        )
    if last:
        stored = {kind: i for i, kind in enumerate(kinds[: count - last])}
        return {i: stored.get(kinds[i]) for i in range(count - last, count)}
    if fields.flag("use_cla"):
        factor = fields.integer_or(2, "cla_share_factor")
        return {i: i - i % factor for i in range(count) if i % factor}
    sources = fields.integers("kv_source_layers")
    if sources and len(sources) >= count:
        return {i: n for i, n in enumerate(sources[:count]) if n != i}
    groups = fields.items("kv_reuse_group")
    if groups is not None:
        return _reuse_groups(groups)
    return {}


def _reuse_groups(groups: object) -> Mapping[int, int | None]:
    """Hymba: only the first layer of each group stores keys and values."""
    found: dict[int, int | None] = {}
    for group in groups if isinstance(groups, list | tuple) else ():
        if isinstance(group, list | tuple) and group:
            found.update(
                {int(i): int(group[0]) for i in group[1:] if isinstance(i, int)}
            )
    return found
