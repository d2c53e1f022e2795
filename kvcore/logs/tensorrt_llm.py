"""The lines of TensorRT-LLM; its GiB is 2^30 bytes.

Source: cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp @b35ac1b6 and published logs
of 0.8 to 1.2.
"""

from __future__ import annotations

from typing import Final

from kvcore.logs.facts import Wording, n, wording

TENSORRT_LLM: Final = "tensorrt_llm"

WORDINGS: Final[tuple[Wording, ...]] = (
    wording(
        TENSORRT_LLM,
        "TensorRT-LLM version",
        r"TensorRT-LLM version:? v?(?P<version>\d[\w.+-]{0,60})",
        starts=True,
    ),
    wording(
        TENSORRT_LLM,
        "paged KV cache (",
        rf"Allocated {n('size')} GiB for max tokens in paged KV cache "
        rf"\({n('tokens')}\)",
        numbers={
            "size": ("kv_size", "GiB"),
            "tokens": ("allocated_tokens", "tokens"),
        },
    ),
    wording(
        TENSORRT_LLM,
        "calculating max tokens in paged",
        rf"max tokens in paged kv cache: total: {n('total')} GiB, "
        rf"available: {n('free')} GiB",
        numbers={"total": ("memory", "GiB"), "free": ("memory_free", "GiB")},
        sets={"backend": "tensorrt"},
    ),
    wording(
        TENSORRT_LLM,
        "KV cache primary pool",
        rf"blocks in KV cache primary pool: {n('blocks')}",
        numbers={"blocks": ("pool_blocks", "blocks")},
    ),
    wording(
        TENSORRT_LLM,
        "primary blocks=",
        r"\[window size=(?P<window>\d{1,12})\], tokens per block="
        rf"(?P<block_tokens>\d{{1,12}}), primary blocks={n('blocks')}.{{0,80}}?"
        r"max sequence length=(?P<max_model_len>\d{1,15})",
        numbers={"blocks": ("pool_blocks", "blocks")},
    ),
    wording(
        TENSORRT_LLM,
        "tokens per block:",
        r"Number of tokens per block: (?P<block_tokens>\d{1,12})",
    ),
    wording(
        TENSORRT_LLM,
        "for max tokens",
        rf"Using {n('tokens')} tokens in paged KV cache",
        numbers={"tokens": ("pool_tokens", "tokens")},
    ),
    wording(
        TENSORRT_LLM,
        "device quota set to",
        rf"KV cache manager v2 device quota set to {n('pool')} ?GiB",
        numbers={"pool": ("pool", "GiB")},
    ),
)
