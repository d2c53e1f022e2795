"""What SGLang refuses, with the nearest sizes it takes.

Source: sglang/srt/layers/linear.py and layers/dp_attention.py, arg_groups/
parallel_hook.py, configs/hybrid_arch.py of the 0.5.23 wheel.
"""

from __future__ import annotations

from kvcore.cache import CrossAttention, Heads
from kvcore.engines.base import Settings
from kvcore.engines.sglang.arguments import overlaps
from kvcore.engines.sglang.backends import asked_page, attention_groups
from kvcore.engines.sglang.models import (
    EXTRA_BUFFER,
    STATES,
    class_of,
    has_states,
    is_compressed,
    is_low_ratio,
)
from kvcore.engines.sglang.options import flag, text
from kvcore.engines.sglang.states import check_states
from kvcore.engines.sglang.versions import check_older, older
from kvcore.errors import DoesNotShard, Notice, UnsupportedModel, UnsupportedOption
from kvcore.model import Model

OWN_LAYOUTS = (
    "Glm5Next",
    "Qwen4Exp",
    "GigaChat35",
    "MiniCPMHybrid",
    "JetNemotron",
    "JetVLM",
)
"""Classes with pools this module has no rules for."""

OWN_FAMILIES = ("glm5_next", "qwen4_exp", "inkling2", "lfm3", "mistral_large4")


def check(model: Model, settings: Settings) -> None:
    """Raise what SGLang would refuse: a typed error that names what is legal."""
    version = older(settings)
    if version is not None:
        check_older(version, model, settings)
    _model(model)
    groups = attention_groups(settings)
    if settings.tp % groups:
        raise DoesNotShard(
            argument="dp_size",
            value=groups,
            count=settings.tp,
            what="tensor-parallel ranks",
            legal=_divisors(settings.tp),
        )
    attention_tp = settings.tp // groups
    heads = model.num_heads
    if heads and heads % attention_tp:
        raise DoesNotShard(
            argument="tp",
            value=settings.tp,
            count=heads,
            what="query heads",
            legal=[n * groups for n in _divisors(heads)],
        )
    if attention_tp % settings.dcp:
        raise DoesNotShard(
            argument="dcp",
            value=settings.dcp,
            count=attention_tp,
            what="attention ranks",
            legal=_divisors(attention_tp),
        )
    longest = 1 if is_low_ratio(model) else model.num_layers
    if settings.pp > longest:
        raise DoesNotShard(
            argument="pp",
            value=settings.pp,
            count=model.num_layers,
            what="layers",
            legal=list(range(1, min(longest, 1024) + 1)),
        )
    if has_states(model):
        check_states(model, attention_tp)


def _model(model: Model) -> None:
    name = class_of(model)
    reason = None
    if name.startswith(OWN_LAYOUTS) or model.model_type.startswith(OWN_FAMILIES):
        reason = "SGLang keeps it in pools of its own that are not computed here"
    elif any(isinstance(spec, CrossAttention) for spec, _ in model.groups):
        if not name.startswith("Mllama"):
            reason = "SGLang's pools for encoder-decoder models are not computed here"
    elif has_states(model) and name not in STATES:
        reason = "SGLang 0.5.23 has no class that keeps its states"
    if reason is not None:
        raise UnsupportedModel(model_type=model.model_type, reason=reason)


def check_options(model: Model, settings: Settings) -> None:
    """Refuse settings that exclude each other, or that the model does not take."""
    for option, reason in (
        ("mamba_radix_cache_strategy", _strategy_refused(model, settings)),
        ("disable_hybrid_swa_memory", _split_refused(model, settings)),
        ("speculative_algorithm", _drafting_refused(model, settings)),
    ):
        if reason is not None:
            value = settings.options.get(option)
            raise UnsupportedOption(
                engine="sglang",
                option=option,
                value=value if isinstance(value, int) else str(value),
                reason=reason,
            )


def _strategy_refused(model: Model, settings: Settings) -> str | None:
    strategy = text(settings, "mamba_radix_cache_strategy") or "auto"
    if strategy == "auto" or flag(settings, "disable_radix_cache"):
        return None
    unbuffered = strategy == "no_buffer"
    plain = (asked_page(settings) or 1) == 1 and not overlaps(settings)
    rules = (
        (not has_states(model), "the model keeps no states"),
        (unbuffered and not plain, "it needs pages of 1 and disable_overlap_schedule"),
        (
            not unbuffered and class_of(model) not in EXTRA_BUFFER,
            "the model takes no_buffer only",
        ),
        (
            strategy == "extra_buffer_lazy" and not overlaps(settings),
            "it needs the overlapping scheduler",
        ),
    )
    return next((reason for refused, reason in rules if refused), None)


def _split_refused(model: Model, settings: Settings) -> str | None:
    if is_compressed(model) and flag(settings, "disable_hybrid_swa_memory"):
        return "compressed attention needs its pools apart"
    return None


def _drafting_refused(model: Model, settings: Settings) -> str | None:
    algorithm = text(settings, "speculative_algorithm")
    if algorithm is None or not is_compressed(model):
        return None
    if is_low_ratio(model):
        return "DeepSeek-V4.1 takes DSpark only"
    return None if algorithm in ("EAGLE", "NEXTN") else "DeepSeek-V4 takes EAGLE"


def shard_notices(model: Model, settings: Settings) -> tuple[Notice, ...]:
    """KV heads that ranks neither share nor divide: sized, but refused when built."""
    ranks = max(1, settings.tp // attention_groups(settings) // settings.dcp)
    uneven = sorted(
        {
            spec.num_kv_heads
            for spec, _ in model.groups
            if isinstance(spec, Heads)
            and spec.num_kv_heads % ranks
            and ranks % spec.num_kv_heads
        }
    )
    return tuple(
        Notice(
            "kv_heads_uneven", {"engine": "SGLang", "num_kv_heads": n, "ranks": ranks}
        )
        for n in uneven
    )


def _divisors(count: int) -> list[int]:
    return [n for n in range(1, min(count, 1024) + 1) if count % n == 0]
