"""Any files that describe a model -> what the api takes: `model`, `weights`.

The command line finds files on a disk, the page is given them; both hand byte sources
over, and here is decided what each of them is. Nothing is opened, only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kvcore.errors import (
    AdapterOnly,
    ConfigMissing,
    FirstPartMissing,
    InputTooLarge,
    MissingField,
    SeveralModels,
    UnsupportedModel,
)
from kvcore.importers import gguf_file, safetensors
from kvcore.importers.byte_source import ByteSource, text_of
from kvcore.importers.gguf import ARCHITECTURE
from kvcore.importers.gguf_file import GgufHeader
from kvcore.importers.hf_config import MAX_TEXT_BYTES, parse

CONFIGS: Final = ("config.json", "params.json")
ADAPTER_CONFIG: Final = "adapter_config.json"
INDEX: Final = ".safetensors.index.json"

PART: Final = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\.gguf|\.safetensors)$", re.I)
MAX_PARTS: Final = 1000
MAX_NAMED: Final = 4
"""Files named one by one in an error."""

NO_MODELS: Final[Mapping[str, str]] = {
    "mmproj": "it sees or hears for a model: give the file of the language model",
    "imatrix": "it says which weights matter, not what they are",
    "vocab": "it is a vocabulary only",
}
"""`general.type` of GGUF files without a model -> what to say."""


def describe(sources: Sequence[ByteSource]) -> dict[str, Any]:
    """The api's parameters for the model in these files.

    `model` is a GGUF file's metadata, `model_text` a config's text; `weights`, where
    the files tell, what their headers say of bytes by type.
    """
    ggufs = [source for source in sources if is_gguf(source)]
    if ggufs:
        return gguf_params([gguf_file.read_header(source) for source in ggufs])
    tensors = [source for source in sources if is_safetensors(source)]
    config = _named(sources, *CONFIGS) or _other_json(sources)
    if config is None:
        raise without_config(sources, tensors)
    found: dict[str, Any] = {"model_text": _text(config)}
    index = next((s for s in sources if s.name.lower().endswith(INDEX)), None)
    weights = _checkpoint(found["model_text"], index, tensors)
    return found if weights is None else {**found, "weights": weights}


def parts_of(name: str) -> list[str]:
    """The names of all files a split file's name speaks of; its own if it is whole."""
    split = PART.match(name)
    if split is None:
        return [name]
    stem, _, count, suffix = split.groups()
    return [
        f"{stem}-{number:05}-of-{count}{suffix}"
        for number in range(1, min(int(count), MAX_PARTS) + 1)
    ]


def is_gguf(source: ByteSource) -> bool:
    return source.name.lower().endswith(".gguf") or gguf_file.is_gguf(source)


def is_safetensors(source: ByteSource) -> bool:
    return source.name.lower().endswith(".safetensors") or (
        safetensors.is_safetensors(source)
    )


def _named(sources: Iterable[ByteSource], *names: str) -> ByteSource | None:
    return next((s for name in names for s in sources if s.name.lower() == name), None)


def _other_json(sources: Sequence[ByteSource]) -> ByteSource | None:
    """A single file of another name is a config; so is what was pasted."""
    others = [
        source
        for source in sources
        if not source.name.lower().endswith((INDEX, ".safetensors", ADAPTER_CONFIG))
    ]
    return others[0] if others else None


def _text(source: ByteSource) -> str:
    if source.size > MAX_TEXT_BYTES:
        raise InputTooLarge(bytes=source.size, limit=MAX_TEXT_BYTES)
    return text_of(source.read(0, source.size))


# GGUF ------------------------------------------------------------------------------


def gguf_params(headers: Sequence[GgufHeader]) -> dict[str, Any]:
    """The parameters for the one model of these headers."""
    models = [header for header in headers if is_model(header)]
    if not models:
        raise no_model(headers[0])
    metadata = gguf_file.metadata_of(models)
    described = [h for h in models if ARCHITECTURE in h.metadata]
    if not described:
        raise _undescribed(models[0])
    if len(described) > 1:
        names = [header.file for header in described[:MAX_NAMED]]
        raise SeveralModels(count=len(described), names=names, most=1)
    missing = _missing(models)
    weights = gguf_file.stored_weights(models, missing)
    return {"model": dict(metadata), "weights": weights.to_json()}


def is_model(header: GgufHeader) -> bool:
    """Whether it is a language model's, or a part of one, and nothing beside it."""
    return _kind(header) == "model"


def _kind(header: GgufHeader) -> str:
    stated = header.metadata.get("general.type")
    if header.metadata.get(ARCHITECTURE) == "clip":
        return "mmproj"
    return stated if isinstance(stated, str) and stated else "model"


def no_model(header: GgufHeader) -> AdapterOnly | UnsupportedModel:
    """Why a file that is no model's is not."""
    kind = _kind(header)
    if kind == "adapter":
        base = header.metadata.get("general.base_model.0.name")
        family = header.metadata.get(ARCHITECTURE, "a model")
        return AdapterOnly(file=header.file, base=str(base or family)[:200])
    reason = NO_MODELS.get(kind, f"its general.type is {kind[:60]}, not model")
    return UnsupportedModel(model_type=header.file[-200:], reason=reason)


def _undescribed(header: GgufHeader) -> FirstPartMissing | MissingField:
    """Only the first file of a split model says what the model is."""
    first = parts_of(header.file)[0]
    if first == header.file:
        return MissingField(field=ARCHITECTURE)
    return FirstPartMissing(file=header.file, first=first)


def _missing(headers: Sequence[GgufHeader]) -> list[str]:
    """Names of the parts of a split model that are not there."""
    count = max(header.split_count for header in headers)
    here = {header.file.lower() for header in headers}
    expected = parts_of(headers[0].file)
    if len(expected) > 1:
        return [name for name in expected if name.lower() not in here]
    return [f"{i + 1} of {count}" for i in range(len(headers), min(count, MAX_PARTS))]


# Safetensors -----------------------------------------------------------------------


def without_config(
    sources: Sequence[ByteSource], tensors: Sequence[ByteSource]
) -> AdapterOnly | ConfigMissing:
    """What is wrong with files of which none describes a model."""
    adapter = _named(sources, ADAPTER_CONFIG)
    if adapter is not None:
        base = parse(_text(adapter)).get("base_model_name_or_path")
        return AdapterOnly(file=adapter.name, base=str(base or "a model")[:200])
    for source in tensors:
        if safetensors.read_header(source).is_adapter:
            return AdapterOnly(file=source.name, base="a model")
    return ConfigMissing(files=[source.name for source in sources[:MAX_NAMED]])


def _checkpoint(
    config: str, index_source: ByteSource | None, tensors: Sequence[ByteSource]
) -> dict[str, Any] | None:
    """What the headers say of the weights; None where they are of none."""
    index = None if index_source is None else safetensors.read_index(index_source)
    here = {source.name: source for source in tensors if not source.is_pointer}
    expected = index.files if index else _expected(tensors)
    headers = [
        header
        for name in expected
        if name in here
        and not (header := safetensors.read_header(here[name])).is_adapter
    ]
    missing = [name for name in expected if name not in here]
    if not missing and not any(header.tensors for header in headers):
        return None
    return safetensors.stored_weights(headers, index, parse(config), missing).to_json()


def _expected(tensors: Sequence[ByteSource]) -> list[str]:
    """Every file of the checkpoint, by the names of those that are there."""
    names = {part for source in tensors for part in parts_of(source.name)}
    return sorted(names)
