"""Architectures whose layers do not follow from a list of kinds alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.cache import FullAttention, SharedCache, SlidingWindowAttention
from kvcore.importers.attention import HIDDEN, head_dim, kv_heads, sliding_window
from kvcore.importers.attention_layers import attention_layers
from kvcore.importers.compressed import deepseek_v4, deepseek_v41
from kvcore.importers.encoder_decoder import ENCODER_DECODERS, encoder_decoder, mllama
from kvcore.importers.fields import Fields
from kvcore.importers.irregular_heads import block_configs, listed_heads
from kvcore.importers.layer_kinds import Kinds, num_layers
from kvcore.importers.loops import dory, hrm_text, longcat_flash, looped
from kvcore.importers.plain import plain_layers
from kvcore.model import Layer
from kvcore.states import Mamba


def phi4flash(fields: Fields) -> tuple[Layer, ...]:
    """SambaY: Mamba and windows in turn, one full layer, then layers that reuse it.

    Source: microsoft/Phi-4-mini-flash-reasoning; of 32 layers 9 hold a state, 8 a
    window, one (17) everything, and the rest read layer 17.
    """
    count = num_layers(fields)
    period = fields.integer_or(2, "mb_per_layer")
    middle = count // 2
    width, heads = head_dim(fields), kv_heads(fields)
    window = sliding_window(fields)
    state = Mamba(
        inner_size=fields.integer("mamba_expand") * fields.integer(*HIDDEN),
        state_size=fields.integer("mamba_d_state"),
        conv_kernel=fields.integer("mamba_d_conv"),
    )
    full = FullAttention(num_kv_heads=heads, head_dim=width, value_head_dim=width)
    local: Layer = (full,)
    if window is not None:
        local = (
            SlidingWindowAttention(
                num_kv_heads=heads, head_dim=width, value_head_dim=width, window=window
            ),
        )

    def layer(i: int) -> Layer:
        if i > middle + 1:
            return (SharedCache(source_layer=middle + 1),) if i % period else ()
        if i % period == 0:
            return (state,)
        return (full,) if i == middle + 1 else local

    return tuple(layer(i) for i in range(count))


def hymba(fields: Fields) -> tuple[Layer, ...]:
    """Attention beside a Mamba state in every layer; a few layers attend globally.

    Source: nvidia/Hymba-1.5B config (global_attn_idx, kv_reuse_group).
    """
    count = num_layers(fields)
    listed = fields.integers("global_attn_idx") or ()
    kinds: Kinds = tuple("full" if i in listed else "sliding" for i in range(count))
    windowed = fields.overlaid(
        {
            "sliding_window": fields.integer_or(
                1024, "attn_window_size", "sliding_window"
            )
        }
    )
    state: Layer = (
        Mamba(
            inner_size=fields.integer("mamba_expand") * fields.integer(*HIDDEN),
            state_size=fields.integer("mamba_d_state"),
            conv_kernel=fields.integer("mamba_d_conv"),
        ),
    )
    return tuple(layer + state for layer in attention_layers(windowed, kinds))


def openelm(fields: Fields) -> tuple[Layer, ...]:
    return listed_heads(fields, num_layers(fields))


def nemotron_nas(fields: Fields) -> tuple[Layer, ...]:
    return block_configs(fields) if "block_configs" in fields else plain_layers(fields)


Builder = Callable[[Fields], tuple[Layer, ...]]

BUILDERS: Final[Mapping[str, Builder]] = {
    **dict.fromkeys(ENCODER_DECODERS, encoder_decoder),
    "deepseek_v4": deepseek_v4,
    "deepseek_v41": deepseek_v41,
    "mllama": mllama,
    "longcat_flash": longcat_flash,
    "inkling2_loop": looped,
    "dory": dory,
    "hrm": hrm_text,
    "phi4flash": phi4flash,
    "hymba": hymba,
    "openelm": openelm,
    **dict.fromkeys(("nemotron-nas", "deci"), nemotron_nas),
}
"""Family -> how its layers are built, where the general rule is not enough."""
