"""The parameters of a plan -> Scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvcore import accelerators, catalog, parameters, weights
from kvcore.accelerators import OTHER, Accelerator
from kvcore.deployment import Parallelism, parallelism
from kvcore.engines.base import Engine, Settings
from kvcore.errors import InvalidArgument, KvcoreError, MissingField
from kvcore.model import Model
from kvcore.params import (
    FORMATS,
    MODEL,
    Params,
    config_of,
    format_names,
    invalid,
    model_of,
    plan_engine_of,
)
from kvcore.scenario import Scenario, WeightBytes, device_traits

SPECULATIVE_TOKENS: Final = "num_speculative_tokens"
DEFAULT_CONTEXT: Final = 32768
DEFAULT_CONCURRENCY: Final = 1

PLAN: Final = (
    MODEL
    | FORMATS
    | frozenset(
        {
            "gpu",
            "gpus",
            "memory_mib",
            "engine",
            "engine_version",
            "engine_options",
            "tp",
            "pp",
            "dp",
            "dcp",
            "context",
            "concurrency",
            "weight_format",
            "weight_bytes",
            "block_tokens",
            "batched_tokens",
            "memory_fraction",
            "pool_bytes",
            "reserve_bytes",
            "shared_prefix",
            "draft",
            "draft_model",
            "draft_model_text",
        }
    )
)


def scenario_of(params: Params) -> Scenario:
    """Everything a plan needs, read and checked."""
    model = model_of(params)
    config = config_of(params)
    counts = _counts(params, config, model)
    weight_bytes = _weights(params, config, model, counts)
    draft = params.flag("draft")
    companion = _draft_params(params)
    if companion is not None:
        model, weight_bytes = _with_draft_model(model, weight_bytes, companion)
        draft = True
    engine = plan_engine_of(params)
    device = _device(params)
    sizes = _sizes(params, engine)
    settings = _settings(params, engine, sizes, device, draft)
    if counts is not None and counts.experts and engine.spreads_experts:
        sizes = replace(sizes, expert_parallel=True)
    context = params.integer("context", None)
    if context is None:
        context = min(DEFAULT_CONTEXT, model.max_context or DEFAULT_CONTEXT)
    return Scenario(
        model=model,
        engine=engine,
        settings=settings,
        formats=engine.formats(model, *format_names(params), settings),
        device=device,
        sizes=sizes,
        weights=weight_bytes,
        context=_at_least("context", context, 1),
        concurrency=_at_least(
            "concurrency",
            params.integer("concurrency", DEFAULT_CONCURRENCY) or 0,
            1,
        ),
        sparse=counts is not None and bool(counts.experts),
        draft=draft,
        fraction=_fraction(params),
        pool_bytes=_optional(params, "pool_bytes", 0),
        reserve_bytes=_optional(params, "reserve_bytes", 0),
        shared_prefix=_shared_prefix(params, engine, settings),
    )


def _counts(
    params: Params, config: Mapping[str, object], model: Model
) -> parameters.ParameterCounts | None:
    """Parameters by part; None where stated bytes make them unnecessary."""
    try:
        return parameters.count(config, model)
    except KvcoreError:
        if params.get("pool_bytes") is None and params.get("weight_bytes") is None:
            raise
        return None


def _draft_params(params: Params) -> Params | None:
    """What names a separate draft model, as `model` names the target."""
    given = {name: params.get(f"draft_{name}") for name in MODEL}
    if all(value is None for value in given.values()):
        return None
    return Params(given, MODEL)


def _with_draft_model(
    model: Model, target: WeightBytes, companion: Params
) -> tuple[Model, WeightBytes]:
    """The target with all layers of a draft model as its draft layers.

    The draft model is sharded as the target is, which is vLLM's default
    (draft_tensor_parallel_size).
    """
    draft = model_of(companion)
    config = config_of(companion)
    counts = parameters.count(config, draft)
    extra = _weights(companion, config, draft, counts)
    return (
        replace(model, draft_layers=draft.layers),
        WeightBytes(
            total=target.total + extra.total,
            parts={
                part: count + extra.parts[part] for part, count in target.parts.items()
            },
            format=target.format,
            source=target.source,
        ),
    )


def _device(params: Params) -> Accelerator:
    name = params.text("gpu", "")
    memory = params.integer("memory_mib", None)
    if not name and memory is None:
        raise MissingField(field="gpu")
    if name in ("", OTHER):
        if memory is None:
            raise MissingField(field="memory_mib")
        return accelerators.other(_at_least("memory_mib", memory, 1))
    found = accelerators.find(name)
    if memory is None:
        return found
    return accelerators.with_memory(found, _at_least("memory_mib", memory, 1))


def _sizes(params: Params, engine: Engine) -> Parallelism:
    given = {
        name: _optional(params, name, 1) for name in ("gpus", "tp", "pp", "dp", "dcp")
    }
    options = engine.settings(
        params.text("engine_version", "") or None, params.mapping("engine_options")
    ).options
    name = engine.attention_dp_option
    groups = options.get("dp_size")
    return parallelism(
        given["gpus"],
        given["tp"],
        given["pp"],
        given["dp"] or (groups if isinstance(groups, int) else None),
        given["dcp"] or 1,
        layers_first=engine.layers_first,
        attention_dp=bool(name and options[name]),
    )


def _settings(
    params: Params,
    engine: Engine,
    sizes: Parallelism,
    device: Accelerator,
    draft: bool,
) -> Settings:
    """Drafting means a speculative token at least, where the engine counts them."""
    options = dict(params.mapping("engine_options"))
    if draft and any(o.name == SPECULATIVE_TOKENS for o in engine.options):
        options.setdefault(SPECULATIVE_TOKENS, 1)
    return engine.settings(
        params.text("engine_version", "") or None,
        options,
        tp=sizes.tp,
        pp=sizes.pp,
        dp=sizes.dp,
        dcp=sizes.dcp,
        block_tokens=_optional(params, "block_tokens", 1),
        batched_tokens=_optional(params, "batched_tokens", 1),
        device=device_traits(device),
    )


def _weights(
    params: Params,
    config: Mapping[str, object],
    model: Model,
    counts: parameters.ParameterCounts | None,
) -> WeightBytes:
    """Bytes as given, of the known checkpoint, or counted in a format."""
    name = params.text("weight_format", "auto")
    if counts is None:
        stated = _optional(params, "weight_bytes", 0)
        # Parts nobody can tell apart are cut like matrices.
        parts = {**dict.fromkeys(weights.PARTS, 0), "dense_mlp": stated or 0}
        return WeightBytes(
            total=stated or 0,
            parts=parts,
            format="unknown",
            source="unknown" if stated is None else "given",
        )
    fmt = (
        weights.format_of(config, model.kv_format)
        if name == "auto"
        else weights.find(name)
    )
    parts = weights.bytes_by_part(counts, fmt)
    given = _optional(params, "weight_bytes", 0)
    if given is not None:
        return WeightBytes(total=given, parts=parts, format=fmt.id, source="given")
    total = sum(parts.values())
    known = _checkpoint(params) if name == "auto" else None
    if known is not None:
        # A config that does not say how its weights are stored is not believed.
        same = abs(known - total) * 20 <= known
        return WeightBytes(
            total=known,
            parts=parts,
            format=fmt.id if same else "checkpoint",
            source="checkpoint",
        )
    return WeightBytes(total=total, parts=parts, format=fmt.id, source="counted")


def _checkpoint(params: Params) -> int | None:
    name = params.get("model")
    if params.get("model_text") is not None or not isinstance(name, str):
        return None
    known = catalog.find(name).weights
    return known.bytes if known else None


def _fraction(params: Params) -> float | None:
    value = params.get("memory_fraction")
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise invalid("memory_fraction", value, "a number up to 1") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid("memory_fraction", value, "a number up to 1")
    if not 0 < value <= 1:
        raise invalid("memory_fraction", value, "a number above 0, up to 1")
    return float(value)


def _shared_prefix(params: Params, engine: Engine, settings: Settings) -> int:
    shared = _at_least("shared_prefix", params.integer("shared_prefix", 0) or 0, 0)
    if shared and not engine.shares_prefixes(settings):
        raise invalid(
            "shared_prefix", shared, f"0: {engine.id} keeps a prefix per request here"
        )
    return shared


def _optional(params: Params, name: str, minimum: int) -> int | None:
    value = params.integer(name, None)
    return None if value is None else _at_least(name, value, minimum)


def _at_least(argument: str, value: int, minimum: int) -> int:
    if not minimum <= value <= 10**15:
        raise InvalidArgument(
            argument=argument,
            value=str(value),
            expected=f"a whole number from {minimum}",
        )
    return value
