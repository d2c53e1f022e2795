#!/usr/bin/env python3
"""Builds, serves, tests, checks and measures the calculator; any Python 3.11+.

The first use sets up .venv and site/node_modules; see `python3 build.py --help`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from build_steps import tools
from build_steps.tools import PYTHON, ROOT, BuildError, say

FIRST_PORT = 8000


def build(arguments: argparse.Namespace) -> int:
    from build_steps import output  # noqa: PLC0415  (needs .venv)

    output.build(arguments.base_url)
    return 0


def serve(arguments: argparse.Namespace) -> int:
    from build_steps.output import DIST  # noqa: PLC0415  (needs .venv)
    from build_steps.server import Server  # noqa: PLC0415

    build(arguments)
    try:
        server = Server(DIST, FIRST_PORT if arguments.port is None else arguments.port)
    except OSError as error:
        if arguments.port is not None:
            raise BuildError(f"Port {arguments.port} cannot be used: {error}") from None
        server = Server(DIST)
    say(f"Open {server.url} (stop with Ctrl+C)")
    try:
        server.run()
    except KeyboardInterrupt:
        say("")
    return 0


def check(_: argparse.Namespace) -> int:
    commands = (["ruff", "check"], ["mypy"])
    results = [
        subprocess.run([PYTHON, "-m", *command], check=False, cwd=ROOT)
        for command in commands
    ]
    return max(result.returncode for result in results)


def test(arguments: argparse.Namespace) -> int:
    build(arguments)
    environment = {**os.environ, "KVCORE_CHROMIUM": str(tools.chromium())}
    # One more than cores: a page in a browser waits for a third of a test's time.
    workers = ["--numprocesses", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    command = [PYTHON, "-m", "pytest", *workers, *arguments.pytest]
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


def bench(arguments: argparse.Namespace) -> int:
    from build_steps import bench as benchmark  # noqa: PLC0415  (needs .venv)

    build(arguments)
    os.environ["KVCORE_CHROMIUM"] = str(tools.chromium())
    benchmark.bench()
    return 0


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="build.py")
    commands = parser.add_subparsers(dest="command", required=True)
    for action, summary in (
        (build, "write dist/, ready for any static web host"),
        (serve, "build, then serve dist/ on this machine and print its address"),
        (test, "build, then run the unit, oracle and browser tests"),
        (check, "lint and types"),
        (bench, "build, then measure speed and size, each beside something known"),
    ):
        command = commands.add_parser(action.__name__, help=summary)
        command.set_defaults(action=action, base_url="")
        if action in (build, serve):
            command.add_argument(
                "--base-url",
                default="",
                metavar="URL",
                help="public address of the site, for its sitemap",
            )
        if action is serve:
            command.add_argument("--port", type=int, help="default: 8000 or a free one")
        if action is test:
            command.add_argument(
                "pytest",
                nargs="*",
                metavar="-- ARGUMENT",
                help="passed on to pytest, for example: -- -k offline",
            )
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    arguments = parse(words)
    try:
        tools.prepare()
        tools.enter_venv(Path(__file__).resolve(), words)
        return int(arguments.action(arguments))
    except BuildError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
