"""The lines of a file that may be large or packed with gzip, read in slices.

Nothing is held but one slice and one line, so a file of 200 MB costs no more memory
than one of 2 MB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from kvcore.errors import InvalidTrace, TraceTooLarge
from kvcore.importers.byte_source import ByteSource

SLICE_BYTES: Final = 2**18
MAX_LINE_BYTES: Final = 2**24
"""A request of a million tokens has 62,500 blocks of 16: less than a megabyte."""
MAX_FILE_BYTES: Final = 2**32
"""Unpacked; more than any published trace."""
GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31
"""zlib's word for: a gzip header, and the largest window."""


class Lines:
    """Iterates over (number from 1, line); `done_bytes` of `size` have been read."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.size = source.size
        self.done_bytes = 0
        self.number = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        self.done_bytes = self.number = 0
        rest = b""
        for piece in self._unpacked():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                self.number += 1
                yield self.number, line
            if len(rest) > MAX_LINE_BYTES:
                raise InvalidTrace(
                    file=self.source.name,
                    line=self.number + 1,
                    where="its length",
                    found=f"more than {MAX_LINE_BYTES} bytes",
                    expected="one request in a line",
                )
        if rest:
            self.number += 1
            yield self.number, rest

    def _slices(self) -> Iterator[bytes]:
        while self.done_bytes < self.size:
            wanted = min(SLICE_BYTES, self.size - self.done_bytes)
            piece = self.source.read(self.done_bytes, wanted)
            if not piece:
                return
            self.done_bytes += len(piece)
            yield piece

    def _unpacked(self) -> Iterator[bytes]:
        packed = self.source.read(0, 2) == GZIP_MAGIC
        total = 0
        for piece in self._gunzipped() if packed else self._slices():
            total += len(piece)
            if total > MAX_FILE_BYTES:
                raise TraceTooLarge(
                    file=self.source.name, what="bytes", limit=MAX_FILE_BYTES
                )
            yield piece

    def _gunzipped(self) -> Iterator[bytes]:
        """Each member of the file after the other; a cut-off last one is an error."""
        unpacker = zlib.decompressobj(_GZIP)
        try:
            for piece in self._slices():
                left, more = piece, True
                while left or more:
                    if unpacker.eof:
                        unpacker = zlib.decompressobj(_GZIP)
                    found = unpacker.decompress(left, SLICE_BYTES)
                    yield found
                    left = unpacker.unconsumed_tail or unpacker.unused_data
                    more = len(found) == SLICE_BYTES
        except zlib.error as error:
            raise self._damaged(str(error)) from None
        if not unpacker.eof:
            raise self._damaged("it ends too soon")

    def _damaged(self, reason: str) -> InvalidTrace:
        return InvalidTrace(
            file=self.source.name,
            line=self.number + 1,
            where="its gzip data",
            found=f"damaged ({reason[:60]})",
            expected="a whole .gz file",
        )
