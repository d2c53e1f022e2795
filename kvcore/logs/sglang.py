"""The lines of SGLang; its GB is 2^30 bytes.

Source: sglang/srt/mem_cache/memory_pool.py, swa_memory_pool.py, managers/scheduler.py
and model_executor/model_runner.py from 0.4 to 0.5.23, and published logs.
"""

from __future__ import annotations

from typing import Final

from kvcore.logs.facts import Wording, n, wording

SGLANG: Final = "sglang"
GB: Final = "GiB"

_POOL: Final = (
    r"(?P<pool>(?:Full |SWA )?KV Cache) is allocated\. "
    r"(?:dtype: (?:torch\.)?(?P<stored_dtype>\w{1,30}), )?"
)

WORDINGS: Final[tuple[Wording, ...]] = (
    wording(SGLANG, "server_args=", r"server_args=(?:ServerArgs)?[({]", starts=True),
    wording(
        SGLANG, "launch_server", r"(?:sglang\.launch_server|sglang serve)", starts=True
    ),
    wording(
        SGLANG,
        "KV Cache is allocated",
        _POOL + rf"#tokens: {n('tokens')}, K size: {n('k')} GB, V size: {n('v')} GB",
        numbers={
            "tokens": ("allocated_tokens", "tokens"),
            "k": ("k_size", GB),
            "v": ("v_size", GB),
        },
        printed_units={"k": "GB", "v": "GB"},
    ),
    wording(
        SGLANG,
        "KV Cache is allocated",
        _POOL + rf"#tokens: {n('tokens')}, KV size: {n('kv')} GB",
        numbers={
            "tokens": ("allocated_tokens", "tokens"),
            "kv": ("kv_size", GB),
        },
        printed_units={"kv": "GB"},
    ),
    wording(
        SGLANG,
        "SWAKVPool mem usage",
        rf"SWAKVPool mem usage: {n('both')} GB"
        rf"(?:, swa size: {n('swa')}, full size: {n('full')})?",
        numbers={
            "both": ("window_pools_size", GB),
            "swa": ("window_tokens", "tokens"),
            "full": ("full_tokens", "tokens"),
        },
        printed_units={"both": "GB"},
    ),
    wording(
        SGLANG,
        "Mamba Cache is allocated",
        rf"Mamba Cache is allocated\.(?: max_mamba_cache_size: {n('slots')},)? "
        rf"conv_state size: {n('conv')} ?GB, ssm_state size: {n('ssm')} ?GB",
        numbers={
            "slots": ("state_slots", "slots"),
            "conv": ("conv_state_size", GB),
            "ssm": ("recurrent_state_size", GB),
        },
        printed_units={"conv": "GB", "ssm": "GB"},
    ),
    wording(
        SGLANG,
        "max_total_num_tokens=",
        rf"max_total_num_tokens={n('tokens')}(?:, chunked_prefill_size="
        r"(?P<chunked_prefill_size>\d{1,12}))?.{0,80}?"
        r"(?:max_running_requests=(?P<max_running_requests>\d{1,12}), )?"
        r"context_len=(?P<max_model_len>\d{1,15})",
        numbers={"tokens": ("pool_tokens", "tokens")},
    ),
    wording(
        SGLANG,
        "Load weight end",
        rf"Load weight end\..{{0,200}}?avail mem={n('free')} GB"
        rf"(?:, mem usage={n('weights')} GB)?",
        numbers={"free": ("memory_free", GB), "weights": ("weights", GB)},
        printed_units={"free": "GB", "weights": "GB"},
    ),
    wording(
        SGLANG,
        "Using KV cache dtype",
        r"Using KV cache dtype: (?:torch\.)?(?P<stored_dtype>\w{1,30})",
    ),
    wording(
        SGLANG,
        "bytes_per_full_token",
        rf"bytes_per_full_token={n('rate')}",
        numbers={"rate": ("bytes_per_token", "B")},
    ),
)
