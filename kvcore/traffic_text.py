"""Traffic, pool use and prefix reuse, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcore.units import gib

Json = Mapping[str, Any]


def workload_lines(answer: Json) -> Iterator[str]:
    """How full the pool is."""
    unit = answer["unit"]
    prompt, output = answer["lengths"]["prompt"], answer["lengths"]["output"]
    rate, seconds = answer["arrival_rate"], answer["seconds_per_request"]
    lengths = f"{prompt['mean']:,.0f} + {output['mean']:,.0f} tokens on average"
    yield (
        f"{rate:,.4g} requests/s of {lengths}, {seconds:,.4g} s each: "
        f"{answer['in_flight']:,.4g} in flight"
    )
    yield f"  {'pool':<16} {_amount(answer['pool'], unit)}"
    for key in ("mean", "p50", "p95", "p99"):
        use = answer["use"][key]
        share = 100 * use["estimate"] / answer["pool"] if answer["pool"] else 0.0
        yield (
            f"  {'use, ' + key:<16} {_amount(use['estimate'], unit)}  {share:6.1f}%  "
            f"({_amount(use['low'], unit)} to {_amount(use['high'], unit)})"
        )
    yield f"  {'overflow':<16} {_range(answer['overflow'], 100)} % of the time"
    yield (
        f"  {'most requests/s':<16} {_range(answer['rate_at_odds'], 1)} with overflow "
        f"{100 * answer['odds']:g}% of the time"
    )


def _amount(count: float, unit: str) -> str:
    return gib(round(count)) if unit == "bytes" else f"{count:,.0f} tokens"


def _range(found: Json, scale: float) -> str:
    low, high = scale * found["low"], scale * found["high"]
    return f"{scale * found['estimate']:.4g} ({low:.4g} to {high:.4g})"
