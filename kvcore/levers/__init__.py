"""Levers: what to change first, and what it buys here.

Each lever is a change of a plan's parameters, planned again by the code of `plan`;
nothing is taken from a rule of thumb. Their order is a decision: first what costs
nothing (blocks, sharing, another cut over the same GPUs), then 8-bit caches, the heads
and windows of the model, shorter contexts, 4-bit caches, smaller drafts, weights and
models, more GPUs, host memory, and last fewer requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kvcore.levers import cache, host, layout, lengths, models
from kvcore.levers.shortcuts import shortcuts
from kvcore.levers.start import Json, Planned, Row, Start, start_of
from kvcore.listing import notices_json
from kvcore.params import invalid
from kvcore.planning import plan_json


@dataclass(frozen=True, slots=True)
class Lever:
    """A lever's code, how it is found, and what it risks by whose word."""

    code: str
    find: Callable[[Start], Row]
    risk: str
    source: str


FP8 = (
    "vLLM docs/features/quantization/quantized_kvcache.md @0609ba1; SGLang "
    "docs/advanced_features/quantized_kv_cache.md @03cd2ec"
)
FOUR_BITS = (
    "SGLang docs/advanced_features/quantized_kv_cache.md @03cd2ec: easy benchmarks "
    "hide what hard reasoning loses"
)
PAGED = "PagedAttention, arXiv 2309.06180"
EXACT = "the same numbers are kept, elsewhere"
WEIGHTS = "vLLM docs/features/quantization; test on your own data"
REASON = "requests above the limit are refused or cut"

LEVERS: Final = (
    Lever("paging", cache.paging, "none", PAGED),
    Lever("shared_prefix", cache.shared_prefix, "none", PAGED),
    Lever("data_parallel", layout.data_parallel, "uneven_ranks", EXACT),
    Lever("context_parallel", layout.context_parallel, "communication", EXACT),
    Lever("pipeline", layout.pipeline, "latency", EXACT),
    Lever("kv_8bit", cache.kv_8bit, "accuracy_low", FP8),
    Lever("kv_heads", lengths.kv_heads, "other_model", "GQA: arXiv 2305.13245"),
    Lever(
        "lighter_model", models.lighter_model, "other_model", "kvcore's catalog"
    ),
    Lever("windows", lengths.windows, "other_model", "the model's config"),
    Lever("traffic_context", lengths.traffic_context, "long_requests", REASON),
    Lever("shorter_context", lengths.shorter_context, "long_requests", REASON),
    Lever("kv_4bit", cache.kv_4bit, "accuracy_medium", FOUR_BITS),
    Lever("smaller_draft", models.smaller_draft, "acceptance", "arXiv 2211.17192"),
    Lever("drop_draft", models.drop_draft, "slower_decoding", "arXiv 2211.17192"),
    Lever("weights_8bit", models.weights_8bit, "accuracy_low", WEIGHTS),
    Lever("weights_4bit", models.weights_4bit, "accuracy_medium", WEIGHTS),
    Lever(
        "smaller_model", models.smaller_model, "other_model", "kvcore's catalog"
    ),
    Lever("more_gpus", layout.more_gpus, "cost", "a plan on that many"),
    Lever("host_offload", host.host_offload, "slow_transfers", EXACT),
    Lever("fewer_requests", lengths.fewer_requests, "waiting", "others wait"),
)
"""Every lever in the order to pull them."""


def answer_levers(given: Mapping[str, object]) -> Json:
    """The api's `levers`: a plan, what to change, and what would change nothing.

    `only` names the levers to plan, so that who asks in parts is never kept waiting
    for all of them; shortcuts then come with `paging`, whose figures they need.
    """
    asked = {name: value for name, value in given.items() if name != "only"}
    only = chosen(given.get("only"))
    start = start_of(asked) if only is None else kept_start(json.dumps(asked))
    found = {
        lever.code: (order, lever, lever.find(start))
        for order, lever in enumerate(LEVERS, 1)
        if only is None or lever.code in only
    }
    rows = [row_json(start, *each) for each in found.values()]
    _, _, paging = found.get("paging", (0, None, None))
    return {
        "plan": plan_json(start.scenario, start.now.plan),
        "levers": [row for row in rows if row["applicable"]],
        "dropped": [row for row in rows if not row["applicable"]],
        "shortcuts": shortcuts(start, paging.figures) if paging else [],
        "warnings": notices_json(start.notices),
    }


@lru_cache(maxsize=1)
def kept_start(text: str) -> Start:
    """The start of parameters as JSON text, kept for the next part of the same."""
    return start_of(json.loads(text))


def chosen(only: object) -> Sequence[str] | None:
    """The levers asked for, all of them where None; a text names them by commas."""
    if only is None:
        return None
    names = only.split(",") if isinstance(only, str) else only
    known = [lever.code for lever in LEVERS]
    if not isinstance(names, list) or not all(name in known for name in names):
        raise invalid("only", only, f"a list of {', '.join(known)}")
    return names


def row_json(start: Start, order: int, lever: Lever, row: Row) -> Json:
    """One lever as JSON; numbers are null where nothing was planned."""
    return {
        "lever": lever.code,
        "order": order,
        "applicable": row.reason is None,
        "reason": row.reason,
        "change": None if row.change is None else dict(row.change),
        **numbers_json(start.now, row.planned),
        "figures": dict(row.figures),
        "risk": lever.risk,
        "source": row.source or lever.source,
        "error": None if row.error is None else row.error.to_json(),
    }


def numbers_json(now: Planned, then: Planned | None) -> Json:
    """The changed plan's numbers, and how they differ; bytes are of one rank."""
    if then is None:
        return dict.fromkeys(
            (
                "verdict",
                "short_bytes",
                "weight_bytes",
                "reserve_bytes",
                "pool_bytes",
                "used_bytes",
                "request_bytes",
                "saved_bytes",
                "max_requests",
                "max_context",
                "gains",
            )
        )
    plan, rank = then.plan, then.plan.rank
    request = plan.request_bytes
    return {
        "verdict": plan.verdict,
        "short_bytes": plan.short_bytes,
        "weight_bytes": rank.weight_bytes,
        "reserve_bytes": rank.reserve_bytes,
        "pool_bytes": rank.pool_bytes,
        "used_bytes": plan.needed_bytes,
        "request_bytes": request,
        "saved_bytes": now.needed_bytes - then.needed_bytes,
        "max_requests": plan.max_requests,
        "max_context": plan.max_context,
        "gains": {
            "max_requests": plan.max_requests - now.plan.max_requests,
            "max_context": plan.max_context - now.plan.max_context,
            "short_bytes": now.plan.short_bytes - plan.short_bytes,
            "request_ratio": now.plan.request_bytes / request if request else None,
        },
    }
