"""A planned cache: groups, the bytes of one block, and what the paging adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from kvcore.cache import Component
from kvcore.engines.base import no_bytes
from kvcore.engines.vllm.deployment import Deployment
from kvcore.engines.vllm.groups import Group, groups_of
from kvcore.engines.vllm.layers import (
    caches_of,
    is_block_outermost,
    stage_of_layer,
)
from kvcore.engines.vllm.pages import ALL_TOKENS, Page
from kvcore.errors import UnsupportedModel, UnsupportedOption
from kvcore.estimate import CacheFormats, Scope, estimate
from kvcore.model import Model


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one group has on the stage that holds most.

    `pages` are its distinct pages there with their counts, `component_bytes` those of
    one block by component, `padding_bytes` what the block has beyond them.
    """

    group: Group
    pages: tuple[tuple[Page, int], ...]
    component_bytes: Mapping[Component, int]
    padding_bytes: int

    @property
    def is_state(self) -> bool:
        return self.group.first.component == "state"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Groups of the whole model and the block of the stage that holds most.

    A pool has as many blocks on every stage as on the poorest, so the stage with the
    widest block decides; `stage_model` is its part of the model.
    """

    deployment: Deployment
    groups: tuple[Group, ...]
    parts: tuple[Part, ...]
    block_bytes: int
    stage_model: Model

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

    @property
    def marginal_bytes(self) -> float:
        """What one more token of a long request takes of the pool, padding included."""
        growing = (g.first for g in self.groups if g.first.kind in ALL_TOKENS)
        per_block = sum(1 / page.block_tokens for page in growing)
        return self.block_bytes * per_block / self.deployment.dcp

    def charged_blocks(self, per_request: Sequence[int]) -> int:
        """Blocks of one request in the logged concurrency, from those of each group.

        Up to 0.26 groups of narrow pages count for less than the blocks they take.
        Source: get_max_concurrency_for_kv_cache_config in
        vllm/v1/core/kv_cache_utils.py of 0.20.2 to 0.26.0, and of 0.27.1.
        """
        sizes = page_sizes(self.groups)
        if not (self.deployment.rules.concurrency_by_bytes and is_mixed(self.groups)):
            return max(sum(per_request), 1)
        widths = [
            sum(at_least(page.page_bytes, sizes) * n for page, n in group.distinct)
            for group in self.groups
        ]
        charged = sum(n * width for n, width in zip(per_request, widths, strict=True))
        whole = next(
            width
            for group, width in zip(self.groups, widths, strict=True)
            if group.first.kind in ALL_TOKENS
        )
        return max(-(-charged // whole), 1)

    def parts_of(self, scope: Scope) -> tuple[Part, ...]:
        """All groups, or those that are not states when states are left out."""
        if scope.state:
            return self.parts
        return tuple(part for part in self.parts if not part.is_state)


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
    widths = [block_bytes(groups, stage, d) for stage in range(d.pp) if groups]
    stage = max(range(len(widths)), key=lambda i: widths[i]) if widths else 0
    block = widths[stage] if widths else 0
    return Plan(
        deployment=d,
        groups=groups,
        parts=tuple(_part(group, stage, block) for group in groups),
        block_bytes=block,
        stage_model=_stage_model(model, stage, d.pp),
    )


def _part(group: Group, stage: int, block: int) -> Part:
    here = [cache.page for cache in group.caches if cache.stage == stage]
    sizes: Counter[Component] = Counter()
    for page in here:
        sizes["draft" if page.draft else page.component] += page.page_bytes
    padding = block - sum(sizes.values())
    most = max(sizes, key=lambda c: sizes[c]) if sizes else group.first.component
    sizes[most] += padding
    return Part(
        group=group,
        pages=tuple(Counter(here).items()),
        component_bytes=MappingProxyType(dict(sizes)),
        padding_bytes=padding,
    )


def _stage_model(model: Model, stage: int, pp: int) -> Model:
    placed = stage_of_layer(len(model.layers), pp)
    layers = zip(model.layers, placed, strict=True)
    return replace(
        model,
        layers=tuple(layer for layer, its in layers if its == stage),
        draft_layers=model.draft_layers if stage == pp - 1 else (),
    )


def is_mixed(groups: tuple[Group, ...]) -> bool:
    """Whether blocks of several groups hold pages of several sizes."""
    return len(groups) > 1 and any(group.side_by_side for group in groups)


def page_sizes(groups: tuple[Group, ...]) -> list[int]:
    """The sizes of pages that keep every token, smallest first."""
    return sorted(
        {
            page.page_bytes
            for group in groups
            for page, _ in group.distinct
            if page.kind in ALL_TOKENS
        }
    )


def at_least(count: int, sizes: list[int]) -> int:
    """The page a smaller one is padded to."""
    return min(size for size in sizes if size >= count)


def block_bytes(groups: tuple[Group, ...], stage: int, d: Deployment) -> int:
    """Bytes of one block on that stage: what the widest group needs of it.

    Up to 0.26 mixed pages had fixed places: one for every page any group has of a
    size (0.25), or as many tuples of one page of every size (0.20).
    Source: vllm/v1/core/kv_cache_utils.py, _pool_bytes_per_block.
    """
    if not is_mixed(groups) or d.rules.packing == "widest":
        return max(group.block_bytes(stage) for group in groups)
    sizes = page_sizes(groups)
    slots = dict.fromkeys(sizes, 0)
    for group in groups:
        needed = Counter(
            at_least(cache.page.page_bytes, sizes)
            for cache in group.caches
            if cache.stage == stage
        )
        for size, count in needed.items():
            slots[size] = max(slots[size], count)
    if d.rules.packing == "tuples":
        return sum(sizes) * max(slots.values())
    return sum(size * count for size, count in slots.items())


def components_of(plan: Plan, scope: Scope, encoder: int) -> dict[Component, int]:
    """Bytes of all sequences' blocks by component.

    What a block has beyond a group's pages counts with the group's largest component.
    """
    d, tokens = plan.deployment, scope.tokens
    found = no_bytes()
    for part in plan.parts_of(scope):
        blocks = part.group.blocks(tokens, d.in_flight(tokens), d.dcp, encoder)
        for component, size in part.component_bytes.items():
            found[component] += scope.sequences * blocks * size
    return found


def items_of(
    plan: Plan, scope: Scope, formats: CacheFormats, encoder: int
) -> dict[str, int]:
    """What the engine adds to this rank's share of the logical bytes, by cause.

    The share is what every rank would hold if all were divided evenly; the items and
    the share sum to what is allocated.
    """
    d, tokens = plan.deployment, scope.tokens
    added: Counter[str] = Counter()
    held = 0
    for part in plan.parts_of(scope):
        blocks = part.group.blocks(tokens, d.in_flight(tokens), d.dcp, encoder)
        for page, count in part.pages:
            own = page.logical_bytes(tokens, d.dcp, encoder)
            natural, size = page.natural_bytes, page.page_bytes
            held += count * own
            added[_cause(page)] += count * (blocks * natural - own)
            added["page_padding"] += count * blocks * (size - natural)
        added["padding_layers"] += blocks * part.padding_bytes
    one = replace(scope, sequences=1, draft=d.drafts)
    share = estimate(plan.stage_model, one, formats).total_bytes // d.tp
    added["replication"] += held - share
    return {cause: n * scope.sequences for cause, n in added.items() if n}


def _cause(page: Page) -> str:
    if page.kind == "state":
        return "state_copies"
    if page.spec_kind == "compressor_state":
        return "compressor_states"
    return "blocks" if page.kind in (*ALL_TOKENS, "cross") else "window_reserve"
