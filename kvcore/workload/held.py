"""What requests in flight hold: how many of them, and how many tokens each.

With Poisson arrivals and time for every request (no queue: M/G/infinity), the requests
in flight are a Poisson number with mean rate x time (Little), each with a length drawn
in proportion to the time it stays. So all is said by one measure: for each number of
tokens, the mean number of requests in flight that hold it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvcore.errors import InvalidArgument
from kvcore.workload.cells import Cell
from kvcore.workload.lengths import Lengths, produced


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


def check(pace: Pace) -> None:
    """One way of saying how long a request stays, not both and not neither."""
    if (pace.tokens_per_second is None) == (pace.seconds is None):
        raise InvalidArgument(
            argument="tokens_per_second",
            value="missing" if pace.seconds is None else "given with the seconds",
            expected="either tokens_per_second or seconds_per_request",
        )
