"""Named operations of a program that are composed of others: `composite`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import numpy as np

from dovetail._core.base import config, pytree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.calls.program_primitive import OperationPrimitive
from dovetail._core.trace.tracer import ArrayClass, Tracer
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import location_of, name_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

P = ParamSpec("P")
R = TypeVar("R")
#: Name, leaves and structure of each attribute: the form in which attributes are compared.
Attributes = tuple[tuple[str, tuple[Any, ...], Any], ...]
_ATTRIBUTES: Final = (bool, int, float, str, bytes, np.generic, np.ndarray, ArrayClass)


class _Attribute:
    """The value of an attribute; equal to those of its type with the same text or bytes."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        if isinstance(value, (ArrayClass, np.ndarray)):
            value = np.array(value, order="C")
            self._key: Any = (value.dtype, value.shape, value.tobytes())
        else:
            self._key = (type(value), repr(value))
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Attribute) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


class Composite(OperationPrimitive):
    """An operation that a backend may know by name; other backends compute its decomposition.

    Under differentiation and vmap it is its decomposition.
    """

    name = "composite"

    def lower(
        self,
        context: Builder,
        *values: Any,
        jaxpr: ClosedJaxpr,
        name: str,
        attributes: Attributes,
        version: int,
    ) -> Any:
        results = context.call_jaxpr(jaxpr, values, name)
        if not results:
            return []
        # Operands and function are those of a call; only the operation differs.
        call = results[0].owner
        printed = {
            key: pytree.unflatten(tree, [leaf.value for leaf in leaves])
            for key, leaves, tree in attributes
        }
        operation = context.ops(
            "composite",
            list(call.operands),
            context.avals_out,
            {
                "name": name,
                "decomposition": call.attributes["callee"],
                "version": context.i32(version),
                "composite_attributes": context.dictionary(printed),
            },
        )
        call.erase()
        return operation


composite_p: Final = Composite()


def _attributes(given: dict[str, Any], name: str) -> Attributes:
    entries = []
    for key, value in sorted(given.items()):
        leaves, tree = pytree.flatten(value)
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                raise TypeError(
                    f"lax.composite: the attribute {key} of {name} is a traced value, and "
                    "attributes are part of the program; pass it as a positional argument"
                )
            if not isinstance(leaf, _ATTRIBUTES):
                raise TypeError(
                    f"lax.composite: the attribute {key} of {name} holds a value of type "
                    f"{type(leaf).__name__}; attributes are numbers, strings, arrays, and trees of "
                    "them"
                )
        entries.append((key, tuple(map(_Attribute, leaves)), tree))
    return tuple(entries)


def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Make a function a single operation of the program, which a backend may know by name.

    A backend that does not know the name computes the decomposition. Derivatives and `vmap` are
    also those of the decomposition.

    Args:
        decomposition: a function of trees of arrays.
        name: the name of the operation, such as ``"my_library.gelu"``.
        version: the version of the meaning that the name has.

    Returns:
        A function like `decomposition`. Positional arguments are operands; keyword arguments are
        attributes: numbers, strings, host arrays, and trees of them, which are passed to
        `decomposition` unchanged and are written into the program.

    Raises:
        TypeError: when called: an attribute is something else, or the decomposition uses traced
            values from outside or has side effects.

    Reference: https://openxla.org/stablehlo/spec#composite

    Differs:
        It can be differentiated and batched, as its decomposition can.

        >>> square = lax.composite(lambda x: x * x, name="my.square")
        >>> print(dt.grad(square)(3.0))
        6.0

    Example:
        >>> from dovetail import lax
        >>> scaled = lax.composite(lambda x, *, factor: x * factor, "example.scaled")
        >>> float(scaled(2.0, factor=3.0))
        6.0
    """
    if not callable(decomposition):
        raise TypeError(f"lax.composite: decomposition must be a function, got {decomposition!r}")
    if not isinstance(name, str) or not name:
        raise TypeError(f"lax.composite: name must be a string that is not empty, got {name!r}")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 2**31:
        raise TypeError(f"lax.composite: version must be a number from 0 on, got {version!r}")
    staged_by_key: dict[Any, tuple[ClosedJaxpr, list[Any], Any]] = {}

    @wraps(decomposition)
    def apply(*args: Any, **attributes: Any) -> Any:
        leaves, tree = pytree.flatten(args)
        operands = [as_operand(x, f"composite {name}", str(i)) for i, x in enumerate(leaves)]
        avals = tuple([aval_of(x) for x in operands])
        fixed = _attributes(attributes, name)
        key = (tree, avals, fixed, config.trace_key())
        staged = staged_by_key.get(key)
        if staged is None:
            staged = staged_by_key[key] = _staged(decomposition, name, tree, avals, attributes)
        jaxpr, constants, out_tree = staged
        outs = composite_p.bind(
            *constants, *operands, attributes=fixed, jaxpr=jaxpr, name=name, version=version
        )
        return pytree.unflatten(out_tree, outs)

    return apply


def _staged(
    function: Callable[..., Any],
    name: str,
    tree: Any,
    avals: Sequence[Any],
    attributes: dict[str, Any],
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """The jaxpr of a decomposition, its constants (the leading arguments), its result tree."""
    out_tree: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        out = function(*pytree.unflatten(tree, leaves), **attributes)
        results, structure = pytree.flatten(out)
        out_tree[:] = [structure]
        return [as_operand(x, f"composite {name}", f"result {i}") for i, x in enumerate(results)]

    info = DebugInfo("composite", name_of(function), location_of(function))
    closed = stage(flat, avals, info)
    for constant in closed.consts:
        if isinstance(constant, Tracer):
            raise TypeError(
                f"lax.composite: the decomposition of {name} uses a traced value from outside, "
                f"{constant!r}; pass it as an argument"
            )
    if closed.effects:
        raise TypeError(f"lax.composite: the decomposition of {name} has side effects")
    return *hoist_consts(closed), out_tree[0]
