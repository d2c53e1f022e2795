"""Which model types MLX-LM 0.32.2 runs, and which cache their layers get.

Read from mlx_lm/models/*.py (`make_cache`, `update_and_fetch`) and `MODEL_REMAPPING`
in mlx_lm/utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.engines.llama_cpp.arch import FROM_CONFIG
from kvcore.errors import UnsupportedModel
from kvcore.model import Model

REMAPPED: Final[Mapping[str, str]] = {
    "mistral": "llama",
    "llava": "mistral3",
    "falcon_mamba": "mamba",
    "joyai_llm_flash": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
    "qwen2_5_vl": "qwen2_vl",
    "minimax_m2": "minimax",
    "minimax_m3": "minimax_m3_vl",
    "iquestcoder": "llama",
    "xverse": "llama",
    "gemma4_unified": "gemma4",
    "hunyuan_v1_moe": "hunyuan",
    "youtu": "youtu_llm",
    "nemotron_nas": "nemotron-nas",
    "deci": "nemotron-nas",
    "bailing_moe_v3": "bailing_hybrid",
}

SUPPORTED: Final = frozenset(
    (
        "Klear afm7 afmoe apertus baichuan_m1 bailing_hybrid bailing_moe "
        "bailing_moe_linear bitnet cohere cohere2 dbrx deepseek deepseek_v2 "
        "deepseek_v3 deepseek_v32 deepseek_v41 dots1 ernie4_5 ernie4_5_moe exaone "
        "exaone4 exaone_moe falcon_h1 gear gemma gemma2 gemma3 gemma3n gemma4 glm glm4 "
        "glm4_moe glm4_moe_lite glm_moe_dsa gpt2 gpt_bigcode gpt_neox gpt_oss gptj "
        "granite granitemoe granitemoehybrid helium hunyuan hunyuan_v1_dense internlm2 "
        "internlm3 iquestloopcoder jamba kimi_k25 kimi_k3 kimi_linear kimi_vl laguna "
        "lfm2 lfm2-vl lfm2_vl lfm2_moe lille-130m llama llama4 longcat_flash "
        "longcat_flash_ngram mamba mamba2 mellum mimo mimo_v2_flash minicpm minicpm3 "
        "minimax minimax_m3_vl ministral3 mistral3 mistral4 mixtral muse_glimmer "
        "muse_spark nanbeige nanochat nemotron nemotron-nas nemotron_h olmo olmo2 "
        "olmo3 olmo_hybrid olmoe openelm phi phi3 phi3small phimoe phixtral pixtral "
        "plamo plamo2 plamo3 prism_hadamard_qwen35 qwen qwen2 qwen2_moe qwen2_vl qwen3 "
        "qwen3_5 qwen3_5_moe qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe "
        "recurrent_gemma rwkv7 seed_oss smollm3 solar_open spark2_5 stablelm "
        "starcoder2 step3p5 talkie telechat3 youtu_llm"
    ).split()
)

ROTATING: Final = frozenset(
    (
        "afmoe baichuan_m1 cohere2 exaone4 exaone_moe gear gemma3 gemma3n gemma4 "
        "gpt_oss iquestloopcoder laguna llama mellum mimo_v2_flash ministral3 mistral3 "
        "muse_glimmer muse_spark olmo3 plamo3 recurrent_gemma spark2_5 step3p5"
    ).split()
)
"""Windowed layers keep a window; everywhere else they keep every token."""

OWN_CACHES: Final = ROTATING | frozenset(
    (
        "afm7 bailing_hybrid bailing_moe_linear deepseek_v32 deepseek_v41 falcon_h1 "
        "glm_moe_dsa granitemoehybrid jamba kimi_k3 kimi_linear lfm2 lfm2-vl lfm2_vl "
        "lfm2_moe llama4 longcat_flash longcat_flash_ngram mamba mamba2 minimax_m3_vl "
        "nanbeige nemotron-nas nemotron_h olmo_hybrid plamo2 qwen3_5 qwen3_5_moe "
        "qwen3_next rwkv7"
    ).split()
)
"""Types with a `make_cache` of their own, which `--max-kv-size` does not reach."""

EXPANDED: Final = frozenset({"deepseek_v2", "minicpm3", "youtu_llm"})
"""Latent types that cache keys and values expanded to full heads."""

DOUBLE_INDEXERS: Final = frozenset({"deepseek_v32", "glm_moe_dsa"})
"""Types whose indexer keeps values as wide as its keys, all zero, in every layer."""

LISTED: Final = frozenset(
    "deepseek_v32 glm_moe_dsa falcon_h1 longcat_flash minimax_m3_vl".split()
)
"""Types with several caches in a layer (CacheList): those are never quantised."""

OWN_ATTENTION: Final = frozenset({"gemma2", "stablelm"})
"""Types that multiply keys and queries themselves."""

_FROM_GGUF: Final[Mapping[str, str]] = {
    architecture: kind for kind, architecture in reversed(list(FROM_CONFIG.items()))
}


def type_of(model: Model) -> str:
    """MLX-LM's module for a model, or `UnsupportedModel`.

    A type nobody knows is taken by its layers, with the notice it already carries.
    """
    family = model.model_type.removesuffix("_model").removesuffix("_text")
    family = REMAPPED.get(family, family)
    if family not in SUPPORTED:
        family = _FROM_GGUF.get(family, family)
        family = REMAPPED.get(family, family)
    unknown = any(notice.code == "unknown_model_type" for notice in model.notices)
    if family not in SUPPORTED and not unknown:
        raise UnsupportedModel(
            model_type=model.model_type, reason="MLX-LM 0.32.2 has no model of it"
        )
    return family


def keeps_windows(family: str, model: Model) -> bool:
    """Mistral runs as a llama, whose windows need a list of layer types."""
    return model.model_type != "mistral" and (
        family in ROTATING or family not in SUPPORTED
    )
