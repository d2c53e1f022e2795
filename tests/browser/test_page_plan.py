"""Does it fit: GPUs, verdict, memory bar, and the way back into the form."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from page_support import (
    OPENING,
    OPENING_PLAN,
    choose_model,
    expect_answer,
    expect_message,
    fragment,
    go,
    live_page,
    set_open,
)
from playwright.sync_api import Browser, Page, expect

from kvcore import api

NAMES = {"context": "tokens", "concurrency": "sequences"}
WORDS = {"fits": "Fits.", "tight": "Tight.", "does_not_fit": "Does not fit."}


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    visit(shared, OPENING_PLAN)
    expect_answer(shared, **OPENING)
    expect_verdict(shared, OPENING_PLAN)
    return shared


def visit(page: Page, plan: dict[str, Any]) -> None:
    go(page, **{NAMES.get(name, name): value for name, value in plan.items()})


def planned(plan: dict[str, Any]) -> dict[str, Any]:
    found = api.call("plan", plan)
    assert "error" not in found, found
    return found


def gib(amount: int) -> str:
    """Bytes of 1 GiB to 1 TiB as the page writes them."""
    value = amount / 2**30
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} GiB"


def expect_verdict(page: Page, plan: dict[str, Any]) -> dict[str, Any]:
    found = planned(plan)
    current = page.locator(f".verdict.{found['verdict']}:not(.old)")
    expect(current.locator("strong")).to_have_text(WORDS[found["verdict"]])
    first, second, third = page.locator(".inverse dd").all_inner_texts()
    assert first == f"{found['max_requests']:,}"
    assert second.startswith(f"{found['max_context']:,} tokens")
    assert third == f"{found['min_gpus']:,}"
    return found


class TestVerdict:
    def test_changes_with_the_number_of_gpus(self, live: Page) -> None:
        live.locator("#gpus").fill("4")
        expect(live.locator(".verdict.does_not_fit:not(.old)")).to_have_count(1)
        found = expect_verdict(live, {**OPENING_PLAN, "gpus": 4})
        short = live.locator(".verdict-why")
        expect(short).to_contain_text(f"{gib(found['short_bytes'])} short on each GPU")
        expect(live.locator(".verdict-setup")).to_have_text(
            "4 × H100 80GB SXM5 · vLLM 0.33.0 · TP 4"
        )
        over = found["rank"]["used_bytes"] - found["rank"]["pool_bytes"]
        expect(live.locator(".gpu-bar .legend")).to_contain_text(
            f"KV that does not fit {gib(over)}"
        )
        live.locator("#gpus").fill("16")
        expect(live.locator(".verdict.fits:not(.old)")).to_have_count(1)
        expect_verdict(live, {**OPENING_PLAN, "gpus": 16})

    def test_weights_alone_too_large(self, live: Page) -> None:
        plan = {**OPENING_PLAN, "gpu": "a100-80-sxm", "gpus": 1}
        visit(live, plan)
        expect(live.locator(".verdict-why")).to_contain_text(
            "weights and reserve alone"
        )
        found = expect_verdict(live, plan)
        expect(live.locator(".verdict-why")).to_contain_text(gib(found["short_bytes"]))
        expect(live.locator(".engine-lines")).to_have_count(0)

    def test_tight(self, live: Page) -> None:
        live.locator("#sequences").fill("43")
        expect(live.locator(".verdict.tight:not(.old)")).to_have_count(1)
        found = expect_verdict(live, {**OPENING_PLAN, "concurrency": 43})
        share = found["rank"]["used_bytes"] / found["rank"]["pool_bytes"]
        expect(live.locator(".verdict-why")).to_contain_text(f"{100 * share:.1f}%")

    def test_never_by_colour_alone(self, live: Page) -> None:
        for gpus in (8, 4):
            live.locator("#gpus").fill(str(gpus))
            expect(live.locator(".verdict:not(.old) svg path").first).to_be_attached()
            expect(live.locator(".verdict strong")).not_to_be_empty()

    def test_heads_that_do_not_divide(self, live: Page) -> None:
        choose_model(live, "qwen2.5-7b-instruct")
        verdict = live.locator(".verdict.cannot_run:not(.old)")
        expect(verdict).to_contain_text("Cannot run. TP = 8 does not work with 28")
        expect(verdict).to_contain_text("1, 2, 4, 7, 14, 28")
        expect_answer(live, **{**OPENING, "model": "qwen2.5-7b-instruct"})
        live.get_by_role("button", name="Use TP 4").click()
        plan = {**OPENING_PLAN, "model": "qwen2.5-7b-instruct", "tp": 4}
        expect(live.locator(".verdict-setup")).to_contain_text("TP 4 · DP 2")
        expect_verdict(live, plan)
        assert fragment(live)["tp"] == "4"

    def test_an_engine_without_the_model_still_has_numbers(self, live: Page) -> None:
        model = "minimax-text-01"
        choose_model(live, model)
        expect(live.locator(".verdict.cannot_run:not(.old)")).to_contain_text("vLLM")
        expect_answer(live, **{**OPENING, "model": model})

    def test_no_verdict_stands_beside_another_model(self, live: Page) -> None:
        """Every painted state pairs a model with its own verdict or with none."""
        live.evaluate(
            """() => {
              window.pairs = [];
              const note = () => {
                const why = document.querySelector(".verdict:not(.old) .verdict-why");
                const name = document.querySelector(".sentence strong")?.textContent;
                if (why?.textContent) window.pairs.push(`${name}: ${why.textContent}`);
              };
              window.watching = new MutationObserver(note);
              window.watching.observe(document.getElementById("app"), {
                childList: true, subtree: true, characterData: true,
              });
            }"""
        )
        live.locator("#tokens").fill("20000")
        names = ("llama-3.1-8b-instruct", "qwen3-32b", "deepseek-v3")
        for name in names:
            choose_model(live, name)
            live.wait_for_timeout(150)
        plans = {
            model["name"]: api.call(
                "plan", {**OPENING_PLAN, "model": model["id"], "context": tokens}
            )
            for model in api.call("models", {})["models"]
            for tokens in (20_000,)
            if model["id"] in (*names, OPENING_PLAN["model"])
        }
        last = plans["DeepSeek-V3"]
        expect(live.locator(".inverse dd").first).to_have_text(
            f"{last['max_requests']:,}"
        )
        live.evaluate("window.watching.disconnect()")
        pairs: list[str] = live.evaluate("[...new Set(window.pairs)]")
        opening = planned(OPENING_PLAN)["max_requests"]
        for pair in pairs:
            name, why = pair.split(": ", 1)
            room = re.search(r"Room for ([\d,]+) request", why)
            allowed = {plans[name]["max_requests"]}
            if name == "Llama-3.1-70B-Instruct":
                allowed.add(opening)
            assert room is None or int(room[1].replace(",", "")) in allowed, pair


class TestBar:
    def test_parts_are_kvcore_s(self, live: Page) -> None:
        rank = planned(OPENING_PLAN)["rank"]
        legend = live.locator(".gpu-bar .legend")
        for part, amount in (
            ("Weights ≈", rank["weight_bytes"]),
            ("Reserve ≈", rank["reserve_bytes"]),
            ("KV in use", rank["used_bytes"]),
            ("KV free", rank["pool_bytes"] - rank["used_bytes"]),
        ):
            expect(legend).to_contain_text(f"{part} {gib(amount)}")
        label = live.locator(".gpu-bar svg.memory").get_attribute("aria-label")
        assert label is not None
        assert f"limit {gib(rank['usable_bytes'])}" in label
        expect(live.locator(".gpu-bar .estimate")).to_have_count(2)

    def test_given_numbers_are_no_estimates(self, live: Page) -> None:
        plan = {**OPENING_PLAN, "reserve_bytes": 2**31, "weight_bytes": 141 * 10**9}
        visit(live, plan)
        expect(live.locator(".confidence")).to_contain_text("reserve: 2.00 GiB per GPU")
        expect(live.locator(".confidence dt.estimate")).to_have_count(0)
        expect(live.locator(".gpu-bar .estimate")).to_have_count(0)
        expect_verdict(live, plan)

    def test_estimates_are_named_with_their_range(self, live: Page) -> None:
        reserve = planned(OPENING_PLAN)["reserve"]
        row = live.locator(".confidence div", has_text="Estimate")
        expect(row).to_contain_text(gib(reserve["low_bytes"]))
        expect(row).to_contain_text(gib(reserve["high_bytes"]))


class TestInverse:
    def test_most_requests(self, live: Page) -> None:
        live.locator(".inverse button").nth(0).click()
        most = planned(OPENING_PLAN)["max_requests"]
        expect(live.locator("#sequences")).to_have_value(str(most))
        expect(live.locator(".verdict.tight:not(.old)")).to_have_count(1)
        expect_verdict(live, {**OPENING_PLAN, "concurrency": most})

    def test_longest_context(self, live: Page) -> None:
        live.locator(".inverse button").nth(1).click()
        longest = planned(OPENING_PLAN)["max_context"]
        expect(live.locator("#tokens")).to_have_value(f"{longest:,}")
        expect(live.locator(".verdict.tight:not(.old)")).to_have_count(1)

    def test_fewest_gpus_with_a_split_that_works(self, live: Page) -> None:
        live.locator(".inverse button").nth(2).click()
        fewest = planned(OPENING_PLAN)["min_gpus"]
        expect(live.locator("#gpus")).to_have_value(str(fewest))
        expect(
            live.locator(":is(.verdict.tight, .verdict.fits):not(.old)")
        ).to_have_count(1)
        expect(live.locator(".verdict-setup")).to_contain_text(f"{fewest} × H100")

    def test_log_line_is_kvcore_s_and_can_be_copied(self, live: Page) -> None:
        lines = planned(OPENING_PLAN)["pool"]["log_lines"]
        expect(live.locator("#log-lines")).to_have_text("\n".join(lines))
        expect(live.locator(".engine-lines")).to_contain_text(
            "vLLM 0.33.0 should print"
        )


class TestGpus:
    def test_found_by_name_and_named_by_driver_memory(self, live: Page) -> None:
        live.locator("#gpu").fill("h200")
        live.locator("#gpu").press("Enter")
        expect(live.locator("#gpu")).to_have_value("H200 141GB SXM")
        expect(live.locator("#gpu-hint")).to_contain_text("143,771 MiB visible")
        expect(live.locator(".verdict-setup")).to_contain_text("H200 141GB SXM")
        expect_verdict(live, {**OPENING_PLAN, "gpu": "h200-sxm"})

    def test_memory_by_hand(self, live: Page) -> None:
        live.locator("#gpu").click()
        live.locator("#gpu-list [role=option]", has_text="Other").click()
        expect_message(live, "gpu", "Needed and not given: Memory of one GPU")
        expect(live.locator(".verdict.open")).to_have_count(1)
        live.locator("#memory_mib").fill("100000")
        expect(live.locator(".verdict.fits:not(.old)")).to_have_count(1)
        plan = {**OPENING_PLAN, "gpu": "other", "memory_mib": 100_000}
        expect_verdict(live, plan)

    def test_no_gpu_is_just_the_cache(self, live: Page) -> None:
        live.locator("#gpu").click()
        live.locator("#gpu-list [role=option]", has_text="No GPU").click()
        expect(live.locator(".verdict")).to_have_count(0)
        expect(live.locator(".gpu-bar")).to_have_count(0)
        expect_answer(live, **OPENING)
        assert "gpu" not in fragment(live)

    def test_none_of_that_name(self, live: Page) -> None:
        go(live, gpu="h900", sequences=2)
        expect_message(live, "gpu", "No accelerator is called “h900”")
        expect(live.locator(".verdict.open")).to_have_count(1)


class TestRules:
    def test_share_of_memory_under_the_engine_s_name(self, live: Page) -> None:
        set_open(live, "rules")
        label = live.locator("label[for=memory_fraction]")
        expect(label).to_contain_text("--gpu-memory-utilization")
        live.locator("#memory_fraction").fill("0.5")
        expect(live.locator(".verdict.does_not_fit:not(.old)")).to_have_count(1)
        expect_verdict(live, {**OPENING_PLAN, "memory_fraction": 0.5})
        live.locator("#memory_fraction").fill("1.5")
        expect_message(live, "memory_fraction", "above 0 and at most 1")
        live.locator("#memory_fraction").fill("")
        expect(live.locator(".verdict.fits:not(.old)")).to_have_count(1)
        live.locator("#engine").select_option("sglang")
        expect(label).to_contain_text("--mem-fraction-static")

    def test_room_from_a_log(self, live: Page) -> None:
        go(live, **{**OPENING, "gpu": "h100-sxm", "gpus": 8, "engine": "vllm", "tp": 8})
        set_open(live, "rules")
        live.locator("#pool_bytes").fill("30.5 GiB")
        pool = round(30.5 * 2**30)
        plan = {**OPENING_PLAN, "tp": 8, "pool_bytes": pool}
        expect(live.locator(".verdict.does_not_fit:not(.old)")).to_have_count(1)
        expect_verdict(live, plan)
        expect(live.locator(".confidence")).to_contain_text("room for KV: 30.5 GiB")

    def test_split_by_hand(self, live: Page) -> None:
        set_open(live, "parallel")
        live.locator("#tp").fill("4")
        expect(live.locator(".verdict-setup")).to_contain_text("TP 4 · DP 2")
        expect_verdict(live, {**OPENING_PLAN, "tp": 4})
        live.locator("#pp").fill("2")
        expect(live.locator(".verdict-setup")).to_contain_text("TP 4 · PP 2")
        live.locator("#tp").fill("3")
        expect_message(live, "gpus", "gpus is 8")


class TestCurve:
    def test_room_and_where_it_ends(self, live: Page) -> None:
        found = planned(OPENING_PLAN)
        longest = f"{found['max_context']:,} tokens"
        expect(live.locator("#curve-caption")).to_contain_text(f"up to {longest} each")
        chart = live.locator(".curve svg.chart")
        expect(chart).to_contain_text(f"room for KV {gib(found['rank']['pool_bytes'])}")
        expect(chart).to_contain_text(longest)
        expect(live.locator(".chart-over").first).to_be_attached()


class TestKorean:
    def test_verdict(self, live: Page) -> None:
        live.locator("#language").select_option("ko")
        expect(live.locator(".verdict strong")).to_have_text("들어갑니다.")
        live.locator("#gpus").fill("2")
        expect(live.locator(".verdict.does_not_fit:not(.old) strong")).to_have_text(
            "들어가지 않습니다."
        )
        live.locator("#language").select_option("en")


class TestSpoken:
    def test_status_holds_the_whole_answer(self, live: Page) -> None:
        live.locator("#gpus").fill("4")
        status = live.locator("#status")
        expect(status).to_contain_text("Does not fit.")
        for part in ("4 × H100 80GB SXM5", "Llama-3.1-70B", "32 sequences", "32,768"):
            expect(status).to_contain_text(part)
