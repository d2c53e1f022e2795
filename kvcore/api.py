"""JSON in, JSON out: the only door for the page and the command line.

`call` never raises: what goes wrong comes back as `{"error": {code, params,
message}}`. Bytes and tokens are integers; names are those of design and README.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kvcore import accelerators, catalog, engines, formats
from kvcore.errors import InvalidJson, KvcoreError, Notice, UnknownMethod
from kvcore.estimate import (
    CacheFormats,
    cache_formats,
    estimate,
    marginal_bytes_per_token,
    mha_equivalent_bytes_per_token,
    notices,
)
from kvcore.evidence import answer_evidence
from kvcore.formula import explain
from kvcore.model import Layer, Model
from kvcore.params import (
    ESTIMATE,
    MODEL,
    Params,
    engine_of,
    format_names,
    invalid,
    model_of,
    scope_of,
    settings_of,
)
from kvcore.planning import answer_plan
from kvcore.pooling import answer_pool

MAX_POINTS: Final = 512

Json = dict[str, Any]


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
        "warnings": _notices_json((*notices(model, scope), *extra)),
    }
    if allocated is not None:
        answer["allocated"] = allocated
    return answer


def _model_id(params: Params, model: Model) -> str:
    name = params.get("model")
    if params.get("model_text") is None and isinstance(name, str):
        return catalog.find(name).id
    return model.model_type


def _formats_json(model: Model, fmt: CacheFormats) -> Json:
    """The formats in force; null where the model has no such part."""
    parts = model.components
    return {
        "kv": fmt.kv.id,
        "indexer": fmt.indexer.id if "indexer" in parts else None,
        "state": fmt.state.id if "state" in parts else None,
    }


def _notices_json(found: tuple[Notice, ...]) -> list[Json]:
    return [notice.to_json() for notice in found]


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
        "warnings": _notices_json(model.notices),
    }


def _show(given: Mapping[str, object]) -> Json:
    params = Params(given, MODEL)
    model = model_of(params)
    name = params.get("model")
    entry = None
    if params.get("model_text") is None and isinstance(name, str):
        entry = catalog.find(name)
    answer: Json = {
        "id": entry.id if entry else model.model_type,
        "name": model.name,
        "hf_id": entry.hf_id if entry else None,
        "family": entry.family if entry else None,
        "released": entry.released if entry else None,
        "model_type": model.model_type,
        "source_url": entry.source_url if entry else None,
        "model_url": entry.model_url if entry else None,
        "retrieved": entry.retrieved if entry else None,
        "confidence": entry.confidence if entry else None,
        "note": entry.note if entry else None,
        "aliases": list(entry.aliases) if entry else [],
        "facts": {
            "num_layers": model.num_layers,
            "num_heads": model.num_heads,
            "num_kv_heads": model.num_kv_heads,
            "head_dim": model.head_dim,
            "hidden_size": model.hidden_size,
            "max_context": model.max_context,
            "kv_format": model.kv_format,
            "state_format": model.state_format if "state" in model.components else None,
            "parameters": entry.parameters.total if entry else None,
            "active_parameters": entry.parameters.active if entry else None,
        },
        "components": sorted(model.components),
        "has_encoder": model.has_encoder,
        "layers": _layers_json(model.layers),
        "draft_layers": _layers_json(model.draft_layers),
        "warnings": _notices_json(model.notices),
    }
    return answer


def _layers_json(layers: tuple[Layer, ...]) -> list[Json]:
    """Equal layers once, with their count, in order of first appearance."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return [
        {
            "count": count,
            "specs": [
                {"kind": spec.kind, **spec.values, "source": spec.source}
                for spec in layer
            ],
        }
        for layer, count in counts.items()
    ]


def _models(given: Mapping[str, object]) -> Json:
    Params(given, frozenset())
    return {
        "models": [
            {
                "id": entry.id,
                "name": entry.name,
                "hf_id": entry.hf_id,
                "family": entry.family,
                "released": entry.released,
                "model_type": entry.model_type,
                "parameters": entry.parameters.total,
                "active_parameters": entry.parameters.active,
                "max_context": (model := catalog.model(entry.id)).max_context,
                "aliases": list(entry.aliases),
                "attention": sorted({spec.kind for spec, _ in model.groups}),
            }
            for entry in catalog.entries()
        ],
        "catalog_date": catalog.catalog_date(),
    }


def _options(given: Mapping[str, object]) -> Json:
    Params(given, frozenset())
    return {
        "formats": [
            {
                "id": fmt.id,
                "bits_per_element": _bits_text(fmt.bits_per_element),
                "roles": sorted(fmt.roles),
                "source": fmt.source,
            }
            for fmt in formats.FORMATS.values()
        ],
        "engines": [
            {
                "id": engine.id,
                "versions": list(engine.versions),
                "options": [
                    {
                        "name": option.name,
                        "type": option.kind,
                        "choices": list(option.choices),
                        "default": option.default,
                    }
                    for option in engine.options
                ],
            }
            for engine in engines.ENGINES.values()
        ],
    }


def _gpus(given: Mapping[str, object]) -> Json:
    Params(given, frozenset())
    return {
        "gpus": [
            {
                "id": device.id,
                "name": device.name,
                "vendor": device.vendor,
                "category": device.category,
                "aliases": list(device.aliases),
                "memory_bytes": device.memory_bytes,
                "framework_bytes": device.framework_bytes,
                "memory_source": device.memory_source,
                "working_set_estimated": device.working_set_estimated,
                "bandwidth_bytes_per_second": device.bandwidth_bytes_per_second,
                "year": device.year,
                "note": device.note,
            }
            for device in accelerators.load().values()
        ]
    }


def _bits_text(bits: float | None) -> str | None:
    return None if bits is None else f"{bits:g}"


def _evidence(given: Mapping[str, object]) -> Json:
    """What others observed, beside the answers of these very methods."""
    return answer_evidence(given, call)


METHODS: Final[Mapping[str, Callable[[Mapping[str, object]], Json]]] = {
    "models": _models,
    "options": _options,
    "show": _show,
    "estimate": _estimate,
    "curve": _curve,
    "plan": answer_plan,
    "pool": answer_pool,
    "gpus": _gpus,
    "evidence": _evidence,
}


def call(method: str, params: Mapping[str, object]) -> Json:
    """Answer one question; errors come back as objects, never as exceptions.

    >>> call("estimate", {"model": "llama-3.1-70b", "tokens": 1})["total_bytes"]
    327680
    >>> call("estimate", {"model": {"model_type": "llama"}})["error"]["code"]
    'missing_field'
    """
    try:
        if not isinstance(method, str) or method not in METHODS:
            raise UnknownMethod(method=str(method)[:60], known=sorted(METHODS))
        if not isinstance(params, Mapping):
            raise invalid("params", params, "an object")
        return METHODS[method](params)
    except KvcoreError as error:
        return {"error": error.to_json()}
    except Exception as error:  # the page must never see a traceback
        reason = f"{type(error).__name__}: {error}"[:200]
        return {"error": KvcoreError(reason=reason).to_json()}


def respond(text: str) -> str:
    """`{"method": ..., "params": {...}}` and its answer, both as JSON text."""
    try:
        request = json.loads(text)
        method, params = request["method"], request.get("params", {})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = InvalidJson(line=1, column=1, reason=str(error)[:100])
        return json.dumps({"error": problem.to_json()})
    return json.dumps(call(method, params), allow_nan=False)
