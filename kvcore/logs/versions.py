"""Printed versions -> the rules kvcore has: those of the newest that is not newer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PARTS: Final = re.compile(r"\d{1,6}")


def key(version: str) -> tuple[int, ...]:
    """Major, minor, patch; development marks after them do not count."""
    plain = re.split(r"rc|dev|post|\+|a|b", version.removeprefix("v"))[0]
    return tuple(int(part) for part in _PARTS.findall(plain)[:3])


def nearest(printed: str, known: Sequence[str]) -> str:
    """Of `known`, newest first: the rules a printed version goes by.

    A patch release goes by the rules read from any patch of the same minor version.

    >>> nearest("0.20.0", ("0.25.1", "0.20.2", "0.19.1"))
    '0.20.2'
    >>> nearest("0.17.0", ("0.20.2", "0.19.1", "0.15.1"))
    '0.15.1'
    """
    wanted = key(printed)
    if not wanted:
        return known[0]
    for version in known:
        if key(version)[:2] <= wanted[:2] or key(version) <= wanted:
            return version
    return known[-1]
