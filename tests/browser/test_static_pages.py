"""The pages without an engine in a browser: filters, links, and no need of scripts."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_support import OpenPage, expect_total, violations
from playwright.sync_api import Page, Route, expect

from kvcore import api, evidence

PAGES = (
    "evidence.html",
    "models/index.html",
    "models/deepseek-v4-flash.html",
    "models/gemma-3-27b-it.html",
    "models/t5-base.html",
)
PHONE = {"width": 360, "height": 740}
ROWS = "table.evidence tbody tr[id]"


def sideways(page: Page) -> int:
    """By how much the document is wider than the window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wide


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(open_page: OpenPage, site: str, path: str) -> None:
    assert violations(open_page(site + path, color_scheme="light")) == []


@pytest.mark.parametrize("path", PAGES)
def test_fits_a_phone_in_the_dark(open_page: OpenPage, site: str, path: str) -> None:
    page = open_page(f"{site}{path}", viewport=PHONE, color_scheme="dark")
    assert sideways(page) <= 0
    if path == "evidence.html":
        page.get_by_label("Architecture").select_option("compressed (DeepSeek-V4)")
    assert violations(page) == []


@pytest.mark.parametrize("path", PAGES)
def test_loads_nothing_else(open_page: OpenPage, site: str, path: str) -> None:
    page = open_page(site + path)
    entries = "performance.getEntriesByType('resource').map((each) => each.name)"
    loaded = page.evaluate(entries)
    assert [name for name in loaded if not name.startswith("data:")] == []


class TestEvidence:
    @pytest.fixture
    def rows(self) -> tuple[evidence.Row, ...]:
        return evidence.rows()

    def test_filters_show_their_rows_and_live_in_the_address(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html")
        shown = page.locator(f"{ROWS}:visible")
        expect(shown).to_have_count(len(rows))
        page.get_by_label("Engine or source").select_option("SGLang")
        wanted = [row.id for row in rows if row.engine == "SGLang"]
        expect(shown).to_have_count(len(wanted))
        assert {row.get_attribute("id") for row in shown.all()} == set(wanted)
        assert urlsplit(page.url).fragment == "engine=sglang"
        page.get_by_label("Architecture").select_option("sliding windows")
        both = [r for r in rows if (r.engine, r.family) == ("SGLang", "windowed")]
        assert both
        expect(shown).to_have_count(len(both))
        status = page.get_by_role("status")
        expect(status).to_have_text(f"{len(both)} of {len(rows)} shown")
        page.reload()
        expect(shown).to_have_count(len(both))
        expect(page.get_by_label("Engine or source")).to_have_value("sglang")
        page.get_by_role("button", name="Show all").click()
        expect(shown).to_have_count(len(rows))

    def test_further_numbers_go_with_their_row(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html#engine=sglang")
        also = sum(len(row.also) for row in rows if row.engine == "SGLang")
        assert also
        expect(page.locator("table.evidence tr.also:visible")).to_have_count(also)

    def test_the_score_links_to_its_rows(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html")
        page.get_by_role("link", name="latent (MLA)").click()
        wanted = [row for row in rows if row.family == "latent"]
        expect(page.locator(f"{ROWS}:visible")).to_have_count(len(wanted))

    def test_a_miss_is_found_by_verdict_and_by_link(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html#verdict=misses")
        missed = [row for row in rows if row.reason]
        expect(page.locator(f"{ROWS}:visible")).to_have_count(len(missed))
        page.locator(".misses a").first.click()
        target = page.locator(f"[id='{urlsplit(page.url).fragment}']")
        expect(target).to_be_in_viewport()
        expect(target).to_contain_text("Known miss.")

    def test_an_unknown_filter_shows_everything_and_is_named(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html#engine=nothing&other=1")
        expect(page.locator(f"{ROWS}:visible")).to_have_count(len(rows))
        status = page.locator(".filters [role=status]")
        expect(status).to_contain_text("not known here: engine=nothing, other=1")

    def test_a_damaged_link_shows_everything(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html#engine=%ZZ")
        expect(page.locator(f"{ROWS}:visible")).to_have_count(len(rows))

    def test_works_without_scripts(
        self, open_page: OpenPage, site: str, rows: tuple[evidence.Row, ...]
    ) -> None:
        page = open_page(f"{site}evidence.html", java_script_enabled=False)
        expect(page.locator(f"{ROWS}:visible")).to_have_count(len(rows))
        expect(page.locator(".filters")).to_be_hidden()
        page.get_by_role("link", name="Ollama", exact=True).click()
        first = next(row.id for row in rows if row.engine == "Ollama")
        expect(page.locator(f"[id='{first}']")).to_be_in_viewport()

    def test_filters_go_by_keyboard(self, open_page: OpenPage, site: str) -> None:
        page = open_page(f"{site}evidence.html")
        field = page.get_by_label("Verdict")
        field.focus()
        outline = field.evaluate("(node) => getComputedStyle(node).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("d")
        expect(field).to_have_value("misses")


class TestModels:
    def test_opens_in_the_calculator(self, open_page: OpenPage, site: str) -> None:
        page = open_page(f"{site}models/gemma-3-27b-it.html")
        page.get_by_role("link", name="Open in the calculator").click()
        expect(page.locator("#model")).to_have_value("gemma-3-27b-it")
        asked = {"model": "gemma-3-27b-it", "tokens": 131_072}
        expect_total(page, f"{api.call('estimate', asked)['total_bytes']:,}", 30_000)

    def test_works_without_scripts_and_from_disk(
        self, open_page: OpenPage, dist: Path
    ) -> None:
        address = (dist / "models" / "index.html").as_uri()
        page = open_page(address, java_script_enabled=False)
        page.get_by_role("link", name="Qwen3-8B", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Qwen3-8B")
        expect(page.locator("table").first).to_be_visible()
        page.get_by_role("link", name="Evidence").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Evidence")

    def test_exact_bytes_are_in_the_title(self, open_page: OpenPage, site: str) -> None:
        page = open_page(f"{site}models/llama-3.1-70b-instruct.html")
        figure = page.locator(".figures data").last
        expect(figure).to_have_text("40.0 GiB")
        expect(figure).to_have_attribute("title", "42,949,672,960 bytes")

    def test_a_wide_table_scrolls_by_keyboard(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page(f"{site}models/deepseek-v4-flash.html", viewport=PHONE)
        region = page.get_by_role("region", name="Table: By context and engine")
        region.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(
            "(node) => node.scrollLeft > 0", arg=region.element_handle()
        )


class TestLinksToThem:
    """The foot of the calculator leads to these pages, from copies too."""

    LINKS = ("models/index.html", "evidence.html")

    def test_served(self, open_page: OpenPage, deep_site: str) -> None:
        page = open_page(deep_site)
        links = page.locator(".foot-links a")
        expect(links).to_have_count(2)
        for link, target in zip(links.all(), self.LINKS, strict=True):
            assert link.evaluate("(node) => node.href") == deep_site + target
        links.first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("KV cache of")

    def test_without_scripts(self, open_page: OpenPage, deep_site: str) -> None:
        page = open_page(deep_site, java_script_enabled=False)
        page.locator(".foot-links a").last.click()
        assert page.url == f"{deep_site}evidence.html"

    def test_a_copy_from_nowhere_has_none(
        self, open_page: OpenPage, file_copy: Path
    ) -> None:
        page = open_page(file_copy.as_uri())
        expect(page.locator(".foot")).to_contain_text("saved copy")
        expect(page.locator(".foot-links")).to_have_count(0)

    def test_a_copy_of_a_published_page_leads_back(
        self, open_page: OpenPage, dist: Path, tmp_path: Path
    ) -> None:
        home = "https://kvcore.example/project/"
        page = open_page("about:blank")

        def publish(route: Route) -> None:
            path = dist / (route.request.url.removeprefix(home) or "index.html")
            route.fulfill(path=path)

        page.context.route(f"{home}**", publish)
        page.goto(home)
        links = page.locator(".foot-links a")
        expect(links.last).to_have_attribute("href", f"{home}evidence.html")
        with page.expect_download() as download:
            page.locator("#save").click()
        copy = tmp_path / "copy.html"
        download.value.save_as(copy)
        for scripts in (True, False):
            saved = open_page(copy.as_uri(), java_script_enabled=scripts)
            found = saved.locator(".foot-links a")
            expect(found).to_have_count(2)
            for link, target in zip(found.all(), self.LINKS, strict=True):
                expect(link).to_have_attribute("href", home + target)
