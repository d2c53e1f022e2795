"""The `pool` of the api: how an engine cuts a pool of given bytes, whatever the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvcore import accelerators
from kvcore.engines.base import Pool, Settings
from kvcore.errors import InvalidArgument, MissingField
from kvcore.params import (
    ENGINE,
    FORMATS,
    MODEL,
    Params,
    format_names,
    model_of,
    plan_engine_of,
)
from kvcore.scenario import device_traits

Json = dict[str, Any]

POOL: Final = (
    MODEL
    | FORMATS
    | ENGINE
    | frozenset({"pool_bytes", "context", "gpu", "dp", "batched_tokens"})
)


def answer_pool(given: Mapping[str, object]) -> Json:
    """The `pool` and `max_concurrency` of a plan with those `pool_bytes`.

    A GPU, where one is named, only decides what an engine's defaults look at. `pool`
    is null for an engine that has none.
    """
    params = Params(given, POOL)
    model = model_of(params)
    engine = plan_engine_of(params)
    name = params.text("gpu", "")
    settings: Settings = engine.settings(
        params.text("engine_version", "") or None,
        params.mapping("engine_options"),
        tp=params.integer("tp", 1) or 0,
        pp=params.integer("pp", 1) or 0,
        dp=params.integer("dp", 1) or 0,
        dcp=params.integer("dcp", 1) or 0,
        block_tokens=params.integer("block_tokens", None),
        batched_tokens=params.integer("batched_tokens", None),
        device=device_traits(accelerators.find(name)) if name else None,
    )
    pool = engine.pool(
        model,
        engine.formats(model, *format_names(params), settings),
        settings,
        pool_bytes=_positive(params, "pool_bytes"),
        context=_positive(params, "context"),
    )
    return {
        "pool": None if pool is None else pool_json(pool),
        "max_concurrency": None if pool is None else pool.max_concurrency * settings.dp,
    }


def _positive(params: Params, name: str) -> int:
    value = params.integer(name, None)
    if value is None:
        raise MissingField(field=name)
    if not 0 < value <= 10**15:
        raise InvalidArgument(
            argument=name, value=str(value), expected="a whole number from 1"
        )
    return value


def pool_json(pool: Pool) -> Json:
    """A pool as every answer shows it."""
    return {
        "block_tokens": pool.block_tokens,
        "block_bytes": pool.block_bytes,
        "blocks": pool.blocks,
        "tokens": pool.tokens,
        "bytes_per_token": pool.bytes_per_token,
        "log_lines": list(pool.log_lines),
        "groups": [
            {
                "kind": group.kind,
                "layers": group.layers,
                "block_tokens": group.block_tokens,
                "page_bytes": group.page_bytes,
                "blocks_per_request": group.blocks_per_request,
            }
            for group in pool.groups
        ],
    }
