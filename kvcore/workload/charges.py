"""What a request of n tokens takes of the pool, by the engine's own allocation.

The engine is asked at a few hundred lengths; between two of them the charge lies
between theirs, since no engine allocates less for more tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvcore.scenario import Scenario, allocated, block_tokens
from kvcore.workload.cells import edges

RATIO: Final = 1.01
LINEAR: Final = 48
"""Blocks up to which every number of blocks is asked for."""
MOST_COPIES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """A pool, what is always taken of it, and the charge of a request by its length.

    In bytes of the fullest rank (`unit` "bytes"), or in tokens where only the number
    of tokens of a pool is known. `lengths` ascend; a request between two of them takes
    from `least` of the second to `values` of it.
    """

    unit: str
    pool: int
    fixed: int
    granule: int
    """Charges are whole multiples of this wherever the engine deals in blocks."""
    block: int
    lengths: tuple[int, ...]
    least: tuple[int, ...]
    values: tuple[int, ...]

    def around(self, tokens: float) -> tuple[int, int]:
        """(at least, at most) for a request of so many tokens."""
        at = self._place(tokens)
        return self.least[at], self.values[at]

    def share(self, tokens: float) -> float:
        """How far the charge is on its way between the two, by whole blocks."""
        at = self._place(tokens)
        start = self.lengths[at - 1] if at else 0
        width = self.lengths[at] - start
        whole = -(-tokens // self.block) * self.block
        return min((whole - start) / width, 1.0) if width else 1.0

    def _place(self, tokens: float) -> int:
        return min(bisect_left(self.lengths, tokens), len(self.lengths) - 1)

    @property
    def room(self) -> int:
        return max(self.pool - self.fixed, 0)


def of_tokens(pool_tokens: int, block: int, limit: int, shared: int = 0) -> Charges:
    """A pool known by its tokens alone, in whole blocks."""
    prefix = shared // block * block

    def charge(tokens: int) -> int:
        return -(-tokens // block) * block - min(prefix, tokens // block * block)

    lengths, least, values = _table(charge, block, limit)
    return Charges(
        unit="tokens",
        pool=pool_tokens,
        fixed=prefix,
        granule=block,
        block=block,
        lengths=lengths,
        least=least,
        values=values,
    )


def of_scenario(
    scenario: Scenario, pool_bytes: int, limit: int, in_flight: float
) -> Charges:
    """A scenario's pool; a charge is a request's share of as many as are in flight.

    (Some engines keep a part for all requests together, so that the share of one
    depends on how many there are.) A shared prefix is counted once, in whole blocks
    and for caches that grow with tokens, as a plan counts it.
    """
    block = block_tokens(scenario)
    copies = min(max(round(in_flight), 1), MOST_COPIES)
    shared = scenario.shared_prefix // block * block

    def growing(tokens: int) -> int:
        parts = allocated(scenario, 1, tokens).components
        return parts["kv"] + parts["indexer"]

    prefix = growing(shared) if shared else 0

    def charge(tokens: int) -> int:
        whole = -(-allocated(scenario, copies, tokens).bytes_per_rank // copies)
        if tokens >= shared:
            return whole - prefix
        common = tokens // block * block
        return whole - (growing(common) if common else 0)

    lengths, least, values = _table(charge, block, limit)
    reserved = allocated(scenario, copies, 1).reserved_bytes
    return Charges(
        unit="bytes",
        pool=pool_bytes,
        fixed=prefix + reserved,
        granule=_granule(scenario, pool_bytes),
        block=block,
        lengths=lengths,
        least=least,
        values=values,
    )


def _granule(scenario: Scenario, pool_bytes: int) -> int:
    pool = scenario.engine.pool(
        scenario.model,
        scenario.formats,
        scenario.settings,
        pool_bytes=max(pool_bytes, 1),
        context=scenario.context,
    )
    return pool.block_bytes if pool and pool.block_bytes else 1


def _table(
    charge: Callable[[int], int], block: int, limit: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Lengths, and the charges of the shortest and the longest request up to each."""
    linear = [block * n for n in range(1, LINEAR + 1) if block * n < limit]
    start = linear[-1] if linear else 0
    lengths = [*linear, *list(edges(start, limit, RATIO, block))[bool(linear) :]]
    values: list[int] = []
    least: list[int] = []
    before = 0
    for length in lengths:
        value = charge(length)
        first = charge(before + 1) if length - before <= block else values[-1]
        values.append(value)
        least.append(min(first, value))
        before = length
    return tuple(lengths), tuple(least), tuple(values)
