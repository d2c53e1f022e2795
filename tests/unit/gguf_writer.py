"""Writes GGUF headers for the tests, good ones and others, and files around them.

Written by hand after the format's description and not with the `gguf` package: that
one needs numpy, refuses to write what readers must refuse, and cannot write version 2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

TEXT: Final = 8
LIST: Final = 9
KINDS: Final = {
    "B": 0, "b": 1, "H": 2, "h": 3, "I": 4, "i": 5, "f": 6, "?": 7,
    "Q": 10, "q": 11, "d": 12,
}  # fmt: skip

LETTERS: Final[Mapping[type, str]] = {bool: "?", int: "i", float: "f"}
"""How numbers stand in a list."""

ALIGNMENT: Final = 32


@dataclass(frozen=True)
class Raw:
    """A value as it stands: its kind, and the bytes after that."""

    kind: int
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes in one version and byte order ("<" little-endian, ">" big-endian)."""

    version: int = 3
    order: str = "<"

    def pack(self, letters: str, *values: object) -> bytes:
        return struct.pack(self.order + letters, *values)

    def text(self, text: str | bytes) -> bytes:
        data = text if isinstance(text, bytes) else text.encode()
        return self.pack("Q", len(data)) + data

    def number(self, letter: str, value: float) -> Raw:
        return Raw(KINDS[letter], self.pack(letter, value))

    def numbers(self, letter: str, values: Sequence[float]) -> Raw:
        head = self.pack("IQ", KINDS[letter], len(values))
        return Raw(LIST, head + self.pack(f"{len(values)}{letter}", *values))

    def texts(self, texts: Sequence[str | bytes]) -> Raw:
        return Raw(
            LIST, self.pack("IQ", TEXT, len(texts)) + b"".join(map(self.text, texts))
        )

    def value(self, value: object) -> Raw:
        """As converters write it: u32, i32, f32, bool, text, and lists of each."""
        if isinstance(value, Raw):
            return value
        if isinstance(value, str | bytes):
            return Raw(TEXT, self.text(value))
        if isinstance(value, list):
            letter = LETTERS.get(type(value[0]))
            return self.numbers(letter, value) if letter else self.texts(value)
        if type(value) is int:
            return self.number("I" if 0 <= value < 2**32 else "q", value)
        assert isinstance(value, bool | float)
        return self.number(LETTERS[type(value)], value)

    def key(self, key: str | bytes, value: object) -> bytes:
        raw = self.value(value)
        return self.text(key) + self.pack("I", raw.kind) + raw.data

    def tensor(
        self, name: str, dimensions: Sequence[int], kind: int, offset: int
    ) -> bytes:
        count = len(dimensions)
        return self.text(name) + self.pack(
            f"I{count}QIQ", count, *dimensions, kind, offset
        )

    def header(
        self,
        metadata: Mapping[str, object],
        tensors: Sequence[tuple[str, Sequence[int], int, int]] = (),
        *,
        keys: int | None = None,
    ) -> bytes:
        """Metadata and tensors (name, dimensions, type, bytes), laid out in order."""
        count = len(metadata) if keys is None else keys
        parts = [
            b"GGUF", self.pack("IQQ", self.version, len(tensors), count),
            *(self.key(key, value) for key, value in metadata.items()),
        ]  # fmt: skip
        offset = 0
        for name, dimensions, kind, size in tensors:
            parts.append(self.tensor(name, dimensions, kind, offset))
            offset += padded(size)
        return b"".join(parts)

    def file(
        self,
        metadata: Mapping[str, object],
        tensors: Sequence[tuple[str, Sequence[int], int, int]] = (),
    ) -> tuple[bytes, int]:
        """The header and the size of the whole file."""
        header = self.header(metadata, tensors)
        return header, padded(len(header)) + sum(padded(size) for *_, size in tensors)


def padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
