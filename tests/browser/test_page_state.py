"""The scenario in the address, the history, the document and the preferences."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser_support import START_LIMIT, OpenPage, estimated_bytes, expect_total
from page_support import (
    DEFAULT_TOTAL,
    OPENING,
    choose_model,
    expect_answer,
    fragment,
    go,
    live_page,
)
from playwright.sync_api import Browser, Page, expect

from build_steps.page import DEFAULT_MODEL


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    return shared


class TestAddress:
    def test_defaults_are_left_out(self, live: Page) -> None:
        live.locator("#tokens").fill("64k")
        expect_answer(live, model=DEFAULT_MODEL, tokens=65_536)
        assert fragment(live) == {"v": "1", "tokens": "65536"}
        live.locator("#tokens").fill("128k")
        assert fragment(live) == {"v": "1"}

    def test_sorted_and_versioned(self, live: Page) -> None:
        choose_model(live, "qwen3.5-27b")
        live.locator("#sequences").fill("5")
        live.locator("#kv_format").select_option("fp8")
        expect_answer(
            live, model="qwen3.5-27b", tokens=131_072, sequences=5, kv_format="fp8"
        )
        names = list(fragment(live))
        assert names == ["v", "kv_format", "model", "sequences"]

    def test_round_trip(self, live: Page, open_page: OpenPage, site: str) -> None:
        params = {
            "model": "deepseek-v3.2",
            "tokens": 70_000,
            "sequences": 7,
            "kv_format": "fp8",
            "indexer_format": "fp16",
            "draft": True,
        }
        go(live, **{**params, "draft": 1})
        expect_answer(live, **params)
        fragment(live)
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        expect_total(other, estimated_bytes(**params), START_LIMIT)
        assert fragment(other) == fragment(live)

    def test_round_trip_with_gpus(
        self, live: Page, open_page: OpenPage, site: str
    ) -> None:
        settings = {
            "model": "qwen3-32b",
            "gpu": "rtx-4090",
            "gpus": "4",
            "tp": "2",
            "pp": "2",
            "engine": "vllm",
            "memory_fraction": "0.85",
            "weight_format": "fp8",
            "reserve_bytes": "2000000000",
            "sequences": "3",
            "tokens": "20000",
        }
        go(live, **settings)
        expect(live.locator(".verdict:not(.old):not(.waiting)")).to_have_count(1)
        assert fragment(live) == {"v": "1", **settings}
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        verdict = live.locator(".verdict").inner_text()
        expect(other.locator(".verdict-why")).to_have_text(
            live.locator(".verdict-why").inner_text(), timeout=START_LIMIT
        )
        assert other.locator(".verdict").inner_text() == verdict
        assert fragment(other) == fragment(live)

    def test_links_from_before_gpus_keep_their_numbers(self, live: Page) -> None:
        go(live, model="llama-3.1-8b-instruct", sequences=4)
        expect_answer(live, model="llama-3.1-8b-instruct", tokens=131_072, sequences=4)
        expect(live.locator(".verdict")).to_have_count(0)
        expect(live.locator("#gpu")).to_have_value("No GPU: just the cache")
        expect(live.locator("#gpus")).to_have_count(0)

    def test_written_by_hand(self, live: Page) -> None:
        go(live, tokens="256k", model="meta-llama/Llama-3.1-8B")
        expect_answer(live, model="meta-llama/Llama-3.1-8B", tokens=262_144)

    def test_what_a_link_gets_wrong_is_named(self, live: Page) -> None:
        go(live, tokens="many", colour="red", sequences=2)
        notices = live.locator(".notices")
        expect(notices).to_contain_text("tokens “many” can’t be used")
        expect(notices).to_contain_text("“colour” is not known here")
        expect_answer(live, **DEFAULT_TOTAL, sequences=2)
        live.get_by_role("button", name="Dismiss").click()
        expect(live.locator(".notices")).to_have_count(0)

    def test_what_is_long_and_wrong_is_named_in_short(self, live: Page) -> None:
        go(live, tokens="many" * 5_000)
        notices = live.locator(".notices")
        expect(notices).to_contain_text("can’t be used")
        assert len(notices.inner_text()) < 400

    def test_unknown_model_offers_close_ones(self, live: Page) -> None:
        go(live, model="deepseek-v33")
        expect(live.locator(".notices")).to_contain_text("“deepseek-v33” is not in")
        expect_answer(live, **DEFAULT_TOTAL)

    def test_newer_links_say_so(self, live: Page) -> None:
        go(live, v=9, tokens=4096)
        expect(live.locator(".notices")).to_contain_text("another version (v=9)")
        expect_answer(live, model=DEFAULT_MODEL, tokens=4096)

    def test_markup_in_a_link_is_text(self, live: Page) -> None:
        go(live, model="%3Cimg%20src%3Dx%3E")
        expect(live.locator(".notices")).to_contain_text("<img src=x>")
        expect(live.locator("#app img")).to_have_count(0)

    def test_title_and_mirror(self, live: Page) -> None:
        go(live, model="deepseek-v3", tokens=32_768, sequences=8)
        expect_answer(live, model="deepseek-v3", tokens=32_768, sequences=8)
        expect(live).to_have_title("DeepSeek-V3 · BF16 KV · 32K × 8 — KV cache")
        meta = live.locator("meta[name=kvcore-state]")
        expect(meta).to_have_attribute(
            "content", "v=1&model=deepseek-v3&sequences=8&tokens=32768"
        )
        for field, value in (("tokens", "32,768"), ("sequences", "8")):
            expect(live.locator(f"#{field}")).to_have_attribute("value", value)


class TestHistory:
    def test_back_undoes_choices_not_keystrokes(self, live: Page) -> None:
        choose_model(live, "gpt-oss-20b")
        expect_answer(live, model="gpt-oss-20b", tokens=131_072)
        live.locator("#tokens").press_sequentially("", delay=0)
        live.locator("#tokens").fill("5000")
        expect_answer(live, model="gpt-oss-20b", tokens=5000)
        live.get_by_role("button", name="32K", exact=True).click()
        expect_answer(live, model="gpt-oss-20b", tokens=32_768)
        live.go_back()
        expect_answer(live, model="gpt-oss-20b", tokens=5000)
        expect(live.locator("#tokens")).to_have_value("5,000")
        live.go_back()
        expect_answer(live, **DEFAULT_TOTAL)
        live.go_forward()
        expect_answer(live, model="gpt-oss-20b", tokens=5000)

    def test_reset(self, live: Page) -> None:
        go(live, model="gpt-oss-20b", tokens=5000, kv_format="fp8")
        expect_answer(live, model="gpt-oss-20b", tokens=5000, kv_format="fp8")
        live.get_by_role("button", name="Reset all").click()
        expect_answer(live, **OPENING)
        assert fragment(live) == {
            "v": "1",
            "engine": "vllm",
            "gpu": "h100-sxm",
            "gpus": "8",
            "sequences": "32",
            "tokens": "32768",
        }
        live.go_back()
        expect_answer(live, model="gpt-oss-20b", tokens=5000, kv_format="fp8")


class TestPreferences:
    def test_language(self, live: Page) -> None:
        live.locator("#language").select_option("ko")
        expect(live.locator("html")).to_have_attribute("lang", "ko")
        expect(live.get_by_role("heading", level=1)).to_contain_text("KV cache 계산기")
        expect(live.locator(".sentence")).to_contain_text("시퀀스 1개에 40.0 GiB입니다")
        live.locator("#tokens").fill("1M")
        expect(live.locator("#tokens-messages")).to_contain_text(
            "학습 길이 131,072토큰"
        )
        assert fragment(live)["lang"] == "ko"
        live.locator("#language").select_option("en")
        expect(live.locator("html")).to_have_attribute("lang", "en")
        expect(live.locator(".sentence")).to_contain_text("1,048,576 tokens in BF16")

    def test_reader_of_korean_is_met_in_korean(
        self, open_page: OpenPage, site: str
    ) -> None:
        page = open_page(site, locale="ko-KR")
        expect(page.locator("html")).to_have_attribute("lang", "ko")
        expect(page.locator("label[for=tokens]")).to_have_text("시퀀스당 토큰 수")

    def test_theme_is_kept(self, live: Page) -> None:
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        light = live.evaluate(ground)
        live.get_by_role("button", name="Dark", exact=True).click()
        expect(live.locator("html")).to_have_attribute("data-theme", "dark")
        assert live.evaluate(ground) != light
        assert live.evaluate("localStorage.getItem('kvcore-theme')") == "dark"
        live.get_by_role("button", name="Auto", exact=True).click()
        assert live.evaluate("localStorage.getItem('kvcore-theme')") is None
        assert live.evaluate(ground) == light

    def test_dark_by_the_system(self, live: Page) -> None:
        live.emulate_media(color_scheme="dark")
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        assert live.evaluate(ground) == "rgb(15, 18, 24)"
        live.emulate_media(color_scheme="light")
