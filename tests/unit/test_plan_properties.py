"""Plans are found by search: what is said to fit fits, and one more does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcore import catalog, engines
from kvcore.errors import KvcoreError
from kvcore.estimate import Scope, estimate
from kvcore.limits import MAX_CONTEXT, MAX_REQUESTS, fits, largest
from kvcore.params import Params
from kvcore.plan import plan
from kvcore.scenario import Scenario, allocated, rank_of
from kvcore.scenario_params import PLAN, scenario_of

MODELS = (
    "llama-3.1-8b",
    "llama-3.1-70b",
    "qwen3-30b-a3b",
    "gemma-3-27b-it",
    "gpt-oss-20b",
    "deepseek-v3",
    "deepseek-v4-flash",
    "qwen3-next-80b-a3b-instruct",
    "nemotron-h-8b-base-8k",
    "llama-4-scout-17b-16e-instruct",
    "lfm2-1.2b",
)
ENGINES = ("none", *engines.ENGINES)
PLANS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Scenarios the model and the engine both accept."""
    wanted = {
        "model": draw(st.sampled_from(MODELS)),
        "engine": draw(st.sampled_from(ENGINES)),
        "gpu": draw(st.sampled_from(("h100", "rtx-4090", "h200", "m4-max-128gb"))),
        "gpus": draw(st.sampled_from((1, 2, 4, 8))),
        "context": draw(st.integers(1, 70_000)),
        "concurrency": draw(st.integers(1, 40)),
        "pool_bytes": draw(st.integers(1 << 28, 1 << 38)),
    }
    try:
        scenario = scenario_of(Params(wanted, PLAN))
        scenario.engine.check(scenario.model, scenario.settings)
        plan(scenario)
    except KvcoreError:
        return draw(scenarios())
    return scenario


@given(st.integers(0, 10**7), st.integers(1, 10**7), st.integers(-5, 2 * 10**7))
def test_a_guess_changes_no_limit(edge: int, limit: int, near: int) -> None:
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n <= edge

    assert largest(holds, limit, near) == min(edge, limit)
    assert all(0 < n <= limit for n in asked)


@given(st.integers(1, 10**9))
def test_a_good_guess_saves_questions(edge: int) -> None:
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n <= edge

    assert largest(holds, MAX_CONTEXT, edge) == edge
    assert len(asked) <= 2


@PLANS
@given(scenarios())
def test_the_most_requests_fit_and_one_more_does_not(scenario: Scenario) -> None:
    found = plan(scenario)
    pool, dp = found.rank.pool_bytes, scenario.sizes.dp
    most = found.max_requests // dp
    if most:
        assert fits(scenario, pool, most, scenario.context)
    if most < MAX_REQUESTS:
        assert not fits(scenario, pool, most + 1, scenario.context)


@PLANS
@given(scenarios())
def test_the_longest_context_fits_and_a_longer_does_not(scenario: Scenario) -> None:
    found = plan(scenario)
    pool = found.rank.pool_bytes
    requests = -(-scenario.concurrency // scenario.sizes.dp)
    longest = found.max_context
    if longest:
        assert fits(scenario, pool, requests, longest)
    if longest < MAX_CONTEXT:
        assert not fits(scenario, pool, requests, longest + 1)


@PLANS
@given(scenarios())
def test_the_verdict_is_the_comparison(scenario: Scenario) -> None:
    found = plan(scenario)
    over = found.needed_bytes > found.rank.pool_bytes
    assert (found.verdict == "does_not_fit") == over
    if not over:
        tight = found.needed_bytes * 10 > found.rank.pool_bytes * 9
        assert (found.verdict == "tight") == tight
        assert found.max_requests >= scenario.concurrency
        assert found.max_context >= scenario.context


@PLANS
@given(scenarios(), st.integers(1, 1 << 36))
def test_more_memory_never_fits_less(scenario: Scenario, more: int) -> None:
    small = plan(scenario)
    assert scenario.pool_bytes is not None
    large = plan(replace(scenario, pool_bytes=scenario.pool_bytes + more))
    assert large.max_requests >= small.max_requests
    assert large.max_context >= small.max_context


@PLANS
@given(scenarios())
def test_sixteen_bits_are_allocated_at_least(scenario: Scenario) -> None:
    """One rank of one GPU allocates no less than the logical bytes."""
    alone = scenario.sizes.gpus == 1
    if not alone or scenario.formats.kv.bits_per_element != 16:
        return
    if "state" in scenario.model.components:
        return  # an engine may keep states in fewer bits than the config pins
    logical = estimate(
        scenario.model,
        Scope(tokens=scenario.context, sequences=scenario.concurrency),
        scenario.formats,
    ).total_bytes
    found = allocated(scenario, scenario.concurrency, scenario.context)
    assert found.bytes_per_rank >= logical or scenario.engine.id in ALLOCATES_LESS


ONE_PROCESS = {"transformers", "mlx"}
"""Engines that hold a model on one device."""

ALLOCATES_LESS = {
    # transformers keeps W - 1 tokens of a window: the W-th is the one computed.
    "transformers",
}


@pytest.mark.parametrize("model", ["llama-3.1-70b", "deepseek-v3", "glm-4.5-air"])
@pytest.mark.parametrize("engine", ENGINES)
def test_fewest_gpus_hold_it_and_one_fewer_do_not(model: str, engine: str) -> None:
    wanted = {"model": model, "engine": engine, "gpu": "h100", "context": 32768}
    try:
        found = plan(scenario_of(Params({**wanted, "gpus": 1}, PLAN)))
    except KvcoreError:
        pytest.skip(f"{engine} does not run this model on one GPU")
    fewest = found.min_gpus
    if engine in ONE_PROCESS:
        assert fewest is None
        return
    assert fewest is not None
    assert fewest > 1
    held = []
    for gpus in range(1, fewest + 1):
        for pp in range(1, gpus + 1):
            if gpus % pp:
                continue
            sizes = {"gpus": gpus, "tp": gpus // pp, "pp": pp}
            try:
                answer = plan(scenario_of(Params({**wanted, **sizes}, PLAN)))
            except KvcoreError:
                continue
            if answer.verdict != "does_not_fit":
                held.append(gpus)
    assert held
    assert min(held) == fewest


def test_a_rank_has_weights_reserve_and_pool() -> None:
    wanted = {"model": "llama-3.1-8b", "gpu": "h100"}
    rank = rank_of(scenario_of(Params(wanted, PLAN)))
    assert rank.memory_bytes == (
        rank.weight_bytes + rank.reserve_bytes + rank.pool_bytes
    )
    assert catalog.find("llama-3.1-8b").parameters.total * 2 == rank.weight_bytes
