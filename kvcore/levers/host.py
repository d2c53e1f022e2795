"""The lever on the host's memory: what an engine can keep there of its caches."""

from __future__ import annotations

from dataclasses import replace

from kvcore.engines.base import HostMemory
from kvcore.levers.start import Row, Start


def host_offload(start: Start) -> Row:
    """Host memory: for the caches of what runs where the engine can, else for reuse."""
    host = start.scenario.engine.host_memory
    if host is None or start.scenario.device.unified_ram_bytes is not None:
        return Row(lever="host_offload", reason=_nowhere(start))
    if reason := _needless(start, host):
        return Row(lever="host_offload", reason=reason, source=host.source)
    plan, sizes = start.now.plan, start.scenario.sizes
    over = max(plan.needed_bytes - plan.rank.pool_bytes, 0)
    figures: dict[str, object] = {
        "over_bytes": over,
        "over_bytes_all_gpus": over * sizes.gpus,
        "weights_short_bytes": plan.rank.short_bytes,
        "option": host.option,
    }
    if host.value is None:
        return Row(
            lever="host_offload",
            change=start.fewer,
            planned=start.now,
            reason="running_stays_on_gpu",
            figures=figures | {"host_tokens_per_gib": tokens_per_gib(start)},
            source=host.source,
        )
    change = {"engine_options": {**start.options, host.option: host.value}}
    row = start.row("host_offload", change)
    for notice in row.planned.plan.notices if row.planned else ():
        if notice.code == "cache_on_host":
            figures["host_bytes"] = notice.params["bytes"]
    return replace(row, figures=figures, source=host.source)


def _nowhere(start: Start) -> str:
    """Why there is no host memory to use."""
    if start.scenario.device.unified_ram_bytes is not None:
        return "memory_is_shared"
    return "no_engine" if start.scenario.engine.id == "none" else "no_engine_rule"


def _needless(start: Start, host: HostMemory) -> str | None:
    """Why there is nothing to put there."""
    if host.value is not None:
        asked = start.scenario.settings.options.get(host.option)
        if asked == host.value:
            return "already_on"
    return None if start.now.plan.short_bytes else "already_fits"


def tokens_per_gib(start: Start) -> int | None:
    """Tokens that a GiB of host memory keeps of one replica, as its pools do."""
    pool, sizes = start.now.plan.pool, start.scenario.sizes
    if pool is None or not pool.tokens:
        return None
    return (pool.tokens << 30) // (pool.pool_bytes * sizes.tp * sizes.pp)
