"""Results have the documented dtypes and weak types, for operands of every dtype.

`table.json` was made by `sweep.py` with the implementation whose documentation is followed. Of
calls that raise an error there nothing is compared: what dovetail takes besides is no difference.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import dovetail as dt

FOLDER = Path(__file__).parent


def _sweep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dtype_sweep", FOLDER / "sweep.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference on purpose.

    Args:
        reason: why dovetail differs.
        cases: pattern of the cases.
        operands: pattern of the operands, separated by commas.
        result: pattern of what dovetail gives.
    """

    reason: str
    cases: str
    operands: str = ".*"
    result: str = ".*"

    def explains(self, case: str, operands: str, result: str) -> bool:
        return all(
            re.fullmatch(pattern, text)
            for pattern, text in (
                (self.cases, case),
                (self.operands, operands),
                (self.result, result),
            )
        )


DIFFERENCES = (
    # What is refused.
    Difference(
        "complex numbers have no order, and functions of angles and places on the line take none",
        r".*(nn\.\w+|\w+2deg|deg2\w+|degrees|radians|histogram\w*|linspace|digitize|unwrap|arctan2|"
        r"logaddexp2|uniform|randint|fftfreq)\(.*",
        r".*(c64|c128|1j).*",
        "!.*",
    ),
    Difference(
        "positions, seeds and numbers of points, steps and places are integers",
        r".*(unravel_index|argsort|take|roll|fold_in|key|bartlett|blackman|hamming|hanning|"
        r"fori_loop)\(.*",
        result="!.*",
    ),
    Difference(
        "a dtype that is asked for must hold what it is made from",
        r".*(preferred_element_type=|out_dtype=d|polynomial|cumlogsumexp|rademacher|fftfreq|"
        r"unwrap\(x, period).*",
        result="!.*",
    ),
    Difference("booleans are no numbers", r".*(<<|>>|_shift|standardize).*", ".*b1", "!.*"),
    Difference("no operand is promoted", r".*lax\.random_gamma_grad\(.*", result="!.*"),
    Difference("integers of 4 bits do not promote", r".*linear_ramp.*", "[iu]4", "!.*"),
    Difference("a scalar has no dimension", r".*accumulate\(.*", r"[\dnf].*", "!.*"),
    # What has another dtype.
    Difference(
        "small integers are multiplied and weighed in the default integer, as they are summed",
        r".*(cumulative_prod|bincount|ravel_multi_index)\(.*",
        result=r"[iu](32|64)",
    ),
    Difference("counts are exact, and edges as wide as their bounds", r".*histogram\(.*"),
    Difference("a complex number has no nearest integer", r"vectors: round\(x\)", result="c.*"),
    Difference("the dtype asked for is that of the result", r".*(var|std)\(x, dtype=d\)"),
    Difference("what divides or is a power has the dtype of that", r".*\.(divide|power)\(y\)"),
    Difference(
        "operands of a product promote as elsewhere",
        r".*lax\.(dot|batch_matmul|dot_general|ragged_dot)\(.*",
    ),
    Difference(
        "a weakly typed operand does not decide, nor does a mask",
        r".*(polyfit\(x, y, 1\)|log_softmax\(x, where=y\))",
    ),
    # What is weakly typed.
    Difference(
        "positions and counts are not weakly typed, and have 32 bits where those do",
        r".*(argpartition|top_k|approx_max_k|lax\.linalg\.lu|lax\.linalg\.qdwh)\(.*",
        result=r".*i32.*",
    ),
    Difference(
        "a dtype that is asked for is not weak",
        r".*(preferred_element_type=|out_dtype=d).*",
        result=r"[^*!]*",
    ),
    Difference(
        "what a loop carries has one type from its first value on, and branches have that of all",
        r".*lax\.(while_loop|fori_loop|scan|cond)\(.*",
        result=r"[^!]*",
    ),
    Difference(
        "what is computed of given values in other ways than element by element is not weak",
        r".*(reduceat|lax\.reduce|rng_uniform|triangular_solve|householder_product|scatter_add)\(.*",
        result=r"[^*!]*",
    ),
    Difference("a result is weak where all operands are", r".*random_gamma_grad\(.*", ".*[*].*"),
    Difference("tangents have the types of primals", r".*lib\.jvp\(lambda v: v, .*"),
)


def _plain(result: str) -> str:
    """A result without weakly typed booleans, which promote like others."""
    return re.sub(r"b1\*", "b1", result)


@pytest.mark.parametrize("mode", ["x32", "x64"])
def test_dtypes(mode: str) -> None:
    sweep = _sweep()
    expected = sweep.unpacked(json.loads((FOLDER / "table.json").read_text("utf-8")), mode)
    found = dict(sweep.sweep(sweep.imported(dt.__name__), mode))
    assert found.keys() == expected.keys()
    unexplained = []
    for case, results in found.items():
        arrays, expression = case.split(": ", 1)
        values = sweep.operands(mode, arrays, expression)
        for operands, wanted, result in zip(values, expected[case], results, strict=True):
            if wanted.startswith("!") or _plain(wanted) == _plain(result):
                continue
            given = ",".join(operands)
            if not any(d.explains(case, given, result) for d in DIFFERENCES):
                unexplained.append(f"{case} of {given}: {result}, not {wanted}")
    assert not unexplained, f"{len(unexplained)} differences:\n" + "\n".join(unexplained[:100])
