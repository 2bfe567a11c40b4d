"""Locates the source of a nan or infinity, for the options ``debug_nans`` and ``debug_infs``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.source import describe
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.ops.checks.checking import CheckTrace
from dovetail._core.ops.checks.failures import InfError, JaxException, NaNError
from dovetail._core.trace.state import evaluation_trace, state, use_trace


def explained(
    error: FloatingPointError, name: str, effects: Effects, run: Callable[[CheckTrace], Any]
) -> FloatingPointError:
    """An error about a nan or an infinity that names the operation and the user's line.

    The program is run again, operation by operation, including the bodies of calls, branches and
    loops.

    Args:
        error: the error raised for the program's results.
        name: the program's name.
        effects: the program's effects; a program with effects is not run again.
        run: runs the program again on the same values.
    """
    if not (config.debug_nans.value or config.debug_infs.value):
        return error
    categories: set[type[JaxException]] = set()
    categories |= {NaNError} if config.debug_nans.value else set()
    categories |= {InfError} if config.debug_infs.value else set()
    where = describe(state.place)
    kind = "inf" if "(inf)" in str(error) else "nan"
    if not effects:
        checks = CheckTrace(evaluation_trace, frozenset(categories))
        try:
            with (
                use_trace(evaluation_trace),
                config.debug_nans(False),
                config.debug_infs(False),
            ):
                run(checks)
        except RuntimeError:
            pass  # an argument was donated and deleted
        finally:
            checks.finished = True
        checked = checks.error
        if checked._metadata and np.asarray(checked._pred):
            failure = checked._metadata[int(checked._code)]
            kind = "inf" if failure.category is InfError else "nan"
            name, where = failure.details, failure.place
    return FloatingPointError(f"invalid value ({kind}) encountered in {name} at {where}")
