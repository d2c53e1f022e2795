"""Files on a disk that describe a model, found and read in parts for the command line.

A file is never read as a whole: whoever wants a header seeks to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from kvcore.errors import InvalidArgument, KvcoreError, Notice, SeveralModels
from kvcore.importers import file_groups, gguf_file, model_files, safetensors
from kvcore.importers.byte_source import ByteSource, encoding_of, in_memory
from kvcore.importers.model_files import (
    ADAPTER_CONFIG,
    CONFIGS,
    INDEX,
    MAX_NAMED,
    parts_of,
)

SUFFIXES: Final = (".json", ".gguf", ".safetensors")
"""What ends like this is a file, even where there is none."""

MAX_SHOWN: Final = 1000
MAX_PIPED_BYTES: Final = 2**29

LOG_BYTES: Final = (3 << 20, 1 << 20)
"""Read of a log's beginning and of its end: enough for all characters that kvcore reads
of them at two bytes each, and even, so that none of those is cut in half."""


Given = tuple[dict[str, Any], tuple[Notice, ...]]
"""The api's parameters for a model, and what to say beside its answer."""


def model_params(name: str) -> dict[str, Any]:
    """The api's parameters for MODEL: those of a file or folder, else its name."""
    return found_of(name)[0]


def found_of(name: str) -> Given:
    """The same, and what is to be said of the files."""
    path = Path(name)
    try:
        if _is(Path.is_dir, path):
            return _in_folder(name, path) or ({"model": name}, ())
        found = _files_of(path)
    except KvcoreError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    return (_described(name, found), ()) if found else ({"model": name}, ())


def params_of_bytes(data: bytes) -> dict[str, Any]:
    """The same for what came on standard input."""
    return model_files.describe([in_memory(data, "standard input")])


def log_params(name: str, given: bytes | None = None) -> dict[str, str]:
    """The api's parameters for a log; `given` is one that came on standard input."""
    head, tail = log_parts(name) if given is None else (given, None)
    encoding = encoding_of(head)
    parts = {"text": head} if tail is None else {"text": head, "tail": tail}
    return {
        part: data.decode(encoding, "replace").removeprefix("\ufeff")
        for part, data in parts.items()
    }


def log_parts(name: str) -> tuple[bytes, bytes | None]:
    """A log, or of a long one its first and last bytes."""
    head, tail = LOG_BYTES
    try:
        with Path(name).open("rb") as file:
            start = file.read(head + tail)
            size = file.seek(0, 2)
            if size <= head + tail:
                return start, None
            file.seek(size - tail)
            return start[:head], file.read(tail)
    except (OSError, ValueError) as error:
        raise _unreadable(name, error, "FILE") from None


@contextmanager
def opened(name: str | None) -> Iterator[tuple[ByteSource, ...]]:
    """The file of that name as the api takes it; none without a name."""
    if name is None:
        yield ()
        return
    if name == "-":
        yield (in_memory(sys.stdin.buffer.read(MAX_PIPED_BYTES), "standard input"),)
        return
    path = Path(name)
    try:
        file = path.open("rb")
    except (OSError, ValueError) as error:
        raise _unreadable(name, error, "FILE") from None
    with file:
        yield (_source(file, path),)


def _in_folder(name: str, path: Path) -> Given | None:
    """The model in a folder, as when its files are dropped on the page."""
    paths = sorted(file for file in path.iterdir() if _describes(file.name))
    if not paths:
        if path.is_absolute() or path.suffix.lower() in SUFFIXES or name[:1] == ".":
            raise ValueError("a folder without a config.json or a .gguf file")
        return None
    with ExitStack() as opened:
        found = file_groups.models_in(
            [
                replace(
                    _source(opened.enter_context(file.open("rb")), file),
                    name=f"folder/{file.name}",
                )
                for file in paths
            ]
        )
    if len(found.models) > 1:
        names = [model.name for model in found.models[:MAX_NAMED]]
        raise SeveralModels(count=len(found.models), names=names, most=1)
    return found.models[0].params, found.notices


def _describes(name: str) -> bool:
    """Whether a file of that name says what the model in its folder is."""
    lower = name.lower()
    return lower in (*CONFIGS, ADAPTER_CONFIG) or lower.endswith(
        (INDEX, ".gguf", ".safetensors")
    )


def _described(name: str, paths: Iterable[Path]) -> dict[str, Any]:
    try:
        with ExitStack() as opened:
            return model_files.describe(
                [_source(opened.enter_context(path.open("rb")), path) for path in paths]
            )
    except OSError as error:
        raise _unreadable(name, error) from None


def _unreadable(
    name: str, error: Exception, argument: str = "MODEL"
) -> InvalidArgument:
    problem = getattr(error, "strerror", None) or str(error)
    return InvalidArgument(
        argument=argument,
        value=name[:MAX_SHOWN],
        expected=f"a readable file ({problem})",
    )


def _source(file: BinaryIO, path: Path) -> ByteSource:
    def read(offset: int, length: int) -> bytes:
        file.seek(offset)
        return file.read(length)

    return ByteSource(name=path.name, size=file.seek(0, 2), read=read)


def _files_of(path: Path) -> list[Path]:
    """The files MODEL means; none where it is a name of the catalog."""
    if path.suffix.lower() not in SUFFIXES and not _is(Path.is_file, path):
        return []
    if _is_gguf(path):
        return _beside(path, parts_of(path.name))
    if path.name.lower().endswith(INDEX) or path.name.lower() in CONFIGS:
        return _files_in(path.parent, path)
    if path.suffix.lower() == ".safetensors":
        return _with_config(path)
    return [path]


def _is(question: Callable[[Path], bool], path: Path) -> bool:
    """Whether a path is that; names no file can have are names of models."""
    try:
        return question(path)
    except (OSError, ValueError):
        return False


def _is_gguf(path: Path) -> bool:
    """By its name or, as in a store of blobs, by its first bytes."""
    if path.suffix.lower() == ".gguf":
        return True
    with path.open("rb") as file:
        return gguf_file.is_gguf(_source(file, path))


def _files_in(folder: Path, named: Path | None = None) -> list[Path]:
    """A config and the weights beside it; `named` is the file that was asked for."""
    config = _first(folder, *CONFIGS)
    if named is not None and not named.name.lower().endswith(INDEX):
        config = named
    about = [config] if config else [named] if named else []
    if not about:
        about = _beside(folder / "x", [ADAPTER_CONFIG])
    return [*about, *_weights_in(folder)] if about else []


def _first(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _weights_in(folder: Path) -> list[Path]:
    """The checkpoint's files: an index and all it may name, or the usual names."""
    files = sorted(folder.glob("*.safetensors"))
    index = _index_in(folder)
    if index is not None:
        return [index, *files]
    whole = _first(folder, "model.safetensors")
    if whole is not None:
        return [whole]
    named = [file for file in files if file.name.startswith("model-")]
    return named or files


def _index_in(folder: Path) -> Path | None:
    usual = _first(folder, f"model{INDEX}")
    return usual or next(iter(sorted(folder.glob(f"*{INDEX}"))), None)


def _with_config(path: Path) -> list[Path]:
    """A safetensors file, the others of its checkpoint and the config beside them."""
    folder = path.parent
    about = [*CONFIGS, ADAPTER_CONFIG]
    index = _index_in(folder)
    if index is not None and path.name in _files_named(index):
        return _files_in(folder)
    return _beside(path, [path.name, *parts_of(path.name), *about])


def _files_named(index: Path) -> tuple[str, ...]:
    with index.open("rb") as file:
        return safetensors.read_index(_source(file, index)).files


def _beside(path: Path, names: Iterable[str]) -> list[Path]:
    """Files of these names beside `path`; the path itself even where it is missing."""
    found = [path.with_name(name) for name in dict.fromkeys(names)]
    return [file for file in found if file == path or file.is_file()]
