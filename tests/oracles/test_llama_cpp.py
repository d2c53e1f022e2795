"""llama.cpp's own caches, executed, against what kvcore says of the same contexts.

`data/llama_cpp.json` and `data/llama_cpp_executed.json` hold what libllama printed (or
refused) for models described by GGUF metadata; their `about` says how. Every line must
agree word for word, every byte count where the exact bytes are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import api, catalog
from kvcore.engines import find
from kvcore.engines.base import Settings
from kvcore.engines.llama_cpp import LlamaCpp
from kvcore.errors import FormatRowMismatch, KvcoreError, UnsupportedFormat
from kvcore.estimate import CacheFormats, Scope
from kvcore.importers import gguf
from kvcore.model import Model

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "data"
GIVEN: Final[list[Json]] = json.loads(
    (FOLDER / "llama_cpp.json").read_text(encoding="utf-8")
)["cases"]
EXECUTED: Final[Json] = json.loads(
    (FOLDER / "llama_cpp_executed.json").read_text(encoding="utf-8")
)

ENGINE: Final = find("llama_cpp")
assert isinstance(ENGINE, LlamaCpp)

MIB: Final = 1 << 20
SIZE: Final = re.compile(r"size = +([\d.]+) MiB")

UNASKED: Final = ("swa_full", "kv_unified", "n_rs_seq", "n_ubatch")


def metadata_of(architecture: str, keys: Mapping[str, object]) -> Json:
    named = {f"{architecture}.{key}": value for key, value in keys.items()}
    return {"general.architecture": architecture, **named}


def options_of(context: Json) -> Json:
    """Context parameters as engine options; type_v is type_k unless given."""
    key = context.get("type_k", "f16")
    options = {
        "n_ctx": context["n_ctx"],
        "n_seq_max": context.get("n_seq_max", 1),
        "type_k": key,
        "type_v": context.get("type_v", key),
        "flash_attn": context.get("fa", "auto"),
    }
    return options | {name: context[name] for name in UNASKED if name in context}


def scope_of(context: Json, *, draft: bool = False) -> Scope:
    slots = context.get("n_seq_max", 1)
    return Scope(tokens=max(1, context["n_ctx"] // slots), sequences=slots, draft=draft)


def estimate_of(model: Json | str, context: Json, **more: object) -> Json:
    scope = scope_of(context)
    return api.call(
        "estimate",
        {
            "model": model,
            "engine": "llama_cpp",
            "engine_options": options_of(context),
            "tokens": scope.tokens,
            "sequences": scope.sequences,
            **more,
        },
    )


def opened(model: Model, context: Json) -> tuple[CacheFormats, Settings]:
    settings = ENGINE.settings(None, options_of(context))
    return ENGINE.formats(model, "auto", "auto", "auto", settings), settings


def lines_of(model: Model, context: Json) -> list[str]:
    formats, settings = opened(model, context)
    lines = ENGINE.log_lines(model, scope_of(context), formats, settings)
    return [line for line in lines if "buffer size" not in line]


ACCEPTED: Final = [case for case in GIVEN if "expected" in case]
REFUSED: Final = [case for case in GIVEN if "refusal" in case]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case["id"])
class TestAccepted:
    def test_bytes(self, case: Json) -> None:
        answer = estimate_of(
            metadata_of(case["architecture"], case["metadata"]), case["context"]
        )
        allocated = answer["allocated"]
        assert allocated["bytes_per_rank"] == case["expected"]["total_bytes"]
        assert sum(allocated["components"].values()) == allocated["bytes_per_rank"]
        states = case["expected"]["r_bytes"] + case["expected"]["s_bytes"]
        compressors = case["expected"]["dsv4_compressor_state_bytes"]
        assert allocated["components"]["state"] == states + compressors

    def test_items_lead_from_logical_to_allocated(self, case: Json) -> None:
        answer = estimate_of(
            metadata_of(case["architecture"], case["metadata"]), case["context"]
        )
        allocated = answer["allocated"]
        added = sum(allocated["items"].values())
        assert answer["total_bytes"] + added == allocated["bytes_per_rank"]

    def test_lines(self, case: Json) -> None:
        model = gguf.read(metadata_of(case["architecture"], case["metadata"]))
        assert lines_of(model, case["context"]) == case["lines"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_refuses_in_the_librarys_words(case: Json) -> None:
    answer = estimate_of(
        metadata_of(case["architecture"], case["metadata"]), case["context"]
    )
    assert answer["error"]["code"] in (FormatRowMismatch.code, UnsupportedFormat.code)
    assert answer["error"]["params"]["reason"] == case["refusal"]


def executed(kind: str) -> list[Json]:
    return [
        case | {"parameters": EXECUTED["contexts"][case["context"]]}
        for case in EXECUTED["cases"]
        if kind in case
        and bool(EXECUTED["contexts"][case["context"]].get("mtp")) == (kind == "draft")
    ]


def name_of(case: Json) -> str:
    return f"{case['model']}-{case['context']}"


def model_of(case: Json) -> Model:
    found = EXECUTED["models"][case["model"]]
    return gguf.read(metadata_of(found["architecture"], found["metadata"]))


@pytest.mark.parametrize("case", executed("lines"), ids=name_of)
def test_every_architectures_lines(case: Json) -> None:
    assert lines_of(model_of(case), case["parameters"]) == case["lines"]


@pytest.mark.parametrize("case", executed("refusal"), ids=name_of)
def test_every_architectures_refusals(case: Json) -> None:
    with pytest.raises(KvcoreError) as refused:
        opened(model_of(case), case["parameters"])
    assert refused.value.params["reason"] == case["refusal"]


@pytest.mark.parametrize("case", executed("draft"), ids=name_of)
def test_draft_contexts(case: Json) -> None:
    model, context = model_of(case), case["parameters"]
    formats, settings = opened(model, context)
    found = ENGINE.allocate(model, scope_of(context, draft=True), formats, settings)
    printed = sum(float(SIZE.findall(line)[0]) for line in case["draft"])
    assert found.components["draft"] / MIB == pytest.approx(printed, abs=0.01)


class TestConverted:
    """Real models by their configs, against libllama on the converter's metadata."""

    @pytest.mark.parametrize("case", EXECUTED["converted"], ids=name_of)
    def test_lines(self, case: Json) -> None:
        context = EXECUTED["contexts"][case["context"]]
        found = [
            line
            for line in lines_of(catalog.model(case["model"]), context)
            if "MiB" in line
        ]
        assert found == case["lines"]


LLAMA: Final = "llama-3.1-8b"


class TestContexts:
    """tokens is what each sequence must hold; who sizes the context may say otherwise.

    Llama 3.1 8B keeps 131,072 bytes per cell in 16 bits.
    """

    CELL: Final = 32 * 8 * 128 * 2 * 2

    def cells(self, engine: str, tokens: int, sequences: int, **options: object) -> int:
        answer = api.call(
            "estimate",
            {
                "model": LLAMA,
                "engine": engine,
                "tokens": tokens,
                "sequences": sequences,
                "engine_options": options,
            },
        )
        cells, rest = divmod(answer["allocated"]["bytes_per_rank"], self.CELL)
        assert not rest
        assert isinstance(cells, int)
        return cells

    def test_cells_are_padded_for_each_stream(self) -> None:
        assert self.cells("llama_cpp", 1000, 1) == 1024
        assert self.cells("llama_cpp", 1000, 3) == 3 * 1024
        assert self.cells("llama_cpp", 1365, 3, n_ctx=4096) == 3 * 1536

    def test_a_unified_cache_is_shared(self) -> None:
        assert self.cells("llama_cpp", 1000, 3, kv_unified=True) == 3072
        assert self.cells("llama_cpp", 1000, 1, kv_unified=True, n_seq_max=8) == 1024

    def test_the_server_opens_four_slots_in_one_cache(self) -> None:
        server = {"entry_point": "llama_server"}
        assert self.cells("llama_cpp", 8192, 1, **server) == 8192
        assert self.cells("llama_cpp", 8192, 5, **server) == 5 * 8192
        assert self.cells("llama_cpp", 8192, 1, n_parallel=4, **server) == 4 * 8192

    def test_a_context_of_none_is_the_trained_one(self) -> None:
        assert self.cells("llama_cpp", 1, 1, n_ctx=0) == 131072

    def test_ollama_names_its_slots(self) -> None:
        assert self.cells("ollama", 4096, 1) == 4096
        assert self.cells("ollama", 4096, 1, num_parallel=4) == 4 * 4096
        assert self.cells("ollama", 100, 1, num_ctx=4100, num_parallel=2) == 2 * 4352
        assert self.cells("ollama", 100, 1, num_ctx=10**9) == 131072

    def test_lm_studio_shares_one_context_between_four(self) -> None:
        assert self.cells("lm_studio", 8192, 1) == 8192
        assert self.cells("lm_studio", 8192, 1, unifiedKvCache=False) == 4 * 8192
        assert self.cells("lm_studio", 1000, 1, contextLength=4096) == 4096

    def test_a_context_that_is_too_small_is_said(self) -> None:
        answer = api.call(
            "estimate",
            {
                "model": LLAMA,
                "engine": "llama_cpp",
                "tokens": 8192,
                "engine_options": {"n_ctx": 4096},
            },
        )
        codes = [warning["code"] for warning in answer["warnings"]]
        assert "context_too_small" in codes

    @pytest.mark.parametrize(
        ("engine", "options"),
        [("llama_cpp", {"n_seq_max": 2}), ("llama_cpp", {}), ("ollama", {})],
    )
    def test_more_sequences_than_slots_are_refused(
        self, engine: str, options: Json
    ) -> None:
        answer = api.call(
            "estimate",
            {
                "model": LLAMA,
                "engine": engine,
                "tokens": 16,
                "sequences": 257,
                "engine_options": options,
            },
        )
        assert answer["error"]["code"] == "unsupported_option"

    def test_ollama_serves_some_one_at_a_time(self) -> None:
        asked: Json = {"model": "qwen3-next-80b-a3b-instruct", "engine": "ollama"}
        assert "error" not in api.call("estimate", {**asked, "sequences": 1})
        refused = api.call("estimate", {**asked, "sequences": 2})
        assert refused["error"]["params"]["option"] == "num_parallel"


class TestTypes:
    def test_keys_and_values_apart(self) -> None:
        """q8_0 keys are 34 bytes per 32 elements, f16 values 64."""
        answer = api.call(
            "estimate",
            {
                "model": LLAMA,
                "engine": "llama_cpp",
                "tokens": 8192,
                "engine_options": {"type_k": "q8_0"},
            },
        )
        half = 8192 * 32 * 1024 // 32
        assert answer["allocated"]["bytes_per_rank"] == half * (34 + 64)
        assert answer["total_bytes"] == half * (34 + 64)
        assert [line["bytes"] for line in answer["formula"]] == [half * 34, half * 64]

    def test_kv_format_sets_both(self) -> None:
        answer = api.call(
            "estimate",
            {
                "model": LLAMA,
                "engine": "llama_cpp",
                "tokens": 8192,
                "kv_format": "q4_0",
            },
        )
        assert answer["allocated"]["bytes_per_rank"] == 288 * MIB

    @pytest.mark.parametrize("name", ["fp8", "int4_g64", "fp8_ds_mla"])
    def test_other_engines_formats_are_refused(self, name: str) -> None:
        answer = api.call(
            "estimate", {"model": LLAMA, "engine": "llama_cpp", "kv_format": name}
        )
        assert answer["error"]["code"] == "unsupported_format"

    def test_supported_formats_divide_the_heads(self) -> None:
        settings = ENGINE.settings()
        phi = catalog.model("phi-2")
        assert ENGINE.supported_formats(phi, settings) == ("f32", "f16", "bf16")
        assert len(ENGINE.supported_formats(catalog.model(LLAMA), settings)) == 9


class TestDevices:
    def test_layers_go_to_devices_whole(self) -> None:
        """Of 32 layers and the output two devices take 17 and 16: 17 caches and 15."""
        answer = api.call(
            "estimate",
            {"model": LLAMA, "engine": "llama_cpp", "tokens": 8192, "pp": 2},
        )
        whole = 8192 * TestContexts.CELL
        assert answer["allocated"]["bytes_per_rank"] == whole * 17 // 32

    def test_heads_are_not_cut(self) -> None:
        answer = api.call(
            "plan",
            {"model": LLAMA, "gpu": "rtx-3090", "engine": "llama_cpp", "tp": 2},
        )
        assert answer["error"]["code"] == "does_not_shard"


class TestPool:
    def test_what_fits_is_what_is_allocated(self) -> None:
        """One request of 8,192 tokens takes 1 GiB: five in 5.5 GiB, 45,056 cells."""
        model = catalog.model(LLAMA)
        settings = ENGINE.settings()
        formats = ENGINE.formats(model, "auto", "auto", "auto", settings)
        pool = ENGINE.pool(
            model, formats, settings, pool_bytes=5632 * MIB, context=8192
        )
        assert pool is not None
        assert pool.max_concurrency == 5
        assert pool.tokens == 45056
        assert pool.bytes_per_token == TestContexts.CELL
        assert pool.log_lines == (
            "llama_kv_cache:        CPU KV buffer size =  1024.00 MiB",
            "llama_kv_cache: size = 1024.00 MiB (  8192 cells,  32 layers,  1/1 seqs), "
            "K (f16):  512.00 MiB, V (f16):  512.00 MiB",
        )


def test_a_stated_context_bounds_a_plan() -> None:
    """Whatever the memory: two requests of 8,192 in 16,384 cells, one as long."""
    answer = api.call(
        "plan",
        {
            "model": LLAMA,
            "gpu": "h100-sxm",
            "engine": "llama_cpp",
            "context": 8192,
            "engine_options": {"n_ctx": 16384},
        },
    )
    assert (answer["max_requests"], answer["max_context"]) == (2, 16384)


def test_models_without_an_architecture_are_refused() -> None:
    for name in ("whisper-base", "opt-1.3b", "deepseek-v4.1-flash"):
        answer = api.call("estimate", {"model": name, "engine": "llama_cpp"})
        assert answer["error"]["code"] == "unsupported_model"
