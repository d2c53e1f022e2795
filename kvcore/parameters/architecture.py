"""What a model_type fixes about its weights and no config says, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Flag = tuple[str, bool]
"""A config's field, and what it means when absent; ("", x) is fixed."""

YES: Final[Flag] = ("", True)
NO: Final[Flag] = ("", False)
TIED: Final[Flag] = ("tie_word_embeddings", True)
UNTIED: Final[Flag] = ("tie_word_embeddings", False)

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
    key_bias: bool = True
    output_bias: Flag = ("attention_bias", False)
    gate: Gate = "none"
    gate_flag: Flag = YES
    sinks: Literal["none", "all", "sliding"] = "none"
    values_are_keys: Flag = NO
    mlp_matrices: int = 3
    mlp_bias: Flag = ("mlp_bias", False)
    mlp_ratio: float = 0
    mlp_multiple: int = 1
    feed_forward: bool = True
    mlp_width_divisor: int = 1
    expert_bias: bool = False
    shared_expert_gate: bool = False
    sparse_norms: int = 0
    router_scales: bool = False
    shared_experts: int = 0
    indexer_weights: bool = True
    attention_inputs: int = 1
    attention_blocks: int = 1
    shared_blocks: bool = False
    dense_beside_experts: int = 0
    dense_width: str = ""
    router_bias: Flag = NO
    head_bias: Flag = NO
    tied: Flag = UNTIED
    positions: str = ""
    extra_positions: int = 0
    mamba_norms: bool = False
    conv_projections: bool = True
    gated_by: str = ""
    double_wide: Flag = NO
    dense_draft: bool = False
