"""Accelerators as their drivers report them; a label is never turned into bytes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from kvcore import datafiles
from kvcore.errors import MemoryUnknown, UnknownAccelerator

MIB: Final = 2**20
GIB: Final = 2**30
OTHER: Final = "other"
"""The id of a device described by its memory alone."""

NO_FP8: Final = frozenset(
    "pascal volta turing ampere cdna2 rdna2 rdna3 rdna3_5 apple".split()
)
"""Architectures known to have no FP8 units (CUDA before 8.9, CDNA before 3, ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device: the memory it reports, what frameworks see of it, and its rates.

    `memory_bytes` is the driver's total, `framework_bytes` what the CUDA or HIP
    runtime reports (cudaMemGetInfo). A unified-memory machine gives the GPU a share
    of its RAM, which is then `memory_bytes`.
    """

    id: str
    name: str
    vendor: str
    category: str
    architecture: str
    aliases: tuple[str, ...]
    memory_bytes: int | None
    framework_bytes: int | None
    memory_source: str | None
    unified_ram_bytes: int | None
    working_set_estimated: bool
    bandwidth_bytes_per_second: int | None
    flops: Mapping[str, int | None]
    year: int | None
    note: str | None

    @property
    def total_bytes(self) -> int:
        """What an engine can see of the device; `MemoryUnknown` if nobody knows."""
        found = self.framework_bytes or self.memory_bytes
        if found is None:
            raise MemoryUnknown(accelerator=self.id)
        return found


def other(memory_mib: int) -> Accelerator:
    """A device known by nothing but its memory in MiB."""
    return Accelerator(
        id=OTHER,
        name=OTHER,
        vendor=OTHER,
        category=OTHER,
        architecture=OTHER,
        aliases=(),
        memory_bytes=memory_mib * MIB,
        framework_bytes=None,
        memory_source=None,
        unified_ram_bytes=None,
        working_set_estimated=False,
        bandwidth_bytes_per_second=None,
        flops={},
        year=None,
        note=None,
    )


def with_memory(device: Accelerator, memory_mib: int) -> Accelerator:
    """The same device reporting another amount of memory, as a user read it."""
    return replace(
        device,
        memory_bytes=memory_mib * MIB,
        framework_bytes=None,
        memory_source=None,
        working_set_estimated=False,
    )


@cache
def load() -> Mapping[str, Accelerator]:
    """All accelerators by id, in the order of the data file."""
    data = datafiles.read_json("accelerators.json")
    sizes = data["apple_working_set"]["values"]
    return {raw["id"]: _accelerator(raw, sizes) for raw in data["accelerators"]}


def find(name: str) -> Accelerator:
    """The accelerator of that id or alias, or `UnknownAccelerator`.

    >>> find("H100").memory_bytes // MIB
    81559
    """
    key = "-".join(name.strip().lower().split())
    names = _names()
    if key not in names:
        close = difflib.get_close_matches(key[:100], names, n=5, cutoff=0.5)
        raise UnknownAccelerator(
            accelerator=name[:100],
            suggestions=list(dict.fromkeys(names[known] for known in close)),
        )
    return load()[names[key]]


@cache
def _names() -> Mapping[str, str]:
    names: dict[str, str] = {}
    for entry in load().values():
        names.update(dict.fromkeys(entry.aliases, entry.id))
    names.update({id: id for id in load()})
    return names


def _accelerator(raw: Mapping[str, Any], sizes: list[dict[str, Any]]) -> Accelerator:
    memory, estimated = raw["memory_bytes"], False
    source = raw["memory_source"]
    ram = raw["unified_ram_gib"]
    if ram is not None:
        memory, source, estimated = working_set(ram, sizes)
    return Accelerator(
        id=raw["id"],
        name=raw["name"],
        vendor=raw["vendor"],
        category=raw["category"],
        architecture=raw["architecture"],
        aliases=tuple(raw["aliases"]),
        memory_bytes=memory,
        framework_bytes=raw["framework_bytes"],
        memory_source=source,
        unified_ram_bytes=None if ram is None else ram * GIB,
        working_set_estimated=estimated,
        bandwidth_bytes_per_second=raw["bandwidth_bytes_per_second"],
        flops=raw["flops"],
        year=raw["year"],
        note=raw["note"],
    )


def working_set(ram_gib: int, sizes: list[dict[str, Any]]) -> tuple[int, str, bool]:
    """What macOS lets the GPU wire of that much RAM: (bytes, source, estimated).

    A size nobody logged takes the fraction of the largest logged size below it (the
    smallest, for Macs with less RAM than any).
    """
    below = [row for row in sizes if row["ram_gib"] <= ram_gib] or sizes[:1]
    row = below[-1]
    if row["ram_gib"] == ram_gib:
        return row["bytes"], row["source"], False
    return row["bytes"] * ram_gib // row["ram_gib"], row["source"], True
