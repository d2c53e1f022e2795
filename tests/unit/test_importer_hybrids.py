"""Recurrent layers, alone and among attention, in every dialect of config.json.

`told` gives a state as its kind and its numbers in the order of its class: a gated
delta net as key heads, value heads, key width, value width, kernel.
"""

from __future__ import annotations

from typing import Final

import pytest
from unit_support import assumed, codes, llama, read, refusal, told, without

FULL: Final = "2x64"


def config(model_type: str, layers: int, **fields: object) -> dict[str, object]:
    return {
        **llama(num_hidden_layers=layers, head_dim=64),
        "model_type": model_type,
        **fields,
    }


# Gated delta nets ----------------------------------------------------------

DELTA: Final = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}
NET: Final = "gated_delta_net 2 4 8 16 4"


@pytest.mark.parametrize(
    "model_type", ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen4_exp_text"]
)
def test_every_interval_th_layer_attends_without_a_list(model_type: str) -> None:
    silent = config(model_type, 9, **DELTA)
    assert told(silent) == [NET, NET, NET, FULL] * 2 + [NET]
    assert assumed(read(silent)) == {"full_attention_interval": 4}
    stated = config(model_type, 4, full_attention_interval=2, **DELTA)
    assert told(stated) == [NET, FULL] * 2
    assert codes(read(stated)) == []


@pytest.mark.parametrize("model_type", ["qwen3_next", "qwen3_5_text", "olmo_hybrid"])
def test_a_list_wins_over_the_interval(model_type: str) -> None:
    listed = config(
        model_type,
        3,
        full_attention_interval=3,
        layer_types=["full_attention", "linear_attention", "linear_attention"],
        **DELTA,
    )
    assert told(listed) == [FULL, NET, NET]


def test_olmo_hybrid_derives_what_it_does_not_state() -> None:
    """As many heads as attention has; keys 3/4 of hidden by head, values twice that."""
    silent = config("olmo_hybrid", 4, hidden_size=512, linear_conv_kernel_dim=4)
    net = "gated_delta_net 8 8 48 96 4"
    assert told(silent) == [net, net, net, FULL]


def test_olmo_hybrid_has_a_full_layer_whatever_its_depth() -> None:
    assert told(config("olmo_hybrid", 3, **DELTA)) == [NET, NET, FULL]


def test_lara_mini_cycles_through_five_kinds() -> None:
    model = config("lara_mini", 6, sliding_window=16, **DELTA)
    assert told(model) == [NET, "2x64 window 16", NET, FULL, "2x64 window 16", NET]


@pytest.mark.parametrize(
    "kinds",
    [["linear_attention", "indexed_attention"], ["linear_attention", "full_attention"]],
)
def test_qwen4_keeps_index_keys_if_it_states_their_width(kinds: list[str]) -> None:
    model = config("qwen4_exp_text", 2, layer_types=kinds, **DELTA)
    assert told(model) == [NET, FULL]
    with_keys = {**model, "indexer_head_dim": 32, "indexer_kv_heads": 1}
    assert told(with_keys) == [NET, f"{FULL} and index 32"]
    assert told({**with_keys, "indexer_kv_heads": 2})[1] == f"{FULL} and index 2x32"
    assert told({**with_keys, "indexer_head_dim": None}) == [NET, FULL]


# Kimi delta attention ------------------------------------------------------

LATENT: Final = {"kv_lora_rank": 32, "qk_rope_head_dim": 16}
KIMI: Final = {
    "linear_attn_config": {
        "full_attn_layers": [2, 5],
        "kda_layers": [1, 3, 4],
        "num_heads": 2,
        "head_dim": 8,
        "short_conv_kernel_size": 4,
    }
}
KDA: Final = "kimi_delta_attention 2 8 4"


@pytest.mark.parametrize("model_type", ["kimi_linear", "kimi_k3"])
def test_kimi_counts_its_layers_from_1(model_type: str) -> None:
    model = config(model_type, 5, **LATENT, **KIMI)
    assert told(model) == [KDA, "32+16", KDA, KDA, "32+16"]


def test_kimi_without_its_list_has_the_layout_of_the_class() -> None:
    flat = {"linear_num_heads": 2, "linear_head_dim": 8, "linear_conv_kernel_dim": 4}
    model = config("kimi_linear", 6, **LATENT, **flat)
    assert told(model) == [KDA] * 4 + ["32+16", KDA]


def test_layer_numbers_outside_the_model_are_refused() -> None:
    nested = {**KIMI["linear_attn_config"], "full_attn_layers": [0, 4]}
    model = config("kimi_linear", 4, **LATENT, linear_attn_config=nested)
    error = refusal("show", model=model)
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "linear_attn_config.full_attn_layers"
    assert error["params"]["expected"] == "layer numbers from 1 to 4"


def test_bailing_groups_end_in_a_latent_layer() -> None:
    model = config(
        "bailing_hybrid", 7, layer_group_size=3, linear_num_heads=2, linear_head_dim=8,
        linear_conv_kernel_dim=4, **LATENT,
    )  # fmt: skip
    assert told(model) == [KDA, KDA, "32+16", KDA, KDA, "32+16", KDA]


def test_glm5_next_keeps_a_pooled_key_and_a_gate() -> None:
    model = config(
        "glm5_next_text", 4, linear_num_heads=2, linear_head_dim=8,
        linear_conv_kernel_dim=4, kv_lora_rank=32, qk_rope_head_dim=0,
        index_head_dim=128,
    )  # fmt: skip
    assert told(model) == [KDA] * 3 + ["32+0 and index 257"]


def test_solar_open2_lists_its_attention_layers_from_0() -> None:
    model = config(
        "solar_open2", 3, gqa_layers=[0],
        linear_attn_config={"num_heads": 2, "head_dim": 8, "short_conv_kernel_size": 4},
    )  # fmt: skip
    assert told(model) == [FULL, KDA, KDA]


# Lightning attention -------------------------------------------------------


@pytest.mark.parametrize("model_type", ["minimax", "minimax_text_01", "minimax_m1"])
def test_minimax_lists_1_for_softmax(model_type: str) -> None:
    model = config(model_type, 4, attn_type_list=[0, 0, 1, 0])
    state = "lightning_attention 8 64"
    assert told(model) == [state, state, FULL, state]


def test_minimax_without_a_list_alternates_in_transformers_class_only() -> None:
    state = "lightning_attention 8 64"
    assert told(config("minimax", 3)) == [FULL, state, FULL]
    for published in ("minimax_text_01", "minimax_m1"):
        error = refusal("show", model=config(published, 3))
        assert error["code"] == "missing_field"
        assert error["params"] == {"field": "attn_type_list"}


def test_minimax_m2_is_plain_attention_despite_its_name() -> None:
    assert told(config("minimax_m2", 2)) == [FULL, FULL]


# Mamba ---------------------------------------------------------------------

MAMBA: Final = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}


def test_jamba_attends_once_in_a_period() -> None:
    model = config("jamba", 8, attn_layer_period=4, attn_layer_offset=1, **MAMBA)
    state = "mamba 1024 16 4"
    assert told(model) == [state, FULL, state, state] * 2


def test_jamba_without_a_word_on_its_period_means_8_and_4() -> None:
    model = config("jamba", 8, **MAMBA)
    state = "mamba 1024 16 4"
    assert told(model) == [state] * 4 + [FULL] + [state] * 3
    assert assumed(read(model)) == {"attn_layer_period": 8, "attn_layer_offset": 4}


@pytest.mark.parametrize("model_type", ["mamba", "falcon_mamba"])
def test_mamba_prefers_a_stated_inner_size(model_type: str) -> None:
    model = {
        "model_type": model_type, "num_hidden_layers": 2, "hidden_size": 64,
        "state_size": 16, "conv_kernel": 4, "expand": 16, "intermediate_size": 128,
    }  # fmt: skip
    assert told(model) == ["mamba 128 16 4"] * 2
    assert told(without(model, "intermediate_size")) == ["mamba 1024 16 4"] * 2


def test_mamba2_has_no_head_keys_of_attention() -> None:
    model = {
        "model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 64,
        "num_heads": 4, "head_dim": 32, "n_groups": 1, "state_size": 16,
        "conv_kernel": 4, "expand": 2,
    }  # fmt: skip
    assert told(model) == ["mamba2 4 32 16 1 4"] * 2


MAMBA2: Final = {
    "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_n_groups": 1,
    "mamba_d_conv": 4, "mamba_expand": 2,
}  # fmt: skip
STATE: Final = "mamba2 4 32 16 1 4"


def test_bamba_lists_its_attention_layers_from_0() -> None:
    model = config("bamba", 3, attn_layer_indices=[2], **MAMBA2)
    assert told(model) == [STATE, STATE, FULL]


@pytest.mark.parametrize("listed", [{}, {"attn_layer_indices": None}])
def test_bamba_without_a_list_keeps_states_alone(listed: dict[str, object]) -> None:
    assert told(config("bamba", 3, **MAMBA2, **listed)) == [STATE] * 3


def test_auto_heads_are_what_the_inner_size_leaves() -> None:
    auto = config("bamba", 1, **{**MAMBA2, "mamba_d_head": "auto"})
    assert told(auto) == ["mamba2 4 256 16 1 4"]  # 2 * 512 / 4
    odd = config("bamba", 1, **{**MAMBA2, "mamba_d_head": "auto", "mamba_n_heads": 3})
    assert refusal("show", model=odd)["code"] == "invalid_field"


def test_granite_hybrid_names_its_layers_mamba_and_attention() -> None:
    model = config("granitemoehybrid", 3, layer_types=["mamba", "attention", "mamba"],
                   **MAMBA2)  # fmt: skip
    assert told(model) == [STATE, FULL, STATE]
    assert told(without(model, "layer_types")) == [STATE] * 3


def test_falcon_h1_has_both_in_every_layer() -> None:
    model = config("falcon_h1", 2, mamba_d_ssm=128, **MAMBA2)
    assert told(model) == [f"{FULL} and {STATE}"] * 2
    inner = {**MAMBA2, "mamba_d_head": "auto"}
    derived = config("falcon_h1", 1, mamba_d_ssm=80, **inner)
    assert told(derived) == [f"{FULL} and mamba2 4 20 16 1 4"]


NEMOTRON: Final = {
    "mamba_num_heads": 4, "mamba_head_dim": 32, "ssm_state_size": 16, "n_groups": 1,
    "conv_kernel": 4, "expand": 2,
}  # fmt: skip


def test_nemotron_h_spells_its_layers_in_letters() -> None:
    model = config("nemotron_h", 5, hybrid_override_pattern="M-*ME", **NEMOTRON)
    assert told(model) == [STATE, "nothing", FULL, STATE, "nothing"]


def test_nemotron_h_takes_its_depth_from_the_pattern() -> None:
    for count in (1, 99, None):
        model = config("nemotron_h", 3, hybrid_override_pattern="M*M", **NEMOTRON)
        model["num_hidden_layers"] = count
        assert told(model) == [STATE, FULL, STATE]


def test_nemotron_h_may_name_its_layers_and_state_no_depth() -> None:
    kinds = ["mamba", "moe", "attention", "mlp"]
    model = config("nemotron_h", 4, layers_block_type=kinds, **NEMOTRON)
    expected = [STATE, "nothing", FULL, "nothing"]
    assert told(without(model, "num_hidden_layers")) == expected
    assert told({**model, "num_hidden_layers": 4}) == expected


def test_nemotron_h_head_size_is_stated_under_another_name() -> None:
    model = config("nemotron_h", 1, hybrid_override_pattern="*", hidden_size=512,
                   attention_head_dim=128, **NEMOTRON)  # fmt: skip
    assert told(without(model, "head_dim")) == ["2x128"]


def test_nemotron_h_accepts_the_other_names_of_its_dimensions() -> None:
    other = {
        "mamba_num_heads": 4, "mamba_head_dim": 32, "ssm_state_size": 16,
        "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2,
    }  # fmt: skip
    model = config("nemotron_h", 1, hybrid_override_pattern="M", **other)
    assert told(model) == [STATE]


def test_nemotron_h_without_a_pattern_names_what_is_missing() -> None:
    error = refusal("show", model=config("nemotron_h", 3, **NEMOTRON))
    assert error["code"] == "missing_field"
    assert error["params"] == {"field": "hybrid_override_pattern"}


@pytest.mark.parametrize("pattern", ["MX", "m*", "M*" * 5000, 7, ["M", "*"], True])
def test_patterns_of_other_letters_are_refused(pattern: object) -> None:
    model = config("nemotron_h", 3, hybrid_override_pattern=pattern, **NEMOTRON)
    error = refusal("show", model=model)
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "hybrid_override_pattern"


ZAMBA: Final = {"attention_head_dim": None, "hidden_size": 256, **MAMBA}


def test_zamba_attends_on_two_streams_side_by_side() -> None:
    """Heads of 2 * hidden / heads; the pattern starts after three fixed layers."""
    model = config("zamba", 7, attn_layer_period=2, attn_layer_offset=1,
                   num_key_value_heads=8, **ZAMBA)  # fmt: skip
    state = "mamba 512 16 4"
    both = f"8x64 and {state}"
    assert told(without(model, "head_dim")) == [
        state, state, both, state, both, state, both
    ]  # fmt: skip
    kinds = ["linear_attention", "hybrid"]
    listed = {**model, "num_hidden_layers": 2, "layers_block_type": kinds}
    assert told(listed) == [state, both]


@pytest.mark.parametrize(
    "listed",
    [{"hybrid_layer_ids": [1]}, {"layers_block_type": ["mamba", "hybrid", "mamba"]}],
)
def test_zamba2_states_its_heads_or_derives_them(listed: dict[str, object]) -> None:
    """num_query_groups is not the number of KV heads."""
    model = without(config(
        "zamba2", 3, hidden_size=256, num_key_value_heads=8, num_query_groups=3,
        n_mamba_heads=4, mamba_headdim=64, mamba_d_state=16, mamba_ngroups=1,
        mamba_d_conv=4, mamba_expand=2, **listed,
    ), "head_dim")  # fmt: skip
    state = "mamba2 4 64 16 1 4"
    assert told(model) == [state, f"8x64 and {state}", state]
    derived = "mamba2 4 128 16 1 4"
    assert told(without(model, "mamba_headdim"))[0] == derived


def test_zamba2_without_a_list_names_what_is_missing() -> None:
    error = refusal("show", model=config("zamba2", 3, **MAMBA2))
    assert error["params"] == {"field": "hybrid_layer_ids"}


def test_plamo2_attends_in_the_middle_of_every_step() -> None:
    model = config(
        "plamo2", 6, mamba_step=3, hidden_size_per_head=32, mamba_num_heads=4,
        mamba_head_dim=32, mamba_d_state=16, n_groups=1, mamba_d_conv=4,
    )  # fmt: skip
    assert told(without(model, "head_dim")) == [STATE, "2x32", STATE] * 2


def test_hymba_reuses_keys_and_adds_memory_tokens() -> None:
    model = config(
        "hymba", 4, global_attn_idx=[0], attn_window_size=16, kv_reuse_group=[[1, 2]],
        num_memory_tokens=5, hidden_size=512, **MAMBA,
    )  # fmt: skip
    state = "mamba 1024 16 4"
    window = "2x64 window 16"
    assert told(model) == [
        f"2x64 and {state}", f"{window} and {state}", f"as 1 and {state}",
        f"{window} and {state}",
    ]  # fmt: skip
    assert read(model).extra_tokens == 5


def test_phi4_flash_keeps_one_full_layer_for_its_second_half() -> None:
    model = config("phi4flash", 8, mb_per_layer=2, sliding_window=16, hidden_size=512,
                   **MAMBA)  # fmt: skip
    state, window = "mamba 1024 16 4", "2x64 window 16"
    assert told(model) == [
        state, window, state, window, state, FULL, "nothing", "as 5"
    ]  # fmt: skip


# Convolutions and other states ---------------------------------------------

KINDS: Final = ["conv", "full_attention", "conv"]


@pytest.mark.parametrize("model_type", ["lfm2", "lfm2_moe"])
@pytest.mark.parametrize("listed", [{"layer_types": KINDS}, {"full_attn_idxs": [1]}])
def test_lfm2_lists_kinds_or_positions(
    model_type: str, listed: dict[str, object]
) -> None:
    model = config(model_type, 3, hidden_size=512, conv_L_cache=3, **listed)
    state = "short_convolution 512 3"
    assert told(model) == [state, FULL, state]


def test_lfm2_without_either_is_full() -> None:
    assert told(config("lfm2", 2, conv_L_cache=3)) == [FULL, FULL]


def test_lfm3_slides_between_its_full_layers() -> None:
    model = config("lfm3", 6, hidden_size=512, conv_L_cache=7, sliding_window=16)
    state = "short_convolution 512 7"
    assert told(model) == [state, state, FULL, state, "2x64 window 16", state]


def test_rwkv_4_keeps_five_vectors() -> None:
    model = {"model_type": "rwkv", "num_hidden_layers": 1, "hidden_size": 64}
    assert told(model) == ["rwkv4 64 64"]
    assert told({**model, "attention_hidden_size": 96}) == ["rwkv4 96 64"]


@pytest.mark.parametrize("model_type", ["rwkv5", "rwkv6", "rwkv7"])
@pytest.mark.parametrize("name", ["head_dim", "head_size"])
def test_rwkv_5_and_later_keep_a_matrix_per_head(model_type: str, name: str) -> None:
    model = {
        "model_type": model_type, "num_hidden_layers": 1, "hidden_size": 64, name: 16
    }  # fmt: skip
    assert told(model) == ["rwkv_matrix 4 16 64"]
    assert refusal("show", model={**model, name: 48})["code"] == "invalid_field"


def test_xlstm_scales_its_heads() -> None:
    model: dict[str, object] = {
        "model_type": "xlstm", "num_hidden_layers": 1, "hidden_size": 128,
        "num_heads": 2, "qk_dim_factor": 0.5, "v_dim_factor": 1.0,
    }  # fmt: skip
    assert told(model) == ["xlstm 2 32 64"]
    assert codes(read(model)) == []
    silent = read(without(model, "qk_dim_factor", "v_dim_factor"))
    assert assumed(silent) == {"qk_dim_factor": 0.5, "v_dim_factor": 1.0}


@pytest.mark.parametrize("factor", [0, -1, 65, "1", True, float("nan"), 10**400])
def test_xlstm_factors_that_scale_nothing(factor: object) -> None:
    model = {
        "model_type": "xlstm", "num_hidden_layers": 1, "hidden_size": 128,
        "num_heads": 2, "v_dim_factor": factor,
    }  # fmt: skip
    error = refusal("show", model=model)
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "v_dim_factor"


def test_a_state_nobody_described_is_an_error_not_a_guess() -> None:
    kinds = ["linear_attention", "full_attention"]
    error = refusal("show", model=config("no_such_type", 2, layer_types=kinds))
    assert error["code"] == "unsupported_model"
    assert error["params"]["model_type"] == "no_such_type"


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        (DELTA, NET),
        (MAMBA2, STATE),
        (MAMBA, "mamba 1024 16 4"),
        ({**LATENT, **KIMI, "linear_attn_config": {**KIMI["linear_attn_config"],
          "full_attn_layers": None}}, KDA),
    ],
)  # fmt: skip
def test_an_unknown_type_is_read_by_the_keys_of_its_state(
    fields: dict[str, object], state: str
) -> None:
    kinds = ["linear_attention", "full_attention"]
    model = config("no_such_type", 2, hidden_size=512, layer_types=kinds, **fields)
    assert told(model)[0] == state
    assert "unknown_model_type" in codes(read(model))
