"""Lengths of prompts and of outputs, and how much of an output a request in flight has.

A request in flight has produced a part of its output. Where every token takes the
same time, the part `a` that a request caught at a random moment has is spread as

    P(a <= t) = E[min(X, t)] / E[X]                  (renewal theory: the age)

and where every request takes the same time, however long its output, as

    P(a <= t) = E[min(t / X, 1)]

with X the output's length. Both are closed forms here, for fixed and for lognormal
lengths; nothing is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, log
from typing import Final, Protocol

from kvcore.workload import normal
from kvcore.workload.cells import Cell, edges

Z95: Final = normal.quantile(0.95)
NEGLIGIBLE: Final = 1e-13
RARE: Final = 1e-4


class Lengths(Protocol):
    """A distribution of positive lengths in tokens, none above `limit`."""

    @property
    def mean(self) -> float:
        """Mean length."""

    def quantile(self, share: float) -> float:
        """The length that `share` of the requests do not exceed."""

    def at_most(self, tokens: float) -> float:
        """The share of requests of at most so many tokens, whole or not."""

    def cells(self, ratio: float, step: int) -> list[Cell]:
        """The distribution of whole lengths, of mass 1."""

    def age(self, length: float) -> float:
        """E[min(X, length)]: the mean part of the lengths below `length`."""

    def share(self, length: float) -> float:
        """E[min(length / X, 1)]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """All requests alike."""

    tokens: int

    @property
    def mean(self) -> float:
        return float(self.tokens)

    def quantile(self, share: float) -> float:
        return float(self.tokens)

    def at_most(self, tokens: float) -> float:
        return float(tokens >= self.tokens)

    def cells(self, ratio: float, step: int) -> list[Cell]:
        return [Cell(1.0, self.tokens, self.tokens, self.tokens)]

    def age(self, length: float) -> float:
        return min(float(self.tokens), length)

    def share(self, length: float) -> float:
        return min(length / self.tokens, 1.0) if self.tokens else 1.0


@dataclass(frozen=True, kw_only=True)
class LogNormal:
    """Lengths whose logarithm is normal, by median and 95th percentile.

    What would be longer than `limit` is cut off there, as an engine does.
    """

    p50: float
    p95: float
    limit: int

    @property
    def _mu(self) -> float:
        return log(self.p50)

    @property
    def _sigma(self) -> float:
        return log(self.p95 / self.p50) / Z95

    def _below(self, length: float, moment: int = 0) -> float:
        """E[X^moment; X <= length] of the uncut distribution."""
        if length <= 0:
            return 0.0
        shift = moment * self._sigma**2
        scale = exp(moment * self._mu + moment * shift / 2)
        return scale * normal.below((log(length) - self._mu - shift) / self._sigma)

    @cached_property
    def mean(self) -> float:
        return self.age(self.limit)

    def quantile(self, share: float) -> float:
        uncut = exp(self._mu + self._sigma * normal.quantile(share))
        return min(uncut, float(self.limit))

    def at_most(self, tokens: float) -> float:
        return 1.0 if tokens >= self.limit else self._below(tokens)

    def cells(self, ratio: float, step: int) -> list[Cell]:
        """Whole lengths, rounded up: X in (low - 1, high] for each cell."""
        found: list[Cell] = []
        rare, most, common, few = (
            int(self.quantile(share))
            for share in (NEGLIGIBLE, 1 - NEGLIGIBLE, RARE, 1 - RARE)
        )
        last = max(min(most + 1, self.limit), rare + 1)
        middle = sorted({min(common, last), min(few, last)})
        coarse = 1 + 6 * (ratio - 1)
        ends = sorted(
            {
                *edges(rare, middle[0], coarse, step),
                *edges(middle[0], middle[-1], ratio, step),
                *edges(middle[-1], last, coarse, step),
            }
        )
        for at, (low, high) in enumerate(pairwise(ends)):
            below = 0.0 if at == 0 else self._below(low)
            above = 1.0 if high == last else self._below(high)
            if above - below > 0:
                found.append(Cell(above - below, low + 1, (low + 1 + high) / 2, high))
        return found

    def age(self, length: float) -> float:
        length = min(length, self.limit)
        longer = 1 - self._below(length)
        return self._below(length, 1) + length * longer

    def share(self, length: float) -> float:
        if length >= self.limit:
            return 1.0
        cut = 1 - self._below(self.limit)
        inverse = self._below(self.limit, -1) - self._below(length, -1)
        return self._below(length) + length * (inverse + cut / self.limit)


def produced(output: Lengths, limit: int, *, by_time: bool, step: int) -> list[Cell]:
    """What requests in flight have produced of their outputs, of mass 1.

    `by_time`: every request takes the same time; otherwise every token does. A token
    counts from when it is begun, so a part of n tokens is n + 1 of them, at most all.
    """
    found: list[Cell] = []
    last = min(int(output.quantile(1 - NEGLIGIBLE)) + 1, limit)
    whole = 1.0 if by_time else output.mean
    until = output.share if by_time else output.age
    below = 0.0
    ends = list(edges(0, last, 1.05, step))
    for low, high in pairwise(ends):
        above = whole if high == last else until(high)
        if above > below:
            mean = (low + 1 + high) / 2
            found.append(Cell((above - below) / whole, low + 1, mean, high))
        below = max(above, below)
    return found or [Cell(1.0, 0, 0, 0)]
