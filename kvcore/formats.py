"""Number formats: the bits a row of numbers takes, its scales included.

A *row* is the smallest vector a cache writes at once: one head's key of one token,
one MLA latent, one indexer key. A format stores a row in blocks of
`block_elements`, each of `block_bits` (payload and scale), plus `row_bits` for
what is kept once per row. Plain formats have blocks of one element and no scales.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

from kvcore.errors import FormatRowMismatch, UnknownFormat, UnsupportedFormat

Role = Literal[
    "key", "value", "latent", "rope", "indexer", "conv", "recurrent", "weight"
]
"""What a row holds. `rope` is the decoupled rotary key of an MLA latent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """How one row is stored: blocks of elements, and what is kept per row."""

    block_elements: int = 1
    block_bits: int
    row_bits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberFormat:
    """A named format, one object each; its layout may differ by role."""

    id: str
    layout: RowLayout
    by_role: Mapping[Role, RowLayout] = field(default_factory=dict)
    roles: frozenset[Role] = frozenset()
    source: str

    def holds(self, role: Role) -> bool:
        return role in self.roles

    def layout_for(self, role: Role) -> RowLayout:
        return self.by_role.get(role, self.layout)

    def row_bits(self, width: int, role: Role) -> int:
        """Bits of one row of `width` elements.

        >>> FORMATS["q8_0"].row_bits(128, "key")
        1088

        Raises `UnsupportedFormat` if the format cannot hold that role, and
        `FormatRowMismatch` if its blocks do not divide the row.
        """
        if role not in self.roles:
            raise UnsupportedFormat(
                format=self.id, role=role, reason="it is not made for that"
            )
        layout = self.layout_for(role)
        blocks, rest = divmod(width, layout.block_elements)
        if rest:
            raise FormatRowMismatch(
                format=self.id, width=width, block=layout.block_elements
            )
        return blocks * layout.block_bits + layout.row_bits

    @property
    def bits_per_element(self) -> float | None:
        """Bits per element if rows of every width share it, else None."""
        if self.by_role or self.layout.row_bits:
            return None
        return self.layout.block_bits / self.layout.block_elements


KV: Final[frozenset[Role]] = frozenset({"key", "value", "latent", "rope"})
INDEX: Final[frozenset[Role]] = frozenset({"indexer"})
STATE: Final[frozenset[Role]] = frozenset({"conv", "recurrent"})
WEIGHT: Final[frozenset[Role]] = frozenset({"weight"})

_GGML = "ggml-org/llama.cpp ggml/src/ggml-common.h @01243c5, block structs"
_MX = "OCP Microscaling Formats (MX) v1.0: one E8M0 scale per 32 elements"
_GROUPED = "4-bit codes with an fp16 scale and an fp16 zero point per group"
_PER_HEAD = "one 32-bit scale (or fp16 scale and zero point) per token and head"
_TURBOQUANT = (
    "vllm-project/vllm vllm/model_executor/layers/quantization/turboquant/config.py "
    "@1471680: fp16 norm per key, fp16 scale and zero per value"
)


def _plain(id: str, bits: int, roles: frozenset[Role], source: str) -> NumberFormat:
    return NumberFormat(
        id=id, layout=RowLayout(block_bits=bits), roles=roles, source=source
    )


def _blocks(
    id: str, elements: int, bits: int, source: str, roles: frozenset[Role]
) -> NumberFormat:
    layout = RowLayout(block_elements=elements, block_bits=bits)
    return NumberFormat(id=id, layout=layout, roles=roles, source=source)


def _per_row(id: str, bits: int, scale_bits: int) -> NumberFormat:
    layout = RowLayout(block_bits=bits, row_bits=scale_bits)
    return NumberFormat(id=id, layout=layout, roles=KV | INDEX, source=_PER_HEAD)


def _turboquant(id: str, key: RowLayout, value: RowLayout) -> NumberFormat:
    return NumberFormat(
        id=id,
        layout=key,
        by_role=MappingProxyType({"key": key, "value": value}),
        roles=frozenset({"key", "value"}),
        source=_TURBOQUANT,
    )


def _codes(bits: int, row_bits: int) -> RowLayout:
    """Packed codes; rows in whole 16s, so that a slot has an even number of bytes."""
    return RowLayout(block_elements=16, block_bits=16 * bits, row_bits=row_bits)


_OCTAVE = (
    "vllm v1/attention/ops/rocm_octave.py 0.33.0: 3-bit keys, one bit more for the 64 "
    "rotary elements, fp16 scales per 64 keys and per value"
)
_KEY_VALUE: Final[frozenset[Role]] = frozenset({"key", "value"})


def _octave(id: str, key: RowLayout, value_bits: int) -> NumberFormat:
    value = RowLayout(block_bits=value_bits, row_bits=16)
    return NumberFormat(
        id=id,
        layout=key,
        by_role=MappingProxyType({"key": key, "value": value}),
        roles=_KEY_VALUE,
        source=_OCTAVE,
    )


_OCTAVE_KEY = RowLayout(block_elements=64, block_bits=64 * 3 + 16, row_bits=64)

_ALL = KV | INDEX | STATE | WEIGHT
_CACHED = KV | INDEX | WEIGHT

_FORMATS: Final[tuple[NumberFormat, ...]] = (
    _plain("fp32", 32, _ALL, "IEEE 754 binary32"),
    _plain("fp16", 16, _ALL, "IEEE 754 binary16"),
    _plain("bf16", 16, _ALL, "bfloat16: the upper half of binary32"),
    _plain("fp8", 8, _ALL, "E4M3 or E5M2 with one scale per tensor"),
    _plain("int8", 8, _ALL, "8-bit codes with one scale per tensor"),
    _plain("fp4", 4, _CACHED, "E2M1 codes alone, scales not counted"),
    _plain("int4", 4, _CACHED, "4-bit codes alone, scales not counted"),
    _per_row("fp8_per_token_head", 8, 32),
    _per_row("int8_per_token_head", 8, 32),
    _per_row("int4_per_token_head", 4, 32),
    _blocks("fp8_g128", 128, 128 * 8 + 32, "fp32 scale per 128 elements", _CACHED),
    _blocks("mxfp8", 32, 32 * 8 + 8, _MX, _CACHED),
    _blocks("mxfp4", 32, 32 * 4 + 8, _MX, _CACHED),
    _blocks("nvfp4", 16, 16 * 4 + 8, "E2M1, an E4M3 scale per 16 elements", _CACHED),
    _blocks("int8_g64", 64, 64 * 8 + 32, "8-bit codes, fp16 scale and bias", _CACHED),
    _blocks("int4_g32", 32, 32 * 4 + 32, _GROUPED, _CACHED),
    _blocks("int4_g64", 64, 64 * 4 + 32, _GROUPED, _CACHED),
    _blocks("int4_g128", 128, 128 * 4 + 32, _GROUPED, _CACHED),
    _blocks("int2_g32_kivi", 32, 32 * 2 + 32, "KIVI, arXiv 2402.02750", KV),
    _blocks("int2_g64", 64, 64 * 2 + 32, "KIVI layout with groups of 64", KV),
    _turboquant("turboquant_k8v4", _codes(8, 0), _codes(4, 32)),
    _turboquant("turboquant_4bit_nc", _codes(4, 16), _codes(4, 32)),
    _turboquant("turboquant_k3v4_nc", _codes(3, 16), _codes(4, 32)),
    _turboquant("turboquant_3bit_nc", _codes(3, 16), _codes(3, 32)),
    _blocks(
        "ultraquant_4bit",
        32,
        32 * 4 + 8,
        "vllm v1/attention/ops/ultraquant/format.py 0.33.0: E2M1, UE8M0 per 32",
        _KEY_VALUE,
    ),
    _octave("octave_k3v4", _OCTAVE_KEY, 4),
    _octave("octave_k3v3", _OCTAVE_KEY, 3),
    _octave("octave_k3v3_compact", RowLayout(block_bits=3, row_bits=16), 3),
    _plain("f32", 32, KV | INDEX | WEIGHT, _GGML),
    _plain("f16", 16, KV | INDEX | WEIGHT, _GGML),
    _blocks("q8_0", 32, 34 * 8, _GGML, _CACHED),
    _blocks("q5_1", 32, 24 * 8, _GGML, _CACHED),
    _blocks("q5_0", 32, 22 * 8, _GGML, _CACHED),
    _blocks("q4_1", 32, 20 * 8, _GGML, _CACHED),
    _blocks("q4_0", 32, 18 * 8, _GGML, _CACHED),
    _blocks("iq4_nl", 32, 18 * 8, _GGML, _CACHED),
    NumberFormat(
        id="q8_kv",
        layout=RowLayout(block_bits=8, row_bits=64),
        by_role=MappingProxyType({"rope": RowLayout(block_bits=8)}),
        roles=KV,
        source="ikawrakow/ik_llama.cpp#240: 8-bit codes and 8 bytes a row; an MLA "
        "latent and its rotary part are one row",
    ),
    NumberFormat(
        id="fp8_ds_mla",
        layout=RowLayout(block_bits=16),
        by_role=MappingProxyType(
            {"latent": RowLayout(block_elements=128, block_bits=128 * 8 + 32)}
        ),
        roles=frozenset({"latent", "rope"}),
        source="vLLM and FlashMLA sparse: fp8 latent, fp32 scale per 128, 16-bit rope",
    ),
    NumberFormat(
        id="nvfp4_ds_mla",
        layout=RowLayout(block_bits=8),
        by_role=MappingProxyType(
            {"latent": RowLayout(block_elements=16, block_bits=16 * 4 + 8)}
        ),
        roles=frozenset({"latent", "rope"}),
        source="vLLM 0.33.0 FLASHMLA_SPARSE: NVFP4 latent, 8-bit rope",
    ),
)

FORMATS: Final[Mapping[str, NumberFormat]] = MappingProxyType(
    {fmt.id: fmt for fmt in _FORMATS}
)

CONV: Final = FORMATS["bf16"]
"""The convolution part of a state is 16-bit whatever the state's format."""

_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "float32": "fp32",
        "float": "fp32",
        "float16": "fp16",
        "half": "fp16",
        "bfloat16": "bf16",
        "float8": "fp8",
        "float8_e4m3fn": "fp8",
        "float8_e5m2": "fp8",
    }
)


@lru_cache(maxsize=256)
def find(name: str) -> NumberFormat:
    """The format of that id (torch dtype names work too), or `UnknownFormat`."""
    key = name.strip().lower().removeprefix("torch.")
    key = _ALIASES.get(key, key)
    if key not in FORMATS:
        raise UnknownFormat(format=name[:60], known=list(FORMATS))
    return FORMATS[key]


def bytes_of(rows: int, width: int, fmt: NumberFormat, role: Role) -> int:
    """Bytes of `rows` rows of `width` elements, rounded up once to a whole byte."""
    return -(-rows * fmt.row_bits(width, role) // 8)
