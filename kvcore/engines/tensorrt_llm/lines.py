"""The lines TensorRT-LLM logs about its pools; its GiB is 2^30 bytes.

Source: cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp @b35ac1b6 and published logs
of 0.13 to 1.2; tensorrt_llm/_torch/pyexecutor/kv_cache_manager_v2.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvcore.engines.base import PoolGroup, Settings
from kvcore.engines.tensorrt_llm.buffers import Buffer
from kvcore.engines.tensorrt_llm.models import uses_manager_v2
from kvcore.engines.tensorrt_llm.options import (
    block_tokens,
    integer,
    is_engine_build,
)
from kvcore.engines.tensorrt_llm.pools import Pools, blocks_of
from kvcore.model import Model
from kvcore.units import GIB


def log_lines(
    pools: Pools, model: Model, settings: Settings, *, pool_bytes: int, context: int
) -> tuple[str, ...]:
    """What the fullest rank prints, in order."""
    if uses_manager_v2(model, settings):
        return tuple(_quotas(settings, pool_bytes))
    return tuple(_pools(pools, model, settings, context))


def _quotas(settings: Settings, pool_bytes: int) -> Iterator[str]:
    yield f"KV cache manager v2 device quota set to {pool_bytes / GIB}GiB"
    host = integer(settings, "host_cache_size")
    if host:
        yield f"KV cache manager v2 host cache quota set to {host / GIB:.2f}GiB"


def _pools(
    pools: Pools, model: Model, settings: Settings, context: int
) -> Iterator[str]:
    if not pools.cuts:
        return
    block = block_tokens(model, settings)
    for cut in pools.cuts:
        if is_engine_build(settings):
            yield f"Number of blocks in KV cache primary pool: {cut.blocks}"
            yield (
                f"Number of blocks in KV cache secondary pool: {cut.secondary}, "
                "onboard blocks to primary memory before reuse: true"
            )
        else:
            yield (
                f"Max KV cache blocks per sequence: {-(-context // block)} "
                f"[window size={min(cut.window or context, context)}], "
                f"tokens per block={block}, primary blocks={cut.blocks}, "
                f"secondary blocks={cut.secondary}, max sequence length={context}"
            )
    size = sum(cut.blocks * cut.block_bytes for cut in pools.cuts)
    tokens = sum(cut.blocks for cut in pools.cuts) * block
    yield f"Number of tokens per block: {block}."
    yield (
        f"[MemUsageChange] Allocated {size / GIB:.2f} GiB for max tokens in paged KV "
        f"cache ({tokens})."
    )


def groups(
    pools: Pools, model: Model, settings: Settings, context: int
) -> tuple[PoolGroup, ...]:
    """The pools of the stage, and what a request of `context` takes of each."""
    block = block_tokens(model, settings)
    found = [
        PoolGroup(
            kind=_kind(pools.stage.of(cut.window)),
            layers=len({buffer.layer for buffer in pools.stage.of(cut.window)}),
            block_tokens=block,
            page_bytes=cut.block_bytes,
            blocks_per_request=blocks_of(context, cut.window, block),
        )
        for cut in pools.cuts
    ]
    if pools.stage.state_bytes:
        found.append(
            PoolGroup(
                kind="state",
                layers=pools.stage.state_layers,
                block_tokens=0,
                page_bytes=pools.stage.state_bytes,
                blocks_per_request=1,
            )
        )
    return tuple(found)


def _kind(buffers: tuple[Buffer, ...]) -> str:
    """What a pool is for: DeepSeek-V4 keeps compressors' states like windows."""
    if all(buffer.component == "state" for buffer in buffers):
        return "state"
    return "full" if buffers[0].window is None else "window"
