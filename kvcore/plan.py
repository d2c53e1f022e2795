"""Plan: where memory budgets and cache sizes meet.

Everything is found by asking the engine what it allocates, never by dividing: the
most requests, the longest context and the fewest GPUs are searched for, so windows,
states, in-flight reserve and blocks count exactly as the engine counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from kvcore.deployment import check_shards, kv_head_copies
from kvcore.engines.base import Allocation, Pool
from kvcore.errors import Notice
from kvcore.estimate import Scope, estimate, notices
from kvcore.limits import max_context, max_requests, min_gpus
from kvcore.scenario import (
    Rank,
    Scenario,
    all_weights,
    allocated,
    bytes_of,
    per_replica,
    rank_of,
)

Verdict = Literal["fits", "tight", "does_not_fit"]

TIGHT_PERCENT: Final = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to: does it fit, how far does it go, on how few GPUs."""

    verdict: Verdict
    rank: Rank
    pool: Pool | None
    allocation: Allocation
    needed_bytes: int
    """What the pool must hold: the requests' bytes and what the engine keeps."""
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
        return self.rank.short_bytes + max(0, self.needed_bytes - self.rank.pool_bytes)


def plan(scenario: Scenario, *, fewest: bool = True) -> Plan:
    """Answer a scenario; raises a typed error for what model or engine refuse.

    Without `fewest` the fewest GPUs are not searched for, and None.
    """
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
    needed = bytes_of(scenario, found, per_replica(scenario), scenario.context)
    return Plan(
        verdict=verdict(needed, rank.pool_bytes),
        rank=rank,
        pool=pool,
        allocation=found,
        needed_bytes=needed,
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
        min_gpus=(
            min_gpus(scenario)
            if fewest and scenario.weights.source != "unknown"
            else None
        ),
        notices=plan_notices(scenario, rank, found, pool),
    )


def verdict(needed: int, pool: int) -> Verdict:
    """Tight above 90% of the pool."""
    if needed > pool or not pool:
        return "does_not_fit"
    return "tight" if 100 * needed > TIGHT_PERCENT * pool else "fits"


def plan_notices(
    scenario: Scenario, rank: Rank, found: Allocation, pool: Pool | None
) -> tuple[Notice, ...]:
    """What a reader must know to trust the plan."""
    scope = Scope(tokens=scenario.context, draft=scenario.draft)
    noted = [*notices(scenario.model, scope), *found.notices]
    if pool is not None:
        noted += pool.notices
    for weights in all_weights(scenario):
        noted += weights.notices
    if scenario.pool_bytes is None:
        if scenario.reserve_bytes is None:
            noted.append(Notice("reserve_estimated", {"bytes": rank.reserve_bytes}))
        noted += (
            Notice(
                "weights_estimated", {"bytes": weights.total, "format": weights.format}
            )
            for weights in all_weights(scenario)
            if weights.source == "counted"
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
