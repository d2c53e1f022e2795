"""Models whose number of KV heads differs from layer to layer."""

from __future__ import annotations

from collections.abc import Mapping

from kvcore.cache import FullAttention
from kvcore.errors import InvalidField, MissingField, UnsupportedModel
from kvcore.importers.attention import QUERY_HEADS, head_dim
from kvcore.importers.fields import Fields, shown
from kvcore.model import Layer


def listed_heads(fields: Fields, count: int) -> tuple[Layer, ...]:
    """OpenELM: `num_kv_heads` is a list with one number per layer."""
    heads = fields.integers("num_kv_heads", minimum=1)
    if heads is None or len(heads) < count:
        raise MissingField(field="num_kv_heads")
    width = fields.integer("head_dim")
    return tuple(
        (FullAttention(num_kv_heads=n, head_dim=width, value_head_dim=width),)
        for n in heads[:count]
    )


def block_configs(fields: Fields) -> tuple[Layer, ...]:
    """Nemotron-NAS (Super, Ultra): heads per block, some blocks without attention."""
    heads = fields.integer(*QUERY_HEADS)
    width = head_dim(fields)
    layers: list[Layer] = []
    for i, block in enumerate(fields.items("block_configs") or ()):
        attention = block.get("attention") if isinstance(block, Mapping) else None
        if not isinstance(attention, Mapping):
            raise InvalidField(
                field=f"block_configs[{i}].attention",
                value=shown(attention),
                expected="an object",
            )
        layers.append(_block(Fields(attention, fields.model_type), i, heads, width))
    return tuple(layers)


def _block(attention: Fields, i: int, heads: int, width: int) -> Layer:
    if attention.flag("no_op") or attention.flag("replace_with_linear"):
        return ()
    group = attention.optional_integer("n_heads_in_group")
    if group is None:
        return ()
    if heads % group:
        raise InvalidField(
            field=f"block_configs[{i}].attention.n_heads_in_group",
            value=shown(group),
            expected=f"a divisor of {heads} heads",
        )
    if attention.optional_integer("window_length"):
        raise UnsupportedModel(
            model_type=attention.model_type, reason="a window inside a block config"
        )
    return (
        FullAttention(
            num_kv_heads=heads // group, head_dim=width, value_head_dim=width
        ),
    )
