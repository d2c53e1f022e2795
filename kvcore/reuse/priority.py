"""TensorRT-LLM's policy: least recently used, but by priority and leaves first.

Of the blocks that no kept block follows, one of the lowest priority leaves, of these
the one that was released first; a priority with a duration falls back to 35 when it
ends, to the end of that queue. Where all have the same priority that is LRU.

A request makes all it finds its own, so what an earlier one still has is a run that
hangs below: the end of a run is a leaf unless others hang there, and the run that leads
its queue is evicted from its end as far as its priority reaches.

Source: cpp/tensorrt_llm/batch_manager/evictionPolicy.cpp (LRUEvictionPolicy).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple

from kvcore.reuse.paths import Path, Tree
from kvcore.reuse.replays import Replay, Run

LOWEST: Final = 0
DEFAULT: Final = 35
HIGHEST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """A priority for the tokens from `start` to `end`, for so many seconds."""

    start: int
    end: int | None
    priority: int
    seconds: float | None = None


_Rank = tuple[int, float, int]
"""Of the end of a run among those that may leave: priority, since when, request."""


class _Level(NamedTuple):
    """The blocks from `start` on have a priority, for so many seconds."""

    start: int
    priority: int
    seconds: float | None


class _Released(Run):
    """What is left of a request, released at a time; its place in the queue."""

    __slots__ = ("rank", "time")

    def __init__(self, path: Path, end: int, time: float) -> None:
        super().__init__(path, 0, end)
        self.time = time
        self.rank: _Rank | None = None


class PriorityLru(Replay):
    """The lowest priority first, then the least recently released; leaves only."""

    def __init__(
        self,
        size: int,
        tree: Tree,
        *,
        block_cost: int,
        checkpoints_only: bool,
        retentions: Sequence[Retention] = (),
    ) -> None:
        super().__init__(
            size, tree, block_cost=block_cost, checkpoints_only=checkpoints_only
        )
        self._levels = _levels(retentions, tree.block)
        self._starts = [level.start for level in self._levels]
        self._users: list[int] = [0]
        """The request that used a node last, by node."""
        self._runs: dict[int, _Released] = {}
        """By request; of each what no later one has used."""
        self._hanging: dict[int, int] = {}
        """How many runs begin below a node, where there are any."""
        self._leaves: list[_Rank] = []
        self._expiring: list[tuple[float, int]] = []
        self._now = 0.0
        self._request = 0

    def use(
        self, path: Path, tail: int, time: float = 0.0, *, counted: bool = True
    ) -> None:
        self._begin(time)
        there = self._take_over(path)
        self._count(path, there, counted=counted)
        if not path.blocks:
            return
        mine = self._held(path, there)
        blocks = there + self._fitting(mine, path.blocks - there)
        me, more = self._request, self._cost * (blocks - there)
        users = self._users
        for node in path.nodes[: self._places(blocks)]:
            users[node] = me
        self._make_room(self.size - more, path)
        self.used += more
        if tail and blocks == path.blocks:
            self._keep_tail(path, tail, mine + more)
        self._runs[me] = _Released(path, blocks, self._now)
        self._settle(me)

    def _begin(self, time: float) -> None:
        self._now = max(self._now, time)
        self._request += 1
        expiring = self._expiring
        while expiring and expiring[0][0] <= self._now:
            _, request = heappop(expiring)
            self._settle(request)

    def _take_over(self, path: Path) -> int:
        """Makes what is there of a path this request's; how many blocks that is."""
        nodes, ends, runs = path.nodes, path.ends, self._runs
        users = self._users
        users += [0] * (len(self._tree.parents) - len(users))
        last = [-users[node] for node in nodes]
        start = there = 0
        while start < len(nodes):
            after = bisect_right(last, last[start], start)
            end = ends[after]
            run = runs.get(-last[start])
            if run is not None:
                self._unhang(run)
                there = min(run.end, end)
                run.start = there
                if run.end > end:
                    self._hang(run)
                else:
                    del runs[-last[start]]
            if there < end:
                break
            start = after
        return there

    def _make_room(self, most: int, path: Path) -> None:
        leaves, runs = self._leaves, self._runs
        while self.used > most:
            rank = leaves[0]
            _, _, request = rank
            run = runs.get(request)
            if run is None or run.rank is not rank:
                heappop(leaves)
                continue
            floor = max(run.start, self._level(run).start)
            free = self._shrink(run, floor, most, self._hanging)
            if not free or run.end == floor:
                heappop(leaves)
                if free:
                    self._settle(request)

    def _settle(self, request: int) -> None:
        """Puts a run in the queue where its end belongs now, if nothing hangs there."""
        run = self._runs.get(request)
        if run is None:
            return
        if run.end <= run.start:
            del self._runs[request]
            if node := self._unhang(run):
                self._settle(self._users[node])
        elif self._above(run, run.end) not in self._hanging:
            self._queue(run, request)

    def _queue(self, run: _Released, request: int) -> None:
        level, since = self._level(run), run.time
        priority = level.priority
        if level.seconds is not None:
            expires = since + level.seconds
            if expires > self._now:
                heappush(self._expiring, (expires, request))
            else:
                priority, since = DEFAULT, expires
        run.rank = (priority, since, request)
        heappush(self._leaves, run.rank)

    def _above(self, run: Run, block: int) -> int:
        """The node that has the block before; 0 at the beginning."""
        return run.path.nodes[self._places(block) - 1] if block else 0

    def _hang(self, run: Run) -> None:
        if run.start:
            node = self._above(run, run.start)
            self._hanging[node] = self._hanging.get(node, 0) + 1

    def _unhang(self, run: Run) -> int:
        """Takes a run off the node it hangs at, and says which that is."""
        if not run.start:
            return 0
        node = self._above(run, run.start)
        left = self._hanging[node] - 1
        if left:
            self._hanging[node] = left
        else:
            del self._hanging[node]
        return node

    def _level(self, run: Run) -> _Level:
        """What holds for the last block of a run."""
        return self._levels[bisect_right(self._starts, run.end - 1) - 1]


def _levels(retentions: Sequence[Retention], block: int) -> list[_Level]:
    """The first rule that covers the first token of a block counts for it."""
    edges = {0}
    for rule in retentions:
        edges |= {-(-rule.start // block)}
        edges |= set() if rule.end is None else {-(-rule.end // block)}
    levels = []
    for start in sorted(edges):
        token = start * block
        rules = (
            rule
            for rule in retentions
            if rule.start <= token and (rule.end is None or token < rule.end)
        )
        found = next(rules, None)
        priority = DEFAULT if found is None else found.priority
        seconds = None if found is None or priority == DEFAULT else found.seconds
        levels.append(_Level(start, priority, seconds))
    return levels
