"""What TensorRT-LLM adds to the logical bytes of a rank, by cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from kvcore.cache import CacheSpec, Component
from kvcore.engines.base import Settings, no_bytes
from kvcore.engines.none import rank_term
from kvcore.engines.tensorrt_llm.buffers import Stage
from kvcore.engines.tensorrt_llm.models import attention_ranks, is_compressed
from kvcore.engines.tensorrt_llm.options import asked_windows
from kvcore.engines.tensorrt_llm.pools import Held
from kvcore.estimate import (
    CacheFormats,
    Scope,
    copies_of,
    encoder_tokens,
    term_bytes,
)
from kvcore.model import Model


def items_of(
    held: Held,
    model: Model,
    scope: Scope,
    formats: CacheFormats,
    settings: Settings,
    requests: int,
) -> Mapping[str, int]:
    """Bytes by code; they sum to the allocation less the rank's logical bytes.

    `window_reserve`: blocks beyond a window, window layers in full, or what windows
    that were asked for leave out; `state_slots`: states beyond one a request;
    `compressor_states`: DeepSeek-V4's; `page_padding`: values as wide as keys;
    `pool_split`: what fixed shares leave unused; `blocks`: all else, whole blocks and
    heads that are kept more often than they must be.
    """
    logical = _logical(held.stage, model, scope, formats, settings, requests)
    extra = {
        component: count - logical[component] - held.unused[component]
        for component, count in held.components.items()
    }
    windowed: tuple[Component, ...] = ("window",)
    if asked_windows(settings):
        windowed = ("window", "kv", "draft")
    found = {
        "window_reserve": sum(extra[c] - held.padding[c] for c in windowed),
        "compressor_states" if is_compressed(model) else "state_slots": extra["state"],
        "page_padding": sum(held.padding.values()),
    }
    found["blocks"] = sum(extra.values()) - sum(found.values())
    found["pool_split"] = sum(held.unused.values())
    return MappingProxyType({code: count for code, count in found.items() if count})


def _logical(
    stage: Stage,
    model: Model,
    scope: Scope,
    formats: CacheFormats,
    settings: Settings,
    requests: int,
) -> dict[Component, int]:
    """Logical bytes of a stage's layers on one rank, by component."""
    found = no_bytes()
    ranks = attention_ranks(settings)
    tokens = scope.tokens + model.extra_tokens
    encoder = encoder_tokens(model, scope)
    for spec, draft in _specs(stage, model):
        for term in spec.terms(tokens, encoder):
            found["draft" if draft else term.component] += (
                requests
                * copies_of(term, scope)
                * term_bytes(rank_term(spec, term, ranks), formats)
            )
    return found


def _specs(stage: Stage, model: Model) -> Iterator[tuple[CacheSpec, bool]]:
    for index in stage.layers:
        for spec in model.layers[index]:
            yield spec, False
    if stage.drafts:
        for layer in model.draft_layers:
            for spec in layer:
                yield spec, True
