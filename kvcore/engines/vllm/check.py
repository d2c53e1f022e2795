"""What vLLM refuses before it plans a cache, with the nearest sizes it takes.

Source: vllm/config/model.py 0.33.0, verify_with_parallel_config; the assertions of
the models' attention classes; vllm/config/parallel.py for the context parallel size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvcore.cache import (
    CompressedAttention,
    CrossAttention,
    Heads,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.engines.vllm.rules import HOPPER, Rules
from kvcore.errors import DoesNotShard, UnsupportedModel, UnsupportedOption
from kvcore.model import Model
from kvcore.states import LightningAttention

LARGEST_SUGGESTED: Final = 128

OWN_LAYOUTS: Final = (
    "deepseek_v41",
    "dots3_note",
    "glm5_next",
    "glm5next",
    "inkling",
    "qwen4_exp",
    "step5",
)
"""model_types whose vLLM classes keep caches this module has no rules for."""

NOT_SERVED: Final = ("rwkv", "xlstm", "recurrent_gemma")


def check(
    model: Model, rules: Rules, *, major: int, tp: int, pp: int, dcp: int
) -> None:
    """Raise what vLLM would: a typed error that names the legal sizes."""
    _model(model, rules, major)
    _tensor_parallel(model, tp)
    _pipeline(model, pp)
    _context_parallel(model, tp, dcp)


def _model(model: Model, rules: Rules, major: int) -> None:
    kinds = {type(spec) for spec, _ in model.groups}
    sparse = bool(kinds & {IndexerKeys, CompressedAttention})
    old = 0 < major < HOPPER
    reason = None
    if model.model_type.startswith(OWN_LAYOUTS):
        reason = "vLLM keeps it in a layout of its own that is not computed here"
    elif model.model_type.startswith(NOT_SERVED):
        reason = "vLLM does not serve it"
    elif CompressedAttention in kinds and not rules.compressed_attention:
        reason = f"vLLM {rules.version} does not serve it"
    elif sparse and old:
        reason = "its sparse attention needs a GPU of Hopper's generation or later"
    elif LightningAttention in kinds and model.model_type.startswith("minimax"):
        reason = "vLLM serves it up to 0.23 only"
    if reason is not None:
        raise UnsupportedModel(model_type=model.model_type, reason=reason)


def _legal(allowed: Callable[[int], bool], wanted: int) -> list[int]:
    """The largest legal size below `wanted` and the smallest above it."""
    sizes = [n for n in range(1, LARGEST_SUGGESTED + 1) if allowed(n)]
    below = [n for n in sizes if n < wanted][-1:]
    return below + [n for n in sizes if n > wanted][:1]


def _tensor_parallel(model: Model, tp: int) -> None:
    heads = model.num_heads
    if heads and heads % tp:
        raise DoesNotShard(
            argument="tp",
            value=tp,
            count=heads,
            what="attention heads",
            legal=_legal(lambda n: not heads % n and _kv_divides(model, n), tp),
        )
    for spec, _ in model.groups:
        if isinstance(spec, Heads) and not _divides(spec.num_kv_heads, tp):
            raise DoesNotShard(
                argument="tp",
                value=tp,
                count=spec.num_kv_heads,
                what="KV heads",
                legal=_legal(
                    lambda n: not (heads or n) % n and _kv_divides(model, n), tp
                ),
            )


def _divides(kv_heads: int, tp: int) -> bool:
    """KV heads are dealt out evenly, or each repeated equally often."""
    return not (kv_heads % tp if kv_heads >= tp else tp % kv_heads)


def _kv_divides(model: Model, tp: int) -> bool:
    return all(
        _divides(spec.num_kv_heads, tp)
        for spec, _ in model.groups
        if isinstance(spec, Heads)
    )


def _pipeline(model: Model, pp: int) -> None:
    layers = len(model.layers)
    if pp > layers:
        raise DoesNotShard(
            argument="pp",
            value=pp,
            count=layers,
            what="layers",
            legal=[layers],
        )
    encoder = any(isinstance(spec, CrossAttention) for spec, _ in model.groups)
    if pp > 1 and encoder:
        raise UnsupportedOption(
            engine="vllm",
            option="pp",
            value=pp,
            reason="encoder-decoder models have no pipeline stages",
        )


def _context_parallel(model: Model, tp: int, dcp: int) -> None:
    """Decode context parallelism reuses tensor ranks that would repeat a head."""
    if dcp == 1:
        return
    if tp % dcp:
        raise DoesNotShard(
            argument="dcp",
            value=dcp,
            count=tp,
            what="tensor-parallel ranks",
            legal=_legal(lambda n: not tp % n, dcp),
        )
    kinds = [spec for spec, _ in model.groups]
    if any(_is_windowed(spec) for spec in kinds):
        raise UnsupportedOption(
            engine="vllm",
            option="dcp",
            value=dcp,
            reason="windowed layers are not divided over a context",
        )
    if any(isinstance(spec, LatentAttention) for spec in kinds):
        return
    heads, query = model.num_kv_heads, model.num_heads
    if heads is None or query is None:
        return
    groups = query // heads
    most = tp // heads

    def allowed(size: int) -> bool:
        return size <= most and not groups % size and not tp % size

    if not allowed(dcp):
        raise DoesNotShard(
            argument="dcp",
            value=dcp,
            count=heads,
            what=f"KV heads over {tp} ranks",
            legal=[n for n in range(1, max(most, 1) + 1) if allowed(n) or n == 1],
        )


def _is_windowed(spec: object) -> bool:
    if isinstance(spec, LatentAttention):
        return spec.window is not None
    return isinstance(spec, SlidingWindowAttention | CompressedAttention)
