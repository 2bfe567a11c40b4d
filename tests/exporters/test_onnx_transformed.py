"""The programs of the conformance kit as ONNX models, with their gradients and over batches."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
from dovetail.testing.programs import PROGRAMS, loss
from dovetail_onnx.errors import ExportError

pytestmark = pytest.mark.tables

REFUSED: Final = {
    "factorizations": "eigh",
    "likelihood": "cholesky",
    "special": "digamma",
    "spectrum": "fft",
}
"""A primitive that is in the way, by program."""


def arguments_of(name: str, batch: bool = False) -> Any:
    """A program's arguments in 32 bits; for a batch, twice."""

    def given(x: Any) -> Any:
        x = np.asarray(x)
        x = x.astype(np.float32) if x.dtype == np.float64 else x
        return np.stack([x, x]) if batch else x

    return dt.tree.map(given, PROGRAMS[name].args)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", ["itself", "gradient", "batch"])
def test_program(name: str, way: str, same) -> None:
    program = PROGRAMS[name]
    if way == "gradient" and not program.reverse:
        pytest.skip("it has no gradient")
    function = {
        "itself": program.function,
        "gradient": dt.grad(loss(program.function), allow_int=True),
        "batch": dt.vmap(program.function),
    }[way]
    arguments = arguments_of(name, way == "batch")
    if name in REFUSED:
        with pytest.raises(ExportError, match=f"  {REFUSED[name]}: "):
            same(function, *arguments)
    else:
        same(function, *arguments, tolerance=1e-4 * program.tolerance)
