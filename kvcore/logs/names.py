"""Which model a log is of: a name of the catalog, or what its loader listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvcore.logs.facts import Reading, Value

Json = dict[str, Any]
Ask = Callable[[str, Mapping[str, object]], Json]
"""`kvcore.api.call`, or anything that answers like it."""

_HUB_CACHE: Final = re.compile(r"models--([\w.-]{1,60}?)--([\w.-]{1,100})")
_SHARD: Final = re.compile(r"-\d{5}-of-\d{5}$")
_QUANTISED: Final = re.compile(
    r"[-_.](?:awq|gptq|autoround|auto|round|int[48]|fp8|fp4|nvfp4|mxfp4|w[48]a(?:16|8)|"
    r"[48]-?bit|bnb|gguf|mlx|dynamic|block|quantized|quant|ud|i1|imatrix|marlin|"
    r"(?:i?q\d\w{0,3}(?:_\w{1,3}){0,2})|f16|bf16|fp16|f32|it-qat|qat|"
    r"compressed-tensors|channel|ct|g128|g32|instruct-awq)$",
    re.IGNORECASE,
)
MAX_TRIES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LogModel:
    """A model to ask about: `params` of the api; `printed` as the log calls it."""

    params: Mapping[str, object]
    printed: str | None
    id: str | None
    shown: Json
    assumed: bool = False


def model_of(
    reading: Reading, given: Mapping[str, object], ask: Ask
) -> LogModel | None:
    """The model given, else the one the log names, else the one its loader listed."""
    printed = reading.word("model")
    if given:
        return _model(given, printed, ask)
    metadata = whole_metadata(reading)
    if metadata is not None:
        found = _model({"model": metadata}, printed or _general_name(reading), ask)
        if found is not None:
            return found
    names = [name for name in (printed, _general_name(reading)) if name]
    for name in names:
        for spelling, literal in spellings(name):
            found = _model({"model": spelling}, name, ask, assumed=not literal)
            if found is not None:
                return found
    return None


def whole_metadata(reading: Reading) -> Mapping[str, Value | list[Value]] | None:
    """GGUF keys of the log, unless what decides the cache was cut off."""
    found = reading.metadata
    if "general.architecture" not in found:
        return None
    cut = [key for key in found if key.endswith(" (cut)") and ".tokenizer" not in key]
    if any(not key.startswith("tokenizer.") for key in cut):
        return None
    return found


def _general_name(reading: Reading) -> str | None:
    name = reading.metadata.get("general.name")
    return name if isinstance(name, str) else None


def _model(
    params: Mapping[str, object],
    printed: str | None,
    ask: Ask,
    *,
    assumed: bool = False,
) -> LogModel | None:
    shown = ask("show", params)
    if "error" in shown:
        return None
    by_name = isinstance(params.get("model"), str)
    return LogModel(
        params=params,
        printed=printed,
        id=shown["id"] if by_name else None,
        shown=shown,
        assumed=assumed,
    )


def spellings(name: str) -> Iterator[tuple[str, bool]]:
    """Names a path may mean, and whether nothing but the folder was taken off."""
    tries = 0
    for whole in _parts(name[:400]):
        text, literal = whole, True
        while text and tries < MAX_TRIES:
            tries += 1
            yield text, literal
            shorter = _QUANTISED.sub("", text)
            if shorter == text:
                break
            text, literal = shorter, False


def _parts(name: str) -> Iterator[str]:
    """The name, and the folders of a path from the last."""
    plain = name.strip().strip("'\"").replace("\\", "/").rstrip("/")
    plain = _SHARD.sub("", plain.removesuffix(".gguf"))
    hub = _HUB_CACHE.search(plain)
    if hub:
        yield f"{hub.group(1)}/{hub.group(2)}"
    yield plain
    folders = [part for part in plain.split("/") if part]
    if len(folders) > 1:
        yield from reversed(folders[-4:])
