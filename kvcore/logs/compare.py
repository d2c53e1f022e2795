"""Theirs and ours: which numbers agree, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kvcore.logs.baseline import Baseline
from kvcore.logs.causes import Cause, Causes, explain
from kvcore.logs.facts import Fact
from kvcore.logs.names import Ask
from kvcore.logs.queries import queries
from kvcore.logs.requests import Asker, Ours, Query, Request

Json = dict[str, Any]

MAX_ASKED: Final = 2000
"""Questions for one log; there are about a hundred hypotheses, asked thrice each."""
MAX_COMPARED: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A printed number and kvcore's, with what makes them one."""

    fact: Fact
    ours: Ours | None
    agrees: bool
    causes: tuple[Cause, ...]
    error: Json | None

    def to_json(self) -> Json:
        ours = None if self.ours is None else self.ours.value
        theirs = self.fact.value
        return {
            "quantity": self.fact.quantity,
            "theirs": theirs,
            "ours": ours,
            "unit": self.fact.unit,
            "printed_unit": self.fact.printed_unit,
            "decimals": self.fact.decimals,
            "line": self.fact.line,
            "text": self.fact.text,
            "difference": ours / theirs - 1 if ours is not None and theirs else None,
            "agrees": self.agrees,
            "causes": [cause.to_json() for cause in self.causes],
            "error": self.error,
        }


class Comparing:
    """All comparable numbers of a log, explained as far as has been asked."""

    def __init__(self, baseline: Baseline, request: Request, ask: Ask) -> None:
        self._asker = Asker(ask, MAX_ASKED)
        self._first: list[tuple[Query, Ours | None, Json | None]] = []
        for query in queries(baseline.reading, request)[:MAX_COMPARED]:
            self._asker.error = None
            ours = self._asker.number(query, request)
            if ours is not None or self._asker.error is not None:
                self._first.append((query, ours, self._asker.error))
        self._open = [
            query
            for query, ours, _ in self._first
            if ours is None or not ours.reproduces(query.fact)
        ]
        self._causes: Causes | None = None if self._open else {}
        self._steps = explain(baseline, request, self._open, self._asker)

    @property
    def complete(self) -> bool:
        return self._causes is not None

    @property
    def asked(self) -> int:
        return self._asker.asked

    def go_on(self, questions: int | None) -> None:
        """Asks until so many questions have been asked in all, or (None) to the end."""
        while not self.complete and (questions is None or self.asked < questions):
            try:
                next(self._steps)
            except StopIteration as done:
                self._causes = done.value

    def comparisons(self) -> tuple[Comparison, ...]:
        causes = self._causes or {}
        return tuple(
            Comparison(
                fact=query.fact,
                ours=ours,
                agrees=query not in self._open,
                causes=causes.get(id(query), ()),
                error=error,
            )
            for query, ours, error in self._first
        )
