"""ggml's cache types: their blocks, their names, and what llama.cpp refuses.

Sources: llama.cpp 0c1e570, ggml/src/ggml-common.h (blocks), common/arg.cpp
(`kv_cache_types`), `llama_init_from_model` in src/llama-context.cpp (refusals, whose
words are quoted in `reason`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kvcore import formats
from kvcore.errors import FormatRowMismatch, UnknownFormat, UnsupportedFormat
from kvcore.formats import INDEX, KV, NumberFormat, RowLayout


class GgmlType(NamedTuple):
    """A block of `elements` elements takes `size` bytes."""

    name: str
    elements: int
    size: int

    @property
    def quantized(self) -> bool:
        return self.elements > 1

    def row_bytes(self, elements: int) -> int:
        """Bytes of one cell, as `ggml_row_size` counts them; blocks may span heads."""
        return elements * self.size // self.elements


COMMAND_LINE: Final = (
    "f32",
    "f16",
    "bf16",
    "q8_0",
    "q4_0",
    "q4_1",
    "iq4_nl",
    "q5_0",
    "q5_1",
)
"""What `--cache-type-k` and `-v` take."""

_TYPES: Final = (
    GgmlType("f32", 1, 4),
    GgmlType("f16", 1, 2),
    GgmlType("bf16", 1, 2),
    GgmlType("q8_0", 32, 34),
    GgmlType("q4_0", 32, 18),
    GgmlType("q4_1", 32, 20),
    GgmlType("iq4_nl", 32, 18),
    GgmlType("q5_0", 32, 22),
    GgmlType("q5_1", 32, 24),
    GgmlType("mxfp4", 32, 17),
    GgmlType("nvfp4", 64, 36),
    GgmlType("q2_K", 256, 84),
    GgmlType("q3_K", 256, 110),
    GgmlType("q4_K", 256, 144),
    GgmlType("q5_K", 256, 176),
    GgmlType("q6_K", 256, 210),
)

TYPES: Final[Mapping[str, GgmlType]] = {found.name: found for found in _TYPES}
"""All types the C API takes; the last seven by that way only."""

ALIASES: Final[Mapping[str, str]] = {
    "auto": "f16",
    "fp16": "f16",
    "float16": "f16",
    "fp32": "f32",
    "float32": "f32",
    "bfloat16": "bf16",
}


def type_of(name: str, role: str = "key") -> GgmlType:
    """The ggml type of that name, `UnsupportedFormat` for other engines' formats."""
    plain = name.strip().removeprefix("torch.")
    plain = ALIASES.get(plain.lower(), plain)
    for candidate in (plain, plain.lower()):
        if candidate in TYPES:
            return TYPES[candidate]
    try:
        known = formats.find(name).id
    except UnknownFormat:
        raise UnknownFormat(format=name, known=["auto", *TYPES]) from None
    raise UnsupportedFormat(
        format=known, role=role, reason="its cache types are " + ", ".join(TYPES)
    )


@lru_cache(maxsize=256)
def number_format(name: str, width: int) -> NumberFormat:
    """A type as the format of logical rows of `width` elements.

    llama.cpp quantises whole cells (all heads of a token), so a block may span two
    heads: then the format is taken at its rate, with a block per row.
    """
    found = TYPES[name]
    known = formats.FORMATS.get(name)
    whole = width % found.elements == 0
    if known is not None and whole and known.layout.block_elements == found.elements:
        return known
    elements = found.elements if whole else width
    bits = -(-8 * found.size * elements // found.elements)
    return NumberFormat(
        id=name,
        layout=RowLayout(block_elements=elements, block_bits=bits),
        roles=KV | INDEX,
        source="llama.cpp 0c1e570, ggml/src/ggml-common.h",
    )


def check_types(
    key: GgmlType,
    value: GgmlType,
    *,
    flash_attention: bool,
    latent: bool,
    key_dims: tuple[int, ...],
    value_dims: tuple[int, ...],
) -> None:
    """Raise what `llama_init_from_model` refuses, in its order and words.

    `flash_attention` is false only where it is off; quantised values switch `auto` on.
    """
    if latent and key != value:
        raise UnsupportedFormat(
            format=value.name,
            role="value",
            reason=f"model does not support different K ({key.name}) and "
            f"V ({value.name}) cache types",
        )
    if value.quantized and not flash_attention:
        raise UnsupportedFormat(
            format=value.name,
            role="value",
            reason="quantized V cache requires flash_attn to be enabled",
        )
    if not flash_attention:
        return
    for letter, kind, dims in (("K", key, key_dims), ("V", value, value_dims)):
        for width in dims:
            if width % kind.elements:
                raise FormatRowMismatch(
                    format=kind.name,
                    width=width,
                    block=kind.elements,
                    reason=f"{letter} cache type {kind.name} with block size "
                    f"{kind.elements} does not divide "
                    f"n_embd_head_{letter.lower()}={width}",
                )
