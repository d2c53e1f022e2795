"""Names that drivers give devices -> ids of accelerators; never a guess between two."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from kvcore import accelerators
from kvcore.accelerators import MIB, Accelerator

_WORD: Final = re.compile(r"[a-z]+\d*[a-z]*|\d+[a-z]*")
_ASIDE: Final = re.compile(r"\([^)]*\)|\bw/.*")
_SIZE: Final = re.compile(r"(\d{1,3}) ?g(?:i?b)\b")

SAID_BY_ALL: Final = frozenset(
    "nvidia amd apple intel r tm geforce tesla radeon instinct data center gpu "
    "graphics generation workstation edition series corporation ryzen".split()
)
"""Words that tell no two devices of a maker apart."""

FORMS: Final = {
    **dict.fromkeys(("sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "hgx"), "sxm"),
    "pcie": "pcie",
    "nvl": "nvl",
    "hbm3": "sxm",
    "hbm3e": "sxm",
    "ac": "sxm",
}
"""How a board is built, by the words that drivers and catalogs use of it."""

MEMORY_SLACK: Final = 0.12
"""Drivers and runtimes report less than the device has, macOS by its version."""


def accelerator_of(name: str, memory_mib: int | None = None) -> str | None:
    """The id of the accelerator whose driver says `name`; None where it may be two.

    >>> accelerator_of("NVIDIA H100 80GB HBM3")
    'h100-sxm'
    >>> accelerator_of("NVIDIA GeForce RTX 4060 Ti") is None
    True
    >>> accelerator_of("NVIDIA GeForce RTX 4060 Ti", 15944)
    'rtx-4060ti-16'
    """
    said = _Said(name[:200])
    alike = [device for device, cores in _known() if said.core in cores]
    for narrower in (
        [d for d in alike if said.form and _Said(_title(d)).form == said.form],
        [d for d in alike if said.size and _size_of(d) == said.size],
        [d for d in alike if memory_mib and _has(d, memory_mib)],
    ):
        alike = [d for d in alike if d in narrower] or alike
    if memory_mib and said.core and not any(_has(d, memory_mib) for d in alike):
        alike = [d for d in alike if d.memory_bytes is None]
    return _the_one(alike)


class _Said:
    """A name taken apart: what it is, how it is built, how much memory it names."""

    def __init__(self, name: str) -> None:
        plain = _ASIDE.sub(" ", name.lower().replace("_", " ").replace("-", " "))
        size = _SIZE.search(plain)
        self.size = int(size.group(1)) if size else None
        words = set(_WORD.findall(_SIZE.sub(" ", plain))) - SAID_BY_ALL
        self.form = next((FORMS[word] for word in sorted(words) if word in FORMS), None)
        self.core = frozenset(words - set(FORMS))


@cache
def _known() -> tuple[tuple[Accelerator, frozenset[frozenset[str]]], ...]:
    """What each accelerator is called, sizes and forms apart."""
    return tuple(
        (device, frozenset(_Said(n).core for n in (_title(device), *device.aliases)))
        for device in accelerators.load().values()
    )


def _title(device: Accelerator) -> str:
    """The catalog's name, and the board's form, which may stand in the id alone."""
    return f"{device.name} {' '.join(w for w in device.id.split('-') if w in FORMS)}"


def _size_of(device: Accelerator) -> int | None:
    return _Said(device.name).size


def _has(device: Accelerator, memory_mib: int) -> bool:
    """Whether it may report that memory."""
    if device.memory_bytes is None:
        return False
    share = memory_mib * MIB / device.memory_bytes
    return 1 - MEMORY_SLACK <= share <= 1 + MEMORY_SLACK / 4


def _the_one(alike: Iterable[Accelerator]) -> str | None:
    """One, or the one that the bare name is short for among devices of equal memory."""
    found = list(alike)
    if len(found) == 1:
        return found[0].id
    if found and len({device.memory_bytes for device in found}) == 1:
        short = [device.id for device in found if device.aliases]
        return short[0] if len(short) == 1 else None
    return None
