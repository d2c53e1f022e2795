"""Files of models, chosen and dropped: read in slices, answered exactly, or named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from browser_support import expect_total
from page_support import DEFAULT_TOTAL, expect_answer, go, live_page
from playwright.sync_api import Browser, Locator, Page, expect

from kvcore import api
from tests.unit.gguf_writer import Writer

SIZE: Final = 10 * 2**30
Q8_0: Final = 8
LLAMA: Final[dict[str, Any]] = {
    "general.architecture": "llama",
    "general.type": "model",
    "general.name": "Sparse Llama",
    "general.file_type": 7,
    "llama.block_count": 32,
    "llama.context_length": 131072,
    "llama.embedding_length": 4096,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
}


def files_line(page: Page) -> Locator:
    return page.locator("#model-files .file-facts")


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    box = shared.locator("#paste-box")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    return shared


def sparse(path: Path, metadata: dict[str, Any], words: int = 0) -> Path:
    """A GGUF file of 10 GiB, of which the disk holds the header alone."""
    rows = SIZE // (4096 // 32 * 34)
    tensors = [("blk.0.ffn_up.weight", (4096, rows), Q8_0, rows * (4096 // 32 * 34))]
    tokens = {"tokenizer.ggml.tokens": [f"word{n}" for n in range(words)]}
    header, size = Writer().file({**metadata, **(tokens if words else {})}, tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(size)
    return path


class TestGguf:
    def test_ten_gigabytes_are_answered_from_their_header(
        self, live: Page, tmp_path: Path
    ) -> None:
        path = sparse(tmp_path / "sparse.gguf", LLAMA, words=200_000)
        live.locator("#config-file").set_input_files(path)
        expect(files_line(live)).to_contain_text("sparse.gguf")
        answer = api.call("estimate", {"model": LLAMA, "tokens": 131_072})
        expect_total(live, f"{answer['total_bytes']:,}")
        expect(files_line(live)).to_contain_text("10.0 GiB of weights")
