"""The `describe` of the api: which models files are, whatever is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from gguf_writer import Writer
from hypothesis import given
from hypothesis import strategies as st
from test_gguf_file import CONVERTED, LLAMA, TENSORS
from test_model_files import TOTAL, gguf_bytes
from test_safetensors import header_json, packed
from unit_support import ask, llama

from kvcore import api, catalog
from kvcore.errors import error_codes
from kvcore.importers.byte_source import ByteSource, in_memory

Json = dict[str, Any]

CONFIG: Final = llama(vocab_size=1000, intermediate_size=1024)
SMALL: Final = CONFIG | {"num_hidden_layers": 1}
SHARDS: Final = (
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
)


def text(value: object) -> bytes:
    return json.dumps(value).encode()


def tensors(*shape: int, name: str = "a") -> bytes:
    return packed(header_json({name: ("BF16", list(shape))}))


def index(total: int, *files: str) -> bytes:
    weight_map = {f"tensor{n}": file for n, file in enumerate(files)}
    return text({"metadata": {"total_size": total}, "weight_map": weight_map})


def sources(files: Mapping[str, bytes]) -> list[ByteSource]:
    return [in_memory(data, name) for name, data in files.items()]


def described(files: Mapping[str, bytes]) -> Json:
    answer = api.call("describe", {}, sources(files))
    assert "error" not in answer, answer["error"]
    return answer


def refused(files: Mapping[str, bytes]) -> Json:
    answer = api.call("describe", {}, sources(files))
    assert set(answer) == {"error"}, answer
    error: Json = answer["error"]
    assert error["code"] in error_codes()
    assert error["code"] != "internal_error"
    return error


def names(answer: Json) -> list[tuple[str, str]]:
    return [(model["role"], model["name"]) for model in answer["models"]]


class TestOneModel:
    def test_a_gguf_file(self) -> None:
        answer = described({"a.gguf": gguf_bytes()})
        (model,) = answer["models"]
        assert (model["role"], model["kind"]) == ("target", "gguf")
        assert model["files"] == ["a.gguf"]
        assert json.loads(model["model_text"]) == LLAMA
        assert model["weights"]["total_bytes"] == TOTAL
        assert model["parameters"] == model["weights"]["elements"]
        assert answer["warnings"] == []

    @pytest.mark.parametrize("name", ["llama-4-maverick-17b-128e-instruct", "glm-5"])
    def test_the_same_bytes_by_file_config_and_name(self, name: str) -> None:
        gguf = described({"a.gguf": gguf_bytes(CONVERTED[name])})
        config = described({"config.json": text(dict(catalog.find(name).config))})
        asked = {"tokens": 70_000, "kv_format": "fp16", "indexer_format": "fp16"}
        totals = {
            ask("estimate", **params, **asked)["total_bytes"]
            for params in (
                {"model": name},
                {"model_text": gguf["models"][0]["model_text"]},
                {"model_text": config["models"][0]["model_text"]},
            )
        }
        assert len(totals) == 1

    def test_a_plan_has_the_bytes_of_the_file(self) -> None:
        (model,) = described({"a.gguf": gguf_bytes()})["models"]
        given = {name: model[name] for name in ("model_text", "weights")}
        plan = ask("plan", **given, gpu="h100")
        assert plan["weights"]["total_bytes"] == TOTAL
        assert plan["weights"]["source"] == "file"

    def test_a_config_alone(self) -> None:
        (model,) = described({"config.json": text(CONFIG)})["models"]
        assert (model["kind"], model["weights"]) == ("config", None)
        assert json.loads(model["model_text"]) == CONFIG
        assert model["parameters"] > 0

    @pytest.mark.parametrize("name", ["params.json", "llama.json", "blob", "c (1).txt"])
    def test_a_config_of_any_name(self, name: str) -> None:
        assert names(described({name: text(CONFIG)})) == [("target", name)]

    @pytest.mark.parametrize("folder", ["", "llama/", "models/llama/"])
    def test_a_checkpoint(self, folder: str) -> None:
        files = {
            "config.json": text(CONFIG),
            "model.safetensors.index.json": index(2 * 700, *SHARDS),
            SHARDS[0]: tensors(300),
            SHARDS[1]: tensors(400, name="b"),
            "tokenizer.json": b"{}",
            "generation_config.json": text({"bos_token_id": 1}),
            "README.md": b"# A model",
        }
        answer = described({folder + name: data for name, data in files.items()})
        (model,) = answer["models"]
        assert (model["kind"], model["name"]) == ("checkpoint", "config.json")
        assert model["weights"]["total_bytes"] == 1400
        assert model["weights"]["missing_files"] == []

    def test_an_index_knows_the_bytes_of_files_that_are_not_here(self) -> None:
        files = {
            "model.safetensors.index.json": index(9000, *SHARDS),
            "config.json": text(CONFIG),
        }
        (model,) = described(files)["models"]
        assert model["weights"]["total_bytes"] == 9000

    def test_missing_files_are_warned_of(self) -> None:
        answer = described({"config.json": text(CONFIG), SHARDS[1]: tensors(5)})
        (warning,) = answer["warnings"]
        assert warning["code"] == "weight_files_missing"
        assert warning["params"]["names"] == [SHARDS[0]]

    def test_parts_of_a_split_file_in_any_order(self) -> None:
        keys = {"split.count": 2, "split.tensors.count": 7}
        files = {
            "m-00002-of-00002.gguf": gguf_bytes({"split.no": 1, **keys}, TENSORS[1::2]),
            "m-00001-of-00002.gguf": gguf_bytes(
                LLAMA | {"split.no": 0} | keys, TENSORS[::2]
            ),
        }
        answer = described(files)
        assert names(answer) == [("target", "m-00001-of-00002.gguf")]
        assert answer["models"][0]["weights"]["total_bytes"] == TOTAL
        assert answer["warnings"] == []

    def test_what_lies_deeper_belongs_to_the_model_above(self) -> None:
        files = {
            "llama/config.json": text(CONFIG),
            "llama/original/params.json": text(SMALL),
            "llama/onnx/config.json": text(SMALL),
        }
        assert names(described(files)) == [("target", "config.json")]

    def test_a_projector_beside_the_model_is_left_out_and_named(self) -> None:
        files = {
            "mmproj.gguf": gguf_bytes({"general.architecture": "clip"}, []),
            "model.gguf": gguf_bytes(),
        }
        answer = described(files)
        assert names(answer) == [("target", "model.gguf")]
        assert answer["warnings"] == [
            {"code": "files_left_out", "params": {"names": ["mmproj.gguf"]}}
        ]


class TestTwoModels:
    @pytest.mark.parametrize("turned", [False, True])
    def test_the_smaller_drafts(self, turned: bool) -> None:
        pairs = [("big.json", text(CONFIG)), ("small.json", text(SMALL))]
        answer = described(dict(reversed(pairs) if turned else pairs))
        assert names(answer) == [("target", "big.json"), ("draft", "small.json")]

    def test_two_gguf_files(self) -> None:
        files = {
            "draft.gguf": gguf_bytes(LLAMA, TENSORS[:3]),
            "target.gguf": gguf_bytes(),
        }
        answer = described(files)
        assert names(answer) == [("target", "target.gguf"), ("draft", "draft.gguf")]
        target, draft = answer["models"]
        plan = ask(
            "plan",
            model_text=target["model_text"],
            weights=target["weights"],
            draft_model_text=draft["model_text"],
            draft_weights=draft["weights"],
            gpu="h100",
        )
        assert plan["draft"]["weight_bytes"] == draft["weights"]["total_bytes"]

    def test_two_folders(self) -> None:
        files = {
            "a/config.json": text(SMALL),
            "b/config.json": text(CONFIG),
            "b/model.safetensors": tensors(7),
        }
        answer = described(files)
        assert [model["kind"] for model in answer["models"]] == ["checkpoint", "config"]

    def test_two_files_of_the_same_name(self) -> None:
        given = [in_memory(text(each), "config.json") for each in (SMALL, CONFIG)]
        answer = api.call("describe", {}, given)
        texts = [json.loads(model["model_text"]) for model in answer["models"]]
        assert texts == [CONFIG, SMALL]

    def test_three_are_too_many(self) -> None:
        error = refused({f"{n}.gguf": gguf_bytes() for n in "abc"})
        assert error["code"] == "several_models"
        assert error["params"]["count"] == 3
        assert error["params"]["names"] == ["a.gguf", "b.gguf", "c.gguf"]


class TestReading:
    def test_only_headers_are_read(self) -> None:
        header, size = Writer().file(LLAMA, [("w", (2**33,), 0, 2**35)])

        def read(offset: int, length: int) -> bytes:
            return header[offset : offset + length].ljust(length, b"\0")

        answer = api.call(
            "describe", {}, [ByteSource(name="a.gguf", size=size, read=read)]
        )
        assert answer["total_bytes"] == size > 2**35
        assert 0 < answer["read_bytes"] < 2**21

    def test_what_cannot_be_read_is_named(self) -> None:
        def read(offset: int, length: int) -> bytes:
            raise OSError("the file has changed")

        answer = api.call(
            "describe", {}, [ByteSource(name="a.gguf", size=9, read=read)]
        )
        assert answer["error"]["code"] == "unreadable_file"
        assert answer["error"]["params"] == {
            "file": "a.gguf",
            "reason": "the file has changed",
        }


class TestRefused:
    @pytest.mark.parametrize(
        ("files", "code", "word"),
        [
            ({}, "no_model_files", "0 files"),
            ({"a.png": b"\x89PNG\r\n"}, "invalid_file", "a.png"),
            ({"a.zip": b"PK\x03\x04" + bytes(99)}, "invalid_file", "PK"),
            ({"empty": b""}, "invalid_file", "empty"),
            ({"a.png": b"\x89PNG", "b.zip": b"PK"}, "no_model_files", "b.zip"),
            ({"config.json": b"\0\1binary"}, "invalid_json", "line 1"),
            ({"config.json": b"[1]"}, "invalid_field", "an object"),
            ({"config.json": b"{}"}, "missing_field", "num_hidden_layers"),
            ({"model.safetensors": tensors(1)}, "config_missing", "config.json"),
            ({"model.safetensors.index.json": index(9, "a.safetensors")},
             "config_missing", "index.json"),
            ({"adapter_config.json": text({"base_model_name_or_path": "org/base"}),
              "adapter_model.safetensors": tensors(1)}, "adapter_only", "org/base"),
            ({"a.safetensors": tensors(1, name="x.lora_A.weight")}, "adapter_only",
             "adapter"),
            ({"a.gguf": gguf_bytes()[:100]}, "truncated_file", "needs at least"),
            ({"config.json": text(CONFIG), "model.safetensors": tensors(1)[:9]},
             "truncated_file", "model.safetensors"),
            ({"a.gguf": gguf_bytes({"general.architecture": "clip"}, [])},
             "unsupported_model", "language model"),
            ({"a.gguf": gguf_bytes({"general.type": "adapter"}, [])}, "adapter_only",
             "a.gguf"),
            ({"m-00002-of-00002.gguf": gguf_bytes({"split.count": 2}, [])},
             "first_part_missing", "m-00001-of-00002.gguf"),
        ],
    )  # fmt: skip
    def test_files(self, files: dict[str, bytes], code: str, word: str) -> None:
        error = refused(files)
        assert error["code"] == code
        assert word in error["message"]

    def test_a_text_longer_than_any_config_is_not_read(self) -> None:
        source = ByteSource(
            name="config.json", size=2**40, read=lambda _, length: b"{" * length
        )
        answer = api.call("describe", {}, [source])
        assert answer["error"]["code"] == "input_too_large"
        assert answer["error"]["params"]["bytes"] == 2**40

    def test_too_many_files(self) -> None:
        source = in_memory(b"", "a")
        answer = api.call("describe", {}, [source] * 2001)
        assert answer["error"]["params"]["argument"] == "files"

    def test_unknown_parameters(self) -> None:
        error = api.call("describe", {"model": "gpt2"}, [])["error"]
        assert error["code"] == "unknown_option"

    NAMES: Final = st.sampled_from(
        ["config.json", "a/config.json", "a.gguf", "b.gguf", "a/m.safetensors", "x",
         "model.safetensors.index.json", "adapter_config.json", "a-00001-of-00003.gguf",
         "a-00003-of-00003.gguf", "//", "", "a/b/c/params.json", "\ud800.json"]
    )  # fmt: skip
    DATA: Final = st.one_of(
        st.binary(max_size=64),
        st.sampled_from(
            [text(CONFIG), text(SMALL), gguf_bytes(), gguf_bytes()[:200], tensors(3),
             gguf_bytes({"split.count": 3}, []), index(9, "m.safetensors"), b"{",
             text({"weight_map": 1}), text([CONFIG]), b"\xef\xbb\xbf" + text(SMALL)]
        ),
    )  # fmt: skip

    @given(st.lists(st.tuples(NAMES, DATA), max_size=5))
    def test_whatever_is_given_is_answered_or_named(
        self, files: Sequence[tuple[str, bytes]]
    ) -> None:
        given = [in_memory(data, name) for name, data in files]
        answer = api.call("describe", {}, given)
        json.dumps(answer, allow_nan=False)
        if "error" in answer:
            assert answer["error"]["code"] in error_codes()
            assert answer["error"]["code"] != "internal_error", answer["error"]
        else:
            assert 1 <= len(answer["models"]) <= 2
            assert answer["read_bytes"] <= 8 * answer["total_bytes"] + 64
