"""Which kind each layer is where the config has no list: the architecture's pattern.

A config that is silent means the pattern of its model_type (`PATTERNS`, read from the
configuration classes of transformers 5.24.0 unless a comment says otherwise); a type
without a pattern is read by keys that mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kvcore.errors import InvalidField, MissingField
from kvcore.importers.attention import is_latent
from kvcore.importers.fields import Fields, shown
from kvcore.importers.layer_kinds import (
    Kind,
    Kinds,
    alike,
    chosen,
    cut,
    family_of,
    named_kinds,
    num_layers,
    stated_kinds,
    window_of,
)

PATTERN_DEFAULTS: Final[Mapping[str, int]] = {"gemma3": 6, "cohere2": 4}
"""Types whose published configs leave sliding_window_pattern out (Gemma 3 4B)."""


def layer_kinds(fields: Fields) -> Kinds:
    """One kind per layer, in order: the config's own list, else the pattern."""
    stated = stated_kinds(fields)
    if stated is not None:
        return stated
    count = num_layers(fields)
    pattern = PATTERNS.get(family_of(fields.model_type), _by_common_keys)
    return pattern(fields, count)


def _by_common_keys(fields: Fields, count: int) -> Kinds:
    """Keys that mean the same wherever they stand, for types without a rule."""
    interval = fields.optional_integer("full_attention_interval")
    if interval is not None and "linear_num_value_heads" in fields:
        return chosen("linear" if (i + 1) % interval else "full" for i in range(count))
    pattern = fields.get("sliding_window_pattern", "_sliding_window_pattern")
    if pattern is not None and window_of(fields):
        return _sliding_pattern(fields, count)
    if fields.flag("use_sliding_window") and window_of(fields):
        first = fields.integer_or(0, "max_window_layers", minimum=0)
        return chosen("full" if i < first else "sliding" for i in range(count))
    if window_of(fields) and fields.flag("use_sliding_window", default=True):
        fields.note("window_not_applied", window=window_of(fields))
    return alike("full", count)


def _sliding_pattern(fields: Fields, count: int) -> Kinds:
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
        return _every(fields.integer(*names))(fields, count)
    return _every(fields.integer_or(default, *names))(fields, count)


Pattern = Callable[[Fields, int], Kinds]


def _every(period: int, rest: Kind = "sliding", nth: Kind = "full") -> Pattern:
    """Every `period`-th layer is `nth`, the first of them at index period - 1."""

    def kinds(fields: Fields, count: int) -> Kinds:
        return chosen(rest if (i + 1) % period else nth for i in range(count))

    return kinds


def _first_of_every(period: int) -> Pattern:
    """Full layers at 0, period, 2 * period, ..."""

    def kinds(fields: Fields, count: int) -> Kinds:
        return chosen("sliding" if i % period else "full" for i in range(count))

    return kinds


def _counted_from_the_end(fields: Fields, count: int) -> Kinds:
    return chosen("sliding" if (count - 1 - i) % 4 else "full" for i in range(count))


def _all(kind: Kind) -> Pattern:
    def kinds(fields: Fields, count: int) -> Kinds:
        return alike(kind, count)

    return kinds


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
    kinds = _every(6)(fields, count)
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
    return (*_every(6)(fields, count)[:-1], "full")


def _qwen3_moe(fields: Fields, count: int) -> Kinds:
    """The class has no first layer to slide from: windows are for all or none."""
    on = fields.flag("use_sliding_window") and window_of(fields)
    return alike("sliding" if on else "full", count)


def _olmo_hybrid(fields: Fields, count: int) -> Kinds:
    kinds = _every(4, rest="linear")(fields, count)
    return kinds if "full" in kinds else (*kinds[:-1], "full")


def _cohere2_moe(fields: Fields, count: int) -> Kinds:
    """Dense first layers have a pattern of their own, the rest starts anew."""
    dense = fields.optional_integer("first_k_dense_replace", minimum=0) or 0
    if not dense:
        return _sliding_pattern(fields, count)
    prefix = fields.integer_or(1, "prefix_dense_sliding_window_pattern")
    period = fields.integer("sliding_window_pattern")
    return (
        *_every(prefix)(fields, min(dense, count)),
        *_every(period)(fields, max(count - dense, 0)),
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
    return _every(interval, rest="chunked")(fields, count)


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
    return _every(fields.integer("global_attn_every_n_layers"))(fields, count)


def _modernbert_decoder(fields: Fields, count: int) -> Kinds:
    period = fields.integer_or(3, "global_attn_every_n_layers")
    return _first_of_every(period)(fields, count)


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


def _linear_interval(fields: Fields, count: int) -> Kinds:
    """Qwen3-Next: every full_attention_interval-th layer attends."""
    interval = fields.integer_or(4, "full_attention_interval")
    return _every(interval, rest="linear")(fields, count)


def _kimi_linear(fields: Fields, count: int) -> Kinds:
    """Without its list the class attends at 4, 8, 12, ... (not the released layout)."""
    return chosen("full" if i and i % 4 == 0 else "linear" for i in range(count))


def _bailing_hybrid(fields: Fields, count: int) -> Kinds:
    return _every(fields.integer("layer_group_size"), rest="linear")(fields, count)


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


def _needs_a_list(field: str) -> Pattern:
    def kinds(fields: Fields, count: int) -> Kinds:
        raise MissingField(field=field)

    return kinds


PATTERNS: Final[Mapping[str, Pattern]] = {
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
    "qwen3_vl_moe": _all("full"),
    "dots1": _dots1,
    **dict.fromkeys(("gemma2", "vaultgemma", "gpt_oss", "t5_gemma_module"), _every(2)),
    "gemma3": _sliding_pattern,
    "cohere2": _sliding_pattern,
    "exaone4": _sliding_pattern,
    "exaone_moe": _sliding_pattern,
    "t5gemma2_decoder": _every(6),
    "gemma3n": _every(5),
    "kolibri1": _every(5),
    **dict.fromkeys(("gemma4", "gemma4_unified", "diffusion_gemma"), _gemma4),
    **dict.fromkeys(("olmo3", "dory"), _every(4)),
    "beam": _beam,
    "cohere2_moe": _cohere2_moe,
    **dict.fromkeys(("cwm", "granite_swa", "granitemoe_swa"), _first_of_every(4)),
    **dict.fromkeys(("muse_spark", "muse_glimmer"), _counted_from_the_end),
    "flint": _flint,
    "dots3_note": _dots3,
    "llama4": _llama4,
    "smollm3": _smollm3,
    "afmoe": _afmoe,
    "modernbert-decoder": _modernbert_decoder,
    "gpt_neo": _gpt_neo,
    **dict.fromkeys(("mimo_v2_flash", "mimo_v2"), _mimo_v2),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"), _linear_interval
    ),
    "olmo_hybrid": _olmo_hybrid,
    "lara_mini": _lara_mini,
    **dict.fromkeys(("kimi_linear", "kimi_k3"), _kimi_linear),
    "bailing_hybrid": _bailing_hybrid,
    "glm5_next": _every(4, rest="linear"),
    "minimax": _minimax,
    **dict.fromkeys(("minimax_text_01", "minimax_m1"), _needs_a_list("attn_type_list")),
    "jamba": _jamba,
    "zamba": _zamba,
    "zamba2": _needs_a_list("hybrid_layer_ids"),
    "nemotron_h": _needs_a_list("hybrid_override_pattern"),
    # Without a list every layer is a state (Bamba, Granite 4).
    **dict.fromkeys(("bamba", "granitemoehybrid"), _all("linear")),
    **dict.fromkeys(
        ("mamba", "falcon_mamba", "mamba2", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm"),
        _all("linear"),
    ),
    **dict.fromkeys(("falcon_h1", "zaya"), _all("both")),
    **dict.fromkeys(
        ("inkling", "inkling2", "inkling2_loop"),
        _every(6, rest="both_sliding", nth="both"),
    ),
    "lfm2": _all("full"),
    "lfm2_moe": _all("full"),
    "lfm3": _lfm3,
    "recurrent_gemma": _recurrent_gemma,
    "plamo2": _plamo2,
}
"""Family -> the pattern it means where its config has no list."""
