"""What kvcore knows, for the api: its models, accelerators, formats and engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvcore import accelerators, catalog, engines, formats
from kvcore.errors import Notice
from kvcore.model import Layer
from kvcore.params import (
    MODEL,
    Params,
    catalog_name,
    model_of,
    parameters_of,
    stored_of,
)

Json = dict[str, Any]


def notices_json(found: tuple[Notice, ...]) -> list[Json]:
    return [notice.to_json() for notice in found]


def answer_show(given: Mapping[str, object]) -> Json:
    params = Params(given, MODEL)
    model = model_of(params)
    name = catalog_name(params)
    stored = stored_of(params)
    entry = None if name is None else catalog.find(name)
    total, active = parameters_of(params, stored)
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
            "parameters": total,
            "active_parameters": active,
        },
        "components": sorted(model.components),
        "has_encoder": model.has_encoder,
        "layers": _layers_json(model.layers),
        "draft_layers": _layers_json(model.draft_layers),
        "weights": stored.to_json() if stored else None,
        "warnings": notices_json(model.notices + (stored.notices if stored else ())),
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


def answer_models(given: Mapping[str, object]) -> Json:
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


def answer_options(given: Mapping[str, object]) -> Json:
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


def answer_gpus(given: Mapping[str, object]) -> Json:
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
