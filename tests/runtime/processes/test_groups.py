"""Several processes that compute together, as programs see them."""

from __future__ import annotations

import re

import pytest
from tests.runtime.processes.conftest import outputs


@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_arrays_and_programs(launch, count, devices):
    ended = launch("arrays.py", count, *["programs"] * (count > 2), devices=devices)
    assert ended.returncode == 0, ended.stdout
    lines = set(ended.stdout.splitlines())
    assert {f"[{number}] all is well" for number in range(count)} <= lines


def test_callbacks(launch):
    ended = launch("callbacks.py", 2, devices=2)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("all is well") == 2


def test_exchanges(launch):
    ended = launch("exchange.py", 2, "fail", devices=2)
    assert ended.returncode == 7, ended.stdout
    assert "launch: process 1 ended with status 7" in ended.stdout


@pytest.mark.parametrize(
    ("count", "devices", "victim", "how", "size", "ahead"),
    [
        (3, 1, 0, "kill", 12, 10),  # calls of small programs wait for the others themselves
        (3, 2, 0, "kill", 48, 120),  # calls wait since too many are under way
        (2, 2, 1, "raise", 48, 10),
        (3, 1, 1, "stop", 24, 10),
    ],
)
def test_a_death(start, count, devices, victim, how, size, ahead):
    processes = start("deaths.py", count, victim, how, size, ahead, devices=devices)
    others = [p for number, p in enumerate(processes) if number != victim]
    texts = outputs(others)
    expected = {
        "kill": "has died",
        "raise": "has ended with ValueError: enough",
        "stop": "answered",
    }
    for process, text in zip(others, texts, strict=True):
        assert process.returncode == 0, text
        assert re.search(rf"error \({victim},\) process {victim} \(.*\) .*{expected[how]}", text), (
            text
        )
        assert text.count("error") == 1, text
        assert f"devices {(count - 1) * devices}" in text, text
        assert f"end {6 * ahead} of" in text, text
    codes = {"kill": -9, "raise": 1}
    if how in codes:
        outputs([processes[victim]])
        assert processes[victim].returncode == codes[how]
