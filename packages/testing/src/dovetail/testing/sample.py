"""Samples: arguments for which the rules of a primitive are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from dovetail._core.ir.walk import all_jaxprs, jaxprs_in_params
from dovetail._core.ops.contraction.dot_algorithms import DotAlgorithmPreset
from dovetail._core.trace.primitive import Primitive
from dovetail.testing.keys import aval_of_sample

bfloat16 = np.dtype(ml_dtypes.bfloat16)

SIGNED = tuple(np.dtype(f"int{n}") for n in (8, 16, 32, 64))
UNSIGNED = tuple(np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
INTEGERS = SIGNED + UNSIGNED
FLOATS = (*(np.dtype(f"float{n}") for n in (32, 64, 16)), bfloat16)
COMPLEXES = (np.dtype(np.complex64), np.dtype(np.complex128))
BOOLS = (np.dtype(bool),)
#: Backends with 64-bit floats have them: see `dovetail.testing.capabilities`.
INTEGERS_OF_64_BITS = frozenset({SIGNED[3], UNSIGNED[3]})
ALL_DTYPES = BOOLS + INTEGERS + FLOATS + COMPLEXES


def rolled(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """The elements of `x`, rotated by `index` positions: another argument as good as `x`.

    A single number that is not an integer is scaled down instead.
    """
    if x.size == 1 and x.dtype in (*FLOATS, *COMPLEXES):
        return np.asarray(x * (1 - index / 8)).astype(x.dtype)
    return np.roll(x.reshape(-1), index).reshape(x.shape)


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One application of a primitive.

    Args:
        args: NumPy arrays, of the dtypes to apply the primitive to.
        params: parameters, as for `bind`.
        differentiable: positions of the arguments to differentiate with respect to; None for all
            that are floating point or complex. Use ``()`` if the function is not smooth at these
            arguments.
        order: the highest order of derivatives to compare with finite differences.
        linear: positions of arguments in which the primitive is jointly linear here: its
            transposition rule is compared with its adjoint.
        batched: positions of the arguments that may be batched; None for all, ``()`` for no check.
        vary: makes the other elements of a batch: from an argument and the element's number (the
            argument itself at 0) to an argument.
        tolerance: the allowed error of a compiled result, in units in the last place.
        absolute: the same in units of the dtype's epsilon, for sums whose terms cancel.
        derivative_tolerance: the allowed relative error of a derivative compared with finite
            differences.
        derivative_value: the allowed relative error of the value that a derivative returns; 0 if
            it is the primitive's, bit for bit.
        signed_zeros: whether the sign of a zero result is compared.
        observe: if results are not unique, such as the signs of eigenvectors: a function from them
            (a list of arrays, possibly traced) to a list of arrays that are unique, which are
            compared and differentiated instead.
        needs: the capability that a backend must have for this sample, such as ``"eig"``.
        raises: the error that abstract evaluation has to raise; nothing else is checked.
        note: what the sample is about.
    """

    args: tuple[Any, ...]
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    _: dataclasses.KW_ONLY
    differentiable: tuple[int, ...] | None = None
    order: int = 2
    linear: tuple[int, ...] = ()
    batched: tuple[int, ...] | None = None
    vary: Callable[[np.ndarray[Any, Any], int], np.ndarray[Any, Any]] = rolled
    tolerance: float = 4.0
    absolute: float = 0.0
    derivative_tolerance: float = 1e-5
    derivative_value: float = 0.0
    signed_zeros: bool = True
    observe: Callable[[list[Any]], list[Any]] | None = None
    needs: str | None = None
    raises: type[Exception] | None = None
    note: str = ""

    def replace(self, **changes: Any) -> Sample:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The arguments as NumPy arrays."""
        return tuple(np.asarray(a) for a in self.args)

    def differentiable_positions(self) -> tuple[int, ...]:
        """Positions of the arguments to differentiate with respect to."""
        if self.differentiable is not None:
            return self.differentiable
        inexact = (*FLOATS, *COMPLEXES)
        return tuple(i for i, a in enumerate(self.arrays()) if a.dtype in inexact)

    def batched_positions(self) -> tuple[int, ...]:
        """Positions of the arguments that may be batched."""
        return tuple(range(len(self.args))) if self.batched is None else self.batched

    def observed(self, results: list[Any]) -> list[Any]:
        """The quantities to compare, from the results of the primitive or of its reference."""
        return results if self.observe is None else self.observe(results)

    def __str__(self) -> str:
        args = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays())
        params = "".join(f", {k}={v}" for k, v in self.params.items() if v is not None)
        return f"({args}{params})" + (f" [{self.note}]" if self.note else "")


def across_dtypes(sample: Sample, dtypes: Iterable[Any], *positions: int) -> list[Sample]:
    """The same sample in several dtypes.

    Args:
        sample: its arguments must hold values that each of the dtypes can represent; in unsigned
            ones, without their sign.
        dtypes: dtypes to cast to.
        positions: which arguments to cast; all by default.

    Returns:
        One sample for each dtype. Only those in a dtype of 32 bits or more are differentiated.

    Example:
        >>> [str(s) for s in across_dtypes(Sample((np.ones(3),)), ["float32", "int8"])]
        ['(float32[3])', '(int8[3])']
    """
    made = []
    for dtype in map(np.dtype, dtypes):
        args = tuple(
            _cast(a, dtype) if not positions or i in positions else a
            for i, a in enumerate(sample.args)
        )
        smooth = sample.differentiable if dtype in (*FLOATS[:2], *COMPLEXES) else ()
        # Only numbers that have tangents have cotangents.
        inexact = all(args[i].dtype in (*FLOATS, *COMPLEXES) for i in sample.linear)
        linear = sample.linear if inexact else ()
        made.append(sample.replace(args=args, differentiable=smooth, linear=linear))
    return made


def _cast(x: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    x = np.asarray(x)
    with np.errstate(over="ignore"):
        return np.asarray((np.abs(x) if dtype in UNSIGNED else x).astype(dtype))


def rejected(sample: Sample, dtypes: Iterable[Any], *positions: int) -> list[Sample]:
    """The same sample in dtypes that the primitive must reject with a `TypeError`."""
    return [s.replace(raises=TypeError) for s in across_dtypes(sample, dtypes, *positions)]


def supported(samples: Iterable[Sample], capabilities: frozenset[str]) -> list[Sample]:
    """The samples whose arguments a backend can hold, and for which it has the capabilities.

    Args:
        samples: of any dtypes.
        capabilities: of the backend: ``float64``, ``complex``, and what samples need.
    """
    refused = _refused(capabilities) - INTEGERS_OF_64_BITS
    return [
        s
        for s in samples
        if not refused & {a.dtype for a in s.arrays()}
        and (s.needs is None or s.needs in capabilities)
    ]


def runnable(
    primitive: Primitive, samples: Iterable[Sample], capabilities: frozenset[str]
) -> list[Sample]:
    """The samples of a primitive for which a backend has every dtype.

    That includes the dtypes of arguments, of results, and those requested by parameters: a complex
    number consists of real ones, and products may be summed in more bits than the operands have.
    """
    refused = _refused(capabilities)
    kept = supported(samples, capabilities)
    if not refused:
        return kept
    return [s for s in kept if not any(d in refused for d in _dtypes(primitive, s))]


def _refused(capabilities: frozenset[str]) -> frozenset[np.dtype[Any]]:
    """The dtypes that a backend does not have."""
    refused: frozenset[np.dtype[Any]] = frozenset()
    if "float64" not in capabilities:
        refused |= INTEGERS_OF_64_BITS | {np.dtype(np.float64), np.dtype(np.complex128)}
    if "complex" not in capabilities:
        refused |= frozenset(COMPLEXES)
    return refused


def _dtypes(primitive: Primitive, sample: Sample) -> Iterator[Any]:
    """The dtypes used by a sample; those of the results, which cost most, come last."""
    yield from (a.dtype for a in sample.arrays())
    for value in sample.params.values():
        yield from _dtypes_in(value)
    for jaxpr in jaxprs_in_params(sample.params):
        for inner in all_jaxprs(jaxpr):
            for var in (*inner.invars, *(v for e in inner.eqns for v in e.outvars)):
                yield var.aval.dtype
    if sample.raises is None:
        out = primitive.abstract(*map(aval_of_sample, sample.arrays()), **sample.params)
        yield from (o.dtype for o in (out if primitive.multiple_results else [out]))


def _dtypes_in(value: Any) -> Iterator[Any]:
    """The dtypes in a parameter."""
    if isinstance(value, np.dtype):
        yield value
    elif isinstance(value, DotAlgorithmPreset):
        yield from map(np.dtype, filter(None, [value.accumulation_type]))
    elif isinstance(value, tuple):
        for item in value:
            yield from _dtypes_in(item)


def _kind(sample: Sample) -> int:
    """Two samples of one kind test most rules in the same way; the first kinds test most."""
    if sample.raises is not None:
        return 3
    dtypes = {array.dtype for array in sample.arrays()}
    if not dtypes.isdisjoint(FLOATS):
        return 0
    return 2 if dtypes.isdisjoint(COMPLEXES) else 1


def representative(samples: Sequence[Sample], count: int) -> list[Sample]:
    """Some samples of a primitive: one of each kind before a second of any.

    Kinds are floats, complex numbers, other dtypes, and rejected dtypes, in this order. Within a
    kind, samples with linear arguments come first, and wide floats before narrow ones.

    Args:
        samples: all samples of one primitive.
        count: the maximum number.
    """
    narrow = set(FLOATS[2:])
    best = sorted(
        range(len(samples)),
        key=lambda place: (
            not samples[place].linear,
            any(array.dtype in narrow for array in samples[place].arrays()),
        ),
    )
    turns: dict[int, int] = {}
    ranked = []
    for rank, place in enumerate(best):
        kind = _kind(samples[place])
        turns[kind] = turn = turns.get(kind, -1) + 1
        ranked.append((turn, kind, rank, place))
    return [samples[place] for *_, place in sorted(ranked)[:count]]
