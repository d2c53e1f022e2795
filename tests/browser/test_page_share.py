"""Taking the scenario along: link, command, Python, JSON, and the page as a file."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_support import START_LIMIT, OpenPage, estimated_bytes, expect_total
from page_support import OPENING_PLAN, expect_answer, go, live_page
from playwright.sync_api import Browser, Page, expect

from kvcore import api

SCENARIO = {
    "model": "deepseek-v3.2",
    "tokens": 70_001,
    "sequences": 3,
    "kv_format": "fp8",
    "indexer_format": "fp16",
    "draft": True,
}
PLANS: tuple[dict[str, object], ...] = (
    {**OPENING_PLAN},
    {
        "model": "qwen3-30b-a3b",
        "gpu": "h200-sxm",
        "gpus": 8,
        "engine": "vllm",
        "context": 40_960,
        "concurrency": 700,
        "memory_fraction": 0.95,
    },
    {
        "model": "llama-3.1-8b-instruct",
        "gpu": "rtx-3090",
        "engine": "llama_cpp",
        "context": 16_384,
        "concurrency": 5,
        "kv_format": "q8_0",
        "weight_format": "q4_k_m",
    },
    {
        "model": "gemma-3-27b-it",
        "gpu": "other",
        "memory_mib": 49_000,
        "gpus": 2,
        "engine": "sglang",
        "context": 8_192,
        "concurrency": 3,
        "reserve_bytes": 3 * 2**30,
    },
)


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    permissions = ["clipboard-read", "clipboard-write"]
    with live_page(browser, site, permissions=permissions) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared, **{**SCENARIO, "draft": 1})
    expect_answer(shared, **SCENARIO)
    return shared


def copied(page: Page, tab: str) -> str:
    """What the tab's copy button puts on the clipboard."""
    page.locator(f"#tab-{tab}").click()
    page.locator(f"#copy-{tab}").click()
    expect(page.locator(f"#copy-{tab}")).to_have_text("Copied")
    text: str = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("#share-text").input_value()
    return text


def run(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


class TestCopies:
    def test_link(self, live: Page) -> None:
        link = copied(live, "link")
        assert link.endswith(
            "#v=1&draft=1&indexer_format=fp16&kv_format=fp8"
            "&model=deepseek-v3.2&sequences=3&tokens=70001"
        )

    def test_command_prints_the_same(self, live: Page) -> None:
        command = copied(live, "cli")
        words = shlex.split(command)
        assert words[0] == "python3"
        printed = json.loads(run([*words[1:], "--json"]))
        assert printed == api.call("estimate", SCENARIO)

    def test_python_prints_the_same(self, live: Page) -> None:
        printed = run(["-c", copied(live, "python")])
        assert f"{int(printed):,}" == estimated_bytes(**SCENARIO)

    def test_json_is_what_kvcore_answered(self, live: Page) -> None:
        assert json.loads(copied(live, "json")) == api.call("estimate", SCENARIO)

    @pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan["model"]))
    def test_command_prints_the_plan_of_the_page(
        self, live: Page, plan: dict[str, object]
    ) -> None:
        names = {"context": "tokens", "concurrency": "sequences"}
        go(live, **{names.get(name, name): value for name, value in plan.items()})
        expect(live.locator(".verdict:not(.old):not(.waiting)")).to_have_count(1)
        words = shlex.split(copied(live, "cli"))
        assert words[:4] == ["python3", "-m", "kvcore", "plan"]
        printed = json.loads(run([*words[1:], "--json"]))
        assert printed == api.call("plan", plan)
        assert printed == json.loads(copied(live, "json"))
        expect(live.locator(".inverse button").first).to_have_text(
            f"{printed['max_requests']:,}"
        )
        expect(live.locator(".verdict")).to_have_class(
            re.compile(f"^verdict {printed['verdict']}")
        )
        python = run(["-c", copied(live, "python")])
        assert python.strip() == printed["verdict"]

    def test_custom_model(self, live: Page, tmp_path: Path) -> None:
        config = {
            "model_type": "llama",
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "hidden_size": 256,
        }
        text = json.dumps(config)
        go(live, tokens=1000)
        live.locator("#paste-box summary").click()
        live.locator("#paste").fill(text)
        total = api.call("estimate", {"model_text": text, "tokens": 1000})[
            "total_bytes"
        ]
        expect_total(live, f"{total:,}")
        (tmp_path / "config.json").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", copied(live, "python")],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        assert int(done.stdout) == total
        assert " config.json " in copied(live, "cli")


class TestRefusedClipboard:
    def test_text_is_selected_instead(self, open_page: OpenPage, site: str) -> None:
        page = open_page("about:blank")
        page.add_init_script(
            """Object.defineProperty(navigator, "clipboard", {value: undefined});
            document.execCommand = () => false;"""
        )
        page.goto(site)
        page.locator("#copy-link").click()
        expect(page.get_by_text("did not allow copying")).to_be_visible()
        selected = page.evaluate("getSelection().toString()")
        assert selected == page.locator("#share-text").input_value()


class TestSave:
    def test_saved_file_opens_with_the_scenario(
        self, live: Page, open_page: OpenPage, tmp_path: Path
    ) -> None:
        with live.expect_download() as download:
            live.locator("#save").click()
        name = download.value.suggested_filename
        assert name == "kvcore-deepseek-v3.2-70001x3.html"
        saved = tmp_path / name
        download.value.save_as(saved)
        copy = open_page(saved.as_uri(), offline=True)
        expect_total(copy, estimated_bytes(**SCENARIO), START_LIMIT)
        expect(copy.locator("#save")).to_have_count(0)
        expect(copy.locator("footer")).to_contain_text("saved copy")
        copy.locator("#tokens").fill("70002")
        expect_total(
            copy, estimated_bytes(**{**SCENARIO, "tokens": 70_002}), START_LIMIT
        )


class TestPrint:
    def test_paper_holds_the_answer_and_no_controls(self, live: Page) -> None:
        live.emulate_media(media="print")
        for selector in (".numbers", "svg.chart", ".formula", ".permalink"):
            expect(live.locator(selector).first).to_be_visible()
        for selector in (".inputs", ".share", ".top-controls"):
            expect(live.locator(selector)).to_be_hidden()
        expect(live.locator(".permalink")).to_contain_text("tokens=70001")
        live.emulate_media(media="screen")
