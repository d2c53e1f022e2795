"""Asks the Hugging Face Hub for a model at a terminal: `--hub ORG/NAME`.

The environment, under the names the Hub's own tools use: HF_TOKEN for gated and private
models, HF_ENDPOINT for a mirror, HF_HUB_DOWNLOAD_TIMEOUT in seconds; and HF_REVISION
for a branch, tag or commit where none is named. The token goes to the endpoint alone,
over TLS or to this machine, never where a redirect leads, and is never printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from http.client import HTTPException, HTTPResponse
from time import monotonic
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from kvcore import __version__
from kvcore.errors import InvalidArgument, KvcoreError, Notice, shown
from kvcore.hub import (
    START_CHARACTERS,
    TIMEOUT,
    WEIGHTS,
    Lookup,
    Response,
    follow,
    no_index,
)
from kvcore.hub_names import ENDPOINT, RESOLVE, read
from kvcore.importers import model_files, safetensors
from kvcore.importers.byte_source import SLICE_BYTES, ByteSource, in_memory

TIMEOUT_SECONDS: Final = 10.0
MAX_TIMEOUT_SECONDS: Final = 3600.0
PATIENCE: Final = 12
"""A file may take this many timeouts in all, however slowly it drips."""

MAX_BYTES: Final = 2**26
CHUNK_BYTES: Final = 2**16
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

OK, PARTIAL = 200, 206


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where to ask, as whom, and how long to wait."""

    endpoint: str = ENDPOINT
    token: str = field(default="", repr=False)
    revision: str = ""
    timeout: float = TIMEOUT_SECONDS


def access(environment: Mapping[str, str]) -> Access:
    """The access that environment variables describe, or a typed error."""

    def stated(name: str) -> str:
        return environment.get(name, "").strip()

    return Access(
        endpoint=_endpoint(stated("HF_ENDPOINT") or ENDPOINT),
        token=_token(stated("HF_TOKEN")),
        revision=stated("HF_REVISION"),
        timeout=_timeout(stated("HF_HUB_DOWNLOAD_TIMEOUT")),
    )


def model_params(name: str, to: Access) -> tuple[dict[str, Any], Lookup]:
    """The api's parameters for a model of the Hub, and where they come from."""
    asked = read(name, to.revision, to.endpoint)
    client = _Client(to)
    responses: list[Response] = []
    bodies: dict[str, bytes] = {}
    found = follow(asked, responses, RESOLVE, client.authenticated)
    while found.wanted and found.wanted_url:
        response, bodies[found.wanted] = client.get(found.wanted, found.wanted_url)
        responses.append(response)
        found = follow(asked, responses, RESOLVE, client.authenticated)
    sources = [in_memory(bodies[file], file) for file in found.files]
    if len(sources) == 1:
        weights = WEIGHTS[found.files[0]]
        whole = client.header(weights, found.repository.file_url(weights, RESOLVE))
        if whole is not None:
            found = replace(found, notices=_without(found.notices, "hub_no_index"))
            sources.append(whole)
    return _described(sources, found)


def _described(
    sources: list[ByteSource], found: Lookup
) -> tuple[dict[str, Any], Lookup]:
    """A config counts even where what stands beside it cannot be read."""
    try:
        return model_files.describe(sources), found
    except KvcoreError:
        alone = model_files.describe(sources[:1])
        note = no_index(found.repository.repo, sources[-1].name)
        return alone, replace(found, notices=(*found.notices, note))


def _without(notices: tuple[Notice, ...], code: str) -> tuple[Notice, ...]:
    return tuple(notice for notice in notices if notice.code != code)


class _SameHost(HTTPRedirectHandler):
    """Follows redirects, with the token only as long as they stay where they were."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        after = super().redirect_request(req, fp, code, msg, headers, newurl)
        if after is None:
            return None
        before, now = urlsplit(req.full_url), urlsplit(newurl)
        if now.scheme not in ("https", before.scheme):
            raise URLError(f"a redirect to {now.scheme[:20]}")
        token = req.unredirected_hdrs.get("Authorization")
        if token and (now.scheme, now.netloc) == (before.scheme, before.netloc):
            after.add_unredirected_header("Authorization", token)
        return after


class _Client:
    """GETs files, and says in a `Response` how that went."""

    def __init__(self, to: Access) -> None:
        self._to = to
        self._opener: OpenerDirector = build_opener(_SameHost)
        endpoint = urlsplit(to.endpoint)
        private = endpoint.scheme == "https" or endpoint.hostname in LOOPBACK
        self.authenticated = bool(to.token) and private

    def get(self, file: str, url: str) -> tuple[Response, bytes]:
        """A whole file of at most `MAX_BYTES`."""
        return self._asked(file, url, {}, self._body)

    def header(self, file: str, url: str) -> ByteSource | None:
        """A safetensors file to read parts of; None where that cannot be done."""
        try:
            first, size = self._part(file, url, 0, SLICE_BYTES)

            @cache
            def part(offset: int, length: int) -> bytes:
                if offset + length <= len(first):
                    return first[offset : offset + length]
                return self._part(file, url, offset, length)[0]

            source = ByteSource(name=file, size=size, read=part)
            safetensors.read_header(source)
        except (KvcoreError, _NoPart):
            return None
        return source

    def _part(self, file: str, url: str, offset: int, length: int) -> tuple[bytes, int]:
        """Bytes from `offset`, and the size of the whole file."""
        sizes: list[int] = []

        def body(answer: HTTPResponse) -> bytes:
            if answer.status == PARTIAL:
                sizes.append(_size_in(answer.headers.get("Content-Range", "")))
                return self._body(answer, length)
            if answer.status == OK and offset == 0:
                # A server that knows no ranges sends the file: its beginning will do.
                sizes.append(int(answer.headers.get("Content-Length") or 0))
                return self._beginning(answer, length)
            return b""

        last = offset + length - 1
        ranged = {"Range": f"bytes={offset}-{last}"}
        response, data = self._asked(file, url, ranged, body)
        if response.failure or not sizes or not sizes[0]:
            raise _NoPart
        return data, sizes[0]

    def _asked(
        self,
        file: str,
        url: str,
        headers: Mapping[str, str],
        body: Callable[[HTTPResponse], bytes],
    ) -> tuple[Response, bytes]:
        request = Request(
            url, headers={"User-Agent": f"kvcore/{__version__}", **headers}
        )
        if self.authenticated:
            request.add_unredirected_header("Authorization", f"Bearer {self._to.token}")
        try:
            with self._opener.open(request, timeout=self._to.timeout) as answer:
                data = body(answer)
                return _response(file, answer.status, answer.url, answer.headers, data)
        except HTTPError as error:
            with error:
                return _response(file, error.code, error.url, error.headers, b"")
        except _Unusable as error:
            return Response(file=file, status=OK, failure=str(error)), b""
        except TimeoutError:
            return Response(file=file, failure=TIMEOUT), b""
        except (OSError, HTTPException, ValueError) as error:
            return Response(file=file, failure=_reason(error)), b""

    def _body(self, answer: HTTPResponse, limit: int | None = None) -> bytes:
        """All that is sent, if it is all there is and not too much."""
        limit = MAX_BYTES if limit is None else limit
        data = self._beginning(answer, limit + 1)
        if len(data) > limit:
            raise _Unusable(f"longer than {limit} bytes")
        announced = answer.headers.get("Content-Length")
        if announced is not None and announced.isdigit() and len(data) < int(announced):
            raise _Unusable(f"cut off after {len(data)} of {announced} bytes")
        return data

    def _beginning(self, answer: HTTPResponse, length: int) -> bytes:
        until = monotonic() + PATIENCE * self._to.timeout
        data = bytearray()
        while len(data) < length:
            piece = answer.read1(min(CHUNK_BYTES, length - len(data)))
            if not piece:
                break
            data += piece
            if monotonic() > until:
                raise TimeoutError
        return bytes(data)


class _Unusable(Exception):
    """What came is not the file."""


class _NoPart(Exception):
    """A part of a file that cannot be had."""


def _response(
    file: str, status: int, url: str, headers: Any, data: bytes
) -> tuple[Response, bytes]:
    start = data[: 4 * START_CHARACTERS].decode("utf-8", "replace")
    return (
        Response(
            file=file,
            status=status,
            error_code=str(headers.get("X-Error-Code") or ""),
            url=url,
            commit=str(headers.get("X-Repo-Commit") or ""),
            start=start[:START_CHARACTERS],
        ),
        data,
    )


def _size_in(content_range: str) -> int:
    """The size in "bytes 0-99/1234"; 0 where it is not stated."""
    size = content_range.rpartition("/")[2].strip()
    return int(size) if size.isdecimal() and len(size) < 20 else 0


def _reason(error: Exception) -> str:
    """What the machine calls it, in one line; a timeout under its own name."""
    cause = getattr(error, "reason", None)
    if isinstance(cause, TimeoutError):
        return TIMEOUT
    problem = cause if isinstance(cause, Exception) else error
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return " ".join(str(text).split())


# The environment --------------------------------------------------------------------


def _endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        fine = fine and "@" not in parts.netloc and not (parts.query or parts.fragment)
        _ = parts.port
    except ValueError:
        fine = False
    if not fine or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidArgument(
            argument="HF_ENDPOINT",
            value=shown(text),
            expected="an address like https://huggingface.co",
        )
    return text.rstrip("/")


def _token(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidArgument(
            argument="HF_TOKEN",
            value="not shown here",
            expected="a token, without spaces or line breaks",
        )
    return text


def _timeout(text: str) -> float:
    try:
        seconds = float(text or TIMEOUT_SECONDS)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise InvalidArgument(
            argument="HF_HUB_DOWNLOAD_TIMEOUT",
            value=shown(text),
            expected="a number of seconds",
        )
    return seconds
