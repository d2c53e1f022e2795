"""Which layers of a GGUF model have a window, and of how many tokens.

Built-in periods and windows: llama.cpp 0c1e570, `load_swa_pattern` and the
`load_arch_hparams` of each architecture (src/models/*.cpp).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kvcore.errors import MissingField
from kvcore.importers.gguf_fields import Metadata


class Period(NamedTuple):
    """Every `length`-th layer is full: the last of each run, or the first."""

    length: int
    full_first: bool = False


PERIODS: Final[Mapping[str, Period]] = {
    "gemma2": Period(2),
    "gemma3": Period(6),
    "gemma3n": Period(5),
    "gpt-oss": Period(2),
    "cohere2": Period(4),
    "cohere2moe": Period(4, full_first=True),
    "exaone4": Period(4),
    "exaone-moe": Period(4),
    "llama4": Period(4),
    "olmo2": Period(4),
    "afmoe": Period(4),
    "laguna": Period(4, full_first=True),
    "mellum": Period(4),
    "muse-glimmer": Period(4),
    "plamo3": Period(8),
    "smallthinker": Period(4, full_first=True),
}
"""What an architecture means where the file has no pattern."""

LISTED: Final = frozenset("gemma4 mimo2 step35 granite_swa spark2_5 maple".split())
"""Architectures whose files must list their windowed layers."""

OPTIONAL: Final = frozenset(
    "gemma3 olmo2 afmoe laguna mellum plamo3 smallthinker lfm2 exaone4".split()
)
"""Architectures that are full attention throughout where no window is stated."""

THROUGHOUT: Final = frozenset("llama mistral3 phi3 phimoe starcoder2".split())
"""A stated window is every layer's (Mistral 7B v0.1, Phi-3), as in their configs."""

DEFAULT_WINDOWS: Final[Mapping[str, int]] = {"gemma2": 4096, "llama4": 8192}


def window_of(fields: Metadata) -> int | None:
    """The window in tokens, None where there is none."""
    stated = fields.optional_integer("attention.sliding_window", minimum=0)
    if stated is not None:
        return stated or None
    architecture = fields.model_type
    if architecture == "exaone4":
        # The 32B model; the 1.2B model is full attention throughout.
        return 4096 if fields.main == 64 else None
    if architecture in DEFAULT_WINDOWS:
        return DEFAULT_WINDOWS[architecture]
    if architecture in OPTIONAL or architecture not in {*PERIODS, *LISTED}:
        return None
    raise MissingField(field=fields.key("attention.sliding_window"))


def windowed_layers(fields: Metadata) -> tuple[bool, ...]:
    """Whether each layer, draft layers included, has the window."""
    none = (False,) * fields.count
    window = window_of(fields)
    if window is None:
        return none
    architecture = fields.model_type
    listed = fields.flags("attention.sliding_window_pattern")
    if listed is not None:
        return listed
    if architecture in LISTED:
        raise MissingField(field=fields.key("attention.sliding_window_pattern"))
    if architecture in THROUGHOUT or architecture == "lfm2":
        return (True,) * fields.main + none[fields.main :]
    period = PERIODS.get(architecture)
    stated = fields.optional_integer("attention.sliding_window_pattern", minimum=0)
    if period is None and stated is None:
        fields.note("window_not_applied", window=window)
        return none
    return _repeated(period or Period(4), stated, fields.main) + none[fields.main :]


def _repeated(period: Period, stated: int | None, count: int) -> tuple[bool, ...]:
    """A period of 0 leaves no layer full."""
    length = period.length if stated is None else stated
    if not length:
        return (True,) * count
    if period.full_first:
        return tuple(i % length != 0 for i in range(count))
    return tuple(i % length < length - 1 for i in range(count))
