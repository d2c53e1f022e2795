"""Prints the score at the end: how many numbers of others kvcore reproduces.

Observed rows (data/observed.jsonl) are counted by engine and by architecture. Executed
ones are those of data/ here, which the engines' own code answered: rows in the files,
and how many of the tests of them, one for each row or several, passed in this run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kvcore import api, evidence

HERE: Final = Path(__file__).parent
OBSERVED: Final = "observed"


class Score:
    """Remembers which tests of this folder passed, and prints the score."""

    def __init__(self) -> None:
        self.passed: dict[str, dict[str, bool]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, name = report.nodeid.partition("::")
        module = Path(path)
        if module.parent.name == HERE.name:
            tests = self.passed[module.stem.removeprefix("test_")]
            tests[name] = tests.get(name, True) and not report.failed

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        if self.passed:
            terminalreporter.section("numbers of others")
            for line in self.lines():
                terminalreporter.line(line)

    def lines(self) -> Iterator[str]:
        if OBSERVED in self.passed:
            yield from observed_lines(evidence.score(evidence.verdicts(api.call)))
        for engine, rows in sorted(executed_rows().items()):
            tests = self.passed.get(engine)
            if tests:
                agree = f"{sum(tests.values())} of {len(tests)} tests agree"
                yield f"executed {engine:16} {rows:5} rows, {agree}"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Score(), "kvcore-score")


def observed_lines(score: Mapping[str, Any]) -> Iterator[str]:
    """Matched / total of all observed rows, by engine and by architecture."""
    yield f"observed {'all':16} {_share(score)}"
    for title in ("engines", "families"):
        counted: dict[str, dict[str, int]] = score[title]
        for name in sorted(counted, key=lambda name: -counted[name]["total"]):
            yield f"observed {name:16} {_share(counted[name])}"


def _share(counts: Mapping[str, int]) -> str:
    return f"{counts['matched']:5} / {counts['total']}"


def executed_rows() -> dict[str, int]:
    """Engine -> rows of its data files (`engine.json`, `engine_executed.json`)."""
    counts: dict[str, int] = defaultdict(int)
    for test in HERE.glob("test_*.py"):
        engine = test.stem.removeprefix("test_")
        for path in (HERE / "data").glob(f"{engine}*.json"):
            if path.stem in (engine, f"{engine}_executed"):
                counts[engine] += _rows(path)
    return counts


def _rows(path: Path) -> int:
    """Objects in the lists of a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    lists = [data] if isinstance(data, list) else data.values()
    return sum(
        isinstance(row, dict)
        for found in lists
        if isinstance(found, list)
        for row in found
    )
