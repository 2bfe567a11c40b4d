"""Samples of every primitive, with one module for each family."""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module

from dovetail._core.api.explanation import all_primitives
from dovetail._core.trace.primitive import Primitive, RuntimePrimitive
from dovetail.testing.sample import Sample


@functools.cache
def defined_primitives() -> dict[str, Primitive]:
    """All primitives of the framework by name, including those of modules not yet imported."""
    return {n: p for n, p in all_primitives().items() if type(p) is not RuntimePrimitive}


@functools.cache
def all_samples() -> dict[str, list[Sample]]:
    """The samples of the modules of this package, by name of the primitive."""
    found: dict[str, list[Sample]] = {}
    for module in pkgutil.iter_modules(__path__):
        samples = import_module(f"{__name__}.{module.name}").SAMPLES
        for name, group in samples.items():
            found.setdefault(name, []).extend(group)
    return found
