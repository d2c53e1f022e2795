"""The protocol of an engine: what it allocates for a model's cache, and by what rules.

An engine knows its own versions, options, formats and layouts. It never sees a GPU's
memory: `plan` is where budgets and caches meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final, Literal

from kvcore.cache import COMPONENTS, Component
from kvcore.errors import (
    InvalidArgument,
    Notice,
    UnknownEngine,
    UnknownOption,
)
from kvcore.estimate import CacheFormats, Scope, cache_formats
from kvcore.model import Model

OptionValue = int | float | str | bool | None
OptionKind = Literal["integer", "number", "flag", "choice"]

_FLAGS: Final[Mapping[str, bool]] = {
    "true": True,
    "1": True,
    "on": True,
    "yes": True,
    "false": False,
    "0": False,
    "off": False,
    "no": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of an engine's own settings, under its own name."""

    name: str
    kind: OptionKind
    default: OptionValue = None
    choices: tuple[str, ...] = ()
    minimum: int = 0

    def read(self, value: object) -> OptionValue:
        """The value as given on a command line or in JSON, or `InvalidArgument`."""
        if value is None:
            return self.default
        found = _READERS[self.kind](value)
        if found is None or not self._allows(found):
            raise InvalidArgument(
                argument=self.name, value=repr(value)[:60], expected=self.expected
            )
        return found

    def _allows(self, value: OptionValue) -> bool:
        if self.kind == "choice":
            return value in self.choices
        if self.kind == "flag":
            return True
        return isinstance(value, int | float) and value >= self.minimum

    @property
    def expected(self) -> str:
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "flag":
            return "true or false"
        word = "a whole number" if self.kind == "integer" else "a number"
        return f"{word} from {self.minimum}"


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else _FLAGS.get(str(value).lower())


def _choice(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) < 20
    ):
        return int(value)
    return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 10**12 else None


_READERS: Final[Mapping[OptionKind, Callable[[object], OptionValue]]] = {
    "flag": _flag,
    "choice": _choice,
    "integer": _integer,
    "number": _number,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked of an engine: version, options, parallel sizes, block size."""

    version: str
    options: Mapping[str, OptionValue] = field(
        default_factory=lambda: MappingProxyType({})
    )
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    block_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Bytes one rank allocates for all sequences, by component."""

    components: Mapping[Component, int]
    notices: tuple[Notice, ...] = ()

    @property
    def bytes_per_rank(self) -> int:
        return sum(self.components.values())


class Engine(ABC):
    """One engine. `versions[0]` is the default; `options` carry their own names."""

    id: ClassVar[str]
    versions: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Option, ...]]

    @abstractmethod
    def allocate(
        self, model: Model, scope: Scope, formats: CacheFormats, settings: Settings
    ) -> Allocation:
        """What the engine allocates for `scope` of `model` on one rank."""

    def formats(
        self, model: Model, kv: str, indexer: str, state: str, settings: Settings
    ) -> CacheFormats:
        """Format names in this engine's understanding (its `auto`, its own names)."""
        return cache_formats(model, kv, indexer, state)

    def settings(
        self,
        version: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        tp: int = 1,
        pp: int = 1,
        dcp: int = 1,
        block_tokens: int | None = None,
    ) -> Settings:
        """Checked settings; unknown names are errors that list the known ones."""
        if version is not None and version not in self.versions:
            raise UnknownEngine(
                engine=f"{self.id} {version}",
                known=[f"{self.id} {v}" for v in self.versions],
            )
        known = {option.name: option for option in self.options}
        for name in options or {}:
            if name not in known:
                raise UnknownOption(engine=self.id, option=name, known=list(known))
        given = options or {}
        return Settings(
            version=version or self.versions[0],
            options=MappingProxyType(
                {name: o.read(given.get(name)) for name, o in known.items()}
            ),
            tp=tp,
            pp=pp,
            dcp=dcp,
            block_tokens=block_tokens,
        )


def no_bytes() -> dict[Component, int]:
    """A fresh component table of zeros."""
    return dict.fromkeys(COMPONENTS, 0)
