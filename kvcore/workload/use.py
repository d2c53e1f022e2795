"""Pool use at a random moment: its distribution, and the odds that the pool overflows.

Overflow means that the requests in flight would need more than the pool has. The
engine then preempts or queues one of them, which this model leaves to itself: it says
how often that begins to happen, not how long the queue grows. An arriving request
sees the same odds (Poisson arrivals see time averages).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, floor, log, sqrt
from typing import Final

from kvcore.workload import normal
from kvcore.workload.cells import Cell, edges
from kvcore.workload.charges import Charges
from kvcore.workload.compound import Rates, Sum, probabilities, sum_of

BUDGET: Final = 6_000_000
SEARCH_BUDGET: Final = 1_000_000
"""Multiplications of one recursion: for the answer, and for a step of the search."""
MOST_CELLS: Final = 20_000
SEARCH_CELLS: Final = 8_000
PRECISION: Final = 1e-4
DEVIATIONS: Final = 12
FAR_SHARE: Final = 2e-3
FAR_RATIO: Final = 1.06
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
        charge, _, _ = charges.at(least)
        low[charge] = low.get(charge, 0.0) + mass
        below, exact, above = charges.at(mean)
        up = mass * (exact - below) / (above - below) if above > below else 0.0
        middle[below] = middle.get(below, 0.0) + mass - up
        middle[above] = middle.get(above, 0.0) + up
        _, _, charge = charges.at(most)
        high[charge] = high.get(charge, 0.0) + mass
    return {"low": low, "estimate": middle, "high": high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cells of `unit` bytes or tokens; charges above `dense` cells use few of them."""

    unit: int
    dense: int
    far: tuple[int, ...]

    def rates(self, measure: Measure, mode: str) -> Rates:
        """Mean numbers of requests by cells taken, rounded down, up, or in between."""
        found: dict[int, float] = {}
        for charge, mass in measure.items():
            exact = charge / self.unit
            below, above = self._around(exact)
            up = (exact - below) / (above - below) if above > below else 0.0
            if mode != "estimate":
                up = float(mode == "high")
            found[below] = found.get(below, 0.0) + mass * (1 - up)
            found[above] = found.get(above, 0.0) + mass * up
        return found

    def _around(self, exact: float) -> tuple[int, int]:
        """The nearest cells in use below and above."""
        below = floor(exact)
        above = below if exact == below else below + 1
        if above <= self.dense:
            return below, above
        at = bisect_right(self.far, below) - 1
        return (
            self.far[at] if at >= 0 else below,
            self.far[min(bisect_left(self.far, above), len(self.far) - 1)],
        )


def grid(measure: Measure, granule: int, width: float, budget: int, most: int) -> Grid:
    """The finest grid, up to the engine's blocks, that `width` in all can afford."""
    near = min(_near(measure), width)
    unit = max(1, int(sqrt(width * near / budget)), int(width / most))
    unit = granule * max(1, -(-unit // granule))
    dense = max(1, -(-int(near) // unit))
    top = -(-int(max(measure)) // unit)
    far = tuple(edges(dense, top, FAR_RATIO)) if top > dense else (dense,)
    return Grid(unit=unit, dense=dense, far=far)


def _near(measure: Measure) -> float:
    """The charge above which lies a small share of all that is charged."""
    total = sum(charge * mass for charge, mass in measure.items())
    beyond = 0.0
    for charge in sorted(measure, reverse=True):
        beyond += charge * measure[charge]
        if beyond > FAR_SHARE * total:
            return max(charge, 1.0)
    return 1.0


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
        found["high"] += self.sums["high"].beyond
        found = {mode: min(odds, 1.0) for mode, odds in found.items()}
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
    """Three recursions, a step after each; the last step is the result."""
    mean, spread = _moments(found["estimate"])
    top = max(found["high"])
    width = mean + DEVIATIONS * spread + top
    if charges.room < 1.5 * width:
        width = max(width, charges.room + top)
    cut = grid(found["high"], charges.granule, width, BUDGET, MOST_CELLS)
    cells = -(-int(width) // cut.unit)
    sums = {}
    for mode in MODES:
        sums[mode] = sum_of(cut.rates(found[mode], mode), cells, cut.dense)
        yield None
    yield Use(
        unit=cut.unit,
        fixed=charges.fixed,
        pool=charges.pool,
        mean={mode: charges.fixed + _moments(found[mode])[0] for mode in MODES},
        sums=sums,
    )


def _moments(measure: Measure) -> tuple[float, float]:
    """Mean and standard deviation of the sum."""
    mean = sum(charge * mass for charge, mass in measure.items())
    return mean, sqrt(sum(charge**2 * mass for charge, mass in measure.items()))


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
    cut = grid(found["high"], charges.granule, float(room), SEARCH_BUDGET, SEARCH_CELLS)
    cells = room // cut.unit
    for mode, name in (("high", "low"), ("estimate", "estimate"), ("low", "high")):
        rates = cut.rates(found[mode], mode)

        def gap(scale: float, rates: Rates = rates) -> float:
            scaled = {j: scale * rate for j, rate in rates.items()}
            more = 1.0 - sum(probabilities(scaled, cells, cut.dense))
            return log(max(more, 1e-15) / odds)

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
