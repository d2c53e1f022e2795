"""An engine's log explained: what it says, what kvcore says, and why they differ.

Lines are read by the wordings of each engine (a module each), the scenario they
describe is asked of the api itself, and numbers that differ are asked again under
every hypothesis: a cause is what reproduces the printed number, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvcore.errors import MissingField, Notice
from kvcore.logs.baseline import Baseline, form
from kvcore.logs.compare import Comparing
from kvcore.logs.devices import accelerator
from kvcore.logs.facts import Reading
from kvcore.logs.names import Ask, LogModel, model_of
from kvcore.logs.reading import ENGINES, read
from kvcore.logs.requests import Request
from kvcore.logs.text import HEAD, TAIL
from kvcore.params import MODEL, Params, invalid

Json = dict[str, Any]

LOG: Final = MODEL | {"text", "tail", "gpu", "engine_version", "questions"}


class Explained:
    """A log, read and explained as far as has been asked."""

    def __init__(self, given: Mapping[str, object], ask: Ask) -> None:
        params = Params(given, LOG)
        text, tail = params.get("text"), params.get("tail")
        if text is None:
            raise MissingField(field="text")
        for name, value in (("text", text), ("tail", tail)):
            if not isinstance(value, str | None):
                raise invalid(name, value, "a text")
        self.reading = read(str(text), None if tail is None else str(tail))
        named = {k: v for k, v in given.items() if k in MODEL and v is not None}
        self.model = model_of(self.reading, named, ask)
        self.baseline: Baseline | None = None
        if self.model is not None and self.reading.engine is not None:
            self.baseline = Baseline(self.reading, self.model, given, ask)
            self.request = self.baseline.request()
            self.comparing = Comparing(self.baseline, self.request, ask)

    def answer(self, questions: int | None) -> Json:
        """After so many questions in all; None asks to the end."""
        reading, model, baseline = self.reading, self.model, self.baseline
        answer: Json = {
            "engine": reading.engine,
            "engine_version": reading.version,
            "model": None if model is None else model.id or model.shown["model_type"],
            "model_printed": reading.word("model"),
            "gpu": accelerator(reading.devices),
            "gpus_printed": [device.name for device in reading.devices],
            "settings": dict(reading.settings),
            "numbers": [fact.to_json() for fact in reading.facts],
            "comparisons": [],
            "form": {},
            "understood": list(ENGINES),
            "complete": True,
            "asked": 0,
        }
        notices = list(_notices(reading, model))
        if baseline is not None:
            self.comparing.go_on(questions)
            found = self.comparing.comparisons()
            answer["comparisons"] = [each.to_json() for each in found]
            answer["complete"] = self.comparing.complete
            answer["asked"] = self.comparing.asked
            answer["form"] = form(baseline, self.request)
            notices += _engine_notices(baseline, self.request, compared=bool(found))
        answer["warnings"] = [notice.to_json() for notice in notices]
        return answer


class _Unfinished:
    """The log that is being explained in parts: asking on goes on where it stopped.

    What is answered is the same without it, only later.
    """

    def __init__(self) -> None:
        self._question: object = None
        self._log: Explained | None = None

    def take(self, question: object, questions: int | None) -> Explained | None:
        found, same = self._log, self._question == question
        self._log = self._question = None
        if found is None or not same:
            return None
        if questions is not None and found.comparing.asked > questions:
            return None
        return found

    def keep(self, question: object, log: Explained) -> None:
        self._question, self._log = question, log


_unfinished: Final = _Unfinished()


def answer_log(given: Mapping[str, object], ask: Ask) -> Json:
    """The api's `log`: all of it, or what `questions` questions to kvcore tell."""
    questions = Params(given, LOG).integer("questions", None)
    question = (ask, {k: v for k, v in given.items() if k != "questions"})
    log = _unfinished.take(question, questions) or Explained(given, ask)
    answer = log.answer(questions)
    if not answer["complete"]:
        _unfinished.keep(question, log)
    return answer


def _notices(reading: Reading, model: LogModel | None) -> list[Notice]:
    found: list[Notice] = []
    if reading.cut:
        found.append(Notice("log_cut", {"head": HEAD, "tail": TAIL}))
    if not reading.facts and not reading.settings:
        return [*found, Notice("log_not_understood", {"engines": list(ENGINES)})]
    if reading.starts > 1:
        found.append(Notice("log_has_several_starts", {"starts": reading.starts}))
    if len(reading.engines) > 1:
        found.append(
            Notice(
                "log_has_several_engines",
                {"engines": list(reading.engines), "engine": reading.engine or ""},
            )
        )
    return found + _model_notices(reading, model)


def _model_notices(reading: Reading, model: LogModel | None) -> list[Notice]:
    printed = (reading.word("model") or "")[:100]
    if reading.engine is None:
        return []
    if model is None and printed:
        return [Notice("log_model_unknown", {"model": printed})]
    if model is None:
        return [Notice("log_model_missing", {})]
    if model.assumed:
        assumed = {"printed": (model.printed or "")[:100], "model": model.id or ""}
        return [Notice("log_model_assumed", assumed)]
    return []


def _engine_notices(
    baseline: Baseline, request: Request, *, compared: bool
) -> list[Notice]:
    if baseline.profile is None and not compared:
        engine = baseline.reading.engine or ""
        return [Notice("log_engine_not_computed", {"engine": engine})]
    return _version_notices(baseline.reading, request)


def _version_notices(reading: Reading, request: Request) -> list[Notice]:
    used = request.params.get("engine_version")
    if not isinstance(used, str) or reading.version in (None, used):
        return []
    return [
        Notice(
            "log_version_nearest",
            {
                "engine": reading.engine or "",
                "version": reading.version,
                "used": used,
            },
        )
    ]
