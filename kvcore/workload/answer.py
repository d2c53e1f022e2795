"""The `workload` of the api: parameters -> lengths, pace and pool -> JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kvcore.errors import (
    InvalidArgument,
    KvcoreError,
    MissingField,
    Notice,
    UnsupportedOption,
)
from kvcore.importers.byte_source import ByteSource
from kvcore.listing import notices_json
from kvcore.params import Params, at_least, invalid, optional
from kvcore.scenario import Scenario, rank_of
from kvcore.scenario_params import PLAN, scenario_of
from kvcore.traces.lines import Lines
from kvcore.traces.rows import rows_of
from kvcore.workload.charges import Charges, of_scenario, of_tokens
from kvcore.workload.held import InFlight, Pace, check, from_lengths
from kvcore.workload.lengths import Fixed, Lengths, LogNormal
from kvcore.workload.sample import Sample
from kvcore.workload.totals import (
    Totals,
    as_plan,
    in_flight,
    measured,
    of_counts,
    of_lengths,
)
from kvcore.workload.use import MODES, Use, charged, scale_at, use_of

Json = dict[str, Any]
Tell = Callable[[float], None]
Progress = Callable[[Json], None]
Step = TypeVar("Step")

TRAFFIC: Final = frozenset(
    {
        "arrival_rate",
        "tokens_per_second",
        "seconds_per_request",
        "prefill_tokens_per_second",
        "prompt",
        "output",
        "odds",
        "pool_tokens",
    }
)
WORKLOAD: Final = PLAN | TRAFFIC

DEFAULT_ODDS: Final = 0.01
DEFAULT_LIMIT: Final = 1 << 20
BINS: Final = 120
MAX_RATE: Final = 1e6
UNCUT: Final = 10**9
"""Tokens; more than the longest length that can be given."""
READ: Final = 0.2
CHARGED: Final = 0.3
"""Shares of the work: when a file has been read, and requests are charged."""
LEAST_CUT: Final = 5e-4
TOLD_EVERY: Final = 20_000


def answer_workload(
    given: Mapping[str, object],
    files: Sequence[ByteSource] = (),
    progress: Progress | None = None,
) -> Json:
    """The api's `workload`; a file of lengths takes the place of both lengths."""

    def tell(share: float) -> None:
        if progress is not None:
            progress({"share": share})

    params = Params(given, WORKLOAD)
    scenario = _scenario(params)
    limit = _limit(params, scenario)
    rate = _positive(params, "arrival_rate", MAX_RATE)
    # The rate of a file is known when it has been read.
    pace = _pace(params, rate or 1.0)
    found = _read(files[0], Sample(pace, limit), tell) if files else None
    tell(READ)
    rate = rate or (found.rate if found else None)
    if rate is None:
        raise MissingField(field="arrival_rate")
    pace = replace(pace, rate=rate / _replicas(params))
    if found is None:
        prompt, output = _lengths(params, limit)
        held = from_lengths(prompt, output, pace, limit)
        lengths = {"prompt": _spread(prompt), "output": _spread(output)}
        totals = of_lengths(*_lengths(params, UNCUT), limit)
    else:
        held = found.in_flight(pace.rate)
        lengths = {
            "prompt": _measured(found.prompts),
            "output": _measured(found.outputs),
        }
        totals = of_counts(found.totals, limit)
    charges = _charges(params, scenario, limit, held)
    charged_ = charged(held.cells, charges)
    tell(CHARGED)
    use = _last(use_of(charged_, charges), tell, CHARGED, 0.75)
    odds = _odds(params)
    scale = _last(scale_at(odds, charged_, charges), tell, 0.75, 1.0)
    replicas = scenario.sizes.dp if scenario else 1
    used = _use_json(use)
    flight = in_flight(held.requests * replicas)
    return {
        "unit": charges.unit,
        "replicas": replicas,
        "arrival_rate": pace.rate * replicas,
        "seconds_per_request": held.seconds,
        "in_flight": held.requests * replicas,
        "requests_in_flight": flight,
        "lengths": {**lengths, "total": totals.json()},
        "held_tokens_per_request": sum(c.mass * c.mean for c in held.cells)
        / held.requests,
        "limit": limit,
        "pool": charges.pool,
        "fixed": charges.fixed,
        "use": used,
        "use_of_pool": {
            name: its["estimate"] / use.pool if use.pool > 0 else None
            for name, its in used.items()
        },
        "overflow": use.overflow(),
        "odds": odds,
        "rate_at_odds": {mode: scale[mode] * pace.rate * replicas for mode in MODES},
        "distribution": [
            {"from": start, "use": n, "probability": inside, "more": more}
            for start, n, inside, more in use.points(BINS)
        ],
        "as_plan": as_plan(totals, flight, limit),
        "method": {"name": "fourier", "cell": use.unit},
        "warnings": notices_json(_notices(found, totals, limit, charges, use)),
    }


def _read(source: ByteSource, sample: Sample, tell: Tell) -> Sample:
    """The requests of a file, told about as the reading goes on."""
    lines = Lines(source)
    for row in rows_of(lines):
        if sample.requests % TOLD_EVERY == 0:
            tell(READ * lines.done_bytes / max(lines.size, 1))
        sample.add(row)
    return sample


def _scenario(params: Params) -> Scenario | None:
    """What to plan, unless the pool is given in tokens."""
    if params.get("pool_tokens") is None:
        return scenario_of(params)
    for name in sorted(PLAN - {"context", "block_tokens", "shared_prefix"}):
        if params.get(name) not in (None, "", {}):
            raise UnsupportedOption(
                engine="kvcore",
                option=name,
                value=str(params.get(name))[:60],
                reason="a pool given in tokens knows no model, engine or GPU",
            )
    return None


def _limit(params: Params, scenario: Scenario | None) -> int:
    """The longest request: the context asked for, else the model's."""
    asked = optional(params, "context", 1)
    if asked is not None:
        return asked
    known = scenario.model.max_context if scenario else None
    return min(known or DEFAULT_LIMIT, DEFAULT_LIMIT)


def _pace(params: Params, rate: float) -> Pace:
    """Arrivals, and how long a request stays."""
    pace = Pace(
        rate=rate,
        tokens_per_second=_positive(params, "tokens_per_second", 1e9),
        seconds=_positive(params, "seconds_per_request", 1e9),
        prefill_per_second=_positive(params, "prefill_tokens_per_second", 1e12),
    )
    check(pace)
    return pace


def _replicas(params: Params) -> int:
    if params.get("pool_tokens") is not None:
        return 1
    return scenario_of(params).sizes.dp


def _positive(params: Params, name: str, most: float) -> float | None:
    value = params.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise invalid(name, value, "a number above 0") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(name, value, "a number above 0")
    if not 0 < value <= most:
        raise invalid(name, value, f"a number above 0, up to {most:g}")
    return float(value)


def _odds(params: Params) -> float:
    value = _positive(params, "odds", 0.5)
    if value is not None and value < 1e-9:
        raise invalid("odds", value, "a number from 1e-9 to 0.5")
    return DEFAULT_ODDS if value is None else value


def _lengths(params: Params, limit: int) -> tuple[Lengths, Lengths]:
    return _length(params, "prompt", limit), _length(params, "output", limit)


def _length(params: Params, name: str, limit: int) -> Lengths:
    """A number of tokens, `"p50/p95"`, or an object with `p50` and `p95`."""
    value = params.get(name)
    if isinstance(value, str) and "/" in value:
        median, _, most = value.partition("/")
        value = {"p50": median, "p95": most}
    if not isinstance(value, Mapping):
        tokens = params.integer(name, None)
        if tokens is None:
            raise MissingField(field=name)
        return Fixed(tokens=min(at_least(name, tokens, 1), limit))
    parts = Params(value, frozenset({"p50", "p95"}))
    p50, p95 = parts.integer("p50", None), parts.integer("p95", None)
    if p50 is None or p95 is None:
        raise MissingField(field=f"{name}.{'p50' if p50 is None else 'p95'}")
    if not 1 <= p50 <= p95 <= 10**9:
        raise InvalidArgument(
            argument=name, value=f"{p50}/{p95}", expected="p50 from 1, p95 from p50"
        )
    if p50 == p95:
        return Fixed(tokens=min(p50, limit))
    return LogNormal(p50=p50, p95=p95, limit=limit)


def _charges(
    params: Params, scenario: Scenario | None, limit: int, held: InFlight
) -> Charges:
    most = min(int(max(cell.high for cell in held.cells)) + 1, limit)
    if scenario is not None:
        pool = rank_of(scenario).pool_bytes
        return of_scenario(scenario, pool, most, held.requests)
    return of_tokens(
        at_least("pool_tokens", params.integer("pool_tokens", None) or 0, 1),
        at_least("block_tokens", params.integer("block_tokens", 1) or 0, 1),
        most,
        at_least("shared_prefix", params.integer("shared_prefix", 0) or 0, 0),
    )


def _last(steps: Iterator[Step | None], tell: Tell, start: float, end: float) -> Step:
    """What the last of some steps gives, told about on the way."""
    for number, step in enumerate(steps, 1):
        tell(start + (end - start) * min(number / (len(MODES) + 1), 1.0))
        if step is not None:
            return step
    raise KvcoreError(reason="the steps had no end")


def _spread(lengths: Lengths) -> Json:
    return {
        "mean": lengths.mean,
        **{f"p{p}": lengths.quantile(p / 100) for p in (50, 95, 99)},
    }


def _measured(counts: Mapping[int, int]) -> Json:
    mean, quantiles = measured(counts)
    return {"mean": mean, **{f"p{p}": n for p, n in quantiles.items()}}


def _use_json(use: Use) -> Json:
    return {
        "mean": use.mean,
        **{f"p{p}": use.quantile(p / 100) for p in (50, 95, 99)},
    }


def _notices(
    found: Sample | None,
    totals: Totals,
    limit: int,
    charges: Charges,
    use: Use,
) -> tuple[Notice, ...]:
    noted = []
    if found is not None and totals.longer:
        longer = round(totals.longer * found.requests)
        noted.append(
            Notice(
                "requests_cut",
                {"requests": longer, "of": found.requests, "limit": limit},
            )
        )
    elif totals.longer >= LEAST_CUT:
        percent = float(f"{100 * totals.longer:.2g}")
        noted.append(Notice("lengths_cut", {"percent": percent, "limit": limit}))
    if use.mean["estimate"] > charges.pool:
        noted.append(Notice("overloaded", {}))
    return tuple(noted)
