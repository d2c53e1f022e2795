"""How a checkpoint says its KV cache is to be quantised."""

from __future__ import annotations

from collections.abc import Mapping


def kv_quantization(config: Mapping[str, object]) -> str | None:
    """The format a checkpoint's scales are made for ("fp8", "nvfp4"), if any.

    ModelOpt states an algorithm or a scheme, compressed-tensors a scheme; both hold
    for the cache of engines that follow the checkpoint, never for the weights.
    """
    stated = _stated(config)
    method = str(stated.get("quant_method") or "")
    if method.startswith("modelopt"):
        inner = stated.get("quantization")
        return _algorithm(inner if isinstance(inner, Mapping) else stated)
    if method == "compressed-tensors" and isinstance(
        stated.get("kv_cache_scheme"), Mapping
    ):
        return "fp8"
    return None


def _stated(config: Mapping[str, object]) -> Mapping[str, object]:
    for place in (config, config.get("text_config")):
        if isinstance(place, Mapping):
            found = place.get("quantization_config")
            if isinstance(found, Mapping):
                return found
    return {}


def _algorithm(stated: Mapping[str, object]) -> str | None:
    named = stated.get("kv_cache_scheme") or stated.get("kv_cache_quant_algo")
    if isinstance(named, Mapping):
        if named.get("type") != "float":
            return None
        bits = named.get("num_bits")
        if bits == 8 and named.get("dynamic") is False:
            return "fp8"
        return "nvfp4" if bits == 4 else None
    name = str(named or "").lower()
    return name if name in ("fp8", "nvfp4") else None
