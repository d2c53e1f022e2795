"""The figures the project promises, each with the sum a reader can do on paper."""

from __future__ import annotations

import pytest
from unit_support import ask

SMALL = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "head_dim": 128,
}


def test_the_textbook_case_of_4096_tokens() -> None:
    answer = ask("estimate", model=SMALL, tokens=4096, kv_format="fp16")
    assert answer["total_bytes"] == 536_870_912
    assert answer["total_bytes"] == 32 * 2 * 8 * 128 * 4096 * 2


def test_llama_3_1_70b_per_token_and_at_its_full_context() -> None:
    answer = ask("estimate", model="llama-3.1-70b", tokens=131_072)
    assert answer["marginal_bytes_per_token"] == 327_680 == 80 * 2 * 8 * 128 * 2
    assert answer["total_bytes"] == 42_949_672_960 == 80 * 2 * 8 * 128 * 131_072 * 2


def test_llama_3_1_70b_with_keys_and_values_of_all_64_heads() -> None:
    answer = ask("estimate", model="llama-3.1-70b", tokens=1)
    assert answer["mha_equivalent_bytes_per_token"] == 2_621_440
    assert answer["mha_equivalent_bytes_per_token"] == 80 * 2 * 64 * 128 * 2


def test_deepseek_v4_flash_at_a_million_tokens_in_its_own_formats() -> None:
    """43 windows of 128 rows; 21 layers keep 1 in 4 with an index key, 20 1 in 128."""
    answer = ask("estimate", model="deepseek-v4-flash", tokens=1_000_000)
    assert answer["formats"] == {"kv": "fp8", "indexer": "fp4", "state": None}
    assert answer["total_bytes"] == 3_106_812_928
    assert answer["components"]["window"] == 43 * 128 * 512
    assert answer["components"]["kv"] == (
        21 * (1_000_000 // 4) * 512 + 20 * (1_000_000 // 128) * 512
    )
    assert answer["components"]["indexer"] == 21 * (1_000_000 // 4) * 128 // 2
    assert round(answer["total_bytes"] / 2**30, 5) == 2.89345


def test_deepseek_v4_flash_with_the_formats_spelled_out() -> None:
    answer = ask(
        "estimate",
        model="deepseek-ai/DeepSeek-V4-Flash",
        tokens=1_000_000,
        kv_format="fp8",
        indexer_format="fp4",
    )
    assert answer["total_bytes"] == 3_106_812_928
    assert answer["components"]["draft"] == 0


def test_deepseek_v3_per_token() -> None:
    answer = ask("estimate", model="deepseek-v3", tokens=1, kv_format="bf16")
    assert answer["total_bytes"] == 70_272 == 61 * (512 + 64) * 2


def test_qwen3_5_27b_state_of_one_sequence() -> None:
    """48 layers: 48 heads of 128 x 128 in fp32, and 3 columns of q, k and v."""
    answer = ask("estimate", model="qwen3.5-27b", tokens=1, state_format="fp32")
    assert answer["components"]["state"] == 153_944_064
    assert answer["components"]["state"] == 48 * (
        48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2
    )


@pytest.mark.parametrize(
    ("tokens", "params", "gib"),
    [
        (1_048_576, {}, 3.03387),
        (1_000_000, {"kv_format": "bf16", "indexer_format": "bf16"}, 6.41274),
        (1_000_000, {"draft": True}, 2.89351),
    ],
)
def test_deepseek_v4_flash_in_other_settings(
    tokens: int, params: dict[str, object], gib: float
) -> None:
    """As KVCache.ai's calculator shows them, which was checked against the config."""
    answer = ask("estimate", model="deepseek-v4-flash", tokens=tokens, **params)
    assert round(answer["total_bytes"] / 2**30, 5) == gib


def test_nemotron_super_keeps_a_cache_in_49_of_80_blocks() -> None:
    answer = ask("estimate", model="llama-3-3-nemotron-super-49b-v1", tokens=131_072)
    assert answer["total_bytes"] == 26_306_674_688 == 49 * 2 * 8 * 128 * 131_072 * 2
