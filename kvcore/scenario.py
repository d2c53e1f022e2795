"""A scenario: a model on GPUs under an engine, and what one rank holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kvcore.accelerators import Accelerator
from kvcore.deployment import Parallelism, Reserve, reserve, stage_weight_bytes
from kvcore.engines.base import (
    Allocation,
    DeviceTraits,
    Engine,
    RankMemory,
    Settings,
)
from kvcore.errors import Notice, UnsupportedOption
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Weights of the whole model: total, counted parts, and where the total is from.

    `draft` is what of them, by count, is the model's own draft layers.
    """

    total: int
    parts: Mapping[str, int]
    format: str
    source: Literal["checkpoint", "counted", "file", "given", "unknown"]
    notices: tuple[Notice, ...] = ()
    draft: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftModel:
    """A model that drafts for another: its layers are the other's `draft_layers`."""

    model: Model
    weights: WeightBytes


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
    draft_model: DraftModel | None = None
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


def stages_of(scenario: Scenario) -> tuple[int, ...]:
    """Layers of each pipeline stage, as the engine deals them."""
    layers = scenario.model.num_layers
    return scenario.engine.stage_layers(layers, scenario.sizes.pp)


def stage_weights(scenario: Scenario) -> tuple[int, ...]:
    """Weight bytes of one rank of each pipeline stage, a draft model's included."""
    own = stage_weight_bytes(
        scenario.engine.device_parts(scenario.weights.parts),
        scenario.model,
        scenario.sizes,
        on_devices(scenario.engine, scenario.weights),
        stages_of(scenario),
    )
    return tuple(map(sum, zip(own, draft_stage_weights(scenario), strict=True)))


def draft_stage_weights(scenario: Scenario) -> tuple[int, ...]:
    """Weight bytes of a draft model on one rank of each pipeline stage.

    It is cut over the same tensor ranks, and whole on the last stage; an engine that
    spreads layers over devices spreads the draft's as well.
    """
    draft, engine, pp = scenario.draft_model, scenario.engine, scenario.sizes.pp
    if draft is None:
        return (0,) * pp
    layers = draft.model.num_layers
    stages = engine.stage_layers(layers, pp) if engine.layers_first else (layers,)
    found = stage_weight_bytes(
        engine.device_parts(draft.weights.parts),
        draft.model,
        scenario.sizes,
        on_devices(engine, draft.weights),
        stages,
    )
    return (0,) * (pp - len(stages)) + found


def on_devices(engine: Engine, weights: WeightBytes) -> int:
    """The weights an engine puts on its devices, of one replica."""
    parts, total = weights.parts, weights.total
    counted = sum(parts.values())
    held = sum(engine.device_parts(parts).values())
    return -(-total * held // counted) if counted else total


def all_weights(scenario: Scenario) -> tuple[WeightBytes, ...]:
    """The model's weights, and the draft model's where there is one."""
    draft = scenario.draft_model
    return (scenario.weights, draft.weights) if draft else (scenario.weights,)


def rank_of(scenario: Scenario) -> Rank:
    """Weights, reserve and pool of the fullest rank."""
    engine, sizes = scenario.engine, scenario.sizes
    weights = max(stage_weights(scenario))
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
    # An engine whose rule leaves a pool has room for what it counts beside it.
    short = 0 if pool else max(0, weights + kept - usable)
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
    """Bytes the pool must hold for `requests` of `tokens`.

    A context that the settings fix and that cannot hold the requests is an error: no
    memory helps.
    """
    held = allocated(scenario, requests, tokens)
    if any(notice.code == "context_too_small" for notice in held.notices):
        raise UnsupportedOption(
            engine=scenario.engine.id,
            option="tokens",
            value=str(tokens),
            reason="the context that the settings fix is smaller",
        )
    return bytes_of(scenario, held, requests, tokens)


def bytes_of(scenario: Scenario, held: Allocation, requests: int, tokens: int) -> int:
    """An allocation in bytes, with what the engine keeps, a shared prefix counted once.

    Only caches that grow with tokens are shared, by whole blocks.
    """
    found = held.bytes_per_rank + held.reserved_bytes
    if not scenario.shared_prefix or requests < 2:
        return found
    block = block_tokens(scenario)
    shared = min(scenario.shared_prefix, tokens) // block * block
    if not shared:
        return found
    prefix = allocated(scenario, 1, shared).components
    return found - (requests - 1) * (prefix["kv"] + prefix["indexer"])


def block_tokens(scenario: Scenario) -> int:
    """Tokens of a block as the engine cuts them, 1 where nothing comes in blocks.

    Hybrid models raise it (a page must hold a state), so it is asked for.
    """
    pool = scenario.engine.pool(
        scenario.model,
        scenario.formats,
        scenario.settings,
        pool_bytes=scenario.device.total_bytes,
        context=scenario.context,
    )
    return pool.block_tokens if pool else 1


def device_traits(device: Accelerator) -> DeviceTraits:
    memory = device.memory_bytes
    return DeviceTraits(
        architecture=device.architecture,
        memory_mib=None if memory is None else memory // 2**20,
    )
