"""The api's contract: shapes of answers and errors, whatever is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from unit_support import Json, ask, llama, refusal

from kvcore import api, catalog, engines
from kvcore.cache import COMPONENTS
from kvcore.errors import WARNINGS, error_codes
from kvcore.formats import FORMATS

ESTIMATE: Final = {
    "model": str,
    "tokens": int,
    "sequences": int,
    "formats": dict,
    "total_bytes": int,
    "bytes_per_sequence": int,
    "marginal_bytes_per_token": int,
    "components": dict,
    "formula": list,
    "warnings": list,
}
"""Keys and types that are promised."""

BESIDE: Final = {"name", "max_context", "mha_equivalent_bytes_per_token"}


def check_json(answer: Json) -> None:
    """Nothing but JSON, without NaN, and the same after a round trip."""
    text = json.dumps(answer, allow_nan=False)
    assert json.loads(text) == answer


def numbers(value: object) -> list[object]:
    """Every number in an answer, however deep."""
    if isinstance(value, Mapping):
        return [n for inner in value.values() for n in numbers(inner)]
    if isinstance(value, list):
        return [n for inner in value for n in numbers(inner)]
    return [value] if isinstance(value, int | float) else []


# estimate ------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    ["llama-3.1-70b", "qwen3.5-27b", "deepseek-v4-flash", "t5-11b", "mamba-130m-hf",
     "gemma-3n-e4b-it", llama()],
    ids=str,
)  # fmt: skip
def test_the_shape_of_an_estimate(model: object) -> None:
    answer = ask("estimate", model=model, tokens=1000, sequences=2)
    check_json(answer)
    assert set(answer) == set(ESTIMATE) | BESIDE
    for key, kind in ESTIMATE.items():
        assert type(answer[key]) is kind, key
    assert set(answer["formats"]) == {"kv", "indexer", "state"}
    assert tuple(answer["components"]) == COMPONENTS
    assert all(type(count) is int for count in answer["components"].values())
    for line in answer["formula"]:
        assert set(line) == {"component", "kind", "expression", "values", "bytes",
                             "source"}  # fmt: skip
        assert line["component"] in COMPONENTS
        assert re.fullmatch(r"[\w\s*+\-/%(),.]+", line["expression"])
    for warning in answer["warnings"]:
        assert set(warning) == {"code", "params"}
        assert warning["code"] in WARNINGS


def test_there_is_no_float_in_an_estimate() -> None:
    for entry in catalog.entries():
        answer = ask("estimate", model=entry.id, tokens=100_001, sequences=3)
        del answer["warnings"]  # may quote a factor a class means
        assert all(type(n) in (int, bool) for n in numbers(answer)), entry.id


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("llama-3.1-70b", "llama-3.1-70b"),
        ("LLAMA-3.1-70B", "llama-3.1-70b"),
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("https://huggingface.co/meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        (" llama-3.1-70b ", "llama-3.1-70b"),
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-v4-flash"),
    ],
)
def test_a_model_by_any_of_its_names(name: str, id: str) -> None:
    answer = ask("estimate", model=name, tokens=1)
    assert answer["model"] == id
    assert answer == ask("estimate", model=id, tokens=1)


def test_aliases_of_every_model_lead_to_it() -> None:
    for entry in catalog.entries():
        for name in (entry.id, entry.hf_id):
            assert catalog.find(name).id == entry.id
    taken = {entry.id for entry in catalog.entries()}
    for entry in catalog.entries():
        for alias in entry.aliases:
            assert catalog.find(alias).id == entry.id or alias in taken


def test_a_config_as_object_and_as_text_are_the_same() -> None:
    given = llama(torch_dtype="float16", num_nextn_predict_layers=1)
    scope = {"tokens": 77, "draft": True}
    by_object = ask("estimate", model=given, **scope)
    by_text = ask("estimate", model_text=json.dumps(given), **scope)
    assert by_object == by_text
    assert by_object["model"] == by_object["name"] == "llama"


def test_a_catalog_model_is_what_its_config_is() -> None:
    for id in ("llama-3.1-70b", "gemma-3-27b-it", "deepseek-v4-pro", "kimi-k3"):
        by_id = ask("estimate", model=id, tokens=5000)
        by_config = ask("estimate", model=dict(catalog.find(id).config), tokens=5000)
        assert by_id["components"] == by_config["components"]
        assert by_id["formula"] == by_config["formula"]


def test_text_wins_over_a_name() -> None:
    answer = ask("estimate", model="gpt2", model_text=json.dumps(llama()), tokens=1)
    assert answer["model"] == "llama"


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_an_engine_adds_what_it_allocates(engine: str) -> None:
    plain = ask("estimate", model="llama-3.1-8b", tokens=1000)
    answer = ask("estimate", model="llama-3.1-8b", tokens=1000, engine=engine)
    check_json(answer)
    allocated = answer.pop("allocated")
    assert {"engine", "engine_version", "bytes_per_rank", "components"} <= set(
        allocated
    )
    assert allocated["engine"] == engine
    assert allocated["engine_version"] == engines.ENGINES[engine].versions[0]
    assert tuple(allocated["components"]) == COMPONENTS
    assert sum(allocated["components"].values()) == allocated["bytes_per_rank"]
    assert allocated["bytes_per_rank"] >= plain["total_bytes"]
    assert answer["components"] == plain["components"]


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_engine_names_versions_and_options_that_are_not_known(engine: str) -> None:
    base = {"model": "llama-3.1-8b", "engine": engine}
    error = refusal("estimate", **base, engine_version="0.0.0")
    assert error["code"] == "unknown_engine"
    error = refusal("estimate", **base, engine_options={"no_such": 1})
    assert error["code"] == "unknown_option"
    assert error["params"]["option"] == "no_such"
    assert error["params"]["known"] == [o.name for o in engines.ENGINES[engine].options]
    error = refusal("estimate", **base, engine_options=[1])
    assert error["code"] == "invalid_argument"


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    error = refusal("estimate", model="gpt2", engine="vroom")
    assert error["code"] == "unknown_engine"
    assert error["params"] == {"engine": "vroom", "known": ["none", *engines.ENGINES]}


@pytest.mark.parametrize("option", ["engine_version", "engine_options"])
def test_engine_settings_without_an_engine_are_refused(option: str) -> None:
    error = refusal("estimate", model="gpt2", **{option: {"a": 1}})
    assert error["code"] == "invalid_argument"
    assert error["params"]["argument"] == option


def test_no_engine_is_an_engine_of_that_name() -> None:
    answer = ask("estimate", model="gpt2", tokens=10, engine="none")
    assert answer == ask("estimate", model="gpt2", tokens=10)
    assert "allocated" not in answer


# curve ---------------------------------------------------------------------


def test_a_curve_is_the_estimate_at_every_point() -> None:
    points = [0, 1, 127, 128, 4096, 10**6]
    settings = {"model": "deepseek-v4-flash", "sequences": 3, "draft": True}
    answer = ask("curve", points=points, **settings)
    check_json(answer)
    assert set(answer) == {"points", "max_context", "warnings"}
    assert answer["max_context"] == 1_048_576
    for point, tokens in zip(answer["points"], points, strict=True):
        estimate = ask("estimate", tokens=tokens, **settings)
        assert point == {
            "tokens": tokens,
            "total_bytes": estimate["total_bytes"],
            "components": estimate["components"],
        }


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_a_curve_with_an_engine_is_what_it_allocates(engine: str) -> None:
    settings = {"model": "gemma-3-1b-it", "engine": engine}
    answer = ask("curve", points=[100, 5000], **settings)
    for point in answer["points"]:
        estimate = ask("estimate", tokens=point["tokens"], **settings)
        assert point["allocated_bytes"] == estimate["allocated"]["bytes_per_rank"]


@pytest.mark.parametrize(
    "points",
    [None, [], 7, "1,2", {"a": 1}, [1] * 513, [-1], [1.5], ["x"], [None], [True],
     [[1]]],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_points_that_are_no_token_counts(points: object) -> None:
    error = refusal("curve", model="gpt2", points=points)
    assert error["code"] == "invalid_argument"
    assert error["params"]["argument"] in ("points", "tokens")


def test_a_curve_has_points_instead_of_tokens() -> None:
    error = refusal("curve", model="gpt2", points=[1], tokens=1)
    assert error["code"] == "unknown_option"


# show, models, options -----------------------------------------------------


def test_the_shape_of_a_shown_model() -> None:
    answer = ask("show", model="gemma-3-1b-it")
    check_json(answer)
    assert {"id", "name", "hf_id", "family", "released", "model_type", "source_url",
            "retrieved", "facts", "layers", "draft_layers", "warnings"
            } <= set(answer)  # fmt: skip
    facts = answer["facts"]
    assert facts["num_layers"] == 26
    assert facts["num_heads"] == 4
    assert facts["num_kv_heads"] == 1
    assert facts["head_dim"] == 256
    assert facts["hidden_size"] == 1152
    assert facts["max_context"] == 32_768
    assert facts["kv_format"] == "bf16"
    kinds = [(layer["count"], layer["specs"][0]["kind"]) for layer in answer["layers"]]
    assert kinds == [(22, "sliding_window_attention"), (4, "full_attention")]
    assert answer["layers"][0]["specs"][0]["window"] == 512


def test_a_shown_config_has_no_place_in_the_catalog() -> None:
    answer = ask("show", model=llama())
    for key in ("hf_id", "family", "released", "source_url", "retrieved"):
        assert answer[key] is None
    assert answer["aliases"] == []
    assert answer["facts"]["parameters"] is None


def test_every_catalog_model_can_be_shown() -> None:
    for entry in catalog.entries():
        answer = ask("show", model=entry.id)
        check_json(answer)
        counted = sum(layer["count"] for layer in answer["layers"])
        assert counted == answer["facts"]["num_layers"]


def test_the_list_of_models() -> None:
    answer = ask("models")
    check_json(answer)
    assert len(answer["models"]) >= 500
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", answer["catalog_date"])
    for model in answer["models"]:
        assert set(model) >= {
            "id", "name", "hf_id", "family", "released", "model_type", "parameters",
            "active_parameters", "max_context", "aliases", "attention",
        }  # fmt: skip
        assert re.fullmatch(r"\d{4}-\d{2}", model["released"] or "2024-07")
        assert model["max_context"] is None or type(model["max_context"]) is int
        assert model["attention"]
    ids = [model["id"] for model in answer["models"]]
    assert len(set(ids)) == len(ids)


def test_the_list_of_options() -> None:
    answer = ask("options")
    check_json(answer)
    assert [fmt["id"] for fmt in answer["formats"]] == list(FORMATS)
    assert [engine["id"] for engine in answer["engines"]] == list(engines.ENGINES)
    for engine in answer["engines"]:
        assert engine["versions"]
        for option in engine["options"]:
            assert {"name", "type", "choices", "default"} <= set(option)


# Errors --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["models", "options"])
def test_methods_without_parameters_refuse_any(method: str) -> None:
    error = refusal(method, model="gpt2")
    assert error["code"] == "unknown_option"
    assert error["params"]["option"] == "model"


@pytest.mark.parametrize("method", ["show", "estimate", "curve"])
def test_unknown_parameters_are_refused_with_the_known_ones(method: str) -> None:
    points = {"points": [1]} if method == "curve" else {}
    error = refusal(method, model="gpt2", tokns=1, **points)
    assert error["code"] == "unknown_option"
    assert error["params"]["option"] == "tokns"
    assert "model" in error["params"]["known"]


@pytest.mark.parametrize("method", ["", "Estimate", "no_such", "x" * 10**6, "\ud800"])
def test_unknown_methods_are_refused_with_the_known_ones(method: str) -> None:
    error = refusal(method)
    assert error["code"] == "unknown_method"
    assert "estimate" in error["params"]["known"]
    assert len(error["message"]) < 500


@pytest.mark.parametrize("method", [None, 7, [], {}, ["estimate"], b"estimate"])
def test_methods_that_are_no_text(method: object) -> None:
    answer = api.call(method, {})  # type: ignore[arg-type]
    assert answer["error"]["code"] == "unknown_method"


@pytest.mark.parametrize("params", [None, 7, [], "model=gpt2", True])
def test_params_that_are_no_object(params: object) -> None:
    answer = api.call("estimate", params)  # type: ignore[arg-type]
    assert answer["error"]["code"] == "invalid_argument"
    assert answer["error"]["params"]["argument"] == "params"


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (None, "missing_field"),
        ("", "invalid_argument"),
        ("  ", "invalid_argument"),
        (7, "invalid_argument"),
        (True, "invalid_argument"),
        ([], "invalid_argument"),
        ("no-such-model", "unknown_model"),
        ("x" * 10**6, "unknown_model"),
        ("\ud800", "unknown_model"),
        ("../../etc/passwd", "unknown_model"),
        ({}, "missing_field"),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("method", ["estimate", "show"])
def test_models_that_cannot_be_found(method: str, model: object, code: str) -> None:
    error = refusal(method, model=model)
    assert error["code"] == code
    assert len(error["message"]) < 1000


def test_a_name_nearly_right_is_answered_with_suggestions() -> None:
    error = refusal("show", model="lama-3.1-70b")
    assert error["code"] == "unknown_model"
    assert "llama-3.1-70b" in error["params"]["suggestions"]
    assert error["params"]["model"] == "lama-3.1-70b"


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("no_state", "yes"), ("no_state", 1), ("draft", "true"), ("draft", []),
        ("kv_format", 16), ("kv_format", ["fp8"]), ("engine", 7),
        ("model_text", 7), ("model_text", {"a": 1}),
    ],
)  # fmt: skip
def test_parameters_of_the_wrong_kind(param: str, value: object) -> None:
    error = refusal("estimate", **{"model": "gpt2", param: value})
    assert error["code"] == "invalid_argument"
    assert error["params"]["argument"] == param


def test_errors_echo_little_of_what_was_given() -> None:
    long = "x" * 10**6
    for params in (
        {"model": "gpt2", "kv_format": long},
        {"model": "gpt2", long: 1},
        {"model": "gpt2", "engine": long},
        {"model": "gpt2", "tokens": long},
        {"model": "gpt2", "tokens": [[long]]},
        {"model": long},
        {"model": {"model_type": long}},
        {"model": llama(hidden_size=long)},
        {"model": llama(layer_types=[long] * 4)},
        {"model_text": long},
    ):
        error = refusal("estimate", **params)
        assert len(json.dumps(error)) < 4000, error["code"]


class Broken(dict[str, object]):
    """An object that cannot be looked at."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("x" * 1000)


def test_an_accident_inside_is_an_answer_too() -> None:
    answer = api.call("estimate", Broken(model="gpt2"))
    assert answer["error"]["code"] == "internal_error"
    assert "RuntimeError" in answer["error"]["message"]
    assert len(answer["error"]["message"]) < 300


def test_every_error_of_these_tests_is_a_code_of_the_contract() -> None:
    for code in ("missing_field", "invalid_field", "invalid_json", "unknown_model",
                 "unknown_format", "unsupported_format", "format_row_mismatch",
                 "unknown_engine", "unknown_option", "invalid_argument",
                 "unsupported_model", "input_too_large", "unknown_method",
                 "internal_error"):  # fmt: skip
        assert code in error_codes()


# respond -------------------------------------------------------------------


def test_respond_is_call_in_text() -> None:
    params = {"model": "llama-3.1-70b", "tokens": 4096}
    text = json.dumps({"method": "estimate", "params": params})
    assert json.loads(api.respond(text)) == api.call("estimate", params)
    assert json.loads(api.respond('{"method": "options"}')) == api.call("options", {})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", '"estimate"', "{}", '{"params": {}}', "[" * 10**5,
     '{"method": ' + "9" * 10**5 + "}", "\ud800", "\x00", "NaN"],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_requests_that_cannot_be_read(text: str) -> None:
    answer = json.loads(api.respond(text))
    assert answer["error"]["code"] == "invalid_json"


def test_answers_are_text_any_channel_can_carry() -> None:
    """Lone surrogates in a request come back escaped, not as broken text."""
    text = json.dumps({"method": "show", "params": {"model": "\ud800\udcff"}})
    answer = api.respond(text)
    assert answer.encode("utf-8")
    assert json.loads(answer)["error"]["code"] == "unknown_model"


@pytest.mark.parametrize("params", ["null", "7", "[]", '"model"'])
def test_respond_with_params_that_are_no_object(params: str) -> None:
    answer = json.loads(api.respond(f'{{"method": "estimate", "params": {params}}}'))
    assert answer["error"]["code"] == "invalid_argument"
