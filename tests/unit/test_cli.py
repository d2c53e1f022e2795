"""The command line: the api's answers as text or JSON, exit codes, errors in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from unit_support import REPOSITORY, Json, ask, llama, without

from kvcore import __version__, api, engines
from kvcore.__main__ import main
from kvcore.errors import error_codes

Capture = pytest.CaptureFixture[str]


def run(
    *words: str | bytes, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The command as a shell would start it."""
    return subprocess.run(
        [sys.executable, "-m", "kvcore", *words],
        input=stdin,
        capture_output=True,
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY), **environment},
        timeout=60,
        check=False,
    )


def answer_of(capture: Capture, *words: str) -> Json:
    """The JSON a command prints when it succeeds."""
    assert main([*words, "--json"]) == 0
    out, err = capture.readouterr()
    assert err == ""
    answer: Json = json.loads(out)
    return answer


def check_refused(capture: Capture, *words: str) -> Json:
    """Exit 2, one line on stderr, nothing on stdout; with --json the same as JSON."""
    assert main([*words]) == 2
    out, err = capture.readouterr()
    assert out == ""
    assert err.startswith("kvcore: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert main([*words, "--json"]) == 2
    out, again = capture.readouterr()
    assert again == err
    answer = json.loads(out)
    assert set(answer) == {"error"}
    error: Json = answer["error"]
    assert set(error) == {"code", "params", "message"}
    assert error["code"] in error_codes()
    assert " ".join(error["message"].split()) == " ".join(err[8:].split())
    return error


# Answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "params"),
    [
        ([], {}),
        (["--tokens", "131072"], {"tokens": "131072"}),
        (["--tokens", "128k", "--sequences", "3"], {"tokens": 131072, "sequences": 3}),
        (["--tokens", "0"], {"tokens": 0}),
        (["--kv-format", "fp8", "--indexer-format", "fp4", "--state-format", "bf16"],
         {"kv_format": "fp8", "indexer_format": "fp4", "state_format": "bf16"}),
        (["--no-state", "--draft"], {"no_state": True, "draft": True}),
        (["--encoder-tokens", "100", "--checkpoint-interval", "16"],
         {"encoder_tokens": 100, "checkpoint_interval": 16}),
        (["--engine", "none"], {"engine": "none"}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("model", ["qwen3.5-27b", "deepseek-v4-flash", "t5-3b"])
def test_json_is_the_apis_own(
    capsys: Capture, model: str, words: list[str], params: dict[str, object]
) -> None:
    answer = answer_of(capsys, "estimate", model, *words)
    assert answer == api.call("estimate", {"model": model, **params})


def test_options_before_and_after_the_model(capsys: Capture) -> None:
    answer = answer_of(capsys, "estimate", "--tokens=5", "gpt2", "--sequences=2")
    assert answer == ask("estimate", model="gpt2", tokens=5, sequences=2)


def test_show_and_models_print_the_apis_json(capsys: Capture) -> None:
    assert answer_of(capsys, "show", "kimi-k3") == ask("show", model="kimi-k3")
    assert answer_of(capsys, "models") == ask("models")


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_engines_versions_and_options(capsys: Capture, engine: str) -> None:
    found = engines.ENGINES[engine]
    words = ["--engine", engine, "--engine-version", found.versions[-1]]
    params: dict[str, object] = {"engine": engine, "engine_version": found.versions[-1]}
    answer = answer_of(capsys, "estimate", "llama-3.1-8b", *words)
    assert answer == api.call("estimate", {"model": "llama-3.1-8b", **params})
    assert answer["allocated"]["engine_version"] == found.versions[-1]
    flags = [option for option in found.options if option.kind == "flag"]
    for option in flags[:1]:
        told = "false" if option.default else "true"
        params["engine_options"] = {option.name: told == "true"}
        answer = answer_of(capsys, "estimate", "llama-3.1-8b", *words,
                           "--engine-option", f"{option.name}={told}")  # fmt: skip
        assert answer == api.call("estimate", {"model": "llama-3.1-8b", **params})


# Models -----------------------------------------------------------------------


def test_a_config_in_a_file_under_any_name(capsys: Capture, tmp_path: Path) -> None:
    expected = ask("estimate", model=llama(), tokens=10)
    for name in ("config.json", "CONFIG.JSON", "config.txt", "config"):
        path = tmp_path / name
        path.write_text(json.dumps(llama()), encoding="utf-8")
        assert answer_of(capsys, "estimate", str(path), "--tokens", "10") == expected


def test_a_draft_model_in_a_file(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(llama(vocab_size=100, intermediate_size=64)))
    words = ("plan", "llama-3.1-8b", "--gpu", "h100", "--draft-model", str(path))
    draft = answer_of(capsys, *words)["allocated"]["components"]["draft"]
    assert draft == ask("estimate", model=llama(), tokens=32768)["total_bytes"]


def test_a_config_as_python_writes_it(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(llama(x=float("inf"), y=float("nan"))))
    assert answer_of(capsys, "show", str(path))["facts"]["num_layers"] == 4


def test_a_config_on_standard_input() -> None:
    text = json.dumps(llama()).encode()
    done = run("estimate", "-", "--tokens", "10", "--json", stdin=text)
    assert done.returncode == 0
    assert json.loads(done.stdout) == ask("estimate", model=llama(), tokens=10)
    assert run("show", "-", stdin=b"").returncode == 2


def test_files_that_cannot_be_read(capsys: Capture, tmp_path: Path) -> None:
    for path in (tmp_path / "no_such.json", tmp_path / "folder.json"):
        if path.name == "folder.json":
            path.mkdir()
        error = check_refused(capsys, "show", str(path))
        assert error["code"] == "invalid_argument"
        assert error["params"]["argument"] == "MODEL"
        assert error["params"]["value"] == str(path)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"\xff\xfe\x00", "invalid_json"),
        (b"[]", "invalid_field"),
        (b"{}", "missing_field"),
        (b'{"model_type": 7}', "invalid_field"),
        (b" " * (16 * 2**20 + 1), "input_too_large"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_files_that_hold_no_config(
    capsys: Capture, tmp_path: Path, content: bytes, code: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert check_refused(capsys, "show", str(path))["code"] == code


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_configs_as_windows_writes_them(
    capsys: Capture, tmp_path: Path, encoding: str
) -> None:
    """PowerShell's `>` writes UTF-16, Notepad may begin UTF-8 with a mark."""
    path = tmp_path / "config.json"
    path.write_bytes(json.dumps(llama()).encode(encoding))
    assert answer_of(capsys, "show", str(path))["model_type"] == "llama"


@pytest.mark.parametrize(
    ("words", "missing"),
    [(["plan", "gpt2"], "gpu"), (["plan", "gpt2", "--gpu", "other"], "memory_mib")],
)
def test_what_is_missing_of_a_question_is_not_sought_in_the_config(
    capsys: Capture, words: list[str], missing: str
) -> None:
    error = check_refused(capsys, *words)
    assert (error["code"], error["params"]) == ("missing_field", {"field": missing})
    assert "config" not in error["message"]


# Errors -----------------------------------------------------------------------

REFUSED: Final = {
    "no such model": (["estimate", "no-such-model"], "unknown_model"),
    "no such format": (["estimate", "gpt2", "--kv-format", "fp7"], "unknown_format"),
    "no such engine": (["estimate", "gpt2", "--engine", "vroom"], "unknown_engine"),
    "no number": (["estimate", "gpt2", "--tokens", "many"], "invalid_argument"),
    "negative": (["estimate", "gpt2", "--tokens", "-5"], "invalid_argument"),
    "negative, joined": (["estimate", "gpt2", "--tokens=-5"], "invalid_argument"),
    "zero": (["estimate", "gpt2", "--sequences", "0"], "invalid_argument"),
    "no value": (["estimate", "gpt2", "--tokens"], "invalid_argument"),
    "no model": (["estimate"], "invalid_argument"),
    "empty model": (["estimate", ""], "invalid_argument"),
    "two models": (["estimate", "gpt2", "bloom"], "invalid_argument"),
    "no command": ([], "invalid_argument"),
    "no such command": (["guess"], "invalid_argument"),
    "no such option": (["estimate", "gpt2", "--tokns", "5"], "invalid_argument"),
    "shortened option": (["estimate", "gpt2", "--tok", "5"], "invalid_argument"),
    "an option without a value": (
        ["estimate", "gpt2", "--engine", "none", "--engine-option", "x"],
        "invalid_argument",
    ),
    "an option without an engine": (
        ["estimate", "gpt2", "--engine-option", "x=1"],
        "invalid_argument",
    ),
    "blocks that do not divide": (
        ["estimate", "phi-2", "--kv-format", "q8_0"],
        "format_row_mismatch",
    ),
    "several lines": (["show", "gpt2\nbloom"], "unknown_model"),
    "several lines of options": (["show", "gpt2", "--a\nb"], "invalid_argument"),
    "a name of 10,000 letters": (["show", "x" * 10_000], "unknown_model"),
    "a zero byte": (["show", "gpt2\0"], "unknown_model"),
    "a zero byte in a file's name": (["show", "gpt2\0.json"], "invalid_argument"),
    "a file's name of 10,000 letters": (
        ["show", "x" * 10_000 + ".json"],
        "invalid_argument",
    ),
    "half a character": (["show", "\udcff"], "unknown_model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(capsys: Capture, case: str) -> None:
    words, code = REFUSED[case]
    assert check_refused(capsys, *words)["code"] == code


def test_a_refusal_as_a_shell_sees_it() -> None:
    done = run("estimate", "llama-9")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"kvcore: No model is called 'llama-9'.")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bytes_that_are_no_text(encoding: str) -> None:
    done = run("show", b"\xff\xfe", "--json", PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "unknown_model"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("command", ["show", "estimate"])
def test_a_name_no_terminal_can_show(command: str, encoding: str) -> None:
    text = json.dumps({**llama(), "model_type": "\ud800\u00e9"}).encode()
    done = run(command, "-", stdin=text, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert b"full_attention" in done.stdout


# Text -------------------------------------------------------------------------


def test_an_estimate_for_people(capsys: Capture) -> None:
    assert main(["estimate", "llama-3.1-70b", "--tokens", "131072"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "42,949,672,960 bytes" in out
    assert "40 GiB" in out
    assert "42.95 GB" in out
    assert "327,680 bytes" in out
    assert "num_kv_heads 8" in out


def test_warnings_for_people(capsys: Capture) -> None:
    assert main(["estimate", "gpt2", "--tokens", "2000"]) == 0
    out = capsys.readouterr().out
    assert "! 2000 tokens is beyond the trained context of 1024." in out


def test_a_model_for_people(capsys: Capture) -> None:
    assert main(["show", "gemma-3-1b-it"]) == 0
    out = capsys.readouterr().out
    assert "22 x sliding_window_attention" in out
    assert "window 512" in out
    assert "32,768" in out


def test_an_engines_bytes_for_people(capsys: Capture) -> None:
    words = ["estimate", "llama-3.1-8b", "--engine", "transformers", "--tokens", "16"]
    assert main(words) == 0
    out = capsys.readouterr().out
    version = engines.ENGINES["transformers"].versions[0]
    assert f"transformers {version}" in out
    assert out.count(f"{32 * 16 * 2 * 8 * 128 * 2:,} bytes") == 4  # total, each, kv, it


def test_blocks_that_keep_nothing_for_people(capsys: Capture) -> None:
    assert main(["show", "llama-3-3-nemotron-super-49b-v1"]) == 0
    assert "31 x nothing" in capsys.readouterr().out


def test_all_models_for_people(capsys: Capture) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(ask("models")["models"])
    assert any(line.startswith("llama-3.1-70b ") for line in lines)


def test_a_config_without_a_context_or_attention_for_people(
    capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    config = without(llama(), "max_position_embeddings", "model_type")
    path.write_text(json.dumps(config))
    assert main(["show", str(path)]) == 0
    assert "model_type 'none' is not known" in capsys.readouterr().out
    for command in ("show", "estimate"):
        assert main([command, "mamba-130m-hf"]) == 0
        assert "mamba" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--version"], f"kvcore {__version__}"),
        (["--help"], "estimate"),
        (["estimate", "--help"], "--checkpoint-interval"),
    ],
)
def test_help_and_version(capsys: Capture, words: list[str], part: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    assert part in capsys.readouterr().out


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m kvcore models | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        cwd=REPOSITORY,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[1] == "0"
    assert done.stderr == ""
