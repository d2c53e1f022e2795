"""Weights of recurrent and convolutional layers, from the state they keep."""

from __future__ import annotations

from typing import Final

from kvcore.parameters.mixer import mixer
from kvcore.parameters.shape import Parts, Shape, linear, parts
from kvcore.states import (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    RwkvMatrix,
    ShortConvolution,
    Xlstm,
)


@mixer.register(GatedDeltaNet)
def gated_delta_net(spec: GatedDeltaNet, shape: Shape, i: int) -> Parts:
    """q, k, v and the output gate z; two numbers a head; one convolution."""
    value = spec.num_value_heads * spec.value_head_dim
    state = (
        linear(shape.hidden, spec.conv_channels + value)
        + linear(shape.hidden, 2 * spec.num_value_heads)
        + spec.conv_channels * spec.conv_kernel
        + 2 * spec.num_value_heads
        + linear(value, shape.hidden)
    )
    return parts(state=state, norms=spec.value_head_dim)


@mixer.register(KimiDeltaAttention)
def kimi_delta_attention(spec: KimiDeltaAttention, shape: Shape, i: int) -> Parts:
    """q, k, v; decay and gate, through a low rank of one head or in full."""
    width = spec.num_heads * spec.head_dim
    low_rank = linear(shape.hidden, spec.head_dim) + linear(spec.head_dim, width)
    full = linear(shape.hidden, width)
    state = (
        3 * full
        + (full if shape.family in FULL_RANK_DECAY else low_rank)
        + (full if full_rank_gate(shape) else low_rank)
        + linear(shape.hidden, spec.num_heads)
        + 3 * width * spec.conv_kernel
        + width
        + spec.num_heads
        + linear(width, shape.hidden)
    )
    return parts(state=state, norms=spec.head_dim)


FULL_RANK_DECAY: Final = frozenset({"bailing_hybrid"})


def full_rank_gate(shape: Shape) -> bool:
    return shape.family in FULL_RANK_DECAY or shape.fields.flag(
        "linear_attn_config.use_full_rank_gate"
    )


@mixer.register(Mamba)
def mamba(spec: Mamba, shape: Shape, i: int) -> Parts:
    """Mamba-1: a selective scan whose step, B and C come from the input."""
    inner, states = spec.inner_size, spec.state_size
    rank = shape.number(-(-shape.hidden // 16), "mamba_dt_rank", "time_step_rank")
    state = (
        linear(shape.hidden, 2 * inner)
        + inner * (spec.conv_kernel + 1)
        + linear(inner, rank + 2 * states)
        + linear(rank, inner, bias=True)
        + inner * states
        + inner
        + linear(inner, shape.hidden)
    )
    norms = rank + 2 * states if shape.architecture.mamba_norms else 0
    return parts(state=state, norms=norms)


@mixer.register(Mamba2)
def mamba2(spec: Mamba2, shape: Shape, i: int) -> Parts:
    """Mamba-2: z, x, B, C and the step in one projection; a scalar decay per head."""
    inner = spec.num_heads * spec.head_dim
    state = (
        linear(shape.hidden, inner + spec.conv_channels + spec.num_heads)
        + spec.conv_channels * (spec.conv_kernel + 1)
        + 3 * spec.num_heads
        + linear(inner, shape.hidden)
    )
    normed = shape.fields.flag("mamba_rms_norm", default=shape.family != "falcon_h1")
    return parts(state=state, norms=inner if normed else 0)


@mixer.register(LightningAttention)
def lightning_attention(spec: LightningAttention, shape: Shape, i: int) -> Parts:
    """q, k, v, an output gate and the output; the sum is normalised."""
    width = spec.num_heads * spec.head_dim
    state = 4 * linear(shape.hidden, width) + linear(width, shape.hidden)
    return parts(state=state, norms=width)


@mixer.register(ShortConvolution)
def short_convolution(spec: ShortConvolution, shape: Shape, i: int) -> Parts:
    """LFM2: two gates and a value, a convolution, the output; elsewhere it stands
    alone (Inkling)."""
    convolution = spec.channels * spec.conv_kernel
    if not shape.architecture.conv_projections:
        return parts(state=convolution)
    inputs = linear(shape.hidden, 3 * spec.channels)
    return parts(state=inputs + convolution + linear(spec.channels, shape.hidden))


@mixer.register(RwkvMatrix)
def rwkv(spec: RwkvMatrix, shape: Shape, i: int) -> Parts:
    """Time mixing and channel mixing; RWKV-5 has r, k, v, g in full."""
    width = spec.num_heads * spec.head_dim
    if shape.family == "rwkv7":
        return rwkv7(shape, width, i)
    inner = shape.number(int(3.5 * shape.hidden) // 32 * 32, "intermediate_size")
    state = 4 * linear(shape.hidden, width) + linear(width, shape.hidden)
    mixing = 4 * shape.hidden + 2 * width
    channel = 2 * shape.hidden * inner + shape.hidden**2 + 2 * shape.hidden
    return parts(state=state + mixing, dense_mlp=channel, norms=2 * width)


def rwkv7(shape: Shape, width: int, i: int) -> Parts:
    """Decay, in-context rate, value residual (not in layer 0) and gate, each through
    a low rank; a plain squared feed-forward."""
    hidden = shape.hidden
    decay = shape.number(low_rank(1.8 * hidden**0.5), "decay_low_rank_dim")
    rate = shape.number(low_rank(1.8 * hidden**0.5), "a_low_rank_dim")
    value = shape.number(low_rank(1.3 * hidden**0.5), "v_low_rank_dim")
    gate = shape.number(low_rank(0.6 * hidden**0.8), "gate_low_rank_dim")
    ranks = [decay, rate, value] if i else [decay, rate]
    state = (
        3 * linear(hidden, width)
        + sum(linear(hidden, n) + linear(n, width, bias=True) for n in ranks)
        + linear(hidden, gate)
        + linear(gate, width)
        + linear(width, hidden)
        + 6 * hidden
        + 3 * width
    )
    inner = shape.number(4 * hidden, "intermediate_size")
    channel = 2 * hidden * inner + hidden
    return parts(state=state, dense_mlp=channel, norms=2 * width)


def low_rank(wanted: float) -> int:
    """RWKV-7's default ranks, in steps of 32."""
    return max(32, round(wanted / 32) * 32)


@mixer.register(Xlstm)
def xlstm(spec: Xlstm, shape: Shape, i: int) -> Parts:
    """mLSTM: q, k, v, an output gate, two gates a head with bias, the output."""
    keys = spec.num_heads * spec.qk_head_dim
    values = spec.num_heads * spec.value_head_dim
    state = (
        2 * linear(shape.hidden, keys)
        + 2 * linear(shape.hidden, values)
        + 2 * linear(shape.hidden, spec.num_heads, bias=True)
        + linear(values, shape.hidden)
    )
    return parts(state=state, norms=values)
