"""What TensorRT-LLM refuses, and what must be known to trust its numbers."""

from __future__ import annotations

from kvcore.cache import Heads
from kvcore.engines.base import Settings
from kvcore.engines.tensorrt_llm.models import (
    attention_ranks,
    check_kinds,
    has_cross,
    is_compressed,
)
from kvcore.engines.tensorrt_llm.options import (
    SMALL_BLOCK,
    asked_block,
    block_tokens,
    flag,
    is_engine_build,
    number,
)
from kvcore.errors import (
    DoesNotShard,
    InvalidArgument,
    Notice,
    UnsupportedModel,
    UnsupportedOption,
)
from kvcore.model import Model

NAME = "TensorRT-LLM"


def check(model: Model, settings: Settings) -> None:
    """Raise what TensorRT-LLM would: a typed error that names what is legal."""
    check_kinds(model)
    block_tokens(model, settings)
    fraction(settings)
    _check_manager(model, settings)
    _check_cross(model, settings)
    _check_ranks(model, settings)


def fraction(settings: Settings) -> float | None:
    """`free_gpu_memory_fraction`: strictly between 0 and 1."""
    return _between(settings, "free_gpu_memory_fraction")


def _between(settings: Settings, name: str) -> float | None:
    value = number(settings, name)
    if value is not None and not 0 < value < 1:
        raise InvalidArgument(
            argument=name, value=str(value), expected="a number between 0 and 1"
        )
    return value


def _check_manager(model: Model, settings: Settings) -> None:
    engine_build = is_engine_build(settings)
    asked = flag(settings, "use_kv_cache_manager_v2")
    if engine_build and is_compressed(model):
        raise UnsupportedModel(
            model_type=model.model_type, reason="PyTorch alone serves it"
        )
    if (asked and engine_build) or (asked is False and is_compressed(model)):
        raise UnsupportedOption(
            engine="tensorrt_llm",
            option="use_kv_cache_manager_v2",
            value=asked,
            reason="PyTorch has it, and DeepSeek-V4 has no other",
        )
    if settings.dcp > 1:
        raise UnsupportedOption(
            engine="tensorrt_llm",
            option="dcp",
            value=settings.dcp,
            reason="its context parallelism is not computed here",
        )


def _check_cross(model: Model, settings: Settings) -> None:
    given = _between(settings, "cross_kv_cache_fraction")
    if has_cross(model) == (given is not None):
        return
    reason = (
        "an encoder-decoder model needs one" if given is None else "there is no encoder"
    )
    raise UnsupportedOption(
        engine="tensorrt_llm",
        option="cross_kv_cache_fraction",
        value=given,
        reason=reason,
    )


def _check_ranks(model: Model, settings: Settings) -> None:
    heads, ranks = model.num_heads, attention_ranks(settings)
    if heads and heads % ranks:
        raise DoesNotShard(
            argument="tp",
            value=ranks,
            count=heads,
            what="query heads",
            legal=[n for n in range(1, min(heads, 1024) + 1) if heads % n == 0],
        )
    if settings.pp > model.num_layers:
        raise DoesNotShard(
            argument="pp",
            value=settings.pp,
            count=model.num_layers,
            what="layers",
            legal=[1, model.num_layers],
        )
    grouped = flag(settings, "enable_attention_dp")
    if grouped and settings.dp not in (1, settings.tp):
        raise DoesNotShard(
            argument="dp",
            value=settings.dp,
            count=settings.tp,
            what="ranks of attention DP",
            legal=[settings.tp],
        )


def notices(model: Model, settings: Settings) -> tuple[Notice, ...]:
    """The rules were read, not run; small blocks; a block that was overridden."""
    found = [Notice("rules_not_executed", {"engine": NAME})]
    asked, block = asked_block(settings), block_tokens(model, settings)
    if asked not in (None, block):
        found.append(
            Notice(
                "setting_overridden",
                {
                    "engine": NAME,
                    "option": "tokens_per_block",
                    "asked": asked,
                    "value": block,
                },
            )
        )
    if block < SMALL_BLOCK:
        found.append(
            Notice(
                "small_blocks",
                {"engine": NAME, "tokens": block, "least": SMALL_BLOCK},
            )
        )
    ranks = attention_ranks(settings)
    uneven = [
        spec.num_kv_heads
        for spec, _ in model.groups
        if isinstance(spec, Heads) and _uneven(spec.num_kv_heads, ranks)
    ]
    if uneven:
        found.append(
            Notice(
                "kv_heads_uneven",
                {"num_kv_heads": uneven[0], "ranks": ranks, "engine": NAME},
            )
        )
    return tuple(found)


def _uneven(heads: int, ranks: int) -> bool:
    return bool(heads % ranks if heads >= ranks else ranks % heads)
