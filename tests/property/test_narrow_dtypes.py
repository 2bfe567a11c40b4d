"""Every primitive over dtypes that share bytes, or that only some operations of compilers take.

Each works, or is refused by an error of ours that names dtypes and not what a compiler makes of it.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ir.walk import jaxprs_in_params
from dovetail.testing.sample import Sample
from dovetail.testing.samples import all_samples, defined_primitives

pytestmark = pytest.mark.tables

NARROW = ("int2", "uint4", "float4_e2m1fn", "float8_e8m0fnu")

PRIMITIVES = defined_primitives()


def substitutable() -> dict[str, Sample]:
    """A sample of each primitive that any dtype may be put into, of about 24 elements.

    Left out are special functions, of which all convert narrow floats first and take seconds to
    compile, and primitives whose programs are in their parameters, which have dtypes of their own.
    """
    found = {}
    for name, samples in sorted(all_samples().items()):
        fitting = [s for s in samples if s.raises is None and not jaxprs_in_params(s.params)]
        special = ".ops.special." in type(PRIMITIVES[name]).__module__
        if fitting and not special:
            found[name] = min(fitting, key=lambda s: abs(sum(a.size for a in s.arrays()) - 24))
    return found


SAMPLES = substitutable()


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", SAMPLES)
def test_works_or_is_refused_by_its_dtype(name: str, dtype: str) -> None:
    sample = SAMPLES[name]
    narrow = np.dtype(getattr(ml_dtypes, dtype))
    # All arrays of the dtype that the first has; others may be indices.
    replaced = next((a.dtype for a in sample.arrays()), None)

    def cast(array: Any) -> Any:
        return np.real(array).astype(narrow) if array.dtype == replaced else array

    with np.errstate(all="ignore"):
        args = [cast(array) for array in sample.arrays()]
    primitive = PRIMITIVES[name]
    run = dt.jit(lambda *xs: primitive.bind(*xs, **sample.params))
    refusal = ""
    with dt.optimization_level("O0"):  # an error of the compiler is a RuntimeError
        try:
            dt.block_until_ready(run(*args))
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            refusal = str(error) or "no message"
    assert not refusal or name in refusal or str(narrow) in refusal or "dtype" in refusal


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_sorts_beside_others(dtype: str) -> None:
    x = np.array([1, 0, 1, 0, 1]).astype(getattr(ml_dtypes, dtype))
    positions = np.arange(5, dtype=np.int32)
    keys, order = lax.sort([x, positions], num_keys=1)
    assert (keys.dtype, keys.tolist()) == (x.dtype, np.sort(x.astype(float)).tolist())
    assert order.tolist() == np.argsort(x.astype(float), kind="stable").tolist()
    first, second = lax.sort([-positions, x], num_keys=1)
    assert (first.tolist(), second.tolist()) == ([-4, -3, -2, -1, 0], x[::-1].tolist())
    values, places = lax.top_k(x, 2)
    assert (values.dtype, places.tolist()) == (x.dtype, [0, 2])


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize("size", [1, 5, 32, 33])
def test_moves_elements(dtype: str, size: int) -> None:
    x = (np.arange(size) % 2).astype(getattr(ml_dtypes, dtype))
    y = x[::-1].copy()
    moved = {
        "concatenate": (lax.concatenate([x, y], 0), np.concatenate([x, y])),
        "stack": (lax.stack([x, y], 1), np.stack([x, y], 1)),
        "pad": (lax.pad(x, y[:1].reshape(()), [(1, 2, 0)]), np.r_[y[:1], x, y[:1], y[:1]]),
        "sort": (lax.sort(x), np.sort(x.astype(float)).astype(x.dtype)),
        "rev": (lax.rev(x, (0,)), y),
        "select": (dt.jit(lambda a, b: lax.select(a > b, a, b))(x, y), np.maximum(x, y)),
        "dynamic_update_slice": (lax.dynamic_update_slice(x, y[:1], (0,)), np.r_[y[:1], x[1:]]),
    }
    for name, (ours, expected) in moved.items():
        assert (ours.dtype, ours.tolist()) == (x.dtype, expected.tolist()), name
