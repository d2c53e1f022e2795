"""What a recurrent or convolutional layer keeps, by family and by keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.cache import CacheSpec
from kvcore.errors import InvalidField, UnsupportedModel
from kvcore.importers.attention import HIDDEN, full_geometry, sliding_geometry
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import Kind, family_of
from kvcore.states import (
    CompressedConvolution,
    GatedDeltaNet,
    GatedLinearRecurrence,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    RecurrentState,
    Rwkv4,
    RwkvMatrix,
    ShortConvolution,
    Xlstm,
)


def gated_delta_net(fields: Fields) -> GatedDeltaNet:
    if family_of(fields.model_type) == "olmo_hybrid":
        fields = fields.overlaid(_olmo_hybrid_dimensions(fields))
    return GatedDeltaNet(
        num_key_heads=fields.integer("linear_num_key_heads"),
        num_value_heads=fields.integer("linear_num_value_heads"),
        key_head_dim=fields.integer("linear_key_head_dim"),
        value_head_dim=fields.integer("linear_value_head_dim"),
        conv_kernel=fields.integer("linear_conv_kernel_dim"),
    )


def _olmo_hybrid_dimensions(fields: Fields) -> dict[str, object]:
    """Absent dimensions follow from heads and hidden size: keys 3/4, values twice."""
    heads = fields.integer("num_attention_heads")
    key_heads = fields.optional_integer("linear_num_key_heads") or heads
    width = fields.optional_integer("linear_key_head_dim")
    if width is None:
        width = 3 * fields.integer("hidden_size") // (4 * key_heads)
    return {
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": fields.optional_integer("linear_num_value_heads")
        or heads,
        "linear_key_head_dim": width,
        "linear_value_head_dim": fields.optional_integer("linear_value_head_dim")
        or 2 * width,
    }


def kimi_delta_attention(fields: Fields) -> KimiDeltaAttention:
    """`linear_attn_config` in published files, flat keys in re-saved ones."""
    nested = "linear_attn_config."
    family = family_of(fields.model_type)
    heads = ["linear_num_heads", nested + "num_heads"]
    width = ["linear_head_dim", nested + "head_dim"]
    if family == "bailing_hybrid":
        heads.append("num_attention_heads")
        width.append("head_dim")
    return KimiDeltaAttention(
        num_heads=fields.integer(*heads),
        head_dim=fields.integer(*width),
        conv_kernel=fields.integer(
            "linear_conv_kernel_dim",
            nested + "short_conv_kernel_size",
            "short_conv_kernel_size",
        ),
    )


def bailing_hybrid(fields: Fields) -> KimiDeltaAttention | LightningAttention:
    """Ling 3.0 has KDA; Ling 2.5 and 2.6 lightning attention without convolution.

    Only the latter state the group norm of lightning attention and no key of KDA (the
    released Ling-2.6-flash has 107.49e9 parameters, which only this reading gives).
    """
    kda = ("linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim")
    stated = (*kda, "short_conv_kernel_size", "linear_attn_config")
    if "group_norm_size" in fields and not any(k in fields.config for k in stated):
        return LightningAttention(
            num_heads=fields.integer("num_attention_heads"),
            head_dim=fields.integer("head_dim"),
        )
    return kimi_delta_attention(fields)


def lightning_attention(fields: Fields) -> LightningAttention:
    geometry = full_geometry(fields)
    return LightningAttention(
        num_heads=fields.integer("num_attention_heads"), head_dim=geometry.head_dim
    )


def mamba(fields: Fields) -> Mamba:
    """Mamba-1; a stated inner size wins over expand (Falcon-Mamba: 8192, not 16x)."""
    inner = None
    if family_of(fields.model_type) in ("mamba", "falcon_mamba"):
        inner = fields.optional_integer("intermediate_size")
    if inner is None:
        inner = fields.integer("mamba_expand", "expand") * fields.integer(*HIDDEN)
    return Mamba(
        inner_size=inner,
        state_size=fields.integer("mamba_d_state", "state_size", "ssm_state_size"),
        conv_kernel=fields.integer("mamba_d_conv", "conv_kernel"),
    )


def mamba2(fields: Fields) -> Mamba2:
    heads = fields.integer(
        "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"
    )
    return Mamba2(
        num_heads=heads,
        head_dim=_mamba2_head_dim(fields, heads),
        state_size=fields.integer("ssm_state_size", "mamba_d_state", "state_size"),
        num_groups=fields.integer("n_groups", "mamba_n_groups", "mamba_ngroups"),
        conv_kernel=fields.integer("conv_kernel", "mamba_d_conv"),
    )


def _mamba2_head_dim(fields: Fields, heads: int) -> int:
    names = ["mamba_head_dim", "mamba_d_head", "mamba_headdim"]
    if family_of(fields.model_type) == "mamba2":
        names.append("head_dim")
    stated = None if fields.get(*names) == "auto" else fields.optional_integer(*names)
    if stated is not None:
        return stated
    inner = fields.optional_integer("mamba_d_ssm")
    if inner is None:
        inner = fields.integer("mamba_expand", "expand") * fields.integer(*HIDDEN)
    if inner % heads:
        raise InvalidField(
            field="mamba_expand",
            value=shown(inner),
            expected=f"an inner size that {heads} heads divide",
        )
    return inner // heads


def short_convolution(fields: Fields) -> ShortConvolution:
    return ShortConvolution(
        channels=fields.integer("conv_dim", *HIDDEN),
        conv_kernel=fields.integer("conv_L_cache", "conv_kernel"),
    )


def gated_linear_recurrence(fields: Fields) -> GatedLinearRecurrence:
    return GatedLinearRecurrence(
        width=fields.integer("lru_width", *HIDDEN),
        conv_kernel=fields.integer("conv1d_width"),
    )


def rwkv4(fields: Fields) -> Rwkv4:
    hidden = fields.integer(*HIDDEN)
    return Rwkv4(
        attention_size=fields.optional_integer("attention_hidden_size") or hidden,
        hidden_size=hidden,
    )


def rwkv_matrix(fields: Fields) -> RwkvMatrix:
    hidden = fields.integer(*HIDDEN)
    width = fields.integer("head_dim", "head_size")
    inner = fields.optional_integer("attention_hidden_size") or hidden
    if inner % width:
        raise InvalidField(
            field="head_dim", value=shown(width), expected=f"a divisor of {inner}"
        )
    return RwkvMatrix(num_heads=inner // width, head_dim=width, hidden_size=hidden)


def xlstm(fields: Fields) -> Xlstm:
    """qk_dim = hidden * qk_dim_factor and v_dim = hidden * v_dim_factor, per head."""
    hidden = fields.integer(*HIDDEN)
    heads = fields.integer("num_heads")
    qk = _scaled(hidden, "qk_dim_factor", 0.5, fields)
    value = _scaled(hidden, "v_dim_factor", 1.0, fields)
    return Xlstm(
        num_heads=heads, qk_head_dim=qk // heads, value_head_dim=value // heads
    )


def _scaled(hidden: int, name: str, default: float, fields: Fields) -> int:
    """xLSTM rounds a scaled size up to a multiple of 64."""
    factor = fields.number(name)
    if factor is None:
        factor = default
        fields.assume(name, default)
    if not 0 < factor <= 64:
        raise InvalidField(
            field=name, value=shown(factor), expected="a number above 0, up to 64"
        )
    return -(-int(hidden * factor) // 64) * 64


def inkling_convolutions(fields: Fields, kind: Kind) -> ShortConvolution:
    """Four short convolutions per layer: on keys, values and two residual streams."""
    sliding = kind == "both_sliding"
    geometry = sliding_geometry(fields) if sliding else full_geometry(fields)
    keys_and_values = geometry.num_kv_heads * (
        geometry.head_dim + geometry.value_head_dim
    )
    return ShortConvolution(
        channels=keys_and_values + 2 * fields.integer(*HIDDEN),
        conv_kernel=fields.integer("conv_kernel_size", "sconv_kernel_size"),
    )


def zaya(fields: Fields) -> CompressedConvolution:
    """CCA: two convolutions in a row over query and key heads, and a shifted value."""
    geometry = full_geometry(fields)
    return CompressedConvolution(
        num_heads=fields.integer("num_attention_heads"),
        num_kv_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        conv_kernel=fields.integer("cca_time0") + fields.integer("cca_time1") - 1,
    )


Reader = Callable[[Fields], RecurrentState]

FAMILIES: Final[Mapping[str, Reader]] = {
    **dict.fromkeys(
        (
            "qwen3_next",
            "qwen3_5",
            "qwen3_5_moe",
            "qwen4_exp",
            "olmo_hybrid",
            "lara_mini",
        ),
        gated_delta_net,
    ),
    **dict.fromkeys(
        ("kimi_linear", "kimi_k3", "glm5_next", "solar_open2"),
        kimi_delta_attention,
    ),
    **dict.fromkeys(("minimax", "minimax_text_01", "minimax_m1"), lightning_attention),
    **dict.fromkeys(("mamba", "falcon_mamba", "jamba", "zamba", "phi4flash"), mamba),
    **dict.fromkeys(
        (
            "mamba2",
            "bamba",
            "granitemoehybrid",
            "falcon_h1",
            "nemotron_h",
            "zamba2",
            "plamo2",
        ),
        mamba2,
    ),
    "bailing_hybrid": bailing_hybrid,
    "recurrent_gemma": gated_linear_recurrence,
    "zaya": zaya,
    "rwkv": rwkv4,
    **dict.fromkeys(("rwkv5", "rwkv6", "rwkv7"), rwkv_matrix),
    "xlstm": xlstm,
}

_BY_KEYS: Final[tuple[tuple[str, Reader], ...]] = (
    ("linear_num_value_heads", gated_delta_net),
    ("linear_attn_config", kimi_delta_attention),
    ("linear_num_heads", kimi_delta_attention),
    ("mamba_num_heads", mamba2),
    ("mamba_n_heads", mamba2),
    ("mamba_d_state", mamba),
    ("ssm_state_size", mamba),
)
"""A key that only one kind of state has, for types without a rule."""


def state_of(kind: Kind, fields: Fields) -> CacheSpec | None:
    """The state part of a layer of that kind, if it has one."""
    if kind == "conv":
        return short_convolution(fields)
    if kind not in ("linear", "both", "both_sliding"):
        return None
    family = family_of(fields.model_type)
    if family.startswith("inkling"):
        return inkling_convolutions(fields, kind)
    reader = FAMILIES.get(family)
    if reader is None:
        reader = next((r for key, r in _BY_KEYS if key in fields), None)
    if reader is None:
        raise UnsupportedModel(
            model_type=fields.model_type,
            reason="it has recurrent layers whose state is not described",
        )
    return reader(fields)
