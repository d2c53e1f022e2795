"""Server arguments as SGLang 0.5.23 resolves them before it sizes a pool.

Source: sglang/srt/arg_groups/overrides.py, model_overrides/, memory_hook.py,
speculative_hook.py and parallel_hook.py, mem_cache/kv_cache_configurator.py and
allocation_sizing.py of the 0.5.23 wheel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvcore.engines.base import Settings
from kvcore.engines.sglang.backends import (
    asked_page,
    attention_backend,
    attention_groups,
    is_sm100,
    page_size,
)
from kvcore.engines.sglang.models import (
    EXTRA_BUFFER,
    class_of,
    is_compressed,
    is_low_ratio,
    splits_windows,
)
from kvcore.engines.sglang.options import flag, integer, number, text
from kvcore.engines.sglang.versions import chunk, older
from kvcore.errors import InvalidArgument
from kvcore.formats import NumberFormat
from kvcore.model import Model

PLAIN_DRAFT: Final = (3, 1, 4)
LLAMA_DRAFT: Final = (5, 4, 8)
"""Steps, top-k and draft tokens nobody asked for."""

NGRAM_TOKENS: Final = 12
NGRAM_BREADTH: Final = 10
DRAFTING_REQUESTS: Final = 48
COMPRESSED_REQUESTS: Final = 256
UNSTATED_CONTEXT: Final = 2048
MAX_REQUESTS: Final = 4096
SURE_REQUESTS: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Speculative decoding: which, and how many tokens it runs ahead."""

    algorithm: str
    steps: int
    top_k: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What the server knows when it sizes a pool; tokens unless named otherwise.

    `attention_tp` ranks share one copy of the attention, `dp` groups of them each
    serve requests of their own, and among `dcp` ranks tokens take turns.
    `max_running` is per group, None where nobody limits it.
    """

    attention_tp: int
    pp: int
    dp: int
    dcp: int
    page: int
    asked_page: int | None
    backend: str
    chunk: int
    context: int
    split_windows: bool
    swa_ratio: float
    swa_ratio_given: bool
    swa_prefix_tails: int
    mamba_ratio: float
    mamba_slots: int | None
    slots_per_request: int
    radix: bool
    overlap: bool
    max_running: int | None
    max_running_given: bool
    max_total: int | None
    drafting: Drafting | None
    fp4_workspace: bool
    fp4_scales_twice: bool
    dtype_printed: bool

    @property
    def kv_ranks(self) -> int:
        """Ranks that KV heads are dealt to: DCP ranks share theirs."""
        return max(1, self.attention_tp // self.dcp)

    @property
    def step_tokens(self) -> int:
        """Rows one request may take in one decoding step (allocation_sizing.py)."""
        drafting = self.drafting
        if drafting is None:
            return 1
        if self.page > 1 and drafting.top_k > 1:
            pages = -(-(self.page - 1 + drafting.steps) // self.page)
            return max(pages * self.page * drafting.top_k, drafting.tokens)
        return max(drafting.steps * drafting.top_k, drafting.tokens)


def resolve(
    model: Model, settings: Settings, kv: NumberFormat, *, draft: bool = False
) -> Arguments:
    """Arguments of a server that keeps this model's cache in `kv`.

    `draft` turns the model's own heads on.
    """
    backend = attention_backend(model, settings)
    # A device nobody names runs nvfp4 only if it is SM100 or SM120.
    other = settings.device.architecture is not None and not is_sm100(settings)
    fp8_prefill = kv.id == "nvfp4" and (backend == "flashinfer" or other)
    groups = attention_groups(settings)
    drafting = drafting_of(model, settings, draft)
    running = integer(settings, "max_running_requests")
    strategy_radix = not flag(settings, "disable_radix_cache")
    ratio = number(settings, "swa_full_tokens_ratio")
    default_running = None
    if is_compressed(model):
        default_running = COMPRESSED_REQUESTS
    elif drafting:
        default_running = DRAFTING_REQUESTS
    total_running = running or default_running
    return Arguments(
        attention_tp=settings.tp // groups,
        pp=settings.pp,
        dp=groups,
        dcp=settings.dcp,
        page=page_size(model, settings, kv),
        asked_page=asked_page(settings),
        backend=backend,
        chunk=chunk_tokens(settings) // groups,
        context=integer(settings, "context_length")
        or model.max_context
        or UNSTATED_CONTEXT,
        split_windows=older(settings) is None
        and splits_windows(model)
        and not flag(settings, "disable_hybrid_swa_memory"),
        swa_ratio=swa_ratio(model, ratio),
        swa_ratio_given=ratio is not None or fixed_ratio(model),
        swa_prefix_tails=integer(settings, "swa_prefix_tails")
        or (4 * max(1, (total_running or 0) // groups) if strategy_radix else 0),
        mamba_ratio=mamba_ratio(model, settings),
        mamba_slots=_slots(settings, groups),
        slots_per_request=slots_per_request(model, settings),
        radix=strategy_radix,
        overlap=overlaps(settings),
        max_running=None if total_running is None else max(1, total_running // groups),
        max_running_given=running is not None,
        max_total=integer(settings, "max_total_tokens"),
        drafting=drafting,
        fp4_workspace=fp8_prefill,
        fp4_scales_twice=fp8_prefill and is_sm100(settings),
        dtype_printed=older(settings) is None,
    )


def _slots(settings: Settings, groups: int) -> int | None:
    slots = integer(settings, "max_mamba_cache_size")
    return None if slots is None else slots // groups


def drafting_of(model: Model, settings: Settings, draft: bool) -> Drafting | None:
    """Speculative decoding as asked for; a chain (top-k 1) verifies steps + 1."""
    algorithm = text(settings, "speculative_algorithm") or ("EAGLE" if draft else None)
    if algorithm is None:
        return None
    steps = integer(settings, "speculative_num_steps")
    tokens = integer(settings, "speculative_num_draft_tokens")
    if algorithm == "NGRAM":
        tokens = tokens or NGRAM_TOKENS
        steps = tokens // NGRAM_BREADTH if steps is None else steps
        return Drafting(
            algorithm=algorithm, steps=steps, top_k=NGRAM_BREADTH, tokens=tokens
        )
    llama = class_of(model) == "LlamaForCausalLM" and algorithm != "STANDALONE"
    defaults = LLAMA_DRAFT if llama else PLAIN_DRAFT
    steps = steps or defaults[0]
    top_k = integer(settings, "speculative_eagle_topk") or defaults[1]
    return Drafting(
        algorithm="EAGLE" if algorithm == "NEXTN" else algorithm,
        steps=steps,
        top_k=top_k,
        tokens=steps + 1 if top_k == 1 else tokens or defaults[2],
    )


CHUNKS: Final = (
    (20 * 1024, 2048),
    (35 * 1024, 4096),
    (60 * 1024, 4096),
    (90 * 1024, 8192),
    (160 * 1024, 8192),
)
"""Card memory in MiB below which a step prefills that many tokens; 16384 above."""


def chunk_tokens(settings: Settings) -> int:
    """chunked_prefill_size before DP attention divides it (memory_hook.py)."""
    asked = integer(settings, "chunked_prefill_size") or settings.batched_tokens
    if asked is not None:
        return asked
    memory = settings.device.memory_mib
    version = older(settings)
    if version is not None:
        return chunk(version, memory)
    if memory is None:
        return 8192
    return next((chunk for limit, chunk in CHUNKS if memory < limit), 16384)


def fixed_ratio(model: Model) -> bool:
    """DeepSeek-V4 sets the ratio itself; V4.1 leaves it to the cap of requests."""
    return is_compressed(model) and not is_low_ratio(model)


def swa_ratio(model: Model, asked: float | None) -> float:
    if asked is not None:
        return asked
    inkling = class_of(model) == "InklingForConditionalGeneration"
    return 0.1 if is_compressed(model) or inkling else 0.8


def mamba_ratio(model: Model, settings: Settings) -> float:
    asked = number(settings, "mamba_full_memory_ratio")
    if asked == 0:
        raise InvalidArgument(
            argument="mamba_full_memory_ratio", value="0", expected="a number above 0"
        )
    if asked is not None:
        return asked
    return 0.1 if class_of(model) == "InklingForConditionalGeneration" else 0.9


def slots_per_request(model: Model, settings: Settings) -> int:
    """State slots a running request may take (kv_cache_configurator.py).

    Three for its own and the radix tree's copies; a buffer for snapshots adds two, or
    one if they are taken lazily or without the overlapping scheduler.
    """
    if flag(settings, "disable_radix_cache"):
        return 1
    strategy = mamba_strategy(model, settings)
    if strategy == "no_buffer":
        return 3
    lazy = strategy == "extra_buffer_lazy"
    return 5 if overlaps(settings) and not lazy else 4


def overlaps(settings: Settings) -> bool:
    """Whether a batch is scheduled while another runs; pipelines turn it off."""
    return settings.pp == 1 and not flag(settings, "disable_overlap_schedule")


def mamba_strategy(model: Model, settings: Settings) -> str:
    asked = text(settings, "mamba_radix_cache_strategy") or "auto"
    if asked != "auto":
        return asked
    paged = (asked_page(settings) or 1) > 1
    overlap = not flag(settings, "disable_overlap_schedule")
    inkling = class_of(model) == "InklingForConditionalGeneration"
    if inkling or (class_of(model) in EXTRA_BUFFER and (overlap or paged)):
        return "extra_buffer"
    return "no_buffer"
