"""The header of a GGUF file, read in slices: metadata, and every tensor's bytes.

Layout: docs/gguf.md of ggml. Versions 2 and 3, little- and big-endian (the magic is
the same; the version tells). Only what the cache and the weights need is kept: the
tokenizer's lists, hundreds of thousands of words, are passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, prod
from struct import Struct, unpack
from typing import Final, NamedTuple

from kvcore.importers.byte_source import MAX_LENGTH, ByteOrder, ByteSource, Cursor
from kvcore.importers.fields import MAX_LAYERS
from kvcore.importers.ggml_types import FILE_TYPES, GGML_TYPES, GUESSED
from kvcore.importers.gguf import ARCHITECTURE
from kvcore.importers.gguf_parts import part_of
from kvcore.importers.stored import MAX_FILES, StoredWeights, Tensors, summed

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)

MAX_KEYS: Final = 2**14
MAX_KEY: Final = 2**16 - 1
MAX_TEXT: Final = 2**12
"""Longer texts (chat templates) are passed over; none says anything of a cache."""
MAX_TEXTS: Final = 2**22
"""Words of a list: eight times what the largest tokenizer's merges take."""
MAX_TENSORS: Final = 2**17
MAX_DIMENSIONS: Final = 4
MAX_TENSOR_NAME: Final = 2**10
MAX_ELEMENTS: Final = 2**60

LEAST_KEY: Final = 8 + 4 + 1
LEAST_TENSOR: Final = 8 + 4 + 4 + 8
"""Bytes a key or a tensor takes at least, for how long a cut-off file must be."""

TEXT: Final = 8
LIST: Final = 9
NUMBERS: Final[Mapping[int, str]] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
    10: "Q", 11: "q", 12: "d",
}  # fmt: skip

UNWANTED: Final = "tokenizer."

Value = int | float | bool | str | list[int | float | bool]


class Tensor(NamedTuple):
    """One tensor as a header describes it: type, row width, rows, and its place."""

    name: str
    type: int
    width: int
    rows: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What stands before the tensors' data.

    `data_start` is where the data begin, `size` how long the file is, in bytes.
    """

    file: str
    version: int
    byte_order: ByteOrder
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    alignment: int
    data_start: int
    size: int

    @property
    def split_count(self) -> int:
        """How many files the model is split into; 1 where it is whole."""
        count = self.metadata.get("split.count")
        return count if isinstance(count, int) and count > 1 else 1


def read_header(source: ByteSource) -> GgufHeader:
    """The header of a GGUF file, or a typed error: never a hang, never a crash."""
    cursor = Cursor(source)
    version, order = _version(cursor)
    reader = _Reader(cursor, order)
    tensor_count = reader.count("the number of tensors", MAX_TENSORS)
    key_count = reader.count("the number of keys", MAX_KEYS)
    cursor.least_after = key_count * LEAST_KEY + tensor_count * LEAST_TENSOR
    cursor.require(0)
    metadata = reader.metadata(key_count)
    tensors = reader.tensors(tensor_count)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 2**20:
        raise source.invalid("general.alignment", alignment, "a small whole number")
    return GgufHeader(
        file=source.name,
        version=version,
        byte_order=order,
        metadata=metadata,
        tensors=tensors,
        alignment=alignment,
        data_start=_padded(cursor.position, alignment),
        size=source.size,
    )


def _version(cursor: Cursor) -> tuple[int, ByteOrder]:
    source = cursor.source
    magic = cursor.take(4)
    if magic != MAGIC:
        found = "a Git LFS pointer" if source.is_pointer else magic
        raise source.invalid("its beginning", found, "GGUF")
    stated = cursor.take(4)
    orders: tuple[ByteOrder, ...] = ("<", ">")
    for order in orders:
        (version,) = unpack(f"{order}I", stated)
        if version in VERSIONS:
            return version, order
    version = min(unpack("<I", stated)[0], unpack(">I", stated)[0])
    raise source.invalid("its version", version, "2 or 3")


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


class _Reader:
    """Reads keys and tensors of one byte order."""

    def __init__(self, cursor: Cursor, order: ByteOrder) -> None:
        self.source = cursor.source
        self.cursor = cursor
        self.order = order
        self.long = Struct(f"{order}Q")
        self.int = Struct(f"{order}I")
        self.numbers = {
            kind: Struct(f"{order}{letter}") for kind, letter in NUMBERS.items()
        }

    def count(self, what: str, most: int) -> int:
        value: int = self.long.unpack(self.cursor.take(8))[0]
        if value > most:
            raise self.source.invalid(what, value, f"at most {most}")
        return value

    def metadata(self, count: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        seen: set[str] = set()
        for _ in range(count):
            self.cursor.least_after -= LEAST_KEY
            key = self.text("a key's length", MAX_KEY)
            if key in seen:
                raise self.source.invalid(f"key {key[:60]}", "there twice", "once")
            seen.add(key)
            value = self.value(key, self._kind())
            if value is not None and not key.startswith(UNWANTED):
                found[key] = value
        return found

    def tensors(self, count: int) -> tuple[Tensor, ...]:
        found: dict[str, Tensor] = {}
        for _ in range(count):
            self.cursor.least_after -= LEAST_TENSOR
            tensor = self.tensor()
            if tensor.name in found:
                name = tensor.name[:60]
                raise self.source.invalid(f"tensor {name}", "there twice", "once")
            found[tensor.name] = tensor
        return tuple(found.values())

    def tensor(self) -> Tensor:
        name = self.text("the length of a tensor's name", MAX_TENSOR_NAME)
        (count,) = self.int.unpack(self.cursor.take(4))
        if count > MAX_DIMENSIONS:
            raise self.source.invalid(
                f"dimensions of tensor {name[:60]}", count, f"at most {MAX_DIMENSIONS}"
            )
        rest = unpack(f"{self.order}{count}QIQ", self.cursor.take(8 * count + 4 + 8))
        *dimensions, kind, offset = rest
        if prod(dimensions) > MAX_ELEMENTS or offset > MAX_ELEMENTS:
            raise self.source.invalid(
                f"tensor {name[:60]}", "beyond 2^60", "a size that a file can have"
            )
        width = dimensions[0] if dimensions else 1
        return Tensor(name, kind, width, prod(dimensions[1:]), offset)

    def value(self, key: str, kind: int) -> Value | None:
        """The value of a key; None where nobody needs it."""
        if kind == TEXT:
            return self.short_text(key)
        if kind == LIST:
            return self.list(key)
        number = self.number(key, kind)
        # JSON has no infinities, and no cache depends on one.
        return number if isfinite(number) else None

    def number(self, key: str, kind: int) -> int | float | bool:
        layout = self._layout(key, kind)
        value: int | float | bool = layout.unpack(self.cursor.take(layout.size))[0]
        return value

    def short_text(self, key: str) -> str | None:
        length = self.count(f"the length of {key[:60]}", MAX_LENGTH)
        if length > MAX_TEXT:
            self.cursor.skip(length)
            return None
        return self.cursor.take(length).decode("utf-8", "replace")

    def text(self, what: str, most: int) -> str:
        return self.cursor.take(self.count(what, most)).decode("utf-8", "replace")

    def list(self, key: str) -> list[int | float | bool] | None:
        """A list with a number for each layer; longer ones, and texts, are skipped."""
        kind = self._kind()
        most = MAX_TEXTS if kind == TEXT else MAX_LENGTH
        count = self.count(f"the length of {key[:60]}", most)
        if kind == TEXT:
            self.cursor.skip_texts(count, self.long)
            return None
        layout = self._layout(key, kind)
        if count > MAX_LAYERS or key.startswith(UNWANTED):
            self.cursor.skip(count * layout.size)
            return None
        data = self.cursor.take(count * layout.size)
        return list(unpack(f"{self.order}{count}{NUMBERS[kind]}", data))

    def _kind(self) -> int:
        value: int = self.int.unpack(self.cursor.take(4))[0]
        return value

    def _layout(self, key: str, kind: int) -> Struct:
        if kind not in self.numbers:
            raise self.source.invalid(
                f"the type of {key[:60]}",
                "a list of lists" if kind == LIST else kind,
                "a number, a text, or a list of them",
            )
        return self.numbers[kind]


# One file or several ---------------------------------------------------------------


def metadata_of(headers: Sequence[GgufHeader]) -> Mapping[str, Value]:
    """The keys of the file that describes the model: the first of a split one."""
    for header in headers:
        if ARCHITECTURE in header.metadata:
            return header.metadata
    return headers[0].metadata


def stored_weights(
    headers: Sequence[GgufHeader], missing: Sequence[str] = ()
) -> StoredWeights:
    """Exact bytes of all tensors, by type and by part of the model."""
    by_type: list[tuple[str, Tensors]] = []
    by_part: list[tuple[str, Tensors]] = []
    unknown: Counter[str] = Counter()
    for header in headers:
        for tensor, kind, size in _sized(header):
            counted = Tensors(size, tensor.width * tensor.rows)
            by_type.append((kind, counted))
            by_part.append((part_of(tensor.name), counted))
            if kind.startswith("type_"):
                unknown[kind] += 1
    types = summed(by_type)
    return StoredWeights(
        total_bytes=sum(tensors.bytes for tensors in types.values()),
        elements=sum(tensors.elements for tensors in types.values()),
        by_type=types,
        parts=summed(by_part),
        quantization=_quantization(metadata_of(headers), types),
        files=len(headers) + len(missing),
        missing_files=tuple(missing[:MAX_FILES]),
        unknown_types=tuple(unknown),
    )


def _sized(header: GgufHeader) -> Iterator[tuple[Tensor, str, int]]:
    """Each tensor with its type's name and its bytes.

    Tensors follow each other, padded. Where the next one's place contradicts the
    table, or the table lacks the type, the type is another project's, and the place
    decides.
    """
    placed = sorted(header.tensors, key=lambda tensor: tensor.offset)
    end = max(header.size - header.data_start, 0)
    ends = [following.offset for _, following in pairwise(placed)]
    for tensor, until in zip(placed, [*ends, end], strict=False):
        span = max(until - tensor.offset, 0)
        known = GGML_TYPES.get(tensor.type)
        size = known.bytes_of(tensor.width, tensor.rows) if known else None
        last = tensor is placed[-1]
        if (
            known
            and size is not None
            and (last or not span or span == _padded(size, header.alignment))
        ):
            yield tensor, known.name, size
        else:
            yield tensor, f"type_{tensor.type}", span


def _quantization(
    metadata: Mapping[str, Value], types: Mapping[str, Tensors]
) -> str | None:
    """What the file was made as; the type of most bytes where it does not say."""
    stated = metadata.get("general.file_type")
    if isinstance(stated, int):
        found = FILE_TYPES.get(stated & ~GUESSED)
        if found is not None:
            return found
    return next(iter(types), None)


def is_gguf(source: ByteSource) -> bool:
    """Whether a file begins as GGUF does, whatever it is called."""
    return source.read(0, min(source.size, len(MAGIC))) == MAGIC
