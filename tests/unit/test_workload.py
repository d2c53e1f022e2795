"""Pool use under real traffic: against simulation, by hand, and at its edges."""

from __future__ import annotations

import cmath
import gzip
import heapq
import math
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit_support import Json, ask, refusal

from kvcore import api
from kvcore.__main__ import main
from kvcore.importers.byte_source import in_memory
from kvcore.traces.rows import Row, rows
from kvcore.workload import normal
from kvcore.workload.compound import ROUNDING, Compound, chernoff, window
from kvcore.workload.fourier import backward, forward
from kvcore.workload.lengths import Fixed, LogNormal, produced
from kvcore.workload.totals import COUNTED, poisson
from kvcore.workload.use import TILT

TRAFFIC: Final = {
    "pool_tokens": 60_000,
    "block_tokens": 16,
    "arrival_rate": 2,
    "tokens_per_second": 20,
    "prompt": "1000/3000",
    "output": "150/450",
}


def work(**changes: object) -> Json:
    return ask("workload", **{**TRAFFIC, **changes})


def of_file(text: str, name: str = "trace.jsonl", **changes: object) -> Json:
    params: dict[str, object] = {**TRAFFIC, **changes}
    params = {k: v for k, v in params.items() if k not in ("prompt", "output")}
    return api.call("workload", params, [in_memory(text.encode(), name)])


# The sum ---------------------------------------------------------------------


def naive(rates: dict[int, float], cells: int) -> list[float]:
    """Poisson weights times convolution powers of the charge's distribution."""
    total = sum(rates.values())
    one = [rates.get(j, 0.0) / total for j in range(cells + 1)]
    power = [1.0] + [0.0] * cells
    found = [0.0] * (cells + 1)
    weight = math.exp(-total)
    for n in range(1, 80):
        found = [p + weight * q for p, q in zip(found, power, strict=True)]
        power = [
            sum(power[k - j] * one[j] for j in range(k + 1)) for k in range(cells + 1)
        ]
        weight *= total / n
    return found


@given(st.dictionaries(st.integers(0, 9), st.floats(0.01, 2), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_transforms_give_the_compound_poisson_sum(rates: dict[int, float]) -> None:
    found = Compound(rates, 512).probabilities()
    exact = naive(rates, 30)
    assert found[:31] == pytest.approx(exact, rel=1e-9, abs=ROUNDING / 100)
    assert sum(found) == pytest.approx(1, abs=ROUNDING)
    tail = 1 - sum(found[:31])
    assert tail <= chernoff(rates, 31) + ROUNDING


@given(
    st.dictionaries(st.integers(0, 9), st.floats(0.01, 2), min_size=1, max_size=5),
    st.floats(0.2, 3),
    st.integers(0, 31),
)
@settings(max_examples=60, deadline=None)
def test_a_tilted_ring_has_the_sums_below_for_any_scale(
    rates: dict[int, float], scale: float, cells: int
) -> None:
    """Up to the half of the ring, however much lies beyond it."""
    total = Compound(rates, 64, TILT)
    scaled = {j: scale * rate for j, rate in rates.items()}
    exact = sum(Compound(scaled, 1024).probabilities()[: cells + 1])
    assert total.below(window(cells, 64, TILT), scale) == pytest.approx(exact, abs=2e-7)


def test_charges_longer_than_the_ring_are_only_counted() -> None:
    """Nobody is here with probability e^(-3), else one cell or more than all."""
    total = Compound({1: 1.0, 100: 2.0}, 64, TILT)
    one = sum(math.exp(-3) / math.factorial(n) for n in range(21))
    assert total.below(window(20, 64, TILT), 1.0) == pytest.approx(one, abs=1e-9)


def test_a_transform_is_undone() -> None:
    drawn = random.Random(3)
    values = [drawn.random() for _ in range(256)]
    there = forward([complex(value) for value in values])
    assert backward(there) == pytest.approx(values, abs=1e-14)
    roots = [
        sum(v * cmath.exp(-2j * math.pi * f * k / 256) for k, v in enumerate(values))
        for f in range(256)
    ]
    found = sorted(there, key=lambda v: (round(v.real, 9), round(v.imag, 9)))
    exact = sorted(roots, key=lambda v: (round(v.real, 9), round(v.imag, 9)))
    assert found == pytest.approx(exact, abs=1e-9)


def test_many_requests_neither_underflow_nor_overflow() -> None:
    found = Compound({1: 5000.0}, 8192).probabilities()
    assert sum(found) == pytest.approx(1, rel=1e-9)
    peak = max(range(len(found)), key=found.__getitem__)
    assert abs(peak - 5000) <= 1
    assert found[5000] == pytest.approx(1 / math.sqrt(2 * math.pi * 5000), rel=1e-3)


@given(st.floats(1e-14, 1, exclude_max=True))
def test_the_normal_distribution_is_the_standard_librarys(share: float) -> None:
    known = NormalDist()
    assert normal.quantile(share) == pytest.approx(known.inv_cdf(share), abs=1e-9)
    z = known.inv_cdf(share)
    assert normal.below(z) == pytest.approx(known.cdf(z), rel=1e-9, abs=1e-15)


# Lengths ----------------------------------------------------------------------


class TestLogNormal:
    lengths = LogNormal(p50=1000, p95=4100, limit=10**9)

    def test_quantiles_are_those_given(self) -> None:
        assert self.lengths.quantile(0.5) == pytest.approx(1000)
        assert self.lengths.quantile(0.95) == pytest.approx(4100)

    def test_mean_is_the_closed_form(self) -> None:
        sigma = math.log(4.1) / NormalDist().inv_cdf(0.95)
        assert self.lengths.mean == pytest.approx(1000 * math.exp(sigma**2 / 2))

    def test_cells_are_a_distribution_with_that_mean(self) -> None:
        cells = self.lengths.cells(1.01, 1)
        assert sum(c.mass for c in cells) == pytest.approx(1)
        low = sum(c.mass * c.low for c in cells)
        high = sum(c.mass * c.high for c in cells)
        assert low - 1 <= self.lengths.mean <= high

    def test_what_is_longer_is_cut_at_the_limit(self) -> None:
        cut = LogNormal(p50=1000, p95=4100, limit=2000)
        assert cut.quantile(0.99) == 2000
        cells = cut.cells(1.01, 1)
        assert max(c.high for c in cells) == 2000
        assert sum(c.mass for c in cells) == pytest.approx(1)
        assert cut.mean < self.lengths.mean


def test_a_fixed_output_is_produced_evenly() -> None:
    parts = produced(Fixed(tokens=100), 1000, by_time=False, step=1)
    assert [c.low for c in parts][:3] == [1, 2, 3]
    assert sum(c.mass for c in parts if c.high <= 50) == pytest.approx(0.5)
    assert sum(c.mass for c in parts) == pytest.approx(1)


@pytest.mark.parametrize("by_time", [False, True])
def test_parts_of_lognormal_outputs_are_those_of_drawn_ones(by_time: bool) -> None:
    """A request caught at a random moment: long ones are caught more often, unless
    all take the same time."""
    output = LogNormal(p50=150, p95=450, limit=2000)
    drawn = random.Random(7)
    normal = NormalDist()
    lengths = [
        min(output.quantile(normal.cdf(drawn.gauss())), 2000) for _ in range(40_000)
    ]
    weights = [1.0] * len(lengths) if by_time else lengths
    caught = drawn.choices(lengths, weights, k=40_000)
    parts = produced(output, 2000, by_time=by_time, step=1)
    edge = max(c.high for c in parts if c.high <= 120)
    exact = sum(c.mass for c in parts if c.high <= edge)
    share = fmean(drawn.random() * x <= edge for x in caught)
    assert exact == pytest.approx(share, abs=0.012)


# By hand ----------------------------------------------------------------------


def test_requests_of_one_block_are_a_poisson_number() -> None:
    """1 request/s for 10 s, each in one block of 64: Poisson(10) blocks."""
    answer = ask(
        "workload",
        pool_tokens=15 * 64,
        block_tokens=64,
        arrival_rate=1,
        seconds_per_request=10,
        prompt=32,
        output=20,
    )
    more = 1 - sum(math.exp(-10) * 10**n / math.factorial(n) for n in range(16))
    assert answer["in_flight"] == pytest.approx(10)
    assert answer["overflow"]["estimate"] == pytest.approx(more, rel=1e-9)
    assert answer["overflow"]["low"] == pytest.approx(more, rel=1e-9)
    assert answer["overflow"]["high"] == pytest.approx(more, rel=1e-9)
    assert answer["use"]["p50"]["estimate"] == 10 * 64


def test_a_shared_prefix_is_counted_once_in_whole_blocks() -> None:
    """100 of 132 tokens shared: one block of 64 for all, two more for each."""
    common = {"block_tokens": 64, "prompt": 132, "output": 60}
    alone = work(**common)
    shared = work(**common, shared_prefix=100)
    assert shared["fixed"] == 64
    saved = alone["use"]["mean"]["estimate"] - shared["use"]["mean"]["estimate"]
    assert saved == pytest.approx(64 * alone["in_flight"] - 64)


def test_a_prefix_that_the_pool_cannot_hold_overflows_always() -> None:
    answer = work(pool_tokens=5000, shared_prefix=6400, prompt=7000)
    assert answer["overflow"] == {"low": 1.0, "estimate": 1.0, "high": 1.0}
    assert answer["rate_at_odds"]["high"] == 0


def test_a_request_holds_its_prompt_and_what_it_has_produced() -> None:
    answer = work(prompt=1000, output=100)
    assert answer["held_tokens_per_request"] == pytest.approx(1050.5, rel=1e-3)
    assert answer["seconds_per_request"] == 5
    assert answer["in_flight"] == pytest.approx(10)


def test_reading_the_prompt_takes_time_too() -> None:
    answer = work(prompt=1000, output=100, prefill_tokens_per_second=500)
    assert answer["seconds_per_request"] == 7
    assert answer["in_flight"] == pytest.approx(14)


# Simulation -------------------------------------------------------------------


def simulate(
    draw: Callable[[random.Random], tuple[float, float]], horizon: float
) -> list[tuple[float, float, float]]:
    """Arrivals of (prompt, output), as (start, end, prompt) in time order."""
    drawn = random.Random(20240501)
    now, found = 0.0, []
    while now < horizon:
        now += drawn.expovariate(TRAFFIC["arrival_rate"])
        prompt, output = draw(drawn)
        found.append((now, now + output / TRAFFIC["tokens_per_second"], prompt))
    return found


def time_above(
    requests: list[tuple[float, float, float]], pool: int, block: int
) -> float:
    """The share of time the blocks in use exceed the pool: a discrete-event run.

    Events: a request arrives, finishes, or needs one more block.
    """
    events: list[tuple[float, int]] = []
    speed = TRAFFIC["tokens_per_second"]
    for start, end, prompt in requests:
        begun = math.ceil((prompt + 1) / block)
        events.append((start, begun))
        produced_ = math.ceil((end - start) * speed)
        last = math.ceil((prompt + produced_) / block)
        for n in range(begun, last):
            events.append((start + (n * block - prompt) / speed, 1))
        events.append((end, -last))
    heapq.heapify(events)
    used, before, above, warm = 0, 0.0, 0.0, 500.0
    horizon = requests[-1][0]
    while events:
        now, change = heapq.heappop(events)
        if now > horizon:
            break
        if now > warm and used * block > pool:
            above += now - max(before, warm)
        used, before = used + change, now
    return above / (horizon - warm)


def test_overflow_is_what_a_simulation_sees() -> None:
    normal = NormalDist()
    prompt = LogNormal(p50=1000, p95=3000, limit=2**20)
    output = LogNormal(p50=150, p95=450, limit=2**20)

    def draw(drawn: random.Random) -> tuple[float, float]:
        return (
            math.ceil(prompt.quantile(normal.cdf(drawn.gauss()))),
            output.quantile(normal.cdf(drawn.gauss())),
        )

    requests = simulate(draw, 60_000)
    for pool in (35_000, 45_000):
        answer = work(pool_tokens=pool)
        seen = time_above(requests, pool, 16)
        assert answer["overflow"]["estimate"] == pytest.approx(seen, rel=0.08)


def test_a_file_of_lengths_gives_what_a_simulation_of_it_sees() -> None:
    lines = [(200, 30), (4000, 10), (900, 400), (1500, 150)]
    text = "\n".join(f'{{"input_length": {p}, "output_length": {o}}}' for p, o in lines)
    requests = simulate(lambda drawn: drawn.choice(lines), 60_000)
    answer = of_file(text, pool_tokens=28_000)
    seen = time_above(requests, 28_000, 16)
    assert answer["overflow"]["estimate"] == pytest.approx(seen, rel=0.08)


# Bounds -----------------------------------------------------------------------


@given(
    rate=st.floats(0.05, 8),
    prompt=st.integers(1, 3000),
    tail=st.integers(2, 6),
    pool=st.integers(1000, 60_000),
)
@settings(max_examples=6, deadline=None)
def test_estimates_lie_between_their_bounds(
    rate: float, prompt: int, tail: int, pool: int
) -> None:
    answer = work(
        arrival_rate=rate, prompt=f"{prompt}/{prompt * tail}", pool_tokens=pool
    )
    ranges = [answer["overflow"], answer["rate_at_odds"]]
    ranges += [answer["use"][key] for key in ("mean", "p50", "p95", "p99")]
    for found in ranges:
        slack = 1e-9 + 1e-3 * abs(found["estimate"])
        assert found["low"] - slack <= found["estimate"] <= found["high"] + slack
    assert 0 <= answer["overflow"]["low"] <= answer["overflow"]["high"] <= 1
    assert sum(b["probability"] for b in answer["distribution"]) == pytest.approx(
        1, abs=1e-5
    )


def test_the_rate_at_the_odds_gives_those_odds() -> None:
    answer = work(odds=0.02)
    there = work(arrival_rate=answer["rate_at_odds"]["estimate"])
    assert there["overflow"]["estimate"] == pytest.approx(0.02, rel=0.02)
    safe = work(arrival_rate=answer["rate_at_odds"]["low"])
    assert safe["overflow"]["low"] < safe["overflow"]["estimate"] < 0.02


def test_the_bounds_of_the_rate_are_those_of_the_odds() -> None:
    """Where the cells of both are the blocks themselves."""
    common = {"prompt": "200/400", "output": "100/200", "pool_tokens": 40_000}
    answer = work(odds=0.02, **common)
    for bound, mode in (("low", "high"), ("estimate", "estimate"), ("high", "low")):
        there = work(arrival_rate=answer["rate_at_odds"][bound], **common)
        assert there["method"]["cell"] == 16
        assert there["overflow"][mode] == pytest.approx(0.02, rel=0.01)


# Scenarios --------------------------------------------------------------------

PLAN: Final = {
    "model": "llama-3.1-70b",
    "gpu": "h100",
    "gpus": 4,
    "engine": "vllm",
    "arrival_rate": 1,
    "tokens_per_second": 25,
    "prompt": 4000,
    "output": 200,
}


def test_a_scenario_charges_what_its_engine_allocates() -> None:
    plan = ask("plan", **{k: PLAN[k] for k in ("model", "gpu", "gpus", "engine")})
    answer = ask("workload", **PLAN)
    assert answer["unit"] == "bytes"
    assert answer["pool"] == plan["rank"]["pool_bytes"]
    # 8 requests of 4,001 to 4,200 tokens in blocks of 16, and the null block.
    block = plan["pool"]["block_bytes"]
    blocks = fmean(math.ceil((4000 + n) / 16) for n in range(1, 201))
    assert answer["use"]["mean"]["estimate"] == pytest.approx(
        block * (8 * blocks + 1), rel=1e-3
    )
    assert answer["method"]["cell"] % block == 0


def test_windows_and_states_are_charged_per_request() -> None:
    """A hybrid's short requests take their states, however short they are."""
    plan = {**PLAN, "model": "qwen3.5-27b", "gpus": 1, "prompt": 10, "output": 5}
    answer = ask("workload", **plan)
    one = ask(
        "estimate", model="qwen3.5-27b", engine="vllm", tokens=12
    )["allocated"]["bytes_per_rank"]  # fmt: skip
    use = answer["use"]["mean"]["estimate"] - answer["fixed"]
    assert use / answer["in_flight"] == pytest.approx(one, rel=1e-6)


def test_replicas_share_the_arrivals() -> None:
    alone = ask("workload", **PLAN)
    both = ask("workload", **{**PLAN, "gpus": 8, "dp": 2, "arrival_rate": 2})
    assert both["replicas"] == 2
    assert both["use"] == alone["use"]
    assert both["in_flight"] == pytest.approx(2 * alone["in_flight"])


def test_too_small_a_pool_is_said_to_queue() -> None:
    answer = work(pool_tokens=5000)
    assert [w["code"] for w in answer["warnings"]] == ["overloaded"]
    assert answer["overflow"]["estimate"] > 0.9


# Whole requests, and how many at once -----------------------------------------


def test_lengths_of_whole_requests_are_those_of_drawn_ones() -> None:
    """Prompt and output together, cut at the context."""
    answer = work(context=8000)
    drawn, known = random.Random(3), NormalDist()
    uncut = [
        math.ceil(1000 * 3 ** (drawn.gauss() / known.inv_cdf(0.95)))
        + math.ceil(150 * 3 ** (drawn.gauss() / known.inv_cdf(0.95)))
        for _ in range(60_000)
    ]
    totals = sorted(min(total, 8000) for total in uncut)
    found = answer["lengths"]["total"]
    assert found["mean"] == pytest.approx(fmean(totals), rel=0.01)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert found[name] == pytest.approx(totals[int(share * 60_000)], rel=0.02)


def test_whole_requests_that_are_alike_are_exact() -> None:
    total = work(prompt=4000, output=200)["lengths"]["total"]
    assert total == {"mean": 4200, "p50": 4200, "p95": 4200, "p99": 4200}


def test_a_quantile_of_lengths_is_cut_at_the_context() -> None:
    answer = work(prompt="1000/3000", output=10, context=2000)
    total = answer["lengths"]["total"]
    assert total["p95"] == total["p99"] == 2000
    assert answer["as_plan"]["context"]["p99"] == 2000
    (cut,) = answer["warnings"]
    z = math.log(1.99) / math.log(3) * NormalDist().inv_cdf(0.95)
    percent = 100 * (1 - NormalDist().cdf(z))
    assert cut["code"] == "lengths_cut"
    assert cut["params"]["percent"] == pytest.approx(percent, rel=0.02)
    assert cut["params"]["limit"] == 2000


def test_a_files_whole_requests_are_its_own() -> None:
    answer = of_file(AZURE, "azure.csv", context=4000, pool_tokens=10**6)
    total = answer["lengths"]["total"]
    assert total == {
        "mean": pytest.approx((4000 + 3188 + 137) / 3),
        "p50": 3188,
        "p95": 4000,
        "p99": 4000,
    }
    assert answer["as_plan"]["context"]["mean"] == 2442


@pytest.mark.parametrize("mean", [0.01, 0.7, 3, 40, 900, 9999, 10_001, 250_000])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_requests_in_flight_are_a_poisson_number(mean: float, share: float) -> None:
    below = 0.0
    for n in range(int(mean + 10 * math.sqrt(mean)) + 12):
        below += math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))
        if below >= share:
            break
    assert abs(poisson(mean, share) - n) <= (mean > COUNTED)


def test_a_plan_of_traffic_has_whole_numbers() -> None:
    answer = work()
    found = answer["as_plan"]
    flight = answer["requests_in_flight"]
    assert flight["mean"] == answer["in_flight"]
    assert found["concurrency"] == {k: math.ceil(n) for k, n in flight.items()}
    total = answer["lengths"]["total"]
    assert found["context"] == {k: math.ceil(n) for k, n in total.items()}
    quiet = work(arrival_rate=1e-6)
    assert quiet["as_plan"]["concurrency"]["mean"] == 1


def test_use_is_told_as_shares_of_the_pool_too() -> None:
    answer = work()
    for name, share in answer["use_of_pool"].items():
        assert share == answer["use"][name]["estimate"] / answer["pool"]


def test_bins_of_the_distribution_join() -> None:
    answer = work()
    bins = answer["distribution"]
    assert bins[0]["from"] == answer["fixed"]
    for left, right in pairwise(bins):
        assert right["from"] == left["use"]


def test_published_lengths_are_what_workload_takes() -> None:
    found = ask("traffic")["lengths"]
    assert len({each["id"] for each in found}) == len(found)
    for each in found:
        answer = work(
            prompt=each["prompt"], output=each["output"], pool_tokens=50_000_000
        )
        prompt = answer["lengths"]["prompt"]
        middle, most = map(int, each["prompt"].split("/"))
        assert prompt["p50"] == pytest.approx(middle)
        assert prompt["p95"] == pytest.approx(most)
    presets = {p["id"]: p for p in ask("traffic")["presets"]}
    for each in found:
        if each["id"] in presets:
            made = presets[each["id"]]
            assert each["resembles"] == made["resembles"]
            for part in ("prompt", "output"):
                known = f"{made[part + '_p50']}/{made[part + '_p95']}"
                assert each[part] == known


# Files ------------------------------------------------------------------------

AZURE: Final = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04.0319600,3180,8\r\n"
    "2023-11-17 00:00:03.9799600,110,27\r\n"
)


def test_azure_columns_and_times_are_read() -> None:
    found = list(rows(in_memory(AZURE.encode())))
    assert [row[:2] for row in found] == [(4808, 10), (3180, 8), (110, 27)]
    times = [row.time or 0.0 for row in found]
    assert times[1] - times[0] == pytest.approx(0.052, abs=1e-4)
    assert times[2] - times[0] == pytest.approx(5 * 3600 + 43 * 60, abs=1e-3)


def test_other_columns_are_read() -> None:
    burst = "Timestamp,Model,Request tokens,Response tokens\n5,ChatGPT,472,18\n"
    assert list(rows(in_memory(burst.encode()))) == [Row(472, 18, 5.0)]
    lines = '{"timestamp": 1500, "input_length": 6758, "output_length": 500}\n\n'
    assert list(rows(in_memory(lines.encode()))) == [Row(6758, 500, 1.5)]


@pytest.mark.parametrize(
    "text",
    [
        'text,input_length,output_length\n"1, 2",374,44\n',
        'text,input_length,output_length\n"say ""hi"", twice",374,44\n',
        "input_length;output_length;cost\n374;44;0,5\n",
        '"input_length"\t"output_length"\n"374"\t"44"\n',
    ],
)
def test_cells_are_parted_as_the_header_is_and_quotes_hold_marks(text: str) -> None:
    assert list(rows(in_memory(text.encode()))) == [Row(374, 44, None)]


@pytest.mark.parametrize(
    ("cells", "where"),
    [('"1,374",44', "input_length"), ('"374,44', "it"), ('374,"4"4,1', "it")],
)
def test_no_cell_is_taken_for_another(cells: str, where: str) -> None:
    error = of_file(f"input_length,output_length\n{cells}\n")["error"]
    assert (error["params"]["line"], error["params"]["where"]) == (2, where)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0", "10000"),
        ("0.0", "10.0"),
        ("1700000000", "1700000010"),
        ("1700000000.25", "1700000010.25"),
        ("1700000000000", "1700000010000"),
        ("1700000000000000", "1700000010000000"),
        ("1700000000000000000", "1700000010000000000"),
        ('"1700000000000"', '"1700000010000"'),
        ('"5"', '"15"'),
        ('"2023-11-16T18:00:00+00:00"', '"2023-11-16T19:00:10+01:00"'),
        ('"2023-11-16 18:00:00 UTC"', '"2023-11-16 18:00:10 UTC"'),
    ],
)
def test_the_unit_of_time_is_told_by_the_first(first: str, second: str) -> None:
    line = '{{"timestamp": {}, "input_length": 5, "output_length": 1}}\n'
    found = list(rows(in_memory((line.format(first) + line.format(second)).encode())))
    assert None not in (found[0].time, found[1].time)
    assert (found[1].time or 0) - (found[0].time or 0) == pytest.approx(10, abs=1e-5)


@pytest.mark.parametrize("stamp", ["2023-13-16 18:00:00", "2023-11-16 18:61:00", "1e3"])
def test_what_is_no_time_is_an_error(stamp: str) -> None:
    lines = f'{{"timestamp": "{stamp}", "input_length": 5, "output_length": 1}}\n'
    assert of_file(lines)["error"]["params"]["where"] == "timestamp"


def test_requests_that_stay_no_time_are_an_error_that_says_so() -> None:
    lines = '{"timestamp": 0.5, "input_length": 5, "output_length": 0}\n'
    error = of_file(lines)["error"]
    assert (error["code"], error["params"]["argument"]) == (
        "invalid_argument", "seconds_per_request"
    )  # fmt: skip
    cut = of_file(AZURE, context=100)["error"]
    assert cut["params"]["argument"] == "seconds_per_request"
    timed = of_file(lines, tokens_per_second=None, seconds_per_request=2)
    assert timed["in_flight"] == pytest.approx(2 * timed["arrival_rate"])


def test_packed_files_are_read_in_all_their_parts() -> None:
    lines = b'{"input_length": 6758, "output_length": 500}\n' * 30_000
    packed = gzip.compress(lines) + gzip.compress(lines)
    assert sum(1 for _ in rows(in_memory(packed, "t.jsonl.gz"))) == 60_000


def test_the_rate_of_a_file_is_its_own() -> None:
    answer = of_file(AZURE, "azure.csv", arrival_rate=None, pool_tokens=10**6)
    assert answer["arrival_rate"] == pytest.approx(2 / 20_580, rel=1e-6)
    assert answer["lengths"]["prompt"]["mean"] == pytest.approx(8098 / 3)


def test_longer_requests_than_the_context_are_cut_and_said() -> None:
    answer = of_file(AZURE, "azure.csv", context=4000, pool_tokens=10**6)
    assert answer["warnings"] == [
        {"code": "requests_cut", "params": {"requests": 1, "of": 3, "limit": 4000}}
    ]


@pytest.mark.parametrize(
    ("text", "line", "where"),
    [
        ("a,b\n1,2\n", 1, "the header"),
        ("ContextTokens,GeneratedTokens\n5,6\n-7,1\n", 3, "input_length"),
        ("ContextTokens,GeneratedTokens\n5\n", 2, "output_length"),
        ('{"input_length": 5, "output_length": 1}\n{"output_length": 1}\n', 2,
         "input_length"),
        ('{"input_length": 5, "output_length": -1}\n', 1, "output_length"),
        ('{"input_length": 1.5, "output_length": 1}\n', 1, "input_length"),
        ('\n{"input_length": 5,\n', 2, "it"),
        ('{"input_length": 5, "output_length": 1, "timestamp": "noon"}', 1,
         "timestamp"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(text: str, line: int, where: str) -> None:
    error = of_file(text)["error"]
    assert error["code"] == "invalid_trace"
    assert error["params"]["line"] == line
    assert error["params"]["where"] == where


def test_what_is_not_utf_8_is_said() -> None:
    wide = [in_memory(AZURE.encode("utf-16"), "wide.csv")]
    params = {k: v for k, v in TRAFFIC.items() if k not in ("prompt", "output")}
    error = api.call("workload", params, wide)["error"]
    assert error["code"] == "invalid_trace"
    assert error["params"]["line"] == 1
    assert error["params"]["expected"] == "text in UTF-8"


def test_cut_off_gzip_and_empty_files_are_errors() -> None:
    packed = gzip.compress(b'{"input_length": 6758, "output_length": 500}\n' * 999)
    cut = [in_memory(packed[:-20], "t.gz")]
    error = api.call("workload", {**TRAFFIC}, cut)["error"]
    assert (error["code"], error["params"]["where"]) == ("invalid_trace",
                                                         "its gzip data")  # fmt: skip
    assert of_file("\n\n")["error"]["code"] == "empty_trace"
    assert of_file(AZURE.splitlines()[0])["error"]["code"] == "empty_trace"


# Params and the command line --------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"arrival_rate": None}, "missing_field"),
        ({"arrival_rate": 0}, "invalid_argument"),
        ({"arrival_rate": "fast"}, "invalid_argument"),
        ({"arrival_rate": True}, "invalid_argument"),
        ({"seconds_per_request": 5}, "invalid_argument"),
        ({"tokens_per_second": None}, "invalid_argument"),
        ({"prompt": None}, "missing_field"),
        ({"prompt": "4000/1000"}, "invalid_argument"),
        ({"prompt": {"p50": 5}}, "missing_field"),
        ({"output": 0}, "invalid_argument"),
        ({"odds": 0.7}, "invalid_argument"),
        ({"odds": 1e-12}, "invalid_argument"),
        ({"pool_tokens": 0}, "invalid_argument"),
        ({"model": "gpt2"}, "unsupported_option"),
        ({"pool_tokens": None}, "missing_field"),
        ({"nonsense": 1}, "unknown_option"),
    ],
)
def test_what_cannot_be_worked_with_is_refused(changes: Json, code: str) -> None:
    assert refusal("workload", **{**TRAFFIC, **changes})["code"] == code


def test_progress_is_told_and_never_goes_back() -> None:
    told: list[float] = []
    answer = api.call("workload", TRAFFIC, (), lambda step: told.append(step["share"]))
    assert "error" not in answer
    assert told == sorted(told)
    assert told[-1] == 1


def test_reading_a_file_is_told_too() -> None:
    told: list[float] = []
    lines = "ContextTokens,GeneratedTokens\n" + "1000,100\n" * 60_000
    params = {k: v for k, v in TRAFFIC.items() if k not in ("prompt", "output")}
    api.call(
        "workload",
        params,
        [in_memory(lines.encode(), "t.csv")],
        lambda step: told.append(step["share"]),
    )
    assert told == sorted(told)
    assert sum(0 < share < 0.2 for share in told) >= 2


def test_the_command_line_reads_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "azure.csv"
    path.write_text(AZURE)
    words = ["workload", "--pool-tokens", "100k", "--tokens-per-second", "20"]
    assert main([*words, "--lengths", str(path), "--arrival-rate", "2"]) == 0
    out = capsys.readouterr().out
    assert "2 requests/s of 2,699 + 15 tokens" in out
    assert "overflow" in out
    assert main([*words, "--lengths", str(tmp_path / "none.csv")]) == 2
    assert "FILE is" in capsys.readouterr().err
