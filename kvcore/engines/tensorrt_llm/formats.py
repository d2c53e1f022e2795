"""TensorRT-LLM's `dtype` of a KV cache, and what a block holds of it.

Source: tensorrt_llm/llmapi/llm_args.py @00043967; docs/source/features/
sparse-attention.md @06e777cb. `auto` is what the checkpoint's quantisation says, else
the model's own dtype. int8 is known to built engines alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvcore import formats
from kvcore.cache import IndexerKeys, LatentAttention
from kvcore.engines.base import Settings
from kvcore.engines.tensorrt_llm.models import is_compressed
from kvcore.engines.tensorrt_llm.options import is_engine_build, text
from kvcore.errors import InvalidArgument, UnsupportedFormat
from kvcore.estimate import CacheFormats
from kvcore.formats import NumberFormat
from kvcore.model import Model

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "float16": "fp16",
        "bfloat16": "bf16",
        "float32": "fp32",
        "fp8": "fp8",
        "nvfp4": "nvfp4",
        "fp8_ds_mla": "fp8_ds_mla",
        "int8": "int8",
    }
)
"""TensorRT-LLM's name -> the format of a row."""

SPELLINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fp16": "float16",
        "half": "float16",
        "bf16": "bfloat16",
        "fp32": "float32",
        "float": "float32",
        "fp8_e4m3": "fp8",
        "float8_e4m3fn": "fp8",
    }
)
INDEX_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fp8": "fp8_g128",
        "fp8_g128": "fp8_g128",
        "fp4": "mxfp4",
        "mxfp4": "mxfp4",
    }
)
"""132 bytes a key of 128 with one fp32 scale, or 68 with a scale byte per 32."""


FP4_CACHES: Final = frozenset({None, "blackwell", "rubin"})
"""Architectures that read NVFP4 caches, and one nobody named. Of Blackwell only sm100
and sm103 (docs/source/features/quantization.md, Hardware Support Matrix)."""


def legal_names(model: Model, settings: Settings) -> tuple[str, ...]:
    """Values of `dtype` this model's cache can be kept in."""
    if is_compressed(model):
        return ("auto", "bfloat16", "fp8")
    names = ["auto", "float16", "bfloat16", "float32", "fp8"]
    if _no_nvfp4(model, settings) is None:
        names.append("nvfp4")
    if has_sparse_latents(model):
        names.append("fp8_ds_mla")
    if is_engine_build(settings):
        names.append("int8")
    return tuple(names)


def _no_nvfp4(model: Model, settings: Settings) -> str | None:
    """Why a cache cannot be kept in NVFP4.

    Latents: cpp/tensorrt_llm/thop, "FP4 KV cache is not supported for MLA generation".
    """
    if model.is_latent:
        return "TensorRT-LLM does not keep latents in NVFP4"
    if settings.device.architecture not in FP4_CACHES:
        return "TensorRT-LLM reads NVFP4 caches on data centre Blackwell GPUs alone"
    return None


def has_sparse_latents(model: Model) -> bool:
    kinds = {type(spec) for spec, _ in model.groups}
    return {LatentAttention, IndexerKeys} <= kinds


def resolve(
    model: Model, kv: str, indexer: str, state: str, settings: Settings
) -> CacheFormats:
    """Format names in TensorRT-LLM's understanding for this model."""
    return CacheFormats(
        kv=_kv(model, _asked(kv, "dtype", settings), settings),
        indexer=_indexer(model, indexer, settings),
        state=_state(model, _asked(state, "mamba_ssm_cache_dtype", settings)),
    )


def _asked(given: str, option: str, settings: Settings) -> str:
    """The format asked for, by the general name or the engine's option."""
    name = SPELLINGS.get(given.strip().lower().removeprefix("torch."), given)
    own = text(settings, option) or "auto"
    if own in ("auto", name):
        return name
    if name == "auto":
        return own
    raise InvalidArgument(argument=option, value=own, expected=f"{name}, as given")


def _kv(model: Model, name: str, settings: Settings) -> NumberFormat:
    legal = legal_names(model, settings)
    if name == "auto":
        own = model.kv_quantization or model.kv_format
        name = SPELLINGS.get(own, own)
        if name not in (*legal, "nvfp4"):
            name = "bfloat16"
    refusal = _no_nvfp4(model, settings)
    if name == "nvfp4" and refusal is not None:
        raise UnsupportedFormat(format=name, role="the KV cache", reason=refusal)
    if name not in legal:
        raise UnsupportedFormat(
            format=name,
            role="the KV cache",
            reason="TensorRT-LLM's dtype takes " + ", ".join(legal) + " here",
        )
    return formats.find(NAMES[name])


def _indexer(model: Model, asked: str, settings: Settings) -> NumberFormat:
    """Index keys: one byte an element or half of one, whatever the cache is kept in.

    Keys beside per-head attention (MiniMax-M3) are in the model's dtype.
    """
    kinds = {type(spec) for spec, _ in model.groups}
    if IndexerKeys in kinds and LatentAttention not in kinds:
        return formats.find(model.kv_format if asked == "auto" else asked)
    name = (text(settings, "indexer_k_dtype") or "fp8") if asked == "auto" else asked
    if name not in INDEX_KEYS:
        raise UnsupportedFormat(
            format=asked,
            role="index keys",
            reason="TensorRT-LLM keeps them in fp8 or fp4",
        )
    return formats.find(INDEX_KEYS[name])


def _state(model: Model, name: str) -> NumberFormat:
    found = formats.find(model.state_format if name == "auto" else name)
    if found.id not in ("fp32", "bf16", "fp16"):
        raise UnsupportedFormat(
            format=name,
            role="states",
            reason="TensorRT-LLM keeps them in float32, bfloat16 or float16",
        )
    return found
