"""Plan: where memory budgets and cache sizes meet.

Everything is found by asking the engine what it allocates, never by dividing: the
most requests, the longest context and the fewest GPUs are searched for, so windows,
states, in-flight reserve and blocks count exactly as the engine counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from kvcore.accelerators import Accelerator
from kvcore.deployment import (
    Parallelism,
    Reserve,
    check_shards,
    kv_head_copies,
    rank_weight_bytes,
    reserve,
)
from kvcore.engines.base import (
    Allocation,
    DeviceTraits,
    Engine,
    Pool,
    RankMemory,
    Settings,
)
from kvcore.errors import InvalidArgument, KvcoreError, Notice
from kvcore.estimate import CacheFormats, Scope, estimate, notices
from kvcore.model import Model

Verdict = Literal["fits", "tight", "does_not_fit"]

TIGHT_PERCENT: Final = 90
MAX_REQUESTS: Final = 10**7
MAX_CONTEXT: Final = 10**9
MAX_GPUS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Weights of the whole model: total, counted parts, and where the total is from."""

    total: int
    parts: Mapping[str, int]
    format: str
    source: Literal["checkpoint", "counted", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A model on GPUs under an engine, and what it should serve.

    `context` is tokens per request, `concurrency` requests at once over all replicas.
    `pool_bytes` overrides every memory rule (an engine's "available KV cache memory").
    """

    model: Model
    engine: Engine
    settings: Settings
    formats: CacheFormats
    device: Accelerator
    sizes: Parallelism
    weights: WeightBytes
    context: int
    concurrency: int
    sparse: bool = False
    draft: bool = False
    fraction: float | None = None
    pool_bytes: int | None = None
    reserve_bytes: int | None = None
    shared_prefix: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The memory of the fullest rank, in bytes."""

    memory_bytes: int
    usable_bytes: int
    weight_bytes: int
    reserve: Reserve
    reserve_bytes: int
    pool_bytes: int
    short_bytes: int
    """What weights and reserve alone need beyond the usable bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to: does it fit, how far does it go, on how few GPUs."""

    verdict: Verdict
    rank: Rank
    pool: Pool | None
    allocation: Allocation
    logical_request_bytes: int
    request_bytes: int
    max_concurrency: float
    max_requests: int
    max_context: int
    min_gpus: int | None
    notices: tuple[Notice, ...]

    @property
    def allocated_bytes(self) -> int:
        return self.allocation.bytes_per_rank

    @property
    def short_bytes(self) -> int:
        """How much the fullest rank lacks, of weights and of cache; 0 if it fits."""
        return self.rank.short_bytes + max(
            0, self.allocated_bytes - self.rank.pool_bytes
        )


def plan(scenario: Scenario) -> Plan:
    """Answer a scenario; raises a typed error for what model or engine refuse."""
    check_shards(scenario.model, scenario.sizes)
    scenario.engine.check(scenario.model, scenario.settings)
    rank = rank_of(scenario)
    pool = scenario.engine.pool(
        scenario.model,
        scenario.formats,
        scenario.settings,
        pool_bytes=rank.pool_bytes,
        context=scenario.context,
    )
    found = allocated(scenario, per_replica(scenario), scenario.context)
    one = allocated(scenario, 1, scenario.context).bytes_per_rank
    return Plan(
        verdict=verdict(found.bytes_per_rank, rank.pool_bytes),
        rank=rank,
        pool=pool,
        allocation=found,
        logical_request_bytes=estimate(
            scenario.model,
            Scope(tokens=scenario.context, draft=scenario.draft),
            scenario.formats,
        ).total_bytes,
        request_bytes=one,
        max_concurrency=(
            pool.max_concurrency * scenario.sizes.dp
            if pool
            else scenario.sizes.dp * rank.pool_bytes / one
            if one
            else 0.0
        ),
        max_requests=max_requests(scenario, rank.pool_bytes),
        max_context=max_context(scenario, rank.pool_bytes),
        min_gpus=min_gpus(scenario),
        notices=plan_notices(scenario, rank, found, pool),
    )


def verdict(needed: int, pool: int) -> Verdict:
    """Tight above 90% of the pool."""
    if needed > pool or not pool:
        return "does_not_fit"
    return "tight" if 100 * needed > TIGHT_PERCENT * pool else "fits"


def rank_of(scenario: Scenario) -> Rank:
    """Weights, reserve and pool of the fullest rank."""
    engine, sizes = scenario.engine, scenario.sizes
    weights = rank_weight_bytes(
        scenario.weights.parts, scenario.model, sizes, scenario.weights.total
    )
    estimated = reserve(
        scenario.model,
        sizes,
        engine.batched_tokens(scenario.settings),
        sparse=scenario.sparse,
        graphs=engine.captures_graphs,
    )
    kept = estimated.bytes if scenario.reserve_bytes is None else scenario.reserve_bytes
    total = scenario.device.total_bytes
    fraction = scenario.fraction
    if fraction is None:
        fraction = engine.memory_fraction(scenario.model, scenario.settings)
    memory = RankMemory(
        total_bytes=total, weight_bytes=weights, reserve_bytes=kept, fraction=fraction
    )
    usable, pool = engine.budget(memory, scenario.model, scenario.settings)
    short = max(0, weights + kept - usable)
    if scenario.pool_bytes is not None:
        pool, short = scenario.pool_bytes, 0
    return Rank(
        memory_bytes=total,
        usable_bytes=usable,
        weight_bytes=weights,
        reserve=estimated,
        reserve_bytes=kept,
        pool_bytes=pool,
        short_bytes=short,
    )


def per_replica(scenario: Scenario) -> int:
    """Requests of the busiest data-parallel replica."""
    return -(-scenario.concurrency // scenario.sizes.dp)


def allocated(scenario: Scenario, requests: int, tokens: int) -> Allocation:
    """What the engine allocates for `requests` of `tokens` on the fullest rank."""
    return scenario.engine.allocate(
        scenario.model,
        Scope(tokens=tokens, sequences=requests, draft=scenario.draft),
        scenario.formats,
        scenario.settings,
    )


def needed_bytes(scenario: Scenario, requests: int, tokens: int) -> int:
    """The same in bytes, a shared prefix counted once.

    Only caches that grow with tokens are shared, by whole blocks.
    """
    found = allocated(scenario, requests, tokens).bytes_per_rank
    block = scenario.settings.block_tokens or 16
    shared = min(scenario.shared_prefix, tokens) // block * block
    if not shared or requests < 2:
        return found
    prefix = allocated(scenario, 1, shared).components
    return found - (requests - 1) * (prefix["kv"] + prefix["indexer"])


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest n in 0..limit with fits(n), for a monotone predicate."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
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
    one = largest(lambda n: fits(scenario, pool, n, scenario.context), MAX_REQUESTS)
    return one * scenario.sizes.dp


def max_context(scenario: Scenario, pool: int) -> int:
    """The longest context for `concurrency` requests, as far as memory goes."""
    requests = per_replica(scenario)
    return largest(lambda n: fits(scenario, pool, requests, n), MAX_CONTEXT)


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


def device_traits(device: Accelerator) -> DeviceTraits:
    memory = device.memory_bytes
    return DeviceTraits(
        architecture=device.architecture,
        memory_mib=None if memory is None else memory // 2**20,
    )


def plan_notices(
    scenario: Scenario, rank: Rank, found: Allocation, pool: Pool | None
) -> tuple[Notice, ...]:
    """What a reader must know to trust the plan."""
    scope = Scope(tokens=scenario.context, draft=scenario.draft)
    noted = [*notices(scenario.model, scope), *found.notices]
    if pool is not None:
        noted += pool.notices
    if scenario.pool_bytes is None:
        if scenario.reserve_bytes is None:
            noted.append(Notice("reserve_estimated", {"bytes": rank.reserve_bytes}))
        if scenario.weights.source == "counted":
            noted.append(
                Notice(
                    "weights_estimated",
                    {
                        "bytes": scenario.weights.total,
                        "format": scenario.weights.format,
                    },
                )
            )
        ram = scenario.device.unified_ram_bytes
        if scenario.device.working_set_estimated and ram is not None:
            noted.append(
                Notice(
                    "working_set_estimated", {"bytes": rank.memory_bytes, "ram": ram}
                )
            )
    copies = kv_head_copies(scenario.model, scenario.sizes.attention_tp)
    if copies > 1:
        noted.append(
            Notice(
                "kv_heads_replicated",
                {
                    "tp": scenario.sizes.attention_tp,
                    "num_kv_heads": scenario.model.num_kv_heads,
                    "copies": copies,
                },
            )
        )
    ranks = scenario.sizes.attention_tp
    if ranks > 1 and scenario.model.is_latent:
        noted.append(Notice("latent_replicated", {"tp": ranks}))
    return tuple(n for i, n in enumerate(noted) if n not in noted[:i])


def checked_positive(argument: str, value: int | None, default: int) -> int:
    found = default if value is None else value
    if found < 1:
        raise InvalidArgument(
            argument=argument, value=str(found), expected="a whole number from 1"
        )
    return found
