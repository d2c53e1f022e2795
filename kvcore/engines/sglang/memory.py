"""The share of memory SGLang keeps for weights and pools, and what a pool gets of it.

Source: sglang/srt/arg_groups/memory_hook.py and cuda_graph_hook.py, mem_cache/
kv_cache_configurator.py (_profile_available_bytes) of the 0.5.23 wheel; server_args.py
of the older ones. The fraction is of the memory free before weights are loaded, and
weights come out of it; what is left outside is for activations and graphs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from kvcore.engines.base import RankMemory, Settings
from kvcore.engines.sglang.arguments import chunk_tokens
from kvcore.engines.sglang.backends import attention_groups
from kvcore.engines.sglang.models import (
    BLIND,
    VISION,
    VISION_GRAPHS,
    class_of,
    is_compressed,
    keeps_latents,
)
from kvcore.engines.sglang.options import flag, integer
from kvcore.engines.sglang.versions import fraction, is_vision, older
from kvcore.model import Model
from kvcore.states import KimiDeltaAttention

MIB: Final = 2**20

UNKNOWN_CARD: Final = 0.95
BASE_MIB: Final = 512
LARGE_CARD_MIB: Final = 60 * 1024
LARGE_CARD_RESERVE_MIB: Final = 10 * 1024
VISION_CACHE: Final = 100 * MIB
"""Kept for image embeddings after the pool is sized (SGLANG_VLM_CACHE_SIZE_MB)."""

RUNTIME_CONTEXT: Final = 512 * MIB
"""What a process and its communicators hold before weights: 256 to 650 MiB were seen
(InvokeAI#9413, pytorch#109888); SGLang measures free memory after it."""

DECODE_GRAPHS: Final = (
    (20 * 1024, 8, 8),
    (35 * 1024, 48, 160),
    (60 * 1024, 32, 160),
    (160 * 1024, 256, 512),
)
"""Card memory in MiB below which decoding is captured up to that batch, at a tensor
parallel size under 4 and from 4 on; 512 above."""

PREFILL_GRAPHS: Final = (
    *range(4, 33, 4),
    *range(48, 257, 16),
    *range(288, 513, 32),
    *range(576, 1025, 64),
    *range(1280, 4097, 256),
)
"""Token counts a prefill is captured at; from there on every 512."""

MIB_PER_TOKEN: Final = 1.5
MIB_PER_GRAPH: Final = 8
LATENT_GRAPHS_MIB: Final = 1536


def static_fraction(model: Model, settings: Settings) -> float:
    """mem_fraction_static where nobody sets it.

    (card - reserved) / card, rounded to three digits, where reserved MiB are 512 + 1.5
    a prefilled token + 128 a rank + graphs, at least 10240 on cards above 60 GiB.
    """
    version = older(settings)
    if version is not None:
        share = version.vision_share is None and is_vision(model)
        found = fraction(version, model, settings)
        return found * tower_factor(model) if share and model.vision_tower else found
    card = settings.device.memory_mib
    if card is None:
        return UNKNOWN_CARD
    reserved = BASE_MIB + MIB_PER_TOKEN * max(chunk_tokens(settings), 2048)
    reserved += settings.tp * settings.pp / 8 * 1024
    reserved += _graphs(model, settings, card)
    if card > LARGE_CARD_MIB:
        reserved = max(reserved, LARGE_CARD_RESERVE_MIB)
    return round((card - reserved) / card, 3) * vision_factor(model)


def _graphs(model: Model, settings: Settings, card: int) -> float:
    """MiB for captured decoding, DP attention's padding and captured prefill."""
    batch = decode_batch(settings, card)
    found = 0.0 if flag(settings, "disable_cuda_graph") else 2.0 * batch
    groups = attention_groups(settings)
    if groups > 1:
        found += 3 * batch * groups
        if batch > 300:
            found += 1.5 * batch * groups
    if captures_prefill(model, settings):
        sizes = prefill_graphs(settings)
        found += LATENT_GRAPHS_MIB if keeps_latents(model) else MIB_PER_GRAPH * sizes
    return found


def prefill_graphs(settings: Settings) -> int:
    """How many sizes of prefill are captured."""
    limit = chunk_tokens(settings)
    total = integer(settings, "max_total_tokens")
    if total is not None:
        limit = min(limit, total)
    return bisect_right(PREFILL_GRAPHS, limit) + max(limit - 4096, 0) // 512


def decode_batch(settings: Settings, card: int) -> int:
    """The largest decoding batch captured as a graph."""
    asked = integer(settings, "cuda_graph_max_bs_decode")
    if asked is not None:
        return asked
    column = 1 if settings.tp < 4 else 2
    found = next((row[column] for row in DECODE_GRAPHS if card < row[0]), 512)
    running = integer(settings, "max_running_requests")
    return min(found, running) if running else found


def captures_prefill(model: Model, settings: Settings) -> bool:
    """Whether prefill graphs are on when the reserve is computed."""
    if class_of(model) == "InklingForConditionalGeneration":
        return True
    if flag(settings, "disable_cuda_graph"):
        return False
    if settings.pp > 1 or settings.dcp > 1 or is_compressed(model):
        return False
    if any(isinstance(spec, KimiDeltaAttention) for spec, _ in model.groups):
        return False
    return not sees(model) or class_of(model) in VISION_GRAPHS


def sees(model: Model) -> bool:
    """Whether a vision tower is served with the model."""
    name = class_of(model)
    return name in VISION or (model.vision_tower is not None and name not in BLIND)


def vision_factor(model: Model) -> float:
    """What a vision tower takes off the fraction: 0.95 for a ViT-L/14, by size.

    Layers and width under any other key than num_hidden_layers and hidden_size count
    as a ViT-L/14's, as the engine reads them.
    """
    bare = class_of(model).startswith("Gemma4Unified") and model.vision_tower is None
    if bare or not sees(model):
        return 1.0
    return tower_factor(model)


def tower_factor(model: Model) -> float:
    """The same of a class that sees."""
    layers, width = model.vision_tower or (None, None)
    if class_of(model).startswith("MiniMaxM3Sparse"):
        layers = width = None
    size = (layers or 24) * (width or 1024) ** 2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (size - 1.0)))


def budget(memory: RankMemory, model: Model, settings: Settings) -> tuple[int, int]:
    """(static bytes, pool bytes) of a rank.

    Free memory before loading x fraction, less weights and what a vision model keeps
    for its embeddings. The reserve is not looked at: the fraction is its rule.
    """
    share = memory.fraction or static_fraction(model, settings)
    free = max(memory.total_bytes - RUNTIME_CONTEXT, 0)
    static = int(free * share)
    vision = VISION_CACHE if older(settings) is None and sees(model) else 0
    return static, max(static - memory.weight_bytes - vision, 0)
