"""What `reuse` is asked with: a trace, a policy, budgets, replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, Final, get_args

from kvcore.errors import InvalidArgument, MissingField
from kvcore.importers.byte_source import ByteSource
from kvcore.params import Params, invalid, optional
from kvcore.reuse.costs import Costs
from kvcore.reuse.findings import Policy, Question
from kvcore.reuse.presets import PRESETS
from kvcore.reuse.priority import DEFAULT, HIGHEST, LOWEST, Retention
from kvcore.reuse.routing import Routing
from kvcore.reuse.survey import Trace
from kvcore.reuse.synthetic import MadeUp, Traffic
from kvcore.scenario import Scenario
from kvcore.scenario_params import PLAN
from kvcore.traces.requests import TraceFile

REUSE: Final = PLAN | frozenset(
    {
        "preset",
        "traffic",
        "trace_block_tokens",
        "policy",
        "retention",
        "budgets_gib",
        "replicas",
        "routing",
        "warmup",
        "tokens_per_second",
    }
)
ANY_MEMORY_MIB: Final = 1 << 20
MAX_REPLICAS: Final = 1024
MAX_BUDGETS: Final = 64
MAX_RULES: Final = 16
SAMPLE: Final = 25_000
"""Blocks in the sample; fewer than four times as many are gone through at once."""
BYTES_PER_BLOCK: Final = 7


def scenario_params(params: Params) -> Params:
    """Those of the plan; without a GPU any memory will do, since budgets are given."""
    given = {name: params.get(name) for name in PLAN}
    if given["gpu"] is None and given["memory_mib"] is None:
        given |= {"gpu": "other", "memory_mib": ANY_MEMORY_MIB}
    return Params(given, PLAN)


def trace_of(params: Params, files: Sequence[ByteSource]) -> Trace:
    """The file, or made-up traffic: a preset, changed by `traffic`, or that alone."""
    if files:
        given = optional(params, "trace_block_tokens", 1)
        if given is None:
            given = optional(params, "block_tokens", 1)
        return TraceFile(files[0], given)
    preset = params.text("preset", "")
    changes = params.mapping("traffic")
    if not preset and not changes:
        raise MissingField(field="trace")
    if preset and preset not in PRESETS:
        raise invalid("preset", preset, "one of " + ", ".join(PRESETS))
    traffic = PRESETS[preset].traffic if preset else Traffic(name="made up")
    return MadeUp(_changed(traffic, changes))


def _changed(traffic: Traffic, changes: Mapping[str, object]) -> Traffic:
    """Traffic with some numbers changed; a spread is "p50/p95" or [p50, p95]."""
    known = {f.name: getattr(traffic, f.name) for f in fields(traffic)} | {"name": ""}
    checked = Params(changes, frozenset(known) - {"name"})
    new: dict[str, Any] = {}
    for name in changes:
        if isinstance(known[name], tuple):
            new[name] = _spread(name, checked.get(name))
        elif isinstance(known[name], float):
            new[name] = _number(f"traffic.{name}", checked.get(name), 0, 1e6)
        else:
            most = {"requests": 10**6, "fan_out": 31, "prefixes": 10**5}.get(
                name, 10**7
            )
            new[name] = _whole(checked, name, most)
    return replace(traffic, **new)


def _whole(params: Params, name: str, most: int) -> int:
    value = params.integer(name, None)
    if value is None or not 1 <= value <= most:
        raise invalid(f"traffic.{name}", value, f"a whole number from 1 to {most}")
    return value


def _spread(name: str, value: object) -> tuple[float, float]:
    parts = value.split("/") if isinstance(value, str) else value
    if isinstance(parts, int | float) or (isinstance(parts, list) and len(parts) == 1):
        parts = [parts, parts] if isinstance(parts, int | float) else parts * 2
    if not isinstance(parts, list) or len(parts) != 2:
        raise invalid(f"traffic.{name}", value, "p50/p95")
    p50, p95 = (_number(f"traffic.{name}", part, 0, 1e7) for part in parts)
    if not 0 < p50 <= p95:
        raise invalid(f"traffic.{name}", value, "p50 above 0, p95 not below it")
    return p50, p95


def _number(name: str, value: object, least: float, most: float) -> float:
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise invalid(name, value, "a number")
    if not least <= number <= most:
        raise invalid(name, value, f"from {least:g} to {most:g}")
    return float(number)


def question_of(
    params: Params,
    scenario: Scenario,
    costs: Costs,
    trace: Trace,
    files: Sequence[ByteSource],
    pool: int | None,
) -> Question:
    """Everything there is to ask of a trace."""
    policy = params.text("policy", "lru")
    if policy not in get_args(Policy):
        raise invalid("policy", policy, "one of " + ", ".join(get_args(Policy)))
    routing = params.text("routing", "random")
    if routing not in get_args(Routing):
        raise invalid("routing", routing, "one of " + ", ".join(get_args(Routing)))
    replicas = optional(params, "replicas", 1) or scenario.sizes.dp
    if replicas > MAX_REPLICAS:
        raise invalid("replicas", replicas, f"from 1 to {MAX_REPLICAS}")
    pace = params.get("tokens_per_second")
    warmup = params.get("warmup")
    budgets = _budgets(params.get("budgets_gib"))
    return Question(
        costs=costs,
        policy=policy,  # type: ignore[arg-type]
        replicas=replicas,
        routing=routing,  # type: ignore[arg-type]
        retentions=_retentions(params.get("retention"), policy),
        warmup=0.0 if warmup is None else _number("warmup", warmup, 0, 0.95),
        sample=_sample(trace, files),
        pace=None if pace is None else _number("tokens_per_second", pace, 1e-3, 1e9),
        budgets=budgets if pool is None else (pool, *budgets),
        in_flight=(
            None if params.get("concurrency") is None else float(scenario.concurrency)
        ),
    )


def _sample(trace: Trace, files: Sequence[ByteSource]) -> int:
    """One in how many blocks to sample; 0 where all are gone through as soon."""
    if isinstance(trace, MadeUp):
        traffic = trace.traffic
        tokens = (
            traffic.prefix[0]
            + traffic.first[1]
            + traffic.turns[0] * (traffic.grows[0] + traffic.output[0])
        )
        blocks = traffic.requests * tokens / traffic.block_tokens
    else:
        packed = 3 if files[0].read(0, 2) == b"\x1f\x8b" else 1
        blocks = packed * files[0].size / BYTES_PER_BLOCK
    return int(blocks / SAMPLE) if blocks > 4 * SAMPLE else 0


def _budgets(value: object) -> tuple[int, ...]:
    """Bytes from GiB: a list of numbers, or texts with commas between them."""
    if value is None or value == "":
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not 0 < len(parts) <= MAX_BUDGETS:
        raise invalid("budgets_gib", value, f"1 to {MAX_BUDGETS} numbers of GiB")
    found = []
    for part in parts:
        number = _number("budgets_gib", part, 0, 1 << 20)
        exact = Fraction(part.strip()) if isinstance(part, str) else Fraction(number)
        found.append(int(exact * (1 << 30)))
    return tuple(found)


def _retentions(value: object, policy: str) -> tuple[Retention, ...]:
    """Rules {start, end, priority, seconds}; the first that covers a block counts."""
    if value is None or value == "":
        return ()
    if policy != "priority":
        raise InvalidArgument(
            argument="retention",
            value=f"given with policy {policy}",
            expected="policy priority with it",
        )
    rules = value.split(",") if isinstance(value, str) else value
    if not isinstance(rules, list) or not 0 < len(rules) <= MAX_RULES:
        raise invalid("retention", value, f"1 to {MAX_RULES} rules")
    return tuple(_retention(rule) for rule in rules)


def _retention(rule: object) -> Retention:
    """An object, or START:END=PRIORITY or START:END=PRIORITY/SECONDS."""
    if isinstance(rule, str):
        tokens, _, kept = rule.partition("=")
        start, _, end = tokens.partition(":")
        priority, _, seconds = kept.partition("/")
        rule = {"start": start or 0, "end": end or None, "priority": priority or None}
        rule["seconds"] = seconds or None
    if not isinstance(rule, Mapping):
        raise invalid("retention", rule, "START:END=PRIORITY/SECONDS")
    parts = Params(rule, frozenset({"start", "end", "priority", "seconds"}))
    start_, end_ = parts.integer("start", 0) or 0, parts.integer("end", None)
    level = parts.integer("priority", DEFAULT)
    if level is None or not LOWEST <= level <= HIGHEST:
        raise invalid("priority", level, f"from {LOWEST} to {HIGHEST}")
    if start_ < 0 or (end_ is not None and end_ <= start_):
        raise invalid("retention", f"{start_}:{end_}", "an end after its start")
    time = parts.get("seconds")
    return Retention(
        start=start_,
        end=end_,
        priority=level,
        seconds=None if time is None else _number("seconds", time, 0, 1e12),
    )
