"""Which layers see a window or a chunk, in every dialect of config.json.

`told` gives each layer in words: "2x64 window 16" is 2 KV heads of 64 and a window.
"""

from __future__ import annotations

from typing import Final

import pytest
from unit_support import Json, assumed, codes, llama, read, refusal, told, without

FULL: Final = "2x64"
SLIDES: Final = "2x64 window 16"
CHUNKED: Final = "2x64 chunk 16"


def config(model_type: str, layers: int, **fields: object) -> dict[str, object]:
    return {
        **llama(num_hidden_layers=layers, head_dim=64),
        "model_type": model_type,
        **fields,
    }


def spelled(letters: str) -> list[str]:
    return [{"F": FULL, "S": SLIDES, "C": CHUNKED}[letter] for letter in letters]


@pytest.mark.parametrize(
    "model_type",
    ["mistral", "ministral", "starcoder2", "phi3", "mixtral", "moshi", "phimoe",
     "ministral3"],
)  # fmt: skip
def test_a_window_for_every_layer_or_for_none(model_type: str) -> None:
    assert told(config(model_type, 3, sliding_window=16)) == spelled("SSS")
    assert told(config(model_type, 3, sliding_window=None)) == spelled("FFF")
    assert told(config(model_type, 3, sliding_window=0)) == spelled("FFF")


def test_mistral_means_4096_by_an_absent_window_and_none_by_a_null() -> None:
    model = read(config("mistral", 2))
    assert told(config("mistral", 2)) == ["2x64 window 4096"] * 2
    assert assumed(model) == {"sliding_window": 4096}
    assert codes(read(config("mistral", 2, sliding_window=None))) == []


@pytest.mark.parametrize("model_type", ["qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3"])
def test_qwen_slides_from_max_window_layers_on_if_told_to(model_type: str) -> None:
    window = {"sliding_window": 16, "max_window_layers": 2}
    on = config(model_type, 4, use_sliding_window=True, **window)
    assert told(on) == spelled("FFSS")
    off = config(model_type, 4, use_sliding_window=False, **window)
    assert told(off) == spelled("FFFF")
    assert codes(read(off)) == []
    assert told(config(model_type, 4, **window)) == spelled("FFFF")


def test_qwen2_moe_slides_in_turn_below_max_window_layers() -> None:
    window = {"sliding_window": 16, "max_window_layers": 3, "use_sliding_window": True}
    assert told(config("qwen2_moe", 5, **window)) == spelled("SFSFF")


def test_dots1_has_no_switch_but_max_window_layers() -> None:
    assert told(config("dots1", 4, sliding_window=16, max_window_layers=1)) == spelled(
        "FSSS"
    )
    whole = config("dots1", 4, sliding_window=16, max_window_layers=4)
    assert told(whole) == spelled("FFFF")


PATTERNS: Final[dict[str, tuple[dict[str, object], str]]] = {
    # i + 1 even is full
    "gemma2": ({}, "SFSFS"),
    "vaultgemma": ({}, "SFSFS"),
    "gpt_oss": ({}, "SFSFS"),
    # every 6th full; the last layers of 26 slide
    "gemma3_text": ({"sliding_window_pattern": 6}, "SSSSSF" * 4 + "SS"),
    "cohere2": ({"sliding_window_pattern": 4, "hidden_size": 512}, "SSSFSSSFS"),
    "exaone4": ({"sliding_window_pattern": "LLLG"}, "SSSFSSSFS"),
    "exaone_moe": ({"sliding_window_pattern": 3}, "SSFSSFS"),
    # 3 to 1
    "olmo3": ({}, "SSSFSSSFS"),
    "afmoe": ({"global_attn_every_n_layers": 3}, "SSFSSFS"),
    # the full layer first
    "cwm": ({}, "FSSSFSSSF"),
    "granite_swa": ({}, "FSSSFSSSF"),
    "granitemoe_swa": ({}, "FSSSFSSSF"),
    # 5 to 1, the last layer full whatever its turn
    "gemma4_text": ({"global_head_dim": 64}, "SSSSSFSF"),
    "beam": ({}, "SSSSSFSF"),
    # every 5th
    "kolibri1": ({}, "SSSSFSSSSFS"),
    # counted from the end
    "muse_spark_text": ({}, "SFSSSF"),
    "muse_glimmer_text": ({}, "SFSSSF"),
    # the first two, every 4th from 1 on, and the last
    "flint": ({}, "FFSSSFSSSFSF"),
    # every 6th, and the first
    "mimo_v2": ({"swa_num_key_value_heads": 2}, "FSSSSFSSSSSFS"),
}


@pytest.mark.parametrize("model_type", PATTERNS)
def test_a_config_without_a_list_means_the_pattern_of_its_type(model_type: str) -> None:
    fields, letters = PATTERNS[model_type]
    silent = config(model_type, len(letters), sliding_window=16, **fields)
    assert told(silent) == spelled(letters)


@pytest.mark.parametrize("model_type", [*PATTERNS, "laguna", "mellum", "step3p5"])
def test_a_list_of_layer_types_wins_over_the_pattern(model_type: str) -> None:
    fields = PATTERNS.get(model_type, ({}, ""))[0]
    types = ["sliding_attention", "full_attention", "full_attention"]
    listed = config(model_type, 3, sliding_window=16, layer_types=types, **fields)
    assert told(listed) == spelled("SFF")


@pytest.mark.parametrize("model_type", ["laguna", "mellum"])
def test_types_that_are_full_without_a_list(model_type: str) -> None:
    silent = config(model_type, 2, sliding_window=16)
    assert told(silent) == spelled("FF")
    assert "window_not_applied" in codes(read(silent))


@pytest.mark.parametrize(
    ("model_type", "window"),
    [("gemma2", 4096), ("gemma3_text", 4096), ("exaone4", 4096), ("gpt_oss", 128),
     ("olmo3", 4096), ("afmoe", 1024), ("cohere2", 4096)],
)  # fmt: skip
def test_windows_a_class_means_by_an_absent_key(model_type: str, window: int) -> None:
    model = read(config(model_type, 6))
    assert {spec.window for layer in model.layers for spec in layer
            if hasattr(spec, "window")} == {window}  # fmt: skip
    assert assumed(model)["sliding_window"] == window


def test_gemma_3_4b_as_published_states_next_to_nothing() -> None:
    published = {
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560, "intermediate_size": 10240,
            "model_type": "gemma3_text", "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
    }  # fmt: skip
    assert (
        told(published)
        == (["4x256 window 1024"] * 5 + ["4x256"]) * 5 + ["4x256 window 1024"] * 4
    )
    assert assumed(read(published)) == {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window_pattern": 6,
    }


def test_cohere2_without_a_pattern_means_every_4th() -> None:
    model = config("cohere2", 8, sliding_window=16, hidden_size=512)
    assert told(model) == spelled("SSSFSSSF")
    assert assumed(read(model)) == {"sliding_window_pattern": 4}


def test_gemma_3_read_in_both_directions_sees_half_the_window() -> None:
    both = config(
        "gemma3_text",
        2,
        sliding_window=16,
        sliding_window_pattern=2,
        use_bidirectional_attention=True,
    )
    assert told(both) == ["2x64 window 9", "2x64"]


def test_exaone_4_with_a_null_window_is_full_everywhere() -> None:
    """EXAONE 4 1.2B, and its own spelling of the pattern."""
    for pattern in (None, 4, "LLLG"):
        model = config(
            "exaone4", 4, sliding_window=None, sliding_window_pattern=pattern
        )
        assert told(model) == spelled("FFFF")
    listed = config(
        "exaone4", 2, sliding_window=None,
        layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    assert told(listed) == spelled("FF")


@pytest.mark.parametrize(
    "pattern", ["", "LXG", "lllg", True, 0, -1, 1.5, [4], {"a": 1}]
)
def test_patterns_that_mean_nothing(pattern: object) -> None:
    model = config("exaone4", 4, sliding_window=16, sliding_window_pattern=pattern)
    error = refusal("show", model=model)
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "sliding_window_pattern"


def test_gemma_3n_shares_its_last_layers() -> None:
    model = config("gemma3n_text", 11, sliding_window=16, num_kv_shared_layers=5)
    assert told(model) == [
        *spelled("SSSSFS"),
        *("as 5", "as 5", "as 5", "as 4", "as 5"),
    ]


def test_gemma_3n_means_15_shared_layers_by_an_absent_key() -> None:
    model = config("gemma3n_text", 20, sliding_window=16)
    assert told(model) == spelled("SSSSF") + ([*["as 3"] * 4, "as 4"] * 3)
    assert assumed(read(model)) == {"num_kv_shared_layers": 15}


GEMMA_4: Final = config(
    "gemma4_text", 3, sliding_window=16,
    layer_types=["sliding_attention", "sliding_attention", "full_attention"],
)  # fmt: skip


def test_gemma_4_full_layers_are_wider() -> None:
    assert told({**GEMMA_4, "global_head_dim": 96}) == ["2x64 window 16"] * 2 + ["2x96"]
    assert told(GEMMA_4) == ["2x64 window 16"] * 2 + ["2x512"]
    assert assumed(read(GEMMA_4)) == {"global_head_dim": 512}


def test_gemma_4_full_layers_have_fewer_heads_only_where_k_equals_v() -> None:
    fewer = {**GEMMA_4, "global_head_dim": 96, "num_global_key_value_heads": 1}
    assert told({**fewer, "attention_k_eq_v": True})[2] == "1x96"
    assert told({**fewer, "attention_k_eq_v": False})[2] == "2x96"
    null = {**fewer, "num_global_key_value_heads": None, "attention_k_eq_v": True}
    assert told(null)[2] == "2x96"


@pytest.mark.parametrize("key", ["2", "02", "002"])
def test_gemma_4_saved_with_a_config_per_layer(key: str) -> None:
    saved = {**GEMMA_4, "per_layer_config": {key: {"head_dim": 96}}}
    assert told(saved) == ["2x64 window 16"] * 2 + ["2x96"]


def test_gemma_4_shares_its_last_layers() -> None:
    shared = {**GEMMA_4, "global_head_dim": 96, "num_kv_shared_layers": 2}
    assert told(shared) == ["2x64 window 16", "as 0", "as another"]


LLAMA_4: Final = config("llama4_text", 4, attention_chunk_size=16)


@pytest.mark.parametrize(
    ("fields", "letters"),
    [
        # 1 has RoPE and is chunked, 0 is full
        ({"no_rope_layers": [1, 0, 1, 0]}, "CFCF"),
        ({"no_rope_layers": [0, 0, 0, 1]}, "FFFC"),
        # an empty list is no list
        ({"no_rope_layers": [], "no_rope_layer_interval": 2}, "CFCF"),
        ({"no_rope_layer_interval": 3}, "CCFC"),
        # Scout and Maverick publish neither
        ({}, "CCCF"),
        ({"attention_chunk_size": None}, "FFFF"),
        ({"layer_types": ["chunked_attention"] * 2 + ["full_attention"] * 2}, "CCFF"),
    ],
)
def test_llama_4_chunks(fields: dict[str, object], letters: str) -> None:
    assert told({**LLAMA_4, **fields}) == spelled(letters)


def test_llama_4_means_chunks_of_8192_by_an_absent_size() -> None:
    model = read(without(LLAMA_4, "attention_chunk_size"))
    assert assumed(model) == {"attention_chunk_size": 8192, "no_rope_layer_interval": 4}


@pytest.mark.parametrize(
    ("fields", "letters"),
    [
        ({"use_sliding_window": False}, "FFFF"),
        ({}, "FFFF"),
        # the inverse of Llama 4: layers without RoPE slide
        ({"use_sliding_window": True, "no_rope_layers": [1, 1, 0, 1]}, "FFSF"),
        ({"use_sliding_window": True, "no_rope_layer_interval": 2}, "FSFS"),
    ],
)
def test_smollm3_slides_where_llama_4_would_not(
    fields: dict[str, object], letters: str
) -> None:
    assert told(config("smollm3", 4, sliding_window=16, **fields)) == spelled(letters)


def test_mimo_reads_its_lists_of_zeros_and_ones() -> None:
    model = config(
        "mimo_v2_flash", 3, head_dim=192, v_head_dim=128, num_key_value_heads=4,
        swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
        sliding_window=129, sliding_window_size=128, hybrid_layer_pattern=[0, 1, 1],
    )  # fmt: skip
    assert told(model) == ["4x192/128"] + ["8x192/128 window 128"] * 2


def test_mimo_saved_by_transformers_counts_the_current_token_in_its_window() -> None:
    saved = config(
        "mimo_v2_flash", 2, head_dim=192, v_head_dim=128, num_key_value_heads=4,
        sliding_window=129, layer_types=["full_attention", "sliding_attention"],
    )  # fmt: skip
    assert told(saved) == ["4x192/128", "8x192/128 window 128"]


@pytest.mark.parametrize(
    ("types", "letters"),
    [
        ([[["global", "local"], 2]], "FSFS"),
        ([[["global"], 1], [["local"], 3]], "FSSS"),
        (None, "FSFS"),
    ],
)
def test_gpt_neo_repeats_and_chains_its_kinds(types: Json, letters: str) -> None:
    model = {
        "model_type": "gpt_neo", "num_layers": 4, "hidden_size": 128, "num_heads": 2,
        "window_size": 16, "attention_types": types,
    }  # fmt: skip
    assert told(model) == spelled(letters)


@pytest.mark.parametrize(
    "types",
    [[["global"]], [[["global"], -1]], [[["global"], 99]], [["global", 4]], [7],
     [[["global"], "4"]], [[["psychic"], 4]], [[["global"], 3]], "global"],
    ids=str,
)  # fmt: skip
def test_gpt_neo_kinds_that_cannot_be_read(types: object) -> None:
    model = {
        "model_type": "gpt_neo", "num_layers": 4, "hidden_size": 128, "num_heads": 2,
        "window_size": 16, "attention_types": types,
    }  # fmt: skip
    error = refusal("show", model=model)
    assert error["code"] == "invalid_field"
    assert error["params"]["field"].startswith("attention_types")


def test_modernbert_decoder_sees_half_of_local_attention_to_the_left() -> None:
    model = config("modernbert-decoder", 4, local_attention=32)
    assert told(model) == spelled("FSSF")
    named = {**model, "global_attn_every_n_layers": 2}
    assert told(named) == spelled("FSFS")


@pytest.mark.parametrize("model_type", ["step3p5", "step3p7"])
def test_step_windows_have_heads_of_their_own(model_type: str) -> None:
    model = config(
        model_type, 2, sliding_window=16, num_attention_groups=2,
        layer_types=["full_attention", "sliding_attention"],
        attention_other_setting={"num_attention_heads": 12, "num_attention_groups": 3,
                                 "head_dim": 32},
    )  # fmt: skip
    assert told(without(model, "num_key_value_heads")) == ["2x64", "3x32 window 16"]


def test_inkling_keeps_convolutions_beside_its_windows() -> None:
    model = config(
        "inkling_text", 6, sliding_window_size=16, swa_num_key_value_heads=4,
        swa_head_dim=32, hidden_size=512, conv_kernel_size=4,
    )  # fmt: skip
    windowed = f"4x32 window 16 and short_convolution {2 * 4 * 32 + 2 * 512} 4"
    full = f"2x64 and short_convolution {2 * 2 * 64 + 2 * 512} 4"
    assert told(model) == [windowed] * 5 + [full]
    listed = {
        **model,
        "num_hidden_layers": 2,
        "layer_types": ["hybrid", "hybrid_sliding"],
    }
    assert told(listed) == [full, windowed]


def test_recurrent_gemma_repeats_its_block_types() -> None:
    model = {
        "model_type": "recurrent_gemma", "num_hidden_layers": 5, "hidden_size": 128,
        "num_attention_heads": 2, "num_key_value_heads": 1, "lru_width": 96,
        "conv1d_width": 4, "attention_window_size": 16,
        "block_types": ["recurrent", "recurrent", "attention"],
    }  # fmt: skip
    state = "gated_linear_recurrence 96 4"
    assert told(model) == [state, state, "1x64 window 16", state, state]
    assert told({**model, "num_key_value_heads": None})[2] == "2x64 window 16"


def test_cohere2_moe_dense_layers_have_a_pattern_of_their_own() -> None:
    model = config(
        "cohere2_moe", 6, sliding_window=16, first_k_dense_replace=1,
        prefix_dense_sliding_window_pattern=1, sliding_window_pattern=4,
    )  # fmt: skip
    assert told(model) == spelled("FSSSFS")


def test_the_window_of_an_unknown_type_is_not_guessed_onto_its_layers() -> None:
    model = read(config("no_such_type", 3, sliding_window=16))
    assert told(config("no_such_type", 3, sliding_window=16)) == spelled("FFF")
    assert codes(model) == ["window_not_applied", "unknown_model_type"]
    assert model.notices[0].params == {"window": 16}


@pytest.mark.parametrize(
    ("fields", "letters"),
    [
        ({"sliding_window_pattern": 3}, "SSF"),
        ({"use_sliding_window": True, "max_window_layers": 1}, "FSS"),
        ({"use_sliding_window": False}, "FFF"),
        ({"layer_types": ["full_attention", "sliding_attention", "chunked_attention"],
          "attention_chunk_size": 16}, "FSC"),
    ],
)  # fmt: skip
def test_an_unknown_type_is_read_by_keys_that_mean_the_same_everywhere(
    fields: dict[str, object], letters: str
) -> None:
    model = config("no_such_type", 3, sliding_window=16, **fields)
    assert told(model) == spelled(letters)
    assert codes(read(model)) == ["unknown_model_type"]
