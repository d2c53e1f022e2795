"""The `describe` of the api: files of models -> what other methods take for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kvcore.errors import Notice, SeveralModels, UnreadableFile
from kvcore.importers import file_groups, stored
from kvcore.importers.byte_source import ByteSource
from kvcore.importers.file_groups import Described
from kvcore.importers.hf_config import parse
from kvcore.importers.model_files import MAX_NAMED
from kvcore.listing import notices_json
from kvcore.params import Params, invalid
from kvcore.reading import Reading, read

Json = dict[str, Any]

ROLES: Final = ("target", "draft")
MAX_FILES: Final = 2000


@dataclass(slots=True)
class _Count:
    """Bytes that were read of all files."""

    read_bytes: int = 0

    def watched(self, source: ByteSource) -> ByteSource:
        """The same file, its reads counted and its failures typed."""

        def counted(offset: int, length: int) -> bytes:
            try:
                data = source.read(offset, length)
            except OSError as error:
                reason = str(error)[:200] or type(error).__name__
                raise UnreadableFile(file=source.name[-200:], reason=reason) from None
            self.read_bytes += len(data)
            return data

        return replace(source, read=counted)


def answer_describe(
    given: Mapping[str, object],
    files: Sequence[ByteSource] = (),
    progress: Callable[[Json], None] | None = None,
) -> Json:
    """The api's `describe`: which models these files are, one or a target and a draft.

    Each of `models` has its `role` ("target", "draft": the one with fewer parameters),
    the `name` of the file that says what it is, its `kind` ("gguf", "checkpoint",
    "config"), all `files` that were given for it, the `model_name`, its `parameters`
    where they are known, and for the other methods `model_text` (a GGUF file's
    metadata as JSON) and `weights` (null where no file of weights was given).

    `read_bytes` of `total_bytes` were read: headers, never the weights themselves.
    Raises typed errors for files that are no model, cut off, or cannot be read.
    """
    Params(given, frozenset())
    if len(files) > MAX_FILES:
        raise invalid("files", len(files), f"at most {MAX_FILES}")
    count = _Count()
    found = file_groups.models_in([count.watched(source) for source in files])
    if len(found.models) > len(ROLES):
        names = [model.name for model in found.models[:MAX_NAMED]]
        raise SeveralModels(count=len(found.models), names=names, most=len(ROLES))
    models = _by_size([_Read.of(model) for model in found.models])
    notices = tuple(notice for model in models for notice in model.notices)
    return {
        "models": [
            model.to_json(role) for role, model in zip(ROLES, models, strict=False)
        ],
        "read_bytes": count.read_bytes,
        "total_bytes": sum(source.size for source in files),
        "warnings": notices_json(notices + found.notices),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A described model that has been read as one."""

    described: Described
    text: str
    reading: Reading

    @classmethod
    def of(cls, described: Described) -> _Read:
        """Raises a typed error if what the files describe cannot be read as a model."""
        text = described.params.get("model_text")
        if text is None:
            text = _metadata_text(described.params["model"])
        return cls(described=described, text=text, reading=read(parse(text)))

    @property
    def weights(self) -> Mapping[str, Any] | None:
        return self.described.params.get("weights")

    @property
    def parameters(self) -> int | None:
        counts = self.reading.counts
        if counts is not None:
            return counts.total
        elements = self.weights and self.weights["elements"]
        return elements or None

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """Measures of how large it is, the best first."""
        model = self.reading.model
        return (
            self.parameters,
            self.weights["total_bytes"] if self.weights else None,
            model.num_layers * (model.hidden_size or 1),
        )

    @property
    def notices(self) -> tuple[Notice, ...]:
        return stored.from_json(self.weights).notices if self.weights else ()

    def to_json(self, role: str) -> Json:
        return {
            "role": role,
            "name": self.described.name,
            "kind": self.described.kind,
            "files": list(self.described.files),
            "model_name": self.reading.model.name,
            "parameters": self.parameters,
            "model_text": self.text,
            "weights": self.weights,
        }


def _by_size(models: list[_Read]) -> list[_Read]:
    """The larger of two first, by the first measure that is known of both."""
    if len(models) < len(ROLES):
        return models
    first, second = models
    for one, other in zip(first.sizes, second.sizes, strict=True):
        if one is not None and other is not None:
            return [first, second] if one >= other else [second, first]
    return models


def _metadata_text(metadata: Mapping[str, object]) -> str:
    """A GGUF file's keys as JSON, one on a line."""
    rows = (
        f"  {json.dumps(key, ensure_ascii=False)}: "
        f"{json.dumps(value, ensure_ascii=False)}"
        for key, value in metadata.items()
    )
    return "{\n" + ",\n".join(rows) + "\n}"
