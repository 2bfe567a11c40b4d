"""Zeros and perturbations as seen by custom rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail._core.base import pytree
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.trace.zeros import Zero


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, in rules defined with ``symbolic_zeros``.

    Args:
        aval: its abstract value.

    Attributes:
        aval: its abstract value. The zero has `shape`, `dtype`, `ndim` and `size` as well.

    Example:
        >>> import dovetail as dt
        >>> zero = dt.custom_derivatives.SymbolicZero.from_primal_value(2.0)
        >>> zero.shape
        ()
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(val).tangent())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "aval"), name)

    def __repr__(self) -> str:
        return "SymbolicZero"


@dataclass
class CustomVJPPrimal:
    """An argument of the forward rule of a `custom_vjp` with ``symbolic_zeros``.

    Attributes:
        value: the value of the argument.
        perturbed: whether anything is differentiated with respect to it.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A tree with its `CustomVJPPrimal` leaves replaced by their values.

    Args:
        tree: a tree with only such leaves.

    Raises:
        TypeError: a leaf is something else.

    Example:
        >>> from dovetail.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
        {'a': 1.0}
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(
                "custom_vjp_primal_tree_values takes a tree of CustomVJPPrimal, got a leaf of type "
                f"{type(leaf).__name__}"
            )
        return leaf.value

    return pytree.map(value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of values.

    Args:
        val: an array, a scalar, or a tree of them.
        symbolic_zeros: whether the results are `SymbolicZero`s.

    Returns:
        A tree like `val`: for each value, zeros of its shape and its tangent's dtype, which is
        float0 for integers and booleans.

    Example:
        >>> from dovetail.custom_derivatives import zero_from_primal
        >>> float(zero_from_primal(3.0))
        0.0
    """
    return pytree.map(lambda x: for_rule(Zero.of(x), symbolic_zeros), val)


def for_rule(tangent: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent in the form that rules get."""
    if type(tangent) is Zero and symbolic_zeros:
        return SymbolicZero(tangent.aval)
    return instantiate_zeros(tangent)
