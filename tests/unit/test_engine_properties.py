"""Rules of every engine, for every model and setting: exact, or refused by name."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from hostile import models, mutated_configs, tokens, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import Json, ask

from kvcore import api, catalog, engines
from kvcore.cache import COMPONENTS
from kvcore.engines.options import Option
from kvcore.errors import error_codes

MAX_SECONDS: Final = 2.0

patient = settings(deadline=None, suppress_health_check=list(HealthCheck))

numbers = st.sampled_from([1, 2, 16, 64, 512, 8192, 10**6])


def value_of(option: Option) -> st.SearchStrategy[object]:
    """Values an option may well have."""
    return {
        "flag": st.booleans(),
        "choice": st.sampled_from(option.choices or ("",)),
        "integer": numbers.map(lambda n: max(n, option.minimum)),
        "number": st.sampled_from([0, 0.1, 0.5, 0.9, 1.0, 8.0]),
    }[option.kind]


@st.composite
def engine_settings(draw: st.DrawFn) -> dict[str, Any]:
    engine = engines.ENGINES[draw(st.sampled_from(list(engines.ENGINES)))]
    given: dict[str, Any] = {"engine": engine.id}
    if draw(st.booleans()):
        given["engine_version"] = draw(st.sampled_from(engine.versions))
    some = draw(st.lists(st.sampled_from(engine.options), max_size=3))
    given["engine_options"] = {option.name: draw(value_of(option)) for option in some}
    for name in ("tp", "pp", "dcp", "block_tokens"):
        if draw(st.integers(0, 5)) == 0:
            given[name] = draw(st.sampled_from([1, 2, 4, 8, 16, 64]))
    return given


scopes = st.fixed_dictionaries(
    {"tokens": tokens, "sequences": st.integers(1, 50)},
    optional={
        "draft": st.booleans(),
        "kv_format": st.sampled_from(["auto", "auto", "bf16", "fp8", "q8_0"]),
    },
)


def allocated(params: dict[str, Any]) -> Json | None:
    """What is allocated, or None if refused by one of the known codes, in time."""
    started = time.process_time()
    answer = api.call("estimate", params)
    assert time.process_time() - started < MAX_SECONDS
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    if "error" in answer:
        code = answer["error"]["code"]
        assert code in set(error_codes()) - {"internal_error"}, answer
        return None
    found: Json = answer["allocated"]
    return found


def check_consistent(found: Json) -> None:
    assert tuple(found["components"]) == COMPONENTS
    assert all(type(n) is int and n >= 0 for n in found["components"].values())
    assert sum(found["components"].values()) == found["bytes_per_rank"]


@given(model=models, scope=scopes, engine=engine_settings())
@settings(patient, max_examples=600)
def test_engines_answer_or_refuse_by_name(
    model: str, scope: Json, engine: Json
) -> None:
    found = allocated({"model": model, **scope, **engine})
    if found is not None:
        check_consistent(found)
        assert found["engine"] == engine["engine"]


@given(config=mutated_configs(), scope=scopes, engine=engine_settings())
@settings(patient, max_examples=300)
def test_engines_survive_any_config(config: Json, scope: Json, engine: Json) -> None:
    found = allocated({"model": config, **scope, **engine})
    if found is not None:
        check_consistent(found)


@given(
    model=models,
    engine=st.sampled_from(list(engines.ENGINES)),
    data=st.data(),
    value=values,
)
@settings(patient, max_examples=300)
def test_engines_survive_any_option(
    model: str, engine: str, data: st.DataObject, value: object
) -> None:
    names = [option.name for option in engines.ENGINES[engine].options]
    name = data.draw(st.sampled_from(names))
    params = {"model": model, "engine": engine, "engine_options": {name: value}}
    found = allocated(params)
    if found is not None:
        check_consistent(found)


@given(model=models, engine=engine_settings(), count=st.integers(0, 10**6),
       more=st.integers(0, 10**6))  # fmt: skip
@settings(patient, max_examples=300)
def test_more_tokens_are_never_allocated_less(
    model: str, engine: Json, count: int, more: int
) -> None:
    fewer = allocated({"model": model, "tokens": count, **engine})
    longer = allocated({"model": model, "tokens": count + more, **engine})
    if fewer is not None and longer is not None:
        assert longer["bytes_per_rank"] >= fewer["bytes_per_rank"]


def test_every_engine_takes_or_refuses_every_catalog_model() -> None:
    for engine in engines.ENGINES:
        answered = 0
        for entry in catalog.entries():
            found = allocated({"model": entry.id, "tokens": 1000, "engine": engine})
            if found is not None:
                check_consistent(found)
                answered += 1
        assert answered > 500, engine


def test_the_choice_of_engine_leaves_logical_bytes_alone() -> None:
    for engine in engines.ENGINES:
        for model in ("llama-3.1-8b", "gemma-3-1b-it", "deepseek-v3"):
            plain = ask("estimate", model=model, tokens=1000, kv_format="bf16")
            with_engine = ask("estimate", model=model, tokens=1000, engine=engine)
            assert with_engine["components"] == plain["components"]
