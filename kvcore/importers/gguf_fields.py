"""Reading GGUF metadata: keys under a prefix, one value for all layers or one each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvcore.errors import InvalidField, MissingField
from kvcore.importers.fields import (
    MAX_INTEGER,
    MAX_LAYERS,
    Fields,
    shown,
    whole_number,
)


class Metadata(Fields):
    """Metadata of one file, read by key without its prefix.

    Errors name the whole key ("llama.block_count").
    """

    def __init__(self, metadata: Mapping[str, object], architecture: str) -> None:
        super().__init__(metadata, architecture)
        self._per_layer: dict[tuple[str, int | None], tuple[int, ...]] = {}

    def key(self, name: str) -> str:
        return f"{self.model_type}.{name}"

    @property
    def count(self) -> int:
        """All layers of the file, draft layers included."""
        return self.integer("block_count", maximum=MAX_LAYERS)

    @property
    def main(self) -> int:
        """Layers of the model itself, without those that predict further tokens."""
        drafts = self.optional_integer("nextn_predict_layers", minimum=0) or 0
        return self.count - drafts

    def integer(self, *names: str, minimum: int = 1, maximum: int = MAX_INTEGER) -> int:
        value = self.optional_integer(*names, minimum=minimum, maximum=maximum)
        if value is None:
            raise MissingField(field=self.key(names[0]))
        return value

    def per_layer(self, name: str, default: int | None = None) -> tuple[int, ...]:
        """One whole number per layer: an array, or one number for all.

        Every layer asks for the numbers of all: they are read once.
        """
        known = self._per_layer.get((name, default))
        if known is None:
            known = self._per_layer[name, default] = self._read_per_layer(name, default)
        return known

    def _read_per_layer(self, name: str, default: int | None) -> tuple[int, ...]:
        value = self.get(name)
        if value is None:
            if default is None:
                raise MissingField(field=self.key(name))
            return (default,) * self.count
        if isinstance(value, list | tuple):
            numbers = self.integers(name) or ()
            if len(numbers) != self.count:
                raise InvalidField(
                    field=self.key(name),
                    value=shown(value),
                    expected=f"one number for each of {self.count} layers",
                )
            return numbers
        return (whole_number(self.key(name), value),) * self.count

    def flags(self, name: str) -> tuple[bool, ...] | None:
        """An array of true and false (or 1 and 0); layers beyond it are false."""
        value = self.get(name)
        if not isinstance(value, list | tuple):
            return None
        if not self.main <= len(value) <= MAX_LAYERS or not all(
            isinstance(flag, bool) or flag in (0, 1) for flag in value
        ):
            raise InvalidField(
                field=self.key(name),
                value=shown(value),
                expected=f"true or false for each of {self.main} layers",
            )
        found = tuple(bool(flag) for flag in value)
        return (found + (False,) * self.count)[: self.count]

    def _first(self, names: Sequence[str]) -> tuple[str, object]:
        return super()._first([self.key(name) for name in names])
