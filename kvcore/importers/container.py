"""What the container of a language model says of it: its class, and its eyes."""

from __future__ import annotations

from collections.abc import Mapping

VISION = ("vision_config", "visual_config", "vit_config")


def architecture(config: Mapping[str, object]) -> str | None:
    """The class that serves the file: the first of `architectures`."""
    listed = config.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else None
    return first if isinstance(first, str) and len(first) <= 100 else None


def vision_tower(config: Mapping[str, object]) -> tuple[int | None, int | None] | None:
    """(num_hidden_layers, hidden_size) of the vision tower; None without one.

    Each is None where the config has no key of that name (Qwen counts `depth`), or of
    Kimi's, whose class renames them: engines that look at a tower look at these two.
    """
    for key in VISION:
        tower = config.get(key)
        if isinstance(tower, Mapping):
            return (
                _size(tower, "num_hidden_layers", "vt_num_hidden_layers"),
                _size(tower, "hidden_size", "vt_hidden_size"),
            )
    return None


def _size(tower: Mapping[str, object], *keys: str) -> int | None:
    for key in keys:
        value = tower.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value if 0 < value < 10**6 else None
    return None
