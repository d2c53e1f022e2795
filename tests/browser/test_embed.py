"""The page in a frame of somebody else's page."""

# ruff: noqa: RUF001

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_support import START_LIMIT, OpenPage, Watch, estimated_bytes, expect_total
from page_support import go, live_page
from playwright.sync_api import Browser, Frame, Page, expect

from build_steps.page import DEFAULT_MODEL
from build_steps.server import Server

LISTEN = """<script>
window.heights = [];
addEventListener("message", (event) => {
  window.heights.push({...event.data, own: event.source === frames[0]});
});
</script>"""


class Foreign:
    """A page of another origin that holds what it is given."""

    def __init__(self, folder: Path, url: str, open_page: OpenPage) -> None:
        self._folder = folder
        self._url = url
        self._open = open_page

    def holding(self, body: str, **options: object) -> Page:
        (self._folder / "index.html").write_text(
            "<!doctype html><meta charset=utf-8><title>Documentation</title>"
            f"<link rel=icon href='data:,'>{LISTEN}<h1>Documentation</h1>{body}",
            encoding="utf-8",
        )
        return self._open(self._url, **options)

    def framing(self, address: str, **options: object) -> Page:
        return self.holding(
            f'<iframe src="{html.escape(address)}" title="KV cache" width=640'
            ' height=300 sandbox="allow-scripts allow-popups"></iframe>',
            **options,
        )


@pytest.fixture
def foreign(open_page: OpenPage, watch: Watch, tmp_path: Path) -> Iterator[Foreign]:
    with Server(tmp_path) as server:
        watch.trust(server.url)
        yield Foreign(tmp_path, server.url, open_page)


@pytest.fixture(scope="module")
def live(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


def inner(page: Page) -> Frame:
    """The framed page, live."""
    page.wait_for_function("frames.length === 1")
    frame = page.frames[1]
    frame.locator("html[data-live]").wait_for(state="attached")
    return frame


class TestHeight:
    def test_is_told_and_right(self, foreign: Foreign, site: str) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view=answer")
        frame = inner(page)
        page.wait_for_function("window.heights.length > 0")
        last = page.evaluate("window.heights.at(-1)")
        content = frame.evaluate(
            "Math.ceil(document.getElementById('app').getBoundingClientRect().height)"
        )
        assert last == {
            "type": "kvcore:height",
            "v": 1,
            "height": content,
            "own": True,
        }
        assert 200 < content < 500

    def test_follows_the_content(self, foreign: Foreign, site: str) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view=curve")
        frame = inner(page)
        page.wait_for_function("window.heights.length > 0")
        before = page.evaluate("window.heights.at(-1).height")
        frame.locator(".chart-data summary").click()
        page.wait_for_function(f"window.heights.at(-1).height > {before + 100}")

    def test_unframed_it_says_nothing(self, open_page: OpenPage, site: str) -> None:
        page = open_page("about:blank")
        page.add_init_script(
            "window.said = []; addEventListener('message', (e) => said.push(e.data));"
        )
        page.goto(f"{site}#v=1&embed=1")
        expect(page.locator("html[data-live]")).to_have_count(1)
        page.wait_for_timeout(200)
        assert page.evaluate("window.said") == []


class TestViews:
    SHOWN = {  # noqa: RUF012
        "answer": {".numbers", ".strip"},
        "bar": {".strip"},
        "curve": {"svg.chart"},
        "full": {".numbers", ".strip", "svg.chart", ".inputs"},
    }

    @pytest.mark.parametrize("view", SHOWN)
    def test_shows_its_part_only(self, foreign: Foreign, site: str, view: str) -> None:
        frame = inner(foreign.framing(f"{site}#v=1&embed=1&view={view}"))
        for part in self.SHOWN[view]:
            expect(frame.locator(part).first).to_be_attached(timeout=START_LIMIT)
        parts = {
            ".numbers",
            ".strip",
            "svg.chart",
            ".inputs",
            ".share",
            ".top",
            ".foot",
        }
        found = {part for part in parts if frame.locator(part).count()}
        assert found == self.SHOWN[view]
        width = frame.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0

    def test_leads_to_the_full_calculator(self, foreign: Foreign, site: str) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view=bar&model=gpt-oss-20b")
        frame = inner(page)
        expect(frame.locator(".frame-foot")).to_contain_text("128K × 1")
        with page.expect_popup() as popup:
            frame.get_by_role("link", name="Open full calculator").click()
        full = popup.value
        assert full.url == f"{site}#v=1&lang=en&model=gpt-oss-20b"
        expect_total(full, estimated_bytes(model="gpt-oss-20b", tokens=131_072))

    def test_language_and_theme_are_the_frame_s(
        self, foreign: Foreign, site: str
    ) -> None:
        frame = inner(foreign.framing(f"{site}#v=1&embed=1&lang=ko&theme=dark"))
        expect(frame.locator("html")).to_have_attribute("lang", "ko")
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")

    def test_switches_are_read_from_the_query_too(
        self, foreign: Foreign, site: str
    ) -> None:
        frame = inner(foreign.framing(f"{site}?embed=1&view=bar&lang=ko"))
        expect(frame.locator(".strip")).to_have_count(1)
        expect(frame.locator(".inputs")).to_have_count(0)

    def test_warnings_are_shown_without_inputs(
        self, foreign: Foreign, site: str
    ) -> None:
        frame = inner(foreign.framing(f"{site}#v=1&embed=1&view=answer&model=gpt2"))
        expect(frame.locator(".notices")).to_contain_text("beyond the 1,024")


class TestPlan:
    SCENARIO = "engine=vllm&gpu=h100-sxm&gpus=8&sequences=32&tokens=32768"

    @pytest.mark.parametrize("view", ["answer", "bar"])
    def test_verdict_and_memory_without_the_engine(
        self, foreign: Foreign, site: str, view: str
    ) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view={view}&{self.SCENARIO}")
        frame = inner(page)
        expect(frame.locator(".verdict strong")).to_have_text("Fits.")
        expect(frame.locator(".gpu-bar")).to_contain_text("H100 80GB SXM5")
        expect(frame.locator(".gpu-bar .limit-label")).to_be_visible()
        expect(frame.locator(".verdict button, .inverse button")).to_have_count(0)
        width = frame.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0
        page.wait_for_timeout(300)
        assert page.workers == []

    def test_other_numbers_of_gpus_start_it(self, foreign: Foreign, site: str) -> None:
        scenario = "engine=vllm&gpu=a100-80-sxm&sequences=32&tokens=32768"
        frame = inner(foreign.framing(f"{site}#v=1&embed=1&view=bar&{scenario}"))
        expect(frame.locator(".verdict strong")).to_have_text(
            "Does not fit.", timeout=START_LIMIT
        )


class TestEngine:
    def test_presets_start_none(self, foreign: Foreign, site: str) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view=answer&model=deepseek-v3")
        frame = inner(page)
        total = estimated_bytes(model="deepseek-v3", tokens=131_072)
        expect(frame.locator(".number.total .exact")).to_contain_text(total)
        page.wait_for_timeout(500)
        assert page.workers == []

    def test_anything_else_starts_it(self, foreign: Foreign, site: str) -> None:
        page = foreign.framing(f"{site}#v=1&embed=1&view=answer&tokens=777")
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=777)
        expect(inner(page).locator(".number.total .exact")).to_contain_text(
            total, timeout=START_LIMIT
        )

    def test_off_screen_it_waits(self, foreign: Foreign, site: str) -> None:
        page = foreign.holding(
            '<div style="height: 5000px"></div>'
            f'<iframe src="{site}#v=1&amp;embed=1&amp;tokens=777" width=640 height=300'
            ' title="KV cache" sandbox="allow-scripts"></iframe>'
        )
        frame = inner(page)
        page.wait_for_timeout(500)
        assert page.workers == []
        page.locator("iframe").scroll_into_view_if_needed()
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=777)
        expect(frame.locator(".number.total .exact")).to_contain_text(
            total, timeout=START_LIMIT
        )

    def test_the_address_is_never_rewritten(self, foreign: Foreign, site: str) -> None:
        address = f"{site}#v=1&embed=1"
        page = foreign.framing(address)
        frame = inner(page)
        frame.locator("#tokens").fill("777")
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=777)
        expect(frame.locator(".number.total .exact")).to_contain_text(
            total, timeout=START_LIMIT
        )
        frame.locator(".chip").first.click()
        page.wait_for_timeout(500)
        assert frame.evaluate("location.href") == address


class TestCode:
    @pytest.mark.parametrize("view", ["answer", "bar", "curve", "full"])
    def test_handed_out_code_works_as_it_is(
        self, live: Page, foreign: Foreign, view: str
    ) -> None:
        go(live, model="qwen3.5-27b", sequences=2)
        total = estimated_bytes(model="qwen3.5-27b", tokens=131_072, sequences=2)
        expect_total(live, total)
        live.locator("#tab-embed").click()
        live.locator("#embed-view").select_option(view)
        live.locator("#embed-theme").select_option("dark")
        code = live.locator("#share-text").input_value()
        page = foreign.holding(code, viewport={"width": 1000, "height": 900})
        frame = inner(page)
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
        shown = ".number.total" if view in ("answer", "full") else "#app"
        expect(frame.locator(shown).first).to_contain_text(
            "Qwen3.5-27B" if view in ("bar", "curve") else total, timeout=START_LIMIT
        )
        height = frame.locator("#app").evaluate(
            "(node) => Math.ceil(node.getBoundingClientRect().height)"
        )
        page.wait_for_function(
            """(height) => {
              const frame = document.querySelector("iframe");
              return Math.abs(frame.height - height) < 2;
            }""",
            arg=height,
        )
        assert (
            page.locator("iframe").get_attribute("title") == "KV cache of Qwen3.5-27B"
        )

    def test_preview_is_the_view(self, live: Page) -> None:
        go(live, model="qwen3.5-27b")
        expect_total(live, estimated_bytes(model="qwen3.5-27b", tokens=131_072))
        live.locator("#tab-embed").click()
        live.locator("#embed-view").select_option("bar")
        preview = live.locator(".preview-frame")
        expect(preview.locator(".strip")).to_be_visible()
        expect(preview.locator(".numbers")).to_have_count(0)
        live.locator("#embed-lang").select_option("ko")
        expect(preview).to_contain_text("계산기 전체 열기")
        expect(live.locator("#share-text")).to_have_value(re.compile("lang=ko"))
