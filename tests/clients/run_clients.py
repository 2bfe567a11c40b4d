"""Run the test suites of libraries that import jax, on dovetail; print a table.

    python tests/clients/run_clients.py --folder FOLDER [--essential] [--checkouts FOLDER] [NAME]

Started by `nox -s clients`, in an environment that has the libraries and no jax. With `--python`,
another interpreter runs the suites, such as one of an environment with jax, and nothing is expected
to fail.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Library:
    """One row of libraries.toml; the file says what each field means."""

    name: str
    version: str
    source: str = "wheel"
    tag: str = ""
    root: str = ""
    paths: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def libraries() -> dict[str, Library]:
    """All libraries, by name."""
    table = tomllib.loads((HERE / "libraries.toml").read_text(encoding="utf-8"))
    return {
        name: Library(name, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for name, row in table.items()
        if isinstance(row, dict)
    }


def tests_of(library: Library, python: str, folder: Path, checkouts: Path | None) -> Path | None:
    """The folder in which the tests of a library are run; None if they cannot be had here."""
    place = folder / f"{library.name}-{library.version}"
    if library.source == "wheel":
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        out = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        return Path(out.stdout.strip(), library.root)
    if not place.exists():
        part = place.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        if library.source == "sdist":
            _download(library, python, part)
        elif checkouts is not None and (checkouts / library.name).exists():
            subprocess.run(
                ["git", "clone", "-q", "--branch", library.tag, checkouts / library.name, part],
                check=True,
            )
        else:
            command = ["git", "clone", "-q", "--depth", "1", "--branch", library.tag]
            if subprocess.run([*command, library.source, part], check=False).returncode:
                return None
        for name in library.removed:
            shutil.rmtree(part / name)
        part.rename(place)
    return place / library.root


def _download(library: Library, python: str, folder: Path) -> None:
    pip = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d"]
    packed = folder.with_suffix(".packed")
    subprocess.run([*pip, packed, f"{library.name}=={library.version}"], check=True)
    (archive,) = packed.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(packed, filter="data")
    (unpacked,) = (path for path in packed.iterdir() if path.is_dir())
    unpacked.rename(folder)
    shutil.rmtree(packed)


def run(library: Library, python: str, place: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run its tests.

    Returns:
        How many passed, failed, were skipped, and failed as expected.
    """
    counts = options.folder / f"{library.name}.json"
    counts.unlink(missing_ok=True)
    words = ["-q", "-p", "no:cacheprovider", "-p", "expected_outcomes", "--counts", str(counts)]
    if options.python is None:
        words += ["-p", "dovetail.as_jax"]
        words += ["--expected", str(HERE / "expected" / f"{library.name}.txt")]
    if library.source == "wheel":  # else pytest finds the settings of this repository above it
        words += ["-c", os.devnull, "--rootdir", str(place)]
    paths = library.essential if options.essential else library.paths
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, **library.environment}
    command = [python, "-m", "pytest", *words, *library.words, *paths]
    subprocess.run(command, cwd=place, env=environment, check=False)
    if not counts.exists():
        return {"failed": 1}
    found: dict[str, Any] = json.loads(counts.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Run the command line; the exit code says whether all went as expected."""
    parser = argparse.ArgumentParser(description="Run the test suites of libraries on dovetail.")
    parser.add_argument("names", nargs="*", help="libraries; all by default")
    parser.add_argument("--folder", type=Path, required=True, help="where downloads are kept")
    parser.add_argument("--essential", action="store_true", help="a few files of each suite")
    parser.add_argument("--checkouts", type=Path, help="a folder of repositories, by name")
    parser.add_argument("--python", help="an interpreter that has jax, to compare with")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = libraries()
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    if options.essential:
        chosen = [library for library in chosen if library.essential]
    rows, failed = [], []
    for library in chosen:
        python = options.python or sys.executable
        place = tests_of(library, python, options.folder, options.checkouts)
        if place is None:
            rows.append(f"| {library.name} {library.version} | its repository is out of reach |")
            continue
        counts = run(library, python, place, options)
        if counts.get("failed") or (counts.get("unused") and not options.essential):
            failed.append(library.name)
        for pattern in () if options.essential else counts.get("unused", ()):
            print(f"{library.name}: expected to fail, and no test: {pattern}")
        columns = ("passed", "expected", "expected with jax", "failed", "skipped")
        numbers = " | ".join(str(counts.get(column, 0)) for column in columns)
        rows.append(f"| {library.name} {library.version} | {numbers} |")
    print("\n| library | passed | expected failures | of these with JAX, too | failed | skipped |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows))
    if failed:
        print(f"\nNot as expected: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
