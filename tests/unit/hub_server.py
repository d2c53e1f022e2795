"""A server on this machine that answers as the Hugging Face Hub was seen to.

Statuses, X-Error-Code, X-Repo-Commit and the two kinds of redirect (to the cache on the
same host, to the store of large files on another) have the shapes of recorded answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final

COMMIT: Final = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
POINTER: Final = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:" + b"0" * 64 + b"\nsize 12345\n"
)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent for one path. `length` is what is announced, if not the truth."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    hangs: bool = False
    ranges: bool = True


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that came in, its headers' names in lower case."""

    path: str
    headers: Mapping[str, str]


def json_reply(content: object) -> Reply:
    body = json.dumps(content).encode()
    return Reply(body=body, headers={"X-Repo-Commit": COMMIT})


def refusal(status: int, code: str, message: str = "") -> Reply:
    return Reply(
        status=status,
        body=message.encode(),
        headers={"X-Error-Code": code, "X-Error-Message": message},
    )


GATED: Final = refusal(401, "GatedRepo", "Access to model org/name is restricted.")
NO_ACCESS: Final = refusal(403, "GatedRepo", "Access to model org/name is restricted.")
NO_REPO: Final = refusal(404, "RepoNotFound", "Repository not found")
NO_ENTRY: Final = refusal(404, "EntryNotFound", "Entry not found")
NO_REVISION: Final = refusal(404, "RevisionNotFound", "Invalid rev id: nope")
UNNAMED: Final = Reply(
    status=401, headers={"X-Error-Message": "Invalid username or password."}
)


def moved(to: str, status: int = 307) -> Reply:
    return Reply(status=status, headers={"Location": to})


class HubServer:
    """Serves replies by path, and keeps what it was asked."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.replies: dict[str, Reply] = {}
        self.asked: list[Asked] = []
        self._released = Event()
        self._server = ThreadingHTTPServer((host, 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://{host}:{self._server.server_port}"

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def has(self, repo: str, revision: str = "main", **files: Reply) -> None:
        """Files of a repository by name, "__" for a dot."""
        for name, reply in files.items():
            path = f"/{repo}/resolve/{revision}/{name.replace('__', '.')}"
            self.replies[path] = reply

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): text for name, text in self.headers.items()}
                hub.asked.append(Asked(path=self.path, headers=headers))
                reply = hub.replies.get(self.path.partition("?")[0], NO_ENTRY)
                if reply.hangs:
                    hub._released.wait()
                    return
                self.send(reply, headers.get("range", ""))

            def send(self, reply: Reply, wanted: str) -> None:
                body, status, extra = reply.body, reply.status, dict(reply.headers)
                if wanted and reply.ranges and status == 200:
                    first, _, last = wanted.removeprefix("bytes=").partition("-")
                    total, status = len(body), 206
                    body = body[int(first) : int(last) + 1]
                    end = int(first) + len(body) - 1
                    extra["Content-Range"] = f"bytes {first}-{end}/{total}"
                length = len(body) if reply.length is None else reply.length
                self.send_response(status)
                for name, text in {**extra, "Content-Length": str(length)}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the requests are kept."""

        return Handler
