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
        where: the heading in docs/differences-from-jax.md that tells of it.
        cases: pattern of the cases.
        operands: pattern of the operands, separated by commas.
        result: pattern of what dovetail gives.
    """

    reason: str
    where: str
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


COMPLEX = r".*(c64|c128|1j).*"
DIFFERENCES = (
    # What is refused.
    Difference("an order is needed", "dovetail.nn: relu", r".*nn\.\w+\(.*", COMPLEX, "!.*"),
    Difference(
        "angles and coordinates are real",
        "dovetail.numpy: deg2rad",
        r".*(deg2rad|rad2deg|degrees|radians|arctan2|unwrap)\(.*",
        COMPLEX,
        "!.*",
    ),
    Difference(
        "complex numbers lie in no bin",
        "dovetail.numpy: histogram",
        r".*(histogram\w*|digitize)\(.*",
        COMPLEX,
        "!.*",
    ),
    Difference(
        "complex numbers are not rounded down",
        "dovetail.numpy: linspace",
        r".*linspace\(.*dtype=.*",
        COMPLEX,
        "!.*",
    ),
    Difference(
        "random numbers lie between real bounds",
        "dovetail.random: uniform",
        r".*random\.(uniform|randint)\(.*",
        COMPLEX,
        "!.*",
    ),
    Difference(
        "frequencies are real floats",
        "dovetail.numpy.fft: fftfreq",
        r".*fft\.r?fftfreq\(.*",
        result="!.*",
    ),
    Difference(
        "only integers are positions",
        "dovetail.numpy: unravel_index",
        r".*unravel_index\(.*",
        result="!.*",
    ),
    Difference(
        "positions are integers",
        "dovetail.numpy: argsort",
        r".*argsort\(x, dtype=d\)",
        result="!.*",
    ),
    Difference("a shift is an integer", "dovetail.numpy: roll", r".*roll\(.*", result="!.*"),
    Difference(
        "what is folded in is an integer",
        "dovetail.random: fold_in",
        r".*fold_in\(.*",
        result="!.*",
    ),
    Difference("steps are whole", "dovetail.lax: fori_loop", r".*fori_loop\(.*", result="!.*"),
    Difference(
        "a seed is an integer", "dovetail.random: key", r".*random\.key\(x\).*", result="!.*"
    ),
    Difference(
        "a number of points is an integer",
        "dovetail.numpy: bartlett",
        r".*(bartlett|blackman|hamming|hanning)\(x\)",
        result="!.*",
    ),
    Difference(
        "a boolean is no bound of integers",
        "dovetail.random: choice",
        r".*random\.choice\(.*",
        "True",
        "!.*",
    ),
    Difference(
        "a dtype that is asked for must hold what it is made from",
        "dovetail.lax: mul",
        r".*(preferred_element_type=|out_dtype=d).*",
        result="!.*",
    ),
    Difference(
        "coefficients must be numbers of the dtype",
        "dovetail.lax: polynomial",
        r".*lax\.polynomial\(.*",
        result="!.*",
    ),
    Difference(
        "integers hold no logarithms",
        "dovetail.lax: cumlogsumexp",
        r".*cumlogsumexp\(.*",
        result="!.*",
    ),
    Difference(
        "-1 must be a number of the dtype",
        "dovetail.random: rademacher",
        r".*rademacher\(.*",
        result="!.*",
    ),
    Difference(
        "unsigned integers have no negative differences",
        "dovetail.numpy: unwrap",
        r".*unwrap\(x, period=y\)",
        "u.*",
        "!.*",
    ),
    Difference(
        "operands have one dtype",
        "dovetail.lax: random_gamma_grad",
        r".*lax\.random_gamma_grad\(.*",
        result="!.*",
    ),
    Difference(
        "a scalar has no dimension",
        "dovetail.numpy: ufunc",
        r".*accumulate\(.*",
        r"[\dnf].*",
        "!.*",
    ),
    # What has another dtype.
    Difference(
        "small integers are multiplied in the default integer",
        "dovetail.numpy: cumulative_prod",
        r".*cumulative_prod\(.*",
        result=r"[iu](32|64)",
    ),
    Difference(
        "weights are added in the dtype of their sum",
        "dovetail.numpy: bincount",
        r".*bincount\(.*",
        result=r"[iu](32|64)",
    ),
    Difference(
        "positions have the default dtype",
        "dovetail.numpy: ravel_multi_index",
        r".*ravel_multi_index\(.*",
        result=r"i(32|64)",
    ),
    Difference(
        "counts are exact, and edges as wide as their bounds",
        "dovetail.numpy: histogram",
        r".*histogram\(.*",
        result=r"[^!]*",
    ),
    Difference(
        "both parts of complex numbers are rounded",
        "dovetail.numpy: round",
        r"vectors: round\(x\)",
        result="c.*",
    ),
    Difference(
        "the dtype asked for is that of the result", "dovetail.numpy: var", r".*var\(x, dtype=d\)"
    ),
    Difference(
        "fractions are not dropped",
        "dovetail: Array.at",
        r".*\.(divide|power)\(y\)",
        "[biu].*",
    ),
    Difference(
        "operands of a product promote as elsewhere",
        "dovetail.lax: dot_general",
        r".*lax\.(dot|batch_matmul|dot_general|ragged_dot)\(.*",
    ),
    Difference(
        "a weakly typed operand does not decide",
        "dovetail.numpy: polyfit",
        r".*polyfit\(x, y, 1\)",
        r".*\*,.*",
    ),
    Difference(
        "a mask has no part in the dtype",
        "dovetail.nn: log_softmax",
        r".*log_softmax\(x, where=y\)",
    ),
    # What is weakly typed.
    Difference(
        "positions and counts are not weakly typed",
        "dovetail.lax: top_k",
        r".*(argpartition|top_k|approx_max_k|lax\.linalg\.lu)\(.*",
        result=r".*i32.*",
    ),
    Difference(
        "a number of iterations is an int32",
        "dovetail.lax.linalg: qdwh",
        r".*lax\.linalg\.qdwh\(.*",
        result=r".*i32.*",
    ),
    Difference(
        "a dtype that is asked for is not weak",
        "dovetail.lax: mul",
        r".*(preferred_element_type=|out_dtype=d).*",
        result=r"[^*!]*",
    ),
    Difference(
        "what a loop carries has one type from its first value on",
        "dovetail.lax: scan",
        r".*lax\.(while_loop|fori_loop|scan)\(.*",
        result=r"[^!]*",
    ),
    Difference(
        "a result is weak where those of all branches are",
        "dovetail.lax: cond",
        r".*lax\.cond\(.*",
        result=r"[^!]*",
    ),
    Difference(
        "tangents have the types of primals", "dovetail: jvp", r".*lib\.jvp\(lambda v: v, .*"
    ),
)
WEAK_BOOLEANS = "dovetail.lax: top_k"
"""The heading that tells of booleans, which are never weakly typed."""


def _plain(result: str) -> str:
    """A result without weakly typed booleans, which promote like others: see `WEAK_BOOLEANS`."""
    return re.sub(r"b1\*", "b1", result)


def test_differences_are_documented(told_differences: set[str]) -> None:
    assert {d.where for d in DIFFERENCES} | {WEAK_BOOLEANS} <= told_differences


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
