"""Plans, and what to change about them, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvcore.units import gb, gib

Json = Mapping[str, Any]

REASONS: Final[Mapping[str, str]] = {
    "already_on": "on already",
    "already_fits": "everything fits",
    "buys_nothing": "buys nothing here",
    "format_not_supported": "this engine has no such format here",
    "lengths_not_stated": "say --traffic-context",
    "no_draft": "there is no draft",
    "no_draft_model": "the draft is part of the model",
    "no_engine": "say --engine",
    "no_engine_rule": "no engine's rule is known here",
    "memory_is_shared": "GPU and host share one memory",
    "running_stays_on_gpu": "what runs is read on the GPU alone",
    "no_heads": "no layer keeps keys of every token",
    "no_native_arithmetic": "this GPU has no arithmetic for the format",
    "no_paged_engine": "no paged engine is known for this device",
    "no_windows": "no layer has a window",
    "none_lighter": "no model of this size is lighter",
    "none_smaller": "no smaller one is known",
    "none_to_add": "no more GPUs can be used",
    "size_unknown": "its size is not known, so neither are relatives",
    "nothing_fits": "not one request fits",
    "nothing_replicated": "no rank repeats another's cache",
    "pool_is_given": "the pool was given",
    "prefix_not_stated": "say --common-prefix",
    "refused": "refused",
    "trained_in": "decided by training, nothing to set",
}
"""Why a lever is no use -> words."""


def bytes_line(label: str, count: int) -> str:
    return f"  {label:<16} {count:>22,} bytes  {gib(count):>14}  {gb(count):>14}"


def plan_lines(answer: Json) -> Iterator[str]:
    """Verdict, one rank's memory, and how far it goes."""
    rank = answer["rank"]
    yield (
        f"{answer['verdict']}: {answer['concurrency']:,} x {answer['context']:,} tokens"
        f" on {answer['gpus']} x {answer['gpu']}, {answer['engine']}"
    )
    for key in ("memory", "usable", "weight", "reserve", "pool", "used"):
        yield bytes_line(f"  {key}", rank[f"{key}_bytes"])
    if answer["short_bytes"]:
        yield bytes_line("short", answer["short_bytes"])
    yield bytes_line("per request", answer["request"]["allocated_bytes"])
    if answer["draft"]:
        yield _draft_line(answer["draft"])
    for key in ("max_requests", "max_context", "min_gpus"):
        value = answer[key]
        shown = f"{value:>22,}" if value is not None else "none"
        yield f"  {key:<16} {shown}"
    yield f"  {'max_concurrency':<16} {answer['max_concurrency']:>22,.2f}"
    for line in answer["pool"]["log_lines"] if answer["pool"] else ():
        yield f"  > {line}"


def _draft_line(draft: Json) -> str:
    """The draft's cache, and what part of the target's cache and weights it adds."""
    shares = [
        f"{100 * ratio[0] / ratio[1]:.4g}% of the target's {name}"
        for name in ("cache", "weight")
        if (ratio := draft[f"{name}_ratio"])
    ]
    return bytes_line("  draft", draft["cache_bytes"]) + f"  {', '.join(shares)}"


def lever_lines(answer: Json) -> Iterator[str]:
    """The plan in a line, the levers in their order, and why others are no use."""
    plan = answer["plan"]
    yield next(plan_lines(plan))
    yield f"  {'':<17} {'verdict':<13} {'saved':>11} {'requests':>9} {'context':>11}"
    yield _row("now", plan["verdict"], 0, plan["max_requests"], plan["max_context"])
    for row in answer["levers"]:
        yield _row(
            row["lever"],
            row["verdict"],
            row["saved_bytes"],
            row["max_requests"],
            row["max_context"],
        ) + f"  {_change(row['change'])}"
    for row in answer["dropped"]:
        yield f"  - {row['lever']:<15} {_reason(row)}{_figures(row['figures'])}"
    for shortcut in answer["shortcuts"]:
        yield f"  ~ {shortcut['shortcut']:<15}{_figures(shortcut)}"


def _row(name: str, verdict: str, saved: int, requests: int, context: int) -> str:
    return f"  {name:<17} {verdict:<13} {gib(saved):>11} {requests:>9,} {context:>11,}"


def _change(change: Mapping[str, object]) -> str:
    return ", ".join(
        f"no {name}" if value is None else f"{name} {_value(value)}"
        for name, value in change.items()
    )


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={item}" for name, item in value.items())
    return str(value)


def _reason(row: Json) -> str:
    error = row["error"]
    words = REASONS[row["reason"]]
    return f"{words}: {error['message']}" if error else words


def _figures(figures: Mapping[str, object]) -> str:
    """Numbers by their names; bytes in GiB."""
    shown = [
        f"{name.removesuffix('_bytes')} {_figure(name, value)}"
        for name, value in figures.items()
        if isinstance(value, int | float) or name == "says_percent"
    ]
    return f" ({', '.join(shown)})" if shown else ""


def _figure(name: str, value: object) -> str:
    if isinstance(value, list):
        return " to ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and name.endswith("_bytes"):
        return gib(value)
    return f"{value:,}"
