"""Preparation of the suites' tests before they run, and the backend that they run on."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail._core.plugins.loading import LoadedBackend
from dovetail._core.plugins.manager import manager
from dovetail.errors import BackendUnavailableError
from dovetail.testing.backend import BackendUnderTest, connect
from dovetail.testing.capabilities import missing_text
from dovetail.testing.expected_failures import ExpectedFailuresError, read_expected_failures

__all__ = ["connected", "loaded_backend", "missing_capability", "platform_of", "prepare"]

SUITES = Path(__file__).parent / "suites"


def platform_of(config: pytest.Config) -> str:
    """The platform's canonical name.

    Raises:
        pytest.UsageError: nothing with that name is installed.
    """
    asked = config.getoption("--dovetail-platform")
    try:
        return manager().canonical(asked) if asked else dt.default_backend()
    except BackendUnavailableError as error:
        raise pytest.UsageError(f"--dovetail-platform={asked}: {error}") from None


def prepare(config: pytest.Config, items: list[pytest.Item], suites: Mapping[int, str]) -> None:
    """Select the tests of the level, record suites for the report, mark expected failures.

    Args:
        config: of this run.
        items: all tests; changed in place.
        suites: the suites of the tests that belong to one, by the identity of the test.
    """
    platform_of(config)
    _mark_expected_failures(config, items, suites)
    if config.getoption("--dovetail-level") == "essential":
        left_out = [i for i in items if id(i) in suites and i.get_closest_marker("dovetail_full")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if id(item) in suites:
            item.user_properties.append(("suite", suites[id(item)]))
    # Its messages say most about what is wrong with a plug-in. Tests that need no client come
    # first: without a client, all others stop. The doctor starts in its own process, and may find
    # the device taken once this process has a client.
    items.sort(
        key=lambda item: (
            suites.get(id(item)) != "contract",
            "dovetail_backend" in getattr(item, "fixturenames", ()),
        )
    )


def _mark_expected_failures(
    config: pytest.Config, items: list[pytest.Item], suites: Mapping[int, str]
) -> None:
    path = config.getoption("--dovetail-xfails")
    if path is None:
        return
    try:
        expected = read_expected_failures(path)
    except ExpectedFailuresError as error:
        raise pytest.UsageError(str(error)) from None
    unused = {failure.pattern: failure for failure in expected}
    for item in items:
        if id(item) not in suites:
            continue
        for failure in expected:
            if failure.matches(item.nodeid.partition("::")[2]):
                unused.pop(failure.pattern, None)
                item.add_marker(
                    pytest.mark.xfail(reason=failure.reason, run=not failure.crashes, strict=True)
                )
    # If only some suites were requested, tests of the others are not there to match.
    everything = {path.stem.removeprefix("test_") for path in SUITES.glob("test_*.py")}
    if unused and set(suites.values()) == everything:
        lines = [f"{f.place}: no test is named {f.pattern}" for f in unused.values()]
        raise pytest.UsageError("\n".join(lines))


@functools.lru_cache
def _loaded(platform: str) -> LoadedBackend | str:
    loaded = manager().load(platform)
    if loaded is not None:
        return loaded
    reasons = [str(f) for f in manager().failures if f.name == platform]
    return f"the plug-in of the platform {platform!r} does not load: {'; '.join(reasons)}"


@functools.lru_cache
def _connected(platform: str) -> BackendUnderTest | str:
    try:
        return connect(platform)
    except BackendUnavailableError as error:
        return str(error)


def loaded_backend(config: pytest.Config) -> LoadedBackend:
    """The plug-in under test; the test fails with the reason if it does not load."""
    found = _loaded(platform_of(config))
    if isinstance(found, str):
        pytest.fail(found, pytrace=False)
    return found


def connected(config: pytest.Config) -> BackendUnderTest:
    """The backend under test with its devices; the test fails with the reason if there are none."""
    found = _connected(platform_of(config))
    if isinstance(found, str):
        pytest.fail(found, pytrace=False)
    return found


def missing_capability(item: Any, backend: BackendUnderTest) -> str:
    """The reason to skip a test on a backend; an empty string if there is none."""
    for mark in item.iter_markers("dovetail_needs"):
        for name in mark.args:
            if name not in backend.capabilities:
                return missing_text(backend.platform, name)
    return ""
