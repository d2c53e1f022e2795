"""Weights of the towers that see, and of what joins them to the text model.

Counted where the config states the tower's size; the rest of a tower (patches,
positions, how it is joined) follows from the model_type. A tower that is not listed,
or whose size is not stated, is not guessed: the counts then say that it is missing.

Source: the vision modules of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvcore.importers.fields import Fields
from kvcore.parameters.eye import Eye
from kvcore.parameters.joints import (
    deep_mergers,
    double_projection,
    downsampler,
    merger,
    moon_projection,
    muse_adapter,
    normed_projection,
    patch_merger,
    pixel_shuffle,
    projection,
    shuffled_projection,
    tiled_projection,
    two_layers,
)

_QWEN2_VL: Final = Eye(
    joint=merger, mlp_ratio=4, frames=2, patch_bias=False, norm_vectors=2
)
_QWEN2_5_VL: Final = replace(_QWEN2_VL, mlp_matrices=3, norm_vectors=1)
_QWEN3_VL: Final = Eye(joint=deep_mergers, patch=16, frames=2, positions=2304)
_QWEN3_5: Final = replace(_QWEN3_VL, joint=merger)
_GLM4V: Final = Eye(
    joint=downsampler,
    mlp_matrices=3,
    bias=False,
    output_bias=False,
    mlp_bias=False,
    norm_vectors=1,
    frames=2,
    grid=True,
    vectors=2,
    as_wide_as_output=True,
)
_PIXTRAL: Final = Eye(
    joint=patch_merger,
    mlp_matrices=3,
    bias=False,
    output_bias=False,
    mlp_bias=False,
    norm_vectors=1,
    patch_bias=False,
    vectors=1,
)
_SIGLIP: Final = Eye(joint=normed_projection, grid=True, vectors=2)
_KIMI: Final = Eye(joint=moon_projection, positions=64 * 64, vectors=2)
_MUSE: Final = Eye(
    joint=muse_adapter, frames=2, patch_bias=False, positions=32 * 32, vectors=4
)

EYES: Final[Mapping[str, Eye]] = {
    "qwen2_vl": _QWEN2_VL,
    "qwen2_5_vl": _QWEN2_5_VL,
    "exaone4_5": replace(_QWEN2_5_VL, kv_heads=8),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe"), _QWEN3_VL),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe"), _QWEN3_5),
    **dict.fromkeys(("glm4v", "glm4v_moe"), _GLM4V),
    **dict.fromkeys(("mistral3", "mistral_large4"), _PIXTRAL),
    "llava": replace(_PIXTRAL, joint=two_layers),
    "gemma3": _SIGLIP,
    "gemma4": Eye(
        joint=projection,
        mlp_matrices=3,
        bias=False,
        output_bias=False,
        mlp_bias=False,
        norm_vectors=1,
        layer_norms=4,
        head_norms=True,
        patch_bias=False,
        positions=2 * 10240,
    ),
    "lfm2_vl": Eye(joint=shuffled_projection, patch=16, positions=256, vectors=2),
    "llama4": Eye(joint=pixel_shuffle, patch_bias=False, grid=True, vectors=2 + 4),
    "mllama": Eye(
        joint=tiled_projection,
        bias=False,
        output_bias=False,
        patch_bias=False,
        vectors=1 + 4,
    ),
    "minimax_m3_vl": Eye(
        joint=double_projection, frames=2, patch_bias=False, vectors=2
    ),
    **dict.fromkeys(("kimi_k25", "kimi_k3", "kimi_vl"), _KIMI),
    **dict.fromkeys(("muse_glimmer", "muse_spark"), _MUSE),
}
"""Container's model_type -> its tower."""


def towers(
    config: Mapping[str, object], text_hidden: int
) -> tuple[int, tuple[str, ...]]:
    """Parameters of the towers and joints, and the towers that are not counted."""
    seen = vision(config, text_hidden)
    missing = ["audio_config"] if hears(config) else []
    if seen is None:
        missing.insert(0, "vision_config")
    return seen or 0, tuple(missing)


def hears(config: Mapping[str, object]) -> bool:
    """Whether there is an audio tower, which no formula here counts."""
    return config.get("audio_config") is not None or kind_of(config) in ALWAYS_HEAR


def kind_of(config: Mapping[str, object]) -> str:
    return str(config.get("model_type"))


def vision(config: Mapping[str, object], text_hidden: int) -> int | None:
    """Parameters of the tower that sees and its joint, None if they cannot be told."""
    kind, stated = kind_of(config), config.get("vision_config")
    if stated is None and "text_config" not in config and kind not in ALWAYS_SEE:
        return 0
    eye = EYES.get(kind)
    if eye is None or not isinstance(stated, Mapping):
        return None
    measured = measure(eye, kind, Fields(stated, kind), Fields(config, kind))
    if measured is None:
        return None
    return measured.count() + measured.joint(measured, text_hidden)


def measure(eye: Eye, kind: str, fields: Fields, container: Fields) -> Eye | None:
    """The tower with its stated size, None where it is not stated."""
    hidden = fields.optional_integer("embed_dim", "vt_hidden_size", "hidden_size")
    layers = fields.optional_integer(
        "depth", "num_hidden_layers", "vt_num_hidden_layers"
    )
    if kind == "qwen2_vl":
        # Qwen2-VL calls its output hidden_size and leaves the tower's width out.
        hidden = fields.optional_integer("embed_dim") or 1280
    if hidden is None or layers is None:
        return None
    width = fields.optional_integer("intermediate_size", "vt_intermediate_size")
    width = width or (eye.mlp_ratio or 4) * hidden
    output = fields.optional_integer("out_hidden_size", minimum=0) or 0
    heads = fields.optional_integer(
        "num_heads", "num_attention_heads", "vt_num_attention_heads"
    )
    return replace(
        eye,
        hidden=hidden,
        layers=layers,
        width=output if eye.as_wide_as_output else width,
        joint_width=container.optional_integer("projector_hidden_size") or width,
        heads=heads or 0,
        output=output,
        patch=fields.optional_integer("patch_size") or eye.patch,
        merge=fields.optional_integer("spatial_merge_size") or eye.merge,
        image=fields.optional_integer("image_size") or 0,
        fields=fields,
    )


ALWAYS_SEE: Final = frozenset({"phi3_v", "inkling_mm_model"})
"""Types with a tower whether or not their config's compiled fields show it."""

ALWAYS_HEAR: Final = frozenset({"gemma3n", "inkling_mm_model"})
"""The same for audio."""
