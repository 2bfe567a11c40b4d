"""Rules of custom derivatives as functions of flat values alone, the form that JAX gives them.

Interpreters of programs get the rules in this form, wrap them and hand them on. Methods
`call_wrapped` run them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail._core.base import dtypes, pytree
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ops.custom.batching import Backward
from dovetail._core.ops.custom.symbolic import SymbolicZero, for_rule
from dovetail._core.trace.zeros import Zero

#: A function of flat values.
Flat = Callable[..., Sequence[Any]]
#: (primals, tangents) -> results and their tangents.
Rule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]
#: (primals, which of them are perturbed) -> results, residuals and the backward pass.
Forward = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any], Backward]]
#: The trees of results and residuals; for each residual, the number of the argument that it is.
OutTrees = Callable[[], tuple[Any, Any, Sequence[int | None]]]


def info_of(function: Any, traced_for: str) -> DebugInfo:
    """Names for messages about a function that an interpreter hands on."""
    info = getattr(function, "debug_info", None)
    return info or DebugInfo(traced_for, getattr(function, "__name__", traced_for))


def flat_jvp(rule: Rule, symbolic_zeros: bool) -> Flat:
    """A rule as a function from primals and tangents to results and tangents."""

    def run(*values: Any) -> list[Any]:
        count = len(values) // 2
        outs, tangents = rule(values[:count], list(map(_own_zero, values[count:])))
        return [*outs, *[for_rule(t, symbolic_zeros) for t in tangents]]

    return run


def jvp_of_flat(function: Flat, symbolic_zeros: bool) -> Rule:
    """The rule that such a function is."""

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values = function(*primals, *[for_rule(t, symbolic_zeros) for t in tangents])
        count = len(values) // 2
        outs = list(values[:count])
        pairs = zip(outs, values[count:], strict=True)
        return outs, [_tangent(out, given) for out, given in pairs]

    return run


def flat_vjp(forward: Forward, symbolic_zeros: bool) -> tuple[Flat, Flat, OutTrees]:
    """A forward pass as functions of flat values.

    Returns:
        A function from pairs, each primal and whether it is perturbed, to residuals and results;
        one from residuals and cotangents to cotangents of the arguments; and one that tells the
        trees of results and residuals after the first has run.
    """
    made: list[Any] = []

    def fwd(*pairs: Any) -> list[Any]:
        primals, perturbed = pairs[::2], pairs[1::2]
        outs, residuals, backward = forward(primals, perturbed)
        avals = [aval_of(p).tangent() for p in primals]
        made[:] = [len(outs), len(residuals), backward, perturbed, avals]
        return [*residuals, *outs]

    def bwd(*values: Any) -> list[Any]:
        _, count, backward, perturbed, avals = made
        found = iter(backward(values[:count], list(map(_own_zero, values[count:]))))
        return [
            for_rule(next(found) if p else Zero(aval), symbolic_zeros)
            for p, aval in zip(perturbed, avals, strict=True)
        ]

    def out_trees() -> tuple[Any, Any, Sequence[int | None]]:
        outs, residuals = made[:2]
        return pytree.structure([0] * outs), pytree.structure([0] * residuals), [None] * residuals

    return fwd, bwd, out_trees


def forward_of_flat(fwd: Flat, bwd: Flat, out_trees: OutTrees, symbolic_zeros: bool) -> Forward:
    """The forward pass that such functions are."""

    def run(
        primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        values = fwd(*[x for pair in zip(primals, perturbed, strict=True) for x in pair])
        out_tree, _, passed_on = out_trees()
        count = len(values) - out_tree.num_leaves
        own = iter(values[:count])
        residuals = [next(own) if i is None else primals[i] for i in passed_on]

        def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            found = bwd(*residuals, *[for_rule(ct, symbolic_zeros) for ct in cotangents])
            return [
                _tangent(primal, ct)
                for primal, ct, wanted in zip(primals, found, perturbed, strict=True)
                if wanted
            ]

        return list(values[count:]), residuals, backward

    return run


def _own_zero(tangent: Any) -> Any:
    return Zero(tangent.aval) if type(tangent) is SymbolicZero else tangent


def _tangent(primal: Any, given: Any) -> Any:
    aval = aval_of(primal).tangent()
    if type(given) in (SymbolicZero, Zero) or aval.dtype == dtypes.float0:
        return Zero(aval)
    return instantiate_zeros(given)
