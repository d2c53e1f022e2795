"""Safetensors headers and indexes: exact bytes by dtype, adapters, packed weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcore.errors import InvalidFile, KvcoreError
from kvcore.importers.byte_source import MAX_READ_BYTES, ByteSource, in_memory
from kvcore.importers.safetensors import (
    DTYPE_BITS,
    SafetensorsHeader,
    is_safetensors,
    read_header,
    read_index,
    stored_weights,
)
from kvcore.importers.stored import Tensors

Json = dict[str, Any]

MODEL: Final = {
    "model.embed_tokens.weight": ("BF16", [1000, 512]),
    "model.layers.0.self_attn.q_proj.weight": ("BF16", [512, 512]),
    "model.norm.weight": ("F32", [512]),
    "lm_head.weight": ("BF16", [1000, 512]),
}


def header_json(tensors: Mapping[str, tuple[str, list[int]]]) -> Json:
    """Tensors one after the other, as they are written."""
    found: Json = {"__metadata__": {"format": "pt"}}
    begin = 0
    for name, (dtype, shape) in tensors.items():
        end = begin + prod(shape) * DTYPE_BITS[dtype] // 8
        found[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    return found


def packed(header: object) -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data


def read(tensors: Mapping[str, tuple[str, list[int]]]) -> SafetensorsHeader:
    return read_header(in_memory(packed(header_json(tensors)), "model.safetensors"))


def refused(data: bytes) -> Json:
    with pytest.raises(KvcoreError) as caught:
        read_header(in_memory(data, "model.safetensors"))
    return {"code": caught.value.code, **caught.value.params}


class TestHeader:
    def test_bytes_by_dtype(self) -> None:
        found = stored_weights([read(MODEL)])
        elements = 2 * 512_000 + 512 * 512
        assert found.by_type == {
            "bf16": Tensors(2 * elements, elements),
            "f32": Tensors(2048, 512),
        }
        assert found.total_bytes == 2 * elements + 2048
        assert found.elements == elements + 512
        assert (found.quantization, found.notices) == (None, ())

    @pytest.mark.parametrize("dtype", list(DTYPE_BITS))
    def test_every_dtype(self, dtype: str) -> None:
        (tensor,) = read({"a": (dtype, [8, 3])}).tensors
        assert tensor.bytes == 24 * DTYPE_BITS[dtype] // 8
        assert tensor.dtype == dtype.lower()

    def test_a_dtype_of_the_future_has_the_bytes_of_its_place(self) -> None:
        entry = {"dtype": "F5_X", "shape": [8], "data_offsets": [0, 5]}
        (tensor,) = read_header(in_memory(packed({"a": entry}))).tensors
        assert (tensor.bytes, tensor.elements) == (5, 8)

    def test_a_scalar_and_an_empty_tensor(self) -> None:
        found = read({"a": ("F32", []), "b": ("F32", [0, 9])}).tensors
        assert [tensor.bytes for tensor in found] == [4, 0]

    def test_the_data_are_not_read(self) -> None:
        data = packed(header_json(MODEL))
        asked: list[tuple[int, int]] = []

        def slice_of(offset: int, length: int) -> bytes:
            asked.append((offset, length))
            return (data + bytes(2**21))[offset : offset + length]

        read_header(ByteSource(name="x", size=10**11, read=slice_of))
        assert sum(length for _, length in asked) <= 2**21

    def test_what_it_is(self) -> None:
        assert is_safetensors(in_memory(packed(header_json(MODEL))))
        assert not any(
            is_safetensors(in_memory(data))
            for data in (b"", b"{", b"GGUF" + bytes(60), b'{"model_type": "llama"}')
        )


class TestErrors:
    def test_wherever_it_is_cut_off(self) -> None:
        data = packed(header_json(MODEL))
        for length in (0, 7, 8, 20, len(data) - 1):
            error = refused(data[:length])
            assert error["code"] == "truncated_file"
            assert error["needed_bytes"] == (8 if length < 8 else len(data))

    @pytest.mark.parametrize("length", [2**26 + 1, 2**63, 2**64 - 1])
    def test_a_length_beyond_reason(self, length: int) -> None:
        assert refused(struct.pack("<Q", length) + b"{}")["code"] == "invalid_file"

    def test_a_pointer_to_a_file_elsewhere(self) -> None:
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        assert "Git LFS pointer" in refused(pointer)["found"]

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (packed(b"[1, 2]"), "invalid_file"),
            (packed(b"{"), "invalid_file"),
            (packed(b'{"a": ' * 99_999), "invalid_file"),
            (packed(b'{"a": %s}' % (b"9" * 5000)), "invalid_file"),
            (packed(b"{\xff\xfe}"), "invalid_file"),
            (bytes(8), "invalid_file"),
        ],
    )
    def test_headers_that_are_none(self, data: bytes, code: str) -> None:
        assert refused(data)["code"] == code

    @pytest.mark.parametrize(
        "change",
        [
            {"dtype": None},
            {"dtype": 7},
            {"dtype": ""},
            {"dtype": "F16"},
            {"shape": None},
            {"shape": [8, -3]},
            {"shape": [8.0, 3]},
            {"shape": [True, 24]},
            {"shape": [1] * 33},
            {"shape": [2**61]},
            {"shape": [9, 3]},
            {"data_offsets": [96, 0]},
            {"data_offsets": [0]},
            {"data_offsets": [0, 95]},
            {"data_offsets": [0, 2**61]},
            {"data_offsets": "0:96"},
        ],
    )
    def test_tensors_that_are_none(self, change: Json) -> None:
        entry = {"dtype": "F32", "shape": [8, 3], "data_offsets": [0, 96]}
        read_header(in_memory(packed({"a": entry})))
        error = refused(packed({"a": entry | change}))
        assert error["code"] == "invalid_file"
        assert "tensor a" in error["where"]

    def test_a_tensor_that_is_no_object(self) -> None:
        assert refused(packed({"a": [1]}))["where"] == "tensor a"

    @given(
        data=st.binary(max_size=200)
        | st.builds(packed, st.binary(max_size=60).map(lambda tail: b"{" + tail))
        | st.builds(
            packed,
            st.dictionaries(
                st.text(max_size=9),
                st.dictionaries(
                    st.sampled_from(["dtype", "shape", "data_offsets", "x"]),
                    st.sampled_from(["F32", "?"])
                    | st.lists(st.integers(-2, 2**70), max_size=4)
                    | st.floats(),
                ),
                max_size=4,
            ),
        ),
        size=st.sampled_from([0, 10**12]),
    )
    @settings(max_examples=300, deadline=None)
    def test_whatever_the_bytes(self, data: bytes, size: int) -> None:
        read_bytes = 0

        def slice_of(offset: int, length: int) -> bytes:
            nonlocal read_bytes
            read_bytes += length
            found = data[offset : offset + length]
            return found + bytes(length - len(found))

        source = ByteSource(name="x", size=max(size, len(data)), read=slice_of)
        try:
            found: object = stored_weights([read_header(source)])
        except KvcoreError as error:
            found = error.message[:1000]
        assert found
        assert read_bytes <= MAX_READ_BYTES + 2**20


class TestAdapters:
    def test_an_adapter_is_told_by_its_tensors(self) -> None:
        added = {
            f"base_model.model.layers.{i}.q_proj.lora_{side}.weight": ("F16", [8, 512])
            for i in range(4)
            for side in "AB"
        }
        assert read(added).is_adapter
        assert read(added | {"embed_tokens.weight": ("F16", [9, 9])}).is_adapter

    def test_a_model_with_adapters_inside_is_a_model(self) -> None:
        """Phi-4-multimodal ships its adapters with the layers they change."""
        inside = {
            f"layers.0.{name}.{part}.weight": ("BF16", [8, 8])
            for name in ("qkv_proj", "o_proj")
            for part in ("base_layer", "lora_A.speech", "lora_B.speech", "bias", "n")
        }
        assert not read(inside).is_adapter
        assert not read(MODEL).is_adapter


class TestQuantised:
    @pytest.mark.parametrize(
        ("tensors", "expected"),
        [
            ({"a.qweight": ("I32", [8, 8]), "a.g_idx": ("I32", [8])}, "gptq"),
            ({"a.qweight": ("I32", [8, 8]), "a.qzeros": ("I32", [8])}, "awq"),
            ({"a.weight_packed": ("I32", [8, 8])}, "compressed-tensors"),
            ({"a.weight": ("U8", [8, 8]), "a.weight.absmax": ("F32", [8])},
             "bitsandbytes"),
            ({"a.weight": ("U32", [8, 8]), "a.biases": ("BF16", [8])}, "mlx"),
            ({"a.experts_blocks": ("U8", [8]), "a.experts_scales": ("U8", [8])},
             "mxfp4"),
            ({"a.weight": ("U8", [8]), "a.weight_scale": ("F8_E4M3", [8]),
              "a.weight_scale_2": ("F32", [])}, "nvfp4"),
        ],
    )  # fmt: skip
    def test_packed_weights_are_named_and_not_counted(
        self, tensors: dict[str, tuple[str, list[int]]], expected: str
    ) -> None:
        found = stored_weights([read(tensors)])
        assert found.quantization == expected
        assert (found.elements, found.bits_per_weight) == (None, None)
        assert found.total_bytes > 0

    def test_scales_are_bytes_but_no_weights(self) -> None:
        found = stored_weights(
            [
                read(
                    {
                        "a.weight": ("F8_E4M3", [256, 256]),
                        "a.weight_scale_inv": ("F32", [2, 2]),
                    }
                )
            ]
        )
        assert found.quantization == "fp8"
        assert (found.total_bytes, found.elements) == (65536 + 16, 65536)

    @pytest.mark.parametrize(
        ("config", "expected"),
        [
            ({"quantization_config": {"quant_method": "gptq", "bits": 4}},
             "gptq 4-bit"),
            ({"text_config": {"quantization_config": {"quant_method": "fp8"}}}, "fp8"),
            ({"quantization": {"group_size": 64, "bits": 4}}, "mlx 4-bit"),
            ({"quantization_config": {"quant_algo": "NVFP4"}}, "nvfp4"),
            ({"quantization_config": None}, None),
        ],
    )  # fmt: skip
    def test_the_config_knows_better(self, config: Json, expected: str | None) -> None:
        assert stored_weights([read(MODEL)], config=config).quantization == expected


INDEX: Final[Json] = {
    "metadata": {"total_size": 5_000_000},
    "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"},
}


def index_of(given: object) -> ByteSource:
    return in_memory(json.dumps(given).encode(), "model.safetensors.index.json")


class TestIndex:
    def test_headers_count_where_all_are_there(self) -> None:
        found = stored_weights([read(MODEL)], read_index(index_of(INDEX)))
        assert found.total_bytes != 5_000_000
        assert found.by_type

    def test_its_total_counts_where_files_are_missing(self) -> None:
        index = read_index(index_of(INDEX))
        assert index.files == ("model-1.safetensors", "model-2.safetensors")
        found = stored_weights([read(MODEL)], index, missing=["model-2.safetensors"])
        assert (found.total_bytes, found.by_type, found.notices) == (5_000_000, {}, ())
        assert found.files == 2

    def test_parameters_it_states(self) -> None:
        stated = INDEX | {"metadata": {"total_size": 8e6, "total_parameters": 4000000}}
        found = stored_weights([], read_index(index_of(stated)), missing=["x"])
        assert found.bits_per_weight == 16

    @pytest.mark.parametrize("total", [None, "5", 1.5, True, -1, 0, 2**70])
    def test_without_a_total_missing_files_are_named(self, total: object) -> None:
        index = read_index(index_of(INDEX | {"metadata": {"total_size": total}}))
        found = stored_weights([read(MODEL)], index, missing=["model-2.safetensors"])
        (notice,) = found.notices
        assert notice.code == "weight_files_missing"
        assert notice.params["names"] == ["model-2.safetensors"]

    @pytest.mark.parametrize(
        "weight_map",
        [
            None,
            [],
            {"a": "../secret.safetensors"},
            {"a": "/etc/passwd"},
            {"a": "..\\x"},
            {"a": ".hidden"},
            {"a": "x\0"},
            {"a": ""},
            {f"t{i}": f"file-{i}" for i in range(1001)},
        ],
    )
    def test_files_anywhere_else_are_refused(self, weight_map: object) -> None:
        with pytest.raises(KvcoreError) as caught:
            read_index(index_of({"weight_map": weight_map}))
        assert caught.value.params["where"] == "weight_map"

    @pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{", b"<html>"])
    def test_what_is_no_index_is_named(self, data: bytes) -> None:
        """Beside a config, "this is not JSON" would be taken for that of the config."""
        name = "model.safetensors.index.json"
        with pytest.raises(InvalidFile) as caught:
            read_index(in_memory(data, name))
        assert caught.value.params["file"] == name
