"""SGLang: a static share of memory cut into token rows, window rows and states.

Source: the wheel of SGLang 0.5.23; each part's module says which files. What is
allocated for a demand is the smallest budget whose pools hold it, as the engine cuts
budgets: windows and states take fixed ratios, whether they are needed or not. A pool
of n tokens has one page of rows more, which its budget does not contain.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import ClassVar

from kvcore.cache import Component
from kvcore.engines.base import (
    Allocation,
    Engine,
    HostMemory,
    Pool,
    RankMemory,
    Settings,
    no_bytes,
)
from kvcore.engines.case import Case
from kvcore.engines.options import Option
from kvcore.engines.sglang.arguments import chunk_tokens
from kvcore.engines.sglang.backends import asked_page, attention_groups
from kvcore.engines.sglang.cells import drafts_uncounted, stages
from kvcore.engines.sglang.check import check, check_options, shard_notices
from kvcore.engines.sglang.formats import legal_names, resolve
from kvcore.engines.sglang.items import items_of
from kvcore.engines.sglang.lines import groups, log_lines
from kvcore.engines.sglang.memory import budget, static_fraction
from kvcore.engines.sglang.options import OPTIONS, flag
from kvcore.engines.sglang.server import Held, Server, open_server, request_tokens
from kvcore.engines.sglang.versions import NEWEST, OLDER, older
from kvcore.errors import Notice, UnsupportedOption
from kvcore.estimate import CacheFormats, Scope
from kvcore.model import Model


@lru_cache(maxsize=256)
def _server(case: Case) -> Server:
    check(case.model, case.settings)
    check_options(case.model, case.settings)
    if case.draft and case.model.draft_layers and older(case.settings):
        raise UnsupportedOption(
            engine="sglang",
            option="draft",
            value=True,
            reason=f"drafts of {case.settings.version} are not computed here",
        )
    return open_server(case.model, case.formats, case.settings, draft=case.draft)


class SGLang(Engine):
    """One server; its sequences are those of one group of ranks.

    With `enable_dp_attention` every group of `dp_size` (or `dp`) ranks' attention
    serves requests of its own: `dp_size` divides the sequences asked for, `dp` is
    taken to have divided them already.
    """

    id: ClassVar[str] = "sglang"
    versions: ClassVar[tuple[str, ...]] = (NEWEST, *OLDER)
    captures_graphs: ClassVar[bool] = True
    host_memory: ClassVar[HostMemory | None] = HostMemory(
        option="hicache_ratio",
        value=None,
        source="SGLang 0.5.23 HiCache: a host pool behind the radix cache",
    )
    pages_cache: ClassVar[bool] = True
    spreads_experts: ClassVar[bool] = True
    attention_dp_option: ClassVar[str | None] = "enable_dp_attention"
    options: ClassVar[tuple[Option, ...]] = OPTIONS

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        return resolve(model, kv, indexer, state, settings)

    def supported_formats(self, model: Model, settings: Settings) -> tuple[str, ...]:
        return legal_names(model, settings)

    def check(self, model: Model, settings: Settings) -> None:
        check(model, settings)
        check_options(model, settings)

    def stage_layers(self, layers: int, pp: int) -> tuple[int, ...]:
        return tuple(len(stage) for stage in stages(layers, pp))

    def shares_prefixes(self, settings: Settings) -> bool:
        return not flag(settings, "disable_radix_cache")

    def memory_fraction(self, model: Model, settings: Settings) -> float:
        """Default `mem_fraction_static`: a share of the memory free before loading."""
        return static_fraction(model, settings)

    def batched_tokens(self, settings: Settings) -> int:
        return chunk_tokens(settings)

    def budget(
        self, memory: RankMemory, model: Model, settings: Settings
    ) -> tuple[int, int]:
        return budget(memory, model, settings)

    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        server = _server(Case(model, formats, settings, draft=scope.draft))
        demand = server.demand(
            requests_of_group(scope.sequences, settings), request_tokens(model, scope)
        )
        held = server.smallest(demand, state=scope.state)
        return Allocation(
            components=_components(held),
            notices=_notices(server, settings, scope),
            items=items_of(server, scope, demand, held),
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
        server = _server(Case(model, formats, settings))
        cut = server.cut(pool_bytes)
        page, row = server.arguments.page, server.pools[0].row_bytes
        tokens = cut.sizes.tokens
        return Pool(
            pool_bytes=pool_bytes,
            block_tokens=page,
            block_bytes=ceil(page * row),
            blocks=tokens // page,
            tokens=tokens,
            bytes_per_token=float(row),
            max_concurrency=server.concurrency(cut, context),
            groups=groups(server, context),
            log_lines=log_lines(server, cut, pool_bytes),
            notices=shard_notices(model, settings),
        )


def requests_of_group(sequences: int, settings: Settings) -> int:
    """Requests of the busiest group of ranks (DP attention by `dp_size`)."""
    if settings.dp > 1:
        return sequences
    return -(-sequences // attention_groups(settings))


def _components(held: Held) -> dict[Component, int]:
    found = no_bytes()
    for component, count in held.shares.items():
        found[component] += count
    # What the ratio sets aside for rows, when it is the states that need the budget.
    found["state"] += held.state + held.unused
    return found


def _notices(server: Server, settings: Settings, scope: Scope) -> tuple[Notice, ...]:
    model, arguments = server.model, server.arguments
    found = list(shard_notices(model, settings))
    asked = asked_page(settings)
    if asked not in (None, arguments.page):
        found.append(
            Notice(
                "setting_overridden",
                {
                    "engine": "SGLang",
                    "option": "page_size",
                    "asked": asked,
                    "value": arguments.page,
                },
            )
        )
    if arguments.drafting and model.draft_layers and drafts_uncounted(model):
        found.append(
            Notice(
                "draft_outside_pool",
                {"engine": "SGLang", "layers": len(model.draft_layers)},
            )
        )
    return tuple(found)
