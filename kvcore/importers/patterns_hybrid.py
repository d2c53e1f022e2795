"""Which layers keep a state where the config has no list, by family.

Read from the configuration classes of transformers 5.24.0 unless a comment says
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import Kind, Kinds, chosen, named_kinds
from kvcore.importers.turns import Pattern, all_of, every, needs_a_list


def _linear_interval(fields: Fields, count: int) -> Kinds:
    """Qwen3-Next: every full_attention_interval-th layer attends."""
    interval = fields.integer_or(4, "full_attention_interval")
    return every(interval, rest="linear")(fields, count)


def _kimi_linear(fields: Fields, count: int) -> Kinds:
    """Without its list the class attends at 4, 8, 12, ... (not the released layout)."""
    return chosen("full" if i and i % 4 == 0 else "linear" for i in range(count))


def _bailing_hybrid(fields: Fields, count: int) -> Kinds:
    return every(fields.integer("layer_group_size"), rest="linear")(fields, count)


def _minimax(fields: Fields, count: int) -> Kinds:
    """The class alternates from a full layer; the released models list theirs."""
    return chosen("linear" if i % 2 else "full" for i in range(count))


def _lara_mini(fields: Fields, count: int) -> Kinds:
    cycle: Kinds = ("linear", "sliding", "linear", "full", "sliding")
    return chosen(cycle[i % len(cycle)] for i in range(count))


def _lfm3(fields: Fields, count: int) -> Kinds:
    def kind(i: int) -> Kind:
        if i % 4 == 2:
            return "full"
        return "sliding" if i and i % 4 == 0 else "conv"

    return chosen(kind(i) for i in range(count))


def _jamba(fields: Fields, count: int) -> Kinds:
    period = fields.integer("attn_layer_period")
    offset = fields.integer("attn_layer_offset", minimum=0)
    return chosen("full" if i % period == offset else "linear" for i in range(count))


def _zamba(fields: Fields, count: int) -> Kinds:
    """The pattern starts after three fixed layers."""
    period = fields.integer("attn_layer_period")
    offset = fields.integer("attn_layer_offset", minimum=0)
    start: Kinds = ("linear", "linear", "both")
    rest: Kinds = tuple(
        "both" if i % period == offset else "linear" for i in range(count - 3)
    )
    return (*start, *rest)[:count]


def _recurrent_gemma(fields: Fields, count: int) -> Kinds:
    cycle = named_kinds(
        tuple(
            name.replace("attention", "sliding")
            for name in fields.texts("block_types", "_block_types")
            or ("recurrent", "recurrent", "attention")
        ),
        "block_types",
    )
    return chosen(cycle[i % len(cycle)] for i in range(count))


def _plamo2(fields: Fields, count: int) -> Kinds:
    step = fields.integer("mamba_step")
    return chosen("full" if i % step == step // 2 else "linear" for i in range(count))


def _olmo_hybrid(fields: Fields, count: int) -> Kinds:
    kinds = every(4, rest="linear")(fields, count)
    return kinds if "full" in kinds else (*kinds[:-1], "full")


HYBRID: Final[Mapping[str, Pattern]] = {
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"), _linear_interval
    ),
    "olmo_hybrid": _olmo_hybrid,
    "lara_mini": _lara_mini,
    **dict.fromkeys(("kimi_linear", "kimi_k3"), _kimi_linear),
    "bailing_hybrid": _bailing_hybrid,
    "glm5_next": every(4, rest="linear"),
    "minimax": _minimax,
    **dict.fromkeys(("minimax_text_01", "minimax_m1"), needs_a_list("attn_type_list")),
    "jamba": _jamba,
    "zamba": _zamba,
    "zamba2": needs_a_list("hybrid_layer_ids"),
    "nemotron_h": needs_a_list("hybrid_override_pattern"),
    # Without a list every layer is a state (Bamba, Granite 4).
    **dict.fromkeys(("bamba", "granitemoehybrid"), all_of("linear")),
    **dict.fromkeys(
        ("mamba", "falcon_mamba", "mamba2", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm"),
        all_of("linear"),
    ),
    **dict.fromkeys(("falcon_h1", "zaya"), all_of("both")),
    **dict.fromkeys(
        ("inkling", "inkling2", "inkling2_loop"),
        every(6, rest="both_sliding", nth="both"),
    ),
    "lfm2": all_of("full"),
    "lfm2_moe": all_of("full"),
    "lfm3": _lfm3,
    "recurrent_gemma": _recurrent_gemma,
    "plamo2": _plamo2,
}
"""Family -> the pattern of its states where its config has no list."""
