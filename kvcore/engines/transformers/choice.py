"""Which cache class the options name, and whether transformers has it for a model.

Source: transformers 5.24.0 src/transformers/generation/utils.py
`_prepare_cache_for_generation` and cache_utils.py constructors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from kvcore.cache import (
    CacheSpec,
    CompressedAttention,
    FullAttention,
    IndexerKeys,
    LatentAttention,
)
from kvcore.engines.base import Settings
from kvcore.engines.transformers.caches import (
    Backend,
    CacheClass,
    Dynamic,
    Quantized,
    Static,
    WithoutConfig,
)
from kvcore.engines.transformers.layers import OLDER, family_of
from kvcore.errors import InvalidArgument, UnsupportedModel
from kvcore.estimate import Scope
from kvcore.model import Model
from kvcore.states import RecurrentState

IMPLEMENTATIONS: Final = ("dynamic", "dynamic_no_config", "static", "quantized")

CLASSES: Final[Mapping[str, str]] = {
    "DynamicCache": "dynamic",
    "EncoderDecoderCache": "dynamic",
    "StaticCache": "static",
    "QuantizedCache": "quantized",
    # Made by the models themselves; all but the first two in 4.57.6 alone.
    "MiniMaxCache": "dynamic",
    "xLSTMCache": "dynamic",
    "Qwen3NextDynamicCache": "dynamic",
    "HybridMambaAttentionDynamicCache": "dynamic",
    "FalconHybridMambaAttentionDynamicCache": "dynamic",
    "ZambaHybridDynamicCache": "dynamic",
    "Zamba2HybridDynamicCache": "dynamic",
    "Lfm2HybridConvCache": "dynamic",
    "MambaCache": "dynamic",
    "Mamba2Cache": "dynamic",
    "FalconMambaCache": "dynamic",
}

GROUPWISE: Final = (
    "nbits",
    "axis_key",
    "axis_value",
    "q_group_size",
    "residual_length",
)

NBITS: Final[Mapping[str, tuple[int, ...]]] = {
    "quanto": (2, 4),
    "hqq": (1, 2, 3, 4, 8),
}


def prefill_tokens(scope: Scope, settings: Settings) -> int:
    asked = cast(int | None, settings.options["prefill_tokens"])
    if asked is None:
        return scope.tokens
    if asked > scope.tokens:
        raise InvalidArgument(
            argument="prefill_tokens",
            value=str(asked),
            expected=f"at most the {scope.tokens} tokens in the cache",
        )
    return asked


def _implementation(settings: Settings) -> str:
    """The implementation named, directly or by its class or quantisation backend."""
    options = settings.options
    given = [
        name
        for name in (
            options["cache_implementation"],
            CLASSES.get(str(options["cache_class"])),
            "quantized" if options["backend"] else None,
        )
        if name
    ]
    if len(set(given)) > 1:
        raise InvalidArgument(
            argument="cache_implementation",
            value=", ".join(map(str, given)),
            expected="one implementation",
        )
    return str(given[0]) if given else "dynamic"


def cache_class(model: Model, scope: Scope, settings: Settings) -> CacheClass:
    implementation = _implementation(settings)
    tokens = scope.tokens + model.extra_tokens
    if implementation == "static":
        _refuse_static(model, settings.version)
        length = cast(int | None, settings.options["max_cache_len"])
        return Static(tokens=tokens, max_cache_len=length or tokens)
    if implementation == "quantized":
        return _quantized(model, scope, settings)
    if implementation == "dynamic_no_config":
        _refuse_without_config(model)
        return WithoutConfig(tokens=tokens)
    if _loses_its_windows(model, settings.version):
        return WithoutConfig(tokens=tokens)
    # MiniMax makes its own cache, from no config.
    return Dynamic(tokens=tokens)


def _holds(model: Model, *kinds: type[CacheSpec]) -> bool:
    return any(isinstance(spec, kinds) for spec, _ in model.groups)


def _loses_its_windows(model: Model, version: str) -> bool:
    """4.57.6 cuts layer_types to `[:-num_kv_shared_layers]`: to none if that is 0."""
    gemma3n = family_of(model) == "gemma3n" and not model.num_shared_layers
    return version == OLDER and gemma3n


def _refuse_static(model: Model, version: str) -> None:
    latent = version == OLDER and _holds(model, LatentAttention)
    if latent or _holds(model, CompressedAttention):
        raise UnsupportedModel(
            model_type=model.model_type, reason="transformers has no static cache of it"
        )


def _refuse_without_config(model: Model) -> None:
    if _holds(model, CompressedAttention, IndexerKeys, RecurrentState):
        raise UnsupportedModel(
            model_type=model.model_type,
            reason="a DynamicCache without config has no place for its states",
        )


def _quantized(model: Model, scope: Scope, settings: Settings) -> Quantized:
    """QuantizedCache; generate() refuses it for anything but full attention."""
    if not all(isinstance(spec, FullAttention | LatentAttention) and
               not spec.values.get("window") for spec, _ in model.groups):  # fmt: skip
        raise UnsupportedModel(
            model_type=model.model_type,
            reason="QuantizedCache takes full attention in every layer alone",
        )
    options = settings.options
    backend = cast(Backend, options["backend"] or "quanto")
    nbits = cast(int | None, options["nbits"])
    _check_codes(backend, nbits, options)
    return Quantized(
        tokens=scope.tokens + model.extra_tokens,
        backend=backend,
        nbits=nbits or 4,
        q_group_size=cast(int | None, options["q_group_size"]) or 64,
        residual_length=cast(int | None, options["residual_length"]) or 128,
        prefill_tokens=prefill_tokens(scope, settings),
    )


def _check_codes(
    backend: Backend, nbits: int | None, options: Mapping[str, object]
) -> None:
    if backend == "fp8":
        for name in GROUPWISE:
            if options[name] is not None:
                raise InvalidArgument(
                    argument=name,
                    value=str(options[name]),
                    expected="nothing: fp8 has one scale per tensor",
                )
    elif nbits is not None and nbits not in NBITS[backend]:
        raise InvalidArgument(
            argument="nbits",
            value=str(nbits),
            expected="one of " + ", ".join(map(str, NBITS[backend])),
        )
