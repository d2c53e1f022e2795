"""Weights of the towers that see, and of what joins them to the text model.

Counted where the config states the tower's size; the rest of a tower (patches,
positions, how it is joined) follows from the model_type. A tower that is not listed,
or whose size is not stated, is not guessed: the counts are then the text part only.

Source: the vision modules of transformers 5.24.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kvcore.importers.fields import Fields
from kvcore.parameters.shape import linear

Joint = Callable[["Eye", int], int]
"""(tower, hidden size of the text model) -> parameters of what joins them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Eye:
    """A vision transformer: what the config states of it, and what its type means."""

    hidden: int = 0
    layers: int = 0
    width: int = 0
    heads: int = 0
    output: int = 0
    patch: int = 14
    merge: int = 2
    image: int = 0
    fields: Fields | None = None

    joint: Joint
    mlp_matrices: int = 2
    mlp_ratio: int = 0
    bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    norm_vectors: int = 2
    layer_norms: int = 2
    head_norms: bool = False
    kv_heads: int = 0
    frames: int = 1
    patch_bias: bool = True
    positions: int = 0
    grid: bool = False
    vectors: int = 0

    def count(self) -> int:
        """Patches, positions, blocks and the vectors around them."""
        inputs = 3 * self.frames * self.patch**2
        positions = self.positions
        if self.grid and self.image:
            positions = (self.image // self.patch) ** 2
        return (
            linear(inputs, self.hidden, self.patch_bias)
            + (positions + self.vectors) * self.hidden
            + self.layers * self.block()
        )

    def block(self) -> int:
        """Attention, feed-forward and their norms."""
        head = self.hidden // self.heads if self.heads else 0
        key_value = self.kv_heads * head if self.kv_heads else self.hidden
        inner = self.mlp_matrices - 1
        return (
            linear(self.hidden, self.hidden + 2 * key_value, self.bias)
            + linear(self.hidden, self.hidden, self.output_bias)
            + inner * linear(self.hidden, self.width, self.mlp_bias)
            + linear(self.width, self.hidden, self.mlp_bias)
            + self.layer_norms * self.norm_vectors * self.hidden
            + (2 * head if self.head_norms else 0)
        )


def merger(eye: Eye, text: int) -> int:
    """Qwen: neighbouring patches side by side, two layers to the text's width."""
    side_by_side = eye.hidden * eye.merge**2
    return (
        eye.norm_vectors * eye.hidden
        + linear(side_by_side, side_by_side, bias=True)
        + linear(side_by_side, eye.output or text, bias=True)
    )


def deep_mergers(eye: Eye, text: int) -> int:
    """Qwen3-VL: as many again, for features taken from inside the tower."""
    side_by_side = eye.hidden * eye.merge**2
    listed = eye.fields.items("deepstack_visual_indexes") if eye.fields else None
    deep = 3 if listed is None else len(listed)
    norms = eye.norm_vectors * (side_by_side - eye.hidden)
    return merger(eye, text) * (1 + deep) + deep * norms


def downsampler(eye: Eye, text: int) -> int:
    """GLM-V: a strided convolution, then a gated block at the text's width."""
    output, inner = eye.output or text, eye.width
    return (
        linear(eye.hidden * eye.merge**2, output, bias=True)
        + linear(output, output)
        + 2 * output
        + 3 * linear(output, inner)
    )


def patch_merger(eye: Eye, text: int) -> int:
    """Mistral 3: a norm, neighbouring patches merged, two layers."""
    return (
        eye.hidden
        + linear(eye.hidden * eye.merge**2, eye.hidden)
        + linear(eye.hidden, text)
        + linear(text, text)
    )


def two_layers(eye: Eye, text: int) -> int:
    """LLaVA: two layers with bias."""
    return linear(eye.hidden, text, bias=True) + linear(text, text, bias=True)


def normed_projection(eye: Eye, text: int) -> int:
    """Gemma 3: a norm and a matrix."""
    return eye.hidden + linear(eye.hidden, text)


def projection(eye: Eye, text: int) -> int:
    """Gemma 4: a matrix."""
    return linear(eye.hidden, text)


def shuffled_projection(eye: Eye, text: int) -> int:
    """LFM2-VL: neighbouring patches side by side, two layers of their own width."""
    side_by_side, inner = eye.hidden * eye.merge**2, 2560
    return linear(side_by_side, inner, bias=True) + linear(inner, text, bias=True)


def pixel_shuffle(eye: Eye, text: int) -> int:
    """Llama 4: two matrices of the projector's width, one to the text's."""
    width = 4096
    return linear(eye.width, width) + linear(width, width) + linear(width, text)


def moon_projection(eye: Eye, text: int) -> int:
    """Kimi: a norm, neighbouring patches side by side, two layers."""
    side_by_side = eye.hidden * eye.merge**2
    return (
        2 * eye.hidden
        + linear(side_by_side, side_by_side, bias=True)
        + linear(side_by_side, text, bias=True)
    )


def double_projection(eye: Eye, text: int) -> int:
    """MiniMax-M3: two layers per patch, two more over merged patches."""
    return (
        linear(eye.hidden, text, bias=True)
        + linear(text, text, bias=True)
        + linear(text * eye.merge**2, text, bias=True)
        + linear(text, text, bias=True)
    )


def muse_adapter(eye: Eye, text: int) -> int:
    """Muse: neighbouring patches side by side, two matrices, one to the text."""
    inner = 4096
    return (
        linear(eye.hidden * eye.merge**2, inner)
        + linear(inner, inner)
        + linear(inner, text)
    )


def tiled_projection(eye: Eye, text: int) -> int:
    """Llama 3.2: eight gated global layers, positions by tile and aspect ratio, and
    features of five inner layers beside the last one's."""
    tiles, ratios, inner_features, global_layers = 4, 9, 5, 8
    patches = (eye.image // eye.patch) ** 2 + 1
    positions = ratios * tiles * (patches + 2) * eye.hidden + patches * eye.hidden
    output = (1 + inner_features) * eye.hidden
    gates = 2 * global_layers + 3
    return (
        global_layers * eye.block()
        + positions
        + gates
        + linear(output, text, bias=True)
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
    "llama4": Eye(
        joint=pixel_shuffle, patch_bias=False, grid=True, vectors=2 + 4
    ),
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


def vision(config: Mapping[str, object], text_hidden: int) -> int | None:
    """Parameters of the tower and its joint; None where they cannot be told."""
    kind = config.get("model_type")
    stated = config.get("vision_config")
    if stated is None and "text_config" not in config and kind not in ALWAYS_SEE:
        return 0
    eye = EYES.get(str(kind))
    if eye is None or not isinstance(stated, Mapping):
        return None
    fields = Fields(stated, str(kind))
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
    seen = replace(
        eye,
        hidden=hidden,
        layers=layers,
        width=width or (eye.mlp_ratio or 4) * hidden,
        heads=fields.optional_integer(
            "num_heads", "num_attention_heads", "vt_num_attention_heads"
        )
        or 0,
        output=fields.optional_integer("out_hidden_size", minimum=0) or 0,
        patch=fields.optional_integer("patch_size") or eye.patch,
        merge=fields.optional_integer("spatial_merge_size") or eye.merge,
        image=fields.optional_integer("image_size") or 0,
        fields=fields,
    )
    return seen.count() + seen.joint(seen, text_hidden)


ALWAYS_SEE: Final = frozenset({"phi3_v", "gemma3n", "kimi_vl", "inkling_mm_model"})
"""Types with a tower whether or not their config's compiled fields show it."""
