"""The parameters of a plan -> Scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvcore import accelerators
from kvcore.accelerators import OTHER, Accelerator
from kvcore.deployment import Parallelism, parallelism
from kvcore.engines.base import Engine, Settings
from kvcore.errors import MissingField, UnsupportedOption
from kvcore.params import (
    FORMATS,
    MODEL,
    Params,
    at_least,
    config_of,
    format_names,
    invalid,
    model_of,
    optional,
    plan_engine_of,
)
from kvcore.scenario import DraftModel, Scenario, device_traits
from kvcore.weight_params import counts_of, weights_of

SPECULATIVE_TOKENS: Final = "num_speculative_tokens"
SEPARATE_DRAFT: Final[Mapping[str, object]] = {
    "speculative_method": "draft_model",
    "speculative_algorithm": "STANDALONE",
}
"""Engines' own names for drafting by another model."""

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
            "draft_weights",
        }
    )
)


def scenario_of(params: Params) -> Scenario:
    """Everything a plan needs, read and checked."""
    model = model_of(params)
    config = config_of(params)
    counts = counts_of(params, config, model)
    weight_bytes = weights_of(params, config, model, counts)
    draft = params.flag("draft")
    drafting = _draft_model(params)
    if drafting is not None:
        model = replace(model, draft_layers=drafting.model.layers, draft_is_model=True)
        draft = True
    engine = plan_engine_of(params)
    _check_engine_takes(params, engine, drafting is not None)
    device = _device(params)
    sizes = _sizes(params, engine)
    settings = _settings(
        params, engine, sizes, device, draft=draft, separate=drafting is not None
    )
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
        context=at_least("context", context, 1),
        concurrency=at_least(
            "concurrency",
            params.integer("concurrency", DEFAULT_CONCURRENCY) or 0,
            1,
        ),
        sparse=counts is not None and bool(counts.experts),
        draft=draft,
        draft_model=drafting,
        fraction=_fraction(params),
        pool_bytes=optional(params, "pool_bytes", 0),
        reserve_bytes=optional(params, "reserve_bytes", 0),
        shared_prefix=_shared_prefix(params, engine, settings),
    )


def _draft_model(params: Params) -> DraftModel | None:
    """A separate draft model, named as `model` names the target."""
    given = {name: params.get(f"draft_{name}") for name in MODEL}
    if all(value is None for value in given.values()):
        return None
    named = Params(given, MODEL)
    model, config = model_of(named), config_of(named)
    counts = counts_of(named, config, model)
    return DraftModel(model=model, weights=weights_of(named, config, model, counts))


def _check_engine_takes(params: Params, engine: Engine, companion: bool) -> None:
    """Refuse what this engine's memory rule would not hear."""
    if companion and not engine.holds_draft_models:
        raise UnsupportedOption(
            engine=engine.id,
            option="draft_model",
            value=str(params.get("draft_model"))[:60],
            reason="its cache is not counted",
        )


def _device(params: Params) -> Accelerator:
    name = params.text("gpu", "")
    memory = params.integer("memory_mib", None)
    if not name and memory is None:
        raise MissingField(field="gpu")
    if name in ("", OTHER):
        if memory is None:
            raise MissingField(field="memory_mib")
        return accelerators.other(at_least("memory_mib", memory, 1))
    found = accelerators.find(name)
    if memory is None:
        return found
    return accelerators.with_memory(found, at_least("memory_mib", memory, 1))


def _sizes(params: Params, engine: Engine) -> Parallelism:
    given = {
        name: optional(params, name, 1) for name in ("gpus", "tp", "pp", "dp", "dcp")
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
    *,
    draft: bool,
    separate: bool,
) -> Settings:
    """Drafting means a speculative token at least, where the engine counts them.

    A separate draft model is a method of its own in engines that have several.
    """
    options = dict(params.mapping("engine_options"))
    defaults = SEPARATE_DRAFT if separate else {}
    if draft:
        defaults = {SPECULATIVE_TOKENS: 1, **defaults}
    for option in engine.options:
        if option.name in defaults:
            options.setdefault(option.name, defaults[option.name])
    return engine.settings(
        params.text("engine_version", "") or None,
        options,
        tp=sizes.tp,
        pp=sizes.pp,
        dp=sizes.dp,
        dcp=sizes.dcp,
        block_tokens=optional(params, "block_tokens", 1),
        batched_tokens=optional(params, "batched_tokens", 1),
        device=device_traits(device),
    )


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
    shared = at_least("shared_prefix", params.integer("shared_prefix", 0) or 0, 0)
    if shared and not engine.shares_prefixes(settings):
        raise invalid(
            "shared_prefix", shared, f"0: {engine.id} keeps a prefix per request here"
        )
    return shared
