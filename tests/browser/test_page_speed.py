"""Speed and cost: the bounds on the page are kvcore's, prices and rates one's own."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_support import START_LIMIT, violations
from page_support import OPENING_PLAN, fragment, go, live_page
from playwright.sync_api import Browser, Locator, Page, expect

from build_steps.tools import SITE
from kvcore import api

NAMES = {"context": "tokens", "concurrency": "sequences"}
LIMIT = 20_000
ENGLISH, KOREAN = (
    json.loads((SITE / "locales" / f"{lang}.json").read_text("utf-8"))
    for lang in ("en", "ko")
)
MIXTURE = {
    "model": "deepseek-v3",
    "gpu": "h200-sxm",
    "gpus": 8,
    "engine": "vllm",
    "context": 32_768,
    "concurrency": 64,
}


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    return shared


def visit(page: Page, plan: dict[str, Any], **view: object) -> None:
    """The panel open on a scenario; the levers, tested elsewhere, closed."""
    go(page, **{NAMES.get(name, name): value for name, value in plan.items()}, **view)
    fold(page, levers=False, speed=True)


def fold(page: Page, **panels: bool) -> None:
    for panel, opened in panels.items():
        toggle = page.locator(f"#{panel}-toggle")
        if toggle.get_attribute("aria-expanded") != str(opened).lower():
            toggle.click()


def bounds(plan: dict[str, Any], **given: object) -> dict[str, Any]:
    found = api.call("decode", {**plan, **given})
    assert "error" not in found, found
    return found


def panel(page: Page) -> Locator:
    return page.locator("#speed")


def fact(page: Page, name: str, words: dict[str, str] = ENGLISH) -> Locator:
    label = page.locator("dt").get_by_text(words[f"speed.{name}"], exact=True)
    return page.locator("#speed .panel-facts > div").filter(has=label).locator("dd")


def expect_current(page: Page) -> None:
    expect(page.locator("#speed .panel-answer:not(.old)")).to_have_count(
        1, timeout=START_LIMIT
    )


def read(text: str) -> float:
    """The number a fact starts with: "1,777 tokens/s" is 1777."""
    return float(text.strip().lstrip("$").split()[0].replace(",", ""))


def expect_number(shown: Locator, value: float) -> None:
    """What stands there is the number, to the digits that are shown."""
    expect(shown).not_to_have_count(0, timeout=LIMIT)
    text = shown.locator("b").inner_text().removeprefix("at least ")
    assert read(text) == pytest.approx(value, rel=6e-3), text


def expect_bounds(page: Page, found: dict[str, Any]) -> None:
    expect_current(page)
    rates, step = found["tokens_per_second"], found["step"]
    expect_number(fact(page, "per_request"), rates["request"])
    expect_number(fact(page, "in_all"), rates["total"])
    expect(fact(page, "step")).to_contain_text(ENGLISH[f"speed.bound_{step['bound']}"])
    expect_number(fact(page, "reads_weights"), step["weight_bytes"] / 2**30)
    expect_number(fact(page, "reads_cache"), step["cache_bytes"] / 2**30)
    prompt = f"{found['prefill']['tokens']:,} tokens"
    expect(fact(page, "first_token")).to_contain_text(prompt)


class TestBounds:
    def test_closed_until_it_is_opened(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        fold(live, speed=False)
        toggle = live.locator("#speed-toggle")
        expect(toggle).to_have_attribute("aria-expanded", "false")
        expect(live.locator("#speed .panel-answer")).to_have_count(0)
        toggle.press("Enter")
        expect(toggle).to_have_attribute("aria-expanded", "true")
        expect_current(live)

    def test_a_dense_model(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        found = bounds(OPENING_PLAN)
        expect_bounds(live, found)
        expect(fact(live, "crossover")).to_have_text(
            f"{found['crossover_requests']} requests"
        )
        times = f"{found['without_cache']['times_slower']:,.0f} times as long"
        expect(panel(live)).to_contain_text(times)
        live.locator("#speed summary").filter(has_text="How the step").click()
        formula = panel(live).locator(".panel-formula").first
        for part in ("weight_bytes", "cache_bytes"):
            expect(formula).to_contain_text(f"{found['step'][part]:,} B")
        expect(formula).to_contain_text(f"{found['bandwidth_bytes_per_second']:,} B/s")

    def test_experts_are_counted_by_the_batch(self, live: Page) -> None:
        visit(live, MIXTURE)
        found = bounds(MIXTURE)
        expect_bounds(live, found)
        share = live.locator("#speed .panel-formula").filter(has_text="Experts")
        assert found["experts"]["expression"] in (share.text_content() or "")

    def test_the_curve_falls_as_the_table_says(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        found = bounds(OPENING_PLAN)
        expect_bounds(live, found)
        low, high = found["curve"][0], found["curve"][-1]
        finding = live.locator("#speed-caption")
        expect(finding).to_contain_text(f"{low['request']:.0f} tokens/s at 1K")
        expect(finding).to_contain_text(f"{high['request']:.1f} at 128K")
        expect(live.locator("#speed-chart .chart-present circle")).to_have_count(1)
        figures = live.locator("#speed .behind tbody tr")
        expect(figures).to_have_count(len(found["curve"]))
        contexts = figures.locator("th").all_text_contents()
        assert contexts == [f"{point['context']:,}" for point in found["curve"]]

    def test_a_prompt_of_its_own(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        live.locator("#speed-prompt_tokens").fill("2k")
        expect(fact(live, "first_token")).to_contain_text("2,048 tokens", timeout=LIMIT)
        expect_bounds(live, bounds(OPENING_PLAN, prompt_tokens=2_048))
        assert fragment(live)["speed.prompt_tokens"] == "2048"

    def test_more_requests_than_fit_are_warned_of(self, live: Page) -> None:
        plan = {**OPENING_PLAN, "concurrency": 320}
        visit(live, plan)
        expect_bounds(live, bounds(plan))
        expect(panel(live).locator(".warning")).to_contain_text("as if there were room")

    def test_a_plan_that_cannot_run_has_none(self, live: Page) -> None:
        visit(live, {**OPENING_PLAN, "tp": 6, "gpus": 6})
        expect(live.locator(".verdict.cannot_run")).to_have_count(1)
        expect(panel(live)).to_contain_text("once this setup can run")
        expect(panel(live).locator(".panel-facts")).to_have_count(0)


class TestRates:
    def test_what_nobody_published_can_be_typed(self, live: Page) -> None:
        plan = {
            **{name: OPENING_PLAN[name] for name in ("model", "gpus", "engine")},
            "gpu": "other",
            "memory_mib": 81_559,
            "context": 32_768,
            "concurrency": 8,
        }
        visit(live, plan)
        expect_current(live)
        expect(fact(live, "per_request")).to_have_text("not known")
        expect(live.locator("#speed-chart")).to_have_count(0)
        live.locator("#speed-bandwidth_bytes_per_second").fill("3.35 TB")
        rate = {"bandwidth_bytes_per_second": 3_350_000_000_000}
        expect(fact(live, "per_request")).to_contain_text("tokens/s", timeout=LIMIT)
        expect_bounds(live, bounds(plan, **rate))
        expect(live.locator("#speed-chart svg")).to_have_count(1)


class TestCost:
    def test_a_price_that_is_typed(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect(fact(live, "cost_output")).to_have_count(0)
        live.locator("#speed-price").fill("4.50")
        cost = bounds(OPENING_PLAN, price=4.5)["cost"]
        expect(fact(live, "cost_hour")).to_contain_text("$36.00", timeout=LIMIT)
        expect(fact(live, "cost_hour")).to_contain_text("8 GPUs")
        expect_number(fact(live, "cost_output"), cost["per_million_output_tokens"])
        kept = cost["per_million_context_token_hours"]
        expect_number(fact(live, "cost_context"), kept)

    def test_a_price_from_the_list(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        listed = api.call("prices", {"gpu": OPENING_PLAN["gpu"]})["prices"]
        expect_current(live)
        live.locator("#speed-prices summary").click()
        rows = live.locator("#speed-prices tbody tr")
        expect(rows).to_have_count(len(listed))
        for shown, row in zip(rows.all(), listed, strict=True):
            expect(shown).to_contain_text(row["provider"])
            expect(shown).to_contain_text(row["date"])
        rows.first.locator("button").click()
        price = listed[0]["price_per_hour"]
        expect(live.locator("#speed-price")).to_have_value(str(price))
        expect(fact(live, "cost_hour")).to_contain_text(
            f"${8 * price:,.2f}", timeout=LIMIT
        )
        assert float(fragment(live)["speed.price"]) == price

    def test_the_link_carries_it(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        fold(live, speed=False)
        go(live, gpu="h100-sxm", gpus=8, engine="vllm", **{"speed.price": "2.25"})
        expect(live.locator("#speed-toggle")).to_have_attribute("aria-expanded", "true")
        expect(live.locator("#speed-price")).to_have_value("2.25")
        expect(fact(live, "cost_hour")).to_contain_text("$18.00", timeout=LIMIT)

    def test_a_frame_of_the_whole_carries_it(self, live: Page) -> None:
        go(live, gpu="h100-sxm", gpus=8, engine="vllm", **{"speed.price": "2.25"})
        expect(live.locator("#speed-price")).to_have_value("2.25")
        live.locator("#tab-embed").click()
        code = live.locator("#share-text")
        live.locator("#embed-view").select_option("full")
        expect(code).to_have_value(re.compile("speed.price=2.25"))
        live.locator("#embed-view").select_option("answer")
        expect(code).not_to_have_value(re.compile("speed.price"))

    def test_a_link_with_nonsense_says_so(self, live: Page) -> None:
        go(live, gpu="h100-sxm", gpus=8, engine="vllm", **{"speed.price": "-4"})
        expect(live.locator("#app")).to_contain_text("speed.price")
        expect(live.locator("#speed-price")).to_have_value("")

    @pytest.mark.parametrize("text", ["4,50x", "-4", "0", "1e3"])
    def test_nonsense_keeps_text_and_answer(self, live: Page, text: str) -> None:
        visit(live, OPENING_PLAN, **{"speed.price": "4.5"})
        expect(fact(live, "cost_hour")).to_contain_text("$36.00", timeout=LIMIT)
        field = live.locator("#speed-price")
        field.fill(text)
        field.press("Tab")
        expect(field).to_have_value(text)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(live.locator("#speed-price-messages")).to_contain_text("above 0")
        live.wait_for_timeout(1_500)
        expect(fact(live, "cost_hour")).to_contain_text("$36.00")

    def test_what_kvcore_refuses_stands_at_its_field(self, live: Page) -> None:
        visit(live, OPENING_PLAN, **{"speed.price": "4.5"})
        expect(fact(live, "cost_hour")).to_contain_text("$36.00", timeout=LIMIT)
        live.locator("#speed-price").fill("2000000")
        messages = live.locator("#speed-price-messages")
        expect(messages).to_contain_text("below a million", timeout=LIMIT)
        expect(fact(live, "cost_hour")).to_contain_text("$36.00")
        live.locator("#speed-price").fill("3")
        expect(fact(live, "cost_hour")).to_contain_text("$24.00", timeout=LIMIT)
        expect(messages).to_have_text("")

    def test_reset_takes_it_away(self, live: Page) -> None:
        visit(live, OPENING_PLAN, **{"speed.price": "4.5"})
        expect(live.locator("#speed-price")).to_have_value("4.5")
        live.get_by_role("button", name=ENGLISH["inputs.reset"]).click()
        expect(live.locator("#speed-price")).to_have_value("")
        assert "speed.price" not in fragment(live)


class TestTaking:
    def test_the_table_as_csv(self, live: Page, tmp_path: Path) -> None:
        visit(live, OPENING_PLAN)
        found = bounds(OPENING_PLAN)
        expect_bounds(live, found)
        with live.expect_download() as download:
            live.locator("#speed-csv").click()
        path = tmp_path / "speed.csv"
        download.value.save_as(path)
        with path.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        assert [int(row["context"]) for row in rows] == [
            point["context"] for point in found["curve"]
        ]
        assert [int(row["cache_bytes"]) for row in rows] == [
            point["cache_bytes"] for point in found["curve"]
        ]
        assert [float(row["tokens_per_second_request"]) for row in rows] == [
            point["request"] for point in found["curve"]
        ]


class TestEverybody:
    @pytest.mark.parametrize(
        ("width", "view"),
        [(1280, {}), (1280, {"theme": "dark"}), (320, {}), (390, {"lang": "ko"})],
    )
    def test_accessible(self, live: Page, width: int, view: dict[str, str]) -> None:
        live.set_viewport_size({"width": width, "height": 800})
        visit(live, OPENING_PLAN, **{"speed.price": "4.5"}, **view)
        words = KOREAN if view.get("lang") == "ko" else ENGLISH
        expect(fact(live, "cost_hour", words)).to_contain_text("$36.00", timeout=LIMIT)
        live.locator("#speed details").evaluate_all(
            "(all) => all.forEach((details) => { details.open = true; })"
        )
        assert violations(live) == []
        wide = live.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide
