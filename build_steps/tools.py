"""What building and testing need on this machine; standard library only.

Everything is installed inside the checkout, at the versions pinned in pyproject.toml
and site/package-lock.json, and again only when those files change.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

OLDEST_PYTHON = (3, 11)
OLDEST_NODE = 18
SYSTEM_BROWSERS = (
    "chromium-headless-shell",  # first: without a window, every page costs less
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)
DEBIAN_BROWSERS = ("chromium-headless-shell", "chromium")


class BuildError(Exception):
    """Something a person has to mend; the message says what."""


def say(text: str) -> None:
    print(text, flush=True)


def run(command: Sequence[str | Path], cwd: Path | None = None) -> None:
    """Runs a program and stops the build when it fails."""
    result = subprocess.run([str(word) for word in command], check=False, cwd=cwd)
    if result.returncode != 0:
        name = Path(str(command[0])).name
        raise BuildError(f"{name} failed (exit code {result.returncode}).")


def check_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        raise BuildError(
            f"Python {wanted} or newer is needed; this is {sys.version.split()[0]}."
        )


def check_node() -> None:
    hint = f"Install Node.js {OLDEST_NODE} or newer with npm (nodejs.org)."
    if not (shutil.which("node") and shutil.which("npm")):
        raise BuildError(f"Node.js and npm are needed to bundle the page. {hint}")
    version = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    major = re.match(r"v(\d+)", version)
    if not major or int(major[1]) < OLDEST_NODE:
        raise BuildError(f"Node.js {version} is too old. {hint}")


def prepare() -> None:
    """Makes .venv and site/node_modules what the pinned versions say."""
    check_python()
    check_node()
    once(VENV, [ROOT / "pyproject.toml"], _make_venv)
    locks = [SITE / "package.json", SITE / "package-lock.json"]
    once(SITE / "node_modules", locks, _install_node_modules)


def enter_venv(script: Path, arguments: Sequence[str]) -> None:
    """Continues in the project's own Python; returns when already there."""
    if Path(sys.prefix).resolve() == VENV.resolve():
        return
    command = [str(PYTHON), str(script), *arguments]
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def once(folder: Path, inputs: Iterable[Path], make: Callable[[], None]) -> None:
    stamp = folder / ".kvcore-stamp"
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    make()
    stamp.write_text(wanted)


def _make_venv() -> None:
    say("Setting up .venv with the Python tools pinned in pyproject.toml ...")
    if not PYTHON.is_file():
        run([sys.executable, "-m", "venv", VENV])
    pip: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "-qq", "--editable", f"{ROOT}[dev]"])


def _install_node_modules() -> None:
    say("Setting up site/node_modules as pinned in site/package-lock.json ...")
    npm = shutil.which("npm") or "npm"
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    run([npm, "ci", *flags], cwd=SITE)


def chromium() -> Path:
    """A Chromium to test with: named, Playwright's, the system's, or a new one."""
    named = os.environ.get("KVCORE_CHROMIUM")
    if named:
        if not Path(named).is_file():
            raise BuildError(f"KVCORE_CHROMIUM names no file: {named}")
        return Path(named)
    found = _playwright_chromium() or _system_chromium() or _new_chromium()
    if not found:
        raise BuildError(
            "The browser tests need Chromium, and none was found or could be installed."
            " Run one of:\n"
            f"  {PYTHON} -m playwright install --with-deps chromium\n"
            "  sudo apt-get install chromium-headless-shell     (Debian)\n"
            "  KVCORE_CHROMIUM=/path/to/chromium python3 build.py test"
        )
    return found


def _playwright_chromium() -> Path | None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only in .venv)

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return path if path.is_file() else None


def _system_chromium() -> Path | None:
    paths = (shutil.which(name) for name in SYSTEM_BROWSERS)
    return next((Path(path) for path in paths if path), None)


def _new_chromium() -> Path | None:
    say("Chromium is missing; trying Playwright's own download ...")
    environment = {**os.environ, "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000"}
    command = [str(PYTHON), "-m", "playwright", "install", "chromium"]
    if subprocess.run(command, check=False, env=environment).returncode == 0:
        return _playwright_chromium()
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("apt-get"):
        say("That failed; installing the system's package of it ...")
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        for browser in DEBIAN_BROWSERS:
            command = [*install, browser, "fonts-liberation"]
            if subprocess.run(command, check=False, env=quiet).returncode == 0:
                break
    return _system_chromium()
