"""Caches whose hits have to be replayed for every size on its own.

What a request brings in is one contiguous run of its path, and is evicted from the end
of that run, as an engine frees the blocks of a request. So a cache is a set of runs: it
is enough to know of every node which run has it and of every run where it ends now, in
blocks of the engine, however long the trace's are. A request costs a look at each of
its nodes and some work for each run on its path, not for each block.

A window or state that is kept with the last block of a prompt (its tail) leaves whole,
before that block. The blocks of the running request are never evicted; what finds no
room is not kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from kvcore.reuse.paths import Path, Tree


class Run:
    """The blocks from `start` to `end` of a path, as far as they are still there."""

    __slots__ = ("end", "path", "start")

    def __init__(self, path: Path, start: int, end: int) -> None:
        self.path = path
        self.start = start
        self.end = end


class Replay(ABC):
    """A cache of `size` units. `hits` are blocks, `evicted` and `used` units."""

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
        self._tails: dict[int, int] = {}
        """Units kept with the last block of a node, by node."""

    @abstractmethod
    def use(
        self, path: Path, tail: int, time: float = 0.0, *, counted: bool = True
    ) -> None:
        """A request uses its path; `tail` units are kept with the last block."""

    def _count(self, path: Path, there: int, *, counted: bool) -> None:
        """Of a path, its first `there` blocks are in the cache."""
        if not counted:
            self.evicted = 0
            return
        found = min(there, path.usable)
        if self._checkpoints_only:
            found = self._checkpoint(path, found)
        self.hits += found

    def _checkpoint(self, path: Path, found: int) -> int:
        """Where the last state of the first blocks is."""
        tails, nodes, ends = self._tails, path.nodes, path.ends
        for place in range(self._places(found) - 1, -1, -1):
            if nodes[place] in tails and (end := ends[place + 1]) <= found:
                return end
        return 0

    def _places(self, blocks: int) -> int:
        """How many nodes of a path the first blocks end in."""
        return -(-blocks * self._tree.block // self._tree.trace_block)

    def _held(self, path: Path, blocks: int) -> int:
        """Units of so many blocks of a path, and of all tails on it."""
        held, tails = self._cost * blocks, self._tails
        if tails:
            held += sum([tails[node] for node in path.nodes if node in tails])
        return held

    def _fitting(self, mine: int, blocks: int) -> int:
        """How many more blocks the running request has room for."""
        return min(blocks, (self.size - mine) // self._cost) if self._cost else blocks

    def _keep_tail(self, path: Path, tail: int, mine: int) -> None:
        """Keeps a window or state with the last block, if there is room."""
        node = path.nodes[-1]
        more = tail - self._tails.get(node, 0)
        if 0 < more <= self.size - mine:
            self._make_room(self.size - more, path)
            self._tails[node] = tail
            self.used += more

    @abstractmethod
    def _make_room(self, most: int, path: Path) -> None:
        """Evicts what is next until `most` units are used, but nothing of the path."""

    def _shrink(
        self, run: Run, floor: int, most: int, stops: Collection[int] = ()
    ) -> bool:
        """Evicts from the end of a run until `most` units are used, or its floor.

        Ends after a tail, and at nodes of `stops`: then the answer is False.
        """
        tails, cost, ends, nodes = (
            self._tails, self._cost, run.path.ends, run.path.nodes,
        )  # fmt: skip
        end = run.end
        low = max(floor, end - -(-(self.used - most) // cost)) if cost else floor
        stop = 0
        if tails or stops:
            for place in range(self._places(end) - 1, self._places(low + 1) - 2, -1):
                node = nodes[place]
                if (node in stops or node in tails) and low < ends[place + 1] <= end:
                    stop = node
                    low = ends[place + 1]
                    break
        run.end = low
        self._free(cost * (end - low))
        if stop in stops:
            return False
        if stop and self.used > most:
            self._free(tails.pop(stop))
        return True

    def _free(self, units: int) -> None:
        self.used -= units
        self.evicted += units
