"""Running a user's program in this process, as Python itself would."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

__all__ = ["add_program", "report", "run_as_main"]

_ABOVE: Final = (__file__, runpy.__file__, "<frozen runpy>")


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that runs a program to its parser."""
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the program is the name of a module"
    )
    parser.add_argument("program", metavar="PROGRAM", help="a Python file")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the program"
    )


def run_as_main(kind: Literal["file", "module"]) -> None:
    """Run the program that ``sys.argv`` begins with.

    Args:
        kind: what its first word is.
    """
    if kind == "module":
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


def report(error: BaseException, caller: str) -> None:
    """Print an exception that a program has raised, without the frames above the program.

    Args:
        error: the exception.
        caller: the file that has called `run_as_main`.
    """
    error = error.with_traceback(_own(error.__traceback__, (*_ABOVE, caller)))
    sys.excepthook(type(error), error, error.__traceback__)


def _own(traceback: TracebackType | None, above: tuple[str, ...]) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename in above:
        traceback = traceback.tb_next
    return traceback
