"""GGUF headers: every version and byte order, exact weights, and nothing that hangs."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from gguf_writer import Raw, Writer, padded
from hypothesis import given, settings
from hypothesis import strategies as st

from kvcore import catalog
from kvcore.errors import InvalidFile, KvcoreError, TruncatedFile
from kvcore.estimate import Scope, cache_formats, estimate
from kvcore.importers import gguf, gguf_file
from kvcore.importers.byte_source import MAX_READ_BYTES, ByteSource, in_memory
from kvcore.importers.ggml_types import GGML_TYPES
from kvcore.importers.gguf_file import GgufHeader, read_header, stored_weights
from kvcore.importers.gguf_parts import part_of
from kvcore.importers.stored import Tensors
from kvcore.model import Model
from kvcore.weights import PARTS

Json = dict[str, Any]
Tensor = tuple[str, Sequence[int], int, int]

CONVERTED: Final[dict[str, Json]] = json.loads(
    (Path(__file__).parent / "gguf_converted.json").read_text(encoding="utf-8")
)["models"]

WRITERS: Final = [
    Writer(version=version, order=order) for version in (2, 3) for order in "<>"
]
WITHOUT_WINDOW: Final = {
    "ministral-8b-instruct-2410",
    "mistral-7b-v0.1",
    "starcoder2-15b",
}
"""The converter does not write their window."""

F32, F16, Q8_0, Q4_K, Q6_K, IQ4_KS = 0, 1, 8, 12, 14, 144

LLAMA: Final = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.block_count": 4,
    "llama.context_length": 8192,
    "llama.embedding_length": 512,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": [2, 2, 1, 0],
}

TENSORS: Final[list[Tensor]] = [
    ("token_embd.weight", (512, 1000), Q6_K, 1000 * 2 * 210),
    ("output_norm.weight", (511,), F32, 511 * 4),
    ("blk.0.attn_q.weight", (512, 512), Q4_K, 512 * 2 * 144),
    ("blk.0.ffn_up_exps.weight", (512, 64, 8), Q4_K, 64 * 8 * 2 * 144),
    ("blk.0.ffn_up_shexp.weight", (512, 64), Q8_0, 64 * 16 * 34),
    ("blk.0.ffn_gate_inp.weight", (512, 8), F16, 512 * 8 * 2),
    ("output.weight", (512, 1000), Q8_0, 1000 * 16 * 34),
]


class Counting:
    """A source that remembers how much was read of it, and in how many slices."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data = data
        self.bytes_read = 0
        self.slices = 0
        self.source = ByteSource(
            name="model.gguf", size=len(data) if size is None else size, read=self.read
        )

    def read(self, offset: int, length: int) -> bytes:
        """Zeros stand after the data, up to the stated size."""
        assert 0 <= offset <= offset + length <= self.source.size
        self.bytes_read += length
        self.slices += 1
        found = self.data[offset : offset + length]
        return found + bytes(length - len(found))


def header_of(writer: Writer, metadata: Mapping[str, object], *tensors: Tensor,
              size: int | None = None) -> GgufHeader:  # fmt: skip
    data, whole = writer.file(metadata, tensors)
    return read_header(Counting(data, whole if size is None else size).source)


def components(model: Model, tokens: int) -> Json:
    formats = cache_formats(model, "fp16", "fp16", "fp32")
    scope = Scope(tokens=tokens, encoder_tokens=100)
    return dict(estimate(model, scope, formats).components)


def attempt(metadata: Mapping[str, object]) -> Model | KvcoreError:
    """The model, or the typed error that there is instead."""
    try:
        return gguf.read(metadata)
    except KvcoreError as error:
        return error


class TestMetadata:
    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    def test_versions_and_byte_orders(self, writer: Writer) -> None:
        found = header_of(writer, LLAMA, *TENSORS)
        assert found.metadata == LLAMA
        assert (found.version, found.byte_order) == (writer.version, writer.order)

    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    def test_values_of_every_kind(self, writer: Writer) -> None:
        values: Json = {
            "B": 255, "b": -1, "H": 65535, "h": -2, "I": 2**32 - 1, "i": -3,
            "Q": 2**63, "q": -(2**40), "f": 0.5, "d": 0.1, "?": True,
        }  # fmt: skip
        given = {f"one.{k}": writer.number(k, v) for k, v in values.items()}
        given |= {f"two.{k}": writer.numbers(k, [v, v]) for k, v in values.items()}
        expected = {f"one.{k}": v for k, v in values.items()}
        expected |= {f"two.{k}": [v, v] for k, v in values.items()}
        text = {"general.name": "\u00dcn\u00ef"}
        assert header_of(writer, given | text).metadata == expected | text

    def test_text_that_is_no_utf_8(self) -> None:
        found = header_of(Writer(), {"general.name": b"\xff\xfeA"})
        assert found.metadata["general.name"] == "\ufffd\ufffdA"

    @pytest.mark.parametrize("value", [float("inf"), float("nan")])
    def test_what_json_cannot_hold_is_left_out(self, value: float) -> None:
        assert header_of(Writer(), {"a.b": value, "a.c": 1}).metadata == {"a.c": 1}

    def test_what_nobody_needs_is_left_out(self) -> None:
        writer = Writer()
        found = header_of(
            writer,
            {
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.tokens": [f"word {i}" for i in range(5000)],
                "tokenizer.ggml.scores": [0.5] * 5000,
                "tokenizer.chat_template": "x" * 50_000,
                "general.license.text": "y" * 50_000,
                "general.tags": ["a", "b", ""],
                "general.matrix": writer.numbers("d", [1.0] * 5000),
                **LLAMA,
            },
        )
        assert found.metadata == LLAMA

    def test_a_large_tokenizer_is_passed_in_slices(self) -> None:
        texts = Writer().texts([f"word {i}" for i in range(500_000)])
        scores = Writer().numbers("f", [0.0] * 500_000)
        data, size = Writer().file(
            {"tokenizer.ggml.merges": texts, "tokenizer.ggml.scores": scores} | LLAMA,
            TENSORS,
        )
        reading = Counting(data, size)
        assert read_header(reading.source).metadata == LLAMA
        assert reading.bytes_read < len(texts.data) + 3 * 2**20
        assert reading.slices < 12

    @pytest.mark.parametrize("length", [2**20 - 9, 2**20 - 1, 2**20, 3 * 2**20 + 1])
    def test_texts_across_the_edges_of_slices(self, length: int) -> None:
        texts = [b"x" * length, b"", b"y" * 17, b"z" * length, b""]
        assert header_of(Writer(), {"some.list": texts} | LLAMA).metadata == LLAMA


class TestModels:
    @pytest.mark.parametrize("name", list(CONVERTED))
    @pytest.mark.parametrize("writer", [WRITERS[0], WRITERS[3]], ids=str)
    def test_file_config_and_catalog_agree(self, name: str, writer: Writer) -> None:
        metadata = header_of(writer, CONVERTED[name], *TENSORS).metadata
        model = gguf.read(metadata)
        assert model.layers == gguf.read(CONVERTED[name]).layers
        if name not in WITHOUT_WINDOW:
            assert components(model, 5000) == components(catalog.model(name), 5000)

    def test_sixty_architectures(self) -> None:
        found = {
            header_of(Writer(), keys).metadata["general.architecture"]
            for keys in CONVERTED.values()
        }
        assert len(found) >= 60

    @pytest.mark.parametrize(
        "architecture", sorted({*gguf.BY_THE_GENERAL_RULE} | {*gguf.LAYERS})
    )
    def test_every_architecture_by_name(self, architecture: str) -> None:
        keys = {"general.architecture": architecture, f"{architecture}.block_count": 2}
        metadata = header_of(Writer(), keys).metadata
        assert metadata == keys
        # With so few keys there is an error to read, or a model; never a crash.
        answer = attempt(metadata)
        if isinstance(answer, Model):
            assert answer.model_type == architecture
        else:
            assert architecture in answer.message


class TestWeights:
    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    def test_bytes_by_type_and_part(self, writer: Writer) -> None:
        found = stored_weights([header_of(writer, LLAMA, *TENSORS)])
        assert found.total_bytes == sum(size for *_, size in TENSORS)
        assert found.by_type == {
            "q8_0": Tensors(64 * 16 * 34 + 1000 * 16 * 34, 512 * 64 + 512_000),
            "q6_k": Tensors(1000 * 2 * 210, 512_000),
            "q4_k": Tensors((512 + 512) * 2 * 144, 512 * 512 + 512 * 64 * 8),
            "f16": Tensors(8192, 4096),
            "f32": Tensors(2044, 511),
        }
        assert {name: part.bytes for name, part in found.parts.items()} == {
            "output_head": 544_000, "embeddings": 420_000, "attention": 147_456,
            "experts": 147_456, "shared_experts": 34_816, "router": 8192,
            "norms": 2044,
        }  # fmt: skip
        assert found.elements == sum(part.elements for part in found.parts.values())
        assert found.bits_per_weight == 8 * found.total_bytes / (found.elements or 0)
        assert found.quantization == "q4_k_m"
        assert found.notices == ()

    @pytest.mark.parametrize("number", list(GGML_TYPES))
    def test_every_type(self, number: int) -> None:
        kind = GGML_TYPES[number]
        width, rows = 4 * kind.elements, 6
        size = rows * (kind.row_bytes + 4 * kind.block_bytes)
        tensor = ("blk.0.attn_q.weight", (width, 2, 3), number, size)
        last = ("output.weight", (256, 1), F32, 1024)
        found = stored_weights([header_of(Writer(), {}, tensor, last)])
        assert found.by_type[kind.name].bytes == size + 1024 * (number == F32)
        assert found.quantization == kind.name or size < 1024
        assert found.unknown_types == ()

    def test_an_unknown_type_has_the_bytes_of_its_place(self) -> None:
        tensors: list[Tensor] = [
            ("blk.0.attn_q.weight", (256, 10), 99, 320),
            ("blk.0.attn_k.weight", (256, 10), F32, 10240),
            ("blk.0.attn_v.weight", (256, 10), 99, 320),
        ]
        found = stored_weights([header_of(Writer(), LLAMA, *tensors)])
        assert found.by_type["type_99"] == Tensors(640, 5120)
        assert found.unknown_types == ("type_99",)
        assert [notice.code for notice in found.notices] == ["weight_types_unknown"]

    def test_a_number_that_another_project_uses_for_another_type(self) -> None:
        """42 is q2_0 with blocks of 64 elements, elsewhere with blocks of 128."""
        elsewhere = ("blk.0.attn_q.weight", (1024, 16), 42, 1024 * 16 // 128 * 34)
        tensors = [elsewhere, ("output.weight", (256, 1), F32, 1024)]
        found = stored_weights([header_of(Writer(), LLAMA, *tensors)])
        assert found.by_type["type_42"].bytes == 1024 * 16 // 128 * 34
        assert found.unknown_types == ("type_42",)

    def test_rows_that_blocks_do_not_fill(self) -> None:
        tensors = [("a.weight", (100, 3), Q4_K, 512), ("b.weight", (4,), F32, 16)]
        found = stored_weights([header_of(Writer(), {}, *tensors)])
        assert found.by_type["type_12"].bytes == 512

    def test_a_file_whose_data_are_not_there(self) -> None:
        data = Writer().header(LLAMA, TENSORS)
        found = stored_weights([read_header(in_memory(data))])
        assert found.total_bytes == sum(size for *_, size in TENSORS)

    @pytest.mark.parametrize(
        ("file_type", "expected"),
        [(7, "q8_0"), (1024 + 18, "q6_k"), (9999, "q8_0"), (None, "q8_0")],
    )
    def test_its_quantisation(self, file_type: int | None, expected: str) -> None:
        keys = {} if file_type is None else {"general.file_type": file_type}
        found = stored_weights([header_of(Writer(), keys, *TENSORS)])
        assert found.quantization == expected

    def test_a_file_without_tensors(self) -> None:
        found = stored_weights([header_of(Writer(), LLAMA)])
        assert (found.total_bytes, found.bits_per_weight) == (0, None)

    @pytest.mark.parametrize(
        ("name", "part"),
        [
            ("token_embd.weight", "embeddings"),
            ("token_embd_norm.weight", "norms"),
            ("per_layer_token_embd.weight", "lookup"),
            ("per_layer_model_proj.weight", "residual"),
            ("output.bias", "output_head"),
            ("output_norm.weight", "norms"),
            ("rope_freqs.weight", "norms"),
            ("blk.61.attn_kv_b.weight", "attention"),
            ("blk.0.attn_q_a_norm.weight", "norms"),
            ("blk.0.attn_sinks.weight", "attention"),
            ("blk.0.indexer.attn_q_b.weight", "indexer"),
            ("blk.0.ssm_conv1d.weight", "state"),
            ("blk.0.time_mix_key.weight", "state"),
            ("blk.0.shortconv.conv.weight", "state"),
            ("blk.0.channel_mix_key.weight", "dense_mlp"),
            ("blk.0.ffn_gate.7.weight", "experts"),
            ("blk.0.ffn_gate_up_exps.weight", "experts"),
            ("blk.0.ffn_down_chexps.weight", "experts"),
            ("blk.0.ffn_up_shexp.weight", "shared_experts"),
            ("blk.0.exp_probs_b.bias", "router"),
            ("blk.0.ffn_gate_inp.weight", "router"),
            ("blk.0.ffn_gate.weight", "dense_mlp"),
            ("blk.0.laurel_l.weight", "residual"),
            ("blk.0.vis_attn_qkv.weight", "towers"),
            ("dec.blk.3.cross_attn_k.weight", "attention"),
            ("dec.output_norm.weight", "norms"),
            ("enc.blk.3.attn_k.weight", "encoder"),
            ("v.blk.3.attn_k.weight", "towers"),
            ("mm.0.weight", "towers"),
            ("anything", "dense_mlp"),
        ],
    )
    def test_parts(self, name: str, part: str) -> None:
        assert part_of(name) == part
        assert part in PARTS


class TestSplit:
    def test_several_headers_are_one_model(self) -> None:
        first = header_of(
            Writer(), LLAMA | {"split.no": 0, "split.count": 2}, *TENSORS[:3]
        )
        second = header_of(Writer(), {"split.no": 1, "split.count": 2}, *TENSORS[3:])
        assert first.split_count == 2
        for order in ([first, second], [second, first]):
            keys = gguf_file.metadata_of(order)
            assert gguf.read(keys).num_layers == 4
            found = stored_weights(order)
            assert found.total_bytes == sum(size for *_, size in TENSORS)
            assert (found.files, found.notices) == (2, ())
            assert found.quantization == "q4_k_m"

    def test_missing_files_are_named(self) -> None:
        found = stored_weights([header_of(Writer(), LLAMA, *TENSORS)], ["b", "c"])
        (notice,) = found.notices
        assert notice.code == "weight_files_missing"
        assert notice.params["names"] == ["b", "c"]
        assert (notice.params["missing"], notice.params["files"]) == (2, 3)


# Files that are none ----------------------------------------------------------------


def refused(data: bytes, size: int | None = None) -> KvcoreError:
    with pytest.raises((InvalidFile, TruncatedFile)) as caught:
        read_header(Counting(data, size).source)
    error: KvcoreError = caught.value
    assert error.params["file"] == "model.gguf"
    assert len(error.message) < 400
    return error


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "where"),
        [
            (b"GGML" + bytes(60), "its beginning"),
            (b"PK\x03\x04" + bytes(60), "its beginning"),
            (b"GGUF" + struct.pack("<I", 1) + bytes(60), "its version"),
            (b"GGUF" + struct.pack(">I", 1) + bytes(60), "its version"),
            (b"GGUF" + struct.pack("<I", 4) + bytes(60), "its version"),
            (b"GGUF" + bytes(60), "its version"),
        ],
    )
    def test_other_files(self, data: bytes, where: str) -> None:
        assert refused(data).params["where"] == where

    def test_a_pointer_to_a_file_elsewhere(self) -> None:
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        assert "Git LFS pointer" in str(refused(pointer).params["found"])

    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    def test_wherever_it_is_cut_off(self, writer: Writer) -> None:
        """The error says how long the file must be at least, never too much."""
        whole = writer.header(LLAMA | {"a.words": ["x", "yy", ""] * 9}, TENSORS)
        for length in range(len(whole)):
            with pytest.raises(TruncatedFile) as caught:
                read_header(in_memory(whole[:length]))
            needed = caught.value.params["needed_bytes"]
            assert caught.value.params["bytes"] == length
            assert isinstance(needed, int)
            assert length < needed <= len(whole)
        assert read_header(in_memory(whole)).metadata == LLAMA

    @pytest.mark.parametrize("writer", WRITERS, ids=str)
    @pytest.mark.parametrize("huge", [2**63 - 1, 2**64 - 1, 2**62, 2**31, 2**40])
    def test_counts_and_lengths_beyond_reason(self, writer: Writer, huge: int) -> None:
        """-1 is 2^64 - 1 to a reader of unsigned numbers."""
        start = b"GGUF" + writer.pack("I", writer.version)
        one_key = start + writer.pack("QQ", 0, 1)
        name = writer.text("a.b")
        number, text, words = (name + writer.pack("I", kind) for kind in (10, 8, 9))
        for data in (
            start + writer.pack("QQ", huge, 0),
            start + writer.pack("QQ", 0, huge),
            one_key + writer.pack("Q", huge),
            one_key + text + writer.pack("Q", huge),
            one_key + words + writer.pack("IQ", 8, huge),
            one_key + words + writer.pack("IQ", 0, huge),
            one_key + words + writer.pack("IQQ", 8, 1, huge),
            start + writer.pack("QQQ", 1, 0, huge),
            start + writer.pack("QQ", 1, 0) + writer.tensor("x", [huge] * 4, 0, 0),
            start + writer.pack("QQ", 1, 0) + writer.tensor("x", [huge], 0, huge),
        ):
            begun = time.process_time()
            for size in (len(data) + 40, 10**13):
                try:
                    read_header(Counting(data, size).source)
                except (InvalidFile, TruncatedFile):
                    continue
                # A list of 2^31 small numbers fits in 10^13 bytes and is skipped,
                # and tensors of 2^31 and 2^40 elements are possible.
                assert huge <= 2**40
            assert time.process_time() - begun < 1
        assert read_header(Counting(one_key + number + bytes(8)).source).metadata

    def test_lists_of_lists(self) -> None:
        writer = Writer()
        nested = Raw(9, writer.pack("IQIQ", 9, 1, 9, 1))
        error = refused(writer.header({"a.b": nested}) + bytes(99))
        assert "list of lists" in str(error.params["found"])

    @pytest.mark.parametrize("kind", [13, 99, 2**32 - 1])
    def test_kinds_nobody_knows(self, kind: int) -> None:
        writer = Writer()
        for value in (Raw(kind, bytes(8)), Raw(9, writer.pack("IQ", kind, 3))):
            refused(writer.header({"a.b": value}) + bytes(99))

    def test_a_key_there_twice(self) -> None:
        writer = Writer()
        twice = writer.key("a.b", 1) * 2
        start = b"GGUF" + writer.pack("IQQ", 3, 0, 2)
        assert refused(start + twice).params["where"] == "key a.b"

    def test_a_tensor_there_twice(self) -> None:
        twice = Writer().tensor("x", [4], 0, 0) * 2
        start = b"GGUF" + Writer().pack("IQQ", 3, 2, 0)
        assert refused(start + twice).params["where"] == "tensor x"

    def test_five_dimensions(self) -> None:
        start = b"GGUF" + Writer().pack("IQQ", 3, 1, 0)
        assert "dimensions" in str(
            refused(start + Writer().tensor("x", [1] * 5, 0, 0)).params["where"]
        )

    @pytest.mark.parametrize("alignment", [0, 2**31, "32", -1])
    def test_alignments(self, alignment: object) -> None:
        data = Writer().header({"general.alignment": alignment})
        assert refused(data).params["where"] == "general.alignment"

    def test_an_endless_header(self) -> None:
        """Four million texts of a megabyte each: refused after 64 MB."""
        writer = Writer()
        one = writer.pack("Q", 2**20)
        start = b"GGUF" + writer.pack("IQQ", 3, 0, 1) + writer.text("a.b")
        start += writer.pack("IIQ", 9, 8, 2**22)

        def read(offset: int, length: int) -> bytes:
            nonlocal bytes_read
            bytes_read += length
            return (
                (start + one * (length // 8 + 1))[:length]
                if not offset
                else (one * (length // 8 + 1))[:length]
            )

        bytes_read = 0
        begun = time.process_time()
        with pytest.raises(InvalidFile):
            read_header(ByteSource(name="x", size=10**15, read=read))
        assert bytes_read <= MAX_READ_BYTES
        assert time.process_time() - begun < 2

    def test_a_file_that_shrinks_while_it_is_read(self) -> None:
        data = Writer().header(LLAMA, TENSORS)
        source = ByteSource(
            name="x", size=10**6, read=lambda o, n: data[:50][o : o + n]
        )
        with pytest.raises(TruncatedFile):
            read_header(source)


class TestLargeFiles:
    def test_ten_gigabytes_in_a_moment(self, tmp_path: Path) -> None:
        """As a sparse file: real size, hardly any blocks on the disk."""
        tensors: list[Tensor] = [
            (f"blk.{i}.ffn_up.weight", (8192, 28672), Q4_K, 28672 * 32 * 144)
            for i in range(80)
        ]
        words = [f"word {i}" for i in range(150_000)]
        tokenizer = {"tokenizer.ggml.tokens": words, "tokenizer.ggml.merges": words}
        header, size = Writer().file(tokenizer | LLAMA, tensors)
        path = tmp_path / "large.gguf"
        with path.open("wb") as file:
            file.write(header)
            file.truncate(size)
        assert size > 10 * 10**9
        bytes_read = 0

        with path.open("rb") as file:

            def read(offset: int, length: int) -> bytes:
                nonlocal bytes_read
                file.seek(offset)
                found = file.read(length)
                bytes_read += len(found)
                return found

            begun = time.process_time()
            source = ByteSource(name=path.name, size=size, read=read)
            found = stored_weights([read_header(source)])
            took = time.process_time() - begun
        assert found.total_bytes == 80 * 28672 * 32 * 144
        assert found.bits_per_weight == 4.5
        assert bytes_read < 64 * 10**6
        assert took < 1


class TestFuzz:
    """Whatever the bytes: a header, or a typed error; soon, and with little read."""

    WHOLE: Final = [
        writer.header(LLAMA | {"a.words": ["x", "yy"], "a.f": [0.5, 1.0]}, TENSORS)
        for writer in WRITERS
    ]

    @given(data=st.data())
    @settings(max_examples=400, deadline=None)
    def test_changed_bytes(self, data: st.DataObject) -> None:
        whole = bytearray(data.draw(st.sampled_from(self.WHOLE)))
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(whole) - 1))
            piece = data.draw(
                st.binary(min_size=1, max_size=9)
                | st.sampled_from([b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f"])
            )
            whole[at : at + len(piece)] = piece
        size = data.draw(st.sampled_from([len(whole), len(whole) + 100, 10**10]))
        self.check(bytes(whole), size)

    @given(
        tail=st.binary(max_size=300),
        version=st.sampled_from([2, 3]),
        order=st.sampled_from("<>"),
        size=st.sampled_from([0, 10**4, 10**12]),
    )
    @settings(max_examples=400, deadline=None)
    def test_made_up_bytes(
        self, tail: bytes, version: int, order: str, size: int
    ) -> None:
        data = b"GGUF" + struct.pack(f"{order}I", version) + tail
        self.check(data, max(size, len(data)))

    def check(self, data: bytes, size: int) -> None:
        reading, begun = Counting(data, size), time.process_time()
        try:
            header = read_header(reading.source)
        except (InvalidFile, TruncatedFile) as error:
            answer: Model | KvcoreError = error
        else:
            answer = attempt(header.metadata)
            assert stored_weights([header]).total_bytes >= 0
        assert isinstance(answer, Model) or len(answer.message) < 1000
        assert reading.bytes_read <= MAX_READ_BYTES
        assert time.process_time() - begun < 2


def test_padding() -> None:
    assert [padded(n) for n in (0, 1, 32, 33)] == [0, 32, 32, 64]
