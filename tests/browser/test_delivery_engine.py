"""The engine's promises to the page, tested with a scripted kvcore in its place."""

from __future__ import annotations

import base64
import gzip
import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from browser_support import START_LIMIT, OpenPage
from playwright.sync_api import Page, expect

from build_steps.engine import bundle
from build_steps.page import policy
from build_steps.tools import SITE

SCRIPTED_API = """
import json
import time

import pyodide_js

def respond(text, files=(), progress=None):
    request = json.loads(text)
    if request["method"] == "raise":
        raise RuntimeError("scripted")
    if request["method"] == "spin":
        end = time.monotonic() + request["params"]["seconds"]
        while time.monotonic() < end:
            pass
    if request["method"] == "memory":
        return json.dumps({"method": pyodide_js._module.HEAPU8.length})
    return json.dumps(request)
"""

HARNESS = """
import {createEngine} from '%s';
const RealWorker = Worker;
globalThis.workers = [];
globalThis.Worker = class extends RealWorker {
  constructor(...parameters) { super(...parameters); workers.push(this); }
};
globalThis.states = [];
globalThis.create = (options) => {
  globalThis.engine = createEngine({
    payload: (name) => document.getElementById(`payload-${name}`)?.textContent,
    onState(state) {
      states.push(state.stage ? `${state.name} ${state.stage}` : state.name);
      document.title = state.name;
    },
    ...options,
  });
};
globalThis.ask = (method, params, how) => engine.call(method, params, how)
  .then((answer) => answer.method, (error) => error.name);
"""


def packed_api() -> str:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("kvcore/__init__.py", "")
        wheel.writestr("kvcore/api.py", SCRIPTED_API)
    return base64.b64encode(gzip.compress(archive.getvalue())).decode()


def payloads(document: str) -> dict[str, str]:
    found = re.findall(r'id="payload-(\w+)">([^<]*)<', document)
    assert len(found) == 4
    return dict(found)


def harness(parts: Mapping[str, str], folder: Path) -> Path:
    entry = folder / "harness.js"
    entry.write_text(HARNESS % (SITE / "src" / "engine.js").as_posix())
    script = bundle(entry, "--format=iife").decode()
    blocks = "".join(
        f'<script type="text/plain" id="payload-{name}">{text}</script>'
        for name, text in parts.items()
    )
    target = folder / "engine.html"
    target.write_text(
        '<!doctype html><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script, "")}">'
        f"<title>engine</title><body>{blocks}<script>{script}</script>",
        encoding="utf-8",
    )
    return target


@pytest.fixture(scope="module")
def engine_file(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    document = (dist / "index.html").read_text("utf-8")
    parts = {**payloads(document), "kvcore": packed_api()}
    return harness(parts, tmp_path_factory.mktemp("engine"))


@pytest.fixture
def page(open_page: OpenPage, engine_file: Path) -> Page:
    page = open_page(engine_file.as_uri())
    page.evaluate("create({})")
    return page


def start(page: Page) -> None:
    page.evaluate("void engine.start()")
    expect(page).to_have_title("ready", timeout=START_LIMIT)


def states(page: Page) -> list[str]:
    found: list[Any] = page.evaluate("states")
    return [str(state) for state in found]


def test_starts_at_the_first_call_and_names_its_stages(page: Page) -> None:
    assert states(page) == []
    assert page.evaluate("ask('first', {})") == "first"
    assert list(dict.fromkeys(states(page))) == [
        "starting unpacking",
        "starting python",
        "starting kvcore",
        "ready",
    ]


def test_the_page_answers_input_while_the_engine_starts(page: Page) -> None:
    """Its longest pause is a small part of the start, however slow the machine."""
    longest, whole = page.evaluate(
        """async () => {
          const begun = performance.now();
          const answer = ask('first', {});
          let longest = 0, last = performance.now(), done = false;
          answer.then(() => { done = true; });
          while (!done) {
            await new Promise((resolve) => setTimeout(resolve, 0));
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
          }
          return [longest, performance.now() - begun];
        }"""
    )
    assert longest < whole / 2


def test_newest_call_of_a_lane_wins(page: Page) -> None:
    start(page)
    answers = page.evaluate(
        """() => Promise.all([
          ask('one', {}, {lane: 'a'}), ask('other', {}, {lane: 'b'}),
          ask('two', {}, {lane: 'a'}), ask('three', {}, {lane: 'a'}), ask('none', {}),
        ])"""
    )
    assert answers == ["AbortError", "other", "AbortError", "three", "none"]


def test_a_superseded_call_that_hangs_is_cut_short(page: Page) -> None:
    start(page)
    page.evaluate("void (globalThis.old = ask('spin', {seconds: 600}, {lane: 'a'}))")
    page.wait_for_timeout(200)
    assert page.evaluate("ask('new', {}, {lane: 'a'})") == "new"
    assert page.evaluate("old") == "AbortError"
    assert page.evaluate("workers.length") == 2


def test_abort_signal(page: Page) -> None:
    start(page)
    assert page.evaluate(
        """async () => {
          const controller = new AbortController();
          const answer = ask('spin', {seconds: 0.2}, {signal: controller.signal});
          controller.abort();
          return [await answer, await ask('next', {}, {signal: controller.signal})];
        }"""
    ) == ["AbortError", "AbortError"]
    assert page.evaluate("ask('after', {})") == "after"


def test_a_lost_worker_is_replaced_and_asked_again(page: Page) -> None:
    start(page)
    page.evaluate("void (globalThis.answer = ask('spin', {seconds: 1}))")
    page.wait_for_timeout(200)
    page.evaluate(
        "void workers[0].dispatchEvent(new ErrorEvent('error', {message: 'gone'}))"
    )
    assert page.evaluate("answer") == "spin"
    assert page.evaluate("workers.length") == 2
    assert "failed" not in states(page)


def test_what_fails_twice_is_a_failure_and_can_be_tried_again(page: Page) -> None:
    start(page)
    assert page.evaluate("ask('raise', {})") == "EngineError"
    assert page.evaluate("[engine.state.name, engine.state.reason]") == [
        "failed",
        "crashed",
    ]
    assert page.evaluate("ask('while failed', {})") == "EngineError"
    start(page)
    assert page.evaluate("ask('again', {})") == "again"


def test_no_answer_in_time(page: Page) -> None:
    start(page)
    page.clock.install()
    page.evaluate("void (globalThis.answer = ask('spin', {seconds: 600}))")
    page.clock.fast_forward("00:21")
    assert page.evaluate("answer") == "EngineError"
    page.clock.resume()
    assert page.evaluate("ask('next', {})") == "next"


def test_stuck_at_the_start(open_page: OpenPage, engine_file: Path) -> None:
    page = open_page(engine_file.as_uri())
    page.clock.install()
    page.evaluate("create({})")
    page.evaluate("Worker.prototype.postMessage = () => {}")
    page.evaluate("void (globalThis.answer = ask('first', {}))")
    expect(page).to_have_title("starting")
    while page.evaluate("workers.length") == 0:
        page.wait_for_timeout(50)
    page.clock.fast_forward("00:31")
    assert page.evaluate("answer") == "EngineError"
    assert page.evaluate("engine.state.reason") == "timeout"


def test_idle_engine_is_ended_and_comes_back(
    open_page: OpenPage, engine_file: Path
) -> None:
    page = open_page(engine_file.as_uri())
    page.evaluate("create({idleLimit: 300})")
    assert page.evaluate("ask('first', {})") == "first"
    expect(page).to_have_title("idle")
    assert page.evaluate("ask('second', {})") == "second"
    assert page.evaluate("workers.length") == 2


def test_stop_lets_nobody_wait(page: Page) -> None:
    start(page)
    answers = page.evaluate(
        """() => {
          const answers = [ask('spin', {seconds: 600}), ask('next', {})];
          engine.stop();
          return Promise.all(answers);
        }"""
    )
    assert answers == ["AbortError", "AbortError"]


def test_ten_thousand_calls_leave_nothing_behind(page: Page) -> None:
    start(page)
    call_often = """async (count) => {
      for (let call = 0; call < count; call += 1) {
        await engine.call('echo', {call, text: 'x'.repeat(1000)}, {lane: 'a'});
      }
      return ask('memory', {});
    }"""
    before = page.evaluate(call_often, 500)
    assert before > 1_000_000
    assert page.evaluate(call_often, 10_000) == before


def test_starts_where_base64_is_not_built_in(
    open_page: OpenPage, engine_file: Path
) -> None:
    page = open_page("about:blank")
    page.add_init_script(
        "delete Uint8Array.fromBase64; delete Uint8Array.prototype.toBase64"
    )
    page.goto(engine_file.as_uri())
    page.evaluate("create({})")
    assert page.evaluate("ask('first', {})") == "first"
