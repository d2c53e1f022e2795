"""A vision transformer: what the config states of it, and what its type means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvcore.importers.fields import Fields
from kvcore.parameters.shape import linear

Joint = Callable[["Eye", int], int]
"""(tower, hidden size of the text model) -> parameters of what joins them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Eye:
    """A vision transformer: what the config states of it, and what its type means."""

    hidden: int = 0
    layers: int = 0
    width: int = 0
    heads: int = 0
    output: int = 0
    joint_width: int = 0
    as_wide_as_output: bool = False
    patch: int = 14
    merge: int = 2
    image: int = 0
    fields: Fields | None = None

    joint: Joint
    mlp_matrices: int = 2
    mlp_ratio: int = 0
    bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    norm_vectors: int = 2
    layer_norms: int = 2
    head_norms: bool = False
    kv_heads: int = 0
    frames: int = 1
    patch_bias: bool = True
    positions: int = 0
    grid: bool = False
    vectors: int = 0

    def count(self) -> int:
        """Patches, positions, blocks and the vectors around them."""
        inputs = 3 * self.frames * self.patch**2
        positions = self.positions
        if self.grid and self.image:
            positions = (self.image // self.patch) ** 2
        return (
            linear(inputs, self.hidden, self.patch_bias)
            + (positions + self.vectors) * self.hidden
            + self.layers * self.block()
        )

    def block(self) -> int:
        """Attention, feed-forward and their norms."""
        head = self.hidden // self.heads if self.heads else 0
        key_value = self.kv_heads * head if self.kv_heads else self.hidden
        inner = self.mlp_matrices - 1
        return (
            linear(self.hidden, self.hidden + 2 * key_value, self.bias)
            + linear(self.hidden, self.hidden, self.output_bias)
            + inner * linear(self.hidden, self.width, self.mlp_bias)
            + linear(self.width, self.hidden, self.mlp_bias)
            + self.layer_norms * self.norm_vectors * self.hidden
            + (2 * head if self.head_norms else 0)
        )
