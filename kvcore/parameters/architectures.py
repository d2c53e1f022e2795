"""Every model_type's Architecture, where it is not Llama's.

Source: the modules of transformers 5.24.0 (`models/*/modeling_*.py`), read type by
type; remote-code types from their own modelling files or the parameter count they
reproduce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvcore.parameters.architecture import NO, TIED, UNTIED, YES, Architecture

LLAMA: Final = Architecture()

_QK_HEAD: Final = Architecture(qk_norm="head")
_QWEN2: Final = Architecture(qkv_bias=YES, output_bias=NO)
_SANDWICH: Final = Architecture(layer_norms=4)
_GEMMA3: Final = replace(_SANDWICH, qk_norm="head", tied=TIED)
_COHERE: Final = Architecture(
    layer_norms=1,
    qk_norm="width",
    qk_norm_flag=("use_qk_norm", False),
    tied=TIED,
)
_PLAIN: Final = Architecture(
    norm_vectors=2,
    mlp_matrices=2,
    mlp_ratio=4,
    qkv_bias=YES,
    output_bias=YES,
    mlp_bias=YES,
    tied=TIED,
)
"""GPT-2 and its kin: biases and LayerNorm everywhere, four times hidden."""

_QWEN3_NEXT: Final = Architecture(qk_norm="head", gate="query", shared_expert_gate=True)
_MAMBA: Final = Architecture(layer_norms=1, feed_forward=False, tied=TIED)
_GLM4_MOE: Final = Architecture(
    qk_norm="head", qk_norm_flag=("use_qk_norm", False), output_bias=NO
)
_STEP: Final = Architecture(
    qk_norm="head",
    gate="head",
    gate_flag=("use_head_wise_attn_gate", True),
    dense_draft=True,
)
_FALCON: Final = Architecture(
    layer_norms=1,
    norm_vectors=2,
    mlp_matrices=2,
    mlp_ratio=4,
    qkv_bias=("bias", False),
    output_bias=("bias", False),
    mlp_bias=("bias", False),
    tied=TIED,
)
_INKLING: Final = Architecture(
    qk_norm="head", embedding_norm=True, conv_projections=False
)

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
            "dots1",
            "hy_v3",
            "hunyuan_v1_dense",
            "mellum",
            "sarvam_moe",
        ),
        _QK_HEAD,
    ),
    **dict.fromkeys(
        ("minimax_m3", "minimax_m3_vl"), replace(_QK_HEAD, indexer_weights=False)
    ),
    "exaone_moe": replace(_QK_HEAD, dense_draft=True),
    "kolibri1": replace(_QK_HEAD, layer_norms=4),
    **dict.fromkeys(("lfm2", "lfm2_vl", "lfm2_moe"), replace(_QK_HEAD, tied=TIED)),
    "lfm3": replace(_QK_HEAD, tied=TIED, gate="head"),
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
    "gemma": Architecture(tied=TIED),
    "gemma2": replace(_SANDWICH, tied=TIED),
    "gemma3": _GEMMA3,
    "gemma3n": _GEMMA3,
    **dict.fromkeys(
        ("gemma4", "gemma4_unified"),
        replace(
            _GEMMA3,
            values_are_keys=("attention_k_eq_v", False),
            double_wide=("use_double_wide_mlp", False),
            dense_beside_experts=1,
            sparse_norms=3,
            router_scales=True,
        ),
    ),
    **dict.fromkeys(("cohere", "cohere2", "cohere2_moe", "cohere2_vision"), _COHERE),
    "glm": Architecture(qkv_bias=("attention_bias", True), output_bias=NO),
    "glm4v_moe": Architecture(output_bias=NO),
    "chatglm": Architecture(qkv_bias=("add_qkv_bias", True), output_bias=NO),
    **dict.fromkeys(("glm4", "glm4v"), replace(_SANDWICH, output_bias=NO)),
    "glm4_moe": _GLM4_MOE,
    "solar_open": Architecture(output_bias=NO),
    "gpt_oss": Architecture(
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        sinks="all",
        expert_bias=True,
        router_bias=YES,
    ),
    **dict.fromkeys(
        ("mimo_v2_flash", "mimo_v2"), Architecture(sinks="sliding", dense_draft=True)
    ),
    "mimo": Architecture(qkv_bias=YES, output_bias=NO),
    "seed_oss": Architecture(
        qkv_bias=("attention_bias", True), output_bias=("attention_out_bias", False)
    ),
    "internlm": Architecture(qkv_bias=("bias", True), output_bias=("bias", True)),
    "internlm2": Architecture(qkv_bias=("bias", False), output_bias=("bias", False)),
    "internlm3": Architecture(
        qkv_bias=("qkv_bias", False), output_bias=("bias", False)
    ),
    "ernie4_5": Architecture(
        qkv_bias=("use_bias", False),
        output_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
        tied=TIED,
    ),
    **dict.fromkeys(
        ("ernie4_5_moe", "ernie4_5_vl_moe"),
        Architecture(
            qkv_bias=("use_bias", False),
            output_bias=("use_bias", False),
            mlp_bias=("use_bias", False),
            tied=TIED,
        ),
    ),
    "phi": replace(_PLAIN, layer_norms=1, head_bias=YES, tied=UNTIED),
    "phimoe": Architecture(
        norm_vectors=2,
        qkv_bias=("attention_bias", False),
        head_bias=("lm_head_bias", True),
    ),
    "phi3small": Architecture(
        norm_vectors=2, qkv_bias=YES, output_bias=YES, mlp_bias=YES, tied=TIED
    ),
    "phi4flash": Architecture(norm_vectors=2, tied=TIED),
    "bitnet": Architecture(tied=TIED),
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
    "gpt_neo": replace(_PLAIN, qkv_bias=NO, positions="max_position_embeddings"),
    "gpt_neox": replace(
        _PLAIN,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        tied=UNTIED,
    ),
    "gptj": replace(
        _PLAIN, layer_norms=1, qkv_bias=NO, output_bias=NO, head_bias=YES, tied=UNTIED
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
    "mpt": Architecture(mlp_matrices=2, mlp_ratio=4, tied=TIED),
    "falcon": _FALCON,
    "nemotron": Architecture(norm_vectors=2, mlp_matrices=2),
    "jais2": Architecture(
        norm_vectors=2,
        mlp_matrices=2,
        qkv_bias=("attention_bias", True),
        output_bias=("attention_bias", True),
        mlp_bias=("mlp_bias", True),
    ),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe"), _QWEN3_NEXT),
    "qwen4_exp": replace(
        _QWEN3_NEXT, layer_norms=0, final_norm=False, indexer_weights=False
    ),
    "granitemoehybrid": Architecture(dense_width="shared_intermediate_size"),
    "jamba": Architecture(mamba_norms=True),
    **dict.fromkeys(("mamba", "falcon_mamba", "mamba2"), _MAMBA),
    "nemotron_h": Architecture(layer_norms=1, mlp_matrices=2),
    **dict.fromkeys(("step3p5", "step3p7"), _STEP),
    "nemotron-nas": Architecture(layer_norms=0),
    "longcat_flash": Architecture(
        layer_norms=4, attention_blocks=2, dense_beside_experts=2
    ),
    "axk1": Architecture(sparse_norms=1),
    **dict.fromkeys(("muse_glimmer", "muse_spark"), replace(_SANDWICH, gate="width")),
    "inkling_mm": _INKLING,
    "inkling": _INKLING,
    **dict.fromkeys(
        ("inkling2", "inkling2_loop"),
        Architecture(embedding_norm=True, gate="width", conv_projections=False),
    ),
    "rwkv5": Architecture(
        norm_vectors=2, embedding_norm=True, feed_forward=False, tied=NO
    ),
    "rwkv7": Architecture(norm_vectors=2, embedding_norm=True, feed_forward=False),
    "xlstm": Architecture(mlp_ratio=2.667, mlp_multiple=64),
    "zamba": Architecture(
        layer_norms=1, attention_inputs=2, shared_blocks=True, tied=TIED
    ),
    "zamba2": Architecture(
        layer_norms=1, attention_inputs=2, shared_blocks=True, tied=TIED
    ),
    "llama4": Architecture(shared_experts=1),
    "solar_open2": Architecture(gate="width", gate_flag=("use_gqa_gate", True)),
    "kimi_linear": Architecture(gate="width", gate_flag=("mla_use_output_gate", False)),
    **dict.fromkeys(("hy_v4", "hy_v4_vl"), Architecture(gate="width", sinks="all")),
    "dots3_note": Architecture(gate="head"),
    "bailing_hybrid": Architecture(gate="head"),
    "smollm3": Architecture(tied=TIED),
    "hyperclovax": Architecture(layer_norms=4),
    "youtu": Architecture(tied=TIED),
    "t5": Architecture(
        layer_norms=3, mlp_matrices=2, gated_by="feed_forward_proj", tied=TIED
    ),
    "bart": replace(
        _PLAIN,
        layer_norms=3,
        final_norm=False,
        embedding_norm=True,
        positions="max_position_embeddings",
        extra_positions=2,
    ),
    "whisper": replace(
        _PLAIN, layer_norms=3, key_bias=False, positions="max_target_positions"
    ),
}
"""model_type without `_text` -> its architecture, where it is not Llama's."""


def architecture_of(family: str) -> Architecture:
    return ARCHITECTURES.get(family, LLAMA)
