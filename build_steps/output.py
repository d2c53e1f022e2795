"""dist/: everything a web server needs, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build_steps import engine
from build_steps.page import page, render
from build_steps.static_pages import static_pages
from build_steps.tools import ROOT, say

DIST = ROOT / "dist"


def build(base_url: str = "") -> None:
    """Writes dist/ from the sources."""
    wheel_name, wheel = engine.wheel()
    address = folder_url(base_url) if base_url else ""
    with ThreadPoolExecutor(1) as beside:
        # Other programs compress the engine's parts while pages are written here.
        payloads = beside.submit(engine.payloads, wheel)
        others = static_pages(address)
        index = page(payloads.result(), address).encode()
    files = {
        "index.html": index,
        wheel_name: wheel,
        **others,
        "404.html": render("404.html.j2", {"home": base_url or "./"}).encode(),
        "robots.txt": robots(base_url).encode(),
        ".nojekyll": b"",
        **({"sitemap.xml": sitemap(base_url, others).encode()} if base_url else {}),
    }
    write(DIST, {**files, "SHA256SUMS": checksums(files).encode()})
    wire = len(gzip.compress(index, 6))
    say(f"Wrote dist/: index.html has {len(index):,} bytes, {wire:,} over the wire;")
    say(f"{len(files)} files in all.")


def robots(base_url: str) -> str:
    rules = "User-agent: *\nAllow: /\n"
    return f"{rules}Sitemap: {folder_url(base_url)}sitemap.xml\n" if base_url else rules


def sitemap(base_url: str, files: Iterable[str]) -> str:
    """The home page and every other page among the files."""
    pages = ["", *sorted(name for name in files if name.endswith(".html"))]
    home = folder_url(base_url)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        + "".join(f"  <url><loc>{home}{page}</loc></url>\n" for page in pages)
        + "</urlset>\n"
    )


def folder_url(base_url: str) -> str:
    return base_url.rstrip("/") + "/"


def checksums(files: Mapping[str, bytes]) -> str:
    """What `sha256sum --check` reads."""
    return "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n"
        for name, data in sorted(files.items())
    )


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Makes a folder hold exactly these files."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
