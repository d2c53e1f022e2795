"""The `plan` of the api: parameters -> Scenario, Plan -> JSON."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kvcore.engines.base import Pool
from kvcore.listing import notices_json
from kvcore.params import (
    Params,
)
from kvcore.plan import Plan, plan
from kvcore.pooling import pool_json
from kvcore.scenario import (
    Scenario,
    all_weights,
    draft_stage_weights,
    on_devices,
    stage_weights,
    stages_of,
)
from kvcore.scenario_params import PLAN, SPECULATIVE_TOKENS, scenario_of

Json = dict[str, Any]


def answer_plan(given: Mapping[str, object]) -> Json:
    """The api's `plan`."""
    params = Params(given, PLAN)
    scenario = scenario_of(params)
    return plan_json(scenario, plan(scenario))


def plan_json(scenario: Scenario, found: Plan) -> Json:
    rank = found.rank
    parts = scenario.model.components
    weights = sum(each.total for each in all_weights(scenario))
    held = sum(on_devices(scenario.engine, each) for each in all_weights(scenario))
    return {
        "verdict": found.verdict,
        "short_bytes": found.short_bytes,
        "engine": scenario.engine.id,
        "engine_version": scenario.settings.version,
        "gpu": scenario.device.id,
        "gpus": scenario.sizes.gpus,
        "tp": scenario.sizes.tp,
        "pp": scenario.sizes.pp,
        "dp": scenario.sizes.dp,
        "dcp": scenario.sizes.dcp,
        "context": scenario.context,
        "concurrency": scenario.concurrency,
        "formats": {
            "kv": scenario.formats.kv.id,
            "indexer": scenario.formats.indexer.id if "indexer" in parts else None,
            "state": scenario.formats.state.id if "state" in parts else None,
            "weights": scenario.weights.format,
        },
        "weights": {
            "total_bytes": weights,
            "host_bytes": weights - held,
            "source": scenario.weights.source,
        },
        "rank": {
            "memory_bytes": rank.memory_bytes,
            "usable_bytes": rank.usable_bytes,
            "weight_bytes": rank.weight_bytes,
            "reserve_bytes": rank.reserve_bytes,
            "pool_bytes": rank.pool_bytes,
            "used_bytes": found.needed_bytes,
        },
        "ranks": _ranks_json(scenario),
        "reserve": {
            "low_bytes": rank.reserve.low_bytes,
            "high_bytes": rank.reserve.high_bytes,
            "parts": {name: part.typical for name, part in rank.reserve.parts.items()},
        },
        "pool": None if found.pool is None else pool_json(found.pool),
        "request": {
            "logical_bytes": found.logical_request_bytes,
            "allocated_bytes": found.request_bytes,
            "blocks": _request_blocks(found.pool),
        },
        "allocated": {
            "bytes_per_rank": found.allocated_bytes,
            "components": dict(found.allocation.components),
            "items": dict(found.allocation.items),
        },
        "draft": _draft_json(scenario, found) if scenario.draft else None,
        "max_concurrency": found.max_concurrency,
        "max_requests": found.max_requests,
        "max_context": found.max_context,
        "min_gpus": found.min_gpus,
        "warnings": notices_json(found.notices),
    }


def _request_blocks(pool: Pool | None) -> int:
    return sum(group.blocks_per_request for group in pool.groups) if pool else 0


def _draft_json(scenario: Scenario, found: Plan) -> Json:
    """What drafting adds: caches on one rank, weights of the whole models.

    Ratios are exact, as [numerator, denominator]; null is not known (a file's weights
    do not say which of them draft).
    """
    cache = found.allocation.components["draft"]
    target = found.allocated_bytes - cache
    separate = scenario.draft_model
    own, weights = scenario.weights.total, scenario.weights.draft
    if separate:
        weights = separate.weights.total
    else:
        own -= weights
    return {
        "separate": separate is not None,
        "speculative_tokens": scenario.settings.options.get(SPECULATIVE_TOKENS),
        "cache_bytes": cache,
        "target_cache_bytes": target,
        "cache_ratio": _ratio(cache, target),
        "weight_bytes": weights or None,
        "target_weight_bytes": own,
        "weight_ratio": _ratio(weights, own) if weights else None,
        "rank_weight_bytes": max(draft_stage_weights(scenario)) if separate else None,
        "weight_source": separate.weights.source if separate else None,
        "weight_format": separate.weights.format if separate else None,
    }


def _ratio(part: int, whole: int) -> list[int] | None:
    return list(Fraction(part, whole).as_integer_ratio()) if whole else None


def _ranks_json(scenario: Scenario) -> list[Json]:
    """One rank of every pipeline stage, where there are several."""
    if scenario.sizes.pp == 1:
        return []
    stages = zip(stages_of(scenario), stage_weights(scenario), strict=True)
    return [
        {"stage": stage, "layers": layers, "weight_bytes": weight}
        for stage, (layers, weight) in enumerate(stages)
    ]
