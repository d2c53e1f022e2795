"""What is asked of a trace, and what has been found of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from kvcore.reuse.costs import Costs
from kvcore.reuse.curve import Curve
from kvcore.reuse.priority import Retention
from kvcore.reuse.routing import Routing
from kvcore.reuse.survey import Survey

Policy = Literal["lru", "fifo", "priority"]
POLICIES: Final[tuple[Policy, ...]] = ("lru", "fifo", "priority")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to find out. `sizes` are cache sizes in units to be answered exactly.

    `warmup` is the share of requests that fill the cache before hits are counted; one
    in `sample` blocks is in the sample (0: no sample), `pace` output tokens a
    second of one request, where running requests follow from the trace's times.
    """

    costs: Costs
    policy: Policy = "lru"
    replicas: int = 1
    routing: Routing = "random"
    retentions: tuple[Retention, ...] = ()
    warmup: float = 0.0
    sample: int = 0
    pace: float | None = None
    budgets: tuple[int, ...] = ()
    """Bytes of pools of one replica, the scenario's own one first if it has one."""
    in_flight: float | None = None
    """Requests running at once, over all replicas, where no pace and times tell."""

    @property
    def replayed(self) -> bool:
        """Whether one pass does not give all sizes: priorities alike are LRU."""
        return self.policy == "fifo" or bool(self.retentions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Blocks found, and units evicted, in a cache of `size` units."""

    size: int
    hits: int
    evicted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What caches of every size (LRU), or of some (`counts`), found.

    `blocks` is 1 but for estimates, see below.
    """

    hits: Curve
    found: Curve
    wanted: Curve
    distinct: tuple[int, ...]
    before: tuple[int, ...]
    """Units seen while the cache was being filled, of each replica."""
    blocks: float = 1.0
    """All blocks for each block that was looked at."""
    counts: tuple[Count, ...] = ()

    def at(self, size: int) -> Count:
        """A cache of that size: what was replayed, else the LRU curve."""
        for count in self.counts:
            if count.size == size:
                return count
        return self.lru(size)

    def lru(self, size: int) -> Count:
        held = sum(
            min(size, after) - min(size, before)
            for after, before in zip(self.distinct, self.before, strict=True)
        )
        evicted = self.wanted.at(size) - self.found.at(size) - held
        return Count(
            size=size,
            hits=round(self.hits.at(size) * self.blocks),
            evicted=round(evicted * self.blocks),
        )

    @property
    def ceiling(self) -> Count:
        """A cache without end."""
        return self.lru(self.full)

    @property
    def full(self) -> int:
        """The least size that finds all there is to find."""
        return self.hits.full

    def least(self, share: float) -> int:
        """The least size of an LRU cache that finds so much of the ceiling."""
        return self.hits.least(ceil(self.hits.most * share - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a pass has found: `rows` are other numbers of replicas and routings."""

    survey: Survey
    hits: Hits
    tokens: int
    """Of the counted prompts."""
    exact: bool
    read: float
    """The share of the trace that this is about."""
    unique_blocks: int
    accesses: int
    rows: tuple[tuple[int, Routing, Hits], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far the work is, and what has been found if a pass is done."""

    phase: Literal["sampled", "exact"]
    share: float
    found: Found | None = None


def running_bytes(question: Question, survey: Survey, replicas: int) -> int:
    """Bytes that running requests take of the pool of one replica."""
    if not survey.requests:
        return 0
    if question.pace and survey.span:
        return round(survey.running_bytes / survey.span / replicas)
    mean = survey.running_bytes / survey.seconds if survey.seconds else 0.0
    return round((question.in_flight or 1.0) * mean / replicas)


def cache_units(question: Question, survey: Survey, budget: int, replicas: int) -> int:
    """Units that a pool has for what is not running."""
    left = budget - running_bytes(question, survey, replicas)
    return max(left, 0) // question.costs.unit
