"""dist/ as files: complete, the same every time, and loading nothing from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from build_steps.engine import WASM, gzip_file, package_sources, stdlib
from build_steps.tools import ROOT, SITE
from kvcore import api

WIRE_LIMIT = 5_500_000
LOADING = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
    ("embed", "src"),
    ("form", "action"),
    ("base", "href"),
    ("image", "href"),
    ("use", "href"),
}

PAGES = (
    "index.html",
    "404.html",
    "evidence.html",
    "models/index.html",
    "models/deepseek-v3.html",
)


class Loads(HTMLParser):
    """Collects every address that a document loads by itself, and its policy."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.policies: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.addresses += [
            value for name, value in values.items() if (tag, name) in LOADING
        ]
        self.inline += [
            name for name in values if name == "style" or name.startswith("on")
        ]
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(values["content"])


def parsed(page: Path) -> Loads:
    loads = Loads()
    loads.feed(page.read_text("utf-8"))
    return loads


@pytest.mark.parametrize("name", PAGES)
def test_loads_nothing_from_elsewhere(dist: Path, name: str) -> None:
    loads = parsed(dist / name)
    assert [url for url in loads.addresses if not url.startswith("data:")] == []
    styles = re.findall(
        r"<style>(.*?)</style>", (dist / name).read_text("utf-8"), re.DOTALL
    )
    assert not re.search(r"url\((?!['\"]?(data:|#))|@import", "".join(styles))


@pytest.mark.parametrize("name", PAGES)
def test_has_one_policy_and_keeps_it(dist: Path, name: str) -> None:
    loads = parsed(dist / name)
    (policy,) = loads.policies
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-inline" not in policy
    assert loads.inline == []


def test_links_are_relative(dist: Path) -> None:
    document = (dist / "index.html").read_text("utf-8")
    shell = re.sub(r"<script.*?</script>", "", document, flags=re.DOTALL)
    assert re.findall(r'(?:href|src)="/[^"]*"', shell) == []


def test_size_over_the_wire(dist: Path) -> None:
    page = (dist / "index.html").read_bytes()
    assert len(gzip.compress(page, 6)) <= WIRE_LIMIT


def test_answer_precedes_the_engine(dist: Path) -> None:
    document = (dist / "index.html").read_text("utf-8")
    answer, engine = document.index('class="number total"'), document.index("payload-")
    assert answer < 100_000 < engine
    assert document.rindex("</script>") > len(document) - 200


def test_checksums(dist: Path) -> None:
    listed = dict(
        reversed(line.split("  "))
        for line in (dist / "SHA256SUMS").read_text().splitlines()
    )
    files = {
        path.relative_to(dist).as_posix(): path.read_bytes()
        for path in dist.rglob("*")
        if path.is_file()
    }
    del files["SHA256SUMS"]
    assert listed == {
        name: hashlib.sha256(data).hexdigest() for name, data in files.items()
    }


def test_holds_what_others_fetch(dist: Path) -> None:
    names = {path.name for path in dist.iterdir()} - {"sitemap.xml"}
    (wheel,) = dist.glob("kvcore-*-py3-none-any.whl")
    pages = {"index.html", "404.html", "evidence.html", "models"}
    facts = {"catalog.json", "catalog.schema.json"}
    others = {"robots.txt", ".nojekyll", "SHA256SUMS"}
    assert names == {wheel.name} | pages | facts | others
    catalog = json.loads((dist / "catalog.json").read_text("utf-8"))
    assert len(catalog["models"]) == len(api.call("models", {})["models"])


def test_second_build_elsewhere_gives_the_same_bytes(
    dist: Path, tmp_path: Path
) -> None:
    """Another folder, time zone, language, umask, hash seed and an empty cache.

    Of the engine's parts the two largest are not compressed anew when they are the same
    bytes: the others go through the same program.
    """
    copy = tmp_path / "another place"
    for name in package_sources(ROOT):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    ignored = shutil.ignore_patterns("node_modules", "__pycache__")
    shutil.copytree(SITE, copy / "site", ignore=ignored)
    shutil.copytree(ROOT / "build_steps", copy / "build_steps", ignore=ignored)
    (copy / "site" / "node_modules").symlink_to(SITE / "node_modules")
    (copy / ".cache").mkdir()
    for packed in map(gzip_file, (WASM.read_bytes(), stdlib())):
        if packed.is_file():
            shutil.copy(packed, copy / ".cache")
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Seoul",
        "LC_ALL": "C",
    }
    subprocess.run(
        [sys.executable, "-c", "from build_steps.output import build; build()"],
        check=True,
        cwd=copy,
        env=environment,
        umask=0o077,
        timeout=900,
    )
    again = (copy / "dist" / "SHA256SUMS").read_text()
    assert again == (dist / "SHA256SUMS").read_text()
