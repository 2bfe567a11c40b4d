"""`python -m dovetail profile`: where the time of a program goes, by its lines."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from dovetail._core.api.user_programs import add_program, report, run_as_main

__all__ = ["add_arguments", "profile_program"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "--interval",
        type=_milliseconds,
        default=2.0,
        metavar="MS",
        help="milliseconds between two looks at the line that runs (2)",
    )
    parser.add_argument(
        "--chrome", type=Path, metavar="FILE", help="write a timeline for ui.perfetto.dev, too"
    )
    parser.add_argument(
        "--xplane", type=Path, metavar="FOLDER", help="write a profile for XProf, too"
    )
    add_program(parser)


def _milliseconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of milliseconds")
    return number


def profile_program(chosen: argparse.Namespace) -> int:
    """Run a program, and print its profile to stderr; that of one that fails, too.

    Args:
        chosen: the arguments of the command.

    Returns:
        The program's exit code.
    """
    if not chosen.module and not Path(chosen.program).is_file():
        sys.stderr.write(f"profile: there is no file {chosen.program}\n")
        return 2
    from dovetail._core.api.profiling import profile  # deferred: loads jaxlib

    sys.argv[:] = [chosen.program, *chosen.arguments]
    code = 0
    with profile(interval=chosen.interval / 1e3) as found:
        try:
            run_as_main("module" if chosen.module else "file")
        except SystemExit as error:
            code = _status(error)
        except BaseException as error:
            report(error, __file__)
            code = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    sys.stdout.flush()
    sys.stderr.write(f"{found}\n")
    if chosen.chrome is not None:
        found.write_chrome_trace(chosen.chrome)
    if chosen.xplane is not None:
        found.write_xplane(chosen.xplane)
    return code


def _status(error: SystemExit) -> int:
    """The exit code, as Python works it out; a message is printed."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1
