"""`python3 -m kvcore log`: a log from a file or standard input, explained."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from kvcore.__main__ import main

LOG = (
    "INFO [gpu_worker.py:298] Available KV cache memory: 6.37 GiB\n"
    "INFO GPU KV cache size: 92,768 tokens, Maximum concurrency for 16,384 tokens per "
    "request: 5.66x\n"
)


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "vllm.log"
    file.write_text(LOG, encoding="utf-8")
    assert main(["log", str(file), "--model", "qwen3-8b"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "vllm : qwen3-8b"
    assert "differs  pool_tokens 92,768 tokens, kvcore 46,384 tokens" in shown
    assert "    The KV cache is kept in fp8." in shown


def test_utf_16_of_powershell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vllm.log"
    file.write_bytes(LOG.encode("utf-16"))
    assert main(["log", str(file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [n["value"] for n in answer["numbers"]] == [6.37, 92768, 5.66]


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(LOG.encode() + b"\xff"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["log", "-"]) == 0
    shown = capsys.readouterr().out
    assert "model unknown" in shown
    assert "! The log names no model" in shown


def test_no_such_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "nowhere.log", "--json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"]["params"]["argument"] == "FILE"
    assert len(shown.err.splitlines()) == 1
