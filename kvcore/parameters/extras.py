"""Weights that only some architectures have, besides attention and feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.parameters.encoder import encoder
from kvcore.parameters.feedforward import blocks, mlp, num_experts
from kvcore.parameters.shape import Parts, Shape, linear, parts

Extra = Callable[[Shape], Parts]


def per_layer_embeddings(shape: Shape) -> Parts:
    """Gemma 3n and 4: a table with a short vector per token for every layer."""
    width = shape.number(0, "hidden_size_per_layer_input")
    if not width:
        return Parts()
    table = shape.integer("vocab_size_per_layer_input", "vocab_size")
    return parts(
        lookup=table * shape.layers * width,
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


def relative_positions(shape: Shape) -> Parts:
    """Inkling: positions mixed from a bank of profiles by a projection of the input,
    and a score for every shared expert."""
    rank, extent = shape.number(16, "d_rel"), shape.number(1024, "rel_extent")
    window = shape.integer("sliding_window_size")
    found = 0
    for i in range(shape.layers):
        sliding = shape.slides(i)
        heads = shape.heads(i, sliding=sliding)
        found += linear(shape.hidden, heads * rank)
        found += rank * (window if sliding else extent)
    shared = shape.number(0, "n_shared_experts")
    return parts(residual=found, router=shape.layers * linear(shape.hidden, shared))


def gated_residuals(shape: Shape) -> Parts:
    """Qwen3.8 Flash Next: low-rank mixing of residual streams around every block."""
    streams, rank = shape.integer("hc_count"), shape.integer("hc_lowrank")
    wide = streams * shape.hidden
    mixer = wide + linear(wide, rank) + linear(rank, wide)
    inject = linear(wide, streams)
    return parts(residual=(2 * shape.layers + 1) * mixer + 2 * shape.layers * inject)


def hashed_ngrams(shape: Shape) -> Parts:
    """Qwen3.8 Flash Next: tables of hashed n-grams, each slightly over its base size,
    and their projections into every stream."""
    layers = len(shape.fields.integers("ple_layer_ids") or ())
    sizes = shape.fields.integer("ngram_size", minimum=2) - 1
    tables = sizes * shape.integer("heads_per_ngram")
    width = shape.integer("ple_embed_dim")
    wide = shape.integer("hc_count") * shape.hidden
    rows = tables * shape.integer("ngram_vocab_size_base")
    return parts(
        lookup=layers * rows * (width // tables),
        residual=layers * (linear(width, wide + shape.hidden) + 4 * wide),
        norms=layers * 3 * wide,
    )


def engrams(shape: Shape) -> Parts:
    """DeepSeek V4.1: n-gram memories whose rows are read, not multiplied."""
    rows = shape.fields.integers("engram_num_embeddings") or ()
    return parts(lookup=sum(rows) * shape.integer("engram_head_dim"))


def gated_memory_units(shape: Shape) -> Parts:
    """Phi-4-mini-flash: the upper half's Mamba layers only gate an earlier state."""
    units = shape.layers // 4 - 1
    inner = shape.integer("mamba_expand") * shape.hidden
    return parts(state=units * 2 * linear(shape.hidden, inner))


def sub_norms(shape: Shape) -> Parts:
    """BitNet: a norm inside attention and one inside the feed-forward."""
    inside = shape.hidden + shape.integer("intermediate_size")
    return parts(norms=shape.layers * inside)


def block_norms(shape: Shape) -> Parts:
    """Nemotron-NAS: a block that was left out has no norm either."""
    attending = len(shape.attending_layers())
    dense = blocks(shape).count("dense")
    return parts(norms=(attending + dense) * shape.norm)


def vision_experts(shape: Shape) -> Parts:
    """ERNIE 4.5 VL: as many narrower experts again, which image tokens use."""
    widths = shape.fields.integers("moe_intermediate_size") or ()
    if len(widths) != 2:
        return Parts()
    sparse = blocks(shape).count("sparse")
    count = num_experts(shape)
    one = mlp(shape, shape.hidden, widths[1])
    return parts(
        experts=sparse * count * one, router=sparse * linear(shape.hidden, count)
    )


def shared_block_joints(shape: Shape) -> Parts:
    """Zamba: every use of a shared block has a matrix of its own, and with Zamba2 a
    low-rank adapter of its feed-forward."""
    uses = len(shape.attending_layers())
    rank = shape.number(0, "adapter_rank")
    adapter = linear(shape.hidden, rank) + linear(
        rank, 2 * shape.integer("intermediate_size")
    )
    adapted = 3 if shape.fields.flag("use_shared_attention_adapter") else 0
    query = 2 * shape.hidden
    blocks = shape.number(1, "num_mem_blocks")
    return parts(
        attention=uses * linear(shape.hidden, shape.hidden)
        + uses * adapted * (linear(query, rank) + linear(rank, query)),
        dense_mlp=uses * adapter if rank else 0,
        norms=blocks * 3 * shape.hidden,
    )


EXTRAS: Final[Mapping[str, tuple[Extra, ...]]] = {
    "gemma3n": (per_layer_embeddings, laurel_and_altup),
    "gemma4": (per_layer_embeddings,),
    "deepseek_v4": (hyper_connections,),
    "deepseek_v41": (hyper_connections, engrams),
    "hy_v4": (mixing_free_connections,),
    "hy_v4_vl": (mixing_free_connections,),
    "glm5_next": (unfolded_connections,),
    "ernie4_5_vl_moe": (vision_experts,),
    "nemotron-nas": (block_norms,),
    "inkling": (relative_positions,),
    "inkling2": (relative_positions,),
    "inkling2_loop": (relative_positions,),
    "inkling_mm": (relative_positions,),
    "qwen4_exp": (gated_residuals, hashed_ngrams),
    "phi4flash": (gated_memory_units,),
    "bitnet": (sub_norms,),
    "zamba": (shared_block_joints,),
    "zamba2": (shared_block_joints,),
    "t5": (encoder,),
    "bart": (encoder,),
    "whisper": (encoder,),
}
"""Family -> what it has besides."""
