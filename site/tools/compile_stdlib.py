"""Writes the part of Python's standard library that the page needs, compiled.

Runs inside Pyodide (pyodide.mjs). Arguments: the stock python_stdlib.zip, the archive
to write, and the modules that kvcore imports. Starting from bytecode takes less than
half the processor time of starting from source, and the parts left out would only be
carried around. Python's import system accepts such an archive as it is.
"""

import importlib
import importlib.util
import sys
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from types import CodeType

# Kept whole: what is imported from them depends on what a program does.
WHOLE_PACKAGES = (
    "encodings/",
    "collections/",
    "importlib/",
    "json/",
    "re/",
    "_pyodide/",
)
# Code pages of single systems, and what only looks at installed packages.
LEFT_OUT = (
    "importlib/metadata/",
    "encodings/cp",
    "encodings/mac_",
    "encodings/iso",
    "encodings/koi8",
    "encodings/euc",
    "encodings/big5",
)
EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def imported_members() -> set[str]:
    """The archive's members that the modules imported so far came from."""
    prefix = next(entry for entry in sys.path if entry.endswith(".zip")) + "/"
    files = (getattr(module, "__file__", None) for module in sys.modules.values())
    return {file.removeprefix(prefix) for file in files if file and prefix in file}


def members_to_keep(stock: zipfile.ZipFile, imported: set[str]) -> list[str]:
    whole = {
        name
        for name in stock.namelist()
        if name.endswith(".py")
        and name.startswith(WHOLE_PACKAGES)
        and not name.startswith(LEFT_OUT)
    }
    return sorted(name for name in imported | whole if not is_frozen(name))


def is_frozen(member: str) -> bool:
    """Whether the interpreter holds this module itself and never reads the file."""
    name = member.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin == "frozen"


def compiled(name: str, source: bytes) -> bytes:
    """A .pyc file that Python uses without looking for its source."""
    code = unlined(compile(source, name, "exec", dont_inherit=True, optimize=2))
    source_hash = importlib.util.source_hash(source)
    return bytes(_code_to_hash_pyc(code, source_hash, checked=False))


def unlined(code: CodeType) -> CodeType:
    """The same code with every instruction on its function's first line.

    Tables of lines and columns are two fifths of the archive, and only tracebacks
    through this library read them; kvcore itself travels as source. The format is that
    of CPython's Objects/locations.md: entries of up to 8 code units, kind 13 (a line,
    no columns), line delta 0.
    """
    full, rest = divmod(len(code.co_code) // 2, 8)
    lengths = [8] * full + ([rest] if rest else [])
    table = b"".join(bytes((0x80 | 13 << 3 | length - 1, 0)) for length in lengths)
    constants = (
        unlined(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_consts=tuple(constants), co_linetable=table)


def write_compiled(stock: zipfile.ZipFile, names: list[str], target: str) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            archive.writestr(
                zipfile.ZipInfo(f"{name}c", EARLIEST_ZIP_DATE),
                compiled(name, stock.read(name)),
            )


def main(stock_path: str, target: str, modules: list[str]) -> None:
    for module in modules:
        importlib.import_module(module)
    with zipfile.ZipFile(stock_path) as stock:
        names = members_to_keep(stock, imported_members())
        write_compiled(stock, names, target)


main(argv[1], argv[2], argv[3:])  # noqa: F821  (set by pyodide.mjs)
