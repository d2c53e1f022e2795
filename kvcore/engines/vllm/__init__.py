"""vLLM's V1 engine: pages, groups, blocks and the lines it logs about them.

Source: the wheels of vLLM named in `rules`; each part's module says which files.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import ClassVar

from kvcore.cache import CrossAttention
from kvcore.engines.base import (
    Allocation,
    Engine,
    HostMemory,
    Pool,
    PoolGroup,
    RankMemory,
    Settings,
)
from kvcore.engines.options import Option
from kvcore.engines.vllm.check import check
from kvcore.engines.vllm.deployment import (
    Deployment,
    batched_tokens,
    deployment,
    encoder_length,
)
from kvcore.engines.vllm.formats import legal_names, resolve
from kvcore.engines.vllm.groups import Group
from kvcore.engines.vllm.kernels import BACKENDS
from kvcore.engines.vllm.layers import stage_of_layer
from kvcore.engines.vllm.plan import Plan, components_of, items_of, plan_of
from kvcore.engines.vllm.rules import RULES, capability
from kvcore.errors import Notice
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Model


class _Same:
    """A model as a cache key: the same object, whatever it holds."""

    __slots__ = ("model",)

    def __init__(self, model: Model) -> None:
        self.model = model

    def __hash__(self) -> int:
        return id(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.model is self.model


@lru_cache(maxsize=256)
def _plan(key: _Same, formats: CacheFormats, d: Deployment) -> Plan:
    model = key.model
    check(model, d.rules, major=d.major, tp=d.tp, pp=d.pp, dcp=d.dcp)
    return plan_of(model, formats, d)


class Vllm(Engine):
    """Requests draw blocks of all their groups from one pool on every rank."""

    id: ClassVar[str] = "vllm"
    versions: ClassVar[tuple[str, ...]] = tuple(RULES)
    captures_graphs: ClassVar[bool] = True
    host_memory: ClassVar[HostMemory | None] = HostMemory(
        option="kv_offloading_size",
        value=None,
        source="vLLM 0.33.0 vllm/v1/kv_offload: copies of blocks, loaded back to run",
    )
    pages_cache: ClassVar[bool] = True
    spreads_experts: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option(name="async_scheduling", kind="flag"),
        Option(name="enable_prefix_caching", kind="flag"),
        Option(name="mamba_cache_mode", kind="choice", choices=("none", "align")),
        Option(name="disable_hybrid_kv_cache_manager", kind="flag"),
        Option(name="num_speculative_tokens", kind="integer", default=0),
        Option(
            name="speculative_method",
            kind="choice",
            default="mtp",
            choices=("mtp", "eagle", "eagle3", "draft_model", "ngram", "suffix"),
        ),
        Option(name="max_num_batched_tokens", kind="integer", minimum=1),
        Option(name="max_num_seqs", kind="integer", minimum=1),
        Option(
            name="usage_context",
            kind="choice",
            default="api_server",
            choices=("api_server", "llm_class"),
        ),
        Option(name="attention_backend", kind="choice", choices=BACKENDS),
        Option(name="num_gpu_blocks_override", kind="integer", minimum=1),
    )

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        return resolve(model, kv, indexer, state, settings)

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        return legal_names(model, settings)

    def check(self, model: Model, settings: Settings) -> None:
        check(
            model,
            RULES[settings.version],
            major=capability(settings.device),
            tp=settings.tp,
            pp=settings.pp,
            dcp=settings.dcp,
        )

    def memory_fraction(self, model: Model, settings: Settings) -> float:
        """Default `gpu_memory_utilization`: a share of a GPU's total memory."""
        return RULES[settings.version].utilization

    def batched_tokens(self, settings: Settings) -> int:
        return batched_tokens(settings)

    def stage_layers(self, layers: int, pp: int) -> tuple[int, ...]:
        stages = stage_of_layer(layers, pp)
        return tuple(stages.count(stage) for stage in range(pp))

    def shares_prefixes(self, settings: Settings) -> bool:
        return settings.options["enable_prefix_caching"] is not False

    def budget(
        self, memory: RankMemory, model: Model, settings: Settings
    ) -> tuple[int, int]:
        """ceil(total x utilization), less weights and what profiling finds in use.

        Source: vllm/v1/worker/utils.py 0.33.0, request_memory.
        """
        fraction = memory.fraction or self.memory_fraction(model, settings)
        usable = ceil(memory.total_bytes * fraction)
        left = usable - memory.weight_bytes - memory.reserve_bytes
        return usable, max(left, 0)

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        d = deployment(model, settings, scope.draft)
        plan = _plan(_Same(model), formats, d)
        encoder = _encoder(model, scope)
        found = components_of(plan, scope, encoder)
        items = items_of(plan, scope, formats, encoder)
        return Allocation(
            components=found,
            items=MappingProxyType(items),
            notices=_notices(model, encoder),
            reserved_bytes=plan.block_bytes if plan.groups else 0,
        )

    def pool(
        self,
        model: Model,
        formats: CacheFormats,
        settings: Settings,
        *,
        pool_bytes: int,
        context: int,
    ) -> Pool | None:
        d = deployment(model, settings)
        plan = _plan(_Same(model), formats, d)
        if not plan.groups:
            return None
        override = settings.options["num_gpu_blocks_override"]
        blocks = int(override) if override else pool_bytes // plan.block_bytes
        in_flight = d.in_flight(context)
        encoder = encoder_length(model)
        per_request = [
            group.blocks(context, in_flight, d.dcp, encoder) for group in plan.groups
        ]
        concurrency = blocks / plan.charged_blocks(per_request)
        tokens = _logged_tokens(plan, d, blocks, concurrency, context)
        return Pool(
            pool_bytes=pool_bytes,
            block_tokens=plan.block_tokens,
            block_bytes=plan.block_bytes,
            blocks=blocks,
            tokens=tokens,
            bytes_per_token=plan.marginal_bytes,
            max_concurrency=concurrency,
            groups=tuple(
                PoolGroup(
                    kind=group.kind,
                    layers=len(group.caches),
                    block_tokens=_block_tokens(group, d, context),
                    page_bytes=group.page_bytes,
                    blocks_per_request=count,
                )
                for group, count in zip(plan.groups, per_request, strict=True)
            ),
            log_lines=_log_lines(d, tokens, context, concurrency),
        )


def _block_tokens(group: Group, d: Deployment, context: int) -> int:
    """A state that is not kept at boundaries covers a whole request."""
    if group.first.kind == "state" and not d.aligned_states:
        return context
    return group.first.block_tokens


def _notices(model: Model, encoder: int) -> tuple[Notice, ...]:
    """Blocks of an encoder are for its own length, not for a whole batch.

    The log of 0.33 reserves `max_num_batched_tokens` of them for each request.
    """
    if not any(isinstance(spec, CrossAttention) for spec, _ in model.groups):
        return ()
    return (Notice("encoder_tokens_assumed", {"value": encoder}),)


def _encoder(model: Model, scope: Scope) -> int:
    if scope.encoder_tokens is None:
        return encoder_length(model)
    return scope.encoder_tokens


def _logged_tokens(
    plan: Plan, d: Deployment, blocks: int, concurrency: float, context: int
) -> int:
    """The number in the log: since 0.20 requests of full length, in tokens.

    Before, blocks shared out evenly over the groups.
    Source: vllm/v1/core/kv_cache_utils.py, get_kv_cache_capacity; 0.19.1,
    _report_kv_cache_config.
    """
    if d.rules.tokens_by_concurrency:
        return int(concurrency * context)
    smallest = min(group.first.block_tokens for group in plan.groups)
    return blocks // len(plan.groups) * smallest * d.dcp


def _log_lines(
    d: Deployment, tokens: int, context: int, concurrency: float
) -> tuple[str, ...]:
    size = f"GPU KV cache size: {tokens:,} tokens"
    users = (
        f"Maximum concurrency for {context:,} tokens per request: {concurrency:.2f}x"
    )
    return (f"{size}, {users}",) if d.rules.one_log_line else (size, users)
