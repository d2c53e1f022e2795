"""Which layers see a window where the config has no list, by family.

Read from the configuration classes of transformers 5.24.0 unless a comment says
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.errors import InvalidField
from kvcore.importers.attention import is_latent
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import (
    Kinds,
    alike,
    chosen,
    cut,
    family_of,
    named_kinds,
    window_of,
)
from kvcore.importers.turns import Pattern, all_of, every, first_of_every

PATTERN_DEFAULTS: Final[Mapping[str, int]] = {"gemma3": 6, "cohere2": 4}
"""Types whose published configs leave sliding_window_pattern out (Gemma 3 4B)."""


def sliding_pattern(fields: Fields, count: int) -> Kinds:
    """`sliding_window_pattern`: every p-th layer is full, or letters L and G."""
    pattern = fields.get("sliding_window_pattern", "_sliding_window_pattern")
    if window_of(fields) is None:
        return alike("full", count)
    if isinstance(pattern, str):
        if not pattern or set(pattern) - {"L", "G"}:
            raise InvalidField(
                field="sliding_window_pattern",
                value=shown(pattern),
                expected="a number or a text of the letters L and G",
            )
        return chosen(
            "sliding" if pattern[i % len(pattern)] == "L" else "full"
            for i in range(count)
        )
    default = PATTERN_DEFAULTS.get(family_of(fields.model_type))
    names = ("sliding_window_pattern", "_sliding_window_pattern")
    if default is None:
        return every(fields.integer(*names))(fields, count)
    return every(fields.integer_or(default, *names))(fields, count)


def _counted_from_the_end(fields: Fields, count: int) -> Kinds:
    return chosen("sliding" if (count - 1 - i) % 4 else "full" for i in range(count))


def _windowed_throughout(fields: Fields, count: int) -> Kinds:
    """A window that is not null applies to every layer (Mistral 7B v0.1, Phi-3).

    The class means its own layers by an absent window: latents published under its
    name (Mistral Large 3) have none.
    """
    if is_latent(fields) and not fields.has_key("sliding_window"):
        return alike("full", count)
    return alike("sliding" if window_of(fields) else "full", count)


def _qwen2(fields: Fields, count: int) -> Kinds:
    """Published configs carry a window with use_sliding_window false: no window."""
    if not fields.flag("use_sliding_window") or window_of(fields) is None:
        return alike("full", count)
    first = fields.integer("max_window_layers", minimum=0)
    return chosen("full" if i < first else "sliding" for i in range(count))


def _qwen2_moe(fields: Fields, count: int) -> Kinds:
    if not fields.flag("use_sliding_window") or window_of(fields) is None:
        return alike("full", count)
    first = fields.integer("max_window_layers", minimum=0)
    return chosen(
        "sliding" if (i + 1) % 2 and i < first else "full" for i in range(count)
    )


def _dots1(fields: Fields, count: int) -> Kinds:
    if window_of(fields) is None:
        return alike("full", count)
    first = fields.integer_or(count, "max_window_layers", minimum=0)
    return chosen("full" if i < first else "sliding" for i in range(count))


def _gemma4(fields: Fields, count: int) -> Kinds:
    kinds = every(6)(fields, count)
    return (*kinds[:-1], "full")


def _flint(fields: Fields, count: int) -> Kinds:
    return chosen(
        "full" if i < 2 or i % 4 == 1 or i == count - 1 else "sliding"
        for i in range(count)
    )


def _dots3(fields: Fields, count: int) -> Kinds:
    return chosen("full" if i < 2 or i % 4 == 1 else "sliding" for i in range(count))


def _mimo_v2(fields: Fields, count: int) -> Kinds:
    return chosen(
        "full" if i == 0 or (i + 1) % 6 == 0 else "sliding" for i in range(count)
    )


def _beam(fields: Fields, count: int) -> Kinds:
    return (*every(6)(fields, count)[:-1], "full")


def _qwen3_moe(fields: Fields, count: int) -> Kinds:
    """The class has no first layer to slide from: windows are for all or none."""
    on = fields.flag("use_sliding_window") and window_of(fields)
    return alike("sliding" if on else "full", count)


def _cohere2_moe(fields: Fields, count: int) -> Kinds:
    """Dense first layers have a pattern of their own, the rest starts anew."""
    dense = fields.optional_integer("first_k_dense_replace", minimum=0) or 0
    if not dense:
        return sliding_pattern(fields, count)
    prefix = fields.integer_or(1, "prefix_dense_sliding_window_pattern")
    period = fields.integer("sliding_window_pattern")
    return (
        *every(prefix)(fields, min(dense, count)),
        *every(period)(fields, max(count - dense, 0)),
    )


def _llama4(fields: Fields, count: int) -> Kinds:
    """1 = RoPE = chunked, 0 = full; Scout publishes neither list nor interval."""
    if fields.optional_integer("attention_chunk_size", minimum=0) in (None, 0):
        return alike("full", count)
    rope = fields.integers("no_rope_layers")
    if rope:
        kinds = chosen("chunked" if r else "full" for r in rope)
        return cut(kinds, fields, "no_rope_layers")
    interval = fields.integer("no_rope_layer_interval")
    return every(interval, rest="chunked")(fields, count)


def _smollm3(fields: Fields, count: int) -> Kinds:
    """The inverse of Llama 4: layers without RoPE slide, if windows are on."""
    if not fields.flag("use_sliding_window") or window_of(fields) is None:
        return alike("full", count)
    interval = fields.integer("no_rope_layer_interval")
    rope = fields.integers("no_rope_layers") or tuple(
        int((i + 1) % interval != 0) for i in range(count)
    )
    kinds = chosen("full" if r else "sliding" for r in rope)
    return cut(kinds, fields, "no_rope_layers")


def _afmoe(fields: Fields, count: int) -> Kinds:
    return every(fields.integer("global_attn_every_n_layers"))(fields, count)


def _modernbert_decoder(fields: Fields, count: int) -> Kinds:
    period = fields.integer_or(3, "global_attn_every_n_layers")
    return first_of_every(period)(fields, count)


def _gpt_neo(fields: Fields, count: int) -> Kinds:
    """`attention_types`: [[["global", "local"], 12]], repeated and chained."""
    chained: list[str] = []
    for i, entry in enumerate(fields.items("attention_types") or ()):
        if not (
            isinstance(entry, list | tuple)
            and len(entry) == 2
            and isinstance(entry[0], list | tuple)
            and isinstance(entry[1], int)
            and 0 <= entry[1] <= count
        ):
            raise InvalidField(
                field=f"attention_types[{i}]",
                value=shown(entry),
                expected="a list of kinds and how often it repeats",
            )
        chained += [str(kind) for kind in entry[0]] * entry[1]
    if not chained:
        return chosen("sliding" if i % 2 else "full" for i in range(count))
    return cut(
        named_kinds(tuple(chained), "attention_types"), fields, "attention_types"
    )


WINDOWED: Final[Mapping[str, Pattern]] = {
    **dict.fromkeys(
        ("mistral", "ministral", "starcoder2", "phi3", "phi3_v", "mixtral", "moshi"),
        _windowed_throughout,
    ),
    **dict.fromkeys(("ministral3", "phimoe", "unlimited_ocr"), _windowed_throughout),
    **dict.fromkeys(
        ("kyutai_speech_to_text", "voxtral_realtime"), _windowed_throughout
    ),
    **dict.fromkeys(
        ("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3", "qwen3_vl", "deepseek_ocr2"),
        _qwen2,
    ),
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe": all_of("full"),
    "dots1": _dots1,
    **dict.fromkeys(("gemma2", "vaultgemma", "gpt_oss", "t5_gemma_module"), every(2)),
    "gemma3": sliding_pattern,
    "cohere2": sliding_pattern,
    "exaone4": sliding_pattern,
    "exaone_moe": sliding_pattern,
    "t5gemma2_decoder": every(6),
    "gemma3n": every(5),
    "kolibri1": every(5),
    **dict.fromkeys(("gemma4", "gemma4_unified", "diffusion_gemma"), _gemma4),
    **dict.fromkeys(("olmo3", "dory"), every(4)),
    "beam": _beam,
    "cohere2_moe": _cohere2_moe,
    **dict.fromkeys(("cwm", "granite_swa", "granitemoe_swa"), first_of_every(4)),
    **dict.fromkeys(("muse_spark", "muse_glimmer"), _counted_from_the_end),
    "flint": _flint,
    "dots3_note": _dots3,
    "llama4": _llama4,
    "smollm3": _smollm3,
    "afmoe": _afmoe,
    "modernbert-decoder": _modernbert_decoder,
    "gpt_neo": _gpt_neo,
    **dict.fromkeys(("mimo_v2_flash", "mimo_v2"), _mimo_v2),
}
"""Family -> the pattern of its windows where its config has no list."""
