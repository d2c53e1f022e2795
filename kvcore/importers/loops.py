"""Layers that run several times, with a cache for each pass, and doubled blocks."""

from __future__ import annotations

from kvcore.errors import InvalidField
from kvcore.importers.attention import full_attention
from kvcore.importers.fields import MAX_LAYERS, Fields, shown
from kvcore.importers.layer_kinds import num_layers
from kvcore.importers.plain import plain_layers
from kvcore.model import Layer


def longcat_flash(fields: Fields) -> tuple[Layer, ...]:
    """Two latent attention blocks in each of `num_layers` layers."""
    blocks = fields.optional_integer("num_layers", maximum=MAX_LAYERS)
    count = 2 * blocks if blocks else num_layers(fields)
    return ((full_attention(fields),),) * count


def looped(fields: Fields) -> tuple[Layer, ...]:
    """Inkling 2 loop: the core layers run several times, with a cache for each pass."""
    layers = plain_layers(fields)
    start = fields.integer(
        "loop_layer_index_start", "loop_config.core_start", minimum=0
    )
    end = fields.integer("loop_layer_index_end", "loop_config.core_end", minimum=0)
    passes = fields.integer(
        "loop_num_passes", "loop_config.num_passes", maximum=MAX_LAYERS // len(layers)
    )
    if not start <= end <= len(layers):
        raise InvalidField(
            field="loop_layer_index_end",
            value=shown(end),
            expected=f"a number from {start} to {len(layers)}",
        )
    core = layers[start:end]
    return (*layers[:start], *core * passes, *layers[end:])
