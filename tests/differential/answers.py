"""What JAX made of programs, kept from run to run: it depends on nothing that changes here."""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
import subprocess
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

from source import Program

FOLDER = Path(__file__).parent
VERSIONS = "import importlib.metadata as m, sys; print(sys.version, *map(m.version, {!r}))"
DECIDING = ("jax", "jaxlib", "numpy", "ml_dtypes")


class Remembered:
    """The answers of one library in a file, which several threads and processes may use at once.

    Args:
        path: the file.
        python: the Python that has the library, whose versions are part of what is remembered.
        flags: what else decides about the answers.
    """

    def __init__(self, path: Path, python: str, flags: str) -> None:
        command = [python, "-c", VERSIONS.format(DECIDING)]
        versions = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        texts = [(FOLDER / name).read_text(encoding="utf-8") for name in ("runner.py", "source.py")]
        self.basis = "\n".join([versions, flags, *texts])
        self.path = path

    def key(self, program: Program, modes: list[str], noise: int | None) -> bytes:
        """What names a request: the number of the program is no part of it."""
        program = {name: part for name, part in program.items() if name != "seed"}
        text = json.dumps([self.basis, program, modes, noise], sort_keys=True)
        return hashlib.sha256(text.encode()).digest()

    def read(self, key: bytes) -> dict[str, Any] | None:
        """The answers to a request, or None where it is new."""
        with closing(self._connected()) as connection:
            found = connection.execute("SELECT answers FROM known WHERE request = ?", (key,))
            row = found.fetchone()
        return None if row is None else dict(pickle.loads(zlib.decompress(row[0])))

    def write(self, key: bytes, answers: dict[str, Any]) -> None:
        """Remember the answers to a request."""
        data = zlib.compress(pickle.dumps(answers), 1)
        with closing(self._connected()) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO known VALUES (?, ?)", (key, data))

    def _connected(self) -> sqlite3.Connection:
        """A connection for one request: threads share none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=60)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS known (request BLOB PRIMARY KEY, answers BLOB)"
        )
        return connection
