"""transformers' own caches, measured, against what kvcore says of the same configs.

`data/transformers.json` holds the sizes of real cache tensors; its first lines say
how they were measured. Every case must agree to the byte, component by component,
after the prefill and again after some decoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import api

Json = dict[str, Any]

DATA: Final = Path(__file__).parent / "data" / "transformers.json"

CASES: Final[list[Json]] = json.loads(DATA.read_text(encoding="utf-8"))["cases"]

LLAMA: Final[Json] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_size": 512,
}

MISTRAL: Final[Json] = {**LLAMA, "model_type": "mistral", "sliding_window": 16}

LATENT: Final[Json] = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "hidden_size": 512,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 24,
}

MAMBA: Final[Json] = {
    "model_type": "mamba",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "state_size": 16,
    "conv_kernel": 4,
    "expand": 2,
}

DEEPSEEK_V4: Final[Json] = {
    "model_type": "deepseek_v4",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 64,
    "head_dim": 512,
    "index_head_dim": 128,
    "sliding_window": 128,
    "compress_ratios": [4, 128],
}


def written_out(value: Any) -> Any:
    """A config with its run-length coded lists in full."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"runs"}:
        return [item for item, times in value["runs"] for _ in range(times)]
    if set(value) == {"cycle", "length"}:
        cycle = value["cycle"]
        return [cycle[i % len(cycle)] for i in range(value["length"])]
    return {key: written_out(item) for key, item in value.items()}


def asked(case: Json, tokens: int, prefill: int | None = None) -> Json:
    options = {"dtype": case.get("dtype", "bfloat16"), **case.get("options", {})}
    if prefill is not None:
        options["prefill_tokens"] = prefill
    params = {
        "model": written_out(case["config"]),
        "tokens": tokens,
        "engine": "transformers",
        "engine_options": options,
    }
    for name in ("sequences", "encoder_tokens"):
        if name in case:
            params[name] = case[name]
    if "version" in case:
        params["engine_version"] = case["version"]
    return params


def allocated(params: Json) -> Json:
    answer = api.call("estimate", params)
    assert "error" not in answer, answer["error"]
    found: Json = answer["allocated"]
    return found


def refusal(config: Json, options: Json, **params: object) -> Json:
    answer = api.call(
        "estimate",
        {
            "model": config,
            "tokens": 64,
            "engine": "transformers",
            "engine_options": options,
            **params,
        },
    )
    assert set(answer) == {"error"}, f"answered instead of refusing: {answer}"
    error: Json = answer["error"]
    return error


def moments() -> Iterator[Any]:
    for case in CASES:
        name = f"{case['id']} {case.get('version', '')}".strip()
        yield pytest.param(asked(case, case["tokens"]), case["bytes"], id=name)
        if "later" in case:
            later = case["later"]
            params = asked(case, later["tokens"], prefill=case["tokens"])
            yield pytest.param(params, later["bytes"], id=f"{name} later")


@pytest.mark.parametrize(("params", "measured"), list(moments()))
def test_as_measured(params: Json, measured: dict[str, int]) -> None:
    found = allocated(params)
    parts = {name: size for name, size in found["components"].items() if size}
    assert parts == measured
    assert found["bytes_per_rank"] == sum(measured.values())


def test_the_data_covers_the_field() -> None:
    assert len(CASES) >= 620
    assert sum("later" in case for case in CASES) >= 430
    assert len({case["config"]["model_type"] for case in CASES}) >= 150
    assert {case.get("version", "5.24.0") for case in CASES} == {"5.24.0", "4.57.6"}
    kinds = {
        case.get("options", {}).get("cache_implementation", "dynamic") for case in CASES
    }
    assert kinds == {"dynamic", "dynamic_no_config", "static", "quantized"}


def size(
    config: Json, options: Json | None = None, tokens: int = 64, **more: Any
) -> int:
    found = allocated(
        {
            "model": config,
            "tokens": tokens,
            "engine": "transformers",
            "engine_options": options or {},
            **more,
        }
    )
    total: int = found["bytes_per_rank"]
    return total


def test_the_default_is_a_dynamic_cache_in_the_config_s_dtype() -> None:
    per_token = 2 * 2 * 2 * 64
    assert size(LLAMA) == 64 * per_token * 2
    assert size({**LLAMA, "torch_dtype": "float32"}) == 64 * per_token * 4
    assert size(LLAMA, {"dtype": "float32"}) == 64 * per_token * 4
    assert size(LLAMA, kv_format="fp32") == 64 * per_token * 4
    assert size(LLAMA, {"cache_class": "DynamicCache"}) == size(LLAMA)


def test_a_cache_class_and_an_implementation_are_two_names_of_one_thing() -> None:
    static = {"max_cache_len": 100}
    assert size(LLAMA, {"cache_class": "StaticCache", **static}) == size(
        LLAMA, {"cache_implementation": "static", **static}
    )
    assert size(LLAMA, {"backend": "hqq", "nbits": 2}) == size(
        LLAMA, {"cache_class": "QuantizedCache", "backend": "hqq", "nbits": 2}
    )


def test_a_static_cache_is_as_long_as_it_was_made() -> None:
    made = {"cache_implementation": "static", "max_cache_len": 100}
    assert size(LLAMA, made, tokens=1) == size(LLAMA, made, tokens=100)
    assert size(LLAMA, made, tokens=1) == size(LLAMA, tokens=100)
    default = {"cache_implementation": "static"}
    assert size(LLAMA, default, tokens=33) == size(LLAMA, tokens=33)


def test_a_window_keeps_one_token_less_than_it_sees() -> None:
    per_token = 2 * 2 * 2 * 64 * 2
    assert size(MISTRAL) == 15 * per_token
    assert size(MISTRAL, {"cache_implementation": "dynamic_no_config"}) == (
        64 * per_token
    )
    assert size(MISTRAL, {"cache_implementation": "static"}) == 16 * per_token


def test_sequences_multiply() -> None:
    for config in (LLAMA, MISTRAL, LATENT, MAMBA, DEEPSEEK_V4):
        assert size(config, tokens=70, sequences=3) == 3 * size(config, tokens=70)


def test_the_older_version_kept_every_head_of_a_latent_model() -> None:
    assert size(LATENT) == 64 * 2 * (32 + 8) * 2
    old = size(LATENT, engine_version="4.57.6")
    assert old == 64 * 2 * 8 * (16 + 8 + 24) * 2


def test_a_latent_model_says_that_versions_differ() -> None:
    answer = api.call(
        "estimate", {"model": LATENT, "tokens": 1, "engine": "transformers"}
    )
    assert "engine_version_differs" in [w["code"] for w in answer["warnings"]]


def test_a_state_can_be_left_out() -> None:
    assert size(MAMBA, no_state=True) == 0
    # 128 inner channels: 4 columns of 2 bytes, 16 states of 4 bytes
    assert size(MAMBA) == 2 * 128 * (4 * 2 + 16 * 4)
    assert size(MAMBA, engine_version="4.57.6") == 2 * 128 * (4 * 2 + 16 * 2)


def test_draft_layers_follow_the_same_rules() -> None:
    config = {**LATENT, "num_nextn_predict_layers": 1}
    found = allocated(
        {"model": config, "tokens": 64, "draft": True, "engine": "transformers"}
    )
    assert found["components"]["draft"] == 64 * (32 + 8) * 2
    assert found["components"]["kv"] == size(LATENT)


def test_loading_keeps_a_gate_of_deepseek_v4_in_float32() -> None:
    # The last group of the one 4-to-1 layer: 4 rows of a key and an index key.
    more = size(DEEPSEEK_V4, {"float32_modules": True}) - size(DEEPSEEK_V4)
    assert more == 4 * (512 + 128) * 2


@pytest.mark.parametrize(
    ("config", "options", "params", "code"),
    [
        (LLAMA, {}, {"tp": 2}, "invalid_argument"),
        (LLAMA, {}, {"pp": 2}, "invalid_argument"),
        (LLAMA, {}, {"dcp": 2}, "invalid_argument"),
        (LLAMA, {}, {"block_tokens": 16}, "invalid_argument"),
        (MAMBA, {}, {"checkpoint_interval": 8}, "invalid_argument"),
        (LLAMA, {}, {"kv_format": "fp8"}, "unsupported_format"),
        (LLAMA, {}, {"kv_format": "q8_0"}, "unsupported_format"),
        (MAMBA, {}, {"state_format": "bf16"}, "unsupported_format"),
        (LATENT, {}, {"indexer_format": "fp8"}, "unsupported_format"),
        (LLAMA, {}, {"engine_version": "4.0"}, "unknown_engine"),
        (LLAMA, {"page_size": 1}, {}, "unknown_option"),
        (LLAMA, {"dtype": "fp8"}, {}, "invalid_argument"),
        (LLAMA, {"prefill_tokens": 65}, {}, "invalid_argument"),
        (LLAMA, {"cache_implementation": "paged"}, {}, "invalid_argument"),
        (
            LLAMA,
            {"cache_implementation": "static", "max_cache_len": 63},
            {},
            "invalid_argument",
        ),
        (
            LLAMA,
            {"cache_implementation": "static", "cache_class": "DynamicCache"},
            {},
            "invalid_argument",
        ),
        (LLAMA, {"backend": "quanto", "nbits": 8}, {}, "invalid_argument"),
        (LLAMA, {"backend": "fp8", "nbits": 8}, {}, "invalid_argument"),
        (LLAMA, {"backend": "quanto", "q_group_size": 48}, {}, "invalid_argument"),
        (MISTRAL, {"backend": "quanto"}, {}, "unsupported_model"),
        (MAMBA, {"backend": "quanto"}, {}, "unsupported_model"),
        (MAMBA, {"cache_implementation": "dynamic_no_config"}, {}, "unsupported_model"),
        (DEEPSEEK_V4, {"cache_implementation": "static"}, {}, "unsupported_model"),
        (DEEPSEEK_V4, {}, {"engine_version": "4.57.6"}, "unsupported_model"),
        (
            LATENT,
            {"cache_implementation": "static"},
            {"engine_version": "4.57.6"},
            "unsupported_model",
        ),
        (
            {
                **LLAMA,
                "model_type": "qwen2_moe",
                "use_sliding_window": True,
                "sliding_window": 32,
                "max_window_layers": 2,
            },
            {},
            {"engine_version": "4.57.6"},
            "unsupported_model",
        ),
        (
            {
                "model_type": "rwkv7",
                "num_hidden_layers": 2,
                "hidden_size": 128,
                "head_dim": 64,
            },
            {},
            {},
            "unsupported_model",
        ),
        ({**DEEPSEEK_V4, "model_type": "deepseek_v41"}, {}, {}, "unsupported_model"),
        (
            {k: v for k, v in LATENT.items() if not k.startswith(("qk_nope", "v_head"))}
            | {"model_type": "kimi_k2", "num_key_value_heads": 8},
            {},
            {"engine_version": "4.57.6"},
            "unsupported_model",
        ),
    ],
)
def test_what_transformers_cannot_do_is_refused(
    config: Json, options: Json, params: Json, code: str
) -> None:
    assert refusal(config, options, **params)["code"] == code
