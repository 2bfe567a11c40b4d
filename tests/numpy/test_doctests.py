"""Every example in the documentation of the NumPy API runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import ParamSpec, TypeVar

import numpy as np
import pytest

import dovetail as dt
import dovetail.example_libraries
import dovetail.experimental.sparse
import dovetail.image
import dovetail.nn
import dovetail.numpy
import dovetail.ops
import dovetail.random
import dovetail.scipy
from dovetail import lax

# What examples need not import.
IMPORTS = {"dt": dt, "jnp": dovetail.numpy, "lax": lax, "np": np}

PACKAGES = (
    dovetail.example_libraries,
    dovetail.experimental.sparse,
    dovetail.image,
    dovetail.nn,
    dovetail.numpy,
    dovetail.ops,
    dovetail.random,
    dovetail.scipy,
)
MODULES = [
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


def examples() -> list[doctest.DocTest]:
    found = []
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        module = importlib.import_module(name)
        for attribute, value in vars(module).items():
            # Compiled functions are no Python functions, so that doctest would not find them by
            # itself.
            function = getattr(value, "__wrapped__", value)
            if isinstance(value, TypeVar | ParamSpec):  # Python writes what is in them
                continue
            if getattr(function, "__module__", None) == name and getattr(value, "__doc__", None):
                found += finder.find(
                    function,
                    f"{name}.{attribute}",
                    module=False,
                    globs={**IMPORTS, "__name__": "__main__"},
                )
    return [test for test in found if test.examples]


@pytest.mark.parametrize(
    "example", examples(), ids=lambda test: test.name.removeprefix("dovetail.")
)
def test_example(example: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output: list[str] = []
    result = runner.run(example, out=output.append)
    assert result.failed == 0, "".join(output)
