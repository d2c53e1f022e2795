"""Measures on a line of numbers, cut into cells that know their edges.

A cell has a mass, the least and the greatest number in it and their mean. Rounding all
of them down and all of them up bounds every result from below and above; the mean
serves the estimate between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Cell(NamedTuple):
    """`mass` of something between `low` and `high`, `mean` on average."""

    mass: float
    low: float
    mean: float
    high: float


def edges(first: int, last: int, ratio: float, step: int = 1) -> Iterator[int]:
    """Whole numbers from `first` to `last`, `step` or a factor `ratio` apart."""
    edge = first
    while edge < last:
        yield edge
        edge = max(edge + step, int(edge * ratio) // step * step)
    yield last
