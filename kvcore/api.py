"""JSON in, JSON out: the only door for the page and the command line.

`call` never raises: what goes wrong comes back as `{"error": {code, params,
message}}`. Bytes and tokens are integers; names are those of design and README.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from kvcore import catalog
from kvcore.errors import InvalidJson, KvcoreError, Notice, UnknownMethod
from kvcore.estimate import (
    CacheFormats,
    cache_formats,
    estimate,
    marginal_bytes_per_token,
    mha_equivalent_bytes_per_token,
    notices,
)
from kvcore.formula import explain
from kvcore.importers.byte_source import ByteSource
from kvcore.listing import (
    answer_gpus,
    answer_models,
    answer_options,
    answer_show,
    notices_json,
)
from kvcore.model import Model
from kvcore.params import (
    ESTIMATE,
    Params,
    catalog_name,
    engine_of,
    format_names,
    invalid,
    model_of,
    scope_of,
    settings_of,
)

MAX_POINTS: Final = 512

Json = dict[str, Any]
Progress = Callable[[Json], None]
LongMethod = Callable[
    [Mapping[str, object], Sequence[ByteSource], Progress | None], Json
]


def _estimate(given: Mapping[str, object]) -> Json:
    params = Params(given, ESTIMATE)
    model = model_of(params)
    scope = scope_of(params, model)
    engine = engine_of(params)
    names = format_names(params)
    extra: tuple[Notice, ...] = ()
    allocated: Json | None = None
    if engine is None:
        fmt = cache_formats(model, *names)
    else:
        settings = settings_of(engine, params)
        fmt = engine.formats(model, *names, settings)
        allocation = engine.allocate(model, scope, fmt, settings)
        extra = allocation.notices
        allocated = {
            "engine": engine.id,
            "engine_version": settings.version,
            "bytes_per_rank": allocation.bytes_per_rank,
            "components": dict(allocation.components),
            "items": dict(allocation.items),
        }
    found = estimate(model, scope, fmt)
    answer: Json = {
        "model": _model_id(params, model),
        "name": model.name,
        "tokens": scope.tokens,
        "sequences": scope.sequences,
        "formats": _formats_json(model, fmt),
        "total_bytes": found.total_bytes,
        "bytes_per_sequence": found.bytes_per_sequence,
        "marginal_bytes_per_token": marginal_bytes_per_token(model, scope, fmt),
        "mha_equivalent_bytes_per_token": mha_equivalent_bytes_per_token(model, fmt),
        "max_context": model.max_context,
        "components": dict(found.components),
        "formula": [
            {
                "component": line.component,
                "kind": line.kind,
                "expression": line.expression,
                "values": line.values,
                "bytes": line.bytes,
                "source": line.source,
            }
            for line in explain(model, scope, fmt)
        ],
        "warnings": notices_json((*notices(model, scope), *extra)),
    }
    if allocated is not None:
        answer["allocated"] = allocated
    return answer


def _model_id(params: Params, model: Model) -> str:
    name = catalog_name(params)
    return model.model_type if name is None else catalog.find(name).id


def _formats_json(model: Model, fmt: CacheFormats) -> Json:
    """The formats in force; null where the model has no such part."""
    parts = model.components
    return {
        "kv": fmt.kv.id,
        "indexer": fmt.indexer.id if "indexer" in parts else None,
        "state": fmt.state.id if "state" in parts else None,
    }


def _curve(given: Mapping[str, object]) -> Json:
    """The same estimate at many lengths, for a chart."""
    params = Params(given, (ESTIMATE - {"tokens"}) | {"points"})
    points = params.get("points")
    if (
        not isinstance(points, list)
        or not 0 < len(points) <= MAX_POINTS
        or None in points
    ):
        raise invalid("points", points, f"a list of 1 to {MAX_POINTS} token counts")
    model = model_of(params)
    engine = engine_of(params)
    names = format_names(params)
    settings = None if engine is None else settings_of(engine, params)
    if engine is None or settings is None:
        fmt = cache_formats(model, *names)
    else:
        fmt = engine.formats(model, *names, settings)
    found: list[Json] = []
    for tokens in points:
        scope = scope_of(params, model, tokens)
        logical = estimate(model, scope, fmt)
        point: Json = {
            "tokens": tokens,
            "total_bytes": logical.total_bytes,
            "components": dict(logical.components),
        }
        if engine is not None and settings is not None:
            allocation = engine.allocate(model, scope, fmt, settings)
            point["allocated_bytes"] = allocation.bytes_per_rank
        found.append(point)
    return {
        "points": found,
        "max_context": model.max_context,
        "warnings": notices_json(model.notices),
    }


def _evidence(given: Mapping[str, object]) -> Json:
    """What others observed, beside the answers of these very methods."""
    evidence = import_module("kvcore.evidence")
    found: Json = evidence.answer_evidence(given, call)
    return found


def _log(given: Mapping[str, object]) -> Json:
    """An engine's log explained by the answers of these very methods."""
    logs = import_module("kvcore.logs")
    found: Json = logs.answer_log(given, call)
    return found


def _on_demand(module: str, answer: str) -> Callable[[Mapping[str, object]], Json]:
    """An answer whose module is imported when it is first asked for."""

    def ask(given: Mapping[str, object]) -> Json:
        found: Json = getattr(import_module(f"kvcore.{module}"), answer)(given)
        return found

    return ask


def _with_files(module: str, answer: str) -> LongMethod:
    """The same for a method that reads files and says how far it is."""

    def ask(
        given: Mapping[str, object],
        files: Sequence[ByteSource],
        progress: Progress | None,
    ) -> Json:
        found: Json = getattr(import_module(f"kvcore.{module}"), answer)(
            given, files, progress
        )
        return found

    return ask


METHODS: Final[Mapping[str, Callable[[Mapping[str, object]], Json]]] = {
    "models": answer_models,
    "options": answer_options,
    "show": answer_show,
    "estimate": _estimate,
    "curve": _curve,
    "plan": _on_demand("planning", "answer_plan"),
    "pool": _on_demand("pooling", "answer_pool"),
    "levers": _on_demand("levers", "answer_levers"),
    "decode": _on_demand("decode", "answer_decode"),
    "prices": _on_demand("prices", "answer_prices"),
    "gpus": answer_gpus,
    "evidence": _evidence,
    "log": _log,
    "fields": _on_demand("model_fields", "answer_fields"),
    "hub": _on_demand("hub", "answer_hub"),
    "traffic": _on_demand("reuse.presets", "answer_traffic"),
}

LONG_METHODS: Final[Mapping[str, LongMethod]] = {
    "workload": _with_files("workload.answer", "answer_workload"),
    "reuse": _with_files("reuse.answer", "answer_reuse"),
    "describe": _with_files("describing", "answer_describe"),
}
"""Methods that take files, and tell how far they are while they work."""


def call(
    method: str,
    params: Mapping[str, object],
    files: Sequence[ByteSource] = (),
    progress: Progress | None = None,
) -> Json:
    """Answer one question; errors come back as objects, never as exceptions.

    Methods in `LONG_METHODS` read `files` and call `progress` with objects that have
    a `share` of the work done, from 0 to 1.

    >>> call("estimate", {"model": "llama-3.1-70b", "tokens": 1})["total_bytes"]
    327680
    >>> call("estimate", {"model": {"model_type": "llama"}})["error"]["code"]
    'missing_field'
    """
    try:
        known = sorted({*METHODS, *LONG_METHODS})
        if not isinstance(method, str) or method not in known:
            raise UnknownMethod(method=str(method)[:60], known=known)
        if not isinstance(params, Mapping):
            raise invalid("params", params, "an object")
        if method in LONG_METHODS:
            answer = LONG_METHODS[method](params, files, progress)
        else:
            answer = METHODS[method](params)
    except KvcoreError as error:
        return {"error": error.to_json()}
    except Exception as error:  # the page must never see a traceback
        reason = f"{type(error).__name__}: {error}"[:200]
        return {"error": KvcoreError(reason=reason).to_json()}
    edits = params.get("edits")
    if isinstance(edits, Mapping) and edits:
        # Whatever was asked, it was answered for a model changed by hand.
        answer["edited"] = sorted(edits)
    return answer


def respond(
    text: str,
    files: Sequence[ByteSource] = (),
    progress: Callable[[str], object] | None = None,
) -> str:
    """`{"method": ..., "params": {...}}` and its answer, both as JSON text.

    So is what `progress` is called with.
    """
    try:
        request = json.loads(text)
        method, params = request["method"], request.get("params", {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = InvalidJson(line=1, column=1, reason=str(error)[:100])
        return json.dumps({"error": problem.to_json()})
    tell = None if progress is None else _telling(progress)
    return json.dumps(call(method, params, files, tell), allow_nan=False)


def _telling(progress: Callable[[str], object]) -> Progress:
    def tell(step: Json) -> None:
        progress(json.dumps(step, allow_nan=False))

    return tell
