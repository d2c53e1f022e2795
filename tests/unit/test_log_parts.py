"""A log asked about in parts: the ends of a long one, and some questions at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_support import explain, llama_log, vllm_log

from kvcore import api, files
from kvcore.__main__ import main
from kvcore.logs.text import HEAD, TAIL, having, lines_of, log_of

Json = dict[str, Any]

FP8: Final = vllm_log("qwen3-8b", gib="6.37", context=16384,
                      asked={"kv_format": "fp8"})  # fmt: skip
"""Says nothing of the fp8 that its numbers have."""
NOISE: Final = 'INFO: 127.0.0.1:3333 - "POST /v1/completions HTTP/1.1" 200 OK\n'
LAST: Final = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 "
    "has a total capacity of 79.15 GiB of which 896.00 MiB is free."
)


def codes(answer: Json) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


# The ends of a long log ---------------------------------------------------------


def test_of_a_long_log_both_ends_are_read() -> None:
    text = FP8 + "\n" + NOISE * ((HEAD + TAIL) // len(NOISE)) + LAST
    answer = explain(text)
    assert "log_cut" in codes(answer)
    lines = {number["quantity"]: number["line"] for number in answer["numbers"]}
    assert lines["pool"] == 2
    assert lines["allocation_refused"] == -1


def test_its_ends_may_come_apart() -> None:
    answer = explain(FP8 + "\n" + "cut o", tail="ff here\n" + LAST + "\n" + NOISE)
    assert "log_cut" in codes(answer)
    lines = {number["quantity"]: number["line"] for number in answer["numbers"]}
    assert lines["pool_tokens"] == 3
    assert lines["allocation_refused"] == -2


def test_no_line_across_the_gap_is_read() -> None:
    """Half of a number at the gap is not a number."""
    answer = explain("Available KV cache memory: 6.3", tail="7 GiB\nGPU KV cache size")
    assert codes(answer)[-1] == "log_not_understood" or answer["numbers"] == []
    answer = explain(
        FP8 + "\nGPU KV cache size: 46,", tail="368 tokens\n# GPU blocks: 7"
    )
    tokens = [n for n in answer["numbers"] if n["quantity"] == "pool_tokens"]
    assert len(tokens) == 1


@settings(max_examples=60)
@given(st.text(alphabet="ab\n", max_size=80), st.text(alphabet="ab\n", max_size=80))
def test_lines_of_the_ends_keep_their_numbers(head: str, tail: str) -> None:
    log = log_of(head, tail)
    lines = log.text.splitlines()
    for number, line in enumerate(lines, 1):
        shown = log.shown(number)
        known = head.splitlines() if shown > 0 else tail.splitlines()
        assert line == known[shown - 1 if shown > 0 else shown]


@given(
    st.text(alphabet="abc\n ", max_size=120),
    st.lists(st.text(alphabet="abc ", min_size=1, max_size=4), max_size=4),
)
def test_lines_are_found_by_what_they_hold(text: str, keys: list[str]) -> None:
    lines = lines_of(text)
    wanted = [line for line in lines if any(key in line.text for key in keys)]
    assert list(having(lines, keys)) == wanted


def test_a_short_log_is_read_whole() -> None:
    log = log_of("a\nb")
    assert (log.text, log.head, log.shown(2)) == ("a\nb", None, 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_of_a_large_file_only_the_ends(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.log"
    with file.open("w", encoding=encoding) as out:
        out.write(FP8 + "\n")
        out.write(NOISE * (2 * sum(files.LOG_BYTES) // len(NOISE)))
        out.write(LAST)
    assert file.stat().st_size > sum(files.LOG_BYTES)
    head, tail = files.log_parts(str(file))
    assert tail is not None
    assert (len(head), len(tail)) == files.LOG_BYTES
    assert main(["log", str(file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "log_cut" in codes(answer)
    assert {n["quantity"] for n in answer["numbers"]} >= {"pool", "allocation_refused"}


# Some questions at a time -------------------------------------------------------


def in_parts(text: str, step: int) -> tuple[Json, list[Json]]:
    questions, seen = 0, []
    while True:
        seen.append(api.call("log", {"text": text, "questions": questions}))
        if seen[-1]["complete"]:
            return seen[-1], seen
        questions = seen[-1]["asked"] + step


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        FP8,
        vllm_log("gemma-3-27b-it", gib="26.15", context=131072,
                 asked={"engine_options": {"disable_hybrid_kv_cache_manager": True}}),
        llama_log("gemma-3-27b-it", context=8192, asked={"swa_full": True}),
    ],
    ids=["fp8", "windows", "llama.cpp"],
)  # fmt: skip
def test_parts_come_to_the_same(text: str, step: int) -> None:
    whole = explain(text)
    last, seen = in_parts(text, step)
    assert last == whole
    first = seen[0]
    assert not first["complete"]
    for early, late in zip(first["comparisons"], last["comparisons"], strict=True):
        assert early["causes"] == []
        assert {**early, "causes": late["causes"]} == late


def test_the_same_question_has_the_same_answer() -> None:
    """Whatever was asked in between."""
    asked = {"text": FP8, "questions": 40}
    first = api.call("log", asked)
    explain(FP8)
    api.call("log", {"text": FP8, "questions": 90})
    api.call("log", {**asked, "text": FP8 + "\n"})
    assert api.call("log", asked) == first
    assert first["asked"] >= 40


def test_numbers_that_agree_ask_nothing_more() -> None:
    text = vllm_log("qwen3-8b", gib="6.37", context=16384, asked={})
    answer = api.call("log", {"text": text, "questions": 0})
    assert answer["complete"]
    assert all(found["agrees"] for found in answer["comparisons"])
