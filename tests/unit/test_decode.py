"""Bounds of speed, worked by hand: what a step reads and computes, and its price.

H100: 3.35e12 bytes and 989e12 operations a second in 16 bits.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import ask, refusal

from kvcore import accelerators, api, catalog, parameters
from kvcore.__main__ import main
from kvcore.decode.arithmetic import groups_seen, prefill_rows, triangle
from kvcore.decode.reads import layer_reads, read_terms
from kvcore.importers.indexers import top_k_of
from kvcore.params import Params, model_of

BANDWIDTH = 3_350_000_000_000
PEAK = 989 * 10**12

TOKENS = 8192
EIGHT: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100", "context": TOKENS}
EMBEDDINGS = 128256 * 4096
NORMS = 65 * 4096
MATRICES = 8_030_261_248 - EMBEDDINGS - NORMS
"""Of Llama 3.1 8B, the output head among them."""


def decode(**params: Any) -> dict[str, Any]:
    return ask("decode", **params)


def cache_read(**params: Any) -> dict[str, int]:
    found: dict[str, int] = decode(**params)["step"]["components"]
    return found


# Dense -------------------------------------------------------------------------


def test_a_dense_step_reads_all_weights_but_the_table_and_all_of_the_cache() -> None:
    step = decode(**EIGHT)["step"]
    assert step["weight_bytes"] == 2 * (MATRICES + NORMS)
    assert step["cache_bytes"] == 131072 * TOKENS
    # 32 layers x 32 heads x (128 + 128) x rows, two operations each.
    attention = 32 * 2 * 32 * 256 * TOKENS
    assert step["flops"] == 2 * MATRICES + attention
    read = step["weight_bytes"] + step["cache_bytes"]
    assert step["bandwidth_seconds"] == pytest.approx(read / BANDWIDTH)
    assert step["compute_seconds"] == pytest.approx(step["flops"] / PEAK)
    assert step["seconds"] == step["bandwidth_seconds"]
    assert step["bound"] == "bandwidth"


def test_rates_are_steps_a_second_of_one_and_of_all() -> None:
    answer = decode(**EIGHT, concurrency=8)
    read = 2 * (MATRICES + NORMS) + 8 * 131072 * TOKENS
    rates = answer["tokens_per_second"]
    assert rates["request"] == pytest.approx(BANDWIDTH / read)
    assert rates["total"] == pytest.approx(8 * BANDWIDTH / read)
    assert answer["experts"] is None


def test_a_large_batch_of_short_requests_is_bound_by_compute() -> None:
    answer = decode(**{**EIGHT, "context": 16}, concurrency=4000)
    assert answer["step"]["bound"] == "compute"
    assert answer["step"]["seconds"] == answer["step"]["compute_seconds"]


def test_caches_outweigh_weights_from_the_fourteenth_request() -> None:
    """15.0 GB of weights; 2**30 bytes of cache a request: 13.98."""
    assert 13 * 2**30 < 2 * (MATRICES + NORMS) < 14 * 2**30
    assert decode(**EIGHT)["crossover_requests"] == 14


def test_a_prompt_is_computed_once_and_its_head_for_the_last_token() -> None:
    prefill = decode(**EIGHT, prompt_tokens=1000)["prefill"]
    body = 2 * 1000 * (MATRICES - EMBEDDINGS) + 2 * EMBEDDINGS
    attention = 32 * 2 * 32 * 256 * (1000 * 1001 // 2)
    assert prefill["flops"] == body + attention
    assert prefill["seconds"] == pytest.approx((body + attention) / PEAK)
    assert prefill["bound"] == "compute"
    assert prefill["tokens_per_second"] == pytest.approx(1000 / prefill["seconds"])
    assert decode(**EIGHT)["prefill"]["tokens"] == TOKENS


def test_without_a_cache_every_token_is_a_prefill() -> None:
    answer = decode(**EIGHT)
    without = answer["without_cache"]
    assert without["flops"] == answer["prefill"]["flops"]
    slower = answer["prefill"]["seconds"] / answer["step"]["seconds"]
    assert without["times_slower"] == pytest.approx(slower)
    assert decode(**EIGHT, concurrency=4)["without_cache"]["flops"] == (
        4 * without["flops"]
    )


def test_tensor_ranks_share_weights_heads_and_operations() -> None:
    one = decode(**EIGHT)["step"]
    four = decode(**EIGHT, gpus=4)["step"]
    assert four["cache_bytes"] == one["cache_bytes"] // 4
    assert four["flops"] == -(-one["flops"] // 4)
    cut = one["weight_bytes"] - 2 * NORMS
    assert four["weight_bytes"] == cut // 4 + 2 * NORMS


def test_pipeline_stages_take_their_turns() -> None:
    """Two stages read all weights for 2 of 4 requests each, one after the other."""
    one = decode(**EIGHT, concurrency=2)
    two = decode(**EIGHT, concurrency=4, gpus=2, tp=1, pp=2, engine="vllm")
    assert two["step"]["cache_bytes"] == one["step"]["cache_bytes"]
    assert two["step"]["flops"] == pytest.approx(one["step"]["flops"], abs=2)
    assert two["step"]["seconds"] >= one["step"]["seconds"]
    assert two["tokens_per_second"]["total"] == pytest.approx(
        4 / two["step"]["seconds"]
    )


def test_caches_outweigh_weights_stage_by_stage() -> None:
    """14 requests in each of two stages: the 27th makes 14 of one of them."""
    two = decode(**EIGHT, gpus=2, tp=1, pp=2, engine="vllm")
    assert two["crossover_requests"] == 27


def test_without_a_cache_stages_take_their_turns_too() -> None:
    """4 requests on two stages: each stage runs the prompts of 2."""
    one = decode(**EIGHT, concurrency=2)["without_cache"]["flops"]
    two = decode(**EIGHT, concurrency=4, gpus=2, tp=1, pp=2, engine="vllm")
    assert two["without_cache"]["flops"] == pytest.approx(one, rel=1e-9)


def test_a_cache_in_host_memory_is_said_to_be_there() -> None:
    """The bound holds all the more: the host's memory is no faster than the GPU's."""
    here = {"model": "llama-3.1-8b", "gpu": "rtx-3090", "engine": "llama_cpp"}
    there = ask("decode", **here, engine_options={"no_kv_offload": True})
    (held,) = (w for w in there["warnings"] if w["code"] == "cache_on_host")
    context = 128 * 1024 * there["context"]
    assert held["params"] == {"bytes": context}
    assert "cache_on_host" not in {w["code"] for w in ask("decode", **here)["warnings"]}


def test_replicas_serve_their_own_requests() -> None:
    one = decode(**EIGHT, concurrency=4)
    two = decode(**EIGHT, concurrency=8, gpus=2, tp=1, dp=2)
    assert two["requests_per_replica"] == 4
    assert two["step"] == one["step"]
    rates = two["tokens_per_second"]
    assert rates["total"] == pytest.approx(2 * one["tokens_per_second"]["total"])


def test_tied_embeddings_are_read_as_the_head() -> None:
    """Llama 3.2 1B has one table of 128,256 x 2,048; all 1,235,814,400 are read."""
    step = decode(model="llama-3.2-1b", gpu="h100", context=1)["step"]
    assert step["weight_bytes"] == 2 * 1_235_814_400


# Experts -----------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_experts_are_read_as_far_as_tokens_ask_for_them(batch: int) -> None:
    """Qwen3 30B: 8 of 128; 48 layers of 128 x 3 x 2,048 x 768."""
    answer = decode(model="qwen3-30b-a3b", gpu="h100", concurrency=batch, context=1)
    share = 1 - (1 - 8 / 128) ** batch
    assert answer["experts"]["share"] == pytest.approx(share)
    assert answer["experts"]["values"]["tokens"] == batch
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    total = ask("show", model="qwen3-30b-a3b")["facts"]["parameters"] * 2
    rest = total - experts - 151936 * 2048 * 2
    assert answer["step"]["weight_bytes"] == pytest.approx(rest + share * experts)


def test_experts_of_replicas_are_asked_by_all_of_them() -> None:
    """Expert parallelism over 8 replicas: 8 requests each, 64 tokens' experts."""
    asked = {"model": "deepseek-v3", "gpu": "h200", "engine": "vllm", "context": 1024}
    spread = decode(**asked, concurrency=64, dp=8, tp=1)
    assert spread["experts"]["values"]["tokens"] == 64
    assert decode(**asked, concurrency=64, tp=8)["experts"]["values"]["tokens"] == 64
    groups = decode(
        **{**asked, "engine": "sglang"},
        gpus=8,
        concurrency=64,
        engine_options={"enable_dp_attention": True},
    )
    assert groups["requests_per_replica"] == 8
    assert groups["experts"]["values"]["tokens"] == 64


def test_groups_of_attention_compute_as_much_as_replicas() -> None:
    """8 of 64 requests on each of 8 ranks, whether SGLang's groups or vLLM's replicas:
    whole attention for 8, an eighth of everything else for 64."""
    asked = {"model": "deepseek-v3", "gpu": "h200", "context": 4096, "gpus": 8}
    groups = decode(
        **asked,
        engine="sglang",
        concurrency=64,
        engine_options={"enable_dp_attention": True},
    )
    replicas = decode(**asked, engine="vllm", concurrency=64, tp=1, dp=8)
    assert groups["step"]["flops"] == replicas["step"]["flops"]
    assert groups["step"]["cache_bytes"] == replicas["step"]["cache_bytes"]


@pytest.mark.parametrize(
    "model",
    ["qwen3-30b-a3b", "deepseek-v3.2", "gemma-3n-e4b-it", "falcon-h1-7b-instruct"],
)
def test_all_active_matrices_are_multiplied_with(model: str) -> None:
    """Two operations a parameter in use: no table, norm or tower; the rest attends."""
    entry = catalog.find(model)
    counts = parameters.count(entry.config, catalog.model(entry.id))
    idle = counts.norms + counts.towers + counts.encoder
    if counts.output_head:
        idle += counts.embeddings
    step = decode(model=model, gpu="h200", gpus=1, context=1, weight_format="bf16")
    attention = step["step"]["flops"] - 2 * (counts.active - idle)
    assert 0 <= attention <= 61 * 2 * 128 * 1088


def test_a_checkpoint_of_unstated_format_is_shared_out() -> None:
    """Ministral 3 14B is stored in fewer bits than its config says: 15.7 GB."""
    answer = decode(model="ministral-3-14b-instruct-2512", gpu="h100", context=1)
    total = ask("plan", model="ministral-3-14b-instruct-2512", gpu="h100")["weights"]
    assert total["source"] == "checkpoint"
    assert answer["step"]["weight_bytes"] < total["total_bytes"] < 16 * 10**9


# Latents, picked rows, compressed rows, windows, states --------------------------


LATENT: dict[str, Any] = {"model": "deepseek-v3", "gpu": "h200", "context": 32768}


def test_every_tensor_rank_reads_the_whole_latent() -> None:
    """61 layers of 512 + 64 in 16 bits; DCP deals the tokens out."""
    whole = 61 * 576 * 2 * 32768
    assert cache_read(**LATENT, tp=8, engine="vllm") == {"kv": whole}
    assert cache_read(**LATENT, tp=8, dcp=8, engine="vllm") == {"kv": whole // 8}


def test_latents_are_attended_as_they_are_and_expanded_in_a_prompt() -> None:
    """128 heads; 2 x 512 + 64 a row while decoding, 192 + 128 in a prompt."""
    one, two = (
        decode(**{**LATENT, "context": n}, prompt_tokens=n) for n in (1000, 2000)
    )
    more = two["step"]["flops"] - one["step"]["flops"]
    assert more == 61 * 2 * 128 * 1088 * 1000
    body = one["prefill"]["flops"] - 61 * 2 * 128 * 320 * triangle(1000, 1000)
    head = 2 * 129280 * 7168
    twice = two["prefill"]["flops"] - 61 * 2 * 128 * 320 * triangle(2000, 2000)
    assert twice - head == 2 * (body - head)


def test_an_indexer_reads_all_its_keys_and_picks_2048_rows() -> None:
    """DeepSeek V3.2 under vLLM, fp8: 656 bytes a row, 132 an index key, 61 layers."""
    asked = {"model": "deepseek-v3.2", "gpu": "h200", "gpus": 8, "engine": "vllm"}
    read = cache_read(**asked, context=131072, kv_format="fp8_ds_mla")
    assert read == {"kv": 61 * 656 * 2048, "indexer": 61 * 132 * 131072}
    short = cache_read(**asked, context=1000, kv_format="fp8_ds_mla")
    assert short == {"kv": 61 * 656 * 1000, "indexer": 61 * 132 * 1000}


def test_layers_without_an_indexer_follow_anothers_picks() -> None:
    """GLM 5.2: 78 layers of 576 elements, all picked; a quarter have index keys."""
    model = model_of(Params({"model": "glm-5.2"}, frozenset({"model"})))
    picked = [r for layer in layer_reads(model) for r in layer if r.picked]
    assert len(picked) == model.num_layers
    asked = {"model": "glm-5.2", "gpu": "h200", "gpus": 8, "context": 100_000}
    assert cache_read(**asked)["kv"] == model.num_layers * 576 * 2 * 2048


def test_latents_with_windows_are_not_picked() -> None:
    """Dots 3 Note: 33 layers of 1,024 + 64 see 512 tokens, 13 pick from all."""
    model = model_of(Params({"model": "dots3-note-prev"}, frozenset({"model"})))
    picked = [r for layer in layer_reads(model) for r in layer if r.picked]
    assert len(picked) == 13
    asked = {"model": "dots3-note-prev", "gpu": "h200", "gpus": 8, "context": 100_000}
    read = cache_read(**asked)
    assert read["window"] == 33 * (1024 + 64) * 2 * 512


def test_v4_reads_windows_picked_groups_and_every_index_key() -> None:
    """DeepSeek V4 Flash: 43 windows of 128; 21 layers pick 512 of the 4-to-1 rows, 20
    read all 128-to-1 rows; 512 bytes a row, 132 an index key."""
    read = cache_read(
        model="deepseek-v4-flash", gpu="h200", gpus=4, engine="vllm", context=1_000_000
    )
    assert read == {
        "window": 43 * 128 * 512,
        "kv": 21 * 512 * 512 + 20 * (1_000_000 // 128) * 512,
        "indexer": 21 * (1_000_000 // 4) * 132,
    }


def test_windows_are_read_as_far_as_they_reach() -> None:
    """Gemma 3 27B: 10 full layers, 52 of 1,024 tokens, 16 heads of 128."""
    row = 2 * 16 * 128 * 2
    read = cache_read(model="gemma-3-27b-it", gpu="h100", context=32768)
    assert read == {"kv": 10 * row * 32768, "window": 52 * row * 1024}


def test_a_hybrid_reads_and_writes_its_states() -> None:
    """Qwen3-Next: 12 of 48 layers keep 2 heads of 256; states twice, context or not."""
    asked = {"model": "qwen3-next-80b-a3b-instruct", "gpu": "h100", "gpus": 1}
    kept = ask("estimate", model=asked["model"], tokens=32768)["components"]
    read = cache_read(**asked, context=32768)
    assert read == {"kv": 12 * 2 * 2 * 256 * 2 * 32768, "state": 2 * kept["state"]}
    assert cache_read(**asked, context=1)["state"] == read["state"]


def test_states_are_whole_whatever_the_context_is_cut_into() -> None:
    asked = {"model": "qwen3-next-80b-a3b-instruct", "gpu": "h100", "tp": 4,
             "engine": "vllm", "context": 32768}  # fmt: skip
    one, two = cache_read(**asked), cache_read(**asked, dcp=2)
    assert two["state"] == one["state"]
    assert two["kv"] == one["kv"] // 2


def test_a_shared_cache_is_read_by_every_layer() -> None:
    """Gemma 3n E4B: 35 layers read, of which the last 15 keep nothing: 7 full ones of
    2 heads of 256, 28 of 512 tokens."""
    row = 2 * 2 * 256 * 2
    read = cache_read(model="gemma-3n-e4b-it", gpu="h100", context=32768)
    assert read == {"kv": 7 * row * 32768, "window": 28 * row * 512}
    kept = ask("estimate", model="gemma-3n-e4b-it", tokens=32768)["components"]
    assert kept["kv"] < read["kv"]


def test_an_eight_bit_cache_is_half_the_reading() -> None:
    assert cache_read(**EIGHT, kv_format="fp8") == {"kv": 65536 * TOKENS}


@pytest.mark.parametrize(
    "model",
    ["llama-3.1-8b", "gemma-3-27b-it", "deepseek-v3.2", "deepseek-v4-flash",
     "llama-4-scout-17b-16e-instruct"],
)  # fmt: skip
@pytest.mark.parametrize("tokens", [1, 7, 300])
def test_rows_of_a_prompt_are_those_of_its_tokens_one_by_one(
    model: str, tokens: int
) -> None:
    found = model_of(Params({"model": model}, frozenset({"model"})))
    top_k = 5
    for layer in layer_reads(found):
        for read in layer:
            if read.spec.kind == "indexer_keys":
                continue
            one_by_one = 0
            for i in range(1, tokens + 1):
                terms = read_terms(read, i, 0, top_k)
                heads = getattr(read.spec, "num_kv_heads", 1)
                rows = {
                    (term.component, term.rows_expression): term.rows
                    for term in terms
                    if term.component in ("kv", "window")
                }
                one_by_one += sum(rows.values()) // heads
            if read.spec.kind == "chunked_attention":
                assert one_by_one >= prefill_rows(read, tokens, 0, top_k)
                continue
            assert prefill_rows(read, tokens, 0, top_k) == one_by_one


@given(st.integers(0, 60), st.integers(1, 9), st.none() | st.integers(0, 20))
def test_sums_are_sums(tokens: int, ratio: int, limit: int | None) -> None:
    most = math.inf if limit is None else limit
    assert groups_seen(tokens, ratio, limit) == sum(
        min(i // ratio, most) for i in range(1, tokens + 1)
    )
    assert triangle(tokens, limit or 0) == sum(
        min(i, limit or 0) for i in range(1, tokens + 1)
    )


# Longer, more, dearer -----------------------------------------------------------


def test_the_curve_falls_as_contexts_grow() -> None:
    curve = decode(**EIGHT, concurrency=4)["curve"]
    assert [point["context"] for point in curve] == [2**n for n in range(10, 18)]
    rates = [point["request"] for point in curve]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]
    here = next(point for point in curve if point["context"] == TOKENS)
    assert here["request"] == decode(**EIGHT, concurrency=4)["tokens_per_second"][
        "request"
    ]
    own = decode(**EIGHT, points=[5, 3])["curve"]
    assert [point["context"] for point in own] == [5, 3]


MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3.2", "deepseek-v4-flash",
          "qwen3-next-80b-a3b-instruct", "gemma-3n-e4b-it")  # fmt: skip


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    st.sampled_from(MODELS),
    st.integers(1, 200_000),
    st.integers(1, 200),
    st.integers(1, 50_000),
    st.integers(1, 50),
)
def test_longer_or_more_requests_are_never_faster(
    model: str, context: int, requests: int, longer: int, more: int
) -> None:
    asked = {"model": model, "gpu": "h200", "points": [1]}
    one = decode(**asked, context=context, concurrency=requests)
    two = decode(**asked, context=context + longer, concurrency=requests)
    three = decode(**asked, context=context, concurrency=requests + more)
    for slower in (two, three):
        assert slower["step"]["seconds"] >= one["step"]["seconds"] * (1 - 1e-12)
    crossover = one["crossover_requests"]
    if crossover:
        for count, leads in ((crossover - 1, False), (crossover, True)):
            if count:
                step = decode(**asked, context=context, concurrency=count)["step"]
                assert (step["cache_bytes"] > step["weight_bytes"]) == leads


def test_a_price_is_spread_over_tokens() -> None:
    """Two GPUs at 3 an hour; 4 requests of 8,192 tokens."""
    answer = decode(**EIGHT, concurrency=4, gpus=2, price=3)
    rate = answer["tokens_per_second"]["total"]
    cost = answer["cost"]
    assert cost["price_per_hour"] == 6
    assert cost["per_million_output_tokens"] == pytest.approx(6e6 / (3600 * rate))
    held = 4 * TOKENS
    assert cost["per_million_context_token_hours"] == pytest.approx(6e6 / held)
    full = answer["max_requests"] * TOKENS
    assert cost["per_million_context_token_hours_when_full"] == pytest.approx(
        6e6 / full
    )
    assert answer["max_requests"] == (
        ask("plan", **EIGHT, concurrency=4, gpus=2)["max_requests"]
    )
    assert decode(**EIGHT)["cost"] is None


def test_what_does_not_fit_has_a_bound_but_no_context_price() -> None:
    answer = decode(**EIGHT, concurrency=1000, price="2.5")
    assert answer["cost"]["per_million_context_token_hours"] is None
    assert answer["cost"]["per_million_output_tokens"] > 0
    notice = next(w for w in answer["warnings"] if w["code"] == "more_than_fit")
    assert notice["params"] == {"requests": 1000, "most": answer["max_requests"]}


# What is not known ---------------------------------------------------------------


def codes(**params: Any) -> set[str]:
    return {warning["code"] for warning in decode(**params)["warnings"]}


def test_a_device_without_rates_has_bytes_and_no_speed() -> None:
    asked = {**EIGHT, "gpu": "other", "memory_mib": 80000, "price": 1}
    answer = decode(**asked)
    assert answer["step"]["weight_bytes"] == 2 * (MATRICES + NORMS)
    assert answer["step"]["seconds"] is None
    assert answer["tokens_per_second"] == {"request": None, "total": None}
    assert answer["cost"]["per_million_output_tokens"] is None
    assert codes(**asked) == {"bandwidth_unknown", "compute_unknown"}
    stated = decode(**asked, bandwidth_bytes_per_second=10**12)
    read = stated["step"]["weight_bytes"] + stated["step"]["cache_bytes"]
    assert stated["step"]["seconds"] == pytest.approx(read / 10**12)
    assert stated["step"]["bound"] == "bandwidth"
    both = decode(**asked, bandwidth_bytes_per_second=10**12, flops_per_second=10**9)
    assert both["step"]["bound"] == "compute"


def test_operations_are_those_of_the_weights_numbers() -> None:
    def peak(**params: Any) -> int | None:
        found: int | None = decode(**{**EIGHT, **params})["flops_per_second"]
        return found

    assert peak() == PEAK
    assert peak(weight_format="fp8") == 1979 * 10**12
    assert peak(weight_format="fp8", gpu="a100") == 312 * 10**12
    assert peak(weight_format="int4_g128") == PEAK
    assert peak(gpu="b200", weight_format="nvfp4") == 9 * 10**15
    assert peak(gpu="t4") == 65 * 10**12
    assert accelerators.find("p40").flops["bf16"] is None
    assert peak(gpu="p40") is None


def test_drafts_are_left_out() -> None:
    asked = {**LATENT, "tp": 8, "engine": "vllm"}
    assert "draft_not_in_bound" in codes(**asked, draft=True)
    assert decode(**asked, draft=True)["step"] == decode(**asked)["step"]
    beside = {**EIGHT, "draft_model": "llama-3.2-1b"}
    assert decode(**beside)["step"] == decode(**EIGHT)["step"]
    assert "draft_not_in_bound" in codes(**beside)


def test_an_indexer_without_a_number_reads_all_rows() -> None:
    """MiniMax M3's config does not say how many blocks its layers pick."""
    asked = {"model": "minimax-m3", "gpu": "h200", "gpus": 8, "context": 100_000}
    assert "top_k_unknown" in codes(**asked)
    assert "top_k_unknown" not in codes(**{**asked, "model": "glm-5.2"})


def test_picks_are_read_from_configs_and_from_gguf() -> None:
    assert top_k_of({"index_topk": 512}) == 512
    key = "deepseek32.attention.indexer.top_k"
    assert top_k_of({"general.architecture": "deepseek32", key: 2048}) == 2048
    assert top_k_of({"index_topk": "many", "text_config": []}) is None


def test_stated_weights_are_shared_out_as_counted() -> None:
    half = decode(**EIGHT, weight_bytes=8_030_261_248)["step"]
    assert half["weight_bytes"] == pytest.approx(MATRICES + NORMS, abs=64)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"price": 0}, "invalid_argument"),
        ({"price": -3}, "invalid_argument"),
        ({"price": "free"}, "invalid_argument"),
        ({"price": math.nan}, "invalid_argument"),
        ({"price": math.inf}, "invalid_argument"),
        ({"price": True}, "invalid_argument"),
        ({"price": []}, "invalid_argument"),
        ({"points": []}, "invalid_argument"),
        ({"points": "1024"}, "invalid_argument"),
        ({"points": [0]}, "invalid_argument"),
        ({"points": [True]}, "invalid_argument"),
        ({"points": [1.5]}, "invalid_argument"),
        ({"points": list(range(1, 600))}, "invalid_argument"),
        ({"prompt_tokens": 0}, "invalid_argument"),
        ({"bandwidth_bytes_per_second": 0}, "invalid_argument"),
        ({"flops_per_second": -1}, "invalid_argument"),
        ({"flops_per_second": 10**30}, "invalid_argument"),
        ({"speed": 1}, "unknown_option"),
        ({"tp": 5}, "does_not_shard"),
        ({"model": "llama-9000"}, "unknown_model"),
    ],
)
def test_what_cannot_be_asked_is_said(params: dict[str, Any], code: str) -> None:
    assert refusal("decode", **{**EIGHT, **params})["code"] == code


def test_weights_must_be_known() -> None:
    metadata = {
        "general.architecture": "llama",
        "llama.block_count": 4,
        "llama.embedding_length": 512,
        "llama.attention.head_count": 8,
        "llama.context_length": 4096,
    }
    asked = {"model": metadata, "gpu": "h100", "pool_bytes": 10**9}
    assert refusal("decode", **asked)["params"]["field"] == "weight_bytes"
    stated = decode(**asked, weight_bytes=10**8)
    assert stated["step"]["weight_bytes"] == 10**8
    assert stated["step"]["flops"] is None
    assert stated["step"]["bound"] == "bandwidth"
    assert "compute_unknown" in {w["code"] for w in stated["warnings"]}


def test_every_answer_is_plain_json() -> None:
    for gpu in ("h100", "m4-max-128gb", "p40"):
        json.dumps(decode(**{**EIGHT, "gpu": gpu}, price=1), allow_nan=False)


# Prices ------------------------------------------------------------------------


def test_prices_are_dated_and_of_known_devices() -> None:
    answer = ask("prices")
    assert answer["currency"] == "USD"
    assert answer["prices"]
    for price in answer["prices"]:
        assert accelerators.find(price["accelerator"]).id == price["accelerator"]
        assert 0 < price["price_per_hour"] < 100
        assert "2024" <= price["date"] <= answer["retrieved"]
        assert price["provider"]
        assert price["source"]


def test_prices_of_one_device_cheapest_first() -> None:
    found = ask("prices", gpu="h100")["prices"]
    assert {price["accelerator"] for price in found} == {"h100-sxm"}
    dollars = [price["price_per_hour"] for price in found]
    assert dollars == sorted(dollars)
    assert api.call("prices", {"gpu": "h9"})["error"]["code"] == "unknown_accelerator"
    assert ask("prices", gpu="m4-max-128gb")["prices"] == []


# The terminal --------------------------------------------------------------------


def test_the_terminal_says_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    words = "decode qwen3-30b-a3b --gpu h100 --context 8k --concurrency 4 --price 2.5"
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    for expected in ("at most", "experts touched", "bandwidth bound", "first token"):
        assert expected in printed
    assert "1M output tokens" in printed
    assert main([*words.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cost"]["price_per_gpu_hour"] == 2.5
    unknown = "decode llama-3.1-8b --gpu other --memory-mib 80000"
    assert main(unknown.split()) == 0
    assert "?" in capsys.readouterr().out
    assert main(["prices", "--gpu", "h200"]) == 0
    assert "2026-" in capsys.readouterr().out
    assert main([*words.split(), "--prompt-tokens", "none"]) == 2
