"""Compiling every primitive for hardware that is not there: what the two families share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dovetail.experimental.topologies import TopologyDescription
from dovetail.extend import manager
from dovetail.testing.ahead_of_time import compile_primitive, compiled_primitives
from dovetail.testing.levels import ESSENTIAL

REPORT = "DOVETAIL_TESTING_AOT_REPORT"
"""The variable that names a file for the results."""

Gaps = Sequence[tuple[str, str, str]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every primitive for each of the `TARGETS` of a module."""
    if {"target", "name"} <= set(metafunc.fixturenames):
        level = {
            name: "essential" if name in ESSENTIAL else "full" for name in compiled_primitives()
        }
        metafunc.parametrize(
            ("target", "name"),
            [
                pytest.param(target, name, id=f"{target}-{level[name]}-{name}")
                for target in metafunc.module.TARGETS
                for name in level
            ],
        )


@pytest.fixture(scope="session")
def outcomes() -> Iterator[list[dict[str, Any]]]:
    """The outcomes so far, written to the report at the end."""
    found: list[dict[str, Any]] = []
    yield found
    path = os.environ.get(REPORT)
    if path and found:
        library = "libtpu" if found[0]["target"].startswith("v") else "jax-cuda13-pjrt"
        versions = {name: version(name) for name in ("jaxlib", library)}
        Path(path).write_text(json.dumps({"versions": versions, "outcomes": found}, indent=1))


@pytest.fixture
def check(outcomes: list[dict[str, Any]]) -> Callable[..., None]:
    """A function that compiles a primitive, and compares what fails with what is known to fail."""

    def run(
        target: str,
        name: str,
        topology: TopologyDescription,
        gaps: Gaps,
        most: int | None = None,
    ) -> None:
        loaded = manager().load(topology.platform)
        assert loaded is not None
        found = compile_primitive(name, topology.devices[0], loaded.info.capabilities, most)
        own = [gap for gap in gaps if re.fullmatch(gap[0], name)]
        unknown, reasons = [], []
        for what, error in found.failures.items():
            reason = next((why for _, text, why in own if re.search(text, error)), None)
            if reason is None:
                unknown.append(f"{what}: {error[:800]}")
            else:
                reasons.append(reason)
        outcomes.append(
            {
                "target": target,
                "primitive": name,
                "programs": found.programs,
                "failed": len(found.failures),
                "reasons": sorted(set(reasons)) + (["not known"] if unknown else []),
                "seconds": round(found.seconds, 2),
            }
        )
        mended = [why for _, _, why in own if why not in reasons]
        assert not unknown, f"{name} does not compile for {target}:\n" + "\n".join(unknown)
        assert not mended, f"{name} compiles for {target} now: take out {mended}"

    return run
