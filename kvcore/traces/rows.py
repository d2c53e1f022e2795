"""The lengths in a trace: a CSV with a header, or one JSON object a line.

Columns are called what the published traces call them: ContextTokens, GeneratedTokens,
TIMESTAMP (Azure), Request tokens, Response tokens, Timestamp (BurstGPT), or
input_length, output_length, timestamp (Mooncake, Bailian and what follows them).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kvcore.errors import EmptyTrace, InvalidTrace, TraceTooLarge, shown
from kvcore.importers.byte_source import ByteSource
from kvcore.traces.lines import Lines
from kvcore.traces.times import Clock

MAX_TOKENS: Final = 10**8
MAX_REQUESTS: Final = 10**7
MARKS: Final = ",;\t"
"""What may stand between the cells of a CSV: its header tells."""

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
    clock, mark = Clock(), ","
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
            yield _row(lines, number, clock, named)
        elif columns is None:
            mark = max(MARKS, key=text.count)
            columns = _columns(lines, number, _cells(lines, number, text, mark))
        else:
            cells = _cells(lines, number, text, mark)
            yield _row(
                lines,
                number,
                clock,
                {name: cells[at] for name, at in columns.items() if at < len(cells)},
            )


def plain(name: object) -> str:
    """A column's name without case, spaces and marks."""
    return re.sub(r"[^a-z]", "", str(name).lower())


def _cells(lines: Lines, number: int, text: str, mark: str) -> list[str]:
    """What stands between the marks; a quoted cell may hold some."""
    if '"' not in text:
        return [cell.strip() for cell in text.split(mark)]
    table = csv.reader([text], delimiter=mark, skipinitialspace=True, strict=True)
    try:
        return [cell.strip() for cell in next(table)]
    except csv.Error as error:
        raise bad(lines, number, "it", f"not CSV ({error})", "a row of a CSV") from None


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


def _row(lines: Lines, number: int, clock: Clock, named: Mapping[str, object]) -> Row:
    return Row(
        tokens(lines, number, needed_name("prompt"), named.get("prompt"), 1),
        tokens(lines, number, needed_name("output"), named.get("output"), 0),
        seconds(lines, number, clock, named.get("time")),
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


def seconds(lines: Lines, number: int, clock: Clock, value: object) -> float | None:
    """Seconds of a timestamp, None where there is none."""
    if value is None or value == "":
        return None
    found = clock.seconds(value)
    if found is None:
        raise bad(lines, number, "timestamp", value, "a date, seconds or milliseconds")
    return found


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
