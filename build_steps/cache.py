"""What a build made before, kept in .cache by all that it was made from."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from build_steps.tools import ROOT

CACHE = ROOT / ".cache"


def cached_json(kind: str, inputs: Mapping[str, bytes], make: Callable[[], Any]) -> Any:
    """What `make` returned for these very inputs, as JSON gives it back."""

    def packed() -> bytes:
        return gzip.compress(json.dumps(make()).encode(), 1, mtime=0)

    return json.loads(gzip.decompress(cached(kind, inputs, packed)))


def cached(kind: str, inputs: Mapping[str, bytes], make: Callable[[], bytes]) -> bytes:
    """What `make` returned for these very inputs, now or before."""
    target = cache_file(kind, inputs)
    if not target.is_file():
        store(target, make())
    return target.read_bytes()


def cache_file(kind: str, inputs: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for name, data in inputs.items():
        digest.update(f"{name}:{len(data)}:".encode())
        digest.update(data)
    return CACHE / f"{kind}-{digest.hexdigest()[:32]}"


def store(target: Path, data: bytes) -> None:
    target.parent.mkdir(exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_bytes(data)
    partial.replace(target)
