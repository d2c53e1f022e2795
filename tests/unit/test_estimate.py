"""What an estimate adds up, for how many tokens, sequences, states and drafts."""

from __future__ import annotations

from typing import Final

import pytest
from unit_support import ask, evaluate, llama, refusal

from kvcore import catalog
from kvcore.cache import COMPONENTS
from kvcore.estimate import MAX_SEQUENCES, MAX_TOKENS

LLAMA: Final = "llama-3.1-70b"
QWEN: Final = "qwen3.5-27b"
QWEN_STATE: Final = 153_944_064
V4: Final = "deepseek-v4-flash"

VARIED: Final = [
    "llama-3.1-8b", "gpt2", "gemma-3-1b-it", "llama-4-scout-17b-16e-instruct",
    "deepseek-v3", "deepseek-v3.2", "glm-5.2", V4, QWEN, "kimi-k3", "mamba-130m-hf",
    "mamba-codestral-7b-v0.1", "minimax-text-01", "lfm2-1.2b", "whisper-large-v3",
    "t5-11b", "gemma-3n-e2b-it", "tencent-hunyuan-large", "mimo-v2-flash",
    "falcon-h1-0.5b-instruct", "rwkv-5-world-3b", "xlstm-7b", "dots3-note-prev",
    "inkling", "deepseek-v4.1-flash", "phi-4-mini-flash-reasoning",
    "llama-3.2-11b-vision-instruct", "glm-5.3-flash", "zamba2-2.7b",
]  # fmt: skip
"""At least one model of every kind of cache."""

SCOPES: Final[list[dict[str, object]]] = [
    {"tokens": 0},
    {"tokens": 1},
    {"tokens": 1001, "sequences": 3},
    {"tokens": 4099, "checkpoint_interval": 1000, "sequences": 2},
    {"tokens": 777, "no_state": True},
    {"tokens": 777, "draft": True, "encoder_tokens": 33},
]


def check_sums(model: object, params: dict[str, object]) -> None:
    answer = ask("estimate", model=model, **params)
    found = dict.fromkeys(COMPONENTS, 0)
    for line in answer["formula"]:
        assert evaluate(line["expression"], line["values"]) == line["bytes"], line
        assert all(type(n) is int for n in line["values"].values())
        assert line["source"]
        found[line["component"]] += line["bytes"]
    assert found == answer["components"]
    assert sum(found.values()) == answer["total_bytes"]
    assert answer["bytes_per_sequence"] * answer["sequences"] == answer["total_bytes"]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("model", VARIED)
def test_formulas_evaluate_to_their_bytes_and_add_up(
    model: str, scope: dict[str, object]
) -> None:
    check_sums(model, scope)


@pytest.mark.parametrize("fmt", ["fp8", "int4", "q8_0", "int8_per_token_head", "nvfp4",
                                 "turboquant_k8v4", "turboquant_3bit_nc"])  # fmt: skip
@pytest.mark.parametrize("model", ["llama-3.1-8b", "gemma-3-1b-it", "mimo-v2-flash"])
def test_formulas_of_formats_with_scales_and_roles(model: str, fmt: str) -> None:
    check_sums(model, {"tokens": 1001, "sequences": 3, "kv_format": fmt})


def test_a_formula_whose_bits_fill_no_whole_byte_rounds_as_the_bytes_do() -> None:
    odd = llama(num_hidden_layers=3, num_key_value_heads=1, head_dim=5)
    check_sums(odd, {"tokens": 7, "sequences": 2, "kv_format": "int4"})
    answer = ask("estimate", model=odd, tokens=1, kv_format="int4")
    assert answer["total_bytes"] == 3 * 2 * 3  # 20 bits a key, 3 bytes


def test_every_catalog_model_explains_itself() -> None:
    for entry in catalog.entries():
        check_sums(entry.id, {"tokens": 4097, "sequences": 2, "draft": True})


def test_formula_lines_name_only_what_they_use() -> None:
    for line in ask("estimate", model="gemma-3-1b-it", tokens=700)["formula"]:
        words = line["expression"].replace("(", " ").replace(")", " ").replace(",", " ")
        for name in line["values"]:
            assert name in words.split()


def test_equal_layers_are_explained_once() -> None:
    lines = ask("estimate", model="gemma-3-1b-it", tokens=700)["formula"]
    assert [(line["component"], line["values"]["layers"]) for line in lines] == [
        ("window", 22), ("kv", 4)
    ]  # fmt: skip


def test_values_of_a_formula_are_those_of_the_question() -> None:
    (line,) = ask("estimate", model="llama-3.1-8b", tokens=4096, sequences=3)["formula"]
    assert line["values"] == {
        "sequences": 3, "layers": 32, "num_kv_heads": 8, "tokens": 4096,
        "head_dim": 128, "bits": 16,
    }  # fmt: skip
    assert line["bytes"] == 3 * 32 * 2 * 8 * 4096 * 128 * 2


# Tokens and sequences ------------------------------------------------------


@pytest.mark.parametrize("sequences", [1, 2, 17, MAX_SEQUENCES])
def test_sequences_multiply_everything(sequences: int) -> None:
    one = ask("estimate", model=QWEN, tokens=100)
    many = ask("estimate", model=QWEN, tokens=100, sequences=sequences)
    assert many["total_bytes"] == sequences * one["total_bytes"]
    assert many["bytes_per_sequence"] == one["bytes_per_sequence"]
    assert many["marginal_bytes_per_token"] == one["marginal_bytes_per_token"]
    for component, count in one["components"].items():
        assert many["components"][component] == sequences * count


def test_zero_tokens_keep_states_and_nothing_else() -> None:
    assert ask("estimate", model=LLAMA, tokens=0)["total_bytes"] == 0
    assert ask("estimate", model=QWEN, tokens=0)["total_bytes"] == QWEN_STATE
    assert ask("estimate", model=V4, tokens=0)["total_bytes"] == 0


def test_without_a_word_on_tokens_the_answer_is_for_8192_or_all_there_is() -> None:
    assert ask("estimate", model=LLAMA)["tokens"] == 8192
    assert ask("estimate", model="gpt2")["tokens"] == 1024
    assert ask("estimate", model="mamba-130m-hf")["tokens"] == 8192


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("tokens", -1),
        ("tokens", MAX_TOKENS + 1),
        ("tokens", 10**5000),
        ("tokens", 1.5),
        ("tokens", True),
        ("tokens", "abc"),
        ("tokens", "1.5"),
        ("tokens", "-1"),
        ("tokens", ""),
        ("tokens", [1]),
        ("sequences", 0),
        ("sequences", -1),
        ("sequences", MAX_SEQUENCES + 1),
        ("sequences", "abc"),
        ("sequences", False),
        ("encoder_tokens", -1),
        ("encoder_tokens", "x"),
        ("checkpoint_interval", 0),
        ("checkpoint_interval", -5),
    ],
    ids=lambda value: repr(value)[:20] if value != 10**5000 else "5000 digits",
)
def test_numbers_out_of_range_are_refused_by_name(argument: str, value: object) -> None:
    error = refusal("estimate", model=LLAMA, **{argument: value})
    assert error["code"] == "invalid_argument"
    assert error["params"]["argument"] == argument
    assert len(error["params"]["value"]) <= 60


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("131072", 131_072), ("131,072", 131_072), ("131_072", 131_072),
        ("128k", 131_072), ("128K", 131_072), ("1m", 1_048_576), ("1M", 1_048_576),
        ("0.5k", 512), ("1.5k", 1536), (" 7 ", 7), ("0", 0),
    ],
)  # fmt: skip
def test_counts_as_people_write_them(text: str, tokens: int) -> None:
    assert ask("estimate", model=LLAMA, tokens=text)["tokens"] == tokens


# The cost of one more token ------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        (LLAMA, 0, 80 * 2 * 8 * 128 * 2),
        (LLAMA, 10**6, 80 * 2 * 8 * 128 * 2),
        # windows stop growing at 512
        ("gemma-3-1b-it", 511, 26 * 2 * 256 * 2),
        ("gemma-3-1b-it", 512, 4 * 2 * 256 * 2),
        # states never grow
        ("mamba-130m-hf", 1000, 0),
        (QWEN, 1000, 16 * 2 * 4 * 256 * 2),
        # the mean over 128 tokens: 21 rows and keys in 4, 20 rows in 128
        (V4, 10_000, 21 * 512 // 4 + 20 * 512 // 128 + 21 * 64 // 4),
        (V4, 10_001, 21 * 512 // 4 + 20 * 512 // 128 + 21 * 64 // 4),
    ],
)
def test_one_more_token(model: str, tokens: int, expected: int) -> None:
    answer = ask("estimate", model=model, tokens=tokens)
    assert answer["marginal_bytes_per_token"] == expected


def test_one_more_token_counts_the_draft_if_it_was_asked_for() -> None:
    config = llama(num_nextn_predict_layers=1)
    plain = ask("estimate", model=config, tokens=10)["marginal_bytes_per_token"]
    both = ask("estimate", model=config, tokens=10, draft=True)
    assert both["marginal_bytes_per_token"] == plain * 5 // 4


def test_growth_in_steps_is_rounded_up() -> None:
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 1, "head_dim": 10,
        "qk_rope_head_dim": 4, "sliding_window": 1, "index_head_dim": 8,
        "compress_ratios": [3],
    }  # fmt: skip
    answer = ask("estimate", model=config, tokens=100, kv_format="fp8")
    assert answer["marginal_bytes_per_token"] == 4  # 10 bytes for 3 tokens


def test_growth_in_steps_longer_than_any_context_is_not_diluted() -> None:
    """Ratios whose common multiple is far beyond the largest number of tokens."""
    ratios = [999_983, 999_979, 999_961]
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 3, "head_dim": 10**9,
        "qk_rope_head_dim": 4, "sliding_window": 1, "index_head_dim": 8,
        "compress_ratios": ratios,
    }  # fmt: skip
    answer = ask("estimate", model=config, tokens=10, kv_format="fp8")
    per_token = sum(10**9 / ratio for ratio in ratios)  # about 3000
    assert per_token - 1 <= answer["marginal_bytes_per_token"] <= per_token + 2


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LLAMA, 80 * 2 * 64 * 128 * 2),
        ("gpt2", 12 * 2 * 12 * 64 * 2),
        # only the full layers
        ("gemma-3-1b-it", 4 * 2 * 4 * 256 * 2),
        (QWEN, 16 * 2 * 24 * 256 * 2),
        # keys and values of different widths
        ("mimo-v2-flash", 9 * 64 * (192 + 128) * 2),
        ("deepseek-v3", None),
        ("mamba-130m-hf", None),
    ],
)
def test_the_same_with_keys_and_values_of_all_heads(
    model: str, expected: int | None
) -> None:
    answer = ask("estimate", model=model, tokens=1)
    assert answer["mha_equivalent_bytes_per_token"] == expected


# States and checkpoints ----------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "interval", "states"),
    [
        (0, 1000, 1), (1, 1000, 1), (999, 1000, 1), (1000, 1000, 1), (1001, 1000, 2),
        (10_000, 1000, 10), (10_001, 1000, 11), (10, 1, 10), (10, MAX_TOKENS, 1),
        (10_000, None, 1),
    ],
)  # fmt: skip
def test_a_state_for_every_interval_begun(
    tokens: int, interval: int | None, states: int
) -> None:
    answer = ask("estimate", model=QWEN, tokens=tokens, checkpoint_interval=interval)
    assert answer["components"]["state"] == states * QWEN_STATE


def test_checkpoints_do_not_touch_what_grows() -> None:
    plain = ask("estimate", model=QWEN, tokens=10_000)
    often = ask("estimate", model=QWEN, tokens=10_000, checkpoint_interval=16)
    assert often["components"]["kv"] == plain["components"]["kv"]
    assert often["marginal_bytes_per_token"] == plain["marginal_bytes_per_token"]


def test_leaving_states_out_is_said() -> None:
    answer = ask("estimate", model=QWEN, tokens=10, no_state=True)
    assert answer["components"]["state"] == 0
    assert {"code": "state_excluded", "params": {}} in answer["warnings"]
    assert all(line["component"] != "state" for line in answer["formula"])
    without_any = ask("estimate", model=LLAMA, tokens=10, no_state=True)
    assert without_any["warnings"] == []


# Drafts and encoders -------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("deepseek-v3", 1 * 1000 * (512 + 64) * 2),
        ("deepseek-v3.2", 1 * 1000 * (512 + 64 + 128) * 2),
        ("glm-4.5", 1 * 1000 * 2 * 8 * 128 * 2),
        ("qwen3.5-27b", 1 * 1000 * 2 * 4 * 256 * 2),
        ("mimo-7b-base", 1 * 1000 * 2 * 8 * 128 * 2),
        ("minimax-m2.5", 3 * 1 * 1000 * 2 * 8 * 128 * 2),
        ("nvidia-nemotron-3-super-120b-a12b-bf16", 1 * 1000 * 2 * 2 * 128 * 2),
    ],
)
def test_draft_layers_when_asked_for(model: str, expected: int) -> None:
    plain = ask("estimate", model=model, tokens=1000)
    draft = ask("estimate", model=model, tokens=1000, draft=True)
    assert plain["components"]["draft"] == 0
    assert draft["components"] == {**plain["components"], "draft": expected}
    assert "no_draft_layers" not in {w["code"] for w in draft["warnings"]}


def test_asking_for_drafts_of_a_model_without_is_said() -> None:
    answer = ask("estimate", model=LLAMA, tokens=10, draft=True)
    assert answer["warnings"] == [{"code": "no_draft_layers", "params": {}}]
    assert answer["components"]["draft"] == 0


def test_the_encoders_length_is_assumed_aloud() -> None:
    silent = ask("estimate", model="t5-3b", tokens=10)
    assumption = {"code": "encoder_tokens_assumed", "params": {"value": 512}}
    assert silent["warnings"] == [assumption]
    stated = ask("estimate", model="t5-3b", tokens=10, encoder_tokens=512)
    assert stated["warnings"] == []
    assert stated["components"] == silent["components"]
    # Whisper's is fixed, and Llama has none
    for model in ("whisper-large-v3", LLAMA):
        assert ask("estimate", model=model, tokens=10)["warnings"] == []


def test_layers_that_store_nothing_are_said() -> None:
    answer = ask("estimate", model="gemma-3n-e2b-it", tokens=10)
    assert answer["warnings"] == [
        {"code": "cache_shared_between_layers", "params": {"layers": 10}}
    ]


@pytest.mark.parametrize("model", [LLAMA, V4, "gpt2"])
def test_the_last_token_of_all_costs_as_much_as_the_one_before(model: str) -> None:
    last, before = (
        ask("estimate", model=model, tokens=MAX_TOKENS - less) for less in (0, 10**6)
    )
    marginal = last["marginal_bytes_per_token"]
    assert marginal == before["marginal_bytes_per_token"] > 0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "config.json"),
        ({"architectures": ["NewForCausalLM"]}, "NewForCausalLM"),
        ({"model_type": "new", "architectures": ["NewForCausalLM"]}, "new"),
    ],
)
def test_a_config_without_a_type_has_a_name(
    given: dict[str, object], name: str
) -> None:
    config = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    assert ask("estimate", model={**config, **given}, tokens=3)["name"] == name
