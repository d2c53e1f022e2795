"""The one page: kvcore's first answers, the bundled script and style, and the policy.

The template (site/templates/index.html.j2) is given:

  csp             the Content-Security-Policy, for a meta tag first in the head
  style, script   to be written as `<style>{{ style }}</style>` and
                  `<script>{{ script }}</script>`, without a space more: the policy
                  allows these very bytes
  strings         the default locale; `locales` holds all of them by language
  default_state   the scenario that the page opens with, under the page's names
  default_answer  its `estimate`, `plan`, `curve`, `show` and `levers` answers
  catalog         the answer of `models`
  options         the answer of `options`
  gpus            the accelerators of `gpus`, what the page shows of them
  weight_formats  the ids of weight formats
  log_bytes       how much is read of a log's beginning and of its end
  levers          the codes of all levers in their order
  lengths         lengths of published traces, to start from
  presets         the made-up traffic of `traffic`, what it resembles
  answers, plans  every catalog model's `estimate` and `plan` at the default scenario,
                  by id; a plan may be a refusal
  linked_answers  the same `estimate` at what a link of version 1 takes for granted
  payloads        the engine's parts as base64 text, by name; each to be written as
                  `<script type="text/plain" id="payload-NAME">`, last in the body
  home            the address of the published site, or nothing
  version, build_hash, catalog_date

Data blocks are written with `|tojson`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from build_steps import wording
from build_steps.cache import cached_json
from build_steps.engine import bundle, package_contents
from build_steps.tools import SITE, BuildError
from kvcore import api
from kvcore.files import LOG_BYTES
from kvcore.hub_names import ENDPOINT
from kvcore.levers import LEVERS
from kvcore.weights import WEIGHT_FORMATS

DEFAULT_LANGUAGE = "en"
DEFAULT_MODEL = "llama-3.1-70b-instruct"
DEFAULT_STATE: Mapping[str, object] = {
    "model": DEFAULT_MODEL,
    "tokens": 32_768,
    "sequences": 32,
    "gpu": "h100-sxm",
    "gpus": 8,
    "engine": "vllm",
}
LINKED: Mapping[str, object] = {"tokens": 131_072, "sequences": 1}
"""What a link of version 1 leaves out (site/src/state.js); its model apart."""
GPU_FACTS = (
    "id",
    "name",
    "vendor",
    "category",
    "aliases",
    "memory_bytes",
    "working_set_estimated",
    "year",
)
PLAN_NAMES = {"tokens": "context", "sequences": "concurrency"}
LOGICAL = {
    name: value for name, value in DEFAULT_STATE.items() if name not in ("gpu", "gpus")
}
"""The default scenario as `estimate` parameters."""
PLANNED = {PLAN_NAMES.get(name, name): value for name, value in DEFAULT_STATE.items()}
"""The default scenario as `plan` parameters."""
CURVE_FROM = 1_024
CURVE_POINTS_PER_DOUBLING = 4

# Observable Plot writes one constant inline style; this is its hash.
PLOT_STYLE_HASH = "sha256-jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww="
TRUSTED_TYPES_POLICIES = "lit-html kvcore"


def page(payloads: Mapping[str, str], home: str = "") -> str:
    """The text of index.html, to be found at `home` if that is known."""
    script = bundle(SITE / "src" / "main.js", "--format=iife").decode()
    style = bundle(SITE / "styles" / "main.css").decode()
    catalog = answer("models", {})
    models = [entry["id"] for entry in catalog["models"]]
    locales = read_locales(SITE / "locales")
    facts = {
        "strings": locales[DEFAULT_LANGUAGE],
        "locales": locales,
        "default_state": DEFAULT_STATE,
        "default_answer": default_answer(),
        "catalog": catalog,
        "options": answer("options", {}),
        "gpus": gpus(),
        "weight_formats": list(WEIGHT_FORMATS),
        "log_bytes": LOG_BYTES,
        "levers": [lever.code for lever in LEVERS],
        "lengths": answer("traffic", {})["lengths"],
        "presets": presets(),
        **first_answers(models),
        "catalog_date": catalog["catalog_date"],
        "version": version("kvcore"),
    }
    template = template_text()
    parts = [script, style, template, json.dumps(facts), *payloads.values()]
    context = {
        **facts,
        "csp": policy(script, style),
        "script": inline(script, "script"),
        "style": inline(style, "style"),
        "payloads": payloads,
        "home": home,
        "build_hash": build_hash(parts),
    }
    text = render("index.html.j2", context)
    check_inline(text, "script", script)
    check_inline(text, "style", style)
    return text


def answer(method: str, params: Mapping[str, object]) -> dict[str, Any]:
    """kvcore's answer; an error stops the build."""
    result: dict[str, Any] = api.call(method, dict(params))
    if "error" in result:
        error = result["error"]
        raise BuildError(f"kvcore could not answer {method} {params}: {error}")
    return result


def first_answers(models: list[str]) -> dict[str, Any]:
    """Every model's answers to what the page and the oldest links open with."""

    def ask() -> dict[str, Any]:
        return {
            "answers": {model: estimate(model) for model in models},
            "plans": {model: plan(model) for model in models},
            "linked_answers": {
                model: answer("estimate", {**LINKED, "model": model})
                for model in models
            },
        }

    inputs = {**package_contents(), "page": Path(__file__).read_bytes()}
    found: dict[str, Any] = cached_json("answers", inputs, ask)
    return found


def gpus() -> list[dict[str, Any]]:
    listed = answer("gpus", {})["gpus"]
    return [{name: entry[name] for name in GPU_FACTS} for entry in listed]


def presets() -> list[dict[str, Any]]:
    """Made-up traffic by id, with what was published of the trace it resembles."""
    listed = answer("traffic", {})["presets"]
    return [
        {name: value for name, value in entry.items() if name != "traffic"}
        for entry in listed
    ]


def estimate(model: str) -> dict[str, Any]:
    """The logical bytes of a model at the default scenario.

    Where the default engine refuses the model, without it: the plan says why.
    """
    asked = {**LOGICAL, "model": model}
    found: dict[str, Any] = api.call("estimate", asked)
    if "error" not in found:
        return found
    del asked["engine"]
    return answer("estimate", asked)


def plan(model: str) -> dict[str, Any]:
    """The default scenario's plan for a model; a refusal of the engine is an answer."""
    return api.call("plan", {**PLANNED, "model": model})


def default_answer() -> dict[str, Any]:
    found, planned = estimate(DEFAULT_MODEL), plan(DEFAULT_MODEL)
    if "error" in planned:
        raise BuildError(f"The default scenario has no plan: {planned['error']}")
    curve = {**LOGICAL, "tp": planned["tp"], "points": points_to(found["max_context"])}
    del curve["tokens"]
    return {
        "estimate": found,
        "plan": planned,
        "curve": answer("curve", curve),
        "show": answer("show", {"model": DEFAULT_MODEL}),
        "levers": default_levers(),
    }


def default_levers() -> dict[str, Any]:
    """The default scenario's levers; their plan is that of the answer beside them."""
    return {**answer("levers", PLANNED), "plan": None}


def points_to(limit: int) -> list[int]:
    """Token counts for the chart, evenly spaced by factor, to the limit or past it."""
    doublings = (limit - 1).bit_length() - (CURVE_FROM - 1).bit_length()
    steps = range(doublings * CURVE_POINTS_PER_DOUBLING + 1)
    return [
        round(CURVE_FROM * 2 ** (step / CURVE_POINTS_PER_DOUBLING)) for step in steps
    ]


def read_locales(folder: Path) -> dict[str, Any]:
    return {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def policy(script: str, style: str) -> str:
    """The Content-Security-Policy: this script, this style, the worker; and of all the
    network one host, for look-ups that somebody clicks."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'{sha256(script)}' 'wasm-unsafe-eval'",
        "style-src": f"'{sha256(style)}' '{PLOT_STYLE_HASH}'",
        "worker-src": "data:",
        "img-src": "data:",
        "connect-src": ENDPOINT,
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": TRUSTED_TYPES_POLICIES,
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def sha256(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def build_hash(parts: list[str]) -> str:
    """A short name of everything that went into a page."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def inline(text: str, tag: str) -> Markup:
    """Text that may stand inside a script or style element as it is."""
    if re.search(rf"</{tag}|<!--", text, re.IGNORECASE):
        raise BuildError(f"The bundled {tag} contains markup that would end it early.")
    return Markup(text)


def check_inline(page_text: str, tag: str, text: str) -> None:
    if page_text.count(f">{text}</{tag}>") != 1:
        raise BuildError(
            f"The template must write the {tag} once and alone between its tags:"
            " the policy allows exactly these bytes."
        )


def template_text() -> str:
    folder = SITE / "templates"
    return "".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.j2")))


def render(template: str, context: Mapping[str, object]) -> str:
    return environment().get_template(template).render(context)


@cache
def environment() -> Environment:
    """The templates, with numbers written as the page's script writes them."""
    found = Environment(
        loader=FileSystemLoader(SITE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "ensure_ascii": False,
    }
    for write in (
        wording.integer,
        wording.scaled,
        wording.bytes_text,
        wording.percent,
        wording.tokens_short,
        wording.parameter_count,
        wording.pieces,
        wording.engine_name,
    ):
        found.filters[write.__name__] = write
    return found
