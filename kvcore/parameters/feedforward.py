"""Weights of the feed-forward blocks: dense, routed experts, shared experts."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final, Literal

from kvcore.errors import InvalidField, MissingField
from kvcore.importers.fields import Fields
from kvcore.parameters.shape import Parts, Shape, finite, linear, parts

Block = Literal["dense", "sparse", "none"]
Blocks = tuple[Block, ...]

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
EXPERT_INPUT: Final = (
    "moe_latent_size",
    "routed_expert_hidden_size",
    "moe_hidden_size",
)
DENSE_WIDTH: Final = (
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
    "intermediate_size_mlp",
    "intermediate_size",
    "block_ff_dim",
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


def blocks(shape: Shape) -> Blocks:
    """What kind of feed-forward each layer has."""
    layers = range(shape.layers)
    if not shape.architecture.feed_forward:
        return where(set(), layers, "dense", "none")
    if shape.architecture.shared_blocks:
        return where(set(shape.block_owners()), layers, "dense", "none")
    if "block_configs" in shape.fields:
        stated = block_configs(shape)
        kept = {i for i, own in enumerate(stated) if not own.flag("no_op")}
        return where(kept, range(len(stated)), "dense", "none")
    named = named_blocks(shape)
    if named:
        kinds: list[Block] = [NAMES.get(name, "none") for name in named]
        return tuple(kinds)
    sparse = sparse_layers(shape) if num_experts(shape) else ()
    return where(set(sparse), layers, "sparse", "dense")


def where(chosen: set[int], layers: range, inside: Block, outside: Block) -> Blocks:
    """`inside` at the chosen layers, `outside` at the others."""
    return tuple([inside if i in chosen else outside for i in layers])


def named_blocks(shape: Shape) -> tuple[str, ...]:
    """Names or letters of the layers' blocks, where the config lists them."""
    fields = shape.fields
    names = fields.texts("mlp_layer_types")
    if not names and shape.family == "nemotron_h":
        pattern = (fields.text("hybrid_override_pattern") or "").replace("|", "")
        names = fields.texts("layers_block_type") or tuple(pattern)
    if not names:
        return ()
    if len(names) < shape.layers:
        raise InvalidField(
            field="mlp_layer_types",
            value=f"a list of {len(names)}",
            expected=f"one entry for each of {shape.layers} layers",
        )
    return names[: shape.layers]


def block_configs(shape: Shape) -> tuple[Fields, ...]:
    """Nemotron-NAS: what every block states of its feed-forward."""
    model_type = shape.fields.model_type
    return tuple(
        Fields(block if isinstance(block, Mapping) else {}, model_type).child("ffn")
        or Fields({}, model_type)
        for block in shape.fields.items("block_configs") or ()
    )


def sparse_layers(shape: Shape) -> frozenset[int]:
    """Layers whose feed-forward is routed, in the config's own way of saying it."""
    fields, layers = shape.fields, range(shape.layers)
    for name in ("moe_layers_enum", "moe_layers"):
        listed = fields.get(name)
        if isinstance(listed, str):
            numbers = {number.strip() for number in listed.split(",")}
            return frozenset(i for i in layers if str(i) in numbers)
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
    bias = shape.flag(shape.architecture.mlp_bias)
    inner = matrices(shape) - 1
    return inner * linear(inputs, width, bias) + linear(width, inputs, bias)


def matrices(shape: Shape) -> int:
    """Three where a gate stands beside the input matrix, else two."""
    named = shape.architecture.gated_by and shape.fields.text(
        shape.architecture.gated_by
    )
    if named:
        return 3 if named.startswith("gated") else 2
    return shape.architecture.mlp_matrices


def dense_width(shape: Shape, i: int) -> int:
    """Width of a dense block; four times the hidden size where a type means that."""
    if "block_configs" in shape.fields:
        return searched_width(shape, block_configs(shape)[i])
    own = shape.architecture.dense_width
    width = first_number(shape, (own, *DENSE_WIDTH) if own else DENSE_WIDTH, i)
    if width and shape.fields.flag("block_auto_adjust_ff_dim"):
        return adjusted_width(shape, width)
    if width and shape.reads_another(i) and shape.flag(shape.architecture.double_wide):
        return 2 * width
    if width:
        return width // shape.architecture.mlp_width_divisor
    ratio = shape.ratio("expansion_ratio") or shape.architecture.mlp_ratio
    if not ratio:
        raise MissingField(field="intermediate_size")
    multiple = shape.architecture.mlp_multiple
    return ceil(ratio * shape.hidden / multiple) * multiple


def searched_width(shape: Shape, own: Fields) -> int:
    """Nemotron-NAS: two thirds of a multiple of the hidden size, in steps of 256."""
    factor = finite(own, "ffn_mult")
    if factor is None:
        return own.integer("intermediate_size")
    return -(-int(2 * factor * shape.hidden / 3) // 256) * 256


def adjusted_width(shape: Shape, width: int) -> int:
    """LFM2: two thirds, times a factor, rounded up to a multiple."""
    factor = shape.ratio("block_ffn_dim_multiplier")
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
        norms=architecture.sparse_norms * shape.norm,
    )
    if architecture.router_scales:
        found += parts(router=shape.hidden + count)
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
    count = first_number(shape, SHARED_COUNT, i) or shape.architecture.shared_experts
    if not own:
        own = count * width
    if not own:
        return 0
    gate = shape.hidden if shape.architecture.shared_expert_gate else 0
    return mlp(shape, shape.hidden, own) + gate
