"""Plans worked by hand: each figure derived from the config and the engine's rule.

Cache figures are exact: the pool is given (`pool_bytes`, an engine's own "available
KV cache memory"), so no estimate enters. G is 2**30.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvcore import api

G = 1 << 30
POOL = 40 * G


def plan(model: str, **params: object) -> dict[str, Any]:
    answer = api.call("plan", {"model": model, "gpu": "h100", **params})
    assert "error" not in answer, answer
    return answer


def vllm(model: str, **params: object) -> dict[str, Any]:
    return plan(model, engine="vllm", pool_bytes=POOL, **params)


def logged(answer: dict[str, Any]) -> tuple[int, int, int]:
    pool = answer["pool"]
    return pool["block_bytes"], pool["blocks"], pool["tokens"]


@pytest.mark.parametrize("tp", [8, 16])
def test_llama_70b_keeps_one_head_a_rank_on_8_and_on_16(tp: int) -> None:
    """8 KV heads: TP 16 has two copies of each, and saves nothing over TP 8."""
    answer = vllm("llama-3.1-70b", tp=tp, context=131072, concurrency=8)
    block = 80 * 1 * (128 + 128) * 2 * 16  # layers, head, K and V, bytes, tokens
    assert logged(answer) == (block, POOL // block, POOL // block * 16)
    assert answer["max_concurrency"] == 8.0
    # 8 x 8,192 blocks are all 65,536, and vLLM keeps one for itself.
    assert answer["max_requests"] == 7
    assert answer["verdict"] == "does_not_fit"
    assert answer["short_bytes"] == block
    copies = [w for w in answer["warnings"] if w["code"] == "kv_heads_replicated"]
    assert [w["params"]["copies"] for w in copies] == ([2] if tp == 16 else [])


def test_llama_70b_at_128k_on_one_a100() -> None:
    """Weights alone are over: the shortage is theirs and the whole cache's."""
    answer = api.call(
        "plan",
        {
            "model": "llama-3.1-70b",
            "gpu": "a100",
            "engine": "vllm",
            "context": 131072,
            "reserve_bytes": 1 << 30,
        },
    )
    weights = 70_553_706_496 * 2
    usable = answer["rank"]["usable_bytes"]
    block = 80 * 8 * 256 * 2 * 16
    cache = 8192 * block + block
    assert answer["verdict"] == "does_not_fit"
    assert answer["rank"]["weight_bytes"] == weights
    # 0.92 of what the CUDA runtime sees of an A100 80 GB (79.15 GiB), rounded up.
    assert usable == -(-round(79.15 * G) * 92 // 100)
    assert answer["short_bytes"] == weights + G - usable + cache


def test_qwen3_30b_on_tp_8_repeats_its_4_heads() -> None:
    answer = vllm("qwen3-30b-a3b", tp=8, context=32768)
    block = 48 * 1 * 256 * 2 * 16
    assert logged(answer) == (block, POOL // block, POOL // block * 16)
    assert answer["request"]["allocated_bytes"] == 2048 * block
    assert answer["allocated"]["items"]["replication"] == 2048 * block // 2


def test_qwen25_7b_on_tp_8_is_refused() -> None:
    answer = api.call("plan", {"model": "qwen2.5-7b-instruct", "gpu": "h100", "tp": 8})
    assert answer["error"]["code"] == "does_not_shard"
    assert answer["error"]["params"]["legal"] == [1, 2, 4, 7, 14, 28]


def test_deepseek_v3_keeps_its_latent_on_every_tensor_rank() -> None:
    """TP 8 holds one latent eight times; DP 8 holds eight different ones."""
    block = 61 * (512 + 64) * 2 * 16
    tensor = vllm("deepseek-v3", tp=8, context=163840)
    assert logged(tensor) == (block, 38199, 611184)
    assert tensor["max_requests"] == 3  # 38,198 // 10,240 blocks
    replicas = vllm("deepseek-v3", dp=8, context=163840, concurrency=8)
    assert replicas["max_requests"] == 24
    assert replicas["max_concurrency"] == 8 * tensor["max_concurrency"]


def test_v32_in_fp8_has_records_of_656_and_indexer_keys_of_132() -> None:
    answer = vllm("deepseek-v3.2", tp=8, kv_format="fp8", context=163840)
    block = 61 * (656 + 132) * 64
    assert logged(answer)[:2] == (block, POOL // block)
    assert answer["request"]["allocated_bytes"] == 2560 * block


def test_v4_flash_at_a_million_tokens() -> None:
    """One block is the widest group's: 22 windows and 62 rows of padded pages.

    A request of 1,000,000 tokens takes ceil(1e6 / 256) blocks of rows and, whatever
    its length, 259 + 259 of window and 4,099 + 2,065 of compressor state.
    """
    answer = vllm("deepseek-v4-flash", tp=4, gpu="h200", context=1_000_000)
    block = 21 * 37_440 + 21 * 8_640 + 20 * 1_728
    assert answer["pool"]["block_bytes"] == block == 1_002_240
    blocks = 259 + 259 + 3907 + 4099 + 2065
    assert answer["request"]["blocks"] == blocks
    assert answer["request"]["allocated_bytes"] == blocks * block
    assert answer["max_requests"] == (POOL // block - 1) // blocks


def test_gemma_3_27b_pads_eight_layers() -> None:
    """52 windowed and 10 full layers in 7 groups of 10; windows keep 1,089 blocks."""
    answer = vllm("gemma-3-27b-it", context=131072)
    block = 10 * 16 * 256 * 2 * 16
    window = -(-(1023 + 16384) // 16) + 1
    assert window == 1089
    blocks = 6 * window + 8192
    assert logged(answer) == (block, 32768, int(32768 / blocks * 131072))
    assert answer["request"]["blocks"] == blocks


def test_gpt_oss_120b_keeps_windows_for_tokens_in_flight() -> None:
    answer = vllm("gpt-oss-120b", context=131072)
    block = 18 * 8 * 128 * 2 * 16
    blocks = 8192 + -(-(127 + 16384) // 16) + 1
    assert logged(answer) == (block, 72817, int(72817 / blocks * 131072))
    assert answer["max_requests"] == 72816 // blocks


def test_llama_4_scout_keeps_chunks_for_tokens_in_flight() -> None:
    """36 chunked layers in three groups beside 12 full ones; no block more."""
    answer = vllm("llama-4-scout-17b-16e-instruct", tp=8, context=1 << 20)
    block = 12 * 1 * 256 * 2 * 16
    blocks = 3 * ((8192 + 16384) // 16) + (1 << 20) // 16
    assert logged(answer) == (block, 436906, 6531266)
    assert answer["request"]["blocks"] == blocks


def test_qwen3_next_raises_its_block_until_a_page_holds_a_state() -> None:
    """State of one layer on TP 4: 8 heads x 128 x 128 in 16 bits, 3 conv columns.

    (8 * 128 * 128 + 3 * 2048) * 2 = 274,432 bytes in pages of 1,024 a token: 268
    tokens, raised to 320 by the kernels' and the checkpoint's alignment of 64.
    """
    answer = vllm("qwen3-next-80b-a3b-instruct", tp=4, context=262144)
    state = (8 * 128 * 128 + 3 * (2 * 4 * 128 + 8 * 128)) * 2
    assert state == 274_432
    page = 320 * 1 * 512 * 2
    assert page >= state > 256 * 1024
    block = 12 * page
    assert logged(answer) == (block, 10922, 3453723)
    assert answer["request"]["blocks"] == 3 * 3 + -(-262144 // 320)


def test_nemotron_h_56b_pads_its_state_groups() -> None:
    """54 Mamba-2 layers in six groups of ten beside ten attention layers."""
    answer = vllm("nemotron-h-56b-base-8k", tp=8, context=8192)
    page = 4128 * 1 * 256 * 2
    assert logged(answer)[:2] == (10 * page, POOL // (10 * page))
    assert answer["request"]["blocks"] == 6 * 3 + 2
    assert answer["allocated"]["items"]["padding_layers"] == 6 * 3 * page


def test_a_q4_k_m_8b_on_a_3090_with_q8_0_keys_and_values() -> None:
    """131,072 cells x 32 layers x 2 x 1,024 elements in 34 bytes per 32."""
    answer = plan(
        "llama-3.1-8b",
        gpu="rtx-3090",
        engine="llama_cpp",
        kv_format="q8_0",
        weight_format="q4_k_m",
        context=131072,
    )
    cache = 131072 * 32 * 2 * 1024 // 32 * 34
    assert answer["request"]["allocated_bytes"] == cache
    # Whole-file average of 4.8944 bits over 8,030,261,248 parameters, part by part;
    # the token table (128,256 x 4,096) stays in host memory.
    table = 128_256 * 4096
    held = 8_030_261_248 - table
    assert abs(answer["rank"]["weight_bytes"] - held * 4.8944 / 8) < 16
    assert abs(answer["weights"]["host_bytes"] - table * 4.8944 / 8) < 16
    assert answer["verdict"] == "fits"
    assert answer["rank"]["memory_bytes"] == round(23.69 * G)


def test_what_llama_cpp_prints_of_a_q4_0_8b() -> None:
    """Its buffers for Llama 3 8B: 281.81 MiB on the CPU, 4,155.99 MiB on CUDA0."""
    host = 128_256 * 4096 * 18 // 32  # q4_0: 18 bytes per 32
    cuda = round(4155.99 * 2**20)
    parts = {"embeddings": host, "output_head": 430_940_160}
    parts["dense_mlp"] = cuda - parts["output_head"]
    weights = {
        "total_bytes": host + cuda,
        "parts": {name: {"bytes": n, "elements": n} for name, n in parts.items()},
    }
    answer = plan(
        "meta-llama-3-8b-instruct", gpu="rtx-3090", engine="llama_cpp", weights=weights
    )
    assert answer["weights"]["host_bytes"] == host
    assert round(host / 2**20, 2) == 281.81
    assert answer["rank"]["weight_bytes"] == cuda
    both = plan(
        "meta-llama-3-8b-instruct",
        gpu="rtx-3090",
        gpus=2,
        engine="llama_cpp",
        weights=weights,
    )
    assert sum(rank["weight_bytes"] for rank in both["ranks"]) == cuda


def test_a_tied_table_is_on_the_last_device_too() -> None:
    """Gemma 3 reads its head from the token table: host memory has it besides."""
    answer = plan("gemma-3-4b-it", gpu="rtx-3090", engine="llama_cpp")
    assert answer["weights"]["host_bytes"] == 0
    assert answer["rank"]["weight_bytes"] == answer["weights"]["total_bytes"]
    stages = plan("gemma-3-4b-it", gpu="rtx-3090", gpus=2, engine="llama_cpp")["ranks"]
    assert stages[1]["weight_bytes"] > stages[0]["weight_bytes"]


def test_per_layer_tables_stay_in_host_memory() -> None:
    """Gemma 3n E2B: 262,144 tokens x 30 layers x 256, in 16 bits."""
    answer = plan(
        "gemma-3n-e2b-it", gpu="rtx-3090", engine="llama_cpp", weight_format="bf16"
    )
    assert answer["weights"]["host_bytes"] == 262_144 * 30 * 256 * 2


def test_an_m4_max_gives_its_gpu_what_macos_logged() -> None:
    answer = plan("llama-3.1-8b", gpu="m4-max-128gb", engine="mlx", context=131072)
    assert answer["rank"]["memory_bytes"] == 115_448_720_916
    # 131,072 tokens are a multiple of MLX's step of 256.
    assert answer["request"]["allocated_bytes"] == 131072 * 131072
    assert answer["verdict"] == "fits"


@pytest.mark.parametrize(
    ("draft", "layers", "heads", "width", "percent"),
    [("llama-3.1-8b", 32, 8, 128, 40), ("llama-3.2-1b", 16, 8, 64, 10)],
)
def test_a_draft_model_keeps_its_own_cache(
    draft: str, layers: int, heads: int, width: int, percent: int
) -> None:
    """Beside Llama 3.1 70B an 8B adds 40% of its cache, a 1B 10%; both are cut by 8."""
    alone = vllm("llama-3.1-70b", tp=8, context=131072)
    beside = vllm("llama-3.1-70b", tp=8, context=131072, draft_model=draft)
    extra = layers * heads * 2 * width * 2 * 131072 // 8
    cache = alone["request"]["allocated_bytes"]
    assert beside["request"]["allocated_bytes"] == cache + extra
    assert extra * 100 == cache * percent


def test_a_draft_model_adds_its_weights() -> None:
    alone = plan("llama-3.1-70b", gpus=8, engine="vllm")
    beside = plan("llama-3.1-70b", gpus=8, engine="vllm", draft_model="llama-3.1-8b")
    more = beside["weights"]["total_bytes"] - alone["weights"]["total_bytes"]
    assert more == 8_030_261_248 * 2


def test_a_shared_prefix_is_kept_once() -> None:
    """32 KiB x 4 of cache a token: the prefix once, the rest of each of 60 requests."""
    answer = vllm("llama-3.1-8b", context=9984, concurrency=60, shared_prefix=4992)
    block = 131072 * 16
    needed = (312 + 60 * (624 - 312) + 1) * block  # and the null block
    assert answer["rank"]["used_bytes"] == needed
    assert needed <= POOL < 60 * 624 * block
    assert answer["verdict"] == "tight"
    assert answer["short_bytes"] == 0
    assert answer["max_requests"] >= 60


@pytest.mark.parametrize(
    ("model", "engine", "tp", "block"),
    [
        ("qwen3-next-80b-a3b-instruct", "vllm", 4, 320),
        ("llama-3.1-8b", "tensorrt_llm", 1, 32),
        ("llama-3.1-8b", "none", 1, 1),
    ],
)
def test_a_prefix_is_shared_by_whole_blocks(
    model: str, engine: str, tp: int, block: int
) -> None:
    asked: dict[str, Any] = {"engine": engine, "tp": tp, "context": 9999}
    asked["concurrency"] = 3

    def used(shared: int) -> int:
        rank = plan(model, **asked, shared_prefix=shared)["rank"]
        return int(rank["used_bytes"])

    whole = 5008 // block * block
    assert used(5008) == used(whole)
    assert used(whole) < used(whole - 1)
    one = plan(model, **{**asked, "context": whole})["allocated"]["components"]["kv"]
    assert used(0) - used(5008) == 2 * one // 3


@pytest.mark.parametrize(
    ("engine", "options"),
    [("vllm", {"enable_prefix_caching": False}), ("transformers", {})],
)
def test_a_prefix_is_not_shared_by_who_keeps_it_per_request(
    engine: str, options: dict[str, bool]
) -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h100", "shared_prefix": 4992}
    answer = api.call("plan", {**asked, "engine": engine, "engine_options": options})
    assert answer["error"]["params"]["argument"] == "shared_prefix"


def test_a_rank_keeps_whole_heads_where_they_do_not_divide() -> None:
    """4 KV heads over 3 ranks: one rank has two of them."""
    answer = plan("qwen3.5-27b", gpus=3, context=1000)
    assert answer["allocated"]["components"]["kv"] == 16 * 2 * 2 * 256 * 2 * 1000


def test_tokens_are_not_cut_without_an_engine() -> None:
    asked = {"model": "deepseek-v3", "gpu": "h200", "gpus": 8, "dcp": 8}
    answer = api.call("plan", asked)
    assert answer["error"]["code"] == "unsupported_option"


@pytest.mark.parametrize("engine", ["none", "transformers"])
def test_a_fraction_counts_where_the_engine_has_no_rule(engine: str) -> None:
    half = plan("llama-3.1-8b", engine=engine, memory_fraction=0.5)["rank"]
    assert half["usable_bytes"] == half["memory_bytes"] // 2
    kept = half["weight_bytes"] + half["reserve_bytes"]
    assert half["pool_bytes"] == half["usable_bytes"] - kept


def test_nothing_is_short_where_the_rule_leaves_a_pool() -> None:
    """SGLang's fraction looks at weights alone: a reserve above the rest is no lack."""
    weights = 50 * G
    answer = plan(
        "llama-3.1-8b", engine="sglang", weight_bytes=weights, reserve_bytes=30 * G
    )
    rank = answer["rank"]
    assert rank["pool_bytes"] > rank["used_bytes"]
    assert rank["weight_bytes"] + rank["reserve_bytes"] > rank["usable_bytes"]
    assert (answer["verdict"], answer["short_bytes"]) == ("fits", 0)


@pytest.mark.parametrize(
    ("gpu", "options", "in_flight"),
    [
        # Two steps of 8,192 tokens at once, of 2,048, and of as many as were asked for.
        ("h100", {}, 2 * 8192),
        ("a100", {}, 2 * 2048),
        ("h100", {"max_num_batched_tokens": 1024}, 2 * 1024),
        ("h100", {"max_num_batched_tokens": 1024, "async_scheduling": False}, 1024),
    ],
)
def test_vllm_charges_windows_for_all_tokens_in_flight(
    gpu: str, options: dict[str, object], in_flight: int
) -> None:
    """Gemma 3 27B at 8K in 20 GB: 18 requests have room, vLLM admits 4 on an H100.

    52 windowed layers are six groups of up to 10, beside 10 full ones. A window takes
    min(1,023 + tokens in flight, 8,192) tokens and one block more of its group.
    """
    asked = {"pool_bytes": 20 * 10**9, "context": 8192, "gpu": gpu}
    block = 10 * 2 * 16 * 128 * 2 * 16
    window = -(-min(1023 + in_flight, 8192) // 16) + 1
    request = (512 + 6 * window) * block
    answer = plan("gemma-3-27b-it", engine="vllm", engine_options=options, **asked)
    assert answer["pool"]["block_bytes"] == block
    assert answer["request"]["allocated_bytes"] == request
    most = (20 * 10**9 // block - 1) * block // request  # one block is vLLM's own
    assert answer["max_requests"] == most
    assert answer["allocated"]["items"]["window_reserve"] > 0
    if in_flight == 2 * 8192:
        assert most == 4
        assert plan("gemma-3-27b-it", **asked)["max_requests"] == 18
        others = {"mlx": 18, "transformers": 18, "llama_cpp": 15, "sglang": 4}
        for engine, expected in others.items():
            # SGLang keeps windows of Gemma 3 at full length.
            there = plan("gemma-3-27b-it", engine=engine, **asked)
            assert there["max_requests"] == expected
