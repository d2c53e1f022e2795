"""Requests of a file, folded while they are read: many take no more memory than few."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise
from typing import Final

from kvcore.errors import InvalidArgument
from kvcore.traces.rows import Row
from kvcore.workload.cells import Cell, edges
from kvcore.workload.held import InFlight, Pace

RATIO: Final = 1.01
MAX_HELD: Final = 1 << 22
"""Tokens of the longest request of a file; longer than any model's context."""


class Sample:
    """Lengths as counts, and the seconds for which each number of tokens is held.

    `prompts`, `outputs` and `totals` count requests by their tokens, uncut. Of `pace`
    the rate is not asked for; what is longer than `limit` holds no more than that.
    """

    def __init__(self, pace: Pace, limit: int) -> None:
        self.prompts: Counter[int] = Counter()
        self.outputs: Counter[int] = Counter()
        self.totals: Counter[int] = Counter()
        self.requests = 0
        self._pace = pace
        self._top = min(limit, MAX_HELD)
        self._steps = [0.0] * (self._top + 2)
        self._seconds = 0.0
        self._timed = 0
        self._from = self._until = 0.0

    def add(self, row: Row) -> None:
        """One request more, its prompt with its own output."""
        self.requests += 1
        self.prompts[row.prompt] += 1
        self.outputs[row.output] += 1
        self.totals[row.prompt + row.output] += 1
        self._seconds += self._hold(row)
        if row.time is not None:
            self._from = min(self._from, row.time) if self._timed else row.time
            self._until = max(self._until, row.time) if self._timed else row.time
            self._timed += 1

    @property
    def rate(self) -> float | None:
        """Requests a second from the first to the last; None where no times tell."""
        span = self._until - self._from
        return (self._timed - 1) / span if span else None

    def in_flight(self, rate: float) -> InFlight:
        """Exact for every number of tokens, then put together in cells."""
        if not self._seconds:
            raise InvalidArgument(
                argument="seconds_per_request",
                value="not given",
                expected="seconds, as no request of the file has room for an output",
            )
        held = [rate * mass / self.requests for mass in accumulate(self._steps)]
        return InFlight(
            cells=tuple(_gathered(held)), seconds=self._seconds / self.requests
        )

    def _hold(self, row: Row) -> float:
        """Seconds for each number of tokens it holds, as differences; all of them.

        A request with no output is decoding for no time, unless all stay equally long.
        """
        pace, steps = self._pace, self._steps
        prompt = min(row.prompt, self._top)
        output = min(row.output, self._top - prompt)
        if pace.seconds is not None:
            decoding = pace.seconds
        else:
            decoding = output / (pace.tokens_per_second or 1)
        if decoding:
            first, last = (prompt + 1, prompt + output) if output else (prompt, prompt)
            each = decoding / (last - first + 1)
            steps[first] += each
            steps[last + 1] -= each
        if not pace.prefill_per_second:
            return decoding
        reading = prompt / pace.prefill_per_second
        steps[prompt] += reading
        steps[prompt + 1] -= reading
        return decoding + reading


def _gathered(held: list[float]) -> list[Cell]:
    """Cells of at most 0.2% of the mean, or of a percent of themselves."""
    noise = 1e-12 * max(held, default=0.0)
    held = [mass if mass > noise else 0.0 for mass in held]
    total = sum(held)
    mean = sum(n * mass for n, mass in enumerate(held)) / total if total else 0
    step = max(1, int(mean / 500))
    found = []
    for low, high in pairwise(edges(0, len(held) - 1, RATIO, step)):
        part = held[low + 1 : high + 1]
        mass = sum(part)
        if mass:
            inside = [n for n, m in enumerate(part, low + 1) if m > 0]
            average = sum(n * m for n, m in enumerate(part, low + 1)) / mass
            found.append(Cell(mass, inside[0], average, inside[-1]))
    return found
