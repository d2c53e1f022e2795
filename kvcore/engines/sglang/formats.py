"""SGLang's `--kv-cache-dtype` names, and the rows they are stored as.

Source: sglang/srt/mem_cache/kv_cache_dtype.py, arg_groups/overrides.py and
kv_cache_hook.py, mem_cache/kv_cache_configurator.py (calculate_mla_kv_cache_dim) of the
0.5.23 wheel; the 4-bit names of older wheels. SGLang's `auto` follows a checkpoint's
FP8 KV scheme, which a config's dtype does not show: it is the model's dtype here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvcore import formats
from kvcore.engines.base import Settings
from kvcore.engines.sglang.backends import (
    attention_backend,
    is_blackwell,
    is_sm100,
)
from kvcore.engines.sglang.models import (
    class_of,
    has_sparse_latents,
    is_compressed,
    keeps_latents,
)
from kvcore.engines.sglang.options import KV_DTYPES, text
from kvcore.engines.sglang.versions import KV_DTYPES as OLDER_DTYPES
from kvcore.engines.sglang.versions import older
from kvcore.errors import InvalidArgument, UnsupportedFormat
from kvcore.estimate import CacheFormats
from kvcore.formats import NumberFormat
from kvcore.model import Model

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bf16": "bf16",
        "bfloat16": "bf16",
        "fp8_e4m3": "fp8",
        "fp8_e5m2": "fp8",
        "fp8": "fp8",
        "mxfp8": "mxfp8",
        "nvfp4": "nvfp4",
        "fp4_mx_block16": "fp4_mx_block16",
        "fp4_e2m1": "fp4_mx_block16",
    }
)
"""SGLang's name -> the format of a row."""

SIXTEEN_BIT: Final[Mapping[str, str]] = MappingProxyType(
    {"fp16": "fp16", "float16": "fp16", "bf16": "bf16", "bfloat16": "bf16"}
)
"""Names of what `auto` may be, so that it can be asked for by name."""

FP4_BLOCKS: Final = NumberFormat(
    id="fp4_mx_block16",
    layout=formats.find("nvfp4").layout,
    roles=formats.find("nvfp4").roles,
    source="SGLang: E2M1 codes, a scale per 16 elements and none per tensor",
)
"""As large as nvfp4, but read by other kernels, which need no workspace."""

FOUR_BIT_HEADS: Final = ("triton", "torch_native", "flex_attention", "trtllm_mha")
FOUR_BIT_LATENTS: Final = ("flashinfer", "trtllm_mla")
"""Backends that read fp4_mx_block16 (kv_cache_hook.py, handle_kv4_compatibility)."""

DTYPE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bf16": "torch.bfloat16",
        "fp16": "torch.float16",
        "fp32": "torch.float32",
        "fp8": "torch.float8_e4m3fn",
        "fp8_ds_mla": "torch.float8_e4m3fn",
        "mxfp8": "torch.float8_e4m3fn",
        "nvfp4": "torch.float4_e2m1fn_x2",
        "fp4_mx_block16": "torch.float4_e2m1fn_x2",
    }
)
"""What its log calls the dtype of a pool."""


def legal_names(model: Model, settings: Settings) -> tuple[str, ...]:
    """Values of `--kv-cache-dtype` this model's cache can be kept in."""
    if older(settings) is not None:
        return OLDER_DTYPES
    if is_compressed(model):
        return ("auto", "fp8_e4m3")
    if has_sparse_latents(model):
        return ("auto", "bf16", "bfloat16", "fp8_e4m3")
    if keeps_latents(model):
        if attention_backend(model, settings) in ("trtllm_mla", "cutedsl_mla"):
            return KV_DTYPES[:4]
        return (*KV_DTYPES[:5], *_four_bit(model, settings, FOUR_BIT_LATENTS))
    known = settings.device.architecture is not None
    scaled = ("mxfp8", "nvfp4") if is_blackwell(settings) or not known else ()
    return (*KV_DTYPES[:5], *scaled, *_four_bit(model, settings, FOUR_BIT_HEADS))


def _four_bit(
    model: Model, settings: Settings, backends: tuple[str, ...]
) -> tuple[str, ...]:
    """fp4_mx_block16, where the backend reads it; any where no device is named."""
    known = settings.device.architecture is not None
    if known and attention_backend(model, settings) not in backends:
        return ()
    return ("fp4_mx_block16",)


def resolve(
    model: Model, kv: str, indexer: str, state: str, settings: Settings
) -> CacheFormats:
    """Format names in SGLang's understanding for this model and device."""
    name = _asked(kv, settings)
    stored = (
        _auto(model, settings) if name == "auto" else _stored(model, name, settings)
    )
    if (
        has_sparse_latents(model)
        and stored.id == "fp8"
        and not _raw_rows(model, settings)
    ):
        stored = formats.find("fp8_ds_mla")
    return CacheFormats(
        kv=stored,
        indexer=_indexer(model, indexer),
        state=_state(model, state, settings),
    )


def _asked(kv: str, settings: Settings) -> str:
    """The format asked for, as kv_format or as kv_cache_dtype."""
    option = text(settings, "kv_cache_dtype") or "auto"
    if option in ("auto", kv):
        return kv
    if kv == "auto":
        return option
    raise InvalidArgument(
        argument="kv_cache_dtype", value=option, expected=f"kv_format = {kv}"
    )


def _auto(model: Model, settings: Settings) -> NumberFormat:
    if is_compressed(model) or class_of(model) == "MuseSparkForConditionalGeneration":
        return formats.find("fp8")
    if has_sparse_latents(model):
        return formats.find("fp8" if is_blackwell(settings) else "bf16")
    # A model stored in 32 bit is served in 16 (model_config.py, _get_and_verify_dtype).
    return formats.find("fp16" if model.kv_format == "fp32" else model.kv_format)


def _stored(model: Model, name: str, settings: Settings) -> NumberFormat:
    legal = legal_names(model, settings)
    served = _auto(model, settings)
    if SIXTEEN_BIT.get(name) == served.id:
        return served
    key = "fp8_e4m3" if name in ("fp8", "fp8_ds_mla") else name
    if key not in legal:
        raise UnsupportedFormat(
            format=name,
            role="the KV cache",
            reason="SGLang's kv-cache-dtype takes " + ", ".join(legal) + " here",
        )
    stored = NAMES[key]
    return FP4_BLOCKS if stored == FP4_BLOCKS.id else formats.find(stored)


def _raw_rows(model: Model, settings: Settings) -> bool:
    """Whether a sparse model's fp8 rows are plain: one byte an element.

    FlashMLA's rows have a scale per 128 values and a 16-bit rotary part; those of
    TRT-LLM, of TileLang in both phases and of ROCm's kernels are plain.
    """
    default = "flashmla_kv"
    if settings.dcp > 1:
        default = "trtllm"
    elif is_blackwell(settings):
        glm_on_sm120 = class_of(model).startswith("GlmMoeDsa") and not is_sm100(
            settings
        )
        default = "flashinfer_sparse_mla" if glm_on_sm120 else "trtllm"
    prefill = text(settings, "dsa_prefill_backend") or default
    decode = text(settings, "dsa_decode_backend") or default
    both_tilelang = prefill == decode == "tilelang"
    return "trtllm" in (prefill, decode) or both_tilelang or _on_rocm(settings)


def _on_rocm(settings: Settings) -> bool:
    return (settings.device.architecture or "").startswith(("cdna", "rdna"))


def _indexer(model: Model, asked: str) -> NumberFormat:
    """Index keys: fp8 with a scale per 128 beside latents, 16-bit beside heads."""
    own = "fp8_g128" if keeps_latents(model) or is_compressed(model) else "bf16"
    if asked != "auto" and formats.find(asked).id not in (own, "fp8"):
        raise UnsupportedFormat(
            format=asked, role="indexer", reason=f"SGLang keeps index keys as {own}"
        )
    return formats.find(own)


def _state(model: Model, asked: str, settings: Settings) -> NumberFormat:
    """Recurrent state: the flag, the config's own dtype, else 32-bit."""
    option = text(settings, "mamba_ssm_dtype")
    if asked == "auto":
        asked = option or model.state_format
    found = formats.find(asked)
    if found.id not in ("fp32", "bf16", "fp16"):
        raise UnsupportedFormat(
            format=asked,
            role="recurrent",
            reason="SGLang's mamba-ssm-dtype takes float32, bfloat16, float16",
        )
    return found
