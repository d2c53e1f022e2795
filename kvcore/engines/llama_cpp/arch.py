"""Which llama.cpp architecture a model becomes, and what that architecture does.

Read from llama.cpp 0c1e570: the converters (conversion/*.py) for names, `create_memory`
in src/llama-model.cpp and src/models/*.cpp for what is kept, src/llama-arch.cpp for
rollback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvcore.cache import CrossAttention
from kvcore.errors import UnsupportedModel
from kvcore.model import Model
from kvcore.states import GatedLinearRecurrence, Rwkv4, Xlstm

FROM_CONFIG: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "mistral mixtral internlm3 iquestcoder llava mistral_text llama_params "
            "yi aquila mobilellm"
        ).split(),
        "llama",
    ),
    **dict.fromkeys(("ministral", "ministral3"), "mistral3"),
    **dict.fromkeys(
        "deepseek_v2 deepseek_v3 kimi_k2 kimi_k25 kimi_vl glm4_moe_lite youtu".split(),
        "deepseek2",
    ),
    "deepseek_v32": "deepseek32",
    "deepseek_v4": "deepseek4",
    "glm_moe_dsa": "glm-dsa",
    "glm5_next": "glm5-next",
    "dots3_note": "dots3note",
    **dict.fromkeys(("hy_v4", "hy_v4_vl"), "hy_v4"),
    "kimi_linear": "kimi-linear",
    "kimi_k3": "kimi-k3",
    "bailing_hybrid": "bailingmoe3",
    "bailing_moe": "bailingmoe",
    **dict.fromkeys(("bailing_moe_v2", "sarvam_moe"), "bailingmoe2"),
    **dict.fromkeys(("minimax", "minimax_text_01", "minimax_m1"), "minimax-01"),
    "minimax_m2": "minimax-m2",
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl"), "minimax-m3"),
    "cohere": "command-r",
    **dict.fromkeys(("cohere2", "cohere2_vision"), "cohere2"),
    "cohere2_moe": "cohere2moe",
    "ernie4_5_moe": "ernie4_5-moe",
    **dict.fromkeys(("exaone4", "exaone4_5"), "exaone4"),
    "exaone_moe": "exaone-moe",
    "falcon_h1": "falcon-h1",
    "falcon_mamba": "mamba",
    "gemma4_unified": "gemma4",
    "glm": "chatglm",
    "glm4_moe": "glm4moe",
    "solar_open": "glm4moe",
    "glm4v": "glm4",
    "glm4v_moe": "glm4moe",
    "gpt_bigcode": "starcoder",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    **dict.fromkeys(("granitemoehybrid", "bamba"), "granitehybrid"),
    **dict.fromkeys(("granite_swa", "granitemoe_swa"), "granite_swa"),
    "hunyuan": "hunyuan-moe",
    "hunyuan_v1_moe": "hunyuan-moe",
    "hunyuan_v1_dense": "hunyuan-dense",
    "lfm2_moe": "lfm2moe",
    "lfm2_vl": "lfm2",
    **dict.fromkeys(("mimo", "qwen2_5_omni", "dots_ocr"), "qwen2"),
    **dict.fromkeys(("mimo_v2", "mimo_v2_flash"), "mimo2"),
    "muse_glimmer": "muse-glimmer",
    **dict.fromkeys(("nemotron-nas", "deci"), "deci"),
    "olmo3": "olmo2",
    "phi": "phi2",
    **dict.fromkeys(("phi3_v", "phi4_multimodal"), "phi3"),
    "qwen2_moe": "qwen2moe",
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), "qwen2vl"),
    "qwen3_moe": "qwen3moe",
    "qwen3_vl": "qwen3vl",
    "qwen3_vl_moe": "qwen3vlmoe",
    "qwen3_next": "qwen3next",
    "qwen3_5": "qwen35",
    "qwen3_5_moe": "qwen35moe",
    "qwen4_exp": "qwen4exp",
    **dict.fromkeys(("step3p5", "step3p7"), "step35"),
    **dict.fromkeys(("mt5", "umt5"), "t5"),
    **dict.fromkeys(("xlm-roberta", "roberta"), "bert"),
}
"""`model_type` of a config -> architecture, where the names differ."""

NOT_CONVERTED: Final = frozenset(
    (
        "bart beam deepseek_v41 gpt_neo gptj hymba hyperclovax inkling inkling2 "
        "inkling2_loop inkling_mm inkling_mm_model internlm kolibri1 lara_mini lfm3 "
        "longcat_flash mistral_large4 mllama moshi muse_spark olmo_hybrid opt "
        "phi3small phi4flash recurrent_gemma rwkv rwkv5 sarvam_mla solar solar_open2 "
        "step3_vl step3 whisper xlstm zamba zamba2 zaya flint axk1"
    ).split()
)
"""Types whose configs kvcore reads and llama.cpp has no converter for."""

WINDOWED: Final = frozenset(
    (
        "afmoe cohere2 cohere2moe dots3note exaone4 exaone-moe gemma2 gemma3 gemma3n "
        "gemma4 gpt-oss granite_swa laguna lfm2 llama4 maple mellum mimo2 "
        "muse-glimmer olmo2 plamo3 smallthinker spark2_5 step35"
    ).split()
)
"""Architectures with a cache of their own for windowed layers (iSWA)."""

FORCED_WINDOWS: Final[Mapping[str, int]] = {"llama4": 8192, "smallthinker": 4096}
"""Windows that are the same whatever the file says."""

EXPANDED: Final = frozenset({"minicpm3", "plm", "deepseek2-ocr"})
"""Latent architectures whose keys and values are kept expanded to full heads."""

ROLLBACK: Final = frozenset(
    (
        "kimi-k3 qwen35 qwen35moe qwen4exp deepseek4 glm5-next nemotron_h "
        "nemotron_h_moe lfm2 lfm2moe bailingmoe3"
    ).split()
)
"""Architectures that keep `n_rs_seq` snapshots of their states."""

RECURRENT: Final = frozenset("mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7".split())

BY_INTERVAL: Final = frozenset("qwen3next qwen35 qwen35moe qwen4exp minimax-01".split())
"""Hybrids whose recurrent layers are counted off and still state their KV heads."""

DRAFTS_IN_MAIN: Final = frozenset({"bailingmoe3"})
"""Hybrids whose main cache is not told to leave the draft layers out."""

NO_MEMORY: Final = frozenset("dream llada llada-moe llada_moe rnd1".split())
"""Diffusion models: no cache is created."""

_UNKNOWN_STATES = (GatedLinearRecurrence, Rwkv4, Xlstm)


def architecture_of(model: Model) -> str:
    """llama.cpp's name for the model's architecture, or `UnsupportedModel`.

    A type nobody knows is taken by its layers, with the notice it already carries.
    """
    family = model.model_type.removesuffix("_model").removesuffix("_text")
    found = FROM_CONFIG.get(family, family)
    crossed = found != "t5"
    if family in NOT_CONVERTED or any(
        isinstance(spec, _UNKNOWN_STATES)
        or (crossed and isinstance(spec, CrossAttention))
        for spec, _ in model.groups
    ):
        raise UnsupportedModel(
            model_type=model.model_type,
            reason="llama.cpp 0c1e570 has no architecture for it",
        )
    return found


def keeps_windows(architecture: str, model: Model) -> bool:
    """Whether windowed layers get fewer cells than full ones."""
    if architecture == "exaone4":
        return model.num_layers == 64
    unknown = any(notice.code == "unknown_model_type" for notice in model.notices)
    return unknown or architecture in WINDOWED
