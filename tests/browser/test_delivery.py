"""The one file wherever a person meets it: served, framed, saved, offline, damaged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser_support import (
    START_LIMIT,
    OpenPage,
    Watch,
    estimated_bytes,
    expect_live,
    expect_total,
    fill,
)
from page_support import OPENING
from playwright.sync_api import Page, expect

from build_steps.page import DEFAULT_MODEL
from build_steps.server import Server

ODD_TOKENS = 123_457
ELSEWHERE = "https://elsewhere.invalid/"
ELEMENTS = "document.getElementById('app').querySelectorAll('*').length"


def saved_complete(page: Page, target: Path) -> Path:
    """The document as "Webpage, Complete" writes it: the DOM of the moment."""
    document = page.evaluate("document.documentElement.outerHTML")
    note = f"<!-- saved from url=({len(page.url):04}){page.url.split('#')[0]} -->"
    target.write_text(f"<!DOCTYPE html>\n{note}\n{document}\n", encoding="utf-8")
    return target


class TestTripwire:
    """A tripwire that never trips is worthless."""

    def test_request_elsewhere(
        self, open_page: OpenPage, watch: Watch, tmp_path: Path
    ) -> None:
        leaky = tmp_path / "leaky.html"
        leaky.write_text(f'<!doctype html><img src="{ELSEWHERE}pixel.png">')
        watch.allow("elsewhere|Failed to load resource")
        open_page(leaky.as_uri())
        assert f"request to elsewhere: {ELSEWHERE}pixel.png" in watch.problems

    def test_error_and_violation(
        self, open_page: OpenPage, watch: Watch, tmp_path: Path
    ) -> None:
        broken = tmp_path / "broken.html"
        broken.write_text(
            "<!doctype html><meta http-equiv='Content-Security-Policy'"
            " content=\"img-src 'none'\">"
            "<script>setTimeout(() => nothing.here)</script>"
            "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
        )
        watch.allow("nothing is not defined|img-src|Content Security Policy")
        page = open_page(broken.as_uri())
        page.wait_for_timeout(300)
        assert any(
            "uncaught: nothing is not defined" in text for text in watch.problems
        )
        assert any("policy violation: img-src" in text for text in watch.problems)


class TestServed:
    def test_under_a_path(self, open_page: OpenPage, deep_site: str) -> None:
        expect_live(open_page(deep_site), ODD_TOKENS, DEFAULT_MODEL)

    def test_one_request_is_all_and_nothing_is_stored_but_preferences(
        self, page: Page, watch: Watch, site: str
    ) -> None:
        expect_live(page, ODD_TOKENS, DEFAULT_MODEL)
        outside = [url for url in watch.requests if not url.startswith("data:")]
        assert outside == [site]
        assert page.context.cookies() == []
        stored = page.evaluate("Object.keys(localStorage)")
        assert {key for key in stored if not re.search("theme|lang", key)} == set()


class TestOffline:
    def test_file_answers_live_without_a_network(
        self, open_page: OpenPage, watch: Watch, file_copy: Path
    ) -> None:
        page = open_page(file_copy.as_uri(), offline=True)
        expect_total(page, estimated_bytes(**OPENING))
        expect_live(page, ODD_TOKENS, DEFAULT_MODEL)
        assert {url.split(":")[0] for url in watch.requests} <= {"file", "data"}

    def test_first_answer_needs_no_scripts(
        self, open_page: OpenPage, file_copy: Path
    ) -> None:
        page = open_page(file_copy.as_uri(), java_script_enabled=False)
        expect_total(page, estimated_bytes(**OPENING))


class TestSaved:
    def test_keeps_the_scenario_and_goes_on(
        self, open_page: OpenPage, site: str, tmp_path: Path
    ) -> None:
        page = open_page(site)
        expect_live(page, ODD_TOKENS, DEFAULT_MODEL)
        fill(page, "sequences", 3)
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=ODD_TOKENS, sequences=3)
        expect_total(page, total)

        copy = open_page(saved_complete(page, tmp_path / "copy.html").as_uri())
        expect_total(copy, total, START_LIMIT)
        expect(copy.locator("#tokens")).to_have_value(f"{ODD_TOKENS:,}")
        expect_live(copy, ODD_TOKENS + 1, DEFAULT_MODEL, sequences=3)

    def test_copy_of_a_copy_is_the_same(
        self, open_page: OpenPage, site: str, tmp_path: Path
    ) -> None:
        page = open_page(f"{site}#v=1&tokens={ODD_TOKENS}")
        total = estimated_bytes(model=DEFAULT_MODEL, tokens=ODD_TOKENS)
        expect_total(page, total, START_LIMIT)
        copies = [page]
        for name in ("first.html", "second.html"):
            copy = open_page(saved_complete(copies[-1], tmp_path / name).as_uri())
            expect_total(copy, total, START_LIMIT)
            copies.append(copy)
        for copy in copies[1:]:
            expect_live(copy, ODD_TOKENS + 1, DEFAULT_MODEL)
        # The curve follows the answer, so the two may be a moment apart.
        counts = {}
        for _ in range(100):
            counts = {copy.evaluate(ELEMENTS) for copy in copies[1:]}
            if len(counts) == 1:
                break
            copies[-1].wait_for_timeout(300)
        assert len(counts) == 1, counts
        for copy in copies[1:]:
            expect(copy.locator(".number.total")).to_have_count(1)
            expect(copy.locator("script[id^=payload-]")).to_have_count(4)


class TestFramed:
    def test_sandboxed_frame_answers(
        self, open_page: OpenPage, watch: Watch, site: str, tmp_path: Path
    ) -> None:
        frame = f"{site}#v=1&embed=1&view=full"
        (tmp_path / "index.html").write_text(
            "<!doctype html><title>Documentation</title><link rel=icon href='data:,'>"
            f'<iframe sandbox="allow-scripts" src="{frame}" width=900 height=900>'
        )
        with Server(tmp_path) as foreign:
            watch.trust(foreign.url)
            page = open_page(foreign.url)
            inside = page.frame_locator("iframe")
            expect_live(inside, ODD_TOKENS, DEFAULT_MODEL)


class TestPolicy:
    def test_refuses_every_connection_but_to_the_hub(
        self, page: Page, watch: Watch, site: str
    ) -> None:
        watch.allow("connect-src|Content Security Policy|Fetch API cannot load")
        policy = page.locator("meta[http-equiv=Content-Security-Policy]")
        rules = (policy.get_attribute("content") or "").split("; ")
        assert "connect-src https://huggingface.co" in rules
        others = ("http://huggingface.co/", "https://cdn-lfs.huggingface.co/")
        for address in (ELSEWHERE, f"{site}catalog.json", *others):
            refused = page.evaluate(
                "url => fetch(url).then(() => 'reached', (error) => error.name)",
                address,
            )
            assert refused == "TypeError", address
        assert not any(ELSEWHERE in url for url in watch.requests)

    def test_refuses_markup_from_text(self, page: Page, watch: Watch) -> None:
        watch.allow("require-trusted-types-for|TrustedHTML")
        thrown = page.evaluate(
            """() => {
              try { document.createElement('p').innerHTML = '<b>x</b>'; return null; }
              catch (error) { return error.name; }
            }"""
        )
        assert thrown == "TypeError"

    def test_refuses_foreign_scripts(self, page: Page, watch: Watch) -> None:
        watch.allow("script-src|trusted-types|Trusted|Content Security Policy")
        page.evaluate(
            """() => {
              const script = document.createElement('script');
              try { script.textContent = 'globalThis.intruder = true'; }
              catch { script.append('globalThis.intruder = true'); }
              document.body.append(script);
            }"""
        )
        assert page.evaluate("globalThis.intruder") is None


def without_wasm(document: str) -> str:
    return document.replace(" &#39;wasm-unsafe-eval&#39;", "")


def with_payload(document: str, name: str, change: str) -> str:
    opening = f'id="payload-{name}">'
    start = document.index(opening) + len(opening)
    end = document.index("<", start)
    packed = document[start:end]
    middle = len(packed) // 2
    flipped = "A" if packed[middle] != "A" else "B"
    changed = {
        "missing": "",
        "cut": packed[:middle],
        "flipped": packed[:middle] + flipped + packed[middle + 1 :],
        "not base64": f"{packed[:middle]}%%%",
    }[change]
    return document[:start] + changed + document[end:]


class TestDamaged:
    """The engine cannot start: the page says so, and its first answer stays."""

    @pytest.mark.parametrize("part", ["worker", "wasm", "stdlib", "kvcore"])
    @pytest.mark.parametrize("change", ["missing", "cut", "flipped", "not base64"])
    def test_part(
        self,
        open_page: OpenPage,
        watch: Watch,
        file_copy: Path,
        part: str,
        change: str,
    ) -> None:
        document = file_copy.read_text("utf-8")
        file_copy.write_text(with_payload(document, part, change), encoding="utf-8")
        self.expect_failure(
            open_page(file_copy.as_uri()),
            "missing" if change == "missing" else "damaged",
        )

    def test_web_assembly_forbidden(
        self, open_page: OpenPage, watch: Watch, file_copy: Path
    ) -> None:
        document = file_copy.read_text("utf-8")
        changed = without_wasm(document)
        assert changed != document
        file_copy.write_text(changed, encoding="utf-8")
        watch.allow("script-src|wasm-eval|Content Security Policy")
        self.expect_failure(open_page(file_copy.as_uri()), "blocked")

    @pytest.mark.parametrize(
        "feature", ["Worker", "WebAssembly", "DecompressionStream"]
    )
    def test_old_browser(
        self, open_page: OpenPage, file_copy: Path, feature: str
    ) -> None:
        page = open_page("about:blank")
        page.add_init_script(f"delete globalThis.{feature}")
        page.goto(file_copy.as_uri())
        self.expect_failure(page, "unsupported")

    def test_trying_again_works(
        self, open_page: OpenPage, watch: Watch, file_copy: Path
    ) -> None:
        page = open_page("about:blank")
        page.add_init_script("globalThis.RealWorker = Worker; delete globalThis.Worker")
        page.goto(file_copy.as_uri())
        self.expect_failure(page, "unsupported")
        page.evaluate("void (globalThis.Worker = RealWorker)")
        page.get_by_role("button", name="Try again").click()
        expect_live(page, ODD_TOKENS, DEFAULT_MODEL)

    def expect_failure(self, page: Page, reason: str) -> None:
        fill(page, "tokens", ODD_TOKENS)
        notice = page.get_by_text("The calculator could not start")
        expect(notice).to_be_visible(timeout=START_LIMIT)
        expect(page.locator(".failure pre")).to_contain_text(reason)
        expect_total(page, estimated_bytes(**OPENING))
