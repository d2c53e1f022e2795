"""Accessibility: axe in every state, the status message, narrow pages, focus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from browser_support import (
    START_LIMIT,
    OpenPage,
    estimated_bytes,
    expect_total,
    violations,
)
from page_support import DEFAULT_TOTAL, expect_answer, go, live_page
from playwright.sync_api import Browser, Page, Route, expect

from build_steps.page import DEFAULT_MODEL


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    return shared


def everything_open(page: Page) -> None:
    go(page, model="qwen3.5-27b", draft=1, sequences=4)
    expect_answer(page, model="qwen3.5-27b", tokens=131_072, draft=True, sequences=4)
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")


def list_open(page: Page) -> None:
    page.locator("#model").fill("gemma")


def no_match(page: Page) -> None:
    page.locator("#model").fill("zzzzqq")


def in_error(page: Page) -> None:
    go(page, model="phi-2", kv_format="q8_0", colour="red")
    expect(page.locator("#kv_format-messages")).to_contain_text("blocks of 32")
    page.locator("#tokens").fill("12x")
    page.locator("#paste").fill("{")
    expect(page.locator("#paste-messages")).to_contain_text("not JSON")


def warned(page: Page) -> None:
    page.locator("#tokens").fill("1M")
    expect(page.locator("#tokens-messages")).to_contain_text("beyond")


def dark(page: Page) -> None:
    go(page, theme="dark", model="deepseek-v4-flash")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def dark_error(page: Page) -> None:
    dark(page)
    page.locator("#tokens").fill("12x")


def korean(page: Page) -> None:
    go(page, lang="ko", tokens="1M")
    expect(page.locator("html")).to_have_attribute("lang", "ko")


def embed_code(page: Page) -> None:
    page.locator("#tab-embed").click()
    expect(page.locator(".preview-frame")).to_be_visible()


def settled(page: Page, verdict: str, **settings: object) -> None:
    go(page, engine="vllm", **settings)
    expect(page.locator(f".verdict.{verdict}:not(.old)")).to_have_count(1)


def fits(page: Page) -> None:
    settled(page, "fits", gpu="h100-sxm", gpus=8)
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")


def does_not_fit(page: Page) -> None:
    settled(page, "does_not_fit", gpu="a100-80-sxm", gpus=4, sequences=32)


def dark_does_not_fit(page: Page) -> None:
    settled(page, "does_not_fit", gpu="a100-80-sxm", theme="dark")


def cannot_run(page: Page) -> None:
    settled(page, "cannot_run", gpu="h100-sxm", gpus=8, model="qwen2.5-7b-instruct")


def korean_tight(page: Page) -> None:
    settled(page, "tight", gpu="h100-sxm", gpus=8, sequences=10, lang="ko")


def gpus_open(page: Page) -> None:
    page.locator("#gpu").fill("4090")


def narrow_plan(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    fits(page)


def narrow(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    everything_open(page)


STATES = (
    everything_open,
    list_open,
    no_match,
    in_error,
    warned,
    dark,
    dark_error,
    korean,
    embed_code,
    narrow,
    fits,
    does_not_fit,
    dark_does_not_fit,
    cannot_run,
    korean_tight,
    gpus_open,
    narrow_plan,
)


class TestAxe:
    def test_live(self, live: Page) -> None:
        assert violations(live) == []

    @pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
    def test_state(self, live: Page, state: Callable[[Page], None]) -> None:
        state(live)
        # The curve follows the answer a moment later.
        live.wait_for_timeout(400)
        assert violations(live) == []

    def test_static(self, open_page: OpenPage, site: str) -> None:
        page = open_page("about:blank")
        # The page's own script is kept from running; axe still can.
        page.route(site, fulfil_without_script)
        page.goto(site)
        expect(page.locator("html[data-live]")).to_have_count(0)
        assert violations(page) == []

    @pytest.mark.parametrize("view", ["answer", "bar", "curve", "full"])
    def test_embed(self, open_page: OpenPage, site: str, view: str) -> None:
        page = open_page(f"{site}#v=1&embed=1&view={view}")
        expect(page.locator("html[data-live]")).to_have_count(1)
        # A frame is not a page of its own: headings and landmarks are its holder's.
        assert [
            found
            for found in violations(page)
            if not found.startswith("page-has-heading-one")
        ] == []

    def test_failure(self, open_page: OpenPage, site: str) -> None:
        page = open_page("about:blank")
        page.add_init_script("delete globalThis.Worker")
        page.goto(site)
        expect(page.get_by_role("alert")).to_be_visible(timeout=START_LIMIT)
        assert violations(page) == []


def fulfil_without_script(route: Route) -> None:
    document = route.fetch().text()
    start = document.index("<script>")
    body = document[:start] + document[document.index("</script>", start) :]
    route.fulfill(body=body, content_type="text/html")


class TestAnnouncement:
    def test_only_after_the_inputs_rest(self, live: Page) -> None:
        live.evaluate(
            """() => {
              window.said = [];
              const region = document.getElementById("status");
              new MutationObserver(() => window.said.push(region.textContent))
                .observe(region, {childList: true, subtree: true});
            }"""
        )
        live.locator("#tokens").fill("")
        live.locator("#tokens").press_sequentially("65536", delay=60)
        expect_answer(live, model=DEFAULT_MODEL, tokens=65_536)
        status = live.locator("#status")
        expect(status).to_contain_text("for 1 sequence of 65,536 tokens in BF16")
        assert live.evaluate("window.said.length") == 1

    def test_region_is_polite_and_whole(self, live: Page) -> None:
        status = live.get_by_role("status")
        expect(status).to_have_count(1)
        expect(status).to_have_attribute("aria-atomic", "true")


class TestNarrow:
    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_nothing_scrolls_sideways(self, live: Page, lang: str) -> None:
        live.set_viewport_size({"width": 320, "height": 640})
        for params in (
            {"model": "deepseek-v4-flash"},
            {"model": "qwen3.5-27b", "sequences": 123_456},
            {"model": "nvidia-nemotron-3-ultra-550b-a55b-nvfp4"},
            {"gpu": "rtx-pro-6000-server", "gpus": 16, "engine": "vllm"},
        ):
            go(live, lang=lang, **params)
            logical = {name: params[name] for name in params if "gpu" not in name}
            expect_answer(live, **{**DEFAULT_TOTAL, **logical})
            live.evaluate(
                "document.querySelectorAll('details').forEach((d) => d.open = true)"
            )
            for tab in ("link", "embed", "cli", "python", "json"):
                live.locator(f"#tab-{tab}").click()
                over = live.evaluate(
                    "document.documentElement.scrollWidth - innerWidth"
                )
                assert over <= 0, (params, tab)

    def test_total_stays_in_sight(self, live: Page) -> None:
        live.set_viewport_size({"width": 390, "height": 700})
        sticky = live.locator("#sticky")
        live.evaluate("scrollTo(0, 0)")
        expect(sticky).to_be_hidden()
        live.locator("#tab-json").scroll_into_view_if_needed()
        expect(sticky).to_be_visible()
        expect(sticky).to_contain_text("40.0 GiB")
        sticky.click()
        expect(sticky).to_be_hidden()

    def test_focused_field_is_not_covered(self, live: Page) -> None:
        live.set_viewport_size({"width": 390, "height": 500})
        for field in ("tokens", "sequences", "kv_format"):
            live.locator(f"#{field}").focus()
            covered = live.evaluate(
                """(id) => {
                  const box = document.getElementById(id).getBoundingClientRect();
                  const bar = document.getElementById("sticky").getBoundingClientRect();
                  return bar.height > 0 && box.bottom > bar.top && box.top < bar.bottom;
                }""",
                field,
            )
            assert not covered, field


class TestOtherWaysOfSeeing:
    def test_forced_colours_keep_parts_apart(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page(f"{site}#v=1&model=qwen3.5-27b", forced_colors="active")
        expect_total(page, estimated_bytes(model="qwen3.5-27b", tokens=131_072))
        fills = page.locator(".strip .segment").evaluate_all(
            "(nodes) => nodes.map((node) => getComputedStyle(node).fill)"
        )
        assert len(set(fills)) == 2

    def test_text_twice_as_large(self, open_page: OpenPage, site: str) -> None:
        page = open_page(site, viewport={"width": 640, "height": 400})
        expect(page.locator("html[data-live]")).to_have_count(1)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0
