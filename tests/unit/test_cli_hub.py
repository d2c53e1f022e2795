"""`--hub ORG/NAME`: what is asked of the Hub, and every way in which it may not answer.

All of it on this machine: HF_ENDPOINT names a server with answers of recorded shapes.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hub_server import (
    COMMIT,
    GATED,
    NO_ACCESS,
    NO_ENTRY,
    NO_REPO,
    NO_REVISION,
    POINTER,
    UNNAMED,
    HubServer,
    Reply,
    json_reply,
    moved,
)
from test_cli import Capture, answer_of, check_refused
from test_safetensors import MODEL, header_json, packed
from unit_support import ask, llama, without

from kvcore import hub_client
from kvcore.__main__ import main
from kvcore.importers.byte_source import SLICE_BYTES

Json = dict[str, Any]

TOKEN: Final = "hf_" + "abcdefgh" * 4
CONFIG: Final = llama(vocab_size=1000, intermediate_size=1024, torch_dtype="bfloat16")
TEXT: Final = json.dumps(CONFIG)
TOTAL: Final = 17_654_321
INDEX: Final = {
    "metadata": {"total_size": TOTAL},
    "weight_map": {
        "model.norm.weight": "model-00001-of-00002.safetensors",
        "lm_head.weight": "model-00002-of-00002.safetensors",
    },
}
FILE: Final = packed(header_json(MODEL))
FILE_TOTAL: Final = 2 * (2 * 512_000 + 512 * 512) + 2048
INDEX_NAME: Final = "model.safetensors.index.json"
GPU: Final = ("--gpu", "h100")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_REVISION", "HF_HUB_DOWNLOAD_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "0.05")


def codes(answer: Json) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


class TestAnswers:
    @pytest.mark.parametrize("words", [("show",), ("estimate", "--tokens", "4096")])
    def test_the_same_as_of_the_text_itself(
        self, capsys: Capture, hub: HubServer, words: tuple[str, ...]
    ) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        answer = answer_of(capsys, *words, "--hub", "org/name")
        origin = answer.pop("hub")
        tokens = {"tokens": "4096"} if len(words) > 1 else {}
        plain = ask(words[0], model_text=TEXT, **tokens)
        assert codes(answer)[-1] == "hub_no_index"
        answer["warnings"].pop()
        assert answer == plain
        assert origin == {
            "repo": "org/name",
            "revision": "main",
            "commit": COMMIT,
            "page_url": f"{hub.url}/org/name",
        }

    def test_a_plan_with_the_indexs_bytes(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        hub.has("org/name", COMMIT, model__safetensors__index__json=json_reply(INDEX))
        answer = answer_of(capsys, "plan", "--hub", "org/name", *GPU)
        assert answer["weights"]["total_bytes"] == TOTAL
        assert answer["weights"]["source"] == "file"
        assert not {"hub_no_index", "weights_estimated"} & set(codes(answer))
        assert hub.paths() == [
            "/org/name/resolve/main/config.json",
            f"/org/name/resolve/{COMMIT}/{INDEX_NAME}",
        ]

    @pytest.mark.parametrize("ranges", [True, False])
    def test_a_single_files_header_without_its_tensors(
        self, capsys: Capture, hub: HubServer, ranges: bool
    ) -> None:
        whole = Reply(body=FILE + bytes(FILE_TOTAL), ranges=ranges)
        hub.has("org/name", config__json=json_reply(CONFIG), model__safetensors=whole)
        answer = answer_of(capsys, "show", "--hub", "org/name")
        assert answer["weights"]["total_bytes"] == FILE_TOTAL
        assert answer["weights"]["by_type"]["f32"]["bytes"] == 2048
        assert codes(answer) == []
        last = hub.asked[-1]
        assert last.path == "/org/name/resolve/main/model.safetensors"
        assert last.headers["range"] == f"bytes=0-{SLICE_BYTES - 1}"

    def test_a_long_header_in_a_second_part_read_once(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        header = header_json(MODEL) | {"__metadata__": {"x": "y" * SLICE_BYTES}}
        whole = Reply(body=packed(header))
        hub.has("org/name", config__json=json_reply(CONFIG), model__safetensors=whole)
        answer = answer_of(capsys, "show", "--hub", "org/name")
        assert answer["weights"]["total_bytes"] == FILE_TOTAL
        parts = [asked for asked in hub.asked if "range" in asked.headers]
        assert len(parts) == 2

    def test_large_files_from_another_host(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        with HubServer() as store:
            store.replies["/blob"] = Reply(body=FILE)
            store.replies["/index"] = json_reply(INDEX)
            blob, index = f"{store.url}/blob?sig=1", f"{store.url}/index"
            hub.has("a/file", config__json=json_reply(CONFIG))
            hub.has("a/file", model__safetensors=moved(blob, 302))
            hub.has("a/index", config__json=json_reply(CONFIG))
            hub.has("a/index", COMMIT, model__safetensors__index__json=moved(index))
            found = answer_of(capsys, "show", "--hub", "a/file")
            assert found["weights"]["total_bytes"] == FILE_TOTAL
            found = answer_of(capsys, "show", "--hub", "a/index")
            assert found["weights"]["total_bytes"] == TOTAL

    def test_mistrals_params(self, capsys: Capture, hub: HubServer) -> None:
        params = {"dim": 512, "n_layers": 4, "head_dim": 64, "hidden_dim": 1024,
                  "n_heads": 8, "n_kv_heads": 2, "vocab_size": 1000}  # fmt: skip
        hub.has("org/name", params__json=json_reply(params))
        answer = answer_of(capsys, "show", "--hub", "org/name")
        assert answer["facts"]["num_layers"] == 4

    def test_what_the_hub_has_counts_not_the_catalog(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        hub.has("meta-llama/Llama-3.1-70B-Instruct", config__json=json_reply(CONFIG))
        answer = answer_of(capsys, "show", "--hub", "meta-llama/Llama-3.1-70B-Instruct")
        assert answer["facts"]["num_layers"] == 4

    def test_for_people(self, capsys: Capture, hub: HubServer) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        assert main(["estimate", "--hub", "org/name", "--tokens", "5"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"From {hub.url}/org/name at main, commit {COMMIT[:12]}")
        assert f"org/name has no {INDEX_NAME} that can be read" in out

    def test_a_draft_model_beside_it(self, capsys: Capture, hub: HubServer) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        words = ("plan", "--hub", "org/name", *GPU)
        alone = answer_of(capsys, *words)
        both = answer_of(capsys, *words, "--draft-model", "gpt2")
        assert both["rank"]["weight_bytes"] > alone["rank"]["weight_bytes"]


class TestNames:
    def test_a_renamed_repository(self, capsys: Capture, hub: HubServer) -> None:
        hub.has("old/name", config__json=moved("/new/name/resolve/main/config.json"))
        hub.has("new/name", config__json=moved(
            f"/api/resolve-cache/models/new/name/{COMMIT}/config.json?etag=%22x%22"
        ))  # fmt: skip
        hub.replies[f"/api/resolve-cache/models/new/name/{COMMIT}/config.json"] = (
            json_reply(CONFIG)
        )
        hub.has("new/name", COMMIT, model__safetensors__index__json=json_reply(INDEX))
        answer = answer_of(capsys, "show", "--hub", "old/name")
        assert answer["weights"]["total_bytes"] == TOTAL
        assert answer["hub"]["repo"] == "new/name"
        assert codes(answer) == ["hub_renamed"]

    @pytest.mark.parametrize(
        ("word", "variable", "revision"),
        [
            ("org/name@dev", "", "dev"),
            ("org/name@refs/pr/1", "", "refs%2Fpr%2F1"),
            ("org/name", "v2", "v2"),
            ("org/name@dev", "v2", "dev"),
            ("https://huggingface.co/org/name/tree/dev", "", "dev"),
        ],
    )
    def test_revisions(
        self,
        capsys: Capture,
        hub: HubServer,
        monkeypatch: pytest.MonkeyPatch,
        word: str,
        variable: str,
        revision: str,
    ) -> None:
        monkeypatch.setenv("HF_REVISION", variable)
        hub.has("org/name", revision, config__json=json_reply(CONFIG))
        answer = answer_of(capsys, "show", "--hub", word)
        assert answer["hub"]["revision"] == revision.replace("%2F", "/")

    @pytest.mark.parametrize("word", ["", "a b", "datasets/x", "x/y/../z", "https://x"])
    def test_no_names(self, capsys: Capture, hub: HubServer, word: str) -> None:
        error = check_refused(capsys, "show", "--hub", word)
        assert error["code"] == "invalid_argument"
        assert hub.asked == []

    @pytest.mark.parametrize(
        "words",
        [
            ["show", "gpt2", "--hub", "org/name"],
            ["show"],
            ["show", "--hub"],
            ["models", "--hub", "org/name"],
            ["log", "x", "--hub=org/name"],
        ],
    )
    def test_one_model_by_one_name(
        self, capsys: Capture, hub: HubServer, words: list[str]
    ) -> None:
        assert check_refused(capsys, *words)["code"] == "invalid_argument"
        assert hub.asked == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("reply", "code"),
        [
            (GATED, "hub_gated"),
            (NO_ACCESS, "hub_gated"),
            (NO_REPO, "hub_not_found"),
            (UNNAMED, "hub_not_found"),
            (NO_REVISION, "hub_no_revision"),
            (NO_ENTRY, "hub_no_config"),
            (Reply(status=429), "hub_failed"),
            (Reply(status=503, body=b"<html>"), "hub_failed"),
            (Reply(body=b"<!doctype html><title>Log in</title>"), "hub_unreadable"),
            (Reply(body=POINTER), "hub_unreadable"),
            (Reply(body=TEXT.encode()[:40], length=len(TEXT)), "hub_unreadable"),
            (Reply(body=TEXT.encode()[:40]), "invalid_json"),
            (Reply(body=b""), "invalid_json"),
            (Reply(body=b"[1]"), "invalid_field"),
            (json_reply({"model_type": "llama"}), "missing_field"),
            (moved("/org/name/resolve/main/config.json"), "hub_failed"),
            (moved("ftp://127.0.0.1/x"), "hub_offline"),
            (moved("file:///etc/passwd"), "hub_failed"),
        ],
    )
    def test_codes(
        self, capsys: Capture, hub: HubServer, reply: Reply, code: str
    ) -> None:
        hub.has("org/name", config__json=reply)
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["code"] == code
        assert "passwd" not in error["message"]

    def test_too_large(
        self, capsys: Capture, hub: HubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hub_client, "MAX_BYTES", 10)
        hub.has("org/name", config__json=Reply(body=b"{" * 1000))
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["code"] == "hub_unreadable"
        assert error["params"]["found"] == "longer than 10 bytes"

    @pytest.mark.usefixtures("impatient")
    def test_too_slow(self, capsys: Capture, hub: HubServer) -> None:
        hub.has("org/name", config__json=Reply(hangs=True))
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["code"] == "hub_timeout"
        assert error["params"]["url"] == f"{hub.url}/org/name/raw/main/config.json"

    def test_offline(
        self, capsys: Capture, hub: HubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
            error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["code"] == "hub_offline"
        assert "refused" in error["params"]["reason"].lower()
        assert hub.asked == []

    @pytest.mark.parametrize(
        "index",
        [
            Reply(status=500),
            Reply(body=POINTER),
            Reply(body=b"<html>"),
            Reply(body=b'{"weight_map": 3}'),
            Reply(body=b'{"weight_map": {"a": "../../x"}}'),
            Reply(body=b'{"metadata": {"total_size": 5}', length=31),
            moved("http://127.0.0.1:1/index"),
        ],
    )
    def test_a_config_counts_without_its_index(
        self, capsys: Capture, hub: HubServer, index: Reply
    ) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        hub.has("org/name", COMMIT, model__safetensors__index__json=index)
        answer = answer_of(capsys, "plan", "--hub", "org/name", *GPU)
        assert answer["weights"]["source"] == "counted"
        assert "hub_no_index" in codes(answer)

    @pytest.mark.parametrize(
        "weights",
        [
            Reply(body=b"not a header"),
            Reply(body=b""),
            Reply(body=FILE[:50]),
            Reply(status=500),
            Reply(status=206, body=FILE, ranges=False),
            Reply(status=206, body=FILE, headers={"Content-Range": "bytes 0-9/*"},
                  ranges=False),
            GATED,
        ],
    )  # fmt: skip
    def test_a_config_counts_without_its_weights_header(
        self, capsys: Capture, hub: HubServer, weights: Reply
    ) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG), model__safetensors=weights)
        answer = answer_of(capsys, "show", "--hub", "org/name")
        assert answer["weights"] is None
        assert codes(answer) == ["hub_no_index"]

    @pytest.mark.usefixtures("impatient")
    def test_a_slow_index_does_not_hold_up_the_config(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        hub.has("org/name", config__json=json_reply(CONFIG))
        hub.has("org/name", COMMIT, model__safetensors__index__json=Reply(hangs=True))
        answer = answer_of(capsys, "show", "--hub", "org/name")
        assert codes(answer) == ["hub_no_index"]


class TestToken:
    @pytest.fixture(autouse=True)
    def token(self, plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_TOKEN", f" {TOKEN}\n")

    def test_is_sent_to_the_endpoint_and_kept_on_its_redirects(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        hub.has("old/name", config__json=moved("/org/name/resolve/main/config.json"))
        hub.has("org/name", config__json=json_reply(CONFIG))
        answer_of(capsys, "show", "--hub", "old/name")
        sent = [asked.headers.get("authorization") for asked in hub.asked]
        assert len(sent) == 4
        assert set(sent) == {f"Bearer {TOKEN}"}

    @pytest.mark.parametrize("status", [302, 307, 308])
    def test_never_leaves_for_another_host(
        self, capsys: Capture, hub: HubServer, status: int
    ) -> None:
        with HubServer() as store:
            store.replies["/blob"] = Reply(body=FILE)
            store.replies["/config"] = json_reply(CONFIG)
            hub.has(
                "org/name",
                config__json=moved(f"{store.url}/config", status),
                model__safetensors=moved(f"{store.url}/blob", status),
            )
            answer_of(capsys, "show", "--hub", "org/name")
            assert store.paths() == ["/config", "/blob"]
            for asked in store.asked:
                assert TOKEN not in str(asked)
                assert "authorization" not in asked.headers

    def test_is_not_sent_in_the_clear_to_another_machine(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        try:
            server = HubServer("127.0.0.2")  # not an address kvcore knows as its own
        except OSError:
            pytest.skip("this machine has one loopback address")
        with server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            server.has("org/name", config__json=json_reply(CONFIG))
            answer_of(capsys, "show", "--hub", "org/name")
            assert all("authorization" not in asked.headers for asked in server.asked)

    @pytest.mark.parametrize(
        "reply", [GATED, NO_ACCESS, NO_REPO, UNNAMED, Reply(status=500), NO_ENTRY]
    )
    def test_is_never_printed(
        self, capsys: Capture, hub: HubServer, reply: Reply
    ) -> None:
        hub.has("org/name", config__json=reply)
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert TOKEN not in json.dumps(error)
        if reply is UNNAMED:
            assert error["code"] == "hub_token_refused"

    @pytest.mark.parametrize("inner", ["\n", "\r\nX-Evil: 1", " ", "é", "\x00"])
    def test_is_refused_unprinted_when_it_cannot_be_one(
        self,
        capsys: Capture,
        hub: HubServer,
        monkeypatch: pytest.MonkeyPatch,
        inner: str,
    ) -> None:
        token = f"hf_secret{inner}more"
        monkeypatch.setattr(
            "kvcore.__main__.os.environ",
            {"HF_TOKEN": token, "HF_ENDPOINT": hub.url},
        )
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["params"]["argument"] == "HF_TOKEN"
        assert "secret" not in json.dumps(error)
        assert hub.asked == []

    def test_is_not_part_of_what_an_access_shows(self) -> None:
        assert TOKEN not in repr(hub_client.access({"HF_TOKEN": TOKEN}))


class TestEnvironment:
    @pytest.mark.parametrize(
        "endpoint",
        [
            "file:///etc", "ftp://x", "huggingface.co", "https://", "https://u:p@x",
            "https://x?y", "https://x y", "https://x:port", "http://[::1", "data:1",
        ],
    )  # fmt: skip
    def test_endpoints_that_are_none(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, endpoint: str
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["params"]["argument"] == "HF_ENDPOINT"

    @pytest.mark.parametrize("seconds", ["x", "0", "-1", "nan", "inf", "1e9"])
    def test_timeouts_that_are_none(
        self,
        capsys: Capture,
        hub: HubServer,
        monkeypatch: pytest.MonkeyPatch,
        seconds: str,
    ) -> None:
        monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", seconds)
        error = check_refused(capsys, "show", "--hub", "org/name")
        assert error["params"]["argument"] == "HF_HUB_DOWNLOAD_TIMEOUT"
        assert hub.asked == []

    def test_without_any_it_is_the_hub_itself(self) -> None:
        plain = hub_client.access({})
        assert plain == hub_client.Access()
        assert plain.endpoint == "https://huggingface.co"
        assert hub_client.access({"HF_ENDPOINT": "https://m.example/"}).endpoint == (
            "https://m.example"
        )

    def test_nothing_is_asked_without_the_option(
        self, capsys: Capture, hub: HubServer
    ) -> None:
        answer_of(capsys, "show", "Qwen/Qwen3-8B")
        check_refused(capsys, "show", "nobody/such-model")
        assert hub.asked == []

    def test_says_who_asks(self, capsys: Capture, hub: HubServer) -> None:
        hub.has("org/name", config__json=json_reply(without(CONFIG)))
        answer_of(capsys, "show", "--hub", "org/name")
        first = hub.asked[0].headers
        assert first["user-agent"].startswith("kvcore/")
        assert not {"cookie", "referer", "authorization"} & set(first)
