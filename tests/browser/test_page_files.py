"""Files of models, chosen and dropped: read in slices, answered exactly, or named."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from browser_support import OpenPage, expect_total
from gguf_writer import Writer
from page_support import (
    DEFAULT_TOTAL,
    choose_model,
    expect_answer,
    fragment,
    go,
    live_page,
    set_open,
)
from playwright.sync_api import Browser, Locator, Page, expect
from test_a11y import violations

from kvcore import api

SIZE: Final = 10 * 2**30
MOST_READ: Final = 64 * 2**20
Q8_0: Final = 8
ROW_BYTES: Final = 4096 // 32 * 34

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
SMALL: Final = LLAMA | {"general.name": "Small Llama", "llama.block_count": 4}
CONFIG: Final[dict[str, Any]] = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "float16",
}
SHARDS: Final = (
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
)

DROP: Final = """async (files) => {
  const transfer = new DataTransfer();
  for (const [name, base64] of files) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
  }
  window.dispatchEvent(new DragEvent("drop", {
    dataTransfer: transfer, bubbles: true, cancelable: true,
  }));
}"""

GPU: Final = {"gpu": "rtx-4090", "gpus": 1, "engine": "llama_cpp", "tokens": 32_768}


def files_line(page: Page) -> Locator:
    return page.locator("#model-files .file-facts")


def problem(page: Page) -> Locator:
    return page.locator("#model-files .error")


def total(**params: object) -> str:
    answer = api.call("estimate", {"tokens": 131_072, **params})
    return f"{answer['total_bytes']:,}"


def choose(page: Page, *paths: Path) -> None:
    page.locator("#config-file").set_input_files(paths)


def drop(page: Page, files: Mapping[str, bytes]) -> None:
    packed = [(name, base64.b64encode(data).decode()) for name, data in files.items()]
    page.evaluate(DROP, packed)


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Page]:
    with live_page(browser, site) as page:
        yield page


@pytest.fixture
def live(shared: Page) -> Page:
    go(shared)
    expect_answer(shared, **DEFAULT_TOTAL)
    set_open(shared, "paste-box")
    return shared


def gguf(
    path: Path, metadata: Mapping[str, object], size: int = SIZE, words: int = 0
) -> Path:
    """A GGUF file of about that size, of which the disk holds the header alone."""
    rows = size // ROW_BYTES
    tensors = [("blk.0.ffn_up.weight", (4096, rows), Q8_0, rows * ROW_BYTES)]
    tokens = {"tokenizer.ggml.tokens": [f"word{n}" for n in range(words)]}
    header, whole = Writer().file({**metadata, **(tokens if words else {})}, tensors)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(whole)
    return path


def safetensors(elements: int) -> bytes:
    """A header that says so; nobody reads the weights behind it."""
    place = {"dtype": "F16", "shape": [elements], "data_offsets": [0, 2 * elements]}
    header = json.dumps({f"tensor{elements}": place}).encode()
    return struct.pack("<Q", len(header)) + header


def checkpoint(shards: tuple[str, ...] = SHARDS) -> dict[str, bytes]:
    files = {"config.json": json.dumps(CONFIG).encode()}
    files["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {f"w{n}": name for n, name in enumerate(SHARDS)}}
    ).encode()
    return files | {name: safetensors(10**9 + n) for n, name in enumerate(shards)}


class TestGguf:
    def test_ten_gigabytes_are_answered_from_their_header(
        self, live: Page, tmp_path: Path
    ) -> None:
        live.evaluate(
            """() => {
              const post = Worker.prototype.postMessage;
              window.heard = [];
              Worker.prototype.postMessage = function (message, ...rest) {
                if (message.files) {
                  this.addEventListener("message", ({data}) => {
                    if (data.id === message.id && data.answer) heard.push(data.answer);
                  });
                }
                return post.call(this, message, ...rest);
              };
            }"""
        )
        choose(live, gguf(tmp_path / "sparse.gguf", LLAMA, words=250_000))
        expect(files_line(live)).to_contain_text("GGUF sparse.gguf")
        expect_total(live, total(model=LLAMA))
        expect(files_line(live)).to_contain_text("10.0 GiB of weights · Q8_0 · 8.5")
        expect(files_line(live)).to_contain_text("of 10.0 GiB")
        expect(live.locator("#model")).to_have_value("Sparse Llama")
        answer = json.loads(live.evaluate("heard[0]"))
        assert answer["total_bytes"] > SIZE * 0.999
        assert 0 < answer["read_bytes"] < MOST_READ
        exact = f"{answer['models'][0]['weights']['total_bytes']:,} bytes"
        expect(files_line(live).get_by_title(exact)).to_have_count(1)

    def test_split_in_two(self, live: Page, tmp_path: Path) -> None:
        part = {"split.count": 2, "split.tensors.count": 2}
        names = [f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
        first = gguf(tmp_path / names[0], LLAMA | {"split.no": 0} | part, 2**30)
        second = gguf(tmp_path / names[1], {"split.no": 1} | part, 2**30)
        choose(live, first, second)
        expect(files_line(live)).to_contain_text("2.00 GiB of weights")
        choose(live, first)
        missing = live.locator("#model-messages")
        expect(missing).to_contain_text(f"1 of 2 weight files are not here: {names[1]}")
        choose(live, second)
        expect(problem(live)).to_contain_text(f"Choose {names[0]} as well")
        expect(files_line(live)).to_contain_text("1.00 GiB of weights")

    def test_a_plan_has_the_file_s_bytes_and_so_has_its_link(
        self, live: Page, open_page: OpenPage, site: str, tmp_path: Path
    ) -> None:
        go(live, **GPU)
        choose(live, gguf(tmp_path / "m.gguf", LLAMA, 5 * 2**30))
        sure = live.locator(".confidence")
        expect(sure).to_contain_text("weights: 5.00 GiB, as the files have them")
        verdict = live.locator(".verdict:not(.old):not(.waiting)").inner_text()
        assert {"cfg", "files"} <= set(fragment(live))
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        expect(other.locator(".confidence")).to_contain_text(
            "weights: 5.00 GiB, as the files have them", timeout=90_000
        )
        assert other.locator(".verdict").inner_text() == verdict
        expect(files_line(other)).to_contain_text("5.00 GiB of weights")
        expect(files_line(other)).to_contain_text("when this link was made")

    def test_the_same_bytes_as_by_config_and_by_name(
        self, live: Page, tmp_path: Path
    ) -> None:
        same = total(model="llama-3.1-8b-instruct", kv_format="fp16")
        live.locator("#kv_format").select_option("fp16")
        choose_model(live, "llama-3.1-8b-instruct")
        expect_total(live, same)
        choose(live, gguf(tmp_path / "m.gguf", LLAMA, 2**30))
        expect(live.locator("#model")).to_have_value("Sparse Llama")
        expect_total(live, same)
        drop(live, {"config.json": json.dumps(CONFIG).encode()})
        expect(files_line(live)).to_have_text("Config config.json")
        expect_total(live, same)


class TestCheckpoint:
    def test_config_index_and_shards(self, live: Page) -> None:
        drop(live, checkpoint())
        expect(files_line(live)).to_contain_text("Config and weights config.json")
        expect(files_line(live).get_by_title("4,000,000,002 bytes")).to_have_count(1)
        expect(files_line(live)).to_contain_text("16 bits per weight")

    def test_a_shard_that_is_missing(self, live: Page) -> None:
        drop(live, checkpoint(SHARDS[:1]))
        expect(live.locator("#model-messages")).to_contain_text(
            f"1 of 2 weight files are not here: {SHARDS[1]}"
        )

    def test_a_folder(self, live: Page, tmp_path: Path) -> None:
        folder = tmp_path / "llama"
        (folder / "original").mkdir(parents=True)
        for name, data in checkpoint().items():
            (folder / name).write_bytes(data)
        (folder / "tokenizer.json").write_text("{}")
        (folder / "original" / "params.json").write_text("{}")
        live.locator("#config-folder").set_input_files(folder)
        expect(files_line(live).get_by_title("4,000,000,002 bytes")).to_have_count(1)

    def test_another_model_forgets_the_weights(self, live: Page) -> None:
        drop(live, checkpoint())
        expect(files_line(live)).to_have_count(1)
        live.get_by_role("button", name="Reset all").click()
        expect(files_line(live)).to_have_count(0)
        drop(live, checkpoint())
        expect(files_line(live)).to_have_count(1)
        live.locator("#paste").fill(json.dumps(CONFIG, indent=1))
        expect(files_line(live)).to_have_count(0)
        assert "files" not in fragment(live)


class TestLeftOut:
    def test_what_lies_beside_a_gguf_file_is_named(self, live: Page) -> None:
        header = Writer().header(SMALL, [("a", (32, 8), 0, 1024)])
        eyes = Writer().header({"general.architecture": "clip"})
        drop(
            live,
            {
                "a.gguf": header,
                "eyes.gguf": eyes,
                "config.json": json.dumps(CONFIG).encode(),
            },
        )
        expect(files_line(live)).to_contain_text("a.gguf")
        remarks = live.locator("#model-files .warning")
        expect(remarks).to_have_count(2)
        expect(remarks.filter(has_text="being no models")).to_contain_text("eyes.gguf")
        beside = remarks.filter(has_text="The GGUF file says what the model is")
        expect(beside).to_contain_text("config.json")
        drop(live, {"a.gguf": header})
        expect(remarks).to_have_count(0)

    def test_weights_that_are_elsewhere_are_no_bytes(self, live: Page) -> None:
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        drop(
            live,
            {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": pointer},
        )
        expect(live.locator("#model-messages")).to_contain_text("1 of 1 weight files")
        expect(files_line(live)).to_contain_text("config.json")
        expect(files_line(live)).not_to_contain_text("of weights")


class TestRefused:
    @pytest.mark.parametrize(
        ("files", "words"),
        [
            ({"cut.gguf": Writer().header(LLAMA)[:200]}, "needs at least"),
            ({"lora.gguf": Writer().header(LLAMA | {"general.type": "adapter"})},
             "is an adapter for llama"),
            ({"mmproj.gguf": Writer().header({"general.architecture": "clip"})},
             "give the file of the language model"),
            ({"adapter_config.json": b'{"base_model_name_or_path": "org/base"}'},
             "is an adapter for org/base"),
            ({"photo.png": b"\x89PNG\r\n\x1a\n"}, "photo.png can"),
            ({"models.zip": b"PK\3\4" + bytes(99)}, "models.zip can"),
            ({"config.json": b"{"}, "This is not JSON"),
            ({"model.safetensors": safetensors(9)}, "Choose the config.json beside"),
            ({"a.txt": b"hello", "b.png": b"\x89PNG"}, "None of these 2 files"),
        ],
    )  # fmt: skip
    def test_named_and_nothing_is_lost(
        self, live: Page, files: dict[str, bytes], words: str
    ) -> None:
        live.locator("#paste").fill('{"model_type": "half typed')
        drop(live, files)
        expect(problem(live)).to_contain_text(words)
        expect_answer(live, **DEFAULT_TOTAL)
        expect(live.locator("#paste")).to_have_value('{"model_type": "half typed')
        assert "cfg" not in fragment(live)

    def test_the_newest_files_count(self, live: Page, tmp_path: Path) -> None:
        slow = gguf(tmp_path / "slow.gguf", LLAMA, words=250_000)
        choose(live, slow)
        choose(live, gguf(tmp_path / "quick.gguf", SMALL, 2**30))
        expect(files_line(live)).to_contain_text("quick.gguf")
        live.wait_for_timeout(500)
        expect(files_line(live)).to_contain_text("quick.gguf")
        expect(live.locator("#model")).to_have_value("Small Llama")


class TestDraft:
    def test_target_and_draft_together(self, live: Page, tmp_path: Path) -> None:
        go(live, **GPU)
        small = gguf(tmp_path / "small.gguf", SMALL, 2**29)
        big = gguf(tmp_path / "big.gguf", LLAMA, 2**32)
        choose(live, small, big)
        pair = live.locator(".draft-pair")
        expect(pair).to_contain_text("Target: Sparse Llama · Draft: Small Llama")
        expect(live.locator(".account")).to_contain_text("weights 512 MiB (12.5%")
        pair.get_by_role("button", name="Swap").click()
        expect(pair).to_contain_text("Target: Small Llama · Draft: Sparse Llama")
        expect(live.locator(".account")).to_contain_text("weights 4.00 GiB (800%")
        assert violations(live) == []
        pair.get_by_role("button", name="Remove").click()
        expect(pair).to_have_count(0)
        expect(live.locator(".account")).not_to_contain_text("Drafting")

    def test_of_the_catalog_and_in_the_link(
        self, live: Page, open_page: OpenPage, site: str
    ) -> None:
        go(live, **GPU, model="llama-3.1-8b-instruct")
        set_open(live, "more")
        live.locator("#draft_model").fill("llama-3.2-1b-instruct")
        live.locator("#draft_model").press("Enter")
        expect(live.locator(".draft-pair")).to_contain_text("Draft: Llama-3.2-1B")
        expect(live.locator(".account")).to_contain_text("Drafting")
        drafting = live.locator(".account").inner_text()
        assert fragment(live)["draft_model"] == "llama-3.2-1b-instruct"
        live.locator("#tab-cli").click()
        expect(live.locator("#share-text")).to_have_value(
            "python3 -m kvcore plan llama-3.1-8b-instruct "
            "--draft-model llama-3.2-1b-instruct --gpu rtx-4090 --gpus 1 "
            "--engine llama_cpp --context 32768 --concurrency 1"
        )
        other = open_page(f"{site}{live.evaluate('location.hash')}")
        expect(other.locator("#draft_model")).to_have_value("Llama-3.2-1B-Instruct")
        expect(other.locator(".account")).to_contain_text("Drafting", timeout=90_000)
        assert other.locator(".account").inner_text() == drafting

    def test_a_draft_from_a_file_alone(self, live: Page, tmp_path: Path) -> None:
        go(live, **GPU, model="llama-3.1-8b-instruct")
        set_open(live, "more")
        draft = live.locator("#draft-file")
        draft.set_input_files(gguf(tmp_path / "small.gguf", SMALL, 2**29))
        expect(live.locator("#draft_model")).to_have_value("Small Llama")
        expect(live.locator("#model")).to_have_value("Llama-3.1-8B-Instruct")
        expect(live.locator("#draft_model-hint")).to_contain_text("512 MiB of weights")
        exact = live.locator(".confidence dt.exact + dd")
        expect(exact).to_contain_text("weights: 15.0 GiB, the published checkpoint")
        expect(exact).to_contain_text("draft weights: 512 MiB, as the files have them")
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(b"GGUF")
        draft.set_input_files(cut)
        expect(live.locator("#more .error")).to_contain_text("cut.gguf ends after 4 B")
        expect(live.locator("#draft_model")).to_have_value("Small Llama")

    def test_an_unknown_one_in_a_link_is_named(self, live: Page) -> None:
        go(live, **GPU, draft_model="no-such-model")
        expect(live.locator(".notices")).to_contain_text("“no-such-model” is not in")
        expect(live.locator(".draft-pair")).to_have_count(0)


class TestElsewhere:
    def test_a_frame_takes_no_files(self, open_page: OpenPage, site: str) -> None:
        page = open_page(f"{site}#v=1&embed=1&view=answer")
        expect(page.locator("html[data-live]")).to_have_count(1)
        taken = page.evaluate(
            """() => {
              const transfer = new DataTransfer();
              transfer.items.add(new File(["{}"], "config.json"));
              const drag = new DragEvent("dragover", {
                dataTransfer: transfer, bubbles: true, cancelable: true,
              });
              window.dispatchEvent(drag);
              return drag.defaultPrevented;
            }"""
        )
        assert not taken
        expect(page.locator(".drop, .drop-box, #config-file")).to_have_count(0)

    def test_a_damaged_link_is_named(self, live: Page) -> None:
        go(live, files="AAAA")
        expect(live.locator(".notices")).to_contain_text("says of files is damaged")
        expect_answer(live, **DEFAULT_TOTAL)

    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_accessible_and_narrow(self, live: Page, tmp_path: Path, lang: str) -> None:
        live.set_viewport_size({"width": 360, "height": 740})
        go(live, **GPU, lang=lang, theme="dark")
        set_open(live, "more")
        choose(
            live,
            gguf(tmp_path / f"{'a-long-name-' * 9}.gguf", LLAMA, 2**32),
            gguf(tmp_path / "small.gguf", SMALL, 2**29),
        )
        expect(live.locator(".draft-pair")).to_have_count(1)
        drop(live, {"photo.png": b"\x89PNG"})
        expect(problem(live)).to_contain_text("photo.png")
        assert violations(live) == []
        over = live.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0
        live.set_viewport_size({"width": 1280, "height": 800})
