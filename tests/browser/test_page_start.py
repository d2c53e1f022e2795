"""The first seconds: a right answer before scripts, presets before the engine."""

from __future__ import annotations

import re

import pytest
from browser_support import START_LIMIT, OpenPage, estimated_bytes, expect_total, fill
from page_support import OPENING, OPENING_PLAN, choose_model
from playwright.sync_api import Page, expect

from build_steps.page import DEFAULT_MODEL
from kvcore import api

HOLD_THE_ENGINE = """
const RealWorker = Worker;
let held = [];
globalThis.Worker = class extends RealWorker {
  postMessage(...message) {
    if (held) held.push(() => super.postMessage(...message));
    else super.postMessage(...message);
  }
};
globalThis.releaseTheEngine = () => {
  const waiting = held;
  held = null;
  waiting.forEach((send) => send());
};
"""
COUNT_SHIFTS = """
globalThis.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) globalThis.shift += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""
ANSWER = (
    ".verdict",
    ".sentence",
    ".numbers",
    ".gpu-bar",
    ".inverse",
    ".engine-lines",
    ".account",
    ".confidence",
    ".comparison",
    "#curve-caption",
)
REASONS = (".formula", ".layers", ".why > .source", ".prose", "footer p")


def texts(page: Page, selectors: tuple[str, ...]) -> list[str]:
    found = []
    for selector in selectors:
        content = page.locator(selector).first.text_content()
        assert content, selector
        found.append(re.sub(r"\s+", "", content))
    return found


class TestStatic:
    def test_without_scripts_everything_is_said(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page(site, java_script_enabled=False)
        expect_total(page, estimated_bytes(**OPENING))
        plan = api.call("plan", OPENING_PLAN)
        expect(page.locator(".verdict strong")).to_have_text("Fits.")
        expect(page.locator(".verdict-why")).to_contain_text(
            f"Room for {plan['max_requests']} requests"
        )
        expect(page.locator(".engine-lines pre")).to_have_text(
            plan["pool"]["log_lines"][0]
        )
        for selector in (*ANSWER, *REASONS, "svg.chart"):
            expect(page.locator(selector).first).to_be_visible()
        expect(page.locator("noscript p")).to_be_visible()
        expect(page.locator("#save")).to_have_attribute("href", "index.html")
        expect(page.locator(".inputs")).to_be_hidden()

    def test_is_word_for_word_what_the_scripts_show(
        self, open_page: OpenPage, site: str
    ) -> None:
        static = open_page(site, java_script_enabled=False)
        live = open_page(site)
        expect(live.locator("html[data-live]")).to_have_count(1)
        expect(live.locator(".share")).to_be_visible()
        selectors = (*ANSWER, *REASONS)
        assert texts(live, selectors) == texts(static, selectors)

    @pytest.mark.parametrize("width", [1280, 390])
    def test_taking_over_moves_nothing(
        self, open_page: OpenPage, site: str, width: int
    ) -> None:
        page = open_page("about:blank", viewport={"width": width, "height": 800})
        page.add_init_script(COUNT_SHIFTS)
        page.goto(site)
        expect(page.locator("html[data-live]")).to_have_count(1)
        page.wait_for_timeout(1000)
        assert page.evaluate("globalThis.shift") < 0.02


class TestBeforeTheEngine:
    @pytest.fixture
    def held(self, open_page: OpenPage, site: str) -> Page:
        """A page whose engine does not start until it is let."""
        page = open_page("about:blank")
        page.add_init_script(HOLD_THE_ENGINE)
        page.goto(site)
        expect(page.locator("html[data-live]")).to_have_count(1)
        return page

    def test_other_models_are_answered_at_once(self, held: Page) -> None:
        for model in ("deepseek-v3", "qwen3.5-27b", "gpt-oss-20b"):
            held.locator("#model").fill(model)
            held.evaluate(
                """() => {
                  const exact = document.querySelector(".number.total .exact");
                  let frames = 0;
                  const count = () => {
                    frames += 1;
                    requestAnimationFrame(count);
                  };
                  delete window.framesToAnswer;
                  addEventListener("keydown", () => {
                    requestAnimationFrame(count);
                  }, {capture: true, once: true});
                  new MutationObserver((_, observer) => {
                    observer.disconnect();
                    window.framesToAnswer = frames;
                  }).observe(exact, {characterData: true, subtree: true});
                }"""
            )
            held.locator("#model").press("Enter")
            total = estimated_bytes(**{**OPENING, "model": model})
            expect_total(held, total, 2_000)
            assert held.evaluate("window.framesToAnswer") <= 2
            expect(held.locator(".formula").first).to_be_visible()
            plan = api.call("plan", {**OPENING_PLAN, "model": model})
            words = {
                "fits": "Fits.",
                "tight": "Tight.",
                "does_not_fit": "Does not fit.",
            }
            expect(held.locator(".verdict strong")).to_have_text(words[plan["verdict"]])
            expect(held.locator(".verdict.old")).to_have_count(0)

    def test_what_is_typed_meanwhile_is_answered_afterwards(self, held: Page) -> None:
        fill(held, "tokens", 5000)
        fill(held, "sequences", 3)
        expect(held.get_by_text("Starting the calculator")).to_be_visible()
        expect_total(held, estimated_bytes(**OPENING))
        expect(held.locator(".verdict.old")).to_have_count(1)
        held.evaluate("releaseTheEngine()")
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=5000, sequences=3)
        expect_total(held, total, START_LIMIT)
        expect(held.get_by_text("Starting the calculator")).to_have_count(0)

    def test_layers_and_curve_follow(self, held: Page) -> None:
        choose_model(held, "qwen3.5-27b")
        expect(held.locator(".layers")).to_have_count(0)
        expect(held.locator("svg.chart")).to_have_count(0)
        expect(held.get_by_text("Shown as soon as").first).to_be_visible()
        held.evaluate("releaseTheEngine()")
        expect(held.locator(".layers")).to_contain_text(
            "gated delta net", timeout=START_LIMIT
        )
        expect(held.locator("svg.chart")).to_be_visible()

    def test_what_was_typed_before_the_script_ran_is_kept(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page("about:blank")
        page.add_init_script(
            """new MutationObserver((_, observer) => {
              const field = document.getElementById("tokens");
              if (!field || !document.getElementById("data-locales")) return;
              observer.disconnect();
              field.value = "9k";
              field.focus();
            }).observe(document, {childList: true, subtree: true});"""
        )
        page.goto(site)
        expect(page.locator("#tokens")).to_have_value("9k")
        assert page.evaluate("document.activeElement.id") == "tokens"
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=9216, sequences=32)
        expect_total(page, total, START_LIMIT)
