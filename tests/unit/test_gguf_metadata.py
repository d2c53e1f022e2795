"""GGUF metadata keys become the same Model as the config they were converted from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import ask, codes, refusal

from kvcore import api, catalog
from kvcore.errors import error_codes
from kvcore.estimate import Scope, cache_formats, estimate
from kvcore.importers import gguf
from kvcore.model import Model

Json = dict[str, Any]

CONVERTED: Final[dict[str, Json]] = json.loads(
    (Path(__file__).parent / "gguf_converted.json").read_text(encoding="utf-8")
)["models"]

WITHOUT_WINDOW: Final = (
    "ministral-8b-instruct-2410",
    "mistral-7b-v0.1",
    "starcoder2-15b",
)
"""The converter does not write their window: the file says full attention."""

WITHOUT_DRAFTS: Final = ("deepseek_v3", "deepseek_v4")
"""Types whose converter leaves the draft layers out."""


def metadata(architecture: str, **keys: object) -> Json:
    """`attention__head_count=8` stands for `<architecture>.attention.head_count`."""
    named = {
        f"{architecture}.{key.replace('__', '.')}": value for key, value in keys.items()
    }
    return {"general.architecture": architecture, **named}


def plain(architecture: str = "llama", **keys: object) -> Json:
    """Eight layers of 8 heads, 2 of them KV heads, 64 wide."""
    base: Json = {
        "block_count": 8,
        "embedding_length": 512,
        "attention__head_count": 8,
        "attention__head_count_kv": 2,
    }
    return metadata(architecture, **base | keys)


def told(model: Model, *, drafts: bool = False) -> list[str]:
    """Layers in short: kind and numbers, "full_attention 2 64 64"."""
    layers = model.draft_layers if drafts else model.layers
    return [
        " + ".join(
            " ".join([spec.kind, *(str(n) for n in spec.values.values())])
            for spec in layer
        )
        for layer in layers
    ]


def components(model: Model, tokens: int, *, draft: bool = False) -> Json:
    formats = cache_formats(model, "fp16", "fp16", "fp32")
    scope = Scope(tokens=tokens, draft=draft, encoder_tokens=100)
    return dict(estimate(model, scope, formats).components)


class Counted(list[int]):
    """An array that counts how often it is gone through."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        self.times += 1
        return super().__iter__()


def test_arrays_are_read_once_and_not_for_every_layer() -> None:
    """A file of thousands of layers is no reason to wait."""
    heads = Counted(range(1, 2001))
    model = gguf.read(plain(block_count=2000, attention__head_count_kv=heads))
    assert model.num_layers == 2000
    assert model.layers[1999][0].values["num_kv_heads"] == 2000
    assert 0 < heads.times < 20


class TestConverted:
    @pytest.mark.parametrize("tokens", [1, 100, 5000, 70000])
    @pytest.mark.parametrize("name", [n for n in CONVERTED if n not in WITHOUT_WINDOW])
    def test_logical_bytes_are_the_configs(self, name: str, tokens: int) -> None:
        expected = components(catalog.model(name), tokens)
        assert components(gguf.read(CONVERTED[name]), tokens) == expected

    @pytest.mark.parametrize("name", list(CONVERTED))
    def test_draft_layers_are_the_configs(self, name: str) -> None:
        model, expected = gguf.read(CONVERTED[name]), catalog.model(name)
        if expected.model_type in WITHOUT_DRAFTS:
            assert not model.draft_layers
        else:
            drafts = components(expected, 5000, draft=True)["draft"]
            assert components(model, 5000, draft=True)["draft"] == drafts

    @pytest.mark.parametrize("name", sorted(set(WITHOUT_WINDOW) & set(CONVERTED)))
    def test_a_window_the_file_leaves_out_is_not_guessed(self, name: str) -> None:
        kinds = {spec.kind for spec, _ in gguf.read(CONVERTED[name]).groups}
        assert kinds == {"full_attention"}

    def test_the_api_takes_metadata_where_it_takes_a_config(self) -> None:
        name = "llama-3.1-8b" if "llama-3.1-8b" in CONVERTED else next(iter(CONVERTED))
        by_name = ask("estimate", model=name, tokens=1000)
        by_file = ask("estimate", model=CONVERTED[name], tokens=1000)
        by_text = ask("estimate", model_text=json.dumps(CONVERTED[name]), tokens=1000)
        assert by_file["total_bytes"] == by_name["total_bytes"]
        assert by_text == by_file


class TestHeads:
    def test_a_head_is_embedding_over_heads_unless_stated(self) -> None:
        assert told(gguf.read(plain())) == ["full_attention 2 64 64"] * 8
        stated = plain(attention__key_length=192, attention__value_length=128)
        assert told(gguf.read(stated)) == ["full_attention 2 192 128"] * 8

    def test_kv_heads_default_to_heads(self) -> None:
        assert (
            told(gguf.read(plain(attention__head_count_kv=None)))
            == ["full_attention 8 64 64"] * 8
        )

    def test_heads_of_each_layer(self) -> None:
        found = gguf.read(
            plain(
                "deci",
                block_count=3,
                attention__head_count=[8, 0, 8],
                attention__head_count_kv=[4, 0, 1],
            )
        )
        assert told(found) == ["full_attention 4 64 64", "", "full_attention 1 64 64"]

    def test_windowed_layers_have_widths_of_their_own(self) -> None:
        found = gguf.read(
            plain(
                "gemma4",
                block_count=3,
                attention__sliding_window=512,
                attention__sliding_window_pattern=[True, False, True],
                attention__key_length=512,
                attention__value_length=512,
                attention__key_length_swa=256,
                attention__value_length_swa=256,
                attention__shared_kv_layers=1,
            )
        )
        assert told(found) == [
            "sliding_window_attention 2 256 256 512",
            "full_attention 2 512 512",
            "shared_cache",
        ]


def letters(model: Model) -> str:
    """One letter per layer: S windowed, C chunked, F full."""
    names = {
        "sliding_window_attention": "S",
        "chunked_attention": "C",
        "full_attention": "F",
    }
    return "".join(names[layer[0].kind] for layer in model.layers)


class TestWindows:
    @pytest.mark.parametrize(
        ("architecture", "expected"),
        [
            ("gemma2", "SFSFSFSF"),
            ("gemma3", "SSSSSFSS"),
            ("gpt-oss", "SFSFSFSF"),
            ("cohere2", "SSSFSSSF"),
            ("olmo2", "SSSFSSSF"),
            ("laguna", "FSSSFSSS"),
            ("plamo3", "SSSSSSSF"),
            ("phi3", "SSSSSSSS"),
            ("llama", "SSSSSSSS"),
            ("llama4", "CCCFCCCF"),
            ("qwen2", "FFFFFFFF"),
        ],
    )
    def test_built_in_periods(self, architecture: str, expected: str) -> None:
        found = gguf.read(plain(architecture, attention__sliding_window=512))
        assert letters(found) == expected

    def test_a_window_nobody_has_is_said(self) -> None:
        found = gguf.read(plain("qwen2", attention__sliding_window=512))
        assert "window_not_applied" in codes(found)

    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [
            (3, "SSFSSFSS"),
            (0, "SSSSSSSS"),
            ([True, False] * 4, "SFSFSFSF"),
            ([1, 1, 0, 0, 1, 1, 0, 0], "SSFFSSFF"),
        ],
    )
    def test_the_files_own_pattern_wins(self, pattern: object, expected: str) -> None:
        found = gguf.read(
            plain(
                "gemma3",
                attention__sliding_window=512,
                attention__sliding_window_pattern=pattern,
            )
        )
        assert letters(found) == expected

    @pytest.mark.parametrize("window", [None, 0])
    def test_no_window_is_full_attention(self, window: int | None) -> None:
        found = gguf.read(plain("gemma3", attention__sliding_window=window))
        assert letters(found) == "F" * 8

    def test_windows_an_architecture_knows_itself(self) -> None:
        assert gguf.read(plain("gemma2")).groups[0][0].values["window"] == 4096
        assert gguf.read(plain("llama4")).groups[0][0].values["chunk"] == 8192
        large = gguf.read(plain("exaone4", block_count=64))
        assert letters(large) == "SSSF" * 16
        assert letters(gguf.read(plain("exaone4"))) == "F" * 8


LATENT: Final[Json] = {
    "block_count": 2,
    "embedding_length": 1024,
    "attention__head_count": 16,
    "attention__kv_lora_rank": 512,
    "rope__dimension_count": 64,
}
NEW: Final[Json] = LATENT | {
    "attention__head_count_kv": 1,
    "attention__key_length": 576,
    "attention__value_length": 512,
    "attention__key_length_mla": 192,
    "attention__value_length_mla": 128,
}
OLD: Final[Json] = LATENT | {
    "attention__head_count_kv": 16,
    "attention__key_length": 192,
    "attention__value_length": 128,
}
INDEXER: Final[Json] = {"attention__indexer__key_length": 128}


class TestLatents:
    def test_old_and_new_files_hold_the_same_model(self) -> None:
        new = gguf.read(metadata("deepseek2", **NEW))
        old = gguf.read(metadata("deepseek2", **OLD))
        assert new.layers == old.layers
        assert (new.latent_expanded, old.latent_expanded) == (False, True)

    def test_what_llama_cpp_keeps_of_an_old_file(self) -> None:
        """16 heads of 192 and 128 in two layers, against 576 elements."""
        for keys, elements in ((NEW, 576), (OLD, 16 * 320)):
            answer = ask(
                "estimate",
                model=metadata("deepseek2", **keys),
                engine="llama_cpp",
                tokens=1024,
            )
            assert answer["total_bytes"] == 2 * 1024 * 576 * 2
            allocated = answer["allocated"]["bytes_per_rank"]
            assert allocated == 2 * 1024 * elements * 2

    def test_indexers(self) -> None:
        found = gguf.read(metadata("deepseek32", **NEW, **INDEXER))
        assert (
            told(found)
            == ["latent_attention 512 64 16 192 128 + indexer_keys 128 1"] * 2
        )

    @pytest.mark.parametrize(
        ("context", "types", "expected"),
        [
            (131072, None, "IIIIIIII"),
            (1 << 20, None, "III...I."),
            (1 << 20, [1, 0, 0, 1, 0, 0, 0, 0], "I..I...."),
        ],
    )
    def test_which_layers_index_in_glm(
        self, context: int, types: list[int] | None, expected: str
    ) -> None:
        found = gguf.read(
            metadata(
                "glm-dsa",
                **NEW | INDEXER | {"block_count": 8, "context_length": context},
                attention__indexer__types=types,
            )
        )
        marks = "".join("I" if len(layer) > 1 else "." for layer in found.layers)
        assert marks == expected


SSM: Final[Json] = {
    "ssm__conv_kernel": 4,
    "ssm__inner_size": 1024,
    "ssm__state_size": 128,
    "ssm__time_step_rank": 16,
    "ssm__group_count": 4,
}


class TestStates:
    def test_gated_delta_net_in_ssm_words(self) -> None:
        found = gguf.read(plain("qwen35", **SSM))
        state = "gated_delta_net 4 16 128 64 4"
        assert told(found) == [*[state] * 3, "full_attention 2 64 64"] * 2

    def test_layers_without_kv_heads_are_states(self) -> None:
        kv_heads = [0, 2, 0, 0, 2, 0, 0, 0]
        found = gguf.read(plain("jamba", **SSM, attention__head_count_kv=kv_heads))
        marks = [layer[0].kind for layer in found.layers]
        assert marks == ["full_attention" if n else "mamba" for n in kv_heads]

    def test_blocks_without_either(self) -> None:
        found = gguf.read(
            plain(
                "nemotron_h",
                **SSM,
                block_count=3,
                attention__head_count_kv=[0, 0, 2],
                feed_forward_length=[0, 64, 0],
            )
        )
        assert [bool(layer) for layer in found.layers] == [True, False, True]

    def test_attention_beside_a_state(self) -> None:
        found = gguf.read(plain("falcon-h1", **SSM))
        assert [len(layer) for layer in found.layers] == [2] * 8

    def test_shifted_tokens_of_a_converted_model(self) -> None:
        keys = {"block_count": 2, "embedding_length": 512, "wkv__head_size": 64}
        (rwkv,) = {s for s, _ in gguf.read(metadata("rwkv7", **keys)).groups}
        (arwkv,) = {
            s
            for s, _ in gguf.read(
                metadata("arwkv7", **keys, token_shift_count=1)
            ).groups
        }
        assert rwkv.values["token_shifts"] == 2
        assert arwkv.values["token_shifts"] == 1

    def test_compressed_rows(self) -> None:
        found = gguf.read(
            metadata(
                "deepseek4",
                block_count=3,
                attention__head_count=64,
                attention__key_length=512,
                attention__value_length=512,
                attention__sliding_window=128,
                attention__compress_ratios=[0, 4, 128, 0],
                attention__indexer__key_length=128,
                rope__dimension_count=64,
            )
        )
        assert [layer[0].values["ratio"] for layer in found.layers] == [0, 4, 128]
        assert (found.kv_format, found.indexer_format) == ("fp8", "fp4")


class TestWholeModels:
    def test_draft_layers_are_the_last_blocks(self) -> None:
        found = gguf.read(plain("glm4moe", nextn_predict_layers=1))
        assert (len(found.layers), len(found.draft_layers)) == (7, 1)

    def test_decoders_cross_to_an_encoder(self) -> None:
        found = gguf.read(plain("t5", decoder_block_count=3, context_length=512))
        layer = "full_attention 8 64 64 + cross_attention 8 64 64"
        assert told(found) == [layer] * 3
        assert found.encoder_tokens == 512

    def test_loops_keep_a_cache_each(self) -> None:
        assert gguf.read(plain("nanbeige", num_loops=3)).num_layers == 24

    def test_a_scaled_context(self) -> None:
        found = gguf.read(
            plain(
                "qwen2",
                context_length=32768,
                rope__scaling__factor=4.0,
                rope__scaling__original_context_length=32768,
            )
        )
        assert found.max_context == 131072

    def test_its_name(self) -> None:
        assert gguf.read(plain() | {"general.name": "Tiny"}).name == "Tiny"

    def test_an_unknown_architecture_is_said(self) -> None:
        found = gguf.read(plain("nobody-knows"))
        assert told(found) == ["full_attention 2 64 64"] * 8
        assert codes(found) == ["unknown_model_type"]


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "key"),
        [
            (metadata("llama"), "llama.block_count"),
            (plain(attention__head_count=None), "llama.attention.head_count"),
            (plain(embedding_length=None), "llama.embedding_length"),
            (plain("gpt-oss"), "gpt-oss.attention.sliding_window"),
            (
                plain("mimo2", attention__sliding_window=128),
                "mimo2.attention.sliding_window_pattern",
            ),
            (
                metadata("deepseek2", **NEW | {"attention__kv_lora_rank": None}),
                "deepseek2.attention.kv_lora_rank",
            ),
            (
                plain("jamba", attention__head_count_kv=[0, 2] * 4),
                "jamba.ssm.inner_size",
            ),
            (metadata("rwkv7", block_count=2), "rwkv7.embedding_length"),
        ],
    )
    def test_a_missing_key_is_named_in_full(self, given: Json, key: str) -> None:
        error = refusal("estimate", model=given)
        assert error["code"] == "missing_field"
        assert error["params"]["field"] == key

    @pytest.mark.parametrize(
        "given",
        [
            plain(attention__head_count_kv=[2] * 7),
            plain(block_count=0),
            plain(block_count="many"),
            plain(nextn_predict_layers=8),
            plain(
                "gemma3n", attention__sliding_window=64, attention__shared_kv_layers=9
            ),
            plain(
                "gemma3",
                attention__sliding_window=64,
                attention__sliding_window_pattern=[True],
            ),
            plain("qwen35", **SSM | {"ssm__time_step_rank": 7}),
            {"general.architecture": 7},
        ],
    )
    def test_a_wrong_value_is_named(self, given: Json) -> None:
        assert refusal("estimate", model=given)["code"] == "invalid_field"

    @pytest.mark.parametrize("architecture", ["bert", "llada", "clip"])
    def test_models_without_a_cache(self, architecture: str) -> None:
        error = refusal("estimate", model=plain(architecture))
        assert error["code"] == "unsupported_model"


KEYS: Final = sorted(
    {
        key.partition(".")[2] if not key.startswith("general.") else key
        for found in CONVERTED.values()
        for key in found
    }
)
ARCHITECTURES: Final = sorted({m["general.architecture"] for m in CONVERTED.values()})

values = st.one_of(
    st.integers(-(10**12), 10**30),
    st.integers(0, 300),
    st.booleans(),
    st.none(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-2, 200) | st.booleans() | st.none(), max_size=20),
)


@given(
    architecture=st.sampled_from(ARCHITECTURES),
    keys=st.dictionaries(st.sampled_from(KEYS), values, max_size=25),
    engine=st.sampled_from(["none", "llama_cpp", "mlx"]),
)
def test_hostile_metadata_never_breaks(
    architecture: str, keys: Json, engine: str
) -> None:
    named = {f"{architecture}.{key}": value for key, value in keys.items()}
    given_ = {**named, "general.architecture": architecture}
    answer = api.call("estimate", {"model": given_, "engine": engine})
    if "error" in answer:
        assert answer["error"]["code"] in set(error_codes()) - {"internal_error"}
    else:
        assert answer["total_bytes"] >= 0


@given(
    name=st.sampled_from(sorted(CONVERTED)),
    keys=st.dictionaries(st.sampled_from(KEYS), values, max_size=3),
)
def test_a_real_file_with_wrong_values_never_breaks(name: str, keys: Json) -> None:
    real = CONVERTED[name]
    architecture = real["general.architecture"]
    wrong = {f"{architecture}.{key}": value for key, value in keys.items()}
    answer = api.call("estimate", {"model": {**real, **wrong}, "engine": "llama_cpp"})
    if "error" in answer:
        assert answer["error"]["code"] in set(error_codes()) - {"internal_error"}
    else:
        assert answer["allocated"]["bytes_per_rank"] >= 0
