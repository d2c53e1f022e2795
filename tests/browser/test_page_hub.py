"""A look-up on the Hugging Face Hub: on a click, as nobody, and every way it may fail.

The Hub's answers are replayed, in shapes that were recorded: nothing goes out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from browser_support import (
    START_LIMIT,
    OpenPage,
    Watch,
    estimated_bytes,
    expect_total,
)
from page_support import DEFAULT_TOTAL, expect_answer, fragment, go
from playwright.sync_api import Browser, Locator, Page, Route, expect
from test_a11y import violations

from kvcore import api

HUB: Final = "https://huggingface.co"
COMMIT: Final = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
INDEX_NAME: Final = "model.safetensors.index.json"
CONFIG: Final[dict[str, Any]] = {
    "model_type": "llama",
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "hidden_size": 1024,
    "head_dim": 96,
    "vocab_size": 32000,
    "intermediate_size": 4096,
    "max_position_embeddings": 65536,
    "torch_dtype": "bfloat16",
}
TEXT: Final = json.dumps(CONFIG, indent=2)
TOTAL: Final = 3 * 2**30
INDEX: Final = json.dumps(
    {
        "metadata": {"total_size": TOTAL},
        "weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"},
    }
)
POINTER: Final = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\n"
EXPOSED: Final = "X-Repo-Commit,X-Request-Id,X-Error-Code,X-Error-Message,ETag"

WATCH_FETCH: Final = """
globalThis.fetched = [];
const plain = globalThis.fetch;
globalThis.fetch = async (url, options) => {
  const {signal, ...how} = options;
  fetched.push({url, ...how});
  const response = await plain(url, options);
  // A replayed redirect would really be followed: this is what is left of one.
  const moved = response.headers.get("x-test-moved");
  if (moved) Object.defineProperty(response, "url", {value: moved});
  return response;
};
void 0;
"""


@dataclass(kw_only=True)
class Reply:
    """What is answered for one address; None leaves the request without an answer."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def refusal(status: int, code: str = "") -> Reply:
    return Reply(status=status, headers={"X-Error-Code": code} if code else {})


BROWSERS_OWN_WORDS: Final = "Failed to load resource: (the server responded|net::ERR)"
"""What Chromium writes on the console of a refusal that was replayed."""


class Hub:
    """Replies by path; keeps what was asked and what was left unanswered."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply | str | None] = {}
        self.asked: list[str] = []
        self.waiting: list[Route] = []

    def has(self, path: str, reply: Reply | str | None = TEXT) -> None:
        """A reply; a text stands for a file, "abort" for no network."""
        self.replies[path] = reply

    def handle(self, route: Route) -> None:
        path = route.request.url.removeprefix(HUB)
        self.asked.append(path)
        reply = self.replies.get(path, refusal(404, "EntryNotFound"))
        if reply is None:
            self.waiting.append(route)
        elif reply == "abort":
            route.abort("internetdisconnected")
        else:
            answer(route, Reply(body=reply) if isinstance(reply, str) else reply)


def answer(route: Route, reply: Reply) -> None:
    headers = {
        "access-control-allow-origin": "*",
        "access-control-expose-headers": f"{EXPOSED},X-Test-Moved",
        "content-type": "text/plain; charset=utf-8",
        "x-repo-commit": COMMIT,
    }
    route.fulfill(
        status=reply.status, body=reply.body, headers={**headers, **reply.headers}
    )


CONFIG_PATH: Final = "/org/name/raw/main/config.json"
INDEX_PATH: Final = f"/org/name/raw/{COMMIT}/{INDEX_NAME}"


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    watch = Watch({site.rstrip("/")})
    watch.allow(BROWSERS_OWN_WORDS)
    context = browser.new_context()
    watch.attach(context)
    page = context.new_page()
    page.goto(f"{site}#v=1&tokens=4099")
    expect_first(page)
    page.evaluate(WATCH_FETCH)
    yield page
    context.close()
    assert watch.unexpected() == []


@pytest.fixture
def hub(shared: Page) -> Iterator[Hub]:
    hub = Hub()
    shared.route(f"{HUB}/**", hub.handle)
    yield hub
    shared.unroute(f"{HUB}/**")


@pytest.fixture
def live(shared: Page, hub: Hub) -> Page:
    shared.set_viewport_size({"width": 1280, "height": 900})
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    expect(status(shared)).to_be_hidden()
    return shared


def status(page: Page) -> Locator:
    return page.locator("#model-hub")


def offer(page: Page) -> Locator:
    return page.locator("#model-list [data-id=hub]")


def ask(page: Page, name: str) -> None:
    """Types a name and clicks the offer to look it up."""
    page.locator("#model").fill(name)
    offer(page).click()


def expect_asked(page: Page, hub: Hub) -> None:
    """The request has arrived, which the page does not wait for."""
    for _ in range(600):
        if hub.asked:
            break
        page.wait_for_timeout(50)
    assert hub.asked != []


def expect_first(page: Page) -> None:
    """The answer of an engine that has just started, to a link with this context."""
    first = estimated_bytes(model=DEFAULT_TOTAL["model"], tokens=4099)
    expect_total(page, first, START_LIMIT)


def total(**params: object) -> str:
    asked = {"model_text": TEXT, "tokens": 131_072, **params}
    return f"{api.call('estimate', asked)['total_bytes']:,}"


class TestOffer:
    @pytest.mark.parametrize(
        "name",
        [
            "org/name",
            "org/name@v1.0",
            "https://huggingface.co/org/name",
            "huggingface.co/org/name/tree/main",
            "meta-llama/Llama-9",
        ],
    )
    def test_of_what_may_be_a_repository(self, live: Page, hub: Hub, name: str) -> None:
        live.locator("#model").fill(name)
        expect(offer(live)).to_contain_text(f"Look up {name} on Hugging Face")
        live.keyboard.press("Escape")
        assert hub.asked == []

    @pytest.mark.parametrize(
        "name",
        ["llama", "gpt2", "Qwen/Qwen3-8B", "qwen/qwen3-8b", "a b/c", "http://x/y",
         "https://huggingface.co/Qwen/Qwen3-8B", "16/32 GB"],
    )  # fmt: skip
    def test_not_of_what_the_catalog_has_or_no_repository_is(
        self, live: Page, name: str
    ) -> None:
        live.locator("#model").fill(name)
        expect(live.locator("#model")).to_have_attribute("aria-expanded", "true")
        expect(offer(live)).to_have_count(0)
        live.keyboard.press("Escape")

    def test_enter_takes_a_model_of_the_catalog_first(
        self, live: Page, hub: Hub
    ) -> None:
        live.locator("#model").fill("meta-llama/Llama-3.1-8B-Inst")
        expect(offer(live)).to_have_count(1)
        live.keyboard.press("Enter")
        expect(live.locator("#model")).to_have_value("Llama-3.1-8B-Instruct")
        assert hub.asked == []

    def test_nothing_is_asked_by_typing_choosing_links_or_time(
        self, live: Page, hub: Hub
    ) -> None:
        live.locator("#model").fill("org/name")
        live.locator("#tokens").focus()
        live.locator("#model").fill("qwen3-8b")
        live.keyboard.press("Enter")
        expect_answer(live, model="qwen3-8b", tokens=131_072)
        go(live, model="org/name")
        live.wait_for_timeout(300)
        assert hub.asked == []
        assert live.evaluate("fetched") == []


class TestFound:
    def test_config_and_index_by_keyboard(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH)
        hub.has(INDEX_PATH, INDEX)
        go(live, gpu="h100-sxm", gpus=1, tokens=4096)
        live.evaluate("fetched.length = 0")
        live.locator("#model").fill("org/name")
        live.keyboard.press("Enter")
        expect_total(live, total(tokens=4096))
        expect(status(live)).to_contain_text(
            "From Hugging Face, org/name, looked up at"
        )
        link = status(live).locator("a")
        assert link.get_attribute("href") == f"{HUB}/org/name"
        assert hub.asked == [CONFIG_PATH, INDEX_PATH]
        how = {"credentials": "omit", "referrerPolicy": "no-referrer",
               "cache": "no-store"}  # fmt: skip
        assert live.evaluate("fetched") == [
            {"url": f"{HUB}{path}", **how} for path in hub.asked
        ]
        expect(live.locator("#model")).to_have_value("org/name")
        expect(live.locator(".first")).to_contain_text("Weights 3.00 GiB")
        expect(live.locator(".first")).to_contain_text("org/name needs")

    def test_a_revision(self, live: Page, hub: Hub) -> None:
        hub.has("/org/name/raw/refs%2Fpr%2F3/config.json")
        ask(live, "org/name@refs/pr/3")
        expect_total(live, total())
        expect(status(live)).to_contain_text("org/name@refs/pr/3")

    @pytest.mark.parametrize("index", [POINTER, "<html>", refusal(404), refusal(500)])
    def test_without_an_index(self, live: Page, hub: Hub, index: str | Reply) -> None:
        hub.has(CONFIG_PATH)
        hub.has(INDEX_PATH, index)
        ask(live, "org/name")
        expect_total(live, total())
        expect(status(live)).to_contain_text("weights are counted from the config")

    def test_a_renamed_repository(self, live: Page, hub: Hub) -> None:
        moved = {"X-Test-Moved": f"{HUB}/new/Name/raw/main/config.json"}
        hub.has(CONFIG_PATH, Reply(body=TEXT, headers=moved))
        hub.has(f"/new/Name/raw/{COMMIT}/{INDEX_NAME}", INDEX)
        ask(live, "org/name")
        expect_total(live, total())
        expect(status(live)).to_contain_text("org/name is called new/Name now")
        assert hub.asked[-1].startswith("/new/Name/")

    def test_mistrals_params(self, live: Page, hub: Hub) -> None:
        params = {"dim": 1024, "n_layers": 4, "head_dim": 64, "n_heads": 16,
                  "hidden_dim": 4096, "n_kv_heads": 4, "vocab_size": 32000}  # fmt: skip
        text = json.dumps(params)
        hub.has("/org/name/raw/main/params.json", text)
        ask(live, "org/name")
        expect_total(live, total(model_text=text))

    def test_leaves_with_another_model(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH)
        ask(live, "org/name")
        expect_total(live, total())
        live.locator("#model").fill("qwen3-8b")
        live.keyboard.press("Enter")
        expect_answer(live, model="qwen3-8b", tokens=131_072)
        expect(status(live)).to_be_hidden()

    def test_a_link_carries_all_and_asks_nothing(self, live: Page, hub: Hub) -> None:
        hub.has("/org/name/raw/dev/config.json")
        hub.has(INDEX_PATH, INDEX)
        go(live, gpu="h100-sxm")
        ask(live, "org/name@dev")
        expect_total(live, total())
        settings = fragment(live)
        assert settings["hub"] == "org/name%40dev"
        asked = list(hub.asked)
        go(live)
        expect_answer(live, **DEFAULT_TOTAL)
        del settings["v"]
        go(live, **settings)
        expect_total(live, total())
        expect(live.locator("#model")).to_have_value("org/name@dev")
        expect(live.locator(".first")).to_contain_text("Weights 3.00 GiB")
        assert fragment(live)["hub"] == settings["hub"]
        go(live, **{**settings, "hub": "org/other"})
        expect(status(live)).to_contain_text("Called org/other on Hugging Face")
        assert hub.asked == asked
        hub.has("/org/other/raw/main/config.json")
        status(live).get_by_text("Look it up now").click()
        expect(status(live)).to_contain_text("From Hugging Face, org/other")

    @pytest.mark.parametrize("label", ["x", "<b>/x", "a/b%20c", "x/" + "y" * 300, ""])
    def test_a_label_that_is_no_name_is_left_out(
        self, live: Page, hub: Hub, label: str
    ) -> None:
        hub.has(CONFIG_PATH)
        ask(live, "org/name")
        expect(status(live)).to_contain_text("From Hugging Face")
        settings = fragment(live)
        assert settings["hub"] == "org/name"
        go(live, cfg=settings["cfg"], hub=label)
        expect_total(live, total())
        expect(live.locator("#model")).to_have_value("llama")
        expect(status(live)).to_be_hidden()

    def test_a_text_that_was_pasted_has_no_name(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH)
        ask(live, "org/name")
        expect(status(live)).to_contain_text("From Hugging Face")
        live.locator("#paste-box").evaluate("(box) => { box.open = true; }")
        live.locator("#paste").fill(TEXT + " ")
        expect(live.locator("#model")).to_have_value("llama")
        expect(status(live)).to_be_hidden()
        assert "hub" not in fragment(live)

    @pytest.mark.parametrize(
        "index", ['{"weight_map": 3}', "{", '{"weight_map": {"a": "../x"}}']
    )
    def test_with_an_index_that_is_none(self, live: Page, hub: Hub, index: str) -> None:
        hub.has(CONFIG_PATH)
        hub.has(INDEX_PATH, index)
        ask(live, "org/name")
        expect_total(live, total())
        expect(status(live)).to_contain_text("weights are counted from the config")


class TestRefused:
    @pytest.mark.parametrize(
        ("reply", "words", "link"),
        [
            (refusal(401, "GatedRepo"), "org/name is gated", "/org/name"),
            (refusal(403, "GatedRepo"), "org/name is gated", "/org/name"),
            (refusal(401), "no public model org/name", "/models?search=name"),
            (refusal(404, "RepoNotFound"), "no public model", "/models?search=name"),
            (refusal(404, "RevisionNotFound"), "no revision main", "/org/name"),
            (refusal(404, "EntryNotFound"), "no config.json", "/org/name/tree/main"),
            (refusal(429), "status 429", CONFIG_PATH),
            (refusal(503), "status 503", CONFIG_PATH),
            ("<!doctype html><title>Sign in", "not JSON", CONFIG_PATH),
            (POINTER, "not JSON", CONFIG_PATH),
            ("abort", "could not be reached", CONFIG_PATH),
        ],
    )
    def test_is_said_with_a_way_out(
        self, live: Page, hub: Hub, reply: Reply | str, words: str, link: str
    ) -> None:
        hub.has(CONFIG_PATH, reply)
        ask(live, "org/name")
        expect(status(live)).to_contain_text(words)
        anchor = status(live).locator("a")
        assert anchor.get_attribute("href") == f"{HUB}{link}"
        assert anchor.get_attribute("target") == "_blank"
        assert anchor.get_attribute("referrerpolicy") == "no-referrer"
        self.expect_untouched(live)
        status(live).get_by_text("Paste or open the file here").click()
        expect(live.locator("#paste")).to_be_focused()
        live.locator("#paste").fill(TEXT)
        expect_total(live, total())
        expect(status(live)).to_be_hidden()

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (TEXT[:40], "not JSON"),
            ("[]", ""),
            ('{"model_type": "llama"}', "The config has no"),
        ],
    )
    def test_a_config_that_kvcore_refuses(
        self, live: Page, hub: Hub, text: str, words: str
    ) -> None:
        hub.has(CONFIG_PATH, text)
        ask(live, "org/name")
        expect(status(live).locator(".message.error")).to_contain_text(words)
        self.expect_untouched(live)

    @pytest.mark.parametrize("name", ["org/na--me", "org/name.git", "-x/y"])
    def test_a_name_that_kvcore_refuses(self, live: Page, hub: Hub, name: str) -> None:
        ask(live, name)
        expect(status(live)).to_contain_text("ORG/NAME")
        expect(live.locator("#model")).to_have_value(name)
        assert hub.asked == []

    def expect_untouched(self, page: Page) -> None:
        """The name as typed, the answer and the address as before."""
        expect(page.locator("#model")).to_have_value("org/name")
        expect_answer(page, **DEFAULT_TOTAL)
        assert "cfg" not in fragment(page)

    def test_again(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH, refusal(503))
        ask(live, "org/name")
        expect(status(live)).to_contain_text("status 503")
        hub.has(CONFIG_PATH)
        status(live).get_by_role("button", name="Try again").click()
        expect_total(live, total())

    def test_back(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH, refusal(503))
        ask(live, "org/name")
        status(live).get_by_text("Keep Llama-3.1-70B-Instruct").click()
        expect(status(live)).to_be_hidden()
        expect(live.locator("#model")).to_have_value("Llama-3.1-70B-Instruct")
        expect(live.locator("#model")).to_be_focused()
        assert len(hub.asked) == 1


class TestWaiting:
    def test_is_said_and_can_be_cancelled(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH, None)
        with live.expect_request(lambda request: CONFIG_PATH in request.url):
            ask(live, "org/name")
        expect(status(live)).to_contain_text("Looking up org/name on Hugging Face…")
        expect(live.locator("#model")).to_have_value("org/name")
        expect(live.locator("#status")).to_contain_text("Looking up org/name")
        expect_asked(live, hub)
        status(live).get_by_text("Cancel").click()
        expect(status(live)).to_be_hidden()
        expect_answer(live, **DEFAULT_TOTAL)
        live.locator("#tokens").fill("64k")
        expect_answer(live, model=DEFAULT_TOTAL["model"], tokens=65_536)
        assert hub.asked == [CONFIG_PATH]

    def test_inputs_work_meanwhile_and_keep_their_values(
        self, live: Page, hub: Hub
    ) -> None:
        hub.has(CONFIG_PATH, None)
        ask(live, "org/name")
        expect(status(live)).to_contain_text("Looking up")
        live.locator("#tokens").fill("64k")
        expect_answer(live, model=DEFAULT_TOTAL["model"], tokens=65_536)
        answer(hub.waiting[0], Reply(body=TEXT))
        expect_total(live, total(tokens=65_536))

    def test_a_second_look_up_overtakes_the_first(self, live: Page, hub: Hub) -> None:
        hub.has("/slow/one/raw/main/config.json", None)
        hub.has(CONFIG_PATH)
        ask(live, "slow/one")
        expect(status(live)).to_contain_text("Looking up slow/one")
        ask(live, "org/name")
        expect_total(live, total())
        expect(status(live)).to_contain_text("org/name")
        assert not any("slow" in path for path in hub.asked[1:])

    def test_a_model_chosen_meanwhile_stays(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH, None)
        ask(live, "org/name")
        expect(status(live)).to_contain_text("Looking up")
        live.locator("#model").fill("qwen3-8b")
        live.keyboard.press("Enter")
        expect_answer(live, model="qwen3-8b", tokens=131_072)
        expect(status(live)).to_be_hidden()
        answer(hub.waiting[0], Reply(body=TEXT))
        live.wait_for_timeout(300)
        expect_answer(live, model="qwen3-8b", tokens=131_072)
        assert hub.asked == [CONFIG_PATH]

    def test_has_an_end(self, open_page: OpenPage, site: str) -> None:
        hub = Hub()
        hub.has(CONFIG_PATH, None)
        page = open_page("about:blank")
        page.clock.install()
        page.route(f"{HUB}/**", hub.handle)
        page.goto(f"{site}#v=1&tokens=4099")
        expect_first(page)
        ask(page, "org/name")
        expect(status(page)).to_contain_text("Looking up")
        page.wait_for_function("document.querySelector('#model-hub p')")
        expect_asked(page, hub)
        page.clock.fast_forward(15_001)
        expect(status(page)).to_contain_text("did not answer in time")


class TestSurroundings:
    def test_the_worker_has_no_way_to_ask_anybody(self, live: Page, hub: Hub) -> None:
        (worker,) = live.workers
        refused = worker.evaluate(
            f"fetch('{HUB}/org/name').then(() => 'reached', (error) => error.message)"
        )
        assert refused == f"no such part: {HUB}/org/name"
        ways = ("XMLHttpRequest", "WebSocket", "EventSource", "WebTransport")
        for way in ways:
            assert worker.evaluate(f"typeof globalThis.{way}") == "undefined", way
        assert hub.asked == []

    def look_up(self, page: Page, url: str) -> None:
        hub = Hub()
        hub.has(CONFIG_PATH)
        hub.has(INDEX_PATH, INDEX)
        page.route(f"{HUB}/**", hub.handle)
        page.goto(url)
        expect_first(page)
        ask(page, "org/name")
        expect_total(page, total(tokens=4099))
        assert hub.asked == [CONFIG_PATH, INDEX_PATH]

    def test_in_a_frame(self, open_page: OpenPage, site: str) -> None:
        page = open_page("about:blank")
        self.look_up(page, f"{site}#v=1&embed=1&view=full&tokens=4099")

    def test_in_a_copy_on_a_disk(self, open_page: OpenPage, file_copy: Path) -> None:
        page = open_page("about:blank")
        self.look_up(page, f"{file_copy.as_uri()}#v=1&tokens=4099")


class TestAccessible:
    @pytest.mark.parametrize("lang", ["en", "ko"])
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_every_state(self, live: Page, hub: Hub, theme: str, lang: str) -> None:
        go(live, theme=theme, lang=lang)
        live.locator("#model").fill("org/name")
        expect(offer(live)).to_be_visible()
        assert violations(live) == []
        hub.has(CONFIG_PATH, None)
        offer(live).click()
        expect(status(live)).to_be_visible()
        assert violations(live) == []
        answer(hub.waiting[0], refusal(401, "GatedRepo"))
        expect(status(live).locator(".error")).to_be_visible()
        assert violations(live) == []
        hub.has(CONFIG_PATH)
        status(live).locator("button").nth(1).click()
        expect_total(live, total())
        assert violations(live) == []

    def test_described_to_all(self, live: Page, hub: Hub) -> None:
        hub.has(CONFIG_PATH, refusal(503))
        go(live, tokens=4097)
        # The answer is announced when inputs rest, and over what was said before.
        expect(live.locator("#status")).to_contain_text("4,097 tokens")
        ask(live, "org/name")
        expect(status(live)).to_contain_text("status 503")
        described = live.locator("#model").get_attribute("aria-describedby") or ""
        assert "model-hub" in described.split()
        expect(live.locator("#model")).to_have_attribute("aria-invalid", "true")
        expect(live.locator("#status")).to_contain_text("status 503")

    def test_on_a_phone_nothing_goes_sideways(self, live: Page, hub: Hub) -> None:
        live.set_viewport_size({"width": 360, "height": 740})
        long = "an-organisation-of-many-words/a-model-with-a-very-long-name-instruct"
        hub.has(f"/{long}/raw/main/config.json", refusal(401, "GatedRepo"))
        wide = "document.documentElement.scrollWidth"
        live.locator("#model").fill(long)
        expect(offer(live)).to_be_visible()
        assert live.evaluate(wide) <= 360
        offer(live).click()
        expect(status(live).locator(".error")).to_be_visible()
        assert live.evaluate(wide) <= 360
