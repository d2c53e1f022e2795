"""A planned cache: groups, the bytes of one block, and what the paging adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from kvcore.cache import Component
from kvcore.engines.vllm_deployment import Deployment
from kvcore.engines.vllm_groups import Group, groups_of
from kvcore.engines.vllm_layers import (
    caches_of,
    is_block_outermost,
    stage_of_layer,
)
from kvcore.engines.vllm_pages import ALL_TOKENS, Page
from kvcore.errors import UnsupportedModel, UnsupportedOption
from kvcore.estimate import CacheFormats, Scope, estimate
from kvcore.model import Model


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Groups of the whole model and the block of the stage that holds most.

    A pool has as many blocks on every stage as on the poorest, so the stage with the
    widest block decides.
    """

    deployment: Deployment
    groups: tuple[Group, ...]
    stage: int
    block_bytes: int

    @property
    def block_tokens(self) -> int:
        """Block of the layers that grow; the smallest one if none does."""
        growing = [
            page.block_tokens
            for group in self.groups
            for page, _ in group.distinct
            if page.kind in ALL_TOKENS
        ]
        every = [group.first.block_tokens for group in self.groups]
        return min(growing or every)

    def shares(self, group: Group, given: int) -> dict[Component, int]:
        """`given` bytes of a group by component; padding goes to the largest."""
        pages: Counter[Component] = Counter()
        for cache in group.caches:
            if cache.stage == self.stage:
                component = "draft" if cache.page.draft else cache.page.component
                pages[component] += cache.page.page_bytes
        if not pages:
            return {group.first.component: given}
        total = given // self.block_bytes
        found: dict[Component, int] = {c: n * total for c, n in pages.items()}
        largest = max(pages, key=lambda component: pages[component])
        found[largest] += given - sum(found.values())
        return found


def plan_of(model: Model, formats: CacheFormats, d: Deployment) -> Plan:
    caches = caches_of(model, formats, d)
    try:
        groups = groups_of(
            caches,
            hybrid=d.hybrid,
            block_outermost=is_block_outermost(model),
            threshold=d.rules.group_threshold,
        )
    except UnsupportedModel as error:
        if d.hybrid:
            raise UnsupportedModel(
                model_type=model.model_type, reason=error.params["reason"]
            ) from error
        raise UnsupportedOption(
            engine="vllm",
            option="disable_hybrid_kv_cache_manager",
            value=True,
            reason="states and attention cannot share one group",
        ) from error
    stages = range(d.pp) if groups else ()
    widths = [block_bytes(groups, stage, d) for stage in stages]
    stage = max(range(len(widths)), key=lambda i: widths[i]) if widths else 0
    return Plan(
        deployment=d,
        groups=groups,
        stage=stage,
        block_bytes=widths[stage] if widths else 0,
    )


def block_bytes(groups: tuple[Group, ...], stage: int, d: Deployment) -> int:
    """Bytes of one block on that stage: what the widest group needs of it.

    Up to 0.26 mixed pages had fixed places: one for every page any group has of a
    size (0.25), or as many tuples of one page of every size (0.20).
    Source: vllm/v1/core/kv_cache_utils.py, _pool_bytes_per_block.
    """
    mixed = len(groups) > 1 and any(group.side_by_side for group in groups)
    if not mixed or d.rules.packing == "widest":
        return max(group.block_bytes(stage) for group in groups)
    sizes = sorted(
        {
            page.page_bytes
            for group in groups
            for page, _ in group.distinct
            if page.kind in ALL_TOKENS
        }
    )
    slots = dict.fromkeys(sizes, 0)
    for group in groups:
        needed = Counter(
            min(size for size in sizes if size >= cache.page.page_bytes)
            for cache in group.caches
            if cache.stage == stage
        )
        for size, count in needed.items():
            slots[size] = max(slots[size], count)
    if d.rules.packing == "tuples":
        return sum(sizes) * max(slots.values())
    return sum(size * count for size, count in slots.items())


def items_of(
    model: Model, plan: Plan, scope: Scope, formats: CacheFormats, encoder: int
) -> dict[str, int]:
    """What the engine adds to this rank's share of the logical bytes, by cause.

    The share is what every rank would hold if all were divided evenly; the items and
    the share sum to what is allocated.
    """
    d = plan.deployment
    tokens = scope.tokens
    added: Counter[str] = Counter()
    held = 0
    for group in plan.groups:
        if not scope.state and group.first.component == "state":
            continue
        blocks = group.blocks(tokens, d.in_flight(tokens), d.dcp, encoder)
        pages = 0
        for cache in group.caches:
            if cache.stage != plan.stage:
                continue
            page = cache.page
            own = page.logical_bytes(tokens, d.dcp, encoder)
            held += own
            pages += page.page_bytes
            added[_cause(page)] += blocks * page.natural_bytes - own
            added["page_padding"] += blocks * (page.page_bytes - page.natural_bytes)
        added["padding_layers"] += blocks * (plan.block_bytes - pages)
    share = _share(model, scope, formats, d, plan)
    added["replication"] += held - share
    return {cause: n * scope.sequences for cause, n in added.items() if n}


def _cause(page: Page) -> str:
    if page.kind == "state":
        return "state_copies"
    if page.spec_kind == "compressor_state":
        return "compressor_states"
    return "blocks" if page.kind in (*ALL_TOKENS, "cross") else "window_reserve"


def _share(
    model: Model, scope: Scope, formats: CacheFormats, d: Deployment, plan: Plan
) -> int:
    """Logical bytes of the stage's layers of one sequence, over its ranks."""
    placed = stage_of_layer(len(model.layers), d.pp)
    part = replace(
        model,
        layers=tuple(
            layer
            for layer, stage in zip(model.layers, placed, strict=True)
            if stage == plan.stage
        ),
        draft_layers=model.draft_layers if plan.stage == d.pp - 1 else (),
    )
    one = replace(scope, sequences=1, draft=d.drafts)
    return estimate(part, one, formats).total_bytes // d.tp
