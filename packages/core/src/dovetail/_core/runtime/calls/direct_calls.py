"""Eager calls that need no program: a function of the backend computes small arrays at once.

A program takes microseconds to start, and milliseconds to compile, once for each shape. Where the
default platform computes in the memory of the host, its backend has functions of C for elementwise
primitives (`dovetail_host_functions`). An eager function whose trace is one such primitive is told
of it here, by the dtypes of its arguments; its later calls are then computed in C, for small arrays
of any shape. Their results hold a value of NumPy's; `Array._buffer` makes a buffer of it once one
is needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import caches, config, native, pytree
from dovetail._core.basis.elementwise import convert_element_type_p
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.host_functions import host_function
from dovetail._core.runtime.devices.sharding import first_sharding
from dovetail._core.runtime.devices.threads import thread_count
from dovetail._core.trace.primitive import Primitive

__all__ = [
    "KINDS",
    "LONGEST",
    "MOST_IN_CHAIN",
    "MOST_OPERANDS",
    "NO_NUMBER",
    "ONE_LEAF",
    "Limits",
    "Way",
    "are_operands",
    "compute_directly",
    "kind_of",
    "know_default_place",
    "limits",
    "may_be_direct",
    "refuse",
    "tell_way",
    "way_of",
    "way_of_primitive",
]

#: The kinds of arguments that are Python numbers, as `native/direct.h` has them.
KINDS: Final[Mapping[type, int]] = {float: -1, int: -2}
MOST_OPERANDS: Final = 3
#: The same of one operation in a chain.
MOST_IN_CHAIN: Final = 8
#: The structure of what is one array.
ONE_LEAF: Final = pytree.structure(0)
#: What is added to the number of the dtype of an array whose type is weak.
WEAK: Final = 0x10000
_CONSTANT: Final = -1
NO_NUMBER: Final = -1
_BYTE: Final = np.dtype(np.uint8)


class Limits(NamedTuple):
    """What may be computed in the calling thread.

    Attributes:
        elements: larger arrays hold no values.
        longest: how long a single elementwise operation may take, where a program takes 1 to start.
        quick: operations that take no longer for so many elements are those of programs, and may
            take any time.
    """

    elements: int
    longest: int
    quick: float = math.inf


#: The same of other operations: the bits of sums do not depend on the number of threads.
LONGEST: Final = 8
#: A program would divide it among threads.
_OF_SEVERAL_THREADS: Final = Limits(2**18, 32)
#: Two threads gain little, and a backend may let one that has just computed take a part without a
#: program, too. After a large array, a program starts and ends in memory that is far away: it takes
#: 0.05 ms more.
_OF_FEW_THREADS: Final = Limits(2**20, 32, 2**13)
_FEW: Final = 2


@functools.cache
def limits() -> Limits:
    """What may be computed without a program, by the threads that programs have."""
    return _OF_FEW_THREADS if thread_count() <= _FEW else _OF_SEVERAL_THREADS


clients.on_clear(limits.cache_clear)


class Way(NamedTuple):
    """How calls with arguments of some kinds are computed; `direct_from` in C reads it.

    Attributes:
        address: the function.
        key: the options for which this holds.
        kinds: for each argument the number of its dtype, or what Python number it is.
        becomes: for each Python number that of the dtype that it is converted to.
        sources: for each operand the argument that it is, or -1.
        constants: for each operand that is none the bytes of the element.
        result: the dtype of the result.
        weak: whether its type is weak.
        most: the number of elements up to which it is used.
        chain: what computes it in place of the function, if it is a chain (`chains`).
        names: the keywords of the last arguments.
    """

    address: int
    key: tuple[Any, ...]
    kinds: tuple[int, ...]
    becomes: tuple[int, ...]
    sources: tuple[int, ...]
    constants: tuple[bytes, ...]
    result: np.dtype[Any]
    weak: bool
    most: int
    chain: Any = None
    names: tuple[str, ...] = ()


if native.calls is not None:
    caches.register(native.calls.forget_ways)
    clients.on_clear(lambda: native.calls.set_default_place(None))


def way_of(closed: ClosedJaxpr, args: Sequence[Any]) -> Way | None:
    """How a call is computed without a program; None if it is not.

    Args:
        closed: the trace of the function.
        args: the arguments of the call: one for each variable of the trace.
    """
    jaxpr = closed.jaxpr
    if closed.consts or len(args) > MOST_OPERANDS or len(jaxpr.outvars) != 1:
        return None
    if not jaxpr.eqns or jaxpr.eqns[-1].outvars[0] is not jaxpr.outvars[0]:
        return None
    *conversions, last = jaxpr.eqns
    numbers = {var: i for i, var in enumerate(jaxpr.invars)}
    converted: dict[int, Any] = {}
    for eqn in conversions:
        source = eqn.invars[0]
        if eqn.primitive is not convert_element_type_p or type(source) is not Var:
            return None
        i = numbers.get(source)
        if i is None or type(args[i]) not in KINDS:
            return None
        numbers[eqn.outvars[0]] = i
        converted[i] = eqn.outvars[0].aval.dtype
    return _way(jaxpr, last, numbers, converted, args)


def way_of_primitive(jaxpr: Jaxpr, args: Sequence[Any]) -> Way | None:
    """As `way_of`, for the program of one primitive."""
    if len(args) > MOST_OPERANDS or len(jaxpr.eqns) != 1:
        return None
    return _way(jaxpr, jaxpr.eqns[0], {var: i for i, var in enumerate(jaxpr.invars)}, {}, args)


def _way(
    jaxpr: Jaxpr,
    eqn: JaxprEqn,
    numbers: Mapping[Var, int],
    converted: Mapping[int, Any],
    args: Sequence[Any],
) -> Way | None:
    if not 0 < len(eqn.invars) <= MOST_OPERANDS or len(eqn.outvars) != 1:
        return None
    # The operand that chooses, among others of `select_n`, has a dtype of its own.
    function = host_function(eqn.primitive, eqn.invars[-1].aval.dtype)
    if any(value is not None for value in eqn.params.values()):
        return None
    know_default_place()
    out = eqn.outvars[0].aval
    if function is None or function.numbers is not None or eqn.effects:
        return None
    if not are_operands(eqn.primitive, [atom.aval for atom in eqn.invars]):
        return None
    if any(atom.aval.shape not in ((), out.shape) for atom in eqn.invars):
        return None
    kinds, becomes = [], []
    for i, arg in enumerate(args):
        aval = jaxpr.invars[i].aval
        if type(arg) is Array and aval.division is None:
            kinds.append(kind_of(aval))
            becomes.append(NO_NUMBER)
        elif type(arg) in KINDS:
            kinds.append(KINDS[type(arg)])
            becomes.append(converted.get(i, aval.dtype).num)
        else:
            return None
    sources, constants = [], []
    for atom in eqn.invars:
        if isinstance(atom, Literal):
            sources.append(_CONSTANT)
            constants.append(np.asarray(atom.val, atom.aval.dtype).tobytes())
        else:
            sources.append(numbers[atom])
            constants.append(b"")
    return Way(
        function.address,
        config.trace_key(),
        tuple(kinds),
        tuple(becomes),
        tuple(sources),
        tuple(constants),
        out.dtype,
        out.weak_type,
        _most(function.most),
    )


def _most(most: int) -> int:
    """The number of elements up to which a function is used that computes `most` while a program
    starts."""
    of_any, longest, quick = limits()
    return of_any if most >= quick else min(most * longest, of_any)


def kind_of(aval: Any) -> int:
    """The kind of an array of this type."""
    number: int = aval.dtype.num
    return number | WEAK if aval.weak_type else number


def are_operands(primitive: Primitive, avals: Sequence[Any]) -> bool:
    """Whether a function of elements takes operands of these types: of one dtype, but that
    `select_n` chooses between two by truths."""
    last, chooses = avals[-1].dtype, primitive is select_n_p
    if chooses and (len(avals) != MOST_OPERANDS or avals[0].dtype != bool):
        return False
    if len(avals) > MOST_OPERANDS or not isinstance(last, np.dtype):
        return False
    return all(a.dtype == last for a in avals[int(chooses) :])


def know_default_place() -> None:
    """Tell C where buffers are by default, if there is a client already."""
    if clients.default_platform() in clients.started():
        native.calls.set_default_place(first_sharding())


def may_be_direct(args: Sequence[Any], most: int = MOST_OPERANDS) -> bool:
    """Whether a call may need no program, by the number and types of its arguments alone."""
    return (
        native.calls is not None
        and config.direct_calls.value != "none"
        and 0 < len(args) <= most
        and all(type(arg) is Array or type(arg) in KINDS for arg in args)
    )


def compute_directly(compiled: Any, way: Way | None, args: Sequence[Any]) -> Array | None:
    """The result of a call that needs no program; None if it needs one.

    Args:
        compiled: the function that was called; it is told of the answer, for later calls.
        way: how the call is computed, if there is a way.
        args: its arguments.
    """
    if way is None:
        refuse(compiled, args)
        return None
    result: Array | None = tell_way(compiled, way, args)
    return result


def refuse(compiled: Any, args: Sequence[Any]) -> None:
    """Tell a function that calls with such arguments need a program, whatever their shapes."""
    kinds = tuple([KINDS.get(type(x)) or kind_of(x.aval) for x in args])
    nothing = (NO_NUMBER,) * len(args)
    key = config.trace_key()
    compiled._add_direct(0, key, kinds, nothing, (), (), _BYTE, False, limits().elements, None, ())


def tell_way(
    compiled: Any, way: Way, args: Sequence[Any], kwargs: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """The result of a call, and later ones, of a function that is told how to compute them.

    None if it knows too many ways already: those of ever other shapes are to be programs.
    """
    if not compiled._add_direct(*way):
        return None
    result = compiled._call_directly(*args, **kwargs)
    if result is None:
        compiled._drop_direct()  # the arguments are somewhere else, say
    return result
