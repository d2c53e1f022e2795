"""Blocks a request needs, what that comes to, and how a given pool is cut.

Source: tensorrt_llm/_torch/pyexecutor/resource_manager.py @001541ba (V1), cpp/
tensorrt_llm/batch_manager/kvCacheManager.cpp @b35ac1b6 (engine builds), tensorrt_llm/
runtime/kv_cache_manager_v2/_storage_manager.py (V2). Read, not executed.

Every window has a pool. V1 gives each the same share of the memory, whatever it needs;
V2 gives each what a typical request takes of it, so that here it holds what is needed.
V2's rounding of pools to 2 to 32 MiB is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from kvcore.cache import Component
from kvcore.engines.base import Settings, no_bytes
from kvcore.engines.tensorrt_llm.buffers import Buffer, Stage
from kvcore.engines.tensorrt_llm.models import (
    is_compressed,
    reserved_slots,
    state_slots,
    uses_manager_v2,
)
from kvcore.engines.tensorrt_llm.options import (
    block_tokens,
    integer,
    is_engine_build,
    number,
)
from kvcore.errors import UnsupportedOption
from kvcore.model import Model

TYPICAL_TOKENS: Final = 2049
"""The request by which V2 cuts a pool into those of its windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Requests of one rank; `copies` are the states each keeps."""

    requests: int
    tokens: int
    encoder_tokens: int
    copies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one stage allocates for a demand, by component.

    `unused` is what fixed shares set aside beyond the need, and `padding` what lies
    unused within rows; both are contained in `components`.
    """

    stage: Stage
    components: Mapping[Component, int]
    unused: Mapping[Component, int]
    padding: Mapping[Component, int]
    reserved: int

    @property
    def bytes(self) -> int:
        return sum(self.components.values())


def blocks_of(tokens: int, window: int | None, block: int) -> int:
    """Blocks of one request: the window's and one that is being left."""
    if window is None or tokens <= window:
        return -(-tokens // block)
    return -(-window // block) + 1


def cross_fraction(settings: Settings) -> Fraction:
    """`cross_kv_cache_fraction` as it is written; 0 where it is not given."""
    return Fraction(str(number(settings, "cross_kv_cache_fraction") or 0))


def hold(stage: Stage, model: Model, settings: Settings, demand: Demand) -> Held:
    """What a stage allocates for a demand."""
    block = block_tokens(model, settings)
    components, padding, unused = no_bytes(), no_bytes(), no_bytes()
    needs: dict[int | None, int] = {}
    for window in stage.windows:
        count = demand.requests * blocks_of(demand.tokens, window, block)
        _check_tokens(stage, settings, count, block)
        for buffer in stage.of(window):
            components[buffer.component] += count * buffer.block_bytes
            padding[buffer.component] += count * buffer.padding_bytes
        needs[window] = count * _bytes(stage.of(window))
    if not uses_manager_v2(model, settings):
        # V1's shares: every window gets as much as the one that needs most.
        most = max(needs.values(), default=0)
        for window, need in needs.items():
            unused[stage.of(window)[0].component] += most - need
    components["cross"] = demand.requests * cross_bytes(
        stage, demand.encoder_tokens, block
    )
    unused["cross"] = _cross_unused(stage, settings, components, unused)
    slots = state_slots(settings, requests=demand.requests)
    states = stage.state_bytes if demand.copies else 0
    components["state"] += slots * demand.copies * states
    for component, count in unused.items():
        components[component] += count
    return Held(
        stage=stage,
        components=components,
        unused=unused,
        padding=padding,
        reserved=reserved_slots(settings) * states,
    )


def _bytes(buffers: tuple[Buffer, ...]) -> int:
    return sum(buffer.block_bytes for buffer in buffers)


def _cross_unused(
    stage: Stage,
    settings: Settings,
    components: Mapping[Component, int],
    unused: Mapping[Component, int],
) -> int:
    """What a fixed share for an encoder's keys and values leaves unused."""
    if not stage.cross:
        return 0
    share, need = cross_fraction(settings), components["cross"]
    own = sum(components.values()) - need + sum(unused.values())
    return ceil(max(need / share, own / (1 - share))) - own - need


def cross_bytes(stage: Stage, encoder_tokens: int, block: int) -> int:
    """Blocks of an encoder's output for one request."""
    return sum(
        -(-(encoder_tokens if fixed is None else fixed) // block) * buffer.block_bytes
        for buffer, fixed in stage.cross
    )


def _check_tokens(stage: Stage, settings: Settings, blocks: int, block: int) -> None:
    """`max_tokens` bounds a pool; with several windows it is ignored."""
    limit = integer(settings, "max_tokens")
    if limit is None or len(stage.windows) > 1:
        return
    most = -(-limit // block) if is_engine_build(settings) else limit // block
    if blocks > most:
        raise UnsupportedOption(
            engine="tensorrt_llm",
            option="max_tokens",
            value=limit,
            reason=f"{blocks} blocks are needed and it leaves {most}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A window's pool: `counted_bytes` of a block is what the engine divides by."""

    window: int | None
    blocks: int
    block_bytes: int
    secondary: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """A stage's memory as it is cut up; `slots` are states, reserved ones left out."""

    stage: Stage
    cuts: tuple[Cut, ...]
    slots: int
    cross_bytes: int


def cut(
    stage: Stage, model: Model, settings: Settings, *, pool_bytes: int, context: int
) -> Pools:
    """How a stage's memory is cut up for requests of `context` tokens."""
    share = cross_fraction(settings) if stage.cross else Fraction(0)
    own = int(pool_bytes * (1 - share))
    reserved = reserved_slots(settings) * stage.state_bytes
    batch = integer(settings, "max_batch_size")
    left = max(own - reserved, 0) if stage.state_bytes else own
    slots = 0
    if stage.state_bytes and batch is not None:
        slots = batch * settings.pp
        left = max(left - slots * stage.state_bytes, 0)
    weights = _weights(stage, model, settings, context)
    if stage.state_bytes and batch is None:
        states = left * stage.state_bytes // (sum(weights.values()) + stage.state_bytes)
        slots = states // stage.state_bytes
        left -= states
    total = sum(weights.values())
    return Pools(
        stage=stage,
        cuts=tuple(
            _cut(stage, window, model, settings, left * weight // total)
            for window, weight in weights.items()
            if total
        ),
        slots=slots,
        cross_bytes=pool_bytes - own,
    )


def _weights(
    stage: Stage, model: Model, settings: Settings, context: int
) -> dict[int | None, int]:
    """The parts of the memory by window: even ones, or a typical request's."""
    block = block_tokens(model, settings)
    if not uses_manager_v2(model, settings):
        return dict.fromkeys(stage.windows, 1)
    typical = context if is_compressed(model) else TYPICAL_TOKENS
    return {
        window: blocks_of(typical, window, block) * _bytes(stage.of(window))
        for window in stage.windows
    }


def _cut(
    stage: Stage, window: int | None, model: Model, settings: Settings, share: int
) -> Cut:
    """Whole tokens of the share, then whole blocks: C++ rounds the last one up."""
    block = block_tokens(model, settings)
    buffers = stage.of(window)
    counted = _bytes(buffers)
    if is_engine_build(settings):
        # The pool of nvfp4's scales is left out of the budget there.
        counted -= sum(buffer.scale_bytes for buffer in buffers)
    tokens = share * block // counted
    limit = integer(settings, "max_tokens")
    if limit is not None and len(stage.windows) == 1:
        tokens = min(tokens, limit)
    host = (integer(settings, "host_cache_size") or 0) * block // counted
    return Cut(
        window=window,
        blocks=-(-tokens // block) if is_engine_build(settings) else tokens // block,
        block_bytes=_bytes(buffers),
        secondary=host // block,
    )
