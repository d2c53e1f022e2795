"""The parameters of an api call: names, types, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore import catalog, engines
from kvcore.engines.base import Engine, Settings
from kvcore.engines.none import NoEngine
from kvcore.errors import InvalidArgument, MissingField, UnknownOption, shown
from kvcore.estimate import Scope
from kvcore.importers import gguf, hf_config, stored
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


MODEL: Final = frozenset({"model", "model_text", "weights"})
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
    text = params.get("model_text")
    if text is not None:
        if not isinstance(text, str):
            raise invalid("model_text", text, "a text")
        return _model_from(hf_config.parse(text))
    model = params.get("model")
    if isinstance(model, Mapping):
        return _model_from(model)
    if isinstance(model, str) and model.strip():
        return catalog.model(catalog.find(model).id)
    if model is None:
        raise MissingField(field="model")
    raise invalid("model", model, "a name or a config object")


def _model_from(given: Mapping[str, object]) -> Model:
    """A config.json, or GGUF metadata (which names its architecture)."""
    reader = gguf.read if gguf.is_metadata(given) else hf_config.read
    return reader(given)


def config_of(params: Params) -> Mapping[str, object]:
    """The config behind `model_of`, for what is counted from it (parameters)."""
    text = params.get("model_text")
    if isinstance(text, str):
        return hf_config.parse(text)
    model = params.get("model")
    if isinstance(model, Mapping):
        return model
    return catalog.find(params.text("model", "")).config


def stored_of(params: Params) -> StoredWeights | None:
    """What the model's files say of their weights (`importers.model_files`)."""
    given = params.mapping("weights")
    return stored.from_json(given) if given else None


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
