"""The models that ship with kvcore: their published config fields, named and sourced.

Every entry is a fact file entry of data/models/ (schema in data/README.md). Nothing
about the cache is stored here: the importer turns `Entry.config` into a Model.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kvcore import datafiles
from kvcore.errors import UnknownModel
from kvcore.importers import hf_config
from kvcore.model import Model

MAX_NAME: Final = 200
"""Longer names are no model's; searching for close ones would only take time."""

PREFIXES: Final = (
    "https://",
    "huggingface.co/",
    "hf.co/",
    "hf:",
    "ollama.com/",
    "ollama:",
    "ollama/",
    "library/",
)
"""How a name is written where it was copied from, in the order they are stacked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedParameters:
    """Parameter counts as shown, and the count somebody else states to check against.

    `total` and `active` are what `kvcore.parameters` counts from the config, or the
    stated count where the config does not say enough. `active` is None for a model
    that uses every parameter for every token. `stored_elements` is the number of
    elements in the checkpoint's tensors where that is not a number of parameters
    (packed formats, weights stored twice, an estimate from a pickle file).
    """

    total: int | None
    active: int | None
    stated: int | None
    stated_by: str | None
    stored_elements: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Size of a published checkpoint in bytes, rounded as its source rounds it."""

    repo: str
    bytes: int
    source_url: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One model of the catalog."""

    id: str
    name: str
    hf_id: str
    family: str
    released: str | None
    aliases: tuple[str, ...]
    parameters: StatedParameters
    weights: Weights | None
    quantized_weights: tuple[Weights, ...]
    source_url: str
    model_url: str
    sources: tuple[str, ...]
    retrieved: str
    confidence: str
    note: str | None
    config: Mapping[str, object]

    @property
    def model_type(self) -> str:
        return str(self.config["model_type"])


@cache
def load() -> Mapping[str, Entry]:
    """All entries by id, in the order of their families' files and ids."""
    folder = datafiles.root().joinpath("models")
    pages = sorted(
        (page for page in folder.iterdir() if page.name.endswith(".json")),
        key=lambda page: page.name,
    )
    found: dict[str, Entry] = {}
    for page in pages:
        for raw in json.loads(page.read_bytes()):
            entry = _entry(raw)
            found[entry.id] = entry
    return found


def entries() -> tuple[Entry, ...]:
    """All entries."""
    return tuple(load().values())


def catalog_date() -> str:
    """The day the youngest fact was read, as YYYY-MM-DD."""
    return max(entry.retrieved for entry in load().values())


def find(name: str) -> Entry:
    """The entry of an id, a Hugging Face id, an alias or an Ollama tag.

    Upper and lower case, the site a name was copied from, the owner of a mirror and
    the quantisation in an Ollama tag make no difference.

    >>> find("Llama3.1:70b-instruct-q4_K_M").id
    'llama-3.1-70b-instruct'
    >>> find("https://huggingface.co/unsloth/Qwen3-8B-GGUF").id
    'qwen3-8b'
    """
    names = _names()
    for spelling in _spellings(name):
        if spelling in names:
            return load()[names[spelling]]
    raise UnknownModel(model=name[:MAX_NAME], suggestions=list(suggest(name)))


@cache
def model(id: str) -> Model:
    """The Model of the entry of that id."""
    entry = load()[id]
    return hf_config.read(entry.config, entry.name)


def suggest(name: str, count: int = 5) -> tuple[str, ...]:
    """Ids of the entries whose names are closest to `name`, best first."""
    names = _names()
    wanted = _plain(name[:MAX_NAME])
    close = difflib.get_close_matches(wanted, names, n=4 * count, cutoff=0.5)
    close += sorted(known for known in names if wanted and wanted in known)
    return tuple(dict.fromkeys(names[known] for known in close))[:count]


def _spellings(name: str) -> Iterator[str]:
    """Ways to read a name, from literal to tolerant."""
    if len(name) > MAX_NAME:
        return
    text = _plain(name)
    yield text
    repository, _, tag = text.partition(":")
    while tag and tag != "latest":
        yield f"{repository}:{tag}"
        tag = tag.rpartition("-")[0]
    yield repository
    model = repository.removesuffix("/").rpartition("/")[2]
    yield model
    yield model.removesuffix("-gguf")


def _plain(name: str) -> str:
    text = "-".join(name.lower().split())
    for prefix in PREFIXES:
        text = text.removeprefix(prefix)
    return text


@cache
def _names() -> Mapping[str, str]:
    """Every name in lower case -> id; ids win over Hugging Face ids over aliases."""
    names: dict[str, str] = {}
    for entry in load().values():
        for alias in entry.aliases:
            names[alias] = entry.id
    for entry in load().values():
        repository = entry.hf_id.lower()
        names[repository.rpartition("/")[2]] = entry.id
        names[repository] = entry.id
    names.update({id_: id_ for id_ in load()})
    return names


def _entry(raw: dict[str, Any]) -> Entry:
    weights = raw.get("weights")
    parameters = raw["parameters"]
    return Entry(
        id=raw["id"],
        name=raw["name"],
        hf_id=raw["hf_id"],
        family=raw["family"],
        released=raw["released"],
        aliases=tuple(raw["aliases"]),
        parameters=StatedParameters(
            total=parameters["total"],
            active=parameters["active"],
            stated=parameters["stated"],
            stated_by=parameters["stated_by"],
            stored_elements=parameters.get("stored_elements"),
        ),
        weights=None if weights is None else _weights(weights),
        quantized_weights=tuple(map(_weights, raw.get("quantized_weights", ()))),
        source_url=raw["source_url"],
        model_url=raw["model_url"],
        sources=tuple(raw["sources"]),
        retrieved=raw["retrieved"],
        confidence=raw["confidence"],
        note=raw.get("note"),
        config=raw["config"],
    )


def _weights(raw: dict[str, Any]) -> Weights:
    return Weights(
        repo=raw["repo"], bytes=raw["bytes"], source_url=raw.get("source_url")
    )
