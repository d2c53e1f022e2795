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
from kvcore.logs.compare import comparisons
from kvcore.logs.facts import Reading
from kvcore.logs.names import Ask, LogModel, model_of
from kvcore.logs.reading import ENGINES, read
from kvcore.logs.requests import Request
from kvcore.params import MODEL, Params, invalid

Json = dict[str, Any]

LOG: Final = MODEL | {"text", "gpu", "engine_version"}


def answer_log(given: Mapping[str, object], ask: Ask) -> Json:
    """The api's `log`."""
    params = Params(given, LOG)
    text = params.get("text")
    if text is None:
        raise MissingField(field="text")
    if not isinstance(text, str):
        raise invalid("text", text, "a text")
    reading = read(text)
    named = {k: v for k, v in given.items() if k in MODEL and v is not None}
    model = model_of(reading, named, ask)
    answer: Json = {
        "engine": reading.engine,
        "engine_version": reading.version,
        "model": None if model is None else model.id or model.shown["model_type"],
        "model_printed": reading.word("model"),
        "settings": dict(reading.settings),
        "numbers": [fact.to_json() for fact in reading.facts],
        "comparisons": [],
        "form": {},
        "understood": list(ENGINES),
    }
    notices = list(_notices(reading, model))
    if model is not None and reading.engine is not None:
        baseline = Baseline(reading, model, given, ask)
        request = baseline.request()
        answer["comparisons"] = [
            c.to_json() for c in comparisons(baseline, request, ask)
        ]
        answer["form"] = form(baseline, request)
        notices += _version_notices(reading, request)
    answer["warnings"] = [notice.to_json() for notice in notices]
    return answer


def _notices(reading: Reading, model: LogModel | None) -> list[Notice]:
    found: list[Notice] = []
    if not reading.facts and not reading.settings:
        return [Notice("log_not_understood", {"engines": list(ENGINES)})]
    if reading.starts > 1:
        found.append(Notice("log_has_several_starts", {"starts": reading.starts}))
    if len(reading.engines) > 1:
        found.append(
            Notice(
                "log_has_several_engines",
                {"engines": list(reading.engines), "engine": reading.engine or ""},
            )
        )
    if model is None:
        printed = reading.word("model") or ""
        found.append(Notice("log_model_unknown", {"model": printed[:100]}))
    elif model.assumed:
        found.append(
            Notice(
                "log_model_assumed",
                {"printed": (model.printed or "")[:100], "model": model.id or ""},
            )
        )
    return found


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
