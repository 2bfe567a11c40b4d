"""`python -m dovetail.as_jax`: run a program, a module or a line of code under the alias."""

from __future__ import annotations

import argparse
import atexit
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dovetail._core.alias.missing import print_report


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line says, as Python would.

    Args:
        arguments: words after `python -m dovetail.as_jax`; the process's own by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    report = words[:1] == ["--report"]
    if report:
        del words[0]
    if not words or words[0] in ("-h", "--help"):
        parser.print_help()
        sys.exit(0 if words else 2)
    first, *rest = words
    if report:
        atexit.register(print_report)
    if first in ("-m", "-c"):
        if not rest:
            parser.error(f"{first} needs {'a module' if first == '-m' else 'code'}")
        (_run_module if first == "-m" else _run_code)(*rest)
    elif first.startswith("-"):
        parser.error(f"unknown option {first}")
    elif not Path(first).exists():
        parser.error(f"there is no file {first}")
    else:
        sys.argv = words
        sys.path[0] = str(Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")


def _run_module(module: str, *words: str) -> None:
    sys.argv = [module, *words]
    sys.path[0] = os.getcwd()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run_code(code: str, *words: str) -> None:
    sys.argv = ["-c", *words]
    sys.path[0] = ""
    namespace = vars(sys.modules["__main__"])
    namespace.clear()
    namespace.update(__name__="__main__", __builtins__=__builtins__)
    exec(compile(code, "<string>", "exec"), namespace)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dovetail.as_jax",
        usage="python -m dovetail.as_jax [--report] (program.py | -m module | -c code) ...",
        description="Run a program that was written for JAX on dovetail, unmodified.",
        epilog="The variable DOVETAIL_AS_JAX_VERSION says which version jax claims to be.",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="print at the end which names of jax were asked for and are not there",
    )
    return parser
