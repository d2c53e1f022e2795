"""Requests as a whole: how long they are in the end, and how many there are at once.

These are what a plan and its levers ask of traffic: tokens of a request, its prompt
and its output together, and requests at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, lgamma, log, sqrt
from typing import Any, Final

from kvcore.workload import normal
from kvcore.workload.lengths import Lengths

Json = dict[str, Any]

PERCENTS: Final = (50, 95, 99)
RATIO: Final = 1.02
COUNTED: Final = 10_000
"""Mean numbers of requests up to which their quantiles are summed, not approximated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tokens of whole requests, none above the limit they are cut at.

    `longer` is the share of requests that would be longer, before they are cut.
    """

    mean: float
    quantiles: Mapping[int, int]
    longer: float

    def json(self) -> Json:
        return {"mean": self.mean, **{f"p{p}": n for p, n in self.quantiles.items()}}


def of_lengths(prompt: Lengths, output: Lengths, limit: int) -> Totals:
    """Prompt and output independent of each other, and given uncut.

    Outputs are rounded up, by at most 2% of themselves, so that a quantile is never
    too small.
    """
    parts = output.cells(RATIO, max(1, int(output.mean / 200)))

    def at_most(tokens: int) -> float:
        return sum((p.mass * prompt.at_most(tokens - p.high) for p in parts), 0.0)

    def cut_mean(produced: float) -> float:
        return produced + prompt.age(limit - produced) if produced < limit else limit

    longer = max(1 - at_most(limit), 0.0)
    return Totals(
        mean=sum(p.mass * cut_mean(p.mean) for p in parts),
        quantiles={p: _least(at_most, p / 100, limit) for p in PERCENTS},
        longer=longer,
    )


def of_counts(counts: Mapping[int, int], limit: int) -> Totals:
    """The requests of a file, counted by their tokens: exact."""
    cut: Counter[int] = Counter()
    for tokens, requests in counts.items():
        cut[min(tokens, limit)] += requests
    mean, quantiles = measured(cut)
    longer = sum(requests for tokens, requests in counts.items() if tokens > limit)
    return Totals(mean=mean, quantiles=quantiles, longer=longer / cut.total())


def measured(counts: Mapping[int, int]) -> tuple[float, dict[int, int]]:
    """Mean and quantiles of lengths of which there are so many each."""
    lengths = sorted(counts)
    ends = list(accumulate(counts[length] for length in lengths))
    last = ends[-1] - 1
    mean = sum(length * requests for length, requests in counts.items()) / ends[-1]
    return mean, {
        p: lengths[bisect_right(ends, round(last * p / 100))] for p in PERCENTS
    }


def _least(at_most: Callable[[int], float], share: float, limit: int) -> int:
    """The least number of tokens that `share` of the requests do not exceed."""
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if at_most(middle) >= share:
            high = middle
        else:
            low = middle
    return high


def in_flight(mean: float) -> Json:
    """How many requests there are at once: a Poisson number, its mean and quantiles.

    Beyond a mean of 10,000 by Cornish and Fisher's expansion, right to one request.
    """
    return {"mean": mean, **{f"p{p}": poisson(mean, p / 100) for p in PERCENTS}}


def poisson(mean: float, share: float) -> int:
    """The least n with P(N <= n) >= `share` for a Poisson number N."""
    if mean > COUNTED:
        z = normal.quantile(share)
        return ceil(mean + z * sqrt(mean) + (z * z - 1) / 6 - 0.5)
    n = max(0, int(mean - 12 * sqrt(mean) - 12))
    below = 0.0
    while True:
        below += exp(n * log(mean) - mean - lgamma(n + 1))
        if below >= share:
            return n
        n += 1


def as_plan(totals: Totals, flight: Mapping[str, float], limit: int) -> Json:
    """Whole numbers, rounded up, to plan this traffic with: a context, a concurrency.

    A plan takes all requests to be equally long: with a high quantile of the lengths
    it is a careful one.
    """
    return {
        "context": {
            "mean": min(ceil(totals.mean), limit),
            **{f"p{p}": n for p, n in totals.quantiles.items()},
        },
        "concurrency": {name: max(1, ceil(n)) for name, n in flight.items()},
    }
