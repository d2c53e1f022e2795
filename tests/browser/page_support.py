"""A live page shared by the tests of a module, and what a person does with it.

Starting the engine costs more than most tests, so a module opens one page and leads it
to each test's scenario by a link:

    @pytest.fixture(scope="module")
    def shared(browser: Browser, site: str) -> Iterator[Page]:
        with live_page(browser, site) as page:
            yield page

    @pytest.fixture
    def live(shared: Page) -> Page:
        go(shared)
        expect_answer(shared, **DEFAULT_TOTAL)
        return shared
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from browser_support import START_LIMIT, Watch, estimated_bytes, expect_total
from playwright.sync_api import Browser, Page, expect

from build_steps.page import DEFAULT_MODEL

TOKENS = 131_072
DEFAULT_TOTAL = {"model": DEFAULT_MODEL, "tokens": TOKENS}
"""What a link of version 1 means that says nothing more."""
OPENING = {"model": DEFAULT_MODEL, "tokens": 32_768, "sequences": 32}
"""The cache of the scenario that the page opens with."""
OPENING_PLAN = {
    "model": DEFAULT_MODEL,
    "gpu": "h100-sxm",
    "gpus": 8,
    "engine": "vllm",
    "context": 32_768,
    "concurrency": 32,
}


SETTLED_ADDRESS = """async () => {
  const mirror = document.querySelector("meta[name=kvcore-state]");
  const address = () => location.hash.slice(1);
  // What is too long for a link is in the mirror alone: that is waited for in vain.
  for (let round = 0; round < 20 && address() !== mirror.content; round += 1) {
    await new Promise((done) => setTimeout(done, 100));
  }
  return address();
}"""


@contextmanager
def live_page(browser: Browser, site: str, **options: object) -> Iterator[Page]:
    """One page whose engine runs; the tripwire is read when the module is done."""
    watch = Watch({site.rstrip("/")})
    context = browser.new_context(**options)  # type: ignore[arg-type]
    watch.attach(context)
    page = context.new_page()
    page.goto(f"{site}#v=1&tokens=4099")
    expect_total(
        page, estimated_bytes(model=DEFAULT_MODEL, tokens=4099), timeout=START_LIMIT
    )
    yield page
    context.close()
    assert watch.unexpected() == []


def go(page: Page, **params: object) -> None:
    """Follows a link to a scenario, as a click on it in this tab would."""
    pairs = "&".join(f"{key}={value}" for key, value in {"v": 1, **params}.items())
    page.evaluate(
        """(fragment) => {
          document.getElementById("tab-link").click();
          // Written again when the link has been opened.
          document.querySelector("meta[name=kvcore-state]").content = "";
          history.replaceState(null, "", "#elsewhere");
          location.hash = fragment;
        }""",
        pairs,
    )
    mirror = page.locator("meta[name=kvcore-state]")
    expect(mirror).to_have_attribute("content", re.compile("^v=1"))


def expect_answer(page: Page, **params: object) -> None:
    expect_total(page, estimated_bytes(**params))


def choose_model(page: Page, query: str) -> None:
    """Types into the model field and takes the first hit."""
    page.locator("#model").fill(query)
    page.locator("#model").press("Enter")


def fragment(page: Page) -> dict[str, str]:
    """The address's settings, once it has settled."""
    page.wait_for_timeout(400)
    raw = page.evaluate(SETTLED_ADDRESS)
    return dict(pair.split("=", 1) for pair in raw.split("&") if pair)


def expect_short_link(page: Page, then: str = "(&|$)") -> None:
    """A model of one's own is in the link by its fields that matter alone."""
    mirror = page.locator("meta[name=kvcore-state]")
    short = re.compile("cfg=[^&]{50,300}" + then)
    expect(mirror).to_have_attribute("content", short, timeout=START_LIMIT)


def message(page: Page, field: str) -> str:
    """What stands beside a field, joined to it for assistive technology too."""
    described = page.locator(f"#{field}").get_attribute("aria-describedby") or ""
    assert f"{field}-messages" in described.split()
    return page.locator(f"#{field}-messages").inner_text()


def expect_message(page: Page, field: str, text: str) -> None:
    expect(page.locator(f"#{field}-messages")).to_contain_text(text)
    assert text in message(page, field)


def set_open(page: Page, box: str, opened: bool = True) -> None:
    """Opens or closes a part of the inputs."""
    page.locator(f"#{box}").evaluate("(node, open) => { node.open = open; }", opened)
