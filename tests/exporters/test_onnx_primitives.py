"""Every primitive that has a converter, run by onnxruntime, against its reference in NumPy.

The samples are those of the conformance kit, with its tolerances: special values among them, empty
arrays, numbers that overflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest

import dovetail as dt
from dovetail import exporters, lax
from dovetail.extend.random_keys import is_key, unwrap
from dovetail.testing.keys import as_argument
from dovetail.testing.numerics import difference
from dovetail.testing.sample import Sample, representative
from dovetail.testing.samples import all_samples, defined_primitives
from dovetail_onnx.converters import CONVERTERS
from dovetail_onnx.errors import ExportError

pytestmark = pytest.mark.tables

REFUSED: Final[Mapping[str, str]] = {
    "bitcast_convert_type": "pass opset=26|of another size",
    "erf_inv": "in 32 bits",
    "erf_inv_fast": "in 32 bits",
    "erfc": "in 32 bits",
    "mulhi": "no integers of 128 bits",
    "nextafter": "no next floating-point number",
    "philox4x32": "no such random bits",
    "reduce_precision": "no type of . and . bits",
    "rng_bit_generator": "no such random bits",
}
"""What a refusal says, by primitive; any primitive may refuse complex numbers, and keys of other
generators than Threefry."""

NO_KERNEL: Final = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "erf", "sinh"),
        "tan",
    }
)
"""Operators that ONNX has in 64 bits, and onnxruntime on a CPU has not."""

OF_SIGNED_NAN: Final = frozenset({"eq_to", "le_to", "lt_to", "top_k"})
"""In their order a NaN with a sign comes first; models take it for one without."""

TOLERANCE: Final[Mapping[str, float]] = {"erfc": 16, "sin": 8}
"""Errors of a formula or of onnxruntime's approximations, in units in the last place."""

ABSOLUTE: Final[Mapping[str, float]] = {"logistic": 2}
"""The same in units of the dtype's epsilon."""

OF_KEYS: Final = frozenset(
    {
        *("random_bits", "random_clone", "random_fold_in", "random_seed", "random_split"),
        *("random_unwrap", "random_wrap"),
    }
)
"""They have no converters, but are written as what is done with the numbers of keys."""

OF_CONSTANTS: Final = (
    *("bitcast_convert_type", "cond", "convert_element_type", "div", "dynamic_slice"),
    *("dynamic_update_slice", "gather", "pad", "pow", "rem", "scatter", "select_n", "shift_left"),
    *("shift_right_arithmetic", "shift_right_logical"),
)
"""Their converters look at operands that are known."""

NAMES: Final = sorted(set(all_samples()) & set(CONVERTERS) - {"dce_sink"} | OF_KEYS)


def taken(name: str) -> Iterator[Sample]:
    """The samples of a primitive whose arguments NumPy can hand to onnxruntime."""
    for sample in all_samples()[name]:
        names = [x.dtype.name for x in sample.arrays()]
        odd = any(re.match(r"complex|float8|u?int[24]$", name) for name in names)
        if sample.raises is None and not odd:
            yield sample


def wide(x: Any) -> Any:
    """A value as onnxruntime gives it to NumPy: bfloat16 in 32 bits, keys as numbers."""
    if is_key(x):
        return unwrap(x)
    return lax.convert_element_type(x, np.float32) if x.dtype.name == "bfloat16" else x


def program_of(name: str, sample: Sample, constant: bool = False) -> Any:
    """The model of one sample, with its arguments as inputs or as constants."""
    primitive = defined_primitives()[name]
    dtypes = [x.dtype for x in sample.arrays()]

    def apply(*args: Any) -> list[Any]:
        given = [
            lax.convert_element_type(x, d) if d.name == "bfloat16" else x
            for x, d in zip(args, dtypes, strict=True)
        ]
        found = primitive.bind(*given, **sample.params)
        return list(map(wide, found if primitive.multiple_results else [found]))

    examples = list(map(example_of, sample.arrays()))
    if constant:
        return exporters.export("onnx", lambda: apply(*examples))
    return exporters.export("onnx", apply, *examples)


def example_of(x: np.ndarray[Any, Any]) -> Any:
    """What stands for an argument when its model is made."""
    return as_argument(x) if x.dtype.names else numpy_of(x)


def numpy_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An argument as NumPy gives it to onnxruntime."""
    if x.dtype.names:
        return x[x.dtype.names[0]]
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def has_signed_nan(sample: Sample) -> bool:
    """Whether an argument has a NaN with a sign."""
    floats = [
        x.astype(np.float64)
        for x in sample.arrays()
        if x.dtype.kind == "f" or x.dtype.name == "bfloat16"
    ]
    return any((np.isnan(x) & np.signbit(x)).any() for x in floats)


def wrong(
    name: str, sample: Sample, outputs: Callable[..., list[Any]], constant: bool = False
) -> str:
    """What is wrong with one sample, in words; an empty string if nothing is."""
    primitive = defined_primitives()[name]
    try:
        program = program_of(name, sample, constant)
    except ExportError as error:
        text = str(error)
        expected = REFUSED.get(name, "$^")
        return "" if re.search(f"{expected}|complex|no such random bits", text) else text
    onnx.checker.check_model(program.model, full_check=True)
    try:
        got = outputs(program, [] if constant else map(numpy_of, sample.arrays()))
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        wide_floats = any(x.dtype == np.float64 for x in sample.arrays())
        return "" if name in NO_KERNEL and wide_floats else str(error)
    if name in OF_SIGNED_NAN and has_signed_nan(sample):
        return ""
    with np.errstate(all="ignore"):
        found = primitive.reference(*sample.arrays(), **sample.params)
    want = [np.asarray(x) for x in (found if primitive.multiple_results else [found])]
    want = [numpy_of(x) if x.dtype.names else x for x in want]
    got = [np.asarray(x).astype(w.dtype) for x, w in zip(got, want, strict=True)]
    # onnxruntime's `Where` adds what it chooses to zeros, so that -0.0 becomes 0.0.
    signed = sample.signed_zeros and all(n.op_type != "Where" for n in program.model.graph.node)
    tolerance = max(sample.tolerance, TOLERANCE.get(name, 0))
    absolute = max(sample.absolute, ABSOLUTE.get(name, 0))
    words = [
        difference(x, y, tolerance, absolute, signed)
        for x, y in zip(sample.observed(got), sample.observed(want), strict=True)
    ]
    return "; ".join(filter(None, words))


@pytest.mark.parametrize("name", NAMES)
def test_primitive(name: str, outputs: Callable[..., list[Any]]) -> None:
    with dt.enable_x64(True), np.errstate(all="ignore"):
        samples = list(taken(name))
        failures = [f"{s}: {text}" for s in samples if (text := wrong(name, s, outputs))]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_primitive_of_constants(name: str, outputs: Callable[..., list[Any]]) -> None:
    with dt.enable_x64(True), np.errstate(all="ignore"):
        samples = representative(list(taken(name)), 12)
        failures = [f"{s}: {text}" for s in samples if (text := wrong(name, s, outputs, True))]
    assert not failures, "\n".join(failures)


def test_most_primitives_with_samples_have_a_converter() -> None:
    """All that networks are made of: what is left are special functions, matrices and keys."""
    without = set(all_samples()) - set(CONVERTERS) - OF_KEYS
    families = re.compile(
        r"bessel|beta|cholesky|eig|gamma|geq|hessenberg|householder|igamma|lu|ormqr|qdwh|qr|"
        r"ragged_dot|random_gamma|regularized|scaled_dot|schur|select_and_|svd|tri|digamma|zeta"
    )
    assert not {name for name in without if not families.search(name)}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_every_expected_refusal_happens(name: str) -> None:
    with dt.enable_x64(True):
        texts = []
        for sample in taken(name):
            try:
                program_of(name, sample)
            except ExportError as error:
                texts.append(str(error))
    assert any(re.search(REFUSED[name], text) for text in texts)
