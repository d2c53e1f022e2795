"""How fast decoding can be at most: what a step must read, and must compute.

A step takes at least bytes / bandwidth and operations / peak, on every stage of a
pipeline in turn. Nothing else is counted (launches, communication, sampling, the one
row a step writes), so these are bounds and no predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final, Literal

from kvcore.cache import Component
from kvcore.decode.arithmetic import (
    attention_parameters,
    decode_rows,
    head_parameters,
    other_parameters,
    prefill_rows,
    row_flops,
)
from kvcore.decode.reads import Reads, layer_reads, read_bytes
from kvcore.deployment import stage_weight_bytes
from kvcore.limits import largest
from kvcore.parameters import ParameterCounts
from kvcore.scenario import Scenario, stages_of

Bound = Literal["bandwidth", "compute"]

UNREAD: Final = ("lookup", "encoder", "towers")
"""Parts that decoding does not touch, or only a few rows of."""

MAX_BATCH: Final = 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pass through the model on one rank of every stage, and its least time.

    Times are None where the device's rate or the model's parameters are not known;
    `seconds` then is the bound that is left.
    """

    weight_bytes: int
    cache_bytes: int
    components: Mapping[Component, int]
    flops: int | None
    bandwidth_seconds: float | None
    compute_seconds: float | None
    seconds: float | None

    @property
    def bound(self) -> Bound | None:
        """What takes longer, of all stages together."""
        if self.seconds is None:
            return None
        by_bytes = self.bandwidth_seconds or 0.0
        return "bandwidth" if by_bytes >= (self.compute_seconds or 0.0) else "compute"


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """A scenario without drafts, as far as its speed is concerned.

    `bandwidth` is bytes per second of one device, `peak` its operations per second in
    the numbers its matrices are multiplied in; None where nobody knows.
    """

    scenario: Scenario
    counts: ParameterCounts | None
    top_k: int | None
    bandwidth: int | None
    peak: int | None

    @cached_property
    def stages(self) -> tuple[Reads, ...]:
        layers = layer_reads(self.scenario.model)
        ends = tuple(accumulate(stages_of(self.scenario)))
        starts = (0, *ends[:-1])
        return tuple(
            tuple(Counter(r for layer in layers[a:b] for r in layer).items())
            for a, b in zip(starts, ends, strict=True)
        )

    def tokens_routed(self, batch: int) -> int:
        """Tokens of one step that experts of one rank may be asked for."""
        sizes = self.scenario.sizes
        spread = sizes.expert_parallel or sizes.attention_dp
        return batch * sizes.dp if spread else batch

    def experts_touched(self, batch: int) -> float:
        """Expected share of the experts that `batch` requests' tokens use.

        1 - (1 - active / all) ^ tokens: every token picks its experts by itself, each
        as likely as the next. Real routing repeats itself and touches fewer.
        """
        counts = self.counts
        if counts is None or not counts.experts:
            return 1.0
        share = min(counts.active_experts / counts.experts, 1.0)
        return 1.0 - (1.0 - share) ** self.tokens_routed(batch)

    def weight_bytes(self, batch: int) -> tuple[int, ...]:
        """Weights one rank of each stage reads in a step of `batch` requests."""
        scenario = self.scenario
        weights = scenario.weights
        held = dict(scenario.engine.device_parts(weights.parts))
        head = held["output_head"] or held["embeddings"]
        read = {**held, **dict.fromkeys(UNREAD, 0), "embeddings": 0}
        read["output_head"] = head
        read["experts"] = round(held["experts"] * self.experts_touched(batch))
        total = sum(read.values())
        if weights.source not in ("counted", "checkpoint") or (
            weights.format == "checkpoint"
        ):
            # The parts are shares of a size that is known otherwise.
            total = weights.total * total // max(sum(weights.parts.values()), 1)
        return stage_weight_bytes(
            read, scenario.model, scenario.sizes, total, stages_of(scenario)
        )

    def cache_bytes(self, tokens: int) -> tuple[Mapping[Component, int], ...]:
        """Cache one rank of each stage reads for one request of `tokens`."""
        return tuple(
            read_bytes(self.scenario, reads, tokens, self.top_k)
            for reads in self.stages
        )

    def step(self, requests: int, tokens: int) -> Step:
        """One token more for each of a replica's requests.

        Stages of a pipeline work on shares of them in turn.
        """
        batch = -(-requests // self.scenario.sizes.pp)
        caches = self.cache_bytes(tokens)
        return self._pass(
            weights=self.weight_bytes(batch),
            caches=[
                {name: batch * count for name, count in cache.items()}
                for cache in caches
            ],
            flops=self.flops(batch, batch, tokens),
        )

    def prefill(self, tokens: int, requests: int = 1) -> Step:
        """All tokens of new prompts at once; the cache is written and not yet read."""
        none: list[Mapping[Component, int]] = [{} for _ in self.stages]
        return self._pass(
            weights=self.weight_bytes(requests * tokens),
            caches=none,
            flops=self.flops(requests * tokens, requests, tokens, prefill=True),
        )

    def flops(
        self, rows: int, requests: int, tokens: int, *, prefill: bool = False
    ) -> list[int] | None:
        """Operations of one rank of each stage; the head is for last tokens alone."""
        counts, scenario = self.counts, self.scenario
        if counts is None:
            return None
        sizes, model = scenario.sizes, scenario.model
        groups = sizes.dp if sizes.attention_dp else 1
        found = []
        for stage, layers in enumerate(stages_of(scenario)):
            mixed = 2 * rows * attention_parameters(counts) * layers
            other = 2 * rows * groups * other_parameters(counts) * layers
            total = -(-mixed // (model.num_layers * sizes.attention_tp))
            total += -(-other // (model.num_layers * sizes.tp))
            if stage == sizes.pp - 1:
                head = 2 * requests * groups * head_parameters(counts)
                total += -(-head // sizes.tp)
            attended = sum(self._attention_flops(stage, tokens, prefill=prefill))
            total += -(-requests * attended // sizes.attention_tp)
            found.append(total)
        return found

    def _attention_flops(
        self, stage: int, tokens: int, *, prefill: bool
    ) -> Iterator[int]:
        """Scores and values of one request's queries in the layers of a stage."""
        model = self.scenario.model
        seen = prefill_rows if prefill else decode_rows
        for read, layers in self.stages[stage]:
            rows = seen(read, tokens, model.encoder_tokens, self.top_k)
            yield layers * rows * row_flops(
                read.spec, model.num_heads or 0, prefill=prefill
            )

    def _pass(
        self,
        *,
        weights: tuple[int, ...],
        caches: list[Mapping[Component, int]],
        flops: list[int] | None,
    ) -> Step:
        read = [
            weight + sum(cache.values())
            for weight, cache in zip(weights, caches, strict=True)
        ]
        by_bytes = rated(read, self.bandwidth)
        by_flops = rated(flops, self.peak)
        known = [times for times in (by_bytes, by_flops) if times is not None]
        components: Counter[Component] = Counter()
        for cache in caches:
            components.update(cache)
        return Step(
            weight_bytes=sum(weights),
            cache_bytes=sum(components.values()),
            components=components,
            flops=None if flops is None else sum(flops),
            bandwidth_seconds=None if by_bytes is None else sum(by_bytes),
            compute_seconds=None if by_flops is None else sum(by_flops),
            seconds=(
                sum(max(each) for each in zip(*known, strict=True)) if known else None
            ),
        )

    def crossover(self, tokens: int) -> int | None:
        """The fewest requests of a replica whose caches are more than its weights.

        None where a request reads no cache, or no batch comes that far.
        """
        one = sum(sum(cache.values()) for cache in self.cache_bytes(tokens))
        if not one:
            return None

        def weights_lead(batch: int) -> bool:
            return batch * one <= sum(self.weight_bytes(batch))

        most = largest(weights_lead, MAX_BATCH)
        if most == MAX_BATCH:
            return None
        return most * self.scenario.sizes.pp + 1


def rated(counts: list[int] | None, rate: int | None) -> list[float] | None:
    """Seconds of each count at a rate; None where one of them is not known."""
    if counts is None or rate is None:
        return None
    return [count / rate for count in counts]
