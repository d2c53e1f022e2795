"""Settings as engines print them (`name=value`) and as they are given (`--name`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kvcore.logs.facts import Setting, value_of
from kvcore.logs.text import Line

NAMES: Final[Mapping[str, str]] = {
    "model": "model",
    "model_path": "model",
    "model_id": "model",
    "model_tag": "model",
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "tp": "tp",
    "num_shard": "tp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "decode_context_parallel_size": "dcp",
    "dcp_size": "dcp",
    "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "context_length": "max_model_len",
    "session_len": "max_model_len",
    "block_size": "block_tokens",
    "page_size": "block_tokens",
    "tokens_per_block": "block_tokens",
    "cache_block_seq_len": "block_tokens",
    "kv_cache_dtype": "kv_cache_dtype",
    "dtype": "dtype",
    "gpu_memory_utilization": "memory_fraction",
    "mem_fraction_static": "memory_fraction",
    "free_gpu_memory_fraction": "memory_fraction",
    "kv_cache_free_gpu_memory_fraction": "memory_fraction",
    "kv_cache_free_gpu_mem_fraction": "memory_fraction",
    "cache_max_entry_count": "memory_fraction",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "max_num_seqs": "max_num_seqs",
    "max_batch_size": "max_batch_size",
    "swap_space": "swap_space",
    "quant_policy": "quant_policy",
    "num_spec_tokens": "num_speculative_tokens",
    "ctx_size": "n_ctx",
    "c": "n_ctx",
    "parallel": "n_seq_max",
    "np": "n_seq_max",
    "ubatch_size": "n_ubatch",
    "ub": "n_ubatch",
    "cache_type_k": "type_k",
    "ctk": "type_k",
    "cache_type_v": "type_v",
    "ctv": "type_v",
    "kv_cache_type": "kv_cache_type",
    "m": "model",
    **{
        name: name
        for name in (
            "async_scheduling enable_prefix_caching mamba_cache_mode "
            "disable_hybrid_kv_cache_manager num_speculative_tokens "
            "num_gpu_blocks_override mamba_ssm_dtype swa_full_tokens_ratio "
            "disable_radix_cache enable_dp_attention max_total_tokens "
            "chunked_prefill_size max_mamba_cache_size max_running_requests "
            "attention_backend speculative_algorithm speculative_num_steps "
            "speculative_eagle_topk speculative_num_draft_tokens "
            "disable_overlap_schedule mamba_full_memory_ratio swa_full kv_unified"
        ).split()
    },
}
"""An engine's name for a setting -> the name it goes by here."""

MARKS: Final = (
    "ServerArgs(",
    "server_args=",
    "Namespace(",
    "default args",
    "with config: ",
    "vllm serve",
    "launch_server",
    "EngineConfig(",
    "KvCacheConfig(",
    "LlmArgs",
    "Args {",
    "llama-server",
    "llama-cli",
    "ik_llama",
    "runner",
    "--",
)
"""Lines that hold many settings have one of these in them."""

VALUE: Final = (
    r"""'[^']{0,500}'|"[^"]{0,500}"|Some\([^)]{0,100}\)|[^\s,(){}\[\]'"]{1,500}"""
)
_KNOWN: Final = "|".join(
    sorted((n for n in NAMES if len(n) > 3), key=len, reverse=True)
)
_STATED: Final = re.compile(
    r"""(?<![\w.-])['"]?(tp|dtype|""" + _KNOWN + r""")['"]?\s?[=:]\s?(""" + VALUE + ")"
)
_ASKED: Final = re.compile(
    r"(?<![\w-])--?([a-z][a-z0-9-]{0,40})(?:[ =]+(?!-)(" + VALUE + "))?"
)
_SERVED: Final = re.compile(r"vllm serve\s+([^\s-][^\s]{0,300})")
_SOME: Final = re.compile(r"Some\((.*)\)")
_SPECULATIVE: Final = re.compile(
    r"""num_speculative_tokens['"\\]{0,2}\s?[:=]\s?(\d{1,3})"""
)


def settings_in(line: Line) -> Iterator[Setting]:
    """The settings of one line that are known here, in its order."""
    text = line.text
    if not any(mark in text for mark in MARKS):
        return
    for name, value in _pairs(text):
        found = value_of(_SOME.sub(r"\1", value))
        if found is not None:
            yield Setting(name=name, value=found, line=line.number)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    served = _SERVED.search(text)
    if served:
        yield "model", served.group(1)
    for match in _STATED.finditer(text):
        yield NAMES[match.group(1)], match.group(2)
    for match in _ASKED.finditer(text):
        yield from _asked(match.group(1), match.group(2))
    for match in _SPECULATIVE.finditer(text):
        yield "num_speculative_tokens", match.group(1)


def _asked(flag: str, value: str | None) -> Iterator[tuple[str, str]]:
    """`--name value`; a flag alone is true, `--no-name` false."""
    name = flag.replace("-", "_")
    if name.startswith("no_") and name[3:] in NAMES:
        yield NAMES[name[3:]], "false"
    elif name in NAMES:
        yield NAMES[name], "true" if value is None else value
