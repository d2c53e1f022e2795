"""Models from files: what the command line and the page make of what they are given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from gguf_writer import Writer
from test_cli import Capture, answer_of, check_refused, run
from test_gguf_file import CONVERTED, LLAMA, TENSORS
from test_safetensors import header_json, packed
from unit_support import ask, llama, refusal

from kvcore import catalog, files, parameters
from kvcore.__main__ import main
from kvcore.importers import hf_config
from kvcore.importers.byte_source import in_memory
from kvcore.importers.model_files import describe, parts_of

Json = dict[str, Any]

TOTAL: Final = sum(size for *_, size in TENSORS)
Q8_0: Final = 8


def gguf_bytes(metadata: Mapping[str, object] = LLAMA, tensors: Any = TENSORS,
               order: str = "<") -> bytes:  # fmt: skip
    header, size = Writer(order=order).file(metadata, tensors)
    return header + bytes(size - len(header))


def write(folder: Path, **files: bytes | str | Json) -> Path:
    """Files by name, with "__" for the dots Python's names cannot have."""
    for name, content in files.items():
        text = json.dumps(content) if isinstance(content, dict) else content
        data = text if isinstance(text, bytes) else text.encode()
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


def weights_json(total: int, source: str) -> Json:
    return {"total_bytes": total, "host_bytes": 0, "source": source}


def split(folder: Path, count: int, leave_out: Sequence[int] = ()) -> list[Path]:
    """A model in `count` files, its tensors dealt round."""
    found = []
    for i in range(count):
        keys = {"split.no": i, "split.count": count, "split.tensors.count": 7}
        metadata = LLAMA | keys if i == 0 else keys
        path = folder / f"model-{i + 1:05}-of-{count:05}.gguf"
        if i not in leave_out:
            path.write_bytes(gguf_bytes(metadata, TENSORS[i::count]))
        found.append(path)
    return found


class TestGguf:
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_a_file_shows_its_weights(
        self, capsys: Capture, tmp_path: Path, order: str
    ) -> None:
        path = tmp_path / "model.GGUF"
        path.write_bytes(gguf_bytes(order=order))
        answer = answer_of(capsys, "show", str(path))
        assert answer["weights"]["total_bytes"] == TOTAL
        assert answer["weights"]["quantization"] == "q4_k_m"
        assert answer["facts"]["num_layers"] == 4
        elements = answer["weights"]["elements"]
        assert answer["facts"]["parameters"] == elements
        assert answer["weights"]["bits_per_weight"] == 8 * TOTAL / elements

    def test_for_people(self, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf_bytes())
        assert main(["show", str(path)]) == 0
        out = capsys.readouterr().out
        assert f"{TOTAL:,} bytes" in out
        assert "q4_k_m, " in out
        assert "bits per weight" in out
        assert f"    q6_k               {420_000:>22,} bytes" in out

    def test_under_any_name_as_in_a_store_of_blobs(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "sha256-0a1b"
        path.write_bytes(gguf_bytes())
        assert answer_of(capsys, "show", str(path))["weights"]["total_bytes"] == TOTAL

    def test_on_standard_input_cut_off_or_not(self) -> None:
        whole = gguf_bytes()
        done = run("show", "-", "--json", stdin=whole)
        assert json.loads(done.stdout)["weights"]["total_bytes"] == TOTAL
        done = run("show", "-", "--json", stdin=whole[:200])
        error = json.loads(done.stdout)["error"]
        assert error["code"] == "truncated_file"
        assert error["params"]["file"] == "standard input"

    @pytest.mark.parametrize("name", ["llama-4-maverick-17b-128e-instruct", "glm-5"])
    def test_the_same_bytes_by_file_config_and_name(
        self, capsys: Capture, tmp_path: Path, name: str
    ) -> None:
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf_bytes(CONVERTED[name]))
        config = tmp_path / "config.json"
        config.write_text(json.dumps(dict(catalog.find(name).config)))
        words = ("--tokens", "70000", "--kv-format", "fp16", "--indexer-format", "fp16")
        totals = {
            answer_of(capsys, "estimate", model, *words)["total_bytes"]
            for model in (str(path), str(config), name)
        }
        assert len(totals) == 1

    def test_a_plan_has_its_exact_bytes(self, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf_bytes())
        answer = answer_of(capsys, "plan", str(path), "--gpu", "h100")
        assert answer["weights"] == weights_json(TOTAL, "file")
        assert answer["formats"]["weights"] == "q4_k_m"
        assert answer["rank"]["weight_bytes"] == TOTAL
        codes = {warning["code"] for warning in answer["warnings"]}
        assert not codes & {"weights_estimated", "weight_files_missing"}

    def test_a_draft_model_in_a_file(self, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "draft.gguf"
        path.write_bytes(gguf_bytes())
        words = ("plan", "llama-3.1-8b", "--gpu", "h100")
        alone = answer_of(capsys, *words)["weights"]["total_bytes"]
        both = answer_of(capsys, *words, "--draft-model", str(path))
        assert both["weights"]["total_bytes"] == alone + TOTAL

    def test_what_else_is_asked_is_counted_from_its_tensors(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf_bytes())
        words = ("plan", str(path), "--gpu", "h100", "--weight-format", "bf16")
        answer = answer_of(capsys, *words)
        elements = answer_of(capsys, "show", str(path))["weights"]["elements"]
        assert answer["weights"] == weights_json(2 * elements, "counted")
        stated = answer_of(capsys, *words[:4], "--weight-bytes", "7000000")
        assert stated["weights"] == weights_json(7_000_000, "given")

    @pytest.mark.parametrize("asked", [0, 1, 2])
    def test_split_files_are_one_model(
        self, capsys: Capture, tmp_path: Path, asked: int
    ) -> None:
        paths = split(tmp_path, 3)
        answer = answer_of(capsys, "show", str(paths[asked]))
        assert answer["weights"]["total_bytes"] == TOTAL
        assert answer["weights"]["files"] == 3
        assert answer["warnings"] == []

    def test_missing_parts_are_named(self, capsys: Capture, tmp_path: Path) -> None:
        paths = split(tmp_path, 3, leave_out=[1])
        for command in (["show"], ["plan", "--gpu", "h100"]):
            answer = answer_of(capsys, *command, str(paths[0]))
            params = next(
                warning["params"]
                for warning in answer["warnings"]
                if warning["code"] == "weight_files_missing"
            )
            assert params["names"] == [paths[1].name]
            assert (params["missing"], params["files"]) == (1, 3)
        assert main(["show", str(paths[0])]) == 0
        assert paths[1].name in capsys.readouterr().out

    def test_the_first_part_is_needed(self, capsys: Capture, tmp_path: Path) -> None:
        paths = split(tmp_path, 3, leave_out=[0])
        error = check_refused(capsys, "show", str(paths[1]))
        assert paths[0].name in error["message"]

    def test_a_part_renamed_still_misses_the_others(self) -> None:
        keys = LLAMA | {"split.no": 0, "split.count": 3}
        found = describe([in_memory(gguf_bytes(keys), "renamed.gguf")])
        assert found["weights"]["missing_files"] == ["2 of 3", "3 of 3"]

    @pytest.mark.parametrize(
        ("keys", "code", "part"),
        [
            ({"general.type": "adapter", "general.architecture": "llama",
              "general.base_model.0.name": "Llama 3"}, "adapter_only", "Llama 3"),
            ({"general.type": "adapter", "general.architecture": "llama"},
             "adapter_only", "llama"),
            ({"general.architecture": "clip"}, "unsupported_model", "language model"),
            ({"general.type": "imatrix"}, "unsupported_model", "matter"),
            ({"general.type": "song"}, "unsupported_model", "song"),
            ({"general.name": "x"}, "missing_field", "general.architecture"),
        ],
    )  # fmt: skip
    def test_files_that_are_no_model(
        self, capsys: Capture, tmp_path: Path, keys: Json, code: str, part: str
    ) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(gguf_bytes(keys, []))
        error = check_refused(capsys, "show", str(path))
        assert error["code"] == code
        assert part in error["message"]

    def test_a_projector_beside_the_model_is_left_out(self) -> None:
        projector = in_memory(gguf_bytes({"general.architecture": "clip"}), "a.gguf")
        found = describe([projector, in_memory(gguf_bytes(), "b.gguf")])
        assert found["weights"]["total_bytes"] == TOTAL

    def test_one_model_at_a_time(self) -> None:
        sources = [in_memory(gguf_bytes(), name) for name in ("a.gguf", "b.gguf")]
        with pytest.raises(ValueError, match="at most 1 at a time"):
            describe(sources)

    def test_metadata_alone_need_their_weights_for_a_plan(self) -> None:
        error = refusal("plan", model=dict(LLAMA), gpu="h100")
        assert error["params"] == {"field": "weight_bytes"}
        answer = ask("plan", model=dict(LLAMA), gpu="h100", weight_bytes=10**9)
        assert answer["weights"] == weights_json(10**9, "given")

    def test_experts_make_a_sparse_model(self) -> None:
        """Their share is what one token uses, as the metadata say."""
        found = describe([in_memory(gguf_bytes(), "a.gguf")])
        dense = dict(found["weights"])
        dense["parts"] = {"dense_mlp": {"bytes": TOTAL, "elements": 10}}
        params = {"model": found["model"], "gpu": "h100", "engine": "vllm", "dp": 2}
        spread = ask("plan", **params, weights=found["weights"])
        whole = ask("plan", **params, weights=dense)
        assert spread["rank"]["weight_bytes"] < whole["rank"]["weight_bytes"] == TOTAL


class TestCheckpoint:
    CONFIG: Final = llama(vocab_size=1000, intermediate_size=1024)
    NAMES: Final = (
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    )

    @property
    def counted(self) -> int:
        return parameters.count(self.CONFIG, hf_config.read(self.CONFIG)).total

    def tensors(self) -> list[Json]:
        """All the model's weights in two files, at 16 bits but for a norm."""
        rest = self.counted - 512_000 - 512
        return [
            header_json({"embed": ("BF16", [1000, 512]), "norm": ("F32", [512])}),
            header_json({"rest": ("BF16", [rest])}),
        ]

    def total(self) -> int:
        return 2 * self.counted + 2 * 512

    def folder(self, path: Path, *, index: bool = True, files: int = 2) -> Path:
        write(path, config__json=self.CONFIG)
        names = list(self.NAMES)
        for name, header in list(zip(names, self.tensors(), strict=True))[:files]:
            (path / name).write_bytes(packed(header))
        if index:
            weight_map = {"embed": names[0], "norm": names[0], "rest": names[1]}
            (path / "model.safetensors.index.json").write_text(
                json.dumps(
                    {"metadata": {"total_size": self.total()}, "weight_map": weight_map}
                )
            )
        return path

    @pytest.mark.parametrize("index", [True, False])
    @pytest.mark.parametrize(
        "named", ["", "config.json", "model-00002-of-00002.safetensors"]
    )
    def test_exact_weights_beside_a_config(
        self, capsys: Capture, tmp_path: Path, index: bool, named: str
    ) -> None:
        name = str(self.folder(tmp_path, index=index) / named)
        shown = answer_of(capsys, "show", name)["weights"]
        assert shown["total_bytes"] == self.total()
        assert shown["by_type"]["f32"] == {"bytes": 2048, "elements": 512}
        assert (shown["files"], shown["missing_files"]) == (2, [])
        plan = answer_of(capsys, "plan", name, "--gpu", "h100")
        assert plan["weights"] == weights_json(self.total(), "file")
        assert plan["formats"]["weights"] == "bf16"
        assert plan["rank"]["weight_bytes"] == self.total()

    def test_the_index_by_its_name(self, capsys: Capture, tmp_path: Path) -> None:
        path = self.folder(tmp_path, files=0) / "model.safetensors.index.json"
        shown = answer_of(capsys, "show", str(path))
        assert shown["weights"]["total_bytes"] == self.total()
        assert shown["weights"]["by_type"] == {}
        assert shown["warnings"] == []

    def test_missing_files_without_an_index(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        folder = self.folder(tmp_path, index=False, files=1)
        answer = answer_of(capsys, "plan", str(folder), "--gpu", "h100")
        (missing,) = (w for w in answer["warnings"] if w["code"].startswith("weight_"))
        assert missing["params"]["names"] == ["model-00002-of-00002.safetensors"]

    @pytest.mark.parametrize("here", [0, 1])
    def test_weights_that_are_not_all_here_are_counted_from_the_config(
        self, tmp_path: Path, here: int
    ) -> None:
        """A clone without its large files does not fit for want of weights."""
        folder = self.folder(tmp_path, index=False)
        for name in self.NAMES[here:]:
            (folder / name).write_text("version https://git-lfs.github.com/spec/v1\n")
        given, _ = files.found_of(str(folder))
        plan = ask("plan", **given, gpu="h100")
        assert plan["weights"] == weights_json(2 * self.counted, "counted")
        codes = [warning["code"] for warning in plan["warnings"]]
        assert {"weight_files_missing", "weights_estimated"} <= set(codes)

    @pytest.mark.parametrize("metadata", [{}, {"mergekit_version": "0.0.4"}, None])
    def test_an_index_without_a_total(
        self, tmp_path: Path, metadata: Json | None
    ) -> None:
        folder = self.folder(tmp_path, files=0)
        stated = {"metadata": metadata, "weight_map": {"embed": self.NAMES[0]}}
        write(folder, model__safetensors__index__json=stated)
        given, _ = files.found_of(str(folder))
        plan = ask("plan", **given, gpu="h100")
        assert plan["weights"] == weights_json(2 * self.counted, "counted")

    @pytest.mark.parametrize(
        "header", [{}, header_json({"a.lora_A.weight": ("F32", [8, 8])})]
    )
    def test_files_without_a_models_weights_say_nothing_of_them(
        self, tmp_path: Path, header: Json
    ) -> None:
        write(tmp_path, config__json=self.CONFIG, model__safetensors=packed(header))
        given, _ = files.found_of(str(tmp_path))
        assert "weights" not in given
        plan = ask("plan", **given, gpu="h100")
        assert plan["weights"] == weights_json(2 * self.counted, "counted")

    def test_pointers_are_missing_files(self, capsys: Capture, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        for name in self.NAMES:
            (folder / name).write_text("version https://git-lfs.github.com/spec/v1\n")
        shown = answer_of(capsys, "show", str(folder))["weights"]
        assert (shown["total_bytes"], shown["by_type"]) == (self.total(), {})

    def test_packed_weights_of_a_config_that_says_so(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        stated = {"quantization_config": {"quant_method": "awq", "bits": 4}}
        write(
            tmp_path,
            config__json=self.CONFIG | stated,
            model__safetensors=packed(header_json({"a.qweight": ("I32", [999])})),
        )
        shown = answer_of(capsys, "show", str(tmp_path))["weights"]
        assert shown["quantization"] == "awq 4-bit"
        assert shown["bits_per_weight"] is None
        plan = answer_of(capsys, "plan", str(tmp_path), "--gpu", "h100")
        assert plan["formats"]["weights"] == "awq 4-bit"
        assert plan["weights"]["total_bytes"] == 3996

    def test_one_file_beats_other_files(self, capsys: Capture, tmp_path: Path) -> None:
        write(
            tmp_path,
            config__json=self.CONFIG,
            model__safetensors=packed(header_json({"a": ("BF16", [10])})),
            consolidated__safetensors=packed(header_json({"a": ("BF16", [10])})),
        )
        shown = answer_of(capsys, "show", str(tmp_path))["weights"]
        assert shown["total_bytes"] == 20

    def test_weights_that_cannot_be_counted_are_read(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """A config without a vocabulary has a cache; its files have the weights."""
        write(
            tmp_path,
            config__json=llama(),
            model__safetensors=packed(header_json({"a": ("BF16", [10])})),
        )
        plan = answer_of(capsys, "plan", str(tmp_path), "--gpu", "h100")
        assert plan["weights"] == weights_json(20, "file")
        words = ("plan", str(tmp_path), "--gpu", "h100", "--weight-format", "fp8")
        assert check_refused(capsys, *words)["code"] == "missing_field"


class TestAdapters:
    LORA: Final = {
        "q.lora_A.weight": ("F16", [8, 8]),
        "q.lora_B.weight": ("F16", [8, 8]),
    }

    def test_a_folder_with_an_adapter_only(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        write(
            tmp_path,
            adapter_config__json={"base_model_name_or_path": "org/base"},
            adapter_model__safetensors=packed(header_json(self.LORA)),
        )
        for name in ("", "adapter_model.safetensors"):
            error = check_refused(capsys, "show", str(tmp_path / name))
            assert error["code"] == "adapter_only"
            assert error["params"]["base"] == "org/base"

    def test_an_adapter_without_its_config(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        path = tmp_path / "lora.safetensors"
        path.write_bytes(packed(header_json(self.LORA)))
        assert check_refused(capsys, "show", str(path))["code"] == "adapter_only"

    def test_an_adapter_beside_a_model_is_not_counted(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        write(
            tmp_path,
            config__json=llama(),
            first__safetensors=packed(header_json({"a": ("BF16", [10])})),
            lora__safetensors=packed(header_json(self.LORA)),
        )
        shown = answer_of(capsys, "show", str(tmp_path))["weights"]
        assert shown["total_bytes"] == 20


class TestFolders:
    def test_a_folder_of_the_name_of_a_model(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "gpt2").mkdir()
        assert answer_of(capsys, "show", "gpt2")["id"] == "gpt2"
        write(tmp_path / "gpt2", config__json=llama())
        assert answer_of(capsys, "show", "gpt2")["facts"]["num_layers"] == 4

    @pytest.mark.parametrize("beside", [(), ("mmproj",), ("config",)])
    def test_a_folder_with_a_gguf_file(
        self, capsys: Capture, tmp_path: Path, beside: Sequence[str]
    ) -> None:
        """As a repository of GGUF files is cloned; the page reads it the same way."""
        others: dict[str, bytes | str | Json] = {
            "mmproj__gguf": gguf_bytes({"general.architecture": "clip"}, ()),
            "config__json": llama(),
        }
        chosen = {k: v for k, v in others.items() if k.partition("__")[0] in beside}
        write(tmp_path, a__gguf=gguf_bytes(), tokenizer__json={}, **chosen)
        shown = answer_of(capsys, "show", str(tmp_path))
        assert shown["weights"]["total_bytes"] == TOTAL
        codes = {"mmproj": "files_left_out", "config": "files_beside_gguf"}
        told = {(w["code"], *w["params"]["names"]) for w in shown["warnings"]
                if w["code"].startswith("files_")}  # fmt: skip
        names = [name.replace("__", ".") for name in chosen]
        assert told == {(codes[b], n) for b, n in zip(beside, names, strict=True)}

    def test_a_folder_with_several_quantisations(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        write(tmp_path, **{f"a-{q}__gguf": gguf_bytes() for q in ("Q4_K_M", "Q8_0")})
        error = check_refused(capsys, "show", str(tmp_path))
        assert error["code"] == "several_models"
        assert error["params"]["names"] == ["a-Q4_K_M.gguf", "a-Q8_0.gguf"]

    def test_a_split_model_in_a_folder(self, capsys: Capture, tmp_path: Path) -> None:
        split(tmp_path, 3)
        shown = answer_of(capsys, "show", str(tmp_path))["weights"]
        assert (shown["total_bytes"], shown["missing_files"]) == (TOTAL, [])

    def test_weights_without_a_config_in_a_folder(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        write(tmp_path, model__safetensors=packed(header_json({"a": ("BF16", [1])})))
        error = check_refused(capsys, "show", str(tmp_path))
        assert error["code"] == "config_missing"
        assert error["params"]["files"] == ["model.safetensors"]

    @pytest.mark.parametrize("name", ["", "no.gguf", "no.safetensors", "no.json"])
    def test_what_is_not_there(
        self, capsys: Capture, tmp_path: Path, name: str
    ) -> None:
        error = check_refused(capsys, "show", str(tmp_path / name))
        assert error["code"] == "invalid_argument"
        assert error["params"]["argument"] == "MODEL"

    def test_weights_alone(self, capsys: Capture, tmp_path: Path) -> None:
        write(tmp_path, model__safetensors=packed(header_json({"a": ("BF16", [1])})))
        error = check_refused(capsys, "show", str(tmp_path / "model.safetensors"))
        assert error["code"] == "config_missing"
        assert error["params"] == {"files": ["model.safetensors"]}

    def test_names_of_parts(self) -> None:
        assert parts_of("a-00002-of-00003.gguf") == [
            f"a-0000{i}-of-00003.gguf" for i in (1, 2, 3)
        ]
        assert parts_of("a.gguf") == ["a.gguf"]
        assert len(parts_of("a-00001-of-99999.gguf")) == 1000


class TestHandedOver:
    """`weights` in the api: what a page's file reader hands along with metadata."""

    def test_round_trip(self) -> None:
        found = describe([in_memory(gguf_bytes(), "a.gguf")])
        assert ask("show", **found)["weights"] == found["weights"]
        assert json.loads(json.dumps(found)) == found

    def test_an_estimate_takes_them_along(self) -> None:
        found = describe([in_memory(gguf_bytes(), "a.gguf")])
        assert ask("estimate", **found) == ask("estimate", model=found["model"])

    def test_a_catalog_model_with_files(self) -> None:
        answer = ask(
            "plan", model="llama-3.1-8b", gpu="h100", weights={"total_bytes": 123456}
        )
        assert answer["weights"] == weights_json(123456, "file")

    @pytest.mark.parametrize(
        ("weights", "argument"),
        [
            (7, "weights"),
            ({"x": 1}, "weights.total_bytes"),
            ({"total_bytes": -1}, "weights.total_bytes"),
            ({"total_bytes": 1.5}, "weights.total_bytes"),
            ({"total_bytes": True}, "weights.total_bytes"),
            ({"total_bytes": 10**17}, "weights.total_bytes"),
            ({"total_bytes": 1, "elements": "9"}, "weights.elements"),
            ({"total_bytes": 1, "by_type": []}, None),
            ({"total_bytes": 1, "by_type": [1]}, "weights.by_type"),
            ({"total_bytes": 1, "by_type": {"a": 1}}, "weights.by_type"),
            ({"total_bytes": 1, "by_type": {"a": {"bytes": -1}}},
             "weights.by_type.a.bytes"),
            ({"total_bytes": 1, "parts": {"x" * 200: {}}}, "weights.parts"),
            ({"total_bytes": 1, "parts": {"song": {"bytes": 1}}}, "weights.parts"),
            ({"total_bytes": 1, "quantization": 7}, "weights.quantization"),
            ({"total_bytes": 1, "missing_files": "x"}, "weights.missing_files"),
            ({"total_bytes": 1, "unknown_types": [7]}, "weights.unknown_types"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_is_not_understood(
        self, weights: object, argument: str | None
    ) -> None:
        params = {"model": "llama-3.1-8b", "gpu": "h100", "weights": weights}
        if argument is None:
            ask("plan", **params)
        else:
            assert refusal("plan", **params)["params"]["argument"] == argument
