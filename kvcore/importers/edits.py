"""Fields of a model's description changed by hand before it is read.

A path names a field by its keys from the outside in ("text_config.head_dim"); in GGUF
metadata, whose keys have dots themselves, it is the whole key. An empty text stands for
nothing: it removes a field. None is JSON's null, which a config may state: for Mistral
"sliding_window": null means no window, and no such field a window of 4,096.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.errors import InvalidArgument, InvalidField, shown
from kvcore.importers.gguf import is_metadata

ABSENT: Final = ""
"""The value of a field that is not there."""

MAX_EDITS: Final = 64
MAX_PATH: Final = 200


def edited(
    config: Mapping[str, object], edits: Mapping[str, object]
) -> Mapping[str, object]:
    """`config` with every field of `edits` set or removed; outer fields first.

    Raises InvalidArgument for what is no path and for too many, InvalidField for a
    path that leads through something that is not an object.
    """
    if len(edits) > MAX_EDITS:
        raise InvalidArgument(
            argument="edits",
            value=f"an object of {len(edits)}",
            expected=f"at most {MAX_EDITS} fields",
        )
    flat = is_metadata(config)
    for path in edits:
        _check(path, flat)
    for path in sorted(edits):
        if flat:
            config = _with(config, path, edits[path])
        else:
            config = _deep(config, path, path, edits[path])
    return config


def value_at(config: Mapping[str, object], path: str) -> object:
    """What a path of an edit names; `ABSENT` where there is nothing."""
    if path in config or is_metadata(config):
        return config.get(path, ABSENT)
    key, dot, inner = path.partition(".")
    nested = config.get(key)
    return value_at(nested, inner) if dot and isinstance(nested, Mapping) else ABSENT


def _check(path: object, flat: bool) -> None:
    if (
        not isinstance(path, str)
        or not 0 < len(path) <= MAX_PATH
        or (not flat and "" in path.split("."))
    ):
        raise InvalidArgument(
            argument="edits",
            value=shown(path),
            expected="names of fields, as head_dim or text_config.head_dim",
        )


def _deep(
    here: Mapping[str, object], path: str, rest: str, value: object
) -> Mapping[str, object]:
    key, dot, inner = rest.partition(".")
    if rest in here or not dot:
        return _with(here, rest, value)
    nested = here.get(key)
    if nested is None and value == ABSENT:
        return here
    if nested is not None and not isinstance(nested, Mapping):
        raise InvalidField(
            field=path.removesuffix(f".{inner}"),
            value=shown(nested),
            expected=f"an object that can hold {path}",
        )
    return _with(here, key, _deep(nested or {}, path, inner, value))


def _with(here: Mapping[str, object], key: str, value: object) -> Mapping[str, object]:
    """A copy with one key set, in its place where it has one, or removed."""
    if value == ABSENT:
        return {name: held for name, held in here.items() if name != key}
    return {**here, key: value}
