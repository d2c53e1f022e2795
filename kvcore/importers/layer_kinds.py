"""The kinds of layers, and every way a config can list them.

`i` is the 0-based layer index throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from kvcore.errors import InvalidField
from kvcore.importers.fields import MAX_LAYERS, Fields, shown

Kind = Literal[
    "full", "sliding", "chunked", "linear", "conv", "both", "both_sliding", "none"
]
"""`both` is attention beside a state; `none` keeps nothing (MLP and MoE blocks)."""

Kinds = tuple[Kind, ...]

LAYERS: Final = (
    "num_hidden_layers",
    "n_layers",
    "n_layer",
    "num_layers",
    "num_transformer_layers",
    "decoder_layers",
    "num_decoder_layers",
    "decoder_num_hidden_layers",
)

WINDOW: Final = (
    "sliding_window",
    "sliding_window_size",
    "attention_window_size",
    "window_size",
)

NAMES: Final[Mapping[str, Kind]] = {
    "full_attention": "full",
    "attention": "full",
    "full": "full",
    "global": "full",
    "indexed_attention": "full",
    "deepseek_sparse_attention": "full",
    "qwen_sparse_attention": "full",
    "minimax_m3_sparse": "full",
    "sliding_attention": "sliding",
    "sliding_window_attention": "sliding",
    "window_attention": "sliding",
    "reference_sliding_attention": "sliding",
    "sliding": "sliding",
    "swa": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "linear": "linear",
    "mamba": "linear",
    "mamba2": "linear",
    "recurrent": "linear",
    "conv": "conv",
    "hybrid": "both",
    "hybrid_sliding": "both_sliding",
    "mlp": "none",
    "moe": "none",
}

LETTERS: Final[Mapping[str, Kind]] = {
    "M": "linear",
    "*": "full",
    "-": "none",
    "E": "none",
}
"""Nemotron-H `hybrid_override_pattern`."""


def chosen(kinds: Iterable[Kind]) -> Kinds:
    return tuple(kinds)


def alike(kind: Kind, count: int) -> Kinds:
    return (kind,) * count


def family_of(model_type: str) -> str:
    """`gemma3_text` and `mllama_text_model` belong to `gemma3` and `mllama`."""
    return model_type.removesuffix("_model").removesuffix("_text")


def num_layers(fields: Fields) -> int:
    return fields.integer(*LAYERS, maximum=MAX_LAYERS)


def stated_kinds(fields: Fields) -> Kinds | None:
    """One kind per layer, in order, where the config has a list in any spelling."""
    for reader in (_listed, _lettered, _from_numbers, _from_positions):
        kinds = reader(fields)
        if kinds is not None:
            return kinds
    return None


def named_kinds(names: tuple[str, ...], field: str) -> Kinds:
    for i, name in enumerate(names):
        if name not in NAMES:
            raise InvalidField(
                field=f"{field}[{i}]",
                value=shown(name),
                expected="one of " + ", ".join(NAMES),
            )
    return chosen(NAMES[name] for name in names)


def lettered_kinds(pattern: str, field: str) -> Kinds:
    letters = pattern.replace("|", "")
    if len(letters) > MAX_LAYERS or set(letters) - set(LETTERS):
        raise InvalidField(
            field=field,
            value=shown(pattern),
            expected="a text of the letters " + " ".join(LETTERS),
        )
    return chosen(LETTERS[letter] for letter in letters)


def cut(kinds: Kinds, fields: Fields, field: str) -> Kinds:
    """Lists may be longer than the layers (draft layers follow), never shorter."""
    count = fields.optional_integer(*LAYERS, maximum=MAX_LAYERS)
    if count is None:
        return kinds
    if len(kinds) < count:
        raise InvalidField(
            field=field,
            value=f"a list of {len(kinds)}",
            expected=f"one entry for each of {count} layers",
        )
    return kinds[:count]


def _listed(fields: Fields) -> Kinds | None:
    for field in ("layer_types", "layers_block_type", "layers_block_types"):
        names = fields.texts(field)
        if names:
            kinds = named_kinds(names, field)
            # Nemotron-H takes its depth from the list, whatever the count says.
            return kinds if field != "layer_types" else cut(kinds, fields, field)
    return None


def _lettered(fields: Fields) -> Kinds | None:
    pattern = fields.text("hybrid_override_pattern")
    if not pattern:
        return None
    return lettered_kinds(pattern, "hybrid_override_pattern")


def _from_numbers(fields: Fields) -> Kinds | None:
    """Lists of 0 and 1 whose meaning their name fixes."""
    meanings: tuple[tuple[str, Kind, Kind], ...] = (
        ("hybrid_layer_pattern", "full", "sliding"),
        ("attn_type_list", "linear", "full"),
    )
    for field, zero, one in meanings:
        numbers = fields.integers(field)
        if numbers:
            kinds: Kinds = tuple(one if n else zero for n in numbers)
            return cut(kinds, fields, field)
    return None


def _from_positions(fields: Fields) -> Kinds | None:
    """Lists of layer numbers: 1-based in linear_attn_config, else 0-based."""
    positions: tuple[tuple[str, int, Kind, Kind], ...] = (
        ("linear_attn_config.full_attn_layers", 1, "full", "linear"),
        ("gqa_layers", 0, "full", "linear"),
        ("attn_layer_indices", 0, "full", "linear"),
        ("full_attn_idxs", 0, "full", "conv"),
        ("hybrid_layer_ids", 0, "both", "linear"),
        ("local_layer_ids", 0, "both_sliding", "both"),
    )
    for field, base, listed, other in positions:
        numbers = fields.integers(field)
        if numbers is None:
            continue
        count = num_layers(fields)
        places = {n - base for n in numbers}
        if places and not (min(places) >= 0 and max(places) < count):
            raise InvalidField(
                field=field,
                value=shown(list(numbers)),
                expected=f"layer numbers from {base} to {count - 1 + base}",
            )
        return chosen(listed if i in places else other for i in range(count))
    return None


def window_of(fields: Fields) -> int | None:
    """The sliding window, None where it is null, 0 or absent."""
    return fields.optional_integer(*WINDOW, minimum=0) or None
