"""Floating-point operations of one step: matrices of active parameters, attention.

A multiplication and an addition are two. Norms, activations, recurrences and an
indexer's scores are not counted: they only make a step slower than its bound.
"""

from __future__ import annotations

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    CompressedAttention,
    CrossAttention,
    Heads,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.decode.reads import Read
from kvcore.parameters import ParameterCounts


def attention_parameters(counts: ParameterCounts) -> int:
    """Weights of mixers, which are cut over the ranks that share attention."""
    return counts.attention + counts.indexer


def other_parameters(counts: ParameterCounts) -> int:
    """Weights every token is multiplied with, attention's and the head's apart."""
    return (
        counts.state
        + counts.dense_mlp
        + counts.active_experts
        + counts.shared_experts
        + counts.router
        + counts.residual
    )


def head_parameters(counts: ParameterCounts) -> int:
    """The output head; embeddings where they are one matrix."""
    return counts.output_head or counts.embeddings


def decode_rows(read: Read, tokens: int, encoder: int, top_k: int | None) -> int:
    """Rows of one head that a query attends to with `tokens` cached."""
    spec = read.spec
    limit = top_k if read.picked else None
    if isinstance(spec, CrossAttention):
        return encoder if spec.source_tokens is None else spec.source_tokens
    if isinstance(spec, CompressedAttention):
        groups = tokens // spec.ratio if spec.ratio else 0
        return min(tokens, spec.window) + capped(groups, limit)
    return min(capped(tokens, limit), reach(spec, tokens))


def prefill_rows(read: Read, tokens: int, encoder: int, top_k: int | None) -> int:
    """`decode_rows` summed over the queries of a prompt of `tokens`, each to itself."""
    spec = read.spec
    limit = top_k if read.picked else None
    if isinstance(spec, CrossAttention):
        return tokens * decode_rows(read, tokens, encoder, top_k)
    if isinstance(spec, ChunkedAttention):
        chunks, rest = divmod(tokens, spec.chunk)
        return chunks * triangle(spec.chunk, spec.chunk) + triangle(rest, rest)
    if isinstance(spec, CompressedAttention):
        own = triangle(tokens, spec.window)
        return own + (groups_seen(tokens, spec.ratio, limit) if spec.ratio else 0)
    return triangle(tokens, min(capped(tokens, limit), reach(spec, tokens)))


def reach(spec: CacheSpec, tokens: int) -> int:
    """The most rows a query of this layer sees."""
    if isinstance(spec, SlidingWindowAttention):
        return spec.window
    if isinstance(spec, ChunkedAttention):
        return spec.chunk
    if isinstance(spec, LatentAttention) and spec.window is not None:
        return spec.window
    return tokens


def capped(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)


def triangle(tokens: int, most: int) -> int:
    """1 + 2 + ... + tokens, no term above `most`.

    >>> triangle(4, 4), triangle(4, 2)
    (10, 7)
    """
    rising = min(tokens, most)
    return rising * (rising + 1) // 2 + (tokens - rising) * rising


def groups_seen(tokens: int, ratio: int, limit: int | None) -> int:
    """Whole groups before each of `tokens` queries, summed.

    >>> groups_seen(9, 4, None), groups_seen(9, 4, 1)
    (8, 6)
    """
    last = tokens // ratio
    if not last:
        return 0
    full = capped(last, limit)
    return ratio * triangle(last - 1, capped(last - 1, limit)) + full * (
        tokens - last * ratio + 1
    )


def row_flops(spec: CacheSpec, heads: int, *, prefill: bool) -> int:
    """Operations of all heads on one row: scores, and the sum of values.

    While decoding a latent is attended as it is; a prompt's is expanded to heads.
    """
    if isinstance(spec, Heads):
        return 2 * heads * (spec.head_dim + spec.value_head_dim)
    if isinstance(spec, CompressedAttention):
        return 4 * heads * spec.head_dim
    if isinstance(spec, LatentAttention):
        if prefill and spec.head_dim:
            return 2 * heads * (spec.head_dim + spec.value_head_dim)
        return 2 * heads * (2 * spec.kv_lora_rank + spec.qk_rope_head_dim)
    return 0
