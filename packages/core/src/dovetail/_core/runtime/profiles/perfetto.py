"""Profiles for ui.perfetto.dev."""

from __future__ import annotations

import gzip
import http.server
import json
from pathlib import Path
from typing import Final

__all__ = ["serve_to_perfetto", "write_perfetto_trace"]

_NAME: Final = "perfetto_trace.json.gz"
_VIEWER: Final = "https://ui.perfetto.dev"
_PORT: Final = 9001
"""The port on this machine that the viewer may read from."""


def write_perfetto_trace(folder: Path) -> None:
    """Write a profile's events in the form that Perfetto reads.

    Args:
        folder: the folder of the profile, with a file ``*.trace.json.gz``.
    """
    (source,) = folder.glob("*.trace.json.gz")
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    # The last entry of XLA's list is empty, which Perfetto counts as an error.
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event]
    with gzip.open(folder / _NAME, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


def serve_to_perfetto(folder: Path, port: int = _PORT) -> None:
    """Print a link that opens a profile in the viewer, and wait until it was read.

    Args:
        folder: the folder of the profile.
        port: the port, which the viewer must be allowed to read.
    """
    content = (folder / _NAME).read_bytes()
    answered: list[bool] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == f"/{_NAME}" else 404)
            self.send_header("Access-Control-Allow-Origin", _VIEWER)
            self.end_headers()
            if self.path == f"/{_NAME}":
                self.wfile.write(content)
                answered.append(True)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the link is all that users need to see."""

    with http.server.HTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"Open URL in browser: {_VIEWER}/#!/?url=http://127.0.0.1:{port}/{_NAME}")
        while not answered:
            server.handle_request()
