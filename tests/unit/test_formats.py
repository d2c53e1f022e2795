"""What a row of numbers takes in each format, scales included."""

from __future__ import annotations

from typing import Final

import pytest
from unit_support import ask, llama, refusal

from kvcore import formats
from kvcore.errors import FormatRowMismatch, UnknownFormat, UnsupportedFormat
from kvcore.formats import FORMATS, bytes_of, find

ROW_OF_128_BITS: Final = {
    # element widths alone
    "fp32": 128 * 32,
    "f32": 128 * 32,
    "fp16": 128 * 16,
    "f16": 128 * 16,
    "bf16": 128 * 16,
    "fp8": 128 * 8,
    "int8": 128 * 8,
    "fp4": 128 * 4,
    "int4": 128 * 4,
    # one 32-bit scale per token and head
    "fp8_per_token_head": 128 * 8 + 32,
    "int8_per_token_head": 128 * 8 + 32,
    "int4_per_token_head": 128 * 4 + 32,
    # scales by group: 1 group of 128, 2 of 64, 4 of 32, 8 of 16
    "fp8_g128": 128 * 8 + 1 * 32,
    "int8_g64": 128 * 8 + 2 * 32,
    "int4_g32": 128 * 4 + 4 * 32,
    "int4_g64": 128 * 4 + 2 * 32,
    "int4_g128": 128 * 4 + 1 * 32,
    "int2_g32_kivi": 128 * 2 + 4 * 32,
    "int2_g64": 128 * 2 + 2 * 32,
    "mxfp8": 128 * 8 + 4 * 8,
    "mxfp4": 128 * 4 + 4 * 8,
    "nvfp4": 128 * 4 + 8 * 8,
    # ggml blocks of 32: codes, an fp16 scale, for _1 an fp16 minimum, for 5 bits
    # the fifth bits
    "q8_0": 4 * 8 * (2 + 32),
    "q5_1": 4 * 8 * (2 + 2 + 4 + 16),
    "q5_0": 4 * 8 * (2 + 4 + 16),
    "q4_1": 4 * 8 * (2 + 2 + 16),
    "q4_0": 4 * 8 * (2 + 16),
    "iq4_nl": 4 * 8 * (2 + 16),
    # 8 bytes beside the codes of a row
    "q8_kv": 128 * 8 + 8 * 8,
    # one 8-bit exponent for 32 codes of 4 bits
    "ultraquant_4bit": 128 * 4 + 4 * 8,
}
"""Format -> bits of one key of 128 elements."""

OCTAVE_BITS: Final = {
    # 3-bit keys, a 4th bit for 64 rotary elements, fp16 scales per 64 keys and value
    "octave_k3v4": (128 * 3 + 64 + 2 * 16, 128 * 4 + 16),
    "octave_k3v3": (128 * 3 + 64 + 2 * 16, 128 * 3 + 16),
    # one scale per key, no bits for the rotary part
    "octave_k3v3_compact": (128 * 3 + 16, 128 * 3 + 16),
}
"""Format -> bits of one key and one value of 128 elements."""

TURBOQUANT_SLOT_BYTES: Final = {
    # a key in codes with an fp16 norm (k8: without), a value with fp16 scale and zero
    "turboquant_k8v4": 128 + (128 * 4 // 8 + 4),
    "turboquant_4bit_nc": (128 * 4 // 8 + 2) + (128 * 4 // 8 + 4),
    "turboquant_k3v4_nc": (128 * 3 // 8 + 2) + (128 * 4 // 8 + 4),
    "turboquant_3bit_nc": (128 * 3 // 8 + 2) + (128 * 3 // 8 + 4),
}

BITS_PER_ELEMENT: Final = {
    "fp32": "32", "f32": "32", "fp16": "16", "f16": "16", "bf16": "16",
    "fp8": "8", "int8": "8", "fp4": "4", "int4": "4",
    "fp8_g128": "8.25", "int8_g64": "8.5", "int4_g32": "5", "int4_g64": "4.5",
    "int4_g128": "4.25", "int2_g32_kivi": "3", "int2_g64": "2.5",
    "mxfp8": "8.25", "mxfp4": "4.25", "nvfp4": "4.5",
    "q8_0": "8.5", "q5_1": "6", "q5_0": "5.5", "q4_1": "5", "q4_0": "4.5",
    "iq4_nl": "4.5", "ultraquant_4bit": "4.25",
}  # fmt: skip
"""Where it does not depend on the width of a row."""

WIDTH_DECIDES: Final = {
    "fp8_per_token_head", "int8_per_token_head", "int4_per_token_head", "fp8_ds_mla",
    "nvfp4_ds_mla", "q8_kv", *TURBOQUANT_SLOT_BYTES, *OCTAVE_BITS,
}  # fmt: skip


def test_the_tables_here_name_every_format() -> None:
    by_role = {*TURBOQUANT_SLOT_BYTES, *OCTAVE_BITS, "fp8_ds_mla", "nvfp4_ds_mla"}
    assert set(ROW_OF_128_BITS) | by_role == set(FORMATS)
    assert set(BITS_PER_ELEMENT) | WIDTH_DECIDES == set(FORMATS)


@pytest.mark.parametrize(("name", "bits"), ROW_OF_128_BITS.items())
def test_bits_of_a_key_of_128(name: str, bits: int) -> None:
    assert find(name).row_bits(128, "key") == bits
    assert find(name).row_bits(128, "value") == bits


@pytest.mark.parametrize(("name", "slot"), TURBOQUANT_SLOT_BYTES.items())
def test_bytes_of_a_turboquant_slot(name: str, slot: int) -> None:
    published = {"turboquant_k8v4": 196, "turboquant_4bit_nc": 134,
                 "turboquant_k3v4_nc": 118, "turboquant_3bit_nc": 102}  # fmt: skip
    key, value = (find(name).row_bits(128, role) for role in ("key", "value"))
    assert (key + value) / 8 == slot == published[name]


@pytest.mark.parametrize(("name", "bits"), OCTAVE_BITS.items())
def test_bits_of_octave_keys_and_values(name: str, bits: tuple[int, int]) -> None:
    fmt = find(name)
    assert (fmt.row_bits(128, "key"), fmt.row_bits(128, "value")) == bits


def test_nvfp4_ds_mla_keeps_an_8_bit_rotary_part() -> None:
    """352 bytes: 512 codes of half a byte, 32 scales of one, 64 elements of one."""
    fmt = find("nvfp4_ds_mla")
    assert fmt.row_bits(512, "latent") == (512 // 2 + 512 // 16) * 8
    assert fmt.row_bits(64, "rope") == 64 * 8
    assert (fmt.row_bits(512, "latent") + fmt.row_bits(64, "rope")) // 8 == 352


def test_a_latent_in_q8_kv_is_one_row_with_its_rotary_part() -> None:
    """584 bytes: 576 codes and 8 bytes."""
    fmt = find("q8_kv")
    assert fmt.row_bits(512, "latent") + fmt.row_bits(64, "rope") == (576 + 8) * 8


def test_fp8_ds_mla_keeps_a_16_bit_rotary_part() -> None:
    """656 bytes: 512 codes, 4 scales of 4 bytes, 64 elements of 2 bytes."""
    fmt = find("fp8_ds_mla")
    assert fmt.row_bits(512, "latent") == (512 + 4 * 4) * 8
    assert fmt.row_bits(64, "rope") == 64 * 2 * 8
    assert (fmt.row_bits(512, "latent") + fmt.row_bits(64, "rope")) // 8 == 656


@pytest.mark.parametrize(
    ("name", "width", "bits"),
    [
        ("fp8_per_token_head", 64, 64 * 8 + 32),
        ("int8_per_token_head", 256, 256 * 8 + 32),
        ("int4_per_token_head", 80, 80 * 4 + 32),
        ("q8_0", 64, 2 * 34 * 8),
        ("q4_0", 192, 6 * 18 * 8),
        ("nvfp4", 80, 5 * 9 * 8),
        ("mxfp4", 96, 3 * 17 * 8),
        ("fp8", 1, 8),
        ("int4", 3, 12),
    ],
)
def test_bits_of_other_widths(name: str, width: int, bits: int) -> None:
    assert find(name).row_bits(width, "key") == bits


def test_bits_per_element_as_the_api_lists_them() -> None:
    listed = {f["id"]: f["bits_per_element"] for f in ask("options")["formats"]}
    assert listed == {**BITS_PER_ELEMENT, **dict.fromkeys(WIDTH_DECIDES)}


@pytest.mark.parametrize(
    ("name", "width", "block"),
    [
        ("q8_0", 80, 32),
        ("q4_0", 72, 32),
        ("iq4_nl", 100, 32),
        ("nvfp4", 72, 16),
        ("mxfp4", 80, 32),
        ("mxfp8", 48, 32),
        ("int4_g128", 64, 128),
        ("int4_g64", 96, 64),
        ("int8_g64", 80, 64),
        ("fp8_g128", 192, 128),
        ("turboquant_4bit_nc", 72, 16),
    ],
)
def test_blocks_that_do_not_divide_a_row_are_refused(
    name: str, width: int, block: int
) -> None:
    with pytest.raises(FormatRowMismatch) as refused:
        find(name).row_bits(width, "key")
    assert refused.value.params == {"format": name, "width": width, "block": block}


def test_q8_0_and_a_head_size_of_80_is_an_error_that_says_so() -> None:
    error = refusal("estimate", model="phi-2", tokens=1, kv_format="q8_0")
    assert error["code"] == "format_row_mismatch"
    assert error["params"] == {"format": "q8_0", "width": 80, "block": 32}
    assert "q8_0" in error["message"]
    assert "80" in error["message"]


def test_a_row_is_checked_even_where_nothing_is_kept_yet() -> None:
    error = refusal("estimate", model="phi-2", tokens=0, kv_format="q8_0")
    assert error["code"] == "format_row_mismatch"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("fp8_ds_mla", "key"),
        ("fp8_ds_mla", "value"),
        ("fp8_ds_mla", "indexer"),
        ("turboquant_k8v4", "latent"),
        ("turboquant_k8v4", "indexer"),
        ("fp4", "recurrent"),
        ("q8_0", "recurrent"),
        ("q8_0", "conv"),
        ("int2_g32_kivi", "indexer"),
        ("fp8_per_token_head", "weight"),
    ],
)
def test_formats_refuse_what_they_are_not_made_for(
    name: str, role: formats.Role
) -> None:
    assert not find(name).holds(role)
    with pytest.raises(UnsupportedFormat) as refused:
        find(name).row_bits(128, role)
    assert refused.value.params["format"] == name
    assert refused.value.params["role"] == role


@pytest.mark.parametrize(
    ("model", "params"),
    [
        ("llama-3.1-8b", {"kv_format": "fp8_ds_mla"}),
        ("deepseek-v3", {"kv_format": "turboquant_4bit_nc"}),
        ("qwen3.5-27b", {"state_format": "q8_0"}),
        ("deepseek-v3.2", {"indexer_format": "int2_g64"}),
        ("deepseek-v4-flash", {"kv_format": "turboquant_4bit_nc"}),
    ],
)
def test_models_refuse_formats_their_rows_cannot_have(
    model: str, params: dict[str, str]
) -> None:
    error = refusal("estimate", model=model, tokens=10, **params)
    assert error["code"] == "unsupported_format"
    assert error["params"]["format"] in params.values()


@pytest.mark.parametrize("param", ["kv_format", "indexer_format", "state_format"])
def test_unknown_names_are_refused_with_the_known_ones(param: str) -> None:
    error = refusal("estimate", model="llama-3.1-8b", tokens=1, **{param: "fp7"})
    assert error["code"] == "unknown_format"
    assert error["params"]["format"] == "fp7"
    assert error["params"]["known"] == list(FORMATS)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("torch.bfloat16", "bf16"),
        ("bfloat16", "bf16"),
        ("float16", "fp16"),
        ("half", "fp16"),
        ("float32", "fp32"),
        ("BF16", "bf16"),
        (" q8_0 ", "q8_0"),
        ("float8_e4m3fn", "fp8"),
    ],
)
def test_names_as_people_and_torch_write_them(name: str, id: str) -> None:
    assert find(name).id == id


@pytest.mark.parametrize(
    "name", ["", "fp", "q8_0_", "fp16 bf16", "\ud800", "k" * 10**5]
)
def test_names_of_nothing(name: str) -> None:
    with pytest.raises(UnknownFormat):
        find(name)


def test_a_term_is_rounded_up_to_whole_bytes_once() -> None:
    assert bytes_of(1, 5, find("int4"), "key") == 3  # 20 bits
    assert bytes_of(2, 5, find("int4"), "key") == 5  # 40 bits, not 2 * 3 bytes
    assert bytes_of(3, 5, find("int4"), "key") == 8  # 60 bits
    assert bytes_of(0, 5, find("int4"), "key") == 0


@pytest.mark.parametrize(
    ("dtype", "kv_format", "element_bytes"),
    [
        ("bfloat16", "bf16", 2),
        ("float16", "fp16", 2),
        ("torch.float16", "fp16", 2),
        ("float32", "fp32", 4),
        (None, "bf16", 2),
        # a dtype of weights is not one of a cache
        ("float8_e4m3fn", "bf16", 2),
        ("int4", "bf16", 2),
    ],
)
@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
def test_auto_is_the_configs_own_dtype(
    key: str, dtype: str | None, kv_format: str, element_bytes: int
) -> None:
    answer = ask("estimate", model=llama(**{key: dtype}), tokens=10)
    assert answer["formats"]["kv"] == kv_format
    assert answer["total_bytes"] == 4 * 10 * 2 * 2 * 64 * element_bytes


def test_weights_in_8_bits_do_not_make_the_cache_8_bits() -> None:
    config = llama(
        torch_dtype="bfloat16", quantization_config={"quant_method": "fp8", "bits": 8}
    )
    assert ask("estimate", model=config, tokens=1)["formats"]["kv"] == "bf16"
    answer = ask("estimate", model="deepseek-v3", tokens=1)
    assert answer["formats"] == {"kv": "bf16", "indexer": None, "state": None}
    assert answer["marginal_bytes_per_token"] == 70_272


@pytest.mark.parametrize(
    ("kv", "indexer", "expected"),
    [
        ("auto", "auto", "bf16"),
        ("fp8", "auto", "fp8"),
        ("fp8", "bf16", "bf16"),
        # cannot hold index keys: those stay in the model's own dtype
        ("fp8_ds_mla", "auto", "bf16"),
        ("fp8_ds_mla", "fp8_g128", "fp8_g128"),
    ],
)
def test_index_keys_follow_the_kv_format_unless_told(
    kv: str, indexer: str, expected: str
) -> None:
    answer = ask(
        "estimate",
        model="deepseek-v3.2",
        tokens=1,
        kv_format=kv,
        indexer_format=indexer,
    )
    assert answer["formats"] == {"kv": answer["formats"]["kv"], "indexer": expected,
                                 "state": None}  # fmt: skip


@pytest.mark.parametrize("field", ["mamba_ssm_cache_dtype", "mamba_ssm_dtype"])
def test_a_config_may_pin_the_dtype_of_its_state(field: str) -> None:
    config: dict[str, object] = {
        "model_type": "mamba", "num_hidden_layers": 1, "hidden_size": 8,
        "state_size": 4, "conv_kernel": 2, "expand": 2,
    }  # fmt: skip
    assert ask("estimate", model=config, tokens=1)["formats"]["state"] == "fp32"
    answer = ask("estimate", model={**config, field: "bfloat16"}, tokens=1)
    assert answer["formats"]["state"] == "bf16"
    assert answer["components"]["state"] == 16 * 4 * 2 + 1 * 16 * 2
