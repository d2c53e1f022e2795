"""The lengths in a trace: a CSV with a header, or one JSON object a line.

Columns are called what the published traces call them: ContextTokens, GeneratedTokens,
TIMESTAMP (Azure), Request tokens, Response tokens, Timestamp (BurstGPT), or
input_length, output_length, timestamp (Mooncake, Bailian and what follows them).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kvcore.errors import EmptyTrace, InvalidTrace, TraceTooLarge, shown
from kvcore.importers.byte_source import ByteSource
from kvcore.traces.lines import Lines

MAX_TOKENS: Final = 10**8
MAX_REQUESTS: Final = 10**7

_NAMES: Final[Mapping[str, str]] = {
    "contexttokens": "prompt",
    "requesttokens": "prompt",
    "inputlength": "prompt",
    "prompttokens": "prompt",
    "generatedtokens": "output",
    "responsetokens": "output",
    "outputlength": "output",
    "completiontokens": "output",
    "timestamp": "time",
}
_STAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:\.\d+)?)"
    r"(?:Z|[+-]\d\d:?\d\d)?"
)


class Row(NamedTuple):
    """One request: tokens in, tokens out, and seconds since some start (or None)."""

    prompt: int
    output: int
    time: float | None


def rows(source: ByteSource) -> Iterator[Row]:
    """The requests of a trace; the first bad line is an error that names it."""
    return rows_of(Lines(source))


def rows_of(lines: Lines) -> Iterator[Row]:
    """The same of lines that are being read, which know how far they are."""
    source, count = lines.source, 0
    for row in _rows(lines):
        count += 1
        if count > MAX_REQUESTS:
            raise TraceTooLarge(file=source.name, what="requests", limit=MAX_REQUESTS)
        yield row
    if not count:
        raise EmptyTrace(file=source.name)


def _rows(lines: Lines) -> Iterator[Row]:
    columns: dict[str, int] | None = None
    for number, raw in lines:
        if b"\0" in raw:
            raise bad(lines, number, "it", "binary or UTF-16", "text in UTF-8")
        text = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if not text:
            continue
        if text[0] == "{":
            fields = json_object(lines, number, text)
            named = {
                _NAMES.get(plain(name), ""): value for name, value in fields.items()
            }
            yield _row(lines, number, named)
        elif columns is None:
            columns = _columns(lines, number, _cells(text))
        else:
            cells = _cells(text)
            yield _row(
                lines,
                number,
                {name: cells[at] for name, at in columns.items() if at < len(cells)},
            )


def plain(name: object) -> str:
    """A column's name without case, spaces and marks."""
    return re.sub(r"[^a-z]", "", str(name).lower())


def _cells(text: str) -> list[str]:
    return [cell.strip().strip('"') for cell in text.split(",")]


def _columns(lines: Lines, number: int, names: Sequence[str]) -> dict[str, int]:
    found = {_NAMES[plain(n)]: at for at, n in enumerate(names) if plain(n) in _NAMES}
    for needed, known in (("prompt", "ContextTokens"), ("output", "GeneratedTokens")):
        if needed not in found:
            raise bad(
                lines,
                number,
                "the header",
                ", ".join(names)[:60],
                f"a column {known} or {needed_name(needed)}",
            )
    return found


def needed_name(column: str) -> str:
    return "input_length" if column == "prompt" else "output_length"


def json_object(lines: Lines, number: int, text: str | bytes) -> Mapping[str, object]:
    """The object on a line."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(
            lines, number, "it", f"not JSON ({str(error)[:60]})", "an object"
        ) from None
    if not isinstance(fields, dict):
        raise bad(lines, number, "it", fields, "an object")
    return fields


def _row(lines: Lines, number: int, named: Mapping[str, object]) -> Row:
    return Row(
        tokens(lines, number, needed_name("prompt"), named.get("prompt"), 1),
        tokens(lines, number, needed_name("output"), named.get("output"), 0),
        seconds(lines, number, named.get("time")),
    )


def tokens(lines: Lines, number: int, name: str, value: object, least: int) -> int:
    """A count of tokens, or an error that names line and column."""
    if type(value) is int and least <= value <= MAX_TOKENS:
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}(\.0+)?", value):
        value = int(value.partition(".")[0])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad(lines, number, name, "missing" if value is None else value,
                  f"a whole number from {least}")  # fmt: skip
    if not least <= value <= MAX_TOKENS:
        raise bad(lines, number, name, value, f"from {least} to {MAX_TOKENS}")
    return value


def seconds(lines: Lines, number: int, value: object) -> float | None:
    """Seconds from a timestamp: a date, seconds, or whole milliseconds.

    Mooncake's stamps are whole milliseconds; whoever writes seconds writes fractions.
    """
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value / 1000
    if isinstance(value, float) and abs(value) < 1e15:
        return value
    text = str(value)
    if match := _STAMP.match(text):
        year, month, day, hour, minute = map(int, match.groups()[:5])
        days = _days(year, month, day)
        return ((days * 24 + hour) * 60 + minute) * 60 + float(match.group(6))
    if re.fullmatch(r"-?\d{1,15}(\.\d+)?", text):
        return float(text)
    raise bad(lines, number, "timestamp", value, "a date, seconds or milliseconds")


def _days(year: int, month: int, day: int) -> int:
    """Days of the Gregorian calendar since its year 0, counted from March."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return (
        365 * year + year // 4 - year // 100 + year // 400
        + (153 * month + 2) // 5 + day - 1
    )  # fmt: skip


def bad(
    lines: Lines, number: int, where: str, found: object, expected: str
) -> InvalidTrace:
    return InvalidTrace(
        file=lines.source.name,
        line=number,
        where=where,
        found=found if isinstance(found, str) else shown(found),
        expected=expected,
    )
