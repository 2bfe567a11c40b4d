"""Transposition: run a linear program backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail._core.base.errors import NonArrayArgumentError
from dovetail._core.base.flags import partition
from dovetail._core.base.source import Transformation, describe
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.resharding import divided_like
from dovetail._core.basis.structural import instantiate_zeros, is_linear, not_linear
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.trace.divisions import lenient
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import Replay, replaying
from dovetail._core.trace.zeros import Unwanted, Zero
from dovetail._core.transform.partial_evaluation import apply_part

_TRANSPOSED: Final = (Transformation("transpose"),)


def transpose_jaxpr(
    jaxpr: Jaxpr,
    constants: Sequence[Any],
    cotangents: Sequence[Any],
    linear: Sequence[bool],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Cotangents of the linear arguments of a jaxpr.

    Args:
        jaxpr: linear in some of its parameters.
        constants: values of its constvars, followed by those of its non-linear parameters.
        cotangents: one for each result, a `Zero` if there is none.
        linear: for each parameter, whether the jaxpr is linear in it.
        wanted: for each parameter, whether its cotangent is wanted; all are by default.

    Returns:
        One cotangent for each linear parameter, a `Zero` if the parameter has no influence or its
        cotangent is not wanted.
    """
    with replaying() as replay:
        if _is_divided(jaxpr, cotangents):
            with lenient():
                return _transpose_jaxpr(jaxpr, constants, cotangents, linear, wanted, replay, True)
        return _transpose_jaxpr(jaxpr, constants, cotangents, linear, wanted, replay, False)


def _is_divided(jaxpr: Jaxpr, cotangents: Sequence[Any]) -> bool:
    """Whether values are divided over the explicit axes of a mesh."""
    for variables in (jaxpr.constvars, jaxpr.invars, *[eqn.outvars for eqn in jaxpr.eqns]):
        for v in variables:
            if v.aval.division is not None:
                return True
    return any(type(ct) is not Zero and aval_of(ct).division is not None for ct in cotangents)


def _transpose_jaxpr(
    jaxpr: Jaxpr,
    constants: Sequence[Any],
    cotangents: Sequence[Any],
    linear: Sequence[bool],
    wanted: Sequence[bool] | None,
    replay: Replay,
    divided: bool,
) -> list[Any]:
    parameters, others = partition(linear, jaxpr.invars)
    linear_vars: set[Var] = set(parameters)
    values: dict[Var, Any] = dict(zip([*jaxpr.constvars, *others], constants, strict=True))
    # Variables that depend on a parameter whose cotangent is wanted: the backward pass visits only
    # these.
    wanted_vars = linear_vars
    if wanted is not None:
        wanted_vars = linear_vars.intersection(partition(wanted, jaxpr.invars)[0])

    backward: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if linear_vars.isdisjoint(eqn.invars):
            args = [v if type(v) is Literal else values[v] for v in eqn.invars]  # type: ignore[index]
            replay.at(eqn)
            out = eqn.primitive.bind(*args, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            values.update(zip(eqn.outvars, outs, strict=True))
            continue
        linear_outvars = eqn.outvars
        if eqn.primitive.has_dependencies and not eqn.effects:
            linear_outvars = _linear_results(eqn, linear_vars, values, replay)
        linear_vars.update(linear_outvars)
        if wanted is not None:
            if wanted_vars.isdisjoint(eqn.invars):
                continue
            wanted_vars.update(linear_outvars)
        backward.append(eqn)

    accumulated: dict[Var, Any] = {}
    zeros: set[Var] = set()  # variables for which a rule has said so

    def accumulate(var: Any, cotangent: Any) -> None:
        if type(cotangent) is Zero:
            return
        if divided:
            cotangent = divided_like(cotangent, var.aval)
        previous = accumulated.get(var)
        accumulated[var] = cotangent if previous is None else add_tangents(previous, cotangent)

    for outvar, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if type(outvar) is not Literal and outvar in wanted_vars:
            accumulate(outvar, cotangent)

    for eqn in reversed(backward):
        primitive = eqn.primitive
        out_cotangents = [accumulated.pop(v, None) for v in eqn.outvars]
        if not [ct for ct in out_cotangents if ct is not None]:
            if zeros.isdisjoint(eqn.outvars):
                continue
            if not primitive.transposes_zeros:
                zeros.update(v for v in eqn.invars if type(v) is not Literal and v in wanted_vars)
                continue
        args = [
            v if type(v) is Literal else v.aval if v in linear_vars else values[v]  # type: ignore[index]
            for v in eqn.invars
        ]
        if wanted is not None and primitive.transposes_partly:
            args = [
                Unwanted(a) if type(a) is ShapedArray and v not in wanted_vars else a
                for v, a in zip(eqn.invars, args, strict=True)
            ]
        if primitive.multiple_results:
            filled = [
                Zero(v.aval.cotangent()) if ct is None else ct
                for v, ct in zip(eqn.outvars, out_cotangents, strict=True)
            ]
            out_cotangent: Any = (
                filled if primitive.accepts_zeros else [instantiate_zeros(z) for z in filled]
            )
        else:
            out_cotangent = out_cotangents[0]
        # An error in the backward pass belongs to the line of the forward pass.
        replay.at(eqn, _TRANSPOSED)
        try:
            results = _transposed(primitive, out_cotangent, args, eqn.params)
        except Exception as error:
            where = describe(eqn.traceback)
            note = f"While transposing the operation {primitive.name} at {where}, for a gradient"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise
        for var, result in zip(eqn.invars, results, strict=True):
            if result is not None and type(var) is not Literal and var in wanted_vars:
                accumulate(var, result)
                if primitive.transposes_zeros and type(result) is Zero:
                    zeros.add(var)

    return [accumulated[v] if v in accumulated else Zero(v.aval.cotangent()) for v in parameters]


def _transposed(
    primitive: Primitive, cotangent: Any, args: Sequence[Any], params: Mapping[str, Any]
) -> Sequence[Any]:
    """Apply the rule `transpose` of a primitive.

    Raises:
        TypeError: the primitive is not linear in an operand that depends on a tangent.
    """
    if primitive.multiple_results:
        return primitive.transpose(cotangent, *args, **params)
    try:
        results = primitive.transpose(cotangent, *args, **params)
    except NonArrayArgumentError:  # the rule computed with an operand that has no value
        raise _refusal(primitive) from None
    for a, ct in zip(args, results, strict=True):
        if ct is None and is_linear(a):
            raise _refusal(primitive)
    return results


def _refusal(primitive: Primitive) -> TypeError:
    return not_linear(f"the operation {primitive.name} of operands that depend on a tangent")


def _linear_results(
    eqn: JaxprEqn, linear_vars: set[Var], values: dict[Var, Any], replay: Replay
) -> Sequence[Var]:
    """The results of an equation that depend on linear variables; computes the others."""
    flags = [type(v) is not Literal and v in linear_vars for v in eqn.invars]
    depends = eqn.primitive.dependencies(flags, **eqn.params)
    if all(depends):
        return eqn.outvars
    args = [
        v if type(v) is Literal else v.aval if flag else values[v]  # type: ignore[index]
        for v, flag in zip(eqn.invars, flags, strict=True)
    ]
    replay.at(eqn)
    outs = apply_part(eqn.primitive, args, eqn.params, [not d for d in depends])
    linear_outvars, others = partition(depends, eqn.outvars)
    values.update(zip(others, outs, strict=True))
    return linear_outvars
