"""An engine's own settings: their names, kinds and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kvcore.errors import InvalidArgument, shown

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
                argument=self.name, value=shown(value), expected=self.expected
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
