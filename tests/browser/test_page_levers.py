"""What to change first: the levers, pulling one, and taking them away as files."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser_support import START_LIMIT, OpenPage
from page_support import OPENING, OPENING_PLAN, expect_answer, fragment, go, live_page
from playwright.sync_api import Browser, Locator, Page, expect
from test_a11y import violations

from build_steps.tools import SITE
from kvcore import api, catalog

NAMES = {"context": "tokens", "concurrency": "sequences"}
CHIPS = {"fits": "Fits", "tight": "Tight", "does_not_fit": "Does not fit"}
SHORT = {**OPENING_PLAN, "gpus": 4, "context": 131_072}
"""The opening scenario on half the GPUs, at four times the length."""
NEARLY = {**OPENING_PLAN, "gpus": 3, "pp": 3, "context": 131_072, "concurrency": 3}
LIMIT = 20_000
ENGLISH, KOREAN = (
    json.loads((SITE / "locales" / f"{lang}.json").read_text("utf-8"))
    for lang in ("en", "ko")
)


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    return shared


def visit(page: Page, plan: dict[str, Any], **view: object) -> None:
    go(page, **{NAMES.get(name, name): value for name, value in plan.items()}, **view)


def answered(plan: dict[str, Any], method: str = "levers") -> dict[str, Any]:
    found = api.call(method, plan)
    assert "error" not in found, found
    return found


def rows(page: Page) -> Locator:
    return page.locator("#levers .lever")


def number(value: int) -> str:
    return f"{value:,}"


def expect_levers(page: Page, plan: dict[str, Any]) -> dict[str, Any]:
    """Waits for the levers of a plan and holds every row against kvcore."""
    found = answered(plan)
    whole = page.locator("#levers .levers[aria-busy=false]")
    expect(whole).to_have_count(1, timeout=LIMIT)
    names = [ENGLISH[f"lever.{row['lever']}"] for row in found["levers"]]
    expect(page.locator("#levers .lever h3")).to_have_text(names)
    now = found["plan"]
    for shown, row in zip(rows(page).all(), found["levers"], strict=True):
        expect(shown.locator(".chip-verdict")).to_have_text(CHIPS[row["verdict"]])
        requests, context, _ = shown.locator(".gains dd").all_inner_texts()
        assert requests == change(now["max_requests"], row["max_requests"])
        assert context == change(now["max_context"], row["max_context"])
        risk = shown.locator(".lever-risk")
        expect(risk).to_contain_text(ENGLISH[f"lever_risk.{row['risk']}"])
    return found


def change(before: int, after: int) -> str:
    return number(after) if before == after else f"{before:,} → {after:,}"


def unfold(page: Page) -> None:
    page.locator("#levers details").evaluate_all(
        "(all) => all.forEach((details) => { details.open = true; })"
    )


def apply(page: Page, lever: str) -> None:
    page.locator(f"#lever-{lever}").click()


def expect_plan(page: Page, row: dict[str, Any]) -> None:
    """The answer at the top is what the row said."""
    verdict = page.locator(f".first .verdict.{row['verdict']}:not(.old)")
    expect(verdict).to_have_count(1)
    requests, context, _ = page.locator(".inverse dd").all()
    expect(requests).to_have_text(number(row["max_requests"]))
    expect(context).to_have_text(re.compile(f"^{number(row['max_context'])} tokens"))


class TestRows:
    def test_what_does_not_fit(self, live: Page) -> None:
        visit(live, SHORT)
        found = expect_levers(live, SHORT)
        assert found["plan"]["verdict"] == "does_not_fit"
        expect(live.locator("#levers-heading")).to_have_text("To make it fit")
        fitting = sum(r["verdict"] != "does_not_fit" for r in found["levers"])
        lead = live.locator(".levers-lead")
        expect(lead).to_contain_text(f"{fitting} of {len(found['levers'])} make it fit")

    def test_what_fits_is_said_calmly(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        heading = live.locator("#levers-heading")
        expect(heading).to_have_text("It fits. To serve more")

    def test_the_opening_needs_no_engine(self, open_page: OpenPage, site: str) -> None:
        page = open_page(site)
        page.evaluate("document.getElementById('payload-wasm').remove()")
        expect_levers(page, OPENING_PLAN)

    def test_what_changes_nothing_has_its_reason(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        found = expect_levers(live, OPENING_PLAN)
        expect(live.locator(".dropped summary")).to_have_text(
            f"{len(found['dropped'])} levers change nothing here"
        )
        live.locator(".dropped summary").click()
        reasons = live.locator(".dropped dl > div")
        expect(reasons).to_have_count(len(found["dropped"]))
        for shown, row in zip(reasons.all(), found["dropped"], strict=True):
            expect(shown.locator("dt")).to_have_text(ENGLISH[f"lever.{row['lever']}"])
            if not row["error"]:
                words = ENGLISH[f"lever_reason.{row['reason']}"]
                expect(shown.locator("dd")).to_contain_text(words)

    def test_rules_of_thumb_that_fail(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        rule = live.locator(".shortcuts li")
        expect(rule).to_have_count(1)
        expect(rule).to_contain_text("80.0 GiB for a request: 8 times the exact")

    def test_none_without_gpus(self, live: Page) -> None:
        go(live)
        expect(live.locator("#levers")).to_have_count(0)

    def test_nothing_to_weigh_where_the_plan_is_refused(self, live: Page) -> None:
        visit(live, {**OPENING_PLAN, "tp": 6, "gpus": 6})
        expect(live.locator(".verdict.cannot_run")).to_have_count(1)
        expect(live.locator("#levers")).to_contain_text("once this setup can run")
        expect(rows(live)).to_have_count(0)

    def test_the_row_links_its_source(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        link = rows(live).first.locator(".lever-risk a").first
        expect(link).to_have_attribute(
            "href", re.compile("^https://github.com/vllm-project/vllm/blob/[0-9a-f]+/")
        )


class TestPulling:
    @pytest.mark.parametrize(
        "lever",
        [
            "kv_8bit",
            "shorter_context",
            "lighter_model",
            "weights_4bit",
            "more_gpus",
            "fewer_requests",
        ],
    )
    def test_the_answer_is_what_the_row_said(self, live: Page, lever: str) -> None:
        visit(live, SHORT)
        found = expect_levers(live, SHORT)
        (row,) = (row for row in found["levers"] if row["lever"] == lever)
        before = fragment(live)
        apply(live, lever)
        expect_plan(live, row)
        undo = live.locator("#levers-undo")
        expect(undo).to_be_focused()
        changed = {**SHORT, **row["change"]}
        asked = {name: value for name, value in changed.items() if value is not None}
        expect_levers(live, asked)
        undo.press("Enter")
        expect_plan(live, found["plan"])
        expect(live.locator("#levers-toggle")).to_be_focused()
        expect(live.locator("#levers-undo")).to_have_count(0)
        assert fragment(live) == before

    def test_options_of_an_engine_are_set(self, live: Page) -> None:
        plan = {
            "model": "deepseek-v3",
            "gpu": "h200",
            "gpus": 8,
            "engine": "sglang",
            "context": 65_536,
            "concurrency": 64,
        }
        visit(live, plan)
        found = expect_levers(live, plan)
        (row,) = (row for row in found["levers"] if row["lever"] == "data_parallel")
        assert row["change"]["engine_options"]
        apply(live, "data_parallel")
        expect_plan(live, row)

    def test_another_engine_comes_with_its_defaults(self, live: Page) -> None:
        plan = {
            "model": "llama-3.1-8b-instruct",
            "gpu": "h100-sxm",
            "gpus": 1,
            "engine": "mlx",
            "context": 8_193,
            "concurrency": 8,
            "pool_bytes": 20_000_000_000,
        }
        visit(live, plan)
        found = expect_levers(live, plan)
        (row,) = (row for row in found["levers"] if row["lever"] == "paging")
        apply(live, "paging")
        expect_plan(live, row)
        assert fragment(live)["engine"] == "vllm"

    def test_what_was_typed_gives_way(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        live.locator("#tokens").fill("128k")
        plan = {**OPENING_PLAN, "context": 131_072}
        found = expect_levers(live, plan)
        (row,) = (row for row in found["levers"] if row["lever"] == "shorter_context")
        apply(live, "shorter_context")
        expect(live.locator("#tokens")).to_have_value(number(row["change"]["context"]))

    def test_undo_goes_back_step_by_step(self, live: Page) -> None:
        visit(live, SHORT)
        found = expect_levers(live, SHORT)
        apply(live, "kv_8bit")
        half = {**SHORT, "kv_format": "fp8"}
        expect_levers(live, half)
        apply(live, "weights_8bit")
        undo = live.locator("#levers-undo")
        expect(undo).to_have_accessible_name("Undo: 8-bit weights")
        undo.click()
        expect(undo).to_have_accessible_name("Undo: 8-bit KV cache")
        expect_levers(live, half)
        undo.click()
        expect(undo).to_have_count(0)
        expect_plan(live, found["plan"])

    def test_the_browsers_back_undoes_too(self, live: Page) -> None:
        visit(live, SHORT)
        found = expect_levers(live, SHORT)
        apply(live, "kv_8bit")
        expect(live.locator("#kv_format")).to_have_value("fp8")
        live.go_back()
        expect(live.locator("#kv_format")).to_have_value("")
        expect_plan(live, found["plan"])

    def test_after_another_change_there_is_nothing_to_undo(self, live: Page) -> None:
        visit(live, SHORT)
        expect_levers(live, SHORT)
        apply(live, "kv_8bit")
        expect(live.locator("#levers-undo")).to_have_count(1)
        live.locator("#sequences").fill("5")
        expect(live.locator("#levers-undo")).to_have_count(0)

    def test_a_config_of_ones_own_survives(self, live: Page) -> None:
        config = dict(catalog.find("llama-3.1-8b-instruct").config)
        text = json.dumps(config)
        visit(live, {**OPENING_PLAN, "gpus": 1})
        live.locator("#model").fill(text)
        plan = {**OPENING_PLAN, "model": config, "gpus": 1}
        found = expect_levers(live, plan)
        apply(live, "kv_8bit")
        (row,) = (row for row in found["levers"] if row["lever"] == "kv_8bit")
        expect_plan(live, row)
        live.locator("#levers-undo").click()
        expect_plan(live, found["plan"])
        expect(live.locator("#paste")).to_have_value(text)

    def test_it_is_said_aloud(self, live: Page) -> None:
        visit(live, SHORT)
        expect_levers(live, SHORT)
        live.evaluate(
            """() => { window.said = []; new MutationObserver(() => window.said.push(
              document.getElementById("status").textContent)).observe(
                document.getElementById("status"), {childList: true}); }"""
        )
        apply(live, "kv_8bit")
        expect(live.locator("#status")).to_contain_text("Does not fit. ")
        assert "Applied: 8-bit KV cache." in live.evaluate("window.said")


class TestBesideTheVerdict:
    """The first levers that make it fit are in the answer itself."""

    def test_the_first_that_fit_can_be_pulled_there(self, live: Page) -> None:
        visit(live, NEARLY)
        found = expect_levers(live, NEARLY)
        fitting = [r for r in found["levers"] if r["verdict"] != "does_not_fit"][:3]
        names = [ENGLISH[f"lever.{row['lever']}"] for row in fitting]
        buttons = live.locator("#to-fit button")
        expect(buttons).to_have_text(names)
        buttons.first.click()
        expect_plan(live, fitting[0])
        undo = live.locator("#to-fit-undo")
        expect(undo).to_be_focused()
        undo.press("Enter")
        expect_plan(live, found["plan"])
        expect_levers(live, NEARLY)
        expect(buttons).to_have_text(names)

    def test_where_none_is_enough(self, live: Page) -> None:
        plan = {**SHORT, "gpus": 2, "context": 131_072, "concurrency": 4_096}
        visit(live, plan)
        found = expect_levers(live, plan)
        assert all(row["verdict"] == "does_not_fit" for row in found["levers"])
        expect(live.locator("#to-fit")).to_have_text(ENGLISH["levers.to_fit_none"])

    def test_nothing_where_it_fits(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        expect(live.locator("#to-fit")).to_have_count(0)


class TestWhen:
    def test_older_rows_are_marked_and_cannot_be_pulled(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        live.locator("#sequences").fill("33")
        expect(live.locator("#levers .levers.old")).to_have_count(1)
        expect(live.locator("#lever-kv_8bit")).to_be_disabled()
        expect_levers(live, {**OPENING_PLAN, "concurrency": 33})
        expect(live.locator("#lever-kv_8bit")).to_be_enabled()

    def test_an_input_in_error_keeps_them(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        live.locator("#sequences").fill("3x")
        expect(live.locator("#levers .levers.old")).to_have_count(1)
        live.locator("#sequences").fill("32")
        expect_levers(live, OPENING_PLAN)

    def test_another_model_shows_none_of_the_old(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        visit(live, {**OPENING_PLAN, "model": "gemma-3-27b-it"})
        expect_answer(live, **{**OPENING, "model": "gemma-3-27b-it"})
        expect(live.locator("#levers .levers.old")).to_have_count(0)
        expect_levers(live, {**OPENING_PLAN, "model": "gemma-3-27b-it"})

    def test_closed_it_asks_nothing(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        expect_levers(live, OPENING_PLAN)
        toggle = live.locator("#levers-toggle")
        toggle.focus()
        toggle.press("Enter")
        expect(toggle).to_have_attribute("aria-expanded", "false")
        expect(rows(live)).to_have_count(0)
        changed = {**OPENING_PLAN, "concurrency": 34}
        live.locator("#sequences").fill("34")
        live.wait_for_timeout(2_500)
        toggle.press("Space")
        expect(toggle).to_have_attribute("aria-expanded", "true")
        expect(live.locator("#levers .levers.old")).to_have_count(1)
        expect_levers(live, changed)

    def test_an_answer_never_waits_for_all_of_them(self, live: Page) -> None:
        """Asked in parts: an answer comes between them, and the rest is dropped."""
        plan = {**OPENING_PLAN, "model": "qwen3-next-80b-a3b-instruct"}
        visit(live, plan)
        expect(
            live.locator("#levers .levers[aria-busy=true] .lever")
        ).not_to_have_count(0, timeout=LIMIT)
        live.locator("#sequences").fill("35")
        expect_answer(
            live, model=plan["model"], tokens=32_768, sequences=35, engine="vllm"
        )
        expect(live.locator("#levers .levers[aria-busy=false]")).to_have_count(0)
        expect_levers(live, {**plan, "concurrency": 35})


class TestTrouble:
    """Requests for levers are spoilt on their way to kvcore, until told otherwise."""

    SPOIL = """() => {
      const post = Worker.prototype.postMessage;
      window.spoilt = true;
      Worker.prototype.postMessage = function (message, ...rest) {
        const request = message.request?.replace('"method":"levers"', '"method":"x"');
        const sent = window.spoilt && request ? {...message, request} : message;
        post.call(this, sent, ...rest);
      };
    }"""

    def test_an_error_is_worded_and_can_be_tried_again(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        found = expect_levers(live, OPENING_PLAN)
        changed = {**OPENING_PLAN, "concurrency": 36}
        live.evaluate(self.SPOIL)
        live.locator("#sequences").fill("36")
        error = live.locator("#levers .panel-error")
        expect(error).to_contain_text("x", timeout=LIMIT)
        expect(live.locator("#levers .levers.old")).to_have_count(1)
        expect(rows(live)).to_have_count(len(found["levers"]))
        live.evaluate("window.spoilt = false")
        error.locator("button").click()
        expect(error).to_have_count(0)
        expect_levers(live, changed)


class TestEmbed:
    def test_a_whole_calculator_has_it_closed(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page(f"{site}#v=1&embed=1&gpu=h100-sxm&gpus=8&engine=vllm")
        toggle = page.locator("#levers-toggle")
        expect(toggle).to_have_attribute("aria-expanded", "false")
        toggle.click()
        expect(page.locator("#levers .levers[aria-busy=false]")).to_have_count(
            1, timeout=START_LIMIT
        )
        expect(page.locator(".downloads")).to_have_count(0)

    @pytest.mark.parametrize("view", ["answer", "bar", "curve"])
    def test_a_figure_has_none(self, open_page: OpenPage, site: str, view: str) -> None:
        page = open_page(f"{site}#v=1&embed=1&view={view}&gpu=h100-sxm&engine=vllm")
        expect(page.locator(".verdict, .curve").first).to_be_visible()
        expect(page.locator("#levers")).to_have_count(0)


class TestTaking:
    @pytest.fixture
    def found(self, live: Page) -> dict[str, Any]:
        visit(live, SHORT)
        return expect_levers(live, SHORT)

    def saved(self, page: Page, kind: str, folder: Path) -> Path:
        with page.expect_download() as download:
            page.locator(f"#levers-{kind}").click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        name = f"kvcore-llama-3.1-70b-instruct-131072x32-levers.{kind}"
        assert path.name == name
        return path

    def test_csv(self, live: Page, found: dict[str, Any], tmp_path: Path) -> None:
        text = self.saved(live, "csv", tmp_path).read_bytes().decode()
        now, *others = csv.DictReader(io.StringIO(text, newline=""))
        assert now["lever"] == "now"
        assert now["max_requests"] == str(found["plan"]["max_requests"])
        for read, row in zip(others, found["levers"], strict=True):
            assert json.loads(read["change"]) == row["change"]
            for name in set(read) - {"change"}:
                assert read[name] == str(row[name])

    def test_svg_stands_alone(
        self, live: Page, found: dict[str, Any], tmp_path: Path
    ) -> None:
        path = self.saved(live, "svg", tmp_path)
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = [node.text for node in root.iter() if node.text]
        for row in found["levers"]:
            assert any(ENGLISH[f"lever.{row['lever']}"] in text for text in texts)
        assert "var(" not in path.read_text("utf-8")
        assert not any("style" in node.attrib for node in root.iter())

    def test_png_is_drawn(
        self, live: Page, found: dict[str, Any], tmp_path: Path
    ) -> None:
        data = self.saved(live, "png", tmp_path).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", data[16:24])
        box = live.locator("#levers-chart svg.chart").bounding_box()
        assert box is not None
        assert width == 2 * (round(box["width"]) + 32)
        assert height > 2 * 30 * len(found["levers"])
        assert len(data) > 10_000

    def test_the_table_says_the_same(self, live: Page, found: dict[str, Any]) -> None:
        table = live.locator("#levers .panel-data")
        table.locator("summary").click()
        expect(table.locator("tbody tr")).to_have_count(len(found["levers"]) + 1)
        cells = table.locator("tbody tr").nth(1).locator("td")
        row = found["levers"][0]
        expect(cells.nth(2)).to_have_text(number(row["max_requests"]))


class TestEverywhere:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_axe(self, live: Page, theme: str, lang: str) -> None:
        visit(live, SHORT, theme=theme, lang=lang)
        whole = live.locator("#levers .levers[aria-busy=false]")
        expect(whole).to_have_count(1, timeout=LIMIT)
        unfold(live)
        assert violations(live) == []
        apply(live, "kv_8bit")
        assert violations(live) == []

    def test_a_phone_scrolls_one_way(self, live: Page) -> None:
        live.set_viewport_size({"width": 360, "height": 740})
        visit(live, SHORT)
        expect_levers(live, SHORT)
        unfold(live)
        assert live.evaluate("document.documentElement.scrollWidth") == 360
        button = live.locator("#lever-kv_8bit").bounding_box()
        assert button is not None
        assert button["height"] >= 44

    def test_korean(self, live: Page) -> None:
        visit(live, SHORT, lang="ko")
        expect(live.locator("#levers .levers[aria-busy=false]")).to_have_count(
            1, timeout=LIMIT
        )
        first = rows(live).first
        expect(first.locator("h3")).to_have_text(KOREAN["lever.kv_8bit"])
        text = live.locator("#levers").inner_text()
        assert not re.search(r"levers?[._]\w|\{\w+\}", text)
        visit(live, SHORT, lang="en")

    def test_the_answer_above_does_not_move(self, live: Page) -> None:
        visit(live, SHORT)
        expect_levers(live, SHORT)
        answer = "document.querySelector('.first').getBoundingClientRect()"
        place = f"Math.round({answer}.bottom + scrollY)"
        before = live.evaluate(place)
        live.locator("#levers-toggle").click()
        assert live.evaluate(place) == before
        live.locator("#levers-toggle").click()
        assert live.evaluate(place) == before
