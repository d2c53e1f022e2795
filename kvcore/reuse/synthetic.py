"""Traffic made up from a few numbers, for those who have no trace.

Users hold sessions one after another. A session begins with one of some shared
prefixes (system prompt, tools, documents), of which a few are much more common than the
others (Zipf), and a first message of its own; every turn the prompt grows by the last
output and by what the user or a tool adds, and `fan_out` requests may branch off the
same context at once. All lengths are lognormal by median and 95th percentile. Nothing
is drawn at random: the same numbers give the same trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from itertools import accumulate
from math import exp, log
from typing import Final

from kvcore.reuse.routing import mixed
from kvcore.traces.requests import Request
from kvcore.workload import normal
from kvcore.workload.lengths import Z95

Spread = tuple[float, float]
"""Median and 95th percentile."""

_PREFIX: Final = 1 << 60
_INDEX: Final = 1 << 24
_UNIT: Final = 1 / (1 << 64)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """The numbers of a made-up trace; tokens and seconds.

    `prefixes` is how many shared prefixes there are, `skew` the exponent of their
    popularity, `turns` requests of a session, `grows` what each turn adds beside the
    last output, `limit` the longest prompt: a session ends there.
    """

    requests: int = 4000
    users: int = 100
    prefixes: int = 1
    skew: float = 1.0
    prefix: Spread = (500, 500)
    first: Spread = (500, 2000)
    turns: Spread = (2, 8)
    grows: Spread = (100, 400)
    output: Spread = (200, 600)
    think: Spread = (20, 200)
    tokens_per_second: float = 40.0
    fan_out: int = 1
    limit: int = 131_072
    block_tokens: int = 512
    name: str = ""

    @cached_property
    def _popularity(self) -> list[float]:
        weights = [1 / (n + 1) ** self.skew for n in range(self.prefixes)]
        total = sum(weights)
        return list(accumulate(w / total for w in weights))

    def __iter__(self) -> Iterator[Request]:
        """Requests in the order of their times."""
        users = [_User(self, number) for number in range(self.users)]
        waiting = [(user.start, user.number) for user in users]
        heapify(waiting)
        left = self.requests
        while left:
            time, number = waiting[0]
            user = users[number]
            for request in user.turn(time):
                yield request
                left -= 1
                if not left:
                    return
            heapreplace(waiting, (user.next(time), number))

    def draw(self, spread: Spread, *key: int) -> float:
        """A number of that spread, the same for the same key."""
        return _lognormal(spread, *key)

    def popular(self, *key: int) -> int:
        """One of the prefixes."""
        place = bisect_left(self._popularity, _uniform(*key))
        return min(place, self.prefixes - 1)


def _uniform(*key: int) -> float:
    """Between 0 and 1, without the ends."""
    state = 0
    for part in key:
        state = mixed(state ^ part)
    return (state + 0.5) * _UNIT


def _lognormal(spread: Spread, *key: int) -> float:
    p50, p95 = spread
    if p95 <= p50:
        return p50
    z = normal.quantile(min(max(_uniform(*key), 1e-12), 1 - 1e-12))
    return float(exp(log(p50) + z * log(p95 / p50) / Z95))


class _User:
    """A user, and the session it is in."""

    def __init__(self, traffic: Traffic, number: int) -> None:
        self.traffic = traffic
        self.number = number
        self._sessions = 0
        self._output = 0
        self._begin()
        self.start = _uniform(number, 1) * traffic.think[1]
        # A trace does not begin with everybody's first turn.
        for _ in range(int(_uniform(number, 2) * self._turns)):
            self._grow()

    def _begin(self) -> None:
        traffic, key = self.traffic, (self.number, self._sessions)
        self._id = (self.number << 20 | self._sessions) << 12
        self._sessions += 1
        self._turn = 0
        self._prefix = traffic.popular(*key, 3)
        self._shared = round(traffic.draw(traffic.prefix, self._prefix, 4))
        self._turns = max(1, round(traffic.draw(traffic.turns, *key, 5)))
        first = max(1, round(traffic.draw(traffic.first, *key, 6)))
        self._context = min(self._shared + first, traffic.limit)

    def turn(self, time: float) -> Iterator[Request]:
        """The requests of this turn."""
        traffic = self.traffic
        key = (self._id, self._turn)
        self._output = max(1, round(traffic.draw(traffic.output, *key, 7)))
        yield Request(self._ids(self._context), self._context, self._output, time)
        for branch in range(1, traffic.fan_out):
            more = max(1, round(traffic.draw(traffic.grows, *key, 8, branch)))
            tokens = min(self._context + more, traffic.limit)
            output = max(1, round(traffic.draw(traffic.output, *key, 9, branch)))
            yield Request(self._branch(tokens, branch), tokens, output, time)

    def next(self, time: float) -> float:
        """Grows for the next turn, or begins a new session; when that comes."""
        traffic = self.traffic
        think = traffic.draw(traffic.think, self._id, self._turn, 10)
        self._grow()
        return time + think + self._output / traffic.tokens_per_second

    def _grow(self) -> None:
        traffic = self.traffic
        self._turn += 1
        grown = traffic.draw(traffic.grows, self._id, self._turn, 11)
        if not self._output:
            self._output = round(traffic.draw(traffic.output, self._id, self._turn, 7))
        tokens = self._context + self._output + max(1, round(grown))
        if self._turn >= self._turns or tokens > traffic.limit:
            self._begin()
        else:
            self._context = tokens
        self._output = 0

    def _ids(self, tokens: int) -> list[int]:
        block = self.traffic.block_tokens
        shared = min(self._shared, tokens) // block
        base, own = _PREFIX + self._prefix * _INDEX, self._id * _INDEX
        return [
            *range(base, base + shared),
            *range(own + shared, own + -(-tokens // block)),
        ]

    def _branch(self, tokens: int, branch: int) -> list[int]:
        """The blocks of the context, and others from where it ends."""
        block = self.traffic.block_tokens
        common = self._context // block
        own = (self._id + (self._turn << 5 | branch) % 4096) * _INDEX
        ids = self._ids(self._context)[:common]
        return [*ids, *range(own + common, own + -(-tokens // block))]


class MadeUp:
    """Made-up traffic as a trace that can be gone through several times."""

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.name = traffic.name
        self.block_tokens = traffic.block_tokens
        self._done = 0

    @property
    def share(self) -> float:
        return self._done / self.traffic.requests

    def __iter__(self) -> Iterator[Request]:
        for done, request in enumerate(self.traffic, 1):
            self._done = done
            yield request
