"""What the formulas read: one text model's widths, and its architecture's habits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvcore.cache import CacheSpec, Heads, SharedCache, SlidingWindowAttention
from kvcore.errors import InvalidField
from kvcore.importers.fields import Fields, shown
from kvcore.model import Layer
from kvcore.parameters.architecture import Architecture, Flag

Parts = Counter[str]
"""Parameters by part, named like the fields of ParameterCounts."""

MAX_RATIO: Final = 1000

HEADS: Final = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "decoder_attention_heads",
    "attention_heads",
    "encoder_attention_heads",
)
HIDDEN: Final = ("hidden_size", "d_model", "n_embd", "dim", "embedding_dim")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A text model as the formulas see it."""

    fields: Fields
    family: str
    architecture: Architecture
    hidden: int
    layers: int
    caches: tuple[Layer, ...]

    def flag(self, flag: Flag) -> bool:
        """What the config says of a habit, or the architecture's default."""
        name, default = flag
        return self.fields.flag(name, default=default) if name else default

    def integer(self, *names: str) -> int:
        return self.fields.integer(*names)

    def number(self, default: int, *names: str) -> int:
        """A number that may be absent or 0 without anybody having to be told."""
        value = self.fields.optional_integer(*names, minimum=0)
        return default if value is None else value

    def ratio(self, name: str) -> float | None:
        """A factor of the hidden size, where one is stated."""
        return finite(self.fields, name)

    def per_layer(self, name: str, i: int) -> int | None:
        """Entry `i` of a list with one number a layer, or the plain number.

        A shorter list is not by layer (ERNIE 4.5 VL: text, then vision).
        """
        value = self.fields.get(name)
        if isinstance(value, list | tuple):
            numbers = self.fields.integers(name) or ()
            return numbers[i if self.layers <= len(numbers) else 0] if numbers else None
        return self.fields.optional_integer(name, minimum=0)

    def heads(self, i: int, *, sliding: bool) -> int:
        """Query heads of layer `i`."""
        listed = self.per_layer("num_attention_heads_per_layer", i)
        if listed is not None:
            return listed
        if sliding:
            own = self.fields.optional_integer(
                "swa_num_attention_heads",
                "attention_other_setting.num_attention_heads",
            )
            if own is not None:
                return own
        return self.integer(*HEADS)

    def alike(self, kinds: Sequence[Hashable]) -> Mapping[int, int]:
        """First index of each kind of layer -> how many there are.

        Layers are alike that are of the same of `kinds`, keep the same and have the
        same entry in every list with one entry a layer. The first layer is apart.
        """
        size = len(kinds)
        lists = [
            value
            for value in self.fields.config.values()
            if isinstance(value, list | tuple) and len(value) >= min(size, self.layers)
        ]
        found: dict[Hashable, tuple[int, int]] = {}
        for i in range(size):
            kept = self.caches[i] if i < len(self.caches) else ()
            stated = tuple(repr(entry[i]) for entry in lists if i < len(entry))
            key = (kinds[i], kept, stated, i == 0)
            first, count = found.get(key, (i, 0))
            found[key] = (first, count + 1)
        return dict(found.values())

    def slides(self, i: int) -> bool:
        """Whether layer `i` has a window."""
        return self.keeps(i, SlidingWindowAttention)

    def reads_another(self, i: int) -> bool:
        """Whether layer `i` reads another layer's cache."""
        return self.keeps(i, SharedCache)

    def attending_layers(self) -> tuple[int, ...]:
        """Layers with attention, whether or not a state stands beside it."""
        return tuple(i for i in range(len(self.caches)) if self.keeps(i, Heads))

    def keeps(self, i: int, kind: type[CacheSpec]) -> bool:
        """Whether layer `i` keeps a cache of that kind."""
        layer = self.caches[i] if i < len(self.caches) else ()
        return any(isinstance(spec, kind) for spec in layer)

    def block_owners(self) -> tuple[int, ...]:
        """Zamba: the layers that are the first to use each shared block."""
        return self.attending_layers()[: self.number(1, "num_mem_blocks")]

    @property
    def norm(self) -> int:
        """One normalisation of the residual stream."""
        return self.architecture.norm_vectors * self.hidden


def finite(fields: Fields, name: str) -> float | None:
    """A factor that can multiply a width: no NaN, no infinity, nothing absurd."""
    value = fields.number(name)
    if value is not None and not 0 <= value <= MAX_RATIO:
        raise InvalidField(
            field=name, value=shown(value), expected=f"a number up to {MAX_RATIO}"
        )
    return value


def linear(inputs: int, outputs: int, bias: bool = False) -> int:
    """A matrix, and a vector where it has a bias."""
    return inputs * outputs + (outputs if bias else 0)


def times(layers: int, one: Parts) -> Parts:
    """The parts of `layers` equal layers."""
    return Counter({name: layers * number for name, number in one.items()})


def parts(**counts: int) -> Parts:
    """Parts by keyword."""
    return Counter(counts)
