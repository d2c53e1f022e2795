"""Kinds of layers that take turns: the shapes of which patterns are made."""

from __future__ import annotations

from collections.abc import Callable

from kvcore.errors import MissingField
from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import Kind, Kinds, alike, chosen

Pattern = Callable[[Fields, int], Kinds]


def every(period: int, rest: Kind = "sliding", nth: Kind = "full") -> Pattern:
    """Every `period`-th layer is `nth`, the first of them at index period - 1."""

    def kinds(fields: Fields, count: int) -> Kinds:
        return chosen(rest if (i + 1) % period else nth for i in range(count))

    return kinds


def first_of_every(period: int) -> Pattern:
    """Full layers at 0, period, 2 * period, ..."""

    def kinds(fields: Fields, count: int) -> Kinds:
        return chosen("sliding" if i % period else "full" for i in range(count))

    return kinds


def all_of(kind: Kind) -> Pattern:
    def kinds(fields: Fields, count: int) -> Kinds:
        return alike(kind, count)

    return kinds


def needs_a_list(field: str) -> Pattern:
    def kinds(fields: Fields, count: int) -> Kinds:
        raise MissingField(field=field)

    return kinds
