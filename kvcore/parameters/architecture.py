"""What a model_type fixes about its weights and no config says.

One `Architecture` per type, as data: which vectors are normalised, where a bias sits,
what is gated. Types that are not listed are built like Llama.

Source: the modules of transformers 5.24.0 (`models/*/modeling_*.py`), read type by
type; remote-code types from their own modelling files or the parameter count they
reproduce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

Flag = tuple[str, bool]
"""A config's field, and what it means when absent; ("", x) is fixed."""

YES: Final[Flag] = ("", True)
NO: Final[Flag] = ("", False)

QkNorm = Literal["none", "head", "width"]
"""Normalised queries and keys: one vector as wide as a head, or as all heads."""

Gate = Literal["none", "head", "width", "query"]
"""Output gate of attention: a number per head, per channel, or in the query matrix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """Counts of vectors and matrices per layer; widths come from the config."""

    layer_norms: int = 2
    norm_vectors: int = 1
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: QkNorm = "none"
    qk_norm_flag: Flag = YES
    qkv_bias: Flag = ("attention_bias", False)
    output_bias: Flag = ("attention_bias", False)
    gate: Gate = "none"
    gate_flag: Flag = YES
    sinks: Literal["none", "all", "sliding"] = "none"
    values_are_keys: Flag = NO
    mlp_matrices: int = 3
    mlp_bias: Flag = ("mlp_bias", False)
    mlp_ratio: int = 0
    mlp_width_divisor: int = 1
    expert_bias: bool = False
    shared_expert_gate: bool = False
    post_expert_norm: bool = False
    dense_beside_experts: int = 0
    dense_width: str = ""
    router_bias: Flag = NO
    head_bias: Flag = NO
    tied: bool = False
    positions: str = ""
    extra_positions: int = 0
    mamba_conv_bias: bool = True
    mamba_norms: bool = False


LLAMA: Final = Architecture()

_QK_HEAD: Final = Architecture(qk_norm="head")
_QWEN2: Final = Architecture(qkv_bias=YES, output_bias=NO)
_SANDWICH: Final = Architecture(layer_norms=4)
_GEMMA3: Final = replace(_SANDWICH, qk_norm="head", tied=True)
_COHERE: Final = Architecture(
    layer_norms=1,
    qk_norm="width",
    qk_norm_flag=("use_qk_norm", False),
    tied=True,
)
_PLAIN: Final = Architecture(
    norm_vectors=2,
    mlp_matrices=2,
    mlp_ratio=4,
    qkv_bias=YES,
    output_bias=YES,
    mlp_bias=YES,
    tied=True,
)
"""GPT-2 and its kin: biases and LayerNorm everywhere, four times hidden."""

_QWEN3_NEXT: Final = Architecture(qk_norm="head", gate="query", shared_expert_gate=True)
_MAMBA: Final = Architecture(layer_norms=1, tied=True)
_GLM4_MOE: Final = Architecture(
    qk_norm="head", qk_norm_flag=("use_qk_norm", False), output_bias=NO
)
_STEP: Final = Architecture(
    qk_norm="head", gate="head", gate_flag=("use_head_wise_attn_gate", True)
)
_FALCON: Final = Architecture(
    layer_norms=1,
    norm_vectors=2,
    mlp_matrices=2,
    mlp_ratio=4,
    qkv_bias=("bias", False),
    output_bias=("bias", False),
    mlp_bias=("bias", False),
    tied=True,
)
_INKLING: Final = Architecture(qk_norm="head", embedding_norm=True)

ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_5_vl"), _QWEN2),
    "qwen2_moe": Architecture(
        qkv_bias=("qkv_bias", True), output_bias=NO, shared_expert_gate=True
    ),
    "qwen": Architecture(qkv_bias=YES, output_bias=NO, mlp_width_divisor=2),
    **dict.fromkeys(
        (
            "qwen3",
            "qwen3_moe",
            "qwen3_vl",
            "qwen3_vl_moe",
            "exaone4",
            "exaone4_5",
            "exaone_moe",
            "dots1",
            "hy_v3",
            "hunyuan_v1_dense",
            "lfm2",
            "lfm2_vl",
            "lfm2_moe",
            "minimax_m3_vl",
            "kolibri1",
            "mellum",
            "sarvam_moe",
            "ministral3",
        ),
        _QK_HEAD,
    ),
    "ministral3": LLAMA,
    "kolibri1": replace(_QK_HEAD, layer_norms=4),
    "lfm2": replace(_QK_HEAD, tied=True),
    "lfm2_vl": replace(_QK_HEAD, tied=True),
    "lfm2_moe": replace(_QK_HEAD, tied=True),
    "lfm3": replace(_QK_HEAD, tied=True, gate="head"),
    "hunyuan": replace(_QK_HEAD, qk_norm_flag=("use_qk_norm", False)),
    "laguna": replace(_QK_HEAD, gate="head"),
    "minimax_m2": Architecture(qk_norm="width"),
    "afmoe": replace(_SANDWICH, qk_norm="head", gate="width"),
    "beam": replace(_SANDWICH, qk_norm="head", gate="width"),
    "apertus": Architecture(qk_norm="head", mlp_matrices=2),
    "arcee": Architecture(mlp_matrices=2),
    "olmo": Architecture(norm_vectors=0),
    **dict.fromkeys(("olmo2", "olmo3", "olmo_hybrid"), Architecture(qk_norm="width")),
    "olmoe": Architecture(qk_norm="width"),
    "gemma": Architecture(tied=True),
    "gemma2": replace(_SANDWICH, tied=True),
    "gemma3": _GEMMA3,
    "gemma3n": _GEMMA3,
    **dict.fromkeys(
        ("gemma4", "gemma4_unified"),
        replace(_GEMMA3, values_are_keys=("attention_k_eq_v", False)),
    ),
    **dict.fromkeys(("cohere", "cohere2", "cohere2_moe", "cohere2_vision"), _COHERE),
    **dict.fromkeys(("glm", "glm4v_moe"), Architecture(output_bias=NO)),
    "chatglm": Architecture(qkv_bias=("add_qkv_bias", True), output_bias=NO),
    **dict.fromkeys(("glm4", "glm4v"), replace(_SANDWICH, output_bias=NO)),
    **dict.fromkeys(("glm4_moe",), _GLM4_MOE),
    "solar_open": Architecture(output_bias=NO),
    "gpt_oss": Architecture(
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        sinks="all",
        expert_bias=True,
        router_bias=YES,
    ),
    **dict.fromkeys(("mimo_v2_flash", "mimo_v2"), Architecture(sinks="sliding")),
    "mimo": Architecture(qkv_bias=YES, output_bias=NO),
    "seed_oss": Architecture(
        qkv_bias=("attention_bias", True), output_bias=("attention_out_bias", False)
    ),
    "internlm": Architecture(qkv_bias=("bias", True), output_bias=("bias", True)),
    "internlm2": Architecture(qkv_bias=("bias", False), output_bias=("bias", False)),
    "internlm3": Architecture(qkv_bias=("qkv_bias", False), output_bias=("bias", False)),
    "ernie4_5": Architecture(
        qkv_bias=("use_bias", False),
        output_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        tied=True,
    ),
    **dict.fromkeys(
        ("ernie4_5_moe", "ernie4_5_vl_moe"),
        Architecture(
            qkv_bias=("use_bias", False),
            output_bias=("use_bias", False),
            mlp_bias=("use_bias", False),
            tied=True,
        ),
    ),
    "phi3": LLAMA,
    "phi": replace(_PLAIN, layer_norms=1, head_bias=YES, tied=False),
    "phimoe": Architecture(
        norm_vectors=2,
        qkv_bias=("attention_bias", False),
        head_bias=("lm_head_bias", False),
    ),
    "phi3small": Architecture(
        norm_vectors=2, qkv_bias=YES, output_bias=YES, mlp_bias=YES, tied=True
    ),
    "phi4flash": Architecture(norm_vectors=2, tied=True),
    "bitnet": Architecture(tied=True),
    "stablelm": Architecture(
        norm_vectors=2,
        qkv_bias=("use_qkv_bias", False),
        output_bias=NO,
        qk_norm="width",
        qk_norm_flag=("qk_layernorm", False),
    ),
    "starcoder2": replace(
        _PLAIN,
        qkv_bias=("use_bias", True),
        output_bias=("use_bias", True),
        mlp_bias=("use_bias", True),
    ),
    "gpt2": replace(_PLAIN, positions="n_positions"),
    "gpt_bigcode": replace(_PLAIN, positions="n_positions"),
    "gpt_neo": replace(
        _PLAIN, qkv_bias=NO, positions="max_position_embeddings"
    ),
    "gpt_neox": replace(
        _PLAIN,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        tied=False,
    ),
    "gptj": replace(
        _PLAIN, layer_norms=1, qkv_bias=NO, output_bias=NO, head_bias=YES, tied=False
    ),
    "bloom": replace(_PLAIN, embedding_norm=True),
    "opt": replace(
        _PLAIN,
        qkv_bias=("enable_bias", True),
        output_bias=("enable_bias", True),
        mlp_bias=("enable_bias", True),
        positions="max_position_embeddings",
        extra_positions=2,
    ),
    "mpt": Architecture(mlp_matrices=2, mlp_ratio=4, tied=True),
    "falcon": _FALCON,
    "dbrx": LLAMA,
    "nemotron": Architecture(norm_vectors=2, mlp_matrices=2),
    "jais2": Architecture(
        norm_vectors=2,
        mlp_matrices=2,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        mlp_bias=("mlp_bias", True),
    ),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"), _QWEN3_NEXT),
    "granite": Architecture(tied=False),
    "granitemoehybrid": Architecture(dense_width="shared_intermediate_size"),
    "jamba": Architecture(mamba_norms=True),
    **dict.fromkeys(("mamba", "falcon_mamba", "mamba2"), _MAMBA),
    "nemotron_h": Architecture(layer_norms=1, mlp_matrices=2),
    **dict.fromkeys(("step3p5", "step3p7"), _STEP),
    "longcat_flash": Architecture(layer_norms=4, dense_beside_experts=2),
    "axk1": LLAMA,
    **dict.fromkeys(("muse_glimmer", "muse_spark"), replace(_SANDWICH, gate="width")),
    "inkling_mm": _INKLING,
    "inkling": _INKLING,
    **dict.fromkeys(
        ("inkling2", "inkling2_loop"), Architecture(embedding_norm=True, gate="width")
    ),
    "rwkv5": Architecture(norm_vectors=2, embedding_norm=True),
    "rwkv7": Architecture(norm_vectors=2, embedding_norm=True),
    "smollm3": Architecture(tied=True),
    "hyperclovax": Architecture(layer_norms=4),
    "youtu": Architecture(tied=True),
    "t5": Architecture(layer_norms=3, tied=True),
    **dict.fromkeys(
        ("bart", "whisper"), replace(_PLAIN, layer_norms=3, embedding_norm=True)
    ),
}
"""model_type without `_text` -> its architecture, where it is not Llama's."""


def architecture_of(family: str) -> Architecture:
    return ARCHITECTURES.get(family, LLAMA)
