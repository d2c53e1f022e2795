"""A first look at a trace: its lengths, and an estimate of the curve from a sample.

Blocks are sampled by their ids (SHARDS: Waldspurger et al., FAST 2015): one in so many
ids is looked at, wherever it occurs, and counts for as many. First blocks are all
looked at and count for one: few of them can be most of what is found.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol
from zlib import crc32

from kvcore.reuse.costs import Costs
from kvcore.reuse.curve import Tally
from kvcore.reuse.lru import Stack
from kvcore.reuse.paths import Path
from kvcore.reuse.routing import Router
from kvcore.traces.requests import Request

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
EVERY: Final = 200
"""Requests between two looks at the progress, or"""
EVERY_BLOCKS: Final = 20_000
"""blocks: a long prompt has thousands."""


class Trace(Protocol):
    """Requests that can be gone through several times."""

    name: str
    block_tokens: int

    def __iter__(self) -> Iterator[Request]:
        """The requests in order."""

    @property
    def share(self) -> float:
        """How far the reading is."""


@dataclass(slots=True)
class Survey:
    """What a pass has seen: lengths, times, blocks, and what requests take to run."""

    prompts: array[int] = field(default_factory=lambda: array("q"))
    outputs: array[int] = field(default_factory=lambda: array("q"))
    first_time: float | None = None
    last_time: float | None = None
    running_bytes: int = 0
    seconds: float = 0.0

    def add(self, request: Request, costs: Costs, pace: float | None) -> None:
        self.prompts.append(request.tokens)
        self.outputs.append(request.output)
        held = costs.request_bytes(request.tokens + request.output)
        stays = request.output / pace if pace else 1.0
        self.running_bytes += round(held * stays)
        self.seconds += stays
        if request.time is not None:
            if self.first_time is None:
                self.first_time = request.time
            self.last_time = max(request.time, self.last_time or request.time)

    @property
    def requests(self) -> int:
        return len(self.prompts)

    @property
    def span(self) -> float:
        """Seconds from the first to the last request, 0 where times are not known."""
        if self.first_time is None or self.last_time is None:
            return 0.0
        return max(self.last_time - self.first_time, 0.0)


class Sample:
    """The stacks of one in `each` blocks, in units as if of all; one a replica."""

    def __init__(
        self, costs: Costs, trace_block: int, each: int, router: Router
    ) -> None:
        self.each = each
        tallies = {name: Tally() for name in ("hits", "found", "wanted")}
        self.stacks = [
            Stack(
                block_cost=costs.block_cost,
                checkpoints_only=costs.checkpoints_only,
                **tallies,
            )
            for _ in range(router.replicas)
        ]
        self.blocks = 0
        """Blocks asked for, by the sample; there are `all_blocks`."""
        self.all_blocks = 0
        self.accesses = 0
        """The trace's own blocks asked for."""
        self._router = router
        self._costs = costs
        self._trace_block = trace_block
        self._limit = (1 << 64) // each
        self._numbers: dict[int | str, int] = {}
        self._firsts: set[int | str] = set()

    @property
    def unique_blocks(self) -> int:
        """Ids there are, by the sample."""
        first = len(self._firsts)
        return first + self.each * (len(self._numbers) - first)

    def use(self, number: int, request: Request) -> None:
        """Looks at the sampled blocks of the request of that number."""
        block, trace_block = self._costs.block, self._trace_block
        covered = min(request.tokens, len(request.ids) * trace_block)
        blocks = covered // block
        usable = min((request.tokens - 1) // block, blocks)
        self.all_blocks += blocks
        self.accesses += -(-blocks * block // trace_block)
        numbers, nodes, ends, found = self._numbers, [], [0], 0
        last = -(-blocks * block // trace_block) - 1
        tails = {}
        if last >= 0:
            self._firsts.add(request.ids[0])
        for place in self._sampled(request.ids):
            if place > last:
                break
            stands_for = self.each if place else 1
            after = blocks if place == last else (place + 1) * trace_block // block
            weight = stands_for * (after - place * trace_block // block)
            nodes.append(numbers.setdefault(request.ids[place], len(numbers) + 1))
            ends.append(ends[-1] + weight)
            if after <= usable:
                found = ends[-1]
            if place == last:
                kept = stands_for * self._costs.tail_units(request.tokens)
                tails = {len(nodes) - 1: kept} if kept else {}
        self.blocks += ends[-1]
        path = Path(nodes, ends[-1], found, ends, request.tokens)
        stack = self.stacks[self._router.replica(number, path)]
        stack.use(nodes, ends, found, tails)

    def _sampled(self, ids: list[int] | list[str]) -> list[int]:
        limit = self._limit
        if ids and isinstance(ids[0], str):
            return [
                n
                for n, name in enumerate(ids)
                if not n or (crc32(str(name).encode()) * _GOLDEN & _MASK) < limit
            ]
        return [
            n
            for n, number in enumerate(ids)
            if not n or (number * _GOLDEN & _MASK) < limit  # type: ignore[operator]
        ]
