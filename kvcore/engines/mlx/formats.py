"""Number formats of MLX-LM 0.32.2's caches: the model's dtype, or codes by group."""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from kvcore import formats as number_formats
from kvcore.cache import Heads, LatentAttention, SlidingWindowAttention
from kvcore.engines.base import Settings
from kvcore.engines.mlx.models import (
    EXPANDED,
    LISTED,
    OWN_ATTENTION,
    keeps_windows,
    type_of,
)
from kvcore.errors import (
    FormatRowMismatch,
    InvalidArgument,
    UnsupportedFormat,
    UnsupportedOption,
)
from kvcore.formats import INDEX, KV, NumberFormat, RowLayout
from kvcore.model import Model
from kvcore.states import GatedLinearRecurrence, Mamba, RwkvMatrix

BITS: Final = (2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)

PLAIN: Final = ("bf16", "fp16", "fp32")

QUANTIZED: Final = {
    "int8_g64": (8, 64),
    "int4_g32": (4, 32),
    "int4_g64": (4, 64),
    "int4_g128": (4, 128),
    "int2_g64": (2, 64),
}
"""kvcore's formats that are MLX's codes with a scale and a bias per group."""


class Codes(NamedTuple):
    """`--kv-bits` and `--kv-group-size`."""

    bits: int
    group: int

    def row_bytes(self, width: int, scale_bytes: int) -> int:
        """Packed codes, and a scale and a bias per group in the model's dtype."""
        if width % self.group:
            raise FormatRowMismatch(
                format=f"{self.bits} bits", width=width, block=self.group
            )
        return width * self.bits // 8 + 2 * scale_bytes * (width // self.group)


def asked_codes(settings: Settings, kv: str) -> Codes | None:
    """What `kv_bits` and `kv_group_size` ask for, or a format that means the same."""
    bits, group = settings.options.get("kv_bits"), settings.options.get("kv_group_size")
    if not isinstance(bits, int):
        return Codes(*QUANTIZED[kv]) if kv in QUANTIZED else None
    codes = Codes(bits, group if isinstance(group, int) else 64)
    for name, value, known in (
        ("kv_bits", codes.bits, BITS),
        ("kv_group_size", codes.group, GROUPS),
    ):
        if value not in known:
            raise InvalidArgument(
                argument=name,
                value=str(value),
                expected="one of " + ", ".join(map(str, known)),
            )
    return codes


def codes_of(fmt: NumberFormat) -> Codes | None:
    if not fmt.id.startswith("int"):
        return None
    bits, group = fmt.id.removeprefix("int").split("_g")
    return Codes(int(bits), int(group))


def code_format(codes: Codes, dtype: NumberFormat) -> NumberFormat:
    """Codes with a scale and a bias per group, in the dtype of what they stand for."""
    bits = codes.bits * codes.group + 2 * dtype.layout.block_bits
    return NumberFormat(
        id=f"int{codes.bits}_g{codes.group}",
        layout=RowLayout(block_elements=codes.group, block_bits=bits),
        roles=KV | INDEX,
        source="mlx-lm 0.32.2, QuantizedKVCache",
    )


def model_dtype(model: Model, kv: str) -> NumberFormat:
    """The model's own 16- or 32-bit dtype: caches hold what the layers compute."""
    if kv == "auto":
        own = model.kv_format
        return number_formats.find(own if own in PLAIN else "bf16")
    found = number_formats.find(kv)
    if found.id not in PLAIN:
        raise UnsupportedFormat(
            format=found.id,
            role="key",
            reason="its caches are in the model's dtype or in " + ", ".join(QUANTIZED),
        )
    return found


def own_format(model: Model, dtype: NumberFormat, role: str) -> NumberFormat:
    """States are f32 but for three kinds; indexer keys are in the model's dtype."""
    if role == "indexer":
        return dtype
    kept = (GatedLinearRecurrence, Mamba, RwkvMatrix)
    plain = any(isinstance(spec, kept) for spec, _ in model.groups)
    return dtype if plain else number_formats.find("fp32")


def check_codes(model: Model, codes: Codes) -> None:
    """What cannot be quantised: turning windows, latents, two kinds of attention.

    Groups must divide heads; caches of their own kind stay as they are.
    """
    family = type_of(model)
    if family in LISTED:
        return
    for spec, _ in model.groups:
        if isinstance(spec, SlidingWindowAttention) and keeps_windows(family, model):
            _refuse(codes, "RotatingKVCache Quantization NYI")
        if isinstance(spec, LatentAttention) and family not in EXPANDED:
            _refuse(codes, "latents are multiplied as they are")
        if isinstance(spec, Heads | LatentAttention):
            for width in (spec.head_dim, spec.value_head_dim):
                codes.row_bytes(width, 2)
    if family in OWN_ATTENTION:
        _refuse(codes, f"the attention of {family} does not take quantised caches")


def _refuse(codes: Codes, reason: str) -> NoReturn:
    raise UnsupportedOption(
        engine="MLX-LM", option="kv_bits", value=str(codes.bits), reason=reason
    )
