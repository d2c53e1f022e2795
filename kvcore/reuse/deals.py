"""Requests dealt out to replicas, each with caches of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kvcore.reuse.curve import Tally
from kvcore.reuse.fifo import Fifo
from kvcore.reuse.findings import Count, Hits, Question
from kvcore.reuse.lru import Stack
from kvcore.reuse.paths import Path, Tree
from kvcore.reuse.priority import PriorityLru
from kvcore.reuse.replays import Replay
from kvcore.reuse.routing import Router, Routing


@dataclass(slots=True)
class _Replica:
    stack: Stack
    replays: list[Replay]
    before: int = 0
    counting: bool = False


@dataclass(slots=True)
class Deal:
    """Requests dealt out to replicas, each with its own caches."""

    question: Question
    tree: Tree
    count: int
    routing: Routing
    sizes: Sequence[int]
    router: Router = field(init=False)
    replicas: list[_Replica] = field(init=False)

    def __post_init__(self) -> None:
        self.router = Router(self.count, self.routing)
        tallies = Tally(), Tally(), Tally()
        self.replicas = [self._replica(*tallies) for _ in range(self.count)]

    def _replica(self, hits: Tally, found: Tally, wanted: Tally) -> _Replica:
        costs = self.question.costs
        stack = Stack(
            block_cost=costs.block_cost,
            checkpoints_only=costs.checkpoints_only,
            hits=hits,
            found=found,
            wanted=wanted,
        )
        return _Replica(stack, [self._replay(size) for size in self.sizes])

    def _replay(self, size: int) -> Replay:
        costs, question = self.question.costs, self.question
        if question.policy == "fifo":
            return Fifo(
                size,
                self.tree,
                block_cost=costs.block_cost,
                checkpoints_only=costs.checkpoints_only,
            )
        return PriorityLru(
            size,
            self.tree,
            block_cost=costs.block_cost,
            checkpoints_only=costs.checkpoints_only,
            retentions=question.retentions,
        )

    def use(
        self,
        number: int,
        path: Path,
        tails: dict[int, int],
        time: float,
        *,
        counted: bool,
    ) -> None:
        replica = self.replicas[self.router.replica(number, path)]
        if counted and not replica.counting:
            replica.counting = True
            replica.before = replica.stack.distinct
        replica.stack.use(path.nodes, path.ends, path.usable, tails, counted=counted)
        tail = sum(tails.values())
        for replay in replica.replays:
            replay.use(path, tail, time, counted=counted)

    def hits(self) -> Hits:
        first = self.replicas[0].stack
        return Hits(
            hits=first.hits.curve(),
            found=first.found.curve(),
            wanted=first.wanted.curve(),
            distinct=tuple(r.stack.distinct for r in self.replicas),
            before=tuple(
                r.before if r.counting else r.stack.distinct for r in self.replicas
            ),
            counts=tuple(
                Count(
                    size=size,
                    hits=sum(r.replays[n].hits for r in self.replicas),
                    evicted=sum(r.replays[n].evicted for r in self.replicas),
                )
                for n, size in enumerate(self.sizes)
            ),
        )
