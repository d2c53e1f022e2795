"""Which fields of a description matter: found by experiment, checked by others here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from unit_support import Json, ask, llama, refusal

from kvcore import catalog, experiments, parameters, weights
from kvcore.errors import KvcoreError
from kvcore.importers import gguf, hf_config
from kvcore.importers.edits import edited, value_at

CONVERTED: Final[dict[str, Json]] = json.loads(
    (Path(__file__).parent / "gguf_converted.json").read_text(encoding="utf-8")
)["models"]
DESCRIPTIONS: Final[dict[str, Mapping[str, Any]]] = {
    **{f"{name}.gguf": metadata for name, metadata in CONVERTED.items()},
    **{entry.id: entry.config for entry in catalog.entries()},
}


def meaning(config: Mapping[str, object]) -> object:
    """What a description comes to: its Model, parameters and weights; or an error."""
    try:
        if gguf.is_metadata(config):
            return gguf.read(config), weights.expert_share(config)
        model = hf_config.read(config)
    except KvcoreError as error:
        return error.code
    try:
        counts = parameters.count(config, model)
    except KvcoreError:
        counts = None
    return model, counts, weights.format_of(config, model.kv_format)


def others(value: object) -> Iterator[object]:
    """Nothing, which removes the field, and other values of its kind."""
    yield ""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (2 * value + 1, value // 2, value + 1)
    elif isinstance(value, str):
        yield from ("float32", "?")
    elif isinstance(value, list) and value:
        yield value[:-1]
        for other in others(value[0]):
            yield [other, *value[1:]]
    else:
        yield from (1, 2, [1])


def matters(config: Mapping[str, object], path: str, target: object = None) -> bool:
    target = target or meaning(config)
    tried = others(value_at(config, path))
    return any(meaning(edited(config, {path: value})) != target for value in tried)


@cache
def fields(name: str) -> Json:
    return ask("fields", model=DESCRIPTIONS[name])


def stated(answer: Json) -> list[str]:
    """Paths of the fields a description has."""
    return [row["path"] for row in answer["fields"] if row["assumed"] is None]


class TestEveryDescription:
    @pytest.mark.parametrize("name", DESCRIPTIONS)
    def test_the_reduced_one_means_the_same_and_all_listed_matter(
        self, name: str
    ) -> None:
        config, answer = DESCRIPTIONS[name], fields(name)
        reduced = json.loads(answer["reduced"])
        target = meaning(config)
        assert meaning(reduced) == target
        assert len(answer["reduced"]) <= len(json.dumps(config, separators=(",", ":")))
        for row in answer["fields"]:
            path = row["path"]
            assert not row["edited"]
            assert row["value"] == row["original"] == value_at(config, path)
            if row["assumed"] is None:
                assert matters(config, path, target), path
                assert value_at(reduced, path) == value_at(config, path)
            else:
                assert value_at(config, path) == ""

    @pytest.mark.parametrize("name", [*DESCRIPTIONS][::23])
    def test_one_by_one_no_other_field_is_found(self, name: str) -> None:
        """Trying whole blocks of fields at once misses none."""
        config = DESCRIPTIONS[name]
        single = {path for path in leaves(config) if matters(config, path)}
        assert single <= set(stated(fields(name)))


def leaves(config: Mapping[str, object], at: str = "") -> Iterator[str]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}"


class TestRows:
    def test_a_plain_model_in_order(self) -> None:
        assert stated(ask("fields", model="llama-3.1-8b-instruct")) == [
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "max_position_embeddings",
            "torch_dtype",
            "hidden_size",
            "attention_bias",
            "intermediate_size",
            "mlp_bias",
            "tie_word_embeddings",
            "vocab_size",
            "architectures",
            "model_type",
        ]

    def test_kinds(self) -> None:
        config = llama(
            head_dim=64.0, tie_word_embeddings=False, torch_dtype="bfloat16",
            architectures=["LlamaForCausalLM"], intermediate_size=64, vocab_size=99,
        )  # fmt: skip
        rows = {row["path"]: row for row in ask("fields", model=config)["fields"]}
        expected = {
            "num_hidden_layers": "integer",
            "head_dim": "number",
            "tie_word_embeddings": "flag",
            "torch_dtype": "text",
            "architectures": "list",
        }
        assert {path: rows[path]["kind"] for path in expected} == expected

    def test_edits_stand_beside_the_originals(self) -> None:
        edits = {
            "num_key_value_heads": 4,
            "colour": "red",
            "max_position_embeddings": "",
        }
        answer = ask("fields", model=llama(), edits=edits)
        assert answer["edited"] == sorted(edits)
        changed = {row["path"]: row for row in answer["fields"] if row["edited"]}
        assert set(changed) == set(edits)
        assert changed["num_key_value_heads"]["value"] == 4
        assert changed["num_key_value_heads"]["original"] == 2
        assert changed["colour"]["original"] == ""
        assert changed["max_position_embeddings"]["value"] == ""

    def test_what_an_edit_makes_matter_is_listed(self) -> None:
        config = llama(
            model_type="qwen2", use_sliding_window=False, sliding_window=1024,
            max_window_layers=2,
        )  # fmt: skip
        before = ask("fields", model=config)
        assert "use_sliding_window" in stated(before)
        assert "sliding_window" not in stated(before)
        after = ask("fields", model=config, edits={"use_sliding_window": True})
        assert {"sliding_window", "max_window_layers"} <= set(stated(after))

    def test_what_was_assumed_can_be_stated(self) -> None:
        answer = ask("fields", model={**catalog.find("mistral-7b-v0.1").config}
                     | {"sliding_window": 4096})  # fmt: skip
        assert [row for row in answer["fields"] if row["assumed"] is not None] == []
        config = {
            key: value
            for key, value in catalog.find("mistral-7b-v0.1").config.items()
            if key != "sliding_window"
        }
        answer = ask("fields", model=config)
        (row,) = [row for row in answer["fields"] if row["assumed"] is not None]
        assert row == {
            "path": "sliding_window", "value": "", "original": "",
            "edited": False, "assumed": 4096, "kind": "integer",
        }  # fmt: skip

    def test_what_was_assumed_inside_a_container_has_its_path(self) -> None:
        config = {
            "model_type": "gemma3",
            "text_config": {"num_hidden_layers": 6, "hidden_size": 512},
        }
        rows = ask("fields", model=config)["fields"]
        assumed = {row["path"]: row["assumed"] for row in rows if row["assumed"]}
        assert assumed["text_config.sliding_window"] == 4096
        assert all(path.startswith("text_config.") for path in assumed)
        for path, value in assumed.items():
            stated = ask("show", model=config, edits={path: value})
            before = ask("show", model=config)
            assert stated["layers"] == before["layers"]
            assert len(stated["warnings"]) < len(before["warnings"])

    def test_names_to_add_have_an_effect(self) -> None:
        for name in ("gpt2", "llama-3.1-8b-instruct", "gemma-3-27b-it.gguf"):
            config = DESCRIPTIONS.get(name) or next(iter(CONVERTED.values()))
            for path in ask("fields", model=config)["addable"]:
                assert value_at(config, path) == ""
                assert matters(config, path), path

    def test_a_model_that_cannot_be_read(self) -> None:
        assert refusal("fields", model={"model_type": "llama"})["code"] == (
            "missing_field"
        )

    def test_rows_of_the_original_where_an_edit_makes_no_model(self) -> None:
        answer = ask("fields", model=llama(), edits={"hidden_size": "wide"})
        (changed,) = [row for row in answer["fields"] if row["edited"]]
        assert (changed["path"], changed["value"]) == ("hidden_size", "wide")
        assert "num_hidden_layers" in stated(answer)

    def test_rows_where_only_the_edited_can_be_read(self) -> None:
        config = {k: v for k, v in llama().items() if k != "num_hidden_layers"}
        answer = ask("fields", model=config, edits={"num_hidden_layers": 4})
        assert "num_key_value_heads" in stated(answer)

    def test_infinite_numbers_are_named(self) -> None:
        text = json.dumps(
            {**llama(), "rope_scaling": {"rope_type": "yarn", "factor": 1}}
        )
        text = text.replace('"factor": 1', '"factor": 2, "original_max_position_'
                            'embeddings": 8192')  # fmt: skip
        answer = ask("fields", model_text=text, edits={"x": float("inf")})
        json.dumps(answer, allow_nan=False)
        (row,) = [row for row in answer["fields"] if row["path"] == "x"]
        assert row["value"] == "Infinity"


class TestReduced:
    def test_drops_what_nobody_reads(self) -> None:
        config = llama(
            torch_dtype="bfloat16", bos_token_id=1,
            id2label={str(n): f"LABEL_{n}" for n in range(1000)},
            transformers_version="4.40", rope_theta=10000.0,
        )  # fmt: skip
        reduced = json.loads(ask("fields", model=config)["reduced"])
        assert reduced.keys() <= {*llama(), "torch_dtype"}

    def test_keeps_one_of_fields_that_stand_in_for_each_other(self) -> None:
        config = llama(torch_dtype="float32", dtype="float32")
        reduced = json.loads(ask("fields", model=config)["reduced"])
        assert meaning(reduced) == meaning(config)

    def test_drops_long_arrays_of_gguf_metadata(self) -> None:
        metadata = {
            **CONVERTED["deepseek-r1-0528-qwen3-8b"],
            "tokenizer.ggml.tokens": ["token"] * 50_000,
            "tokenizer.ggml.merges": ["a b"] * 50_000,
        }
        answer = ask("fields", model=metadata)
        assert len(answer["reduced"]) < 500
        assert meaning(json.loads(answer["reduced"])) == meaning(metadata)

    @pytest.mark.parametrize(
        "edits",
        [
            {"use_sliding_window": True},
            {"use_sliding_window": True, "sliding_window": 7},
            {"num_hidden_layers": "x"},
            {"num_attention_heads": ""},
            {"model_type": "gemma3_text", "head_dim": 32},
        ],
    )
    def test_edited_or_not_it_means_the_same(self, edits: Json) -> None:
        config = llama(
            model_type="qwen2", use_sliding_window=False, sliding_window=1024,
            max_window_layers=2, torch_dtype="float16", vocab_size=1000,
        )  # fmt: skip
        reduced = json.loads(ask("fields", model=config, edits=edits)["reduced"])
        assert meaning(reduced) == meaning(config)
        assert meaning(edited(reduced, edits)) == meaning(edited(config, edits))


def test_few_readings_find_the_fields_among_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fields nobody reads cost next to nothing, however many they are."""
    readings = 0
    really = experiments.differs

    def counted(*given: Any) -> bool:
        nonlocal readings
        readings += 1
        return really(*given)

    monkeypatch.setattr(experiments, "differs", counted)
    spread: Json = {}
    for n, (key, value) in enumerate(llama(torch_dtype="float16").items()):
        spread |= {f"unread_{n}_{i}": i for i in range(200)} | {key: value}
    found = experiments.matter(spread)
    assert [path[0] for path in found] == [*llama(torch_dtype="float16")]
    assert readings < 200
