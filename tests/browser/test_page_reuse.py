"""Prefix reuse: a trace on the page, its progress, stopping it, and what is found."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browser_support import START_LIMIT, OpenPage, fill, violations
from page_support import OPENING, OPENING_PLAN, expect_answer, fragment, go, live_page
from playwright.sync_api import Browser, Frame, Locator, Page, expect

from build_steps.tools import SITE
from kvcore import api
from kvcore.importers.byte_source import in_memory

Json = dict[str, Any]
Place = Page | Frame

NAMES: Final = {"context": "tokens", "concurrency": "sequences"}
ENGLISH, KOREAN = (
    json.loads((SITE / "locales" / f"{lang}.json").read_text("utf-8"))
    for lang in ("en", "ko")
)
TEN: Final = [{"input_length": 100, "output_length": 9, "hash_ids": [1, 2]}] * 10
"""Ten equal prompts; 64 of 100 tokens are found nine times of ten in blocks of 64."""
TURNS: Final = [
    {
        "timestamp": 1000 * n,
        "input_length": 128 * (2 + n % 5),
        "output_length": 40,
        "hash_ids": [10 * (n % 7) + k for k in range(2 + n % 5)],
    }
    for n in range(300)
]
"""Seven conversations in blocks of 128."""
MEGABYTES: Final = 1 << 20
DROP: Final = """async ([name, base64, times]) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File(Array(times).fill(bytes), name));
  document.getElementById("reuse-drop").dispatchEvent(new DragEvent("drop", {
    dataTransfer: transfer, bubbles: true, cancelable: true,
  }));
}"""


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        # Levers have tests of their own, and take their time.
        page.evaluate("document.getElementById('levers-toggle')?.click()")
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    if shared.locator("#reuse-file-remove").count():
        shared.locator("#reuse-file-remove").click()
    return shared


def visit(page: Page, plan: Json, **more: object) -> None:
    """The panel open on a scenario; its inputs as `reuse__NAME`."""
    names = {NAMES.get(name, name): value for name, value in plan.items()}
    more = {name.replace("__", "."): value for name, value in more.items()}
    go(page, **names, **more)
    for panel, opened in (("levers", "false"), ("reuse", "true")):
        toggle = page.locator(f"#{panel}-toggle")
        if toggle.count() and toggle.get_attribute("aria-expanded") != opened:
            toggle.click()


def lines(requests: list[Json]) -> bytes:
    return "\n".join(map(json.dumps, requests)).encode() + b"\n"


def drop(page: Place, name: str, content: bytes, times: int = 1) -> None:
    """Drops a file of the content, so many times over, on the panel."""
    page.evaluate(DROP, [name, base64.b64encode(content).decode(), times])


def answered(requests: list[Json] | None, **params: object) -> Json:
    files = [] if requests is None else [in_memory(lines(requests), "trace.jsonl")]
    found = api.call("reuse", {**OPENING_PLAN, **params}, files)
    assert "error" not in found, found
    return found


def caption(page: Place) -> Locator:
    return page.locator("#reuse figcaption")


def whole(page: Place) -> Locator:
    return page.locator("#reuse-answer[aria-busy=false]:not(.old)")


def fact(page: Place, name: str, **values: object) -> Locator:
    label = ENGLISH[f"reuse.{name}"].format(**values)
    term = page.locator("dt").get_by_text(label, exact=True)
    return page.locator("#reuse .panel-facts > div").filter(has=term).locator("dd")


def percent(ratio: float) -> str:
    """To a tenth; half of one is rounded up, as JavaScript does."""
    return f"{math.floor(1000 * ratio + 0.5) / 10:.1f}%"


def gib(count: int) -> str:
    """As the page writes sizes up to a TiB: three digits."""
    size = count / 2**30
    return f"{size:.2f} GiB" if size < 9.995 else (
        f"{size:.1f} GiB" if size < 99.95 else f"{size:,.0f} GiB"
    )  # fmt: skip


def expect_found(page: Place, found: Json) -> None:
    """Waits for the exact answer and holds its figures against kvcore's."""
    pool, ceiling = found["pool"], found["ceiling"]
    expect(fact(page, "in_pool")).to_contain_text(
        percent(pool["hit_rate"]), timeout=START_LIMIT
    )
    expect(whole(page)).to_have_count(1, timeout=START_LIMIT)
    expect(page.locator("#reuse .estimated")).to_have_count(0)
    expect(fact(page, "in_pool")).to_contain_text(percent(pool["hit_rate"]))
    saved = f"{pool['saved_tokens']:,} of {found['prompt_tokens']:,}"
    expect(fact(page, "saved")).to_have_text(saved)
    expect(fact(page, "ceiling")).to_contain_text(percent(ceiling["hit_rate"]))
    for knee, share in zip(found["knee"], (95, 99), strict=True):
        shown = fact(page, "knee", share=f"{share}%")
        expect(shown).to_contain_text(f"finds {percent(knee['hit_rate'])}")
    blocks = f"{pool['evicted_blocks']:,} block"
    expect(fact(page, "evicted")).to_contain_text(blocks)
    expect(fact(page, "left")).to_have_text(
        f"{gib(pool['cache_bytes'])} of {gib(pool['budget_bytes'])}"
    )


class TestMadeUp:
    def test_it_answers_without_a_trace(self, live: Page) -> None:
        """An estimate first, marked as one, then what kvcore answers."""
        names = {NAMES.get(name, name): value for name, value in OPENING_PLAN.items()}
        go(live, **names)
        toggle = live.locator("#reuse-toggle")
        expect(toggle).to_have_attribute("aria-expanded", "false")
        toggle.press("Enter")
        expect(toggle).to_have_attribute("aria-expanded", "true")
        progress = live.locator("#reuse progress")
        expect(progress).to_have_count(1, timeout=START_LIMIT)
        expect(live.locator("#reuse-answer .estimated")).to_have_count(
            1, timeout=START_LIMIT
        )
        expect(live.locator(".reuse-standing")).to_contain_text("Estimate")
        expect(live.locator("#reuse [role=status]")).to_have_text("")
        found = answered(None, preset="chat-like-mooncake")
        expect_found(live, found)
        expect(progress).to_have_count(0)
        pool, (near, _) = found["pool"], found["knee"]
        expect(caption(live)).to_have_text(
            f"Your pool of {gib(pool['budget_bytes'])} per GPU finds "
            f"{percent(pool['hit_rate'])} of prompt tokens; "
            f"95% of what can be found takes {gib(near['budget_bytes'])}."
        )
        said = live.locator("#reuse [role=status]")
        expect(said).to_have_text(caption(live).inner_text())
        expect(fact(live, "running")).to_have_text(
            f"{gib(found['running']['bytes'])} 32 requests at once"
        )

    def test_another_is_chosen_by_what_it_resembles(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        choice = live.locator("#reuse-preset")
        choice.select_option(label=ENGLISH["reuse.preset.rag-like-ragpulse"])
        hint = live.locator(".reuse-preset > .hint")
        expect(hint).to_contain_text("2,944 tokens on average, 72.7% of them")
        expect(hint).to_contain_text("flashserve/RAGPulse")
        expect_found(live, answered(None, preset="rag-like-ragpulse"))
        assert fragment(live)["reuse.preset"] == "rag-like-ragpulse"

    def test_a_link_with_inputs_opens_it(self, live: Page) -> None:
        go(live, gpu="h100-sxm", gpus=8, **{"reuse.replicas": 2})
        expect(live.locator("#reuse-replicas")).to_have_value("2")
        expect(live.locator("#reuse-settings")).to_have_attribute("open", "")


class TestTraces:
    def test_ten_equal_prompts(self, live: Page) -> None:
        visit(live, OPENING_PLAN, reuse__block_tokens=64)
        drop(live, "ten.jsonl", lines(TEN))
        expect_found(live, answered(TEN, block_tokens=64))
        expect(caption(live)).to_contain_text("finds 57.6% of prompt tokens")
        expect(fact(live, "saved")).to_have_text("576 of 1,000")
        expect(live.locator(".file-name")).to_have_text("ten.jsonl")
        expect(live.locator("#reuse-file-hint")).to_contain_text(
            "never sent, not in the link"
        )
        assert "ten" not in live.evaluate("location.hash")
        live.locator("#reuse-file-remove").click()
        expect(live.locator("#reuse-preset")).to_have_count(1)
        expect(live.locator(".file-name")).to_have_count(0)

    def test_a_packed_trace_that_is_chosen(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        live.locator("#reuse-file").set_input_files(
            {
                "name": "turns.jsonl.gz",
                "mimeType": "application/gzip",
                "buffer": gzip.compress(lines(TURNS)),
            }
        )
        found = answered(TURNS)
        expect_found(live, found)
        details = live.locator("#reuse-trace")
        expect(details.locator("summary")).to_contain_text("turns.jsonl.gz")
        details.locator("summary").click()
        expect(details).to_contain_text("300 in 4.98 min")
        expect(details).to_contain_text(f"{found['trace']['unique_blocks']} different")
        expect(details).to_contain_text("128 tokens")

    def test_blocks_that_the_trace_does_not_tell(self, live: Page) -> None:
        """Prompts of one block each may have blocks of any size."""
        visit(live, OPENING_PLAN)
        short = [{**TEN[0], "hash_ids": [7], "input_length": n} for n in (90, 100)]
        drop(live, "short.jsonl", lines(short * 5))
        place = live.locator("#reuse-trace_block_tokens-messages")
        expect(place).to_contain_text("from 100 to", timeout=START_LIMIT)
        live.locator("#reuse-trace_block_tokens").fill("512")
        expect_found(live, answered(short * 5, trace_block_tokens=512))
        expect(place).to_have_text("")

    def test_what_stands_in_the_fields_is_asked(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        drop(live, "turns.jsonl", lines(TURNS))
        live.locator("#reuse-settings summary").click()
        live.locator("#reuse-replicas").fill("4")
        live.locator("#reuse-routing").select_option("prefix")
        live.locator("#reuse-tokens_per_second").fill("20")
        live.locator("#reuse-warmup").fill("0.5")
        live.locator("#reuse-budgets_gib").fill("5, 60")
        asked = {
            "replicas": 4,
            "routing": "prefix",
            "tokens_per_second": 20,
            "warmup": 0.5,
        }
        found = answered(TURNS, **asked, budgets_gib="5,60")
        expect_found(live, found)
        expect(caption(live)).to_contain_text("per GPU in each of 4 replicas")
        first, second = live.locator("#reuse .panel-table").all()
        budgets = first.locator("tbody tr")
        expect(budgets).to_have_count(2)
        for row, budget in zip(budgets.all(), found["budgets"], strict=True):
            expect(row).to_contain_text(gib(budget["cache_bytes"]))
            expect(row).to_contain_text(percent(budget["hit_rate"]))
        rows = second.locator("tbody tr")
        expect(rows).to_have_count(len(found["spread"]))
        for row, kept in zip(rows.all(), found["spread"], strict=True):
            expect(row.locator("td").nth(1)).to_have_text(
                percent(kept["pool"]["hit_rate"])
            )
        expect(second.locator("tr.own")).to_have_text(re.compile(r"^\s*4\s+to where"))
        running = f"{found['running']['requests']:.2g}"
        expect(fact(live, "running")).to_contain_text(f"{running} requests at once")
        kept = fragment(live)
        assert kept["reuse.budgets_gib"] == "5,60"
        assert kept["reuse.replicas"] == "4"

    def test_priorities_and_what_they_keep(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        drop(live, "turns.jsonl", lines(TURNS))
        live.locator("#reuse-settings").evaluate("(node) => { node.open = true; }")
        expect(live.locator("#reuse-retention")).to_have_count(0)
        live.locator("#reuse-policy").select_option("priority")
        live.locator("#reuse-retention").fill("0:128=80, 128:=10/60")
        found = answered(TURNS, policy="priority", retention="0:128=80,128:=10/60")
        expect_found(live, found)
        expect(fact(live, "lru_in_pool")).to_have_text(
            percent(found["pool"]["lru_hit_rate"])
        )
        before = caption(live).inner_text()
        live.locator("#reuse-retention").fill("soon")
        expect(live.locator("#reuse-retention-messages")).to_contain_text("0:1024=80")
        expect(caption(live)).to_have_text(before)
        live.locator("#reuse-retention").fill("0:128=101")
        error = live.locator("#reuse .panel-error")
        expect(error).to_contain_text("from 0 to 100", timeout=START_LIMIT)
        # LRU has no use for it, and is not asked with it.
        live.locator("#reuse-policy").select_option("")
        expect_found(live, answered(TURNS))

    def test_times_that_are_missing_are_said(self, live: Page) -> None:
        visit(live, OPENING_PLAN, reuse__tokens_per_second=20)
        drop(live, "ten.jsonl", lines(TEN))
        warning = live.locator("#reuse .message.warning")
        expect(warning).to_contain_text("no times, so 20 tokens/s", timeout=START_LIMIT)

    def test_a_hybrid_says_where_its_hits_end(self, live: Page) -> None:
        plan = {**OPENING_PLAN, "model": "qwen3.5-27b"}
        visit(live, plan)
        drop(live, "turns.jsonl", lines(TURNS))
        warning = live.locator("#reuse .message.warning").first
        expect(warning).to_have_text(
            ENGLISH["warning.reuse_needs_states"], timeout=START_LIMIT
        )
        expect(fact(live, "tail")).to_have_count(1)

    def test_without_gpus_there_is_a_curve_all_the_same(self, live: Page) -> None:
        go(live, **{"reuse.budgets_gib": 1})
        drop(live, "turns.jsonl", lines(TURNS))
        found = api.call(
            "reuse",
            {"model": OPENING["model"], "budgets_gib": [1]},
            [in_memory(lines(TURNS), "turns.jsonl")],
        )
        rate = percent(found["ceiling"]["hit_rate"])
        expect(caption(live)).to_have_text(
            re.compile(rf"^{re.escape(rate)} of prompt tokens can be found"),
            timeout=START_LIMIT,
        )
        expect(fact(live, "in_pool")).to_have_count(0)

    def test_nothing_in_common(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        drop(live, "alone.jsonl", lines([{**TEN[0], "hash_ids": [1, 2]}]))
        shown = live.locator(".reuse-finding")
        expect(shown).to_contain_text("Nothing can be found", timeout=START_LIMIT)


class TestStopping:
    """A trace of 200 MB, which would take minutes."""

    def test_watch_it_stop_it_start_again(self, live: Page) -> None:
        visit(live, OPENING_PLAN)
        requests = [
            {**TURNS[0], "input_length": 512 * 40, "hash_ids": list(range(n, n + 40))}
            for n in range(0, 160_000, 40)
        ]
        piece = lines(requests)
        drop(live, "long.jsonl", piece, 200 * MEGABYTES // len(piece) + 1)
        expect(live.locator("#reuse-file-hint")).to_contain_text("200 MiB")
        progress = live.locator("#reuse progress")
        expect(live.locator("#reuse .estimated")).to_have_count(1, timeout=START_LIMIT)
        expect(progress).to_have_count(1)
        shares: set[str | None] = set()
        while len(shares) < 3:
            shares.add(progress.get_attribute("value"))
            live.wait_for_timeout(100)
        assert len(live.workers) == 2
        # Meanwhile the answer is as quick as ever.
        fill(live, "tokens", 4_100)
        expect_answer(live, **{**OPENING, "tokens": 4_100})
        expect(live.locator("#reuse .reuse-standing").first).to_contain_text(
            "earlier inputs"
        )
        # The other scenario is asked about instead of the first.
        expect(live.locator("#reuse-answer:not(.old) .estimated")).to_have_count(
            1, timeout=START_LIMIT
        )
        before = caption(live).inner_text()
        live.locator("#reuse-stop").press("Enter")
        expect(live.locator("#reuse .panel-progress")).to_contain_text("Stopped.")
        expect(progress).to_have_count(0)
        expect(caption(live)).to_have_text(before)
        expect(live.locator(".reuse-standing")).to_contain_text("Estimate")
        for _ in range(50):
            if len(live.workers) == 1:
                break
            live.wait_for_timeout(100)
        assert len(live.workers) == 1
        live.locator("#reuse-again").click()
        expect(progress).to_have_count(1)
        expect(caption(live)).to_have_text(before)
        # Closing it is enough to stop it.
        live.locator("#reuse-toggle").click()
        expect(live.locator("#reuse .panel-progress")).to_have_count(0)
        expect_answer(live, **{**OPENING, "tokens": 4_100})


BAD: Final[list[tuple[str, bytes, int, str]]] = [
    ("no-ids.jsonl", lines([TEN[0], {"input_length": 5}]), 1, "line 2: hash_ids"),
    ("no-length.jsonl", lines([{"hash_ids": [1]}]), 1, "line 1: input_length"),
    (
        "negative.jsonl",
        lines([*TEN, {**TEN[0], "input_length": -1}]),
        1,
        "line 11: input_length is -1",
    ),
    (
        "mixed.jsonl",
        lines([{**TEN[0], "block_size": 64}, {**TEN[0], "block_size": 128}]),
        1,
        "line 2: block_size is 128; it should be 64",
    ),
    ("text.jsonl", b"What is a trace?\n", 1, "line 1: it is not JSON"),
    ("binary.jsonl", bytes(range(256)) * 64, 1, "line 1: it is not JSON"),
    ("cut.jsonl.gz", gzip.compress(lines(TURNS))[:-40], 1, "line"),
    ("empty.jsonl", b"", 1, "holds no requests"),
    ("one-line.jsonl", b"x" * MEGABYTES, 200, "line 1: its length"),
]


class TestBadTraces:
    @pytest.mark.parametrize(
        ("name", "content", "times", "says"), BAD, ids=[bad[0] for bad in BAD]
    )
    def test_the_line_is_named_and_what_was_there_stays(
        self, live: Page, name: str, content: bytes, times: int, says: str
    ) -> None:
        if "0.4" not in live.evaluate("location.hash"):
            visit(live, OPENING_PLAN, reuse__block_tokens=64, reuse__warmup=0.4)
        drop(live, "ten.jsonl", lines(TEN))
        expect(whole(live)).to_have_count(1, timeout=START_LIMIT)
        expect(fact(live, "in_pool")).to_contain_text("64.0%")
        before = caption(live).inner_text()
        drop(live, name, content, times)
        error = live.locator("#reuse .panel-error")
        expect(error).to_contain_text(name, timeout=START_LIMIT)
        expect(error).to_contain_text(says)
        assert caption(live).inner_text() == before
        expect(live.locator("#reuse-answer")).to_have_attribute("aria-busy", "false")
        expect(live.locator(".reuse-standing")).to_have_text(
            "For what was asked before."
        )
        expect(live.locator("#reuse-warmup")).to_have_value("0.4")


class TestTakingAway:
    @pytest.fixture
    def found(self, live: Page) -> Json:
        visit(live, OPENING_PLAN)
        drop(live, "turns.jsonl", lines(TURNS))
        found = answered(TURNS)
        expect_found(live, found)
        return found

    def test_csv_svg_and_png(self, live: Page, found: Json, tmp_path: Path) -> None:
        saved = {}
        for kind in ("csv", "svg", "png"):
            with live.expect_download() as download:
                live.locator(f"#reuse-{kind}").click()
            assert download.value.suggested_filename.endswith(f"-reuse.{kind}")
            saved[kind] = tmp_path / f"reuse.{kind}"
            download.value.save_as(saved[kind])
        rows = list(csv.DictReader(saved["csv"].read_text("utf-8").splitlines()))
        rates = {int(row["budget_bytes"]): float(row["hit_rate"]) for row in rows}
        points = [*found["curve"], *found["knee"], found["pool"]]
        assert rates == {p["budget_bytes"]: p["hit_rate"] for p in points}
        assert list(rates) == sorted(rates)
        drawn = saved["svg"].read_text("utf-8")
        for name in ("your pool", "without limit", "95%", "99%"):
            assert name in drawn
        assert saved["png"].read_bytes()[:4] == b"\x89PNG"

    def test_decimal_units(self, live: Page, found: Json) -> None:
        expect(live.locator("#reuse-chart")).to_contain_text("GiB")
        visit(live, OPENING_PLAN, unit="gb")
        size = f"{found['pool']['budget_bytes'] / 1e9:.1f} GB"
        expect(caption(live)).to_contain_text(size)
        expect(live.locator("#reuse-chart")).not_to_contain_text("GiB")

    def test_print(self, live: Page, found: Json) -> None:
        live.emulate_media(media="print")
        expect(live.locator("#reuse-chart svg.chart")).to_be_visible()
        expect(live.locator("#reuse .file-name")).to_be_visible()
        expect(live.locator("#reuse-file-remove")).to_be_hidden()
        live.emulate_media(media="screen")
        assert found["exact"]


class TestEverywhere:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_accessible_and_narrow(self, live: Page, theme: str, lang: str) -> None:
        visit(live, OPENING_PLAN, theme=theme, lang=lang, reuse__replicas=2,
              reuse__budgets_gib=1, reuse__policy="priority")  # fmt: skip
        drop(live, "turns.jsonl", lines(TURNS))
        expect(whole(live)).to_have_count(1, timeout=START_LIMIT)
        live.locator("#reuse details").evaluate_all(
            "(all) => all.forEach((details) => { details.open = true; })"
        )
        assert violations(live) == []
        live.set_viewport_size({"width": 360, "height": 740})
        live.wait_for_timeout(300)
        assert live.evaluate("document.documentElement.scrollWidth") == 360
        text = live.locator("#reuse").inner_text()
        assert not re.search(r"\b(reuse|panel|entry)\.\w|\{\w+\}", text)
        words = KOREAN if lang == "ko" else ENGLISH
        expect(live.locator("#reuse-heading")).to_have_text(words["reuse.heading"])

    def test_one_replica_is_no_number_of_them(self, live: Page) -> None:
        """Korean has no plural that would tell one from more."""
        visit(live, OPENING_PLAN, lang="ko")
        drop(live, "turns.jsonl", lines(TURNS))
        place = KOREAN["reuse.place"]
        expect(caption(live)).to_have_text(
            re.compile(f"^{place} "), timeout=START_LIMIT
        )
        visit(live, OPENING_PLAN, lang="en")

    def test_a_frame_of_the_whole(self, open_page: OpenPage, site: str) -> None:
        page = open_page(
            f"{site}#v=1&embed=1&view=full&tokens=4099&gpu=h100-sxm&gpus=8"
            "&engine=vllm&sequences=32&reuse.block_tokens=64"
        )
        expect(page.locator("#reuse-drop")).to_have_count(1, timeout=START_LIMIT)
        drop(page, "ten.jsonl", lines(TEN))
        expect(caption(page)).to_contain_text("57.6%", timeout=START_LIMIT)
        expect(page.locator("#reuse .downloads")).to_have_count(0)
