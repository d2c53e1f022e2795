"""The shape of the code: where imports point, what a module may use, how long it is."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from unit_support import REPOSITORY

from kvcore import errors
from kvcore.errors import WARNINGS, KvcoreError, Notice

PACKAGE: Final = REPOSITORY / "kvcore"
MODULES: Final = sorted(PACKAGE.rglob("*.py"))

ARROWS: Final = {
    "errors": "",
    "datafiles": "",
    "units": "errors",
    "formats": "errors",
    "cache": "errors formats",
    "states": "errors formats cache",
    "model": "errors formats cache states",
    "estimate": "errors formats cache states model",
    "formula": "errors formats cache states model estimate",
    "importers": "errors datafiles formats cache states model",
    "parameters": "errors cache states model importers",
    "catalog": "errors datafiles importers model",
    "accelerators": "errors datafiles",
    "engines": "errors units formats cache states model estimate",
    "weights": "errors formats parameters importers",
    "deployment": "errors accelerators weights model",
    "decode": "errors accelerators cache states model estimate engines deployment "
    "importers limits listing params parameters scenario scenario_params "
    "weight_params",
    "prices": "accelerators datafiles params",
    "traces": "errors importers",
    "workload": "errors importers params listing scenario scenario_params traces",
    "reuse": "errors importers model engines estimate params listing scenario "
    "scenario_params traces workload",
    "scenario": "errors accelerators deployment engines estimate model weights",
    "limits": "errors deployment scenario",
    "plan": "errors deployment engines estimate limits scenario",
    "levers": "errors accelerators cache catalog deployment engines estimate formats "
    "limits listing model params plan planning scenario scenario_params weight_params "
    "weights",
    "device_names": "accelerators",
    "logs": "errors params accelerators device_names",
    "reading": "errors importers model parameters weights",
    "params": "errors units catalog importers model estimate engines accelerators "
    "deployment weights reading",
    "experiments": "errors importers reading",
    "model_fields": "importers model params reading experiments",
    "pooling": "errors params engines accelerators scenario",
    "weight_params": "errors params catalog importers parameters model weights "
    "scenario",
    "scenario_params": "errors params model engines accelerators deployment weights "
    "scenario weight_params",
    "planning": "errors params listing pooling deployment engines plan scenario "
    "scenario_params",
    "listing": "errors params catalog model formats engines accelerators",
    "describing": "errors importers listing params reading",
    "evidence": "errors datafiles params",
    "api": "errors params listing scenario_params pooling planning evidence catalog "
    "importers parameters model estimate formula formats engines "
    "accelerators deployment weights plan levers decode workload reuse logs units hub",
    "hub_names": "errors",
    "hub": "errors params hub_names",
    "hub_client": "errors importers hub hub_names",
    "files": "errors importers",
    "traffic_text": "units",
    "command_line": "errors",
    "log_text": "",
    "plan_text": "units",
    "decode_text": "units",
    "show_text": "units",
    "assignments": "errors",
    "__main__": "errors units assignments command_line decode_text files hub_client "
    "log_text plan_text show_text traffic_text api",
    "__init__": "",
}
"""Part of kvcore -> the parts it may import. Arrows never point back:
`estimate` knows no engine, engines know no config and no GPU, importers know no
estimate, and nothing but the door (`params`, `planning`, `levers`, `api`) opens the
catalog."""

NO_BUSINESS_HERE: Final = {
    "asyncio", "ctypes", "datetime", "http", "multiprocessing", "pickle", "random",
    "requests", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "ssl",
    "subprocess", "tempfile", "threading", "time", "urllib", "uuid", "webbrowser",
}  # fmt: skip
"""No network, processes, threads, clocks or chance: equal questions, equal answers."""

ONLY_AT_THE_TERMINAL: Final = {"argparse", "os", "pathlib", "sys"}
TERMINAL: Final = ("__main__.py", "command_line.py", "files.py")
"""The command line, and what finds files for it."""

ON_THE_NETWORK: Final[dict[str, set[str]]] = {
    "hub_client.py": {"http", "time", "urllib"},
}
"""What asks the Hub for the command line, with time for its patience."""

MAX_LINES: Final = 350

LONGER: Final[dict[str, tuple[int, str]]] = {
    "errors.py": (520, "a class for every error, a sentence for every warning"),
}
"""Module -> how long it may be, and why."""

INTEGERS_ONLY: Final = (
    "cache.py",
    "states.py",
    "estimate.py",
    "formula.py",
    "model.py",
)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Full names of what a module imports, names of packages' members included."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parts_imported(path: Path) -> set[str]:
    """Parts of kvcore that a module imports."""
    found = set()
    for name in imported(path):
        package, _, rest = name.partition(".")
        if package == "kvcore":
            part = rest.split(".")[0]
            found.add(part if part in ARROWS or (PACKAGE / part).exists() else "")
    return found - {""}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    assert part in ARROWS, f"{part}: say in ARROWS what it may import"
    allowed = {*ARROWS[part].split(), part}
    assert parts_imported(path) <= allowed


def test_the_wheel_has_every_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    packages = {path.parent.relative_to(REPOSITORY) for path in MODULES}
    assert {".".join(package.parts) for package in packages} | {"kvcore.data"} == set(
        project["tool"]["setuptools"]["packages"]
    )


def test_the_arrows_themselves_make_no_circle() -> None:
    left = {part: set(allowed.split()) for part, allowed in ARROWS.items()}
    while left:
        free = {part for part, allowed in left.items() if not allowed & set(left)}
        assert free, f"circle among {sorted(left)}"
        left = {part: allowed for part, allowed in left.items() if part not in free}


def test_the_boundaries_that_matter_most() -> None:
    used = {part: set[str]() for part in ARROWS}
    for path in MODULES:
        used[part_of(path)] |= parts_imported(path)
    knows_engines = {part for part, parts in used.items() if "engines" in parts}
    assert "estimate" not in knows_engines
    assert "importers" not in knows_engines
    opens_catalog = {part for part, parts in used.items() if "catalog" in parts}
    assert opens_catalog <= {"params", "weight_params", "listing", "levers", "api"}
    assert not used["engines"] & {"importers", "accelerators", "deployment", "plan"}
    words = {
        "assignments",
        "command_line",
        "decode_text",
        "log_text",
        "plan_text",
        "show_text",
        "traffic_text",
    }
    assert used["__main__"] <= {"api", "errors", "files", "units"} | words
    assert "hub_client" not in set().union(*used.values())
    assert not {part for part, parts in used.items() if "__main__" in parts}
    assert {part for part, parts in used.items() if "api" in parts} == {"__main__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_but_the_standard_library(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported(path)} - {"kvcore"}
    assert outside <= sys.stdlib_module_names
    assert not outside & (NO_BUSINESS_HERE - ON_THE_NETWORK.get(path.name, set()))
    if path.name not in TERMINAL:
        assert not outside & ONLY_AT_THE_TERMINAL


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_but_the_terminal_prints_opens_or_evaluates(path: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    forbidden = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
    if path.name != "__main__.py":
        forbidden |= {"print", "open"}
    assert not called & forbidden


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_bare_assert_and_no_swallowed_error(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        assert not isinstance(node, ast.Assert), f"{name_of(path)}:{node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{name_of(path)}:{node.lineno}"
            silent = all(isinstance(line, ast.Pass) for line in node.body)
            assert not silent, f"{name_of(path)}:{node.lineno}"


@pytest.mark.parametrize("name", INTEGERS_ONLY)
def test_bytes_are_counted_in_integers(name: str) -> None:
    """No float constant, no true division, no float() on the way to a byte."""
    for node in ast.walk(tree_of(PACKAGE / name)):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        assert not isinstance(node, ast.Div), where
        if isinstance(node, ast.Constant):
            assert not isinstance(node.value, float), where
        if isinstance(node, ast.Name):
            assert node.id not in ("float", "round"), where


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_are_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    allowed, reason = LONGER.get(name_of(path), (MAX_LINES, "the rule"))
    assert reason
    assert lines <= allowed


def test_exceptions_from_the_length_are_still_needed() -> None:
    for name in LONGER:
        lines = (PACKAGE / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) > MAX_LINES, f"{name} is short again"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_and_public_class_says_what_it_is(path: Path) -> None:
    tree = tree_of(path)
    assert ast.get_docstring(tree), name_of(path)
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or _is_error(node):
            continue
        if not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name_of(path)}: {node.name}"


def _is_error(node: ast.ClassDef) -> bool:
    """Errors say what they are in their sentence."""
    targets = [t for line in node.body if isinstance(line, ast.Assign)
               for t in line.targets]  # fmt: skip
    return any(isinstance(t, ast.Name) and t.id == "sentence" for t in targets)


def test_types_are_for_others_too() -> None:
    assert (PACKAGE / "py.typed").is_file()


# Errors and warnings ----------------------------------------------------------


def every_error() -> list[type[KvcoreError]]:
    found = [KvcoreError]
    for cls in found:
        found += cls.__subclasses__()
    return found


CONCRETE: Final = [cls for cls in every_error() if "sentence" in vars(cls)]


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_every_error_has_a_code_and_a_sentence(cls: type[KvcoreError]) -> None:
    assert "code" in vars(cls), cls
    assert cls.code.isidentifier()
    assert cls.code == cls.code.lower()
    assert cls.sentence.endswith((".", "{reason}"))
    assert issubclass(cls, ValueError)


def test_codes_are_unique_and_complete() -> None:
    codes = [cls.code for cls in CONCRETE]
    assert len(set(codes)) == len(codes)
    assert errors.error_codes() == tuple(sorted(codes))


def test_the_tree_in_the_docstring_names_every_error() -> None:
    tree = errors.__doc__ or ""
    for cls in every_error():
        assert cls.__name__ in tree


def fields_of(sentence: str) -> dict[str, object]:
    """Values for the placeholders of a sentence."""

    class Any(dict[str, object]):
        def __missing__(self, name: str) -> str:
            self[name] = name
            return name

    values = Any()
    sentence.format_map(values)
    return dict(values)


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_errors_render_their_parameters(cls: type[KvcoreError]) -> None:
    params = fields_of(cls.sentence)
    error = cls(**params)  # type: ignore[arg-type]
    assert "{" not in error.message
    for value in params.values():
        assert str(value) in error.message
    assert error.to_json() == {
        "code": cls.code, "params": params, "message": error.message
    }  # fmt: skip


@pytest.mark.parametrize("code", WARNINGS)
def test_warnings_render_their_parameters(code: str) -> None:
    params = fields_of(WARNINGS[code])
    notice = Notice(code, params)  # type: ignore[arg-type]
    assert "{" not in notice.message
    assert notice.message.endswith(".")
    for value in params.values():
        assert str(value) in notice.message
    assert notice.to_json() == {"code": code, "params": params}


def raised_with(path: Path) -> Iterator[tuple[type[KvcoreError], set[str], int]]:
    """Each `raise SomeError(name=...)`: the class, its parameters, the line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            cls = getattr(errors, node.func.id, None)
            if isinstance(cls, type) and issubclass(cls, KvcoreError):
                names = {word.arg for word in node.keywords if word.arg}
                yield cls, names, node.lineno


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_errors_are_raised_with_the_parameters_of_their_sentence(path: Path) -> None:
    for cls, names, line in raised_with(path):
        missing = set(fields_of(cls.sentence)) - names
        assert not missing, f"{name_of(path)}:{line} {cls.__name__} lacks {missing}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_warnings_are_raised_with_the_parameters_of_their_sentence(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Notice"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            continue
        code = node.args[0].value
        where = f"{name_of(path)}:{node.lineno}"
        assert code in WARNINGS, f"{where} {code}"
        given = node.args[1] if len(node.args) > 1 else ast.Dict(keys=[], values=[])
        if isinstance(given, ast.Dict):
            names = {key.value for key in given.keys if isinstance(key, ast.Constant)}
            assert set(fields_of(WARNINGS[code])) <= names, where
