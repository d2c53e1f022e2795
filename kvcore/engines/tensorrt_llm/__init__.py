"""TensorRT-LLM: blocks of all layers that share a window, and slots of states.

Source: the public repository, see each part's module. Nothing here was executed: the
rules are those of its documentation and source, and published logs agree with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Final

from kvcore.engines.base import (
    Allocation,
    Engine,
    HostMemory,
    Pool,
    RankMemory,
    Settings,
)
from kvcore.engines.case import Case
from kvcore.engines.options import Option
from kvcore.engines.tensorrt_llm.buffers import Stage, stages_of
from kvcore.engines.tensorrt_llm.check import check, fraction, notices
from kvcore.engines.tensorrt_llm.formats import legal_names, resolve
from kvcore.engines.tensorrt_llm.items import items_of
from kvcore.engines.tensorrt_llm.lines import groups, log_lines
from kvcore.engines.tensorrt_llm.options import OPTIONS, block_tokens, flag
from kvcore.engines.tensorrt_llm.pools import (
    Demand,
    Pools,
    blocks_of,
    cross_bytes,
    cut,
    hold,
)
from kvcore.errors import InvalidArgument
from kvcore.estimate import CacheFormats, Scope, encoder_tokens
from kvcore.model import Model

DEFAULT_FRACTION: Final = 0.9
DEFAULT_BATCHED_TOKENS: Final = 8192


@lru_cache(maxsize=256)
def _stages(case: Case) -> tuple[Stage, ...]:
    check(case.model, case.settings)
    return stages_of(case.model, case.formats, case.settings, draft=case.draft)


class TensorRTLLM(Engine):
    """One server; its sequences are those of one group of ranks.

    With `enable_attention_dp` every rank serves requests of its own: `dp` has divided
    them already where it is given, else `tp` does. Without `max_batch_size` (2048 by
    default) there are as many states as requests.
    """

    id: ClassVar[str] = "tensorrt_llm"
    versions: ClassVar[tuple[str, ...]] = ("1.4.0rc4",)
    captures_graphs: ClassVar[bool] = True
    host_memory: ClassVar[HostMemory | None] = HostMemory(
        option="host_cache_size",
        value=None,
        source="TensorRT-LLM docs/source/features/kvcache.md @0076e939: evicted blocks",
    )
    pages_cache: ClassVar[bool] = True
    spreads_experts: ClassVar[bool] = True
    attention_dp_option: ClassVar[str | None] = "enable_attention_dp"
    options: ClassVar[tuple[Option, ...]] = OPTIONS

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        return resolve(model, kv, indexer, state, settings)

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        return legal_names(model, settings)

    def check(self, model: Model, settings: Settings) -> None:
        check(model, settings)

    def memory_fraction(self, model: Model, settings: Settings) -> float:
        """`free_gpu_memory_fraction`: of what weights and a profiling run leave."""
        return fraction(settings) or DEFAULT_FRACTION

    def batched_tokens(self, settings: Settings) -> int:
        """`max_num_tokens`."""
        return settings.batched_tokens or DEFAULT_BATCHED_TOKENS

    def budget(
        self, memory: RankMemory, model: Model, settings: Settings
    ) -> tuple[int, int]:
        share = memory.fraction
        if share is None:
            share = self.memory_fraction(model, settings)
        if not 0 < share < 1:
            raise InvalidArgument(
                argument="memory_fraction",
                value=str(share),
                expected="a number between 0 and 1",
            )
        free = memory.total_bytes - memory.weight_bytes - memory.reserve_bytes
        pool = int(max(free, 0) * share)
        return memory.total_bytes - (max(free, 0) - pool), pool

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        stages = _stages(Case(model, formats, settings, draft=scope.draft))
        requests = _requests(scope.sequences, settings)
        demand = Demand(
            requests=requests,
            tokens=scope.tokens + model.extra_tokens,
            encoder_tokens=encoder_tokens(model, scope),
            copies=scope.states if scope.state else 0,
        )
        held = max(
            (hold(stage, model, settings, demand) for stage in stages),
            key=lambda found: found.bytes + found.reserved,
        )
        return Allocation(
            components=held.components,
            reserved_bytes=held.reserved,
            notices=notices(model, settings),
            items=items_of(held, model, scope, formats, settings, requests),
        )

    def pool(
        self,
        model: Model,
        formats: CacheFormats,
        settings: Settings,
        *,
        pool_bytes: int,
        context: int,
    ) -> Pool:
        # The ranks agree on what the scarcest of them holds.
        found = min(
            (
                cut(stage, model, settings, pool_bytes=pool_bytes, context=context)
                for stage in _stages(Case(model, formats, settings))
            ),
            key=lambda pools: (
                _concurrency(pools, model, settings, context),
                -sum(buffer.block_bytes for buffer in pools.stage.buffers),
            ),
        )
        block = block_tokens(model, settings)
        main = found.cuts[-1] if found.cuts else None
        return Pool(
            pool_bytes=pool_bytes,
            block_tokens=block,
            block_bytes=main.block_bytes if main else 0,
            blocks=main.blocks if main else 0,
            tokens=main.blocks * block if main else 0,
            bytes_per_token=sum(each.block_bytes for each in found.cuts) / block,
            max_concurrency=_concurrency(found, model, settings, context),
            groups=groups(found, model, settings, context),
            log_lines=log_lines(
                found, model, settings, pool_bytes=pool_bytes, context=context
            ),
            notices=notices(model, settings),
        )


def _requests(sequences: int, settings: Settings) -> int:
    """Requests of the busiest rank: attention DP deals them out to all."""
    if settings.dp > 1 or not flag(settings, "enable_attention_dp"):
        return sequences
    return -(-sequences // settings.tp)


def _concurrency(pools: Pools, model: Model, settings: Settings, context: int) -> float:
    """Requests of `context` tokens that the scarcest of the pools holds."""
    block = block_tokens(model, settings)
    found = [
        each.blocks / max(blocks_of(context, each.window, block), 1)
        for each in pools.cuts
    ]
    if pools.stage.state_bytes:
        found.append(float(pools.slots))
    cross = cross_bytes(pools.stage, model.encoder_tokens, block)
    if cross:
        found.append(pools.cross_bytes / cross)
    return min(found, default=0.0)
