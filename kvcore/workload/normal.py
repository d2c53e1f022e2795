"""The normal distribution, without the modules that `statistics` brings with it."""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt
from typing import Final

_ROOT_TWO: Final = sqrt(2)
_ROOT_TWO_PI: Final = sqrt(2 * pi)


def below(z: float) -> float:
    """P(Z <= z) of a standard normal Z."""
    return erfc(-z / _ROOT_TWO) / 2


def quantile(share: float) -> float:
    """The z with P(Z <= z) = `share`, which lies between 0 and 1.

    Hastings' approximation (Abramowitz and Stegun 26.2.23) and steps of Halley's.
    """
    if share > 0.5:
        return -quantile(1 - share)
    t = sqrt(-2 * log(share))
    z = -t + (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    for _ in range(2):
        step = (below(z) - share) * _ROOT_TWO_PI * exp(z * z / 2)
        z -= step / (1 + z * step / 2)
    return z
