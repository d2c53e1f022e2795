"""A small web server for dist/, on this machine only."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self


class Server:
    """Serves a folder at http://127.0.0.1:PORT/PREFIX/ while it is entered."""

    def __init__(self, folder: Path, port: int = 0, prefix: str = "/") -> None:
        handler = partial(_Handler, prefix=prefix, directory=str(folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}{prefix}"

    def run(self) -> None:
        """Serves until interrupted."""
        self._server.serve_forever()

    def __enter__(self) -> Self:
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".whl": "application/zip",
        ".mjs": "text/javascript",
    }

    def __init__(self, *args: object, prefix: str, directory: str) -> None:
        self._prefix = prefix
        super().__init__(*args, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if not self.path.startswith(self._prefix):
            self.send_error(404)
            return
        self.path = "/" + self.path.removeprefix(self._prefix)
        super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        # As static hosts do, so that a notebook elsewhere can install the wheel.
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the address is the last line that `serve` prints."""
