"""The suites of the conformance kit on the CPU, but for those that hold laws."""

from __future__ import annotations

from dovetail.testing.suites.test_callbacks import *  # noqa: F403 - every test of the suite
from dovetail.testing.suites.test_collectives import *  # noqa: F403 - every test of the suite
from dovetail.testing.suites.test_contract import *  # noqa: F403 - every test of the suite
from dovetail.testing.suites.test_control_flow import *  # noqa: F403 - every test of the suite
from dovetail.testing.suites.test_device import *  # noqa: F403 - every test of the suite
from dovetail.testing.suites.test_processes import *  # noqa: F403 - every test of the suite
