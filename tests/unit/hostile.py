"""Strategies: scopes, and configs from plausible to hostile, for every known type."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st
from unit_support import REPOSITORY

from kvcore import catalog
from kvcore.formats import FORMATS
from kvcore.importers import hf_config
from kvcore.importers.fields import MAX_LAYERS

CLASSES: Final = json.loads(
    (REPOSITORY / "data/config_defaults.json").read_text(encoding="utf-8")
)

MODEL_TYPES: Final = sorted(
    {
        *CLASSES["defaults"],
        *CLASSES["without_defaults"],
        *CLASSES["text_model_type"],
        *hf_config.BUILDERS,
        *hf_config.PATTERNS,
        *hf_config.STATE_FAMILIES,
        *hf_config.REMOTE_CODE,
        *(entry.model_type for entry in catalog.entries()),
        "",
        "no_such_type",
    }
)


def _keys() -> list[str]:
    """Every key a published config or a class's default states, nested ones too."""
    found: set[str] = set()
    for stated in (*CLASSES["defaults"].values(), *_configs()):
        for key, value in stated.items():
            found.add(key)
            if isinstance(value, dict):
                found.update(value)
    return sorted(found)


def _configs() -> list[dict[str, Any]]:
    return [dict(entry.config) for entry in catalog.entries()]


CONFIGS: Final = _configs()
KEYS: Final = _keys()

KINDS: Final = [
    "full_attention", "sliding_attention", "chunked_attention", "linear_attention",
    "mamba", "conv", "hybrid", "hybrid_sliding", "mlp", "moe", "indexed_attention",
    "compressed_sparse_attention", "heavily_compressed_attention", "psychic",
]  # fmt: skip

HOSTILE: Final[list[object]] = [
    None, True, False, -1, 0, 1, MAX_LAYERS, MAX_LAYERS + 1, 10**12, 10**13, 10**400,
    -(10**400), 1.5, 128.0, 1e300, float("inf"), float("-inf"), float("nan"),
    "", "0", "auto", "M*-E", "LLLG", "F" * 9, "M" * MAX_LAYERS, "\ud800", "\x00",
    "é" * 99,
    [], {}, [[]], [{}], [None], [-1], [10**13], ["full_attention"] * MAX_LAYERS,
    ["full_attention"] * (MAX_LAYERS + 1), [0] * MAX_LAYERS, [1] * MAX_LAYERS,
    list(range(MAX_LAYERS)), {"": None}, {"0": {}}, {"0": {"head_dim": "x"}},
    {str(i): {"head_dim": i + 1} for i in range(MAX_LAYERS)},
    {"factor": 10**400, "original_max_position_embeddings": 1},
    {"full_attn_layers": [1], "num_heads": 0}, [[["global"], -1]], [[1, 2]] * 999,
]  # fmt: skip

sizes = st.sampled_from([1, 2, 3, 4, 8, 16, 64, 128, 512])

plausible = st.one_of(
    sizes,
    st.booleans(),
    st.none(),
    st.lists(st.sampled_from(KINDS), max_size=9),
    st.lists(st.integers(0, 9), max_size=9),
    st.dictionaries(st.sampled_from(KEYS), sizes, max_size=4),
)

junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)

values = st.one_of(plausible, plausible, st.sampled_from(HOSTILE), junk)


@st.composite
def made_up_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A known type, sizes that usually work, and keys of all types set at random."""
    config: dict[str, Any] = {
        "model_type": draw(st.sampled_from(MODEL_TYPES)),
        "num_hidden_layers": draw(st.integers(1, 9)),
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": draw(st.sampled_from([1, 2, 8])),
        "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "conv_kernel": 4,
        "linear_conv_kernel_dim": 4, "decoder_layers": 2, "d_model": 512,
    }  # fmt: skip
    config.update(draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=9)))
    if draw(st.integers(0, 9)) == 0:
        return {"model_type": draw(st.sampled_from(MODEL_TYPES)), "text_config": config}
    return config


@st.composite
def mutated_configs(draw: st.DrawFn) -> dict[str, Any]:
    """A published config with keys dropped, replaced or added, at both levels."""
    config = dict(draw(st.sampled_from(CONFIGS)))
    for name in ("text_config", ""):
        inner = config.get(name) if name else config
        if not isinstance(inner, dict):
            continue
        inner = dict(inner)
        for _ in range(draw(st.integers(0, 2))):
            key = draw(st.sampled_from([*inner, *KEYS[:1]]))
            inner.pop(key, None)
        for key in draw(st.lists(st.sampled_from([*inner, *KEYS]), max_size=3)):
            inner[key] = draw(values)
        if name:
            config[name] = inner
        else:
            config = inner
    return config


tokens = st.one_of(
    st.integers(0, 10), st.integers(0, 10**7), st.sampled_from([127, 128, 129, 10**12])
)

scopes = st.fixed_dictionaries(
    {"tokens": tokens, "sequences": st.integers(1, 10**6)},
    optional={
        "no_state": st.booleans(),
        "draft": st.booleans(),
        "encoder_tokens": st.integers(0, 10**6),
        "checkpoint_interval": st.integers(1, 10**6),
        "kv_format": st.sampled_from(["auto", *FORMATS]),
        "indexer_format": st.sampled_from(["auto", *FORMATS]),
        "state_format": st.sampled_from(["auto", "fp32", "fp16", "bf16", "fp8"]),
    },
)

models = st.sampled_from([entry.id for entry in catalog.entries()])
