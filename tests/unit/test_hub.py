"""Names on the Hugging Face Hub, the files to ask for, and what its answers mean."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import Json, ask, refusal

from kvcore.errors import InvalidArgument, KvcoreError
from kvcore.hub import Lookup, Response, follow
from kvcore.hub_names import REPO, Repository, read

COMMIT: Final = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
CONFIG, INDEX = "config.json", "model.safetensors.index.json"
PARAMS, CONSOLIDATED = "params.json", "consolidated.safetensors.index.json"
RAW: Final = "https://huggingface.co/org/name/raw/main/config.json"
ASKED: Final = Repository(repo="org/name")


def found(file: str = CONFIG, **more: Any) -> Response:
    fields = {"status": 200, "start": '{"a": 1', "url": RAW, "commit": COMMIT} | more
    return Response(file=file, **fields)


def missing(file: str = CONFIG, code: str = "EntryNotFound") -> Response:
    return Response(file=file, status=404, error_code=code)


def error_of(*responses: Response, authenticated: bool = False) -> KvcoreError:
    with pytest.raises(KvcoreError) as caught:
        follow(ASKED, responses, authenticated=authenticated)
    return caught.value


class TestNames:
    @pytest.mark.parametrize(
        ("text", "repo", "revision"),
        [
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main"),
            ("  gpt2 ", "gpt2", "main"),
            ("Qwen/Qwen3-8B/", "Qwen/Qwen3-8B", "main"),
            ("org/name.v1_x-y@v1.0", "org/name.v1_x-y", "v1.0"),
            (f"org/name@{COMMIT}", "org/name", COMMIT),
            ("org/name@refs/pr/3", "org/name", "refs/pr/3"),
            ("gpt2@refs/pr/3", "gpt2", "refs/pr/3"),
            ("https://huggingface.co/org/name", "org/name", "main"),
            ("http://www.huggingface.co/org/name/", "org/name", "main"),
            ("huggingface.co/org/name?library=x#usage", "org/name", "main"),
            ("https://hf.co/gpt2", "gpt2", "main"),
            ("https://huggingface.co/org/name/tree/dev", "org/name", "dev"),
            ("https://huggingface.co/gpt2/tree/dev", "gpt2", "dev"),
            ("https://huggingface.co/org/name/tree/dev/folder", "org/name", "dev"),
            (f"https://huggingface.co/org/name/blob/{COMMIT}/config.json",
             "org/name", COMMIT),
            ("https://huggingface.co/org/name/resolve/refs%2Fpr%2F7/config.json",
             "org/name", "refs/pr/7"),
            ("https://huggingface.co/org/name/raw/refs/pr/7/config.json",
             "org/name", "refs/pr/7"),
            ("https://huggingface.co/org/name/tree", "org/name", "main"),
            ("https://huggingface.co/org/name/discussions/4", "org/name", "main"),
            ("https://huggingface.co/org/name/tree/v1.0%2Bcu", "org/name", "v1.0+cu"),
        ],
    )  # fmt: skip
    def test_are_read(self, text: str, repo: str, revision: str) -> None:
        assert read(text) == Repository(repo=repo, revision=revision)

    @pytest.mark.parametrize(
        "text",
        [
            "", " ", "/", "@main", "a b/c", "org/na--me", "org/na..me", "org/.name",
            "-org/name", "org/name-", "org/name.git", "org/" + "n" * 97, "조직/모델",
            "org/name:Q4_K_M", "https://example.org/org/name", "ftp://hf.co/org/name",
            "https://huggingface.co", "https://huggingface.co/datasets/org/name",
            "spaces/org", "javascript:alert(1)", "../../etc/passwd", "org/name\nX: y",
            "org/%2e%2e", "https://user@huggingface.co/org/name",
            "https://huggingface.co:81/org/name", "{}",
        ],
    )  # fmt: skip
    def test_are_refused(self, text: str) -> None:
        with pytest.raises(KvcoreError) as caught:
            read(text)
        assert caught.value.code == "invalid_argument"
        assert caught.value.params["argument"] == "repo"

    @pytest.mark.parametrize(
        "revision", ["..", "a/../b", "a b", "-x", "x" * 101, "a?b", "a%2e", "조"]
    )
    def test_revisions_are_refused(self, revision: str) -> None:
        with pytest.raises(KvcoreError) as caught:
            read("org/name", revision)
        assert caught.value.params["argument"] == "revision"

    def test_the_names_own_revision_comes_first(self) -> None:
        assert read("org/name@dev", "v2").revision == "dev"
        assert read("org/name", "v2").revision == "v2"

    def test_a_mirrors_address_is_read_where_the_mirror_is_asked(self) -> None:
        mirror = "https://mirror.example/hf"
        assert read("org/name", endpoint=mirror).page_url == f"{mirror}/org/name"
        with pytest.raises(KvcoreError):
            read("https://other.example/org/name", endpoint=mirror)
        local = "http://127.0.0.1:81"
        assert read(f"{local}/org/name", endpoint=local).repo == "org/name"

    @given(st.text(max_size=60) | st.from_regex(r"[\w./@:%#?-]{0,40}", fullmatch=True))
    def test_any_text_is_a_safe_address_or_a_typed_error(self, text: str) -> None:
        try:
            url = read(text).file_url(CONFIG)
        except InvalidArgument:
            return
        assert url.startswith("https://huggingface.co/")
        path = url.removeprefix("https://huggingface.co/")
        assert path.endswith("/config.json")
        assert path.count("/") in (3, 4)
        assert path.isascii()
        assert ".." not in path
        assert not set(path) & set(" ?#@\\\n\t\"'<>&")

    @given(st.from_regex(REPO, fullmatch=True), st.sampled_from(["", "@v1", "@a/b"]))
    def test_an_address_says_the_same_as_a_name(self, repo: str, at: str) -> None:
        try:
            named = read(repo + at)
        except KvcoreError:
            return
        assert read(f"https://huggingface.co/{repo}{at}") == named
        assert read(named.tree_url) == named


class TestFollowing:
    def test_asks_for_the_config_then_for_its_index_of_the_same_commit(self) -> None:
        first = follow(ASKED, [])
        assert (first.wanted, first.wanted_url) == (CONFIG, RAW)
        second = follow(ASKED, [found()])
        assert second.wanted == INDEX
        assert second.wanted_url == RAW.replace("main", COMMIT).replace(CONFIG, INDEX)
        done = follow(ASKED, [found(), found(INDEX)])
        assert done == Lookup(
            repository=ASKED, commit=COMMIT, files=(CONFIG, INDEX), notices=()
        )

    def test_without_a_commit_the_revision_is_asked_for(self) -> None:
        for commit in ("", "main", "../../x", COMMIT.upper()):
            second = follow(ASKED, [found(commit=commit)])
            assert second.wanted_url == RAW.replace(CONFIG, INDEX)
            assert second.commit == ""

    def test_mistrals_params_come_second(self) -> None:
        assert follow(ASKED, [missing()]).wanted == PARAMS
        assert follow(ASKED, [missing(), found(PARAMS)]).wanted == CONSOLIDATED
        done = follow(ASKED, [missing(), found(PARAMS), found(CONSOLIDATED)])
        assert done.files == (PARAMS, CONSOLIDATED)

    @pytest.mark.parametrize(
        "index",
        [
            missing(INDEX),
            Response(file=INDEX, status=500),
            Response(file=INDEX, status=401, error_code="GatedRepo"),
            Response(file=INDEX, failure="timeout"),
            Response(file=INDEX, failure="no route to host"),
            found(INDEX, start="version https://git-lfs.github.com/spec/v1\noid sha"),
            found(INDEX, start="<!doctype html>"),
            found(INDEX, failure="cut off after 10 of 20 bytes"),
        ],
    )
    def test_an_index_that_cannot_be_had_is_said(self, index: Response) -> None:
        done = follow(ASKED, [found(), index])
        assert done.wanted is None
        assert done.files == (CONFIG,)
        (notice,) = done.notices
        assert notice.code == "hub_no_index"
        assert notice.params == {"repo": "org/name", "file": INDEX}

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://huggingface.co/new/Name/raw/main/config.json", "new/Name"),
            (f"https://huggingface.co/new/n/resolve/{COMMIT}/config.json?x=1", "new/n"),
            ("https://huggingface.co/api/resolve-cache/models/new/n/"
             f"{COMMIT}/config.json?%2Fnew%2Fn=&etag=%22x%22", "new/n"),
            ("https://huggingface.co/ORG/Name/raw/main/config.json", None),
            ("https://cdn.example/new/n/raw/main/config.json", None),
            ("https://huggingface.co/login?next=x", None),
            ("", None),
        ],
    )  # fmt: skip
    def test_a_renamed_repository_is_followed_and_said(
        self, url: str, name: str | None
    ) -> None:
        second = follow(ASKED, [found(url=url)])
        assert second.wanted_url
        done = follow(ASKED, [found(url=url), found(INDEX)])
        said = [(note.code, note.params) for note in done.notices]
        if name is None:
            assert said == []
            assert done.repository.repo.lower() == "org/name"
            return
        assert said == [("hub_renamed", {"repo": "org/name", "name": name})]
        assert done.repository.repo == name
        assert f"/{name}/" in second.wanted_url
        assert done.origin["page_url"] == f"https://huggingface.co/{name}"


class TestRefusals:
    @pytest.mark.parametrize("status", [401, 403])
    @pytest.mark.parametrize("authenticated", [False, True])
    def test_gated(self, status: int, authenticated: bool) -> None:
        response = Response(file=CONFIG, status=status, error_code="GatedRepo")
        error = error_of(response, authenticated=authenticated)
        assert error.code == "hub_gated"
        assert error.params == {
            "repo": "org/name",
            "url": "https://huggingface.co/org/name",
        }

    @pytest.mark.parametrize(
        "response",
        [
            Response(file=CONFIG, status=401),
            Response(file=CONFIG, status=401, error_code="RepoNotFound"),
            Response(file=CONFIG, status=404, error_code="RepoNotFound"),
        ],
    )
    def test_not_there_or_private(self, response: Response) -> None:
        error = error_of(response)
        assert error.code == "hub_not_found"
        assert error.params["url"] == "https://huggingface.co/models?search=name"

    def test_a_token_that_is_not_taken(self) -> None:
        error = error_of(Response(file=CONFIG, status=401), authenticated=True)
        assert error.code == "hub_token_refused"
        told = Response(file=CONFIG, status=404, error_code="RepoNotFound")
        assert error_of(told, authenticated=True).code == "hub_not_found"

    def test_no_such_revision(self) -> None:
        error = error_of(missing(code="RevisionNotFound"))
        assert error.code == "hub_no_revision"
        assert error.params["revision"] == "main"

    @pytest.mark.parametrize("code", ["EntryNotFound", ""])
    def test_no_config(self, code: str) -> None:
        error = error_of(missing(CONFIG, code), missing(PARAMS, code))
        assert error.code == "hub_no_config"
        assert error.params["url"] == "https://huggingface.co/org/name/tree/main"

    @pytest.mark.parametrize("status", [400, 403, 410, 429, 500, 503])
    def test_another_status(self, status: int) -> None:
        error = error_of(Response(file=CONFIG, status=status))
        assert error.code == "hub_failed"
        assert error.params["status"] == status
        assert error.params["url"] == RAW

    def test_nothing_came(self) -> None:
        error = error_of(Response(file=CONFIG, failure="no route to host"))
        assert error.code == "hub_offline"
        assert error.params == {
            "host": "huggingface.co", "reason": "no route to host", "url": RAW
        }  # fmt: skip
        late = error_of(Response(file=CONFIG, failure="timeout"))
        assert late.code == "hub_timeout"
        assert late.params == {"host": "huggingface.co", "url": RAW}

    @pytest.mark.parametrize(
        ("fields", "what"),
        [
            ({"start": "<!DOCTYPE html>\n<html>"}, "a web page"),
            ({"start": "\ufeff  <html>"}, "a web page"),
            ({"start": "version https://git-lfs.github.com/spec/v1"},
             "a Git LFS pointer"),
            ({"failure": "cut off after 3 of 9 bytes"}, "cut off after 3 of 9 bytes"),
        ],
    )  # fmt: skip
    def test_what_came_is_no_json(self, fields: Json, what: str) -> None:
        error = error_of(found(**fields))
        assert error.code == "hub_unreadable"
        assert error.params["found"] == what
        assert error.params["file"] == CONFIG


class TestApi:
    def test_step_by_step(self) -> None:
        first = ask("hub", repo="https://huggingface.co/org/name/tree/dev")
        assert first["repo"] == "org/name"
        assert first["revision"] == "dev"
        assert first["next"] == {"file": CONFIG, "url": RAW.replace("main", "dev")}
        assert first["files"] == []
        got = {"file": CONFIG, "status": 200, "url": first["next"]["url"],
               "commit": COMMIT, "start": "{"}  # fmt: skip
        second = ask("hub", repo="org/name", revision="dev", responses=[got])
        assert second["next"]["file"] == INDEX
        assert COMMIT in second["next"]["url"]
        done = ask(
            "hub", repo="org/name", revision="dev",
            responses=[got, {"file": INDEX, "status": 404}],
        )  # fmt: skip
        assert done["next"] is None
        assert done["files"] == [CONFIG]
        assert done["commit"] == COMMIT
        assert [note["code"] for note in done["warnings"]] == ["hub_no_index"]

    def test_errors_are_objects(self) -> None:
        got = {"file": CONFIG, "status": 401, "error_code": "GatedRepo"}
        assert refusal("hub", repo="a/b", responses=[got])["code"] == "hub_gated"
        for repo in ("", "x y", 3, None, {}):
            assert refusal("hub", repo=repo)["code"] == "invalid_argument"

    @pytest.mark.parametrize(
        "responses",
        [
            "x", [3], {}, [{"file": CONFIG, "status": "x"}], [{"stranger": 1}],
            [{"file": CONFIG, "status": True}], [{"file": ["a"]}],
            [{"file": CONFIG}] * 50,
        ],
    )  # fmt: skip
    def test_other_responses_are_refused(self, responses: object) -> None:
        error = refusal("hub", repo="org/name", responses=responses)
        assert error["code"] in ("invalid_argument", "unknown_option")
