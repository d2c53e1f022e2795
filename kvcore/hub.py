"""Models by their name on the Hugging Face Hub: what to ask it, and what it answered.

Nothing here opens a connection. Whoever can make requests (`hub_client` at a terminal,
the page on a click) starts with `hub_names.read`, asks `follow` for the file to get
next, hands over what came back, and so on until no file is wanted any more.

Source: the headers X-Error-Code and X-Repo-Commit as the Hub's own client takes them,
huggingface_hub 1.x, utils/_http.py and file_download.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvcore.errors import (
    HubFailed,
    HubGated,
    HubNoConfig,
    HubNoRevision,
    HubNotFound,
    HubOffline,
    HubTimeout,
    HubTokenRefused,
    HubUnreadable,
    KvcoreError,
    Notice,
)
from kvcore.hub_names import NAME, RAW, Repository, read
from kvcore.params import Params, invalid

FILES: Final[Mapping[str, str]] = {
    "config.json": "model.safetensors.index.json",
    "params.json": "consolidated.safetensors.index.json",
}
"""What describes a model, in the order to ask, and the index of weights beside it."""

WEIGHTS: Final[Mapping[str, str]] = {
    "config.json": "model.safetensors",
    "params.json": "consolidated.safetensors",
}
"""Where all weights are when they are in one file, which then has no index."""

GIT_LFS: Final = "version https://git-lfs"

TIMEOUT: Final = "timeout"
"""The failure of those who waited long enough."""

MAX_TEXT: Final = 300
START_CHARACTERS: Final = 64
"""How much of a file's beginning says whether it is one."""

COMMIT: Final = re.compile(r"[0-9a-f]{40}")
MOVED: Final = re.compile(
    rf"(?:api/resolve-cache/models/)?((?:{NAME}/)?{NAME})"
    r"/(?:(?:raw|resolve)/[^/]+|[0-9a-f]{40})/[^/]+",
    re.ASCII,
)
GATED: Final = "GatedRepo"
NO_REPO: Final = "RepoNotFound"
NO_REVISION: Final = "RevisionNotFound"
OK, UNAUTHORIZED, NOT_FOUND = 200, 401, 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back for one file.

    `status` is HTTP's, 0 where nothing came; then `failure` says why: `TIMEOUT` or
    what the machine calls it. It is also set when what came cannot be used. `url` is
    where the file was in the end, `start` its first characters.
    """

    file: str
    status: int = 0
    failure: str = ""
    error_code: str = ""
    url: str = ""
    commit: str = ""
    start: str = ""

    @property
    def found(self) -> str:
        """What it is instead of JSON; nothing where it may be JSON."""
        if self.failure:
            return self.failure
        start = self.start.lstrip("\ufeff \t\r\n")
        if start.startswith(GIT_LFS):
            return "a Git LFS pointer"
        return "a web page" if start.startswith("<") else ""

    @property
    def is_usable(self) -> bool:
        return self.status == OK and not self.found


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """How far a look-up has come: the file to get next, or those that were found."""

    repository: Repository
    commit: str = ""
    wanted: str | None = None
    wanted_url: str | None = None
    files: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def origin(self) -> dict[str, str | None]:
        """What an answer says of where its model came from."""
        return {
            "repo": self.repository.repo,
            "revision": self.repository.revision,
            "commit": self.commit or None,
            "page_url": self.repository.page_url,
        }


def follow(
    asked: Repository,
    responses: Sequence[Response],
    via: str = RAW,
    authenticated: bool = False,
) -> Lookup:
    """The next file to get after these responses, or the files that describe the model.

    Raises a typed error where the Hub has no config to give. An index that cannot be
    had is a notice: weights are then counted from the config.
    """
    by_file = {response.file: response for response in responses}
    for file, index in FILES.items():
        if file not in by_file:
            return Lookup(
                repository=asked, wanted=file, wanted_url=asked.file_url(file, via)
            )
        response = by_file[file]
        if _is_absent(response):
            continue
        if not response.is_usable:
            raise _refusal(asked, response, authenticated)
        return _described(asked, response, index, by_file.get(index), via)
    raise HubNoConfig(repo=asked.repo, url=asked.tree_url)


def _described(
    asked: Repository, config: Response, index: str, answer: Response | None, via: str
) -> Lookup:
    """With a config at hand: its index next, of the same commit, or all there is."""
    commit = config.commit if COMMIT.fullmatch(config.commit) else ""
    now = Repository(
        repo=_name_now(asked, config.url),
        revision=asked.revision,
        endpoint=asked.endpoint,
    )
    notices: list[Notice] = []
    if now.repo.lower() != asked.repo.lower():
        notices.append(Notice("hub_renamed", {"repo": asked.repo, "name": now.repo}))
    if answer is None:
        at = Repository(
            repo=now.repo, revision=commit or now.revision, endpoint=now.endpoint
        )
        return Lookup(
            repository=now,
            commit=commit,
            wanted=index,
            wanted_url=at.file_url(index, via),
            files=(config.file,),
            notices=tuple(notices),
        )
    files = [config.file]
    if answer.is_usable:
        files.append(index)
    else:
        notices.append(no_index(now.repo, index))
    return Lookup(
        repository=now, commit=commit, files=tuple(files), notices=tuple(notices)
    )


def no_index(repo: str, file: str) -> Notice:
    """Weights are counted from the config: what would say more cannot be read."""
    return Notice("hub_no_index", {"repo": repo, "file": file})


def _name_now(asked: Repository, url: str) -> str:
    """The name a renamed repository has now: where its file was found."""
    path = url.partition("?")[0].removeprefix(f"{asked.endpoint}/")
    moved = MOVED.fullmatch(path)
    return moved[1] if moved else asked.repo


def _is_absent(response: Response) -> bool:
    """The repository is there, the file is not."""
    return response.status == NOT_FOUND and response.error_code not in (
        NO_REPO,
        NO_REVISION,
    )


def _refusal(asked: Repository, response: Response, authenticated: bool) -> KvcoreError:
    """Why there is no config: what the Hub calls it, else what its status means."""
    repo, status, code = asked.repo, response.status, response.error_code
    if code == GATED:
        return HubGated(repo=repo, url=asked.page_url)
    if code == NO_REVISION:
        return HubNoRevision(repo=repo, revision=asked.revision, url=asked.page_url)
    if status == UNAUTHORIZED and authenticated and code != NO_REPO:
        return HubTokenRefused(host=asked.host)
    if code == NO_REPO or status == UNAUTHORIZED:
        # Without a token, a private repository looks like one that is not there.
        return HubNotFound(repo=repo, url=asked.search_url)
    return _no_answer(asked, response)


def _no_answer(asked: Repository, response: Response) -> KvcoreError:
    """What came is not the Hub's own refusal: nothing, a failure, or another file."""
    file, status, host = response.file, response.status, asked.host
    url = asked.file_url(file)
    if status == OK:
        return HubUnreadable(repo=asked.repo, file=file, found=response.found, url=url)
    if status:
        return HubFailed(host=host, status=status, file=file, url=url)
    if response.failure == TIMEOUT:
        return HubTimeout(host=host, url=url)
    return HubOffline(host=host, reason=response.failure[:MAX_TEXT], url=url)


# The api's answer -------------------------------------------------------------------


def answer_hub(given: Mapping[str, object]) -> dict[str, Any]:
    """`next` is the file to get, null once `files` are all that describe the model."""
    params = Params(given, frozenset({"repo", "revision", "responses"}))
    asked = read(params.text("repo", ""), params.text("revision", ""))
    found = follow(asked, _responses(params.get("responses")))
    return {
        **found.origin,
        "next": found.wanted and {"file": found.wanted, "url": found.wanted_url},
        "files": list(found.files),
        "start_characters": START_CHARACTERS,
        "warnings": [notice.to_json() for notice in found.notices],
    }


def _responses(given: object) -> list[Response]:
    if given is None:
        return []
    if not isinstance(given, list) or len(given) > 2 * len(FILES):
        raise invalid("responses", given, "a short list of objects")
    return [_response(entry) for entry in given]


def _response(entry: object) -> Response:
    if not isinstance(entry, Mapping):
        raise invalid("responses", entry, "objects")
    each = Params(entry, frozenset(Response.__slots__))
    texts = {
        name: each.text(name, "")[:2000]
        for name in ("file", "failure", "error_code", "url", "commit", "start")
    }
    return Response(status=each.integer("status", 0) or 0, **texts)
