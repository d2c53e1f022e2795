"""The log box: what an engine printed, explained on the page and put into the form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browser_support import START_LIMIT, OpenPage, estimated_bytes, expect_total
from log_support import (
    EXPLAINED,
    FP8,
    LISTED,
    NAMELESS,
    OUT_OF_MEMORY,
    SGLANG,
    VLLM,
    WORDS,
    cause_text,
    digits,
    explained,
    observed,
    open_log,
    paste,
    rested,
    rows,
)
from page_support import choose_model, expect_answer, fragment, go, live_page
from playwright.sync_api import Browser, Page, expect
from test_a11y import violations

from kvcore.files import LOG_BYTES

SCENARIO: Final = {"model": "llama-3.1-8b-instruct", "tokens": 4_000}
SECRET: Final = "/home/somebody/secret-8c1f/checkpoint"
DROP: Final = """async ([selector, text, name]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, {type: "text/plain"}));
  const target = document.querySelector(selector);
  for (const type of ["dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(type, {
      dataTransfer: transfer, bubbles: true, cancelable: true,
    }));
    await new Promise(requestAnimationFrame);
  }
}"""

PASTE: Final = """([first, noise, length, last]) => {
  const transfer = new DataTransfer();
  const between = noise.repeat(Math.ceil(length / noise.length));
  transfer.setData("text/plain", first + between + last);
  document.getElementById("log-text").dispatchEvent(new ClipboardEvent("paste", {
    clipboardData: transfer, bubbles: true, cancelable: true,
  }));
}"""


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 800})
    if shared.locator("#log-clear").is_visible():
        shared.locator("#log-clear").click()
    if shared.locator("#log-text").is_visible():
        shared.locator("#log-text").fill("")
    go(shared, **SCENARIO)
    expect_answer(shared, **SCENARIO)
    return shared


def result(page: Page) -> str:
    return page.locator("#log-result").inner_text()


def expect_agreement(page: Page) -> None:
    summary = page.locator(".log-summary")
    expect(summary).to_have_text("2 of 2 numbers agree.", timeout=EXPLAINED)


def summary(page: Page) -> str:
    return page.locator(".log-summary").inner_text()


def expect_rows(page: Page, answer: dict[str, Any]) -> None:
    """The table has what kvcore answers here."""
    found = rows(page)
    assert len(found) == len(answer["comparisons"])
    for row, number in zip(found, answer["comparisons"], strict=True):
        text = row.inner_text()
        assert WORDS["en"][f"quantity.{number['quantity']}"] in text
        assert digits(number["theirs"], number["decimals"]) in text
        if number["ours"] is not None:
            assert digits(number["ours"], number["decimals"]) in text
        assert f"line {number['line']:,}" in text
        assert row.locator(".log-agrees").count() == number["agrees"]
        for cause in number["causes"]:
            words = row.locator(".log-why").text_content() or ""
            for each in (cause, *cause["and"]):
                assert cause_text(each) in words


class TestObserved:
    """Logs of runs that others published."""

    @pytest.mark.parametrize(
        "id",
        ["vl-005", "vl-031", "sg-009", "sg-018", "tr-006", "lc-009", "ik-001",
         "ol-001", "lm-001", "mx-002"],
    )  # fmt: skip
    def test_agrees(self, live: Page, id: str) -> None:
        text = observed(id)["text"]
        paste(live, text)
        answer = explained(text)
        assert all(found["agrees"] for found in answer["comparisons"])
        expect_rows(live, answer)
        expect(live.locator(".log-summary.good")).to_contain_text("agree")

    @pytest.mark.parametrize("id", ["vl-032", "vl-061", "ld-026", "lc-057", "vl-131"])
    def test_says_the_cause(self, live: Page, id: str) -> None:
        text = observed(id)["text"]
        paste(live, text)
        answer = explained(text)
        expect_rows(live, answer)
        first = next(f for f in answer["comparisons"] if not f["agrees"])
        assert cause_text(first["causes"][0]) in summary(live)

    @pytest.mark.parametrize("id", ["vl-043", "tr-007"])
    def test_says_that_it_does_not_know(self, live: Page, id: str) -> None:
        text = observed(id)["text"]
        paste(live, text)
        assert "Nothing that was tried" in summary(live)
        missing = live.locator(".log-missing").inner_text()
        printed = explained(text)["engine_version"]
        assert ("s version" in missing) is (printed is None)
        assert "names the GPU" in missing
        assert live.locator(".log-why[data-label]").count() == 0


class TestReading:
    def test_what_was_read(self, live: Page) -> None:
        paste(live, VLLM)
        chips = live.locator(".log-chips").inner_text()
        for word in ("vLLM 0.11.0", "Qwen/Qwen3-8B", "max_model_len 16384", "tp 1"):
            assert word in chips
        assert "KV pool 6.37 GiB line 2" in live.locator(".log-also").inner_text()
        agreements = live.locator(".log-agrees").all_inner_texts()
        assert agreements == [
            "agrees within the rounding of the printed pool",
            "agrees to the printed digits",
        ]

    def test_a_difference_and_its_causes(self, live: Page) -> None:
        paste(live, FP8)
        assert summary(live).startswith("2 of 2 numbers differ. Most likely cause:")
        first = rows(live)[0]
        expect(first.locator(".log-cause")).to_have_text("The KV cache is kept in FP8.")
        assert "46,352 tokens (\u221249.98%)" in first.inner_text()
        others = len(explained(FP8)["comparisons"][0]["causes"]) - 1
        expect(first.locator(".log-others li")).to_have_count(others)

    def test_gb_that_are_gib(self, live: Page) -> None:
        paste(live, SGLANG)
        row = rows(live)[0].inner_text()
        assert "18.31 GB (GiB is meant)" in row
        assert "18.31 GiB" in row

    def test_two_engines(self, live: Page) -> None:
        paste(live, VLLM + SGLANG)
        assert "several engines (vLLM, SGLang)" in result(live)

    def test_a_log_cut_off(self, live: Page) -> None:
        paste(live, VLLM[: VLLM.index("46,368")])
        assert "no number that can be compared" in summary(live)
        assert "KV pool 6.37 GiB" in result(live)

    def test_memory_that_ran_out(self, live: Page) -> None:
        paste(live, OUT_OF_MEMORY)
        assert "no line says which engine" in summary(live)
        numbers = live.locator(".log-also").inner_text()
        for number in ("1.96 GiB", "79.15 GiB", "896.00 MiB"):
            assert number in numbers

    def test_an_engine_that_is_not_computed(self, live: Page) -> None:
        paste(live, "text_generation_launcher: Args { model_id: \"Qwen/Qwen3-8B\" }\n"
                    "KV-cache blocks: 43808, size: 1")  # fmt: skip
        assert "Lines of TGI are read" in result(live)
        assert rows(live) == []

    @pytest.mark.parametrize(
        "text", ["hello", "{}", "\x01\x02\x1b[31m\ufffd", "9" * 999]
    )
    def test_unreadable(self, live: Page, text: str) -> None:
        paste(live, text)
        expect(live.locator(".log-summary")).to_have_text(
            "No line of this was understood."
        )
        assert live.locator("#log-result .log-examples dt").count() == 9

    def test_the_examples_are_understood(self, live: Page) -> None:
        open_log(live)
        live.locator(".log-understood summary").click()
        names = live.locator(".log-understood dt").all_inner_texts()
        lines = live.locator(".log-understood dd").all_inner_texts()
        read = [explained(line) for line in lines]
        assert all(answer["numbers"] or answer["settings"] for answer in read)
        engines = [answer["engine"] for answer in read[:-1]]
        assert engines == explained("")["understood"]
        assert names[0] == "vLLM"
        assert names[-1] == "Out of memory"

    def test_nothing(self, live: Page) -> None:
        paste(live, VLLM)
        live.locator("#log-text").fill("  \n ")
        expect(live.locator("#log-result > *")).to_have_count(0)


class TestHostile:
    def test_markup_is_text(self, live: Page) -> None:
        markup = "<img/src=x/onerror=document.title=1+1>"
        paste(live, VLLM.replace("Qwen/Qwen3-8B", markup))
        expect(live.locator(".log-chips")).to_contain_text(markup)
        assert live.locator(".log img").count() == 0
        assert live.title() != "2"

    def test_controls_and_colours(self, live: Page) -> None:
        coloured = VLLM.replace("INFO", "\x1b[32mINFO\x1b[0m").replace("GiB", "GiB\x07")
        paste(live, coloured)
        expect_agreement(live)

    def test_a_very_long_line(self, live: Page) -> None:
        paste(live, "x" * 200_000 + "\n" + VLLM)
        expect_agreement(live)
        assert live.evaluate("document.documentElement.scrollWidth") <= 1280

    def test_more_than_is_read(self, live: Page) -> None:
        noise = 'INFO: "POST /v1/completions HTTP/1.1" 200 OK\n'
        open_log(live)
        live.locator("#log-text").fill("hello")
        live.evaluate(PASTE, [VLLM, noise, 2 * sum(LOG_BYTES), OUT_OF_MEMORY])
        expect(live.locator(".log-table")).to_be_visible(timeout=EXPLAINED)
        expect(live.locator("#log-file-name")).to_contain_text("Pasted text 8")
        assert "The log is long" in result(live)
        assert "1.96 GiB line 1 from the end" in result(live)


class TestModel:
    def test_of_the_page_where_the_log_names_none(self, live: Page) -> None:
        go(live, model="qwen3-8b", tokens=4001)
        expect_answer(live, model="qwen3-8b", tokens=4001)
        paste(live, NAMELESS)
        said = live.locator(".log-model").inner_text()
        assert "Compared with Qwen3-8B, as the form says" in said
        expect_rows(live, explained(NAMELESS, model="qwen3-8b"))

    def test_another_one_is_compared_at_once(self, live: Page) -> None:
        paste(live, NAMELESS)
        assert "Llama" in live.locator(".log-model").inner_text()
        live.locator(".log-model .link-button").click()
        assert live.evaluate("document.activeElement.id") == "model"
        choose_model(live, "qwen3-8b")
        expect(live.locator(".log-model")).to_contain_text("Qwen3-8B")
        expect_agreement(live)

    def test_the_log_has_its_own(self, live: Page) -> None:
        paste(live, VLLM)
        said = live.locator(".log-model").inner_text()
        assert "Compared with Qwen3-8B, as the log says" in said
        assert "The form has Llama" in said
        live.locator(".log-model .link-button").click()
        expect(live.locator(".log-model")).to_contain_text("as the form says")
        rested(live)
        expect_rows(live, explained(VLLM, model="llama-3.1-8b-instruct"))
        live.locator(".log-model .link-button").click()
        expect(live.locator(".log-model")).to_contain_text("as the log says")
        expect_agreement(live)

    def test_a_config_of_ones_own(self, live: Page) -> None:
        paste(live, LISTED)
        live.locator("#log-fill").click()
        expect(live.locator("#paste-box summary")).to_contain_text("in use")
        paste(live, NAMELESS)
        assert "as the form says" in live.locator(".log-model").inner_text()
        expect_agreement(live)


class TestWaiting:
    def test_long_explanations_hold_up_nothing(self, live: Page) -> None:
        """The form is answered while causes are looked for, which can be stopped."""
        open_log(live)
        live.locator("#log-text").fill(observed("vl-114")["text"])
        progress = live.locator(".log-progress")
        expect(progress).to_contain_text("settings tried", timeout=EXPLAINED)
        live.locator("#tokens").fill("4321")
        expect_answer(live, **{**SCENARIO, "tokens": 4321})
        expect(progress).to_contain_text("settings tried")
        progress.locator("button").click()
        expect(progress).to_have_count(0)
        expect(rows(live)[0].locator(".log-why")).to_contain_text("not looked for")

    def test_typing_on_asks_anew(self, live: Page) -> None:
        open_log(live)
        live.locator("#log-text").fill(observed("vl-114")["text"])
        expect(live.locator(".log-progress")).to_contain_text(
            "settings tried", timeout=EXPLAINED
        )
        live.locator("#log-text").fill(VLLM)
        expect_agreement(live)

    def test_the_longest_is_answered(self, live: Page) -> None:
        text = observed("vl-114")["text"]
        paste(live, text)
        expect_rows(live, explained(text))


class TestFilling:
    def test_the_form_and_the_way_back(self, live: Page) -> None:
        go(live, **SCENARIO, gpu="l40s", gpus=2)
        expect_answer(live, **SCENARIO)
        before = fragment(live)
        paste(live, VLLM)
        assert "L40S stays" in live.locator(".log-fill").inner_text()
        live.locator("#log-fill").click()
        expect_total(live, estimated_bytes(model="qwen3-8b", tokens=16384))
        filled = fragment(live)
        assert filled["model"] == "qwen3-8b"
        assert filled["engine"] == "vllm"
        assert filled["engine_version"] == explained(VLLM)["form"]["engine_version"]
        assert filled["pool_bytes"] == str(int(6.37 * 2**30))
        assert (filled["gpu"], filled["gpus"]) == ("l40s", "1")
        expect(live.locator("#log-lines")).to_contain_text("46,384 tokens")
        expect(live.locator(".verdict, .first").first).to_be_in_viewport()
        live.go_back()
        expect_answer(live, **SCENARIO)
        assert fragment(live) == before

    def test_a_model_that_the_loader_lists_and_a_gpu(self, live: Page) -> None:
        paste(live, LISTED)
        live.locator("#log-fill").click()
        expect(live.locator("#gpu")).to_have_value("GeForce RTX 3090")
        filled = fragment(live)
        form = explained(LISTED)["form"]
        assert filled["gpu"] == form["gpu"] == "rtx-3090"
        assert filled["weight_bytes"] == str(form["weight_bytes"])
        assert filled["engine"] == "llama_cpp"
        expect_total(
            live, estimated_bytes(model=form["model"], tokens=16384, sequences=1)
        )

    def test_the_models_of_the_form_stays_where_the_log_has_none(
        self, live: Page
    ) -> None:
        paste(live, NAMELESS)
        live.locator("#log-fill").click()
        expect(live.locator(".log-fill")).to_contain_text("is filled")
        assert fragment(live)["model"] == SCENARIO["model"]


class TestFiles:
    def test_chosen(self, live: Page, tmp_path: Path) -> None:
        file = tmp_path / "start.log"
        file.write_bytes(VLLM.encode("utf-16"))
        open_log(live)
        live.locator("#log-text").fill("hello")
        live.locator("#log-file").set_input_files(file)
        expect_agreement(live)
        expect(live.locator("#log-file-name")).to_contain_text("start.log")
        live.locator("#log-clear").click()
        expect(live.locator("#log-text")).to_have_value("hello")
        expect(live.locator("#log-text")).to_be_focused()

    def test_of_a_large_one_both_ends(self, live: Page, tmp_path: Path) -> None:
        file = tmp_path / "long.txt"
        with file.open("w") as out:
            out.write(VLLM)
            out.write("INFO: nothing of interest\n" * 1_000_000)
            out.write(OUT_OF_MEMORY)
        open_log(live)
        live.locator("#log-file").set_input_files(file)
        expect(live.locator(".log-table")).to_be_visible(timeout=EXPLAINED)
        rested(live)
        assert "The log is long" in result(live)
        assert "1.96 GiB" in result(live)

    @pytest.mark.parametrize("selector", ["section.log", "#log-box summary"])
    def test_dropped(self, live: Page, selector: str) -> None:
        live.locator("#log-box").evaluate("(node) => { node.open = false; }")
        live.evaluate(DROP, [selector, VLLM, "whatever.out"])
        expect_agreement(live)
        expect(live.locator("#log-file-name")).to_contain_text("whatever.out")
        expect(live.locator("section.log.dragged")).to_have_count(0)
        # It was no config: the model stays.
        assert fragment(live)["model"] == SCENARIO["model"]


class TestPrivate:
    def test_a_log_stays_in_the_box(
        self, live: Page, open_page: OpenPage, tmp_path: Path
    ) -> None:
        before = fragment(live)
        stored = live.evaluate("JSON.stringify([localStorage, sessionStorage])")
        paste(live, FP8.replace("Qwen/Qwen3-8B", SECRET + "/Qwen3-8B"))
        expect(live.locator(".log-chips")).to_contain_text(SECRET)
        assert fragment(live) == before
        mirror = live.locator("meta[name=kvcore-state]").get_attribute("content")
        assert "secret" not in (mirror or "")
        assert live.evaluate("JSON.stringify([localStorage, sessionStorage])") == stored
        assert "secret" not in live.evaluate("document.cookie")
        with live.expect_download() as download:
            live.locator("#save").click()
        saved = tmp_path / "saved.html"
        download.value.save_as(saved)
        text = saved.read_text("utf-8")
        assert "secret-8c1f" not in text
        assert "92,736" not in text
        # The page itself still shows it.
        expect(live.locator(".log-chips")).to_contain_text(SECRET)
        expect(live.locator("#log-text")).to_have_value(FP8.replace(
            "Qwen/Qwen3-8B", SECRET + "/Qwen3-8B"))  # fmt: skip
        copy = open_page(saved.as_uri(), offline=True)
        expect_total(copy, estimated_bytes(**SCENARIO), START_LIMIT)
        expect(copy.locator("#log-text")).to_be_hidden()
        paste(copy, VLLM)
        expect_agreement(copy)

    def test_other_tabs_of_share_do_not_carry_it(self, live: Page) -> None:
        paste(live, VLLM.replace("Qwen/Qwen3-8B", SECRET + "/Qwen3-8B"))
        for tab in ("link", "embed", "cli", "python", "json"):
            live.locator(f"#tab-{tab}").click()
            assert "secret" not in live.locator("#share-text").input_value()


@pytest.mark.parametrize("view", ["answer", "bar", "curve", "full"])
def test_frames_have_no_box(open_page: OpenPage, site: str, view: str) -> None:
    page = open_page(f"{site}#v=1&embed=1&view={view}")
    expect(page.locator("html[data-live]")).to_be_attached(timeout=START_LIMIT)
    expect(page.locator("#log-box")).to_have_count(0)
    expect(page.get_by_text("What did yours print?")).to_have_count(0)


class TestAccess:
    def test_by_keyboard(self, live: Page) -> None:
        go(live, **SCENARIO, sequences=2)
        # The answer is announced when inputs rest, and over what was said before.
        expect(live.locator("#status")).to_contain_text("2 sequences")
        summary = live.locator("#log-box > summary")
        summary.focus()
        was = live.locator("#log-box").evaluate("(node) => node.open")
        live.keyboard.press("Enter")
        if was:
            live.keyboard.press("Enter")
        expect(live.locator("#log-text")).to_be_visible()
        live.keyboard.press("Tab")
        expect(live.locator("#log-text")).to_be_focused()
        live.keyboard.insert_text(VLLM)
        expect(live.locator("#status")).to_contain_text(
            "2 of 2 numbers agree.", timeout=EXPLAINED
        )

    def test_from_the_answer(self, live: Page) -> None:
        go(live, **SCENARIO, gpu="l40s", engine="vllm")
        live.locator("#log-box").evaluate("(node) => { node.open = false; }")
        live.locator(".engine-lines .link-button").last.click()
        expect(live.locator("#log-text")).to_be_focused()
        expect(live.locator("#log-box")).to_be_in_viewport()

    @pytest.mark.parametrize(
        ("text", "view"),
        [
            ("", {}),
            (VLLM, {"lang": "ko"}),
            (FP8, {"theme": "dark"}),
            (FP8, {"lang": "ko", "theme": "dark"}),
            (SGLANG, {}),
            (OUT_OF_MEMORY, {}),
            ("hello", {"theme": "dark"}),
            (observed("vl-043")["text"], {}),
        ],
        ids=["empty", "agrees", "differs", "korean", "units", "memory", "unreadable",
             "unexplained"],
    )  # fmt: skip
    @pytest.mark.parametrize("width", [1280, 360])
    def test_axe_and_width(
        self, live: Page, text: str, view: dict[str, str], width: int
    ) -> None:
        live.set_viewport_size({"width": width, "height": 800})
        go(live, **SCENARIO, **view)
        expect_answer(live, **SCENARIO)
        open_log(live)
        if text:
            paste(live, text)
        live.evaluate(
            "document.querySelectorAll('.log details').forEach(d => d.open = true)"
        )
        assert violations(live) == []
        assert live.evaluate("document.documentElement.scrollWidth") <= width

    def test_korean(self, live: Page) -> None:
        go(live, **SCENARIO, lang="ko")
        paste(live, FP8)
        first = explained(FP8)["comparisons"][0]["causes"][0]
        assert cause_text(first, "ko") in summary(live)
        assert "로그 값" in (live.locator(".log-table").text_content() or "")
