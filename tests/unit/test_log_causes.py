"""Causes: logs of runs with altered settings, of which the log says nothing.

Numbers are asked of the api under the altered settings, and lines made of them that
state the unaltered ones: the cause must be the alteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from logs_support import explain, llama_log, named, of, sglang_log, vllm_log
from unit_support import ask

from kvcore.log_text import CAUSES, lines

Json = dict[str, Any]

GIB: Final = "20.00"


def vllm(model: str, quantity: str, context: int = 32768, **asked: object) -> Json:
    """The comparison of a run of vLLM as asked, that prints nothing of it."""
    text = vllm_log(model, gib=GIB, context=context, asked=asked)
    return of(explain(text), quantity)


def needed(gib: float, **asked: object) -> Json:
    """vLLM's message of a request that does not fit."""
    text = (
        f"vllm serve {asked['model']} {asked.get('flags', '')}\n"
        "ValueError: To serve at least one request with the model's max seq len "
        f"({asked['context']}), {gib:.2f} GiB KV cache is needed"
    )
    return of(explain(text), "request_needed")


def per_request(**params: object) -> float:
    found: int = ask("estimate", engine="vllm", **params)["allocated"]["bytes_per_rank"]
    return found / 2**30


def fp8_where_bf16_was_given() -> Json:
    return vllm("qwen3-8b", "pool_tokens", kv_format="fp8")


def keys_in_q8_0() -> Json:
    text = llama_log("qwen3-8b", context=8192, asked={"type_k": "q8_0"})
    total = ask("pool", model="qwen3-8b", engine="llama_cpp", context=8192,
                pool_bytes=1, engine_options={"type_k": "q8_0"})  # fmt: skip
    size = total["pool"]["log_lines"][-1].partition("size = ")[2].split(" MiB")[0]
    start = "\n".join(text.splitlines()[:-2])
    return of(explain(f"{start}\nllama_new_context: KV self size = {size} MiB"),
              "kv_total_size")  # fmt: skip


def two_tensor_ranks() -> Json:
    text = vllm_log("qwen3-8b", gib=GIB, context=32768, asked={"tp": 2}, printed={})
    return of(explain(text), "pool_tokens")


def two_stages() -> Json:
    text = vllm_log("qwen3-8b", gib=GIB, context=32768, asked={"pp": 2}, printed={})
    return of(explain(text), "pool_tokens")


def a_sum_of_ranks() -> Json:
    size = 2 * per_request(model="qwen3-8b", tokens=40960, tp=2)
    return needed(size, model="qwen3-8b", context=40960, flags="-tp 2")


def no_hybrid_manager() -> Json:
    return vllm("gpt-oss-20b", "concurrency", context=131072,
                engine_options={"disable_hybrid_kv_cache_manager": True})  # fmt: skip


def a_smaller_window_pool() -> Json:
    text = sglang_log("gpt-oss-20b", asked={"max_total_tokens": 100_000,
                                            "swa_full_tokens_ratio": 0.2})  # fmt: skip
    return of(explain(text), "window_pools_size")


def three_slots() -> Json:
    text = llama_log("gemma-3-27b-it", context=32768, asked={"n_seq_max": 3})
    sizes = [x for x in text.splitlines() if "seqs), K" not in x]
    unsaid = "\n".join(sizes)
    return explain(unsaid)["comparisons"][-1]


def a_context_for_each_slot() -> Json:
    start = "\n".join(llama_log("qwen3-8b", context=4096, asked={}).splitlines()[:2])
    return of(explain(f"{start}\nKV self size = {4 * 576}.00 MiB"), "kv_total_size")


def blocks_of_512() -> Json:
    size = per_request(model="qwen3-8b", tokens=33000, block_tokens=512)
    return needed(size, model="qwen3-8b", context=33000)


def a_batch_of_16384() -> Json:
    return vllm("gpt-oss-20b", "pool_tokens", context=131072,
                engine_options={"max_num_batched_tokens": 16384})  # fmt: skip


def one_batch_in_flight() -> Json:
    return vllm("gpt-oss-20b", "pool_tokens", context=131072,
                engine_options={"async_scheduling": False})  # fmt: skip


def another_version() -> Json:
    text = vllm_log("qwen3.5-9b", gib=GIB, context=32768, version=None,
                    asked={"engine_version": "0.25.1"})  # fmt: skip
    return of(explain(text), "concurrency")


def the_tokens_line_of_0_19() -> Json:
    text = vllm_log("qwen3.5-9b", gib=GIB, context=32768, version=None,
                    asked={"engine_version": "0.19.1"})  # fmt: skip
    return of(explain(text), "pool_tokens")


def drafts() -> Json:
    return vllm("qwen3.6-27b", "pool_tokens",
                engine_options={"num_speculative_tokens": 3})  # fmt: skip


def states_kept_for_drafts() -> Json:
    text = llama_log("qwen3.5-9b", context=8192, asked={"n_rs_seq": 3})
    unsaid = text.replace(" 3 rs_seq", " 0 rs_seq")
    return of(explain(unsaid), "state_size")


def a_draft_of_one_layer() -> Json:
    shown = ask("show", model="qwen3-32b")["layers"][0]["specs"][0]
    bytes_ = 2 * shown["num_kv_heads"] * shown["head_dim"] * 2 * 300_001
    text = (
        "server_args=ServerArgs(model_path='Qwen/Qwen3-32B')\nKV Cache is allocated. "
        f"#tokens: 300000, K size: {bytes_ / 2 / 2**30:.2f} GB, V size: "
        f"{bytes_ / 2 / 2**30:.2f} GB"
    )
    return of(explain(text), "k_size")


def no_prefix_caching() -> Json:
    return vllm("qwen3.5-9b", "concurrency",
                engine_options={"enable_prefix_caching": False})  # fmt: skip


def states_in_16_bits() -> Json:
    return vllm("qwen3.5-9b", "pool_tokens", state_format="bf16")


def mla_off() -> Json:
    size = per_request(
        model={"model_type": "llama", "num_hidden_layers": 61, "hidden_size": 24576,
               "num_attention_heads": 128, "num_key_value_heads": 128, "head_dim": 192},
        tokens=8192,
    )  # fmt: skip
    return needed(size, model="deepseek-v3", context=8192)


def every_layer_counted() -> Json:
    start = "llama_model_loader: loaded meta data with 9 a from qwen3.5-9b.gguf\n"
    return of(
        explain(f"{start}llama_context: n_ctx = 8192\nKV self size = 1024.00 MiB"),
        "kv_total_size",
    )


def query_heads_counted() -> Json:
    return needed(4 * per_request(model="qwen3-8b", tokens=40960),
                  model="qwen3-8b", context=40960)  # fmt: skip


def an_a100() -> Json:
    return vllm("gpt-oss-20b", "pool_tokens", context=131072, gpu="a100-80-sxm")


def half_the_memory() -> Json:
    blocks = ask("pool", model="llama-3.1-8b", engine="tensorrt_llm", context=8192,
                 pool_bytes=30 << 30)["pool"]["blocks"]  # fmt: skip
    text = (
        "LlmArgs(model='llama-3.1-8b')\nMemory usage when calculating max tokens in "
        "paged kv cache: total: 79.10 GiB, available: 60.00 GiB\nNumber of tokens per "
        f"block: 32.\nNumber of blocks in KV cache primary pool: {blocks}"
    )
    return of(explain(text), "pool_blocks")


def gb_for_gib() -> Json:
    return vllm("qwen3-8b", "pool_tokens", pool_bytes=20 * 10**9)


def cells_rounded_to_32() -> Json:
    start = "llama_model_loader: loaded meta data with 9 a from qwen3-4b.gguf\n"
    return of(
        explain(f"{start}llama_context: n_ctx = 16348\nKV self size = 2299.50 MiB"),
        "kv_total_size",
    )


def a_poorer_rank() -> Json:
    text = vllm_log("qwen3-8b", gib=GIB, context=32768,
                    asked={"tp": 2, "pool_bytes": int(0.991 * 20 * 2**30)},
                    printed={"tensor_parallel_size": 2})  # fmt: skip
    return of(explain(text), "pool_tokens")


def heads_that_do_not_divide() -> Json:
    text = vllm_log("qwen3-8b", gib=GIB, context=32768, asked={},
                    printed={"tensor_parallel_size": 7})  # fmt: skip
    return of(explain(text.replace("size: ", "size: 1")), "pool_tokens")


def nonsense() -> Json:
    text = vllm_log("qwen3-8b", gib=GIB, context=32768, asked={})
    return of(explain(text.replace("cache size: ", "cache size: 7")), "pool_tokens")


EXPECTED: Final[dict[str, tuple[Callable[[], Json], Json]]] = {
    "kv_dtype": (fp8_where_bf16_was_given, {"format": "fp8"}),
    "kv_dtype_part": (keys_in_q8_0, {"option": "type_k", "format": "q8_0"}),
    "tp_value": (two_tensor_ranks, {"tp": 2}),
    "pp_value": (two_stages, {"pp": 2}),
    "all_ranks_together": (a_sum_of_ranks, {"ranks": 2}),
    "windows_at_full_length": (no_hybrid_manager, {}),
    "window_pool_share": (a_smaller_window_pool, {"swa_full_tokens_ratio": 0.2}),
    "slots": (three_slots, {"n_seq_max": 3, "kv_unified": False}),
    "context_per_slot": (a_context_for_each_slot, {"n_seq_max": 4}),
    "block_tokens": (blocks_of_512, {"tokens": 512}),
    "tokens_in_flight": (
        a_batch_of_16384, {"option": "max_num_batched_tokens", "tokens": 16384},
    ),
    "async_scheduling": (one_batch_in_flight, {"enabled": False}),
    "engine_version": (another_version, {"version": "0.25.1"}),
    "tokens_line_meaning": (the_tokens_line_of_0_19, {"version": "0.19.1"}),
    "draft_layers": (drafts, {"num_speculative_tokens": 3}),
    "draft_rollback": (states_kept_for_drafts, {"n_rs_seq": 3}),
    "draft_cache": (a_draft_of_one_layer, {"layers": 1}),
    "state_blocks": (no_prefix_caching, {"enable_prefix_caching": False}),
    "state_dtype": (states_in_16_bits, {"format": "bf16"}),
    "mla_disabled": (mla_off, {"values": "padded"}),
    "every_layer_full": (every_layer_counted, {"layers": 32}),
    "query_heads": (query_heads_counted, {"num_heads": 32}),
    "gpu_defaults": (an_a100, {"gpu": "a100-80-sxm"}),
    "memory_fraction": (half_the_memory, {"fraction": 0.5}),
    "gb_read_as_gib": (gb_for_gib, {"printed": "GiB", "meant": "GB"}),
    "context_padding": (cells_rounded_to_32, {"cells": 16352, "padded": 16384}),
    "poorest_rank": (a_poorer_rank, {"percent": 0.9}),
    "not_computed": (heads_that_do_not_divide, {}),
    "unexplained": (nonsense, {}),
}  # fmt: skip


@pytest.mark.parametrize("code", EXPECTED)
def test_the_alteration_is_the_cause(code: str) -> None:
    make, params = EXPECTED[code]
    found = make()
    assert not found["agrees"]
    (cause,) = (c for c in found["causes"] if c["code"] == code and not c["and"])
    assert params.items() <= cause["params"].items()


def test_every_cause_is_tested() -> None:
    assert set(EXPECTED) == set(CAUSES)


def test_two_alterations_are_found_together() -> None:
    text = vllm_log("qwen3.6-27b", gib=GIB, context=32768, version=None,
                    asked={"kv_format": "fp8", "engine_version": "0.25.1"})  # fmt: skip
    found = of(explain(text), "concurrency")
    assert "kv_dtype+engine_version" in named(found)


def test_what_the_log_states_is_not_the_cause() -> None:
    """Half the bytes are fp8 or two ranks; of one rank the log speaks."""
    found = fp8_where_bf16_was_given()
    assert "kv_dtype" in named(found)
    assert "tp_value" not in named(found)


def test_nothing_is_explained_that_agrees() -> None:
    found = vllm("qwen3-8b", "pool_tokens")
    assert found["agrees"]
    assert found["causes"] == []


def test_a_cause_of_all_numbers_comes_first() -> None:
    asked = {"engine_options": {"max_num_batched_tokens": 16384}}
    text = vllm_log("gpt-oss-20b", gib=GIB, context=131072, asked=asked)
    for found in explain(text)["comparisons"]:
        assert named(found)[0] == "tokens_in_flight"


@pytest.mark.parametrize("code", EXPECTED)
def test_the_terminal_has_words(code: str) -> None:
    make, _ = EXPECTED[code]
    answer = {
        "engine": "vllm", "engine_version": None, "model": None,
        "model_printed": None, "numbers": [], "comparisons": [make()],
    }  # fmt: skip
    head, verdict, *causes = lines(answer)
    assert "model unknown" in head
    assert verdict.startswith("differs")
    assert causes
    assert "{" not in "".join(causes)
