"""The axes that collective operations can name: those of `vmap`, and manual axes of meshes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from dovetail._core.base import config
from dovetail._core.base.records import record
from dovetail._core.base.restoring import Restoring
from dovetail._core.ir.jaxpr import Jaxpr
from dovetail._core.ir.walk import all_equations, jaxprs_in_params
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import ArrayClass

AxisName = Hashable


@record
class NamedAxis:
    """An axis that collective operations can name.

    Attributes:
        name: its name.
        size: how many elements, or devices, there are along it.
        is_checked: whether types say which values vary along it.
    """

    name: AxisName
    size: int
    is_checked: bool = False


@record
class BatchAxis:
    """The axis of a batch while batching rules run.

    Attributes:
        name: its name, if it has one.
        size: the number of elements.
        spmd_axis_name: the axes of a mesh over which it is divided.
    """

    name: AxisName | None
    size: int
    spmd_axis_name: tuple[AxisName, ...] = ()


class named_axes(Restoring[None]):
    """A scope in which there are some axes more. The innermost one of a name counts."""

    __slots__ = ()

    def __init__(self, axes: Sequence[NamedAxis]) -> None:
        super().__init__(
            config.named_axes.get_local, partial(_add, tuple(axes)), config.named_axes.set_local
        )


def _add(axes: tuple[NamedAxis, ...]) -> None:
    names = {axis.name for axis in axes}
    outer = tuple([axis for axis in config.named_axes.value if axis.name not in names])
    config.named_axes.set_local((*outer, *axes))


def axes_of(names: Any) -> tuple[AxisName, ...]:
    """Names of axes, of which a single one may be given as it is."""
    return names if type(names) is tuple else (names,)


def lookup(names: Any, function: str) -> tuple[NamedAxis, ...]:
    """The axes of some names.

    Args:
        names: the names; a single one may be given as it is.
        function: the function that is called, for messages.

    Raises:
        NameError: there is no such axis.
        TypeError: a name cannot be one, such as an array.
        ValueError: a name is given twice.
    """
    names = tuple(names) if isinstance(names, (list, set, frozenset)) else axes_of(names)
    known = {axis.name: axis for axis in config.named_axes.value}
    for name in names:
        if not isinstance(name, Hashable) or isinstance(name, ArrayClass):
            raise TypeError(
                f"{function}: axis_name is the name of an axis, such as a string, or a tuple of "
                f"names; got {name!r:.80}"
            )
        if name not in known:
            have = ", ".join(repr(own) for own in known) if known else "none"
            raise NameError(
                f"{function}: unbound axis name: {name!r}. The axes that there are here: {have}. "
                f"Call it inside a function that dovetail.shard_map or "
                f"dovetail.vmap(..., axis_name={name!r}) applies"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"{function}: an axis is named twice: {names}")
    return tuple([known[name] for name in names])


#: The axes that are named in each jaxpr; None if its rules may name any.
_named_in: Final[WeakKeyDictionary[Jaxpr, frozenset[AxisName] | None]] = WeakKeyDictionary()


def uses_axis(primitive: Primitive, params: Mapping[str, Any], name: AxisName) -> bool:
    """Whether an application of a primitive may name an axis, in the programs that it holds too."""
    if primitive.axis_parameter:
        return name in axes_of(params[primitive.axis_parameter])
    jaxprs = jaxprs_in_params(params)
    if jaxprs and any(map(callable, params.values())):
        return True
    return any(may_name(jaxpr, name) for jaxpr in jaxprs)


def may_name(jaxpr: Jaxpr, name: AxisName) -> bool:
    """Whether collective operations in a jaxpr, or in rules of users in it, may name an axis."""
    if jaxpr not in _named_in:
        _named_in[jaxpr] = _names_in(jaxpr)
    names = _named_in[jaxpr]
    return names is None or name in names


def _names_in(jaxpr: Jaxpr) -> frozenset[AxisName] | None:
    found: set[AxisName] = set()
    for eqn in all_equations(jaxpr):
        if eqn.primitive.axis_parameter:
            found.update(axes_of(eqn.params[eqn.primitive.axis_parameter]))
        elif any(map(callable, eqn.params.values())):
            return None
    return frozenset(found)
