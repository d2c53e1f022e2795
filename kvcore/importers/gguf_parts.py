"""A GGUF tensor's name -> the part of the model it belongs to.

Names: llama.cpp, gguf-py/gguf/constants.py (TENSOR_NAMES). The parts are those that
weight formats and parallelism tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

STARTS: Final[Mapping[str, str]] = {
    "token_embd_norm": "norms",
    "token_embd": "embeddings",
    "token_types": "embeddings",
    "position_embd": "embeddings",
    "per_layer_token_embd": "lookup",
    "per_layer_": "residual",
    "altup_": "residual",
    "output_norm": "norms",
    "output": "output_head",
    "rope_": "norms",
    "enc.": "encoder",
    "v.": "towers",
    "a.": "towers",
    "mm.": "towers",
    "resampler.": "towers",
}
"""Beginnings of names outside the layers, the longer ones first."""

LAYER: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), part)
    for pattern, part in (
        (r"^indexer\.", "indexer"),
        (r"^vis_", "towers"),
        (r"norm", "norms"),
        (r"^(ffn_gate_inp|exp_probs)", "router"),
        (r"_shexp", "shared_experts"),
        (r"_(ch)?exps|^ffn_(gate|up|down)\.\d+\.", "experts"),
        (r"^(ssm_|time_mix_|shortconv\.)", "state"),
        (r"^(cross_)?attn_", "attention"),
        (r"^(altup_|laurel_|inp_gate|proj|hc_|layer_output_scale)", "residual"),
    )
)
"""What a name inside a layer holds -> its part; everything else is feed-forward."""

_IN_LAYER: Final = re.compile(r"^(?:dec\.)?blk\.\d+\.(.*)$")


def part_of(name: str) -> str:
    """The part of `kvcore.weights.PARTS` a tensor is counted in."""
    layer = _IN_LAYER.match(name)
    return _part_in_layer(layer[1]) if layer else _part_outside(name)


@lru_cache(maxsize=1024)
def _part_in_layer(name: str) -> str:
    for pattern, part in LAYER:
        if pattern.search(name):
            return part
    return "dense_mlp"


def _part_outside(name: str) -> str:
    for start, part in STARTS.items():
        if name.startswith(start):
            return part
    return "norms" if "norm" in name else "dense_mlp"
