"""SGLang's own settings, as its flags are called, and how to read them."""

from __future__ import annotations

from typing import Final

from kvcore.engines.base import Settings
from kvcore.engines.options import Option

KV_DTYPES: Final = (
    "auto",
    "bf16",
    "bfloat16",
    "fp8_e4m3",
    "fp8_e5m2",
    "mxfp8",
    "nvfp4",
    "fp4_mx_block16",
)
BACKENDS: Final = (
    "fa3",
    "fa4",
    "flashinfer",
    "triton",
    "trtllm_mha",
    "trtllm_mla",
    "flashmla",
    "cutedsl_mla",
    "hpc_ops",
    "torch_native",
    "flex_attention",
    "aiter",
)
SPARSE_BACKENDS: Final = (
    "flashmla_sparse",
    "flashmla_kv",
    "fa3",
    "tilelang",
    "aiter",
    "trtllm",
    "flashinfer_sparse_mla",
)
STRATEGIES: Final = ("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
ALGORITHMS: Final = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")

OPTIONS: Final = (
    Option(name="page_size", kind="integer", minimum=1),
    Option(name="kv_cache_dtype", kind="choice", default="auto", choices=KV_DTYPES),
    Option(name="attention_backend", kind="choice", choices=BACKENDS),
    Option(name="dsa_prefill_backend", kind="choice", choices=SPARSE_BACKENDS),
    Option(name="dsa_decode_backend", kind="choice", choices=SPARSE_BACKENDS),
    Option(name="swa_full_tokens_ratio", kind="number"),
    Option(name="swa_prefix_tails", kind="integer"),
    Option(name="disable_hybrid_swa_memory", kind="flag", default=False),
    Option(name="mamba_full_memory_ratio", kind="number"),
    Option(name="max_mamba_cache_size", kind="integer", minimum=1),
    Option(
        name="mamba_radix_cache_strategy",
        kind="choice",
        default="auto",
        choices=STRATEGIES,
    ),
    Option(
        name="mamba_ssm_dtype",
        kind="choice",
        choices=("float32", "bfloat16", "float16"),
    ),
    Option(name="disable_radix_cache", kind="flag", default=False),
    Option(name="disable_overlap_schedule", kind="flag", default=False),
    Option(name="max_running_requests", kind="integer", minimum=1),
    Option(name="max_total_tokens", kind="integer", minimum=1),
    Option(name="context_length", kind="integer", minimum=1),
    Option(name="chunked_prefill_size", kind="integer", minimum=1),
    Option(name="enable_dp_attention", kind="flag", default=False),
    Option(name="dp_size", kind="integer", minimum=1),
    Option(name="speculative_algorithm", kind="choice", choices=ALGORITHMS),
    Option(name="speculative_num_steps", kind="integer", minimum=1),
    Option(name="speculative_eagle_topk", kind="integer", minimum=1),
    Option(name="speculative_num_draft_tokens", kind="integer", minimum=1),
    Option(name="disable_cuda_graph", kind="flag", default=False),
    Option(name="cuda_graph_max_bs_decode", kind="integer", minimum=1),
)
"""SGLang's own settings, as its flags are called."""


def flag(settings: Settings, name: str) -> bool:
    return settings.options.get(name) is True


def integer(settings: Settings, name: str) -> int | None:
    value = settings.options.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(settings: Settings, name: str) -> float | None:
    value = settings.options.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def text(settings: Settings, name: str) -> str | None:
    value = settings.options.get(name)
    return value if isinstance(value, str) else None
