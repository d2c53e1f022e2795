"""Files given together, dropped on the page for instance -> the models they describe.

A folder comes as its files, each named by its path ("folder/config.json"). Which files
belong together is decided by their folders, names and first bytes; weights are never
read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kvcore.errors import InvalidFile, KvcoreError, NoModelFiles, Notice, shown
from kvcore.importers import gguf_file, hf_config, model_files
from kvcore.importers.byte_source import ByteSource, text_of
from kvcore.importers.gguf import ARCHITECTURE, is_metadata
from kvcore.importers.gguf_file import GgufHeader
from kvcore.importers.hf_config import MAX_TEXT_BYTES
from kvcore.importers.model_files import (
    ADAPTER_CONFIG,
    CONFIGS,
    INDEX,
    MAX_NAMED,
    PART,
)

BESIDE_A_CONFIG: Final = (
    "adapter_config",
    "added_tokens",
    "chat_template",
    "generation_config",
    "merges",
    "model_index",
    "preprocessor_config",
    "processor_config",
    "quant",
    "special_tokens",
    "tokenizer",
    "video_preprocessor",
    "vocab",
)
"""How the names of JSON files begin that are published beside a config."""

START: Final = 64
"""Bytes that tell a text from other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One model: the file that says what it is, and what the api takes for it.

    `params` are those of `model_files.describe`; `kind` is "gguf", "checkpoint" (a
    config with weights) or "config"; `files` are all that were read for it.
    """

    name: str
    kind: str
    files: tuple[str, ...]
    params: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The models in some files, and files beside them that are left out.

    `left_out` are no models by themselves; `beside_gguf` may describe one, as a GGUF
    file does in the same folder.
    """

    models: tuple[Described, ...]
    left_out: tuple[str, ...] = ()
    beside_gguf: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        named = {
            "files_left_out": self.left_out,
            "files_beside_gguf": self.beside_gguf,
        }
        return tuple(
            Notice(code, {"names": list(names[:MAX_NAMED])})
            for code, names in named.items()
            if names
        )


def models_in(sources: Sequence[ByteSource]) -> Found:
    """Every model that these files describe, or a typed error if there is none."""
    ggufs = [source for source in sources if model_files.is_gguf(source)]
    found = _gguf_models(ggufs) if ggufs else Found(models=())
    taken = {_folder(source) for source in ggufs}
    others = [source for source in sources if source not in ggufs]
    beside = [source for source in others if _is_in(_folder(source), taken)]
    checkpoints = _checkpoints([source for source in others if source not in beside])
    models = found.models + checkpoints.models
    if not models:
        raise _nothing(sources)
    return Found(
        models=models,
        left_out=found.left_out + checkpoints.left_out,
        beside_gguf=tuple(s.name for s in map(_base, beside) if _is_of_model(s)),
    )


def _is_of_model(source: ByteSource) -> bool:
    """By its name: whether it is one of those that describe a model."""
    return source.name.lower().endswith((*CONFIGS, INDEX, ".safetensors"))


def _folder(source: ByteSource) -> tuple[str, ...]:
    return tuple(source.name.split("/")[:-1])


def _base(source: ByteSource) -> ByteSource:
    """The same file under its name alone."""
    return replace(source, name=source.name.rsplit("/", 1)[-1])


def _is_in(folder: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> bool:
    """Whether a folder is one of the others or inside one.

    Loose files are in no folder, and beside them no folder is.
    """
    return any(
        folder == other or (other and folder[: len(other)] == other) for other in others
    )


# GGUF ------------------------------------------------------------------------------


def _gguf_models(sources: Sequence[ByteSource]) -> Found:
    headers = [
        (_folder(source), gguf_file.read_header(_base(source))) for source in sources
    ]
    models = [pair for pair in headers if model_files.is_model(pair[1])]
    if not models:
        raise model_files.no_model(headers[0][1])
    return Found(
        models=tuple(_gguf_model(group) for group in _split_models(models)),
        left_out=tuple(h.file for _, h in headers if not model_files.is_model(h)),
    )


def _gguf_model(headers: Sequence[GgufHeader]) -> Described:
    params = model_files.gguf_params(headers)
    first = next(h for h in headers if ARCHITECTURE in h.metadata)
    files = tuple(header.file for header in headers)
    return Described(name=first.file, kind="gguf", params=params, files=files)


def _split_models(
    headers: Sequence[tuple[tuple[str, ...], GgufHeader]],
) -> list[list[GgufHeader]]:
    """The headers of each model; parts that were renamed belong to the only one."""
    if sum(ARCHITECTURE in header.metadata for _, header in headers) == 1:
        return [[header for _, header in headers]]
    groups: dict[tuple[tuple[str, ...], str], list[GgufHeader]] = {}
    for folder, header in headers:
        split = PART.match(header.file)
        stem = split[1] if split else header.file
        groups.setdefault((folder, stem.lower()), []).append(header)
    return list(groups.values())


# Configs and what lies beside them -------------------------------------------------


def _checkpoints(sources: Sequence[ByteSource]) -> Found:
    """The configs in each folder, the first of them with the weights beside it.

    What lies deeper than a config belongs to its model: other forms of the weights.
    """
    folders: dict[tuple[str, ...], list[ByteSource]] = {}
    for source in sources:
        folders.setdefault(_folder(source), []).append(_base(source))
    models: list[Described] = []
    taken: list[tuple[str, ...]] = []
    for folder in sorted(folders, key=len):
        here = folders[folder]
        configs = [] if _is_in(folder, taken) else _configs(here, loose=not folder)
        if configs:
            taken.append(folder)
            models.append(_described(configs[0], _weights_beside(here)))
            models += [_described(config, []) for config in configs[1:]]
    adapters = (s.name for each in folders.values() for s in each if _is_adapter(s))
    return Found(models=tuple(models), left_out=tuple(adapters))


def _is_adapter(source: ByteSource) -> bool:
    return source.name.lower() == ADAPTER_CONFIG


def _described(config: ByteSource, beside: Sequence[ByteSource]) -> Described:
    params = model_files.describe([config, *beside])
    return Described(
        name=config.name,
        kind="checkpoint" if "weights" in params else "config",
        params=params,
        files=(config.name, *(source.name for source in beside)),
    )


def _configs(sources: Sequence[ByteSource], *, loose: bool) -> list[ByteSource]:
    """The file that is called a config; others count where they were picked by hand."""
    named: list[ByteSource] = []
    for name in CONFIGS:
        named = named or [s for s in sources if s.name.lower() == name]
    if named and not loose:
        return named[:1]
    others = [s for s in sources if _may_be_config(s) and s.name.lower() not in CONFIGS]
    if not named and len(others) == 1:
        return others
    return named + [source for source in others if _reads_as_model(source)]


def _may_be_config(source: ByteSource) -> bool:
    """A text that is none of those published beside a config."""
    name = source.name.lower()
    if name.endswith((INDEX, ".safetensors")) or name.startswith(BESIDE_A_CONFIG):
        return False
    if name.endswith(".json"):
        return True
    return text_of(source.read(0, min(source.size, START))).lstrip().startswith("{")


def _reads_as_model(source: ByteSource) -> bool:
    if source.size > MAX_TEXT_BYTES:
        return False
    try:
        config = hf_config.parse(text_of(source.read(0, source.size)))
        return is_metadata(config) or bool(hf_config.read(config).layers)
    except KvcoreError:
        return False


def _weights_beside(sources: Sequence[ByteSource]) -> list[ByteSource]:
    """The checkpoint's files: an index and all it may name, or the usual names."""
    files = [source for source in sources if model_files.is_safetensors(source)]
    indexes = [source for source in sources if source.name.lower().endswith(INDEX)]
    if indexes:
        usual = [s for s in indexes if s.name.lower() == f"model{INDEX}"]
        return [(usual or indexes)[0], *files]
    whole = [s for s in files if s.name.lower() == "model.safetensors"]
    numbered = [s for s in files if s.name.lower().startswith("model-")]
    return whole or numbered or files


# Nothing ---------------------------------------------------------------------------


def _nothing(sources: Sequence[ByteSource]) -> KvcoreError:
    """Why these files describe no model."""
    here = [_base(source) for source in sources]
    tensors = [source for source in here if model_files.is_safetensors(source)]
    if tensors or any(s.name.lower().endswith((INDEX, ADAPTER_CONFIG)) for s in here):
        return model_files.without_config(here, tensors)
    if len(here) == 1:
        return InvalidFile(
            file=here[0].name,
            where="its beginning",
            found=shown(here[0].read(0, min(here[0].size, 8))),
            expected="that of a config.json, a .gguf or a .safetensors file",
        )
    return NoModelFiles(
        count=len(here), names=[source.name for source in here[:MAX_NAMED]]
    )
