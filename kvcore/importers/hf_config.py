"""config.json (Hugging Face, any dialect) or params.json (Mistral) -> Model.

Finds the language model inside a multimodal config, gives every field its meaning
for that model_type, and remembers what it had to assume. Sources: transformers
5.24.0 configuration classes; remote-code models as published; where engines read a
key differently, a comment at the rule says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from kvcore.datafiles import read_json
from kvcore.errors import InputTooLarge, InvalidField, InvalidJson, MissingField
from kvcore.importers.attention import hidden_size, query_heads
from kvcore.importers.container import architecture, vision_tower
from kvcore.importers.context import trained_context
from kvcore.importers.draft import draft_layers
from kvcore.importers.encoder_decoder import (
    ENCODER_DECODERS,
    with_cross_attention,
)
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import LAYERS, family_of
from kvcore.importers.patterns import PATTERNS
from kvcore.importers.plain import plain_layers
from kvcore.importers.quantization import kv_quantization
from kvcore.importers.special import BUILDERS
from kvcore.importers.states import FAMILIES as STATE_FAMILIES
from kvcore.model import Layer, Model

MAX_TEXT_BYTES: Final = 16 * 2**20
"""The largest real config.json (a quantisation ignore list) has 3 MB."""

MAX_DEPTH: Final = 64
"""Deeper than any config; a browser's stack ends long before Python's own limit."""

_STRINGS_AND_BRACKETS: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.S
)

TEXT_CONFIGS: Final = (
    "text_config",
    "llm_config",
    "lm_config",
    "language_config",
    "language_model_config",
    "thinker_config",
    "decoder_config",
    "lfm",
    "decoder",
    "generator",
)


REMOTE_CODE: Final = frozenset(
    (
        "baichuan bailing_moe bailing_moe_v2 chatglm deci deepseek glm_remote hunyuan "
        "hymba internlm internlm2 kimi_k2 kimi_k3 kimi_vl minicpm mimo mimo_v2 "
        "minimax_m1 minimax_text_01 nemotron-nas openelm phi3small phi3_v phi4flash "
        "plamo plamo2 qwen solar solar_open2 step3_vl step3p5 rwkv5 rwkv6 rwkv7 step3 "
        "deepseek_v41 axk1 exaone hyperclovax orion xverse yi aquila skywork telechat "
        "llama_params inkling_mm inkling_mm_model kimi_k25"
    ).split()
)
"""Types whose code lives beside their weights, read by the general rule or above."""

SAME_TYPES: Final[Mapping[str, str]] = {"bailing_moe_v3": "bailing_hybrid"}
"""Other names for a type, as engines file it."""

STORAGE_FORMATS: Final[Mapping[str, str]] = {
    "float32": "fp32",
    "float": "fp32",
    "fp32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "fp16": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
}


def read_text(text: str, name: str = "") -> Model:
    """A Model from the text of a config file, as it was pasted or dropped.

    Bare `Infinity` and `NaN` are accepted, as Python and transformers write them.
    """
    return read(parse(text), name)


def parse(text: str, limit: int = MAX_TEXT_BYTES) -> Mapping[str, object]:
    """The JSON object in a text, or a typed error that says where it breaks."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise InputTooLarge(bytes=size, limit=limit)
    if _nests_deeper(text, MAX_DEPTH):
        raise InvalidJson(line=1, column=1, reason="nested or long beyond reason")
    try:
        found = json.loads(text.lstrip("\ufeff"))
    except json.JSONDecodeError as error:
        raise InvalidJson(
            line=error.lineno, column=error.colno, reason=error.msg.lower()
        ) from None
    except (RecursionError, ValueError):
        # Thousands of nested brackets, or a number of thousands of digits.
        raise InvalidJson(
            line=1, column=1, reason="nested or long beyond reason"
        ) from None
    if not isinstance(found, Mapping):
        raise InvalidField(field="config", value=shown(found), expected="an object")
    return found


def _nests_deeper(text: str, limit: int) -> bool:
    """Whether brackets outside of strings ever nest deeper than `limit`."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        first = match[0][0]
        if first in "[{":
            depth += 1
            if depth > limit:
                return True
        elif first != '"':
            depth -= 1
    return False


def read(config: Mapping[str, object], name: str = "") -> Model:
    """A Model from a parsed config; raises a `KvcoreError` that names the field."""
    text, model_type = text_config(from_params(config))
    stated = model_type
    model_type = SAME_TYPES.get(model_type, model_type)
    if not is_known(model_type) and text.get("compress_ratios") is not None:
        # Conversions file DeepSeek-V4 under names of their own.
        model_type = "deepseek_v4"
    defaults = class_defaults(model_type)
    if not is_known(model_type):
        # Whether an unknown type has fewer KV heads than query heads is a guess.
        defaults = {"num_key_value_heads": None}
    fields = Fields(text, model_type, defaults)
    family = family_of(model_type)
    layers = BUILDERS.get(family, plain_layers)(fields)
    if attends_to_encoder(family, config):
        layers = with_cross_attention(layers, fields)
    if not layers:
        raise MissingField(field=LAYERS[0])
    if not is_known(SAME_TYPES.get(stated, stated)):
        fields.note(
            "unknown_model_type",
            model_type=stated or "none",
            assumed=summary(layers),
        )
    drafts = draft_layers(fields)
    model = Model(
        name=name or model_type or architecture(config) or "config.json",
        model_type=model_type,
        layers=layers,
        draft_layers=drafts,
        num_heads=query_heads(fields),
        hidden_size=hidden_size(fields),
        max_context=trained_context(fields),
        kv_format=storage_format(fields, config),
        state_format=state_format(fields),
        kv_quantization=kv_quantization(config),
        encoder_tokens=encoder_tokens(fields, config),
        extra_tokens=extra_tokens(fields),
        ngram_history=ngram_history(fields),
        architecture=architecture(config),
        vision_tower=vision_tower(config),
        notices=tuple(fields.notices),
    )
    if family in ("deepseek_v4", "deepseek_v41"):
        # The reference implementation keeps FP8 rows and FP4 index keys.
        return replace(model, kv_format="fp8", indexer_format="fp4")
    return model


def attends_to_encoder(family: str, config: Mapping[str, object]) -> bool:
    """A decoder of its own kind inside an encoder-decoder (T5Gemma, TrOCR)."""
    return family not in BUILDERS and config.get("is_encoder_decoder") is True


def text_config(config: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    """The language model's own config, with its model_type.

    A nested config without a type takes the one its container means, and a field it
    lacks for the whole file (dtype) stays with the container.
    """
    here, model_type = config, _type_of(config)
    for _ in range(3):
        nested = next(
            (
                value
                for key in TEXT_CONFIGS
                if isinstance(value := here.get(key), Mapping) and _has_layers(value)
            ),
            None,
        )
        if nested is None:
            break
        model_type = _type_of(nested) or _text_types().get(model_type, model_type)
        here = nested
    if here is not config and "torch_dtype" not in here and "dtype" not in here:
        dtype = config.get("dtype") or config.get("torch_dtype")
        if dtype is not None:
            here = {**here, "dtype": dtype}
    return here, model_type


def _type_of(config: Mapping[str, object]) -> str:
    value = config.get("model_type")
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > 100:
        raise InvalidField(
            field="model_type", value=shown(value), expected="a short text"
        )
    return value


def _has_layers(config: Mapping[str, object]) -> bool:
    keys = (*LAYERS, "layers_block_type", "hybrid_override_pattern", *TEXT_CONFIGS)
    return any(config.get(key) is not None for key in keys)


def from_params(config: Mapping[str, object]) -> Mapping[str, object]:
    """Mistral's and Meta's params.json, in the words of config.json."""
    if "dim" not in config or "n_layers" not in config or "model_type" in config:
        return config
    names = {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "n_kv_heads": "num_key_value_heads",
        "hidden_dim": "intermediate_size",
        "max_seq_len": "max_position_embeddings",
    }
    renamed = {names.get(key, key): value for key, value in config.items()}
    renamed.setdefault("num_key_value_heads", renamed.get("num_attention_heads"))
    renamed.setdefault("sliding_window", None)
    return {**renamed, "model_type": "mistral"}


@lru_cache(maxsize=1)
def _class_data() -> Mapping[str, Mapping[str, object]]:
    found: Mapping[str, Mapping[str, object]] = read_json("config_defaults.json")
    return found


def _text_types() -> Mapping[str, str]:
    return {key: str(value) for key, value in _class_data()["text_model_type"].items()}


def class_defaults(model_type: str) -> Mapping[str, object]:
    """What the architecture's class means by absent keys."""
    defaults = _class_data()["defaults"]
    for name in (model_type, f"{model_type}_text"):
        found = defaults.get(name)
        if isinstance(found, Mapping):
            return found
    return {}


def is_known(model_type: str) -> bool:
    family = family_of(model_type)
    data = _class_data()
    return (
        family in PATTERNS
        or family in BUILDERS
        or family in STATE_FAMILIES
        or family in REMOTE_CODE
        or any(
            name in data[part]
            for name in (model_type, family)
            for part in ("defaults", "without_defaults", "text_model_type")
        )
    )


def summary(layers: tuple[Layer, ...]) -> str:
    """What the layers were taken for: "32 x full_attention"."""
    counts: dict[str, int] = {}
    for layer in layers:
        kind = " + ".join(spec.kind for spec in layer) or "nothing"
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} x {kind}" for kind, count in counts.items())


def storage_format(fields: Fields, config: Mapping[str, object]) -> str:
    """The config's own dtype; weight quantisation never decides it."""
    dtype = fields.text("torch_dtype", "dtype") or config.get("torch_dtype")
    key = str(dtype).removeprefix("torch.").lower()
    return STORAGE_FORMATS.get(key, "bf16")


def state_format(fields: Fields) -> str:
    """The dtype a config pins for its recurrent state, else fp32."""
    dtype = fields.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype", "linear_ssm_dtype")
    key = str(dtype).removeprefix("torch.").lower()
    return STORAGE_FORMATS.get(key, "fp32")


def extra_tokens(fields: Fields) -> int:
    """Tokens put before every sequence: Hymba's memory tokens, CPM-Ant's prompt."""
    if fields.model_type == "cpmant":
        return fields.integer("prompt_length")
    return fields.optional_integer("num_memory_tokens", minimum=0) or 0


def ngram_history(fields: Fields) -> int:
    """Qwen 4: a dilated convolution over n-gram embeddings of all residual streams."""
    layers = fields.items("ple_layer_ids")
    if family_of(fields.model_type) != "qwen4_exp" or not layers:
        return 0
    columns = fields.integer("ple_conv_kernel_size") - 1
    streams = fields.integer("hc_count")
    width = streams * fields.integer("hidden_size")
    return len(layers) * columns * fields.integer("ngram_size") * width


def encoder_tokens(fields: Fields, config: Mapping[str, object]) -> int:
    """Encoder positions to count when nobody says: the longest input it takes."""
    family = family_of(fields.model_type)
    if family == "mllama":
        return _vision_tokens(config)
    if family not in ENCODER_DECODERS and not attends_to_encoder(family, config):
        return 0
    return (
        fields.optional_integer(
            "max_source_positions", "n_positions", "max_position_embeddings"
        )
        or 512
    )


def _vision_tokens(config: Mapping[str, object]) -> int:
    """Patches and one class token per tile, for as many tiles as an image may have."""
    vision = Fields(config, "mllama").child("vision_config") or Fields({}, "mllama")
    side = vision.optional_integer("image_size") or 560
    patch = vision.optional_integer("patch_size") or 14
    tiles = vision.optional_integer("max_num_tiles") or 4
    return tiles * ((side // patch) ** 2 + 1)
