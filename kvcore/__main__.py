"""The command line: `python3 -m kvcore models | gpus | show | ... | log`.

Every command asks `kvcore.api` and prints its answer, as text or with --json as the
same JSON the page gets. Exit code 0, or 2 with one line on standard error (and with
--json the error object on standard output).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any

from kvcore import (
    api,
    assignments,
    decode_text,
    files,
    log_text,
    plan_text,
    show_text,
    traffic_text,
)
from kvcore.command_line import parser
from kvcore.errors import (
    WARNINGS,
    KvcoreError,
    Notice,
)

Json = Mapping[str, Any]

MAX_FILE_BYTES = 2**26

UNSENT = ("command", "json", "engine_option", "set", "model", "file", "hub", "trace")
"""Words of the command line that are no parameters of the api as they are."""


def params_of(arguments: argparse.Namespace) -> files.Given:
    """The api parameters of a parsed command line, and what to say of its files."""
    notices: tuple[Notice, ...] = ()
    given = {
        name: value
        for name, value in vars(arguments).items()
        if name not in UNSENT and value is not None and value is not False
    }
    if getattr(arguments, "engine_option", None):
        options = arguments.engine_option
        given["engine_options"] = assignments.pairs(options, "--engine-option")
    if getattr(arguments, "set", None):
        given["edits"] = assignments.edits(arguments.set, "--set")
    if getattr(arguments, "model", None) is not None:
        model, notices = model_params(arguments.model)
        given.update(model)
    if hasattr(arguments, "file"):
        stdin = sys.stdin.buffer.read(MAX_FILE_BYTES) if arguments.file == "-" else None
        given.update(files.log_params(arguments.file, stdin))
    if "draft_model" in given:
        draft, others = model_params(given.pop("draft_model"))
        given.update({f"draft_{name}": value for name, value in draft.items()})
        notices += others
    return given, notices


def model_params(name: str) -> files.Given:
    """The api parameters of MODEL: standard input, files, or a name."""
    if name == "-":
        return files.params_of_bytes(sys.stdin.buffer.read(MAX_FILE_BYTES + 1)), ()
    return files.found_of(name)


def _answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """The api's answer; with --hub, to what the Hub has of the model."""
    params, notices = params_of(arguments)
    trace = getattr(arguments, "trace", None)
    if arguments.command == "reuse" and trace in _made_up():
        params["preset"], trace = trace, None
    name = getattr(arguments, "hub", None)
    if name is None:
        with files.opened(trace) as sources:
            return _noted(api.call(arguments.command, params, sources), notices)
    client = import_module("kvcore.hub_client")
    found, lookup = client.model_params(name, client.access(os.environ))
    with files.opened(trace) as sources:
        answer = api.call(arguments.command, params | found, sources)
    if "error" not in answer:
        answer["hub"] = lookup.origin
    return _noted(answer, (*lookup.notices, *notices))


def _noted(answer: dict[str, Any], notices: Iterable[Notice]) -> dict[str, Any]:
    """An answer that says what was noticed before it was asked for."""
    if "warnings" in answer:
        answer["warnings"] += [notice.to_json() for notice in notices]
    return answer


def _made_up() -> set[str]:
    return {preset["id"] for preset in api.call("traffic", {})["presets"]}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        hub = any(word.partition("=")[0] == "--hub" for word in words)
        arguments = parser(hub).parse_args(words)
        answer = _answer(arguments)
    except KvcoreError as error:
        answer = {"error": error.to_json()}
    wants_json = "--json" in words
    if "error" in answer:
        if wants_json:
            print(json.dumps(answer))
        line = " ".join(answer["error"]["message"].splitlines())
        print(f"kvcore: {line}", file=sys.stderr)
        return 2
    if wants_json:
        print(json.dumps(answer, indent=1))
    else:
        if "hub" in answer:
            print(show_text.origin(answer["hub"]))
        _WRITERS[arguments.command](answer)
    return 0


def _write_models(answer: Json) -> None:
    for model in answer["models"]:
        context = (
            f"{model['max_context']:>10,}" if model["max_context"] else f"{'?':>10}"
        )
        print(f"{model['id']:<44} {context}  {', '.join(model['attention'])}")


def _write_show(answer: Json) -> None:
    _print(show_text.lines(answer))
    _write_warnings(answer)


def _write_estimate(answer: Json) -> None:
    held = f"{answer['sequences']:,} x {answer['tokens']:,} tokens"
    print(f"{answer['name']}: {held}, KV in {answer['formats']['kv']}")
    _write_bytes("total", answer["total_bytes"])
    _write_bytes("per sequence", answer["bytes_per_sequence"])
    print(f"  {'one more token':<16} {answer['marginal_bytes_per_token']:>22,} bytes")
    for component, count in answer["components"].items():
        if count:
            _write_bytes(f"  {component}", count)
    for line in answer["formula"]:
        values = ", ".join(
            f"{name} {value:,}" for name, value in line["values"].items()
        )
        print(f"  {line['component']}: {line['expression']} = {line['bytes']:,}")
        print(f"      {values}")
        print(f"      {line['source']}")
    if "allocated" in answer:
        allocated = answer["allocated"]
        _write_bytes(
            f"{allocated['engine']} {allocated['engine_version']}",
            allocated["bytes_per_rank"],
        )
    _write_warnings(answer)


def _write_bytes(label: str, count: int) -> None:
    print(plan_text.bytes_line(label, count))


def _write_warnings(answer: Json) -> None:
    if answer.get("edited"):
        print(f"  edited by hand: {', '.join(answer['edited'])}")
    for warning in answer["warnings"]:
        if warning["code"] in WARNINGS:
            print(f"  ! {Notice(warning['code'], warning['params']).message}")


def _write_plan(answer: Json) -> None:
    _print(plan_text.plan_lines(answer))
    _write_warnings(answer)


def _write_levers(answer: Json) -> None:
    _print(plan_text.lever_lines(answer))
    _write_warnings(answer)


def _write_decode(answer: Json) -> None:
    _print(decode_text.decode_lines(answer))
    _write_warnings(answer)


def _write_prices(answer: Json) -> None:
    _print(decode_text.price_lines(answer))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _write_log(answer: Json) -> None:
    _print(log_text.lines(answer))
    _write_warnings(answer)


def _write_gpus(answer: Json) -> None:
    for gpu in answer["gpus"]:
        memory = gpu["memory_bytes"]
        shown = f"{memory // 2**20:>9,} MiB" if memory else f"{'not known':>13}"
        print(f"{gpu['id']:<24} {shown}  {gpu['name']}")


def _write_workload(answer: Json) -> None:
    _print(traffic_text.workload_lines(answer))
    _write_warnings(answer)


def _write_reuse(answer: Json) -> None:
    _print(traffic_text.reuse_lines(answer))
    _write_warnings(answer)


def _write_traffic(answer: Json) -> None:
    for preset in answer["presets"]:
        print(f"{preset['id']:<26} {preset['resembles']}; {preset['source']}")


_WRITERS: Mapping[str, Callable[[Json], None]] = {
    "models": _write_models,
    "show": _write_show,
    "estimate": _write_estimate,
    "plan": _write_plan,
    "levers": _write_levers,
    "decode": _write_decode,
    "prices": _write_prices,
    "workload": _write_workload,
    "reuse": _write_reuse,
    "traffic": _write_traffic,
    "log": _write_log,
    "gpus": _write_gpus,
}


def run() -> int:
    """`main` for a terminal: it may show few characters, its reader may stop early."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


if __name__ == "__main__":
    sys.exit(run())
