"""Every kind of CacheSpec is one that the formulas and the transformers engine know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kvcore import catalog
from kvcore.cache import CacheSpec
from kvcore.engines.transformers.layers import parts


def kinds(base: type[CacheSpec]) -> Iterator[type[CacheSpec]]:
    """All classes below a class, those of `kvcore.states` included."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


USED = sorted(
    {
        type(spec)
        for entry in catalog.entries()
        for layer in (
            *catalog.model(entry.id).layers,
            *catalog.model(entry.id).draft_layers,
        )
        for spec in layer
    }
    | {kind for kind in kinds(CacheSpec) if not list(kinds(kind))},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", USED, ids=lambda kind: kind.__name__)
def test_it_has_a_formula_and_a_place_in_transformers(kind: type[CacheSpec]) -> None:
    assert kind.terms is not CacheSpec.terms
    assert parts.dispatch(kind) is not parts.dispatch(CacheSpec)

