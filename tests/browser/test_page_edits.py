"""Fields of the model changed by hand: marked, had back, refused, shared by link."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
from browser_support import (
    PATIENCE,
    START_LIMIT,
    OpenPage,
    estimated_bytes,
    expect_total,
)
from page_support import (
    DEFAULT_TOTAL,
    choose_model,
    expect_short_link,
    go,
    live_page,
)
from playwright.sync_api import Browser, Locator, Page, expect
from test_a11y import violations

from build_steps.page import DEFAULT_MODEL
from kvcore import api

EDITED = {"num_key_value_heads": 4}
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "hidden_size": 1024,
    "head_dim": 96,
    "max_position_embeddings": 65536,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "rope_theta": 10000.0,
    "id2label": {str(n): f"LABEL_{n}" for n in range(200)},
}
TEXT = json.dumps(CONFIG, indent=2)
GGUF: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 8,
    "llama.embedding_length": 512,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 8192,
    "tokenizer.ggml.tokens": [f"token {n}" for n in range(5000)],
}


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A list of fields takes many readings of the model: a busy machine needs time."""
    expect.set_options(timeout=START_LIMIT)
    yield
    expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    """The default model with its fields open and none of them changed."""
    shared.set_viewport_size({"width": 1280, "height": 900})
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    open_fields(shared)
    expect(shared.locator(".model-field.changed")).to_have_count(0)
    return shared


def open_fields(page: Page) -> None:
    box = page.locator("#fields")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    expect(page.locator(".model-field").first).to_be_visible(timeout=START_LIMIT)


def field(page: Page, path: str) -> Locator:
    return page.locator(f'[id="edit-{path}"]')


def row(page: Page, path: str) -> Locator:
    return page.locator(".model-field").filter(has=field(page, path))


def revert(page: Page, path: str) -> None:
    page.locator(f'[data-revert="{path}"]').click()


def expect_answer(page: Page, **params: object) -> None:
    expect_total(page, estimated_bytes(**params), START_LIMIT)


STATE = """() => [
  location.hash.slice(1),
  document.querySelector("meta[name=kvcore-state]").content,
]"""


def pairs(page: Page) -> dict[str, str]:
    """The address's settings, once it says what the page has."""
    for _ in range(300):
        address, state = page.evaluate(STATE)
        if address == state:
            break
        page.wait_for_timeout(100)
    assert address == state
    settings = (pair.split("=", 1) for pair in address.split("&"))
    return {key: unquote(value) for key, value in settings}


class TestEditing:
    def test_fields_are_those_of_kvcore(self, live: Page) -> None:
        listed = api.call("fields", {"model": DEFAULT_MODEL})["fields"]
        labels = live.locator(".model-field label")
        expect(labels).to_have_text([item["path"] for item in listed])
        for item in listed:
            value = item["value"]
            text = value if isinstance(value, str) else json.dumps(value)
            expect(field(live, item["path"])).to_have_value(text)

    def test_an_edit_answers_and_is_marked(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        changed = row(live, "num_key_value_heads")
        expect(changed).to_have_class(re.compile("changed"))
        expect(changed).to_contain_text("was 8")
        expect(live.locator(".model-field.changed")).to_have_count(1)
        expect(live.locator("#fields summary")).to_contain_text("1 changed")
        expect(live.locator("#model")).to_have_value(re.compile(r" \(edited\)$"))
        expect(live.locator(".sentence")).to_contain_text("(edited)")
        expect(live.locator("#model-hint")).to_contain_text("4 KV heads")
        parameters = api.call("show", {"model": DEFAULT_MODEL, "edits": EDITED})
        billions = parameters["facts"]["parameters"] / 1e9
        expect(live.locator("#model-hint")).to_contain_text(f"{billions:.1f}B")
        expect(live.locator(".layers")).to_contain_text("num_kv_heads 4")
        expect(live.locator(".why")).to_contain_text("num_key_value_heads = 4")

    def test_a_plan_is_for_the_edited_model(self, live: Page) -> None:
        scenario = {"gpu": "h100-sxm", "gpus": 8, "engine": "vllm", "tokens": 32768}
        go(live, **scenario, **{"set.num_key_value_heads": 16})
        asked = {
            "model": DEFAULT_MODEL, "gpu": "h100-sxm", "gpus": 8, "engine": "vllm",
            "context": 32768, "concurrency": 1,
        }  # fmt: skip
        plan = api.call("plan", {**asked, "edits": {"num_key_value_heads": 16}})
        assert plan["max_requests"] != api.call("plan", asked)["max_requests"]
        expect(live.locator(".first")).to_contain_text(f"{plan['max_requests']:,}")
        expect(live.locator("#model-hint")).to_contain_text("16 KV heads")

    def test_a_choice(self, live: Page) -> None:
        field(live, "tie_word_embeddings").select_option("true")
        expect(row(live, "tie_word_embeddings")).to_contain_text("was false")
        expect(live.locator("#model-hint")).to_contain_text("69.5B")

    def test_removing(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("")
        expect_answer(live, **DEFAULT_TOTAL, edits={"num_key_value_heads": ""})
        expect(row(live, "num_key_value_heads")).to_contain_text("was 8")
        assert pairs(live)["set.num_key_value_heads"] == ""

    def test_typing_the_original_is_no_edit(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        field(live, "num_key_value_heads").fill("8")
        expect_answer(live, **DEFAULT_TOTAL)
        expect(live.locator(".model-field.changed")).to_have_count(0)
        assert set(pairs(live)) == {"v"}

    def test_what_was_typed_is_written_plainly_afterwards(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill(" 4 ")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        expect(field(live, "num_key_value_heads")).to_have_value(" 4 ")
        field(live, "num_key_value_heads").blur()
        expect(field(live, "num_key_value_heads")).to_have_value("4")

    def test_another_input_in_between_loses_no_edit(self, live: Page) -> None:
        live.evaluate(
            """() => {
              const type = (id, text) => {
                const input = document.getElementById(id);
                input.value = text;
                input.dispatchEvent(new InputEvent("input", {bubbles: true}));
              };
              type("edit-num_key_value_heads", "4");
              setTimeout(() => type("tokens", "4098"), 155);
            }"""
        )
        expect_answer(live, model=DEFAULT_MODEL, tokens=4098, edits=EDITED)
        assert pairs(live)["set.num_key_value_heads"] == "4"

    def test_inside_a_container(self, live: Page) -> None:
        go(live, model="gemma-3-27b-it", tokens=4098)
        expect_answer(live, model="gemma-3-27b-it", tokens=4098)
        field(live, "text_config.head_dim").fill("64")
        edits = {"text_config.head_dim": 64}
        expect_answer(live, model="gemma-3-27b-it", tokens=4098, edits=edits)

    def test_null_is_not_nothing(self, live: Page) -> None:
        """Mistral without a window says so by null; without the field it has one."""
        asked = {"model": "mistral-7b-v0.1", "tokens": 8_191}
        go(live, **asked)
        window = field(live, "sliding_window")
        window.fill("null")
        expect_answer(live, **asked, edits={"sliding_window": None})
        expect(row(live, "sliding_window")).to_contain_text("was 4096")
        assert pairs(live)["set.sliding_window"] == "null"
        window.fill("")
        expect_answer(live, **asked, edits={"sliding_window": ""})
        expect(window).to_have_attribute("placeholder", "4096 (assumed)")
        assert pairs(live)["set.sliding_window"] == ""

    def test_what_was_assumed_is_shown_in_its_place(self, live: Page) -> None:
        config = {"model_type": "mistral", "num_hidden_layers": 4, "hidden_size": 512,
                  "num_attention_heads": 8}  # fmt: skip
        live.locator("#model").fill(json.dumps(config))
        window = field(live, "sliding_window")
        expect(window).to_have_attribute("placeholder", "4096 (assumed)")
        expect(window).to_have_value("")
        window.fill("512")
        asked = {"model_text": json.dumps(config), "tokens": 131_072}
        edits = {"sliding_window": 512}
        total = api.call("estimate", {**asked, "edits": edits})["total_bytes"]
        expect_total(live, f"{total:,}", START_LIMIT)


class TestReverting:
    def test_one(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        field(live, "num_hidden_layers").fill("40")
        both = {**EDITED, "num_hidden_layers": 40}
        expect_answer(live, **DEFAULT_TOTAL, edits=both)
        revert(live, "num_key_value_heads")
        expect_answer(live, **DEFAULT_TOTAL, edits={"num_hidden_layers": 40})
        expect(field(live, "num_key_value_heads")).to_have_value("8")
        expect(live.locator(".model-field.changed")).to_have_count(1)
        assert set(pairs(live)) == {"v", "set.num_hidden_layers"}

    def test_all(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        field(live, "num_hidden_layers").fill("40")
        both = {**EDITED, "num_hidden_layers": 40}
        expect_answer(live, **DEFAULT_TOTAL, edits=both)
        live.locator("#revert-all").click()
        expect_answer(live, **DEFAULT_TOTAL)
        expect(live.locator(".model-field.changed")).to_have_count(0)
        expect(live.locator("#revert-all")).to_have_count(0)
        expect(live.locator("#model")).not_to_have_value(re.compile("edited"))

    def test_reset(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        live.get_by_role("button", name="Reset all").click()
        expect(live.locator(".model-field.changed")).to_have_count(0)
        assert not [key for key in pairs(live) if key.startswith("set.")]

    def test_another_model_drops_edits_and_back_has_them_again(
        self, live: Page
    ) -> None:
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        choose_model(live, "gpt-oss-20b")
        expect_answer(live, model="gpt-oss-20b", tokens=131_072)
        expect(live.locator(".model-field.changed")).to_have_count(0)
        expect(field(live, "num_experts_per_tok")).to_be_visible()
        live.go_back()
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        expect(row(live, "num_key_value_heads")).to_contain_text("was 8")


class TestBadValues:
    def refused(self, page: Page, path: str, words: str) -> None:
        expect(field(page, path)).to_have_attribute("aria-invalid", "true")
        expect(row(page, path)).to_contain_text(words)

    def test_the_last_good_answer_and_the_text_stay(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("four")
        self.refused(live, "num_key_value_heads", "should be a whole number")
        expect(field(live, "num_key_value_heads")).to_have_value("four")
        expect_answer(live, **DEFAULT_TOTAL)
        expect(live.locator(".first")).to_contain_text("last valid inputs")
        assert set(pairs(live)) == {"v"}
        live.locator("#tokens").fill("4097")
        expect_answer(live, model=DEFAULT_MODEL, tokens=4097)
        self.refused(live, "num_key_value_heads", "should be a whole number")
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, model=DEFAULT_MODEL, tokens=4097, edits=EDITED)
        expect(live.locator(".model-fields .message.error")).to_have_count(0)
        expect(live.locator(".first")).not_to_contain_text("last valid inputs")

    def test_taken_back_by_typing(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("four")
        self.refused(live, "num_key_value_heads", "should be a whole number")
        field(live, "num_key_value_heads").fill("8")
        expect(live.locator(".model-fields .message.error")).to_have_count(0)
        expect(live.locator(".first")).not_to_contain_text("last valid inputs")

    def test_reverted(self, live: Page) -> None:
        field(live, "num_hidden_layers").fill("40")
        expect_answer(live, **DEFAULT_TOTAL, edits={"num_hidden_layers": 40})
        field(live, "hidden_size").fill("wide")
        self.refused(live, "hidden_size", "should be a whole number")
        revert(live, "hidden_size")
        expect(live.locator(".model-fields .message.error")).to_have_count(0)
        expect_answer(live, **DEFAULT_TOTAL, edits={"num_hidden_layers": 40})

    def test_a_field_that_is_needed(self, live: Page) -> None:
        field(live, "num_hidden_layers").fill("")
        self.refused(live, "num_hidden_layers", "The config has no num_hidden_layers")

    def test_two_fields_that_only_go_together(self, live: Page) -> None:
        go(live, model="gpt2", tokens=512)
        expect_answer(live, model="gpt2", tokens=512)
        expect(field(live, "n_embd")).to_have_value("768")
        field(live, "n_head").fill("7")
        expect(live.locator(".model-fields .message.error")).to_have_count(1)
        field(live, "n_embd").fill("700")
        edits = {"n_head": 7, "n_embd": 700}
        expect_answer(live, model="gpt2", tokens=512, edits=edits)
        expect(live.locator(".model-fields .message.error")).to_have_count(0)

    def test_in_a_link(self, live: Page) -> None:
        go(live, **{"set.num_key_value_heads": "four", "set.num_hidden_layers": 40})
        self.refused(live, "num_key_value_heads", "should be a whole number")
        expect(field(live, "num_key_value_heads")).to_have_value("four")
        revert(live, "num_key_value_heads")
        expect_answer(live, **DEFAULT_TOTAL, edits={"num_hidden_layers": 40})

    def test_no_path(self, live: Page) -> None:
        add(live, "a..b", "1")
        expect(live.locator(".model-fields .message.error")).to_contain_text("a..b")
        revert(live, "a..b")
        expect(live.locator(".model-fields .message.error")).to_have_count(0)


def add(page: Page, name: str, value: str) -> None:
    page.locator("#add-name").fill(name)
    page.locator("#add-value").fill(value)
    page.locator("#add-field").click()


class TestAdding:
    def test_a_field(self, live: Page) -> None:
        add(live, "head_dim", "64")
        expect_answer(live, **DEFAULT_TOTAL, edits={"head_dim": 64})
        expect(row(live, "head_dim")).to_contain_text("not in the config")
        expect(live.locator("#add-name")).to_have_value("")
        revert(live, "head_dim")
        expect_answer(live, **DEFAULT_TOTAL)
        expect(field(live, "head_dim")).to_have_count(0)

    def test_names_are_offered(self, live: Page) -> None:
        offered = live.locator("#addable option").evaluate_all(
            "(options) => options.map((option) => option.value)"
        )
        assert offered == api.call("fields", {"model": DEFAULT_MODEL})["addable"]
        assert "head_dim" in offered

    def test_by_the_keyboard_alone(self, live: Page) -> None:
        live.locator("#add-name").focus()
        live.keyboard.type("head_dim")
        live.keyboard.press("Enter")
        expect(live.locator("#add-value")).to_be_focused()
        live.keyboard.type("64")
        live.keyboard.press("Enter")
        expect_answer(live, **DEFAULT_TOTAL, edits={"head_dim": 64})

    def test_one_that_changes_nothing_says_so(self, live: Page) -> None:
        add(live, "colour", "red")
        expect(row(live, "colour")).to_contain_text("changes nothing here")
        expect_answer(live, **DEFAULT_TOTAL)


class TestLinks:
    def test_round_trip(self, live: Page, open_page: OpenPage, site: str) -> None:
        field(live, "num_key_value_heads").fill("2")
        add(live, "torch_dtype", "float32")
        edits = {"num_key_value_heads": 2, "torch_dtype": "float32"}
        expect_answer(live, **DEFAULT_TOTAL, edits=edits)
        settings = pairs(live)
        assert settings == {
            "v": "1", "set.num_key_value_heads": "2", "set.torch_dtype": "float32"
        }  # fmt: skip
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        total = api.call("estimate", {**DEFAULT_TOTAL, "edits": edits})["total_bytes"]
        expect_total(other, f"{total:,}", timeout=START_LIMIT)
        expect(row(other, "num_key_value_heads")).to_contain_text("was 8")
        expect(other.locator("#model")).to_have_value(re.compile(r"\(edited\)$"))

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("512", 512),
            ("null", None),
            ("", ""),
            ('"512"', "512"),
            ("[1,2]", [1, 2]),
            ("a b&c=d", "a b&c=d"),
        ],
    )
    def test_values_are_those_of_the_command_line(
        self, live: Page, text: str, value: object
    ) -> None:
        go(live, **{"set.colour": quote(text)})
        live.locator("#tab-python").click()
        snippet = live.locator("#share-text")
        literal = "None" if value is None else json.dumps(value)
        expect(snippet).to_have_value(re.compile(re.escape(f'"colour": {literal}')))

    def test_take_it_with_you(self, live: Page) -> None:
        field(live, "num_key_value_heads").fill("4")
        expect_answer(live, **DEFAULT_TOTAL, edits=EDITED)
        live.locator("#tab-cli").click()
        command = live.locator("#share-text")
        expect(command).to_have_value(re.compile("--set num_key_value_heads=4"))
        live.locator("#tab-json").click()
        expect(command).to_have_value(
            re.compile(r'"edited": \[\s*"num_key_value_heads"')
        )

    def test_edits_of_an_unknown_model_are_not_for_another(self, live: Page) -> None:
        go(live, model="no-such-model-at-all", **{"set.num_key_value_heads": 4})
        expect(live.locator(".notices")).to_contain_text("no-such-model-at-all")
        expect_answer(live, **DEFAULT_TOTAL)


class TestOnesOwnConfig:
    def total(self, text: str, edits: dict[str, Any]) -> str:
        asked = {"model_text": text, "tokens": 131_072, "edits": edits}
        return f"{api.call('estimate', asked)['total_bytes']:,}"

    @pytest.mark.parametrize(
        ("description", "path"),
        [(CONFIG, "num_key_value_heads"), (GGUF, "llama.attention.head_count_kv")],
        ids=["config", "gguf"],
    )
    def test_the_link_holds_the_fields_that_matter(
        self,
        live: Page,
        open_page: OpenPage,
        site: str,
        description: dict[str, Any],
        path: str,
    ) -> None:
        text = json.dumps(description)
        live.locator("#model").fill(text)
        expect_total(live, self.total(text, {}), START_LIMIT)
        field(live, path).fill("1")
        edits = {path: 1}
        expect_total(live, self.total(text, edits), START_LIMIT)
        expect_short_link(live, then=f"&set.{path}=1")
        assert set(pairs(live)) == {"v", "cfg", f"set.{path}"}
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        expect_total(other, self.total(text, edits), timeout=START_LIMIT)
        expect(row(other, path)).to_contain_text(f"was {description[path]}")
        held = json.loads(other.locator("#paste").input_value())
        assert held.items() <= description.items()
        revert(other, path)
        expect_total(other, self.total(text, {}), START_LIMIT)

    def test_going_back_finds_the_text_as_it_was_given(self, live: Page) -> None:
        live.locator("#paste-box").evaluate("(node) => { node.open = true; }")
        live.locator("#paste").fill(TEXT)
        expect_total(live, self.total(TEXT, {}), START_LIMIT)
        choose_model(live, "gpt-oss-20b")
        expect_answer(live, model="gpt-oss-20b", tokens=131_072)
        live.go_back()
        expect_total(live, self.total(TEXT, {}), START_LIMIT)
        expect(live.locator("#paste")).to_have_value(TEXT)

    def test_another_text_drops_the_edits(self, live: Page) -> None:
        live.locator("#model").fill(json.dumps(CONFIG))
        field(live, "head_dim").fill("64")
        expect_total(live, self.total(TEXT, {"head_dim": 64}), START_LIMIT)
        other = json.dumps({**CONFIG, "num_hidden_layers": 12})
        live.locator("#paste").fill(other)
        expect_total(live, self.total(other, {}), START_LIMIT)
        expect(live.locator(".model-field.changed")).to_have_count(0)


class TestForEveryone:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_axe(self, live: Page, theme: str) -> None:
        go(live, theme=theme, **{"set.num_key_value_heads": 4, "set.colour": "red"})
        expect(row(live, "colour")).to_contain_text("changes nothing")
        field(live, "hidden_size").fill("wide")
        expect(row(live, "hidden_size")).to_contain_text("should be")
        assert violations(live) == []

    @pytest.mark.parametrize("model", [DEFAULT_MODEL, "kimi-k3"])
    def test_on_a_phone(self, live: Page, model: str) -> None:
        live.set_viewport_size({"width": 360, "height": 800})
        go(live, model=model, **{"set.colour": "red"})
        expect(row(live, "colour")).to_contain_text("changes nothing")
        expect(live.locator(".model-field").nth(5)).to_be_visible()
        root = "document.documentElement"
        too_wide = live.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        assert too_wide <= 0

    def test_korean(self, live: Page) -> None:
        go(live, lang="ko", **{"set.num_key_value_heads": 4})
        expect(row(live, "num_key_value_heads")).to_contain_text("원래 8")
        expect(live.locator("#model")).to_have_value(re.compile(r"\(수정됨\)$"))
        live.locator("#language").select_option("en")
