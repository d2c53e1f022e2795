"""Attention weights of one layer, from the CacheSpec that says what it keeps.

Each function is the sum of the layer's matrices, biases and small vectors, in the
order the layer uses them: queries, keys, values, gates, output.
"""

from __future__ import annotations

from typing import Final

from kvcore.cache import (
    CompressedAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    SlidingWindowAttention,
)
from kvcore.parameters.mixer import mixer
from kvcore.parameters.shape import Parts, Shape, linear, parts

INDEX_HEADS: Final = (
    "index_n_heads",
    "indexer_n_heads",
    "sparse_attention_config.sparse_num_index_heads",
)


@mixer.register(Heads)
def heads_attention(spec: Heads, shape: Shape, i: int) -> Parts:
    """MHA, GQA, MQA: hidden x (heads + 2 kv_heads) x head_dim, and back."""
    architecture = shape.architecture
    sliding = isinstance(spec, SlidingWindowAttention)
    heads = shape.heads(i, sliding=sliding)
    query, key = heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    value = spec.num_kv_heads * spec.value_head_dim
    output = heads * spec.value_head_dim
    if not sliding and shape.flag(architecture.values_are_keys):
        value = 0
    bias = shape.flag(architecture.qkv_bias)
    inputs = architecture.attention_inputs * shape.hidden
    # Step 3 factorises the query: one narrow projection for all heads, then theirs.
    rank = shape.number(0, "share_q_dim")
    matrices = (
        (linear(inputs, rank) + linear(rank, query) if rank else 0)
        + (0 if rank else linear(inputs, query, bias))
        + linear(inputs, key, bias and architecture.key_bias)
        + linear(inputs, value, bias)
        + linear(output, shape.hidden, shape.flag(architecture.output_bias))
        + gate(shape, heads, output)
        + sink(shape, heads, sliding=sliding)
    )
    return parts(
        attention=matrices,
        norms=query_key_norms(shape, query, key, spec.head_dim) + rank,
    )


def gate(shape: Shape, heads: int, width: int) -> int:
    """The matrix that gates attention's output."""
    architecture = shape.architecture
    if not shape.flag(architecture.gate_flag):
        return 0
    outputs = {"none": 0, "head": heads, "width": width, "query": width}
    return linear(shape.hidden, outputs[architecture.gate])


def sink(shape: Shape, heads: int, *, sliding: bool) -> int:
    """A learned logit per head that attends to nothing."""
    where = shape.architecture.sinks
    return heads if where == "all" or (where == "sliding" and sliding) else 0


def query_key_norms(shape: Shape, query: int, key: int, head_dim: int) -> int:
    """Weights that normalise queries and keys."""
    architecture = shape.architecture
    if not shape.flag(architecture.qk_norm_flag):
        return 0
    widths = {"none": 0, "head": 2 * head_dim, "width": query + key}
    return widths[architecture.qk_norm]


@mixer.register(SharedCache)
def shared_cache(spec: SharedCache, shape: Shape, i: int) -> Parts:
    """A layer that reads another's keys and values has queries and output only."""
    head_dim = shape.fields.optional_integer("head_dim")
    kinds = shape.fields.texts("layer_types") or ()
    if i < len(kinds) and kinds[i] == "full_attention":
        head_dim = shape.fields.optional_integer("global_head_dim") or head_dim
    heads = shape.heads(i, sliding=False)
    if head_dim is None:
        head_dim = shape.hidden // heads
    width = heads * head_dim
    matrices = linear(shape.hidden, width) + linear(width, shape.hidden)
    norm = head_dim if shape.architecture.qk_norm == "head" else 0
    return parts(attention=matrices, norms=norm)


@mixer.register(LatentAttention)
def latent_attention(spec: LatentAttention, shape: Shape, i: int) -> Parts:
    """MLA: queries and keys/values through a low rank, unfolded for every head."""
    rank, rope = spec.kv_lora_rank, spec.qk_rope_head_dim
    sliding = spec.window is not None
    heads = shape.heads(i, sliding=sliding)
    nope = latent_width(shape, "qk_nope_head_dim", sliding=sliding)
    # A layer without rotary part gives its width to the other (Mistral Large 4).
    nope += shape.number(rope, "qk_rope_head_dim") - rope
    value = latent_width(shape, "v_head_dim", sliding=sliding)
    query_rank = shape.number(0, "q_lora_rank")
    queries = heads * (nope + rope)
    query = (
        linear(shape.hidden, query_rank) + linear(query_rank, queries)
        if query_rank
        else linear(shape.hidden, queries)
    )
    matrices = (
        query
        + linear(shape.hidden, rank + rope)
        + linear(rank, heads * (nope + value))
        + linear(heads * value, shape.hidden)
        + gate(shape, heads, heads * value)
        + sink(shape, heads, sliding=sliding)
    )
    return parts(attention=matrices, norms=query_rank + rank)


def latent_width(shape: Shape, name: str, *, sliding: bool) -> int:
    """A width of MLA, which windowed layers may state apart (dots3)."""
    if sliding:
        own = shape.fields.optional_integer(f"swa_{name}")
        if own is not None:
            return own
    return shape.integer(name)


@mixer.register(IndexerKeys)
def indexer(spec: IndexerKeys, shape: Shape, i: int) -> Parts:
    """DSA's lightning indexer: queries from the low rank, one key, head weights."""
    width, heads = spec.index_head_dim, shape.integer(*INDEX_HEADS)
    query_inputs = shape.number(0, "q_lora_rank") or shape.hidden
    matrices = linear(query_inputs, heads * width) + linear(shape.hidden, width)
    if shape.architecture.indexer_weights:
        matrices += linear(shape.hidden, heads)
    return parts(indexer=matrices, norms=2 * width)


@mixer.register(CompressedAttention)
def compressed_attention(spec: CompressedAttention, shape: Shape, i: int) -> Parts:
    """DeepSeek-V4: one key-value vector for all heads, grouped low-rank output."""
    heads, width = shape.heads(i, sliding=False), spec.head_dim
    query_rank = shape.integer("q_lora_rank")
    groups, output_rank = shape.integer("o_groups"), shape.integer("o_lora_rank")
    matrices = (
        linear(shape.hidden, query_rank)
        + linear(query_rank, heads * width)
        + linear(shape.hidden, width)
        + linear(heads * width // groups, groups * output_rank)
        + linear(groups * output_rank, shape.hidden)
        + heads
    )
    found = parts(attention=matrices, norms=query_rank + width)
    if spec.ratio:
        overlaps = 2 if spec.index_head_dim else 1
        found += parts(
            attention=compressor(shape.hidden, width, spec.ratio, overlaps), norms=width
        )
    if spec.index_head_dim:
        found += compressed_indexer(shape, spec, query_rank)
    return found


def compressor(hidden: int, width: int, ratio: int, overlaps: int) -> int:
    """Values, gates and positions of the tokens that become one row."""
    return overlaps * (2 * linear(hidden, width) + ratio * width)


def compressed_indexer(
    shape: Shape, spec: CompressedAttention, query_rank: int
) -> Parts:
    """Index keys are compressed like the rows they stand for."""
    heads, width = shape.integer("index_n_heads"), spec.index_head_dim
    matrices = (
        compressor(shape.hidden, width, spec.ratio, 2)
        + linear(query_rank, heads * width)
        + linear(shape.hidden, heads)
    )
    return parts(indexer=matrices, norms=width)
