"""The `decode` of the api: bounds of speed, and what they cost at a price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvcore.accelerators import Accelerator
from kvcore.decode.bounds import Decoder, Step
from kvcore.decode.reads import layer_reads
from kvcore.deployment import check_shards
from kvcore.errors import KvcoreError, MissingField, Notice
from kvcore.importers.indexers import top_k_of
from kvcore.limits import max_requests
from kvcore.listing import notices_json
from kvcore.params import MODEL, Params, config_of, invalid, model_of, optional
from kvcore.scenario import Scenario, allocated, per_replica, rank_of
from kvcore.scenario_params import PLAN, scenario_of
from kvcore.weight_params import counts_of

Json = dict[str, Any]

DRAFT: Final = frozenset({"draft"} | {f"draft_{name}" for name in MODEL})
OWN: Final = frozenset(
    {
        "prompt_tokens",
        "points",
        "price",
        "bandwidth_bytes_per_second",
        "flops_per_second",
    }
)
DECODE: Final = PLAN | OWN
"""A plan's parameters; `price` is for one GPU and hour, in any currency."""

MAX_POINTS: Final = 512
SHORTEST: Final = 1024
LONGEST: Final = 1 << 20
MILLION: Final = 10**6
SECONDS_PER_HOUR: Final = 3600

MULTIPLIED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "fp8": ("fp8", "bf16", "fp16"),
    "fp8_fp4_experts": ("fp8", "bf16", "fp16"),
    "nvfp4": ("fp4", "fp8", "bf16", "fp16"),
}
"""Weight format -> the numbers its matrices are multiplied in, fastest first; other
formats are widened to 16 bits. FP32 has no rate here."""

EXPERTS_EXPRESSION: Final = "1 - (1 - active_experts / experts) ^ tokens"


def answer_decode(given: Mapping[str, object]) -> Json:
    """The api's `decode`: everything is a bound, from what a step reads and computes.

    Drafts are left out: how often they are right nobody can compute.
    """
    params = Params(given, DECODE)
    asked = {name: v for name, v in given.items() if name not in OWN | DRAFT}
    plain = Params(asked, PLAN)
    scenario = scenario_of(plain)
    check_shards(scenario.model, scenario.sizes)
    scenario.engine.check(scenario.model, scenario.settings)
    if scenario.weights.source == "unknown":
        raise MissingField(field="weight_bytes")
    decoder = _decoder(params, plain, scenario)
    tokens, batch = scenario.context, per_replica(scenario)
    prompt = optional(params, "prompt_tokens", 1) or tokens
    step = decoder.step(batch, tokens)
    price = _price(params)
    most = max_requests(scenario, rank_of(scenario).pool_bytes)
    return {
        "engine": scenario.engine.id,
        "gpu": scenario.device.id,
        "gpus": scenario.sizes.gpus,
        "context": tokens,
        "concurrency": scenario.concurrency,
        "requests_per_replica": batch,
        "max_requests": most,
        "bandwidth_bytes_per_second": decoder.bandwidth,
        "flops_per_second": decoder.peak,
        "step": step_json(step),
        "experts": _experts_json(decoder, batch),
        "tokens_per_second": _rates(scenario, step),
        "crossover_requests": decoder.crossover(tokens),
        "prefill": _prefill_json(decoder, prompt),
        "without_cache": _without_cache(decoder, batch, tokens, step),
        "curve": [_point(decoder, n) for n in _points(params, scenario)],
        "cost": None if price is None else _cost(scenario, step, price, most),
        "warnings": notices_json(tuple(_notices(params, decoder, most))),
    }


def _decoder(params: Params, plain: Params, scenario: Scenario) -> Decoder:
    config = config_of(plain)
    try:
        counts = counts_of(plain, config, model_of(plain))
    except KvcoreError:
        counts = None
    stated = optional(params, "bandwidth_bytes_per_second", 1)
    peak = optional_large(params, "flops_per_second")
    return Decoder(
        scenario=scenario,
        counts=counts,
        top_k=top_k_of(config),
        bandwidth=stated or scenario.device.bandwidth_bytes_per_second,
        peak=peak or peak_of(scenario.device, scenario.weights.format),
    )


def optional_large(params: Params, name: str) -> int | None:
    value = params.integer(name, None)
    if value is not None and not 1 <= value <= 10**21:
        raise invalid(name, value, "a whole number from 1")
    return value


def peak_of(device: Accelerator, weight_format: str) -> int | None:
    """Dense operations per second for matrices in a format, None if not known."""
    usual = ("bf16", "fp16")
    for name in MULTIPLIED_IN.get(weight_format, usual):
        found = device.flops.get(name)
        if found is not None:
            return found
    return None


def step_json(step: Step) -> Json:
    return {
        "weight_bytes": step.weight_bytes,
        "cache_bytes": step.cache_bytes,
        "components": {name: n for name, n in step.components.items() if n},
        "flops": step.flops,
        "bandwidth_seconds": step.bandwidth_seconds,
        "compute_seconds": step.compute_seconds,
        "seconds": step.seconds,
        "bound": step.bound,
    }


def _experts_json(decoder: Decoder, batch: int) -> Json | None:
    counts = decoder.counts
    if counts is None or not counts.experts:
        return None
    return {
        "share": decoder.experts_touched(-(-batch // decoder.scenario.sizes.pp)),
        "expression": EXPERTS_EXPRESSION,
        "values": {
            "active_experts": counts.active_experts,
            "experts": counts.experts,
            "tokens": decoder.tokens_routed(-(-batch // decoder.scenario.sizes.pp)),
        },
    }


def _rates(scenario: Scenario, step: Step) -> Json:
    """At most so many tokens per second: of one request, and of all together."""
    if not step.seconds:
        return {"request": None, "total": None}
    return {"request": 1 / step.seconds, "total": scenario.concurrency / step.seconds}


def _prefill_json(decoder: Decoder, tokens: int) -> Json:
    """One prompt alone: the first token comes no sooner."""
    step = decoder.prefill(tokens)
    return {
        "tokens": tokens,
        **step_json(step),
        "tokens_per_second": tokens / step.seconds if step.seconds else None,
    }


def _without_cache(decoder: Decoder, batch: int, tokens: int, step: Step) -> Json:
    """Each token by running all before it again."""
    share = -(-batch // decoder.scenario.sizes.pp)
    again = decoder.prefill(tokens, share)
    seconds = again.seconds
    return {
        "flops": again.flops,
        "seconds": seconds,
        "tokens_per_second": 1 / seconds if seconds else None,
        "times_slower": seconds / step.seconds if seconds and step.seconds else None,
    }


def _point(decoder: Decoder, tokens: int) -> Json:
    scenario = decoder.scenario
    step = decoder.step(per_replica(scenario), tokens)
    return {
        "context": tokens,
        "weight_bytes": step.weight_bytes,
        "cache_bytes": step.cache_bytes,
        "seconds": step.seconds,
        "bound": step.bound,
        **_rates(scenario, step),
    }


def _points(params: Params, scenario: Scenario) -> list[int]:
    """The contexts asked for; else powers of two as far as it was trained."""
    given = params.get("points")
    if given is None:
        longest = max(scenario.context, scenario.model.max_context or 0)
        found = {scenario.context}
        point = SHORTEST
        while point <= min(longest, LONGEST):
            found.add(point)
            point *= 2
        return sorted(found)
    fine = isinstance(given, list) and 0 < len(given) <= MAX_POINTS
    if not fine or not isinstance(given, list):
        raise invalid("points", given, f"a list of 1 to {MAX_POINTS} token counts")
    for point in given:
        if isinstance(point, bool) or not isinstance(point, int):
            raise invalid("points", point, "whole numbers")
        if not 1 <= point <= 10**9:
            raise invalid("points", point, "token counts from 1")
    return list(given)


def _price(params: Params) -> float | None:
    value = params.get("price")
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise invalid("price", value, "a number above 0") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid("price", value, "a number above 0")
    if not 0 < value < MILLION:
        raise invalid("price", value, "a number above 0, below a million")
    return float(value)


def _cost(scenario: Scenario, step: Step, price: float, most: int) -> Json:
    """What a million tokens cost at least, in the price's currency.

    Output tokens at the bound of speed; tokens of context kept for an hour, of these
    requests (null if they do not fit) and of as many as fit.
    """
    hourly = price * scenario.sizes.gpus
    rate = _rates(scenario, step)["total"]
    kept = scenario.concurrency if scenario.concurrency <= most else 0

    def per_million(tokens: int) -> float | None:
        return hourly * MILLION / tokens if tokens else None

    return {
        "price_per_gpu_hour": price,
        "price_per_hour": hourly,
        "per_million_output_tokens": (
            hourly * MILLION / (rate * SECONDS_PER_HOUR) if rate else None
        ),
        "per_million_context_token_hours": per_million(kept * scenario.context),
        "per_million_context_token_hours_when_full": per_million(
            most * scenario.context
        ),
    }


def _notices(params: Params, decoder: Decoder, most: int) -> list[Notice]:
    found = []
    model, requests = decoder.scenario.model, decoder.scenario.concurrency
    if requests > most:
        found.append(Notice("more_than_fit", {"requests": requests, "most": most}))
    if any(params.get(name) for name in DRAFT):
        found.append(Notice("draft_not_in_bound", {}))
    if decoder.bandwidth is None:
        found.append(Notice("bandwidth_unknown", {"gpu": decoder.scenario.device.id}))
    if decoder.peak is None or decoder.counts is None:
        found.append(Notice("compute_unknown", {"gpu": decoder.scenario.device.id}))
    held = allocated(decoder.scenario, 1, decoder.scenario.context)
    found += [notice for notice in held.notices if notice.code == "cache_on_host"]
    picks = any(read.picked for layer in layer_reads(model) for read in layer)
    if picks and decoder.top_k is None:
        found.append(Notice("top_k_unknown", {}))
    return found
