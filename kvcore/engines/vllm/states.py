"""Recurrent states in vLLM: their bytes on one rank, and the blocks they force.

Source: vllm/model_executor/layers/mamba/mamba_utils.py (shapes and dtypes) and
vllm/platforms/interface.py, _align_hybrid_block_size, 0.33.0.
"""

from __future__ import annotations

from math import lcm
from typing import Final

from kvcore.engines.vllm.deployment import Deployment
from kvcore.errors import DoesNotShard, UnsupportedModel
from kvcore.estimate import CacheFormats
from kvcore.states import (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    RecurrentState,
    ShortConvolution,
)

FLASHINFER_STATE_BLOCK: Final = 64
"""Prefill checkpoints of the FlashInfer delta-rule kernel lie on this grid."""

_SUPPORTED: Final = (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    ShortConvolution,
)


def state_bytes(spec: RecurrentState, formats: CacheFormats, d: Deployment) -> int:
    """Bytes of one state on one rank, with a column for every draft token."""
    if not isinstance(spec, _SUPPORTED):
        raise UnsupportedModel(
            model_type=spec.kind, reason="vLLM has no cache for this kind of state"
        )
    rows, width = spec.recurrent_shape
    recurrent = (
        _divided(rows, d.tp, spec) * width * formats.state.row_bits(1, "recurrent")
    )
    columns = spec.kernel - 1 + _drafted(spec, d) if spec.kernel > 1 else 0
    conv = columns * _channels(spec, d.tp) * formats.conv.row_bits(1, "conv")
    return -(-recurrent // 8) + -(-conv // 8)


def _drafted(spec: RecurrentState, d: Deployment) -> int:
    """Mamba-1 keeps no columns for drafts."""
    return 0 if isinstance(spec, Mamba) else d.speculative_tokens


def _divided(rows: int, tp: int, spec: RecurrentState) -> int:
    """Heads are cut, not their rows: a head's rows stay together."""
    heads = spec.values.get("num_value_heads") or spec.values.get("num_heads") or rows
    if heads % tp:
        raise DoesNotShard(
            argument="tp",
            value=tp,
            count=heads,
            what="state heads",
            legal=[n for n in range(1, min(heads, 64) + 1) if heads % n == 0],
        )
    return rows // tp


def _channels(spec: RecurrentState, tp: int) -> int:
    """Convolved channels of one rank; B and C groups go with every rank's heads."""
    channels = spec.conv_channels
    if isinstance(spec, Mamba2) and spec.num_groups % tp:
        channels += 2 * (tp - spec.num_groups) * spec.state_size
    return channels // tp


def exports_checkpoints(spec: RecurrentState, d: Deployment) -> bool:
    """Whether the state's prefill kernel can leave a checkpoint behind.

    FlashInfer's delta rule and FlashKDA need Hopper or Blackwell and heads of 128 (on
    Hopper FlashInfer takes any), FlashKDA bounded gates too.
    """
    if spec.kind not in d.rules.state_checkpoints:
        return False
    if isinstance(spec, GatedDeltaNet):
        return d.major == 9 or (d.major in (10, 12) and spec.key_head_dim == 128)
    if isinstance(spec, KimiDeltaAttention):
        usable = d.bounded_gates and spec.head_dim == 128
        return usable and d.major in (9, 10, 12)
    return True


def copies(spec: RecurrentState, d: Deployment) -> int:
    """Blocks of states one request keeps.

    Source: vllm/v1/kv_cache_interface.py 0.33.0, MambaSpec.max_memory_usage_bytes.
    """
    if not d.aligned_states:
        return 1 + d.speculative_tokens
    return 2 + d.speculative_tokens + exports_checkpoints(spec, d)


def grid(specs: list[RecurrentState], d: Deployment) -> int:
    """What a block must be a multiple of, for states to lie on block boundaries."""
    aligned = d.aligned_states and specs and d.rules.state_checkpoints
    exporting = aligned and all(
        isinstance(spec, GatedDeltaNet) and exports_checkpoints(spec, d)
        for spec in specs
    )
    return FLASHINFER_STATE_BLOCK if exporting else 1


def attention_block(
    largest_state: int,
    bytes_per_token: int,
    block: int,
    kernels: list[int],
    state_grid: int,
    minimum: int,
) -> int:
    """The block in whose page of attention one whole state fits.

    `kernels` are the smallest blocks of the backends, the first layer's first.
    """
    unit = lcm(max(kernels[0], block, minimum), state_grid)
    found = unit * -(-largest_state // (unit * bytes_per_token))
    every = lcm(*kernels)
    return max(block, every * -(-found // every))
