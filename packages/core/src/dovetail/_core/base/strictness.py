"""What is an error here and passes in JAX: one policy, which the alias `dovetail.as_jax` relaxes.

Everything that asks the policy is listed as an attribute of it, so that this is the whole of what
the alias changes in behaviour.
"""

from __future__ import annotations

from typing import Final

from dovetail._core.base.records import record

__all__ = ["Strictness", "relax", "strictness"]


@record
class Strictness:
    """Which mistakes are errors.

    Attributes:
        integers_fit: an integer of Python that the dtype of the array does not hold with which it
            is combined; a number of the host that does not fit 32 bits while 64-bit types are off;
            positions and counts that a dtype does not hold. Otherwise the upper bits are dropped.
        comparisons_by_value: integers of Python are compared by value with arrays whose dtype does
            not hold them. Otherwise the upper bits are dropped first.
        varying_values_are_unknown: ``int(x)`` and the like of a value that is being differentiated.
            Otherwise it is a constant there, without a derivative.
        callbacks_raise_their_own: a callback that raises makes its program raise that exception.
            Otherwise it is a `JaxRuntimeError` with its text, as it is in JAX.
        branches_are_alike: a result of a branch is weakly typed only if that of every branch is.
            Otherwise it is if that of the first branch, the one of False, is.
        primitives_have_names_of_their_own: a primitive under the name of another one.
        fractions_matter: floats as the data of `fold_in`. Otherwise their fractions are dropped.
        axes_of_weights_differ: initializers for which one dimension of weights is that of inputs
            and of outputs. Otherwise it is counted as both.
        cotangents_have_their_structure: the rule of a `custom_vjp` returns one array for an
            argument of several. Otherwise it is the cotangent of each of them.
        constants_are_known: what `array` makes of values of the host is an array while a program is
            traced, too, so that its values can be asked for. Otherwise it is traced.
        results_are_arrays: what `reshape` makes of a NumPy array is an array. Otherwise it is one
            of NumPy's, whose values are known while a program is traced, too.
        bodies_see_changes: the functions that loops, branches and `checkpoint` take are traced anew
            where a variable that they name holds something else. Otherwise they are traced once for
            arguments of the same types, and what the variables held then is what holds.
        stricter_in_tests: what options turn on in tests that pytest runs.
    """

    integers_fit: bool = True
    comparisons_by_value: bool = True
    varying_values_are_unknown: bool = True
    callbacks_raise_their_own: bool = True
    branches_are_alike: bool = True
    primitives_have_names_of_their_own: bool = True
    fractions_matter: bool = True
    axes_of_weights_differ: bool = True
    cotangents_have_their_structure: bool = True
    constants_are_known: bool = True
    results_are_arrays: bool = True
    bodies_see_changes: bool = True
    stricter_in_tests: bool = True


_AS_JAX: Final = Strictness(
    integers_fit=False,
    comparisons_by_value=False,
    varying_values_are_unknown=False,
    callbacks_raise_their_own=False,
    branches_are_alike=False,
    primitives_have_names_of_their_own=False,
    fractions_matter=False,
    axes_of_weights_differ=False,
    cotangents_have_their_structure=False,
    constants_are_known=False,
    results_are_arrays=False,
    bodies_see_changes=False,
    stricter_in_tests=False,
)
_current = Strictness()


def strictness() -> Strictness:
    """The policy of this process."""
    return _current


def relax() -> None:
    """Let pass what JAX lets pass, from here on."""
    global _current
    _current = _AS_JAX
