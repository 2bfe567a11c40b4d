"""The `jit` primitive: a call of a staged function, compiled as a unit of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from dovetail.core.base.caches import register
from dovetail.core.basis.structural import is_linear
from dovetail.core.ir.avals import aval_of
from dovetail.core.ir.jaxpr import ClosedJaxpr, DebugInfo, Effects, Literal
from dovetail.core.ir.walk import eval_jaxpr
from dovetail.core.trace.primitive import Primitive
from dovetail.core.trace.zeros import Zero
from dovetail.core.transform.batch import batch_flat, place_batch
from dovetail.core.transform.jvp import jvp_flat
from dovetail.core.transform.linearize import linearize_flat
from dovetail.core.transform.stage import StageTracer, replace_constants, stage
from dovetail.core.transform.transposition import transpose_jaxpr

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Remember results of a function of a closed jaxpr for as long as the jaxpr lives."""
    cache: WeakKeyDictionary[ClosedJaxpr, dict[Any, Any]] = WeakKeyDictionary()
    register(cache.clear)

    @wraps(function)
    def remember(closed: ClosedJaxpr, *key: Any) -> Any:
        results = cache.get(closed)
        if results is None:
            results = cache[closed] = {}
        if key not in results:
            results[key] = function(closed, *key)
        return results[key]

    return remember


def _function(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _debug_info(closed: ClosedJaxpr, traced_for: str) -> DebugInfo:
    info = closed.jaxpr.debug_info
    if info is None:
        return DebugInfo(traced_for, "a function")
    return DebugInfo(traced_for, info.function, info.location)


def close(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """A jaxpr without constants, and the constants that are now its leading arguments."""
    jaxpr, constants = replace_constants(closed)
    return (closed, []) if not constants else (ClosedJaxpr(jaxpr, []), constants)


@remembered
def jvp_of(closed: ClosedJaxpr, varies: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of primals and varying tangents to results and varying result tangents."""
    varies_out: list[bool] = []

    def function(*args: Any) -> list[Any]:
        count = len(varies)
        primals, given = args[:count], iter(args[count:])
        tangents = [next(given) if v else Zero.of(p) for p, v in zip(primals, varies, strict=True)]
        outs, out_tangents = jvp_flat(_function(closed), primals, tangents)
        varies_out[:] = [type(t) is not Zero for t in out_tangents]
        return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

    avals = closed.in_avals
    tangent_avals = [a.tangent() for a, v in zip(avals, varies, strict=True) if v]
    jaxpr = stage(function, [*avals, *tangent_avals], _debug_info(closed, "jvp"))
    return jaxpr, varies_out


@remembered
def linearization_of(
    closed: ClosedJaxpr, varies: tuple[bool, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[int | None], list[bool]]:
    """A jaxpr split in two.

    Returns:
        The jaxpr of primals to results and residuals; the jaxpr of residuals and varying tangents
        to varying result tangents; for each residual the number of the argument that it is, or None
        if it is computed; and for each result whether it varies.
    """
    programs: list[Any] = []
    forwarded: list[int | None] = []

    def function(*args: Any) -> list[Any]:
        outs, program = linearize_flat(
            _function(closed), args, varies, _debug_info(closed, "linearize")
        )
        programs.append((replace_constants(program.closed)[0], program.varies_out))
        number = {a.var: i for i, a in enumerate(args) if type(a) is StageTracer}
        residuals = program.closed.consts
        forwarded[:] = [number.get(r.var) if type(r) is StageTracer else None for r in residuals]
        return [*outs, *(r for r, f in zip(residuals, forwarded, strict=True) if f is None)]

    primal = stage(function, closed.in_avals, _debug_info(closed, "linearize"))
    ((linear, varies_out),) = programs
    return primal, ClosedJaxpr(linear, []), forwarded, list(varies_out)


@remembered
def transposition_of(
    closed: ClosedJaxpr, linear: tuple[bool, ...], given: tuple[bool, ...]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of non-linear arguments and given cotangents to the cotangents of linear
    arguments."""
    varies_out: list[bool] = []
    constant_count = linear.count(False)

    def function(*args: Any) -> list[Any]:
        values, cts = args[:constant_count], iter(args[constant_count:])
        cotangents = [
            next(cts) if g else Zero(a) for a, g in zip(closed.out_avals, given, strict=True)
        ]
        results = transpose_jaxpr(closed.jaxpr, [*closed.consts, *values], cotangents, linear)
        varies_out[:] = [type(r) is not Zero for r in results]
        return [r for r in results if type(r) is not Zero]

    values = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    cts = [a for a, g in zip(closed.out_avals, given, strict=True) if g]
    return stage(function, [*values, *cts], _debug_info(closed, "transpose")), varies_out


@remembered
def batch_of(
    closed: ClosedJaxpr, size: int, dims: tuple[int | None, ...]
) -> tuple[ClosedJaxpr, list[int | None]]:
    """The jaxpr of batched arguments to results, and the batch dimension of each result (0 or
    None)."""
    out_dims: list[int | None] = []

    def function(*args: Any) -> list[Any]:
        outs, found = batch_flat(_function(closed), args, dims, size)
        out_dims[:] = [None if d is None else 0 for d in found]
        return [
            o if d is None else place_batch(o, d, size, 0) for o, d in zip(outs, found, strict=True)
        ]

    avals = [
        a if d is None else a.update(shape=(*a.shape[:d], size, *a.shape[d:]))
        for a, d in zip(closed.in_avals, dims, strict=True)
    ]
    return stage(function, avals, _debug_info(closed, "vmap")), out_dims


class Jit(Primitive):
    """A call of `jaxpr`, which has no constants: what it captured are its leading arguments."""

    name = "jit"
    multiple_results = True
    accepts_zeros = True
    has_effects = True

    def abstract(self, *avals: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        expected = jaxpr.in_avals
        if len(avals) != len(expected) or any(
            a.shape != e.shape or a.dtype != e.dtype for a, e in zip(avals, expected, strict=True)
        ):
            raise TypeError(f"jit of {name} takes {expected}, got {list(avals)}")
        return jaxpr.out_avals

    def reference(self, *args: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        values: dict[Any, Any] = dict(zip(jaxpr.jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom.val if type(atom) is Literal else values[atom]

        for eqn in jaxpr.jaxpr.eqns:
            out = eqn.primitive.reference(*map(read, eqn.invars), **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            values.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.jaxpr.outvars]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Any]:
        varies = tuple(type(t) is not Zero for t in tangents)
        derived, varies_out = jvp_of(jaxpr, varies)
        results = call(derived, [*primals, *(t for t in tangents if type(t) is not Zero)], name)
        count = len(varies_out)
        outs, given = results[:count], iter(results[count:])
        return outs, [
            next(given) if v else Zero.of(o) for o, v in zip(outs, varies_out, strict=True)
        ]

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Callable[..., Any]]:
        primal, linear, forwarded, varies_out = linearization_of(jaxpr, tuple(nonzero))
        results = call(primal, primals, name)
        count = len(varies_out)
        outs, computed = results[:count], iter(results[count:])
        residuals = [next(computed) if f is None else primals[f] for f in forwarded]

        def tangent(*tangents: Any) -> list[Any]:
            given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
            varying = iter(self.bind(*residuals, *given, jaxpr=linear, name=name))
            return [
                next(varying) if v else Zero.of(o) for o, v in zip(outs, varies_out, strict=True)
            ]

        return outs, tangent

    def transpose(self, cotangent: Any, *args: Any, jaxpr: ClosedJaxpr, name: str) -> Sequence[Any]:
        linear = tuple(is_linear(a) for a in args)
        given = tuple(type(ct) is not Zero for ct in cotangent)
        derived, varies = transposition_of(jaxpr, linear, given)
        operands = [a for a, lin in zip(args, linear, strict=True) if not lin]
        cts = [ct for ct, g in zip(cotangent, given, strict=True) if g]
        results = iter(call(derived, [*operands, *cts], name))
        found = iter(next(results) if v else None for v in varies)
        return [next(found) if lin else None for lin in linear]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Any]:
        size = next(aval_of(a).shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
        derived, out_dims = batch_of(jaxpr, size, tuple(dims))
        return call(derived, args, name), out_dims

    def lower(self, context: Builder, *values: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        return context.call_jaxpr(jaxpr, values, name)

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params["jaxpr"].jaxpr.effects
        return effects


jit_p: Final = Jit()


def call(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Call a staged function as a unit of its own; its constants become leading arguments."""
    opened, constants = _opened(closed)
    results: list[Any] = jit_p.bind(*constants, *args, jaxpr=opened, name=name)
    return results


@remembered
def _opened(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    return close(closed)
