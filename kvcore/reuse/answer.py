"""The `reuse` of the api: a trace, a model and a pool -> hits and evictions as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from typing import Any, Final

from kvcore.errors import MissingField, Notice, UnsupportedOption
from kvcore.importers.byte_source import ByteSource
from kvcore.listing import notices_json
from kvcore.params import Params
from kvcore.reuse.costs import Costs, costs_of
from kvcore.reuse.findings import Found, Hits, Question, cache_units, running_bytes
from kvcore.reuse.options import REUSE, question_of, scenario_params, trace_of
from kvcore.reuse.run import run
from kvcore.reuse.survey import Survey, Trace
from kvcore.scenario import Scenario, rank_of
from kvcore.scenario_params import scenario_of

Json = dict[str, Any]
Progress = Callable[[Json], None]

POINTS: Final = 60
KNEES: Final = (0.95, 0.99)
STEP: Final = 0.01
"""Progress is told in steps of a percent,"""
QUIET: Final = 5
"""or after so many looks: whoever hears nothing takes the work for stuck."""


def answer_reuse(
    given: Mapping[str, object],
    files: Sequence[ByteSource] = (),
    progress: Progress | None = None,
) -> Json:
    """The api's `reuse`: of the first file, or of made-up traffic.

    `progress` hears of the share done of each phase, where there is a sample also of
    its `answer`: first of the beginning of the trace (`read`), then of more and more.
    """
    params = Params(given, REUSE)
    scenario = scenario_of(scenario_params(params))
    if not scenario.engine.shares_prefixes(scenario.settings):
        raise UnsupportedOption(
            engine=scenario.engine.id,
            option="prefix reuse",
            value="on",
            reason="every request keeps its own prefix with these settings",
        )
    trace = trace_of(params, files)
    asked = params.integer("block_tokens", None)
    costs = costs_of(scenario, asked, trace.block_tokens)
    pool = _pool(params, scenario)
    question = question_of(params, scenario, costs, trace, files, pool)
    told, quiet = -STEP, 0
    answer: Json = {}
    for step in run(trace, question):
        if step.found is not None:
            found = step.found
            answer = _answer(trace, scenario, question, found, pool)
        quiet += 1
        small = step.share < told + STEP and quiet < QUIET
        if progress is None or (step.found is None and small):
            continue
        quiet = 0
        told = step.share if step.share < 1 else -STEP
        told_step: Json = {"phase": step.phase, "share": step.share}
        if step.found is not None and not step.found.exact:
            told_step["answer"] = answer
        progress(told_step)
    return answer


def _pool(params: Params, scenario: Scenario) -> int | None:
    """The pool of a replica, where a GPU or the pool itself was named."""
    if params.get("gpu") is None and params.get("pool_bytes") is None:
        if params.get("memory_mib") is None:
            return None
        raise MissingField(field="gpu")
    return rank_of(scenario).pool_bytes


def _answer(
    trace: Trace, scenario: Scenario, question: Question, found: Found, pool: int | None
) -> Json:
    costs, survey, hits = question.costs, found.survey, found.hits
    running = running_bytes(question, survey, question.replicas)
    view = _View(question, found, hits, running)
    budgets = question.budgets if pool is None else question.budgets[1:]
    return {
        "exact": found.exact,
        "read": found.read,
        "model": scenario.model.name,
        "engine": scenario.engine.id,
        "policy": question.policy,
        "replicas": question.replicas,
        "routing": question.routing,
        "warmup": question.warmup,
        "trace": _trace_json(trace, found),
        "block_tokens": costs.block,
        "block_bytes": costs.unit if costs.block_cost else 0,
        "request_bytes": costs.tail_bytes(max(survey.prompts, default=1)),
        "hits_need_states": costs.checkpoints_only,
        "prompt_tokens": found.tokens,
        "running": {
            "requests": _in_flight(question, survey),
            "bytes": running,
        },
        "pool": None if pool is None else view.budget(pool),
        "budgets": [view.budget(budget) for budget in budgets],
        "ceiling": view.ceiling(),
        "knee": [view.knee(share) for share in KNEES],
        "curve": view.curve(),
        "spread": _spread(question, found, pool),
        "warnings": notices_json(_notices(question, found, running, pool)),
    }


class _View:
    """Sizes of caches as budgets, with what they save."""

    def __init__(
        self, question: Question, found: Found, hits: Hits, running: int
    ) -> None:
        self._question = question
        self._costs: Costs = question.costs
        self._found = found
        self._hits = hits
        self._running = running

    def budget(self, budget: int) -> Json:
        """A pool of so many bytes."""
        size = max(budget - self._running, 0) // self._costs.unit
        return {**self.size(size), "budget_bytes": budget}

    def size(self, size: int) -> Json:
        """A cache of so many units, the running requests beside it."""
        count = self._hits.at(size)
        answer = {
            "budget_bytes": size * self._costs.unit + self._running,
            "cache_bytes": size * self._costs.unit,
            "hit_rate": self._rate(count.hits),
            "saved_tokens": count.hits * self._costs.block,
            "evicted_bytes": count.evicted * self._costs.unit,
            "evicted_blocks": count.evicted if self._costs.block_cost else None,
        }
        if self._question.policy != "lru":
            answer["lru_hit_rate"] = self._rate(self._hits.lru(size).hits)
        return answer

    def _rate(self, hits: int) -> float:
        tokens = self._found.tokens
        return hits * self._costs.block / tokens if tokens else 0.0

    def ceiling(self) -> Json:
        """A cache without end, and from which size on one is as good."""
        return self.size(self._hits.full)

    def knee(self, share: float) -> Json:
        """The smallest cache that finds so much of what there is to find."""
        if not self._question.replayed:
            return {"share": share, **self.size(self._hits.least(share))}
        enough = share * self._hits.ceiling.hits
        sizes = [c.size for c in self._hits.counts if c.hits >= enough]
        size = min(sizes, default=self._hits.full)
        return {"share": share, **self.size(size)}

    def curve(self) -> list[Json]:
        """Sizes from small to endless, evenly on a logarithmic axis."""
        if self._question.replayed and self._hits.counts:
            return [self.size(count.size) for count in self._hits.counts]
        full = max(self._hits.full, 1)
        first = max(full // 2000, 1)
        ratio = log(full / first) / (POINTS - 1)
        sizes = {round(first * exp(n * ratio)) for n in range(POINTS)}
        return [self.size(size) for size in sorted({*sizes, full})]


def _trace_json(trace: Trace, found: Found) -> Json:
    survey = found.survey
    return {
        "name": trace.name,
        "requests": survey.requests,
        "seconds": survey.span or None,
        "block_tokens": trace.block_tokens,
        "blocks": found.accesses,
        "unique_blocks": found.unique_blocks,
        "prompt": _lengths(survey.prompts),
        "output": _lengths(survey.outputs),
    }


def _lengths(values: Sequence[int]) -> Json:
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "mean": sum(ordered) / len(ordered),
        **{f"p{p}": ordered[round(last * p / 100)] for p in (50, 95, 99)},
    }


def _in_flight(question: Question, survey: Survey) -> float:
    """Requests running at once, in one replica."""
    if question.pace and survey.span:
        return survey.seconds / survey.span / question.replicas
    return (question.in_flight or 1.0) / question.replicas


def _spread(question: Question, found: Found, pool: int | None) -> list[Json]:
    """The same traffic on fewer replicas, and routed the other way."""
    own = (question.replicas, question.routing, found.hits)
    rows = []
    for replicas, routing, hits in (own, *found.rows):
        running = running_bytes(question, found.survey, replicas)
        view = _View(question, found, hits, running)
        rows.append(
            {
                "replicas": replicas,
                "routing": routing,
                "ceiling": view.ceiling()["hit_rate"],
                "pool": None if pool is None else view.budget(pool),
            }
        )
    return sorted(rows, key=lambda row: (row["replicas"], row["routing"]))


def _notices(
    question: Question, found: Found, running: int, pool: int | None
) -> tuple[Notice, ...]:
    noted = []
    if question.costs.checkpoints_only:
        noted.append(Notice("reuse_needs_states", {}))
    elif question.costs.tail_bytes(1 << 20):
        noted.append(Notice("reuse_windows_assumed", {}))
    if question.pace and not found.survey.span:
        in_flight = _in_flight(question, found.survey) * question.replicas
        params = {"rate": question.pace, "requests": in_flight}
        noted.append(Notice("reuse_no_times", params))
    if pool is not None and not cache_units(
        question, found.survey, pool, question.replicas
    ):
        sizes = {"running_bytes": running, "pool_bytes": pool}
        noted.append(Notice("reuse_no_room", sizes))
    return tuple(noted)
