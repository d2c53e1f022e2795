"""Names and addresses of models on the Hugging Face Hub.

Source: huggingface_hub 1.x, utils/_validators.py (names) and file_download.py
(addresses of files).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kvcore.errors import InvalidArgument, shown

ENDPOINT: Final = "https://huggingface.co"
HOSTS: Final = ("huggingface.co", "www.huggingface.co", "hf.co")
MAIN: Final = "main"

RAW: Final = "raw"
RESOLVE: Final = "resolve"
"""Two addresses of a file: `raw` is text on the Hub itself, or a Git LFS pointer;
`resolve` is the file, if need be on another host."""

NAME: Final = r"\w(?:[\w.-]{0,94}\w)?"
REPO: Final = re.compile(rf"(?:{NAME}/)?{NAME}", re.ASCII)
REVISION: Final = re.compile(r"\w[\w.+/-]{0,99}", re.ASCII)
KINDS: Final = frozenset({"tree", "blob", "raw", "resolve", "commit", "commits"})
NO_MODELS: Final = frozenset(
    {"datasets", "spaces", "models", "collections", "papers", "docs", "blog", "api"}
)
ESCAPES: Final = {"/": "%2F", "+": "%2B"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A model's repository at a revision, and the site that has it."""

    repo: str
    revision: str = MAIN
    endpoint: str = ENDPOINT

    @property
    def host(self) -> str:
        return self.endpoint.partition("://")[2]

    @property
    def page_url(self) -> str:
        """What a person opens to see it and to accept its terms."""
        return f"{self.endpoint}/{self.repo}"

    @property
    def tree_url(self) -> str:
        """The list of its files."""
        return f"{self.page_url}/tree/{_escaped(self.revision)}"

    @property
    def search_url(self) -> str:
        """Models called alike."""
        return f"{self.endpoint}/models?search={self.repo.rpartition('/')[2]}"

    def file_url(self, file: str, via: str = RAW) -> str:
        return f"{self.page_url}/{via}/{_escaped(self.revision)}/{file}"


def read(text: str, revision: str = "", endpoint: str = ENDPOINT) -> Repository:
    """The repository meant by ORG/NAME, NAME, either with @REVISION, or an address.

    >>> read("Qwen/Qwen3-8B@refs/pr/3").file_url("config.json")
    'https://huggingface.co/Qwen/Qwen3-8B/raw/refs%2Fpr%2F3/config.json'
    >>> read("https://huggingface.co/openai-community/gpt2/tree/main?x=1#files").repo
    'openai-community/gpt2'
    """
    host, path = _host_and_path(text, endpoint)
    path, _, stated = path.partition("@")
    segments = [_unescaped(piece) for piece in path.split("/") if piece]
    if not segments or segments[0].lower() in NO_MODELS:
        raise _no_name(text)
    named = 1 if len(segments) == 1 or segments[1] in KINDS else 2
    kind, *after = segments[named:] or [""]
    if kind and not host and kind not in KINDS:
        raise _no_name(text)
    if kind in KINDS and not stated:
        stated = "/".join(after[: 3 if after[:1] == ["refs"] else 1])
    return Repository(
        repo=_checked_name("/".join(segments[:named]), text),
        revision=_checked_revision(_unescaped(stated) or revision or MAIN),
        endpoint=endpoint,
    )


def _host_and_path(text: str, endpoint: str) -> tuple[str, str]:
    """The Hub's host where an address names it, and what is a name or follows it."""
    plain = text.strip().partition("#")[0].partition("?")[0]
    scheme, separator, rest = plain.rpartition("://")
    host, _, path = rest.partition("/")
    if host.lower() not in (*HOSTS, endpoint.rpartition("://")[2].lower()):
        host, path = "", rest
    if separator and (not host or scheme.lower() not in ("http", "https")):
        raise _no_name(text)
    return host, path


def _checked_name(name: str, text: str) -> str:
    wrong = "--" in name or ".." in name or name.lower().endswith(".git")
    if wrong or not REPO.fullmatch(name):
        raise _no_name(text)
    return name


def _no_name(text: str) -> InvalidArgument:
    return InvalidArgument(
        argument="repo",
        value=shown(text),
        expected="ORG/NAME of a model, or its address on huggingface.co",
    )


def _checked_revision(revision: str) -> str:
    if not REVISION.fullmatch(revision) or ".." in revision:
        raise InvalidArgument(
            argument="revision",
            value=shown(revision),
            expected="a branch, a tag or a commit",
        )
    return revision


def _escaped(revision: str) -> str:
    for plain, escaped in ESCAPES.items():
        revision = revision.replace(plain, escaped)
    return revision


def _unescaped(piece: str) -> str:
    for plain, escaped in ESCAPES.items():
        piece = re.sub(escaped, plain, piece, flags=re.IGNORECASE)
    return piece
