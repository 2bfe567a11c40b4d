"""Every example in the documentation of core and of the testing kit runs.

Those of the NumPy API are run by tests/numpy/test_doctests.py.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail._core
import dovetail.numpy as jnp
import dovetail.testing
from dovetail import lax

PACKAGES = (dovetail._core, dovetail.testing)

#: What examples need not import.
IMPORTS = {"dt": dt, "jnp": jnp, "lax": lax, "np": np, "__name__": "__main__"}


def _modules() -> Iterator[Any]:
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".suites" not in module.name:  # tests, which pytest imports
                yield importlib.import_module(module.name)


def _examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found: list[doctest.DocTest] = []
    for module in _modules():
        found += finder.find(module, module.__name__, globs={**vars(module), **IMPORTS})
    return [test for test in found if test.examples]


@pytest.mark.parametrize(
    "example", _examples(), ids=lambda test: test.name.removeprefix("dovetail.")
)
def test_example(example: doctest.DocTest) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=flags).run(example, out=output.append)
    assert result.failed == 0, "".join(output)
