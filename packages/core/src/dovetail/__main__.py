"""`python -m dovetail`: the doctor, from the command line."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after `python -m dovetail`; the process's own by default.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m dovetail", description="Look at this installation of dovetail."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    doctor = commands.add_parser(
        "doctor",
        help="list backends, devices, versions and problems",
        description="List the backends that were found, loaded or refused and why, devices, "
        "versions, and the default platform. Exit code 1: something that is installed is broken.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.print_help()
        return 0
    # The doctor tells every failure itself.
    warnings.simplefilter("ignore", RuntimeWarning)
    try:
        from dovetail.core.api.environment import run_doctor  # deferred: may fail, and says why
    except Exception as error:
        sys.stdout.write(f"dovetail cannot start: {type(error).__name__}: {error}\n")
        return 1
    return run_doctor(as_data=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
