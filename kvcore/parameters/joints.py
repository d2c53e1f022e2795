"""What joins a vision tower to its text model, type by type.

Source: the mergers, projectors and adapters of transformers 5.24.0.
"""

from __future__ import annotations

from kvcore.parameters.eye import Eye
from kvcore.parameters.shape import linear


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
    output, inner = eye.output or text, eye.joint_width
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
    side_by_side, inner = eye.hidden * eye.merge**2, eye.joint_width
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
