"""The lines of vLLM: of V1, old and new, and of V0.

Source: vllm/v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py, worker/worker.py and
executor/executor_base.py from 0.6 to 0.33, and published logs.
"""

from __future__ import annotations

from typing import Final

from kvcore.logs.facts import Wording, n, wording

VLLM: Final = "vllm"

WORDINGS: Final[tuple[Wording, ...]] = (
    wording(
        VLLM,
        "LLM engine (v",
        r"LLM engine \(v(?P<version>\d[\w.+-]{0,60})\)",
        starts=True,
    ),
    wording(
        VLLM,
        "API server version",
        r"API server version:? v?(?P<version>\d[\w.+-]{0,60})",
        starts=True,
    ),
    wording(
        VLLM,
        "Available KV cache memory",
        rf"Available KV cache memory: {n('pool')} ?GiB",
        numbers={"pool": ("pool", "GiB")},
    ),
    wording(
        VLLM,
        "memory reserved for KV Cache is",
        rf"memory reserved for KV Cache is {n('pool')} ?GiB",
        numbers={"pool": ("pool", "GiB")},
    ),
    wording(
        VLLM,
        "memory for KV Cache as specified",
        rf"reserved {n('pool')} ?GiB memory for KV Cache as specified",
        numbers={"pool": ("pool", "GiB")},
    ),
    wording(
        VLLM,
        "KV cache size:",
        rf"GPU KV cache size: {n('tokens')} tokens(?P<one_line>, Maximum concurrency)?",
        numbers={"tokens": ("pool_tokens", "tokens")},
    ),
    wording(
        VLLM,
        "Maximum concurrency for",
        rf"Maximum concurrency for (?P<max_model_len>\d[\d,]{{0,30}}) tokens per "
        rf"request: {n('users')}x",
        numbers={"users": ("concurrency", "x")},
    ),
    wording(
        VLLM,
        "blocks:",
        rf"# (?:GPU|cuda|CUDA) blocks: {n('gpu')}(?:, # CPU blocks: {n('cpu')})?",
        numbers={"gpu": ("pool_blocks", "blocks"), "cpu": ("swap_blocks", "blocks")},
        sets={"wording": "v0"},
    ),
    wording(
        VLLM,
        "max seq len",
        r"max seq len \((?P<max_model_len>\d[\d,]{0,30})\)",
    ),
    wording(
        VLLM,
        "KV cache is needed",
        rf"{n('needed')} GiB KV cache is needed",
        numbers={"needed": ("request_needed", "GiB")},
    ),
    wording(
        VLLM,
        "available KV cache memory (",
        rf"available KV cache memory \({n('pool')} GiB\)",
        numbers={"pool": ("pool", "GiB")},
    ),
    wording(
        VLLM,
        "estimated maximum model length",
        rf"estimated maximum model length is {n('longest')}",
        numbers={"longest": ("longest_context", "tokens")},
    ),
    wording(
        VLLM,
        "can be stored in KV cache",
        rf"tokens that can be stored in KV cache \({n('tokens')}\)",
        numbers={"tokens": ("pool_tokens", "tokens")},
    ),
    wording(
        VLLM,
        "Setting attention block size to",
        rf"Setting attention block size to {n('block')} tokens",
        numbers={"block": ("attention_block", "tokens")},
    ),
    wording(
        VLLM,
        "Padding mamba page size by",
        rf"Padding mamba page size by {n('percent')}%",
        numbers={"percent": ("page_padding", "%")},
    ),
    wording(
        VLLM,
        "Model loading took",
        rf"Model loading took {n('weights')} ?(?P<unit>GiB|GB)",
        numbers={"weights": ("weights", "GiB")},
    ),
    wording(
        VLLM,
        "model weights take",
        rf"model weights take {n('weights')} ?GiB",
        numbers={"weights": ("weights", "GiB")},
    ),
    wording(
        VLLM,
        "total_gpu_memory (",
        rf"total_gpu_memory \({n('total')}GiB\) x gpu_memory_utilization "
        r"\((?P<memory_fraction>[\d.]{1,10})\)",
        numbers={"total": ("memory", "GiB")},
    ),
    wording(
        VLLM,
        "desired GPU memory utilization",
        rf"Free memory on device (?:\S+ )?\({n('free')}/{n('total')} GiB\) on startup "
        r"is less than desired GPU memory utilization "
        rf"\((?P<memory_fraction>[\d.]{{1,10}}), {n('wanted')} GiB\)",
        numbers={
            "free": ("memory_free", "GiB"),
            "total": ("memory", "GiB"),
            "wanted": ("memory_wanted", "GiB"),
        },
    ),
    wording(
        VLLM, "Using max model len", r"Using max model len (?P<max_model_len>\d{1,15})"
    ),
    wording(
        VLLM,
        "max_num_batched_tokens=",
        r"max_num_batched_tokens=(?P<max_num_batched_tokens>\d{1,12})",
    ),
    wording(
        VLLM,
        "synchronous scheduling is",
        r"[Aa]synchronous scheduling is (?P<async_scheduling>enabled|disabled)",
    ),
    wording(
        VLLM,
        "data type to store kv cache",
        r"Using (?P<kv_cache_dtype>\w{1,30}) data type to store kv cache",
    ),
    wording(VLLM, "MLA is disabled", r"MLA is disabled", sets={"mla_disabled": True}),
)
