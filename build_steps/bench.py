"""How fast it is: each figure beside what it is compared with, from one run.

Machines differ and are busy, so every time stands with a ratio to something measured
in the same minute: the start of the page to the start of a plain Pyodide page that
installs the same wheel, an estimate to the target for 2,400 of them.
"""

from __future__ import annotations

import gzip
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from build_steps.engine import PYODIDE, micropip_wheel
from build_steps.output import DIST
from build_steps.server import Server
from build_steps.tools import say
from kvcore import api, catalog
from kvcore.estimate import Scope, cache_formats, estimate

ROUNDS = 5
KEYSTROKES = 60
RECALCULATIONS = 300
CONTEXTS = [1_000 * 2**step for step in range(12)]
MODELS = 200
ESTIMATES_TARGET = 0.1

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
PYODIDE_FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
PLAIN_PAGE = """<!doctype html><meta charset="utf-8"><title>plain</title>
<script type="module">
import {loadPyodide} from './pyodide.mjs';
const python = await loadPyodide({packageBaseUrl: location.href});
await python.loadPackage('./%(micropip)s');
await python.pyimport('micropip').install(new URL('./%(wheel)s', location.href).href);
python.runPython(`
from kvcore import api
total = api.call("estimate", {"model": "llama-3.1-70b", "tokens": 1})["total_bytes"]
`);
document.title = String(python.globals.get('total'));
</script>
"""
PLAIN_ANSWER = "327680"

WATCH_KEYSTROKES = """
async (count) => {
  const input = document.getElementById('tokens');
  const exact = () => document.querySelector('.number.total .exact')?.textContent;
  const painted = () => new Promise((done) =>
    requestAnimationFrame(() => setTimeout(done, 0)));
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const before = exact();
    const start = performance.now();
    input.value = String(20000 + i);
    input.dispatchEvent(new Event('input', {bubbles: true}));
    while (exact() === before) await painted();
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 20));
  }
  return times;
}
"""


def bench() -> None:
    """Measures and prints everything; dist/ must have been built."""
    say("What is measured               figure                    beside")
    _estimates()
    _bytes()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["KVCORE_CHROMIUM"], args=FLAGS
        )
        with tempfile.TemporaryDirectory() as folder:
            _starts(browser, _plain_site(Path(folder)))
        with Server(DIST) as server:
            _keystrokes(browser, server.url)
        browser.close()


def _row(name: str, figure: str, beside: str) -> None:
    say(f"{name:<30} {figure:<25} {beside}")


def _seconds(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def _estimates() -> None:
    models = [catalog.model(entry.id) for entry in catalog.entries()[:MODELS]]
    scopes = [Scope(tokens=tokens) for tokens in CONTEXTS]
    formats = [cache_formats(model) for model in models]

    def estimate_all() -> None:
        for model, fmt in zip(models, formats, strict=True):
            for scope in scopes:
                estimate(model, scope, fmt)

    def ask_all() -> None:
        for entry in catalog.entries()[:MODELS]:
            for tokens in CONTEXTS:
                api.call("estimate", {"model": entry.id, "tokens": tokens})

    count = len(models) * len(scopes)
    for name, action in (("estimates", estimate_all), ("answers", ask_all)):
        spent = min(_seconds(action) for _ in range(ROUNDS))
        _row(
            f"{count:,} {name} in CPython",
            f"{spent:.3f} s",
            f"{spent / ESTIMATES_TARGET:.2f} of {ESTIMATES_TARGET} s",
        )


def _bytes() -> None:
    index = (DIST / "index.html").read_bytes()
    wire = len(gzip.compress(index, 6))
    parts = sum(
        len(gzip.compress((PYODIDE / name).read_bytes(), 6)) for name in PYODIDE_FILES
    )
    _row(
        "The page over the wire",
        f"{wire:,} bytes",
        f"{wire / parts:.2f} of Pyodide's own files ({parts:,})",
    )


def _plain_site(folder: Path) -> Path:
    """A page that starts Pyodide as its documentation says, and asks one question."""
    for name in PYODIDE_FILES:
        shutil.copy(PYODIDE / name, folder)
    wheel = next(DIST.glob("*.whl"))
    micropip = micropip_wheel()
    for path in (wheel, micropip):
        shutil.copy(path, folder)
    names = {"wheel": wheel.name, "micropip": micropip.name}
    (folder / "index.html").write_text(PLAIN_PAGE % names)
    return folder


def _starts(browser: Browser, plain: Path) -> None:
    """Opening to the first answer of kvcore, taken in turns."""
    times: dict[str, list[tuple[float, float]]] = {"ours": [], "plain": []}
    with Server(DIST) as ours, Server(plain) as other:
        for _ in range(ROUNDS):
            times["ours"].append(_timed(browser, ours.url, _first_answer))
            times["plain"].append(_timed(browser, other.url, _plain_answer))
    for index, kind_of_time in enumerate(("elapsed", "CPU time")):
        ours_time, plain_time = (
            statistics.median(round_[index] for round_ in times[kind])
            for kind in ("ours", "plain")
        )
        _row(
            f"First new answer, {kind_of_time}",
            f"{ours_time:.2f} s",
            f"{ours_time / plain_time:.2f} of a plain Pyodide page, {plain_time:.2f} s",
        )


def _timed(
    browser: Browser, url: str, wait: Callable[[Page], None]
) -> tuple[float, float]:
    """Seconds elapsed, and seconds of processor time of all the browser's processes."""
    context = browser.new_context()
    session = browser.new_browser_cdp_session()
    before = _cpu_seconds(session)
    page = context.new_page()

    def open_and_wait() -> None:
        page.goto(url)
        wait(page)

    elapsed = _seconds(open_and_wait)
    after = _cpu_seconds(session)
    context.close()
    return elapsed, sum(spent - before.get(id, 0.0) for id, spent in after.items())


def _cpu_seconds(session: CDPSession) -> dict[int, float]:
    """By process: one that ends takes its time along."""
    answer: dict[str, Any] = session.send("SystemInfo.getProcessInfo")
    return {entry["id"]: entry["cpuTime"] for entry in answer["processInfo"]}


def _first_answer(page: Page) -> None:
    """A context that no build can have answered in advance."""
    before = page.locator(".number.total .exact").inner_text()
    page.locator("#tokens").fill("12345")
    page.wait_for_function(
        "(before) => document.querySelector('.number.total .exact')"
        "?.textContent !== before",
        arg=before,
        timeout=120_000,
    )


def _plain_answer(page: Page) -> None:
    page.wait_for_function(
        f"() => document.title === '{PLAIN_ANSWER}'", timeout=120_000
    )


def _keystrokes(browser: Browser, url: str) -> None:
    """From a keystroke to new numbers on screen, and what many of them leave behind."""
    page = browser.new_page()
    page.goto(url)
    _first_answer(page)
    page.evaluate(WATCH_KEYSTROKES, KEYSTROKES)
    times = sorted(page.evaluate(WATCH_KEYSTROKES, KEYSTROKES))
    median, late = statistics.median(times), times[int(len(times) * 0.95)]
    _row("Keystroke to new numbers", f"{median:.0f} ms (median)", "16 ms is one frame")
    _row("", f"{late:.0f} ms (95th percentile)", f"{late / median:.1f} of the median")
    before = _heap_bytes(page)
    page.evaluate(WATCH_KEYSTROKES, RECALCULATIONS)
    after = _heap_bytes(page)
    _row(
        f"Heap after {RECALCULATIONS} more",
        f"{after:,} bytes",
        f"{after / before:.2f} of what it was",
    )
    page.close()


def _heap_bytes(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage: dict[str, Any] = session.send("Runtime.getHeapUsage")
    return int(usage["usedSize"])
