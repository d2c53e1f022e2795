"""Older SGLang: one pool of rows for all layers, and other shares of memory.

Source: sglang/srt/server_args.py (__post_init__, adjust_mem_fraction_for_vlm),
model_executor/model_runner.py (profile_max_num_token, init_memory_pool), configs/
model_config.py and distributed/utils.py of the wheels of 0.4.10.post2 and 0.4.6.post5.
States, indexers, compressed rows and drafts came later or are sized by rules that are
not computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvcore.cache import CompressedAttention, IndexerKeys, LatentAttention
from kvcore.engines.base import Settings
from kvcore.engines.sglang.models import class_of, keeps_latents
from kvcore.engines.sglang.options import flag, text
from kvcore.errors import UnsupportedModel, UnsupportedOption
from kvcore.model import Model
from kvcore.states import RecurrentState

NEWEST: Final = "0.5.23"
KV_DTYPES: Final = ("auto", "fp8_e4m3", "fp8_e5m2")
UNKNOWN_CARD: Final = 0.88
GIB_IN_MIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What differs between the older versions.

    `chunks` are card MiB below which a step prefills that many tokens, and what it
    prefills above and on an unknown card. `added` are classes that came with it.
    """

    chunks: tuple[tuple[int, int], ...]
    largest_chunk: int
    unknown_chunk: int
    vision_share: float | None
    splits_windows: bool
    pages: Mapping[str, int]
    added: frozenset[str]


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SERVED: Final = _names(
    "BaichuanForCausalLM ChatGLMModel Cohere2ForCausalLM CohereForCausalLM "
    "DbrxForCausalLM DeepseekForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM "
    "DeepseekVL2ForCausalLM ExaoneForCausalLM GPT2LMHeadModel GPTBigCodeForCausalLM "
    "Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration "
    "GemmaForCausalLM GraniteForCausalLM Grok1ForCausalLM InternLM2ForCausalLM "
    "InternLM3ForCausalLM InternVLChatModel KimiVLForConditionalGeneration "
    "Llama4ForCausalLM Llama4ForConditionalGeneration LlamaForCausalLM "
    "LlavaForConditionalGeneration LlavaLlamaForCausalLM MiMoForCausalLM "
    "MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMV Mistral3ForConditionalGeneration "
    "MistralForCausalLM MixtralForCausalLM MllamaForConditionalGeneration "
    "Olmo2ForCausalLM OlmoForCausalLM OlmoeForCausalLM Phi3ForCausalLM "
    "Phi3SmallForCausalLM QWenLMHeadModel Qwen2ForCausalLM Qwen2MoeForCausalLM "
    "Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration "
    "Qwen3ForCausalLM Qwen3MoeForCausalLM StableLmForCausalLM XverseForCausalLM "
    "XverseMoeForCausalLM"
)
_VISION: Final = _names(
    "DeepseekVL2ForCausalLM Gemma3ForConditionalGeneration "
    "Gemma3nForConditionalGeneration InternS1ForConditionalGeneration "
    "InternVLChatModel KimiVLForConditionalGeneration Llama4ForConditionalGeneration "
    "LlavaForConditionalGeneration LlavaLlamaForCausalLM MiniCPMV "
    "Mistral3ForConditionalGeneration MllamaForConditionalGeneration "
    "Phi4MMForCausalLM Qwen2VLForConditionalGeneration "
    "Qwen2_5_VLForConditionalGeneration Step3VLForConditionalGeneration"
)
_WINDOWED: Final = ("Gemma3ForC", "Gemma3nForC")
"""Classes that tell the runner a window, and are given a pool of windows by it."""

OLDER: Final[Mapping[str, Version]] = {
    "0.4.10.post2": Version(
        chunks=((35 * GIB_IN_MIB, 2048), (160 * GIB_IN_MIB, 8192)),
        largest_chunk=16384,
        unknown_chunk=4096,
        vision_share=None,
        splits_windows=True,
        pages={"flashmla": 64, "trtllm_mla": 64},
        added=_names(
            "ArceeForCausalLM Gemma3nForCausalLM Gemma3nForConditionalGeneration "
            "Glm4ForCausalLM Glm4MoeForCausalLM GraniteMoeForCausalLM "
            "HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM "
            "InternS1ForConditionalGeneration PersimmonForCausalLM Phi4MMForCausalLM "
            "PhiForCausalLM PhiMoEForCausalLM Step3VLForConditionalGeneration"
        ),
    ),
    "0.4.6.post5": Version(
        chunks=((25_000, 2048),),
        largest_chunk=8192,
        unknown_chunk=8192,
        vision_share=0.9,
        splits_windows=False,
        pages={"flashmla": 64},
        added=frozenset(),
    ),
}


def older(settings: Settings) -> Version | None:
    """The rules of an older version; None for the newest."""
    return OLDER.get(settings.version)


def chunk(version: Version, memory_mib: int | None) -> int:
    """chunked_prefill_size by the card."""
    if memory_mib is None:
        return version.unknown_chunk
    found = (size for limit, size in version.chunks if memory_mib < limit)
    return next(found, version.largest_chunk)


def page(version: Version, settings: Settings, asked: int | None) -> int:
    """Pages of one token, but for backends that insist on more."""
    backend = text(settings, "attention_backend") or ""
    if backend == "trtllm_mla" and asked == 32:
        return 32
    return version.pages.get(backend) or asked or 1


def older_stages(num_layers: int, pp: int) -> tuple[range, ...]:
    """Equal stages; the last one has the remainder too.

    >>> [len(stage) for stage in older_stages(80, 3)]
    [26, 26, 28]
    """
    size = num_layers // pp
    starts = [stage * size for stage in range(pp)]
    return tuple(
        range(start, start + size if stage < pp - 1 else num_layers)
        for stage, start in enumerate(starts)
    )


def fraction(version: Version, model: Model, settings: Settings) -> float:
    """mem_fraction_static, before a vision tower takes its part."""
    card = settings.device.memory_mib
    ranks = settings.tp * settings.pp
    if version.vision_share is not None:
        found = _by_ranks(card, ranks)
        return found * version.vision_share if is_vision(model) else found
    if card is None:
        return UNKNOWN_CARD
    reserved = _reserved_gib(card, ranks) * GIB_IN_MIB
    if text(settings, "speculative_algorithm"):
        reserved += 2 * GIB_IN_MIB
    if flag(settings, "enable_dp_attention"):
        reserved += 4 * GIB_IN_MIB
    return round((card - reserved) / card, 3)


def _by_ranks(card: int | None, ranks: int) -> float:
    """0.4.6: by ranks on cards up to 80 GiB, more on those above 96 GiB."""
    found = UNKNOWN_CARD
    if card is not None and card <= 80 * GIB_IN_MIB:
        steps = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87))
        found = next((share for least, share in steps if ranks >= least), found)
    if card is not None and card > 96 * GIB_IN_MIB:
        kept = 48 * GIB_IN_MIB * (1 - found) / card
        found = min(found + kept, (card - 18 * GIB_IN_MIB) / card)
    return found


def _reserved_gib(card: int, ranks: int) -> float:
    """0.4.10: GiB for activations and graphs by the card."""
    if card < 35 * GIB_IN_MIB:
        return 2.8 + ranks / 10
    if card < 90 * GIB_IN_MIB:
        return 9.5 + ranks / 2
    return 12 + ranks / 2 if card < 160 * GIB_IN_MIB else 32


def is_vision(model: Model) -> bool:
    """Whether the class is served as a multimodal one."""
    return class_of(model) in _VISION


def check_older(version: Version, model: Model, settings: Settings) -> None:
    """Refuse what these versions do not serve, or what is not computed of them."""
    reason = _unserved(version, model, settings)
    if reason is not None:
        raise UnsupportedModel(model_type=model.model_type, reason=reason)
    drafting = text(settings, "speculative_algorithm")
    for option, value, refused in (
        ("dcp", settings.dcp, settings.dcp > 1),
        ("speculative_algorithm", drafting, drafting is not None),
        ("pp", settings.pp, settings.pp > 1 and keeps_latents(model)),
    ):
        if refused:
            raise UnsupportedOption(
                engine="sglang",
                option=option,
                value=value,
                reason=f"{settings.version} has no such rule, or it is not known here",
            )


def _unserved(version: Version, model: Model, settings: Settings) -> str | None:
    name = class_of(model)
    later = (RecurrentState, IndexerKeys, CompressedAttention)
    unknown = name and name not in _SERVED | version.added
    if unknown or any(isinstance(spec, later) for spec, _ in model.groups):
        return f"SGLang {settings.version} does not serve it"
    windowed = name.startswith(_WINDOWED) or model.model_type.startswith("gemma3")
    apart = version.splits_windows and windowed
    if apart and not flag(settings, "disable_hybrid_swa_memory"):
        return (
            f"SGLang {settings.version}'s pool of windows is not computed here; "
            "with disable_hybrid_swa_memory there is none"
        )
    if any(isinstance(s, LatentAttention) and s.window for s, _ in model.groups):
        return f"SGLang {settings.version} has no windows of latents"
    return None
