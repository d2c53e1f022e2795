"""Older SGLang's own functions, executed, against what kvcore says they do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import catalog
from kvcore.engines import find
from kvcore.engines.base import DeviceTraits, RankMemory, Settings
from kvcore.errors import UnsupportedFormat, UnsupportedModel, UnsupportedOption
from kvcore.estimate import Scope
from kvcore.model import Model

Json = dict[str, Any]

FILE: Final = Path(__file__).parent / "data" / "sglang_older.json"
DATA: Final[Json] = json.loads(FILE.read_text(encoding="utf-8"))
VERSIONS: Final = ("0.4.10.post2", "0.4.6.post5")
ENGINE: Final = find("sglang")
GIB: Final = 2**30


def settings_of(row: Json, **options: object) -> Settings:
    return ENGINE.settings(
        row["version"],
        options,
        tp=row.get("tp", 1),
        pp=row.get("pp", 1),
        device=DeviceTraits(memory_mib=row.get("card")),
    )


def words(row: Json) -> str:
    return " ".join(str(value) for value in row.values())


def tokens_of(model: Model, settings: Settings, kv: str, gib: float) -> int:
    formats = ENGINE.formats(model, kv, "auto", "auto", settings)
    pool = ENGINE.pool(
        model, formats, settings, pool_bytes=int(gib * GIB), context=4096
    )
    assert pool is not None
    return pool.tokens


@pytest.mark.parametrize("row", DATA["fractions"], ids=words)
def test_default_static_fraction(row: Json) -> None:
    options = {"enable_dp_attention": True, "dp_size": 2} if row["dp_attention"] else {}
    settings = settings_of(row, **options)
    model = catalog.model("llama-3.1-8b")
    assert ENGINE.memory_fraction(model, settings) == row["fraction"]
    assert ENGINE.batched_tokens(settings) == row["chunk"]


@pytest.mark.parametrize("row", DATA["sizes"], ids=words)
def test_tokens(row: Json) -> None:
    kv = "auto" if row["element_bytes"] == 2 else "fp8_e4m3"
    settings = settings_of(row)
    model = catalog.model(row["model"])
    tokens = tokens_of(model, settings, kv, row["gib"])
    assert tokens == row["tokens"]
    # The smallest budget for as many tokens is no larger, and holds them.
    formats = ENGINE.formats(model, kv, "auto", "auto", settings)
    held = ENGINE.allocate(model, Scope(tokens=tokens), formats, settings)
    assert held.bytes_per_rank <= row["gib"] * GIB
    assert tokens_of(model, settings, kv, held.bytes_per_rank / GIB) == tokens


@pytest.mark.parametrize("version", VERSIONS)
def test_what_they_log(version: str) -> None:
    """Keys and values of one layer more than 1,000 tokens, a row of padding."""
    settings = settings_of({"version": version})
    model = catalog.model("llama-3.1-8b")
    formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
    pool = ENGINE.pool(
        model, formats, settings, pool_bytes=100_000 * 131072, context=4096
    )
    assert pool is not None
    assert pool.log_lines[0] == (
        "KV Cache is allocated. #tokens: 100000, K size: 6.10 GB, V size: 6.10 GB"
    )


def test_a_vision_tower_takes_its_part() -> None:
    """A ViT of 32 layers and 1,280 is 2.08 of a ViT-L/14: 0.95 x (1 - 0.108)."""
    model = replace(
        catalog.model("llama-3.1-8b"),
        architecture="Qwen2_5_VLForConditionalGeneration",
        vision_tower=(32, 1280),
    )
    size = 32 * 1280**2 / (24 * 1024**2)
    newer = settings_of({"version": "0.4.10.post2", "card": 81559})
    plain = round((81559 - 10 * 1024) / 81559, 3)
    assert ENGINE.memory_fraction(model, newer) == pytest.approx(
        plain * 0.95 * (1 - 0.1 * (size - 1))
    )
    elder = settings_of({"version": "0.4.6.post5", "card": 81559})
    assert ENGINE.memory_fraction(model, elder) == 0.88 * 0.9
    # Neither keeps memory for embeddings, as the newest does.
    rank = RankMemory(
        total_bytes=81 * GIB, weight_bytes=20 * GIB, reserve_bytes=0, fraction=0.5
    )
    assert ENGINE.budget(rank, model, elder)[1] == (81 * GIB - 2**29) // 2 - 20 * GIB


def test_pages() -> None:
    model = catalog.model("deepseek-v3")
    for version, backend, asked, page in (
        ("0.4.10.post2", None, None, 1),
        ("0.4.10.post2", None, 16, 16),
        ("0.4.10.post2", "flashmla", None, 64),
        ("0.4.10.post2", "trtllm_mla", 32, 32),
        ("0.4.10.post2", "trtllm_mla", 16, 64),
        ("0.4.6.post5", "flashmla", None, 64),
    ):
        options = {"attention_backend": backend, "page_size": asked}
        settings = settings_of({"version": version}, **options)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = ENGINE.pool(model, formats, settings, pool_bytes=GIB, context=1)
        assert pool is not None
        assert pool.block_tokens == page


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "model",
    ["deepseek-v3.2", "deepseek-v4-flash", "qwen3-next-80b-a3b-instruct",
     "gpt-oss-120b", "kimi-linear-48b-a3b-instruct"],
)  # fmt: skip
def test_later_models_are_refused(version: str, model: str) -> None:
    with pytest.raises(UnsupportedModel, match=version):
        ENGINE.check(catalog.model(model), settings_of({"version": version}))


def test_windows() -> None:
    """0.4.10 has a pool of windows for Gemma 3, 0.4.6 keeps all layers in full."""
    model = catalog.model("gemma-3-27b-it")
    with pytest.raises(UnsupportedModel, match="disable_hybrid_swa_memory"):
        ENGINE.check(model, settings_of({"version": "0.4.10.post2"}))
    whole = settings_of({"version": "0.4.10.post2"}, disable_hybrid_swa_memory=True)
    for settings in (whole, settings_of({"version": "0.4.6.post5"})):
        assert tokens_of(model, settings, "auto", 10) == 10 * GIB // 507904


@pytest.mark.parametrize(
    ("options", "sizes", "draft"),
    [
        ({"speculative_algorithm": "EAGLE"}, {}, False),
        ({}, {"pp": 2}, False),
        ({}, {"dcp": 2, "tp": 2}, False),
        ({}, {}, True),
    ],
)
def test_what_is_not_computed_of_them(options: Json, sizes: Json, draft: bool) -> None:
    model = catalog.model("deepseek-v3")
    for version in VERSIONS:
        settings = ENGINE.settings(version, options, **sizes)
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        with pytest.raises(UnsupportedOption):
            ENGINE.allocate(model, Scope(tokens=1, draft=draft), formats, settings)


def test_formats() -> None:
    model = catalog.model("llama-3.1-8b")
    settings = settings_of({"version": VERSIONS[0]})
    assert ENGINE.supported_formats(model, settings) == (
        "auto", "fp8_e4m3", "fp8_e5m2",
    )  # fmt: skip
    assert ENGINE.formats(model, "bf16", "auto", "auto", settings).kv.id == "bf16"
    with pytest.raises(UnsupportedFormat):
        ENGINE.formats(model, "nvfp4", "auto", "auto", settings)
