"""Weights of the feed-forward blocks: dense, routed experts, shared experts."""

from __future__ import annotations

from typing import Final, Literal

from kvcore.errors import MissingField
from kvcore.parameters.shape import Parts, Shape, linear, parts

Block = Literal["dense", "sparse", "none"]

EXPERTS: Final = (
    "num_experts",
    "n_routed_experts",
    "num_local_experts",
    "moe_num_experts",
    "ffn_config.moe_num_experts",
)
ACTIVE: Final = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "top_k_experts",
    "ffn_config.moe_top_k",
)
EXPERT_WIDTH: Final = (
    "moe_intermediate_size",
    "expert_ffn_hidden_size",
    "ffn_config.ffn_hidden_size",
    "intermediate_size",
)
EXPERT_INPUT: Final = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")
DENSE_WIDTH: Final = (
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
    "intermediate_size_mlp",
    "intermediate_size",
    "ffn_hidden_size",
    "ff_intermediate_size",
    "ffn_dim",
    "decoder_ffn_dim",
    "d_ff",
    "n_inner",
)
SHARED_COUNT: Final = (
    "n_shared_experts",
    "num_shared_experts",
    "moe_num_shared_experts",
    "num_shared_expert",
)
SHARED_WIDTH: Final = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
NAMES: Final[dict[str, Block]] = {
    "dense": "dense",
    "mlp": "dense",
    "-": "dense",
    "sparse": "sparse",
    "moe": "sparse",
    "E": "sparse",
}


def num_experts(shape: Shape) -> int:
    return first_number(shape, EXPERTS, 0)


def first_number(shape: Shape, names: tuple[str, ...], i: int) -> int:
    """The first of `names` that is set, whether a number or a list by layer."""
    for name in names:
        if name in shape.fields:
            return shape.per_layer(name, i) or 0
    return 0


def blocks(shape: Shape) -> tuple[Block, ...]:
    """What kind of feed-forward each layer has."""
    fields, layers = shape.fields, range(shape.layers)
    named = (
        fields.texts("mlp_layer_types")
        or (fields.texts("layers_block_type") if shape.family == "nemotron_h" else None)
        or tuple(fields.text("hybrid_override_pattern") or "")
    )
    if named:
        return tuple(NAMES.get(name, "none") for name in named[: shape.layers])
    if not num_experts(shape):
        return ("dense",) * shape.layers
    sparse = sparse_layers(shape)
    return tuple("sparse" if i in sparse else "dense" for i in layers)


def sparse_layers(shape: Shape) -> frozenset[int]:
    """Layers whose feed-forward is routed, in the config's own way of saying it."""
    fields, layers = shape.fields, range(shape.layers)
    for name in ("moe_layers_enum", "moe_layers"):
        listed = fields.get(name)
        if isinstance(listed, str):
            return frozenset(int(i) for i in listed.split(",") if i.strip().isdigit())
        if listed:
            return frozenset(fields.integers(name) or ())
    if isinstance(fields.get("moe_layer_freq"), list):
        routed = fields.integers("moe_layer_freq") or ()
        return frozenset(i for i in layers if i < len(routed) and routed[i])
    first = shape.number(
        0,
        "first_k_dense_replace",
        "num_dense_layers",
        "moe_layer_start_index",
        "dense_mlp_idx",
    )
    last = shape.number(shape.layers, "moe_layer_end_index")
    dense = frozenset(fields.integers("mlp_only_layers") or ())
    period, offset = period_and_offset(shape)
    return frozenset(
        i
        for i in layers
        if first <= i <= last and i not in dense and i % period == offset % period
    )


def period_and_offset(shape: Shape) -> tuple[int, int]:
    """Every how many layers one is routed, and at which remainder."""
    fields = shape.fields
    for name in ("decoder_sparse_step", "interleave_moe_layer_step"):
        step = fields.optional_integer(name)
        if step is not None:
            return step, step - 1
    if "expert_layer_period" in fields:
        return (
            fields.integer("expert_layer_period"),
            fields.integer("expert_layer_offset", minimum=0),
        )
    return shape.number(1, "moe_layer_freq", "moe_layer_interval") or 1, 0


def feed_forward(shape: Shape, block: Block, i: int) -> Parts:
    """Parameters of layer `i`'s feed-forward."""
    if block == "none":
        return Parts()
    if block == "dense":
        return parts(dense_mlp=mlp(shape, shape.hidden, dense_width(shape, i)))
    return experts(shape, i)


def mlp(shape: Shape, inputs: int, width: int) -> int:
    """inputs x width, gated (three matrices) or plain (two)."""
    architecture = shape.architecture
    bias = shape.flag(architecture.mlp_bias)
    inner = architecture.mlp_matrices - 1
    return inner * linear(inputs, width, bias) + linear(width, inputs, bias)


def dense_width(shape: Shape, i: int) -> int:
    """Width of a dense block; four times the hidden size where a type means that."""
    own = shape.architecture.dense_width
    width = first_number(shape, (own, *DENSE_WIDTH) if own else DENSE_WIDTH, i)
    if width and shape.fields.flag("block_auto_adjust_ff_dim"):
        return adjusted_width(shape, width)
    if width:
        return width // shape.architecture.mlp_width_divisor
    ratio = shape.number(shape.architecture.mlp_ratio, "expansion_ratio")
    if not ratio:
        raise MissingField(field="intermediate_size")
    return ratio * shape.hidden


def adjusted_width(shape: Shape, width: int) -> int:
    """LFM2: two thirds, times a factor, rounded up to a multiple."""
    factor = shape.fields.number("block_ffn_dim_multiplier")
    adjusted = int((factor or 1) * int(2 * width / 3))
    multiple = shape.number(1, "block_multiple_of") or 1
    return -(-adjusted // multiple) * multiple


def experts(shape: Shape, i: int) -> Parts:
    """Routed experts, what one token uses of them, the router and shared experts."""
    architecture = shape.architecture
    count, used = num_experts(shape), first_number(shape, ACTIVE, i)
    if not used:
        raise MissingField(field="num_experts_per_tok")
    width = first_number(shape, EXPERT_WIDTH, i)
    if not width:
        raise MissingField(field="moe_intermediate_size")
    inputs = first_number(shape, EXPERT_INPUT, i) or shape.hidden
    one = mlp(shape, inputs, width)
    if architecture.expert_bias:
        one += 2 * width + inputs
    found = parts(
        experts=count * one,
        active_experts=min(used, count) * one,
        router=router(shape, count),
        shared_experts=shared_experts(shape, width, i) + latent(shape, inputs),
        norms=shape.norm if architecture.post_expert_norm else 0,
    )
    if beside := architecture.dense_beside_experts:
        one = mlp(shape, shape.hidden, dense_width(shape, i))
        found += parts(dense_mlp=beside * one)
    return found


def router(shape: Shape, count: int) -> int:
    """A score per expert, zero experts included (LongCat)."""
    count += shape.number(0, "zero_expert_num")
    return linear(shape.hidden, count, bias=shape.flag(shape.architecture.router_bias))


def latent(shape: Shape, inputs: int) -> int:
    """Into the experts' narrower space and back (Nemotron 3, Kimi K3)."""
    return 0 if inputs == shape.hidden else 2 * linear(shape.hidden, inputs)


def shared_experts(shape: Shape, width: int, i: int) -> int:
    """Experts every token uses, and the number that gates them (Qwen)."""
    own = first_number(shape, SHARED_WIDTH, i)
    count = first_number(shape, SHARED_COUNT, i)
    if not own:
        own = count * width
    if not own:
        return 0
    gate = shape.hidden if shape.architecture.shared_expert_gate else 0
    return mlp(shape, shape.hidden, own) + gate
