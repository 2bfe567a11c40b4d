"""Small programs as chains of functions of the backend, which C calls one after the other.

Where a call with small arrays needs no program (`direct_calls`), that may also be one of a compiled
function: if each operation of its trace has a function of C that computes it, they are called in
turn, in memory between the arguments and the results, which may be trees. This saves the start of a
program, and its compilation. A chain is for the shapes that were traced.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import config, dtypes, native, pytree
from dovetail._core.basis.elementwise import add_any_p, convert_element_type_p, mul_p
from dovetail._core.basis.structural import broadcast_in_dim_p, reshape_p
from dovetail._core.ir.avals import ShapedArray, make_aval, physical_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from dovetail._core.ir.walk import inline_calls
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type_p
from dovetail._core.ops.shape.creation import iota_p
from dovetail._core.ops.shape.slicing import slice_p
from dovetail._core.plugins.hookspecs import HostFunction
from dovetail._core.runtime.arrays.array import Array, KeyArray
from dovetail._core.runtime.calls.direct_calls import (
    KINDS,
    LONGEST,
    MOST_IN_CHAIN,
    NO_NUMBER,
    ONE_LEAF,
    Way,
    are_operands,
    kind_of,
    know_default_place,
    limits,
)
from dovetail._core.runtime.calls.sums_of_terms import with_sums_of_terms
from dovetail._core.runtime.devices.host_functions import host_function, host_functions
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import dce_closed

__all__ = [
    "Argument",
    "chained_way",
    "chained_way_of_primitive",
    "may_be_chained",
]

_STATIC: Final = -3
_MOST_DIMENSIONS: Final = 8
#: As in `native/chains.h`.
_MOST_LEAVES: Final = 128
_MOST_VALUES: Final = 1024
_MOST_BYTES: Final = 2**16
_ALIGNMENT: Final = 64
#: Elements that take as long as to go on to the next row.
_ROW: Final = 16
#: What an operation takes, of the time that a program takes to start; what a program takes for it;
#: and what a program takes for a leaf of the arguments or the result.
_STEP: Final = 1 / 64
_STEP_OF_PROGRAM: Final = 1 / 128
_LEAF_OF_PROGRAM: Final = 1 / 32
#: Elements of constants up to which what is made of them is a constant.
_FOLDED: Final = 64
_BYTE: Final = np.dtype(np.uint8)
_FUNCTION: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t
)
_NUMBERS: Final = frozenset({np.float32, np.int32, np.uint32, np.bool_})


class Argument(NamedTuple):
    """An argument of a call.

    Attributes:
        value: a static argument.
        tree: the structure of one that is none; else None.
        leaves: its leaves.
        first: the number of the first of these among the variables of the trace.
    """

    value: Any
    tree: Any
    leaves: Sequence[Any]
    first: int


class _Value(NamedTuple):
    """What a variable stands for, or a part of it that is repeated.

    Attributes:
        kind: "argument", "constant" or "computed".
        number: which of them.
        shape: of the value, which may have ones where the variable's shape has more.
        start: the byte where it begins, if it is a part of that; None if it is the whole.
    """

    kind: str
    number: int
    shape: tuple[int, ...]
    start: int | None = None


class _Step(NamedTuple):
    """An operation: its function and operands; the rest is as in `native/chains.h`, but for how
    many rows the function computes one after the other."""

    address: int
    operands: tuple[_Value, ...]
    numbers: tuple[int, ...]
    elements: int
    rows: int
    row_bytes: tuple[int, ...]
    in_turn: int = 1


class _NoChain(Exception):
    """A program is needed."""


@dataclass(slots=True)
class _Chain:
    """A chain while it is made.

    Attributes:
        values: what variables stand for.
        constants: the bytes of constants.
        steps: what is computed, and the number of the first result.
        sizes: the bytes of each result, padded.
        share: the time that it takes, where 1 is that which a program takes to start.
        most: the time that a program takes.
        rounds: whether a step rounds to 16 bits, where a program may round several steps once.
    """

    most: float
    values: dict[Any, _Value] = field(default_factory=dict)
    constants: list[bytes] = field(default_factory=list)
    steps: list[tuple[_Step, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    share: float = 0.0
    rounds: bool = False

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
        if eqn.effects or len(eqn.invars) > MOST_IN_CHAIN:
            raise _NoChain
        if not _are_arrays(atom.aval for atom in (*eqn.invars, *eqn.outvars)):
            raise _NoChain
        same = self._same(eqn) if len(eqn.outvars) == 1 else None
        values = self._computed(eqn) if same is None else [same]
        self.values.update(zip(eqn.outvars, values, strict=True))

    def _same(self, eqn: JaxprEqn) -> _Value | None:
        """The value of an equation that only gives an array another shape."""
        out = physical_aval(eqn.outvars[0].aval)
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
        aval = physical_aval(operand.aval)
        whole = aval.shape
        if eqn.primitive is broadcast_in_dim_p:
            if out.division is not None or aval is not operand.aval:
                return None
            value = self.value(operand)
            if math.prod(value.shape) == 1:
                return value._replace(shape=())
            value = self.whole(value, aval)
            shape = [1] * len(out.shape)
            for size, dimension in zip(whole, eqn.params["broadcast_dimensions"], strict=True):
                shape[dimension] = size
            return value._replace(shape=tuple(shape))
        if eqn.primitive is slice_p:
            return self._part(eqn, aval, out) if aval is operand.aval else None
        same = eqn.primitive is reshape_p and eqn.params["dimensions"] is None
        if eqn.primitive is bitcast_convert_type_p:
            same = whole == out.shape
        if eqn.primitive is convert_element_type_p:
            same = aval.dtype == out.dtype
        if same or eqn.primitive.keeps_elements:
            value = self.value(operand)
            if value.shape == whole:
                return value._replace(shape=out.shape)
            if whole == out.shape or math.prod(value.shape) == 1:
                return value
        return None

    def _part(self, eqn: JaxprEqn, aval: Any, out: Any) -> _Value | None:
        """The value of a slice whose elements follow one another in its operand."""
        value = self.value(eqn.invars[0])
        if value.shape != aval.shape or out.division is not None or 0 in out.shape:
            return None
        pairs = enumerate(zip(aval.shape, out.shape, strict=True))
        last = max([i for i, (whole, part) in pairs if whole != part], default=0)
        strides = eqn.params["strides"]
        if any(size != 1 for size in out.shape[:last]) or (
            strides is not None and out.shape and strides[last] != 1 and out.shape[last] != 1
        ):
            return None
        place = 0
        for size, start in zip(aval.shape, eqn.params["start_indices"], strict=True):
            place = place * size + start
        start = (value.start or 0) + place * aval.dtype.itemsize
        return value._replace(shape=out.shape, start=start)

    def _computed(self, eqn: JaxprEqn) -> list[_Value]:
        function = None
        avals = [physical_aval(atom.aval) for atom in eqn.invars]
        outs = [physical_aval(var.aval) for var in eqn.outvars]
        if avals:
            function = host_function(eqn.primitive, avals[-1].dtype)
        if function is None or any(
            out.division is not None or len(out.shape) > _MOST_DIMENSIONS for out in outs
        ):
            raise _NoChain
        keyed = any(atom.aval is not aval for atom, aval in zip(eqn.invars, avals, strict=True))
        if keyed and not config.threefry_partitionable.value:
            raise _NoChain  # functions make the bits of the option's default
        values = [self.value(atom) for atom in eqn.invars]
        if function.numbers is None:
            asked = any(value is not None for value in eqn.params.values())
            if asked or not are_operands(eqn.primitive, [atom.aval for atom in eqn.invars]):
                raise _NoChain  # keys are of a dtype of their own
            dtype = outs[0].dtype
            if dtypes.kind_of(dtype) == "f" and dtype.itemsize < 4:
                self.rounds |= eqn.primitive in _ROUNDED
            return [self._elementwise(function, values, avals, *outs)]
        out = [var.aval for var in eqn.outvars] if len(outs) > 1 else eqn.outvars[0].aval
        numbers = function.numbers(eqn.params, [atom.aval for atom in eqn.invars], out)
        if numbers is None:
            raise _NoChain
        values = [self.whole(v, a) for v, a in zip(values, avals, strict=True)]
        step = _whole_arrays(function.address, values, numbers, outs[0])
        return self.computed_by(step, function, outs)

    def _elementwise(
        self, function: HostFunction, values: Sequence[_Value], avals: Sequence[Any], out: Any
    ) -> _Value:
        step = _elementwise(function, values, avals, out)
        if step is None:  # what is the same for some elements is repeated for them
            values = [
                self.whole(v, make_aval(out.shape, a.dtype)) if math.prod(v.shape) != 1 else v
                for v, a in zip(values, avals, strict=True)
            ]
            step = _elementwise(function, values, avals, out)
        if step is None:
            raise _NoChain
        return self.computed_by(step, function, [out])[0]

    def whole(self, value: _Value, aval: Any) -> _Value:
        """A value with all its elements, none of which stands for several."""
        return value if value.shape == aval.shape else self.copied(value, aval)

    def copied(self, value: _Value, aval: Any, folds: bool = True) -> _Value:
        """A copy; if it `folds`, that of a constant is another constant."""
        function = host_function(broadcast_in_dim_p, aval.dtype)
        if function is None or function.numbers is None:
            raise _NoChain
        part = make_aval(value.shape, aval.dtype)
        dimensions = tuple(range(len(aval.shape) - len(value.shape), len(aval.shape)))
        params = {"shape": aval.shape, "broadcast_dimensions": dimensions, "sharding": None}
        numbers = function.numbers(params, [part], aval)
        if numbers is None:
            raise _NoChain
        step = _whole_arrays(function.address, [value], numbers, aval)
        return self.computed_by(step, function, [aval], folds)[0]

    def computed_by(
        self, step: _Step, function: HostFunction, outs: Sequence[Any], folds: bool = True
    ) -> list[_Value]:
        shapes = [*[out.shape for out in outs], *[v.shape for v in step.operands]]
        elements = max(map(math.prod, shapes))
        folds = folds and len(outs) == 1 and elements <= _FOLDED and step.rows == 1
        if folds and all(v.kind == "constant" for v in step.operands):
            return [self._folded(step, outs[0])]
        share = _STEP + (elements + _ROW * (step.in_turn - 1)) / function.most
        self.share += share
        self.most += _STEP_OF_PROGRAM
        if function.numbers is not None and share <= LONGEST and _are_few(outs):
            self.most += share  # a program would fuse nothing with it, either
        first = len(self.sizes)
        self.steps.append((step, first))
        if self.rounds and len(self.steps) > 1:
            raise _NoChain
        # A program would fuse several.
        if self.share > (_longest(function) if len(self.steps) == 1 else self.most):
            raise _NoChain
        self.sizes += [_padded(math.prod(out.shape) * out.dtype.itemsize) for out in outs]
        return [_Value("computed", first + n, out.shape) for n, out in enumerate(outs)]

    def _folded(self, step: _Step, out: Any) -> _Value:
        """What is computed of constants, now rather than in each call."""
        size = len(step.operands)
        held = [ctypes.create_string_buffer(self.constants[v.number]) for v in step.operands]
        starts = [v.start or 0 for v in step.operands]
        places = [ctypes.addressof(x) + start for x, start in zip(held, starts, strict=True)]
        operands = (ctypes.c_void_p * size)(*places)
        numbers = (ctypes.c_ssize_t * len(step.numbers))(*step.numbers)
        result = ctypes.create_string_buffer(math.prod(out.shape) * out.dtype.itemsize)
        _FUNCTION(step.address)(operands, numbers, result, step.elements)
        self.constants.append(result.raw)
        return _Value("constant", len(self.constants) - 1, out.shape)

    def results(self, outvars: Sequence[Any]) -> list[int]:
        """The numbers of what is computed for results, each of which has a place of its own."""
        numbers: list[int] = []
        for out in outvars:
            aval, value = physical_aval(out.aval), self.value(out)
            if math.prod(aval.shape) > limits().elements:
                raise _NoChain
            alone = (
                value.kind == "computed"
                and value.start is None
                and value.shape == aval.shape
                and value.number not in numbers
            )
            if not alone or not self._has_one(value.number):
                value = self.copied(value, aval, folds=False)
            numbers.append(value.number)
        return numbers

    def _has_one(self, number: int) -> bool:
        """Whether a result is the only one of its step."""
        firsts = [first for _, first in self.steps]
        return number in firsts and (number + 1 in firsts or number + 1 == len(self.sizes))


#: Primitives whose results may have their operands' elements, or repeat them, besides those that
#: always have.
_SHAPING: Final[tuple[Primitive, ...]] = (
    bitcast_convert_type_p,
    broadcast_in_dim_p,
    convert_element_type_p,
    reshape_p,
    slice_p,
)
#: Primitives that round their results.
_ROUNDED: Final[tuple[Primitive, ...]] = (add_p, add_any_p, div_p, mul_p, sub_p)


def may_be_chained(primitive: Primitive, avals: Sequence[Any]) -> bool:
    """Whether calls of a primitive need no program for some shapes of operands of these dtypes."""
    if not host_functions() or not _are_arrays(avals):
        return False
    known = host_function(primitive, physical_aval(avals[-1]).dtype)
    return known is not None or primitive.keeps_elements or primitive in _SHAPING


def chained_way_of_primitive(jaxpr: Jaxpr, args: Sequence[Any], several: bool) -> Way | None:
    """As `chained_way`, for the program of one primitive, with `several` results or one."""
    arguments = [Argument(None, ONE_LEAF, (arg,), i) for i, arg in enumerate(args)]
    out_tree = pytree.structure([0] * len(jaxpr.outvars)) if several else ONE_LEAF
    return chained_way(ClosedJaxpr(jaxpr, []), arguments, out_tree, ())


def _are_arrays(avals: Iterable[Any]) -> bool:
    """Whether none is a token, or a reference."""
    return all(isinstance(aval, ShapedArray) for aval in avals)


def _check_size(aval: Any) -> None:
    if math.prod(aval.shape) * aval.dtype.itemsize > _MOST_BYTES:
        raise _NoChain


def _longest(function: HostFunction) -> float:
    """How long a function alone may take, where a program takes 1 to start."""
    if function.numbers is not None:
        return LONGEST
    return math.inf if function.most >= limits().quick else limits().longest


def _are_few(outs: Sequence[Any]) -> bool:
    """Whether results have so few elements that it takes no time what is made of them."""
    return all(math.prod(out.shape) <= _FOLDED for out in outs)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _elementwise(
    function: HostFunction, operands: Sequence[_Value], avals: Sequence[Any], out: Any
) -> _Step | None:
    """A call of an elementwise function for each row of the result; None if there are none."""
    shape = out.shape
    if any(v.shape and len(v.shape) != len(shape) for v in operands):
        return None
    parts = [v.shape or (1,) * len(shape) for v in operands]
    for split in range(len(shape) + 1):
        inner = [_relation(part[split:], shape[split:]) for part in parts]
        outer = [_relation(part[:split], shape[:split]) for part in parts]
        if None not in inner and None not in outer:
            break
    else:
        return None
    count, rows = math.prod(shape[split:]), math.prod(shape[:split])
    row_bytes = [
        step * (count if whole else 1) * aval.dtype.itemsize
        for step, whole, aval in zip(outer, inner, avals, strict=True)
        if step is not None
    ]
    row_bytes.append(count * out.dtype.itemsize)
    steps = [int(bool(step)) for step in inner]
    if function.in_rows and rows > 1 and count:
        numbers = function.address, len(operands), rows, *row_bytes, *steps
        return _whole_arrays(function.in_rows, operands, numbers, out)._replace(in_turn=rows)
    return _Step(
        function.address, tuple(operands), tuple(steps), count, rows, tuple(row_bytes), rows
    )


def _whole_arrays(
    address: int, operands: Sequence[_Value], numbers: Sequence[int], out: Any
) -> _Step:
    """A call of a function of whole arrays."""
    nothing = (0,) * (len(operands) + 1)
    return _Step(address, tuple(operands), tuple(numbers), math.prod(out.shape), 1, nothing)


def _relation(part: tuple[int, ...], whole: tuple[int, ...]) -> int | None:
    """1 if an operand has all elements, 0 if it has one for all, None if it is neither."""
    if part == whole:
        return int(math.prod(whole) != 1)
    return 0 if math.prod(part) == 1 else None


def chained_way(
    closed: ClosedJaxpr, arguments: Sequence[Argument], out_tree: Any, names: tuple[str, ...]
) -> Way | None:
    """How a call is computed by a chain; None if it needs a program.

    Args:
        closed: the trace of the function.
        arguments: those of the call.
        out_tree: the structure of its result.
        names: the keywords of the last arguments.
    """
    outs = closed.out_avals
    statics = [argument.tree is None for argument in arguments]
    if not 0 < len(outs) <= _MOST_LEAVES or len(closed.in_avals) + sum(statics) > _MOST_LEAVES:
        return None
    if len(closed.jaxpr.eqns) > _MOST_VALUES or not host_functions():
        return None
    if not _are_arrays((*closed.in_avals, *outs)):
        return None
    leaves: list[tuple[int, int, tuple[int, ...], Any]] = []
    forms: list[Any] = []
    order: list[int | None] = []
    for argument in arguments:
        if argument.tree is None:
            fixed = argument.value if _is_plain(argument.value) else _itself(argument.value)
            if fixed is None and argument.value is not None:
                return None
            leaves.append((_STATIC, NO_NUMBER, (), fixed))
            forms.append(...)
            order.append(None)
            continue
        form = _form(argument.tree)
        forms.append(argument.tree if form is None else form)
        for number, leaf in enumerate(argument.leaves, argument.first):
            found = _leaf(leaf, closed.in_avals[number])
            if found is None:
                return None
            leaves.append(found)
            order.append(number)
    for out in outs:
        if out.division is not None or len(out.shape) >= _MOST_DIMENSIONS:
            return None
    form = _form(out_tree)
    try:
        chain = _chain(closed, leaves, order)
    except _NoChain:
        return None
    capsule = native.calls.chain(
        tuple(leaves),
        tuple(forms),
        pytree.registry.flatten,
        *chain,
        out_tree.unflatten if form is None else form,
    )
    know_default_place()
    most = max([math.prod(shape) for _, _, shape, _ in leaves], default=1)
    return Way(0, config.trace_key(), (), (), (), (), _BYTE, False, most, capsule, names)


def _leaf(leaf: Any, aval: Any) -> tuple[int, int, tuple[int, ...], Any] | None:
    """What C expects of a leaf of the arguments; None if it is to have a program."""
    physical = physical_aval(aval)
    shape, number = physical.shape, physical.dtype.num
    if aval.division is not None or len(shape) > _MOST_DIMENSIONS:
        return None
    if type(leaf) in KINDS:
        return KINDS[type(leaf)], number, (), None
    if type(leaf) is KeyArray:
        return number, NO_NUMBER, shape, aval.dtype
    if type(leaf) is Array or (
        (type(leaf) is np.ndarray or type(leaf) in _NUMBERS) and leaf.dtype is aval.dtype
    ):
        return kind_of(aval), NO_NUMBER, shape, None
    return None


def _form(tree: Any) -> Any:
    """A tree of lists, tuples, dictionaries and None, with an ellipsis for each leaf; None if it
    has others."""
    form = tree.unflatten([...] * tree.num_leaves)
    rest = [form]
    while rest:
        value = rest.pop()
        if type(value) is dict:
            rest += value.values()
        elif type(value) in (list, tuple):
            rest += value
        elif value is not None and value is not ...:
            return None
    return form


def _chain(
    closed: ClosedJaxpr, leaves: Sequence[Any], order: Sequence[int | None]
) -> tuple[Any, ...]:
    """The chain as C takes it."""
    flat = dce_closed(inline_calls(closed))
    jaxpr = flat.jaxpr
    chain = _Chain(1 + (len(leaves) + len(jaxpr.outvars)) * _LEAF_OF_PROGRAM)
    for i, number in enumerate(order):
        if number is not None:
            var = jaxpr.invars[number]
            chain.values[var] = _Value("argument", i, physical_aval(var.aval).shape)
    for var, value in zip(jaxpr.constvars, flat.consts, strict=True):
        placed = type(value) is Array and value.committed
        if placed or not isinstance(value, (Array, np.ndarray, np.generic)):
            raise _NoChain
        if physical_aval(var.aval) is not var.aval:
            raise _NoChain
        chain.values[var] = chain.constant(value, var.aval)
    for eqn in with_sums_of_terms(jaxpr):
        chain.add(eqn)
    results = chain.results(jaxpr.outvars)
    places: list[int] = []
    end = 0
    for constant in chain.constants:
        places.append(end)
        end += _padded(len(constant))
    constants = b"".join([c.ljust(_padded(len(c)), b"\0") for c in chain.constants])
    end = 0
    for number, size in enumerate(chain.sizes):
        places.append(end)
        end += 0 if number in results else size
    first = {"argument": 0, "constant": len(leaves), "computed": len(leaves) + len(chain.constants)}
    if len(leaves) + len(places) > _MOST_VALUES or end > _MOST_BYTES:
        raise _NoChain
    steps = [
        (
            step.address,
            tuple([first[v.kind] + v.number for v in step.operands]),
            tuple([v.start or 0 for v in step.operands]),
            first["computed"] + number,
            *step[2:-1],
        )
        for step, number in chain.steps
    ]
    avals = [physical_aval(out) for out in closed.out_avals]
    outcomes = [
        (
            first["computed"] + number,
            aval.dtype,
            aval.shape,
            None if aval is logical else logical.dtype,
            aval.weak_type,
        )
        for number, aval, logical in zip(results, avals, closed.out_avals, strict=True)
    ]
    return constants, len(chain.constants), tuple(places), end, tuple(steps), tuple(outcomes)


def _is_plain(value: Any) -> bool:
    """Whether a static argument is a value that holds nothing else."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes, type, np.dtype))


def _itself(value: Any) -> Any:
    """A weak reference to a static argument that equals nothing else; None if there is none.

    It is an object with methods, say, and whatever it holds is not to stay for the chain's sake.
    """
    kind: Any = type(value)
    if kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__:
        return None
    try:
        return weakref.ref(value)
    except TypeError:
        return None
