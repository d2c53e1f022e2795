"""Bounds of speed, and prices, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcore.units import gib

Json = Mapping[str, Any]


def decode_lines(answer: Json) -> Iterator[str]:
    """At most so fast: one step, the first token, longer contexts, the price."""
    yield (
        f"at most: {answer['concurrency']:,} x {answer['context']:,} tokens on "
        f"{answer['gpus']} x {answer['gpu']}, {answer['engine']}"
    )
    step, rates = answer["step"], answer["tokens_per_second"]
    weights, cache = gib(step["weight_bytes"]), gib(step["cache_bytes"])
    yield f"  {'one step':<20} reads {weights} of weights, {cache} of cache on a rank"
    if answer["experts"]:
        yield f"  {'experts touched':<20} {100 * answer['experts']['share']:.4g}%"
    yield f"  {'tokens per second':<20} {_rate(rates['request'])} a request, " + (
        f"{_rate(rates['total'])} in total ({step['bound'] or 'unknown'} bound)"
    )
    crossover = answer["crossover_requests"]
    if crossover:
        yield f"  {'cache > weights':<20} from {crossover:,} requests a replica"
    prefill, without = answer["prefill"], answer["without_cache"]
    yield f"  {'first token':<20} after {_seconds(prefill['seconds'])} at least, " + (
        f"{prefill['tokens']:,} tokens ({prefill['bound'] or 'unknown'} bound)"
    )
    slower = without["times_slower"]
    if slower:
        yield f"  {'without a cache':<20} {slower:,.4g} times slower"
    for point in answer["curve"]:
        label = f"at {point['context']:,}"
        yield f"  {label:<20} {_rate(point['request'])} tokens per second a request"
    yield from _cost_lines(answer["cost"])


def _cost_lines(cost: Json | None) -> Iterator[str]:
    if cost is None:
        return
    for label, key in (
        ("1M output tokens", "per_million_output_tokens"),
        ("1M context x hour", "per_million_context_token_hours"),
        ("  when full", "per_million_context_token_hours_when_full"),
    ):
        if cost[key] is not None:
            yield f"  {label:<20} {cost[key]:,.4g} at least"


def price_lines(answer: Json) -> Iterator[str]:
    """One price a line, with its provider and date."""
    for price in answer["prices"]:
        yield (
            f"{price['accelerator']:<22} {price['price_per_hour']:>8.4g} "
            f"{answer['currency']}  {price['date']:<10}  {price['provider']}, "
            f"{price['kind']}"
        )


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:,.4g}"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "? s"
    return f"{seconds:,.4g} s" if seconds >= 1 else f"{1000 * seconds:,.4g} ms"
