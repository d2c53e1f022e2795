"""Where levers start: a scenario, its plan, and what a change of it would plan as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kvcore.errors import KvcoreError, Notice, UnsupportedOption
from kvcore.limits import largest
from kvcore.params import MODEL, Params, optional
from kvcore.plan import Plan, plan
from kvcore.scenario import Scenario, allocated, per_replica
from kvcore.scenario_params import PLAN, scenario_of

Json = dict[str, Any]
Change = Mapping[str, object]
"""Parameters of a plan to set; None takes one away."""

TRAFFIC: Final = frozenset({"traffic_context", "traffic_mean", "common_prefix"})
"""What levers ask beside a plan: tokens that requests really need (their 99th
percentile, say), the mean tokens of one, and a beginning all of them share."""

DRAFT: Final = frozenset({"draft"} | {f"draft_{name}" for name in MODEL})

VERDICTS: Final = ("does_not_fit", "tight", "fits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A scenario and its plan, without the fewest GPUs."""

    scenario: Scenario
    plan: Plan

    @property
    def fits(self) -> bool:
        return self.plan.verdict != "does_not_fit"

    @property
    def needed_bytes(self) -> int:
        """What the fullest rank must hold: weights, reserve and cache."""
        rank = self.plan.rank
        return rank.weight_bytes + rank.reserve_bytes + self.plan.needed_bytes

    @property
    def rating(self) -> tuple[int, int, int, int]:
        """Larger is better: verdict, requests, context, bytes left."""
        return (
            VERDICTS.index(self.plan.verdict),
            self.plan.max_requests,
            self.plan.max_context,
            -self.plan.short_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One lever here: what to change, what that plans as, or why it is no use."""

    lever: str
    change: Change | None = None
    planned: Planned | None = None
    reason: str | None = None
    error: KvcoreError | None = None
    figures: Mapping[str, object] = field(default_factory=dict)
    source: str | None = None
    """Whose word it is here, where that is not the lever's own source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The scenario levers start from, as parameters of a plan and as planned."""

    given: Mapping[str, object]
    now: Planned
    traffic_context: int | None
    traffic_mean: int | None
    common_prefix: int | None
    asked: int
    """Requests at once; where the engine never runs as many, `now` is of fewer."""

    @property
    def fewer(self) -> Change:
        """What has to change to be planned at all."""
        most = self.scenario.concurrency
        return {} if most == self.asked else {"concurrency": most}

    @property
    def scenario(self) -> Scenario:
        return self.now.scenario

    @property
    def fits(self) -> bool:
        return self.now.fits

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What a reader must know of the plan that levers are compared with."""
        if not self.fewer:
            return self.now.plan.notices
        requests = {"asked": self.asked, "requests": self.scenario.concurrency}
        planned = Notice("fewer_requests_planned", requests)
        return (planned, *self.now.plan.notices)

    @property
    def options(self) -> dict[str, object]:
        """The engine's options as they were given."""
        given = self.given.get("engine_options")
        return dict(given) if isinstance(given, Mapping) else {}

    def replanned(self, change: Change) -> Planned:
        """The changed scenario, planned as the `plan` of the api plans it."""
        return planned(applied(self.given, change))

    def row(
        self,
        lever: str,
        change: Change,
        *,
        reason: str | None = None,
        figures: Mapping[str, object] | None = None,
    ) -> Row:
        """The row of a change; `refused` where model or engine will not have it."""
        change = {
            name: value
            for name, value in change.items()
            if value is not None or self.given.get(name) is not None
        }
        try:
            found = self.replanned(change)
        except KvcoreError as error:
            if self.fewer and "concurrency" not in change:
                more = {**change, **self.fewer}
                return self.row(lever, more, reason=reason, figures=figures)
            return Row(
                lever=lever,
                change=change,
                reason="refused",
                error=error,
                figures=figures or {},
            )
        return Row(
            lever=lever,
            change=change,
            planned=found,
            reason=reason or (None if self.buys(found) else "buys_nothing"),
            figures=figures or {},
        )

    def best(
        self,
        lever: str,
        changes: Iterable[Change],
        *,
        otherwise: str,
        first_that_fits: bool = False,
        figures: Mapping[str, object] | None = None,
    ) -> Row:
        """The change that plans best, of those that buy anything if some do.

        `otherwise` is why there is none to try.
        """
        rows = []
        for change in changes:
            row = self.row(lever, change, figures=figures)
            rows.append(row)
            if first_that_fits and not row.reason and row.planned and row.planned.fits:
                break
        if not rows:
            return Row(lever=lever, reason=otherwise, figures=figures or {})
        return max(
            rows,
            key=lambda row: (
                row.reason is None,
                row.planned.rating if row.planned else (),
            ),
        )

    def buys(self, found: Planned) -> bool:
        """Whether anything is better, and neither the verdict nor requests worse."""
        now, then = self.now.plan, found.plan
        verdict = VERDICTS.index(then.verdict) - VERDICTS.index(now.verdict)
        better = (
            then.max_requests > now.max_requests
            or then.max_context > now.max_context
            or then.short_bytes < now.short_bytes
            or found.needed_bytes < self.now.needed_bytes
        )
        kept = not verdict and then.max_requests >= now.max_requests
        return verdict > 0 or (kept and better)


def applied(given: Mapping[str, object], change: Change) -> dict[str, object]:
    """The parameters of the changed scenario."""
    return {
        name: value for name, value in {**given, **change}.items() if value is not None
    }


def planned(given: Mapping[str, object]) -> Planned:
    """A scenario planned, its fewest GPUs left out: no lever shows them."""
    scenario = scenario_of(Params(given, PLAN))
    return Planned(scenario=scenario, plan=plan(scenario, fewest=False))


def start_of(given: Mapping[str, object]) -> Start:
    """The scenario of an api call, and what is known of its traffic."""
    params = Params(given, PLAN | TRAFFIC)
    asked = {name: value for name, value in given.items() if name not in TRAFFIC}
    scenario = scenario_of(Params(asked, PLAN))
    requests = scenario.concurrency
    try:
        found = plan(scenario)
    except UnsupportedOption:
        most = most_at_once(scenario)
        if not most:
            raise
        scenario = replace(scenario, concurrency=most)
        found = plan(scenario)
    return Start(
        given=asked,
        now=Planned(scenario=scenario, plan=found),
        asked=requests,
        traffic_context=optional(params, "traffic_context", 1),
        traffic_mean=optional(params, "traffic_mean", 1),
        common_prefix=optional(params, "common_prefix", 1),
    )


def most_at_once(scenario: Scenario) -> int:
    """The most requests up to those asked for that the engine runs at once."""

    def runs(requests: int) -> bool:
        fewer = replace(scenario, concurrency=requests)
        try:
            allocated(fewer, per_replica(fewer), fewer.context)
        except KvcoreError:
            return False
        return True

    return largest(runs, scenario.concurrency, scenario.concurrency)
