"""The distribution of a sum of a Poisson number of independent charges.

On a grid of cells, with r_j the mean number of requests that take j cells, the
generating function of the sum is exp(sum of r_j (z^j - 1)). Its values at N roots of
unity are one Fourier transform away from the r_j, and its coefficients, which are the
probabilities of k cells in all, one transform back.

N cells make a ring: what lies beyond them comes round to the first ones. Tilted by a
factor e^(-t k / N), it comes round e^t times smaller, at the price of digits in the
last cells. With all charges rounded down and all rounded up to the grid, the true
distribution lies between the two results (stochastic order); the estimate splits each
charge between the two nearest cells so that its mean is kept.

Source: Embrechts, Frei: Panjer recursion versus FFT for compound distributions, 2009.
"""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from operator import mul
from typing import Final

from kvcore.workload.fourier import backward, forward

ROUNDING: Final = 1e-12
"""What transforms lose of a probability, at most."""

Rates = Mapping[int, float]


class Compound:
    """A sum on a ring of `size` cells; charges as long as the ring are only counted."""

    def __init__(self, rates: Rates, size: int, tilt: float = 0.0) -> None:
        self._size = size
        charges = [0j] * size
        for j, rate in rates.items():
            if 0 < j < size:
                charges[j] += rate * exp(-tilt * j / size)
        total = sum(rate for j, rate in rates.items() if j > 0)
        self._logs = [value - total for value in forward(charges)]

    def probabilities(self) -> list[float]:
        """Of each number of cells on the ring, where it is not tilted."""
        return [max(p, 0.0) for p in backward(list(map(cmath.exp, self._logs)))]

    def below(self, window: Sequence[complex], scale: float) -> float:
        """P(sum in the window of this tilt) with `scale` times as many requests."""
        values = [cmath.exp(scale * value) for value in self._logs]
        found: complex = sum(map(mul, values, window))
        return found.real / self._size


def window(cells: int, size: int, tilt: float) -> list[complex]:
    """Sums of at most so many cells, for a ring of that size and tilt."""
    kept = [complex(exp(tilt * k / size)) for k in range(cells + 1)]
    kept += [0j] * (size - len(kept))
    return [value.conjugate() for value in forward(kept)]


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


def sum_of(rates: Rates, size: int) -> Sum:
    """The sum on a ring that is larger than it ever is, but for `beyond`."""
    return Sum(
        probabilities=Compound(rates, size).probabilities(),
        beyond=chernoff(rates, size),
    )
