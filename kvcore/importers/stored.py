"""What the headers of weight files say: bytes and elements by type and by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kvcore.errors import InvalidArgument, Notice, shown

MAX_BYTES: Final = 10**16
MAX_KINDS: Final = 200
MAX_FILES: Final = 1000
MAX_NAME: Final = 100
MAX_NAMED: Final = 20
"""Missing files named one by one in a notice."""


class Tensors(NamedTuple):
    """Bytes and elements of several tensors."""

    bytes: int
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """The weights in a model's files, counted from their headers.

    `elements` is None where tensors are packed several to a number, so that nobody
    knows how many weights they are. `by_type` and `parts` are empty where only a
    total is known; `parts` are those of `kvcore.weights`.
    """

    total_bytes: int
    elements: int | None = None
    by_type: Mapping[str, Tensors] = field(default_factory=dict)
    parts: Mapping[str, Tensors] = field(default_factory=dict)
    quantization: str | None = None
    files: int = 1
    missing_files: tuple[str, ...] = ()
    unknown_types: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether `total_bytes` are those of every file."""
        return not self.missing_files

    @property
    def bits_per_weight(self) -> float | None:
        return 8 * self.total_bytes / self.elements if self.elements else None

    @property
    def notices(self) -> tuple[Notice, ...]:
        found = []
        if self.missing_files:
            found.append(
                Notice(
                    "weight_files_missing",
                    {
                        "missing": len(self.missing_files),
                        "files": self.files,
                        "names": list(self.missing_files[:MAX_NAMED]),
                        "bytes": self.total_bytes,
                    },
                )
            )
        if self.unknown_types:
            types = list(self.unknown_types)
            found.append(Notice("weight_types_unknown", {"types": types}))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        return {
            "total_bytes": self.total_bytes,
            "elements": self.elements,
            "bits_per_weight": self.bits_per_weight,
            "by_type": _tensors_json(self.by_type),
            "parts": _tensors_json(self.parts),
            "quantization": self.quantization,
            "files": self.files,
            "missing_files": list(self.missing_files),
            "unknown_types": list(self.unknown_types),
        }


def summed(pairs: Iterable[tuple[str, Tensors]]) -> dict[str, Tensors]:
    """Tensors of the same name together, those of most bytes first."""
    found: dict[str, Tensors] = {}
    for name, tensors in pairs:
        known = found.get(name, Tensors(0, 0))
        found[name] = Tensors(
            known.bytes + tensors.bytes, known.elements + tensors.elements
        )
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def from_json(given: Mapping[str, object]) -> StoredWeights:
    """The `weights` a reader of files handed over; errors name what is wrong."""
    total = _count(given, "total_bytes")
    if total is None:
        raise _invalid("total_bytes", None, "a whole number of bytes")
    quantization = given.get("quantization")
    if quantization is not None and not _is_name(quantization):
        raise _invalid("quantization", quantization, "a short text")
    return StoredWeights(
        total_bytes=total,
        elements=_count(given, "elements"),
        by_type=_tensors(given, "by_type"),
        parts=_tensors(given, "parts"),
        quantization=None if quantization is None else str(quantization),
        files=_count(given, "files") or 1,
        missing_files=_names(given, "missing_files"),
        unknown_types=_names(given, "unknown_types"),
    )


def _tensors_json(found: Mapping[str, Tensors]) -> dict[str, Any]:
    return {name: tensors._asdict() for name, tensors in found.items()}


def _invalid(name: str, value: object, expected: str) -> InvalidArgument:
    return InvalidArgument(
        argument=f"weights.{name}", value=shown(value), expected=expected
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


def _count(given: Mapping[str, object], name: str, path: str = "") -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _invalid(f"{path}{name}", value, "a whole number")
    if not 0 <= value <= MAX_BYTES:
        raise _invalid(f"{path}{name}", value, f"from 0 to {MAX_BYTES}")
    return value


def _tensors(given: Mapping[str, object], name: str) -> dict[str, Tensors]:
    value = given.get(name) or {}
    if not isinstance(value, Mapping) or len(value) > MAX_KINDS:
        raise _invalid(name, value, "an object of bytes and elements by name")
    found = {}
    for key, counts in value.items():
        if not _is_name(key) or not isinstance(counts, Mapping):
            raise _invalid(name, key, "bytes and elements by name")
        path = f"{name}.{key}."
        found[key] = Tensors(
            _count(counts, "bytes", path) or 0, _count(counts, "elements", path) or 0
        )
    return found


def _names(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = given.get(name) or ()
    if (
        not isinstance(value, list | tuple)
        or len(value) > MAX_FILES
        or not all(isinstance(text, str) and len(text) <= 1000 for text in value)
    ):
        raise _invalid(name, value, f"a list of at most {MAX_FILES} names")
    return tuple(str(text) for text in value)
