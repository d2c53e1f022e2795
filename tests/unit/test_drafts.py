"""Speculative decoding: both caches and both weights, where each engine puts them."""

from __future__ import annotations

from typing import Any

import pytest
from unit_support import ask, refusal

from kvcore.__main__ import main

BILLION = 10**9
LLAMA_8B = 8_030_261_248 * 2
LLAMA_70B = 70_553_706_496 * 2


def plan(model: str = "llama-3.1-70b", **params: Any) -> dict[str, Any]:
    return ask("plan", **{"model": model, "gpu": "h100", **params})


@pytest.mark.parametrize("engine", ["none", "vllm", "tensorrt_llm", "llama_cpp"])
@pytest.mark.parametrize(
    ("draft", "ratio"), [("llama-3.1-8b", [2, 5]), ("llama-3.2-1b", [1, 10])]
)
def test_a_draft_adds_its_share_of_the_cache(
    engine: str, draft: str, ratio: list[int]
) -> None:
    """70B: 80 layers of 8 x 128; 8B: 32 of the same (40%); 1B: 16 of 8 x 64 (10%)."""
    answer = plan(engine=engine, context=131072, draft_model=draft)
    found = answer["draft"]
    assert found["separate"]
    assert found["cache_ratio"] == ratio
    assert found["cache_bytes"] * ratio[1] == found["target_cache_bytes"] * ratio[0]
    together = found["cache_bytes"] + found["target_cache_bytes"]
    assert together == answer["allocated"]["bytes_per_rank"]


@pytest.mark.parametrize(
    ("draft", "ratio"), [("llama-3.1-8b", [2, 5]), ("llama-3.2-1b", [1, 5])]
)
def test_sglang_charges_a_draft_the_targets_rows(draft: str, ratio: list[int]) -> None:
    """16 of 80 rows for the 1B, though its own are half as wide.

    "assumes the draft shares the target's per-layer KV size":
    model_executor/pool_configurator.py of the 0.5.23 wheel.
    """
    answer = plan(engine="sglang", tp=8, context=8192, draft_model=draft)
    assert answer["draft"]["cache_ratio"] == ratio


def test_a_draft_models_weights_are_counted_beside_the_targets() -> None:
    found = plan(engine="vllm", tp=8, draft_model="llama-3.1-8b")
    draft = found["draft"]
    assert draft["weight_bytes"] == LLAMA_8B
    assert draft["target_weight_bytes"] == LLAMA_70B
    assert (draft["weight_source"], draft["weight_format"]) == ("counted", "bf16")
    assert found["weights"]["total_bytes"] == LLAMA_8B + LLAMA_70B
    assert draft["weight_ratio"][0] * LLAMA_70B == draft["weight_ratio"][1] * LLAMA_8B


def test_a_draft_model_is_cut_over_the_same_tensor_ranks() -> None:
    alone = plan(engine="vllm", tp=8)["rank"]["weight_bytes"]
    found = plan(engine="vllm", tp=8, draft_model="llama-3.1-8b")
    added = found["rank"]["weight_bytes"] - alone
    assert added == found["draft"]["rank_weight_bytes"]
    # Norms are whole on every rank: 65 vectors of 4,096 in 16 bits.
    norms = 65 * 4096 * 2
    assert added == -(-(LLAMA_8B - norms) // 8) + norms


def test_a_draft_model_is_whole_on_the_last_pipeline_stage() -> None:
    alone = plan(engine="vllm", tp=1, pp=4)["ranks"]
    beside = plan(engine="vllm", tp=1, pp=4, draft_model="llama-3.1-8b")["ranks"]
    pairs = zip(alone, beside, strict=True)
    added = [b["weight_bytes"] - a["weight_bytes"] for a, b in pairs]
    assert added == [0, 0, 0, LLAMA_8B]


def test_llama_cpp_splits_a_draft_model_over_its_devices() -> None:
    """32 layers and an output over 4 devices; the input layer stays in host memory."""
    asked = {"engine": "llama_cpp", "gpus": 4, "context": 32768}
    alone = plan(**asked)
    beside = plan(**asked, draft_model="llama-3.1-8b")
    pairs = zip(alone["ranks"], beside["ranks"], strict=True)
    added = [b["weight_bytes"] - a["weight_bytes"] for a, b in pairs]
    table = 128256 * 4096 * 2
    assert all(added)
    assert sum(added) == pytest.approx(LLAMA_8B - table, rel=1e-3)
    host = beside["weights"]["host_bytes"] - alone["weights"]["host_bytes"]
    assert host == table
    # The fullest device has 21 of 80 layers, or 20 and the output; 8 or 9 of 32.
    layer = 2 * 8 * 128 * 2 * 32768
    assert beside["draft"]["cache_bytes"] in (8 * layer, 9 * layer)


def test_built_in_drafts_are_one_layer_more() -> None:
    """DeepSeek V3: one MTP layer beside 61, its latent as wide as theirs."""
    found = plan("deepseek-v3", gpu="h200", engine="vllm", tp=8, draft=True)["draft"]
    assert not found["separate"]
    assert found["cache_ratio"] == [1, 61]
    assert found["speculative_tokens"] == 1
    assert 11 * BILLION < found["weight_bytes"] < 15 * BILLION


def test_files_do_not_say_which_weights_draft() -> None:
    asked: dict[str, Any] = {"gpu": "h200", "tp": 8, "draft": True}
    found = plan("deepseek-v3", **asked, weight_bytes=700 * BILLION)["draft"]
    assert found["weight_bytes"] is None
    assert found["weight_ratio"] is None


def test_the_terminal_shows_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    words = "plan llama-3.1-70b --gpu h100 --tp 8 --draft-model llama-3.2-1b"
    assert main(words.split()) == 0
    assert "10% of the target's cache" in capsys.readouterr().out


def test_without_a_draft_there_is_no_share() -> None:
    assert plan(tp=4)["draft"] is None


def test_a_draft_model_is_its_engines_own_method() -> None:
    """Modules of MTP read ahead in windows; a model that drafts does not."""
    asked: dict[str, Any] = {
        "model": "gemma-3-27b-it",
        "engine": "vllm",
        "context": 32768,
        "draft_model": "gemma-3-1b-it",
        "engine_options": {"num_speculative_tokens": 40},
    }
    chained = plan(
        **{
            **asked,
            "engine_options": {
                "num_speculative_tokens": 40,
                "speculative_method": "mtp",
            },
        }
    )
    assert plan(**asked)["request"]["allocated_bytes"] < (
        chained["request"]["allocated_bytes"]
    )


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"draft_model": "llama-9000"}, "unknown_model"),
        ({"draft_model": {"model_type": "llama"}}, "missing_field"),
        ({"draft_model": 7}, "invalid_argument"),
        ({"draft_model": "llama-3.2-1b", "engine": "mlx"}, "unsupported_option"),
    ],
)
def test_a_draft_that_cannot_be_is_said(params: dict[str, Any], code: str) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", **params}
    assert refusal("plan", **asked)["code"] == code
