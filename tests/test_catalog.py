"""The shipped catalog: its entries' form, their names, their configs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kvcore import catalog, datafiles
from kvcore.errors import UnknownModel
from kvcore.importers.hf_config import read

MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
DAY = re.compile(r"20\d\d-\d\d-\d\d")
ID = re.compile(r"[a-z0-9][a-z0-9.\-]*")
REPOSITORY = re.compile(r"[\w.\-]+/[\w.\-]+")

WEIGHTS = {"repo": str, "bytes": int, "source_url": str, "note": (str, type(None))}
PARAMETERS = {
    "total": int,
    "active": (int, type(None)),
    "stated": (int, type(None)),
    "stated_by": (str, type(None)),
    "stored_elements": (int, type(None)),
}
REQUIRED = {
    "id": str,
    "name": str,
    "hf_id": str,
    "family": str,
    "released": (str, type(None)),
    "aliases": list,
    "parameters": dict,
    "source_url": str,
    "model_url": str,
    "sources": list,
    "retrieved": str,
    "confidence": str,
    "config": dict,
}
OPTIONAL = {"weights": dict, "quantized_weights": list, "note": str}

FAMILIES = (
    "Llama, gpt-oss, Gemma, Mistral, Nemotron, Jamba, Granite, Hunyuan, Cohere, Phi, "
    "EXAONE, Solar, HyperCLOVA X, Kanana, A.X, GLM, Kimi, MiniMax, MiMo, Step, OLMo, "
    "SmolLM, LFM, Falcon, RWKV, Whisper, T5, DeepSeek, Qwen"
).split(", ")

COMPARED = """
CohereLabs/c4ai-command-a-03-2025 CohereLabs/c4ai-command-r-plus
CohereLabs/c4ai-command-r-v01 CohereLabs/command-a-plus-05-2026-bf16
MiniMaxAI/MiniMax-M2.1 MiniMaxAI/MiniMax-M2.7 MiniMaxAI/MiniMax-M3
Qwen/Qwen3-0.6B Qwen/Qwen3-1.7B Qwen/Qwen3-4B Qwen/Qwen3.5-0.8B
Qwen/Qwen3.5-122B-A10B Qwen/Qwen3.5-9B Qwen/Qwen3.6-27B
deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-V3.2 deepseek-ai/DeepSeek-V4-Pro
google/gemma-4-26B-A4B meta-llama/Llama-3.1-70B-Instruct
moonshotai/Kimi-K2.5 moonshotai/Kimi-K2.6 moonshotai/Kimi-K3 zai-org/GLM-5.2
meta-llama/Llama-4-Scout-17B-16E-Instruct openai/gpt-oss-120b google/gemma-7b
google/gemma-2-9b-it google/gemma-3-27b-it mistralai/Mixtral-8x7B-v0.1
tiiuae/Falcon-H1-34B-Instruct ibm-granite/granite-4.0-h-small
""".split()
"""What KVCache.ai's calculator lists, and one of every family people ask for."""


def raw_pages() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for page in datafiles.root().joinpath("models").iterdir():
        if page.name.endswith(".json"):
            yield page.name, json.loads(page.read_bytes())


RAW = dict(raw_pages())
ENTRIES = [entry for page in RAW.values() for entry in page]


def check_fields(value: dict[str, Any], form: dict[str, Any], optional: bool) -> None:
    """Fields of `value` are in `form`, of its kinds, and all there unless optional."""
    assert set(value) <= set(form)
    if not optional:
        assert set(value) == set(form)
    for name, kind in form.items():
        if name in value:
            assert isinstance(value[name], kind), name
            assert not isinstance(value[name], bool), name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_entry_has_the_documented_form(entry: dict[str, Any]) -> None:
    required = {name: entry[name] for name in entry if name not in OPTIONAL}
    check_fields(required, REQUIRED, optional=False)
    check_fields({n: entry[n] for n in entry if n in OPTIONAL}, OPTIONAL, optional=True)
    check_fields(entry["parameters"], PARAMETERS, optional=True)
    for weights in [*entry.get("quantized_weights", []), entry.get("weights")]:
        if weights is not None:
            check_fields(weights, WEIGHTS, optional=True)
            assert weights["bytes"] > 10**6
    assert ID.fullmatch(entry["id"])
    assert REPOSITORY.fullmatch(entry["hf_id"])
    assert entry["released"] is None or MONTH.fullmatch(entry["released"])
    assert DAY.fullmatch(entry["retrieved"])
    assert entry["confidence"] in ("verbatim", "agreed", "single")
    assert entry["model_url"] == "https://huggingface.co/" + entry["hf_id"]
    assert entry["source_url"].startswith("https://")
    assert entry["sources"]
    assert entry["config"]["model_type"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_stated_count_says_who_states_it(entry: dict[str, Any]) -> None:
    parameters = entry["parameters"]
    assert (parameters["stated"] is None) == (parameters["stated_by"] is None)
    assert parameters["stated_by"] in (None, "checkpoint", "publisher")


def test_verbatim_fields_name_the_commit_they_were_read_at() -> None:
    for entry in ENTRIES:
        if entry["confidence"] == "verbatim":
            pattern = r"https://github\.com/.+/blob/[0-9a-f]{40}/.+"
            assert re.fullmatch(pattern, entry["source_url"]), entry["id"]


def test_pages_are_sorted_and_named_after_their_family() -> None:
    for name, page in RAW.items():
        assert [entry["id"] for entry in page] == sorted(entry["id"] for entry in page)
        families = {entry["family"] for entry in page}
        assert len(families) == 1
        slug = re.sub(r"[^a-z0-9]+", "-", families.pop().lower()).strip("-")
        assert name == slug + ".json"


def test_catalog_is_large_and_complete() -> None:
    assert len(ENTRIES) >= 500
    assert set(FAMILIES) <= {entry["family"] for entry in ENTRIES}
    assert set(COMPARED) <= {entry["hf_id"] for entry in ENTRIES}


def test_names_mean_one_entry_each() -> None:
    ids = Counter(entry["id"] for entry in ENTRIES)
    repositories = Counter(entry["hf_id"].lower() for entry in ENTRIES)
    tails = Counter(entry["hf_id"].lower().split("/")[1] for entry in ENTRIES)
    aliases = Counter(alias for entry in ENTRIES for alias in entry["aliases"])
    for names in (ids, repositories, tails, aliases):
        assert [name for name, count in names.items() if count > 1] == []
    assert not set(aliases) & (set(ids) | set(repositories))
    assert all(alias == alias.lower().strip() for alias in aliases)


@pytest.mark.parametrize("entry", catalog.entries(), ids=lambda entry: entry.id)
def test_every_config_is_read(entry: catalog.Entry) -> None:
    model = read(entry.config)
    assert model.layers
    assert not [n for n in model.notices if n.code == "unknown_model_type"]


class TestFind:
    """`find`: one name, many spellings."""

    @pytest.mark.parametrize("entry", catalog.entries(), ids=lambda entry: entry.id)
    def test_own_names(self, entry: catalog.Entry) -> None:
        for name in (entry.id, entry.hf_id, entry.hf_id.upper(), *entry.aliases):
            assert catalog.find(name) is catalog.load()[entry.id]

    @pytest.mark.parametrize(
        ("name", "id_"),
        [
            ("Llama-3.1-70B-Instruct", "llama-3.1-70b-instruct"),
            ("llama3.1:70b", "llama-3.1-70b-instruct"),
            ("ollama:llama3.1:70b-instruct-q4_K_M", "llama-3.1-70b-instruct"),
            ("ollama/llama3.1:latest", "llama-3.1-8b-instruct"),
            ("https://ollama.com/library/gpt-oss:120b", "gpt-oss-120b"),
            ("https://huggingface.co/deepseek-ai/DeepSeek-V3", "deepseek-v3"),
            ("hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "qwen3-8b"),
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
            ("  Kimi K3 ", "kimi-k3"),
            ("bartowski/internlm2_5-7b-chat-GGUF", "internlm2-5-7b-chat"),
        ],
    )
    def test_names_as_people_copy_them(self, name: str, id_: str) -> None:
        assert catalog.find(name).id == id_

    @pytest.mark.parametrize(
        "name",
        ["", ":", "/", "gguf", "no such model", pytest.param("x" * 10**6, id="long")],
    )
    def test_unknown_names_are_a_typed_error(self, name: str) -> None:
        with pytest.raises(UnknownModel) as caught:
            catalog.find(name)
        assert caught.value.code == "unknown_model"
        assert len(str(caught.value.params["model"])) <= catalog.MAX_NAME

    @pytest.mark.parametrize(
        ("name", "id_"),
        [
            ("gpt-oss-20", "gpt-oss-20b"),
            ("deepseek-v33", "deepseek-v3"),
            ("lama-3.1-70b-instruct", "llama-3.1-70b-instruct"),
            ("qwen3-8", "qwen3-8b"),
        ],
    )
    def test_suggestions_contain_what_was_meant(self, name: str, id_: str) -> None:
        with pytest.raises(UnknownModel) as caught:
            catalog.find(name)
        suggestions = caught.value.params["suggestions"]
        assert isinstance(suggestions, list)
        assert id_ in suggestions
        assert set(suggestions) <= set(catalog.load())


def test_catalog_date_is_the_latest_reading() -> None:
    assert catalog.catalog_date() == max(entry["retrieved"] for entry in ENTRIES)
