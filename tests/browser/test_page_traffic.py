"""Real traffic: pool use and its odds are kvcore's, files are read on the page."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_support import START_LIMIT, OpenPage, violations
from page_support import OPENING_PLAN, fragment, go, live_page
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from build_steps.tools import SITE
from kvcore import api
from kvcore.importers.byte_source import in_memory

Json = dict[str, Any]
Place = Page | FrameLocator

NAMES = {"context": "tokens", "concurrency": "sequences"}
LIMIT = 30_000
ENGLISH, KOREAN = (
    json.loads((SITE / "locales" / f"{lang}.json").read_text("utf-8"))
    for lang in ("en", "ko")
)
FOUR = {**OPENING_PLAN, "gpus": 4, "context": 131_072, "concurrency": 8}
LENGTHS = api.call("traffic", {})["lengths"]
ASSUMED = {
    "prompt": LENGTHS[0]["prompt"],
    "output": LENGTHS[0]["output"],
    "arrival_rate": 2,
    "tokens_per_second": 30,
}
SHORT = {**ASSUMED, "prompt": "1020/4083", "output": "129/451"}
"""Lengths that are soon answered."""
AZURE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    b"2023-11-16 18:17:03.9799600,4808,10\r\n"
    b"2023-11-16 18:17:04.0319600,3180,80\r\n"
    b"2023-11-16 18:17:04.4799600,110,27\r\n"
)
MOONCAKE = (
    b'{"input_length": 6758, "output_length": 500}\n'
    b'{"input_length": 700, "output_length": 20}\n'
)
DROP = """([name, content]) => {
  const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const zone = document.getElementById("traffic-drop");
  const how = {bubbles: true, cancelable: true, dataTransfer};
  for (const type of ["dragover", "drop"]) zone.dispatchEvent(new DragEvent(type, how));
}"""


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    if shared.locator("#traffic-file-remove").count():
        shared.locator("#traffic-file-remove").click()
    return shared


def visit(page: Page, plan: Json, *, levers: bool = False, **more: object) -> None:
    """The panel open on a scenario; its inputs as `traffic__NAME`."""
    names = {NAMES.get(name, name): value for name, value in plan.items()}
    more = {name.replace("__", "."): value for name, value in more.items()}
    go(page, **names, **more)
    for panel, opened in (("levers", levers), ("traffic", True)):
        toggle = page.locator(f"#{panel}-toggle")
        if toggle.get_attribute("aria-expanded") != str(opened).lower():
            toggle.click()


def given(**values: object) -> dict[str, object]:
    return {f"traffic__{name}": value for name, value in values.items()}


def answered(plan: Json, *files: tuple[str, bytes], **params: object) -> Json:
    """kvcore's own; lengths are not those of the plan."""
    asked = {k: v for k, v in plan.items() if k not in ("context", "concurrency")}
    sources = [in_memory(content, name) for name, content in files]
    found = api.call("workload", {**asked, **params}, sources)
    assert "error" not in found, found
    return found


def current(page: Place) -> Locator:
    return page.locator("#traffic .panel-answer:not(.old)")


def caption(page: Place) -> Locator:
    return page.locator("#traffic figcaption")


def fact(page: Place, name: str, words: dict[str, str] = ENGLISH) -> Locator:
    label = words[f"traffic.{name}"].split("{")[0].strip()
    term = page.locator("dt").filter(has_text=label)
    return page.locator("#traffic .panel-facts > div").filter(has=term).locator("dd")


SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def number(shown: Locator) -> float:
    """What stands there, sizes in bytes."""
    count, unit = re.findall(
        r"^([\d,.]+)%?(?: (\wiB))?", shown.locator("b").inner_text()
    )[0]
    return float(count.replace(",", "")) * SIZES.get(unit, 1)


def expect_found(page: Place, found: Json) -> None:
    """Waits for the answer and holds its figures against kvcore's."""
    rate = f"At {found['arrival_rate']:.3g} requests/s the pool"
    expect(caption(page)).to_contain_text(rate, timeout=START_LIMIT)
    expect(current(page)).to_have_count(1, timeout=START_LIMIT)
    most, overflow = found["rate_at_odds"], found["overflow"]["estimate"]
    if overflow > 1e-6:
        shown = fact(page, "overflow")
        assert number(shown) == pytest.approx(100 * overflow, rel=0.02)
    assert number(fact(page, "most_rate")) == pytest.approx(most["estimate"], rel=6e-3)
    assert number(fact(page, "held")) == round(found["held_tokens_per_request"])
    flight, total = found["requests_in_flight"], found["lengths"]["total"]
    assert number(fact(page, "in_flight")) == pytest.approx(flight["mean"], rel=6e-3)
    expect(fact(page, "in_flight")).to_contain_text(
        f"p95 {flight['p95']:,}, p99 {flight['p99']:,}"
    )
    expect(fact(page, "whole")).to_contain_text(
        f"p95 {total['p95']:,}, p99 {total['p99']:,}"
    )
    for name in ("p50", "p95", "p99"):
        size = found["use"][name]["estimate"]
        assert number(fact(page, f"use_{name}")) == pytest.approx(size, rel=6e-3)
    assert number(fact(page, "pool")) == pytest.approx(found["pool"], rel=6e-3)


def choose(page: Place, name: str, content: bytes) -> None:
    page.locator("#traffic-file").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": content}
    )


class TestAnswer:
    def test_closed_until_it_is_opened_and_useful_at_once(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        toggle = live.locator("#traffic-toggle")
        toggle.click()
        expect(toggle).to_have_attribute("aria-expanded", "false")
        expect(live.locator("#traffic .panel-inputs")).to_have_count(0)
        toggle.press("Enter")
        found = answered(OPENING_PLAN, **ASSUMED)
        expect_found(live, found)
        most = f"{found['rate_at_odds']['estimate']:.2f}"
        expect(caption(live)).to_have_text(
            "At 2 requests/s the pool practically never overflows; it stays under "
            f"1% up to {most} requests/s."
        )
        for name, value in ASSUMED.items():
            shown = str(value)
            if name in ("prompt", "output"):
                shown = "/".join(f"{int(part):,}" for part in shown.split("/"))
            field = live.locator(f"#traffic-{name}")
            expect(field).to_have_attribute("placeholder", shown)
            expect(field).to_have_value("")
        expect(live.locator("#traffic-assumed")).to_have_text(
            f"Assumed until you say otherwise: lengths like {LENGTHS[0]['resembles']}, "
            "2 requests/s, 30 tokens/s for each request."
        )
        assert not any(key.startswith("traffic.") for key in fragment(live))

    def test_what_is_typed_is_what_is_asked(self, live: Page) -> None:
        visit(live, FOUR, **given(arrival_rate=3))
        live.locator("#traffic-prompt").fill("7k/40k")
        live.locator("#traffic-output").fill("350/700")
        live.locator("#traffic-arrival_rate").fill("2")
        live.locator("#traffic-tokens_per_second").fill("30")
        found = answered(FOUR, **{**ASSUMED, "prompt": "7168/40960",
                                  "output": "350/700"})  # fmt: skip
        expect_found(live, found)
        bounds = found["overflow"]
        assert bounds["low"] < bounds["estimate"] < bounds["high"]
        said = "between {low:.1%} and {high:.1%}".format(**bounds)
        expect(fact(live, "overflow")).to_contain_text(said)
        expect(caption(live)).to_have_text(
            f"At 2 requests/s the pool overflows {bounds['estimate']:.1%} of the time; "
            f"it stays under 1% up to {found['rate_at_odds']['estimate']:.2f} "
            "requests/s."
        )
        expect(live.locator("#traffic-assumed")).to_have_count(0)
        expect(live.locator("#traffic-like")).to_have_value("")
        held = {k: v for k, v in fragment(live).items() if k.startswith("traffic.")}
        assert held == {
            "traffic.prompt": "7168/40960",
            "traffic.output": "350/700",
            "traffic.arrival_rate": "2",
            "traffic.tokens_per_second": "30",
        }

    def test_lengths_like_a_published_trace(self, live: Page) -> None:
        visit(live, FOUR)
        live.locator("#traffic-like").select_option("chat-like-azure")
        expect(live.locator("#traffic-prompt")).to_have_value("1,020/4,083")
        expect(live.locator("#traffic-output")).to_have_value("129/451")
        expect(live.locator("#traffic-like-hint")).to_contain_text("Azure")
        expect_found(live, answered(FOUR, **SHORT))

    def test_the_other_inputs(self, live: Page) -> None:
        visit(live, {**FOUR, "dp": 2, "gpus": 8},
              **given(prompt=3000, output=200, seconds_per_request=20, odds="5%",
                      prefill_tokens_per_second=5000, context=3100,
                      arrival_rate=4))  # fmt: skip
        found = answered({**FOUR, "dp": 2, "gpus": 8}, prompt=3000, output=200,
                         seconds_per_request=20, odds=0.05, arrival_rate=4,
                         prefill_tokens_per_second=5000, context=3100)  # fmt: skip
        expect_found(live, found)
        expect(caption(live)).to_contain_text("under 5% up to")
        expect(live.locator("#traffic-more")).to_have_attribute("open", "")
        expect(live.locator("#traffic .panel-answer > .hint")).to_contain_text(
            "of all 2 replicas"
        )
        expect(live.locator("#traffic .message.warning")).to_contain_text(
            "100% of the requests would be longer than 3,100 tokens"
        )

    def test_a_link_opens_it(self, live: Page) -> None:
        go(live, tokens=4099)
        expect(live.locator("#traffic")).to_have_count(0)
        visit(live, FOUR, **given(**SHORT))
        expect_found(live, answered(FOUR, **SHORT))
        expect(live.locator("#traffic-prompt")).to_have_value("1,020/4,083")

    def test_lengths_of_the_form_are_not_those_of_the_traffic(self, live: Page) -> None:
        visit(live, FOUR, **given(**SHORT))
        expect_found(live, answered(FOUR, **SHORT))
        live.locator("#tokens").fill("777")
        expect(current(live)).to_have_count(1, timeout=900)

    def test_not_where_the_plan_is_refused(self, live: Page) -> None:
        visit(live, {**OPENING_PLAN, "tp": 6, "gpus": 6})
        expect(live.locator("#traffic")).to_contain_text("once this setup can run")


class TestErrors:
    def test_they_stand_at_their_input_and_keep_the_answer(self, live: Page) -> None:
        visit(live, FOUR, **given(**SHORT))
        expect_found(live, answered(FOUR, **SHORT))
        before = caption(live).inner_text()
        prompt = live.locator("#traffic-prompt")
        prompt.fill("7k/")
        said = live.locator("#traffic-prompt-messages")
        expect(said).to_have_text(ENGLISH["entry.lengths"])
        expect(current(live)).to_have_count(1)
        prompt.fill("4000/1000")
        expect(said).to_contain_text("4000/1000", timeout=LIMIT)
        expect(prompt).to_have_attribute("aria-invalid", "true")
        expect(live.locator("#traffic .panel-error")).to_have_count(0)
        assert caption(live).inner_text() == before
        prompt.fill("1020/4083")
        expect(said).to_have_text("")
        expect(current(live)).to_have_count(1, timeout=LIMIT)
        live.locator("#traffic-odds").fill("0.7")
        expect(live.locator("#traffic-odds-messages")).to_contain_text(
            "up to 0.5", timeout=LIMIT
        )
        live.locator("#traffic-odds").fill("")
        expect(current(live)).to_have_count(1, timeout=LIMIT)

    def test_two_ways_to_say_how_long_a_request_stays(self, live: Page) -> None:
        visit(live, FOUR, **given(**SHORT, seconds_per_request=3))
        said = live.locator("#traffic-tokens_per_second-messages")
        expect(said).to_contain_text("seconds_per_request", timeout=LIMIT)


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "content", "size"),
        [
            ("azure.csv", AZURE, f"{len(AZURE)} B"),
            ("chat.jsonl", MOONCAKE, f"{len(MOONCAKE)} B"),
            ("azure.csv.gz", gzip.compress(AZURE), "B"),
        ],
    )
    def test_it_is_read_here(
        self, live: Page, name: str, content: bytes, size: str
    ) -> None:
        visit(live, FOUR, **given(tokens_per_second=20, arrival_rate=5))
        live.evaluate(DROP, [name, base64.b64encode(content).decode()])
        expect(live.locator("#traffic .file-name")).to_have_text(name)
        expect(live.locator("#traffic-file-hint")).to_contain_text(size)
        expect(live.locator("#traffic-prompt")).to_have_count(0)
        found = answered(FOUR, (name, content), tokens_per_second=20, arrival_rate=5)
        expect_found(live, found)
        held = fragment(live)
        assert not any("azure" in part or "chat.jsonl" in part for part in
                       (*held, *held.values()))  # fmt: skip
        live.locator("#traffic-file-remove").click()
        expect(live.locator("#traffic .file-name")).to_have_count(0)
        expect(live.locator("#traffic-prompt")).to_have_count(1)

    def test_its_own_times_tell_the_rate(self, live: Page) -> None:
        visit(live, FOUR)
        choose(live, "azure.csv", AZURE)
        expect_found(live, answered(FOUR, ("azure.csv", AZURE), tokens_per_second=30))
        expect(live.locator("#traffic-arrival_rate")).to_have_attribute(
            "placeholder", "4"
        )

    def test_without_times_the_rate_is_asked_for(self, live: Page) -> None:
        visit(live, FOUR)
        choose(live, "chat.jsonl", MOONCAKE)
        said = live.locator("#traffic-arrival_rate-messages")
        expect(said).to_have_text("Needed and not given: Requests/s.", timeout=LIMIT)
        live.locator("#traffic-arrival_rate").fill("1")
        found = answered(FOUR, ("chat.jsonl", MOONCAKE), tokens_per_second=30,
                         arrival_rate=1)  # fmt: skip
        expect_found(live, found)

    @pytest.mark.parametrize(
        ("name", "content", "says"),
        [
            ("columns.csv", b"a,b\n1,2\n", "line 1: the header"),
            ("negative.csv", b"ContextTokens,GeneratedTokens\n5,6\n-7,1\n",
             "line 3: input_length is -7"),
            ("empty.csv", b"", "no requests"),
            ("latin.csv", "ContextTokens,GeneratedTokens\n5,6\n5,é\n".encode("latin-1"),
             "line 3: output_length"),
            ("wide.csv", "ContextTokens,GeneratedTokens\n5,6\n".encode("utf-16"),
             "line 1: it is binary or UTF-16"),
            ("line.jsonl", b"9" * (17 << 20), "line 1: its length"),
            ("cut.csv.gz", gzip.compress(AZURE)[:-9], "its gzip data"),
        ],
        ids=lambda value: value if isinstance(value, str) and "." in value else "",
    )  # fmt: skip
    def test_a_bad_one_names_the_line_and_gives_way(
        self, live: Page, name: str, content: bytes, says: str
    ) -> None:
        visit(live, FOUR, **given(arrival_rate=5))
        choose(live, "azure.csv", AZURE)
        found = answered(FOUR, ("azure.csv", AZURE), tokens_per_second=30,
                         arrival_rate=5)  # fmt: skip
        expect_found(live, found)
        choose(live, name, content)
        said = live.locator("#traffic-file-messages")
        expect(said).to_contain_text(name, timeout=START_LIMIT)
        expect(said).to_contain_text(says)
        expect(live.locator("#traffic .file-name")).to_have_text("azure.csv")
        expect(current(live)).to_have_count(1)
        expect_found(live, found)
        expect(live.locator("#traffic-arrival_rate")).to_have_value("5")
        choose(live, "azure.csv", AZURE)
        expect(said).to_have_text("")


class TestWaiting:
    def test_progress_stop_and_again(self, live: Page, tmp_path: Path) -> None:
        visit(live, FOUR, **given(**SHORT))
        expect_found(live, answered(FOUR, **SHORT))
        large = tmp_path / "large.csv"
        large.write_bytes(
            b"ContextTokens,GeneratedTokens\n" + b"1000,100\n2000,50\n" * 400_000
        )
        live.locator("#traffic-file").set_input_files(large)
        share = live.locator("#traffic .panel-progress span")
        expect(share).to_have_text(re.compile(r"^\s*[1-9]\d*%"), timeout=LIMIT)
        live.locator("#traffic-stop").click()
        expect(live.locator("#traffic .panel-progress")).to_contain_text("Stopped")
        expect(live.locator("#status")).to_have_text("Stopped.")
        expect(caption(live)).to_contain_text("At 2 requests/s")
        again = live.locator("#traffic-again")
        again.click()
        expect(live.locator("#traffic-stop")).to_have_count(1)
        live.locator("#traffic-file-remove").click()
        expect(current(live)).to_have_count(1, timeout=LIMIT)

    def test_newer_inputs_supersede_older_ones(self, live: Page) -> None:
        visit(live, FOUR, **given(**SHORT))
        expect_found(live, answered(FOUR, **SHORT))
        rate = live.locator("#traffic-arrival_rate")
        rate.fill("7")
        live.wait_for_timeout(1300)
        rate.fill("8")
        expect_found(live, answered(FOUR, **{**SHORT, "arrival_rate": 8}))


class TestForm:
    def test_the_form_is_set_and_set_back(self, live: Page) -> None:
        visit(live, FOUR, **given(**SHORT))
        found = answered(FOUR, **SHORT)
        expect_found(live, found)
        before = fragment(live)
        plan = found["as_plan"]
        context, requests = plan["context"]["p99"], plan["concurrency"]["p95"]
        button = live.locator("#traffic-set")
        expect(button).to_contain_text(f"{context:,} tokens (p99)")
        expect(button).to_contain_text(f"{requests:,} requests (p95)")
        button.click()
        expect(live.locator("#tokens")).to_have_value(f"{context:,}")
        expect(live.locator("#sequences")).to_have_value(f"{requests:,}")
        undo = live.locator("#traffic-undo")
        expect(undo).to_be_focused()
        expect(button).to_be_disabled()
        verdict = api.call("plan", {**FOUR, "context": context,
                                    "concurrency": requests})["verdict"]  # fmt: skip
        expect(live.locator(f".first .verdict.{verdict}:not(.old)")).to_have_count(1)
        undo.press("Enter")
        expect(live.locator("#tokens")).to_have_value("131,072")
        expect(live.locator("#sequences")).to_have_value("8")
        expect(live.locator("#traffic-toggle")).to_be_focused()
        expect(undo).to_have_count(0)
        assert fragment(live) == before

    @pytest.mark.parametrize(
        ("name", "which"),
        [("context", "p95"), ("context", "p99"), ("concurrency", "mean"),
         ("concurrency", "p95")],
    )  # fmt: skip
    def test_one_at_a_time(self, live: Page, name: str, which: str) -> None:
        visit(live, FOUR, **given(**SHORT))
        found = answered(FOUR, **SHORT)
        expect_found(live, found)
        live.locator(f"#traffic-set-{name}-{which}").click()
        value = f"{found['as_plan'][name][which]:,}"
        expect(live.locator(f"#{NAMES[name]}")).to_have_value(value)
        live.locator("#traffic-undo").click()
        expect(live.locator("#tokens")).to_have_value("131,072")
        expect(live.locator("#sequences")).to_have_value("8")


class TestLevers:
    def expect_levers(self, page: Page, **known: int) -> dict[str, Json]:
        found = api.call("levers", {**FOUR, **known})
        names = [ENGLISH[f"lever.{row['lever']}"] for row in found["levers"]]
        shown = page.locator("#levers .levers[aria-busy=false]:not(.old) .lever h3")
        expect(shown).to_have_text(names, timeout=START_LIMIT)
        return {row["lever"]: row for row in found["levers"]}

    def test_lengths_once_given_are_known_to_them(self, live: Page) -> None:
        visit(live, FOUR, levers=True)
        expect(current(live)).to_have_count(1, timeout=START_LIMIT)
        assert "traffic_context" not in self.expect_levers(live)
        live.locator("#traffic-like").select_option("chat-like-azure")
        total = answered(FOUR, **SHORT)["as_plan"]["context"]
        rows = self.expect_levers(
            live, traffic_context=total["p99"], traffic_mean=total["mean"]
        )
        assert rows["traffic_context"]["change"] == {"context": total["p99"]}
        live.locator("#lever-traffic_context").click()
        expect(live.locator("#tokens")).to_have_value(f"{total['p99']:,}")
        live.locator("#levers-undo").click()
        expect(live.locator("#tokens")).to_have_value("131,072")

    def test_a_common_prefix_is_known_to_both(self, live: Page) -> None:
        visit(live, FOUR, levers=True, **given(**SHORT))
        expect(current(live)).to_have_count(1, timeout=START_LIMIT)
        live.locator("#traffic-common_prefix").fill("1001")
        found = answered(FOUR, **SHORT, shared_prefix=1001)
        expect_found(live, found)
        total = found["as_plan"]["context"]
        rows = self.expect_levers(
            live,
            common_prefix=1001,
            traffic_context=total["p99"],
            traffic_mean=total["mean"],
        )
        assert rows["shared_prefix"]["change"]["shared_prefix"] == 1001
        live.locator("#lever-shared_prefix").click()
        expect(live.locator("#shared_prefix")).to_have_value("1,001")
        live.locator("#levers-undo").click()
        expect(live.locator("#shared_prefix")).to_have_value("")


class TestTakingAway:
    @pytest.fixture
    def found(self, live: Page) -> Json:
        plan = {**FOUR, "gpus": 4}
        visit(live, plan, **given(**ASSUMED))
        found = answered(plan, **ASSUMED)
        expect_found(live, found)
        return found

    def test_the_chart_marks_the_edge_and_what_is_past_it(
        self, live: Page, found: Json
    ) -> None:
        chart = live.locator("#traffic-chart svg.chart")
        over = sum(row["use"] > found["pool"] for row in found["distribution"])
        whole = sum(row["use"] <= found["pool"] for row in found["distribution"])
        cut = (
            len(found["distribution"])
            - whole
            - sum(row["from"] >= found["pool"] for row in found["distribution"])
        )
        expect(chart.locator(".chart-part.over rect")).to_have_count(over)
        expect(chart.locator(".chart-part.used rect")).to_have_count(whole + cut)
        for name in ("p50", "p95", "p99"):
            expect(chart).to_contain_text(f"{name} ")
        expect(chart).to_contain_text(f"pool {found['pool'] / 2**30:.1f} GiB")
        colour = "(node) => getComputedStyle(node).color"
        red, blue = (
            chart.locator(f".chart-part.{part}").evaluate(colour)
            for part in ("over", "used")
        )
        assert red != blue

    def test_csv_svg_and_png(self, live: Page, found: Json, tmp_path: Path) -> None:
        saved = {}
        for kind in ("csv", "svg", "png"):
            with live.expect_download() as download:
                live.locator(f"#traffic-{kind}").click()
            assert download.value.suggested_filename.endswith(f"-traffic.{kind}")
            saved[kind] = tmp_path / f"traffic.{kind}"
            download.value.save_as(saved[kind])
        rows = list(csv.DictReader(saved["csv"].read_text("utf-8").splitlines()))
        assert [{k: float(v) for k, v in row.items()} for row in rows] == [
            pytest.approx(row) for row in found["distribution"]
        ]
        assert "p99" in saved["svg"].read_text("utf-8")
        assert saved["png"].read_bytes()[:4] == b"\x89PNG"
        table = live.locator("#traffic .behind .panel-data")
        table.locator("summary").click()
        expect(table.locator("tbody tr")).to_have_count(len(rows))

    def test_print(self, live: Page, found: Json) -> None:
        live.emulate_media(media="print")
        expect(live.locator("#traffic-chart svg.chart")).to_be_visible()
        expect(live.locator("#traffic-set")).to_be_hidden()
        live.emulate_media(media="screen")
        assert found


class TestEverywhere:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_accessible_and_narrow(self, live: Page, theme: str, lang: str) -> None:
        visit(live, FOUR, theme=theme, lang=lang, **given(prompt="2k/9k", odds=0.02))
        expect(current(live)).to_have_count(1, timeout=START_LIMIT)
        choose(live, "empty.csv", b"")
        expect(live.locator("#traffic-file-messages")).to_contain_text(
            "empty.csv", timeout=LIMIT
        )
        live.locator("#traffic details").evaluate_all(
            "(all) => all.forEach((details) => { details.open = true; })"
        )
        live.locator("#traffic-set-context-p95").click()
        expect(current(live)).to_have_count(1, timeout=LIMIT)
        live.locator("#traffic-chart svg.chart").hover()
        expect(live.locator("#traffic-chart .chart-tip text")).to_have_count(1)
        assert violations(live) == []
        live.set_viewport_size({"width": 360, "height": 740})
        live.wait_for_timeout(300)
        assert live.evaluate("document.documentElement.scrollWidth") == 360
        text = live.locator("#traffic").inner_text()
        assert not re.search(r"\b(traffic|panel|entry)\.\w|\{\w+\}", text)
        words = KOREAN if lang == "ko" else ENGLISH
        expect(live.locator("#traffic-heading")).to_have_text(words["traffic.heading"])

    def test_a_frame_of_the_whole(self, open_page: OpenPage, site: str) -> None:
        page = open_page(
            f"{site}#v=1&embed=1&view=full&tokens=131072&gpu=h100-sxm&gpus=4"
            "&engine=vllm&sequences=8&traffic.prompt=1020/4083&traffic.output=129/451"
        )
        expect_found(page, answered(FOUR, **SHORT))
        expect(page.locator("#traffic .downloads")).to_have_count(0)
