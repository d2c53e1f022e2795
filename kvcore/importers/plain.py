"""The general rule: each layer's kind, its attention, and its state."""

from __future__ import annotations

from kvcore.importers.attention_layers import attention_layers
from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import Kind, Kinds
from kvcore.importers.patterns import layer_kinds
from kvcore.importers.states import state_of
from kvcore.model import Layer


def plain_layers(fields: Fields) -> tuple[Layer, ...]:
    """The general rule: each layer's kind, its attention, and its state."""
    return layers_of(layer_kinds(fields), fields)


def layers_of(kinds: Kinds, fields: Fields) -> tuple[Layer, ...]:
    known: dict[Kind, Layer] = {}
    for kind in kinds:
        if kind not in known:
            state = state_of(kind, fields)
            known[kind] = () if state is None else (state,)
    return tuple(
        attention + known[kind]
        for attention, kind in zip(attention_layers(fields, kinds), kinds, strict=True)
    )
