"""What a cached block takes, what a request keeps beside its blocks, and what runs.

All in bytes of one rank. A block of full length costs what the engine allocates for
its caches that grow with tokens. Windows and states do not grow: a request leaves what
its last window and its state take at the end of its prompt, once, in whole blocks
where the engine deals in blocks. Running requests take what the engine allocates for
them at their full length, window reserves and state copies included; that is taken off
the pool before anything is cached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from kvcore.engines.none import NoEngine
from kvcore.estimate import Scope
from kvcore.model import Model
from kvcore.scenario import Scenario, allocated

LONG: Final = 2048
"""Blocks over which the growth of one is measured (compressed caches grow in steps)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Bytes, and the unit in which the stack counts.

    `unit` is a block of growing caches, or, where nothing grows, the state.
    """

    block: int
    unit: int
    block_cost: int
    checkpoints_only: bool
    tail_bytes: Callable[[int], int]
    request_bytes: Callable[[int], int]

    def tail_units(self, tokens: int) -> int:
        """Units of window and state at the end of a prompt of so many tokens."""
        return -(-self.tail_bytes(tokens) // self.unit)


def costs_of(scenario: Scenario, asked_block: int | None, trace_block: int) -> Costs:
    """The costs in a scenario: blocks as asked, as the engine has them, or the trace's.

    `auto` costs of a token are those of a long prompt: caches that are compressed grow
    in steps longer than a block.
    """
    pool = scenario.engine.pool(
        scenario.model,
        scenario.formats,
        scenario.settings,
        pool_bytes=scenario.device.total_bytes,
        context=scenario.context,
    )
    granule = max(pool.block_bytes, 1) if pool else 1
    block = asked_block or (pool.block_tokens if pool else trace_block)
    per_block = -(-_growing(scenario, LONG * block) // LONG)
    bound = _bound(scenario.model)

    @cache
    def tail(tokens: int) -> int:
        held = NoEngine().allocate(
            scenario.model,
            Scope(tokens=tokens, draft=scenario.draft),
            scenario.formats,
            scenario.settings,
        )
        kept = held.components["window"] + held.components["state"]
        return -(-kept // granule) * granule

    @cache
    def running(tokens: int) -> int:
        return allocated(scenario, 1, tokens).bytes_per_rank

    return Costs(
        block=block,
        unit=per_block or max(tail(bound), 1),
        block_cost=1 if per_block else 0,
        checkpoints_only="state" in scenario.model.components,
        tail_bytes=lambda tokens: tail(min(-(-tokens // block) * block, bound)),
        request_bytes=cache(lambda tokens: running(_knot(tokens, block))),
    )


def _growing(scenario: Scenario, tokens: int) -> int:
    parts = allocated(scenario, 1, tokens).components
    return parts["kv"] + parts["indexer"] + parts["draft"]


def _bound(model: Model) -> int:
    """Tokens beyond which nothing but the growing caches grows."""
    values = [spec.values for layer in model.layers for spec in layer]
    return max(max(v.get("window", 0), v.get("chunk", 0)) for v in values) or 1


def _knot(tokens: int, block: int) -> int:
    """A length no shorter, one of few: whole blocks, of more than 64 one in 64."""
    blocks = -(-tokens // block)
    step = max(1, 1 << max(blocks.bit_length() - 7, 0))
    return -(-blocks // step) * step * block
