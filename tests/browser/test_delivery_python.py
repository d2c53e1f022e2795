"""kvcore in Pyodide answers as in CPython: the page's own parts, the served wheel."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from build_steps.engine import RUN_IN_PYODIDE, host, micropip_wheel
from kvcore import api, engines

CONTEXTS = (1, 4_096, 131_072, 1_000_000)

ANSWER_EACH = """
import sys, zipfile
from pathlib import Path

wheel, packages, requests, answers = argv[1:]
zipfile.ZipFile(wheel).extractall(packages)
sys.path.insert(0, packages)

from kvcore.api import respond

lines = Path(requests).read_text("utf-8").splitlines()
Path(answers).write_text("".join(f"{respond(line)}\\n" for line in lines), "utf-8")
"""

IN_CPYTHON = "import sys; argv = sys.argv; exec(sys.stdin.read())"

INSTALL = """
import sys
sys.path.insert(0, argv[1])

import micropip
await micropip.install(argv[2])

from kvcore.api import respond
print(respond(argv[3]))
"""


def run_in_pyodide(script: str, folder: Path, *words: str, stdlib: str = "") -> str:
    path = folder / "script.py"
    path.write_text(script)
    options = ["--stdlib", stdlib] if stdlib else []
    command = ["node", str(RUN_IN_PYODIDE), *options, str(path), *words]
    return run(command)


def run(command: list[str], stdin: str = "") -> str:
    result = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=600
    )
    assert result.returncode == 0, result.stderr[-2_000:]
    return result.stdout


@pytest.fixture(scope="module")
def parts(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The engine's parts as the page carries them, unpacked to files."""
    folder = tmp_path_factory.mktemp("parts")
    document = (dist / "index.html").read_text("utf-8")
    for name, packed in re.findall(r'id="payload-(\w+)">([^<]*)<', document):
        (folder / name).write_bytes(gzip.decompress(base64.b64decode(packed)))
    return {path.name: path for path in folder.iterdir()}


def every_question() -> list[str]:
    models = [entry["id"] for entry in api.call("models", {})["models"]]
    assert len(models) > 500
    engine_ids: list[str | None] = [None, *engines.ENGINES]
    questions: list[tuple[str, dict[str, object]]] = [("models", {}), ("options", {})]
    for model in models:
        questions.append(("show", {"model": model}))
        questions.append(("curve", {"model": model, "points": list(CONTEXTS)}))
        for tokens in CONTEXTS:
            for engine in engine_ids:
                asked = {"model": model, "tokens": tokens, "draft": True}
                chosen = {"engine": engine} if engine else {}
                questions.append(("estimate", {**asked, **chosen}))
    return [
        json.dumps({"method": method, "params": params}) for method, params in questions
    ]


def test_whole_catalog_as_in_cpython(parts: dict[str, Path], tmp_path: Path) -> None:
    questions = every_question()
    asked = tmp_path / "asked.jsonl"
    asked.write_text("\n".join(questions), "utf-8")
    ours, theirs = tmp_path / "pyodide.jsonl", tmp_path / "cpython.jsonl"

    files = [host(parts["kvcore"]), "/packages", host(asked), host(ours)]
    run_in_pyodide(ANSWER_EACH, tmp_path, *files, stdlib=str(parts["stdlib"]))
    files = [str(path) for path in (parts["kvcore"], tmp_path / "it", asked, theirs)]
    run([sys.executable, "-I", "-c", IN_CPYTHON, *files], stdin=ANSWER_EACH)

    answers = ours.read_text("utf-8").splitlines()
    assert len(answers) == len(questions)
    compared = zip(
        questions, answers, theirs.read_text("utf-8").splitlines(), strict=True
    )
    for question, answer, wanted in compared:
        assert answer == wanted, question
        assert "internal_error" not in answer, question
        assert "engine" in question or not answer.startswith('{"error"'), question


def test_wheel_installs_with_micropip(dist: Path, site: str, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    question = '{"method": "estimate", "params": {"model": "llama-3.1-70b-instruct"}}'
    words = (host(micropip_wheel()), f"{site}{wheel.name}", question)
    answer = json.loads(run_in_pyodide(INSTALL, tmp_path, *words))
    assert answer == api.call("estimate", {"model": "llama-3.1-70b-instruct"})


def test_page_carries_the_served_wheel(dist: Path, parts: dict[str, Path]) -> None:
    (wheel,) = dist.glob("*.whl")
    assert parts["kvcore"].read_bytes() == wheel.read_bytes()
