"""What SGLang 0.5.23 decides by a model's class: pools, backends, states, vision.

Source: sglang/srt/configs/model_config.py, configs/hybrid_arch.py, arg_groups/
overrides.py and arg_groups/model_overrides/ of the 0.5.23 wheel. Its rules go by the
first of a config's `architectures`; a file without one is taken for its family's class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    CompressedAttention,
    IndexerKeys,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.model import Model
from kvcore.states import RecurrentState


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FAMILY_CLASS: Final[Mapping[str, str]] = {
    "beam": "BeamForCausalLM",
    "llama4": "Llama4ForConditionalGeneration",
    "gpt_oss": "GptOssForCausalLM",
    "mimo_v2": "MiMoV2ForCausalLM",
    "mimo_v2_flash": "MiMoV2FlashForCausalLM",
    "step3p5": "Step3p5ForCausalLM",
    "gemma4": "Gemma4ForConditionalGeneration",
    "gemma4_unified": "Gemma4UnifiedForConditionalGeneration",
    "laguna": "LagunaForCausalLM",
    "mellum": "MellumForCausalLM",
    "muse_glimmer": "MuseGlimmerForConditionalGeneration",
    "muse_spark": "MuseSparkForConditionalGeneration",
    "inkling": "InklingForConditionalGeneration",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "deepseek_v32": "DeepseekV32ForCausalLM",
    "deepseek_v4": "DeepseekV4ForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "glm_moe_dsa": "GlmMoeDsaForCausalLM",
    "glm4_moe_lite": "Glm4MoeLiteForCausalLM",
    "longcat_flash": "LongcatFlashForCausalLM",
    "dots3_note": "Dots3NoteForCausalLM",
    "hy_v4": "HYV4ForCausalLM",
    "sarvam_mla": "SarvamMLAForCausalLM",
    "minicpm3": "MiniCPM3ForCausalLM",
    "kimi_linear": "KimiLinearForCausalLM",
    "kimi_k3": "KimiK3ForConditionalGeneration",
    "qwen3_next": "Qwen3NextForCausalLM",
    "qwen3_5": "Qwen3_5ForConditionalGeneration",
    "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration",
    "qwen4_exp": "Qwen4ExpForConditionalGeneration",
    "nemotron_h": "NemotronHForCausalLM",
    "falcon_h1": "FalconH1ForCausalLM",
    "granitemoehybrid": "GraniteMoeHybridForCausalLM",
    "lfm2": "Lfm2ForCausalLM",
    "lfm2_moe": "Lfm2MoeForCausalLM",
    "mamba": "MambaForCausalLM",
    "falcon_mamba": "FalconMambaForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "zaya": "ZayaForCausalLM",
    "minimax_m3_vl": "MiniMaxM3SparseForConditionalGeneration",
    "minimax_m3": "MiniMaxM3SparseForCausalLM",
}
"""The class of a family, where rules depend on it and the file does not name it."""

SPLIT_WINDOWS: Final = _names(
    "BeamForCausalLM Llama4ForConditionalGeneration GptOssForCausalLM "
    "GraniteSWAForCausalLM GraniteMoeSWAForCausalLM IQuestQ1ForCausalLM "
    "MiMoV2ForCausalLM MiMoV2FlashForCausalLM Step3p5ForCausalLM "
    "Step3p7ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration "
    "Gemma4UnifiedForConditionalGeneration DiffusionGemmaForBlockDiffusion "
    "EmbeddingGemma2Model LagunaForCausalLM MellumForCausalLM MuseGlimmerForCausalLM "
    "MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration "
    "InklingForConditionalGeneration UnlimitedOCRForCausalLM Dots3NoteForCausalLM"
)
"""Classes whose window layers get a pool of their own; all others keep full length."""

LAST_OF_WINDOW: Final = _names(
    "GptOssForCausalLM Gemma4ForCausalLM Gemma4ForConditionalGeneration "
    "Gemma4UnifiedForConditionalGeneration DiffusionGemmaForBlockDiffusion "
    "MellumForCausalLM MuseGlimmerForCausalLM MuseGlimmerForConditionalGeneration "
    "MuseSparkForConditionalGeneration InklingForConditionalGeneration BeamForCausalLM"
)
"""Classes that count a window without the token that looks through it (window - 1)."""

LATENT: Final = _names(
    "DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM "
    "Glm4MoeLiteForCausalLM GlmMoeDsaForCausalLM Glm5NextForConditionalGeneration "
    "LongcatFlashForCausalLM HYV4ForCausalLM DotsVLMForCausalLM Dots3NoteForCausalLM "
    "MistralLarge3ForCausalLM PixtralForConditionalGeneration "
    "KimiK25ForConditionalGeneration GigaChat35ForCausalLM MiniCPM3ForCausalLM "
    "DeepseekVL2ForCausalLM KimiVLForConditionalGeneration KimiLinearForCausalLM "
    "KimiK3LinearForCausalLM KimiK3ForConditionalGeneration BailingMoeV2_5ForCausalLM "
    "BailingMoeV3ForCausalLM BailingMoeV3VLForConditionalGeneration "
    "SarvamMLAForCausalLM"
)
"""Classes whose latents are kept as such; others' are kept as full heads."""

DEEPSEEK_FAMILY: Final = _names(
    "DeepseekV3ForCausalLM DeepseekV32ForCausalLM KimiK25ForConditionalGeneration "
    "MistralLarge3ForCausalLM PixtralForConditionalGeneration GlmMoeDsaForCausalLM "
    "Glm5NextForConditionalGeneration HYV4ForCausalLM LongcatFlashForCausalLM "
    "Dots3NoteForCausalLM"
)
"""Latent classes that take the trtllm_mla backend (pages of 64) on SM100."""

STATES: Final = _names(
    "KimiLinearForCausalLM KimiK3LinearForCausalLM KimiK3ForConditionalGeneration "
    "BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM "
    "BailingMoeV3VLForConditionalGeneration Qwen3NextForCausalLM "
    "Qwen3_5MoeForConditionalGeneration Qwen3_5ForConditionalGeneration "
    "Qwen3_5MoeForCausalLM Qwen3_5ForCausalLM Qwen4ExpForConditionalGeneration "
    "InternS2PreviewForConditionalGeneration InternS2MobiusForConditionalGeneration "
    "NemotronHForCausalLM NemotronHPuzzleForCausalLM NemotronH_Omni_Reasoning_V3 "
    "NemotronH_Nano_VL_V2 FalconH1ForCausalLM JetNemotronForCausalLM "
    "JetVLMForConditionalGeneration Lfm2ForCausalLM Lfm2MoeForCausalLM "
    "Lfm2VlForConditionalGeneration ZayaForCausalLM GraniteMoeHybridForCausalLM "
    "InklingForConditionalGeneration MambaForCausalLM FalconMambaForCausalLM "
    "Mamba2ForCausalLM"
)
"""Classes whose states it can keep."""

EXTRA_BUFFER: Final = _names(
    "KimiLinearForCausalLM KimiK3ForConditionalGeneration BailingMoeV2_5ForCausalLM "
    "BailingMoeV3ForCausalLM BailingMoeV3VLForConditionalGeneration "
    "Qwen3NextForCausalLM Qwen3_5MoeForConditionalGeneration "
    "Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5ForCausalLM "
    "Qwen4ExpForConditionalGeneration InternS2PreviewForConditionalGeneration "
    "NemotronHForCausalLM NemotronHPuzzleForCausalLM NemotronH_Omni_Reasoning_V3 "
    "FalconH1ForCausalLM GraniteMoeHybridForCausalLM InklingForConditionalGeneration"
)
"""Classes whose states the radix cache may snapshot while a request runs."""

VISION: Final = _names(
    "Cohere2VisionForConditionalGeneration DeepseekVL2ForCausalLM "
    "Ernie4_5_VLMoeForConditionalGeneration MiniMaxM3SparseForConditionalGeneration "
    "Gemma3nForConditionalGeneration Gemma4ForConditionalGeneration "
    "Gemma4UnifiedForConditionalGeneration DiffusionGemmaForBlockDiffusion "
    "Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration "
    "GlmOcrForConditionalGeneration LlavaForConditionalGeneration "
    "Lfm2VlForConditionalGeneration LightOnOCRForConditionalGeneration "
    "Mistral3ForConditionalGeneration MllamaForConditionalGeneration "
    "NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 MiniCPMV MiniCPMO "
    "MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration "
    "PixtralForConditionalGeneration Qwen2VLForConditionalGeneration "
    "Qwen2_5_VLForConditionalGeneration Qwen3VLForConditionalGeneration "
    "Qwen3VLMoeForConditionalGeneration Qwen3_5ForConditionalGeneration "
    "Qwen3_5MoeForConditionalGeneration Qwen4ExpForConditionalGeneration "
    "InternS2PreviewForConditionalGeneration InternS2MobiusForConditionalGeneration "
    "KimiVLForConditionalGeneration InternVLChatModel InternS1ForConditionalGeneration "
    "Phi4MMForCausalLM DotsVLMForCausalLM Dots3NoteForCausalLM DotsOCRForCausalLM "
    "DeepseekOCRForCausalLM UnlimitedOCRForCausalLM JetVLMForConditionalGeneration "
    "PaddleOCRVLForConditionalGeneration Step3p7ForConditionalGeneration "
    "Step3p7FlashForCausalLM KimiK25ForConditionalGeneration "
    "BailingMoeV3VLForConditionalGeneration "
    "Glm5NextForConditionalGeneration MiMoV2ForCausalLM"
)
"""Classes served with their vision tower unless told otherwise."""

BLIND: Final = _names(
    "Gemma3ForConditionalGeneration Llama4ForConditionalGeneration "
    "Step3VLForConditionalGeneration InklingForConditionalGeneration"
)
"""Classes served without their vision tower unless asked for it."""

VISION_GRAPHS: Final = _names(
    "MiniMaxM3SparseForConditionalGeneration Cohere2VisionForConditionalGeneration "
    "Glm5NextForConditionalGeneration InternS2MobiusForConditionalGeneration "
    "PaddleOCRVLForConditionalGeneration Qwen3_5ForConditionalGeneration "
    "Qwen3_5MoeForConditionalGeneration Qwen4ExpForConditionalGeneration "
    "MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration "
    "KimiK25ForConditionalGeneration"
)
"""Vision classes whose prefill is still captured in graphs."""

TRITON_ON_SM100: Final = _names(
    "FalconH1ForCausalLM JetNemotronForCausalLM JetVLMForConditionalGeneration"
)
FLASHINFER_ON_SM100: Final = _names(
    "GraniteMoeHybridForCausalLM Lfm2ForCausalLM Lfm2MoeForCausalLM"
)
DELTA_NETS: Final = _names(
    "Qwen3NextForCausalLM Qwen3_5MoeForConditionalGeneration "
    "InternS2PreviewForConditionalGeneration InternS2MobiusForConditionalGeneration "
    "Qwen3_5ForConditionalGeneration"
)
"""Classes that take trtllm_mha on SM100 only with `extra_buffer` asked for by name."""


def class_of(model: Model) -> str:
    """The class SGLang loads for a model."""
    family = model.model_type.removesuffix("_model").removesuffix("_text")
    return model.architecture or FAMILY_CLASS.get(family, "")


def has_states(model: Model) -> bool:
    return any(isinstance(spec, RecurrentState) for spec, _ in model.groups)


def is_compressed(model: Model) -> bool:
    """DeepSeek-V4's compressed attention."""
    return any(isinstance(spec, CompressedAttention) for spec, _ in model.groups)


def is_low_ratio(model: Model) -> bool:
    """DeepSeek-V4.1: compression by 1 and 2, on one pipeline stage only."""
    return any(
        isinstance(spec, CompressedAttention) and spec.ratio in (1, 2)
        for spec, _ in model.groups
    )


def keeps_latents(model: Model) -> bool:
    """Whether the model's latents are kept as latents (MLA)."""
    return class_of(model) in LATENT and any(
        isinstance(spec, LatentAttention) for spec, _ in model.groups
    )


def has_sparse_latents(model: Model) -> bool:
    """DSA: latents with an indexer."""
    return keeps_latents(model) and any(
        isinstance(spec, IndexerKeys) for spec, _ in model.groups
    )


def splits_windows(model: Model) -> bool:
    """Whether its window layers get a pool of their own."""
    return class_of(model) in SPLIT_WINDOWS and any(
        is_windowed(spec) for spec, _ in model.groups
    )


def is_windowed(spec: CacheSpec) -> bool:
    if isinstance(spec, LatentAttention):
        return spec.window is not None
    return isinstance(spec, SlidingWindowAttention | ChunkedAttention)
