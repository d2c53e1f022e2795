"""Where the shipped facts are: `kvcore.data` when installed, data/ in a checkout."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any


@cache
def root() -> Traversable:
    try:
        return files("kvcore.data")
    except ModuleNotFoundError:
        return files("kvcore").joinpath("..", "data")


def read_json(name: str) -> Any:
    """The JSON in the data file of that name."""
    return json.loads(root().joinpath(name).read_bytes())
