"""Checks that the rules of a primitive agree with each other, on samples.

Each check takes a primitive and all of its samples, compiles one program for them together
(compilation takes most of the time), and raises `AssertionError` listing the samples that fail.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.api.backward_passes import vjp
from dovetail._core.api.derivatives import jvp, linear_transpose, linearize
from dovetail._core.api.inspection import make_jaxpr
from dovetail._core.api.jit import jit
from dovetail._core.api.vectorization import vmap
from dovetail._core.base import pytree
from dovetail._core.base.config import enable_checks, enable_x64, optimization_level
from dovetail._core.ops.contraction.dot_general import Precision
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import reference_of
from dovetail.testing.capabilities import CAPABILITIES
from dovetail.testing.keys import as_argument, as_numpy, aval_of_sample
from dovetail.testing.numerics import (
    NDArray,
    difference,
    directional_derivative,
    far,
    inner,
    is_inexact,
    random_like,
    widened,
)
from dovetail.testing.sample import COMPLEXES, FLOATS, Sample

Check = Callable[..., None]
"""Of a primitive, its samples and, where it is not everything, what the backend can do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Floats:
    """The dtype in which derivatives are computed, and how closely they then agree.

    Attributes:
        real: the dtype.
        law: the allowed difference of two ways to compute a number, relative to the terms of its
            sum.
        derivative: the minimum allowed error of derivatives compared with finite differences.
    """

    real: np.dtype[Any]
    law: float
    derivative: float

    @property
    def wide(self) -> bool:
        """Whether finite differences of computed values are close to derivatives."""
        return self.real == np.float64

    def cast(self, x: Any) -> NDArray:
        """An argument in this dtype, if it is floating point or complex."""
        wide = widened(x)
        if self.wide or not is_inexact(wide):
            return wide
        narrow: NDArray = wide.astype(np.complex64 if wide.dtype in COMPLEXES else self.real)
        return narrow

    def exact(self, sample: Sample) -> Sample:
        """The sample with full-precision products: by default, they may have fewer bits."""
        if self.wide or sample.params.get("precision", 0) is not None:
            return sample
        precision = (Precision.HIGHEST, Precision.HIGHEST)
        return sample.replace(params={**sample.params, "precision": precision})


WIDE: Final = Floats(np.dtype(np.float64), 1e-9, 0.0)
NARROW: Final = Floats(np.dtype(np.float32), 1e-3, 2e-3)

#: The checks of derivatives, which receive the floats to compute them in.
OF_DERIVATIVES: Final = (
    "derivatives_agree",
    "transformations_commute",
    "transpose_is_adjoint",
    "values_are_kept",
)

#: The checks of transformations. Their programs are compiled for speed of compilation.
LAWS: Final = ("batch_is_loop", "jit_is_eager", *OF_DERIVATIVES)


def _checked(check: Callable[..., Iterable[str]]) -> Check:
    """Run `check` with 64-bit types, if the backend has them, and raise what it yields.

    Meanwhile, the jaxpr checker verifies the output of every transformation, and MLIR's verifier
    that of every lowering rule. Laws of transformations hold whatever the compiler does, so it is
    asked for little optimization.
    """
    level = "O0" if check.__name__ in LAWS else None

    @functools.wraps(check)
    def run(
        primitive: Primitive,
        samples: Sequence[Sample],
        capabilities: Iterable[str] = frozenset(CAPABILITIES),
    ) -> None:
        floats = WIDE if "float64" in capabilities else NARROW
        with contextlib.ExitStack() as stack:
            stack.enter_context(enable_x64(floats.wide))
            stack.enter_context(enable_checks(True))
            stack.enter_context(np.errstate(all="ignore"))
            if level is not None:
                stack.enter_context(optimization_level(level))
            given = {"floats": floats} if check.__name__ in OF_DERIVATIVES else {}
            failures = list(check(primitive, samples, **given))
        if failures:
            shown = "\n  ".join(failures[:20])
            more = f"\n  and {len(failures) - 20} more" if len(failures) > 20 else ""
            raise AssertionError(f"{check.__name__} fails for {primitive.name}:\n  {shown}{more}")

    return run


def apply(primitive: Primitive, sample: Sample, args: Sequence[Any]) -> list[Any]:
    """The observed results of the primitive with the sample's parameters; always a list."""
    return sample.observed(bound(primitive, sample, args))


def bound(primitive: Primitive, sample: Sample, args: Sequence[Any]) -> list[Any]:
    """The results of the primitive with the sample's parameters; always a list."""
    try:
        out = primitive.bind(*args, **sample.params)
        return list(out) if primitive.multiple_results else [out]
    except Exception as error:
        error.add_note(f"while applying {primitive.name} to the sample {sample}")
        raise


def referred(primitive: Primitive, sample: Sample, args: Sequence[Any]) -> list[NDArray]:
    """The results of the primitive's reference; always a list."""
    out = primitive.reference(*args, **sample.params)
    return [np.asarray(o) for o in (out if primitive.multiple_results else [out])]


def expected(primitive: Primitive, sample: Sample, args: Sequence[Any]) -> list[NDArray]:
    """The observed results of the primitive's reference; always a list."""
    return _observed(sample, referred(primitive, sample, args))


def _observed(sample: Sample, results: list[NDArray]) -> list[NDArray]:
    """The quantities to compare. Computed on the device, they would share its faults."""
    if sample.observe is None:
        return results
    observed: list[NDArray] = _on_the_host(sample.observed, results)
    return observed


def _on_the_host(function: Callable[..., Any], *arguments: Any) -> Any:
    """The results of a function, by the references of its primitives."""
    closed, shapes = make_jaxpr(function, return_shape=True)(*arguments)
    consts = [np.asarray(c) for c in closed.consts]
    flat = reference_of(closed.replace(consts=consts), pytree.leaves(arguments))
    return pytree.unflatten(pytree.structure(shapes), [np.asarray(x) for x in flat])


def _together(
    functions: Sequence[Callable[..., Any]], arguments: Sequence[Sequence[Any]]
) -> list[Any]:
    """The results of several functions, compiled as one program."""
    return _program(functions)(tuple(map(tuple, arguments)))


def _in_turn(functions: Sequence[Callable[..., Any]]) -> Callable[..., list[Any]]:
    def run_all(arguments: Any) -> list[Any]:
        return [f(*args) for f, args in zip(functions, arguments, strict=True)]

    return run_all


def _program(functions: Sequence[Callable[..., Any]]) -> Callable[..., list[Any]]:
    run_all = jit(_in_turn(functions))

    def run(arguments: Any) -> list[Any]:
        results: list[Any] = run_all(pytree.map(as_argument, arguments))
        return results

    return run


def _valid(samples: Sequence[Sample]) -> list[Sample]:
    return [s for s in samples if s.raises is None]


@_checked
def abstract_agrees(primitive: Primitive, samples: Sequence[Sample]) -> Iterable[str]:
    """Abstract evaluation matches the reference in shapes and dtypes, and rejects what it must."""
    for sample in samples:
        avals = [aval_of_sample(a) for a in sample.arrays()]
        if sample.raises is not None:
            try:
                out = primitive.abstract(*avals, **sample.params)
            except sample.raises as error:
                if primitive.name not in str(error):
                    yield f"{sample}: the message does not name the primitive: {error}"
            else:
                yield f"{sample}: gave {out} instead of raising {sample.raises.__name__}"
            continue
        out = primitive.abstract(*avals, **sample.params)
        outs = list(out) if primitive.multiple_results else [out]
        wants = referred(primitive, sample, sample.arrays())
        if len(outs) != len(wants):
            yield f"{sample}: {len(outs)} results, the reference has {len(wants)}"
            continue
        for aval, want in zip(outs, wants, strict=True):
            if aval.strengthen() != aval_of_sample(want):
                yield f"{sample}: aval {aval}, the reference is {want.dtype}{list(want.shape)}"
            if aval.weak_type:
                yield f"{sample}: a weakly typed result of strongly typed arguments"


@_checked
def lowering_agrees(primitive: Primitive, samples: Sequence[Sample]) -> Iterable[str]:
    """The compiled result equals the reference within the sample's tolerance."""
    samples = _valid(samples)
    results = _together(
        [lambda *args, s=s: bound(primitive, s, args) for s in samples],
        [s.arrays() for s in samples],
    )
    for sample, result in zip(samples, results, strict=True):
        wants = expected(primitive, sample, sample.arrays())
        yield from _differences(sample, _observed(sample, list(map(as_numpy, result))), wants)


def _differences(
    sample: Sample, got: Sequence[Any], want: Sequence[Any], prefix: str = ""
) -> Iterable[str]:
    for g, w in zip(got, want, strict=True):
        wrong = difference(as_numpy(g), w, sample.tolerance, sample.absolute, sample.signed_zeros)
        if wrong:
            yield f"{sample}: {prefix}{wrong}"


@_checked
def jit_is_eager(primitive: Primitive, samples: Sequence[Sample]) -> Iterable[str]:
    """Eager evaluation matches the compiled program, up to rounding."""
    samples = _valid(samples)
    # This compiles one program for each sample, so a few have to do: the first, middle and last.
    samples = [samples[i] for i in sorted({0, len(samples) // 2, len(samples) - 1})]
    results = _together(
        [lambda *args, s=s: apply(primitive, s, args) for s in samples],
        [s.arrays() for s in samples],
    )
    for sample, result in zip(samples, results, strict=True):
        eager = apply(primitive, sample, tuple(map(as_argument, sample.arrays())))
        yield from _differences(sample, eager, [as_numpy(r) for r in result], "eager: ")


def smooth_samples(
    samples: Sequence[Sample], floats: Floats = WIDE
) -> list[tuple[Sample, tuple[NDArray, ...]]]:
    """Samples to differentiate, each once, with arguments in these floats."""
    found: dict[Any, tuple[Sample, tuple[NDArray, ...]]] = {}
    narrow = FLOATS[2:]
    for sample in _valid(samples):
        positions = sample.differentiable_positions()
        arrays = sample.arrays()
        if not positions or any(a.dtype in narrow for a in arrays) or not arrays:
            continue
        wide = tuple(map(floats.cast, arrays))
        key = (
            tuple((a.dtype, a.shape, a.tobytes()) for a in wide),
            positions,
            str(sorted(sample.params.items(), key=lambda item: item[0])),
        )
        found.setdefault(key, (floats.exact(sample), wide))
    return list(found.values())


def _differentiated(primitive: Primitive, sample: Sample, args: Sequence[Any]) -> Any:
    """The sample as a function from the arguments to differentiate to its inexact results."""
    positions = sample.differentiable_positions()

    def function(*moving: Any) -> list[Any]:
        full = list(args)
        for position, value in zip(positions, moving, strict=True):
            full[position] = value
        return [o for o in apply(primitive, sample, full) if is_inexact(o)]

    return function


@_checked
def derivatives_agree(
    primitive: Primitive, samples: Sequence[Sample], floats: Floats
) -> Iterable[str]:
    """Derivatives equal finite differences; reverse mode is the adjoint of forward mode.

    First derivatives are compared with differences of the reference. Second derivatives, and the
    derivative of the vector-Jacobian product, are compared with differences of compiled first
    derivatives, or, in floats that are too narrow for that, of first derivatives by the references.
    """
    chosen = smooth_samples(samples, floats)
    if not chosen:
        return
    generator = np.random.default_rng(0)
    functions, arguments, seeds = [], [], []
    for sample, wide in chosen:
        positions = sample.differentiable_positions()
        ts, us = ([random_like(wide[p], generator) for p in positions] for _ in range(2))
        outs = [o for o in expected(primitive, sample, wide) if is_inexact(o)]
        cts = [random_like(o, generator) for o in outs]
        functions.append(_derivatives(primitive, sample))
        arguments.append((wide, ts, us, cts))
        seeds.append((positions, ts, us, cts))
    program = _program(functions)

    def first_order(*moved: Any) -> list[Any]:
        """All first derivatives, flat, with the samples' arguments replaced."""
        changed = []
        flat = iter(moved)
        for wide, ts, us, cts in arguments:
            changed.append((tuple(next(flat) for _ in wide), tuple(ts), tuple(us), tuple(cts)))
        if floats.wide:
            found = program(tuple(changed))
        else:
            found = _on_the_host(_in_turn(functions), pytree.map(widened, tuple(changed)))
        return [leaf for r in found for leaf in (*r[0], *r[1])]

    results = program(tuple((w, tuple(t), tuple(u), tuple(c)) for w, t, u, c in arguments))
    flat_args: list[Any] = []
    flat_direction: list[Any] = []
    for (_, wide), (positions, _, us, _) in zip(chosen, seeds, strict=True):
        flat_args.extend(map(widened, wide))
        along = dict(zip(positions, map(widened, us), strict=True))
        flat_direction.extend(along.get(i) for i in range(len(wide)))
    with enable_x64(True):
        numeric = iter(directional_derivative(first_order, flat_args, flat_direction))

    for (sample, wide), (positions, ts, _, cts), result in zip(chosen, seeds, results, strict=True):
        tangents, cotangents, second, second_reverse = result

        def reference(*args: Any, sample: Sample = sample) -> list[Any]:
            return [o for o in expected(primitive, sample, args) if is_inexact(o)]

        direction: list[NDArray | None] = [None] * len(wide)
        for position, t in zip(positions, ts, strict=True):
            direction[position] = widened(t)
        with enable_x64(True):
            wants = directional_derivative(reference, list(map(widened, wide)), direction)
        tolerance = max(sample.derivative_tolerance, floats.derivative)
        for got, want in zip(tangents, wants, strict=True):
            if wrong := far(got, want, tolerance):
                yield f"{sample}: jvp: {wrong}"
        for position, cotangent in zip(positions, cotangents, strict=True):
            if cotangent.shape != wide[position].shape or cotangent.dtype != wide[position].dtype:
                yield (
                    f"{sample}: vjp: the cotangent of argument {position} is "
                    f"{cotangent.dtype}{list(cotangent.shape)}"
                )
        if wrong := _apart((cts, tangents), (cotangents, ts), floats.law):
            yield f"{sample}: vjp is not the adjoint of jvp: {wrong}"
        for name, group, first in (
            ("jvp of jvp", second, tangents),
            ("jvp of vjp", second_reverse, cotangents),
        ):
            # The numeric derivatives must be consumed from the iterator even if none is compared.
            wants = [next(numeric) for _ in first]
            for got, want in zip(group, wants, strict=False):
                if wrong := far(got, want, tolerance):
                    yield f"{sample}: {name}: {wrong}"


def _apart(left: tuple[Any, Any], right: tuple[Any, Any], tolerance: float) -> str:
    """The difference of two sums of products, in words; an empty string if they agree."""
    got, want = inner(*right), inner(*left)
    terms = sum(float(np.abs(widened(x) * widened(y)).sum()) for x, y in zip(*left, strict=True))
    # Small errors in empty sums, and in sums of small numbers, are not wrong.
    close = got == want or abs(got - want) <= tolerance * (1 + terms)
    return "" if close else f"{got} instead of {want}"


def _derivatives(primitive: Primitive, sample: Sample) -> Callable[..., Any]:
    """Tangents, cotangents, and the derivatives of both along a second direction."""
    positions = sample.differentiable_positions()

    def compute(args: Any, ts: Any, us: Any, cts: Any) -> Any:
        function = _differentiated(primitive, sample, args)
        at = tuple(args[p] for p in positions)

        def forward(*moving: Any) -> list[Any]:
            out: list[Any] = jvp(function, moving, tuple(ts))[1]
            return out

        def reverse(*moving: Any) -> list[Any]:
            pull_back: Any = vjp(function, *moving)[1]
            return list(pull_back(list(cts)))

        if sample.order < 2:
            return forward(*at), reverse(*at), [], []
        tangents, second = jvp(forward, at, tuple(us))
        cotangents, second_reverse = jvp(reverse, at, tuple(us))
        return tangents, cotangents, second, second_reverse

    return compute


@_checked
def values_are_kept(
    primitive: Primitive, samples: Sequence[Sample], floats: Floats
) -> Iterable[str]:
    """The values that jvp, vjp and linearize return are those of the primitive, bit for bit.

    A derivative needs another computation of some values, such as the vectors of a decomposition:
    a sample says so by `derivative_value`.
    """
    chosen = smooth_samples(samples, floats)
    if not chosen:
        return
    results = _together(
        [_values(primitive, sample) for sample, _ in chosen], [(wide,) for _, wide in chosen]
    )
    for (sample, _), (wants, *others) in zip(chosen, results, strict=True):
        for name, gots in zip(("jvp", "vjp", "linearize"), others, strict=True):
            for got, want in zip(map(as_numpy, gots), map(as_numpy, wants), strict=True):
                if sample.derivative_value:
                    if wrong := far(got, want, sample.derivative_value):
                        yield f"{sample}: the value of {name}: {wrong}"
                elif got.dtype != want.dtype or got.tobytes() != want.tobytes():
                    yield f"{sample}: the value of {name} is {got}, and not {want}"


def _values(primitive: Primitive, sample: Sample) -> Callable[..., Any]:
    """The values of a sample, alone and as each transformation computes them."""
    positions = sample.differentiable_positions()

    def compute(args: Any) -> Any:
        function = _differentiated(primitive, sample, args)
        at = tuple(args[p] for p in positions)
        forward: Any = jvp(function, at, at)
        reverse: Any = vjp(function, *at)
        linear: Any = linearize(function, *at)
        return function(*at), forward[0], reverse[0], linear[0]

    return compute


@_checked
def transpose_is_adjoint(
    primitive: Primitive, samples: Sequence[Sample], floats: Floats
) -> Iterable[str]:
    """<ct, f(t) - f(0)> equals <transposed f(ct), t> in the linear arguments of a sample."""
    chosen = [floats.exact(s) for s in _valid(samples) if s.linear]
    if not chosen:
        return
    generator = np.random.default_rng(1)
    functions: list[Any] = []
    arguments: list[Any] = []
    for sample in chosen:
        wide = tuple(map(floats.cast, sample.arrays()))
        outs = expected(primitive, sample, wide)
        cts = tuple(random_like(o, generator) for o in outs)
        ts = tuple(random_like(wide[p], generator) for p in sample.linear)
        functions.append(_transposed(primitive, sample))
        arguments.append((wide, ts, cts))
    results = _together(functions, arguments)
    for sample, (wide, ts, cts), (outs, zeros, cotangents) in zip(
        chosen, arguments, results, strict=True
    ):
        for position, cotangent in zip(sample.linear, cotangents, strict=True):
            if cotangent.shape != wide[position].shape or cotangent.dtype != wide[position].dtype:
                yield (
                    f"{sample}: the cotangent of argument {position} is "
                    f"{cotangent.dtype}{list(cotangent.shape)}"
                )
        changes = [widened(o) - widened(z) for o, z in zip(outs, zeros, strict=True)]
        if wrong := _apart((cts, changes), (cotangents, ts), floats.law / 10):
            yield f"{sample}: in arguments {sample.linear}: {wrong}"


def _transposed(primitive: Primitive, sample: Sample) -> Callable[..., Any]:
    def compute(args: Any, ts: Any, cts: Any) -> Any:
        def function(*linear: Any) -> list[Any]:
            full = list(args)
            for position, value in zip(sample.linear, linear, strict=True):
                full[position] = value
            return apply(primitive, sample, full)

        transposed: Any = linear_transpose(function, *ts)
        zeros = function(*(np.zeros(t.shape, t.dtype) for t in ts))
        return function(*ts), zeros, list(transposed(list(cts)))

    return compute


def batch_cases(sample: Sample) -> list[tuple[int | None, ...]]:
    """Dimensions of each set of batched arguments: all the first, all the last, and mixed."""
    ranks = [a.ndim for a in sample.arrays()]
    cases: dict[tuple[int | None, ...], None] = {}
    positions = sample.batched_positions()
    for count in range(1, len(positions) + 1):
        for chosen in itertools.combinations(positions, count):
            first = dict.fromkeys(chosen, 0)
            last = dict.fromkeys(chosen, -1)
            mixed = {p: (i + 1) % (ranks[p] + 1) for i, p in enumerate(chosen)}
            for dims in (first, last, mixed):
                cases[tuple(dims.get(i) for i in range(len(ranks)))] = None
    return list(cases)


@_checked
def batch_is_loop(primitive: Primitive, samples: Sequence[Sample], size: int = 3) -> Iterable[str]:
    """`vmap` equals stacking the results, for any choice of batched arguments and dimensions."""
    seen: set[Any] = set()
    functions: list[Any] = []
    arguments: list[Any] = []
    wanted: list[tuple[Sample, Any, list[NDArray]]] = []
    for sample in _valid(samples):
        arrays = sample.arrays()
        # For batching, sizes only matter in being zero, one or more.
        sizes = tuple(tuple(min(n, 2) for n in a.shape) for a in arrays)
        key = (sizes, str(sorted(sample.params.items(), key=str)))
        if key in seen or not sample.batched_positions():
            continue
        seen.add(key)
        for dims in batch_cases(sample):
            # A batched argument has `size` versions; any other has one.
            versions = [
                [sample.vary(a, i) for i in range(size)] if d is not None else [a] * size
                for a, d in zip(arrays, dims, strict=True)
            ]
            stacked = [
                a if d is None else np.stack(v, axis=d)
                for a, d, v in zip(arrays, dims, versions, strict=True)
            ]
            outs = [expected(primitive, sample, row) for row in zip(*versions, strict=True)]
            functions.append(_mapped(primitive, sample, dims))
            arguments.append(stacked)
            wanted.append((sample, dims, [np.stack(column) for column in zip(*outs, strict=True)]))
    if not functions:
        return
    for (sample, dims, wants), result in zip(wanted, _together(functions, arguments), strict=True):
        yield from _differences(sample, result, wants, f"in_axes={dims}: ")


def _mapped(primitive: Primitive, sample: Sample, dims: tuple[int | None, ...]) -> Any:
    return vmap(lambda *args: apply(primitive, sample, args), in_axes=dims)


@_checked
def transformations_commute(
    primitive: Primitive, samples: Sequence[Sample], floats: Floats
) -> Iterable[str]:
    """jvp of vmap equals vmap of jvp, and vjp under vmap is the adjoint of both."""
    chosen = [
        (s, w)
        for s, w in smooth_samples(samples, floats)
        if s.differentiable_positions() and s.batched != ()
    ][:2]
    if not chosen:
        return
    generator = np.random.default_rng(2)
    functions: list[Any] = []
    arguments: list[Any] = []
    for sample, wide in chosen:
        positions = sample.differentiable_positions()
        batched = set(sample.batched_positions())
        dims = tuple(0 if i in batched else None for i in range(len(wide)))
        if any(dims[p] is None for p in positions):
            continue
        stacked = tuple(
            a if d is None else np.stack([sample.vary(a, i) for i in range(2)])
            for a, d in zip(wide, dims, strict=True)
        )
        ts = tuple(random_like(stacked[p], generator) for p in positions)
        functions.append(_both_orders(primitive, sample, dims))
        arguments.append((stacked, ts))
    for (sample, _), (_, ts), (inside, outside, cotangents, cts) in zip(
        chosen, arguments, _together(functions, arguments), strict=False
    ):
        for a, b in zip(inside, outside, strict=True):
            if wrong := far(a, np.asarray(b), floats.law / 10):
                yield f"{sample}: vmap of jvp is not jvp of vmap: {wrong}"
        if wrong := _apart((cts, inside), (cotangents, ts), floats.law):
            yield f"{sample}: vmap of vjp is not the adjoint: {wrong}"


def _both_orders(primitive: Primitive, sample: Sample, dims: tuple[int | None, ...]) -> Any:
    positions = sample.differentiable_positions()

    def one(args: Any, ts: Any) -> Any:
        function = _differentiated(primitive, sample, args)
        at = tuple(args[p] for p in positions)
        out, tangents = jvp(function, at, tuple(ts))
        pull_back: Any = vjp(function, *at)[1]
        return tangents, list(pull_back(out)), out

    def compute(args: Any, ts: Any) -> Any:
        inside, cotangents, outs = vmap(one, in_axes=(dims, 0))(args, ts)

        def all_at_once(*moving: Any) -> Any:
            full = list(args)
            for position, value in zip(positions, moving, strict=True):
                full[position] = value
            return [o for o in _mapped(primitive, sample, dims)(*full) if is_inexact(o)]

        outside = jvp(all_at_once, tuple(args[p] for p in positions), tuple(ts))[1]
        return inside, outside, cotangents, outs

    return compute


#: All checks, by name.
CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        abstract_agrees,
        lowering_agrees,
        jit_is_eager,
        derivatives_agree,
        values_are_kept,
        transpose_is_adjoint,
        batch_is_loop,
        transformations_commute,
    )
}
