"""The engine that travels inside the page: Pyodide, the library it needs, and kvcore.

Compiling and compressing happen in pinned WebAssembly (Pyodide's own compiler, and
Zopfli), so that the same sources give the same bytes whatever Python, zlib or
processor the machine has.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path

from build_steps.cache import CACHE, cache_file, cached, store
from build_steps.tools import ROOT, SITE, BuildError, run, say

PYODIDE = SITE / "node_modules" / "pyodide"
ESBUILD = SITE / "node_modules" / ".bin" / "esbuild"
STOCK_STDLIB = PYODIDE / "python_stdlib.zip"
WASM = PYODIDE / "pyodide.asm.wasm"
RUN_IN_PYODIDE = SITE / "tools" / "pyodide.mjs"
COMPILE_STDLIB = SITE / "tools" / "compile_stdlib.py"
COMPRESS = SITE / "tools" / "compress.mjs"
ZOPFLI = SITE / "node_modules" / "@gfx" / "zopfli" / "package.json"

MICROPIP_VERSION = "0.11.1"
MICROPIP_SHA256 = "768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3"

TERMINAL_ONLY = ("__main__.py", "command_line.py", "hub_client.py")
"""Modules that the page never imports, and whose imports it need not carry."""

EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
PACKAGE_FOLDERS = ("kvcore", "data")
PACKAGE_FILES = ("*.py", "py.typed", "*.json", "*.jsonl")


def wheel() -> tuple[str, bytes]:
    """Name and bytes of the kvcore wheel: the same sources, the same bytes."""
    sources = package_sources(ROOT)
    contents = {name: path.read_bytes() for name, path in sources.items()}
    packed = cached("wheel", contents, lambda: _build_wheel(sources))
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        folder = next(name for name in archive.namelist() if ".dist-info/" in name)
    return f"{folder.split('.dist-info/')[0]}-py3-none-any.whl", packed


def package_sources(root: Path) -> dict[str, Path]:
    """Every file a wheel is made from, by its path in the checkout."""
    found = [root / "pyproject.toml", root / "README.md"]
    for folder in PACKAGE_FOLDERS:
        for pattern in PACKAGE_FILES:
            found += (root / folder).rglob(pattern)
    return {
        path.relative_to(root).as_posix(): path
        for path in sorted(found)
        if path.is_file()
    }


@cache
def package_contents() -> dict[str, bytes]:
    """The package's own files; README and pyproject.toml decide no number."""
    return {
        name: path.read_bytes()
        for name, path in package_sources(ROOT).items()
        if "/" in name
    }


def _build_wheel(sources: Mapping[str, Path]) -> bytes:
    # In a copy: building in place would leave folders behind and pick up old ones.
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "source")
        for name, path in sources.items():
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
        flags = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch]
        run([*pip, *flags, copy])
        (built,) = Path(scratch).glob("*.whl")
        return normalised_zip(built.read_bytes())


def normalised_zip(packed: bytes) -> bytes:
    """The same members in order of name, without the times and rights of a machine.

    Stored, not deflated: the page compresses the whole archive better than its parts.
    """
    result = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(packed)) as source,
        zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as target,
    ):
        for name in sorted(source.namelist()):
            member = zipfile.ZipInfo(name, EARLIEST_ZIP_DATE)
            member.create_system = 3
            member.external_attr = 0o644 << 16
            target.writestr(member, source.read(name))
    return result.getvalue()


def imported_modules(sources: Iterable[str], own: str = "kvcore") -> list[str]:
    """Modules outside `own` that Python sources import, however deep inside."""
    found: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return sorted(name for name in found if name.split(".")[0] != own)


def stdlib() -> bytes:
    """The compiled part of the standard library that kvcore and Pyodide import."""
    modules = imported_modules(
        path.read_text("utf-8")
        for path in sorted((ROOT / "kvcore").rglob("*.py"))
        if path.name not in TERMINAL_ONLY
    )
    inputs = {
        "stock": STOCK_STDLIB.read_bytes(),
        "script": COMPILE_STDLIB.read_bytes(),
        "modules": " ".join(modules).encode(),
    }
    return cached("stdlib", inputs, lambda: _compile_stdlib(modules))


def _compile_stdlib(modules: list[str]) -> bytes:
    say("Compiling the standard library for the page ...")
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "stdlib.zip")
        in_pyodide(COMPILE_STDLIB, host(STOCK_STDLIB), host(target), *modules)
        return target.read_bytes()


def bundle(entry: Path, *flags: str) -> bytes:
    """A script or style sheet with all it imports, minified by esbuild."""
    command = [ESBUILD, entry, "--bundle", "--minify", "--log-level=warning", *flags]
    made = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return made.stdout.strip()


def worker() -> bytes:
    """The worker's one module: Pyodide's loader and the handler of requests."""
    # Pyodide tries Node's modules only under Node; its own warnings are not ours.
    flags = ("--format=esm", "--external:node:*", "--log-level=error")
    return bundle(SITE / "src" / "worker.js", *flags)


def payloads(kvcore_wheel: bytes) -> dict[str, str]:
    """The parts of the engine by name, each as base64 of gzip."""
    parts = {
        "worker": worker(),
        "wasm": WASM.read_bytes(),
        "stdlib": stdlib(),
        "kvcore": kvcore_wheel,
    }
    return {
        name: base64.b64encode(data).decode() for name, data in gzipped(parts).items()
    }


def gzipped(parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Every part compressed with gzip; those seen before come from the cache."""
    targets = {name: gzip_file(data) for name, data in parts.items()}
    missing = {name for name, target in targets.items() if not target.is_file()}
    if missing:
        say(f"Compressing the engine's parts ({', '.join(sorted(missing))}) ...")
        with tempfile.TemporaryDirectory() as scratch:
            for name in missing:
                Path(scratch, name).write_bytes(parts[name])
            run(["node", COMPRESS, *(Path(scratch, name) for name in missing)])
            for name in missing:
                store(targets[name], Path(scratch, f"{name}.gz").read_bytes())
    return {name: target.read_bytes() for name, target in targets.items()}


def gzip_file(data: bytes) -> Path:
    """Where these bytes are kept once they are compressed."""
    tool = COMPRESS.read_bytes() + ZOPFLI.read_bytes()
    return cache_file("gzip", {"tool": tool, "data": data})


def micropip_wheel() -> Path:
    """The pinned micropip, which only a test uses, as Pyodide's Python takes it."""
    target = CACHE / f"micropip-{MICROPIP_VERSION}-py3-none-any.whl"
    if not target.is_file():
        CACHE.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        python = ["--python-version", "3.14", "--only-binary", ":all:", "--no-deps"]
        package = f"micropip=={MICROPIP_VERSION}"
        run([*pip, "-qq", *python, "--dest", CACHE, package])
    found = hashlib.sha256(target.read_bytes()).hexdigest()
    if found != MICROPIP_SHA256:
        raise BuildError(f"{target.name} is not the file that was pinned: {found}")
    return target


def in_pyodide(script: Path, *arguments: str) -> None:
    run(["node", RUN_IN_PYODIDE, script, *arguments])


def host(path: Path) -> str:
    """A path of this machine as a script inside Pyodide sees it."""
    return f"/host{path.resolve().as_posix()}"
