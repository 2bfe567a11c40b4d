"""Starts processes, each of them with an end in time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")
#: Seconds that the processes of one test may take, on a machine that does other things, too.
PATIENCE = 60

Start = Callable[..., list[subprocess.Popen[str]]]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def surroundings(**variables: object) -> dict[str, str]:
    """The environment of a process, with one CPU device unless something else is said."""
    left_out = {"PYTEST_CURRENT_TEST", "PYTEST_VERSION"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    kept |= {"DOVETAIL_NUM_CPU_DEVICES": "1", "DOVETAIL_PLATFORMS": "cpu"}
    return kept | {name: str(value) for name, value in variables.items()}


def children(pids: set[int]) -> set[int]:
    """The processes that some have started; coordinators are in sessions of their own."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent in pids:
            found.add(int(name))
    return found


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts processes of a program; what is left of them is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(
        program: str, count: int, *arguments: object, devices: int = 1
    ) -> list[subprocess.Popen[str]]:
        address = f"127.0.0.1:{free_port()}"
        for number in range(count):
            environment = surroundings(
                DOVETAIL_COORDINATOR_ADDRESS=address,
                DOVETAIL_NUM_PROCESSES=count,
                DOVETAIL_PROCESS_ID=number,
                DOVETAIL_NUM_CPU_DEVICES=devices,
            )
            started.append(
                subprocess.Popen(
                    [sys.executable, str(PROGRAMS / program), *map(str, arguments)],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        return started

    yield run
    for process in started:
        process.kill()
        process.communicate()


def outputs(processes: list[subprocess.Popen[str]]) -> list[str]:
    """What processes have written when they have ended, which they must in time."""
    until = time.monotonic() + PATIENCE
    return [p.communicate(timeout=max(until - time.monotonic(), 0.1))[0] for p in processes]


@pytest.fixture
def launch() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs ``python -m dovetail launch``."""

    def run(program: str, count: int, *arguments: object, devices: int = 1) -> object:
        words = ["launch", "-n", str(count), "--devices-per-process", str(devices)]
        command = [sys.executable, "-m", "dovetail", *words, str(PROGRAMS / program)]
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            env=surroundings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            text, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # then it ends what it has started
            text, _ = process.communicate()
            raise AssertionError(f"{program} takes too long:\n{text}") from None
        return subprocess.CompletedProcess(command, process.returncode, text)

    return run  # type: ignore[return-value]
