"""What TensorRT-LLM makes of a model: its manager, windows, ranks and stages.

Source: tensorrt_llm/llmapi/llm_args.py @00043967, tensorrt_llm/_torch/pyexecutor/
resource_manager.py @001541ba, tensorrt_llm/mapping.py (pp_layers).
"""

from __future__ import annotations

from typing import Final

from kvcore.cache import (
    CacheSpec,
    CompressedAttention,
    CrossAttention,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.base import Settings
from kvcore.engines.tensorrt_llm.options import (
    asked_windows,
    flag,
    integer,
    is_engine_build,
)
from kvcore.errors import UnsupportedModel, UnsupportedOption
from kvcore.model import Model
from kvcore.states import GatedDeltaNet, KimiDeltaAttention, Mamba2, RecurrentState

MANAGER_V2: Final = frozenset(
    {
        "gpt_oss",
        "gemma3",
        "gemma3_text",
        "gemma4",
        "gemma4_text",
        "gemma4_unified_text",
        "llama",
        "llama4",
        "llama4_text",
    }
)
"""model_types whose cache manager is V2 unless asked otherwise."""

STATES: Final = (GatedDeltaNet, KimiDeltaAttention, Mamba2)
RATIOS: Final = (0, 4, 128)
"""Compression ratios of DeepSeek-V4; 0 is a window alone."""


def uses_manager_v2(model: Model, settings: Settings) -> bool:
    """Whether the Python manager V2 owns the cache: what was asked, else by model."""
    if is_engine_build(settings):
        return False
    if is_compressed(model):
        return True
    asked = flag(settings, "use_kv_cache_manager_v2")
    if asked is not None:
        return asked
    return has_states(model) or model.model_type in MANAGER_V2


def is_compressed(model: Model) -> bool:
    return any(isinstance(spec, CompressedAttention) for spec, _ in model.groups)


def has_states(model: Model) -> bool:
    return any(isinstance(spec, RecurrentState) for spec, _ in model.groups)


def has_cross(model: Model) -> bool:
    return any(isinstance(spec, CrossAttention) for spec, _ in model.groups)


def attention_ranks(settings: Settings) -> int:
    """Ranks that heads and states are cut over: one with attention DP."""
    return 1 if flag(settings, "enable_attention_dp") else settings.tp


def window_of(
    spec: CacheSpec, layer: int, model: Model, settings: Settings
) -> int | None:
    """The window a layer's blocks are kept for; None for all of them.

    `max_attention_window` is repeated over the layers of the whole model. Without it
    V1 keeps every layer in full, V2 what the model says. Chunks are kept in full.
    """
    asked = asked_windows(settings)
    window: int | None = None
    if asked:
        window = asked[layer % len(asked)]
    elif uses_manager_v2(model, settings):
        window = own_window(spec)
    if window is not None and model.max_context and window >= model.max_context:
        return None
    return window


def own_window(spec: CacheSpec) -> int | None:
    if isinstance(spec, SlidingWindowAttention):
        return spec.window
    return spec.window if isinstance(spec, LatentAttention) else None


def stages(model: Model, settings: Settings) -> list[range]:
    """Layers of each pipeline rank: equal runs, the first ones one longer."""
    size, rest = divmod(model.num_layers, settings.pp)
    found, start = [], 0
    for stage in range(settings.pp):
        stop = start + size + (stage < rest)
        found.append(range(start, stop))
        start = stop
    return found


def state_slots(settings: Settings, *, requests: int) -> int:
    """State slots for requests: `max_batch_size` for each stage, or one a request."""
    batch = integer(settings, "max_batch_size")
    if batch is None:
        return requests
    if requests > batch * settings.pp:
        raise UnsupportedOption(
            engine="tensorrt_llm",
            option="max_batch_size",
            value=batch,
            reason=f"there are {requests} requests on {settings.pp} stages",
        )
    return batch * settings.pp


def reserved_slots(settings: Settings) -> int:
    """Slots of no request: one pads CUDA graphs, one idle attention DP ranks."""
    return 1 + bool(flag(settings, "enable_attention_dp"))


def check_kinds(model: Model) -> None:
    """Refuse caches whose layout in TensorRT-LLM is not known here."""
    for spec, _ in (*model.groups, *model.draft_groups):
        reason = _unknown(spec)
        if reason:
            raise UnsupportedModel(model_type=model.model_type, reason=reason)


def _unknown(spec: CacheSpec) -> str | None:
    if isinstance(spec, RecurrentState) and not isinstance(spec, STATES):
        return (
            "TensorRT-LLM's state pool is known here for Mamba-2, gated delta nets "
            f"and KDA, not for {spec.kind}"
        )
    if isinstance(spec, CompressedAttention) and spec.ratio not in RATIOS:
        return (
            "TensorRT-LLM's pools of compressed attention are known here for the "
            "ratios 4 and 128"
        )
    if isinstance(spec, IndexerKeys) and spec.index_head_dim % 128:
        return f"index keys of {spec.index_head_dim} elements are not known here"
    return None
