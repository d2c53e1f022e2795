"""Heads, latents, indexers, compression, encoders, loops and drafts, in every dialect.

`told` gives each layer in words: "2x64" is 2 KV heads of 64, "512+64" a latent with
its rotary part, "1 in 4 of 512 window 128" compressed rows.
"""

from __future__ import annotations

from typing import Final

import pytest
from unit_support import (
    Json,
    ask,
    assumed,
    codes,
    layer_told,
    llama,
    read,
    refusal,
    told,
    without,
)

# Names of the same fact ----------------------------------------------------

PLAIN: Final = {"model_type": "no_such_type", "num_hidden_layers": 2,
                "num_attention_heads": 8, "num_key_value_heads": 2,
                "hidden_size": 512, "head_dim": 32}  # fmt: skip


def renamed(old: str, new: str) -> dict[str, object]:
    """PLAIN with one key under another name; a dot makes an object."""
    outer, _, inner = new.partition(".")
    value: Json = {inner: PLAIN[old]} if inner else PLAIN[old]
    return {**without(PLAIN, old), outer: value}


@pytest.mark.parametrize(
    "name",
    ["n_layers", "n_layer", "num_layers", "num_transformer_layers", "decoder_layers",
     "num_decoder_layers", "decoder_num_hidden_layers"],
)  # fmt: skip
def test_names_of_the_number_of_layers(name: str) -> None:
    assert told(renamed("num_hidden_layers", name)) == ["2x32"] * 2


@pytest.mark.parametrize(
    "name",
    ["n_head", "n_heads", "num_heads", "attention_heads", "decoder_attention_heads",
     "num_query_heads"],
)  # fmt: skip
def test_names_of_the_number_of_query_heads(name: str) -> None:
    config = without(renamed("num_attention_heads", name), "num_key_value_heads")
    assert told(config) == ["8x32"] * 2
    assert told(without(config, "head_dim")) == ["8x64"] * 2
    assert read(config).num_heads == 8


@pytest.mark.parametrize(
    "name",
    ["num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num",
     "num_query_groups", "num_attention_groups", "attn_config.kv_n_heads",
     "decoder_num_key_value_heads"],
)  # fmt: skip
def test_names_of_the_number_of_kv_heads(name: str) -> None:
    assert told(renamed("num_key_value_heads", name)) == ["2x32"] * 2


@pytest.mark.parametrize(
    "name",
    ["kv_channels", "hidden_size_per_head", "attention_head_dim", "d_kv", "dim_head",
     "d_head"],
)  # fmt: skip
def test_names_of_the_head_size(name: str) -> None:
    assert told(renamed("head_dim", name)) == ["2x32"] * 2


@pytest.mark.parametrize("name", ["d_model", "n_embd", "dim", "model_dim", "n_embed"])
def test_names_of_the_hidden_size(name: str) -> None:
    assert told(without(renamed("hidden_size", name), "head_dim")) == ["2x64"] * 2


@pytest.mark.parametrize(
    "name",
    ["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length",
     "model_max_length", "max_target_positions", "max_sequence_length",
     "max_context_length"],
)  # fmt: skip
def test_names_of_the_trained_context(name: str) -> None:
    assert read({**PLAIN, name: 4096}).max_context == 4096


@pytest.mark.parametrize(
    "first", ["num_key_value_heads", "head_dim", "num_hidden_layers", "hidden_size"]
)
def test_a_null_under_one_name_leaves_room_for_another(first: str) -> None:
    other = {
        "num_key_value_heads": "num_kv_heads",
        "head_dim": "kv_channels",
        "num_hidden_layers": "n_layer",
        "hidden_size": "d_model",
    }[first]
    config = {**renamed(first, other), first: None}
    assert told(config) == ["2x32"] * 2


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        # a stated head size is never recomputed
        ({"head_dim": 128, "hidden_size": 1024, "num_attention_heads": 16}, "2x128"),
        ({"head_dim": None, "hidden_size": 1024, "num_attention_heads": 16}, "2x64"),
        ({"head_dim": 0, "hidden_size": 1024, "num_attention_heads": 16}, "2x64"),
        # null heads mean as many as there are query heads
        ({"num_key_value_heads": None}, "8x64"),
        ({"v_head_dim": 16}, "2x64/16"),
        ({"v_head_dim": None}, "2x64"),
        ({"multi_query": True}, "1x64"),
        # whole numbers written as floats
        ({"num_key_value_heads": 2.0, "head_dim": 1e2}, "2x100"),
    ],
)
def test_heads(fields: dict[str, object], layer: str) -> None:
    assert told(llama(**fields)) == [layer] * 4


def test_heads_that_do_not_divide_the_hidden_size_are_refused() -> None:
    error = refusal("show", model=llama(hidden_size=500))
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "hidden_size"


@pytest.mark.parametrize(
    ("model_type", "head_dim"), [("qwen3", 128), ("gemma3_text", 256), ("gpt_oss", 64)]
)
def test_head_sizes_a_class_means_by_an_absent_key(
    model_type: str, head_dim: int
) -> None:
    silent = {**llama(), "model_type": model_type}
    assert {spec.head_dim for layer in read(silent).layers for spec in layer} == {
        head_dim
    }
    assert assumed(read(silent))["head_dim"] == head_dim


def test_qwen3_moe_has_no_head_size_of_its_own() -> None:
    assert told({**llama(), "model_type": "qwen3_moe"}) == ["2x64"] * 4


# Irregular heads -----------------------------------------------------------

FALCON: Final = {"model_type": "falcon", "num_hidden_layers": 1, "hidden_size": 512,
                 "num_attention_heads": 8}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        ({"new_decoder_architecture": True, "num_kv_heads": 2}, "2x64"),
        # the flag has no say in the new architecture
        ({"new_decoder_architecture": True, "num_kv_heads": 2, "multi_query": True},
         "2x64"),
        ({"new_decoder_architecture": True}, "8x64"),
        ({"new_decoder_architecture": True, "n_head_kv": 4}, "4x64"),
        ({"multi_query": True}, "1x64"),
        ({"multi_query": False}, "8x64"),
        ({"multi_query": True, "num_kv_heads": 8}, "1x64"),
        ({}, "1x64"),
    ],
)  # fmt: skip
def test_falcon_old_and_new(fields: dict[str, object], layer: str) -> None:
    assert told({**FALCON, **fields}) == [layer]


def test_falcon_in_its_oldest_spelling() -> None:
    old = {"model_type": "falcon", "n_layer": 1, "n_embed": 512, "n_head": 8,
           "n_head_kv": 2, "new_decoder_architecture": True}  # fmt: skip
    assert told(old) == ["2x64"]


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        ({}, "1x64"),
        ({"multi_query": True}, "1x64"),
        ({"multi_query": False}, "8x64"),
    ],
)
def test_gpt_bigcode(fields: dict[str, object], layer: str) -> None:
    config = {"model_type": "gpt_bigcode", "n_layer": 1, "n_embd": 512, "n_head": 8}
    assert told({**config, **fields}) == [layer]


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        ({"multi_query_attention": True}, "2x128"),
        ({"multi_query_attention": False}, "32x128"),
        ({}, "32x128"),
    ],
)
def test_chatglm(fields: dict[str, object], layer: str) -> None:
    config = {
        "model_type": "chatglm", "num_layers": 1, "hidden_size": 4096,
        "num_attention_heads": 32, "kv_channels": 128, "multi_query_group_num": 2,
    }  # fmt: skip
    assert told({**config, **fields}) == [layer]


DBRX: Final = {"model_type": "dbrx", "n_layers": 1, "d_model": 512, "n_heads": 8}


def test_dbrx_states_its_kv_heads_in_an_object() -> None:
    assert told({**DBRX, "attn_config": {"kv_n_heads": 2}}) == ["2x64"]


@pytest.mark.parametrize("config", [DBRX, {**DBRX, "attn_config": {"clip_qkv": 8}}])
def test_dbrx_means_one_kv_head_by_an_absent_key(config: dict[str, object]) -> None:
    assert told(config) == ["1x64"]
    assert assumed(read(config)) == {"attn_config.kv_n_heads": 1}


@pytest.mark.parametrize(
    ("fields", "layer"),
    [({}, "8x64"), ({"attn_config": {"kv_n_heads": 2}}, "2x64")],
)
def test_mpt_has_as_many_kv_heads_as_heads_if_it_states_none(
    fields: dict[str, object], layer: str
) -> None:
    config = {"model_type": "mpt", "n_layers": 1, "d_model": 512, "n_heads": 8}
    assert told({**config, **fields}) == [layer]


def test_openelm_lists_its_heads_by_layer() -> None:
    config = {
        "model_type": "openelm", "num_transformer_layers": 3, "model_dim": 1280,
        "head_dim": 64, "num_kv_heads": [3, 4, 5], "num_query_heads": [12, 16, 20],
    }  # fmt: skip
    assert told(config) == ["3x64", "4x64", "5x64"]
    assert read(config).num_heads is None


def test_openelm_lists_shorter_than_its_layers_are_refused() -> None:
    config = {
        "model_type": "openelm", "num_transformer_layers": 3, "model_dim": 1280,
        "head_dim": 64, "num_kv_heads": [3, 4],
    }  # fmt: skip
    assert refusal("show", model=config)["params"]["field"] == "num_kv_heads"


@pytest.mark.parametrize("model_type", ["nemotron-nas", "deci"])
def test_nemotron_nas_states_heads_by_block(model_type: str) -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}},
        {"attention": {"n_heads_in_group": None, "no_op": True}},
        {"attention": {"n_heads_in_group": 2, "replace_with_linear": False}},
        {"attention": {"n_heads_in_group": None, "replace_with_linear": True}},
    ]
    config = {
        "model_type": model_type, "num_hidden_layers": 4, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": None,
        "block_configs": blocks,
    }  # fmt: skip
    assert told(config) == ["4x128", "nothing", "16x128", "nothing"]


def test_nemotron_nas_groups_must_divide_the_heads() -> None:
    config = llama(num_attention_heads=8, num_hidden_layers=1,
                   block_configs=[{"attention": {"n_heads_in_group": 3}}])  # fmt: skip
    error = refusal("show", model={**config, "model_type": "deci"})
    assert error["params"]["field"] == "block_configs[0].attention.n_heads_in_group"


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ({}, "invalid_field"),
        ({"attention": None}, "invalid_field"),
        ({"attention": [8]}, "invalid_field"),
        (7, "invalid_field"),
        ({"attention": {"n_heads_in_group": "8"}}, "invalid_field"),
        ({"attention": {"n_heads_in_group": 4, "window_length": 512}},
         "unsupported_model"),
    ],
)  # fmt: skip
def test_nemotron_nas_blocks_that_cannot_be_read(block: object, code: str) -> None:
    config = {**llama(block_configs=[block]), "model_type": "deci"}
    assert refusal("show", model=config)["code"] == code


def test_nemotron_nas_without_block_configs_is_plain() -> None:
    assert told({**llama(), "model_type": "nemotron-nas"}) == ["2x64"] * 4


def test_nemotron_nas_blocks_without_a_group_keep_nothing() -> None:
    blocks = [{"attention": {}}, {"attention": {"n_heads_in_group": 4}}]
    config = {**llama(block_configs=blocks), "model_type": "deci"}
    assert told(config) == ["nothing", "2x64"]


@pytest.mark.parametrize(
    "stated",
    [{"x": {}}, {"0": 7}, {"-1": {}}, {"": {}}, {"1.5": {}}, {"0": None}, [], "x"],
    ids=str,
)
def test_configs_per_layer_that_cannot_be_read(stated: object) -> None:
    error = refusal("show", model=llama(per_layer_config=stated))
    assert error["code"] == "invalid_field"
    assert error["params"]["field"].startswith("per_layer_config")


def test_jetmoe_keeps_the_stated_kv_heads() -> None:
    config = {"model_type": "jetmoe", "num_hidden_layers": 1, "hidden_size": 2048,
              "num_attention_heads": 32, "num_key_value_heads": 16,
              "kv_channels": 128, "num_experts_per_tok": 2}  # fmt: skip
    assert told(config) == ["16x128"]


def test_hunyuan_shares_keys_and_values_between_neighbours() -> None:
    config = {**llama(num_hidden_layers=5, use_cla=True), "model_type": "hunyuan"}
    assert told({**config, "cla_share_factor": 2}) == [
        "2x64", "as 0", "2x64", "as 2", "2x64"
    ]  # fmt: skip
    assert told(config) == told({**config, "cla_share_factor": 2})
    assert assumed(read(config)) == {"cla_share_factor": 2}
    assert told({**config, "use_cla": False}) == ["2x64"] * 5


def test_query_heads_listed_by_layer_do_not_change_the_cache() -> None:
    listed = llama(head_dim=64, num_attention_heads_per_layer=[8, 16, 16, 16])
    config = {**listed, "model_type": "laguna", "layer_types": ["full_attention"] * 4}
    assert told(config) == ["2x64"] * 4


# Latents -------------------------------------------------------------------

LATENT: Final = llama(num_hidden_layers=3, kv_lora_rank=512, qk_rope_head_dim=64,
                      qk_nope_head_dim=128, v_head_dim=128, num_key_value_heads=8,
                      head_dim=64)  # fmt: skip


@pytest.mark.parametrize(
    "model_type",
    ["deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "minicpm3", "mistral4",
     "youtu", "axk1", "sarvam_mla", "pangu_ultra_moe", "no_such_type"],
)  # fmt: skip
def test_a_latent_is_known_by_its_rank(model_type: str) -> None:
    assert told({**LATENT, "model_type": model_type}) == ["512+64"] * 3


def test_a_latent_without_a_query_rank_is_one_all_the_same() -> None:
    config = {**LATENT, "model_type": "deepseek_v2", "q_lora_rank": None}
    assert told(config) == ["512+64"] * 3


@pytest.mark.parametrize("rank", [None, 0])
def test_without_a_rank_heads_count(rank: int | None) -> None:
    config = {**LATENT, "model_type": "hunyuan", "kv_lora_rank": rank}
    assert told(config) == ["8x64/128"] * 3


def test_a_latent_without_rotary_part() -> None:
    assert (
        told({**LATENT, "model_type": "deepseek_v3", "qk_rope_head_dim": 0})
        == ["512+0"] * 3
    )


def test_a_latent_that_does_not_state_its_rotary_part_is_an_error() -> None:
    config = without(LATENT, "qk_rope_head_dim")
    error = refusal("show", model={**config, "model_type": "no_such_type"})
    assert error["code"] == "missing_field"
    assert error["params"] == {"field": "qk_rope_head_dim"}


def test_longcat_has_two_blocks_per_layer() -> None:
    published = {**without(LATENT, "num_hidden_layers"), "model_type": "longcat_flash"}
    assert told({**published, "num_layers": 3}) == ["512+64"] * 6
    assert told({**published, "num_hidden_layers": 6}) == ["512+64"] * 6


@pytest.mark.parametrize("model_type", ["deepseek_v32", "axk2", "glm_moe_dsa"])
def test_an_indexer_in_every_layer(model_type: str) -> None:
    config = {**LATENT, "model_type": model_type, "index_head_dim": 128,
              "index_n_heads": 64, "index_topk": 2}  # fmt: skip
    assert told(config) == ["512+64 and index 128"] * 3


@pytest.mark.parametrize(
    ("fields", "full"),
    [
        ({"indexer_types": ["full", "shared"] * 4}, {0, 2, 4, 6}),
        ({"indexer_types": ["full"] + ["shared"] * 20}, {0}),
        ({"index_topk_pattern": "FSSSFSSS"}, {0, 4}),
        ({"index_topk_pattern": ["F", "S"] * 4}, {0, 2, 4, 6}),
        # max(i - 2 + 1, 0) % 4 == 0
        ({"index_topk_freq": 4}, {0, 1, 5}),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, {0, 1, 2, 6}),
        ({"index_topk_freq": 1}, set(range(8))),
        ({}, set(range(8))),
        # the list wins
        ({"indexer_types": ["shared"] * 7 + ["full"], "index_topk_freq": 4}, {7}),
    ],
)
def test_indexers_shared_between_layers(
    fields: dict[str, object], full: set[int]
) -> None:
    config = {**LATENT, "model_type": "glm_moe_dsa", "num_hidden_layers": 8,
              "index_head_dim": 128, **fields}  # fmt: skip
    assert told(config) == [
        "512+64 and index 128" if i in full else "512+64" for i in range(8)
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("indexer_types", ["full", "shared"]),
        ("indexer_types", ["full", "half", "full"]),
        ("indexer_types", 7),
        ("index_topk_pattern", "FX"),
        ("index_topk_pattern", "FXF"),
        ("index_topk_pattern", [["F"], "S", "S"]),
        ("index_topk_freq", 0),
        ("index_topk_freq", "4"),
    ],
)
def test_indexer_lists_that_mean_nothing(field: str, value: object) -> None:
    config = {**LATENT, "model_type": "glm_moe_dsa", "index_head_dim": 128}
    error = refusal("show", model={**config, field: value})
    assert error["code"] == "invalid_field"
    assert error["params"]["field"].startswith(field)


def test_hy_v4_searches_in_its_first_layer_and_every_4th_after() -> None:
    config = {**LATENT, "model_type": "hy_v4", "num_hidden_layers": 6,
              "index_head_dim": 128}  # fmt: skip
    indexed = "512+64 and index 128"
    assert told(config) == [indexed, indexed, "512+64", "512+64", "512+64", indexed]


SPARSE: Final = {"sparse_attention_freq": [0, 1, 1, 0], "sparse_index_dim": 128,
                 "sparse_num_index_heads": 4}  # fmt: skip


@pytest.mark.parametrize("model_type", ["minimax_m3_vl", "minimax_m3_vl_text"])
def test_minimax_m3_lists_its_sparse_layers(model_type: str) -> None:
    """One index key per token: the four index heads are of queries."""
    config = {**llama(head_dim=64), "model_type": model_type}
    indexed = "2x64 and index 128"
    assert told({**config, "sparse_attention_config": SPARSE}) == [
        "2x64", indexed, indexed, "2x64"
    ]  # fmt: skip
    saved = {
        **config, "index_head_dim": 128, "index_n_heads": 4,
        "layer_types": ["full_attention", "minimax_m3_sparse"] * 2,
    }  # fmt: skip
    assert told(saved) == ["2x64", indexed, "2x64", indexed]
    assert told(config) == ["2x64"] * 4


def test_sparse_layers_without_a_width_of_their_keys_name_what_is_missing() -> None:
    sparse = {"sparse_attention_freq": [0, 1, 1, 0]}
    config = {**llama(), "model_type": "step3p7", "sparse_attention_config": sparse}
    error = refusal("show", model=config)
    assert error["params"] == {"field": "index_head_dim"}


def test_a_list_of_sparse_layers_shorter_than_the_layers_is_refused() -> None:
    config = {**llama(num_hidden_layers=9), "model_type": "minimax_m3_vl",
              "sparse_attention_config": SPARSE}  # fmt: skip
    error = refusal("show", model=config)
    assert error["params"]["field"] == "sparse_attention_config.sparse_attention_freq"


def test_mistral_large_4_has_latents_without_rotary_part_and_shared_ones() -> None:
    config = {**LATENT, "model_type": "mistral_large4", "num_hidden_layers": 4,
              "index_head_dim": 128, "indexer_types": ["full"] * 4}  # fmt: skip
    rotary, plain = "512+64 and index 128", "512+0 and index 128"
    assert told({**config, "no_rope_layers": [1, 0, 1, 0]}) == [rotary, plain] * 2
    assert told(config) == [rotary] * 3 + [plain]
    identity = {**config, "kv_source_layers": [0, 1, 2, 3], "no_rope_layers": [1] * 4}
    assert told(identity) == [rotary] * 4
    shared = {**identity, "kv_source_layers": [0, 0, 2, 2]}
    assert told(shared)[1] == "as 0 and index 128"


def test_dots3_windows_have_a_rank_of_their_own() -> None:
    config = {
        **LATENT, "model_type": "dots3_note_text", "index_head_dim": 128,
        "sliding_window": 512, "num_hidden_layers": 2,
        "layer_types": ["indexed_attention", "sliding_attention"],
    }  # fmt: skip
    expected = ["512+64 and index 128", "1024+64 window 512"]
    assert told(config) == expected
    assert assumed(read(config)) == {"swa_kv_lora_rank": 1024}
    stated = {**config, "per_layer_config": {"1": {"swa_kv_lora_rank": 1024}}}
    assert told(stated) == expected
    assert codes(read(stated)) == []


# DeepSeek-V4 ---------------------------------------------------------------

V4: Final = {
    "model_type": "deepseek_v4", "num_hidden_layers": 4, "head_dim": 512,
    "num_attention_heads": 64, "num_key_value_heads": 1, "qk_rope_head_dim": 64,
    "sliding_window": 128, "index_head_dim": 128, "max_position_embeddings": 65536,
}  # fmt: skip
WINDOW: Final = "1 in 0 of 512 window 128"
SPARSE_4: Final = "1 in 4 of 512 window 128 index 128"
HEAVY: Final = "1 in 128 of 512 window 128"


@pytest.mark.parametrize("extra", [[], [0], [4, 128]])
def test_v4_lists_ratios_and_those_of_its_drafts_after_them(extra: list[int]) -> None:
    config = {**V4, "compress_ratios": [0, 4, 128, 0, *extra]}
    assert told(config) == [WINDOW, SPARSE_4, HEAVY, WINDOW]


def test_ratios_are_read_under_a_type_nobody_knows() -> None:
    """DeepSeek-V4 as conversions file it; its FP8 rows and FP4 keys with it."""
    config = {**V4, "model_type": "deepseek_ref", "compress_ratios": [0, 4, 128, 0]}
    found = read(config)
    assert told(config) == [WINDOW, SPARSE_4, HEAVY, WINDOW]
    assert (found.kv_format, found.indexer_format) == ("fp8", "fp4")
    unknown = [n.params for n in found.notices if n.code == "unknown_model_type"]
    assert [params["model_type"] for params in unknown] == ["deepseek_ref"]


def test_v4_names_its_layers_in_saved_configs() -> None:
    kinds = ["sliding_attention", "compressed_sparse_attention",
             "heavily_compressed_attention", "compressed_sparse_attention"]  # fmt: skip
    config = {**V4, "layer_types": kinds}
    assert told(config) == [WINDOW, SPARSE_4, HEAVY, SPARSE_4]
    rates = {"compressed_sparse_attention": 8, "heavily_compressed_attention": 64}
    expected = [
        WINDOW,
        "1 in 8 of 512 window 128 index 128",
        "1 in 64 of 512 window 128",
        "1 in 8 of 512 window 128 index 128",
    ]
    assert told({**config, "compress_rates": rates}) == expected
    older = {**config, "compress_rate_csa": 8, "compress_rate_hca": 64}
    assert told(older) == expected


def test_v4_without_a_list_has_two_heavy_layers_and_then_both_in_turn() -> None:
    assert told(V4) == [HEAVY, HEAVY, HEAVY, SPARSE_4]
    assert "compress_ratios" in assumed(read(V4))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"compress_ratios": [4, 4]}, "compress_ratios"),
        ({"compress_ratios": [4, -4, 4, 4]}, "compress_ratios[1]"),
        ({"compress_ratios": "4444"}, "compress_ratios"),
        ({"layer_types": ["full_attention"] * 4}, "layer_types[0]"),
        ({"compress_ratios": [4] * 4, "head_dim": None}, "head_dim"),
        ({"compress_ratios": [4] * 4, "sliding_window": None}, "sliding_window"),
    ],
)
def test_v4_configs_that_cannot_be_read(fields: dict[str, object], field: str) -> None:
    error = refusal("show", model={**V4, **fields})
    assert error["code"] in ("invalid_field", "missing_field")
    assert error["params"]["field"] == field


V41: Final = {**V4, "model_type": "deepseek_v41_text",
              "compress_ratios": [0, 2, 2, 1]}  # fmt: skip


@pytest.mark.parametrize("suffix", ["_layer_ids", "_layers"])
def test_v41_keeps_rows_only_in_its_source_layers(suffix: str) -> None:
    config = {**V41, f"kv_source{suffix}": [1, 3], f"index_source{suffix}": [1, 2]}
    assert told(config) == [
        WINDOW, "1 in 2 of 512 window 128 index 128", WINDOW,
        "1 in 1 of 512 window 128",
    ]  # fmt: skip


def test_v4_keeps_its_own_formats() -> None:
    v41 = {**V41, "kv_source_layer_ids": [1], "index_source_layer_ids": [1]}
    for config in ({**V4, "torch_dtype": "bfloat16"}, v41):
        assert ask("estimate", model=config, tokens=1)["formats"] == {
            "kv": "fp8", "indexer": "fp4", "state": None
        }  # fmt: skip


# Encoders, vision, loops ---------------------------------------------------


@pytest.mark.parametrize("model_type", ["t5", "mt5", "umt5", "longt5"])
def test_t5_heads_need_not_fill_the_model(model_type: str) -> None:
    config = {"model_type": model_type, "num_layers": 3, "d_model": 512, "num_heads": 6,
              "d_kv": 64, "num_decoder_layers": 2}  # fmt: skip
    assert told(config) == ["6x64 and cross 6x64"] * 2
    assert told(without(config, "num_decoder_layers")) == ["6x64 and cross 6x64"] * 3


@pytest.mark.parametrize(
    "model_type",
    ["bart", "mbart", "pegasus", "m2m_100", "marian", "blenderbot",
     "blenderbot-small"],
)  # fmt: skip
def test_bart_and_its_kin_count_their_decoders(model_type: str) -> None:
    config = {
        "model_type": model_type, "num_hidden_layers": 9, "encoder_layers": 9,
        "decoder_layers": 2, "encoder_attention_heads": 4, "d_model": 64,
        "decoder_attention_heads": 8, "is_encoder_decoder": True,
        "max_position_embeddings": 1024,
    }  # fmt: skip
    assert told(config) == ["8x8 and cross 8x8"] * 2
    assert read(config).encoder_tokens == 1024


def test_whisper_pads_its_input_to_a_fixed_length() -> None:
    config = {
        "model_type": "whisper", "encoder_layers": 2, "decoder_layers": 1,
        "d_model": 64, "decoder_attention_heads": 4, "max_target_positions": 448,
    }  # fmt: skip
    assert told({**config, "max_source_positions": 750}) == [
        "4x16 and cross 4x16 of 750"
    ]
    assert told(config) == ["4x16 and cross 4x16 of 1500"]
    assert assumed(read(config)) == {"max_source_positions": 1500}
    assert read(config).max_context == 448
    assert not read(config).has_encoder


def test_moonshine_states_its_decoder_apart() -> None:
    config = {
        "model_type": "moonshine", "hidden_size": 64, "decoder_num_hidden_layers": 2,
        "encoder_num_hidden_layers": 5, "decoder_num_attention_heads": 4,
        "decoder_num_key_value_heads": 2,
    }  # fmt: skip
    assert told(config) == ["2x16 and cross 2x16"] * 2


def test_t5gemma_decoders_slide_and_attend_to_the_encoder() -> None:
    decoder = {
        "model_type": "t5_gemma_module", "num_hidden_layers": 2, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "sliding_window": 8, "max_position_embeddings": 32,
    }  # fmt: skip
    config = {
        "model_type": "t5gemma", "is_encoder_decoder": True, "decoder": decoder,
        "encoder": {**decoder, "num_hidden_layers": 7},
    }  # fmt: skip
    assert told(config) == ["2x16 window 8 and cross 2x16", "2x16 and cross 2x16"]
    assert read(config).encoder_tokens == 32


def test_mllama_lists_the_layers_that_hold_vision_tokens() -> None:
    text = {**llama(cross_attention_layers=[1, 3]), "model_type": "mllama_text_model"}
    config = {
        "model_type": "mllama",
        "text_config": text,
        "vision_config": {"image_size": 56, "patch_size": 14, "max_num_tiles": 3},
    }
    assert told(config) == ["2x64", "cross 2x64"] * 2
    assert read(config).encoder_tokens == 3 * (4 * 4 + 1)
    plain = {**config, "vision_config": {}}
    assert read(plain).encoder_tokens == 4 * (40 * 40 + 1) == 4 * 1601


def test_looped_layers_have_a_cache_for_each_pass() -> None:
    config = {
        **llama(num_hidden_layers=4, head_dim=64, hidden_size=512),
        "model_type": "inkling2_loop_text", "sliding_window_size": 16,
        "swa_head_dim": 64, "swa_num_key_value_heads": 2, "conv_kernel_size": 4,
        "layer_types": ["hybrid", "hybrid_sliding", "hybrid_sliding", "hybrid"],
        "loop_num_passes": 3, "loop_layer_index_start": 1, "loop_layer_index_end": 3,
    }  # fmt: skip
    layers = [layer.split(" and ")[0] for layer in told(config)]
    assert layers == ["2x64", *["2x64 window 16"] * 6, "2x64"]
    backwards = {**config, "loop_layer_index_end": 0}
    error = refusal("show", model=backwards)
    assert error["params"]["field"] == "loop_layer_index_end"


def test_dory_repeats_the_layers_between_input_and_output() -> None:
    kinds = ["sliding_attention", "mlp", "full_attention", "mlp"] * 2
    config = {
        **llama(num_hidden_layers=8, head_dim=64), "model_type": "dory",
        "sliding_window": 16, "layer_types": kinds, "n_input_layers": 2,
        "n_output_layers": 2, "n_recurrent_loops": 3,
        "recurrent_kv_cache_mode": "per_loop",
    }  # fmt: skip
    window = "2x64 window 16"
    kept = [layer for layer in told(config) if layer != "nothing"]
    assert kept == [window, *["2x64", window] * 3, "2x64"]
    once = {**config, "recurrent_kv_cache_mode": "shared"}
    assert told(once) == [window, "nothing", "2x64", "nothing"] * 2


def test_dory_as_the_class_means_it() -> None:
    """36 layers in 72 blocks, 8 for input, 8 for output, the rest twice: 56 caches."""
    kinds = (["sliding_attention", "mlp"] * 3 + ["full_attention", "mlp"]) * 9
    config = {**llama(num_hidden_layers=72, head_dim=64), "model_type": "dory",
              "layer_types": kinds, "sliding_window": 16}  # fmt: skip
    kept = [layer for layer in told(config) if layer != "nothing"]
    assert len(kept) == 56
    assert kept.count("2x64") == 14


def test_hrm_runs_its_stacks_in_cycles() -> None:
    """16 layers, 2 times (3 low runs and a high one)."""
    config = {"model_type": "hrm_text", "num_layers_per_stack": 16, "hidden_size": 1536,
              "num_attention_heads": 12, "head_dim": 128}  # fmt: skip
    assert told(config) == ["12x128"] * 128
    assert told({**config, "H_cycles": 1, "L_cycles": 1}) == ["12x128"] * 32
    assert told({**config, "num_hidden_layers": 128}) == ["12x128"] * 128


def test_more_cycles_than_any_model_has_layers_are_refused() -> None:
    config = {"model_type": "hrm_text", "num_layers_per_stack": 99, "hidden_size": 64,
              "num_attention_heads": 4, "H_cycles": 99, "L_cycles": 99}  # fmt: skip
    assert refusal("show", model=config)["params"]["field"] == "H_cycles"


def test_memory_tokens_come_on_top_of_every_sequence() -> None:
    config = llama(num_memory_tokens=100)
    assert ask("estimate", model=config, tokens=1)["total_bytes"] == (
        4 * (1 + 100) * 2 * 2 * 64 * 2
    )


# Draft layers --------------------------------------------------------------


def drafts(config: dict[str, object]) -> list[str]:
    return [layer_told(layer) for layer in read(config).draft_layers]


@pytest.mark.parametrize(
    "name", ["num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"]
)
def test_draft_layers_are_extra_and_full(name: str) -> None:
    config = llama(**{name: 2})
    assert told(config) == ["2x64"] * 4
    assert drafts(config) == ["2x64"] * 2
    assert drafts(llama(**{name: 0})) == []
    assert drafts(llama(**{name: None})) == []


def test_minimax_counts_modules_and_their_layers() -> None:
    config = llama(num_mtp_modules=3, mtp_transformer_layers=2)
    assert drafts(config) == ["2x64"] * 6
    assert drafts({**config, "use_mtp": False}) == []


def test_a_draft_layer_of_a_latent_model_is_a_latent_with_its_indexer() -> None:
    config = {**LATENT, "model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    assert drafts(config) == ["512+64"]
    indexed = {**config, "model_type": "deepseek_v32", "index_head_dim": 128}
    assert drafts(indexed) == ["512+64 and index 128"]


def test_v4_draft_layers_have_ratios_of_their_own() -> None:
    config = {
        **V4,
        "compress_ratios": [4] * 4 + [0, 128],
        "num_nextn_predict_layers": 2,
    }
    assert drafts(config) == [WINDOW, HEAVY]
    silent = {**V4, "compress_ratios": [4] * 4, "num_nextn_predict_layers": 1}
    assert drafts(silent) == [WINDOW]


def test_layer_types_may_go_on_with_the_draft_layers() -> None:
    config = {
        **llama(num_hidden_layers=2, sliding_window=16, num_nextn_predict_layers=1),
        "layer_types": ["full_attention"] * 2 + ["sliding_attention"],
    }
    assert told(config) == ["2x64"] * 2
    assert drafts(config) == ["2x64 window 16"]


def test_nemotron_h_spells_its_draft_in_letters_too() -> None:
    config = {
        **llama(head_dim=64, mamba_num_heads=4, mamba_head_dim=32, ssm_state_size=16,
                n_groups=1, conv_kernel=4, expand=2, num_nextn_predict_layers=1,
                hybrid_override_pattern="M*", mtp_hybrid_override_pattern="*E"),
        "model_type": "nemotron_h",
    }  # fmt: skip
    assert drafts(config) == ["2x64"]


def test_a_draft_may_name_the_kinds_of_its_blocks() -> None:
    config = llama(num_nextn_predict_layers=2, sliding_window=16,
                   mtp_layers_block_type=["sliding_attention", "moe"])  # fmt: skip
    assert drafts(config) == ["2x64 window 16"] * 2


def test_drafts_count_only_when_asked_for() -> None:
    config = llama(num_nextn_predict_layers=1)
    assert ask("estimate", model=config, tokens=10)["components"]["draft"] == 0
    asked = ask("estimate", model=config, tokens=10, draft=True)
    assert asked["components"]["kv"] == 4 * 10 * 2 * 2 * 64 * 2
    assert asked["components"]["draft"] == 1 * 10 * 2 * 2 * 64 * 2
