"""The lines of TGI, LMDeploy and MLX-LM, and of memory that ran out anywhere.

Source: text-generation-inference router/src/server.rs and server/text_generation_server
/models/flash_causal_lm.py; lmdeploy src/turbomind/models/llama/BlockManager.cc; mlx_lm/
server.py and generate.py; torch's CUDAOutOfMemoryError; published logs of each.
"""

from __future__ import annotations

from typing import Final

from kvcore.logs.facts import Wording, n, wording

TGI: Final = "tgi"
LMDEPLOY: Final = "lmdeploy"
MLX: Final = "mlx"

WORDINGS: Final[tuple[Wording, ...]] = (
    wording(
        TGI,
        "max batch total tokens to",
        rf"Setting max batch total tokens to {n('tokens')}",
        numbers={"tokens": ("pool_tokens", "tokens")},
    ),
    wording(
        TGI,
        "KV-cache blocks:",
        rf"KV-cache blocks: {n('blocks')}, size: (?P<block_tokens>\d{{1,9}})",
        numbers={"blocks": ("pool_blocks", "blocks")},
    ),
    wording(TGI, "text_generation_launcher", r"text_generation_launcher: Args \{"),
    wording(
        LMDEPLOY,
        "[BlockManager] block_size",
        rf"\[BlockManager\] block_size *= *{n('size')} MB",
        numbers={"size": ("block_size", "MiB")},
        printed_units={"size": "MB"},
        floors=True,
    ),
    wording(
        LMDEPLOY,
        "[BlockManager] max_block_count",
        rf"\[BlockManager\] max_block_count *= *{n('blocks')}",
        numbers={"blocks": ("pool_blocks", "blocks")},
    ),
    wording(LMDEPLOY, "TurbomindEngineConfig(", r"TurbomindEngineConfig\("),
    wording(
        MLX,
        "kv caches that take",
        rf"We have (?P<caches>\d{{1,6}}) kv caches that take {n('size')} GB",
        numbers={"size": ("kv_size", "GB")},
    ),
    wording(
        MLX,
        "KV Caches:",
        rf"KV Caches: (?P<caches>\d{{1,6}}) seq, {n('size')} GB"
        rf"(?:, latest user cache {n('tokens')} tokens)?",
        numbers={"size": ("kv_size", "GB"), "tokens": ("cached_tokens", "tokens")},
    ),
    wording(
        MLX,
        "Peak memory:",
        rf"Peak memory: {n('size')} GB",
        numbers={"size": ("memory_peak", "GB")},
    ),
    wording(
        MLX,
        "tokens-per-sec",
        rf"Prompt: {n('tokens')} tokens, [\d.]{{1,12}} tokens-per-sec",
        numbers={"tokens": ("prompt_tokens", "tokens")},
    ),
    wording(
        None,
        "Tried to allocate",
        rf"out of memory\. Tried to allocate {n('size')} (?P<unit>[KMGT]iB)",
        numbers={"size": ("allocation_refused", "GiB")},
    ),
    wording(
        None,
        "total capacity of",
        rf"total capacity of {n('total')} (?P<unit>[MGT]iB)",
        numbers={"total": ("memory", "GiB")},
    ),
    wording(
        None,
        "is free",
        rf"of which {n('free')} (?P<unit>[KMGT]iB) is free",
        numbers={"free": ("memory_free", "GiB")},
    ),
    wording(
        None,
        "total capacity;",
        rf"{n('total')} (?P<unit>[MGT]iB) total capacity;",
        numbers={"total": ("memory", "GiB")},
    ),
    wording(
        None,
        "Insufficient Memory",
        r"(?P<out_of_memory>Insufficient Memory) \(\w{0,10}IOGPU",
    ),
)
