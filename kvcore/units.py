"""Words for numbers at the edge: reading token counts, writing bytes.

Inside kvcore there are only integers of bytes and tokens.
"""

from __future__ import annotations

import re
from typing import Final

from kvcore.errors import InvalidArgument

GIB: Final = 2**30
GB: Final = 10**9

_COUNT: Final = re.compile(
    r"(\d{1,3}(?:[,_]\d{3})+|\d{1,18})(?:\.(\d{1,6}))?([kKmM]?)i?"
)
_SUFFIXES: Final = {"": 1, "k": 1024, "m": 1024**2}


def parse_count(argument: str, text: str) -> int:
    """A count as people write it; k is 1,024 and M 1,048,576, as model cards mean it.

    >>> parse_count("tokens", "128k"), parse_count("tokens", "131,072")
    (131072, 131072)
    """
    match = _COUNT.fullmatch(text.strip())
    if match:
        whole, fraction, suffix = match.groups()
        scale = _SUFFIXES[suffix.lower()]
        count: int = int(re.sub("[,_]", "", whole)) * scale
        if fraction is None:
            return count
        part, rest = divmod(int(fraction) * scale, 10 ** len(fraction))
        if not rest:
            return count + int(part)
    raise InvalidArgument(
        argument=argument,
        value=repr(text)[:60],
        expected="a whole number, for example 131072, 131,072 or 128k",
    )


def gib(count: int) -> str:
    """Bytes in GiB (2^30) to four significant digits.

    >>> gib(42_949_672_960), gib(536_870_912)
    ('40 GiB', '0.5 GiB')
    """
    return f"{_significant(count, GIB)} GiB"


def gb(count: int) -> str:
    """Bytes in GB (10^9) to four significant digits."""
    return f"{_significant(count, GB)} GB"


def _significant(count: int, unit: int) -> str:
    value = count / unit
    digits = max(0, 4 - len(str(int(value)))) if value >= 1 else 4
    text = f"{value:,.{digits}f}" if value >= 0.001 or not count else f"{value:.3g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
