"""A count that grows with the size of a cache, kept exactly for every size at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass


class Tally:
    """Adds up what is found at which stack distance; `curve` then answers any size."""

    def __init__(self) -> None:
        self._bends: dict[int, int] = {}
        self._jumps: dict[int, int] = {}

    def ramp(self, base: int, count: int) -> None:
        """One at each of the distances base + 1 to base + count."""
        if count > 0:
            bends = self._bends
            bends[base + 1] = bends.get(base + 1, 0) + 1
            bends[base + count + 1] = bends.get(base + count + 1, 0) - 1

    def jump(self, distance: int, amount: int) -> None:
        """`amount` at one distance."""
        if amount > 0:
            self._jumps[distance] = self._jumps.get(distance, 0) + amount

    def curve(self) -> Curve:
        """The running sums."""
        starts, sums, slopes = [0], [0], [0]
        total = slope = 0
        for at in sorted({*self._bends, *self._jumps}):
            total += slope * (at - starts[-1])
            slope += self._bends.get(at, 0)
            total += self._jumps.get(at, 0)
            starts.append(at)
            sums.append(total)
            slopes.append(slope)
        return Curve(starts=starts, sums=sums, slopes=slopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Between two starts the count grows by `slopes` for each unit of size.

    `sums` are the counts at the starts, less the first step of the slope there.
    """

    starts: list[int]
    sums: list[int]
    slopes: list[int]

    def at(self, size: int) -> int:
        """How much is found in a cache of that size."""
        at = bisect_right(self.starts, size) - 1
        if at < 0:
            return 0
        return self.sums[at] + self.slopes[at] * (size - self.starts[at] + 1)

    @property
    def most(self) -> int:
        """How much is found in a cache of any size."""
        return self.at(self.starts[-1])

    @property
    def full(self) -> int:
        """The least size that finds all of it."""
        return self.least(self.most)

    def least(self, count: int) -> int:
        """The least size that finds `count`."""
        if count <= 0:
            return 0
        ends = [self.at(start) for start in self.starts]
        at = bisect_left(ends, count)
        if not at:
            return self.starts[0]
        before, slope = at - 1, self.slopes[at - 1]
        if slope:
            missing = count - self.sums[before]
            size = self.starts[before] + -(-missing // slope) - 1
            if size < self.starts[at]:
                return size
        return self.starts[at]
