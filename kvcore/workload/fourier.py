"""The discrete Fourier transform of lists whose length is a power of two.

Every stage takes the first and the second half, and puts sums and differences at even
and odd places, so that all of them are the same few passes over whole lists. The
values come out in another order than that of the roots; `backward` undoes `forward`,
so what is done to each value on its own in between needs no order.

Source: Pease, An adaptation of the fast Fourier transform for parallel processing,
1968.
"""

from __future__ import annotations

from cmath import exp
from functools import lru_cache
from math import pi


@lru_cache(maxsize=4)
def _turns(size: int) -> tuple[list[complex], ...]:
    """The roots of unity that the differences of each stage are multiplied with."""
    half = size // 2
    roots = [exp(-2j * pi * n / size) for n in range(half)]
    return tuple(
        [roots[n >> stage << stage] for n in range(half)]
        for stage in range(size.bit_length() - 1)
    )


@lru_cache(maxsize=4)
def _returns(size: int) -> tuple[list[complex], ...]:
    """What undoes them, the last stage first."""
    return tuple(
        [turn.conjugate() for turn in turns] for turns in reversed(_turns(size))
    )


def forward(values: list[complex]) -> list[complex]:
    """The transform, in the order of `backward`."""
    half = len(values) // 2
    for turns in _turns(len(values)):
        first, second = values[:half], values[half:]
        values = [0j] * len(values)
        values[0::2] = [a + b for a, b in zip(first, second, strict=True)]
        values[1::2] = [
            (a - b) * turn for a, b, turn in zip(first, second, turns, strict=True)
        ]
    return values


def backward(values: list[complex]) -> list[float]:
    """What has this transform: real numbers."""
    size = len(values)
    for turns in _returns(size):
        sums = values[0::2]
        differences = [
            value * turn for value, turn in zip(values[1::2], turns, strict=True)
        ]
        pairs = list(zip(sums, differences, strict=True))
        values = [a + b for a, b in pairs] + [a - b for a, b in pairs]
    return [value.real / size for value in values]
