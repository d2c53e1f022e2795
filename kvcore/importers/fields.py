"""Typed, forgiving reading of a config: spellings, absent and null, wrong kinds.

Every reader of configs goes through `Fields`, so that a missing field is always
named, a wrong value is always an `InvalidField`, and every default that was used
instead of a stated value is remembered as a notice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kvcore.errors import InvalidField, MissingField, Notice, Param
from kvcore.errors import shown as shown  # noqa: PLC0414 (importers find it here)

GEOMETRY: Final = frozenset({"num_attention_heads", "n_head", "n_heads", "num_heads"})
"""Class defaults of these are used only by a config that states no head at all."""

HEAD_FIELDS: Final = (
    *sorted(GEOMETRY),
    "num_key_value_heads",
    "num_kv_heads",
    "head_dim",
    "kv_channels",
    "d_kv",
)

MAX_INTEGER: Final = 10**12
"""Larger than any dimension or parameter count a model can state."""

MAX_NUMBER: Final = 10**300
"""Larger numbers are as good as infinite, and no float holds all of them."""

MAX_LAYERS: Final = 4096
"""More than any model has, and than any list with one entry per layer."""


class Fields:
    """One config object, read by field name with alternative spellings.

    `null` counts as absent. Names may be dotted ("linear_attn_config.head_dim").
    `defaults` are what the architecture means by a key that is absent (a key that is
    present as null is not absent); using one is remembered as a notice.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        model_type: str,
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.config = config
        self.model_type = model_type
        self.notices: list[Notice] = []
        self.defaults = dict(defaults or {})
        if any(config.get(name) is not None for name in HEAD_FIELDS):
            for name in GEOMETRY:
                self.defaults.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def has_key(self, name: str) -> bool:
        """Whether the key is present at all, even as null."""
        return name in self.config

    def get(self, *names: str) -> object:
        """The first value that is present and not null, else None."""
        return self._first(names)[1]

    def integer(self, *names: str, minimum: int = 1, maximum: int = MAX_INTEGER) -> int:
        """A required whole number; `names[0]` is the one an error names."""
        value = self.optional_integer(*names, minimum=minimum, maximum=maximum)
        if value is None:
            raise MissingField(field=names[0])
        return value

    def optional_integer(
        self, *names: str, minimum: int = 1, maximum: int = MAX_INTEGER
    ) -> int | None:
        name, value = self._first(names)
        if value is None:
            return None
        return whole_number(name, value, minimum, maximum)

    def integer_or(self, default: int, *names: str, minimum: int = 1) -> int:
        """A whole number, or the class default, which is then reported."""
        value = self.optional_integer(*names, minimum=minimum)
        if value is None:
            self.assume(names[0], default)
            return default
        return value

    def number(self, *names: str) -> float | None:
        name, value = self._first(names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidField(field=name, value=shown(value), expected="a number")
        return float(value) if abs(value) < MAX_NUMBER else float("inf")

    def flag(self, *names: str, default: bool = False) -> bool:
        name, value = self._first(names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InvalidField(field=name, value=shown(value), expected="true or false")
        return value

    def text(self, *names: str) -> str | None:
        name, value = self._first(names)
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidField(field=name, value=shown(value), expected="a text")
        return value

    def mapping(self, *names: str) -> Mapping[str, object] | None:
        name, value = self._first(names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise InvalidField(field=name, value=shown(value), expected="an object")
        return value

    def items(self, *names: str) -> Sequence[object] | None:
        name, value = self._first(names)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise InvalidField(field=name, value=shown(value), expected="a list")
        if len(value) > MAX_LAYERS:
            raise InvalidField(
                field=name,
                value=f"a list of {len(value)}",
                expected=f"at most {MAX_LAYERS} entries",
            )
        return value

    def integers(self, *names: str, minimum: int = 0) -> tuple[int, ...] | None:
        name, _ = self._first(names)
        values = self.items(*names)
        if values is None:
            return None
        return tuple(
            whole_number(f"{name}[{i}]", value, minimum)
            for i, value in enumerate(values)
        )

    def texts(self, *names: str) -> tuple[str, ...] | None:
        name, _ = self._first(names)
        values = self.items(*names)
        if values is None:
            return None
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise InvalidField(
                    field=f"{name}[{i}]", value=shown(value), expected="a text"
                )
        return tuple(str(value) for value in values)

    def child(self, name: str) -> Fields | None:
        """A nested object as Fields that report into the same notices."""
        nested = self.mapping(name)
        if nested is None:
            return None
        fields = Fields(nested, self.model_type)
        fields.notices = self.notices
        return fields

    def overlaid(self, override: Mapping[str, object]) -> Fields:
        """The same config with some fields replaced, and the same notices."""
        fields = Fields({**self.config, **override}, self.model_type)
        fields.defaults = self.defaults
        fields.notices = self.notices
        return fields

    def assume(self, field: str, value: object) -> None:
        """Remember that `value` was taken for an absent `field`."""
        plain = value if isinstance(value, bool | int | float | str) else shown(value)
        self.note("assumed_default", field=field, value=plain)

    def note(self, code: str, **params: Param) -> None:
        if code == "assumed_default":
            params["model_type"] = self.model_type
        notice = Notice(code, params)
        if notice not in self.notices:
            self.notices.append(notice)

    def _first(self, names: Sequence[str]) -> tuple[str, object]:
        for name in names:
            value = self._lookup(name)
            if value is not None:
                return name, value
        return self._default(names)

    def _default(self, names: Sequence[str]) -> tuple[str, object]:
        if not any(name in self.config for name in names):
            for name in names:
                value = self.defaults.get(name)
                if value is not None:
                    if value:  # false and 0 leave out what an absent key leaves out
                        self.assume(name, value)
                    return name, value
        return names[0], None

    def _lookup(self, name: str) -> object:
        if name in self.config:
            return self.config[name]
        here: object = self.config
        for part in name.split("."):
            if not isinstance(here, Mapping):
                return None
            here = here.get(part)
        return here


def whole_number(
    field: str, value: object, minimum: int = 0, maximum: int = MAX_INTEGER
) -> int:
    """`value` as an int within bounds; integral floats (1e3, 128.0) are accepted."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidField(field=field, value=shown(value), expected="a whole number")
    if not minimum <= value <= maximum:
        raise InvalidField(
            field=field,
            value=shown(value),
            expected=f"a whole number from {minimum} to {maximum}",
        )
    return value
