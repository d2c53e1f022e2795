"""Evidence: numbers that others observed, beside what kvcore answers to the same.

Every row of data/observed.jsonl holds a number somebody's engine printed or published,
and the questions that get it from kvcore: a method of the api, its parameters, and
where in its answer the number is. Nothing is computed here but units and differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from kvcore import datafiles
from kvcore.params import Params, invalid

Json = dict[str, Any]
Ask = Callable[[str, Mapping[str, object]], Json]
"""`kvcore.api.call`, or anything that answers like it."""

Agreement = Literal["exact", "close", "off", "refused", "not_asked"]
"""Equal as far as the printed digits say; within 1% of what they say; neither; an
error; no question known."""

MATCHES: Final = ("exact", "close")
CLOSE: Final = 0.01

UNITS: Final[Mapping[str, int]] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "tokens": 1,
    "blocks": 1,
    "tensors": 1,
    "x": 1,
}
"""Unit of an observed number -> what kvcore's answer is divided by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number as printed: `decimals` digits after the point, in `unit`."""

    quantity: str
    value: float
    unit: str
    decimals: int

    @property
    def rounding(self) -> float:
        """Half of the last printed digit."""
        return 0.5 / float(10**self.decimals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A pool as printed; `share` is the part of it that the engine cuts up."""

    value: float
    unit: str
    decimals: int
    share: float = 1.0

    def bytes(self, side: int) -> int:
        """At the printed value (0), or at the edge of its rounding (-1, 1)."""
        value = self.value + side * 0.5 / 10**self.decimals
        return int(value * UNITS[self.unit] * self.share)


Answer = str | list[str] | Mapping[str, Any]
"""A dotted path into the answer; several, to be added up; or the number in a line the
engine would print: `{"line": words}`, of several such lines the `index`th, and there
the first number after these words or those of `after`."""

_NUMBER: Final = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call of the api; `pool` stands for its `pool_bytes`."""

    method: str
    params: Mapping[str, object]
    answer: Answer
    pool: Stated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One observation. The answers to its questions add up to the observed number;
    `also` are further numbers of the same log, found in the first answer.
    """

    raw: Json
    id: str
    engine: str
    family: str
    questions: tuple[Question, ...]
    observed: Number
    also: tuple[tuple[Number, Answer], ...]
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A number and kvcore's. `difference` is relative: ours / theirs - 1."""

    theirs: Number
    ours: float | None
    difference: float | None
    agreement: Agreement
    error: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A row compared. It matches when all its numbers do."""

    row: Row
    found: Comparison
    also: tuple[Comparison, ...]

    @property
    def agreement(self) -> Agreement:
        """That of its worst number."""
        order: tuple[Agreement, ...] = ("exact", "close", "off", "refused", "not_asked")
        every = (self.found, *self.also)
        return max((c.agreement for c in every), key=order.index)

    @property
    def matches(self) -> bool:
        return self.agreement in MATCHES


@cache
def rows() -> tuple[Row, ...]:
    """All observations, in the order of the file."""
    text = datafiles.root().joinpath("observed.jsonl").read_text(encoding="utf-8")
    return tuple(read(json.loads(line)) for line in text.splitlines() if line)


def read(raw: Json) -> Row:
    """A line of the file."""
    return Row(
        raw=raw,
        id=raw["id"],
        engine=raw["engine"],
        family=raw["family"],
        questions=tuple(_question(each) for each in raw["kvcore"]),
        observed=_number(raw["observed"]),
        also=tuple((_number(each), each["answer"]) for each in raw.get("also", ())),
        reason=raw.get("reason"),
    )


def _question(raw: Json) -> Question:
    pool = raw.get("pool")
    return Question(
        method=raw["method"],
        params=raw["params"],
        answer=raw["answer"],
        pool=None if pool is None else Stated(**pool),
    )


def _number(raw: Json) -> Number:
    return Number(
        quantity=raw["quantity"],
        value=raw["value"],
        unit=raw["unit"],
        decimals=raw["decimals"],
    )


def evaluate(row: Row, ask: Ask) -> Verdict:
    """What kvcore says to a row."""
    if not row.questions:
        return Verdict(row=row, found=_unanswered(row.observed, None), also=())
    first = row.questions[0]
    return Verdict(
        row=row,
        found=_compared(
            row.observed, [(each, each.answer) for each in row.questions], ask
        ),
        also=tuple(_compared(n, [(first, answer)], ask) for n, answer in row.also),
    )


def _compared(
    theirs: Number, asked: list[tuple[Question, Answer]], ask: Ask
) -> Comparison:
    try:
        ours = _ours(theirs, asked, ask, 0)
        exact = _within(theirs, ours, ours)
        if not exact and any(question.pool for question, _ in asked):
            low, high = (_ours(theirs, asked, ask, side) for side in (-1, 1))
            exact = _within(theirs, low, high)
    except _Refused as refusal:
        return _unanswered(theirs, refusal.error)
    close = abs(ours - theirs.value) <= CLOSE * theirs.value + theirs.rounding
    return Comparison(
        theirs=theirs,
        ours=ours,
        difference=ours / theirs.value - 1,
        agreement="exact" if exact else "close" if close else "off",
    )


def _within(theirs: Number, low: float, high: float) -> bool:
    slack = theirs.rounding * (1 + 1e-9)
    return low - slack <= theirs.value <= high + slack


def _unanswered(theirs: Number, error: Json | None) -> Comparison:
    return Comparison(
        theirs=theirs,
        ours=None,
        difference=None,
        agreement="refused" if error else "not_asked",
        error=error,
    )


class _Refused(Exception):
    """kvcore answered with an error object, or without the number."""

    def __init__(self, error: Json) -> None:
        self.error = error
        super().__init__(error.get("message"))


def _ours(
    theirs: Number, asked: list[tuple[Question, Answer]], ask: Ask, side: int
) -> float:
    """kvcore's number in the observed unit, with the pools at one side of rounding."""
    total = 0.0
    for question, answer in asked:
        params = dict(question.params)
        if question.pool is not None:
            params["pool_bytes"] = question.pool.bytes(side)
        found = ask(question.method, params)
        if "error" in found:
            raise _Refused(found["error"])
        if isinstance(answer, Mapping):
            # Printed in the unit that was observed.
            total += _printed(found, answer)
        else:
            paths = [answer] if isinstance(answer, str) else answer
            total += sum(_at(found, path) for path in paths) / UNITS[theirs.unit]
    return total


def _at(answer: Json, path: str) -> float:
    found: Any = answer
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return float(found)


def _printed(answer: Json, wanted: Mapping[str, Any]) -> float:
    words: str = wanted["line"]
    lines = [line for line in answer["pool"]["log_lines"] if words in line]
    index: int = wanted.get("index", 0)
    if index >= len(lines):
        raise _Refused({"code": "no_such_line", "params": {"line": words}})
    text = lines[index].partition(wanted.get("after", words))[2]
    number = _NUMBER.search(text.replace(",", ""))
    if number is None:
        raise _Refused({"code": "no_such_line", "params": {"line": words}})
    return float(number.group())


def score(verdicts: Iterable[Verdict]) -> Json:
    """Matched rows and all rows: of everything, by engine and by architecture."""
    total = {"matched": 0, "total": 0}
    engines: dict[str, dict[str, int]] = {}
    families: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        row = verdict.row
        for counts in (
            total,
            engines.setdefault(row.engine, {"matched": 0, "total": 0}),
            families.setdefault(row.family, {"matched": 0, "total": 0}),
        ):
            counts["matched"] += verdict.matches
            counts["total"] += 1
    return {**total, "engines": engines, "families": families}


@cache
def verdicts(ask: Ask) -> tuple[Verdict, ...]:
    """All rows compared, in the order of the file."""
    return tuple(evaluate(row, ask) for row in rows())


def answer_evidence(given: Mapping[str, object], ask: Ask) -> Json:
    """The api's `evidence`: all rows (or that of `id`) with verdicts, and the score."""
    wanted = Params(given, frozenset({"id"})).text("id", "")
    found = [v for v in verdicts(ask) if wanted in ("", v.row.id)]
    if not found:
        raise invalid("id", wanted, "the id of an observation")
    return {"rows": [verdict_json(v) for v in found], "score": score(found)}


def verdict_json(verdict: Verdict) -> Json:
    """A row as in the file, with what kvcore says to it."""
    return {
        **verdict.row.raw,
        "agreement": verdict.agreement,
        "matches": verdict.matches,
        "found": _comparison_json(verdict.found),
        "also_found": [_comparison_json(each) for each in verdict.also],
    }


def _comparison_json(found: Comparison) -> Json:
    return {
        "theirs": found.theirs.value,
        "ours": found.ours,
        "unit": found.theirs.unit,
        "difference": found.difference,
        "agreement": found.agreement,
        "error": found.error,
    }
