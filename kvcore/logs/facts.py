"""What is read in a log: numbers with their line, and settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

Json = dict[str, Any]
Value = int | float | str | bool

UNITS: Final[Mapping[str, int]] = {
    "B": 1,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
"""Units of bytes; numbers in other units are counts."""

SHOWN: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number as printed: `decimals` digits after the point, in a `line` counted from
    1, or from the end of a long log, from -1.

    `unit` is what the engine means, `printed_unit` its own word where that is another
    (SGLang's GB are GiB). `floored` numbers were cut off, not rounded. `index` counts
    the lines of one kind, `about` is what else the line said.
    """

    quantity: str
    value: float
    unit: str
    decimals: int
    line: int
    text: str
    printed_unit: str | None = None
    floored: bool = False
    index: int = 0
    about: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def low(self) -> float:
        """The least that is printed so."""
        return self.value - (0.0 if self.floored else 0.5 / float(10**self.decimals))

    @property
    def high(self) -> float:
        step = 1.0 if self.floored else 0.5
        return self.value + step / float(10**self.decimals)

    def bytes(self, side: int, share: float = 1.0, unit: str | None = None) -> int:
        """In bytes: at the printed value (0) or at an edge of its rounding (-1, 1)."""
        value = (self.low, self.value, self.high)[side + 1]
        return int(value * UNITS[unit or self.unit] * share)

    def to_json(self) -> Json:
        return {
            "quantity": self.quantity,
            "value": self.value,
            "unit": self.unit,
            "printed_unit": self.printed_unit,
            "decimals": self.decimals,
            "line": self.line,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A kind of line: found by `key`, read by `pattern`.

    Groups of the pattern named in `numbers` are numbers: (quantity, unit); a group
    `unit` replaces the unit. All other groups are settings, under the group's name.
    `sets` are settings that the line means by itself. A line that `starts` an engine
    begins a new log within the log.
    """

    engine: str | None
    key: str
    pattern: re.Pattern[str]
    numbers: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    sets: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    printed_units: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({})
    )
    starts: bool = False
    floors: bool = False

    @property
    def telling(self) -> bool:
        """Whether the line is its engine's own and no other's."""
        return self.starts or bool(self.numbers)


def n(group: str) -> str:
    """A number, as a named group of a pattern."""
    return rf"(?P<{group}>\d{{1,15}}(?:,\d{{3}}){{0,5}}(?:\.\d{{1,12}})?)"


def wording(
    engine: str | None,
    key: str,
    pattern: str,
    *,
    numbers: Mapping[str, tuple[str, str]] | None = None,
    sets: Mapping[str, Value] | None = None,
    printed_units: Mapping[str, str] | None = None,
    starts: bool = False,
    floors: bool = False,
) -> Wording:
    return Wording(
        engine=engine,
        key=key,
        pattern=re.compile(pattern),
        numbers=numbers or {},
        sets=sets or {},
        printed_units=printed_units or {},
        starts=starts,
        floors=floors,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as a line states it."""

    name: str
    value: Value
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU as a line names it, and the memory that the line gives it."""

    name: str
    memory_mib: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All that was read of one start of one engine."""

    engine: str | None
    version: str | None
    settings: Mapping[str, Value]
    facts: tuple[Fact, ...]
    metadata: Mapping[str, Value | list[Value]]
    engines: tuple[str, ...] = ()
    starts: int = 1
    cut: bool = False
    devices: tuple[Device, ...] = ()

    def all(self, quantity: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.quantity == quantity)

    def least(self, *quantities: str) -> Fact | None:
        """The smallest of those numbers: ranks go by the poorest."""
        found = [f for f in self.facts if f.quantity in quantities]
        return min(found, key=lambda f: f.value * UNITS.get(f.unit, 1), default=None)

    def integer(self, name: str) -> int | None:
        value = self.settings.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def word(self, name: str) -> str | None:
        value = self.settings.get(name)
        return value if isinstance(value, str) else None


def value_of(text: str) -> Value | None:
    """A printed value: number, truth, or text; None for None and nothing."""
    text = text.strip().strip("'\"").rstrip(".;")
    plain = text.replace(",", "")
    if text.lower() in ("true", "enabled"):
        return True
    if text.lower() in ("false", "disabled"):
        return False
    if text.lower() in ("none", "null", "", "auto"):
        return None
    if re.fullmatch(r"\d{1,15}", plain):
        return int(plain)
    if re.fullmatch(r"\d{1,12}\.\d{1,12}", plain):
        return float(plain)
    return text[:SHOWN]
