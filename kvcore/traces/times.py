"""Timestamps of traces as seconds, whatever their unit.

Dates are what they say. Numbers are seconds, or milliseconds where JSON has a whole
number (Mooncake's stamps; whoever writes seconds writes fractions); a first stamp that
can only be a present-day Unix time tells its unit by its size.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

UNIX: Final = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (10**9, 1))
"""From what a stamp is Unix time, and how many of its units are a second."""
_STAMP: Final = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T ]"
    r"([01]\d|2[0-4]):([0-5]\d):([0-6]\d(?:\.\d+)?) ?(?:Z|UTC|([+-])(\d\d):?(\d\d))?"
)
_NUMBER: Final = re.compile(r"-?\d{1,19}(\.\d+)?")


class Clock:
    """Reads the timestamps of one pass over a file: the first decides the unit."""

    def __init__(self) -> None:
        self._parts: int | None = None

    def seconds(self, value: object) -> float | None:
        """Seconds since some start; None for what is no timestamp."""
        if isinstance(value, bool):
            return None
        if isinstance(value, int) and abs(value) < 10**19:
            return value / self._parts_of(value, 1000)
        if isinstance(value, float) and isfinite(value) and abs(value) < 10**19:
            return value / self._parts_of(value, 1)
        if not isinstance(value, str):
            return None
        if _NUMBER.fullmatch(value):
            return float(value) / self._parts_of(float(value), 1)
        return _date(value)

    def _parts_of(self, value: float, small: int) -> int:
        """Units in a second."""
        if self._parts is None:
            known = (parts for least, parts in UNIX if value >= least)
            self._parts = next(known, small)
        return self._parts


def _date(text: str) -> float | None:
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute = map(int, match.groups()[:5])
    found = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + float(match[6])
    if match[7]:
        east = 3600 * int(match[8]) + 60 * int(match[9])
        found -= east if match[7] == "+" else -east
    return found


def _days(year: int, month: int, day: int) -> int:
    """Days of the Gregorian calendar since its year 0, counted from March."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return (
        365 * year + year // 4 - year // 100 + year // 400
        + (153 * month + 2) // 5 + day - 1
    )  # fmt: skip
