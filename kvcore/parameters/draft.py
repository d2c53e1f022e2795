"""Weights of the draft layers (multi-token prediction)."""

from __future__ import annotations

from dataclasses import replace

from kvcore.model import Layer
from kvcore.parameters.feedforward import Block, blocks, feed_forward
from kvcore.parameters.mixer import mixer
from kvcore.parameters.shape import Shape, linear


def draft(shape: Shape, layers: tuple[Layer, ...]) -> int:
    """Every module is a layer like the last one, and joins two hidden states to one.

    Source: DeepSeek-V3, arXiv 2412.19437, section 2.2: a norm of the hidden state and
    one of the embedding, a matrix from both to one, a layer, and a norm before the
    output head, which is shared.
    """
    return sum(module(drafting(shape), layer) for layer in layers)


def module(shape: Shape, layer: Layer) -> int:
    last = shape.layers - 1
    own = feed_forward(shape, draft_block(shape), last)
    return (
        sum(mixer(spec, shape, last).total() for spec in layer)
        + own.total()
        - own["active_experts"]
        + linear(2 * shape.hidden, shape.hidden)
        + (shape.architecture.layer_norms + 3) * shape.norm
    )


def draft_block(shape: Shape) -> Block:
    """Some drafts have a dense feed-forward under routed main layers."""
    return "dense" if shape.architecture.dense_draft else blocks(shape)[-1]


def drafting(shape: Shape) -> Shape:
    """The main model's widths, but for experts of the drafts' own (DeepSeek-V4.1)."""
    own = shape.fields.optional_integer("dspark_n_routed_experts")
    if own is None:
        return shape
    return replace(shape, fields=shape.fields.overlaid({"n_routed_experts": own}))
