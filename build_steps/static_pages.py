"""The pages without an engine: evidence, the models, each model, and their catalog.

They are made from kvcore's answers like index.html, but for every model and engine;
that takes a while, so answers and pages are kept in the cache by what they come from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from build_steps import catalog_file, evidence_page, model_facts, model_pages
from build_steps.cache import cached_json
from build_steps.engine import bundle, package_contents
from build_steps.page import (
    DEFAULT_LANGUAGE,
    check_inline,
    inline,
    read_locales,
    render,
    sha256,
)
from build_steps.tools import ROOT, SITE, say
from kvcore import catalog

STEPS: Final = ROOT / "build_steps"


def static_pages(base_url: str) -> dict[str, bytes]:
    """Every file by its path in dist/. `base_url` ends in a slash or is empty."""
    facts = model_facts_of_all()
    inputs = {
        "facts": json.dumps(facts).encode(),
        "base_url": base_url.encode(),
        **contents(STEPS, "*.py"),
        **contents(SITE / "templates", "*.j2"),
        **contents(SITE / "styles", "*.css"),
        **contents(SITE / "locales", "en.json"),
        **contents(SITE / "src", "evidence.js"),
        **contents(SITE, "catalog.schema.json"),
        **package_contents(),
    }
    pages: dict[str, str] = cached_json("pages", inputs, lambda: make(facts, base_url))
    return {path: text.encode() for path, text in pages.items()}


def make(facts: Mapping[str, Any], base_url: str) -> dict[str, str]:
    renderer = Renderer(base_url)
    return {
        "catalog.json": catalog_file.text(facts),
        "catalog.schema.json": catalog_file.SCHEMA.read_text("utf-8"),
        "evidence.html": evidence_page.page(renderer),
        **model_pages.pages(renderer, facts),
    }


class Renderer:
    """What all these pages have in common."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.strings: Mapping[str, str] = read_locales(SITE / "locales")[
            DEFAULT_LANGUAGE
        ]
        self._style = bundle(SITE / "styles" / "static.css").decode()
        self._common: dict[str, object] = {
            "strings": self.strings,
            "base_url": base_url,
            "version": version("kvcore"),
            "catalog_date": catalog.catalog_date(),
            "model_count": len(catalog.entries()),
            "style": inline(self._style, "style"),
        }

    def page(
        self,
        template: str,
        path: str,
        context: Mapping[str, object],
        script: str | None = None,
    ) -> str:
        """A page at `path` in dist/, whose policy allows its style and its script."""
        text = render(
            template,
            {
                **self._common,
                **context,
                "path": path,
                "root": "../" * path.count("/"),
                "csp": policy(self._style, script),
                "script": inline(script or "", "script"),
            },
        )
        check_inline(text, "style", self._style)
        if script is not None:
            check_inline(text, "script", script)
        return text


def policy(style: str, script: str | None) -> str:
    """Nothing is loaded; a script, where there is one, writes no markup."""
    rules = {
        "default-src": "'none'",
        "style-src": f"'{sha256(style)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    if script is not None:
        rules["script-src"] = f"'{sha256(script)}'"
        rules["require-trusted-types-for"] = "'script'"
        rules["trusted-types"] = "'none'"
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def model_facts_of_all() -> dict[str, Any]:
    """kvcore's answers for the model pages: asked once for the same kvcore."""
    inputs = {
        **package_contents(),
        "model_facts": Path(model_facts.__file__).read_bytes(),
    }

    def ask() -> dict[str, Any]:
        say("Asking kvcore about every model ...")
        return model_facts.facts()

    found: dict[str, Any] = cached_json("facts", inputs, ask)
    return found


def contents(folder: Path, pattern: str) -> dict[str, bytes]:
    return {
        f"{folder.name}/{path.name}": path.read_bytes()
        for path in sorted(folder.glob(pattern))
    }
