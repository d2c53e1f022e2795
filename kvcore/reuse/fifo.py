"""First in, first out: what came in first leaves first, used since or not.

Evicted from its end, a prompt comes in again with another run, and so on: the blocks of
a path may be of several runs, those of one node too, and some in between may be gone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import groupby

from kvcore.reuse.paths import Path, Tree
from kvcore.reuse.replays import Replay, Run


class _Entry(Run):
    """A run; `front` has the blocks of its first node before its start."""

    __slots__ = ("front",)

    def __init__(self, path: Path, start: int, end: int) -> None:
        super().__init__(path, start, end)
        self.front: _Entry | None = None


class Fifo(Replay):
    """A request's blocks come in from its end."""

    def __init__(
        self, size: int, tree: Tree, *, block_cost: int, checkpoints_only: bool
    ) -> None:
        super().__init__(
            size, tree, block_cost=block_cost, checkpoints_only=checkpoints_only
        )
        self._entries: list[_Entry | None] = [None]
        """The last run that brought in a block of a node, by node."""
        self._queue: deque[_Entry] = deque()

    def use(
        self, path: Path, tail: int, time: float = 0.0, *, counted: bool = True
    ) -> None:
        gaps = self._gaps(path)
        self._count(path, gaps[0][0] if gaps else path.blocks, counted=counted)
        missing = sum([high - low for low, high in gaps])
        mine = self._held(path, path.blocks - missing)
        room = self._fitting(mine, missing)
        if room:
            more = self._cost * room
            if self.used + more > self.size:
                self._make_room(self.size - more, path)
            self._enter(path, gaps, room)
            self.used += more
            mine += more
        if tail and room == missing:
            self._keep_tail(path, tail, mine)

    def _gaps(self, path: Path) -> list[tuple[int, int]]:
        """The blocks of a path that are not there, as pairs of start and end."""
        entries, ends = self._entries, path.ends
        if new := len(self._tree.parents) - len(entries):
            entries += [None] * new
        gaps: list[tuple[int, int]] = []
        place = 0
        for entry, group in groupby([entries[node] for node in path.nodes]):
            start, place = place, place + len(list(group))
            _add_missing(gaps, entry, ends[start], ends[place])
        return gaps

    def _enter(self, path: Path, gaps: list[tuple[int, int]], room: int) -> None:
        """Takes in the first blocks that are missing, the last of them first."""
        came = []
        for low, high in gaps:
            if room:
                end = min(high, low + room)
                room -= end - low
                came.append(self._entered(path, low, end))
        self._queue.extend(reversed(came))

    def _entered(self, path: Path, low: int, high: int) -> _Entry:
        entries, ends, nodes = self._entries, path.ends, path.nodes
        first, last = self._places(low + 1) - 1, self._places(high) - 1
        entry = _Entry(path, low, high)
        if low > ends[first]:
            front = entries[nodes[first]]
            while front is not None and front.start >= low:
                front = front.front
            entry.front = front
        back = None
        if high < ends[last + 1]:
            other = entries[nodes[last]]
            while other is not None and other.start >= high:
                back = other if other.end > other.start else back
                other = other.front
        for node in nodes[first : last + (back is None)]:
            entries[node] = entry
        if back is not None:
            back.front = entry
        return entry

    def _make_room(self, most: int, path: Path) -> None:
        queue, passed = self._queue, []
        while self.used > most:
            entry = queue[0]
            floor = self._common(entry, path)
            while self.used > most and entry.end > floor:
                self._shrink(entry, floor, most)
            if entry.end <= entry.start:
                queue.popleft()
                entry.path = _GONE
            elif self.used > most:
                passed.append(queue.popleft())
        queue.extendleft(reversed(passed))

    def _common(self, entry: _Entry, path: Path) -> int:
        """Up to where a run is of this path as well: those blocks are in use."""
        ours, theirs = path.nodes, entry.path.nodes
        first = self._places(entry.start + 1) - 1
        if first >= len(ours) or ours[first] != theirs[first]:
            return entry.start
        last = min(self._places(entry.end), len(ours))
        place = bisect_left(
            range(first, last), True, key=lambda n: ours[n] != theirs[n]
        )
        return min(entry.end, max(entry.start, path.ends[first + place]))


_GONE = Path([], 0, 0, [0], 0)
"""In place of the path of a run that is gone: other nodes may still name the run."""


def _add_missing(
    gaps: list[tuple[int, int]], entry: _Entry | None, low: int, high: int
) -> None:
    """Of blocks that belong to a run, or to what comes before it, those not there."""
    if entry is not None:
        if low < entry.start:
            _add_missing(gaps, entry.front, low, min(entry.start, high))
            low = entry.start
        low = max(low, entry.end)
    if low < high:
        if gaps and gaps[-1][1] == low:
            low, _ = gaps.pop()
        gaps.append((low, high))
