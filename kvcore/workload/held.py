"""What requests in flight hold: how many of them, and how many tokens each.

With Poisson arrivals and time for every request (no queue: M/G/infinity), the requests
in flight are a Poisson number with mean rate x time (Little), each with a length drawn
in proportion to the time it stays. So all is said by one measure: for each number of
tokens, the mean number of requests in flight that hold it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from kvcore.errors import InvalidArgument
from kvcore.traces.rows import Row
from kvcore.workload.cells import Cell, edges
from kvcore.workload.lengths import Lengths, produced

RATIO: Final = 1.01
MAX_HELD: Final = 1 << 22
"""Tokens of the longest request of a file; longer than any model's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Arrivals in requests a second and how long one stays, in seconds.

    Either every output token takes 1 / `tokens_per_second`, or every request stays
    `seconds`. The prompt is held from the start: `prefill_per_second` tokens of it are
    read in a second (None: at once).
    """

    rate: float
    tokens_per_second: float | None = None
    seconds: float | None = None
    prefill_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """The measure: cells of held tokens whose mass is a mean number of requests."""

    cells: tuple[Cell, ...]
    seconds: float
    """Mean time of a request."""

    @property
    def requests(self) -> float:
        return sum(cell.mass for cell in self.cells)


def from_lengths(prompt: Lengths, output: Lengths, pace: Pace, limit: int) -> InFlight:
    """Prompt and output lengths independent of each other."""
    step = max(1, int((prompt.mean + output.mean) / 200))
    prompts = prompt.cells(1.015, max(1, step // 2))
    time = pace.seconds
    if time is None:
        time = output.mean / (pace.tokens_per_second or 1)
    parts = produced(output, limit, by_time=pace.seconds is not None, step=step)
    decoding = pace.rate * time
    found = [
        Cell(
            decoding * p.mass * a.mass,
            min(p.low + a.low, limit),
            min(p.mean + a.mean, limit),
            min(p.high + a.high, limit),
        )
        for p in prompts
        for a in parts
    ]
    if pace.prefill_per_second:
        each = pace.rate / pace.prefill_per_second
        found += [p._replace(mass=each * p.mass * p.mean) for p in prompts]
        time += prompt.mean / pace.prefill_per_second
    return InFlight(cells=tuple(c for c in found if c.mass > 0), seconds=time)


def from_rows(rows: Iterable[Row], pace: Pace, limit: int) -> InFlight:
    """The requests of a file, each prompt with its own output.

    Exact for every number of tokens, then put together in cells.
    """
    top = min(limit, MAX_HELD)
    steps = [0.0] * (top + 2)
    count, time = 0, 0.0
    for row in rows:
        count += 1
        time += _add(steps, row, pace, top)
    held = [pace.rate * mass / count for mass in accumulate(steps)]
    return InFlight(cells=tuple(_gathered(held)), seconds=time / count)


def _add(steps: list[float], row: Row, pace: Pace, top: int) -> float:
    """Seconds for each number of tokens a request holds, as differences; all of them.

    A request with no output is decoding for no time, unless all stay equally long.
    """
    prompt = min(row.prompt, top)
    output = min(row.output, top - prompt)
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


def check(pace: Pace) -> None:
    """One way of saying how long a request stays, not both and not neither."""
    if (pace.tokens_per_second is None) == (pace.seconds is None):
        raise InvalidArgument(
            argument="tokens_per_second",
            value="missing" if pace.seconds is None else "given with the seconds",
            expected="either tokens_per_second or seconds_per_request",
        )
