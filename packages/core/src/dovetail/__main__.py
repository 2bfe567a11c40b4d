"""`python -m dovetail`: the doctor, errors explained, profiles, new backends, processes."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import dovetail
from dovetail._core.api.launching import add_arguments, launch
from dovetail._core.api.profile_command import add_arguments as add_arguments_of_profile
from dovetail._core.api.profile_command import profile_program


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
    parser.add_argument("--version", action="version", version=f"dovetail {dovetail.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    doctor = commands.add_parser(
        "doctor",
        help="list backends, devices, versions and problems",
        description="List the backends that were found, loaded or refused and why, devices, "
        "versions, and the default platform. Exit code 1: something that is installed is broken.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument(
        "--timeout",
        type=_seconds,
        default=120.0,
        metavar="SECONDS",
        help="how long each plug-in may take, which is examined in a process of its own (120)",
    )
    backend = commands.add_parser(
        "new-backend",
        help="write the distribution of a new backend",
        description="Write the distribution dovetail-backend-NAME: a backend that works, to be "
        "installed and changed. docs/write-a-backend.md goes on from there.",
    )
    backend.add_argument("name", metavar="NAME", help="the platform's name, such as acme")
    backend.add_argument(
        "--kind",
        choices=("equations", "pjrt"),
        default="equations",
        help="a runtime in Python that computes programs equation by equation (the default), or a "
        "PJRT library",
    )
    backend.add_argument(
        "--folder", type=Path, default=Path(), help="where to write; the current folder by default"
    )
    explain = commands.add_parser(
        "explain",
        help="explain the code of an error",
        description="Print the page about an error: why it is raised, a program that fails, and "
        "the same program mended. Without a code: all of them, a line each.",
    )
    explain.add_argument("code", metavar="CODE", nargs="?", help="such as DT0101")
    profile = commands.add_parser(
        "profile",
        help="run a program, and tell where its time goes",
        description="Run a program, and print where its time goes, by its lines: Python, "
        "computing, waiting, tracing, compiling, transfers.",
    )
    add_arguments_of_profile(profile)
    processes = commands.add_parser(
        "launch",
        help="start several processes of a program on this machine",
        description="Start N processes of a program on this machine, which find each other by "
        "dovetail.distributed.initialize(). Their lines begin with their numbers. When one fails, "
        "all are ended, and its exit status is that of the command; Ctrl-C ends all.",
    )
    add_arguments(processes)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and not words[0].startswith("-") and words[0] not in commands.choices:
        parser.error(_unknown(words[0], list(commands.choices)))
    chosen = parser.parse_args(words)
    if chosen.command is None:
        parser.print_help()
        return 0
    if chosen.command == "launch":
        return launch(chosen)
    if chosen.command == "profile":
        return profile_program(chosen)
    if chosen.command == "explain":
        return _explain(chosen.code)
    if chosen.command == "new-backend":
        return _write_backend(chosen.name, chosen.folder, chosen.kind)
    # The doctor tells every failure itself.
    warnings.simplefilter("ignore", RuntimeWarning)
    try:
        from dovetail._core.api.environment import run_doctor  # deferred: may fail, and says why
    except Exception as error:
        sys.stdout.write(f"dovetail cannot start: {type(error).__name__}: {error}\n")
        return 1
    return run_doctor(as_data=chosen.json, patience=chosen.timeout)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait")
    return seconds


def _unknown(word: str, commands: list[str]) -> str:
    """What to say of a word that is no command: the nearest one, or all."""
    from difflib import get_close_matches  # deferred: nobody needs it who spells well

    nearest = get_close_matches(word, commands, n=1)
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"choose from {', '.join(commands)}"
    return f"unknown command {word!r}: {advice}"


def _explain(code: str | None) -> int:
    from dovetail._core.base.error_codes import error_pages  # deferred: others need none

    pages = error_pages()
    if code is None:
        sys.stdout.writelines(f"{page.code}  {page.title}\n" for page in pages.values())
        return 0
    number = code.upper().removeprefix("DT")
    page = pages.get(f"DT{number:0>4}")
    if page is None:
        sys.stdout.write(
            f"explain: there is no code {code!r}; python -m dovetail explain lists them\n"
        )
        return 1
    sys.stdout.write(page.text)
    return 0


def _write_backend(name: str, folder: Path, kind: str) -> int:
    from dovetail._core.plugins.new_backend import new_backend  # deferred: the doctor needs none

    try:
        written = new_backend(name, folder, kind)
    except (ValueError, OSError) as error:
        sys.stdout.write(f"new-backend: {error}\n")
        return 1
    distribution = folder / written[-1].relative_to(folder).parts[0]
    shown = distribution if distribution.is_absolute() else f"./{distribution}"
    lines = [*map(str, written), "", f"Next: pip install {shown}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
