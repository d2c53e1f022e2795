"""How a config is found and read: nesting, JSON, contexts, errors and notices."""

from __future__ import annotations

import json
from typing import Final

import pytest
from unit_support import ask, assumed, codes, llama, read, refusal, told, without

from kvcore.errors import InputTooLarge, InvalidField, InvalidJson
from kvcore.importers import hf_config
from kvcore.importers.fields import MAX_INTEGER, MAX_LAYERS
from kvcore.importers.hf_config import MAX_TEXT_BYTES

# Where the language model is -----------------------------------------------

VISION: Final = {
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "num_attention_heads": 16,
}


@pytest.mark.parametrize(
    "key",
    ["text_config", "llm_config", "lm_config", "language_config", "decoder_config",
     "lfm", "decoder", "generator"],
)  # fmt: skip
def test_the_language_model_inside_a_multimodal_config(key: str) -> None:
    config = {"model_type": "some_vl", "vision_config": VISION, key: llama()}
    assert told(config) == ["2x64"] * 4
    assert read(config).model_type == "llama"


def test_a_thinkers_language_model() -> None:
    inner = {"model_type": "qwen2_5_omni_thinker", "text_config": llama()}
    config = {"model_type": "qwen2_5_omni", "thinker_config": inner}
    assert told(config) == ["2x64"] * 4


def test_a_nested_config_wins_over_what_stands_beside_it() -> None:
    config = {**llama(num_hidden_layers=99), "text_config": llama()}
    assert told(config) == ["2x64"] * 4


def test_a_nested_object_without_layers_is_not_the_language_model() -> None:
    config = llama(text_config={"model_type": "llama"}, llm_config=None)
    assert told(config) == ["2x64"] * 4


def test_a_nested_config_without_a_type_has_the_one_its_container_means() -> None:
    nested = without(llama(head_dim=64, sliding_window=16), "model_type")
    nested["layer_types"] = ["sliding_attention", "full_attention"] * 2
    config = {"model_type": "gemma3", "text_config": nested}
    assert read(config).model_type == "gemma3_text"
    assert codes(read(config)) == []


def test_a_nested_config_without_a_dtype_has_its_containers() -> None:
    for key in ("dtype", "torch_dtype"):
        config = {"model_type": "llava", key: "float16", "text_config": llama()}
        assert ask("estimate", model=config, tokens=1)["formats"]["kv"] == "fp16"
    own = {"model_type": "llava", "dtype": "float16",
           "text_config": llama(torch_dtype="float32")}  # fmt: skip
    assert ask("estimate", model=own, tokens=1)["formats"]["kv"] == "fp32"


def test_endless_nesting_is_not_followed() -> None:
    config: dict[str, object] = llama()
    for _ in range(50):
        config = {"model_type": "llava", "text_config": config}
    assert refusal("show", model=config)["code"] == "missing_field"


PARAMS: Final = {"dim": 5120, "n_layers": 3, "head_dim": 128, "hidden_dim": 14336,
                 "n_heads": 32, "n_kv_heads": 8, "vocab_size": 131072,
                 "norm_eps": 1e-05}  # fmt: skip


def test_mistrals_params_json() -> None:
    assert told(PARAMS) == ["8x128"] * 3
    assert read(PARAMS).model_type == "mistral"
    assert codes(read(PARAMS)) == []
    assert told({**PARAMS, "sliding_window": 16}) == ["8x128 window 16"] * 3
    assert told(without(PARAMS, "n_kv_heads")) == ["32x128"] * 3
    assert told(without(PARAMS, "head_dim")) == ["8x160"] * 3
    assert read({**PARAMS, "max_seq_len": 4096}).max_context == 4096


# The trained context -------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "context"),
    [
        # YaRN, and the scaled number is the stated one: 4096 * 40
        ("deepseek-v3", 163_840),
        # llama3 scaling, 8192 * 8 = 65536, is part of the training
        ("llama-3.1-70b", 131_072),
        # 8192 * 32 would be 262144
        ("llama-3.2-1b", 131_072),
        ("gpt-oss-20b", 131_072),
        ("gemma-3-27b-it", 131_072),
        ("qwen2.5-7b-instruct", 32_768),
        ("kimi-k2-instruct", 131_072),
        ("llama-4-scout-17b-16e-instruct", 10_485_760),
        # the number of the last training step beside the first one's
        ("c4ai-command-r-v01", 131_072),
        ("whisper-large-v3", 448),
    ],
)
def test_trained_contexts_of_published_configs(model: str, context: int) -> None:
    assert ask("show", model=model)["facts"]["max_context"] == context


YARN: Final = {"rope_type": "yarn", "factor": 4.0,
               "original_max_position_embeddings": 32768}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "context"),
    [
        # Qwen2.5 with YaRN beside the unscaled number
        ({"max_position_embeddings": 32768, "rope_scaling": YARN}, 131_072),
        ({"max_position_embeddings": 32768, "rope_parameters": YARN}, 131_072),
        ({"max_position_embeddings": 131072, "rope_scaling": YARN}, 131_072),
        ({"max_position_embeddings": None, "rope_scaling": YARN}, 131_072),
        ({"max_position_embeddings": 262144, "rope_scaling": YARN}, 262_144),
        ({"rope_scaling": None}, 8192),
        # factors that say nothing
        ({"rope_scaling": {"type": "linear", "factor": 8.0}}, 8192),
        ({"rope_scaling": {"rope_type": "default"}}, 8192),
        ({"rope_scaling": {**YARN, "factor": float("inf")}}, 8192),
        ({"rope_scaling": {**YARN, "factor": float("nan")}}, 8192),
        ({"rope_scaling": {**YARN, "factor": -4}}, 8192),
        ({"rope_scaling": {**YARN, "factor": 10**400}}, 8192),
        ({"rope_scaling": {**YARN, "rope_type": "llama3"}}, 8192),
        ({"max_position_embeddings": None}, None),
    ],
)
def test_trained_contexts_with_scaling(
    fields: dict[str, object], context: int | None
) -> None:
    assert read(llama(**fields)).max_context == context


def test_a_context_nobody_stated_is_a_warning() -> None:
    config = without(llama(), "max_position_embeddings")
    answer = ask("estimate", model=config, tokens=10**6)
    assert [w["code"] for w in answer["warnings"]] == ["context_unknown"]
    assert answer["max_context"] is None


@pytest.mark.parametrize(
    ("tokens", "warned"), [(8191, False), (8192, False), (8193, True)]
)
def test_tokens_beyond_the_trained_context_are_a_warning(
    tokens: int, warned: bool
) -> None:
    warnings = ask("estimate", model=llama(), tokens=tokens)["warnings"]
    beyond = {"code": "beyond_trained_context",
              "params": {"tokens": tokens, "max_context": 8192}}  # fmt: skip
    assert warnings == ([beyond] if warned else [])


# Notices -------------------------------------------------------------------


def test_an_unknown_type_says_what_its_layers_were_taken_for() -> None:
    model = read({**llama(), "model_type": "no_such_type"})
    assert model.notices[0].code == "unknown_model_type"
    assert model.notices[0].params == {
        "model_type": "no_such_type",
        "assumed": "4 x full_attention",
    }


def test_a_config_without_a_type_is_an_unknown_one() -> None:
    model = read(without(llama(), "model_type"))
    assert model.notices[0].params["model_type"] == "none"


def test_an_unknown_type_without_kv_heads_is_taken_for_mha_with_a_notice() -> None:
    model = read({**without(llama(), "num_key_value_heads"), "model_type": "no_such"})
    assert assumed(model) == {"num_key_value_heads": 8}


@pytest.mark.parametrize(
    "model_type", ["llama", "gpt2", "gpt_neox", "opt", "bloom", "gptj", "codegen"]
)
def test_types_that_never_had_kv_heads_are_no_guess(model_type: str) -> None:
    config = {**without(llama(), "num_key_value_heads"), "model_type": model_type}
    assert told(config) == ["8x64"] * 4
    if model_type != "llama":
        assert assumed(read(config)) == {}


def test_class_defaults_of_heads_serve_only_a_config_that_states_no_head() -> None:
    """Llama's 32 heads are nothing to a config with 2 KV heads of 64."""
    silent = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4096}
    assert told(silent) == ["32x128"]
    assert assumed(read(silent))["num_attention_heads"] == 32
    some = {**silent, "num_key_value_heads": 2, "head_dim": 64}
    assert told(some) == ["2x64"]
    assert assumed(read(some)) == {}
    error = refusal("show", model={**silent, "num_key_value_heads": 2})
    assert error["params"] == {"field": "num_attention_heads"}


def test_every_notice_carries_the_type_whose_meaning_was_used() -> None:
    notices = read({**llama(), "model_type": "gpt_oss"}).notices
    assert notices
    for notice in notices:
        assert notice.params["model_type"] == "gpt_oss"
        assert notice.message.endswith("is what gpt_oss means by that.")


def test_a_notice_is_raised_once_however_many_layers_it_is_about() -> None:
    model = read(llama(num_hidden_layers=30))
    assert len(set(map(str, model.notices))) == len(model.notices)


# Errors --------------------------------------------------------------------


@pytest.mark.parametrize(
    "field", ["num_hidden_layers", "hidden_size", "num_attention_heads"]
)
@pytest.mark.parametrize("absent", ["missing", "null"])
def test_what_is_missing_is_named(field: str, absent: str) -> None:
    config = without(llama(), field) if absent == "missing" else llama(**{field: None})
    error = refusal("show", model=config)
    assert error == {
        "code": "missing_field",
        "params": {"field": field},
        "message": f"{field} is not given, and nothing can be said without it.",
    }


@pytest.mark.parametrize("config", [{}, {"model_type": "llama"}, {"text_config": {}}])
def test_configs_of_nothing_name_the_layers(config: dict[str, object]) -> None:
    error = refusal("show", model=config)
    assert error["code"] == "missing_field"
    assert error["params"] == {"field": "num_hidden_layers"}


SIZES: Final = ["num_hidden_layers", "hidden_size", "num_key_value_heads", "head_dim",
                "v_head_dim", "max_position_embeddings"]  # fmt: skip


def check_refused_as_no_number(field: str, value: object) -> None:
    fields: dict[str, object] = {"head_dim": 64, field: value}
    error = refusal("show", model=llama(**fields))
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == field
    assert error["params"]["expected"].startswith("a whole number")
    assert len(error["message"]) < 250


@pytest.mark.parametrize("field", [*SIZES, "num_attention_heads"])
@pytest.mark.parametrize(
    "value",
    [-1, "32", True, 1.5, {}, {"a": 1}, float("inf"), float("-inf"), float("nan"),
     10**13, 10**400],
    ids=repr,
)  # fmt: skip
def test_what_is_no_number_is_named_with_what_was_expected(
    field: str, value: object
) -> None:
    check_refused_as_no_number(field, value)


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", [[], [32], [[]]], ids=repr)
def test_a_list_is_no_number(field: str, value: object) -> None:
    check_refused_as_no_number(field, value)


def test_query_heads_listed_by_layer_are_needed_only_for_what_follows_from_them() -> (
    None
):
    """OpenELM and its like state heads by layer, and the sizes that matter apart."""
    listed = llama(num_attention_heads=[8, 8, 16, 16], head_dim=64)
    assert told(listed) == ["2x64"] * 4
    error = refusal("show", model=without(listed, "head_dim"))
    assert error["params"]["field"] == "num_attention_heads"


@pytest.mark.parametrize(
    "field", ["num_hidden_layers", "hidden_size", "num_key_value_heads"]
)
def test_zero_is_no_size(field: str) -> None:
    error = refusal("show", model=llama(**{field: 0}))
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == field


def test_more_layers_than_any_model_has_are_refused() -> None:
    assert len(told(llama(num_hidden_layers=MAX_LAYERS))) == MAX_LAYERS
    error = refusal("show", model=llama(num_hidden_layers=MAX_LAYERS + 1))
    assert error["params"]["field"] == "num_hidden_layers"


def test_the_largest_numbers_a_config_may_state_are_computed_exactly() -> None:
    config = llama(head_dim=MAX_INTEGER, num_key_value_heads=MAX_INTEGER)
    answer = ask("estimate", model=config, tokens=10**12, sequences=10**9)
    assert answer["total_bytes"] == 10**9 * 4 * 10**12 * 2 * 10**12 * 10**12 * 2


@pytest.mark.parametrize("value", ["yes", 1, 0, [], {}])
def test_flags_are_true_or_false(value: object) -> None:
    error = refusal("show", model={**llama(), "model_type": "falcon",
                                   "multi_query": value})  # fmt: skip
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "multi_query"
    assert error["params"]["expected"] == "true or false"


@pytest.mark.parametrize("value", [7, True, [], {}, "x" * 101])
def test_a_type_is_a_short_text(value: object) -> None:
    error = refusal("show", model={**llama(), "model_type": value})
    assert error["code"] == "invalid_field"
    assert error["params"]["field"] == "model_type"


@pytest.mark.parametrize(
    ("types", "code"),
    [
        (["full_attention"] * 3, "invalid_field"),
        (["full_attention"] * 4, None),
        # a draft layer's entry follows
        (["full_attention"] * 5, None),
        (["full_attention"] * 4097, "invalid_field"),
        (["full_attention", "no_such_attention"] * 2, "invalid_field"),
        (["full_attention", 7, "full_attention", "full_attention"], "invalid_field"),
        ("full_attention", "invalid_field"),
        ({"0": "full_attention"}, "invalid_field"),
        # empty and null are no list
        ([], None),
        (None, None),
    ],
)
def test_lists_shorter_and_longer_than_the_layers(
    types: object, code: str | None
) -> None:
    config = llama(layer_types=types)
    if code is None:
        assert told(config) == ["2x64"] * 4
    else:
        error = refusal("show", model=config)
        assert error["code"] == code
        assert error["params"]["field"].startswith("layer_types")


def test_an_unknown_kind_of_layer_is_named_with_the_known_ones() -> None:
    config = llama(layer_types=["full_attention", "psychic_attention"] * 2)
    params = refusal("show", model=config)["params"]
    assert params["field"] == "layer_types[1]"
    assert params["value"] == "'psychic_attention'"
    assert "sliding_attention" in params["expected"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("full_attention", "2x64"), ("attention", "2x64"), ("full", "2x64"),
        ("indexed_attention", "2x64"), ("deepseek_sparse_attention", "2x64"),
        ("qwen_sparse_attention", "2x64"),
        ("sliding_attention", "2x64 window 16"), ("sliding", "2x64 window 16"),
        ("chunked_attention", "2x64 chunk 16"),
        ("linear_attention", "mamba 1024 4 4"), ("linear", "mamba 1024 4 4"),
        ("mamba", "mamba 1024 4 4"), ("recurrent", "mamba 1024 4 4"),
        ("hybrid", "2x64 and mamba 1024 4 4"),
        ("conv", "short_convolution 512 4"),
        ("mlp", "nothing"), ("moe", "nothing"),
    ],
)  # fmt: skip
def test_names_of_kinds_of_layers(name: str, kept: str) -> None:
    config = llama(
        layer_types=[name, "full_attention", name, name], sliding_window=16,
        attention_chunk_size=16, mamba_d_state=4, mamba_d_conv=4, mamba_expand=2,
        conv_kernel=4,
    )  # fmt: skip
    assert told(config) == [kept, "2x64", kept, kept]


# JSON text -----------------------------------------------------------------


def test_bare_infinity_and_nan_are_read_and_never_written() -> None:
    text = json.dumps(
        llama(time_step_limit=[0.0, float("inf")], x=float("nan"), y=float("-inf"))
    )
    assert "Infinity" in text
    assert "NaN" in text
    answer = ask("show", model_text=text)
    json.dumps(answer, allow_nan=False)
    assert answer["facts"]["num_layers"] == 4


def test_a_byte_order_mark_is_skipped() -> None:
    model = hf_config.read_text("\ufeff" + json.dumps(llama()))
    assert model.num_layers == 4


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("{", 1, 2),
        ('{"a": 1,}', 1, 8),
        ('{\n"a": 1\n"b": 2}', 3, 1),
        ("model_type: llama", 1, 1),
        ('{"a": 1} {"b": 2}', 1, 10),
        ("{'a': 1}", 1, 2),
    ],
)
def test_text_that_is_not_json_says_where_it_breaks(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(InvalidJson) as refused:
        hf_config.parse(text)
    found = refused.value.params
    assert found["line"] == line
    assert abs(int(str(found["column"])) - column) <= 1  # Python versions differ by one


@pytest.mark.parametrize(
    "text", ["[" * 10**5, '{"a":' * 10**5, "[" * 10**5 + "]" * 10**5]
)
def test_text_nested_beyond_reason(text: str) -> None:
    with pytest.raises(InvalidJson):
        hf_config.parse(text)


@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_how_deep_a_config_may_nest(pair: str) -> None:
    """Counted before JSON is read: a browser's stack ends far above Python's limit."""
    opening, closing = pair[:-1], pair[-1]
    limit = hf_config.MAX_DEPTH - 1  # the config itself is one
    inside = '"a": %s 1 %s'
    deepest = "{" + inside % (opening * limit, closing * limit) + "}"
    assert set(hf_config.parse(deepest)) == {"a"}
    with pytest.raises(InvalidJson, match="nested"):
        hf_config.parse(
            "{" + inside % (opening * (limit + 1), closing * (limit + 1)) + "}"
        )


@pytest.mark.parametrize(
    "value",
    ["[" * 200, 'a"' + "{" * 200, "\\" + "[" * 200, [[]] * 200, [{"b": ["["]}] * 200],
)
def test_brackets_side_by_side_or_in_texts_do_not_nest(value: object) -> None:
    assert hf_config.parse(json.dumps({"a": value})) == {"a": value}


def test_a_number_of_a_hundred_thousand_digits() -> None:
    with pytest.raises(InvalidJson):
        hf_config.parse('{"num_hidden_layers": ' + "9" * 10**5 + "}")


@pytest.mark.parametrize("text", ["[]", "7", '"llama"', "null", "true", "NaN"])
def test_json_that_is_no_object(text: str) -> None:
    with pytest.raises(InvalidField) as refused:
        hf_config.parse(text)
    assert refused.value.params["field"] == "config"


def test_text_longer_than_any_config_is_not_parsed() -> None:
    with pytest.raises(InputTooLarge) as refused:
        hf_config.parse(" " * (MAX_TEXT_BYTES + 1))
    assert refused.value.params == {
        "bytes": MAX_TEXT_BYTES + 1,
        "limit": MAX_TEXT_BYTES,
    }


def test_the_limit_is_of_bytes_not_of_characters() -> None:
    with pytest.raises(InputTooLarge):
        hf_config.parse("\u20ac" * (MAX_TEXT_BYTES // 3 + 1))


def test_duplicate_keys_mean_the_last_as_json_readers_have_it() -> None:
    text = '{"num_hidden_layers": 9, ' + json.dumps(llama())[1:]
    assert hf_config.read_text(text).num_layers == 4
