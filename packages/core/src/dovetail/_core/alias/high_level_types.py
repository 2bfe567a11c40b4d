"""Types and primitives on the level of Python, as `jax.experimental.hijax` has them.

Dovetail has no such types in its programs. Classes of them can be defined, and their values used
outside of transformations, where a primitive is its Python method `expand`; within one they are
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from dovetail._core.api.inspection import typeof as typeof_array
from dovetail._core.base.pytree import leaves
from dovetail._core.ir.avals import AbstractValue, forbid_as_array
from dovetail._core.trace.tracer import Tracer

_WHY: Final = (
    "dovetail has no types of JAX's hijax in its programs: pass pytrees of arrays to transformed "
    "functions, or mutable references (dovetail.new_ref)"
)
_types: Final[dict[type, Callable[[Any], HiType]]] = {}


class HiType(AbstractValue):
    """The type of a value that is not an array."""

    is_high: ClassVar[bool] = True

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError(f"{type(self).__name__} does not define __eq__")

    def __hash__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __hash__")


class MappingSpec:
    """How `vmap` maps over a value that is not an array."""


class HiPspec:
    """How a value that is not an array is divided over a mesh."""


class aval_method(NamedTuple):  # JAX writes it so
    """Marks a function in a type's class as a method of its tracers."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):  # JAX writes it so
    """Marks a function in a type's class as a property of its tracers."""

    fget: Callable[..., Any]


class HiPrim:
    """An operation on values that are not arrays, written in Python.

    A subclass sets `in_avals`, `out_aval` and `params` in its `__init__`, and defines `expand`.

    Raises:
        NotImplementedError: a subclass has no `expand`.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        if type(self).expand is HiPrim.expand:
            raise NotImplementedError(f"subclass {type(self)} must implement `expand`")
        vars(self).update(self.params)

    def expand(self, *args: Any) -> Any:
        """Compute the results of the operands."""
        raise NotImplementedError

    def __call__(self, *args: Any) -> Any:
        """Apply the operation.

        Raises:
            TypeError: something is being traced.
        """
        if any(isinstance(leaf, Tracer) for leaf in leaves(args)):
            raise TypeError(f"{type(self).__name__} was called within a transformation, and {_WHY}")
        return self.expand(*args)


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
    """Say what type the values of a class have.

    Args:
        val_cls: the class.
        typeof_fn: maps a value to its type.
    """
    _types[val_cls] = typeof_fn
    forbid_as_array(val_cls, lambda value: f"a {val_cls.__name__}, and {_WHY}", convertible=True)


def typeof(x: Any) -> Any:
    """The type of an array, or of a value of a registered class."""
    of_class = _types.get(type(x))
    return typeof_array(x) if of_class is None else of_class(x)
