"""Which block sizes vLLM's attention backends take, and which backend a cache gets.

Source: vllm/platforms/cuda.py (priorities) and get_supported_kernel_block_sizes of
vllm/v1/attention/backends, 0.33.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import lcm
from types import MappingProxyType
from typing import Final

from kvcore.engines.vllm.rules import HOPPER
from kvcore.errors import UnsupportedOption

DEFAULT_BLOCK: Final = 16
BLACKWELL: Final = 10
WIDE_HEAD: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Block sizes of a backend: these, or (`multiple`) any multiple of the first."""

    name: str
    sizes: tuple[int, ...]
    multiple: bool = False
    preferred: int | None = None

    @property
    def least(self) -> int:
        return min(self.sizes)

    def takes(self, block: int) -> bool:
        """A longer block is cut into kernel blocks, so any multiple will do."""
        return any(block % size == 0 for size in self.sizes)

    def best(self) -> int:
        if self.preferred is not None:
            return self.preferred
        return DEFAULT_BLOCK if self.takes(DEFAULT_BLOCK) else self.least

    def window_block(self, budget: int) -> int:
        """The longest kernel block within `budget` tokens, for windowed layers."""
        if self.multiple:
            return max(self.least, budget // self.least * self.least)
        return max((s for s in self.sizes if s <= budget), default=self.least)


def _multiple(name: str, base: int, preferred: int | None = None) -> Kernel:
    return Kernel(name=name, sizes=(base,), multiple=True, preferred=preferred)


def _fixed(name: str, *sizes: int) -> Kernel:
    return Kernel(name=name, sizes=sizes)


KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {
        kernel.name: kernel
        for kernel in (
            _multiple("FLASH_ATTN", 16),
            _multiple("FLASH_ATTN_DIFFKV", 16),
            _multiple("TRITON_ATTN", 16),
            _multiple("FLEX_ATTENTION", 16),
            _multiple("ROCM_ATTN", 16),
            _multiple("ROCM_AITER_UNIFIED_ATTN", 16, preferred=64),
            _fixed("ROCM_AITER_FA", 16, 32),
            _fixed("FLASH_ATTN_WIDE_FP8", 64),
            _fixed("FLASHINFER", 16, 32, 64),
            _fixed("TRITON_FLASHINFER", 64),
            _fixed("TURBOQUANT", 16, 32, 64, 128),
            Kernel(name="ULTRAQUANT", sizes=(16, 32, 64, 128), preferred=64),
            _multiple("ROCM_OCTAVE", 16),
            _multiple("FLASH_ATTN_MLA", 16),
            _multiple("TRITON_MLA", 16),
            _multiple("ROCM_AITER_MLA", 1),
            _fixed("FLASHMLA", 64),
            _fixed("FLASHINFER_MLA", 32, 64),
            _fixed("CUTLASS_MLA", 128),
            _multiple("FLASH_ATTN_MLA_SPARSE", 64),
            _multiple("FLASHMLA_SPARSE", 64),
            _multiple("FLASHINFER_MLA_SPARSE", 32),
            _multiple("FLASHINFER_MLA_SPARSE_SM90", 64),
            _multiple("FLASHINFER_MLA_SPARSE_SM120", 64),
            _multiple("ROCM_AITER_MLA_SPARSE", 16),
            _fixed("DEEPSEEK_V32_INDEXER", 64),
            _fixed("MINIMAX_M3_SPARSE", 128),
            _fixed("FLASHMLA_SPARSE_DSV4", 256),
        )
    }
)
"""Backend name -> its block sizes."""

ATTENTION: Final = (
    "FLASH_ATTN",
    "FLASHINFER",
    "TRITON_ATTN",
    "FLEX_ATTENTION",
    "ROCM_ATTN",
    "ROCM_AITER_FA",
    "ROCM_AITER_UNIFIED_ATTN",
)
LATENT: Final = (
    "FLASH_ATTN_MLA",
    "FLASHMLA",
    "FLASHINFER_MLA",
    "CUTLASS_MLA",
    "TRITON_MLA",
    "ROCM_AITER_MLA",
)
SPARSE: Final = (
    "FLASH_ATTN_MLA_SPARSE",
    "FLASHMLA_SPARSE",
    "FLASHINFER_MLA_SPARSE",
    "FLASHINFER_MLA_SPARSE_SM90",
    "FLASHINFER_MLA_SPARSE_SM120",
    "ROCM_AITER_MLA_SPARSE",
)

PACKED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "int4_per_token_head": "TRITON_ATTN",
        "int8_per_token_head": "TRITON_ATTN",
        "fp8_per_token_head": "TRITON_ATTN",
        "turboquant_k8v4": "TURBOQUANT",
        "turboquant_4bit_nc": "TURBOQUANT",
        "turboquant_k3v4_nc": "TURBOQUANT",
        "turboquant_3bit_nc": "TURBOQUANT",
        "ultraquant_4bit": "ULTRAQUANT",
        "octave_k3v4": "ROCM_OCTAVE",
        "octave_k3v3": "ROCM_OCTAVE",
        "octave_k3v3_compact": "ROCM_OCTAVE",
        "nvfp4": "FLASHINFER",
    }
)
"""Formats that one backend packs in its own way."""

BACKENDS: Final = ATTENTION + LATENT + SPARSE
"""What `attention_backend` may name here."""


def attention_kernel(
    major: int,
    chosen: str | None,
    kv: str,
    widths: tuple[int, int],
    *,
    image_prefix: bool = False,
) -> Kernel:
    """The backend of per-head attention with keys and values of these widths.

    `image_prefix`: images see all of themselves, for which SM10x has its own pair.
    """
    packed = PACKED.get(kv)
    if packed is not None:
        return KERNELS[packed]
    if widths[0] != widths[1]:
        return KERNELS["FLASH_ATTN_DIFFKV"]
    if chosen in ATTENTION:
        return KERNELS[chosen]
    if major == BLACKWELL:
        return KERNELS[_on_blackwell(widths[0], image_prefix)]
    wide = major == HOPPER and kv == "fp8" and widths[0] == WIDE_HEAD
    return KERNELS["FLASH_ATTN_WIDE_FP8" if wide else "FLASH_ATTN"]


def _on_blackwell(width: int, image_prefix: bool) -> str:
    if image_prefix:
        return "TRITON_FLASHINFER" if width in (256, WIDE_HEAD) else "TRITON_ATTN"
    return "FLASHINFER" if width in (64, 128, 256, WIDE_HEAD) else "FLASH_ATTN"


def latent_kernel(major: int, chosen: str | None, kv: str, flexible: bool) -> Kernel:
    """The backend of MLA without an indexer."""
    if chosen in LATENT:
        return KERNELS[chosen]
    if major == BLACKWELL:
        if flexible:
            return KERNELS["FLASHINFER_MLA"]
        return _fixed("FLASHINFER_MLA", 64)
    if major == HOPPER:
        return KERNELS["FLASHMLA" if kv == "fp8" else "FLASH_ATTN_MLA"]
    return KERNELS["TRITON_MLA"]


def sparse_kernel(major: int, chosen: str | None, kv: str) -> Kernel:
    """The backend of MLA beside an indexer."""
    if chosen in SPARSE:
        return KERNELS[chosen]
    if major == BLACKWELL:
        plain = kv == "fp8"
        return KERNELS["FLASHINFER_MLA_SPARSE" if plain else "FLASHMLA_SPARSE"]
    if major == 12:
        return KERNELS["FLASHINFER_MLA_SPARSE_SM120"]
    if major == 0:
        return KERNELS["ROCM_AITER_MLA_SPARSE"]
    if kv == "fp8":
        return KERNELS["FLASHINFER_MLA_SPARSE_SM90"]
    return KERNELS["FLASHMLA_SPARSE" if "ds_mla" in kv else "FLASH_ATTN_MLA_SPARSE"]


def common_block(kernels: Sequence[Kernel]) -> int:
    """The smallest block size that every backend takes, 16 if they all do."""
    if not kernels:
        return DEFAULT_BLOCK
    if len(kernels) == 1:
        return kernels[0].best()
    if all(kernel.takes(DEFAULT_BLOCK) for kernel in kernels):
        return DEFAULT_BLOCK
    candidates = {lcm(*sizes) for sizes in product(*(k.sizes for k in kernels))}
    return min(
        block for block in candidates if all(kernel.takes(block) for kernel in kernels)
    )


def check_block(block: int, kernels: Sequence[Kernel]) -> None:
    """Refuse a `--block-size` no backend takes, naming the nearest ones it does."""
    unit = lcm(*(kernel.least for kernel in kernels)) if kernels else 1
    if block > 0 and block % unit == 0:
        return
    below = block // unit * unit
    nearest = [size for size in (below, below + unit) if size > 0]
    raise UnsupportedOption(
        engine="vllm",
        option="block_size",
        value=block,
        reason=f"blocks come in multiples of {unit} tokens here",
        legal=nearest,
    )
