"""Levers on heads, windows and lengths: what the architecture keeps, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvcore.cache import (
    CacheSpec,
    ChunkedAttention,
    FullAttention,
    LatentAttention,
    SlidingWindowAttention,
)
from kvcore.estimate import Scope, estimate, row_bits
from kvcore.levers.start import Row, Start
from kvcore.model import Layer, Model


def kv_heads(start: Start) -> Row:
    """What the cache would be with keys of all heads, and of one: trained, not set."""
    figures = head_figures(start)
    reason = "trained_in" if figures else "no_heads"
    return Row(lever="kv_heads", reason=reason, figures=figures)


def head_figures(start: Start) -> Mapping[str, object]:
    """Bytes of a token in layers that keep it whole, by heads kept.

    `mha` is every query head's key and value, `mqa` one head's; a latent is compared
    with the heads it expands to. Empty for models without such layers.
    """
    model = start.scenario.model
    kept = mha = mqa = 0
    for spec, layers in model.groups:
        if isinstance(spec, FullAttention):
            one = pair_bytes(start, spec.head_dim, spec.value_head_dim)
            kept += layers * spec.num_kv_heads * one
            mha += layers * (model.num_heads or spec.num_kv_heads) * one
            mqa += layers * one
        elif isinstance(spec, LatentAttention) and spec.head_dim:
            one = pair_bytes(start, spec.head_dim, spec.value_head_dim)
            kept += layers * latent_bytes(start, spec)
            mha += layers * spec.num_heads * one
            mqa += layers * one
    if not mha:
        return {}
    return {
        "mha_bytes_per_token": mha,
        "bytes_per_token": kept,
        "mqa_bytes_per_token": mqa,
    }


def pair_bytes(start: Start, key: int, value: int) -> int:
    """One head's key and value in 16 bits where the format is for latents alone."""
    fmt = start.scenario.formats.kv
    if not fmt.holds("key"):
        return 2 * (key + value)
    bits = row_bits(fmt, key, "key") + row_bits(fmt, value, "value")
    return -(-bits // 8)


def latent_bytes(start: Start, spec: LatentAttention) -> int:
    fmt, rope = start.scenario.formats.kv, spec.qk_rope_head_dim
    bits = row_bits(fmt, spec.kv_lora_rank, "latent")
    return -(-(bits + (row_bits(fmt, rope, "rope") if rope else 0)) // 8)


def windows(start: Start) -> Row:
    """What the architecture's own windows save: they are trained, not set."""
    scenario = start.scenario
    open_model = without_windows(scenario.model)
    if open_model is scenario.model:
        return Row(lever="windows", reason="no_windows")
    scope = Scope(tokens=scenario.context, draft=scenario.draft)
    kept = start.now.plan.logical_request_bytes
    whole = estimate(open_model, scope, scenario.formats).total_bytes
    return Row(
        lever="windows",
        reason="trained_in",
        figures={"whole_bytes": whole, "windowed_bytes": kept},
    )


def without_windows(model: Model) -> Model:
    """The model if its windowed and chunked layers kept every token."""
    layers = tuple(tuple(map(whole, layer)) for layer in model.layers)
    return model if layers == model.layers else replace_layers(model, layers)


def replace_layers(model: Model, layers: tuple[Layer, ...]) -> Model:
    return replace(model, layers=layers)


def whole(spec: CacheSpec) -> CacheSpec:
    if isinstance(spec, SlidingWindowAttention | ChunkedAttention):
        return FullAttention(
            num_kv_heads=spec.num_kv_heads,
            head_dim=spec.head_dim,
            value_head_dim=spec.value_head_dim,
        )
    if isinstance(spec, LatentAttention) and spec.window is not None:
        return replace(spec, window=None)
    return spec


def traffic_context(start: Start) -> Row:
    """The context that traffic needs, instead of the one it could have."""
    wanted = start.traffic_context
    if wanted is None:
        return Row(lever="traffic_context", reason="lengths_not_stated")
    if wanted >= start.scenario.context:
        return Row(lever="traffic_context", reason="already_on")
    return start.row("traffic_context", {"context": wanted})


def shorter_context(start: Start) -> Row:
    """The longest context these requests can have; half of it where all fit."""
    longest = start.now.plan.max_context
    if start.fits:
        longest = start.scenario.context // 2
    if not longest:
        return Row(lever="shorter_context", reason="nothing_fits")
    return start.row("shorter_context", {"context": longest})


def fewer_requests(start: Start) -> Row:
    """As many requests as fit: the last thing to give up."""
    if start.fits:
        return Row(lever="fewer_requests", reason="already_fits")
    most = start.now.plan.max_requests
    if not most:
        return Row(lever="fewer_requests", reason="nothing_fits")
    return start.row("fewer_requests", {"concurrency": most})
