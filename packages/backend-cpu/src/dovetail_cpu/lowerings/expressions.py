"""Programs that are one expression of elementwise functions, computed by one kernel.

Kernels of elementary functions divide what XLA would fuse: each loop before, between and after them
is a module to compile, and passes over memory. The kernel takes a block of elements through all
steps in the nearest cache. Its steps are loops, so arithmetic alone is left to XLA, but for one or
two operations of many elements where several threads share them: kernels wake fewer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend import Literal, LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels, runtime
from dovetail_cpu.lowerings.elementary import FUSED, WORTH_A_CALL
from dovetail_cpu.lowerings.views import View, joined

#: The dtypes of values, with that of their bits.
_BITS: Final = {
    **dict.fromkeys(("float32", "int32", "uint32"), np.int32),
    **dict.fromkeys(("float64", "int64", "complex64"), np.int64),
    **dict.fromkeys(("bfloat16", "float16"), np.int16),
    "bool": np.int8,
}
_OF_TRUTHS: Final = dict.fromkeys(("and", "eq", "ne", "not", "or", "select_n", "xor"), 1)
_OF_INTEGERS: Final = {
    **_OF_TRUTHS,
    **dict.fromkeys(("add", "ge", "gt", "le", "lt", "max", "min", "mul", "square", "sub"), 1),
}
_OF_FLOATS: Final = {
    **dict.fromkeys(("abs", "add", "ge", "gt", "le", "lt", "max", "min", "mul", "neg", "sub"), 1),
    **dict.fromkeys(("ceil", "eq", "floor", "ne", "select_n", "sign", "square"), 1),
    **dict.fromkeys(("div", "rsqrt", "sqrt"), 2),
}
#: By dtype, how long a step takes, relative to loading and storing a block.
_ARITHMETIC: Final[Mapping[str, Mapping[str, int]]] = {
    "bool": _OF_TRUTHS,
    **dict.fromkeys(("int32", "int64", "uint32"), _OF_INTEGERS),
    "float32": {**_OF_FLOATS, "reduce_precision": 1},
    "float64": _OF_FLOATS,
}
_SIMPLE: Final = ("float32", "float64")
#: What is a step only where it is the whole program: of several, XLA rounds the last one alone.
_ALONE: Final = {
    **dict.fromkeys(("bfloat16", "float16"), ("add", "div", "max", "min", "mul", "sub")),
    "complex64": ("add", "mul", "sub"),
}
#: By what is converted to what; the name of the step tells the latter.
_CONVERTED: Final = frozenset(
    pair
    for narrow in ("bfloat16", "float16")
    for pair in ((narrow, "float32"), ("float32", narrow))
)
#: Equations that call a jaxpr, by the parameter that it is.
_CALLS: Final = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "jit": "jaxpr"}
#: What the tables of host functions compute slowly, or not as kernels do.
_FUNCTIONS: Final = frozenset(
    key
    for key in kernels.ELEMENTARY
    if key[0] not in ("digamma", "erf", "erf_inv_fast", "lgamma") and key != ("tanh", "float32")
)
#: As many steps of arithmetic take the time of the loops that a function needs around it.
_EACH: Final = 3
#: So much arithmetic alone takes less time than XLA's loop on several threads, which has them from
#: so many elements on (`plugin.py`).
_FEW_STEPS: Final = 2
_MANY: Final = 2**16
#: Rows of fewer elements take no longer than the calls of their steps.
_SHORT: Final = 128
#: Powers that are made of products.
_MOST: Final = 4


class _Value(NamedTuple):
    """An argument, view, constant or result of a step, by its number among these."""

    kind: str
    number: int


class _Count(NamedTuple):
    """The integers, or floats, from one on."""

    length: int
    dtype: Any
    start: int = 0

    def made(self, context: Any, aval: Any) -> Any:
        """The array, whose type but for shape and dtype is that of `aval`."""
        own = aval.update(shape=(self.length,), dtype=self.dtype)
        from_zero = context.iota(own, 0)
        if self.start == 0:
            return from_zero
        return context.add(from_zero, context.constant(self.start, own), own)


class _Expression:
    """The steps by which a program computes its result.

    Raises:
        KeyError: the kernel cannot compute it.
    """

    def __init__(self, jaxpr: Any, shape: tuple[int, ...]) -> None:
        self.names: list[str] = []
        self.operands: list[list[_Value | int]] = []
        self.constants: list[int] = []
        #: The numbers of the arguments that are read, and what is seen of these. Counts have the
        #: numbers after those of the program.
        self.arguments: list[int] = []
        self.counts: list[_Count] = []
        self.views: list[View] = []
        self.cost = self.unfused = 0
        self.must_be_alone = False
        self._shape = shape
        self._is_one = [var.aval.size == 1 for var in jaxpr.invars]
        self._values: dict[Any, _Value | View] = {
            var: View.whole(i, var.aval.shape) for i, var in enumerate(jaxpr.invars)
        }
        self._compute(jaxpr)
        self.sizes, self._strides = joined(self.views, shape)

    def _compute(self, jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in _CALLS:
                called = eqn.params[_CALLS[eqn.primitive.name]]
                if called.consts:
                    raise KeyError(eqn.primitive.name)
                given = zip(called.jaxpr.invars, map(self._read, eqn.invars), strict=True)
                self._values.update(given)
                self._compute(called.jaxpr)
                found = zip(eqn.outvars, map(self._read, called.jaxpr.outvars), strict=True)
                self._values.update(found)
            elif len(eqn.outvars) == 1:
                (out,) = eqn.outvars
                self._values[out] = self._of(eqn, out) if eqn.invars else self._count(eqn, out.aval)
            else:
                raise KeyError(eqn.primitive.name)

    def _count(self, eqn: Any, aval: Any) -> View:
        if eqn.primitive.name != "iota":
            raise KeyError(eqn.primitive.name)
        dimension = eqn.params["dimension"]
        source = self._source(_Count(aval.shape[dimension], aval.dtype))
        return View(source, 0, aval.shape, tuple(int(d == dimension) for d in range(aval.ndim)))

    def _source(self, count: _Count) -> int:
        if count not in self.counts:
            self.counts.append(count)
            self._is_one.append(count.length == 1)
        return len(self._is_one) - len(self.counts) + self.counts.index(count)

    def _counted_on(self, eqn: Any, first: View) -> View | None:
        """A count from another number, if it is one to which an integer is added."""
        number = first.source - len(self._is_one) + len(self.counts)
        other = eqn.invars[1] if len(eqn.invars) == 2 else None
        if eqn.primitive.name != "add" or number < 0 or not isinstance(other, Literal):
            return None
        count = self.counts[number]
        if count.dtype.kind not in "iu" or other.aval.shape:
            return None
        later = count._replace(start=count.start + int(other.val))
        return first._replace(source=self._source(later))

    def _of(self, eqn: Any, out: Any) -> _Value | View:
        name = eqn.primitive.name
        params = eqn.params
        values = [self._read(x) for x in eqn.invars]
        first = values[0]
        if isinstance(first, View):
            moved = first.moved(eqn, out.aval.shape) or self._counted_on(eqn, first)
            if moved is not None:
                return moved
        elif name == "broadcast_in_dim" and eqn.invars[0].aval.shape == ():
            return first
        if out.aval.shape != self._shape:
            raise KeyError(name)
        operands: list[_Value | int] = [self._operand(value) for value in values]
        dtype = dtype_name(eqn.invars[-1].aval.dtype)
        if name == "integer_pow" and 2 <= params["y"] <= _MOST:
            square = self._step("mul", dtype, [operands[0]] * 2)
            if params["y"] == _MOST:
                return self._step("mul", dtype, [square, square])
            return square if params["y"] == 2 else self._step("mul", dtype, [square, operands[0]])
        if name == "reduce_precision" and params["exponent_bits"] == 8:
            # Its number is negative, by which the kernel tells it from values.
            operands.append(-int(params["mantissa_bits"]))
        elif name == "convert_element_type":
            new = params["new_dtype"].name
            if (dtype, new) not in _CONVERTED:
                raise KeyError(name)
            name = f"to_{new}"
        elif any(value is not None for value in params.values()):
            raise KeyError(name)
        if name == "div" and dtype in _SIMPLE and isinstance(eqn.invars[1], Literal):
            inverse = 1 / float(eqn.invars[1].val or math.nan)
            if abs(math.frexp(inverse)[0]) == 0.5 and abs(inverse) >= np.finfo(dtype).tiny:
                name, operands[1] = "mul", self._constant(inverse, eqn.invars[1].aval)
        return self._step(name, dtype, operands)

    def _step(self, name: str, dtype: str, operands: list[_Value | int]) -> _Value:
        if name in _ARITHMETIC.get(dtype, ()):
            self.cost += _ARITHMETIC[dtype][name]
        elif name in _ALONE.get(dtype, ()) or name.startswith("to_"):
            self.must_be_alone = True
        elif (name, dtype) in _FUNCTIONS and dtype in _ARITHMETIC:
            self.unfused += name not in FUSED
        else:
            raise KeyError(name)
        self.names.append(f"{name}/{dtype}")
        self.operands.append(operands)
        return _Value("step", len(self.names) - 1)

    def _operand(self, value: _Value | View) -> _Value:
        """A value for each element of the result."""
        if isinstance(value, _Value):
            return value
        spread = value.spread(self._shape)
        if spread is None:
            raise KeyError("an array of another rank")
        source = value.source
        if source not in self.arguments:
            self.arguments.append(source)
        number = self.arguments.index(source)
        if self._is_one[source] or (spread.first == 0 and spread.is_whole):
            return _Value("argument", number)
        view = spread._replace(source=number)
        if view not in self.views:
            self.views.append(view)
        return _Value("view", self.views.index(view))

    def _read(self, x: Any) -> _Value | View:
        return self._constant(x.val, x.aval) if isinstance(x, Literal) else self._values[x]

    def _constant(self, value: Any, aval: Any) -> _Value:
        bits = np.asarray(value, aval.dtype).view(_BITS[dtype_name(aval.dtype)])
        self.constants.append(int(bits))
        return _Value("constant", len(self.constants) - 1)

    @property
    def suits(self) -> bool:
        """Whether XLA would take longer: for several loops and passes over memory."""
        if self.must_be_alone and len(self.names) > 1:
            return False
        if any(own[-1] not in (0, 1) for own in self._strides):
            return False
        if len(self.sizes) > 1 and self.sizes[-1] < _SHORT:
            return False
        if self.unfused:
            return len(self.names) > 1 and self.cost <= _EACH * self.unfused
        few = 1 <= len(self.names) <= _FEW_STEPS
        return few and math.prod(self._shape) > _MANY and runtime.num_threads() > 1

    def attributes(self) -> Mapping[str, Any]:
        """What the kernel is told."""
        counts = len(self.arguments), len(self.views), len(self.constants)
        first = accumulate(counts, initial=0)
        starts = dict(zip(("argument", "view", "constant", "step"), first, strict=True))
        last_uses = {
            value: step
            for step, operands in enumerate(self.operands)
            for value in operands
            if isinstance(value, _Value)
        }
        slots: list[int] = []
        free: list[int] = []
        most = 0
        numbers: list[int] = []
        for step, operands in enumerate(self.operands):
            if not free:
                free.append(most)
                most += 1
            slots.append(free.pop())
            done = {v for v in operands if isinstance(v, _Value) and last_uses[v] == step}
            free.extend(slots[v.number] for v in done if v.kind == "step")
            if _Value("step", step) not in last_uses:
                free.append(slots[-1])
            given = [starts[v.kind] + v.number if isinstance(v, _Value) else v for v in operands]
            numbers += given + [0] * (3 - len(given))
        views = zip(self.views, self._strides, strict=True)
        return {
            "names": " ".join(self.names),
            "values": tuple(numbers),
            "slots": tuple(slots),
            "constants": tuple(self.constants),
            "sizes": tuple(self.sizes),
            "views": tuple(n for v, own in views for n in (v.source, v.first, *own)),
        }


def _whole(context: Any, values: tuple[Any, ...], called: Any) -> Any:
    """The result of the program whose last equation is the current one, if it suits the kernel."""
    program, (out,) = context.program, context.avals_out
    if (
        list(program.outvars) != list(context.equation.outvars)
        or program.constvars
        or out.symbolic
        or dtype_name(out.dtype) not in _BITS
        or out.size < WORTH_A_CALL
        or context.divides
        or not kernels.usable(context)
        or any(var.aval.symbolic for var in program.invars)
    ):
        return NotImplemented
    arguments = _arguments(values[0])
    if len(arguments) != len(program.invars) or _is_of(called, arguments):
        return NotImplemented
    try:
        expression = _Expression(program, out.shape)
    except KeyError:
        return NotImplemented
    if not expression.suits or (not expression.unfused and _are_donated(arguments)):
        return NotImplemented
    if expression.views and not expression.unfused and _is_kernel(called):
        return NotImplemented
    made = [count.made(context, out) for count in expression.counts]
    operands = [[*arguments, *made][i] for i in expression.arguments]
    attributes = expression.attributes()
    return kernels.call(context, kernels.EXPRESSION, operands, [out], 0, **attributes)[0]


def _arguments(value: Any) -> list[Any]:
    """The arguments of the function in which a value is computed."""
    owner = value.owner
    block = owner if hasattr(owner, "arguments") else owner.parent.regions[0].blocks[0]
    return list(block.arguments)


def _are_donated(arguments: list[Any]) -> bool:
    """Whether the result takes the memory of an argument, where XLA's loop can write it at once."""
    function = arguments[0].owner.owner if arguments else None
    if function is None or "arg_attrs" not in function.attributes:
        return False
    given = function.attributes["arg_attrs"]
    return any("tf.aliasing_output" in names or "jax.buffer_donor" in names for names in given)


def _is_of(called: Any, arguments: list[Any]) -> bool:
    """Whether what a rule made is a kernel's result for the arguments, of which none is better."""
    return _is_kernel(called) and all(x in arguments for x in _made(called).owner.operands)


def _is_kernel(called: Any) -> bool:
    """Whether what a rule made is a kernel's result."""
    return getattr(getattr(_made(called), "owner", None), "name", "") == "stablehlo.custom_call"


def _made(called: Any) -> Any:
    (value,) = called if isinstance(called, (list, tuple)) else (called,)
    return value


def first(rules: LoweringTable) -> LoweringTable:
    """The rules, and for the last equation of a program first whether it ends an expression."""
    names = {*chain(*_ARITHMETIC.values()), *(name for name, _ in _FUNCTIONS)}
    names |= {"convert_element_type", "integer_pow"}
    return LoweringTable([{**rules, **{name: _or_rule(rules.get(name)) for name in names}}])


def _or_rule(rule: Any) -> Any:
    def lower(context: Any, *values: Any, **params: Any) -> Any:
        called = NotImplemented if rule is None else rule(context, *values, **params)
        program = context.program
        if program is None or program.eqns[-1] is not context.equation:
            return called
        whole = _whole(context, values, called)
        return called if whole is NotImplemented else whole

    return lower if rule is None else functools.wraps(rule)(lower)
