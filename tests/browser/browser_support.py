"""What the browser tests share: the tripwire, and reading the page's answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, FrameLocator, Page, Route, expect

from build_steps.tools import SITE
from kvcore import api

START_LIMIT = 90_000
"""Milliseconds for the engine's first answer on a slow and busy machine."""

PATIENCE = 20_000
"""Milliseconds that a page may take for what is expected of it."""

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`));
"""

AXE = SITE / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """async () => {
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const runOnly = {type: "tag", values: [...values, "best-practice"]};
  // Colours are judged when they have arrived, not on their way.
  await Promise.allSettled(document.getAnimations().map(({finished}) => finished));
  const {violations} = await axe.run(document, {runOnly});
  return violations.flatMap(({id, nodes}) =>
    nodes.map(({target, failureSummary}) => `${id}: ${target} ${failureSummary}`));
}"""

OpenPage = Callable[..., Page]


class Watch:
    """What went wrong on the pages of one test."""

    def __init__(self, origins: set[str]) -> None:
        self._origins = origins
        self._allowed: list[re.Pattern[str]] = []
        self.problems: list[str] = []
        self.requests: list[str] = []

    def allow(self, pattern: str) -> None:
        """Declares a problem that the test provokes on purpose."""
        self._allowed.append(re.compile(pattern))

    def trust(self, origin: str) -> None:
        """Adds an origin of the test's own."""
        self._origins.add(origin.rstrip("/"))

    def note(self, problem: str) -> None:
        self.problems.append(problem)

    def unexpected(self) -> list[str]:
        return [
            problem
            for problem in self.problems
            if not any(pattern.search(problem) for pattern in self._allowed)
        ]

    def attach(self, context: BrowserContext) -> None:
        context.add_init_script(REPORT_VIOLATIONS)
        context.route("**/*", self._route)
        context.on("page", self._listen)

    def _listen(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.note(f"uncaught: {error}"))
        page.on(
            "console",
            lambda message: (
                self.note(f"console: {message.text}")
                if message.type == "error"
                else None
            ),
        )

    def _route(self, route: Route) -> None:
        url = route.request.url
        self.requests.append(url)
        own = any(url.startswith(f"{origin}/") for origin in self._origins)
        if own or url.startswith(("file:", "data:", "blob:")):
            route.continue_()
            return
        self.note(f"request to elsewhere: {url}")
        route.abort()


def estimated_bytes(**params: object) -> str:
    """What kvcore answers here, as the page writes it."""
    answer: dict[str, Any] = api.call("estimate", params)
    assert "error" not in answer, answer
    return f"{answer['total_bytes']:,}"


def fill(page: Page | FrameLocator, field: str, value: object) -> None:
    page.locator(f"#{field}").fill(str(value))


def expect_total(
    page: Page | FrameLocator, total: str, timeout: int = PATIENCE
) -> None:
    exact = page.locator(".number.total .exact")
    expect(exact).to_contain_text(total, timeout=timeout)


def expect_live(
    page: Page | FrameLocator, tokens: int, model: str, **params: object
) -> None:
    """Asks for a context that no build can have answered in advance."""
    fill(page, "tokens", tokens)
    fill(page, "sequences", params.get("sequences", 1))
    total = estimated_bytes(model=model, tokens=tokens, **params)
    expect_total(page, total, START_LIMIT)


def violations(page: Page) -> list[str]:
    """What axe finds wrong with the page as it is."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = page.evaluate(RUN_AXE)
    return found
