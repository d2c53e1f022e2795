"""The distribution of a sum of a Poisson number of independent charges.

Panjer's recursion on a grid of cells: with r_j the mean number of requests that take j
cells, the probability of k cells in all is

    p_0 = exp(-sum of r_j),    p_k = (1 / k) x sum over j of  j r_j p_(k-j)

All terms are positive, so nothing cancels. The grid is the only approximation: with
all charges rounded down and all rounded up, the true distribution lies between the two
results (stochastic order); the estimate splits each charge between the two nearest
cells so that its mean is kept.

Source: Panjer, Recursive evaluation of a family of compound distributions, 1981.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log
from operator import mul
from typing import Final

HUGE: Final = 1e200
LOG_HUGE: Final = log(HUGE)

Rates = Mapping[int, float]


def probabilities(rates: Rates, cells: int, dense: int) -> list[float]:
    """p_0 to p_cells; `dense` is the charge up to which most cells are in use."""
    total = sum(rate for j, rate in rates.items() if j > 0)
    near = [j * rates.get(j, 0.0) for j in range(dense, 0, -1)]
    far = [(j, j * rate) for j, rate in sorted(rates.items()) if j > dense and rate]
    found, scalings = [1.0], 0
    for k in range(1, cells + 1):
        if k < dense:
            sum_ = sum(map(mul, found, near[dense - k :]))
        else:
            sum_ = sum(map(mul, found[k - dense :], near))
        for j, weight in far:
            if j > k:
                break
            sum_ += weight * found[k - j]
        found.append(sum_ / k)
        if sum_ > k * HUGE:
            found = [p / HUGE for p in found]
            scalings += 1
    factor = exp(scalings * LOG_HUGE - total)
    return [p * factor for p in found]


def chernoff(rates: Rates, cells: int) -> float:
    """An upper bound on P(sum >= cells): the least exp(psi(t) - t x cells)."""
    mean = sum(j * rate for j, rate in rates.items())
    if cells <= mean:
        return 1.0
    largest = max(rates, default=1) or 1
    low, high = 0.0, 700.0 / largest

    def slope(t: float) -> float:
        return sum(j * rate * exp(t * j) for j, rate in rates.items()) - cells

    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    psi = sum(rate * (exp(low * j) - 1) for j, rate in rates.items())
    return exp(min(psi - low * cells, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The distribution of the sum, as far as its cells go; `beyond` bounds the rest."""

    probabilities: list[float]
    beyond: float

    def exceeds(self, cells: int) -> float:
        """P(sum > cells), without what lies beyond the last cell."""
        return sum(self.probabilities[cells + 1 :])

    def quantile(self, share: float) -> int:
        """The fewest cells that are not exceeded with probability `share`."""
        for at, below in enumerate(accumulate(self.probabilities)):
            if below >= share:
                return at
        return len(self.probabilities)


def sum_of(rates: Rates, cells: int, dense: int) -> Sum:
    return Sum(
        probabilities=probabilities(rates, cells, dense),
        beyond=chernoff(rates, cells + 1),
    )
