"""The recurrent and convolutional states of GGUF models, and which layers have them.

Source: llama.cpp 0c1e570, `ssm.*`, `kda.*`, `wkv.*` and `shortconv.*` keys as
src/llama-hparams.cpp (`n_embd_r`, `n_embd_s`) reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.errors import InvalidField
from kvcore.importers.fields import shown
from kvcore.importers.gguf_fields import Metadata
from kvcore.states import (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    RecurrentState,
    RwkvMatrix,
    ShortConvolution,
)

INTERVALS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe", "qwen4exp"), 4),
    "minimax-01": 8,
}
"""Every n-th layer attends where the file does not say which."""


def is_recurrent(fields: Metadata) -> tuple[bool, ...]:
    """Whether each layer is a state; draft layers never are."""
    main, count = fields.main, fields.count
    interval = INTERVALS.get(fields.model_type)
    if interval is None:
        kv_heads = fields.per_layer("attention.head_count_kv")
        inner = (0,) * count
        if fields.model_type.startswith("nemotron_h"):
            inner = fields.per_layer("feed_forward_length", default=0)
        return tuple(
            i < main and not kv_heads[i] and not inner[i] for i in range(count)
        )
    listed = fields.flags("attention.recurrent_layers")
    if listed is not None:
        return tuple(flag and i < main for i, flag in enumerate(listed))
    interval = fields.optional_integer("full_attention_interval") or interval
    return tuple(i < main and (i + 1) % interval != 0 for i in range(count))


def mamba(fields: Metadata) -> Mamba:
    return Mamba(
        inner_size=fields.integer("ssm.inner_size"),
        state_size=fields.integer("ssm.state_size"),
        conv_kernel=fields.integer("ssm.conv_kernel"),
    )


def mamba2(fields: Metadata) -> Mamba2:
    inner, heads = _inner_and_heads(fields)
    return Mamba2(
        num_heads=heads,
        head_dim=inner // heads,
        state_size=fields.integer("ssm.state_size"),
        num_groups=fields.integer("ssm.group_count", minimum=0),
        conv_kernel=fields.integer("ssm.conv_kernel"),
    )


def gated_delta_net(fields: Metadata) -> GatedDeltaNet:
    """`ssm.*` in other words: groups are key heads, the rank counts value heads."""
    inner, heads = _inner_and_heads(fields)
    return GatedDeltaNet(
        num_key_heads=fields.integer("ssm.group_count"),
        num_value_heads=heads,
        key_head_dim=fields.integer("ssm.state_size"),
        value_head_dim=inner // heads,
        conv_kernel=fields.integer("ssm.conv_kernel"),
    )


def _inner_and_heads(fields: Metadata) -> tuple[int, int]:
    inner = fields.integer("ssm.inner_size")
    heads = fields.integer("ssm.time_step_rank")
    if inner % heads:
        raise InvalidField(
            field=fields.key("ssm.time_step_rank"),
            value=shown(heads),
            expected=f"a divisor of {inner}",
        )
    return inner, heads


def kimi_delta_attention(fields: Metadata) -> KimiDeltaAttention:
    heads = next(filter(None, fields.per_layer("attention.head_count")), 0)
    return KimiDeltaAttention(
        num_heads=heads,
        head_dim=fields.integer("kda.head_dim"),
        conv_kernel=fields.integer("ssm.conv_kernel"),
    )


def lightning_attention(fields: Metadata) -> LightningAttention:
    heads = fields.per_layer("attention.head_count")[0]
    width = fields.optional_integer("attention.key_length")
    if width is None:
        width = fields.integer("embedding_length") // max(heads, 1)
    return LightningAttention(num_heads=heads, head_dim=width)


def short_convolution(fields: Metadata) -> ShortConvolution:
    return ShortConvolution(
        channels=fields.integer("embedding_length"),
        conv_kernel=fields.integer("shortconv.l_cache"),
    )


def rwkv_matrix(fields: Metadata) -> RwkvMatrix:
    hidden = fields.integer("embedding_length")
    width = fields.integer("wkv.head_size")
    if hidden % width:
        raise InvalidField(
            field=fields.key("wkv.head_size"),
            value=shown(width),
            expected=f"a divisor of {hidden}",
        )
    return RwkvMatrix(
        num_heads=hidden // width,
        head_dim=width,
        hidden_size=hidden,
        token_shifts=fields.optional_integer("token_shift_count") or 2,
    )


STATES: Final[Mapping[str, Callable[[Metadata], RecurrentState]]] = {
    **dict.fromkeys(("mamba", "jamba"), mamba),
    **dict.fromkeys(
        (
            "mamba2",
            "plamo2",
            "granitehybrid",
            "falcon-h1",
            "nemotron_h",
            "nemotron_h_moe",
        ),
        mamba2,
    ),
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe", "qwen4exp"), gated_delta_net),
    **dict.fromkeys(
        ("kimi-linear", "kimi-k3", "bailingmoe3", "glm5-next"), kimi_delta_attention
    ),
    "minimax-01": lightning_attention,
    **dict.fromkeys(("lfm2", "lfm2moe"), short_convolution),
    **dict.fromkeys(("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"), rwkv_matrix),
}
"""Architecture -> the state of its recurrent layers."""
