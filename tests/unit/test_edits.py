"""Fields set by hand before a model is read, in every dialect of descriptions."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit_support import Json, ask, llama, refusal, without

from kvcore import api, catalog
from kvcore.__main__ import main
from kvcore.assignments import value_of
from kvcore.errors import InvalidArgument, InvalidField
from kvcore.importers.edits import MAX_EDITS, edited, value_at

CONVERTED: Final[dict[str, Json]] = json.loads(
    (Path(__file__).parent / "gguf_converted.json").read_text(encoding="utf-8")
)["models"]
QWEN: Final = CONVERTED["deepseek-r1-0528-qwen3-8b"]
PARAMS_JSON: Final[Json] = {
    "dim": 512, "n_layers": 4, "n_heads": 8, "n_kv_heads": 2, "hidden_dim": 1024,
    "head_dim": 64, "vocab_size": 1000,
}  # fmt: skip


STORED: Final[Json] = {"total_bytes": 12345678, "elements": 6172839}
"""What a file's header says of its weights."""


def total(model: object, **params: object) -> int:
    found: int = ask("estimate", model=model, tokens=1000, **params)["total_bytes"]
    return found


def idle(answer: Json) -> list[str]:
    """Edits the answer says do nothing."""
    return [
        warning["params"]["field"]
        for warning in answer["warnings"]
        if warning["code"] == "edit_without_effect"
    ]


class TestApplying:
    def test_replaces_in_place_and_leaves_the_original(self) -> None:
        config = llama()
        before = copy.deepcopy(config)
        found = edited(config, {"num_key_value_heads": 4})
        assert config == before
        assert list(found) == list(config)
        assert found["num_key_value_heads"] == 4

    def test_adds_and_removes(self) -> None:
        found = edited(llama(), {"head_dim": 64, "num_key_value_heads": "", "x": ""})
        assert found == {**without(llama(), "num_key_value_heads"), "head_dim": 64}

    def test_reaches_into_objects_and_makes_them(self) -> None:
        config: Json = {"a": {"b": {"c": 1}, "d": 2}, "n": None}
        changes = {"a.b.c": 5, "a.e.f": 6, "n.x": 7, "gone.y": "", "a.d": ""}
        assert edited(config, changes) == {
            "a": {"b": {"c": 5}, "e": {"f": 6}},
            "n": {"x": 7},
        }

    def test_null_is_a_value_and_nothing_is_none(self) -> None:
        config: Json = {"a": {"b": 1}, "c": 2}
        changes = {"a.b": None, "c": "", "d": None}
        assert edited(config, changes) == {"a": {"b": None}, "d": None}
        assert value_at(config, "a.x") == value_at(config, "x") == ""
        assert value_at({"x": None}, "x") is None

    def test_a_key_with_dots_is_a_key_first(self) -> None:
        config: Json = {"a.b": 1, "a": {"b": 2, "c.d": 3}}
        assert edited(config, {"a.b": 9, "a.c.d": 8}) == {
            "a.b": 9,
            "a": {"b": 2, "c.d": 8},
        }

    def test_outer_fields_come_first(self) -> None:
        changes: Json = {"a.b": 1, "a": {"c": 2}}
        for order in (changes, dict(reversed(changes.items()))):
            assert edited({"a": {"z": 0}}, order) == {"a": {"c": 2, "b": 1}}

    def test_gguf_keys_are_whole(self) -> None:
        metadata = {"general.architecture": "llama", "llama.block_count": 8}
        changes = {"llama.block_count": 4, "llama.rope.scaling.factor": 2.0}
        assert edited(metadata, changes) == {**metadata, **changes}

    @given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 9)))
    def test_top_level_edits_are_a_merge(self, changes: dict[str, int]) -> None:
        config: Json = {"a": 0, "z": 0}
        assert edited(config, changes) == {**config, **changes}


class TestRefusals:
    def test_path_through_what_is_no_object(self) -> None:
        with pytest.raises(InvalidField) as raised:
            edited(llama(), {"hidden_size.x.y": 1})
        assert raised.value.params["field"] == "hidden_size"
        assert raised.value.params["value"] == "512"
        assert "hidden_size.x.y" in str(raised.value.params["expected"])

    def test_the_inner_object_is_named_by_its_path(self) -> None:
        with pytest.raises(InvalidField) as raised:
            edited({"a": {"b": [1]}}, {"a.b.0": 1})
        assert raised.value.params["field"] == "a.b"

    @pytest.mark.parametrize("path", ["", ".", "a..b", ".a", "a.", "x" * 201])
    def test_no_path(self, path: str) -> None:
        with pytest.raises(InvalidArgument):
            edited(llama(), {path: 1})

    def test_too_many(self) -> None:
        edited(llama(), {f"f{n}": n for n in range(MAX_EDITS)})
        with pytest.raises(InvalidArgument):
            edited(llama(), {f"f{n}": n for n in range(MAX_EDITS + 1)})

    @pytest.mark.parametrize("shape", [[], "num_layers=3", 3, True, [["a", 1]]])
    @pytest.mark.parametrize("method", ["show", "estimate", "plan", "fields"])
    def test_what_is_no_object(self, method: str, shape: object) -> None:
        error = refusal(method, model=llama(), edits=shape, **gpu_of(method))
        assert error["code"] == "invalid_argument"
        assert error["params"]["argument"] == "edits"

    def test_a_bad_value_names_the_field(self) -> None:
        edits = {"text_config.head_dim": "wide"}
        error = refusal("show", model="gemma-3-27b-it", edits=edits)
        assert error["code"] == "invalid_field"
        assert error["params"]["field"] == "head_dim"

    def test_removing_what_is_needed(self) -> None:
        error = refusal("show", model="llama-3.1-70b", edits={"num_hidden_layers": ""})
        assert error["code"] == "missing_field"
        assert error["params"]["field"] == "num_hidden_layers"

    def test_metadata_without_their_architecture(self) -> None:
        metadata = QWEN
        error = refusal("show", model=metadata, edits={"general.architecture": ""})
        assert error["params"]["field"] == "general.architecture"

    @settings(deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from([*llama(), "head_dim", "rope_scaling", "layer_types"]),
            st.one_of(
                st.none(), st.booleans(), st.integers(), st.text(max_size=5),
                st.floats(), st.lists(st.integers(0, 9), max_size=5),
                st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
            ),
            max_size=4,
        )
    )  # fmt: skip
    def test_any_edit_is_answered_or_refused_with_a_code(self, edits: Json) -> None:
        for method in ("show", "fields"):
            answer = api.call(method, {"model": llama(), "edits": edits})
            assert answer.get("error", {}).get("code") != "internal_error"
            json.dumps(answer, allow_nan=False)
            if "error" not in answer and edits:
                assert answer["edited"] == sorted(edits)


def gpu_of(method: str) -> Json:
    return {"gpu": "h100"} if method == "plan" else {}


class TestDialects:
    def test_config(self) -> None:
        assert total(llama(), edits={"num_key_value_heads": 4}) == 2 * total(llama())

    def test_text(self) -> None:
        answer = ask(
            "estimate",
            model_text=json.dumps(llama()),
            tokens=1000,
            edits={"num_hidden_layers": 2},
        )
        assert answer["total_bytes"] * 2 == total(llama())

    def test_inside_a_multimodal_config(self) -> None:
        config: Mapping[str, Any] = catalog.find("gemma-3-27b-it").config
        inner = {**config["text_config"], "head_dim": 64}
        expected = total({**config, "text_config": inner})
        assert total("gemma-3-27b-it", edits={"text_config.head_dim": 64}) == expected

    def test_layer_types(self) -> None:
        kinds = ["full_attention"] * 62
        full = ask(
            "show", model="gemma-3-27b-it", edits={"text_config.layer_types": kinds}
        )
        assert [(g["count"], g["specs"][0]["kind"]) for g in full["layers"]] == [
            (62, "full_attention")
        ]

    def test_params_json(self) -> None:
        answer = ask("show", model=PARAMS_JSON, edits={"n_kv_heads": 4})
        assert answer["facts"]["num_kv_heads"] == 4
        assert idle(answer) == []

    def test_gguf(self) -> None:
        metadata = QWEN
        changed = {**metadata, "qwen3.attention.head_count_kv": 4}
        edits = {"qwen3.attention.head_count_kv": 4}
        assert total(metadata, edits=edits) == total(changed) == total(metadata) // 2

    def test_gguf_arrays(self) -> None:
        metadata = QWEN
        heads = [8] * 18 + [2] * 18
        edits = {"qwen3.attention.head_count_kv": heads}
        assert total(metadata, edits=edits) * 8 == total(metadata) * 5

    def test_removing_falls_back_to_what_the_class_means(self) -> None:
        answer = ask("show", model="mistral-7b-v0.1", edits={"sliding_window": ""})
        stated = [w for w in answer["warnings"] if w["code"] == "assumed_default"]
        assert [w["params"]["field"] for w in stated] == ["sliding_window"]

    def test_an_edit_can_mend_a_config(self) -> None:
        broken = without(llama(), "num_hidden_layers")
        refusal("show", model=broken)
        answer = ask("show", model=broken, edits={"num_hidden_layers": 4})
        assert answer["facts"]["num_layers"] == 4
        assert idle(answer) == []


class TestWhatIsSaid:
    @pytest.mark.parametrize("method", ["show", "estimate", "plan", "curve"])
    def test_every_answer_says_it_is_edited(self, method: str) -> None:
        more: Json = {"points": [1, 2]} if method == "curve" else gpu_of(method)
        edits = {"num_key_value_heads": 4, "colour": "red"}
        answer = ask(method, model="llama-3.1-8b", edits=edits, **more)
        assert answer["edited"] == ["colour", "num_key_value_heads"]
        assert idle(answer) == ["colour"]
        plain = ask(method, model="llama-3.1-8b", **more)
        assert "edited" not in plain
        assert ask(method, model="llama-3.1-8b", edits={}, **more) == plain

    def test_a_pool_is_cut_for_the_edited_model(self) -> None:
        asked: Json = {
            "engine": "vllm", "pool_bytes": 2**32, "context": 1024, "model": llama()
        }  # fmt: skip
        halved = ask("pool", **asked, edits={"num_key_value_heads": 1})
        assert halved["pool"]["tokens"] == 2 * ask("pool", **asked)["pool"]["tokens"]

    @pytest.mark.parametrize(
        "edits",
        [
            {"no_such_field": 3},
            {"hidden_act": "relu"},
            {"no_such_field": None},
            {"no_such_field": ""},
            {"num_key_value_heads": 2},
            {"text_config.head_dim": 3},
        ],
    )
    def test_an_edit_without_effect(self, edits: Json) -> None:
        answer = ask("show", model=llama(), edits=edits)
        assert idle(answer) == list(edits)
        plain = ask("show", model=llama())
        assert answer["layers"] == plain["layers"]

    def test_two_that_do_the_same_are_not_both_in_vain(self) -> None:
        edits = {"torch_dtype": "float32", "dtype": "float32"}
        answer = ask("show", model=llama(), edits=edits)
        assert answer["facts"]["kv_format"] == "fp32"
        assert len(idle(answer)) == 1

    def test_one_that_only_works_with_another_works(self) -> None:
        config = llama(model_type="qwen2", sliding_window=1024, max_window_layers=0)
        edits = {"use_sliding_window": True, "sliding_window": 512}
        answer = ask("show", model=config, edits=edits)
        assert answer["layers"][0]["specs"][0]["window"] == 512
        assert idle(answer) == []

    def test_a_field_only_the_weights_have_is_no_idle_one(self) -> None:
        answer = ask("show", model="llama-3.1-8b", edits={"vocab_size": 1000})
        assert idle(answer) == []


class TestFactsOfTheCatalog:
    MODEL = "llama-3.1-8b-instruct"

    def parameters(self, **edits: object) -> int:
        found: int = ask("show", model=self.MODEL, edits=edits)["facts"]["parameters"]
        return found

    def test_parameters_are_counted_again_where_an_edit_changes_them(self) -> None:
        stated = catalog.find(self.MODEL).parameters.total
        assert stated is not None
        assert self.parameters(num_key_value_heads=8) == stated
        assert self.parameters(max_position_embeddings=1000) == stated
        # Keys and values of 4 heads fewer, 128 wide, over 4096, in 32 layers.
        fewer = 2 * 4 * 128 * 4096 * 32
        assert self.parameters(num_key_value_heads=4) == stated - fewer

    def test_those_one_token_uses_too(self) -> None:
        model = "mixtral-8x7b-instruct-v0.1"
        before = ask("show", model=model)["facts"]
        after = ask("show", model=model, edits={"num_experts_per_tok": 4})["facts"]
        assert after["parameters"] == before["parameters"]
        assert after["active_parameters"] > before["active_parameters"]
        dense = ask("show", model=self.MODEL, edits={"vocab_size": 10})["facts"]
        assert dense["active_parameters"] is None

    def plan_weights(self, model: object, **params: object) -> Json:
        found: Json = ask("plan", model=model, gpu="b200", **params)["weights"]
        return found

    def test_a_published_checkpoint_holds_only_for_its_own_weights(self) -> None:
        entry = next(e for e in catalog.entries() if e.weights and e.id.startswith("l"))
        held = self.plan_weights(
            entry.id, gpus=8, edits={"max_position_embeddings": 99}
        )
        assert held["source"] == "checkpoint"
        config = {**entry.config, "vocab_size": 1000}
        changed = self.plan_weights(entry.id, gpus=8, edits={"vocab_size": 1000})
        assert changed == self.plan_weights(config, gpus=8)
        assert changed["source"] == "counted"

    def test_the_weights_of_files_are_dropped_where_an_edit_changes_them(self) -> None:
        config = {**catalog.find(self.MODEL).config}
        files = {"weights": STORED}
        kept = self.plan_weights(config, **files, edits={"torch_dtype": "bfloat16"})
        assert kept["source"] == "file"
        dropped = self.plan_weights(config, **files, edits={"num_hidden_layers": 4})
        assert dropped["source"] == "counted"

    def test_a_gguf_files_tensors_are_what_they_are(self) -> None:
        metadata = QWEN
        edits = {"qwen3.attention.head_count_kv": 4}
        kept = self.plan_weights(metadata, weights=STORED, edits=edits)
        assert kept == self.plan_weights(metadata, weights=STORED)


class TestCommandLine:
    def answer(self, capture: pytest.CaptureFixture[str], *words: str) -> Json:
        assert main([*words, "--json"]) == 0
        answer: Json = json.loads(capture.readouterr().out)
        return answer

    @pytest.mark.parametrize(
        "command",
        [["show"], ["estimate", "--tokens", "1000"], ["plan", "--gpu", "h100"]],
        ids=lambda words: words[0],
    )
    def test_set(self, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
        name, *rest = command
        words = [name, "llama-3.1-8b", *rest, "--set", "num_key_value_heads=4"]
        answer = self.answer(capsys, *words, "--set", "torch_dtype=float32")
        params: Json = {"tokens": 1000} if name == "estimate" else gpu_of(name)
        edits = {"num_key_value_heads": 4, "torch_dtype": "float32"}
        assert answer == ask(name, model="llama-3.1-8b", edits=edits, **params)

    def test_nothing_removes(self, capsys: pytest.CaptureFixture[str]) -> None:
        answer = self.answer(
            capsys, "show", "mistral-7b-v0.1", "--set", "sliding_window="
        )
        assert answer["edited"] == ["sliding_window"]
        assert any(w["code"] == "assumed_default" for w in answer["warnings"])

    def test_null_is_a_value(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Mistral without a window says so by null; without the field it has one."""
        answer = self.answer(
            capsys, "show", "mistral-7b-v0.1", "--set", "sliding_window=null"
        )
        assert answer["edited"] == ["sliding_window"]
        assert answer["components"] == ["kv"]
        assert answer["warnings"] == []

    def test_text_says_what_was_edited(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert (
            main(["show", "llama-3.1-8b", "--set", "head_dim=64", "--set", "x=1"]) == 0
        )
        out = capsys.readouterr().out
        assert "edited by hand: head_dim, x" in out
        assert "Setting x by hand changes nothing" in out

    @pytest.mark.parametrize("word", ["head_dim", "", "=4"])
    def test_no_assignment(self, capsys: pytest.CaptureFixture[str], word: str) -> None:
        assert main(["show", "llama-3.1-8b", "--set", word]) == 2
        assert "NAME=VALUE" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("4", 4), ("4.5", 4.5), ("true", True), ("null", None), ("", ""),
            ("bfloat16", "bfloat16"), ('"4"', "4"), ("[1, 2]", [1, 2]),
            ('{"a": 1}', {"a": 1}), ("NaN", "NaN"), ("Infinity", "Infinity"),
            ("4k", "4k"), ("[" * 5000, "[" * 5000),
        ],
    )  # fmt: skip
    def test_values(self, text: str, value: object) -> None:
        found = value_of(text)
        assert found == value
        assert type(found) is type(value)
