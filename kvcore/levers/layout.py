"""Levers on GPUs: how ranks share the cache, and more of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvcore.deployment import kv_head_copies
from kvcore.levers.start import Change, Row, Start

MOST_GPUS: Final = 128
NODE: Final = 8
"""GPUs that are usually joined by the fastest links."""


def replicated(start: Start) -> bool:
    """Whether tensor-parallel ranks keep the same rows: latents, too few KV heads."""
    model, sizes = start.scenario.model, start.scenario.sizes
    if sizes.attention_tp == 1:
        return False
    return model.is_latent or kv_head_copies(model, sizes.attention_tp) > 1


def data_parallel(start: Start) -> Row:
    """Requests dealt out to ranks that would repeat one another's cache."""
    scenario = start.scenario
    if not replicated(start):
        return Row(lever="data_parallel", reason="nothing_replicated")
    option = scenario.engine.attention_dp_option
    if option is not None and not scenario.sizes.attention_dp:
        options = {**start.options, option: True}
        change: Change = {"engine_options": options, "dp": None}
        return start.row("data_parallel", change)
    return start.best(
        "data_parallel",
        (
            sized(start, tp=scenario.sizes.tp // n, dp=scenario.sizes.dp * n)
            for n in divisors(scenario.sizes.tp)
        ),
        otherwise="nothing_replicated",
    )


def context_parallel(start: Start) -> Row:
    """The tokens of a request dealt out to ranks that would repeat them."""
    sizes = start.scenario.sizes
    if not replicated(start):
        return Row(lever="context_parallel", reason="nothing_replicated")
    return start.best(
        "context_parallel",
        ({"dcp": n} for n in divisors(sizes.tp) if n > sizes.dcp),
        otherwise="already_on",
    )


def pipeline(start: Start) -> Row:
    """Layers cut instead of heads, where heads no longer divide."""
    sizes = start.scenario.sizes
    if not replicated(start):
        return Row(lever="pipeline", reason="nothing_replicated")
    return start.best(
        "pipeline",
        (sized(start, tp=sizes.tp // n, pp=sizes.pp * n) for n in divisors(sizes.tp)),
        otherwise="nothing_replicated",
    )


def more_gpus(start: Start) -> Row:
    """The fewest that hold the scenario, by its plan; where it fits, twice as many.

    So too where there are enough of them, but cut so that it does not fit.
    """
    scenario, fewest = start.scenario, start.now.plan.min_gpus
    if scenario.pool_bytes is not None:
        return Row(lever="more_gpus", reason="pool_is_given")
    total = 2 * scenario.sizes.gpus
    if not start.fits and fewest is not None and fewest > scenario.sizes.gpus:
        total = fewest
    return start.best(
        "more_gpus",
        layouts(start, total),
        otherwise="none_to_add",
        first_that_fits=not start.fits,
        figures={"min_gpus": fewest},
    )


def layouts(start: Start, gpus: int) -> Iterator[Change]:
    """Ways to use that many GPUs: as much TP as a node has, others, replicas of now."""
    if gpus > MOST_GPUS:
        return
    sizes = start.scenario.sizes
    if start.scenario.engine.layers_first:
        yield grid(gpus, 1)
        return
    legal = [tp for tp in range(gpus, 0, -1) if gpus % tp == 0]
    for tp in sorted(legal, key=lambda tp: tp > NODE):
        yield grid(gpus, tp)
    one = sizes.tp * sizes.pp
    if gpus % one == 0 and not sizes.attention_dp:
        yield {**grid(gpus, sizes.tp), "pp": sizes.pp, "dp": gpus // one}


def grid(gpus: int, tp: int) -> dict[str, object]:
    return {"gpus": gpus, "tp": tp, "pp": gpus // tp, "dp": None, "dcp": None}


def divisors(number: int) -> Iterator[int]:
    return (n for n in range(2, number + 1) if number % n == 0)


def sized(start: Start, *, tp: int = 0, pp: int = 0, dp: int = 0) -> Change:
    """All sizes stated, so that none is left to a default."""
    sizes = start.scenario.sizes
    return {
        "gpus": sizes.gpus,
        "tp": tp or sizes.tp,
        "pp": pp or sizes.pp,
        "dp": dp or sizes.dp,
        "dcp": None,
    }
