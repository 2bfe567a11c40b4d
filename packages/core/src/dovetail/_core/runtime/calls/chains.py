"""Small programs as chains of functions of the backend, which C calls one after the other.

Where a call with small arrays needs no program (`direct_calls`), that may also be one of a compiled
function: if each operation of its trace has a function of C that computes it, they are called in
turn, in memory between the arguments and the result. This saves the start of a program, and
its compilation. A chain is for the shapes that were traced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import caches, config, native
from dovetail._core.basis.elementwise import convert_element_type_p
from dovetail._core.basis.structural import broadcast_in_dim_p, reshape_p
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from dovetail._core.ir.walk import inline_calls
from dovetail._core.ops.elementwise.conversion import copy_p, stop_gradient_p
from dovetail._core.ops.shape.creation import iota_p
from dovetail._core.ops.shape.reshaping import squeeze_p
from dovetail._core.plugins.hookspecs import HostFunction
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.calls.direct_calls import (
    KINDS,
    LONGEST,
    MOST_ELEMENTS,
    MOST_OPERANDS,
    NO_NUMBER,
    Way,
    know_default_place,
)
from dovetail._core.runtime.devices.host_functions import host_function, host_functions
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import dce_closed

__all__ = ["chained_way"]

_MOST_ARGUMENTS: Final = 8
_STATIC: Final = -3
_MOST_DIMENSIONS: Final = 8
_MOST_VALUES: Final = 96
_MOST_BYTES: Final = 2**16
_ALIGNMENT: Final = 64
#: Elements that take as long as to go on to the next row.
_ROW: Final = 16
#: What an operation takes, of the time that a program takes to start.
_STEP: Final = 1 / 64

if native.calls is not None:
    caches.register(native.calls.forget_ways)


class _Value(NamedTuple):
    """What a variable stands for, or a part of it that is repeated.

    Attributes:
        kind: "argument", "constant" or "step".
        number: which of them.
        shape: of the value, which may have ones where the variable's shape has more.
    """

    kind: str
    number: int
    shape: tuple[int, ...]


class _Step(NamedTuple):
    """An operation: its function and operands; the rest is as in `native/chains.h`."""

    address: int
    operands: tuple[_Value, ...]
    numbers: tuple[int, ...]
    elements: int
    rows: int
    row_bytes: tuple[int, ...]
    size: int


class _NoChain(Exception):
    """A program is needed."""


@dataclass(slots=True)
class _Chain:
    """A chain while it is made.

    Attributes:
        values: what variables stand for.
        constants: the bytes of constants.
        steps: what is computed.
        share: the time that it takes, where 1 is that of a program.
    """

    values: dict[Any, _Value] = field(default_factory=dict)
    constants: list[bytes] = field(default_factory=list)
    steps: list[_Step] = field(default_factory=list)
    share: float = 0.0

    def constant(self, value: Any, aval: Any) -> _Value:
        _check_size(aval)
        array = np.asarray(value).astype(aval.dtype, copy=False)
        self.constants.append(array.tobytes())
        return _Value("constant", len(self.constants) - 1, aval.shape)

    def value(self, atom: Any) -> _Value:
        if isinstance(atom, Literal):
            return self.constant(atom.val, atom.aval)
        return self.values[atom]

    def add(self, eqn: JaxprEqn) -> None:
        """Compute the result of an equation.

        Raises:
            _NoChain: there is no function for it.
        """
        if eqn.effects or len(eqn.outvars) != 1 or len(eqn.invars) > MOST_OPERANDS:
            raise _NoChain
        out = eqn.outvars[0]
        self.values[out] = self._same(eqn) or self._computed(eqn, out.aval)

    def _same(self, eqn: JaxprEqn) -> _Value | None:
        """The value of an equation that only gives an array another shape."""
        out = eqn.outvars[0].aval
        if eqn.primitive is iota_p and not eqn.invars:
            _check_size(out)
            shape = [1] * len(out.shape)
            dimension = eqn.params["dimension"]
            shape[dimension] = out.shape[dimension]
            row = np.arange(out.shape[dimension]).reshape(shape)
            return self.constant(np.broadcast_to(row, out.shape), out)
        if len(eqn.invars) != 1:
            return None
        operand = eqn.invars[0]
        whole = operand.aval.shape
        if eqn.primitive is broadcast_in_dim_p:
            if out.division is not None:
                return None
            value = self.value(operand)
            if math.prod(value.shape) == 1:
                return value._replace(shape=())
            value = self.whole(value, operand.aval)
            shape = [1] * len(out.shape)
            for size, dimension in zip(whole, eqn.params["broadcast_dimensions"], strict=True):
                shape[dimension] = size
            return value._replace(shape=tuple(shape))
        same = eqn.primitive is reshape_p and eqn.params["dimensions"] is None
        if eqn.primitive is convert_element_type_p:
            same = operand.aval.dtype == out.dtype
        if same or eqn.primitive in _SAME:
            value = self.value(operand)
            if value.shape == whole:
                return value._replace(shape=out.shape)
            if whole == out.shape or math.prod(value.shape) == 1:
                return value
        return None

    def _computed(self, eqn: JaxprEqn, out: Any) -> _Value:
        function = None
        if eqn.invars:
            function = host_function(eqn.primitive, eqn.invars[-1].aval.dtype)
        if function is None or out.division is not None or len(out.shape) > _MOST_DIMENSIONS:
            raise _NoChain
        operands = tuple([self.value(atom) for atom in eqn.invars])
        avals = [atom.aval for atom in eqn.invars]
        if function.numbers is None:
            step = _elementwise(eqn.params, function, operands, avals, out)
        else:
            numbers = function.numbers(eqn.params, avals, out)
            if numbers is None:
                raise _NoChain
            operands = tuple([self.whole(v, a) for v, a in zip(operands, avals, strict=True)])
            count, nothing = math.prod(out.shape), (0,) * (len(operands) + 1)
            size = _padded(count * out.dtype.itemsize)
            step = _Step(function.address, operands, tuple(numbers), count, 1, nothing, size)
        return self.computed_by(step, function, out)

    def whole(self, value: _Value, aval: Any) -> _Value:
        """A value with all its elements, none of which stands for several."""
        return value if value.shape == aval.shape else self.copied(value, aval)

    def copied(self, value: _Value, aval: Any) -> _Value:
        function = host_function(copy_p, aval.dtype)
        if function is None or function.numbers is not None:
            raise _NoChain
        step = _elementwise({}, function, (value,), (aval,), aval)
        return self.computed_by(step, function, aval)

    def computed_by(self, step: _Step, function: HostFunction, out: Any) -> _Value:
        elements = max([math.prod(out.shape), *[math.prod(v.shape) for v in step.operands]])
        self.share += _STEP + (elements + _ROW * (step.rows - 1)) / function.most
        self.steps.append(step)
        # A program would fuse several.
        if self.share > (LONGEST if len(self.steps) == 1 else 1):
            raise _NoChain
        return _Value("step", len(self.steps) - 1, out.shape)


#: Primitives whose results are their operands, besides those of shapes.
_SAME: Final[tuple[Primitive, ...]] = (copy_p, squeeze_p, stop_gradient_p)


def _check_size(aval: Any) -> None:
    if math.prod(aval.shape) * aval.dtype.itemsize > _MOST_BYTES:
        raise _NoChain


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _elementwise(
    params: Mapping[str, Any],
    function: HostFunction,
    operands: tuple[_Value, ...],
    avals: Sequence[Any],
    out: Any,
) -> _Step:
    """A call of an elementwise function for each row of the result."""
    if any(value is not None for value in params.values()):
        raise _NoChain
    shape = out.shape
    if any(v.shape and len(v.shape) != len(shape) for v in operands):
        raise _NoChain
    parts = [v.shape or (1,) * len(shape) for v in operands]
    for split in range(len(shape) + 1):
        inner = [_relation(part[split:], shape[split:]) for part in parts]
        outer = [_relation(part[:split], shape[:split]) for part in parts]
        if None not in inner and None not in outer:
            break
    else:
        raise _NoChain
    count, rows = math.prod(shape[split:]), math.prod(shape[:split])
    row_bytes = [
        step * (count if whole else 1) * aval.dtype.itemsize
        for step, whole, aval in zip(outer, inner, avals, strict=True)
        if step is not None
    ]
    size = out.dtype.itemsize
    return _Step(
        function.address,
        operands,
        tuple([int(bool(step)) for step in inner]),
        count,
        rows,
        (*row_bytes, count * size),
        _padded(count * rows * size),
    )


def _relation(part: tuple[int, ...], whole: tuple[int, ...]) -> int | None:
    """1 if an operand has all elements, 0 if it has one for all, None if it is neither."""
    if part == whole:
        return int(math.prod(whole) != 1)
    return 0 if math.prod(part) == 1 else None


def chained_way(
    closed: ClosedJaxpr, args: Sequence[Any], dynamic: Sequence[int], names: tuple[str, ...]
) -> Way | None:
    """How a call is computed by a chain; None if it needs a program.

    Args:
        closed: the trace of the function.
        args: the arguments of the call.
        dynamic: the position of that for each variable of the trace; the others are static.
        names: the keywords of the last arguments.
    """
    if len(args) > _MOST_ARGUMENTS or len(closed.jaxpr.outvars) != 1:
        return None
    if len(closed.jaxpr.eqns) > _MOST_VALUES or not host_functions():
        return None
    kinds, becomes = [_STATIC] * len(args), [NO_NUMBER] * len(args)
    if len(dynamic) != len(closed.jaxpr.invars):
        return None
    for i, aval in zip(dynamic, closed.in_avals, strict=True):
        arg = args[i]
        if aval.division is not None or len(aval.shape) > _MOST_DIMENSIONS:
            return None
        if type(arg) in KINDS:
            kinds[i], becomes[i] = KINDS[type(arg)], aval.dtype.num
        elif not aval.weak_type and (
            type(arg) is Array or (type(arg) is np.ndarray and arg.dtype is aval.dtype)
        ):
            kinds[i] = aval.dtype.num
        else:
            return None
    if not all(_is_plain(arg) for i, arg in enumerate(args) if i not in dynamic):
        return None
    out = closed.out_avals[0]
    if out.weak_type or out.division is not None or len(out.shape) > _MOST_DIMENSIONS:
        return None
    try:
        capsule = _chain(closed, args, dynamic)
    except _NoChain:
        return None
    know_default_place()
    most = max([math.prod(aval.shape) for aval in closed.in_avals], default=1)
    key = config.trace_key()
    kinds_and_types = tuple(kinds), tuple(becomes)
    return Way(0, key, *kinds_and_types, (), (), out.dtype, most, capsule, names)


def _chain(closed: ClosedJaxpr, args: Sequence[Any], dynamic: Sequence[int]) -> Any:
    """The chain as C takes it."""
    flat = dce_closed(inline_calls(closed))
    jaxpr = flat.jaxpr
    chain = _Chain()
    for i, var in zip(dynamic, jaxpr.invars, strict=True):
        chain.values[var] = _Value("argument", i, var.aval.shape)
    for var, value in zip(jaxpr.constvars, flat.consts, strict=True):
        placed = type(value) is Array and value.committed
        if placed or not isinstance(value, (Array, np.ndarray, np.generic)):
            raise _NoChain
        chain.values[var] = chain.constant(value, var.aval)
    for eqn in jaxpr.eqns:
        chain.add(eqn)
    out = jaxpr.outvars[0]
    if math.prod(out.aval.shape) > MOST_ELEMENTS:
        raise _NoChain
    if chain.value(out) != ("step", len(chain.steps) - 1, out.aval.shape):
        chain.copied(chain.value(out), out.aval)
    places: list[int] = []
    end = 0
    for constant in chain.constants:
        places.append(end)
        end += _padded(len(constant))
    constants = b"".join([c.ljust(_padded(len(c)), b"\0") for c in chain.constants])
    end = 0
    for step in chain.steps:
        places.append(end)
        end += step.size
    room = end - chain.steps[-1].size
    first = {"argument": 0, "constant": len(args), "step": len(args) + len(chain.constants)}
    if first["step"] + len(chain.steps) > _MOST_VALUES or room > _MOST_BYTES:
        raise _NoChain
    steps = [
        (
            step.address,
            tuple([first[v.kind] + v.number for v in step.operands]),
            first["step"] + number,
            *step[2:6],
        )
        for number, step in enumerate(chain.steps)
    ]
    shapes: list[Any] = [None] * len(args)
    for i, var in zip(dynamic, jaxpr.invars, strict=True):
        shapes[i] = var.aval.shape if type(args[i]) not in KINDS else None
    fixed = tuple([None if i in dynamic else arg for i, arg in enumerate(args)])
    return native.calls.chain(
        tuple(shapes), fixed, constants, tuple(places), room, tuple(steps), out.aval.shape
    )


def _is_plain(value: Any) -> bool:
    """Whether a static argument is a value that holds nothing else."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes, type, np.dtype))
