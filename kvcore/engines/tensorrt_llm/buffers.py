"""What one pipeline rank's layers keep in a block, and what a state slot takes.

Source: tensorrt_llm/_torch/pyexecutor/resource_manager.py @001541ba (KV heads of a
rank, bytes a token), attention_backend/sparse/dsa/cache_manager.py (index keys),
attention_backend/sparse/deepseek_v4/cache_manager.py and deepseek_v4.py,
mamba_cache_manager.py @00bce92c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, gcd
from typing import Final

from kvcore.cache import (
    CacheSpec,
    Component,
    CompressedAttention,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
)
from kvcore.engines.base import Settings
from kvcore.engines.tensorrt_llm.models import (
    attention_ranks,
    stages,
    window_of,
)
from kvcore.engines.tensorrt_llm.options import block_tokens
from kvcore.errors import DoesNotShard
from kvcore.estimate import CacheFormats
from kvcore.formats import NumberFormat
from kvcore.model import Model
from kvcore.states import RecurrentState

STATE_BYTES: Final = 4
"""Compressors keep their keys and scores in 32 bit."""
OVERLAPPING: Final = 4
"""The ratio whose compressor keeps two groups, and twice the width of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A `layer`'s part of a block; `window` is None where no block is dropped.

    `scale_bytes` are the part of it that are nvfp4 scales, `padding_bytes` what values
    narrower than keys leave unused.
    """

    component: Component
    window: int | None
    block_bytes: int
    layer: int = 0
    scale_bytes: int = 0
    padding_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pipeline rank: buffers of its own tokens, of an encoder's, and states."""

    layers: range
    drafts: bool
    buffers: tuple[Buffer, ...]
    cross: tuple[tuple[Buffer, int | None], ...]
    state_bytes: int
    state_layers: int

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The distinct windows, smallest first, in full last."""
        found = {buffer.window for buffer in self.buffers}
        return tuple(sorted(found, key=lambda w: (w is None, w or 0)))

    def of(self, window: int | None) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer in self.buffers if buffer.window == window)


def stages_of(
    model: Model, formats: CacheFormats, settings: Settings, *, draft: bool
) -> tuple[Stage, ...]:
    """All pipeline ranks; draft layers are on the last."""
    maker = _Maker(model=model, formats=formats, settings=settings)
    runs = stages(model, settings)
    return tuple(maker.stage(run, drafts=draft and run is runs[-1]) for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    model: Model
    formats: CacheFormats
    settings: Settings

    @property
    def ranks(self) -> int:
        return attention_ranks(self.settings)

    @property
    def block(self) -> int:
        return block_tokens(self.model, self.settings)

    def stage(self, layers: range, *, drafts: bool) -> Stage:
        buffers: list[Buffer] = []
        cross: list[tuple[Buffer, int | None]] = []
        states: list[int] = []
        for layer in layers:
            for spec in self.model.layers[layer]:
                buffers += (
                    replace(buffer, layer=layer) for buffer in self.buffers(spec, layer)
                )
                if isinstance(spec, CrossAttention):
                    cross.append((self._heads(spec, "cross", None), spec.source_tokens))
                elif isinstance(spec, RecurrentState):
                    states.append(state_bytes(spec, self.ranks, self.formats))
        if drafts:
            buffers.extend(self._drafts())
        return Stage(
            layers=layers,
            drafts=drafts,
            buffers=tuple(buffers),
            cross=tuple(cross),
            state_bytes=sum(states),
            state_layers=len(states),
        )

    def _drafts(self) -> Iterator[Buffer]:
        for layer, specs in enumerate(self.model.draft_layers, self.model.num_layers):
            for spec in specs:
                for buffer in self.buffers(spec, layer):
                    yield replace(buffer, layer=layer, component="draft")

    def buffers(self, spec: CacheSpec, layer: int) -> tuple[Buffer, ...]:
        """What a layer keeps in a block of its own tokens."""
        if isinstance(spec, CompressedAttention):
            return tuple(self._compressed(spec))
        if isinstance(spec, IndexerKeys):
            row = self.formats.indexer.row_bits(spec.index_head_dim, "indexer")
            keys = spec.index_kv_heads * -(-row // 8)
            return (self._buffer("indexer", None, keys),)
        window = window_of(spec, layer, self.model, self.settings)
        if isinstance(spec, LatentAttention):
            return (self._latent(spec, window),)
        if isinstance(spec, Heads) and not isinstance(spec, CrossAttention):
            return (self._heads(spec, spec.terms(1)[0].component, window),)
        return ()

    def _heads(self, spec: Heads, component: Component, window: int | None) -> Buffer:
        """Keys and values, values as wide as keys; at least one head on each rank."""
        local = -(-spec.num_kv_heads // self.ranks)
        kv = self.formats.kv
        width = max(spec.head_dim, spec.value_head_dim)
        bits = kv.row_bits(width, "key") + kv.row_bits(width, "value")
        narrow = min(spec.head_dim, spec.value_head_dim)
        unused = Fraction(bits, 2) * (width - narrow) / width
        return self._buffer(
            component,
            window,
            Fraction(local * bits, 8),
            scales=Fraction(2 * local * _scale_bits(kv, width), 8),
            padding=local * unused / 8,
        )

    def _latent(self, spec: LatentAttention, window: int | None) -> Buffer:
        """Latent and rotary key in one row, whole on every rank."""
        kv, rope = self.formats.kv, spec.qk_rope_head_dim
        bits = kv.row_bits(spec.kv_lora_rank, "latent")
        bits += kv.row_bits(rope, "rope") if rope else 0
        scales = _scale_bits(kv, spec.kv_lora_rank + rope)
        return self._buffer(
            spec.terms(1)[0].component,
            window,
            Fraction(bits, 8),
            scales=Fraction(scales, 8),
        )

    def _buffer(
        self,
        component: Component,
        window: int | None,
        row: Fraction | int,
        *,
        scales: Fraction | int = 0,
        padding: Fraction | int = 0,
        rows: int | None = None,
    ) -> Buffer:
        count = self.block if rows is None else rows
        return Buffer(
            component=component,
            window=window,
            block_bytes=ceil(count * row),
            scale_bytes=ceil(count * scales),
            padding_bytes=int(count * padding),
        )

    def _compressed(self, spec: CompressedAttention) -> Iterator[Buffer]:
        """DeepSeek-V4: a window, compressed rows and keys, and compressors' states.

        A compressor's state is kept like a window: keys and scores of the group that
        is open, and of the one before where groups overlap (ratio 4).
        """
        kv = self.formats.kv.row_bits(spec.head_dim, "latent") // 8
        yield self._buffer("window", spec.window, kv)
        if not spec.ratio:
            return
        rows = self.block // spec.ratio
        yield self._buffer("kv", None, kv, rows=rows)
        widths = spec.head_dim
        if spec.index_head_dim:
            keys = self.formats.indexer.row_bits(spec.index_head_dim, "indexer") // 8
            yield self._buffer("indexer", None, keys, rows=rows)
            widths += spec.index_head_dim
        groups = 2 if spec.ratio == OVERLAPPING else 1
        state = 2 * groups * widths * STATE_BYTES
        yield self._buffer("state", groups * spec.ratio, state)


def _scale_bits(kv: NumberFormat, width: int) -> int:
    """Scales of a row of nvfp4: one byte for each 16 elements, in a pool of its own."""
    return width // 2 if kv.id == "nvfp4" else 0


def state_bytes(spec: RecurrentState, ranks: int, formats: CacheFormats) -> int:
    """One layer's slot: the heads of a rank, and its convolution's columns.

    Heads and convolved channels must both divide.
    """
    rows, width = spec.recurrent_shape
    channels, columns = spec.conv_channels, max(spec.kernel - 1, 0)
    _check_divides(state_heads(spec), channels, ranks)
    recurrent = rows // ranks * formats.state.row_bits(width, "recurrent")
    conv = channels // ranks * columns * formats.conv.row_bits(1, "conv")
    return (recurrent + conv) // 8


def state_heads(spec: RecurrentState) -> int:
    values = spec.values
    return values.get("num_value_heads") or values.get("num_heads") or 1


def _check_divides(heads: int, channels: int, ranks: int) -> None:
    for count, what in ((heads, "state heads"), (channels, "convolved channels")):
        if count % ranks:
            both = gcd(heads, channels)
            raise DoesNotShard(
                argument="tp",
                value=ranks,
                count=count,
                what=what,
                legal=[n for n in range(1, min(both, 64) + 1) if both % n == 0],
            )
