"""What one decoding step reads of the cache: rows that are attended, not kept.

Full attention and latents are read whole, windows as far as they reach, chunks at
their fullest. Where an indexer picks rows, all its keys are read and `top_k` of the
rows; latents without an indexer of their own follow another layer's picks. A state is
read and written back. A layer that shares another's cache reads it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvcore.cache import (
    COMPONENTS,
    CacheSpec,
    Component,
    CompressedAttention,
    FullAttention,
    IndexerKeys,
    LatentAttention,
    SharedCache,
    Term,
)
from kvcore.engines.none import rank_term
from kvcore.estimate import term_bytes
from kvcore.model import Layer, Model
from kvcore.scenario import Scenario
from kvcore.states import RecurrentState


@dataclass(frozen=True, slots=True)
class Read:
    """One cache that a layer reads; `picked` if only `top_k` of its rows."""

    spec: CacheSpec
    picked: bool


Reads = tuple[tuple[Read, int], ...]
"""What some layers read, equal reads counted once."""


def layer_reads(model: Model) -> tuple[tuple[Read, ...], ...]:
    """What each layer reads; a shared cache stands for its source layer's."""
    specs = [tuple(_sources(model, i)) for i in range(model.num_layers)]
    shared = any(
        isinstance(spec, IndexerKeys) for spec, _ in model.groups
    ) and any(isinstance(spec, LatentAttention) for spec, _ in model.groups)
    ratios = {
        spec.ratio
        for spec, _ in model.groups
        if isinstance(spec, CompressedAttention) and spec.index_head_dim
    }
    found = []
    for layer in specs:
        own = any(isinstance(spec, IndexerKeys) for spec in layer)
        found.append(
            tuple(Read(spec, _picked(spec, own, shared, ratios)) for spec in layer)
        )
    return tuple(found)


def _picked(spec: CacheSpec, own: bool, shared: bool, ratios: set[int]) -> bool:
    if isinstance(spec, CompressedAttention):
        return spec.ratio in ratios
    if isinstance(spec, LatentAttention):
        return spec.window is None and (own or shared)
    return isinstance(spec, FullAttention) and own


def _sources(model: Model, i: int) -> Iterator[CacheSpec]:
    for spec in model.layers[i]:
        if isinstance(spec, SharedCache):
            yield from _source(model, i, spec)
        else:
            yield spec


def _source(model: Model, i: int, shared: SharedCache) -> Layer:
    """The layer that is read, the nearest before where the config does not say."""
    stated = shared.source_layer
    for j in (stated,) if stated is not None else range(i - 1, -1, -1):
        kept = tuple(
            spec
            for spec in model.layers[j]
            if not isinstance(spec, SharedCache | RecurrentState)
        )
        if kept:
            return kept
    return ()


def read_terms(
    read: Read, tokens: int, encoder: int, top_k: int | None
) -> tuple[Term, ...]:
    """Rows that one query reads, as terms of the cache; a state's twice."""
    spec = read.spec
    if isinstance(spec, RecurrentState):
        return tuple(
            term._replace(rows=2 * term.rows) for term in spec.terms(tokens, encoder)
        )
    if not read.picked or top_k is None:
        return spec.terms(tokens, encoder)
    if isinstance(spec, CompressedAttention):
        return tuple(
            term._replace(rows=min(term.rows, top_k))
            if term.component == "kv"
            else term
            for term in spec.terms(tokens, encoder)
        )
    return spec.terms(min(tokens, top_k), encoder)


def read_bytes(
    scenario: Scenario, reads: Reads, tokens: int, top_k: int | None
) -> Mapping[Component, int]:
    """Bytes that one request's step reads on one rank, by component."""
    sizes, model = scenario.sizes, scenario.model
    tokens += model.extra_tokens
    found: dict[Component, int] = dict.fromkeys(COMPONENTS, 0)
    for read, layers in reads:
        for term in read_terms(read, tokens, model.encoder_tokens, top_k):
            cut = rank_term(read.spec, term, sizes.attention_tp)
            if sizes.dcp > 1 and not isinstance(read.spec, RecurrentState):
                cut = cut._replace(rows=-(-cut.rows // sizes.dcp))
            found[term.component] += layers * term_bytes(cut, scenario.formats)
    return found
