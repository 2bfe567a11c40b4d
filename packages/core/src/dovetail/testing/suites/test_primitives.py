"""Every rule of every primitive agrees with the others, on samples."""

from __future__ import annotations

import pytest

from dovetail.testing.checks import CHECKS
from dovetail.testing.levels import primitives_of
from dovetail.testing.sample import supported
from dovetail.testing.samples import all_samples, defined_primitives


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each check for each primitive of the level that is asked for."""
    if {"name", "check"} <= set(metafunc.fixturenames):
        level = metafunc.config.getoption("--dovetail-level")
        names = primitives_of(level, sorted(all_samples()))
        metafunc.parametrize("name", names)
        metafunc.parametrize("check", sorted(CHECKS))


def test_rules_agree(
    name: str,
    check: str,
    dovetail_capabilities: frozenset[str],
    request: pytest.FixtureRequest,
) -> None:
    """One check of one primitive, on all samples that the backend can hold."""
    # The fixture record_property warns where pytest also writes JUnit's XML.
    request.node.user_properties += [("primitive", name), ("check", check)]
    samples = supported(all_samples()[name], dovetail_capabilities)
    if not samples:
        pytest.skip(f"the backend does not list what {name} needs among its capabilities")
    CHECKS[check](defined_primitives()[name], samples)
