"""Safetensors files: their header, and the index of a checkpoint in several files.

A file begins with the length of its header (8 bytes, little-endian) and the header: a
JSON object of dtype, shape and place of every tensor. `model.safetensors.index.json`
says which file holds which tensor, and all their bytes together.
Source: the format's description, huggingface/safetensors README.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from struct import unpack
from typing import Final, NamedTuple, TypeGuard

from kvcore.errors import InvalidFile, InvalidJson, KvcoreError
from kvcore.importers.byte_source import MAX_READ_BYTES, ByteSource, Cursor, text_of
from kvcore.importers.hf_config import parse
from kvcore.importers.stored import MAX_FILES, StoredWeights, Tensors, summed

LENGTH_BYTES: Final = 8
MAX_COUNT: Final = 2**60
MAX_DIMENSIONS: Final = 32
MAX_TENSORS: Final = 2**18

DTYPE_BITS: Final[Mapping[str, int]] = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of an element; a dtype that is not listed has the bytes of its place."""

ADAPTER: Final = ("lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B")

SUFFIXES: Final[Mapping[str, str]] = {
    ".g_idx": "gptq",
    ".qweight": "awq",
    ".weight_packed": "compressed-tensors",
    ".absmax": "bitsandbytes",
    ".biases": "mlx",
    "_blocks": "mxfp4",
    ".weight_scale_2": "nvfp4",
    ".weight_scale_inv": "fp8",
    ".weight_scale": "fp8",
}
"""Names of tensors that only a quantised checkpoint has, the telling ones first."""

WHOLE: Final = frozenset({"fp8", "fbgemm_fp8"})
"""Quantisations that keep one element for each weight."""

SCALES: Final = (
    "_scale",
    "_scale_inv",
    "_scale_2",
    ".scales",
    "_scales",
    ".input_scale",
)


class StoredTensor(NamedTuple):
    """One tensor of a header."""

    name: str
    dtype: str
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsHeader:
    """The tensors of one file."""

    file: str
    tensors: tuple[StoredTensor, ...]

    @property
    def is_adapter(self) -> bool:
        """Whether it holds what is added to a model's weights, not the weights."""
        added = sum(any(mark in t.name for mark in ADAPTER) for t in self.tensors)
        return 2 * added > len(self.tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsIndex:
    """Which files a checkpoint consists of, and its bytes where they are stated."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    total_bytes: int | None
    elements: int | None


def read_header(source: ByteSource) -> SafetensorsHeader:
    """The header of a safetensors file, or a typed error."""
    cursor = Cursor(source)
    (length,) = unpack("<Q", cursor.take(LENGTH_BYTES))
    if length > MAX_READ_BYTES:
        found = "a Git LFS pointer" if source.is_pointer else length
        raise source.invalid(
            "its header's length", found, f"at most {MAX_READ_BYTES} bytes"
        )
    data = cursor.take(length)
    if not data.startswith(b"{"):
        raise source.invalid("its header", data[:8], "a JSON object")
    header = _object_in(source, "its header", data)
    if len(header) > MAX_TENSORS:
        raise source.invalid(
            "the number of tensors", len(header), f"at most {MAX_TENSORS}"
        )
    return SafetensorsHeader(
        file=source.name,
        tensors=tuple(
            _tensor(source, name, entry)
            for name, entry in header.items()
            if name != "__metadata__"
        ),
    )


def _tensor(source: ByteSource, name: str, entry: object) -> StoredTensor:
    where = f"tensor {name[:60]}"
    if not isinstance(entry, Mapping):
        raise source.invalid(where, entry, "an object")
    dtype, shape, place = map(entry.get, ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not 0 < len(dtype) <= 40:
        raise source.invalid(f"dtype of {where}", dtype, "a short text")
    if not _are_counts(shape) or len(shape) > MAX_DIMENSIONS:
        raise source.invalid(f"shape of {where}", shape, "a list of whole numbers")
    if not _are_counts(place) or len(place) != 2 or place[0] > place[1]:
        raise source.invalid(f"data_offsets of {where}", place, "a begin and an end")
    elements, size = prod(shape), place[1] - place[0]
    bits = DTYPE_BITS.get(dtype)
    if bits is not None and -(-elements * bits // 8) != size:
        raise source.invalid(
            f"data_offsets of {where}", size, f"{elements} elements of {dtype}"
        )
    return StoredTensor(name, dtype.lower(), elements, size)


def _are_counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(
        isinstance(count, int)
        and not isinstance(count, bool)
        and 0 <= count <= MAX_COUNT
        for count in value
    )


def read_index(source: ByteSource) -> SafetensorsIndex:
    """The index of a checkpoint in several files, or a typed error."""
    length = min(source.size, MAX_READ_BYTES + 1)
    given = _object_in(source, "its text", source.read(0, length))
    weight_map = given.get("weight_map")
    if not isinstance(weight_map, Mapping):
        raise source.invalid("weight_map", weight_map, "an object")
    files = sorted({file for file in weight_map.values() if isinstance(file, str)})
    if len(files) > MAX_FILES or not all(map(_is_plain, files)):
        raise source.invalid(
            "weight_map", files, f"at most {MAX_FILES} names of files beside the index"
        )
    stated = given.get("metadata")
    metadata = stated if isinstance(stated, Mapping) else {}
    return SafetensorsIndex(
        files=tuple(files),
        names=tuple(map(str, weight_map)),
        total_bytes=_whole(metadata.get("total_size")),
        elements=_whole(metadata.get("total_parameters")),
    )


def _object_in(source: ByteSource, where: str, data: bytes) -> Mapping[str, object]:
    """The JSON object in a part of a file; an error names the file."""
    try:
        return parse(text_of(data), MAX_READ_BYTES)
    except InvalidJson as error:
        line, column = error.params["line"], error.params["column"]
        found = f"no JSON from line {line}, column {column}"
    except KvcoreError:
        found = "something else"
    raise InvalidFile(
        file=source.name, where=where, found=found, expected="a JSON object"
    )


def _is_plain(name: str) -> bool:
    """A file beside the index, and nowhere else."""
    return 0 < len(name) <= 255 and not set(name) & set("/\\\0") and name[0] != "."


def _whole(value: object) -> int | None:
    """A stated count; some indexes state it as a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= MAX_COUNT else None


def stored_weights(
    headers: Sequence[SafetensorsHeader],
    index: SafetensorsIndex | None = None,
    config: Mapping[str, object] | None = None,
    missing: Sequence[str] = (),
) -> StoredWeights:
    """Exact bytes of a checkpoint by dtype; the index's total where files are missing.

    `config` names the quantisation if it can; else the tensors' names do.
    """
    tensors = [tensor for header in headers for tensor in header.tensors]
    names = [tensor.name for tensor in tensors] + list(index.names if index else ())
    quantization = _stated(config or {}) or _seen(names)
    whole = quantization is None or quantization in WHOLE
    files = len(headers) + len(missing)
    if missing and index is not None and index.total_bytes is not None:
        return StoredWeights(
            total_bytes=index.total_bytes,
            elements=index.elements if whole else None,
            quantization=quantization,
            files=files,
        )
    by_type = summed(
        (tensor.dtype, Tensors(tensor.bytes, tensor.elements)) for tensor in tensors
    )
    return StoredWeights(
        total_bytes=sum(count.bytes for count in by_type.values()),
        elements=_weights(tensors) if whole else None,
        by_type=by_type,
        quantization=quantization,
        files=files,
        missing_files=tuple(missing[:MAX_FILES]),
    )


def _weights(tensors: Iterable[StoredTensor]) -> int:
    """Elements without the scales of quantised ones."""
    return sum(t.elements for t in tensors if not t.name.endswith(SCALES))


def _stated(config: Mapping[str, object]) -> str | None:
    """How a config says its weights are quantised: method and bits."""
    nested = config.get("text_config")
    for place in (config, nested if isinstance(nested, Mapping) else {}):
        for key in ("quantization_config", "quantization"):
            found = place.get(key)
            if isinstance(found, Mapping):
                return _named(found)
    return None


def _named(stated: Mapping[str, object]) -> str:
    method = str(stated.get("quant_method") or stated.get("quant_algo") or "mlx")
    bits = stated.get("bits")
    if isinstance(bits, int) and 0 < bits < 64:
        return f"{method.lower()[:60]} {bits}-bit"
    return method.lower()[:60]


def _seen(names: Sequence[str]) -> str | None:
    for suffix, method in SUFFIXES.items():
        if any(name.endswith(suffix) for name in names):
            return method
    return None


def is_safetensors(source: ByteSource) -> bool:
    """Whether a file begins as a safetensors file does, whatever it is called."""
    start = source.read(0, min(source.size, LENGTH_BYTES + 1))
    return start[LENGTH_BYTES:] == b"{" and start[LENGTH_BYTES - 1] == 0
