"""State pools of hybrid models: slots of one size, and what they leave for rows.

Source: sglang/srt/configs/mamba_utils.py and mem_cache/kv_cache_configurator.py
(_handle_max_mamba_cache) of the 0.5.23 wheel. Every pool has one padding slot more
than it serves, and on every stage as many bytes as on the stage with most states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from kvcore.cache import Heads, SlidingWindowAttention
from kvcore.engines.sglang.arguments import Arguments
from kvcore.engines.sglang.cells import stage_states
from kvcore.engines.sglang.models import class_of
from kvcore.errors import DoesNotShard, UnsupportedModel, UnsupportedOption
from kvcore.estimate import CacheFormats
from kvcore.model import Model
from kvcore.states import (
    GatedDeltaNet,
    KimiDeltaAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    RecurrentState,
    ShortConvolution,
)

GIB: Final = 1 << 30
ALONE: Final = (
    "MambaForCausalLM",
    "FalconMambaForCausalLM",
    "Mamba2ForCausalLM",
    "ZayaForCausalLM",
)
"""Classes whose states are dealt to all ranks whatever DP attention does."""


def state_bytes(spec: RecurrentState, ranks: int, formats: CacheFormats) -> int:
    """One layer's state on one of `ranks` ranks, in bytes."""
    channels = conv_channels(spec, ranks)
    columns = max(spec.kernel - 1, 0)
    rows, width = spec.recurrent_shape
    bits = formats.state.row_bits(width, "recurrent") if rows else 0
    recurrent = -(-rows // ranks * bits // 8)
    conv = channels // ranks * columns * formats.conv.row_bits(1, "conv") // 8
    return recurrent + conv


def conv_channels(spec: RecurrentState, ranks: int) -> int:
    """Channels of the convolution, groups repeated where ranks outnumber them."""
    if not isinstance(spec, Mamba2) or spec.num_groups % ranks == 0:
        return spec.conv_channels
    return spec.conv_channels + 2 * spec.state_size * (ranks - spec.num_groups)


def check_states(model: Model, ranks: int) -> None:
    """Refuse states SGLang does not keep, and ranks that do not divide them."""
    for spec, _ in model.groups:
        if not isinstance(spec, RecurrentState):
            continue
        heads = _divided(spec)
        if heads is None:
            raise UnsupportedModel(
                model_type=model.model_type, reason=f"SGLang keeps no {spec.kind}"
            )
        what, count = heads
        if count % ranks:
            raise DoesNotShard(
                argument="tp",
                value=ranks,
                count=count,
                what=what,
                legal=[n for n in range(1, min(count, 1024) + 1) if count % n == 0],
            )


def _divided(spec: RecurrentState) -> tuple[str, int] | None:
    """What tensor parallelism divides of a state, and into how many parts at most."""
    if isinstance(spec, GatedDeltaNet):
        return "value heads", spec.num_value_heads
    if isinstance(spec, KimiDeltaAttention | Mamba2 | LightningAttention):
        return "state heads", spec.num_heads
    if isinstance(spec, Mamba):
        return "inner channels", spec.inner_size
    if isinstance(spec, ShortConvolution):
        return "channels", spec.channels
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePool:
    """Slots of `slot_bytes` each; 0 for a model without states.

    `ratio` of the rest goes to states (mamba_full_memory_ratio), unless the number
    of slots is given. `draft_tokens` states more are kept for each running request
    while drafts are verified.
    """

    slot_bytes: int
    slots_per_request: int
    ratio: float
    given_slots: int | None
    draft_tokens: int
    max_running: int | None

    def split(self, budget: int) -> tuple[int, int]:
        """(slots, bytes left for rows) of a budget, in the engine's own arithmetic."""
        if not self.slot_bytes:
            return 0, budget
        total = budget / GIB
        slots = self.given_slots
        if slots is None:
            slots = self._fitted(total)
        if self.draft_tokens:
            running = min(self.max_running or 1, slots // self.slots_per_request)
            verified = self.slot_bytes * (running + 1) * self.draft_tokens
            total -= verified / GIB
        return slots, int((total - (slots + 1) * self.slot_bytes / GIB) * GIB)

    def _fitted(self, total: float) -> int:
        share = total * self.ratio / (1 + self.ratio) * GIB
        size, drafts = self.slot_bytes, self.draft_tokens
        if not drafts:
            return int((share - size) // size)
        each = size * (1 + drafts / self.slots_per_request)
        return int((share - size * (1 + drafts)) // each)

    def smallest(self, rows: int, requests: int) -> tuple[int, int]:
        """(state bytes, bytes left for rows) of the smallest budget that leaves at
        least `rows` bytes and holds `requests` requests; `rows` is never undercut by
        a larger one.
        """
        if not self.slot_bytes:
            return 0, rows
        slots = requests * self.slots_per_request
        if self.given_slots is not None:
            return self._given(rows, slots)
        ratio = Fraction(self.ratio)
        if self.draft_tokens:
            return self._drafted(rows, slots, ratio)
        # Slots come in steps: just before one more, the rows get most.
        steps = max(ceil(rows * ratio / self.slot_bytes) - 1, 0)
        needed = slots + 1
        if steps >= needed:
            return steps * self.slot_bytes, rows
        budget = ceil(needed * self.slot_bytes * (1 + ratio) / ratio)
        return needed * self.slot_bytes, max(budget - needed * self.slot_bytes, rows)

    def _given(self, rows: int, slots: int) -> tuple[int, int]:
        given = self.given_slots or 0
        if slots > given:
            raise UnsupportedOption(
                engine="sglang",
                option="max_mamba_cache_size",
                value=given,
                reason=f"these requests need {slots} slots",
            )
        return (given + 1) * self.slot_bytes + self._verified(given), rows

    def _drafted(self, rows: int, slots: int, ratio: Fraction) -> tuple[int, int]:
        """A bound a slot above the smallest: slots counted as if they came in parts.

        States and verification take no more than their share; once as many requests
        run as ever will, more budget buys slots alone.
        """
        size, drafts = self.slot_bytes, self.draft_tokens
        part = 1 + Fraction(drafts, self.slots_per_request)
        share = ratio / (1 + ratio)
        within = rows * (1 + ratio)
        running = self.max_running or 1
        fixed = size * drafts * (running + 1) + size - size * (1 + drafts) / part
        beyond = (rows + fixed) / (1 - share / part)
        held = (slots * size * part + size * (1 + drafts)) / share
        budget = ceil(max(held, min(within, beyond)))
        return budget - rows, rows

    def _verified(self, slots: int) -> int:
        if not self.draft_tokens:
            return 0
        running = min(self.max_running or 1, slots // self.slots_per_request)
        return self.slot_bytes * (running + 1) * self.draft_tokens


def state_ranks(model: Model, arguments: Arguments) -> int:
    """Ranks that share a state: one group's, or all where only states are kept."""
    alone = class_of(model) in ALONE
    return arguments.attention_tp * (arguments.dp if alone else 1)


def stored_states(model: Model, stage: range, ranks: int) -> tuple[RecurrentState, ...]:
    """The states of a stage, as they are stored and divided over ranks.

    Inkling's convolutions are stored alike on every layer: those over the hidden
    state, whole on every rank, and those over keys and values of window and of full
    layers both, by KV heads.
    """
    found = stage_states(model, stage)
    if class_of(model) != "InklingForConditionalGeneration":
        return found
    heads = {
        isinstance(spec, SlidingWindowAttention): spec
        for spec, _ in model.groups
        if isinstance(spec, Heads)
    }
    local = 2 * (model.hidden_size or 0) + sum(
        2 * max(1, spec.num_kv_heads // ranks) * spec.head_dim
        for spec in heads.values()
    )
    return tuple(
        replace(spec, channels=local * ranks)
        for spec in found
        if isinstance(spec, ShortConvolution)
    )


def state_pool(
    model: Model, layers: tuple[range, ...], arguments: Arguments, formats: CacheFormats
) -> StatePool:
    """The state pool of every stage: as large as the fullest one's."""
    ranks = state_ranks(model, arguments)
    per_stage = [
        sum(
            state_bytes(spec, ranks, formats)
            for spec in stored_states(model, stage, ranks)
        )
        for stage in layers
    ]
    # As the engine scales the whole model's states: in floating point, cut off.
    share = max(len(stage_states(model, stage)) for stage in layers)
    count = sum(len(stage_states(model, stage)) for stage in layers)
    drafting = arguments.drafting
    slots = arguments.mamba_slots
    if slots is None and not arguments.radix and arguments.max_running is not None:
        slots = arguments.max_running
    return StatePool(
        slot_bytes=int(sum(per_stage) * (share / max(count, 1))),
        slots_per_request=arguments.slots_per_request,
        ratio=arguments.mamba_ratio,
        given_slots=slots,
        draft_tokens=drafting.tokens if drafting else 0,
        max_running=arguments.max_running,
    )
