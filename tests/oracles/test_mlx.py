"""MLX-LM's own caches, executed, against what kvcore says of the same runs.

`data/mlx.json` holds cache classes fed with appends and whole models,
`mlx_executed.json` small models of many types run by the same release, several ways
each. Every byte must agree, and what MLX-LM cannot do must be refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcore import api
from kvcore.engines.mlx.caches import Append, Chunked, Growing, Rotating
from kvcore.engines.mlx.formats import Codes

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "data"
GIVEN: Final[list[Json]] = json.loads(
    (FOLDER / "mlx.json").read_text(encoding="utf-8")
)["cases"]
EXECUTED: Final[Json] = json.loads(
    (FOLDER / "mlx_executed.json").read_text(encoding="utf-8")
)

DTYPES: Final = {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16"}
SIZES: Final = {"float16": 2, "bfloat16": 2, "float32": 4}


def asked(config: Json, tokens: int, dtype: str, **options: object) -> Json:
    return api.call(
        "estimate",
        {
            "model": config,
            "engine": "mlx",
            "engine_options": options,
            "tokens": tokens,
            "kv_format": DTYPES[dtype],
        },
    )


MODELS: Final = [case for case in GIVEN if case["kind"] == "model"]
TRACES: Final = [case for case in GIVEN if "trace" in case]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["id"])
class TestModels:
    def answer(self, case: Json) -> Json:
        config = {**case["args"], "model_type": case["model_type"]}
        tokens = case["prompt_tokens"] + case["decode_steps"]
        return asked(config, tokens, case["weights_dtype"])

    def test_bytes(self, case: Json) -> None:
        allocated = self.answer(case)["allocated"]
        assert allocated["bytes_per_rank"] == case["nbytes"]
        assert sum(allocated["components"].values()) == case["nbytes"]

    def test_items_lead_from_logical_to_allocated(self, case: Json) -> None:
        answer = self.answer(case)
        added = sum(answer["allocated"]["items"].values())
        assert answer["total_bytes"] + added == case["nbytes"]


def cache_of(case: Json) -> Growing | Rotating | Chunked:
    if case["cache"] == "RotatingKVCache":
        return Rotating(int(case["id"].removeprefix("rot").split("/")[0]))
    return Growing()


def row_bytes(case: Json) -> int:
    """Bytes of one row of all heads, as the case's class stores it."""
    size = SIZES[case["dtype"].rpartition(".")[2]]
    heads = case["batch"] * case["kv_heads"]
    widths = (heads * case["k_dim"], heads * case["v_dim"])
    if case["cache"] != "QuantizedKVCache":
        return sum(widths) * size
    bits, group = case["id"].removeprefix("quant").split("/")[0].split("-")
    codes = Codes(int(bits), int(group))
    return sum(codes.row_bytes(width, size) for width in widths)


@pytest.mark.parametrize("case", TRACES, ids=lambda case: case["id"])
def test_rows_after_every_append(case: Json) -> None:
    """Where steps were left out of the trace, they were single tokens."""
    cache = cache_of(case)
    for step in case["trace"]:
        missing = step["offset"] - step["appended"] - cache.used
        if missing:
            assert case["trace_elided"]
            cache.append(Append(1, missing))
        cache.append(Append(step["appended"]))
        assert cache.rows == step["allocated_tokens"]
        assert cache.rows * row_bytes(case) == step["nbytes"]


def test_quantising_a_cache_keeps_its_rows() -> None:
    (case,) = (case for case in GIVEN if case["id"] == "kv1000.to_quantized(64,4)")
    cache = Growing()
    cache.append(Append(1000))
    width = 8 * 128
    assert cache.rows * 2 * width * 2 == case["from_nbytes"]
    assert cache.rows * 2 * Codes(4, 64).row_bytes(width, 2) == case["nbytes"]


def test_chunked() -> None:
    (case,) = (case for case in GIVEN if case["id"] == "chunked8192/300")
    cache = Chunked(8192)
    cache.append(Append(300))
    assert cache.rows == case["allocated_tokens"]


RUNS: Final = [case for case in EXECUTED["cases"] if "nbytes" in case]
REFUSALS: Final = [case for case in EXECUTED["cases"] if "error" in case]


def executed(case: Json) -> Json:
    run = EXECUTED["runs"][case["run"]]
    config = EXECUTED["models"][case["model"]]
    return asked(config, run["tokens"], case["dtype"], **run["options"])


def name_of(case: Json) -> str:
    return f"{case['model']}-{case['run']}"


@pytest.mark.parametrize("case", RUNS, ids=name_of)
def test_every_type(case: Json) -> None:
    answer = executed(case)
    allocated = answer["allocated"]
    assert allocated["bytes_per_rank"] == case["nbytes"]
    added = sum(allocated["items"].values())
    assert answer["total_bytes"] + added == case["nbytes"]


@pytest.mark.parametrize("case", REFUSALS, ids=name_of)
def test_what_it_cannot_quantise(case: Json) -> None:
    error = executed(case)["error"]
    assert error["code"] in ("unsupported_option", "format_row_mismatch")


# Growth, against the classes' own steps ------------------------------------------

STEP: Final = 256


def grown_step_by_step(appends: list[tuple[int, int]]) -> int:
    """KVCache.update_and_fetch, one append at a time."""
    used = rows = 0
    for tokens, times in appends:
        for _ in range(times):
            if not rows or used + tokens > rows:
                if rows and used % STEP:
                    rows = used
                rows += -(-tokens // STEP) * STEP
            used += tokens
    return rows


@given(
    appends=st.lists(
        st.tuples(
            st.one_of(st.sampled_from([1, 2, 7, 255, 256, 257, 2048]),
                      st.integers(1, 3000)),
            st.integers(1, 400),
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_long_runs_are_counted_as_if_walked(appends: list[tuple[int, int]]) -> None:
    cache = Growing()
    for tokens, times in appends:
        cache.append(Append(tokens, times))
    assert cache.rows == grown_step_by_step(appends)


def test_endless_runs_end() -> None:
    for tokens in (1, 2, 7, 255, 999_983):
        for cache in (Growing(), Rotating(10**11 + 7), Chunked(10**11 + 7)):
            cache.append(Append(tokens, 10**12 // tokens))
            assert cache.rows >= 10**11


LLAMA: Final = "llama-3.1-8b"
ROW: Final = 32 * 2 * 8 * 128
"""Elements of a row of Llama 3.1 8B: layers, keys and values, heads, width."""


class TestOptions:
    def rows(self, tokens: int, model: str = LLAMA, **options: object) -> int:
        answer = api.call(
            "estimate",
            {
                "model": model,
                "engine": "mlx",
                "tokens": tokens,
                "engine_options": options,
            },
        )
        rows, rest = divmod(answer["allocated"]["bytes_per_rank"], ROW * 2)
        assert not rest
        assert isinstance(rows, int)
        return rows

    def test_a_prompt_grows_in_steps(self) -> None:
        assert [self.rows(n) for n in (1, 256, 257, 5000)] == [256, 256, 512, 5120]

    def test_a_limit_turns_the_cache(self) -> None:
        """But for types that make caches of their own, as llamas do."""
        assert self.rows(5000, LLAMA, max_kv_size=1000) == 5120
        layers_of_qwen = 36 / 32
        rows = self.rows(5000, "qwen3-8b", max_kv_size=1000)
        assert rows == 1000 * layers_of_qwen

    def test_quantised_from_a_length_on(self) -> None:
        """4 bits and a 16-bit scale and bias per 64 elements: 36 bytes for 64."""
        assert self.rows(4999, kv_bits=4) == 5120
        assert self.rows(5000, kv_bits=4) == 5120 * 36 // 128

    def test_formats_that_mean_the_same(self) -> None:
        answer = api.call(
            "estimate",
            {"model": LLAMA, "engine": "mlx", "tokens": 256, "kv_format": "int4_g64"},
        )
        assert answer["allocated"]["bytes_per_rank"] == 256 * ROW * 36 // 64
        assert answer["total_bytes"] == answer["allocated"]["bytes_per_rank"]

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ({"kv_format": "q8_0"}, "unsupported_format"),
            ({"state_format": "fp16", "model": "qwen3-next-80b-a3b-instruct"},
             "unsupported_format"),
            ({"engine_options": {"kv_bits": 7}}, "invalid_argument"),
            ({"engine_options": {"kv_bits": 4, "kv_group_size": 48}},
             "invalid_argument"),
            ({"engine_options": {"kv_bits": 4}, "model": "gemma-3-27b-it"},
             "unsupported_option"),
            ({"engine_options": {"kv_bits": 4}, "model": "deepseek-v3"},
             "unsupported_option"),
            ({"model": "deepseek-v4-flash"}, "unsupported_model"),
            ({"model": "whisper-base"}, "unsupported_model"),
        ],
    )  # fmt: skip
    def test_refusals(self, given: Json, code: str) -> None:
        answer = api.call("estimate", {"model": LLAMA, "engine": "mlx", **given})
        assert answer["error"]["code"] == code

    def test_one_device(self) -> None:
        answer = api.call(
            "plan", {"model": LLAMA, "engine": "mlx", "gpu": "h100-sxm", "gpus": 2}
        )
        assert answer["error"]["code"] == "does_not_shard"
