"""vLLM's versions, and what its planning of a KV cache decides by them.

Read from the wheels named here; numbers of one version hold until the next one named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from kvcore.engines.base import DeviceTraits


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What differs between versions.

    `group_threshold`: layers of the largest bucket over those of the smallest, up to
    which the larger one is the group size (None: always the smaller).
    `tokens_by_concurrency`: the logged tokens are concurrency x context, not
    blocks // groups x block.
    `batches_in_flight`: window reserves count every batch that may be in flight.
    `checks_null_block`: start-up plans with the blocks requests can have.
    `state_checkpoints`: kinds of state that keep one more block for a checkpoint.
    `flexible_blocks`: blocks follow the backends' kernels, not a fixed table.
    `large_memory_tier`: more batched tokens by default from 160 GiB on.
    `concurrency_by_bytes`: the logged concurrency charges a request its groups' bytes
    over those of a block that keeps every token, not the blocks it takes.
    `packing`: a block of mixed pages is the widest group, one slot for each page the
    groups need of a size, or whole tuples of one page of every size.
    """

    version: str
    utilization: float = 0.92
    group_threshold: float | None = 1.5
    tokens_by_concurrency: bool = True
    one_log_line: bool = True
    batches_in_flight: bool = True
    hybrid_prefix_caching: bool = True
    checks_null_block: bool = True
    chunked_hybrid: bool = True
    flexible_blocks: bool = True
    latent_state_blocks_of_128: bool = True
    state_checkpoints: frozenset[str] = frozenset(
        {"mamba2", "gated_delta_net", "kimi_delta_attention"}
    )
    compressed_attention: bool = True
    concurrency_by_bytes: bool = False
    packing: Literal["widest", "slots", "tuples"] = "widest"
    large_memory_tier: bool = True


_0_33: Final = Rules(version="0.33.0")
_0_29: Final = replace(
    _0_33,
    version="0.29.0",
    state_checkpoints=frozenset({"kimi_delta_attention"}),
)
_0_28: Final = replace(
    _0_29, version="0.28.0", checks_null_block=False, state_checkpoints=frozenset()
)
_0_26: Final = replace(
    _0_28,
    version="0.26.0",
    one_log_line=False,
    latent_state_blocks_of_128=False,
    large_memory_tier=False,
    concurrency_by_bytes=True,
    packing="slots",
)
_0_25: Final = replace(
    _0_26, version="0.25.1", batches_in_flight=False, hybrid_prefix_caching=False
)
_0_20: Final = replace(_0_25, version="0.20.2", packing="tuples")
_0_19: Final = replace(
    _0_20,
    version="0.19.1",
    utilization=0.90,
    tokens_by_concurrency=False,
    flexible_blocks=False,
    compressed_attention=False,
)
_0_15: Final = replace(_0_19, version="0.15.1", group_threshold=1.25)
_0_13: Final = replace(_0_15, version="0.13.0", chunked_hybrid=False)
_0_11: Final = replace(_0_13, version="0.11.2", group_threshold=None)

RULES: Final[Mapping[str, Rules]] = MappingProxyType(
    {
        rules.version: rules
        for rules in (
            _0_33,
            _0_29,
            _0_28,
            _0_26,
            _0_25,
            _0_20,
            _0_19,
            _0_15,
            _0_13,
            _0_11,
        )
    }
)

CAPABILITY: Final[Mapping[str, int]] = MappingProxyType(
    {
        "pascal": 6,
        "volta": 7,
        "turing": 7,
        "ampere": 8,
        "ada": 8,
        "hopper": 9,
        "blackwell": 10,
        "rubin": 10,
        "blackwell_consumer": 12,
        "blackwell_gb10": 12,
    }
)
"""Architecture -> CUDA compute capability, major. Others are not CUDA."""

HOPPER: Final = 9


def capability(device: DeviceTraits) -> int:
    """CUDA major capability; a Hopper where nobody says, 0 where it is not CUDA."""
    if device.architecture is None:
        return HOPPER
    return CAPABILITY.get(device.architecture, 0)


def default_batched_tokens(
    rules: Rules, device: DeviceTraits, usage_context: str
) -> tuple[int, int]:
    """(max_num_batched_tokens, max_num_seqs) when neither is given.

    Source: vllm/engine/arg_utils.py 0.33.0, get_batch_defaults. A100s and GB10 are on
    the small tier whatever their memory.
    """
    mib = device.memory_mib or 81559
    offline = usage_context == "llm_class"
    if rules.large_memory_tier and mib >= 160 * 1024:
        return 16384, 1024
    small = device.architecture in ("ampere", "blackwell_gb10")
    if mib >= 70 * 1024 and not small:
        return (16384 if offline else 8192), 1024
    return (8192 if offline else 2048), 256
