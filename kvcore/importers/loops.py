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
    return _repeated(layers, start, end, passes, "loop_layer_index_end")


def dory(fields: Fields) -> tuple[Layer, ...]:
    """The layers between the input and the output ones run in every loop.

    A list of layer types names attention and MLP blocks, and the counts beside it are
    then of blocks; without it they are of layers.
    """
    layers = plain_layers(fields)
    blocks = 2 if "mlp" in (fields.texts("layer_types") or ()) else 1

    def stated(name: str) -> int:
        count = fields.integer(name, minimum=0)
        return count if fields.has_key(name) else count * blocks

    passes = 1
    if fields.text("recurrent_kv_cache_mode") == "per_loop":
        passes = fields.integer("n_recurrent_loops", maximum=MAX_LAYERS // len(layers))
    start, end = stated("n_input_layers"), len(layers) - stated("n_output_layers")
    return _repeated(layers, start, end, passes, "n_output_layers")


def hrm_text(fields: Fields) -> tuple[Layer, ...]:
    """Two stacks in cycles: the low one L_cycles times for each run of the high one."""
    count = fields.optional_integer("num_hidden_layers", maximum=MAX_LAYERS)
    stack = fields.optional_integer("num_layers_per_stack", maximum=MAX_LAYERS)
    if count is None or stack is None:
        # Beside a stack size the count is of caches already; alone it is the stack.
        stack = stack or num_layers(fields)
        high = fields.integer("H_cycles", maximum=MAX_LAYERS)
        count = stack * high * (fields.integer("L_cycles", maximum=MAX_LAYERS) + 1)
        if count > MAX_LAYERS:
            raise InvalidField(
                field="H_cycles", value=shown(high), expected=f"{MAX_LAYERS} caches"
            )
    return ((full_attention(fields),),) * count


def _repeated(
    layers: tuple[Layer, ...], start: int, end: int, passes: int, field: str
) -> tuple[Layer, ...]:
    if not start <= end <= len(layers):
        raise InvalidField(
            field=field,
            value=shown(end),
            expected=f"a loop that starts at {start} and ends by {len(layers)}",
        )
    return (*layers[:start], *layers[start:end] * passes, *layers[end:])
