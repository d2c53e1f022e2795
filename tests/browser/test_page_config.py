"""A model of one's own: pasted, chosen, dropped, damaged, shared by link."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_support import OpenPage, expect_total
from page_support import (
    DEFAULT_TOTAL,
    choose_model,
    expect_answer,
    expect_message,
    expect_short_link,
    fragment,
    go,
    live_page,
)
from playwright.sync_api import Browser, Page, expect

from kvcore import api

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "hidden_size": 1024,
    "head_dim": 96,
    "max_position_embeddings": 65536,
    "torch_dtype": "bfloat16",
}
TEXT = json.dumps(CONFIG, indent=2)
DROP = """async (text) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], "config.json", {type: "application/json"}));
  for (const name of ["dragover", "drop"]) {
    window.dispatchEvent(new DragEvent(name, {
      dataTransfer: transfer, bubbles: true, cancelable: true,
    }));
    await new Promise(requestAnimationFrame);
    const zone = document.querySelector(".drop");
    if (name === "dragover") window.sawDropZone = !zone.hidden;
  }
}"""


def total(text: str = TEXT, **params: object) -> str:
    asked = {"model_text": text, "tokens": 131_072, **params}
    return f"{api.call('estimate', asked)['total_bytes']:,}"


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    expect(shared.locator("#paste")).to_have_value("")
    box = shared.locator("#paste-box")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    return shared


class TestPaste:
    def test_pasted_text_answers(self, live: Page) -> None:
        live.locator("#paste").fill(TEXT)
        expect_total(live, total())
        expect(live.locator("#paste-box summary")).to_contain_text("in use")
        expect(live.locator(".layers")).to_contain_text("head_dim 96")

    def test_pasted_into_the_model_field(self, live: Page) -> None:
        live.locator("#model").fill(TEXT)
        expect_total(live, total())
        expect(live.locator("#paste")).to_have_value(TEXT.replace("\n", " "))

    def test_infinity_and_nan_are_read(self, live: Page) -> None:
        text = TEXT.replace("{", '{"time_step_limit": [0.0, Infinity], "x": NaN,', 1)
        live.locator("#paste").fill(text)
        expect_total(live, total(text))

    def test_names_from_a_file_are_text(self, live: Page) -> None:
        text = json.dumps({**CONFIG, "model_type": "<img src=x onerror=alert(1)>"})
        live.locator("#paste").fill(text)
        expect_message(live, "model", "<img src=x onerror=alert(1)>")
        expect(live.locator("#app img")).to_have_count(0)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('{"model_type": "llama",', "This is not JSON: line 1"),
            ("not json at all", "This is not JSON"),
            ('{"model_type": "llama"}', "The config has no"),
            (TEXT.replace(": 10,", ': "ten",'), "num_hidden_layers"),
            ("[1, 2]", ""),
        ],
    )
    def test_bad_text_keeps_scenario_and_text(
        self, live: Page, text: str, words: str
    ) -> None:
        live.locator("#paste").fill(text)
        expect(live.locator("#paste")).to_have_attribute("aria-invalid", "true")
        expect_message(live, "paste", words)
        expect(live.locator("#paste")).to_have_value(text)
        expect_answer(live, **DEFAULT_TOTAL)
        assert "cfg" not in fragment(live)
        live.locator("#tokens").fill("64k")
        expect_answer(live, model=DEFAULT_TOTAL["model"], tokens=65_536)
        expect(live.locator("#paste")).to_have_value(text)

    def test_mended_text_answers(self, live: Page) -> None:
        live.locator("#paste").fill(TEXT[:-1])
        expect_message(live, "paste", "This is not JSON")
        live.locator("#paste").fill(TEXT)
        expect_total(live, total())
        expect(live.locator("#paste")).to_have_attribute("aria-invalid", "false")

    def test_format_that_does_not_fit_the_pasted_model(self, live: Page) -> None:
        live.locator("#kv_format").select_option("int4_g64")
        expect_answer(live, **DEFAULT_TOTAL, kv_format="int4_g64")
        live.locator("#paste").fill(TEXT)
        expect_message(live, "kv_format", "blocks of 64 elements")
        live.locator("#kv_format").select_option("")
        expect_total(live, total())

    def test_back_to_the_catalog(self, live: Page) -> None:
        live.locator("#paste").fill(TEXT)
        expect_total(live, total())
        live.get_by_role("button", name="Clear").click()
        expect_answer(live, **DEFAULT_TOTAL)
        live.locator("#paste").fill(TEXT)
        expect_total(live, total())
        choose_model(live, "gpt-oss-20b")
        expect_answer(live, model="gpt-oss-20b", tokens=131_072)


class TestFiles:
    def test_dropped_anywhere(self, live: Page) -> None:
        live.evaluate(DROP, TEXT)
        expect_total(live, total())
        assert live.evaluate("window.sawDropZone")
        expect(live.locator(".drop")).to_be_hidden()
        expect(live.locator("#paste")).to_have_value(TEXT)

    def test_dropped_nonsense(self, live: Page) -> None:
        live.evaluate(DROP, "\x00\x01binary")
        expect(live.locator("#model-files")).to_contain_text("This is not JSON")
        expect_answer(live, **DEFAULT_TOTAL)

    def test_chosen(self, live: Page, tmp_path: Path) -> None:
        file = tmp_path / "config.json"
        file.write_text(TEXT, encoding="utf-8")
        live.locator("#config-file").set_input_files(file)
        expect_total(live, total())

    def test_too_large_to_be_a_config(self, live: Page, tmp_path: Path) -> None:
        file = tmp_path / "model.json"
        file.write_bytes(b" " * (17 * 2**20))
        live.locator("#config-file").set_input_files(file)
        expect(live.locator("#model-files")).to_contain_text("This is 17.0 MiB")
        expect_answer(live, **DEFAULT_TOTAL)


class TestLink:
    def test_round_trip(self, live: Page, open_page: OpenPage, site: str) -> None:
        live.locator("#paste").fill(TEXT)
        live.locator("#sequences").fill("3")
        expect_total(live, total(sequences=3))
        assert set(fragment(live)) == {"v", "cfg", "sequences"}
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        expect_total(other, total(sequences=3), timeout=90_000)
        assert json.loads(other.locator("#paste").input_value()) == CONFIG

    def test_fields_nobody_reads_are_left_out(self, live: Page) -> None:
        noise = {f"unused_{n}": hash(("seed", n)) for n in range(900)}
        text = json.dumps({**CONFIG, **noise})
        live.locator("#paste").fill(text)
        expect_total(live, total(text))
        expect_short_link(live)
        expect(live.locator("#paste")).to_have_value(text)

    def test_too_long_for_a_link(self, live: Page) -> None:
        chance = random.Random(1)
        classes = ["LlamaForCausalLM", f"{chance.getrandbits(40_000):x}"]
        text = json.dumps({**CONFIG, "architectures": classes})
        live.locator("#paste").fill(text)
        expect_total(live, total(text))
        assert "cfg" not in fragment(live)
        expect(live.locator("#panel")).to_contain_text("too long for a link")
        meta = live.locator("meta[name=kvcore-state]").get_attribute("content")
        assert meta is not None
        assert "cfg=" in meta

    def test_damaged(self, live: Page) -> None:
        go(live, cfg="AAAA", sequences=2)
        expect(live.locator(".notices")).to_contain_text("config.json is damaged")
        expect_answer(live, **DEFAULT_TOTAL, sequences=2)
