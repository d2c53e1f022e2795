"""The `reuse` of the api: what is charged, what comes out, presets, and bad traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from unit_support import Json, ask

from kvcore import api
from kvcore.__main__ import main
from kvcore.importers.byte_source import ByteSource, in_memory
from kvcore.params import Params
from kvcore.reuse import answer as answer_module
from kvcore.reuse.costs import costs_of
from kvcore.reuse.presets import PRESETS
from kvcore.reuse.survey import EVERY_BLOCKS
from kvcore.reuse.synthetic import MadeUp, Traffic
from kvcore.scenario_params import PLAN, scenario_of

TEN: Final = [{"input_length": 100, "output_length": 1, "hash_ids": [1, 2]}] * 10
LLAMA: Final = {"model": "llama-3.1-70b", "block_tokens": 64}
BLOCK: Final = 64 * 327_680
"""Bytes of 64 tokens of Llama 3.1 70B."""


def trace_of(lines: Iterable[Json], name: str = "trace.jsonl") -> ByteSource:
    return in_memory("\n".join(map(json.dumps, lines)).encode(), name)


def reuse(lines: Iterable[Json] | ByteSource, **params: object) -> Json:
    source = lines if isinstance(lines, ByteSource) else trace_of(lines)
    answer = api.call("reuse", {**LLAMA, **params}, [source])
    assert "error" not in answer, answer["error"]
    return answer


def refused(lines: Iterable[Json] | ByteSource, **params: object) -> Json:
    source = lines if isinstance(lines, ByteSource) else trace_of(lines)
    answer = api.call("reuse", {**LLAMA, **params}, [source])
    error: Json = answer["error"]
    return error


def turn(*ids: int | str, extra: int = 0, **fields: object) -> Json:
    return {
        "input_length": 64 * len(ids) + extra,
        "output_length": 1,
        "hash_ids": [*ids, *([type(ids[0])(999_000)] if extra else [])],
        "block_size": 64,
        **fields,
    }


# What comes out ---------------------------------------------------------------


class TestTenIdenticalPrompts:
    """100 tokens in blocks of 64: 64 are found nine times of ten, 36 never."""

    @pytest.mark.parametrize("policy", ["lru", "fifo", "priority"])
    def test_576_of_1000_tokens_are_found(self, policy: str) -> None:
        answer = reuse(TEN, policy=policy, budgets_gib=[1])
        assert answer["ceiling"]["hit_rate"] == 0.576
        assert answer["budgets"][0]["hit_rate"] == 0.576
        assert answer["budgets"][0]["saved_tokens"] == 576
        assert answer["budgets"][0]["evicted_bytes"] == 0

    def test_a_pool_smaller_than_a_block_finds_nothing(self) -> None:
        answer = reuse(TEN, budgets_gib=[0.04])
        assert answer["budgets"][0]["hit_rate"] == 0

    def test_a_first_part_can_fill_the_cache(self) -> None:
        assert reuse(TEN, warmup=0.5)["ceiling"]["hit_rate"] == 0.64

    def test_smaller_blocks_find_more(self) -> None:
        """Six blocks of 16 of each of nine prompts."""
        found = reuse(TEN, block_tokens=16, trace_block_tokens=64)
        assert found["ceiling"]["saved_tokens"] == 9 * 96


def test_running_requests_are_taken_off_the_budget() -> None:
    """Each of 101 tokens takes two blocks."""
    answer = reuse(TEN, budgets_gib=[1], concurrency=3)
    assert answer["running"] == {"requests": 3, "bytes": 3 * 2 * BLOCK}
    assert answer["budgets"][0]["budget_bytes"] == 2**30
    left = (2**30 - 6 * BLOCK) // BLOCK * BLOCK
    assert answer["budgets"][0]["cache_bytes"] == left


def test_times_and_pace_give_the_running_requests() -> None:
    """One request every 2 s with 40 tokens at 10 a second: two at once."""
    lines = [turn(n, timestamp=2000 * n, output_length=40, extra=1) for n in range(101)]
    answer = reuse(lines, tokens_per_second=10)
    assert answer["running"]["requests"] == pytest.approx(2.02)
    assert answer["running"]["bytes"] == pytest.approx(2.02 * 2 * BLOCK)


def test_times_tell_more_of_running_requests_than_the_plan() -> None:
    lines = [turn(n, timestamp=2000 * n, output_length=40, extra=1) for n in range(101)]
    paced = reuse(lines, tokens_per_second=10)["running"]
    assert reuse(lines, tokens_per_second=10, concurrency=32)["running"] == paced


def test_a_pace_says_nothing_where_there_are_no_times() -> None:
    answer = reuse(TEN, tokens_per_second=10, concurrency=3)
    assert answer["running"]["requests"] == 3
    assert answer["warnings"] == [
        {"code": "reuse_no_times", "params": {"rate": 10.0, "requests": 3.0}}
    ]


def test_an_lru_curve_by_hand() -> None:
    """a b a: `a` is found from two blocks on, and evicted with one."""
    lines = [turn(1, extra=1), turn(2, extra=1), turn(1, extra=1)]
    answer = reuse(lines, budgets_gib=[4 * BLOCK / 2**30, 3 * BLOCK / 2**30])
    two, one = answer["budgets"]
    assert (two["cache_bytes"], two["saved_tokens"]) == (2 * BLOCK, 64)
    assert (one["cache_bytes"], one["saved_tokens"]) == (BLOCK, 0)
    assert (two["evicted_blocks"], one["evicted_blocks"]) == (0, 2)
    assert answer["ceiling"]["cache_bytes"] == 2 * BLOCK
    assert [knee["cache_bytes"] for knee in answer["knee"]] == [2 * BLOCK] * 2


def test_the_pool_is_the_plans() -> None:
    plan = {"gpu": "h100", "gpus": 4, "engine": "vllm"}
    answer = reuse(TEN, **plan)
    pool = ask("plan", model="llama-3.1-70b", **plan)["rank"]["pool_bytes"]
    assert answer["pool"]["budget_bytes"] == pool
    assert answer["block_bytes"] == BLOCK // 4
    assert answer["pool"]["hit_rate"] == 0.576


def test_a_given_pool_needs_no_gpu() -> None:
    answer = reuse(TEN, pool_bytes=3 * BLOCK)
    assert answer["pool"]["cache_bytes"] == BLOCK
    assert answer["budgets"] == []


def test_without_a_pool_there_is_a_curve_all_the_same() -> None:
    answer = reuse(MADE_UP, budgets_gib="1,10.5")
    assert answer["pool"] is None
    rates = [point["hit_rate"] for point in answer["curve"]]
    assert rates == sorted(rates)
    assert rates[-1] == answer["ceiling"]["hit_rate"] > 0.2
    low, high = answer["knee"]
    assert low["hit_rate"] >= 0.95 * rates[-1]
    assert high["hit_rate"] >= 0.99 * rates[-1]
    assert low["cache_bytes"] <= high["cache_bytes"]
    assert [b["budget_bytes"] for b in answer["budgets"]] == [2**30, 21 * 2**29]


def lines_of(traffic: Traffic) -> list[Json]:
    return [
        {
            "timestamp": round(1000 * (request.time or 0)),
            "input_length": request.tokens,
            "output_length": request.output,
            "hash_ids": request.ids,
        }
        for request in traffic
    ]


MADE_UP: Final = lines_of(Traffic(requests=400, users=20, block_tokens=64))


def test_more_replicas_find_less_unless_requests_follow_their_prefix() -> None:
    answer = reuse(MADE_UP, replicas=4, pool_bytes=10**12)
    rows = {(r["replicas"], r["routing"]): r for r in answer["spread"]}
    assert set(rows) == {
        (1, "random"), (2, "random"), (2, "prefix"), (4, "random"), (4, "prefix"),
    }  # fmt: skip
    alone = reuse(MADE_UP, pool_bytes=10**12)
    assert rows[1, "random"]["ceiling"] == alone["ceiling"]["hit_rate"]
    assert rows[4, "random"]["ceiling"] == answer["ceiling"]["hit_rate"]
    assert rows[4, "random"]["ceiling"] < rows[2, "random"]["ceiling"]
    assert rows[4, "random"]["ceiling"] < rows[4, "prefix"]["ceiling"]
    assert rows[4, "prefix"]["pool"]["hit_rate"] == rows[4, "prefix"]["ceiling"]


def test_other_policies_stand_beside_lru() -> None:
    plain = reuse(MADE_UP, budgets_gib=[1.5])["budgets"][0]
    for policy in ("fifo", "priority"):
        point = reuse(MADE_UP, budgets_gib=[1.5], policy=policy)["budgets"][0]
        assert point["lru_hit_rate"] == plain["hit_rate"]
        if policy == "priority":
            assert point["hit_rate"] == plain["hit_rate"]
            assert point["evicted_blocks"] == plain["evicted_blocks"]


def test_a_retention_decides_what_leaves_first() -> None:
    """Room for four blocks: LRU loses prompt 1 to the third, but not where second
    blocks leave before any first one."""
    lines = [turn(1, extra=1), turn(2, 9, extra=1), turn(3, 8, extra=1)]
    lines += [turn(1, extra=1)]
    # Running requests take 2, 3, 3 and 2 blocks.
    asked = {"pool_bytes": BLOCK * 13 // 2, "policy": "priority"}
    plain = reuse(lines, **asked)["pool"]
    assert (plain["cache_bytes"], plain["saved_tokens"]) == (4 * BLOCK, 0)
    for rule in ("64:=0", {"start": 64, "end": None, "priority": 0}):
        kept = reuse(lines, **asked, retention=[rule])["pool"]
        assert kept["saved_tokens"] == 64
    kept = reuse(lines, **asked, retention="0:64=80,64:=10/3600")["pool"]
    assert kept["saved_tokens"] == 64


# What is charged --------------------------------------------------------------


def costs(**params: object) -> Any:
    given = {"gpu": "h100", "gpus": 1, **params}
    scenario = scenario_of(Params(given, PLAN))
    return costs_of(scenario, None, 512)


def test_a_block_costs_what_its_tokens_do() -> None:
    found = costs(model="llama-3.1-70b")
    assert (found.block, found.unit, found.tail_units(10**5)) == (512, 512 * 327_680, 0)
    engine = costs(model="llama-3.1-70b", engine="vllm", gpus=8)
    assert (engine.block, engine.unit) == (16, 16 * 327_680 // 8)


def test_a_window_is_left_once_by_each_request() -> None:
    found = costs(model="gemma-3-27b-it")
    short, full, long = (
        ask("estimate", model="gemma-3-27b-it", tokens=n)["components"]
        for n in (512, 1024, 10_240)
    )
    assert found.tail_bytes(500) == short["window"]
    assert found.tail_bytes(10_000) == full["window"] == long["window"]
    assert found.unit == short["kv"]
    assert not found.checkpoints_only


def test_states_are_left_once_and_hits_need_them() -> None:
    found = costs(model="qwen3.5-27b")
    parts = ask("estimate", model="qwen3.5-27b", tokens=512)["components"]
    assert found.tail_bytes(10) == found.tail_bytes(10**6) == parts["state"]
    assert found.unit == parts["kv"]
    assert found.checkpoints_only


def test_compressed_caches_cost_what_is_left_of_them() -> None:
    found = costs(model="deepseek-v4-flash")
    one, other = (
        ask("estimate", model="deepseek-v4-flash", tokens=n)["components"]
        for n in (512 * 1024, 512 * 2048)
    )
    growth = sum(other[part] - one[part] for part in ("kv", "indexer"))
    assert found.unit == growth // 1024


def test_a_hybrid_finds_only_prefixes_that_a_prompt_ended_in() -> None:
    """[1 2], then [1 3]: block 1 is there, but no state at its end."""
    lines = [turn(1, 2, extra=1), turn(1, 3, extra=1), turn(1, 2, 4, extra=1)]
    full = reuse(lines)
    hybrid = reuse(lines, model="qwen3.5-27b")
    assert full["ceiling"]["saved_tokens"] == 64 + 128
    assert hybrid["ceiling"]["saved_tokens"] == 128
    assert [w["code"] for w in hybrid["warnings"]] == ["reuse_needs_states"]
    assert hybrid["request_bytes"] > 0


def test_a_model_of_states_alone_is_charged_by_them() -> None:
    lines = [turn(1, extra=1), turn(2, extra=1), turn(1, 5, extra=1)]
    answer = reuse(lines, model="mamba-2.8b-hf", budgets_gib=[1])
    assert answer["block_bytes"] == 0
    assert answer["ceiling"]["saved_tokens"] == 64
    assert answer["ceiling"]["cache_bytes"] == 2 * answer["request_bytes"]


def test_a_pool_full_of_running_requests_keeps_nothing() -> None:
    answer = reuse(TEN, pool_bytes=BLOCK)
    assert answer["pool"]["hit_rate"] == 0
    (warning,) = answer["warnings"]
    assert warning["code"] == "reuse_no_room"
    running = answer["running"]["bytes"]
    assert warning["params"] == {"running_bytes": running, "pool_bytes": BLOCK}


# Progress, samples, presets ---------------------------------------------------


def test_an_estimate_comes_first_and_is_near() -> None:
    told: list[Json] = []
    params = {"model": "llama-3.1-70b", "preset": "chat-like-mooncake"}
    exact = api.call("reuse", params, (), told.append)
    estimates = [step["answer"] for step in told if "answer" in step]
    phases = [step["phase"] for step in told]
    assert phases == sorted(phases, reverse=True)
    for phase in ("sampled", "exact"):
        shares = [step["share"] for step in told if step["phase"] == phase]
        assert shares == sorted(shares)
        assert len(shares) > 20
        assert shares[-1] == 1
    reads = [estimate["read"] for estimate in estimates]
    assert len(reads) > 1
    assert reads == sorted(reads)
    assert reads[0] < 0.3
    assert reads[-1] == exact["read"] == 1
    estimate = estimates[-1]
    assert (estimate["exact"], exact["exact"]) == (False, True)
    assert estimate["trace"]["prompt"] == exact["trace"]["prompt"]
    assert set(estimate) == set(exact)
    for point in exact["curve"][::10]:
        near = min(
            estimate["curve"],
            key=lambda p: abs(p["cache_bytes"] - point["cache_bytes"]),
        )
        assert near["hit_rate"] == pytest.approx(point["hit_rate"], abs=0.04)


def test_long_prompts_do_not_hold_up_the_progress() -> None:
    """Sixty of 4,000 blocks each: far fewer requests than between two looks."""
    told: list[Json] = []
    lines = [turn(*range(k, k + 4000)) for k in range(60)]
    api.call("reuse", {**LLAMA, "policy": "fifo"}, [trace_of(lines)], told.append)
    for phase in ("sampled", "exact"):
        shares = {step["share"] for step in told if step["phase"] == phase}
        assert len(shares) > 4


def test_nor_does_a_percent_that_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a trace so large that the whole of this one is no percent of it."""
    monkeypatch.setattr(answer_module, "STEP", 1.0)
    told: list[Json] = []
    lines = [turn(*range(k, k + 4000)) for k in range(100)]
    api.call("reuse", LLAMA, [trace_of(lines)], told.append)
    looks = 100 * 4000 // EVERY_BLOCKS
    exact = [step for step in told if step["phase"] == "exact"]
    assert len(exact) >= looks // answer_module.QUIET


@pytest.mark.parametrize("routing", ["random", "prefix"])
def test_an_estimate_deals_requests_to_replicas_as_they_will_be(routing: str) -> None:
    told: list[Json] = []
    pool = 400 * 2**30
    params = {"preset": "chat-like-mooncake", "replicas": 4, "routing": routing}
    params |= {"model": "llama-3.1-70b", "pool_bytes": pool}
    exact = api.call("reuse", params, (), told.append)
    estimate = [step["answer"] for step in told if "answer" in step][-1]
    for part in ("pool", "ceiling"):
        wanted = pytest.approx(exact[part]["hit_rate"], abs=0.04)
        assert estimate[part]["hit_rate"] == wanted
    assert estimate["trace"]["blocks"] == exact["trace"]["blocks"]
    unique = pytest.approx(exact["trace"]["unique_blocks"], rel=0.05)
    assert estimate["trace"]["unique_blocks"] == unique


def test_long_prompts_are_told_of_as_early() -> None:
    """Prompts of 5,000 blocks: the first estimate does not wait for a thousand."""
    lines = [turn(*range(n * 4000, n * 4000 + 5000), extra=1) for n in range(300)]
    told: list[tuple[int, Json]] = []
    data = "\n".join(map(json.dumps, lines)).encode()
    done = 0

    def read(offset: int, length: int) -> bytes:
        nonlocal done
        done = max(done, offset + length)
        return data[offset : offset + length]

    source = ByteSource(name="long.jsonl", size=len(data), read=read)
    answer = api.call("reuse", LLAMA, [source], lambda step: told.append((done, step)))
    first, step = next((at, step) for at, step in told if "answer" in step)
    assert step["answer"]["read"] <= first / len(data) < 0.2
    assert answer["trace"]["blocks"] == 1_500_000
    shares = [step["share"] for _, step in told if step["phase"] == "sampled"]
    assert len(shares) > 50


@pytest.mark.parametrize("name", PRESETS)
def test_made_up_traffic_resembles_the_trace_it_is_named_after(name: str) -> None:
    preset = PRESETS[name]
    answer = api.call(
        "reuse",
        {"model": "llama-3.1-70b", "preset": name, "warmup": preset.warmup},
    )
    trace = answer["trace"]
    assert trace["requests"] == preset.traffic.requests
    assert trace["prompt"]["mean"] == pytest.approx(preset.prompt_mean, rel=0.05)
    for key, published in (("p50", preset.prompt_p50), ("p95", preset.prompt_p95)):
        if published:
            assert trace["prompt"][key] == pytest.approx(published, rel=0.06)
    for key, published in (("p50", preset.output_p50), ("p95", preset.output_p95)):
        if published:
            assert trace["output"][key] == pytest.approx(published, rel=0.15)
    if preset.output_mean:
        assert trace["output"]["mean"] == pytest.approx(preset.output_mean, rel=0.12)
    assert answer["ceiling"]["hit_rate"] == pytest.approx(preset.reuse, abs=0.025)


def test_long_chats_need_the_cache_that_mooncakes_do() -> None:
    """LRU by cache tokens, measured on the whole trace (traces' own blocks of 512)."""
    published = {
        512_000: 0.0454,
        2_560_000: 0.1125,
        5_120_000: 0.2153,
        10_240_000: 0.2931,
        25_600_000: 0.3615,
    }
    answer = api.call(
        "reuse",
        {
            "model": "llama-3.1-70b",
            "preset": "chat-like-mooncake",
            "budgets_gib": [tokens * 327_680 / 2**30 for tokens in published],
        },
    )
    found = [budget["hit_rate"] for budget in answer["budgets"]]
    assert found == pytest.approx(list(published.values()), abs=0.045)


def test_presets_are_told_with_what_they_resemble() -> None:
    presets = ask("traffic")["presets"]
    assert [preset["id"] for preset in presets] == list(PRESETS)
    for preset in presets:
        assert preset["resembles"]
        assert preset["traffic"]["requests"] > 0


class TestMadeUpTraffic:
    def test_the_same_numbers_give_the_same_trace(self) -> None:
        traffic = Traffic(requests=200, fan_out=3)
        assert list(traffic) == list(traffic)
        assert list(MadeUp(traffic)) == list(traffic)

    def test_requests_come_in_the_order_of_their_times(self) -> None:
        times = [request.time or 0.0 for request in Traffic(requests=500)]
        assert times == sorted(times)

    def test_branches_share_the_context_and_nothing_else(self) -> None:
        traffic = Traffic(
            requests=300, users=1, fan_out=3, first=(3000, 3000), block_tokens=64
        )
        requests = list(traffic)
        for trunk, *branches in zip(*[iter(requests)] * 3, strict=True):
            common = trunk.tokens // 64
            for branch in branches:
                assert branch.time == trunk.time
                assert branch.ids[:common] == trunk.ids[:common]
            tails = [set(branch.ids[common:]) for branch in branches]
            assert not tails[0] & tails[1]

    def test_numbers_can_be_changed(self) -> None:
        answer = api.call(
            "reuse",
            {
                **LLAMA,
                "preset": "rag-like-ragpulse",
                "traffic": {"requests": 100, "prefix": "1000/1000", "first": [64, 64]},
            },
        )
        assert answer["trace"]["requests"] == 100
        assert answer["trace"]["prompt"]["p95"] == 1064

    @pytest.mark.parametrize(
        "traffic",
        [
            {"requests": 0},
            {"requests": "many"},
            {"first": "900/100"},
            {"first": [1, 2, 3]},
            {"first": "x/y"},
            {"skew": -1},
            {"fan_out": 99},
            {"users": True},
        ],
    )
    def test_numbers_out_of_range_are_refused(self, traffic: Json) -> None:
        answer = api.call("reuse", {**LLAMA, "traffic": traffic})
        assert answer["error"]["code"] == "invalid_argument"

    def test_unknown_numbers_and_presets_are_refused(self) -> None:
        answer = api.call("reuse", {**LLAMA, "traffic": {"speed": 1}})
        assert answer["error"]["code"] == "unknown_option"
        answer = api.call("reuse", {**LLAMA, "preset": "nobody"})
        assert answer["error"]["code"] == "invalid_argument"
        assert api.call("reuse", LLAMA)["error"]["code"] == "missing_field"


# Traces -----------------------------------------------------------------------


def test_bailians_lines_and_packed_files_are_read() -> None:
    lines = [
        {
            "chat_id": n,
            "parent_chat_id": -1,
            "timestamp": 61.114 + n,
            "input_length": 40,
            "output_length": 3,
            "type": "text",
            "turn": 1,
            "hash_ids": [7, 8, 9 + n],
        }
        for n in range(4)
    ]
    packed = gzip.compress("\n".join(map(json.dumps, lines)).encode())
    answer = reuse(in_memory(packed, "a.jsonl.gz"), block_tokens=None)
    assert answer["trace"]["block_tokens"] == answer["block_tokens"] == 16
    assert answer["trace"]["seconds"] == pytest.approx(3)
    assert answer["ceiling"]["saved_tokens"] == 3 * 32


def test_ids_may_be_texts_and_lines_state_their_block() -> None:
    lines = [turn("x", "y", extra=1), turn("x", "z", extra=1)]
    assert reuse(lines)["ceiling"]["saved_tokens"] == 64
    lines = [turn("x", "y"), turn("x", "y")]
    assert reuse(lines)["ceiling"]["saved_tokens"] == 64


def test_a_prompt_shorter_than_a_block_has_nothing_to_find() -> None:
    lines = [{"input_length": 5, "hash_ids": [1]}, {"input_length": 5, "hash_ids": []}]
    answer = reuse(lines, trace_block_tokens=64)
    assert answer["ceiling"]["hit_rate"] == 0
    assert answer["trace"]["output"]["mean"] == 0


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ({"output_length": 1, "hash_ids": [1]}, "input_length"),
        ({"input_length": 0, "hash_ids": []}, "input_length"),
        ({"input_length": -5, "hash_ids": []}, "input_length"),
        ({"input_length": 64}, "hash_ids"),
        ({"input_length": 64, "hash_ids": "1 2"}, "hash_ids"),
        ({"input_length": 64, "hash_ids": [1.5]}, "hash_ids"),
        ({"input_length": 64, "hash_ids": [1, "a"]}, "hash_ids"),
        ({"input_length": 64, "hash_ids": [None]}, "hash_ids"),
        ({"input_length": 64, "hash_ids": [1, 2]}, "hash_ids"),
        ({"input_length": 64, "hash_ids": [1], "output_length": -1}, "output_length"),
        ({"input_length": 64, "hash_ids": [1], "block_size": 16}, "block_size"),
        ({"input_length": 64, "hash_ids": [1], "block_size": 0}, "block_size"),
        ({"input_length": 64, "hash_ids": [1], "timestamp": []}, "timestamp"),
    ],
)
def test_a_bad_line_is_named(line: Json, where: str) -> None:
    error = refused([turn(1), turn(2), line, turn(3)])
    assert error["code"] == "invalid_trace"
    assert error["params"]["file"] == "trace.jsonl"
    assert error["params"]["line"] == 3
    assert error["params"]["where"] == where


def test_a_bad_line_far_in_a_long_file_is_named() -> None:
    lines = [turn(n, n + 1) for n in range(3000)]
    lines[2500] = {"input_length": 3, "hash_ids": [1, 2]}
    error = refused(lines)
    assert (error["code"], error["params"]["line"]) == ("invalid_trace", 2501)


def test_empty_and_blank_files_are_refused() -> None:
    assert refused(in_memory(b"", "e.jsonl"))["code"] == "empty_trace"
    assert refused(in_memory(b"\n \n", "e.jsonl"))["code"] == "empty_trace"
    error = refused(in_memory(b"a,b\n1,2\n", "e.csv"))
    assert (error["code"], error["params"]["line"]) == ("invalid_trace", 1)


def test_a_block_size_that_nothing_tells_is_asked_for() -> None:
    lines = [{"input_length": 3, "hash_ids": [1]}]
    error = refused(lines, block_tokens=None)
    assert error["code"] == "invalid_argument"
    assert error["params"]["argument"] == "trace_block_tokens"


def test_a_large_file_is_read_in_slices() -> None:
    """No slice is longer than a quarter of a megabyte, and only the last are held."""
    line = json.dumps(turn(*range(40))).encode() + b"\n"
    data = line * 4000
    longest = 0

    def read(offset: int, length: int) -> bytes:
        nonlocal longest
        longest = max(longest, length)
        return data[offset : offset + length]

    source = ByteSource(name="big.jsonl", size=len(data), read=read)
    assert reuse(source)["trace"]["requests"] == 4000
    assert longest <= 2**18


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "mru"},
        {"routing": "best"},
        {"replicas": 0},
        {"replicas": 10**6},
        {"warmup": 1},
        {"warmup": "half"},
        {"budgets_gib": []},
        {"budgets_gib": "1,,2"},
        {"budgets_gib": [-1]},
        {"budgets_gib": [True]},
        {"tokens_per_second": 0},
        {"retention": "0:64=80"},
        {"policy": "priority", "retention": "0:64=101"},
        {"policy": "priority", "retention": "64:0=50"},
        {"policy": "priority", "retention": [3]},
        {"policy": "priority", "retention": {}},
        {"policy": "priority", "retention": "0:64=50/soon"},
    ],
)
def test_what_cannot_be_asked_is_refused(changes: Json) -> None:
    assert refused(TEN, **changes)["code"] == "invalid_argument"


def test_an_engine_told_not_to_share_has_no_reuse() -> None:
    options = {"engine": "vllm", "engine_options": {"enable_prefix_caching": False}}
    assert refused(TEN, **options)["code"] == "unsupported_option"


def test_the_command_line_answers_for_files_and_presets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ten.jsonl"
    path.write_text("\n".join(map(json.dumps, TEN)))
    words = ["--model", "llama-3.1-70b", "--block-tokens", "64"]
    assert main(["reuse", str(path), *words, "--budgets-gib", "1,2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [b["hit_rate"] for b in answer["budgets"]] == [0.576, 0.576]
    assert main(["reuse", str(path), *words, "--replicas", "2"]) == 0
    out = capsys.readouterr().out
    assert "51.20% hits" in out
    assert "1 x random        57.60%" in out
    assert main(["traffic"]) == 0
    name = capsys.readouterr().out.split()[0]
    assert main(["reuse", name, *words]) == 0
    assert name in capsys.readouterr().out
    assert main(["reuse", str(tmp_path / "none"), *words]) == 2
    assert "FILE is" in capsys.readouterr().err
