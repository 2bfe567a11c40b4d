"""`python -m dovetail launch`: processes of one program on this machine, for development."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any, Final, Literal

from dovetail._core.api.user_programs import add_program, report, run_as_main

__all__ = ["add_arguments", "launch", "run"]

#: Seconds that processes have to end after one has failed, before they are killed.
_PATIENCE: Final = 5.0
_TICK: Final = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "-n", "--processes", type=_count, required=True, metavar="N", help="how many processes"
    )
    parser.add_argument(
        "--devices-per-process",
        type=_count,
        metavar="K",
        help="how many devices the CPU of each process appears as",
    )
    parser.add_argument(
        "--restarts",
        type=_count_or_none,
        default=0,
        metavar="R",
        help="how often all processes are started again after one has failed",
    )
    parser.add_argument(
        "--port", type=_port, default=0, help="the coordinator's port; a free one by default"
    )
    add_program(parser)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of 1 or more")
    return int(text)


def _count_or_none(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return int(text)


def launch(chosen: argparse.Namespace) -> int:
    """Start the processes, and wait for them.

    Each gets the variables that `dovetail.distributed.initialize` reads, and each line that it
    writes begins with its number. As soon as one fails, the others are ended, and all are started
    again as often as was asked for, with a new coordinator. On Ctrl-C and when this process is told
    to end, they are ended for good.

    Args:
        chosen: the parsed arguments of the command.

    Returns:
        The exit status of the process that failed first, the last time; 0 if none did.
    """
    if not chosen.module and not os.path.exists(chosen.program):
        sys.stderr.write(f"launch: there is no file {chosen.program}\n")
        return 2
    return _Processes(chosen).run()


class _Processes:
    """The processes of one launch."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.count: int = chosen.processes
        kind = "module" if chosen.module else "file"
        code = f"from dovetail._core.api.launching import run; run({os.getpid()}, {kind!r})"
        self.command = [sys.executable, "-u", "-c", code, chosen.program, *chosen.arguments]
        self.environment = dict(os.environ)
        self.environment["DOVETAIL_NUM_PROCESSES"] = str(self.count)
        self.port: int = chosen.port
        self.restarts: int = chosen.restarts
        if chosen.devices_per_process is not None:
            self.environment["DOVETAIL_NUM_CPU_DEVICES"] = str(chosen.devices_per_process)
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.readers: list[threading.Thread] = []
        self.writing = threading.Lock()
        self.asked_to_end: int | None = None

    def run(self) -> int:
        """Start the processes, and wait for them; the exit status of the launch."""
        for number in (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ())):
            signal.signal(number, self._end)
        for left in range(self.restarts, -1, -1):
            status = self._run_once(left)
            if not status or self.asked_to_end is not None:
                break
        return status if self.asked_to_end is None else 128 + self.asked_to_end

    def _run_once(self, left: int) -> int:
        """Start the processes, and wait for them; the exit status of the first that has failed."""
        status = 0
        address = f"127.0.0.1:{self.port or _free_port()}"
        self.environment["DOVETAIL_COORDINATOR_ADDRESS"] = address
        try:
            for number in range(self.count):
                self._start(number)
            while self.running and not status and self.asked_to_end is None:
                time.sleep(_TICK)
                status = self._failure(left)
        except KeyboardInterrupt:
            self.asked_to_end = signal.SIGINT
        finally:
            self._end_all()
        return status

    def _end(self, number: int, frame: object) -> None:
        self.asked_to_end = number

    def _start(self, number: int) -> None:
        process = subprocess.Popen(
            self.command,
            env={**self.environment, "DOVETAIL_PROCESS_ID": str(number)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its own children end with it; Ctrl-C reaches this one alone
        )
        self.running[number] = process
        assert process.stdout is not None
        reader = threading.Thread(target=self._copy, args=(number, process.stdout), daemon=True)
        self.readers.append(reader)
        reader.start()

    def _copy(self, number: int, lines: IO[bytes]) -> None:
        """Write the lines of a process, each after its number."""
        for line in lines:
            self._say(f"[{number}] ".encode() + line.rstrip(b"\n"))

    def _say(self, line: bytes) -> None:
        with self.writing, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def _failure(self, left: int) -> int:
        """Forget processes that have ended well; the exit status of the first that has not."""
        ended = {n: p.returncode for n, p in self.running.items() if p.poll() is not None}
        failed = {number: code for number, code in ended.items() if code}
        for number in ended.keys() - failed.keys():
            del self.running[number]
        if not failed:
            return 0
        # Others may fail for the first one's end: one that was killed is the likeliest cause.
        number = min(failed, key=lambda n: (failed[n] > 0, n))
        code = failed[number]
        how = f"status {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        then = f", and all are started again ({left} left)" if left else ""
        self._say(f"launch: process {number} ended with {how}; the others are ended{then}".encode())
        return code if code > 0 else 128 - code

    def _end_all(self) -> None:
        """End what is running, and the children that it has started."""
        with contextlib.suppress(KeyboardInterrupt):
            self._signal(signal.SIGINT if self.asked_to_end == signal.SIGINT else signal.SIGTERM)
            until = time.monotonic() + _PATIENCE
            while any(p.poll() is None for p in self.running.values()):
                if time.monotonic() > until:
                    break
                time.sleep(_TICK)
        self._signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        for process in self.running.values():
            process.wait()
        for reader in self.readers:
            reader.join(1)
        self.running.clear()
        self.readers.clear()

    def _signal(self, number: int) -> None:
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, number)  # its session, also what is left of it
                elif process.poll() is None:
                    process.send_signal(number)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


# ------------------------------------------------------------------------------- in each process


_PARENT_DEATH: Final = 1  # PR_SET_PDEATHSIG


def run(parent: int, kind: Literal["file", "module"]) -> None:
    """Run the program, which is the first argument of this process, as Python itself would.

    Python does not tell at exit with what status a process ends, and whoever fails must not wait
    for the others. So the failure is noted here.

    Args:
        parent: the number of the process that has started this one, and is to outlive it.
        kind: ``"file"`` or ``"module"``.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    del sys.argv[0]
    try:
        run_as_main(kind)
    except SystemExit as error:
        if error.code:
            _note(f"has ended with status {error.code}")
        raise
    except BaseException as error:
        _note(f"has ended with {type(error).__name__}: {error}"[:500])
        report(error, __file__)
        sys.exit(128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1)


def _note(reason: str) -> None:
    """Have this process leave its group at once, and tell the others why."""
    group: Any = sys.modules.get("dovetail._core.runtime.processes.group")
    if group is not None:  # else it is in none, and jaxlib need not be loaded for that
        group.note_failure(reason)
