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
    report = False
    while words and words[0] in ("--report",):
        report = True
        del words[0]
    if not words or words[0] in ("-h", "--help"):
        _parser().print_help()
        sys.exit(0 if words else 2)
    if report:
        atexit.register(print_report)
    kind = words[0]
    if kind in ("-m", "-c"):
        if len(words) < 2:
            _parser().error(f"{kind} needs {'a module' if kind == '-m' else 'code'}")
        rest = words[2:]
        sys.path[0] = "" if kind == "-c" else os.getcwd()
        if kind == "-m":
            sys.argv = [words[1], *rest]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
            return
        sys.argv = ["-c", *rest]
        main_module = sys.modules["__main__"]
        vars(main_module).clear()
        vars(main_module).update(__name__="__main__", __builtins__=__builtins__)
        exec(compile(words[1], "<string>", "exec"), vars(main_module))
        return
    if kind.startswith("-"):
        _parser().error(f"unknown option {kind}")
    if not Path(kind).exists():
        _parser().error(f"there is no file {kind}")
    sys.argv = words
    sys.path[0] = str(Path(kind).resolve().parent)
    runpy.run_path(kind, run_name="__main__")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dovetail.as_jax",
        usage="python -m dovetail.as_jax [--report] (program.py | -m module | -c code) ...",
        description="Run a program that was written for JAX on dovetail, unmodified.",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="print at the end which names of jax were asked for and are not there",
    )
    return parser
