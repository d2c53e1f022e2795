"""Rows of data/observed.jsonl as the logs they were read from, explained by `log`.

A row agrees, or has the cause listed here (what the source leaves unsaid, found again
by asking), or is listed as unexplained with the reason. Lists are complete both ways.
"""

from __future__ import annotations

from collections.abc import Set
from functools import cache
from typing import Any, Final

import pytest
from observed_logs import log_of

from kvcore import api, evidence

Json = dict[str, Any]

LOGS: Final = {
    row.id: asked for row in evidence.rows() if (asked := log_of(row.raw)) is not None
}

CAUSES: Final[dict[str, Set[str]]] = {
    # Written before 0.20, as the tokens show; the source does not say the version.
    **dict.fromkeys(
        ["vl-061", "vl-063", "vl-065", "vl-080", "vl-082", "vl-083", "vl-089", "vl-098",
         "vl-132"],
        frozenset({"tokens_line_meaning"}),
    ),
    # Other rules, likewise.
    **dict.fromkeys(["vl-084", "vl-095", "vl-096"], frozenset({"engine_version"})),
    # Settings the source leaves unsaid.
    **dict.fromkeys(["vl-066", "vl-068", "vl-112"], frozenset({"tokens_in_flight"})),
    "vl-086": {"draft_layers"},
    "vl-110": {"tokens_in_flight", "engine_version", "draft_layers"},
    "vl-111": {"tokens_in_flight", "engine_version"},
    "vl-130": {"async_scheduling", "draft_layers"},
    "vl-131": {"draft_layers"},
    "vl-134": {"state_dtype"},
    "sg-054": {"gpu_defaults"},
    # Llama 4's chunks in 0.11; ik_llama.cpp without --swa-compress.
    **dict.fromkeys(
        ["vl-032", "ld-026", "ld-027", "ld-028", "ld-033", "ld-034", "ld-035",
         "ld-036"],
        frozenset({"windows_at_full_length"}),
    ),
    # A context of 16,348 in a build that rounds up to 32.
    "lc-057": {"context_padding"},
    # The other node of two has 0.9% less.
    "vl-147": {"poorest_rank"},
}  # fmt: skip
"""Row -> codes that explain its first number together, in one of the answers."""

UNEXPLAINED: Final[dict[str, str]] = {
    "vl-043": "0.08% off; the number of GPUs is not stated",
    "vl-115": "0.8% off; a model cut to one layer",
    "vl-114": "unstated_tokens_in_flight",
    "tr-007": "contradicts_itself",
    "lc-052": "other_build",
    "sg-040": "other_build",
}


@cache
def explained(id: str) -> Json:
    answer = api.call("log", LOGS[id])
    assert "error" not in answer, answer
    return answer


def differing(answer: Json) -> list[Json]:
    return [found for found in answer["comparisons"] if not found["agrees"]]


@pytest.mark.parametrize("id", LOGS)
def test_numbers_are_compared(id: str) -> None:
    assert explained(id)["comparisons"]


@pytest.mark.parametrize("id", [i for i in LOGS if i not in {*CAUSES, *UNEXPLAINED}])
def test_agrees(id: str) -> None:
    assert differing(explained(id)) == []


@pytest.mark.parametrize("id", CAUSES)
def test_has_the_right_cause(id: str) -> None:
    first, *_ = differing(explained(id))
    named = [{c["code"] for c in (cause, *cause["and"])} for cause in first["causes"]]
    assert CAUSES[id] in named


@pytest.mark.parametrize("id", CAUSES)
def test_no_number_of_it_stays_unexplained(id: str) -> None:
    for found in differing(explained(id)):
        assert not {"unexplained", "not_computed"} & {
            c["code"] for c in found["causes"]
        }


@pytest.mark.parametrize("id", UNEXPLAINED)
def test_says_that_it_does_not_know(id: str) -> None:
    for found in differing(explained(id)):
        assert [cause["code"] for cause in found["causes"]] == ["unexplained"]
    assert differing(explained(id))


def test_known_misses_are_among_them() -> None:
    reasons = {row.id: row.reason for row in evidence.rows() if row.reason}
    for id, reason in reasons.items():
        if id in LOGS:
            assert UNEXPLAINED[id] == reason


def test_most_rows_have_a_line() -> None:
    """The others are tables, transfers and sums that no engine prints so."""
    assert len(LOGS) >= 165
