"""Mutable references: what Python does with them is what compiled programs do, and no more."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import DTypeError
from dovetail.experimental import checkify
from dovetail.ref import AbstractRef, Ref

pytestmark = pytest.mark.laws

Program = Callable[[Any, Any], Any]

START = np.array([0.5, -1.0, 2.0, 0.25], np.float32)
X = np.array([1.5, -0.5, 0.75], np.float32)

PROGRAMS: dict[str, Program] = {}
#: Those with a loop of unknown length, which has no reverse mode.
FORWARD_ONLY = {"while", "fori_traced"}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__.rstrip("_")] = function
    return function


@program
def reads(ref: Any, x: Any) -> Any:
    return ref[0] * x[1] + ref[...].sum() + ref[1:3] @ x[:2]


@program
def writes(ref: Any, x: Any) -> Any:
    ref[1] += x[0]
    ref[2:] = ref[:2] * x[1:]
    ref[-1] *= 3.0
    return ref[1] * ref[2]


@program
def whole(ref: Any, x: Any) -> Any:
    before = ref[...]
    ref[...] = jnp.sin(before) * x[0]
    ref[:] = ref[()] + 1.0
    ref[...] += before
    return before[0] * ref[3]


@program
def arrays_of_indices(ref: Any, x: Any) -> Any:
    ref[jnp.array([3, 0])] = x[:2] * ref[jnp.array([0, 1])]
    dt.ref.addupdate(ref, jnp.array([1, 1, 2]), x)
    return ref[jnp.array([True, False, True, False])].sum()


@program
def swaps(ref: Any, x: Any) -> Any:
    first = dt.ref.swap(ref, 0, x[0] * ref[1])
    second = dt.ref.swap(ref, slice(1, 3), ref[2:] * first)
    ref[3], last = first, ref[3]
    return first + second.sum() * last


@program
def parts(ref: Any, x: Any) -> Any:
    tail = ref.at[1:]
    tail[1] = x[0] * tail[0]
    tail.at[1:].addupdate(x[1:])
    tail.at[0].set(None, ref[3])
    return tail.at[:2].swap(0, x[2]) + tail[...].sum()


@program
def compiled(ref: Any, x: Any) -> Any:
    @dt.jit
    def double(given: Any) -> Any:
        given[0] = 2.0 * given[1]
        return given[0] + x[0]

    @dt.jit
    def outer(given: Any) -> Any:
        given[1] = double(given) * x[1]

    first = double(ref)
    outer(ref)
    return first * ref[1]


@program
def captured(ref: Any, x: Any) -> Any:
    @dt.jit
    def inner(y: Any) -> Any:
        ref[2] = y * ref[1]
        return ref[2] - y

    return dt.jit(lambda y: inner(y) + inner(2.0 * y))(x[0])


@program
def branch(ref: Any, x: Any) -> Any:
    def write(y: Any) -> Any:
        ref[0] = y * ref[1]
        return ref[2]

    out = lax.cond(x[0] > 0.0, write, lambda y: y * ref[3], x[1])
    return out + lax.cond(x[0] < 0.0, write, lambda y: y, x[2]) * ref[0]


@program
def branch_operand(ref: Any, x: Any) -> Any:
    def change(given: Any, y: Any) -> Any:
        given[3] = y
        return ref[3]

    return lax.cond(x[0] > 0.0, change, lambda given, y: given[0] * y, ref, x[1])


@program
def switches(ref: Any, x: Any) -> Any:
    def first(y: Any) -> Any:
        ref[0] = y
        return y

    def second(y: Any) -> Any:
        ref[1] = ref[0] + y
        return ref[1]

    total = 0.0
    for i in range(3):
        total += lax.switch(i, [first, second, lambda y: ref[1] * y], x[i])
    return total


@program
def scans(ref: Any, x: Any) -> Any:
    def body(carry: Any, element: Any) -> Any:
        ref[0] = carry * element + ref[1]
        return carry + element, ref[0] * ref[3]

    last, outs = lax.scan(body, 1.0, x)
    return last * outs.sum() + lax.scan(body, 1.0, x, reverse=True, unroll=2)[1][0]


@program
def reading_scan(ref: Any, x: Any) -> Any:
    return lax.scan(lambda c, e: (c * ref[1] + e, ref[2] * c), 1.0, x)[1].sum()


@program
def local(ref: Any, x: Any) -> Any:
    def body(carry: Any, element: Any) -> Any:
        own = dt.new_ref(carry)
        own[...] *= element
        ref[3] += own[...]
        return dt.freeze(own), None

    return lax.scan(body, 1.0, x)[0]


@program
def nested(ref: Any, x: Any) -> Any:
    def inner(i: Any, value: Any) -> Any:
        ref[i] += lax.cond(value > 1.0, lambda: ref[0] * value, lambda: value)
        return value * 1.5

    def outer(carry: Any, element: Any) -> Any:
        return lax.fori_loop(0, 3, inner, carry * element), ref[1]

    return lax.scan(outer, 1.25, x)[1].sum()


@program
def while_(ref: Any, x: Any) -> Any:
    def proceed(value: Any) -> Any:
        return (value < 20.0) & (ref[0] < 9.0)

    def body(value: Any) -> Any:
        ref[0] = ref[0] * 1.5 + 1.0
        return value + ref[1] * x[0] + 3.0

    return lax.while_loop(proceed, body, 1.0)


@program
def fori_traced(ref: Any, x: Any) -> Any:
    def body(i: Any, value: Any) -> Any:
        ref[i] = value * ref[1]
        return value + x[i]

    return lax.fori_loop(0, jnp.asarray(3), body, 0.5)


@program
def maps(ref: Any, x: Any) -> Any:
    def each(element: Any) -> Any:
        ref[1] += element * ref[0]
        return ref[1]

    return lax.map(each, x).sum()


@program
def elements(ref: Any, x: Any) -> Any:
    def body(carry: Any, element: Any) -> Any:
        place, factor = element["place"], element["factor"]
        place[...] = place[...] * factor + carry
        return carry + place[...], place[...] * x[0]

    first = {"place": ref, "factor": x[jnp.array([0, 2, 1, 0])]}
    total, outs = lax.scan(body, 1.0, first)
    back, _ = lax.scan(body, total, first, reverse=True, unroll=2)
    return back + outs.sum()


@program
def rows(ref: Any, x: Any) -> Any:
    table = dt.new_ref(ref[...].reshape(2, 2))

    def change(row: Any) -> Any:
        row[1] = row[0] * x[1]
        row.at[0].addupdate(x[2])
        return row[...].sum()

    total = lax.map(change, table)
    ref[...] = dt.freeze(table).ravel()
    return total @ x[:2]


@program
def read_elements(ref: Any, x: Any) -> Any:
    return lax.scan(lambda c, e: (c * e[...], e[...] + x[0]), 1.0, ref)[1].sum()


@program
def checkpointed(ref: Any, x: Any) -> Any:
    @dt.checkpoint
    def given(r: Any, y: Any) -> Any:
        r[0] = jnp.sin(r[1]) * y
        return r[0] * r[2]

    @dt.checkpoint
    def outside(y: Any) -> Any:
        ref[3] += jnp.cos(ref[0]) * y
        return ref[3]

    first = given(ref, x[0]) + outside(x[1])
    return first * given(ref, first) + outside(x[2])


@program
def checkpointed_in_a_loop(ref: Any, x: Any) -> Any:
    @dt.checkpoint
    def body(carry: Any, element: Any) -> Any:
        ref[1] = jnp.sin(ref[1] * carry)
        return carry * element, ref[1]

    return lax.scan(body, 1.5, x)[1].sum()


@program
def parts_as_arguments(ref: Any, x: Any) -> Any:
    @dt.jit
    def change(part: Any, y: Any) -> Any:
        part[0] = y * part[1]
        return part[...].sum()

    @dt.checkpoint
    def kept(part: Any, y: Any) -> Any:
        part[...] = jnp.sin(part[...] * y)
        return part[...].prod()

    first = change(ref.at[1:], x[0]) + change(ref.at[jnp.array([3, 0])], x[1])
    second = lax.cond(
        first > 0.0, lambda p, y: change(p.at[::-1], y), lambda p, y: kept(p, y), ref.at[:3], x[2]
    )
    return second + kept(ref.at[2:].at[1], x[1]) + kept(ref.at[..., None, -2:], first)


def closed_over(run: Program) -> Callable[..., Any]:
    """Result and last value, the reference being made outside of what is transformed."""

    def call(transform: Any, start: Any, x: Any) -> Any:
        return _with(lambda ref: transform(lambda y: run(ref, y))(jnp.asarray(x)), start)

    return call


def passed(run: Program) -> Callable[..., Any]:
    return lambda transform, start, x: _with(lambda ref: transform(run)(ref, jnp.asarray(x)), start)


def _with(call: Callable[[Any], Any], start: Any) -> Any:
    ref = dt.new_ref(start)
    out = call(ref)
    return out, dt.freeze(ref)


def pure(run: Program) -> Callable[..., Any]:
    """Result and last value as a function of first value and argument."""
    return lambda start, x: _with(lambda ref: run(ref, x), start)


def agree(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    for a, b in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


def in_python(run: Program, start: Any = START, x: Any = X) -> Any:
    with dt.disable_jit():
        return pure(run)(jnp.asarray(start), jnp.asarray(x))


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "eager": lambda f: f,
    "ahead of time": lambda f: lambda *args: dt.jit(f).lower(*args).compile()(*args),
    "twice": lambda f: _second_call(dt.jit(f)),
}


def _second_call(f: Any) -> Any:
    """A call of a program that was traced and compiled before, for other references."""

    def call(*args: Any) -> Any:
        f(*(dt.new_ref(a[...]) if isinstance(a, Ref) else a for a in args))
        return f(*args)

    return call


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_passed_reference_ends_as_in_python(name: str, transform: str) -> None:
    run = PROGRAMS[name]
    agree(passed(run)(TRANSFORMS[transform], START, X), in_python(run))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transform", [lambda f: f, dt.jit], ids=["eager", "jit"])
def test_captured_reference_ends_as_in_python(name: str, transform: Any) -> None:
    run = PROGRAMS[name]
    agree(closed_over(run)(transform, START, X), in_python(run))


PURE: dict[str, Callable[..., Any]] = {
    "jit": dt.jit,
    "checkpoint": dt.checkpoint,
    "vmap": lambda f: (
        lambda *args: dt.tree.map(
            lambda a: a[1], dt.vmap(f)(*(jnp.stack([jnp.cos(a), a]) for a in args))
        )
    ),
    "vmap of one": lambda f: (
        lambda start, x: dt.tree.map(
            lambda a: a[1], dt.vmap(f, in_axes=(None, 1))(start, jnp.stack([jnp.cos(x), x], 1))
        )
    ),
    "jvp": lambda f: lambda *args: dt.jvp(f, args, args)[0],
    "linearize": lambda f: lambda *args: dt.linearize(f, *args)[0],
    "checked": lambda f: lambda *args: checkify.checkify(f)(*args)[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transform", PURE)
def test_function_with_references_inside_is_pure(name: str, transform: str) -> None:
    run = PROGRAMS[name]
    found = PURE[transform](pure(run))(jnp.asarray(START), jnp.asarray(X))
    agree(found, in_python(run))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transform", ["jit", "jit inside"])
def test_derivatives_are_those_of_python(name: str, transform: str) -> None:
    run = PROGRAMS[name]

    def loss(start: Any, x: Any) -> Any:
        out, last = pure(run)(start, x)
        return out + (last * jnp.arange(1.0, 5.0)).sum()

    args = (jnp.asarray(START), jnp.asarray(X))
    derivative = dt.jacfwd if name in FORWARD_ONLY else dt.grad
    with dt.disable_jit():
        expected = dt.jacfwd(loss, (0, 1))(*args)
    found = {
        "jit": lambda: dt.jit(derivative(loss, (0, 1)))(*args),
        "jit inside": lambda: derivative(dt.jit(loss), (0, 1))(*args),
    }[transform]()
    agree(found, expected, 1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("compile_it", "axis"), [(False, 0), (True, 1)])
def test_mapped_reference_is_one_for_each_element(name: str, compile_it: bool, axis: int) -> None:
    run = PROGRAMS[name]
    starts = np.stack([START, START[::-1] * 0.5, np.cos(START)])
    xs = np.stack([X, X * 0.5, X + 0.25])
    expected = [in_python(run, start, x) for start, x in zip(starts, xs, strict=True)]
    ref = dt.new_ref(np.moveaxis(starts, 0, axis))
    mapped = dt.vmap(run, in_axes=(axis, 0))
    outs = (dt.jit(mapped) if compile_it else mapped)(ref, xs)
    for i, (out, last) in enumerate(expected):
        agree((outs[i], np.moveaxis(np.asarray(ref[...]), axis, 0)[i]), (out, last))


# ------------------------------------------------------------------- derivatives of what is outside


@pytest.mark.parametrize("transform", [lambda f: f, dt.jit])
def test_values_that_do_not_vary_are_plumbed_out_of_derivatives(transform: Any) -> None:
    seen = dt.new_ref(0.0)

    def f(x: Any) -> Any:
        y = jnp.sin(x)
        seen[...] += lax.stop_gradient(y)
        return y

    agree(transform(dt.grad(f))(0.5), np.cos(0.5))
    agree(seen[...], np.sin(0.5))
    agree(transform(lambda x: dt.jvp(f, (x,), (1.0,))[1])(0.5), np.cos(0.5))
    agree(seen[...], 2 * np.sin(0.5))


@pytest.mark.parametrize("transform", [lambda f: f, dt.jit])
def test_backward_rule_writes_to_a_reference_that_forward_rule_keeps(transform: Any) -> None:
    @dt.custom_vjp
    def stash(kept: Any, x: Any) -> Any:
        return x

    def forward(kept: Any, x: Any) -> Any:
        return x, {"kept": kept}

    def backward(residuals: Any, ct: Any) -> Any:
        residuals["kept"][...] = ct
        return None, ct

    stash.defvjp(forward, backward)
    kept = dt.new_ref(0.0)
    gradient = transform(dt.grad(lambda x, kept: jnp.sin(stash(kept, x))))(0.5, kept)
    agree((gradient, kept[...]), (np.cos(0.5), np.cos(0.5)))


def test_checks_see_references() -> None:

    ref = dt.new_ref(1.0)

    @dt.jit
    def f(x: Any) -> Any:
        ref[...] += x
        checkify.check(ref[...] < 3.0, "too much: {}", ref[...])
        return x

    assert checkify.checkify(f)(1.0)[0].get() is None
    message = checkify.checkify(f)(1.5)[0].get()
    assert message is not None
    assert message.startswith("too much: 3.5")
    assert ref[...] == 3.5


# ------------------------------------------------------------------------------ memory and programs


def test_compiled_function_changes_memory_in_place() -> None:
    ref = dt.new_ref(jnp.zeros(1000))

    @dt.jit
    def step(i: Any) -> None:
        ref[i] += 1.0

    step(0)
    place = ref.unsafe_buffer_pointer()
    for i in range(5):
        step(i)
    assert ref.unsafe_buffer_pointer() == place
    agree(ref[:6], np.array([2.0, 1.0, 1.0, 1.0, 1.0, 0.0]))


def test_what_was_read_or_given_stays_as_it_was() -> None:
    start = jnp.arange(4.0)
    ref = dt.new_ref(start)
    step = dt.jit(lambda r: dt.ref.addupdate(r, ..., 1.0))
    held: list[tuple[Any, np.ndarray[Any, Any]]] = [(start, np.arange(4.0))]
    for index in (..., slice(None), (), (Ellipsis,), None, slice(0, 4), jnp.arange(4)):
        step(ref)
        value = dt.ref.get(ref, index)
        held.append((value, np.array(value)))
        step(ref)
    ref[...] = start
    step(ref)
    other = dt.new_ref(ref[...])
    step(other)
    for value, copy in held:
        np.testing.assert_array_equal(value, copy)
    agree(ref[...] + 1.0, other[...])


def test_one_program_serves_references_of_one_type() -> None:
    traced = []

    @dt.jit
    def step(ref: Any, x: Any) -> Any:
        traced.append(ref.shape)
        ref[0] += x
        return ref[0]

    for size in (2, 3, 2, 3, 2):
        step(dt.new_ref(jnp.zeros(size)), 1.0)
    assert traced == [(2,), (3,)]


def test_captured_reference_is_no_constant() -> None:
    ref = dt.new_ref(0)
    traced = []

    @dt.jit
    def count() -> Any:
        traced.append(1)
        ref[...] += 1
        return ref[...]

    assert [int(count()) for _ in range(3)] == [1, 2, 3]
    ref[...] = 10
    assert int(count()) == 11
    assert len(traced) == 1


def test_nothing_is_written_when_a_function_fails() -> None:
    ref = dt.new_ref(jnp.arange(3.0))

    @dt.jit
    def fails_tracing(x: Any) -> Any:
        ref[0] = x
        raise KeyError("user")

    @dt.jit
    def fails_running(x: Any) -> Any:
        ref[0] = x
        dt.debug.check(x < 0.0, "negative only")
        return x

    @dt.jit
    def makes_nan(x: Any) -> Any:
        ref[0] = x
        return jnp.log(-x)

    with pytest.raises(KeyError):
        fails_tracing(5.0)
    with pytest.raises(ValueError, match="negative only"):
        dt.block_until_ready(fails_running(5.0))
    with dt.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        makes_nan(5.0)
    agree(ref[...], np.arange(3.0))


def test_reference_that_nobody_has_is_gone() -> None:
    ref: Any = dt.new_ref(jnp.zeros(10))
    step = dt.jit(lambda r: dt.ref.addupdate(r, 0, 1.0))
    step(ref)
    gone = weakref.ref(ref)
    del ref
    gc.collect()
    assert gone() is None


# --------------------------------------------------------------------------------- types and forms

WRITTEN: dict[str, tuple[Any, Any, bool]] = {
    "float of int": (np.float32(0), 4, True),
    "float of bool": (np.float32(0), True, True),
    "int of float": (np.int32(0), 1.5, False),
    "int of int": (np.int32(0), 7, True),
    "int8 of int32": (np.int8(0), np.int32(7), False),
    "float16 of float": (np.float16(0), 1.5, True),
    "float16 of float32": (np.float16(0), np.float32(1.5), False),
    "float of complex": (np.float32(0), 1j, False),
    "complex of float": (np.complex64(0), np.float32(2), True),
    "bool of int": (np.bool_(False), 1, False),
    "uint8 of int": (np.uint8(0), 3, True),
    "float32 of float16": (np.float32(0), np.float16(2), True),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_dtype_of_a_reference_stays(case: str) -> None:
    start, value, fits = WRITTEN[case]
    for write in (
        lambda r: r.__setitem__(..., value),
        dt.jit(lambda r: r.__setitem__(..., value)),
        lambda r: dt.jit(lambda: r.set(None, value))(),
        lambda r: r.at[...].set(None, value),
        lambda r: r.at[...].swap(..., value),
        lambda r: dt.ref.addupdate(r, ..., value),
        lambda r: dt.ref.swap(r, ..., value),
    ):
        ref = dt.new_ref(start)
        if fits:
            write(ref)
            assert ref.dtype == ref[...].dtype == np.dtype(type(start))
            assert not ref[...].aval.weak_type
            assert ref[...] == value
        else:
            with pytest.raises(DTypeError, match=rf"holds {np.dtype(type(start))}, .*astype"):
                write(ref)


def test_parts_are_written_as_the_whole_is() -> None:
    index = jnp.array([0, 0, 1])
    for place in (
        dt.new_ref(jnp.zeros(3, int)),
        dt.new_ref(jnp.zeros((2, 3), int)).at[1],
        dt.new_ref(jnp.zeros((2, 3), int)).at[1].at[...],
    ):
        assert (place.shape, place.dtype, place.ndim, place.size) == ((3,), np.int32, 1, 3)
        place.addupdate(2, index)
        place[2] = 7
        assert place.swap(0, 5) == 4
        agree(place[...], np.array([5, 2, 7]))
    part = dt.new_ref(jnp.zeros((2, 3), int))
    with pytest.raises(TypeError, match=r"a part of the mutable reference .* holds int32"):
        part.at[0].addupdate(0.5, 1)


def test_forms() -> None:
    ref = dt.new_ref(jnp.arange(6).reshape(2, 3))
    assert repr(ref) == "Ref([[0, 1, 2],\n     [3, 4, 5]], dtype=int32)"
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.int32, 2, 6, 2)
    assert repr(ref.aval) == "Ref{i32[2,3]}"
    assert ref.aval == AbstractRef(ref[...].aval) != AbstractRef(ref[0].aval)
    assert [row.tolist() for row in ref] == [[0, 1, 2], [3, 4, 5]]
    assert ref.sharding == ref[...].sharding
    assert ref.committed is False
    assert dt.empty_ref(dt.ShapeDtypeStruct((2,), np.int8)).aval.short_name() == "Ref{i8[2]}"
    shown = []
    dt.jit(lambda r: shown.append(repr(r)))(ref)
    assert shown == ["Ref{i32[2,3]}"]
    dt.freeze(ref)
    assert repr(ref).startswith("Ref(<frozen at test_mutable_references.py:")


def test_types_of_programs_with_references() -> None:
    ref = dt.new_ref(jnp.zeros(3))

    def f(given: Any, x: Any) -> Any:
        given[0] = x
        ref[1] = x
        return x * 2

    struct = dt.ShapeDtypeStruct((2,), np.float32, is_ref=True)
    assert dt.eval_shape(f, struct, 1.0).shape == ()
    closed, shape = dt.make_jaxpr(f, return_shape=True)(dt.new_ref(jnp.ones(2)), 1.0)
    assert shape.shape == ()
    assert [v.aval.shape for v in closed.jaxpr.outvars] == [(), (2,), (3,)]
    assert [a.shape for a in closed.in_avals] == [(2,), ()]
    lowered = dt.jit(f).lower(struct, 1.0)
    assert lowered.in_avals[0][0] == dt.new_ref(jnp.ones(2)).aval
    assert lowered.out_info.shape == ()
    agree(ref[...], np.zeros(3))
    keys = dt.new_ref(dt.random.key(0))
    step = dt.jit(lambda: keys.set(None, dt.random.split(keys[...])[0]))
    step()
    assert dt.random.key_data(keys[...]).tolist() != dt.random.key_data(dt.random.key(0)).tolist()


def test_reference_shares_no_memory_with_numpy() -> None:
    array = np.zeros(3, np.float32)
    ref = dt.new_ref(array)
    array[0] = 5
    ref[1] = 1.0
    assert np.asarray(ref[...]).tolist() == [0, 1, 0]
    assert array.tolist() == [5, 0, 0]
