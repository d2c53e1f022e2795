"""Rules of thumb beside the exact value, where this scenario contradicts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kvcore import catalog
from kvcore.estimate import Scope, cache_formats, estimate
from kvcore.levers.start import Json, Start

CLOSE_PERCENT: Final = 1
DRAFT_PERCENT: Final = (10, 15)
PAGING_PERCENT: Final = (30, 50)
SMALL_BILLIONS: Final = 10
LONG_CONTEXT: Final = 65536

LARGE_MODEL: Final = "llama-3.1-70b"
LARGE_TOKENS: Final = 2048


def shortcuts(start: Start, paging: Mapping[str, object]) -> list[Json]:
    """What people say, as {"shortcut", "says", "exact", ...}; says and exact differ."""
    return [
        *mha_formula(start),
        *draft_share(start),
        *paging_gain(paging),
        *small_and_long(start),
    ]


def mha_formula(start: Start) -> Iterator[Json]:
    """2 x layers x hidden x context x bytes: right for MHA alone."""
    scenario = start.scenario
    model = scenario.model
    bits = scenario.formats.kv.bits_per_element or 16
    if model.hidden_size is None:
        return
    says = int(2 * model.num_layers * model.hidden_size * scenario.context * bits) // 8
    exact = alone(start)
    if abs(says - exact) * 100 > CLOSE_PERCENT * exact:
        yield {
            "shortcut": "mha_formula",
            "says_bytes": says,
            "exact_bytes": exact,
            "ratio": says / exact if exact else None,
        }


def alone(start: Start) -> int:
    """Logical bytes of one request without a draft's."""
    scenario = start.scenario
    scope = Scope(tokens=scenario.context)
    return estimate(scenario.model, scope, scenario.formats).total_bytes


def draft_share(start: Start) -> Iterator[Json]:
    """"A draft model adds 10 to 15%": of the target's cache."""
    components = start.now.plan.allocation.components
    draft = components["draft"]
    target = sum(components.values()) - draft
    if not start.scenario.draft or not target:
        return
    exact = 100 * draft / target
    if not DRAFT_PERCENT[0] <= exact <= DRAFT_PERCENT[1]:
        yield {
            "shortcut": "draft_share",
            "says_percent": list(DRAFT_PERCENT),
            "exact_percent": exact,
            "draft_bytes": draft,
            "target_bytes": target,
        }


def paging_gain(figures: Mapping[str, object]) -> Iterator[Json]:
    """"Paging gains 30 to 50%": it depends on how far requests stay below the limit."""
    exact = figures.get("percent")
    if not isinstance(exact, float):
        return
    if not PAGING_PERCENT[0] <= exact <= PAGING_PERCENT[1]:
        yield {
            "shortcut": "paging_gain",
            "says_percent": list(PAGING_PERCENT),
            "exact_percent": exact,
        }


def small_and_long(start: Start) -> Iterator[Json]:
    """"A 7B at 128K costs more than a 70B at 2K": of its cache, if of anything."""
    scenario = start.scenario
    weights = scenario.weights.total
    small = 0 < weights <= 2 * SMALL_BILLIONS * 10**9
    if not small or scenario.context < LONG_CONTEXT:
        return
    large = catalog.model(LARGE_MODEL)
    formats = cache_formats(large, "auto", "auto", "auto")
    cache = estimate(large, Scope(tokens=LARGE_TOKENS), formats).total_bytes
    parameters = catalog.find(LARGE_MODEL).parameters.total or 0
    ours = alone(start)
    if ours > cache and ours + weights > cache + 2 * parameters:
        return
    yield {
        "shortcut": "small_and_long",
        "small_cache_bytes": ours,
        "small_total_bytes": ours + weights,
        "large_model": LARGE_MODEL,
        "large_tokens": LARGE_TOKENS,
        "large_cache_bytes": cache,
        "large_total_bytes": cache + 2 * parameters,
    }
