"""Pasted text -> lines: colours removed, lengths limited, wrapped lines joined."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kvcore.errors import LogTooLong

MAX_CHARACTERS: Final = 1 << 22
"""Of a log. Start-up prints some hundred lines; longer ones hold requests."""
MAX_LINE: Final = 1 << 14
MIN_LINE: Final = 4
"""Shorter lines are no part of a wording."""
MAX_JOINED: Final = 20_000
"""Lines looked at for wrapping."""

_COLOUR: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\u241b|#033)\[[0-9;?]{0,20}[A-Za-z]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as the wordings see it: `number` from 1, `joint` where two were joined."""

    number: int
    text: str
    joint: int | None = None


def lines_of(text: str) -> tuple[Line, ...]:
    """All lines with words; `LogTooLong` for more than a log has."""
    if len(text) > MAX_CHARACTERS:
        raise LogTooLong(characters=len(text), limit=MAX_CHARACTERS)
    plain = _COLOUR.sub("", text)
    return tuple(
        Line(number=number, text=line[:MAX_LINE])
        for number, line in enumerate(plain.splitlines(), 1)
        if len(line) >= MIN_LINE
    )


def joined(lines: tuple[Line, ...]) -> Iterator[Line]:
    """Each line with the next, as a terminal or a mail may have parted them."""
    for first, second in pairwise(lines[:MAX_JOINED]):
        start, rest = first.text.rstrip()[-400:], second.text.strip()[:400]
        if start and rest:
            for glue in (" ", ""):
                text = start + glue + rest
                yield Line(number=first.number, text=text, joint=len(start))
