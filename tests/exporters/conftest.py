"""Runs ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import dovetail as dt
from dovetail import exporters
from dovetail.extend import evaluate

onnxruntime.set_default_logger_severity(4)  # what it cannot run is an error, too


def session_of(program: Any) -> onnxruntime.InferenceSession:
    """A model, ready to run, with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(bytes(program), options)


def outputs_of(program: Any, leaves: Sequence[Any]) -> list[Any]:
    """The results of a model for the flat leaves of its arguments."""
    feeds = zip(program.input_names, leaves, strict=True)
    return session_of(program).run(None, {name: np.asarray(x) for name, x in feeds})


@pytest.fixture(scope="session")
def outputs() -> Callable[..., list[Any]]:
    """`outputs_of`."""
    return outputs_of


@pytest.fixture(scope="session")
def same() -> Callable[..., Any]:
    """Exports a function, runs the model, and compares the results with NumPy's.

    The model is checked as a whole, with the types and shapes that ONNX infers. Further calls, with
    arguments of other sizes, are compared, too.
    """

    def check(
        fun: Callable[..., Any],
        *args: Any,
        others: Sequence[tuple[Any, ...]] = (),
        tolerance: float = 2e-6,
        **options: Any,
    ) -> Any:
        program = exporters.export("onnx", fun, *args, **options)
        onnx.checker.check_model(program.model, full_check=True)
        for arguments in (args, *others):
            leaves = [np.asarray(x) for x in dt.tree.leaves(arguments)]
            got = outputs_of(program, leaves)
            want = evaluate(dt.make_jaxpr(fun)(*arguments), leaves, platform="cpu")
            assert len(got) == len(want) == len(program.output_names)
            for mine, own in zip(got, map(np.asarray, want), strict=True):
                assert mine.dtype == own.dtype
                np.testing.assert_allclose(mine, own, rtol=tolerance, atol=tolerance)
        return program

    return check
