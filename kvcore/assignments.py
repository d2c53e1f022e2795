"""NAME=VALUE, as the command line takes an engine's options and edits of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kvcore.errors import InvalidArgument


def pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """Names and their values as texts; the last one of a name counts."""
    return dict(_pair(word, option) for word in words)


def edits(words: Iterable[str], option: str) -> dict[str, object]:
    """Fields and their values: JSON, else a text, which removes a field if empty.

    >>> edits(["num_key_value_heads=4", "torch_dtype=float32", "head_dim="], "--set")
    {'num_key_value_heads': 4, 'torch_dtype': 'float32', 'head_dim': ''}
    >>> edits(["sliding_window=null"], "--set")
    {'sliding_window': None}
    """
    return {name: value_of(text) for name, text in pairs(words, option).items()}


def value_of(text: str) -> object:
    """The value that a text stands for."""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text


def _refused(constant: str) -> None:
    """NaN and infinities are no JSON, whatever Python makes of them."""
    raise ValueError(constant)


def _pair(word: str, option: str) -> tuple[str, str]:
    name, separator, value = word.partition("=")
    if not separator or not name.strip():
        raise InvalidArgument(
            argument=option, value=repr(word)[:60], expected="NAME=VALUE"
        )
    return name.strip(), value.strip()
