"""Weights of an encoder, for models whose decoder attends to one."""

from __future__ import annotations

from kvcore.parameters.feedforward import mlp
from kvcore.parameters.shape import HEADS, Parts, Shape, linear, parts

LAYERS = ("encoder_layers", "num_layers")
WIDTH = ("encoder_ffn_dim", "d_ff")


def encoder(shape: Shape) -> Parts:
    """The encoder's blocks, and what each family puts before and after them."""
    layers = shape.integer(*LAYERS)
    around = {"t5": t5, "bart": bart, "whisper": whisper}[shape.family]
    return parts(encoder=layers * block(shape) + around(shape))


def block(shape: Shape) -> int:
    """Self-attention, feed-forward, two norms."""
    architecture = shape.architecture
    heads = shape.integer("encoder_attention_heads", *HEADS)
    inner = heads * shape.number(shape.hidden // heads, "d_kv")
    bias = shape.flag(architecture.qkv_bias)
    return (
        2 * linear(shape.hidden, inner, bias)
        + linear(shape.hidden, inner, bias and architecture.key_bias)
        + linear(inner, shape.hidden, shape.flag(architecture.output_bias))
        + mlp(shape, shape.hidden, shape.integer(*WIDTH))
        + 2 * shape.norm
    )


def t5(shape: Shape) -> int:
    """A final norm, and relative positions in both stacks."""
    buckets = shape.number(32, "relative_attention_num_buckets")
    return shape.norm + 2 * buckets * shape.integer(*HEADS)


def bart(shape: Shape) -> int:
    """Positions (two more than stated) and their norm; the table is shared."""
    positions = shape.integer("max_position_embeddings") + 2
    return positions * shape.hidden + shape.norm


def whisper(shape: Shape) -> int:
    """Two convolutions of kernel 3 over the spectrogram, positions, a final norm."""
    bins = shape.number(80, "num_mel_bins")
    return (
        linear(3 * bins, shape.hidden, bias=True)
        + linear(3 * shape.hidden, shape.hidden, bias=True)
        + shape.integer("max_source_positions") * shape.hidden
        + shape.norm
    )
