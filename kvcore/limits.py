"""How far a scenario goes: most requests, longest context, fewest GPUs.

All are found by searching what the engine allocates, which never shrinks when tokens
or requests grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kvcore.deployment import check_shards
from kvcore.errors import KvcoreError
from kvcore.scenario import Scenario, needed_bytes, per_replica, rank_of

MAX_REQUESTS: Final = 10**7
MAX_CONTEXT: Final = 10**9
MAX_GPUS: Final = 128


def largest(fits: Callable[[int], bool], limit: int, near: int = 1) -> int:
    """The largest n in 0..limit with fits(n), for a monotone predicate.

    It is looked for in growing steps from `near`, then between the last two: the
    closer the guess, the fewer questions.

    >>> largest(lambda n: n <= 1000, 5000), largest(lambda n: n <= 1000, 5000, 990)
    (1000, 1000)
    """
    low = high = min(max(near, 1), limit)
    step = 1
    if fits(low):
        high = low + step
        while high <= limit and fits(high):
            step *= 2
            low, high = high, high + step
        high = min(high, limit + 1)
    else:
        low = high - step
        while low > 0 and not fits(low):
            step *= 2
            low, high = low - step, low
        low = max(low, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def fits(scenario: Scenario, pool: int, requests: int, tokens: int) -> bool:
    """Whether that many requests of that length fit; what an engine refuses doesn't."""
    try:
        return needed_bytes(scenario, requests, tokens) <= pool
    except KvcoreError:
        return False


def max_requests(scenario: Scenario, pool: int) -> int:
    """The most requests of `context` tokens at once, over all replicas."""
    near = _near(lambda n: needed_bytes(scenario, n, scenario.context), pool, 1, 2)
    one = largest(
        lambda n: fits(scenario, pool, n, scenario.context), MAX_REQUESTS, near
    )
    return one * scenario.sizes.dp


def max_context(scenario: Scenario, pool: int) -> int:
    """The longest context for `concurrency` requests, as far as memory goes."""
    requests, tokens = per_replica(scenario), scenario.context
    near = _near(
        lambda n: needed_bytes(scenario, requests, n), pool, tokens, 2 * tokens
    )
    return largest(lambda n: fits(scenario, pool, requests, n), MAX_CONTEXT, near)


def _near(needed: Callable[[int], int], pool: int, one: int, two: int) -> int:
    """Where `needed` would reach the pool if it grew as it does from `one` to `two`."""
    try:
        first, second = needed(one), needed(two)
    except KvcoreError:
        return one
    if second <= first:
        return one
    return one + (pool - first) * (two - one) // (second - first)


def min_gpus(scenario: Scenario) -> int | None:
    """The fewest GPUs of a legal TP x PP that hold the scenario in one replica."""
    for gpus in range(1, MAX_GPUS + 1):
        for pp in range(1, gpus + 1):
            tp, rest = divmod(gpus, pp)
            if rest or (pp > 1 and scenario.engine.layers_first and tp > 1):
                continue
            if _holds(scenario, tp, pp):
                return gpus
    return None


def _holds(scenario: Scenario, tp: int, pp: int) -> bool:
    dp = tp if scenario.sizes.attention_dp else 1
    sizes = replace(scenario.sizes, tp=tp, pp=pp, dp=dp)
    settings = replace(scenario.settings, tp=tp, pp=pp, dp=dp)
    changed = replace(scenario, sizes=sizes, settings=settings, pool_bytes=None)
    try:
        check_shards(scenario.model, sizes)
        scenario.engine.check(scenario.model, settings)
    except KvcoreError:
        return False
    pool = rank_of(changed).pool_bytes
    return bool(pool) and fits(changed, pool, per_replica(changed), scenario.context)
