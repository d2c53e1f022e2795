"""Rules that hold for every model, scope and format, and for every config at all."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import pytest
from hostile import (
    CONFIGS,
    HOSTILE,
    MODEL_TYPES,
    junk,
    made_up_configs,
    models,
    mutated_configs,
    scopes,
    tokens,
    values,
)
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from unit_support import Json, ask, evaluate, llama, read

from kvcore import api, catalog
from kvcore.cache import ChunkedAttention, SlidingWindowAttention
from kvcore.errors import WARNINGS, error_codes

MAX_SECONDS: Final = 2.0
"""Of processor time, for any single question: a page must never seem to hang."""

EXPECTED_CODES: Final = set(error_codes()) - {"internal_error"}

hostile_settings = settings(
    deadline=None, max_examples=400, suppress_health_check=list(HealthCheck)
)


def answered(method: str, params: dict[str, Any]) -> Json | None:
    """The answer, or None if refused; never an exception, an accident or a hang."""
    started = time.process_time()
    answer = api.call(method, params)
    assert time.process_time() - started < MAX_SECONDS
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    if "error" not in answer:
        return answer
    error = answer["error"]
    assert error["code"] in EXPECTED_CODES, error
    assert error["message"]
    assert len(error["message"]) < 2000
    return None


def check_consistent(answer: Json) -> None:
    assert sum(answer["components"].values()) == answer["total_bytes"]
    assert all(type(n) is int and n >= 0 for n in answer["components"].values())
    for line in answer["formula"]:
        assert evaluate(line["expression"], line["values"]) == line["bytes"]
    assert {w["code"] for w in answer["warnings"]} <= set(WARNINGS)


# Catalog models ---------------------------------------------------------------


@given(model=models, scope=scopes)
@settings(deadline=None, max_examples=300)
def test_components_add_up_and_formulas_hold(model: str, scope: Json) -> None:
    answer = answered("estimate", {"model": model, **scope})
    assume(answer is not None)  # some formats do not fit some rows
    assert answer is not None
    check_consistent(answer)
    assert answer["bytes_per_sequence"] * scope["sequences"] == answer["total_bytes"]


@given(model=models, scope=scopes, more=st.integers(0, 10**6))
@settings(deadline=None, max_examples=300)
def test_more_tokens_never_take_less(model: str, scope: Json, more: int) -> None:
    assume(scope["tokens"] + more <= 10**12)
    fewer = answered("estimate", {"model": model, **scope})
    assume(fewer is not None)
    longer = ask("estimate", model=model, **{**scope, "tokens": scope["tokens"] + more})
    assert fewer is not None
    for component, count in fewer["components"].items():
        assert longer["components"][component] >= count


@given(model=models, scope=scopes, times=st.integers(1, 1000))
@settings(deadline=None, max_examples=200)
def test_sequences_multiply(model: str, scope: Json, times: int) -> None:
    one = answered("estimate", {"model": model, **scope, "sequences": 1})
    assume(one is not None)
    many = ask("estimate", model=model, **{**scope, "sequences": times})
    assert one is not None
    assert many["components"] == {c: times * n for c, n in one["components"].items()}


@given(model=models, count=tokens)
@settings(deadline=None, max_examples=300)
def test_windows_are_bounded_by_their_width(model: str, count: int) -> None:
    bound = 0
    for spec, layers in catalog.model(catalog.find(model).id).groups:
        row = 0
        if isinstance(spec, SlidingWindowAttention | ChunkedAttention):
            row = spec.num_kv_heads * (spec.head_dim + spec.value_head_dim)
        elif spec.values.get("window") is not None:
            values = spec.values
            row = values.get("kv_lora_rank", values["head_dim"])
            row += values.get("qk_rope_head_dim", 0) if "kv_lora_rank" in values else 0
        width = spec.values.get("window", spec.values.get("chunk", 0))
        bound += layers * min(count, width) * row * 4
    answer = ask("estimate", model=model, tokens=count, kv_format="fp32")
    assert answer["components"]["window"] <= bound


@given(model=models, count=st.integers(0, 10**7))
@settings(deadline=None, max_examples=200)
def test_a_token_costs_what_the_next_period_grows_by(model: str, count: int) -> None:
    period = catalog.model(catalog.find(model).id).period
    now = ask("estimate", model=model, tokens=count, no_state=True)
    later = ask("estimate", model=model, tokens=count + period, no_state=True)
    grown = later["total_bytes"] - now["total_bytes"]
    assert now["marginal_bytes_per_token"] == -(-grown // period)


@given(model=models, count=tokens)
@settings(deadline=None, max_examples=100)
def test_half_the_bits_take_half_the_bytes(model: str, count: int) -> None:
    sizes = [
        ask("estimate", model=model, tokens=count, no_state=True, kv_format=fmt,
            indexer_format=fmt)["total_bytes"]
        for fmt in ("fp32", "bf16", "fp8")
    ]  # fmt: skip
    assert sizes[0] == 2 * sizes[1] == 4 * sizes[2]


@given(model=models, scope=scopes)
@settings(deadline=None, max_examples=100)
def test_text_in_and_out_is_the_same_answer(model: str, scope: Json) -> None:
    params = {"model": model, **scope}
    request = json.dumps({"method": "estimate", "params": params})
    assert json.loads(api.respond(request)) == api.call("estimate", params)


# Any config -------------------------------------------------------------------


@given(config=made_up_configs(), scope=scopes)
@hostile_settings
def test_made_up_configs_are_answered_or_refused(config: Json, scope: Json) -> None:
    answer = answered("estimate", {"model": config, **scope})
    if answer is not None:
        check_consistent(answer)
        answered("show", {"model": config})


@given(config=mutated_configs(), scope=scopes)
@hostile_settings
def test_mutated_configs_are_answered_or_refused(config: Json, scope: Json) -> None:
    answer = answered("estimate", {"model": config, **scope})
    if answer is not None:
        check_consistent(answer)
        longer = ask(
            "estimate",
            model=config,
            **{**scope, "tokens": min(10**12, 2 * scope["tokens"] + 1)},
        )
        assert longer["total_bytes"] >= answer["total_bytes"]  # fmt: skip


@given(config=st.one_of(made_up_configs(), mutated_configs()))
@hostile_settings
def test_a_config_means_the_same_pasted_as_text(config: Json) -> None:
    try:
        text = json.dumps(config)
    except ValueError:  # an integer Python will not write in digits
        return
    as_text = api.call("show", {"model_text": text})
    as_object = api.call("show", {"model": json.loads(text)})
    assert as_text == as_object


@given(
    method=st.one_of(st.sampled_from(sorted(api.METHODS)), st.text()),
    params=st.one_of(
        junk,
        st.dictionaries(
            st.sampled_from(["model", "model_text", "tokens", "sequences", "points",
                             "kv_format", "engine", "engine_options", "draft", "gpu",
                             "context", "concurrency", "memory_fraction"]),
            st.one_of(values, models),
        ),
    ),
)  # fmt: skip
@hostile_settings
@example(method="estimate", params={"model": "gpt2", "tokens": 10**5000})
@example(method="curve", params={"model": "gpt2", "points": [10**5000]})
def test_any_question_is_answered_or_refused(method: str, params: Any) -> None:
    answered(method, params)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_known_type_answers_or_names_what_it_lacks(model_type: str) -> None:
    for config in (
        {"model_type": model_type},
        {"model_type": model_type, "text_config": {"model_type": model_type}},
        {**llama(), "model_type": model_type},
        {**llama(num_hidden_layers=1), "model_type": model_type},
    ):
        answer = answered("estimate", {"model": config, "tokens": 1000, "draft": True})
        if answer is not None:
            check_consistent(answer)


def test_a_key_dropped_from_any_published_config() -> None:
    seen = set()
    for config in CONFIGS:
        shape = json.dumps([config.get("model_type"), sorted(config)])
        if shape in seen:
            continue
        seen.add(shape)
        for key in config:
            fewer = {name: value for name, value in config.items() if name != key}
            answered("estimate", {"model": fewer, "tokens": 1000})


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:24]
                         .encode("ascii", "backslashreplace").decode())  # fmt: skip
@pytest.mark.parametrize(
    "model",
    ["llama-3.1-8b", "gemma-4-e2b-it", "deepseek-v4-flash", "glm-5.2", "kimi-k3",
     "qwen3.5-27b", "nvidia-nemotron-3-super-120b-a12b-bf16", "mimo-v2-flash",
     "llama-3-3-nemotron-super-49b-v1", "t5-11b", "inkling-2-mini", "minimax-m3",
     "llama-3.2-11b-vision-instruct", "mistral-large-4-1t-a52b"],
)  # fmt: skip
def test_every_key_of_a_config_with_a_hostile_value(model: str, value: object) -> None:
    config = dict(catalog.find(model).config)
    inner = config.get("text_config")
    for key in config:
        answered("estimate", {"model": {**config, key: value}, "tokens": 1000})
    for key in inner if isinstance(inner, dict) else ():
        changed = {**config, "text_config": {**inner, key: value}}
        answered("estimate", {"model": changed, "tokens": 1000})


# Text -------------------------------------------------------------------------

PADDING: Final = "x" * 50_000_000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (json.dumps(llama(x=PADDING)), "input_too_large"),
        ("[" * 50_000_000, "input_too_large"),
        ("[" * 10**7, "invalid_json"),
        ('{"a":' * 10**6, "invalid_json"),
        ('{"num_hidden_layers":' + "9" * 10**7 + "}", "invalid_json"),
        ('{"num_hidden_layers":1e' + "9" * 10**6 + "}", "invalid_field"),
        ('{"num_hidden_layers":' + "0." + "9" * 10**6 + "}", None),
        ('"' + "\\ud800" * 10**6 + '"', "invalid_field"),
        ("\ud800" * 10**6, "invalid_json"),
        (" " * (16 * 2**20), "invalid_json"),
    ],
    ids=["50 MB", "50 MB of brackets", "brackets", "objects", "digits", "exponent",
         "decimals", "escapes", "surrogates", "blanks"],
)  # fmt: skip
def test_texts_of_megabytes_are_refused_at_once(text: str, code: str | None) -> None:
    started = time.process_time()
    answer = api.call("estimate", {"model_text": text})
    assert time.process_time() - started < MAX_SECONDS
    found = answer["error"]["code"]
    assert found == code or (code is None and found in EXPECTED_CODES)
    assert len(json.dumps(answer)) < 2000


def test_the_largest_text_that_is_read_is_read_in_time() -> None:
    names = [f"model.layers.{i}.mlp" for i in range(400_000)]
    text = json.dumps(llama(quantization_config={"ignore": names}))
    assert 10 * 2**20 < len(text) < 16 * 2**20
    started = time.process_time()
    answer = api.call("estimate", {"model_text": text, "tokens": 10})
    assert time.process_time() - started < MAX_SECONDS
    assert answer["total_bytes"] == 4 * 10 * 2 * 2 * 64 * 2


def test_the_deepest_model_is_computed_in_time() -> None:
    """4,096 layers, each with sizes of its own."""
    config = llama(
        num_hidden_layers=4096,
        per_layer_config={str(i): {"head_dim": i + 1} for i in range(4096)},
    )
    assert len(set(read(config).layers)) == 4096
    answer = answered("estimate", {"model": config, "tokens": 1000})
    assert answer is not None
    assert answer["total_bytes"] == 1000 * 2 * 2 * 2 * sum(range(1, 4097))
