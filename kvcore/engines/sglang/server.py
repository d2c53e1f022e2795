"""One SGLang server: its arguments, its state pool, and the pools of its stages.

Source: sglang/srt/mem_cache/kv_cache_configurator.py (config_from_budget,
resolve_max_num_reqs) of the 0.5.23 wheel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvcore.cache import (
    ChunkedAttention,
    Component,
    CompressedAttention,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.base import Settings
from kvcore.engines.sglang.arguments import (
    MAX_REQUESTS,
    SURE_REQUESTS,
    Arguments,
    resolve,
)
from kvcore.engines.sglang.cells import Cells, stage_cells, stages
from kvcore.engines.sglang.compressed import compressed_pool
from kvcore.engines.sglang.models import LAST_OF_WINDOW, class_of, is_compressed
from kvcore.engines.sglang.pools import (
    CappedPool,
    Demand,
    PlainPool,
    Sizes,
    SplitPool,
    TokenPool,
    live_window,
    whole_pages,
)
from kvcore.engines.sglang.states import StatePool, state_pool
from kvcore.engines.sglang.versions import older, older_stages
from kvcore.errors import UnsupportedOption
from kvcore.estimate import CacheFormats, Scope, encoder_tokens
from kvcore.model import Model

REQUESTS_PER_CONTEXT = 512
"""Requests the server expects for each full context its tokens hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Smallest allocation of one stage for a demand: bytes by component, and what
    of the rows' budget the demand leaves unused because pools are cut by ratio.
    """

    stage: range
    shares: Mapping[Component, int]
    state: int
    unused: int

    @property
    def total(self) -> int:
        return sum(self.shares.values()) + self.state + self.unused


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A budget as the server cuts it: state slots, and the pools of every stage."""

    slots: int
    sizes: Sizes
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A model under resolved arguments; one token pool for each pipeline stage."""

    model: Model
    formats: CacheFormats
    arguments: Arguments
    states: StatePool
    stages: tuple[range, ...]
    cells: tuple[Cells, ...]
    pools: tuple[TokenPool, ...]

    def demand(self, sequences: int, tokens: int) -> Demand:
        """Rows of `sequences` requests; refuses more than the server ever runs."""
        arguments = self.arguments
        limit = arguments.max_running or MAX_REQUESTS
        if sequences > limit:
            raise UnsupportedOption(
                engine="sglang",
                option="max_running_requests",
                value=sequences,
                reason=f"it runs {limit} requests at once unless told otherwise",
            )
        least = 2 * sequences
        if arguments.max_running is None and sequences > SURE_REQUESTS:
            expected = -(-sequences * arguments.context // REQUESTS_PER_CONTEXT)
            least = max(least, expected)
        page = arguments.page
        turns = 1 if arguments.split_windows else arguments.dcp
        rows = sequences * -(-tokens // (page * turns)) * page
        self._within_limit(rows)
        return Demand(
            requests=sequences,
            tokens=tokens,
            rows=rows,
            least=whole_pages(least, page),
        )

    def _within_limit(self, rows: int) -> None:
        limit = self.arguments.max_total
        if limit is not None and rows > limit:
            raise UnsupportedOption(
                engine="sglang",
                option="max_total_tokens",
                value=limit,
                reason=f"these requests take {rows} rows",
            )

    def smallest(self, demand: Demand, *, state: bool = True) -> Held:
        """The fullest stage's smallest allocation that holds a demand."""
        states = self.states if state else replace(self.states, slot_bytes=0)
        held = []
        for stage, pool in zip(self.stages, self.pools, strict=True):
            shares = pool.smallest(demand)
            rows = sum(shares.values())
            slots, left = states.smallest(rows, demand.requests)
            held.append(
                Held(stage=stage, shares=shares, state=slots, unused=left - rows)
            )
        return max(held, key=lambda stage: stage.total)

    def cut(self, budget: int) -> Cut:
        """How a rank's budget becomes slots, tokens and running requests."""
        slots, left = self.states.split(budget)
        every = [pool.sizes(left) for pool in self.pools]
        tokens = min(sizes.tokens for sizes in every)
        limit = self.arguments.max_total
        if limit is not None:
            tokens = min(tokens, limit)
        sizes = every[0]
        if tokens != sizes.tokens:
            sizes = self.pools[0].resized(tokens)
        return Cut(slots=slots, sizes=sizes, requests=self._running(slots, sizes))

    def concurrency(self, cut: Cut, context: int) -> float:
        """Requests of `context` tokens that one group's rows hold."""
        turns = 1 if self.arguments.split_windows else self.arguments.dcp
        return cut.sizes.tokens * turns / context if context else 0.0

    def _running(self, slots: int, sizes: Sizes) -> int:
        """max_running_requests of one group of ranks."""
        arguments = self.arguments
        if arguments.max_running is not None:
            found = arguments.max_running
        else:
            ratio = REQUESTS_PER_CONTEXT
            expected = int(sizes.tokens / arguments.context * ratio)
            found = max(min(expected, MAX_REQUESTS), SURE_REQUESTS)
        found = min(found, sizes.tokens // 2)
        if self.states.slot_bytes:
            found = min(found, slots // arguments.slots_per_request)
        return max(found, 0)


def open_server(
    model: Model, formats: CacheFormats, settings: Settings, *, draft: bool = False
) -> Server:
    """The server that settings describe."""
    arguments = resolve(model, settings, formats.kv, draft=draft)
    whole = stages if older(settings) is None else older_stages
    layers = whole(model.num_layers, settings.pp)
    if is_compressed(model):
        cells: tuple[Cells, ...] = tuple(Cells(full={}) for _ in layers)
        pools: tuple[TokenPool, ...] = tuple(
            compressed_pool(
                model, stage, arguments, capped=not arguments.swa_ratio_given
            )
            for stage in layers
        )
    else:
        cells = tuple(stage_cells(model, stage, arguments, formats) for stage in layers)
        pools = tuple(_pool(model, cell, arguments) for cell in cells)
    return Server(
        model=model,
        formats=formats,
        arguments=arguments,
        states=state_pool(model, layers, arguments, formats),
        stages=layers,
        cells=cells,
        pools=pools,
    )


def _pool(model: Model, cells: Cells, arguments: Arguments) -> TokenPool:
    if not arguments.split_windows or not cells.window:
        elsewhere = arguments.pp > 1 and any(_rows(spec) for spec, _ in model.groups)
        unlimited = arguments.max_total or arguments.context
        return PlainPool(
            cells=cells,
            page=arguments.page,
            unlimited=2**63 - 1 if elsewhere else unlimited,
        )
    live = live_window(window_of(model), arguments)
    capped = arguments.max_running is not None and not arguments.radix
    if capped and cells.full_bytes:
        cap = live.cap(arguments.max_running or 1)
        return CappedPool(
            cells=cells,
            page=arguments.page,
            window_tokens=whole_pages(cap, arguments.page),
        )
    return SplitPool(
        cells=cells,
        page=arguments.page,
        ratio=arguments.swa_ratio,
        window=live.window,
        live=live,
    )


def _rows(spec: object) -> bool:
    return bool(getattr(spec, "head_dim", 0) or getattr(spec, "kv_lora_rank", 0))


def window_of(model: Model) -> int:
    """The window in SGLang's count: some classes leave out the looking token."""
    widths = [0]
    for spec, _ in model.groups:
        if isinstance(spec, SlidingWindowAttention | CompressedAttention):
            widths.append(spec.window)
        elif isinstance(spec, ChunkedAttention):
            widths.append(spec.chunk)
        elif isinstance(spec, LatentAttention) and spec.window:
            widths.append(spec.window)
    return max(widths) - (class_of(model) in LAST_OF_WINDOW)


def request_tokens(model: Model, scope: Scope) -> int:
    """Tokens a request keeps rows for: an encoder's are rows like any other."""
    tokens = scope.tokens + model.extra_tokens
    return tokens + (encoder_tokens(model, scope) if model.has_encoder else 0)
