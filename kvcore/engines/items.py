"""Itemising what an engine adds to the logical bytes of a layer, or leaves out."""

from __future__ import annotations

from kvcore.cache import CacheSpec, Component
from kvcore.estimate import CacheFormats, Scope, copies_of, encoder_tokens, term_bytes
from kvcore.model import Model


def logical_components(
    model: Model, spec: CacheSpec, scope: Scope, formats: CacheFormats
) -> dict[Component, int]:
    """Logical bytes of one layer of that spec, all sequences, by component."""
    tokens = scope.tokens + model.extra_tokens
    found: dict[Component, int] = {}
    for term in spec.terms(tokens, encoder_tokens(model, scope)):
        count = copies_of(term, scope) * term_bytes(term, formats)
        found[term.component] = found.get(term.component, 0) + count * scope.sequences
    return found


def differ(items: dict[str, int], item: str, count: int) -> None:
    """Add to an item; what comes to nothing is not an item."""
    total = items.pop(item, 0) + count
    if total:
        items[item] = total
