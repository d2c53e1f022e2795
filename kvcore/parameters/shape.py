"""What the formulas read: one text model's widths, and its architecture's habits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from kvcore.importers.fields import Fields
from kvcore.importers.layer_kinds import layer_kinds
from kvcore.parameters.architecture import Architecture, Flag

Part = Literal[
    "embeddings",
    "output_head",
    "attention",
    "state",
    "indexer",
    "dense_mlp",
    "experts",
    "active_experts",
    "shared_experts",
    "router",
    "norms",
    "residual",
    "lookup",
    "encoder",
    "vision",
]

Parts = Counter[Part]
"""Parameters by part; `active_experts` is what one token uses of `experts`."""

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

    def per_layer(self, name: str, i: int) -> int | None:
        """Entry `i` of a list with one number a layer, or the plain number."""
        value = self.fields.get(name)
        if isinstance(value, list | tuple):
            numbers = self.fields.integers(name) or ()
            return numbers[i] if i < len(numbers) else None
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

    def slides(self, i: int) -> bool:
        """Whether layer `i` has a window, as its config lists it."""
        return layer_kinds(self.fields)[i] in ("sliding", "both_sliding")

    @property
    def norm(self) -> int:
        """One normalisation of the residual stream."""
        return self.architecture.norm_vectors * self.hidden


def linear(inputs: int, outputs: int, bias: bool = False) -> int:
    """A matrix, and a vector where it has a bias."""
    return inputs * outputs + (outputs if bias else 0)


def parts(**counts: int) -> Parts:
    """Parts by keyword; what is 0 is left out."""
    return Counter({name: n for name, n in counts.items() if n})  # type: ignore[misc]

