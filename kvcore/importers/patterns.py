"""Which kind each layer is where the config has no list: the architecture's pattern.

A config that is silent means the pattern of its model_type; a type without a pattern is
read by keys that mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import (
    Kinds,
    alike,
    chosen,
    family_of,
    num_layers,
    stated_kinds,
    window_of,
)
from kvcore.importers.patterns_hybrid import HYBRID
from kvcore.importers.patterns_windowed import WINDOWED, sliding_pattern
from kvcore.importers.turns import Pattern

PATTERNS: Final[Mapping[str, Pattern]] = {**WINDOWED, **HYBRID}
"""Family -> the pattern it means where its config has no list."""


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
        return sliding_pattern(fields, count)
    if fields.flag("use_sliding_window") and window_of(fields):
        first = fields.integer_or(0, "max_window_layers", minimum=0)
        return chosen("full" if i < first else "sliding" for i in range(count))
    if window_of(fields) and fields.flag("use_sliding_window", default=True):
        fields.note("window_not_applied", window=window_of(fields))
    return alike("full", count)
