"""What vLLM was asked, resolved against its defaults: the input of the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kvcore.cache import CrossAttention, Heads
from kvcore.engines.base import Settings
from kvcore.engines.vllm.rules import RULES, Rules, capability, default_batched_tokens
from kvcore.model import Layer, Model
from kvcore.states import RecurrentState

GEMMA4_VIDEO_TOKENS: Final = 2496
"""What one video of Gemma 4 may take (arg_utils.py, _get_min_mm_batched_tokens)."""

UNSTATED_DRAFTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "qwen3_next": "full_attention",
        "mimo_v2_flash": "sliding_window_attention",
    }
)
"""Models with one draft layer that their configs do not mention, and its kind."""

EAGLE_LIKE: Final = ("mtp", "eagle", "eagle3")
"""Draft methods that read the target's hidden states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Settings that shape the cache, with every default filled in.

    `bounded_gates`: the decay of KDA layers has a lower bound (Kimi K3), which its
    checkpointing kernel needs.
    """

    rules: Rules
    tp: int
    pp: int
    dcp: int
    major: int
    block_tokens: int | None
    backend: str | None
    aligned_states: bool
    hybrid: bool
    image_prefix: bool
    bounded_gates: bool
    drafts: bool
    speculative_tokens: int
    retained_tokens: int
    batched_tokens: int
    sequences_limit: int | None
    batches_in_flight: int

    def in_flight(self, context: int) -> int:
        """Tokens scheduled but not settled, for requests of `context` tokens.

        A default batch never exceeds what all sequences together can hold.
        Source: vllm/config/vllm.py 0.33.0, max_in_flight_tokens.
        """
        batch = self.batched_tokens
        if self.sequences_limit is not None:
            batch = min(batch, self.sequences_limit * max(context, 1))
        return self.batches_in_flight * batch


def deployment(model: Model, settings: Settings, draft: bool = False) -> Deployment:
    """`settings` as vLLM would run them; `draft` adds the model's own draft layers."""
    rules = RULES[settings.version]
    options = settings.options
    given = settings.batched_tokens or options["max_num_batched_tokens"]
    _, sequences = default_batched_tokens(
        rules, settings.device, str(options["usage_context"])
    )
    speculative = int(options["num_speculative_tokens"] or 0)
    method = str(options["speculative_method"])
    has_draft_layers = method not in ("ngram", "suffix")
    drafts = draft or (speculative > 0 and has_draft_layers)
    if drafts and not speculative:
        speculative = max(1, len(draft_layers(model)))
    asynchronous = options["async_scheduling"] is not False
    return Deployment(
        rules=rules,
        tp=settings.tp,
        pp=settings.pp,
        dcp=settings.dcp,
        major=capability(settings.device),
        block_tokens=settings.block_tokens,
        backend=_text(options["attention_backend"]),
        aligned_states=_aligned(model, rules, settings),
        hybrid=_hybrid(model, rules, settings, drafts and method in EAGLE_LIKE),
        image_prefix=_image_prefix(model),
        bounded_gates="KimiK3" in (model.architecture or "KimiK3"),
        drafts=drafts,
        speculative_tokens=speculative,
        retained_tokens=_retained(model, method, speculative, drafts),
        batched_tokens=_batch(model, settings, bool(given)),
        sequences_limit=None if given else int(options["max_num_seqs"] or sequences),
        batches_in_flight=_batches(rules, settings.pp, asynchronous),
    )


def batched_tokens(settings: Settings) -> int:
    """`max_num_batched_tokens`: as asked, else by device and usage."""
    given = settings.batched_tokens or settings.options["max_num_batched_tokens"]
    default, _ = default_batched_tokens(
        RULES[settings.version],
        settings.device,
        str(settings.options["usage_context"]),
    )
    return int(given or default)


def _batch(model: Model, settings: Settings, given: bool) -> int:
    """Where images are seen whole, a default batch holds the largest one."""
    found = batched_tokens(settings)
    if given or not _image_prefix(model) or "gemma4" not in model.model_type:
        return found
    return max(found, GEMMA4_VIDEO_TOKENS)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _batches(rules: Rules, pp: int, asynchronous: bool) -> int:
    """Concurrent batches: one a stage, and one more to overlap with."""
    if not rules.batches_in_flight:
        return 1
    return pp + 1 if asynchronous else pp


def _aligned(model: Model, rules: Rules, settings: Settings) -> bool:
    """Whether states are kept at block boundaries, for prefix caching.

    Source: vllm/model_executor/models/config.py 0.33.0, MambaModelConfig; and
    vllm/config/model.py, is_prefix_caching_supported.
    """
    caching = settings.options["enable_prefix_caching"]
    mode = settings.options["mamba_cache_mode"]
    states = any(isinstance(spec, RecurrentState) for spec, _ in model.groups)
    if not states:
        return False
    if caching is None and mode is not None:
        return mode == "align"
    if caching is None:
        attention = any(not isinstance(s, RecurrentState) for s, _ in model.groups)
        return rules.hybrid_prefix_caching and attention
    return bool(caching)


def _image_prefix(model: Model) -> bool:
    """Whether the tokens of an image attend to one another both ways.

    Gemma 3 with images, and the Gemma 4 models that do not share caches.
    Source: vllm/transformers_utils/model_arch_config_convertor.py 0.33.0.
    """
    family = model.model_type.removesuffix("_text")
    if family not in ("gemma3", "gemma4", "paligemma"):
        return False
    if family == "gemma4":
        return not model.num_shared_layers
    return "ForConditionalGeneration" in (model.architecture or "")


def _hybrid(model: Model, rules: Rules, settings: Settings, drafts: bool) -> bool:
    """Whether windows are managed as windows.

    Source: vllm/config/vllm.py 0.33.0: off when asked, and for chunked attention
    beside an EAGLE-like draft (and always before 0.15).
    """
    if settings.options["disable_hybrid_kv_cache_manager"]:
        return False
    chunked = any(spec.kind == "chunked_attention" for spec, _ in model.groups)
    return not chunked or (rules.chunked_hybrid and not drafts)


def _retained(model: Model, method: str, speculative: int, drafts: bool) -> int:
    """Tokens kept below a window for chained draft modules, which read ahead.

    Source: vllm/v1/core/kv_cache_planning.py 0.33.0, get_global_kv_cache_groups.
    """
    if not drafts or method != "mtp" or len(draft_layers(model)) < 2:
        return 0
    return max(0, speculative - 1)


def draft_layers(model: Model) -> tuple[Layer, ...]:
    """The config's draft layers, or the one vLLM knows these models come with.

    Source: vllm/config/speculative.py and vllm/model_executor/models/mimo_v2_mtp.py,
    0.33.0; the last layer of its kind stands for it.
    """
    kind = UNSTATED_DRAFTS.get(model.model_type)
    if model.draft_layers or kind is None:
        return model.draft_layers
    alike = [layer for layer in model.layers if layer and layer[0].kind == kind]
    return tuple(alike[-1:])


def encoder_length(model: Model) -> int:
    """Encoder tokens a request is given room for."""
    fixed = [
        spec.source_tokens
        for spec, _ in model.groups
        if isinstance(spec, CrossAttention) and spec.source_tokens is not None
    ]
    return max(fixed, default=model.encoder_tokens)


def per_head(model: Model) -> Heads | None:
    """The model's most common per-head attention, as its config states it."""
    found = [
        (n, spec)
        for spec, n in model.groups
        if isinstance(spec, Heads) and not isinstance(spec, CrossAttention)
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None
