"""A model as an estimator or an engine without its tricks sees it: plain configs.

Made of what `show` tells of the layers, so that a hypothesis is asked like any model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]
Config = Mapping[str, object]

_HEADS: Final = ("full_attention", "sliding_window_attention", "chunked_attention")


def _specs(shown: Json) -> list[tuple[int, Json]]:
    """(layers, spec) of all kinds of layers."""
    return [
        (layer["count"], spec) for layer in shown["layers"] for spec in layer["specs"]
    ]


def _plain(layers: int, heads: int, head_dim: int, value_head_dim: int) -> Config:
    config: dict[str, object] = {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": head_dim,
        "hidden_size": heads * head_dim,
    }
    if value_head_dim != head_dim:
        config["v_head_dim"] = value_head_dim
    return config


def _gguf(layers: int, heads: int, head_dim: int, value_head_dim: int) -> Config:
    return {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads,
        "llama.attention.key_length": head_dim,
        "llama.attention.value_length": value_head_dim,
    }


def expanded(shown: Json, *, gguf: bool) -> list[tuple[str, Config]]:
    """Latents as full heads: values at their width, or padded to the keys'."""
    for layers, spec in _specs(shown):
        if spec["kind"] == "latent_attention" and layers == _layers(shown):
            heads, width = spec["num_heads"], spec["head_dim"]
            value = spec["value_head_dim"]
            make = _gguf if gguf else _plain
            found = [("padded", make(layers, heads, width, width))]
            if gguf and value != width:
                found.insert(0, ("own", make(layers, heads, width, value)))
            return found
    return []


def _layers(shown: Json) -> int:
    return sum(layer["count"] for layer in shown["layers"])


def every_layer_full(shown: Json, *, gguf: bool) -> Config | None:
    """Every layer, whatever its kind, as the full attention of the others."""
    full = [spec for _, spec in _specs(shown) if spec["kind"] in _HEADS]
    kinds = {spec["kind"] for _, spec in _specs(shown)}
    if not full or kinds == {"full_attention"}:
        return None
    widest = max(full, key=lambda s: s["num_kv_heads"] * s["head_dim"])
    make = _gguf if gguf else _plain
    return make(
        shown["facts"]["num_layers"],
        widest["num_kv_heads"],
        widest["head_dim"],
        widest["value_head_dim"],
    )


def query_heads(shown: Json, *, gguf: bool) -> Config | None:
    """One KV head per query head: multi-head attention."""
    heads = shown["facts"]["num_heads"]
    full = [spec for _, spec in _specs(shown) if spec["kind"] in _HEADS]
    if not full or not isinstance(heads, int) or len(_specs(shown)) != 1:
        return None
    spec = full[0]
    if spec["num_kv_heads"] == heads:
        return None
    make = _gguf if gguf else _plain
    return make(_layers(shown), heads, spec["head_dim"], spec["value_head_dim"])


def layers_alone(shown: Json, layers: int, *, gguf: bool) -> Config | None:
    """A few of the model's layers, where all are alike: what a draft head holds."""
    specs = _specs(shown)
    if len(specs) != 1 or specs[0][1]["kind"] != "full_attention":
        return _latent_alone(specs, layers) if len(specs) == 1 and not gguf else None
    spec = specs[0][1]
    make = _gguf if gguf else _plain
    return make(layers, spec["num_kv_heads"], spec["head_dim"], spec["value_head_dim"])


def _latent_alone(specs: list[tuple[int, Json]], layers: int) -> Config | None:
    spec = specs[0][1]
    if spec["kind"] != "latent_attention":
        return None
    return {
        "model_type": "deepseek_v3",
        "num_hidden_layers": layers,
        "num_attention_heads": spec["num_heads"],
        "num_key_value_heads": spec["num_heads"],
        "hidden_size": spec["num_heads"] * spec["head_dim"],
        "kv_lora_rank": spec["kv_lora_rank"],
        "qk_rope_head_dim": spec["qk_rope_head_dim"],
        "qk_nope_head_dim": spec["head_dim"] - spec["qk_rope_head_dim"],
        "v_head_dim": spec["value_head_dim"],
    }
