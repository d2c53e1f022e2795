"""What the model pages say in numbers: kvcore's answers for every catalog model.

Asked of the api, but for one thing: how many requests fit is looked for with the
functions of a plan, at several contexts on one pool, since a whole plan would also
look for the longest context and the fewest GPUs each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from build_steps.tools import BuildError
from kvcore import api, catalog
from kvcore.deployment import check_shards
from kvcore.engines import ENGINES
from kvcore.errors import KvcoreError
from kvcore.limits import max_requests
from kvcore.params import Params
from kvcore.scenario import rank_of
from kvcore.scenario_params import PLAN, scenario_of

Json = dict[str, Any]

CONTEXTS: Final = (2_048, 8_192, 32_768, 131_072, 262_144, 1_048_576)
UNSTATED: Final = 131_072
"""Where a model states no longest context, tables end here."""
REFERENCE: Final = 32_768
"""Per token and by format are said of so many tokens, or of the longest context."""

FORMATS: Final = ("bf16", "fp8", "int8_per_token_head", "q8_0", "nvfp4", "q4_0")

GPUS: Final = (("rtx-4090", 1), ("h100-sxm", 1), ("h100-sxm", 8), ("b200", 8))
WEIGHTS: Final = ("bf16", "fp8", "int4_g128")
SERVED: Final = (8_192, 32_768, 131_072)
SERVED_BY: Final = "vllm"


def facts() -> dict[str, Json]:
    """Every catalog model's facts, by id, in the order of the catalog."""
    return {entry.id: facts_of(entry.id) for entry in catalog.entries()}


def facts_of(id: str) -> Json:
    entry = catalog.load()[id]
    limit = catalog.model(id).max_context
    tokens = reference(limit)
    lengths = contexts(limit)
    logical = answer("estimate", {"model": id, "tokens": tokens})
    allocated = [by_engine(id, engine, lengths) for engine in ENGINES]
    (refusal,) = (row["error"] for row in allocated if row["engine"] == SERVED_BY)
    return {
        "show": answer("show", {"model": id}),
        "checkpoint_bytes": entry.weights.bytes if entry.weights else None,
        "checkpoint_url": entry.weights.source_url if entry.weights else None,
        "estimate": logical,
        "longest": answer("estimate", {"model": id, "tokens": lengths[-1]}),
        "formats": by_format(id, tokens, logical["formats"]["kv"]),
        "curve": answer("curve", {"model": id, "points": lengths}),
        "engines": allocated,
        "refusal": refusal,
        "served_lengths": served(limit),
        "served": on_gpus(id, "none" if refusal else SERVED_BY, served(limit)),
    }


def answer(method: str, params: Mapping[str, object]) -> Json:
    """kvcore's answer; an error stops the build."""
    found = api.call(method, dict(params))
    if "error" in found:
        raise BuildError(f"kvcore could not answer {method} {params}: {found['error']}")
    return found


def contexts(limit: int | None) -> list[int]:
    """Round lengths up to the longest context, and that itself."""
    end = limit or UNSTATED
    return [*(tokens for tokens in CONTEXTS if tokens < end), end]


def served(limit: int | None) -> list[int]:
    end = limit or UNSTATED
    return [tokens for tokens in SERVED if tokens <= end] or [end]


def reference(limit: int | None) -> int:
    return min(REFERENCE, limit or UNSTATED)


def by_format(id: str, tokens: int, own: str) -> list[Json]:
    """One sequence in the model's own format, then in others."""
    found: list[Json] = []
    asked = {"model": id, "tokens": tokens}
    for name in (own, *(name for name in FORMATS if name != own)):
        told = {} if name == own else {"kv_format": name}
        estimate = api.call("estimate", {**asked, **told})
        row: Json = {"format": name, "error": estimate.get("error")}
        if row["error"] is None:
            row["per_token"] = estimate["marginal_bytes_per_token"]
            row["bytes"] = estimate["bytes_per_sequence"]
        found.append(row)
    return found


def by_engine(id: str, engine: str, points: Sequence[int]) -> Json:
    """What an engine allocates for one sequence at each length, or why it does not."""
    asked = {"model": id, "engine": engine}
    found = api.call("estimate", {**asked, "tokens": points[-1]})
    if "error" in found:
        return {"engine": engine, "error": found["error"]}
    curve = answer("curve", {**asked, "points": points})
    return {
        "engine": engine,
        "error": None,
        "formats": found["formats"],
        "bytes": [point["allocated_bytes"] for point in curve["points"]],
        "warnings": found["warnings"],
    }


def on_gpus(id: str, engine: str, lengths: Sequence[int]) -> list[Json]:
    """How many requests fit on the GPUs of the list, one after the other.

    Under the engine most people serve with; "none" where that refuses the model.
    Several together only where the ones before do not serve all lengths at 16 bits.
    """
    found: list[Json] = []
    served = False
    for gpu, gpus in GPUS:
        if served and gpus > 1:
            break
        asked = {"model": id, "engine": engine, "gpu": gpu, "gpus": gpus}
        rows = [requests_on({**asked, "weight_format": w}, lengths) for w in WEIGHTS]
        served = all(rows[0].get("requests", [0]))
        found += rows
    return found


def requests_on(asked: Mapping[str, object], lengths: Sequence[int]) -> Json:
    """What `plan` finds: weights and room on each GPU, most requests of each length."""
    try:
        scenario = scenario_of(Params(asked, PLAN))
        check_shards(scenario.model, scenario.sizes)
        scenario.engine.check(scenario.model, scenario.settings)
        rank = rank_of(scenario)
    except KvcoreError as error:
        return {**asked, "error": error.to_json()}
    pool = rank.pool_bytes
    return {
        **asked,
        "error": None,
        "weight_bytes": rank.weight_bytes,
        "pool_bytes": pool,
        "short_bytes": rank.short_bytes,
        "requests": [
            max_requests(replace(scenario, context=tokens), pool) if pool else 0
            for tokens in lengths
        ],
    }
