"""The whole hit-rate curve of an LRU cache of prefix blocks in one pass.

An LRU cache of any size holds the top of one and the same stack, in which every use
moves a block to the top (Mattson et al., 1970). So the size from which on a block would
have been found is its stack distance: all that lies above it, itself included, at the
moment it is asked for. One pass that adds up stack distances gives the hits of every
size at once.

Two facts make the pass fast on a tree of prefixes:

* An engine frees the blocks of a request from its end, so a request puts its path on
  the stack with the first block on top. A block is used whenever one below it in the
  tree is; hence parents lie above their children, plain LRU always evicts leaves, and
  what is found of a path is a prefix of it.
* What a request has left on the stack is one contiguous run: later requests take some
  prefix of its path away, never a part in the middle. So it is enough to know, for
  every block, which request used it last: along a path these numbers never rise, equal
  ones are a run, and the stack distance of its n-th block is the weight of all
  requests since, plus n. The weights are in a Fenwick tree by request, so a path costs
  a logarithm for each run, not for each block.

Weights are whole units: a block of tokens is one (none where only states take memory),
and what a request keeps beside its blocks (window, state) some more, lying just below
the last block it belongs to.

`Stack` knows nothing of tokens: nodes come with `ends`, the number of units in all
nodes before each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from kvcore.reuse.curve import Tally


class Stack:
    """The LRU stack, and what has been found on it at which distance.

    `hits` counts blocks that need not be computed, `found` units that were there,
    `wanted` units that were asked for, as far as a cache has room for them. With
    `checkpoints_only` a hit must end where a state was kept. Stacks that are given the
    same tallies count together.
    """

    def __init__(
        self,
        *,
        block_cost: int = 1,
        checkpoints_only: bool = False,
        hits: Tally | None = None,
        found: Tally | None = None,
        wanted: Tally | None = None,
    ) -> None:
        self.hits = hits or Tally()
        self.found = found or Tally()
        self.wanted = wanted or Tally()
        self._cost = block_cost
        self._checkpoints_only = checkpoints_only
        self._last: list[int] = [0]
        self._tails: dict[int, int] = {}
        self._sums = [0]
        self._total = 0

    @property
    def distinct(self) -> int:
        """Units of all that was ever asked for."""
        return self._total

    def use(
        self,
        nodes: Sequence[int],
        ends: Sequence[int],
        usable: int,
        tails: Mapping[int, int],
        *,
        counted: bool = True,
    ) -> None:
        """A request uses a path of nodes; `usable` blocks of it may be hits.

        `tails` are units kept at some of the nodes, by their place in the path.
        """
        users = self._users(nodes)
        start = hit = weight = moved = 0
        while start < len(users):
            user = -users[start]
            end = bisect_right(users, -user, start)
            kept = self._kept(nodes, start, end) if user and self._tails else []
            held = self._cost * (ends[end] - ends[start]) + sum(u for _, u in kept)
            if user:
                if counted:
                    base = self._total - self._sum(user)
                    self.found.ramp(base, held)
                    hit = self._count(start, end, kept, ends, usable, base, hit)
                self._add(user, -held)
                moved += held
            weight += held
            start = end
        weight += self._leave(nodes, tails)
        if counted:
            self.wanted.ramp(0, weight)
        self._total += weight - moved
        self._push(weight)

    def _users(self, nodes: Sequence[int]) -> list[int]:
        """Who used each node last, negative so that they ascend; 0: nobody."""
        last = self._last
        if nodes and len(last) <= (top := max(nodes)):
            last.extend([0] * (top + 1 - len(last)))
        return [-last[node] for node in nodes]

    def _leave(self, nodes: Sequence[int], tails: Mapping[int, int]) -> int:
        """Marks the nodes as this request's; units that were not kept there before."""
        last, me, more = self._last, len(self._sums), 0
        for node in nodes:
            last[node] = me
        for place, units in tails.items():
            before = self._tails.get(nodes[place], 0)
            if units > before:
                self._tails[nodes[place]] = units
                more += units - before
        return more

    def _kept(
        self, nodes: Sequence[int], start: int, end: int
    ) -> list[tuple[int, int]]:
        """(place, units) of what is kept beside the blocks of a run."""
        tails = self._tails
        return [(n, tails[nodes[n]]) for n in range(start, end) if nodes[n] in tails]

    def _count(
        self,
        start: int,
        end: int,
        kept: list[tuple[int, int]],
        ends: Sequence[int],
        usable: int,
        base: int,
        hit: int,
    ) -> int:
        """Adds up the hits in a run that begins at distance `base`.

        `hit` is how many blocks lie before the last checkpoint so far.
        """
        blocks = ends[start]
        for place, units in kept:
            after = ends[place + 1]
            if not self._checkpoints_only:
                self.hits.ramp(base, min(after, usable) - blocks)
            base += self._cost * (after - blocks) + units
            blocks = after
            if self._checkpoints_only and hit < after <= usable:
                self.hits.jump(base, after - hit)
                hit = after
        if not self._checkpoints_only:
            self.hits.ramp(base, min(ends[end], usable) - blocks)
        return hit

    def _push(self, weight: int) -> None:
        """A new request's weight at the end of the Fenwick tree."""
        sums, place, step = self._sums, len(self._sums), 1
        lowest = place & -place
        while step < lowest:
            weight += sums[place - step]
            step <<= 1
        sums.append(weight)

    def _sum(self, place: int) -> int:
        """The weights of all requests up to this one."""
        sums, found = self._sums, 0
        while place:
            found += sums[place]
            place &= place - 1
        return found

    def _add(self, place: int, amount: int) -> None:
        sums, size = self._sums, len(self._sums)
        while place < size:
            sums[place] += amount
            place += place & -place
