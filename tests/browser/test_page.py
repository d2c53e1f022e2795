"""Typing, choosing and reading: the inputs and the answer of the live page."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from browser_support import estimated_bytes, expect_total
from page_support import (
    DEFAULT_TOTAL,
    choose_model,
    expect_answer,
    expect_message,
    fragment,
    go,
    live_page,
    message,
    set_open,
)
from playwright.sync_api import Browser, Page, expect

from build_steps.page import DEFAULT_MODEL
from kvcore import api

OPTIONS = "#model-list [role=option]"


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    return shared


class TestNumbers:
    @pytest.mark.parametrize(
        ("typed", "tokens"),
        [
            ("65536", 65_536),
            ("65,536", 65_536),
            ("64k", 65_536),
            ("64 K", 65_536),
            ("1M", 1_048_576),
            ("1e6", 1_000_000),
            ("1.5k", 1_536),
        ],
    )
    def test_count_as_people_write_it(
        self, live: Page, typed: str, tokens: int
    ) -> None:
        live.locator("#tokens").fill(typed)
        expect_answer(live, model=DEFAULT_MODEL, tokens=tokens)
        if typed.replace(",", "") != str(tokens):
            expect(live.locator("#tokens-hint")).to_have_text(f"= {tokens:,} tokens")
        live.locator("#tokens").blur()
        expect(live.locator("#tokens")).to_have_value(f"{tokens:,}")

    @pytest.mark.parametrize("typed", ["", "12x", "-5", "1,5", "many"])
    def test_what_is_no_count_keeps_the_last_answer(
        self, live: Page, typed: str
    ) -> None:
        live.locator("#tokens").fill(typed)
        expect_message(live, "tokens", "whole number")
        expect(live.locator("#tokens")).to_have_attribute("aria-invalid", "true")
        expect_answer(live, **DEFAULT_TOTAL)
        expect(live.locator(".state-line")).to_contain_text("last valid inputs")
        live.locator("#tokens").blur()
        expect(live.locator("#tokens")).to_have_value(typed)

    def test_out_of_range_is_said_beside_the_field(self, live: Page) -> None:
        live.locator("#sequences").fill("0")
        expect_message(live, "sequences", "sequences is 0")
        expect_answer(live, **DEFAULT_TOTAL)

    def test_chips(self, live: Page) -> None:
        live.get_by_role("button", name="32K", exact=True).click()
        expect_answer(live, model=DEFAULT_MODEL, tokens=32_768)
        chip = live.get_by_role("group", name="Common numbers").get_by_text("8")
        chip.first.click()
        expect_answer(live, model=DEFAULT_MODEL, tokens=32_768, sequences=8)
        expect(chip.first).to_have_attribute("aria-pressed", "true")
        expect(live.locator(".number.sequence .exact")).to_contain_text(
            estimated_bytes(model=DEFAULT_MODEL, tokens=32_768)
        )

    def test_units(self, live: Page) -> None:
        total = live.locator(".number.total dd")
        expect(total).to_contain_text("40.0 GiB")
        live.get_by_role("button", name="GB", exact=True).click()
        expect(total).to_contain_text("42.9 GB")
        expect_answer(live, **DEFAULT_TOTAL)


class TestModelField:
    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("lama 3.1 70b", "Llama-3.1-70B"),
            ("deepsek v3", "DeepSeek-V3"),
            ("mixtrla", "Mixtral-8x7B-v0.1"),
            ("gpt oss 120", "gpt-oss-120b"),
            ("qwen3 32b", "Qwen3-32B"),
            ("deepseek-ai/DeepSeek-V3", "DeepSeek-V3"),
        ],
    )
    def test_finds_despite_typing_errors(
        self, live: Page, query: str, name: str
    ) -> None:
        live.locator("#model").fill(query)
        active = live.locator("#model-list [aria-selected=true] .option-name")
        expect(active).to_have_text(name)

    def test_pick_with_the_keyboard(self, live: Page) -> None:
        model = live.locator("#model")
        model.fill("gemma 3")
        expect(model).to_have_attribute("aria-expanded", "true")
        before = model.get_attribute("aria-activedescendant")
        model.press("ArrowDown")
        after = model.get_attribute("aria-activedescendant")
        assert before != after
        expect(live.locator(f"#{after}")).to_have_attribute("aria-selected", "true")
        model.press("ArrowUp")
        name = live.locator(f"#{before} .option-name").inner_text()
        model.press("Enter")
        expect(model).to_have_attribute("aria-expanded", "false")
        expect(model).to_have_value(name)
        expect(live.locator(".sentence")).to_contain_text(name)

    def test_grouped_by_family_with_everything(self, live: Page) -> None:
        live.locator("#model").click()
        expect(live.locator(OPTIONS)).to_have_count(
            len(api.call("models", {})["models"])
        )
        families = live.locator(".option-family").all_text_contents()
        assert len(families) == len(set(families)) > 30
        live.locator("#model").press("Escape")
        expect(live.locator(OPTIONS)).to_have_count(0)

    def test_escape_and_leaving_keep_the_model(self, live: Page) -> None:
        model = live.locator("#model")
        name = model.input_value()
        for leave in ("Escape", "Tab"):
            model.fill("gemma")
            model.press(leave)
            expect(model).to_have_value(name)
        expect_answer(live, **DEFAULT_TOTAL)

    def test_pick_with_the_pointer(self, live: Page) -> None:
        live.locator("#model").fill("gpt-oss-20b")
        live.locator(OPTIONS).first.click()
        expect_answer(live, model="gpt-oss-20b", tokens=131_072)

    def test_no_match_points_to_the_config(self, live: Page) -> None:
        live.locator("#model").fill("zzzzqqq")
        expect(live.get_by_text("No model matches “zzzzqqq”")).to_be_visible()
        live.locator("#model").press("Enter")
        expect_answer(live, **DEFAULT_TOTAL)


class TestAnswer:
    def test_sentence_names_the_scenario(self, live: Page) -> None:
        go(live, model="deepseek-v3", tokens=32768, sequences=4, kv_format="fp8")
        expect_answer(
            live, model="deepseek-v3", tokens=32768, sequences=4, kv_format="fp8"
        )
        text = live.locator(".sentence").inner_text()
        assert re.search(r"DeepSeek-V3 needs .* 4 sequences of 32,768 tokens", text)
        assert "FP8" in text
        expect(live.locator("#status")).to_have_text(text)

    def test_components_add_up_and_are_labelled(self, live: Page) -> None:
        params = {"model": "qwen3.5-27b", "tokens": 131_072}
        go(live, model="qwen3.5-27b")
        expect_answer(live, **params)
        parts = api.call("estimate", params)["components"]
        present = [name for name, amount in parts.items() if amount]
        assert present == ["kv", "state"]
        expect(live.locator(".answer .legend li")).to_have_count(len(present))
        expect(live.locator(".answer .legend")).to_contain_text("Recurrent state")
        label = live.locator(".answer .strip").get_attribute("aria-label")
        assert label is not None
        assert "Recurrent state 147 MiB" in label

    def test_grouped_queries_against_all_heads(self, live: Page) -> None:
        expect(live.locator(".comparison")).to_contain_text(
            "GQA keeps 1/8 of what MHA would: 320 KiB instead of 2.50 MiB per token."
        )

    def test_formula_twice_with_its_source(self, live: Page) -> None:
        formula = live.locator(".formula").first
        expect(formula.locator(".symbolic")).to_contain_text("num_kv_heads × tokens")
        expect(formula.locator(".numeric")).to_contain_text("80 × 2 × 8 × 131,072")
        expect(formula.locator(".formula-result")).to_contain_text("42,949,672,960")
        expect(formula.locator(".source")).to_contain_text("arXiv 2305.13245")

    def test_formulas_evaluate_to_what_they_show(self, live: Page) -> None:
        go(live, model="deepseek-v4-flash", kv_format="fp8", indexer_format="fp4")
        expect_answer(
            live,
            model="deepseek-v4-flash",
            tokens=131_072,
            kv_format="fp8",
            indexer_format="fp4",
        )
        lines = live.locator(".formula .numeric").all_inner_texts()
        results = live.locator(".formula:not(.formula-sum) .formula-result b")
        shown = [int(re.sub(r"\D", "", text)) for text in results.all_inner_texts()]
        assert [evaluate(line) for line in lines] == shown
        assert len(lines) > 3

    def test_layers(self, live: Page) -> None:
        go(live, model="gemma-3-27b-it")
        table = live.locator(".layers tbody")
        expect(table).to_contain_text("sliding window")
        counts = live.locator(".layers .count-cell").all_inner_texts()
        assert sum(int(text.split()[0]) for text in counts) == 62

    def test_source_of_the_config(self, live: Page) -> None:
        link = live.locator(".why .source a").first
        expect(link).to_have_attribute("rel", "noopener")
        assert (link.get_attribute("href") or "").startswith("https://huggingface.co/")

    def test_curve_states_its_finding_and_its_data(self, live: Page) -> None:
        caption = live.locator("#curve-caption")
        expect(caption).to_contain_text("in step with the context")
        chart = live.locator("svg.chart")
        expect(chart).to_have_attribute("aria-labelledby", "curve-caption")
        expect(chart).to_contain_text("trained to 131,072")
        expect(chart).to_contain_text("40.0 GiB")
        live.locator(".chart-data summary").click()
        row = live.locator(".chart-data tr", has_text="65,536").first
        expect(row).to_contain_text(estimated_bytes(model=DEFAULT_MODEL, tokens=65_536))
        live.locator(".chart-data summary").click()

    def test_curve_follows_the_model(self, live: Page) -> None:
        go(live, model="gemma-3-27b-it")
        expect(live.locator("#curve-caption")).to_contain_text("the cache only")

    def test_nothing_is_styled_inline(self, live: Page) -> None:
        live.locator("svg.chart").hover(position={"x": 300, "y": 100})
        expect(live.locator(".chart-tip")).to_contain_text("tokens")
        assert live.locator("#app [style], #app style").count() == 0


def evaluate(line: str) -> float:
    """Computes a shown line; independent of how kvcore computed it."""
    python = line.replace("×", "*").replace("−", "-")
    python = re.sub(r"(?<=\d),(?=\d{3})", "", python)
    names = {"__builtins__": {}, "min": min, "floor": int}
    result: float = eval(python, names)
    return result


class TestMore:
    FIELDS = (
        "indexer_format",
        "state_format",
        "checkpoint_interval",
        "draft",
        "encoder_tokens",
    )

    @pytest.mark.parametrize(
        ("model", "shown"),
        [
            (DEFAULT_MODEL, set()),
            ("deepseek-v3.2", {"indexer_format", "draft"}),
            ("qwen3.5-27b", {"state_format", "checkpoint_interval", "draft"}),
            ("t5-small", {"encoder_tokens"}),
        ],
    )
    def test_only_what_applies(self, live: Page, model: str, shown: set[str]) -> None:
        go(live, model=model)
        expect_answer(live, model=model, tokens=131_072)
        found = {f for f in self.FIELDS if live.locator(f"#{f}").count()}
        assert found == shown

    def test_each_setting_counts(self, live: Page) -> None:
        go(live, model="qwen3.5-27b", draft=1)
        params = {"model": "qwen3.5-27b", "tokens": 131_072}
        expect_answer(live, **params, draft=True)
        live.locator("#draft").uncheck()
        expect_answer(live, **params)
        live.locator("#state_format").select_option("bf16")
        expect_answer(live, **params, state_format="bf16")
        live.locator("#checkpoint_interval").fill("4k")
        expect_answer(live, **params, state_format="bf16", checkpoint_interval=4096)
        live.locator("#checkpoint_interval").fill("")
        expect_answer(live, **params, state_format="bf16")
        live.locator("#no_state").uncheck()
        expect_answer(live, **params, no_state=True)
        expect_message(live, "no_state", "left out of the total")

    def test_encoder_tokens(self, live: Page) -> None:
        go(live, model="t5-small", encoder_tokens=77)
        expect_answer(live, model="t5-small", tokens=131_072, encoder_tokens=77)


class TestEngine:
    """What an engine allocates, beside the logical bytes."""

    PARAMS = {"model": "gemma-3-27b-it", "tokens": 131_072, "engine": "vllm"}  # noqa: RUF012

    def test_allocated_beside_logical(self, live: Page) -> None:
        go(live, model="gemma-3-27b-it", engine="vllm")
        expect_answer(live, model="gemma-3-27b-it", tokens=131_072)
        allocated = api.call("estimate", self.PARAMS)["allocated"]
        rows = live.locator(".answer .bar-row")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("Logical")
        expect(rows.nth(1)).to_contain_text(f"vLLM {allocated['engine_version']}")
        gib = allocated["bytes_per_rank"] / 2**30
        expect(rows.nth(1)).to_contain_text(f"{gib:.1f} GiB")
        expect(live.locator(".bar-items")).to_contain_text("window reserve")
        expect(live.locator(".chart-key")).to_contain_text("Allocated by vLLM")
        expect(live.locator(".chart-allocated").first).to_be_visible()

    def test_version_and_its_own_settings(self, live: Page) -> None:
        go(live, model="gemma-3-27b-it")
        set_open(live, "rules", True)
        live.locator("#engine").select_option("vllm")
        live.locator("#engine_version").select_option("0.11.2")
        live.locator(".engine-options > summary").click()
        live.locator("#option-disable_hybrid_kv_cache_manager").select_option("true")
        live.locator("#option-max_num_batched_tokens").fill("4096")
        allocated = api.call(
            "estimate",
            {
                **self.PARAMS,
                "engine_version": "0.11.2",
                "engine_options": {
                    "disable_hybrid_kv_cache_manager": True,
                    "max_num_batched_tokens": 4096,
                },
            },
        )["allocated"]
        row = live.locator(".answer .bar-row").nth(1)
        expect(row).to_contain_text("vLLM 0.11.2")
        expect(row).to_contain_text(f"{allocated['bytes_per_rank'] / 2**30:.1f} GiB")
        settings = fragment(live)
        assert settings["option.max_num_batched_tokens"] == "4096"
        live.locator("#option-max_num_batched_tokens").fill("many")
        expect(live.locator("#option-max_num_batched_tokens-messages")).to_contain_text(
            "max_num_batched_tokens is 'many'"
        )
        live.locator("#engine").select_option("")
        expect(live.locator(".answer .bar-row")).to_have_count(0)

    def test_words_hidden_in_a_closed_part_are_in_the_notices(self, live: Page) -> None:
        go(live, model="qwen3.5-27b", no_state=1)
        set_open(live, "more", True)
        beside = live.locator("#no_state-messages")
        expect(beside).to_contain_text("left out of the total")
        expect(live.locator(".notices")).to_have_count(0)
        set_open(live, "more", False)
        expect(live.locator(".notices")).to_contain_text("left out of the total")

    def test_no_such_engine(self, live: Page) -> None:
        go(live, engine="warp")
        set_open(live, "rules", True)
        expect_message(live, "engine", "No engine or version is called “warp”")
        expect_answer(live, **DEFAULT_TOTAL)


class TestWords:
    def test_beyond_the_trained_context(self, live: Page) -> None:
        live.locator("#tokens").fill("1M")
        expect_message(live, "tokens", "1,048,576 tokens is beyond the 131,072")
        expect(live.locator("#tokens")).to_have_attribute("aria-invalid", "false")

    def test_format_that_does_not_divide_a_row(self, live: Page) -> None:
        go(live, model="phi-2", kv_format="q8_0")
        expect_message(live, "kv_format", "blocks of 32 elements")
        expect(live.locator("#kv_format")).to_have_attribute("aria-invalid", "true")
        live.locator("#kv_format").select_option("fp8")
        expect_answer(live, model="phi-2", tokens=131_072, kv_format="fp8")
        assert message(live, "kv_format") == ""

    def test_format_of_no_such_name(self, live: Page) -> None:
        go(live, kv_format="fp7")
        expect_message(live, "kv_format", "No number format is called “fp7”")
        live.locator("#kv_format").select_option("")
        expect_answer(live, **DEFAULT_TOTAL)

    def test_absurd_but_legal(self, live: Page) -> None:
        go(live, tokens=10**9, sequences=10**6)
        expect(live.locator(".number.total .unit")).to_have_text("EiB")
        expect(live.locator(".number.total .exact")).to_contain_text("≈")


class TestKeyboard:
    def test_whole_flow_without_a_pointer(self, live: Page) -> None:
        live.locator("#model").focus()
        live.keyboard.type("deepseek v3")
        live.keyboard.press("Enter")
        for _ in ("fields", "files"):
            live.keyboard.press("Tab")
            assert live.evaluate("document.activeElement.tagName") == "SUMMARY"
        live.keyboard.press("Tab")
        assert live.evaluate("document.activeElement.id") == "tokens"
        live.keyboard.type("64k")
        for _ in range(20):
            live.keyboard.press("Tab")
            if live.evaluate("document.activeElement.id") == "sequences":
                break
        live.keyboard.type("16")
        params = {"model": "deepseek-v3", "tokens": 65_536, "sequences": 16}
        expect_answer(live, **params)
        live.locator("#tab-link").focus()
        live.keyboard.press("ArrowRight")
        assert live.evaluate("document.activeElement.id") == "tab-embed"
        live.keyboard.press("End")
        assert live.evaluate("document.activeElement.id") == "tab-json"
        live.keyboard.press("Home")
        expect(live.locator("#share-text")).to_have_value(
            re.compile(r"#v=1&model=deepseek-v3&sequences=16&tokens=65536$")
        )

    def test_typing_is_never_overtaken(self, live: Page) -> None:
        live.locator("#tokens").fill("")
        live.locator("#tokens").press_sequentially("123456", delay=0)
        expect_answer(live, model=DEFAULT_MODEL, tokens=123_456)
        choose_model(live, "gpt-oss-20b")
        choose_model(live, "deepseek-v3.2")
        expect_total(
            live, estimated_bytes(model="deepseek-v3.2", tokens=123_456), timeout=5_000
        )
        expect(live.locator(".layers")).to_contain_text("indexer")
