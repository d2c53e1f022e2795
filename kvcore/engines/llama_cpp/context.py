"""How many cells llama.cpp opens: contexts, slots, streams and windows.

Source: llama.cpp 0c1e570, the constructor in src/llama-context.cpp and
src/llama-kv-cache-iswa.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvcore.errors import MissingField, Notice, UnsupportedOption
from kvcore.estimate import Scope
from kvcore.model import Model

PAD: Final = 256
MAX_SEQUENCES: Final = 256
"""LLAMA_MAX_SEQ."""

AUTO_SLOTS: Final = 4
"""llama-server's slots where nobody says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How llama.cpp is started, in its own terms, whoever starts it.

    `n_ctx` is the total of all slots (-c; 0 is the trained length), `n_ctx_slot` that
    of one. Without either, the context is what the requests need. `n_seq_max` None
    means one slot per request, at least `min_slots`.
    """

    n_ctx: int | None = None
    n_ctx_slot: int | None = None
    n_seq_max: int | None = None
    min_slots: int = 1
    kv_unified: bool = False
    swa_full: bool = False
    n_batch: int = 2048
    n_ubatch: int = 512
    n_rs_seq: int = 0
    flash_attn: str = "auto"
    type_k: str | None = None
    type_v: str | None = None
    type_k_draft: str = "f16"
    type_v_draft: str = "f16"
    cache_on_host: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One opened context: `streams` streams of `cells` cells for `slots` sequences."""

    cells: int
    streams: int
    slots: int
    ubatch: int
    swa_full: bool

    @property
    def tokens(self) -> int:
        """n_ctx as the library reports it."""
        return self.cells * self.streams

    def window_cells(self, window: int, *, apart: bool = False) -> int:
        """Cells of one stream of a windowed layer: the window and one micro-batch.

        In one stream for all sequences each has its window in it; `apart` are caches
        that give each sequence a stream of its own regardless.
        """
        if self.swa_full:
            return self.cells
        sequences = self.slots if self.streams == 1 and not apart else 1
        return padded(min(self.cells, window * sequences + self.ubatch))

    def holds(self, scope: Scope) -> bool:
        """Whether all requests of a scope fit at once."""
        needed = scope.tokens * (scope.sequences if self.streams == 1 else 1)
        return needed <= self.cells


def padded(cells: int) -> int:
    return -(-cells // PAD) * PAD


def slots_of(launch: Launch, sequences: int) -> int:
    """Slots opened for that many requests at once."""
    slots = launch.n_seq_max or max(sequences, launch.min_slots)
    if slots > MAX_SEQUENCES or sequences > slots:
        raise UnsupportedOption(
            engine="llama.cpp",
            option="n_seq_max",
            value=str(max(slots, sequences)),
            reason=f"it holds at most {min(slots, MAX_SEQUENCES)} sequences at once",
        )
    return slots


def open_context(model: Model, scope: Scope, launch: Launch) -> Context:
    """The context llama.cpp opens for a scope.

    `scope.tokens` is what each sequence must hold, so a context nobody sized is
    tokens x sequences in a unified cache and tokens x slots in separate streams.
    """
    slots = slots_of(launch, scope.sequences)
    n_ctx = _asked(model, scope, launch, slots)
    batch = min(n_ctx, launch.n_batch)
    cells = padded(n_ctx)
    streams = 1
    if not launch.kv_unified:
        cells, streams = padded(cells // slots), slots
    return Context(
        cells=cells,
        streams=streams,
        slots=slots,
        ubatch=min(batch, launch.n_ubatch),
        swa_full=launch.swa_full,
    )


def _asked(model: Model, scope: Scope, launch: Launch, slots: int) -> int:
    if launch.n_ctx_slot is not None:
        return launch.n_ctx_slot * slots
    if launch.n_ctx == 0:
        if model.max_context is None:
            raise MissingField(field="context_length")
        return model.max_context
    if launch.n_ctx is not None:
        return launch.n_ctx
    return max(1, scope.tokens * (scope.sequences if launch.kv_unified else slots))


def capacity_notices(context: Context, scope: Scope) -> tuple[Notice, ...]:
    """A visible warning where the context that was asked for is too small."""
    if context.holds(scope):
        return ()
    return (
        Notice(
            "context_too_small",
            {
                "tokens": scope.tokens,
                "sequences": scope.sequences,
                "cells": context.tokens,
            },
        ),
    )
