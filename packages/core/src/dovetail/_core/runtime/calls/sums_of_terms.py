"""Sums whose terms a function of C makes of the elements, so that no array of them is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dovetail._core.basis.elementwise import convert_element_type_p
from dovetail._core.basis.structural import broadcast_in_dim_p, reduce_sum_p
from dovetail._core.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ops.elementwise.comparison import eq_p, ne_p
from dovetail._core.ops.elementwise.powers import square_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.runtime.devices.host_functions import host_function

__all__ = ["with_sums_of_terms"]

_Sources = Mapping[Any, JaxprEqn]


def with_sums_of_terms(jaxpr: Jaxpr) -> Sequence[JaxprEqn]:
    """The equations, where sums have the parameter `terms` if a function makes terms itself."""
    sources: dict[Any, JaxprEqn] = {}
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        sources.update(dict.fromkeys(eqn.outvars, eqn))
        eqns.append(_of_terms(eqn, sources) if eqn.primitive is reduce_sum_p else eqn)
    changed = any(new is not old for new, old in zip(eqns, jaxpr.eqns, strict=True))
    return _needed(eqns, jaxpr.outvars) if changed else jaxpr.eqns


def _needed(eqns: Sequence[JaxprEqn], outvars: Sequence[Any]) -> list[JaxprEqn]:
    """Those on which variables depend, or that have effects."""
    needed, kept = set(_variables(outvars)), []
    for eqn in reversed(eqns):
        if eqn.effects or not needed.isdisjoint(eqn.outvars):
            needed.update(_variables(eqn.invars))
            kept.append(eqn)
    return kept[::-1]


def _variables(atoms: Sequence[Any]) -> list[Var]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _of_terms(eqn: JaxprEqn, sources: _Sources) -> JaxprEqn:
    """The sum of terms of an array, or the equation as it is."""
    found = _terms(eqn.invars[0], sources)
    if found is None:
        return eqn
    terms, x = found
    function = host_function(reduce_sum_p, x.aval.dtype)
    if function is None or function.numbers is None or terms not in function.terms:
        return eqn
    if x.aval.shape != eqn.invars[0].aval.shape:
        return eqn
    params = {**eqn.params, "terms": terms}
    if function.numbers(params, [x.aval], eqn.outvars[0].aval) is None:
        return eqn
    return eqn.replace(invars=[x], params=params)


def _terms(atom: Any, sources: _Sources) -> tuple[str, Any] | None:
    """What an array has for each element of another, and this."""
    source = None if isinstance(atom, Literal) else sources.get(atom)
    if source is None:
        return None
    if source.primitive is select_n_p:
        which, without, number = source.invars[0], *source.invars[1:][:2]
        same = len(source.invars) == 3 and _numbers_of(which, sources) is number
        return ("numbers", number) if same and _is_zero(without, sources) else None
    if source.primitive is square_p:
        return None if isinstance(source.invars[0], Literal) else ("squares", source.invars[0])
    if source.primitive is not convert_element_type_p:
        return None
    (truth,) = source.invars
    x = _numbers_of(truth, sources)
    if x is not None:
        return ("numbers counted", x) if x.aval.dtype == atom.aval.dtype else None
    compared = None if isinstance(truth, Literal) else sources.get(truth)
    if compared is None or compared.primitive is not ne_p or atom.aval.dtype.kind not in "iu":
        return None
    x, zero = compared.invars
    return None if isinstance(x, Literal) or not _is_zero(zero, sources) else ("nonzero counted", x)


def _numbers_of(truth: Any, sources: _Sources) -> Any:
    """The array of which truths say what is not NaN."""
    source = None if isinstance(truth, Literal) else sources.get(truth)
    if source is None or source.primitive is not eq_p:
        return None
    x, other = source.invars
    return x if x is other and not isinstance(x, Literal) else None


def _is_zero(atom: Any, sources: _Sources) -> bool:
    if isinstance(atom, Literal):
        return not np.any(np.asarray(atom.val))
    source = sources.get(atom)
    if source is None or source.primitive is not broadcast_in_dim_p:
        return False
    return _is_zero(source.invars[0], sources)
