"""Which replica a request goes to: any, or the one that has seen most of its prompt."""

from __future__ import annotations

from typing import Final, Literal

from kvcore.reuse.paths import Path

Routing = Literal["random", "prefix"]
ROUTINGS: Final[tuple[Routing, ...]] = ("random", "prefix")
ENOUGH: Final = 2
"""A request follows its prefix if a half of its prompt has been seen."""

_MASK: Final = (1 << 64) - 1


def mixed(number: int) -> int:
    """64 bits that look drawn at random, the same for the same number (splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


class Router:
    """Deals requests out to `replicas`.

    By prefix: to the replica that was last given the longest known part of the prompt
    if that is half of it, else to the one that was given the fewest tokens so far.
    """

    def __init__(self, replicas: int, routing: Routing) -> None:
        self.replicas = replicas
        self.routing = routing
        self._owners: list[int] = []
        self._given = [0] * replicas

    def replica(self, number: int, path: Path) -> int:
        """The replica of the request of that number."""
        if self.replicas == 1:
            return 0
        if self.routing == "random":
            return mixed(number) % self.replicas
        nodes, owners = path.nodes, self._owners
        if nodes and len(owners) <= (top := max(nodes)):
            owners.extend([-1] * (top + 1 - len(owners)))
        known = len(nodes)
        while known and owners[nodes[known - 1]] < 0:
            known -= 1
        if known and ENOUGH * path.ends[known] >= max(path.blocks, 1):
            chosen = owners[nodes[known - 1]]
        else:
            chosen = min(range(self.replicas), key=self._given.__getitem__)
        self._given[chosen] += path.tokens
        for node in nodes:
            owners[node] = chosen
        return chosen
