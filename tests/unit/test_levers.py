"""Levers: every row is a plan of the changed scenario; worked values by hand.

Cache figures are exact where the pool is given. G is 2**30.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import ask, refusal

from kvcore import api, catalog
from kvcore.__main__ import main
from kvcore.levers import LEVERS
from kvcore.plan_text import REASONS

G = 1 << 30
POOL = 40 * G
BLOCK = 80 * 1 * 256 * 2 * 16
"""Llama 3.1 70B on TP 8: 80 layers, one head of K and V, 16 bits, 16 tokens."""

SEVENTY: dict[str, Any] = {
    "model": "llama-3.1-70b",
    "gpu": "h100",
    "engine": "vllm",
    "tp": 8,
    "pool_bytes": POOL,
    "context": 131072,
    "concurrency": 8,
}


def levers(**params: Any) -> dict[str, Any]:
    answer = ask("levers", **params)
    rows = [*answer["levers"], *answer["dropped"]]
    return {**answer, "rows": {row["lever"]: row for row in rows}}


def row(lever: str, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = levers(**params)["rows"][lever]
    return found


def replanned(params: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    asked = {k: v for k, v in {**params, **change}.items() if v is not None}
    for own in ("traffic_context", "traffic_mean", "common_prefix"):
        asked.pop(own, None)
    return ask("plan", **asked)


def check_rows(params: dict[str, Any]) -> None:
    answer = ask("levers", **params)
    plan_params = {
        k: v
        for k, v in params.items()
        if k not in ("traffic_context", "traffic_mean", "common_prefix")
    }
    codes = {warning["code"] for warning in answer["warnings"]}
    if "fewer_requests_planned" in codes:
        assert answer["plan"]["concurrency"] < params["concurrency"]
        plan_params["concurrency"] = answer["plan"]["concurrency"]
    assert answer["plan"] == ask("plan", **plan_params)
    seen = sorted(answer["levers"] + answer["dropped"], key=lambda r: r["order"])
    assert [r["lever"] for r in seen] == [lever.code for lever in LEVERS]
    for r in seen:
        if r["verdict"] is None:
            assert r["reason"] in REASONS
            continue
        plan = replanned(params, r["change"])
        rank = plan["rank"]
        assert {
            "verdict": plan["verdict"],
            "short_bytes": plan["short_bytes"],
            "weight_bytes": rank["weight_bytes"],
            "reserve_bytes": rank["reserve_bytes"],
            "pool_bytes": rank["pool_bytes"],
            "used_bytes": rank["used_bytes"],
            "request_bytes": plan["request"]["allocated_bytes"],
            "max_requests": plan["max_requests"],
            "max_context": plan["max_context"],
        }.items() <= r.items()
        now = answer["plan"]["rank"]
        parts = ("weight_bytes", "reserve_bytes", "used_bytes")
        assert r["saved_bytes"] == sum(now[p] - rank[p] for p in parts)
        assert r["gains"]["max_requests"] == (
            plan["max_requests"] - answer["plan"]["max_requests"]
        )
        if r["applicable"]:
            assert gains(answer["plan"], plan)


VERDICTS = ("does_not_fit", "tight", "fits")


def gains(now: dict[str, Any], then: dict[str, Any]) -> bool:
    """Something is better, and neither the verdict nor the requests are worse."""
    better = VERDICTS.index(then["verdict"]) - VERDICTS.index(now["verdict"])
    parts = ("weight_bytes", "reserve_bytes", "used_bytes")
    return better > 0 or (
        better == 0
        and then["max_requests"] >= now["max_requests"]
        and (
            then["max_requests"] > now["max_requests"]
            or then["max_context"] > now["max_context"]
            or then["short_bytes"] < now["short_bytes"]
            or sum(then["rank"][p] - now["rank"][p] for p in parts) < 0
        )
    )


MODELS = (
    "llama-3.1-8b",
    "qwen3-30b-a3b",
    "gemma-3-27b-it",
    "gpt-oss-20b",
    "deepseek-v3",
    "deepseek-v4-flash",
    "qwen3-next-80b-a3b-instruct",
    "lfm2-1.2b",
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    model=st.sampled_from(MODELS),
    engine=st.sampled_from(("none", "vllm", "sglang", "llama_cpp", "mlx")),
    gpu=st.sampled_from(("h100", "a100", "rtx-4090", "b200", "m4-max-128gb")),
    gpus=st.sampled_from((1, 2, 4, 8)),
    context=st.integers(64, 70_000),
    concurrency=st.integers(1, 300),
    extras=st.fixed_dictionaries(
        {},
        optional={
            "traffic_context": st.integers(1, 20_000),
            "traffic_mean": st.integers(1, 20_000),
            "common_prefix": st.integers(1, 20_000),
            "kv_format": st.sampled_from(("fp8", "auto")),
            "draft": st.just(True),
            "weight_format": st.sampled_from(("fp8", "int4_g128")),
            "pool_bytes": st.integers(1 << 28, 1 << 36),
        },
    ),
)
def test_applying_a_lever_gives_the_numbers_of_its_row(
    model: str,
    engine: str,
    gpu: str,
    gpus: int,
    context: int,
    concurrency: int,
    extras: dict[str, Any],
) -> None:
    params = {
        "model": model,
        "engine": engine,
        "gpu": gpu,
        "gpus": gpus,
        "context": context,
        "concurrency": concurrency,
        **extras,
    }
    own = ("traffic_context", "traffic_mean", "common_prefix")
    plan = api.call("plan", {k: v for k, v in params.items() if k not in own})
    answer = api.call("levers", params)
    if "error" in answer:
        assert answer["error"] == plan["error"]
        return
    assert "error" not in plan or "fewer_requests_planned" in {
        warning["code"] for warning in answer["warnings"]
    }
    check_rows(params)


@pytest.mark.parametrize(
    "params",
    [
        {**SEVENTY, "draft_model": "llama-3.1-8b", "traffic_mean": 4000},
        {"model": "llama-3.1-8b", "gpu": "rtx-4090", "engine": "tensorrt_llm"},
        {"model": "llama-3.1-8b", "gpu": "h100", "engine": "transformers"},
        {"model": "gemma-3-27b-it", "gpu": "rtx-3090", "engine": "ollama",
         "engine_options": {"kv_cache_type": "f16"}},
        {"model": "deepseek-v3", "gpu": "h200", "gpus": 8, "engine": "sglang",
         "draft": True, "concurrency": 40},
    ],
    ids=lambda params: params.get("engine"),
)  # fmt: skip
def test_rows_are_plans_in_the_other_engines_too(params: dict[str, Any]) -> None:
    check_rows(params)


# One lever at a time ----------------------------------------------------------


def test_the_order_is_the_decision_tree() -> None:
    """Paging, 8 bits, heads, windows and shorter contexts, 4 bits, fewer users."""
    order = [lever.code for lever in LEVERS]
    tree = ["paging", "kv_8bit", "kv_heads", "windows", "shorter_context", "kv_4bit"]
    places = [order.index(code) for code in [*tree, "fewer_requests"]]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == len(order) - 1


def test_paging_holds_what_traffic_uses() -> None:
    """131,072 tokens reserved for each of 8 requests that use 4,000: 250 blocks."""
    found = row("paging", **SEVENTY, traffic_mean=4000)
    reserved, held = (8 * 8192 + 1) * BLOCK, (8 * 250 + 1) * BLOCK
    assert found["reason"] == "already_on"
    assert found["figures"] == {
        "reserved_bytes": reserved,
        "reserved_requests": 7,
        "held_bytes": held,
        "held_requests": (POOL // BLOCK - 1) // 250,
        "percent": 100 * (reserved - held) / reserved,
    }


def test_paging_is_another_engine_where_this_one_reserves() -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h100", "engine": "llama_cpp"}
    found = row("paging", **asked, context=32768, concurrency=4, traffic_mean=1600)
    assert found["change"] == {"engine": "vllm", "gpus": 1}
    token = 32 * 2 * 8 * 128 * 2
    assert found["figures"]["reserved_bytes"] == 4 * 32768 * token
    assert found["figures"]["held_bytes"] == (4 * 100 + 1) * 16 * token


def test_a_mac_has_no_paged_engine() -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "m4-max-128gb"}
    assert row("paging", **asked, engine="mlx")["reason"] == "no_paged_engine"
    assert row("paging", **asked)["reason"] == "no_engine"


def test_a_common_prefix_is_kept_once() -> None:
    """2,000 tokens are 125 blocks, which 7 of 8 requests no longer keep."""
    found = row("shared_prefix", **SEVENTY, common_prefix=2000)
    assert found["change"] == {"shared_prefix": 2000}
    assert found["saved_bytes"] == 7 * 125 * BLOCK
    assert row("shared_prefix", **SEVENTY)["reason"] == "prefix_not_stated"
    on = row("shared_prefix", **SEVENTY, shared_prefix=2000)
    assert on["reason"] == "already_on"
    assert on["figures"] == {"shared_bytes": 7 * 125 * BLOCK}


def test_a_common_prefix_needs_prefix_caching() -> None:
    options = {"enable_prefix_caching": False, "max_num_seqs": 64}
    found = row("shared_prefix", **SEVENTY, common_prefix=2000, engine_options=options)
    assert found["change"]["engine_options"] == {"max_num_seqs": 64}
    assert found["saved_bytes"] == 7 * 125 * BLOCK


def test_fp8_halves_a_plain_cache() -> None:
    found = row("kv_8bit", **SEVENTY)
    assert found["change"] == {"kv_format": "fp8"}
    assert found["saved_bytes"] == (8 * 8192 + 1) * BLOCK // 2
    assert found["gains"]["request_ratio"] == 2.0
    assert found["max_requests"] == (2 * (POOL // BLOCK) - 1) // 8192
    assert found["risk"] == "accuracy_low"


@pytest.mark.parametrize("context", [1024, 32768])
def test_fp8_hardly_helps_a_hybrid(context: int) -> None:
    """Qwen3.5 27B: 16 of 64 layers keep 65,536 bytes a token; states keep theirs."""
    asked = {"model": "qwen3.5-27b", "gpu": "h100", "context": context}
    parts = ask("estimate", model="qwen3.5-27b", tokens=context)["components"]
    assert parts["kv"] == 65536 * context
    found = row("kv_8bit", **asked)
    whole = parts["kv"] + parts["state"]
    half = parts["kv"] // 2 + parts["state"]
    assert found["gains"]["request_ratio"] == whole / half
    assert found["saved_bytes"] == parts["kv"] // 2


def test_formats_are_those_of_engine_gpu_and_architecture() -> None:
    """No FP8 units in an A100; no 4-bit MLA in vLLM; NVFP4 in TensorRT-LLM is
    Blackwell's; what a format is called is the engine's own matter."""
    asked = {"model": "llama-3.1-8b", "gpu": "a100", "engine": "vllm"}
    assert row("kv_8bit", **asked)["change"] == {"kv_format": "int8_per_token_head"}
    tensorrt = {**asked, "engine": "tensorrt_llm"}
    refused = row("kv_8bit", **tensorrt)
    assert (refused["applicable"], refused["reason"]) == (False, "no_native_arithmetic")
    assert refused["verdict"] == "fits"
    hopper = row("kv_4bit", **{**tensorrt, "gpu": "h100"})
    assert hopper["reason"] == "format_not_supported"
    assert row("kv_4bit", **{**tensorrt, "gpu": "b200"})["applicable"]
    latent = row("kv_4bit", model="deepseek-v3", gpu="h200", gpus=8, engine="vllm")
    assert latent["reason"] == "format_not_supported"
    assert latent["error"]["code"] == "unsupported_format"
    ggml = {"model": "llama-3.1-8b", "gpu": "rtx-3090", "engine": "llama_cpp"}
    assert row("kv_4bit", **ggml)["change"] == {"kv_format": "q4_0"}


def test_a_format_said_as_the_engines_option_gives_way() -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h100", "engine": "sglang"}
    options = {"kv_cache_dtype": "bf16", "page_size": 1}
    found = row("kv_8bit", **asked, engine_options=options)
    assert found["change"]["engine_options"] == {"page_size": 1}
    assert found["applicable"]
    eight = row("kv_8bit", **asked, engine_options={"kv_cache_dtype": "fp8_e4m3"})
    assert eight["reason"] == "already_on"


def test_heads_are_compared_with_all_and_with_one() -> None:
    """80 layers x 2 x 128 x 2 bytes = 40,960 a head: 64 of them, 8, 1."""
    figures = row("kv_heads", **SEVENTY)["figures"]
    assert figures == {
        "mha_bytes_per_token": 64 * 40960,
        "bytes_per_token": 8 * 40960,
        "mqa_bytes_per_token": 40960,
    }
    latent = row("kv_heads", model="deepseek-v3", gpu="h200", gpus=8)["figures"]
    assert latent["bytes_per_token"] == 61 * 576 * 2
    assert latent["mha_bytes_per_token"] == 61 * 128 * (192 + 128) * 2


def test_windows_save_what_full_layers_would_keep() -> None:
    """Gemma 3 27B: 52 of 62 layers see 1,024 tokens; 16 heads of 128."""
    found = row("windows", model="gemma-3-27b-it", gpu="h100", context=32768)
    token = 2 * 16 * 128 * 2
    assert found["figures"] == {
        "whole_bytes": 62 * token * 32768,
        "windowed_bytes": token * (10 * 32768 + 52 * 1024),
    }
    assert row("windows", **SEVENTY)["reason"] == "no_windows"


def test_context_comes_down_to_traffic() -> None:
    found = row("traffic_context", **SEVENTY, traffic_context=16384)
    assert found["saved_bytes"] == 8 * (8192 - 1024) * BLOCK
    assert found["max_requests"] == (POOL // BLOCK - 1) // 1024
    more = row("traffic_context", **SEVENTY, traffic_context=200_000)
    assert more["reason"] == "already_on"


def test_the_shorter_context_is_the_longest_that_fits() -> None:
    found = row("shorter_context", **SEVENTY)
    longest = (POOL // BLOCK - 1) // 8 * 16
    assert found["change"] == {"context": longest}
    assert found["verdict"] == "tight"
    fitting = row("shorter_context", **{**SEVENTY, "concurrency": 1})
    assert fitting["change"] == {"context": 65536}


def test_fewer_requests_is_the_last_resort() -> None:
    found = row("fewer_requests", **SEVENTY)
    assert found["change"] == {"concurrency": 7}
    assert found["verdict"] == "fits"
    assert row("fewer_requests", **{**SEVENTY, "concurrency": 1})["reason"] == (
        "already_fits"
    )
    none = row("fewer_requests", **{**SEVENTY, "pool_bytes": G})
    assert none["reason"] == "nothing_fits"


LATENT: dict[str, Any] = {
    "model": "deepseek-v3",
    "gpu": "h200",
    "engine": "vllm",
    "tp": 8,
    "pool_bytes": POOL,
    "context": 131072,
    "concurrency": 8,
}
LATENT_BLOCK = 61 * 576 * 2 * 16


def test_latents_are_dealt_out_instead_of_repeated() -> None:
    """8 ranks keep all 8 requests; by DP each keeps one, by DCP an eighth of all."""
    rows = levers(**LATENT)["rows"]
    data, context = rows["data_parallel"], rows["context_parallel"]
    assert data["change"] == {"gpus": 8, "tp": 1, "pp": 1, "dp": 8}
    assert data["used_bytes"] == (8192 + 1) * LATENT_BLOCK
    assert context["change"] == {"dcp": 8}
    assert context["used_bytes"] == (8 * 1024 + 1) * LATENT_BLOCK
    assert rows["pipeline"]["change"]["pp"] > 1


def test_sglang_shares_attention_by_an_option() -> None:
    found = row("data_parallel", **{**LATENT, "engine": "sglang"})
    assert found["change"] == {"engine_options": {"enable_dp_attention": True}}
    assert found["applicable"]


def test_groups_of_attention_can_be_stages_as_well() -> None:
    """4 groups of 2 ranks repeat a latent twice: as 2 stages of 4 ranks they do not."""
    options = {"enable_dp_attention": True}
    asked = {**LATENT, "engine": "sglang", "dp": 4, "engine_options": options}
    found = row("pipeline", **asked)
    assert found["change"] == {"gpus": 8, "tp": 4, "pp": 2, "dp": 4}
    assert found["applicable"]


def test_heads_that_divide_are_not_repeated() -> None:
    for lever in ("data_parallel", "context_parallel", "pipeline"):
        assert row(lever, **SEVENTY)["reason"] == "nothing_replicated"
    assert row("pipeline", **{**SEVENTY, "tp": 16})["applicable"]


@pytest.mark.parametrize(
    ("model", "gpu", "engine", "context", "concurrency", "fewest"),
    [
        ("llama-3.1-70b", "h100", "vllm", 32768, 1, None),
        ("llama-3.1-70b", "h100", "vllm", 131072, 4, 5),
        ("llama-3.1-70b", "rtx-4090", "llama_cpp", 8192, 4, 7),
        ("deepseek-v3", "h100", "vllm", 32768, 16, 11),
        ("qwen3-235b-a22b", "h200", "sglang", 32768, 16, 5),
    ],
)
def test_more_gpus_are_as_few_as_hold_it(
    model: str,
    gpu: str,
    engine: str,
    context: int,
    concurrency: int,
    fewest: int | None,
) -> None:
    asked = {"model": model, "gpu": gpu, "engine": engine, "context": context}
    asked |= {"concurrency": concurrency}
    planned = ask("plan", **asked)
    assert planned["verdict"] == "does_not_fit"
    found = row("more_gpus", **asked)
    assert found["change"]["gpus"] == found["figures"]["min_gpus"]
    assert (
        found["change"]["gpus"]
        == planned["min_gpus"]
        == (fewest or planned["min_gpus"])
    )
    assert found["verdict"] != "does_not_fit"
    assert found["applicable"]


def test_more_gpus_do_not_change_a_pool_that_is_given() -> None:
    assert row("more_gpus", **SEVENTY)["reason"] == "pool_is_given"


def test_enough_gpus_cut_badly_are_still_doubled() -> None:
    """Eight replicas of one GPU each hold nothing, though two GPUs would do."""
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "gpus": 8, "dp": 8, "tp": 1}
    asked |= {"engine": "vllm", "context": 8192}
    planned = ask("plan", **asked)
    assert (planned["verdict"], planned["min_gpus"]) == ("does_not_fit", 2)
    found = row("more_gpus", **asked)
    assert (found["change"]["gpus"], found["verdict"]) == (16, "fits")


def test_more_gpus_are_laid_out_for_the_most_where_all_fits() -> None:
    """DeepSeek V3 on 8 H200s: of 16, DCP and TP aside, replicas or stages are best."""
    asked = {"model": "deepseek-v3", "gpu": "h200", "gpus": 8, "engine": "vllm"}
    found = row("more_gpus", **asked, context=32768)
    best = 0
    for tp, pp, dp in ((16, 1, 1), (8, 2, 1), (4, 4, 1), (2, 8, 1), (1, 16, 1),
                       (8, 1, 2)):  # fmt: skip
        sizes = {"gpus": 16, "tp": tp, "pp": pp, "dp": dp}
        plan = api.call("plan", {**asked, "context": 32768, **sizes})
        best = max(best, plan.get("max_requests", 0))
    assert found["max_requests"] == best


def test_twice_the_gpus_serve_more_where_all_fits() -> None:
    asked = {"model": "llama-3.1-8b", "gpu": "h100", "engine": "vllm"}
    found = row("more_gpus", **asked, context=8192)
    assert found["change"]["gpus"] == 2
    assert found["gains"]["max_requests"] > 0


def test_weights_in_fewer_bits_leave_a_larger_pool() -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "gpus": 4, "engine": "vllm"}
    rows = levers(**asked, context=32768)["rows"]
    plan = levers(**asked, context=32768)["plan"]["rank"]
    for lever, name in (("weights_8bit", "fp8"), ("weights_4bit", "int4_g128")):
        assert rows[lever]["change"] == {"weight_format": name}
        saved = plan["weight_bytes"] - rows[lever]["weight_bytes"]
        assert rows[lever]["saved_bytes"] == saved > 0
        assert rows[lever]["pool_bytes"] == plan["pool_bytes"] + saved
    fp8 = levers(**asked, weight_format="fp8")["rows"]
    assert fp8["weights_8bit"]["reason"] == "already_on"
    assert row("weights_4bit", **SEVENTY)["reason"] == "pool_is_given"
    ggml = {"model": "llama-3.1-8b", "gpu": "rtx-3090", "engine": "llama_cpp"}
    assert row("weights_4bit", **ggml)["change"] == {"weight_format": "q4_k_m"}


def test_relatives_need_less_and_were_trained_as_long() -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "gpus": 4, "engine": "vllm"}
    rows = levers(**asked, context=131072, concurrency=8)["rows"]
    small = ask("show", model=rows["smaller_model"]["change"]["model"])
    assert small["family"] == ask("show", model="llama-3.1-70b")["family"]
    assert small["facts"]["parameters"] < 70 * 10**9
    assert small["facts"]["max_context"] >= 131072
    lighter = rows["lighter_model"]["figures"]
    assert lighter["request_bytes"] == 327680 * 131072
    assert 0 < len(lighter["models"]) <= 3
    for model in lighter["models"]:
        assert model["request_bytes"] * 10 <= lighter["request_bytes"] * 9
        assert abs(model["parameters"] - 70 * 10**9) <= 22 * 10**9


def test_the_smaller_model_is_one_that_buys_something() -> None:
    """CodeLlama 7B comes first by size, but keeps all 32 heads: 4 times the cache."""
    asked = {"model": "llama-3.1-8b-instruct", "gpu": "rtx-3090", "engine": "vllm"}
    found = row("smaller_model", **asked, context=4096)
    assert found["change"]["model"] == "llama-3.2-3b-instruct"
    assert found["applicable"]


@pytest.mark.parametrize(
    ("model", "context"),
    [("llama-2-13b-chat-hf", 4096), ("llama-2-13b-chat-hf", 32768),
     ("qwen3-8b", 32768), ("llama-3.1-70b", 131072)],
)  # fmt: skip
def test_relatives_stand_in(model: str, context: int) -> None:
    """Trained for the context, or for as much as this model; as plainly stored, and
    blind if it is blind."""
    mine = catalog.find(model)
    trained = min(context, catalog.model(mine.id).max_context or context)
    rows = levers(model=model, gpu="h100", context=context)["rows"]
    tried = [m["id"] for m in rows["lighter_model"]["figures"].get("models", [])]
    if rows["smaller_model"]["change"]:
        tried.append(rows["smaller_model"]["change"]["model"])
    assert tried
    for name in tried:
        assert (catalog.model(name).max_context or 0) >= trained
        assert "vision_config" not in catalog.find(name).config
        assert "quantization_config" not in catalog.find(name).config


def test_a_context_beyond_training_asks_no_more_of_relatives() -> None:
    """OPT 66B was trained for 2,048 tokens, as OPT 30B was."""
    asked = {"model": "opt-66b", "gpu": "h100", "gpus": 4, "context": 4096}
    assert row("smaller_model", **asked)["change"]["model"] == "opt-30b"


def test_a_config_has_the_relatives_of_its_shape_and_size() -> None:
    """Of the config of Llama 3.1 70B by itself: tuned models of the family with most
    of the same shape, and none that only calls itself a llama."""
    config = dict(catalog.find("llama-3.1-70b").config)
    asked = {"gpu": "h100", "gpus": 4, "context": 131072, "concurrency": 8}
    rows = levers(model=config, **asked)["rows"]
    small = ask("show", model=rows["smaller_model"]["change"]["model"])
    assert small["family"] == "Llama"
    assert small["facts"]["parameters"] < 63 * 10**9
    listed = rows["lighter_model"]["figures"]["models"]
    assert all(abs(m["parameters"] - 70 * 10**9) < 22 * 10**9 for m in listed)


def test_metadata_without_a_size_have_no_relatives() -> None:
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 4,
        "llama.embedding_length": 512,
        "llama.attention.head_count": 8,
        "llama.context_length": 4096,
    }
    asked = {"model": metadata, "gpu": "h100", "weight_bytes": 10**9}
    rows = levers(**asked)["rows"]
    assert rows["smaller_model"]["reason"] == "size_unknown"
    assert rows["lighter_model"]["reason"] == "size_unknown"


def test_a_draft_shrinks_or_goes() -> None:
    """Beside 70B an 8B keeps 32 KV layers of 8 x 128, a 1B 16 of 8 x 64."""
    asked = {**SEVENTY, "draft_model": "llama-3.1-8b"}
    rows = levers(**asked)["rows"]
    tokens = 8 * 131072
    eight, one = (n * 2 * 1 * d * 2 * tokens for n, d in ((32, 128), (16, 64)))
    assert rows["drop_draft"]["change"] == {"draft_model": None}
    assert rows["drop_draft"]["saved_bytes"] >= eight
    assert rows["smaller_draft"]["change"] == {"draft_model": "llama-3.2-1b"}
    smaller = rows["smaller_draft"]["used_bytes"]
    assert rows["drop_draft"]["used_bytes"] < smaller
    assert smaller - rows["drop_draft"]["used_bytes"] == pytest.approx(one, rel=1e-3)
    assert row("drop_draft", **SEVENTY)["reason"] == "no_draft"
    built_in = levers(**{**LATENT, "draft": True})["rows"]
    assert built_in["drop_draft"]["applicable"]
    assert built_in["smaller_draft"]["reason"] == "no_draft_model"


def test_dropping_a_draft_takes_its_settings_along() -> None:
    options = {"num_speculative_tokens": 3, "max_num_seqs": 64}
    found = row("drop_draft", **{**LATENT, "draft": True, "engine_options": options})
    assert found["change"] == {"draft": None, "engine_options": {"max_num_seqs": 64}}


@pytest.mark.parametrize(
    ("engine", "option"),
    [
        ("vllm", "kv_offloading_size"),
        ("sglang", "hicache_ratio"),
        ("tensorrt_llm", "host_cache_size"),
    ],
)
def test_what_runs_stays_on_the_gpu_whatever_the_host_keeps(
    engine: str, option: str
) -> None:
    params = {**SEVENTY, "engine": engine, "concurrency": 9}
    plan = ask("plan", **params)
    found = row("host_offload", **params)
    assert found["reason"] == "running_stays_on_gpu"
    for number in ("verdict", "max_requests", "max_context"):
        assert found[number] == plan[number]
    assert (found["saved_bytes"], found["change"]) == (0, {})
    assert found["figures"]["option"] == option
    assert engine.partition("_")[0] in found["source"].lower().replace("-", "")
    # A token takes 320 KiB on the eight ranks together.
    assert found["figures"]["host_tokens_per_gib"] == G // 327_680
    if engine == "vllm":
        over = (9 * 8192 + 1) * BLOCK - POOL
        assert found["figures"]["over_bytes"] == over
        assert found["figures"]["over_bytes_all_gpus"] == 8 * over


ON_A_3090: Final = {
    "model": "llama-3.1-8b",
    "gpu": "rtx-3090",
    "weight_bytes": 8 * G,
    "context": 32768,
    "concurrency": 8,
}


@pytest.mark.parametrize(
    ("engine", "change"),
    [
        ("llama_cpp", {"n_ubatch": 256, "no_kv_offload": True}),
        ("lm_studio", {"evalBatchSize": 256, "offloadKVCacheToGpu": False}),
    ],
)
def test_llama_cpp_runs_from_host_memory(
    engine: str, change: dict[str, object]
) -> None:
    """Eight requests of 4 GiB each: too much beside 8 GiB of weights, not without."""
    kept = dict(list(change.items())[:1])
    params = {**ON_A_3090, "engine": engine, "engine_options": kept}
    assert ask("plan", **params)["verdict"] == "does_not_fit"
    found = row("host_offload", **params)
    assert found["reason"] is None
    assert found["change"] == {"engine_options": change}
    assert (found["verdict"], found["used_bytes"]) == ("fits", 0)
    assert found["figures"]["host_bytes"] == 32 * G
    check_rows(params)
    there = {**params, "engine_options": change}
    assert row("host_offload", **there)["reason"] == "already_on"


@pytest.mark.parametrize(
    ("engine", "gpu", "reason"),
    [
        ("mlx", "m3-pro-36gb", "memory_is_shared"),
        ("llama_cpp", "m3-pro-36gb", "memory_is_shared"),
        ("ollama", "rtx-3090", "no_engine_rule"),
        ("transformers", "rtx-3090", "no_engine_rule"),
        (None, "rtx-3090", "no_engine"),
    ],
)
def test_host_memory_is_no_use_everywhere(
    engine: str | None, gpu: str, reason: str
) -> None:
    params = {**ON_A_3090, "gpu": gpu, "engine": engine, "context": 131_072}
    assert row("host_offload", **{**params, "concurrency": 100})["reason"] == reason


DRAFTED: Final = {
    "model": "llama-3.1-70b",
    "gpu": "h100",
    "gpus": 8,
    "engine": "sglang",
    "context": 8192,
    "draft_model": "llama-3.2-1b",
}


@pytest.mark.parametrize(
    ("params", "asked", "most"),
    [
        (DRAFTED, 64, 48),
        ({"model": "llama-3.1-8b", "gpu": "h100", "engine": "llama_cpp"}, 300, 256),
    ],
)
def test_what_an_engine_never_runs_at_once_is_planned_with_fewer(
    params: dict[str, Any], asked: int, most: int
) -> None:
    """SGLang runs 48 requests beside a draft, llama.cpp 256 sequences at all."""
    params = {**params, "context": 8192, "concurrency": asked}
    error = api.call("plan", params)["error"]
    assert error["code"] == "unsupported_option"
    check_rows(params)
    answer = levers(**params)
    assert answer["plan"]["concurrency"] == most
    warning = {"asked": asked, "requests": most}
    assert {"code": "fewer_requests_planned", "params": warning} in answer["warnings"]
    assert answer["rows"]["kv_8bit"]["change"]["concurrency"] == most


def test_a_lever_that_lifts_the_limit_needs_no_fewer_requests() -> None:
    found = row("drop_draft", **DRAFTED, concurrency=64)
    assert found["change"] == {"draft_model": None}
    assert found["max_requests"] > 48


def test_one_request_that_is_refused_has_no_levers() -> None:
    asked = {**DRAFTED, "engine_options": {"max_running_requests": 1}, "dp": 2}
    assert "error" not in api.call("levers", {**asked, "concurrency": 5})
    refused = {"model": "llama-3.1-8b", "gpu": "h100", "engine": "llama_cpp", "tp": 2}
    assert (
        api.call("levers", {**refused, "gpus": 2})["error"]["code"] == "does_not_shard"
    )


# Rules of thumb ---------------------------------------------------------------


def said(**params: Any) -> dict[str, Any]:
    return {s["shortcut"]: s for s in levers(**params)["shortcuts"]}


def test_the_mha_formula_is_shown_beside_the_exact_bytes() -> None:
    found = said(**SEVENTY)["mha_formula"]
    assert found["says_bytes"] == 2 * 80 * 8192 * 131072 * 2
    assert found["exact_bytes"] == 327680 * 131072
    assert found["ratio"] == 8.0
    mha = {"model": "llama-2-7b-hf", "gpu": "h100", "context": 4096}
    assert "mha_formula" not in said(**mha)


@pytest.mark.parametrize(
    ("draft", "percent"), [("llama-3.1-8b", 40.0), ("llama-3.2-1b", None)]
)
def test_a_draft_adds_what_it_adds(draft: str, percent: float | None) -> None:
    """An 8B adds 40% of a 70B's cache; a 1B adds 10%, as people say."""
    found = said(**SEVENTY, draft_model=draft).get("draft_share")
    assert (found and found["exact_percent"]) == percent


def test_paging_gains_what_the_lengths_say() -> None:
    assert said(**SEVENTY, traffic_mean=4000)["paging_gain"]["exact_percent"] > 96
    assert "paging_gain" not in said(**SEVENTY, traffic_mean=80_000)
    assert "paging_gain" not in said(**SEVENTY)


def test_a_7b_at_128k_costs_more_cache_but_less_memory_than_a_70b_at_2k() -> None:
    found = said(model="llama-3.1-8b", gpu="h100", context=131072)["small_and_long"]
    assert found["small_cache_bytes"] == 16 * G
    assert found["large_cache_bytes"] == 2048 * 327680
    assert found["small_total_bytes"] < found["large_total_bytes"]
    assert "small_and_long" not in said(**SEVENTY)


# Bad questions, and the terminal ------------------------------------------------


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"traffic_context": 0}, "invalid_argument"),
        ({"traffic_mean": -1}, "invalid_argument"),
        ({"common_prefix": "many"}, "invalid_argument"),
        ({"traffic_mean": 1.5}, "invalid_argument"),
        ({"traffic": 5}, "unknown_option"),
        ({"model": None}, "missing_field"),
        ({"engine_options": []}, "invalid_argument"),
        ({"gpu": "h1000"}, "unknown_accelerator"),
    ],
)
def test_what_cannot_be_asked_is_said(params: dict[str, Any], code: str) -> None:
    assert refusal("levers", **{**SEVENTY, **params})["code"] == code


def test_the_terminal_prints_every_lever(capsys: pytest.CaptureFixture[str]) -> None:
    words = "levers llama-3.1-70b --gpu h100 --gpus 4 --engine vllm --context 128k"
    words += " --concurrency 8 --traffic-context 16k --traffic-mean 4k"
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    for lever in LEVERS:
        assert lever.code in printed
    assert "kv_format fp8" in printed
    assert main([*words.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"plan", "levers", "dropped", "shortcuts", "warnings"}
    assert main(["levers", "llama-3.1-70b"]) == 2


class TestOnly:
    """Asked in parts, levers answer what they answer all at once."""

    @pytest.mark.parametrize("change", [{}, {"gpu": "a100", "traffic_mean": 4000}])
    def test_parts_are_the_whole(self, change: dict[str, Any]) -> None:
        params = {**SEVENTY, **change}
        whole = ask("levers", **params)
        parts = [ask("levers", **params, only=[lever.code]) for lever in LEVERS]
        for name in ("levers", "dropped", "shortcuts"):
            assert [row for part in parts for row in part[name]] == whole[name]
        assert {json.dumps(part["plan"]) for part in parts} == {
            json.dumps(whole["plan"])
        }

    def test_another_scenario_is_planned_anew(self) -> None:
        one, other = (
            ask("levers", **SEVENTY, only="kv_8bit"),
            ask("levers", **{**SEVENTY, "concurrency": 4}, only="kv_8bit"),
        )
        assert one["plan"]["verdict"] != other["plan"]["verdict"]
        assert other == {
            **ask("levers", **{**SEVENTY, "concurrency": 4}),
            "levers": other["levers"],
            "dropped": [],
            "shortcuts": [],
        }
        assert [row["lever"] for row in other["levers"]] == ["kv_8bit"]

    def test_none_of_them_is_the_plan_alone(self) -> None:
        answer = ask("levers", **SEVENTY, only=[])
        assert answer["levers"] == answer["dropped"] == answer["shortcuts"] == []
        assert answer["plan"] == ask("plan", **SEVENTY)

    @pytest.mark.parametrize("only", [["kv_2bit"], "kv_8bit,x", "", 3, [3], [None]])
    def test_unknown_levers_are_refused(self, only: object) -> None:
        error = refusal("levers", **SEVENTY, only=only)
        assert error["code"] == "invalid_argument"
        assert error["params"]["argument"] == "only"

    def test_on_the_command_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        words = "levers llama-3.1-70b --gpu h100 --gpus 8 --engine vllm --json"
        assert main([*words.split(), "--only", "kv_8bit,weights_8bit"]) == 0
        answer = json.loads(capsys.readouterr().out)
        rows = [*answer["levers"], *answer["dropped"]]
        assert {row["lever"] for row in rows} == {"kv_8bit", "weights_8bit"}


def test_another_model_has_no_edits_of_this_one() -> None:
    params = {**SEVENTY, "edits": {"num_hidden_layers": 64}}
    found = row("smaller_model", **params)
    assert found["change"]["edits"] is None
    plan = replanned(params, found["change"])
    assert found["request_bytes"] == plan["request"]["allocated_bytes"]
