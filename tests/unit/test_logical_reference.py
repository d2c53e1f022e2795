"""Figures of others for whole models, to the byte.

`kvcache_ai.csv` holds what KVCache.ai's public calculator shows for 23 models: totals
with their KV, indexer and state parts. The table below was derived by hand from each
model's own config.json.
"""

from __future__ import annotations

import csv
from typing import Final

import pytest
from unit_support import REPOSITORY, ask

RECORDED: Final = REPOSITORY / "tests/oracles/data/kvcache_ai.csv"

FORMATS: Final = {
    "": "auto",
    "bf16_fp16": "bf16",
    "fp8_int8": "fp8",
    "fp4_int4": "fp4",
    "fp32": "fp32",
}

with RECORDED.open(encoding="utf-8", newline="") as recorded:
    ROWS: Final = list(csv.DictReader(recorded))


def params_of(row: dict[str, str]) -> dict[str, object]:
    params: dict[str, object] = {
        "model": row["hf_id"],
        "tokens": int(row["tokens"]),
        "kv_format": FORMATS[row["precision"]],
        "indexer_format": FORMATS[row["indexer_precision"]],
        "draft": row["draft"] == "included",
    }
    if row["state"] == "excluded":
        params["no_state"] = True
    elif row["state"] in FORMATS:
        params["state_format"] = FORMATS[row["state"]]
    return params


def name_of(row: dict[str, str]) -> str:
    settings = (
        "model_id",
        "tokens",
        "precision",
        "indexer_precision",
        "draft",
        "state",
    )
    return " ".join(row[key] for key in settings)


def test_all_recorded_rows_are_here() -> None:
    assert len(ROWS) == 768
    assert len({name_of(row) for row in ROWS}) == 768


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_as_kvcache_ai_shows_it(row: dict[str, str]) -> None:
    answer = ask("estimate", **params_of(row))
    parts = answer["components"]
    assert answer["total_bytes"] == int(row["total_bytes"])
    assert parts["state"] == int(row["state_bytes"])
    if row["draft"] != "included":  # they count the draft layer's parts apart
        assert parts["kv"] + parts["window"] == int(row["kv_bytes"])
        assert parts["indexer"] == int(row["indexer_bytes"])
        assert parts["draft"] == 0


BF16_AT_131072: Final = {
    "Meta-Llama-3.1-8B": 17_179_869_184,
    "Llama-3.1-70B": 42_949_672_960,
    "Llama-4-Scout-17B-16E-Instruct": 7_650_410_496,
    "Mixtral-8x7B-v0.1": 17_179_869_184,
    "Qwen3-0.6B": 15_032_385_536,
    "Qwen3-8B": 19_327_352_832,
    "Qwen3-32B": 34_359_738_368,
    "Qwen3-235B-A22B": 25_232_932_864,
    "Qwen3.5-27B": 8_589_934_592,
    "Qwen3.5-397B-A17B": 4_026_531_840,
    "DeepSeek-V3": 9_210_691_584,
    "DeepSeek-V3.2": 11_257_511_936,
    "DeepSeek-V4-Flash": 907_411_456,
    "DeepSeek-V4-Pro": 1_298_792_448,
    "GLM-5": 14_394_851_328,
    "GLM-5.2": 12_482_248_704,
    "Kimi-K2-Instruct": 9_210_691_584,
    "Kimi-K3": 3_623_878_656,
    "gpt-oss-20b": 3_224_371_200,
    "gpt-oss-120b": 4_836_556_800,
    "gemma-4-26B-A4B": 2_894_069_760,
    "Gemma-4-31B-IT": 11_576_279_040,
    "MiMo-V2-Flash": 3_045_457_920,
    "MiniMax-M2.5": 33_285_996_544,
    "MiniMax-M3": 18_018_729_984,
    "Nemotron-H-56B-Base-8K": 5_368_709_120,
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 805_306_368,
    "Step-3.7-Flash": 6_511_656_960,
}
"""One sequence of 131,072 tokens, 16-bit rows and index keys, states left out."""


def test_all_models_of_the_table_are_here() -> None:
    assert len(BF16_AT_131072) == 28


@pytest.mark.parametrize(("model", "expected"), BF16_AT_131072.items())
def test_as_derived_from_the_models_own_config(model: str, expected: int) -> None:
    answer = ask(
        "estimate",
        model=model,
        tokens=131_072,
        kv_format="bf16",
        indexer_format="bf16",
        no_state=True,
    )
    assert answer["total_bytes"] == expected
