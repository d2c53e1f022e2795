"""GGUF metadata keys (`general.architecture`, `llama.block_count`, ...) -> Model.

Keys and their meaning: llama.cpp 0c1e570, src/llama-arch.cpp and the
`load_arch_hparams` of src/models/*.cpp. The Model says what the architecture must
keep; what llama.cpp does differently (windows it ignores, lengths it forces) is the
engine's matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.errors import InvalidField, MissingField, UnsupportedModel
from kvcore.importers.fields import MAX_LAYERS, Fields, shown
from kvcore.importers.gguf_fields import Metadata
from kvcore.importers.gguf_layers import LAYERS, plain_layers
from kvcore.importers.hf_config import summary
from kvcore.model import Layer, Model

ARCHITECTURE: Final = "general.architecture"

WITHOUT_CACHE: Final = frozenset(
    (
        "bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 "
        "jina-bert-v3 eurobert gemma-embedding t5encoder wavtokenizer-dec clip "
        "dream llada llada-moe rnd1"
    ).split()
)
"""Encoders and diffusion models read the whole text in every pass."""

BY_THE_GENERAL_RULE: Final = frozenset(
    (
        "llama deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact bloom "
        "stablelm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe phi2 "
        "phi3 phimoe plamo codeshell orion internlm2 minicpm gemma starcoder2 xverse "
        "command-r dbrx olmo olmoe openelm arctic deepseek deepseek2-ocr chatglm glm4 "
        "glm4moe bitnet jais jais2 nemotron exaone granite granitemoe chameleon "
        "bailingmoe bailingmoe2 dots1 arcee ernie4_5 ernie4_5-moe hunyuan-moe "
        "hunyuan-dense hunyuan_vl hy_v3 smollm3 seed_oss grovemoe apertus hrm_text "
        "minimax-m2 cogvlm pangu-embedded mistral3 eagle3 paddleocr llama-embed "
        "maincoder talkie qwen3tts pockettts"
    ).split()
)
"""Architectures of llama.cpp 0c1e570 whose layers need no rule of their own."""


def is_metadata(given: Mapping[str, object]) -> bool:
    """Whether an object is GGUF metadata and not a config.json."""
    return ARCHITECTURE in given


def read(metadata: Mapping[str, object], name: str = "") -> Model:
    """A Model from GGUF metadata; raises a `KvcoreError` that names the key."""
    architecture = _architecture(metadata)
    fields = Metadata(metadata, architecture)
    if architecture in WITHOUT_CACHE:
        raise UnsupportedModel(
            model_type=architecture, reason="it reads the whole text in every pass"
        )
    count = fields.integer("block_count", maximum=MAX_LAYERS)
    drafts = fields.optional_integer("nextn_predict_layers", minimum=0) or 0
    if drafts >= count:
        raise InvalidField(
            field=fields.key("nextn_predict_layers"),
            value=shown(drafts),
            expected=f"less than {count} layers",
        )
    layers = LAYERS.get(architecture, plain_layers)(fields)
    if architecture not in LAYERS and architecture not in BY_THE_GENERAL_RULE:
        fields.note(
            "unknown_model_type",
            model_type=architecture,
            assumed=summary(layers[: count - drafts]),
        )
    return _model(fields, layers, len(layers) - drafts, name or _name(metadata))


def _model(fields: Metadata, layers: tuple[Layer, ...], main: int, name: str) -> Model:
    compressed = fields.model_type == "deepseek4"
    return Model(
        name=name or fields.model_type,
        model_type=fields.model_type,
        layers=layers[:main],
        draft_layers=layers[main:],
        num_heads=max(fields.per_layer("attention.head_count", default=0)) or None,
        hidden_size=fields.optional_integer("embedding_length"),
        max_context=trained_context(fields),
        # llama.cpp caches in f16 unless told otherwise; V4's reference in fp8.
        kv_format="fp8" if compressed else "fp16",
        indexer_format="fp4" if compressed else None,
        encoder_tokens=_encoder_tokens(fields),
        latent_expanded=fields.model_type == "deepseek2"
        and "attention.key_length_mla" not in fields,
        ngram_history=_ngram_history(fields),
        notices=tuple(fields.notices),
    )


def _architecture(metadata: Mapping[str, object]) -> str:
    value = metadata.get(ARCHITECTURE)
    if value is None:
        raise MissingField(field=ARCHITECTURE)
    if not isinstance(value, str) or not 0 < len(value) <= 100:
        raise InvalidField(
            field=ARCHITECTURE, value=shown(value), expected="a short text"
        )
    return value


def _name(metadata: Mapping[str, object]) -> str:
    value = metadata.get("general.name")
    return value if isinstance(value, str) and len(value) <= 200 else ""


def trained_context(fields: Fields) -> int | None:
    """The stated context, or the original one scaled where that is longer."""
    stated = fields.optional_integer("context_length")
    factor = fields.number("rope.scaling.factor")
    original = fields.optional_integer("rope.scaling.original_context_length")
    if not factor or not original or not 0 < factor <= 10**6:
        return stated
    return max(stated or 0, int(original * factor)) or None


def _encoder_tokens(fields: Fields) -> int:
    if fields.model_type != "t5":
        return 0
    return fields.optional_integer("context_length") or 512


def _ngram_history(fields: Fields) -> int:
    """Qwen 4: (kernel - 1) dilated columns of every residual stream."""
    layers = fields.items("ple.layers")
    if not layers:
        return 0
    return (
        len(layers)
        * (fields.integer("ple.conv_kernel") - 1)
        * fields.integer("ple.ngram_size")
        * fields.integer("hyper_connection.count")
        * fields.integer("embedding_length")
    )
