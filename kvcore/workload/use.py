"""Pool use at a random moment: its distribution, and the odds that the pool overflows.

Overflow means that the requests in flight would need more than the pool has. The
engine then preempts or queues one of them, which this model leaves to itself: it says
how often that begins to happen, not how long the queue grows. An arriving request
sees the same odds (Poisson arrivals see time averages).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, exp, floor, log, sqrt
from typing import Final

from kvcore.workload import normal
from kvcore.workload.cells import Cell
from kvcore.workload.charges import Charges
from kvcore.workload.compound import ROUNDING, Compound, Rates, Sum, sum_of, window

CELLS: Final = 1 << 14
"""Of the ring of a sum."""
SEARCHED: Final = 1 << 13
"""Cells of a room that a sum is to fill; their ring is twice as long."""
TILT: Final = 16.0
PRECISION: Final = 1e-4
DEVIATIONS: Final = 10
MODES: Final = ("low", "estimate", "high")

Estimate = dict[str, float]


Measure = Mapping[float, float]
"""Charge -> mean number of requests in flight that take it."""


def charged(cells: Sequence[Cell], charges: Charges) -> dict[str, Measure]:
    """The measure of held tokens as one of charges: too low, estimated, too high.

    The estimate splits each cell between the two charges around it.
    """
    low: dict[float, float] = {}
    middle: dict[float, float] = {}
    high: dict[float, float] = {}
    for mass, least, mean, most in cells:
        charge, _ = charges.around(least)
        low[charge] = low.get(charge, 0.0) + mass
        below, above = charges.around(mean)
        up = mass * charges.share(mean) if above > below else 0.0
        middle[below] = middle.get(below, 0.0) + mass - up
        middle[above] = middle.get(above, 0.0) + up
        _, charge = charges.around(most)
        high[charge] = high.get(charge, 0.0) + mass
    return {"low": low, "estimate": middle, "high": high}


def rates_of(measure: Measure, unit: int, mode: str) -> Rates:
    """Mean numbers of requests by cells taken, rounded down, up, or in between."""
    found: dict[int, float] = {}
    for charge, mass in measure.items():
        exact = charge / unit
        below = floor(exact)
        up = exact - below
        if mode != "estimate":
            up = float(mode == "high" and up > 0)
        found[below] = found.get(below, 0.0) + mass * (1 - up)
        if up:
            found[below + 1] = found.get(below + 1, 0.0) + mass * up
    return found


def unit_of(width: float, granule: int, cells: int) -> int:
    """The finest unit, up to the engine's blocks, of which so many cells are enough."""
    return granule * max(1, ceil(width / (cells - 1) / granule))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Pool use as three distributions: too low, estimated, too high."""

    unit: int
    fixed: int
    pool: int
    mean: Estimate
    sums: dict[str, Sum]

    def quantile(self, share: float) -> dict[str, int]:
        """The use that is not exceeded with probability `share`."""
        return {
            mode: self.fixed + self.unit * self.sums[mode].quantile(share)
            for mode in MODES
        }

    def overflow(self) -> Estimate:
        """The odds that use exceeds the pool; certain where what is fixed does."""
        if self.fixed > self.pool:
            return dict.fromkeys(MODES, 1.0)
        edge = (self.pool - self.fixed) // self.unit
        found = {mode: self.sums[mode].exceeds(edge) for mode in MODES}
        found["high"] += self.sums["high"].beyond + ROUNDING
        found["low"] -= ROUNDING
        found = {mode: min(max(odds, 0.0), 1.0) for mode, odds in found.items()}
        # Sums of thousands of terms differ in their last digits.
        return {**found, "high": max(found.values()), "low": min(found.values())}

    def points(self, most: int) -> list[tuple[int, int, float, float]]:
        """Bins, at most `most`: (from, use up to, probability, odds of more)."""
        chances = self.sums["estimate"].probabilities
        last = max(self.sums["estimate"].quantile(1 - 1e-6), 1)
        size = max(1, -(-(last + 1) // most))
        found, left, before = [], 1.0, self.fixed
        for start in range(0, last + 1, size):
            inside = sum(chances[start : start + size])
            left = max(left - inside, 0.0)
            until = self.fixed + self.unit * (start + size - 1)
            found.append((before, until, inside, left))
            before = until
        return found


def use_of(found: Mapping[str, Measure], charges: Charges) -> Iterator[Use | None]:
    """Three sums, a step after each; the last step is the result."""
    mean, spread = _moments(found["estimate"])
    top = max(found["high"])
    width = mean + DEVIATIONS * spread + top
    if charges.room < 1.5 * width:
        width = max(width, charges.room + top)
    unit = unit_of(width, charges.granule, CELLS)
    size = ring(ceil(width / unit))
    sums = {}
    for mode in MODES:
        sums[mode] = sum_of(rates_of(found[mode], unit, mode), size)
        yield None
    yield Use(
        unit=unit,
        fixed=charges.fixed,
        pool=charges.pool,
        mean={mode: charges.fixed + _moments(found[mode])[0] for mode in MODES},
        sums=sums,
    )


def _moments(measure: Measure) -> tuple[float, float]:
    """Mean and standard deviation of the sum."""
    mean = sum(charge * mass for charge, mass in measure.items())
    return mean, sqrt(sum(charge**2 * mass for charge, mass in measure.items()))


def ring(cells: int) -> int:
    """A power of two above so many cells."""
    return 1 << cells.bit_length()


def scale_at(
    odds: float, found: Mapping[str, Measure], charges: Charges
) -> Iterator[Estimate | None]:
    """How many times these arrivals keep the odds of overflow at `odds`.

    `low` is what holds with all charges rounded up, `high` with all rounded down.
    """
    answer: Estimate = {}
    room = charges.room
    if room <= 0:
        yield dict.fromkeys(MODES, 0.0)
        return
    unit = unit_of(float(room), charges.granule, SEARCHED)
    size = 2 * ring(room // unit)
    inside = window(room // unit, size, TILT)
    for mode, name in (("high", "low"), ("estimate", "estimate"), ("low", "high")):
        total = Compound(rates_of(found[mode], unit, mode), size, TILT)
        below = partial(total.below, inside)

        def gap(scale: float, below: Callable[[float], float] = below) -> float:
            return log(max(1.0 - below(scale), 1e-15) / odds)

        mean, spread = _moments(found[mode])
        answer[name] = _solve(gap, _normal_guess(mean, spread, room, odds))
        yield None
    yield answer


def _solve(gap: Callable[[float], float], start: float) -> float:
    """The scale at which the odds are right: secants on the logarithm of the scale."""
    before, here = start, start * 1.02
    gap_before, gap_here = gap(before), gap(here)
    for _ in range(40):
        slope = (gap_here - gap_before) / log(here / before)
        step = -gap_here / slope if slope > 0 else -log(2) * (1 if gap_here > 0 else -1)
        before, gap_before = here, gap_here
        here *= exp(min(max(step, -log(2)), log(2)))
        if abs(step) < PRECISION:
            break
        gap_here = gap(here)
    return here


def _normal_guess(mean: float, spread: float, room: float, odds: float) -> float:
    """The scale at which a normal sum exceeds the room with these odds."""
    away = normal.quantile(1 - odds) * spread
    root = (sqrt(away**2 + 4 * mean * room) - away) / (2 * mean)
    return root**2
