"""The `plan` of the api: parameters -> Scenario, Plan -> JSON."""

from __future__ import annotations

from collections.abc import Mapping
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
    device_weight_bytes,
    stage_weights,
    stages_of,
)
from kvcore.scenario_params import PLAN, scenario_of

Json = dict[str, Any]


def answer_plan(given: Mapping[str, object]) -> Json:
    """The api's `plan`."""
    params = Params(given, PLAN)
    scenario = scenario_of(params)
    return plan_json(scenario, plan(scenario))


def plan_json(scenario: Scenario, found: Plan) -> Json:
    rank = found.rank
    parts = scenario.model.components
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
            "total_bytes": scenario.weights.total,
            "host_bytes": scenario.weights.total - device_weight_bytes(scenario),
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
        "max_concurrency": found.max_concurrency,
        "max_requests": found.max_requests,
        "max_context": found.max_context,
        "min_gpus": found.min_gpus,
        "warnings": notices_json(found.notices),
    }


def _request_blocks(pool: Pool | None) -> int:
    return sum(group.blocks_per_request for group in pool.groups) if pool else 0


def _ranks_json(scenario: Scenario) -> list[Json]:
    """One rank of every pipeline stage, where there are several."""
    if scenario.sizes.pp == 1:
        return []
    stages = zip(stages_of(scenario), stage_weights(scenario), strict=True)
    return [
        {"stage": stage, "layers": layers, "weight_bytes": weight}
        for stage, (layers, weight) in enumerate(stages)
    ]
