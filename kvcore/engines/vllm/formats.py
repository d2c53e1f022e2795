"""vLLM's `--kv-cache-dtype` names, and the bytes of what they store.

Sources, 0.33.0: vllm/config/cache.py (CacheDType), vllm/utils/torch_utils.py, the
supported_kv_cache_dtypes of vllm/v1/attention/backends, and their customize_spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from kvcore import formats
from kvcore.cache import (
    ChunkedAttention,
    CompressedAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.base import Settings
from kvcore.engines.vllm.kernels import BLACKWELL
from kvcore.engines.vllm.rules import HOPPER, capability
from kvcore.errors import UnsupportedFormat, UnsupportedOption
from kvcore.estimate import CacheFormats
from kvcore.formats import FORMATS, NumberFormat
from kvcore.model import Model
from kvcore.states import KimiDeltaAttention, RecurrentState

Family = Literal["heads", "latent", "sparse", "compressed"]

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "float16": "fp16",
        "bfloat16": "bf16",
        "fp8": "fp8",
        "fp8_e4m3": "fp8",
        "fp8_e5m2": "fp8",
        "fp8_ds_mla": "fp8_ds_mla",
        "nvfp4_ds_mla": "nvfp4_ds_mla",
        "turboquant_k8v4": "turboquant_k8v4",
        "turboquant_4bit_nc": "turboquant_4bit_nc",
        "turboquant_k3v4_nc": "turboquant_k3v4_nc",
        "turboquant_3bit_nc": "turboquant_3bit_nc",
        "octave_k3v4": "octave_k3v4",
        "octave_k3v3": "octave_k3v3",
        "octave_k3v3_compact": "octave_k3v3_compact",
        "ultraquant_4bit": "ultraquant_4bit",
        "int4_per_token_head": "int4_per_token_head",
        "int8_per_token_head": "int8_per_token_head",
        "fp8_per_token_head": "fp8_per_token_head",
        "nvfp4": "nvfp4",
        "nvfp4_4over6": "nvfp4",
    }
)
"""vLLM's name -> the format that is stored."""

_AS_MODEL: Final = ("float16", "bfloat16")
_RECORDS: Final = ("fp8_ds_mla", "nvfp4_ds_mla")

LEGAL: Final[Mapping[Family, tuple[str, ...]]] = MappingProxyType(
    {
        "heads": tuple(name for name in NAMES if name not in _RECORDS),
        "latent": (*_AS_MODEL, "fp8", "fp8_e4m3"),
        "sparse": ("bfloat16", "fp8", "fp8_e4m3", *_RECORDS),
        "compressed": ("fp8", "fp8_e4m3", "fp8_ds_mla"),
    }
)
"""What each kind of cache can be stored in, `auto` aside."""

_BLACKWELL_ONLY: Final = ("nvfp4_ds_mla", "nvfp4_4over6")
_ROCM_ONLY: Final = (
    "octave_k3v4",
    "octave_k3v3",
    "octave_k3v3_compact",
    "ultraquant_4bit",
)
_PACKED_LATER: Final = ("nvfp4", "nvfp4_4over6")
"""Need CUDA, equal widths, and off SM10x heads wider than 64."""

_BOUNDED: Final = (SlidingWindowAttention, ChunkedAttention)

STATED_STATES: Final = ("nemotron_h", "qwen3_5", "qwen3_6", "qwen4_exp")
"""model_types whose config decides the state's dtype; others take the model's."""

OCTAVE_ALIGNMENT: Final[Mapping[str, int]] = MappingProxyType(
    {"octave_k3v4": 8, "octave_k3v3": 8, "octave_k3v3_compact": 4}
)


def family(model: Model) -> Family:
    kinds = {type(spec) for spec, _ in model.groups}
    if CompressedAttention in kinds:
        return "compressed"
    if LatentAttention not in kinds:
        return "heads"
    return "sparse" if IndexerKeys in kinds else "latent"


def legal_names(model: Model, settings: Settings) -> tuple[str, ...]:
    """Values of `--kv-cache-dtype` that hold this model's cache on that device."""
    major = capability(settings.device)
    return (
        "auto",
        *(name for name in LEGAL[family(model)] if _holds(name, model, major)),
    )


def _own_dtype(model: Model) -> str:
    return "float16" if model.kv_format == "fp16" else "bfloat16"


def _holds(name: str, model: Model, major: int) -> bool:
    if name in _AS_MODEL:
        record_only = major == 12 and family(model) == "sparse"
        return not record_only and name == _own_dtype(model)
    if name in _BLACKWELL_ONLY and major != BLACKWELL:
        return False
    if name in _ROCM_ONLY and major != 0:
        return False
    if name.startswith("turboquant_"):
        return not any(isinstance(spec, _BOUNDED) for spec, _ in model.groups)
    if name in _PACKED_LATER:
        any_width = major == BLACKWELL
        return major >= 8 and all(
            spec.head_dim == spec.value_head_dim and (any_width or spec.head_dim > 64)
            for spec, _ in model.groups
            if isinstance(spec, Heads)
        )
    return True


def resolve(
    model: Model, kv: str, indexer: str, state: str, settings: Settings
) -> CacheFormats:
    """Format names as vLLM understands them for this model and device."""
    kind = family(model)
    name = _named(kv)
    if name == "auto":
        stored = _auto(model, kind, settings)
    else:
        legal = legal_names(model, settings)
        if name not in legal:
            raise UnsupportedFormat(
                format=kv,
                role="the KV cache",
                reason="vLLM's kv-cache-dtype takes " + ", ".join(legal) + " here",
            )
        stored = NAMES[name]
    if kind == "sparse":
        exact = name == "fp8_e4m3" or (name == "auto" and stored == "fp8")
        stored = _sparse(stored, settings, automatic=name == "auto", exact=exact)
    if kind == "sparse" and settings.dcp > 1 and "ds_mla" not in stored:
        _refuse_context_parallel(settings)
    return CacheFormats(
        kv=FORMATS[stored],
        indexer=_indexer(model, indexer),
        state=_state(model, state),
    )


def _named(name: str) -> str:
    """vLLM's name of a format, from its own or a plain one."""
    key = name.strip().lower().removeprefix("torch.")
    plain = {"fp16": "float16", "half": "float16", "bf16": "bfloat16"}
    return plain.get(key, key)


def _auto(model: Model, kind: Family, settings: Settings) -> str:
    """What the checkpoint has scales for, else the model's own dtype.

    DeepSeek-V4 packs fp8, and GLM-5 does on SM10x.
    """
    if kind == "compressed":
        return "fp8"
    if model.kv_quantization is not None:
        return model.kv_quantization
    if model.model_type == "glm_moe_dsa" and capability(settings.device) == BLACKWELL:
        return "fp8"
    return NAMES[_own_dtype(model)]


def _sparse(stored: str, settings: Settings, *, automatic: bool, exact: bool) -> str:
    """What the backend of sparse MLA makes of a format: fp8 is mostly its record.

    FlashInfer reads plain fp8, on SM10x always, on Hopper when `fp8_e4m3` is asked
    for by that name (or by a checkpoint). On SM12x even `auto` is the record.
    Source: vllm/model_executor/layers/attention/mla_attention.py 0.33.0,
    _canonicalize_sparse_mla_kv_cache_dtype.
    """
    major = capability(settings.device)
    chosen = settings.options["attention_backend"]
    if chosen is None:
        chosen = {
            0: "ROCM_AITER_MLA_SPARSE",
            BLACKWELL: "FLASHINFER_MLA_SPARSE",
            12: "FLASHINFER_MLA_SPARSE_SM120",
        }.get(major, "FLASHINFER_MLA_SPARSE_SM90" if exact else "FLASHMLA_SPARSE")
    if chosen == "FLASHINFER_MLA_SPARSE_SM120" and (automatic or stored == "fp8"):
        return "fp8_ds_mla"
    if chosen == "FLASHMLA_SPARSE" and stored == "fp8":
        return "fp8_ds_mla"
    return stored


def _refuse_context_parallel(settings: Settings) -> None:
    """FlashMLA's sparse kernel divides only packed records over a context.

    Source: vllm/v1/attention/backends/mla/flashmla_sparse.py 0.33.0.
    """
    if capability(settings.device) == HOPPER:
        raise UnsupportedOption(
            engine="vllm",
            option="dcp",
            value=settings.dcp,
            reason="sparse attention is divided over a context in fp8_ds_mla only",
        )


def _indexer(model: Model, name: str) -> NumberFormat:
    """FP8 keys with a scale per 128 beside latents; MXFP4 when asked.

    Keys beside per-head attention (MiniMax M3) are in the model's dtype.
    """
    if family(model) == "heads":
        return formats.find(model.kv_format if name == "auto" else name)
    if name in ("auto", "fp8", "fp8_g128"):
        return FORMATS["fp8_g128"]
    if name in ("fp4", "mxfp4"):
        return FORMATS["mxfp4"]
    raise UnsupportedFormat(
        format=name, role="indexer keys", reason="vLLM keeps them in fp8 or mxfp4"
    )


def _state(model: Model, name: str) -> NumberFormat:
    """`--mamba-ssm-cache-dtype`; its auto is the model's dtype for most models.

    KDA's is fp32, and Nemotron-H and Qwen3.5 take what their config states.
    """
    if name != "auto":
        found = formats.find(name)
        if found.id not in ("fp32", "fp16", "bf16"):
            raise UnsupportedFormat(
                format=name,
                role="states",
                reason="vLLM keeps them in float32, float16 or bfloat16",
            )
        return found
    kinds = [spec for spec, _ in model.groups if isinstance(spec, RecurrentState)]
    if any(isinstance(spec, KimiDeltaAttention) for spec in kinds):
        return FORMATS["fp32"]
    if model.model_type.startswith(STATED_STATES):
        return formats.find(model.state_format)
    return FORMATS["bf16"]


def head_bytes(key: int, value: int, fmt: NumberFormat) -> int:
    """Bytes of one token in one KV head: key and value, packed as the backend does."""
    bits = fmt.row_bits(key, "key"), fmt.row_bits(value, "value")
    packed = sum(-(-n // 8) for n in bits)
    if fmt.id.startswith("turboquant_"):
        return packed + packed % 2
    unit = OCTAVE_ALIGNMENT.get(fmt.id, 1)
    return -(-packed // unit) * unit


def latent_bytes(spec: LatentAttention, fmt: NumberFormat) -> int:
    """Bytes of one token's latent and rotary key."""
    rope = spec.qk_rope_head_dim
    bits = fmt.row_bits(spec.kv_lora_rank, "latent")
    return -(-(bits + (fmt.row_bits(rope, "rope") if rope else 0)) // 8)


def indexer_bytes(width: int, fmt: NumberFormat) -> int:
    return -(-fmt.row_bits(width, "indexer") // 8)
