"""Random access to the bytes of a file, and a cursor that reads onward in slices.

A file is a name, a size and a function `read(offset, length) -> bytes`: a seek on a
disk, a slice of a dropped file, a range of memory. Nobody reads a file as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Final, Literal

from kvcore.errors import InvalidFile, TruncatedFile, shown

ByteOrder = Literal["<", ">"]

SLICE_BYTES: Final = 2**20
"""Read at once: a few slices hold the header of any real file."""

MAX_READ_BYTES: Final = 2**26
"""More than the largest header (a tokenizer of 262,144 words has about 16 MB)."""

MAX_LENGTH: Final = 2**30
"""More than the longest text or list a file can state in good faith."""

RUN: Final = 256
SHORT: Final = 64
USUAL: Final = 7
"""Texts skipped at once, how short they must be, and how long words mostly are."""

WIDE: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""The mark that a text in UTF-16 begins with, as PowerShell writes it."""

GIT_LFS: Final = b"version https://git-lfs"
"""How the few lines begin that stand for a file which was not downloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteSource:
    """A file's name, its size in bytes, and how to read a part of it."""

    name: str
    size: int
    read: Callable[[int, int], bytes]

    @property
    def is_pointer(self) -> bool:
        """Whether this is a Git LFS pointer and not the file itself."""
        return 0 < self.size < 1024 and self.read(0, len(GIT_LFS)) == GIT_LFS

    def invalid(self, where: str, found: object, expected: str) -> InvalidFile:
        return InvalidFile(
            file=self.name, where=where, found=shown(found), expected=expected
        )


def in_memory(data: bytes, name: str = "") -> ByteSource:
    """Bytes at hand as a source."""
    return ByteSource(
        name=name,
        size=len(data),
        read=lambda offset, length: data[offset : offset + length],
    )


def text_of(data: bytes) -> str:
    """A file's text, without the mark it may begin with."""
    return data.decode(encoding_of(data), "replace").removeprefix("\ufeff")


def encoding_of(data: bytes) -> str:
    """What a text that begins like this is written in."""
    return WIDE.get(data[:2], "utf-8")


@cache
def _short_texts(length_format: str) -> re.Pattern[bytes]:
    """`RUN` texts of less than `SHORT` bytes, each after its length.

    What a loop does for each of them, a pattern does several times as fast, and in a
    browser the more so.
    """
    lengths = sorted(range(SHORT), key=lambda length: abs(length - USUAL))
    head = Struct(length_format)
    each = b"|".join(
        re.escape(head.pack(length)) + b".{%d}" % length for length in lengths
    )
    return re.compile(b"(?:%s){%d}+" % (each, RUN), re.DOTALL)


class Cursor:
    """Reads onward from the start of a source, skipping what nobody needs.

    `least_after` is how many bytes must at least follow what is being read, for the
    error that says how long a cut-off file would have to be.
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.position = 0
        self.least_after = 0
        self._slice = b""
        self._start = 0
        self._read_bytes = 0

    def require(self, length: int) -> None:
        """Refuse what the file is too short to hold."""
        needed = self.position + length + self.least_after
        if needed > self.source.size:
            raise TruncatedFile(
                file=self.source.name, bytes=self.source.size, needed_bytes=needed
            )

    def take(self, length: int) -> bytes:
        self.require(length)
        begin = self.position - self._start
        if begin < 0 or begin + length > len(self._slice):
            self._load(length)
            begin = 0
        self.position += length
        return self._slice[begin : begin + length]

    def skip(self, length: int) -> None:
        """Move on without reading."""
        self.require(length)
        self.position += length

    def skip_texts(self, count: int, length: Struct) -> None:
        """Move over `count` texts, each after its length."""
        least_after = self.least_after
        while count:
            self.least_after = least_after + (count - 1) * length.size
            self.require(length.size)
            if not 0 <= self.position - self._start <= len(self._slice) - length.size:
                self._load(length.size)
            count -= self._skip_texts_here(count, length)
        self.least_after = least_after
        self.require(0)

    def _skip_texts_here(self, count: int, length: Struct) -> int:
        """How many texts begin in the slice at hand; the position is after them.

        Hundreds of thousands of words are skipped here: runs of short ones by a
        pattern, the others one by one.
        """
        data, size, left = self._slice, length.size, count
        unpack = length.unpack_from
        here = self.position - self._start
        last = len(data) - size
        while left and here <= last:
            if left >= RUN and (run := _short_texts(length.format).match(data, here)):
                here, left = run.end(), left - RUN
                continue
            for _ in range(min(left, RUN)):
                if here > last:
                    break
                here += size + unpack(data, here)[0]
                left -= 1
        self.position = self._start + here
        if here > len(data) + MAX_LENGTH:
            raise self.source.invalid("a text's length", here, f"at most {MAX_LENGTH}")
        return count - left

    def _load(self, length: int) -> None:
        """The slice that begins at the position."""
        wanted = min(max(length, SLICE_BYTES), self.source.size - self.position)
        self._read_bytes += wanted
        if self._read_bytes > MAX_READ_BYTES:
            raise self.source.invalid(
                "its header", "longer", f"at most {MAX_READ_BYTES} bytes"
            )
        self._slice = self.source.read(self.position, wanted)
        self._start = self.position
        if len(self._slice) < length:
            raise TruncatedFile(
                file=self.source.name,
                bytes=self.position + len(self._slice),
                needed_bytes=self.position + length + self.least_after,
            )
