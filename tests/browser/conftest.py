"""Real Chromium on the built page, with a tripwire on everything a page does.

A request that leaves the test's own origin is refused and fails the test, and so do
errors on the console, uncaught exceptions and violations of the page's policy, unless
the test declares them with `watch.allow(pattern)`.

A page whose engine starts costs about three seconds of a processor: a module whose
tests can follow one another on one page shares it (`page_support.live_page`), and
`open_page` is for those that need a page of their own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_support import PATIENCE, OpenPage, Watch
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)

from build_steps.output import DIST
from build_steps.server import Server

expect.set_options(timeout=PATIENCE)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Optimising Python's interpreter takes longer than most tests run; what it computes
    # is the same.
    "--js-flags=--liftoff-only",
]


@pytest.fixture(scope="session")
def dist() -> Path:
    if not (DIST / "index.html").is_file():
        pytest.fail("There is no dist/ to test: run `python3 build.py build` first.")
    return DIST


@pytest.fixture(scope="session")
def site(dist: Path) -> Iterator[str]:
    """The built site at the root of a server: its address, with a slash at the end."""
    with Server(dist) as server:
        yield server.url


@pytest.fixture(scope="session")
def deep_site(dist: Path) -> Iterator[str]:
    """The built site under a path of another server."""
    with Server(dist, prefix="/some/project/") as server:
        yield server.url


@pytest.fixture
def file_copy(dist: Path, tmp_path: Path) -> Path:
    """index.html alone in a folder with an awkward name."""
    folder = tmp_path / "saved 저장 100% #1"
    folder.mkdir()
    return shutil.copy(dist / "index.html", folder / "index.html")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = os.environ.get("KVCORE_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def watch(site: str, deep_site: str) -> Iterator[Watch]:
    watch = Watch({site.rstrip("/"), origin(deep_site)})
    yield watch
    assert watch.unexpected() == []


@pytest.fixture
def open_page(browser: Browser, watch: Watch) -> Iterator[OpenPage]:
    """Opens an address in a new browser context: open_page(url, **context_options)."""
    contexts: list[BrowserContext] = []

    def open_page(url: str, **options: object) -> Page:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        watch.attach(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: OpenPage, site: str) -> Page:
    """The built page, served and just opened."""
    return open_page(site)


def origin(url: str) -> str:
    return "/".join(url.split("/")[:3])
