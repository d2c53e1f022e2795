"""Weights that only some architectures have, besides attention and feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.parameters.shape import Parts, Shape, linear, parts

Extra = Callable[[Shape], Parts]


def per_layer_embeddings(shape: Shape) -> Parts:
    """Gemma 3n and 4: a table with a short vector per token for every layer."""
    width = shape.number(0, "hidden_size_per_layer_input")
    if not width:
        return Parts()
    table = shape.integer("vocab_size_per_layer_input", "vocab_size")
    return parts(
        embeddings=table * shape.layers * width,
        residual=linear(shape.hidden, shape.layers * width)
        + shape.layers * 2 * linear(shape.hidden, width),
        norms=width + shape.layers * shape.hidden,
    )


def laurel_and_altup(shape: Shape) -> Parts:
    """Gemma 3n: a low-rank residual, and several streams that predict each other."""
    rank, streams = shape.integer("laurel_rank"), shape.integer("altup_num_inputs")
    laurel = 2 * linear(shape.hidden, rank)
    altup = shape.hidden + streams**2 + streams**3 + linear(shape.hidden, streams)
    return parts(
        residual=shape.layers * (laurel + altup)
        + 2 * (streams - 1) * linear(shape.hidden, shape.hidden),
        norms=shape.layers * 2 * shape.hidden,
    )


def hyper_connections(shape: Shape) -> Parts:
    """mHC: weights that fold several residual streams before each block and unfold
    and mix them after it, and fold them once at the end (DeepSeek-V4)."""
    streams = shape.integer("hc_mult")
    mixed = (2 + streams) * streams
    return parts(
        residual=2 * shape.layers * stream_weights(shape, streams, mixed, 3)
        + stream_weights(shape, streams, streams, 1)
    )


def mixing_free_connections(shape: Shape) -> Parts:
    """The same without mixing the streams (Hunyuan 4)."""
    streams = shape.integer("hc_mult")
    return parts(
        residual=2 * shape.layers * stream_weights(shape, streams, 2 * streams, 2)
        + stream_weights(shape, streams, streams, 1)
    )


def unfolded_connections(shape: Shape) -> Parts:
    """mHC whose streams are summed at the end (GLM-5.3)."""
    streams = shape.integer("hc_mult")
    mixed = (2 + streams) * streams
    return parts(residual=2 * shape.layers * stream_weights(shape, streams, mixed, 3))


def stream_weights(shape: Shape, streams: int, outputs: int, scales: int) -> int:
    return linear(streams * shape.hidden, outputs, bias=True) + scales


def short_convolutions(shape: Shape) -> Parts:
    """Inkling: convolutions over keys, values and both block outputs; relative
    positions mixed from a bank of profiles; a scale for every feed-forward."""
    kernel = shape.integer("sconv_kernel_size", "conv_kernel_size")
    rank, extent = shape.number(16, "d_rel"), shape.number(1024, "rel_extent")
    window = shape.integer("sliding_window_size")
    shared = shape.number(0, "n_shared_experts")
    found = 0
    for i in range(shape.layers):
        sliding = shape.slides(i)
        heads = shape.heads(i, sliding=sliding)
        found += linear(shape.hidden, heads * rank)
        found += rank * (window if sliding else extent)
        found += 2 * kernel * shape.hidden + 1
    return parts(
        residual=found,
        router=shape.layers * linear(shape.hidden, shared),
    )


EXTRAS: Final[Mapping[str, tuple[Extra, ...]]] = {
    "gemma3n": (per_layer_embeddings, laurel_and_altup),
    "gemma4": (per_layer_embeddings,),
    "deepseek_v4": (hyper_connections,),
    "deepseek_v41": (hyper_connections,),
    "hy_v4": (mixing_free_connections,),
    "hy_v4_vl": (mixing_free_connections,),
    "glm5_next": (unfolded_connections,),
}
"""Family -> what it has besides."""
