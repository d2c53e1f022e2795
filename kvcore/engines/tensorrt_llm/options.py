"""TensorRT-LLM's own settings, and the sizes of a block it takes.

Source: tensorrt_llm/llmapi/llm_args.py @00043967 (KvCacheConfig), docs/source/
features/kvcache.md @0076e939; `max_batch_size` and `enable_attention_dp` are of the
LLM's own arguments, `indexer_k_dtype` of its sparse attention's.
"""

from __future__ import annotations

from typing import Final

from kvcore.cache import CompressedAttention, IndexerKeys, LatentAttention
from kvcore.engines.base import Settings
from kvcore.engines.options import Option, OptionValue
from kvcore.errors import InvalidArgument
from kvcore.model import Model

DTYPES: Final = (
    "auto",
    "float16",
    "bfloat16",
    "float32",
    "fp8",
    "nvfp4",
    "fp8_ds_mla",
    "int8",
)
STATE_DTYPES: Final = ("auto", "float16", "bfloat16", "float32")

DEFAULT_BLOCK: Final = 32
LARGEST_BLOCK: Final = 1 << 20
SMALL_BLOCK: Final = 8
"""Sparse attention paths need at least this many tokens in a block."""
FLASH_MLA_BLOCK: Final = 64
MAX_WINDOWS: Final = 1024


class WindowOption(Option):
    """A window, or a list of windows repeated over the layers; kept as text."""

    def read(self, value: object) -> OptionValue:
        if isinstance(value, str):
            parts: list[object] = [part.strip() for part in value.split(",")]
        elif isinstance(value, list | tuple):
            parts = list(value)
        else:
            return super().read(value)
        if not 0 < len(parts) <= MAX_WINDOWS:
            raise InvalidArgument(
                argument=self.name,
                value=f"{len(parts)} windows",
                expected=f"1 to {MAX_WINDOWS} windows",
            )
        return ",".join(str(super(WindowOption, self).read(part)) for part in parts)


OPTIONS: Final = (
    Option(
        name="backend",
        kind="choice",
        default="pytorch",
        choices=("pytorch", "tensorrt"),
    ),
    Option(name="tokens_per_block", kind="integer", minimum=1),
    Option(name="dtype", kind="choice", default="auto", choices=DTYPES),
    Option(name="max_tokens", kind="integer", minimum=1),
    WindowOption(name="max_attention_window", kind="integer", minimum=1),
    Option(name="free_gpu_memory_fraction", kind="number"),
    Option(name="host_cache_size", kind="integer"),
    Option(name="cross_kv_cache_fraction", kind="number"),
    Option(name="enable_attention_dp", kind="flag", default=False),
    Option(
        name="mamba_ssm_cache_dtype",
        kind="choice",
        default="auto",
        choices=STATE_DTYPES,
    ),
    Option(
        name="indexer_k_dtype", kind="choice", default="fp8", choices=("fp8", "fp4")
    ),
    Option(name="use_kv_cache_manager_v2", kind="flag"),
    Option(name="max_batch_size", kind="integer", minimum=1),
)


def integer(settings: Settings, name: str) -> int | None:
    value = settings.options.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(settings: Settings, name: str) -> float | None:
    value = settings.options.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def flag(settings: Settings, name: str) -> bool | None:
    value = settings.options.get(name)
    return value if isinstance(value, bool) else None


def text(settings: Settings, name: str) -> str | None:
    value = settings.options.get(name)
    return value if isinstance(value, str) else None


def is_engine_build(settings: Settings) -> bool:
    """Whether it is a built TensorRT engine that C++ serves, not PyTorch."""
    return settings.options.get("backend") == "tensorrt"


def asked_windows(settings: Settings) -> tuple[int, ...]:
    """`max_attention_window`, empty where it was not given."""
    value = settings.options.get("max_attention_window")
    if isinstance(value, str):
        return tuple(map(int, value.split(",")))
    return (value,) if isinstance(value, int) else ()


def asked_block(settings: Settings) -> int | None:
    """`tokens_per_block` by either name; two different ones are an error."""
    own, general = integer(settings, "tokens_per_block"), settings.block_tokens
    if own is not None and general not in (None, own):
        raise InvalidArgument(
            argument="tokens_per_block",
            value=str(own),
            expected=f"block_tokens = {general}",
        )
    return own if own is not None else general


def block_tokens(model: Model, settings: Settings) -> int:
    """Tokens of one block, or `InvalidArgument` naming the nearest legal number."""
    asked = asked_block(settings)
    legal = own_blocks(model)
    if legal is not None:
        if asked is not None and asked not in legal:
            raise InvalidArgument(
                argument="tokens_per_block",
                value=str(asked),
                expected=" or ".join(map(str, legal)) + " for this model",
            )
        return asked or legal[0]
    _check_power_of_two(asked)
    if reads_flash_mla(model, settings):
        return FLASH_MLA_BLOCK
    return asked or DEFAULT_BLOCK


def own_blocks(model: Model) -> tuple[int, ...] | None:
    """What a model with a cache manager of its own takes; None if it has none.

    DeepSeek-V4's asserts 128 or 256, MiniMax-M3's blocks of 128 are what its indexer
    chooses among.
    """
    kinds = {type(spec) for spec, _ in model.groups}
    if CompressedAttention in kinds:
        return (128, 256)
    if IndexerKeys in kinds and LatentAttention not in kinds:
        return (128,)
    return None


def reads_flash_mla(model: Model, settings: Settings) -> bool:
    """FlashMLA on Hopper reads DeepSeek's latents in blocks of 64 whatever is asked.

    Source: tensorrt_llm/_torch/pyexecutor/py_executor_creator.py.
    """
    return (
        settings.device.architecture == "hopper"
        and not is_engine_build(settings)
        and any(
            isinstance(spec, LatentAttention)
            and (spec.kv_lora_rank, spec.qk_rope_head_dim) == (512, 64)
            for spec, _ in model.groups
        )
    )


def _check_power_of_two(asked: int | None) -> None:
    if asked is None or (2 <= asked <= LARGEST_BLOCK and asked & (asked - 1) == 0):
        return
    raise InvalidArgument(
        argument="tokens_per_block",
        value=str(asked),
        expected="a power of two from 2, such as " + " or ".join(_nearest(asked)),
    )


def _nearest(asked: int) -> list[str]:
    below = 1 << max(min(asked, LARGEST_BLOCK).bit_length() - 1, 1)
    above = min(2 * below, LARGEST_BLOCK)
    closest = min(abs(asked - below), abs(asked - above))
    found = {n for n in (below, above) if abs(asked - n) == closest}
    return [str(n) for n in sorted(found)]
