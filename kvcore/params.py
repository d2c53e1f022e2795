"""The parameters of an api call: names, types, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

from kvcore import catalog, engines
from kvcore.engines.base import Engine, Settings
from kvcore.engines.none import NoEngine
from kvcore.errors import InvalidArgument, MissingField, UnknownOption, shown
from kvcore.estimate import Scope
from kvcore.importers import gguf, hf_config, stored
from kvcore.importers.edits import edited
from kvcore.importers.stored import StoredWeights
from kvcore.model import Model
from kvcore.units import parse_count


class Params:
    """Named parameters of a call, read with types and checked for strangers."""

    def __init__(self, params: Mapping[str, object], known: frozenset[str]) -> None:
        for name in params:
            if name not in known:
                raise UnknownOption(
                    engine="kvcore", option=str(name)[:60], known=sorted(known)
                )
        self._params = params

    def get(self, name: str) -> object:
        return self._params.get(name)

    def integer(self, name: str, default: int | None) -> int | None:
        value = self._params.get(name)
        if value is None:
            return default
        if isinstance(value, str):
            return parse_count(name, value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise invalid(name, value, "a whole number")
        return value

    def text(self, name: str, default: str) -> str:
        value = self._params.get(name)
        if value is None or value == "":
            return default
        if not isinstance(value, str):
            raise invalid(name, value, "a text")
        return value

    def flag(self, name: str) -> bool:
        value = self._params.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise invalid(name, value, "true or false")
        return value

    def mapping(self, name: str) -> Mapping[str, object]:
        value = self._params.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise invalid(name, value, "an object")
        return value


def invalid(argument: str, value: object, expected: str) -> InvalidArgument:
    return InvalidArgument(argument=argument, value=shown(value), expected=expected)


MODEL: Final = frozenset({"model", "model_text", "weights", "edits"})
SCOPE: Final = frozenset(
    {
        "tokens",
        "sequences",
        "no_state",
        "draft",
        "encoder_tokens",
        "checkpoint_interval",
    }
)
FORMATS: Final = frozenset({"kv_format", "indexer_format", "state_format"})
ENGINE: Final = frozenset(
    {
        "engine",
        "engine_version",
        "engine_options",
        "tp",
        "pp",
        "dcp",
        "block_tokens",
    }
)
ESTIMATE: Final = MODEL | SCOPE | FORMATS | ENGINE

DEFAULT_TOKENS: Final = 8192
NONE: Final = NoEngine()


def model_of(params: Params) -> Model:
    """The Model meant by `model` (name, config, GGUF metadata) or `model_text`."""
    name, edits = catalog_name(params), params.mapping("edits")
    if name is not None and not edits:
        return catalog.model(catalog.find(name).id)
    config, title = described(params)
    if not edits:
        reader = gguf.read if gguf.is_metadata(config) else hf_config.read
        return reader(config, title)
    model: Model = _reading().edited_model(config, edits, title)
    return model


def catalog_name(params: Params) -> str | None:
    """The name in `model`, where the model is not given as an object or text."""
    name = params.get("model")
    named = params.get("model_text") is None and isinstance(name, str)
    return name if named and isinstance(name, str) and name.strip() else None


def described(params: Params) -> tuple[Mapping[str, object], str]:
    """The config behind `model_of` before any edits, and the model's name if known."""
    text, model = params.get("model_text"), params.get("model")
    if text is not None:
        if not isinstance(text, str):
            raise invalid("model_text", text, "a text")
        return hf_config.parse(text), ""
    if isinstance(model, Mapping):
        return model, ""
    if model is None:
        raise MissingField(field="model")
    name = catalog_name(params)
    if name is None:
        raise invalid("model", model, "a name or a config object")
    entry = catalog.find(name)
    return entry.config, entry.name


def config_of(params: Params) -> Mapping[str, object]:
    """The config behind `model_of`, for what is counted from it (parameters)."""
    config, _ = described(params)
    return edited(config, params.mapping("edits"))


def weights_hold(params: Params) -> bool:
    """Whether what is known of the published weights holds for the edited model."""
    edits = params.mapping("edits")
    return not edits or _reading().weights_hold(described(params)[0], edits) is True


def _reading() -> ModuleType:
    """Only edits are read twice to compare; most pages never are."""
    return import_module("kvcore.reading")


def stored_of(params: Params) -> StoredWeights | None:
    """What the model's files say of their weights (`importers.model_files`)."""
    given = params.mapping("weights")
    return stored.from_json(given) if given and weights_hold(params) else None


def parameters_of(
    params: Params, files: StoredWeights | None
) -> tuple[int | None, int | None]:
    """All parameters and those one token uses, as far as they are known.

    Stated for a model of the catalog, and counted where edits change them.
    """
    name = catalog_name(params)
    if name is None:
        return files.elements if files else None, None
    known = catalog.find(name)
    if weights_hold(params):
        return known.parameters.total, known.parameters.active
    counts = _reading().read(config_of(params)).counts
    if counts is None:
        return None, None
    return counts.total, counts.active if counts.active < counts.total else None


def scope_of(params: Params, model: Model, tokens: int | None = None) -> Scope:
    if tokens is None:
        tokens = params.integer("tokens", None)
    if tokens is None:
        tokens = min(DEFAULT_TOKENS, model.max_context or DEFAULT_TOKENS)
    return Scope(
        tokens=tokens,
        sequences=params.integer("sequences", 1) or 0,
        state=not params.flag("no_state"),
        draft=params.flag("draft"),
        encoder_tokens=params.integer("encoder_tokens", None),
        checkpoint_interval=params.integer("checkpoint_interval", None),
    )


def format_names(params: Params) -> tuple[str, str, str]:
    return (
        params.text("kv_format", "auto"),
        params.text("indexer_format", "auto"),
        params.text("state_format", "auto"),
    )


def engine_of(params: Params) -> Engine | None:
    name = params.text("engine", "none")
    if name == "none":
        for option in sorted(ENGINE - {"engine"}):
            if params.get(option) not in (None, "", 1, "1", {}):
                raise invalid(option, params.get(option), "an engine to go with it")
        return None
    return engines.find(name)


def plan_engine_of(params: Params) -> Engine:
    """The engine of a plan; logical bytes alone where none is named."""
    name = params.text("engine", "none")
    return NONE if name == "none" else engines.find(name)


def settings_of(engine: Engine, params: Params) -> Settings:
    return engine.settings(
        params.text("engine_version", "") or None,
        params.mapping("engine_options"),
        tp=params.integer("tp", 1) or 0,
        pp=params.integer("pp", 1) or 0,
        dcp=params.integer("dcp", 1) or 0,
        block_tokens=params.integer("block_tokens", None),
    )


def optional(params: Params, name: str, minimum: int) -> int | None:
    value = params.integer(name, None)
    return None if value is None else at_least(name, value, minimum)


def at_least(argument: str, value: int, minimum: int) -> int:
    if not minimum <= value <= 10**15:
        raise InvalidArgument(
            argument=argument,
            value=str(value),
            expected=f"a whole number from {minimum}",
        )
    return value
