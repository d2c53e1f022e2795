"""Policies whose hits have to be replayed for every size of the cache on its own.

Blocks enter and leave as nodes of the tree: where the trace's blocks are longer than
the engine's, all engine blocks in one of them leave together. The blocks of the running
request are never evicted; what finds no room is not kept.

FIFO takes out what came in first. TensorRT-LLM's policy takes out a leaf of the lowest
priority, of these the one that was released first; a priority with a duration falls
back to 35 when it ends, to the end of that queue.

Source: cpp/tensorrt_llm/batch_manager/evictionPolicy.cpp (LRUEvictionPolicy).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from kvcore.reuse.paths import Path, Tree

LOWEST: Final = 0
DEFAULT: Final = 35
HIGHEST: Final = 100
FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """A priority for the tokens from `start` to `end`, for so many seconds."""

    start: int
    end: int | None
    priority: int
    seconds: float | None = None


class Replay(ABC):
    """A cache of `size` units. `hits` are blocks, `evicted` units."""

    def __init__(
        self, size: int, tree: Tree, *, block_cost: int, checkpoints_only: bool
    ) -> None:
        self.size = size
        self.hits = 0
        self.evicted = 0
        self.used = 0
        self._tree = tree
        self._cost = block_cost
        self._checkpoints_only = checkpoints_only
        self._weights: OrderedDict[int, int] = OrderedDict()
        self._tails: dict[int, int] = {}

    def use(
        self,
        path: Path,
        weights: Sequence[int],
        tail: int,
        time: float = 0.0,
        *,
        counted: bool = True,
    ) -> None:
        """A request uses its path of nodes with these weights.

        `tail` are units kept with the last of them.
        """
        nodes = path.nodes
        there = self._prefix(nodes)
        if counted:
            self.hits += self._found(path, there)
        else:
            self.evicted = 0
        self._begin(time)
        self._take(nodes, weights, there)
        if tail and nodes and nodes[-1] in self._weights:
            self._keep(nodes, tail)
        self._release(nodes)

    def _take(self, nodes: Sequence[int], weights: Sequence[int], there: int) -> None:
        """Takes in the nodes from `there` on, as many as there is room for."""
        kept = self._weights
        places = [n for n in range(there, len(nodes)) if nodes[n] not in kept]
        more = sum([weights[n] for n in places])
        if self.used + more > self.size:
            mine = sum([kept.get(node, 0) for node in nodes])
            while places and mine + more > self.size:
                more -= weights[places.pop()]
            self._make_room(more, nodes)
        if places:
            self.used += more
            self._enter([nodes[n] for n in places], [weights[n] for n in places])

    def _keep(self, nodes: Sequence[int], tail: int) -> None:
        """Keeps a window or state with the last node, if there is room."""
        more = tail - self._tails.get(nodes[-1], 0)
        if more > 0 and self._make_room(more, nodes):
            self._tails[nodes[-1]] = tail
            self._weights[nodes[-1]] += more
            self.used += more

    @abstractmethod
    def _prefix(self, nodes: Sequence[int]) -> int:
        """How many nodes of a path, from its start, are in the cache."""

    def _found(self, path: Path, there: int) -> int:
        found = min(path.ends(there), path.usable)
        if not self._checkpoints_only:
            return found
        ends = [
            end
            for place in range(there)
            if self._tails.get(path.nodes[place])
            and (end := path.ends(place + 1)) <= found
        ]
        return max(ends, default=0)

    def _make_room(self, more: int, pinned: Sequence[int]) -> bool:
        if more > self.size:
            return False
        while self.used + more > self.size:
            victim = self._victim(pinned)
            if victim is None:
                return False
            self._evict(victim)
        return True

    def _evict(self, node: int) -> None:
        weight = self._weights.pop(node)
        self._tails.pop(node, None)
        self.used -= weight
        self.evicted += weight

    def _is_pinned(self, node: int, pinned: Sequence[int]) -> bool:
        depth = self._tree.depths[node]
        return depth < len(pinned) and pinned[depth] == node

    @abstractmethod
    def _victim(self, pinned: Sequence[int]) -> int | None:
        """What leaves next."""

    def _begin(self, time: float) -> None:  # noqa: B027
        """Before a request's blocks are taken."""

    def _enter(self, nodes: Sequence[int], weights: Sequence[int]) -> None:
        """A part of a path comes in."""
        self._weights.update(zip(nodes, weights, strict=True))

    def _release(self, nodes: Sequence[int]) -> None:  # noqa: B027
        """A request gives its blocks back, from the end."""


class Fifo(Replay):
    """First in, first out; a request's blocks come in from its end."""

    def _prefix(self, nodes: Sequence[int]) -> int:
        weights = self._weights
        for place, node in enumerate(nodes):
            if node not in weights:
                return place
        return len(nodes)

    def _enter(self, nodes: Sequence[int], weights: Sequence[int]) -> None:
        self._weights.update(zip(nodes[::-1], weights[::-1], strict=True))

    def _victim(self, pinned: Sequence[int]) -> int | None:
        for node in self._weights:
            if not self._is_pinned(node, pinned):
                return node
        return None


Rank = tuple[int, float, int, int, int]
"""Priority, when it was released, by which request, how deep (deepest first), node."""


class PriorityLru(Replay):
    """The lowest priority first, then the least recently released; leaves only.

    Without retentions all have priority 35, which is LRU.
    """

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
        self._retentions = tuple(retentions)
        self._children: dict[int, int] = {}
        self._released: dict[int, tuple[float, int]] = {}
        self._leaves: list[Rank] = []
        self._expiring: list[tuple[float, int]] = []
        self._now = 0.0
        self._request = 0

    def _prefix(self, nodes: Sequence[int]) -> int:
        """Parents of what is kept are kept: the paths in the cache are a tree."""
        weights = self._weights
        return bisect_left(
            range(len(nodes)), True, key=lambda place: nodes[place] not in weights
        )

    def _begin(self, time: float) -> None:
        self._now = max(self._now, time)
        self._request += 1
        expiring = self._expiring
        while expiring and expiring[0][0] <= self._now:
            _, node = heappop(expiring)
            self._offer(node)

    def _enter(self, nodes: Sequence[int], weights: Sequence[int]) -> None:
        super()._enter(nodes, weights)
        parent = self._tree.parents[nodes[0]]
        self._children[parent] = self._children.get(parent, 0) + 1
        self._children.update(dict.fromkeys(nodes[:-1], 1))

    def _release(self, nodes: Sequence[int]) -> None:
        kept = self._prefix(nodes)
        mark = (self._now, self._request)
        self._released.update(dict.fromkeys(nodes[:kept], mark))
        if kept:
            self._offer(nodes[kept - 1])

    def _offer(self, node: int) -> None:
        """Puts a leaf into the queue that it now belongs to."""
        if node in self._children or node not in self._released:
            return
        rank = self._rank(node)
        heappush(self._leaves, rank)
        expires = self._expires(node)
        if self._now < expires < FOREVER:
            heappush(self._expiring, (expires, node))

    def _retention(self, node: int) -> Retention | None:
        first = self._tree.depths[node] * self._tree.trace_block
        for rule in self._retentions:
            if rule.start <= first and (rule.end is None or first < rule.end):
                return rule
        return None

    def _expires(self, node: int) -> float:
        rule = self._retention(node)
        if rule is None or rule.seconds is None or rule.priority == DEFAULT:
            return FOREVER
        return self._released[node][0] + rule.seconds

    def _rank(self, node: int) -> Rank:
        """Where a released leaf stands at this moment."""
        time, request = self._released[node]
        deep = -self._tree.depths[node]
        rule = self._retention(node)
        if rule is None:
            return (DEFAULT, time, request, deep, node)
        expires = self._expires(node)
        if expires <= self._now:
            return (DEFAULT, expires, request, deep, node)
        return (rule.priority, time, request, deep, node)

    def _make_room(self, more: int, pinned: Sequence[int]) -> bool:
        """Evicts leaves; a branch goes on leaving while its parents are next anyway."""
        most = self.size - more
        while self.used > most:
            node = self._victim(pinned)
            if node is None:
                return False
            self._prune(node, most, pinned)
        return True

    def _prune(self, node: int, most: int, pinned: Sequence[int]) -> None:
        """Evicts a leaf, and its parents as long as they come next.

        What one request has left has places next to each other in the queue, so a
        parent released with its last child follows it.
        """
        parents, children, released = self._tree.parents, self._children, self._released
        while True:
            self._evict(node)
            mark, parent = released.pop(node), parents[node]
            left = children[parent] - 1
            if left:
                children[parent] = left
                return
            del children[parent]
            if parent not in released:
                return
            node = parent
            if (
                self.used <= most
                or released[node] != mark
                or self._retentions
                or self._is_pinned(node, pinned)
            ):
                self._offer(node)
                return

    def _victim(self, pinned: Sequence[int]) -> int | None:
        leaves = self._leaves
        while leaves:
            rank = heappop(leaves)
            node = rank[-1]
            if node in self._children or node not in self._released:
                continue
            if self._rank(node) == rank and not self._is_pinned(node, pinned):
                return node
        return None
