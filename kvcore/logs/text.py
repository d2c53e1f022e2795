"""Pasted text -> lines: colours and wrappings off, lengths limited, parts joined."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

HEAD: Final = 3 << 19
TAIL: Final = 1 << 19
"""Characters read of a log's beginning and of its end. Start-up prints some hundred
lines, and what goes wrong stands last; what is longer holds requests."""
MAX_CHARACTERS: Final = HEAD + TAIL
MAX_LINE: Final = 1 << 14
MIN_LINE: Final = 4
"""Shorter lines are no part of a wording."""
MAX_JOINED: Final = 4_000
"""Lines looked at for wrapping: what wraps is copied from a terminal by hand."""

_COLOUR: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\u241b|#033)\[[0-9;?]{0,20}[A-Za-z]"
)

_IN_JSON: Final = re.compile(
    r"""^\s*\{.*?"(?:log|message|msg|textPayload)"\s*:\s*("(?:[^"\\]|\\.)*")"""
)
"""A line that a container's runtime or a collector keeps as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log as it is read; the middle of a long one is left out.

    `head` counts the lines before the gap (None: there is no gap), `lines` all lines.
    """

    text: str
    head: int | None
    lines: int

    def shown(self, number: int) -> int:
        """A line's number as people count; after a gap from the end, from -1."""
        if self.head is None or number <= self.head:
            return number
        return number - self.lines - 1


def log_of(text: str, tail: str | None = None) -> Log:
    """The beginning and the end of a log; `tail` is the end of one read in parts."""
    if tail is None and len(text) <= MAX_CHARACTERS:
        return Log(text=text, head=None, lines=len(text.splitlines()))
    start = _whole_lines(text[:HEAD], first=True)
    end = _whole_lines((text if tail is None else tail)[-TAIL:], first=False)
    return Log(text="\n".join([*start, *end]), head=len(start), lines=len(start + end))


def _whole_lines(part: str, *, first: bool) -> list[str]:
    """Its lines without the one that the gap has cut."""
    lines = part.splitlines()
    if len(lines) < 2:
        return lines
    return lines[:-1] if first else lines[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as the wordings see it: `number` from 1, `joint` where two were joined."""

    number: int
    text: str
    joint: int | None = None


def lines_of(text: str) -> tuple[Line, ...]:
    """All lines with words."""
    plain = _COLOUR.sub("", text)
    return tuple(
        Line(number=number, text=_unwrapped(line[:MAX_LINE]))
        for number, line in enumerate(plain.splitlines(), 1)
        if len(line) >= MIN_LINE
    )


def _unwrapped(line: str) -> str:
    """The line that was printed, where it was kept as JSON."""
    wrapped = _IN_JSON.match(line) if "{" in line[:MIN_LINE] else None
    if wrapped is None:
        return line
    try:
        return " ".join(str(json.loads(wrapped[1], strict=False)).split("\n"))
    except ValueError:
        return line


def having(lines: Sequence[Line], keys: Iterable[str]) -> tuple[Line, ...]:
    """Lines with any of the keys in them; of a long log they are few."""
    starts = list(accumulate((len(line.text) + 1 for line in lines), initial=0))
    text = "\n".join(line.text for line in lines)
    found: set[int] = set()
    for key in keys:
        place = text.find(key)
        while place >= 0:
            index = bisect_right(starts, place) - 1
            found.add(index)
            place = text.find(key, starts[index + 1])
    return tuple(lines[index] for index in sorted(found))


def joined(lines: tuple[Line, ...]) -> Iterator[Line]:
    """Each line with the next, as a terminal or a mail may have parted them."""
    for first, second in pairwise(lines[:MAX_JOINED]):
        start, rest = first.text.rstrip()[-400:], second.text.strip()[:400]
        if start and rest:
            for glue in (" ", ""):
                text = start + glue + rest
                yield Line(number=first.number, text=text, joint=len(start))
