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
    total = answer["lengths"]["total"]
    flight = answer["requests_in_flight"]
    yield (
        f"  {'whole requests':<16} p95 {total['p95']:,}, p99 {total['p99']:,} tokens; "
        f"p95 {flight['p95']:,}, p99 {flight['p99']:,} in flight"
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


def reuse_lines(answer: Json) -> Iterator[str]:
    """How much of the prompts is found in the cache."""
    trace, running = answer["trace"], answer["running"]
    yield (
        f"{trace['name']}: {trace['requests']:,} requests of "
        f"{trace['prompt']['mean']:,.0f} tokens on average in blocks of "
        f"{trace['block_tokens']:,}; {answer['engine']} keeps blocks of "
        f"{answer['block_tokens']:,} ({gib(answer['block_bytes'])})"
    )
    place = f"{answer['replicas']:,} x" if answer["replicas"] > 1 else "one pool"
    yield (
        f"  {answer['policy']}, {place}, routed {answer['routing']}; "
        f"{running['requests']:,.4g} running requests take {gib(running['bytes'])}"
    )
    yield _reuse_line("ceiling, from", answer["ceiling"])
    if answer["pool"] is not None:
        yield _reuse_line("this pool", answer["pool"])
    for budget in answer["budgets"]:
        yield _reuse_line("budget", budget)
    for knee in answer["knee"]:
        yield _reuse_line(f"{100 * knee['share']:g}% of ceiling", knee)
    for row in answer["spread"] if answer["replicas"] > 1 else ():
        label = f"{row['replicas']:,} x {row['routing']}"
        if row["pool"] is None:
            yield f"  {label:<16} {100 * row['ceiling']:6.2f}% without limit"
        else:
            yield _reuse_line(label, row["pool"])


def _reuse_line(label: str, found: Json) -> str:
    return (
        f"  {label:<16} {100 * found['hit_rate']:6.2f}% hits  "
        f"{gib(found['budget_bytes']):>12} ({gib(found['cache_bytes'])} cached)  "
        f"{found['saved_tokens']:,} tokens not computed, "
        f"{gib(found['evicted_bytes'])} evicted"
    )


def _amount(count: float, unit: str) -> str:
    return gib(round(count)) if unit == "bytes" else f"{count:,.0f} tokens"


def _range(found: Json, scale: float) -> str:
    low, high = scale * found["low"], scale * found["high"]
    return f"{scale * found['estimate']:.4g} ({low:.4g} to {high:.4g})"
