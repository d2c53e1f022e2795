"""Attention backend and page size, as SGLang 0.5.23 resolves them.

Source: sglang/srt/arg_groups/overrides.py, model_override_base.py and
model_overrides/ of the 0.5.23 wheel. A device nobody names is taken for Hopper, where
most defaults are the plain ones.
"""

from __future__ import annotations

from kvcore.cache import Heads
from kvcore.engines.base import Settings
from kvcore.engines.sglang.models import (
    DEEPSEEK_FAMILY,
    DELTA_NETS,
    FLASHINFER_ON_SM100,
    TRITON_ON_SM100,
    class_of,
    has_sparse_latents,
    has_states,
    is_compressed,
    keeps_latents,
)
from kvcore.engines.sglang.options import flag, integer, text
from kvcore.engines.sglang.versions import older, page
from kvcore.errors import InvalidArgument
from kvcore.formats import NumberFormat
from kvcore.model import Model


def attention_groups(settings: Settings) -> int:
    """Groups of DP attention inside one tensor-parallel group; 1 without it."""
    if not flag(settings, "enable_dp_attention"):
        return 1
    return integer(settings, "dp_size") or settings.dp


def asked_page(settings: Settings) -> int | None:
    """The page size asked for, by SGLang's name for it or by kvcore's."""
    option, block = integer(settings, "page_size"), settings.block_tokens
    if option and block and option != block:
        raise InvalidArgument(
            argument="page_size", value=str(option), expected=f"block_tokens = {block}"
        )
    return option or block


def page_size(model: Model, settings: Settings, kv: NumberFormat) -> int:
    """Tokens of a page: what was asked, or what model and kernels insist on.

    nvfp4 is decoded by trtllm_mha whatever the backend is.
    """
    name = class_of(model)
    version = older(settings)
    if version is not None:
        return page(version, settings, asked_page(settings))
    if is_compressed(model):
        return 256
    if has_sparse_latents(model) or name == "Qwen4ExpForConditionalGeneration":
        return 64
    asked = asked_page(settings)
    if name.startswith("MiniMaxM3Sparse"):
        return asked or 128
    backend = attention_backend(model, settings)
    if name in DELTA_NETS and is_sm100(settings) and not _asked_backend(settings):
        return 64 if backend == "trtllm_mha" else 1
    if kv.id == "nvfp4":
        backend = "trtllm_mha"
    return _backend_page(backend, model, settings, asked)


def _asked_backend(settings: Settings) -> bool:
    return text(settings, "attention_backend") is not None


def _backend_page(
    backend: str, model: Model, settings: Settings, asked: int | None
) -> int:
    if backend in ("flashmla", "hpc_ops"):
        return 64
    if backend in ("trtllm_mla", "cutedsl_mla"):
        return asked if asked in (32, 64) else 64
    if backend == "trtllm_mha":
        return asked if asked in (16, 32, 64, 128) else 64
    if backend == "fa4" and is_sm100(settings) and not keeps_latents(model):
        return 128
    return asked or 1


def is_sm100(settings: Settings) -> bool:
    """Data-centre Blackwell (B200, GB200, B300); consumer cards are SM120."""
    return settings.device.architecture in ("blackwell", "rubin")


def is_blackwell(settings: Settings) -> bool:
    """SM100 and SM120 alike."""
    named = settings.device.architecture or ""
    return named.startswith("blackwell") or is_sm100(settings)


def is_hopper(settings: Settings) -> bool:
    return settings.device.architecture in (None, "hopper")


def attention_backend(model: Model, settings: Settings) -> str:
    """The attention kernels' backend: asked for, the model's own, or the device's."""
    return (
        text(settings, "attention_backend")
        or _kind_backend(model)
        or _own_backend(class_of(model), model, settings)
        or _device_backend(model, settings)
    )


def _kind_backend(model: Model) -> str | None:
    if is_compressed(model):
        return "dsv4"
    return "dsa" if has_sparse_latents(model) else None


def _device_backend(model: Model, settings: Settings) -> str:
    latent = keeps_latents(model)
    chain = _drafts_in_a_chain(settings)
    if is_hopper(settings) and (latent or chain):
        return "fa3"
    if is_sm100(settings) and latent:
        return "flashinfer"
    if is_sm100(settings) and chain and _knows_top_k(settings):
        return _sm100_heads(model)
    if (settings.device.architecture or "").startswith(("cdna", "rdna")):
        return "aiter"
    sinks = class_of(model) == "GptOssForCausalLM"
    return "triton" if latent or sinks else "flashinfer"


def _drafts_in_a_chain(settings: Settings) -> bool:
    """utils/common.py, is_no_spec_infer_or_topk_one: by what was asked."""
    top_k = integer(settings, "speculative_eagle_topk")
    return top_k is None or (top_k == 1 and asked_page(settings) in (None, 1))


def _knows_top_k(settings: Settings) -> bool:
    return (
        text(settings, "speculative_algorithm") is None
        or integer(settings, "speculative_eagle_topk") is not None
    )


def _sm100_heads(model: Model) -> str:
    """trtllm_mha needs keys and values of one width; fa4 does not."""
    uneven = any(
        isinstance(spec, Heads) and spec.head_dim != spec.value_head_dim
        for spec, _ in model.groups
    )
    return "fa4" if uneven else "trtllm_mha"


def _own_backend(name: str, model: Model, settings: Settings) -> str | None:
    """What a class sets for itself, where it differs from the device's default."""
    if name.startswith("Gemma4"):
        return "trtllm_mha" if is_sm100(settings) else "triton"
    if name == "WhisperForConditionalGeneration":
        return "flashinfer"
    if name == "InklingForConditionalGeneration":
        return "fa4" if is_sm100(settings) or is_hopper(settings) else "triton"
    if name.startswith(("Step3p5", "Step3p7For")) and is_blackwell(settings):
        return "fa4"
    if not is_sm100(settings):
        return None
    rules: tuple[tuple[bool, str], ...] = (
        (name in DEEPSEEK_FAMILY and keeps_latents(model), "trtllm_mla"),
        (name == "KimiK3ForConditionalGeneration", "trtllm_mla"),
        (name.startswith(("MiMoV2", "MiniMaxM3Sparse")), "fa4"),
        (name in TRITON_ON_SM100, "triton"),
        (name in FLASHINFER_ON_SM100 and has_states(model), "flashinfer"),
        (name in DELTA_NETS and _snapshots_unasked(settings), "triton"),
    )
    return next((backend for applies, backend in rules if applies), None)


def _snapshots_unasked(settings: Settings) -> bool:
    """qwen3_5.py looks at the strategy before `auto` is resolved."""
    return (
        not flag(settings, "disable_radix_cache")
        and (text(settings, "mamba_radix_cache_strategy") or "auto")
        not in ("extra_buffer", "extra_buffer_lazy")
        and text(settings, "speculative_algorithm") is None
    )
