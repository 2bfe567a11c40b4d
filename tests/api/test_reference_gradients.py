"""vjp with respect to mutable references: what is written is differentiated, and the gradient is
added to a reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.ad import DidntWant, DontWant, GradRef, GradValue
from dovetail.errors import NonArrayArgumentError

pytestmark = pytest.mark.laws

W = np.array([[1.0, 0.5, -0.25], [0.125, -1.0, 0.75], [0.5, 0.25, 1.5]], np.float32)
X = np.array([0.5, -1.0, 2.0], np.float32)


def agree(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    assert dt.tree.structure(found) == dt.tree.structure(expected)
    for a, b in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype != dt.float0:
            np.testing.assert_allclose(
                np.asarray(a, np.complex128), np.asarray(b, np.complex128), tolerance, tolerance
            )


def cotangent_of(result: Any) -> Any:
    return dt.tree.map(
        lambda y: jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape), result
    )


def squares(ref: Any) -> Any:
    return ref[...] ** 2


def overwrites(ref: Any) -> Any:
    ref[...] = jnp.sin(ref[...])
    return ref[...] ** 2


def elements(ref: Any) -> Any:
    ref[0] *= ref[1]
    before = ref[2]
    ref[2] = ref[0] * before
    return ref[...].sum() * before


def loops(ref: Any) -> Any:
    def turn(i: Any, x: Any) -> Any:
        ref[i] = jnp.sin(ref[i]) * x
        return x + ref[2 - i]

    return lax.fori_loop(0, 3, turn, 1.0)


def scans(ref: Any) -> Any:
    def turn(carry: Any, x: Any) -> Any:
        ref[1:] += x * ref[:2]
        return carry * ref[0], ref[1]

    return lax.scan(turn, ref[2], jnp.arange(3.0))


def branches(ref: Any) -> Any:
    def yes() -> Any:
        ref[...] = ref[...] ** 2
        return ref[0]

    return lax.cond(ref[0] > 0, yes, lambda: ref[1])


def compiled(ref: Any) -> Any:
    return dt.jit(overwrites)(ref) + dt.jit(squares)(ref)


def captured_and_compiled(ref: Any) -> Any:
    @dt.jit
    def f(x: Any) -> Any:
        ref[0] += x
        return ref[...] * x

    return f(ref[1])


def mapped(ref: Any) -> Any:
    def each(part: Any) -> Any:
        part[...] = jnp.sin(part[...])
        return part[...] ** 2

    return dt.vmap(each)(ref)


def writes_only(ref: Any) -> Any:
    ref[...] = jnp.arange(3.0)
    return ref[...] * 2


def ignores(ref: Any) -> Any:
    return jnp.arange(3.0)


def both_ways(ref: Any) -> Any:
    y, f_vjp = dt.vjp(overwrites, ref)
    gradient = dt.new_ref(jnp.zeros(3))
    f_vjp.with_refs(gradient)(y)
    return gradient[...] * ref[...]


def stops(ref: Any) -> Any:
    ref[...] = lax.stop_gradient(ref[...]) * ref[...]
    return ref[...] * 3


PROGRAMS = [
    squares,
    overwrites,
    elements,
    loops,
    scans,
    branches,
    compiled,
    captured_and_compiled,
    mapped,
    writes_only,
    ignores,
    both_ways,
    stops,
]
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def pure(program: Any) -> Callable[[Any], Any]:
    """Result and last value, as a function of the first value."""

    def function(start: Any) -> Any:
        ref = dt.new_ref(start)
        out = program(ref)
        return out, dt.freeze(ref)

    return function


def through_references(program: Any, start: Any, of_last: Any) -> Any:
    """Result, last value and gradient, by vjp with respect to a reference."""
    ref, gradient = dt.new_ref(start), dt.new_ref(of_last)
    out, f_vjp = dt.vjp(program, ref)
    last = ref[...]
    ref[...] = jnp.zeros(3)  # what comes later is of no account
    placeholder = f_vjp.with_refs(gradient)(cotangent_of(out))
    assert placeholder == (GradRef(),)
    return out, last, gradient[...]


@programs
@pytest.mark.parametrize("transform", [lambda f: f, dt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_references_are_differentiated(program: Any, transform: Any, scale: float) -> None:
    of_last = scale * jnp.cos(jnp.arange(3.0))
    (out, last), pullback = dt.vjp(pure(program), X)
    (expected,) = pullback((cotangent_of(out), of_last))
    found = transform(lambda start: through_references(program, start, of_last))(jnp.asarray(X))
    agree(found, (out, last, expected))


@programs
def test_references_are_differentiated_in_batches_and_twice(program: Any) -> None:
    zeros = jnp.zeros(3)
    xs = jnp.stack([X, jnp.cos(X)])
    found = dt.vmap(lambda x: through_references(program, x, zeros))(xs)
    for i, x in enumerate(xs):
        expected = through_references(program, x, zeros)
        agree(dt.tree.map(lambda a, i=i: a[i], found), expected)

    def plain(x: Any) -> Any:
        (out, last), pullback = dt.vjp(pure(program), x)
        return jnp.cos(pullback((cotangent_of(out), zeros))[0]).sum() + last.sum()

    def by_references(x: Any) -> Any:
        _, last, gradient = through_references(program, x, zeros)
        return jnp.cos(gradient).sum() + last.sum()

    agree(dt.grad(by_references)(X), dt.grad(plain)(X))


@programs
def test_nothing_is_leaked(program: Any) -> None:
    with dt.check_tracer_leaks(True):
        through_references(program, jnp.asarray(X), jnp.zeros(3))


def test_references_and_arrays_together() -> None:
    def f(state: Any, params: Any, count: Any, shared: Any) -> Any:
        count[...] += 1
        state["h"][...] = jnp.tanh(params["w"] @ state["h"][...] + shared[...])
        return state["h"][...] * params["b"]

    state = {"h": dt.new_ref(jnp.asarray(X))}
    params = {"w": jnp.asarray(W), "b": jnp.asarray(X)}
    count, shared = dt.new_ref(0), dt.new_ref(0.5)

    def as_values(h: Any, params: Any, shared: Any) -> Any:
        h = jnp.tanh(params["w"] @ h + shared)
        return h * params["b"], h

    (out, last), pullback = dt.vjp(as_values, X, params, 0.5)
    of_h, of_params, of_shared = pullback((jnp.ones(3), jnp.zeros(3)))
    y, f_vjp = dt.vjp(f, state, params, count, shared)
    agree((y, state["h"][...]), (out, last))
    assert int(count[...]) == 1
    gradient, total = dt.new_ref(jnp.zeros(3)), dt.new_ref(1.0)
    entries = ({"h": gradient}, {"w": GradValue(), "b": DontWant()}, DontWant(), total)
    found = f_vjp.with_refs(*entries)(jnp.ones(3))
    assert (found[0], found[2:]) == ({"h": GradRef()}, (DidntWant(), GradRef()))
    agree(found[1]["w"], of_params["w"])
    agree((gradient[...], total[...]), (of_h, of_shared + 1.0))
    assert int(count[...]) == 1  # the backward pass runs nothing again


def test_steps_backwards_through_a_state() -> None:
    """The reference for the gradient is the cotangent of the state: steps are undone in turn."""

    def step(state: Any, x: Any) -> None:
        state[...] = jnp.sin(state[...] * x)

    state = dt.new_ref(0.5)
    pullbacks = [dt.vjp(step, state, x)[1] for x in (1.5, -2.0, 0.75)]
    of_state, of_x = dt.new_ref(1.0), dt.new_ref(0.0)
    for f_vjp in reversed(pullbacks):
        f_vjp.with_refs(of_state, of_x)(None)

    def run(start: Any, scale: Any) -> Any:
        for x in (1.5, -2.0, 0.75):
            start = jnp.sin(start * (x + scale))
        return start

    expected = dt.grad(run, (0, 1))(0.5, 0.0)
    agree((of_state[...], of_x[...]), dt.tree.map(jnp.asarray, expected))


def test_references_that_do_not_vary_pass_through() -> None:
    count = dt.new_ref(1)
    _, f_vjp = dt.vjp(lambda ref, x: ref[...] * x, count, 3.0)
    of_count, of_x = f_vjp(1.0)
    assert (of_count.dtype, float(of_x)) == (dt.float0, 1.0)
    ref = dt.new_ref(2.0)
    _, f_vjp = dt.vjp(lambda ref, x: ref[...] * x, ref, 3.0, in_nzs=(False, True))
    assert [float(g) for g in f_vjp(1.0)] == [0.0, 2.0]
    found = f_vjp.with_refs(DontWant(), GradValue())(1.0)
    assert found[0] == DidntWant()


def test_reference_holds_its_last_value_also_after_an_error() -> None:
    ref = dt.new_ref(2.0)

    def fails(x: Any) -> Any:
        x[...] = 3.0
        raise KeyError("mine")

    with pytest.raises(KeyError):
        dt.vjp(fails, ref)
    assert float(ref[...]) == 2.0
    ref[...] += 1.0  # it can be used again
    assert float(dt.vjp(lambda x: x[...] ** 2, ref)[0]) == 9.0


# Errors


def _of_reference(**options: Any) -> Any:
    return dt.vjp(squares, dt.new_ref(2.0), **options)[1]


def _uses_twice() -> Any:
    ref = dt.new_ref(2.0)

    def f(x: Any) -> Any:
        x[...] = 3.0
        return ref[...]

    return dt.vjp(f, ref)


def _maps_and_uses() -> Any:
    ref = dt.new_ref(jnp.zeros(3))
    return dt.vmap(lambda part: part[...] + ref[0])(ref)


def _two_states() -> Any:
    a, b, gradient = dt.new_ref(1.0), dt.new_ref(1.0), dt.new_ref(0.0)

    def f(a: Any, b: Any) -> Any:
        a[...] = b[...] = a[...] * b[...]
        return a[...]

    return dt.vjp(f, a, b)[1].with_refs(gradient, gradient)


def _same_twice() -> Any:
    ref = dt.new_ref(2.0)
    return dt.vjp(lambda a, b: a[...] * b[...], ref, ref)


def _written_without_tangent() -> Any:
    def f(x: Any, ref: Any) -> Any:
        ref[...] = x * 2
        return x

    return dt.vjp(f, 1.0, dt.new_ref(0.0), in_nzs=(True, False))


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "gradient of a reference as a value": (
        lambda: _of_reference()(1.0),
        ValueError,
        "ref of squares is a mutable reference, so that its gradient cannot be returned",
    ),
    "gradient of a reference asked for as a value": (
        lambda: _of_reference().with_refs(GradValue()),
        ValueError,
        r"f_vjp.with_refs\(gradient_ref\)\(cotangent\)",
    ),
    "grad of a reference": (
        lambda: dt.grad(squares)(dt.new_ref(2.0)),
        TypeError,
        r"grad of squares cannot differentiate with respect to ref.*f_vjp.with_refs",
    ),
    "linearize at a reference": (
        lambda: dt.linearize(squares, dt.new_ref(2.0)),
        NonArrayArgumentError,
        "Argument ref of linearize of squares must be an array",
    ),
    "a reference twice": (_same_twice, ValueError, "vjp of <lambda> was passed .* twice"),
    "a reference by two names": (_uses_twice, ValueError, "was passed to vjp of f, which may not"),
    "a mapped reference by two names": (_maps_and_uses, ValueError, "was passed to vmap of"),
    "one gradient of two states": (_two_states, ValueError, "give each its own"),
    "written by what does not vary": (_written_without_tangent, ValueError, "stop_gradient"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    run, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        run()


# ------------------------------------------------------- functions with rules that read references


def _with_jvp(ref: Any) -> Any:
    @dt.custom_jvp
    def f(r: Any, x: Any) -> Any:
        return jnp.sin((ref if r is None else r)[1] * x)

    def rule(primals: Any, tangents: Any) -> Any:
        r, x = primals
        return f(r, x), 7.0 * (ref if r is None else r)[1] * x * tangents[1]

    f.defjvp(rule)
    return f


def _with_vjp(ref: Any) -> Any:
    @dt.custom_vjp
    def f(r: Any, x: Any) -> Any:
        return jnp.sin((ref if r is None else r)[1] * x)

    def forward(r: Any, x: Any) -> Any:
        return f(r, x), ((ref if r is None else r)[1], x)

    f.defvjp(forward, lambda kept, g: (None, 7.0 * g * kept[0] * kept[1]))
    return f


def _in_a_loop(f: Any) -> Any:
    return lambda x: lax.scan(lambda c, y: (c + f(x * y), None), 0.0, jnp.arange(1.0, 3.0))[0]


#: What is done to `sin(k * x)`, whose derivative the rules say is `7 * k * x`.
READING: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "eager": (lambda f: f(0.5), lambda k: np.sin(k * 0.5)),
    "jit": (lambda f: dt.jit(f)(0.5), lambda k: np.sin(k * 0.5)),
    "loop": (lambda f: _in_a_loop(f)(0.5), lambda k: np.sin(k * 0.5) + np.sin(k)),
    "vmap": (lambda f: dt.jit(dt.vmap(f))(jnp.arange(2.0))[1], np.sin),
    "grad": (lambda f: dt.grad(f)(0.5), lambda k: 3.5 * k),
    "jit of grad": (lambda f: dt.jit(dt.grad(f))(0.5), lambda k: 3.5 * k),
    "grad of jit": (lambda f: dt.grad(dt.jit(f))(0.5), lambda k: 3.5 * k),
    "grad of jit of jit": (lambda f: dt.grad(dt.jit(dt.jit(f)))(0.5), lambda k: 3.5 * k),
    "jit of grad of jit": (lambda f: dt.jit(dt.grad(dt.jit(f)))(0.5), lambda k: 3.5 * k),
    "grad of checkpoint": (lambda f: dt.grad(dt.checkpoint(f))(0.5), lambda k: 3.5 * k),
    "grad of cond": (
        lambda f: dt.grad(lambda x: lax.cond(x > 0.0, f, lambda x: x, x))(0.5),
        lambda k: 3.5 * k,
    ),
    "grad of a loop": (lambda f: dt.grad(_in_a_loop(f))(0.5), lambda k: 3.5 * k + 14.0 * k),
    "vmap of grad of jit": (
        lambda f: dt.vmap(dt.grad(dt.jit(f)))(jnp.arange(2.0))[1],
        lambda k: 7.0 * k,
    ),
    "grad of jit of vmap": (
        lambda f: dt.grad(lambda x: dt.jit(dt.vmap(f))(x * jnp.arange(2.0)).sum())(1.0),
        lambda k: 7.0 * k,
    ),
}


@pytest.mark.parametrize("make", [_with_jvp, _with_vjp], ids=["jvp", "vjp"])
@pytest.mark.parametrize("passed", [True, False], ids=["passed", "captured"])
@pytest.mark.parametrize("name", READING)
def test_functions_with_rules_read_references(name: str, passed: bool, make: Any) -> None:
    transform, expected = READING[name]
    ref = dt.new_ref(jnp.arange(4.0))
    function = make(ref)
    given = ref if passed else None

    def run() -> Any:
        return transform(lambda x: function(given, x))

    np.testing.assert_allclose(run(), expected(1.0), 1e-5)
    ref[1] = 2.0
    np.testing.assert_allclose(run(), expected(2.0), 1e-5)


# ------------------------------------------------------ functions with rules that write references


def _writing_jvp(ref: Any, places: str) -> Any:
    @dt.custom_jvp
    def f(r: Any, x: Any) -> Any:
        if "body" in places:
            (ref if r is None else r)[...] += 10.0 * x
        return 2.0 * x

    def rule(primals: Any, tangents: Any) -> Any:
        r, x = primals
        if "rule" in places:
            (ref if r is None else r)[...] += 100.0 * x
        return 2.0 * x, 7.0 * tangents[1]

    f.defjvp(rule)
    return f


def _writing_vjp(ref: Any, places: str) -> Any:
    @dt.custom_vjp
    def f(r: Any, x: Any) -> Any:
        if "body" in places:
            (ref if r is None else r)[...] += 10.0 * x
        return 2.0 * x

    def forward(r: Any, x: Any) -> Any:
        if "rule" in places:
            (ref if r is None else r)[...] += 100.0 * x
        return 2.0 * x, None

    f.defvjp(forward, lambda _, g: (None, 7.0 * g))
    return f


def _twice(f: Any) -> Any:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


#: What is done to the function at 3; result, what its body adds to the reference, what its rule.
WRITING: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "eager": (lambda f: f(3.0), 6.0, 30.0, 0.0),
    "jit": (lambda f: dt.jit(f)(3.0), 6.0, 30.0, 0.0),
    "jit of jit": (lambda f: dt.jit(dt.jit(f))(3.0), 6.0, 30.0, 0.0),
    "loop": (lambda f: _twice(f)(3.0), 12.0, 90.0, 0.0),
    "cond": (lambda f: lax.cond(True, f, lambda x: x, 3.0), 6.0, 30.0, 0.0),
    "checkpoint": (lambda f: dt.checkpoint(f)(3.0), 6.0, 30.0, 0.0),
    "grad": (lambda f: dt.grad(f)(3.0), 7.0, 0.0, 300.0),
    "jit of grad": (lambda f: dt.jit(dt.grad(f))(3.0), 7.0, 0.0, 300.0),
    "grad of jit": (lambda f: dt.grad(dt.jit(f))(3.0), 7.0, 0.0, 300.0),
    "grad of jit of jit": (lambda f: dt.grad(dt.jit(dt.jit(f)))(3.0), 7.0, 0.0, 300.0),
    "jit of grad of jit": (lambda f: dt.jit(dt.grad(dt.jit(f)))(3.0), 7.0, 0.0, 300.0),
    "grad of a loop": (lambda f: dt.grad(_twice(f))(3.0), 49.0, 0.0, 900.0),
    "jit of grad of a loop": (lambda f: dt.jit(dt.grad(_twice(f)))(3.0), 49.0, 0.0, 900.0),
    "grad of a loop in jit": (lambda f: dt.grad(dt.jit(_twice(f)))(3.0), 49.0, 0.0, 900.0),
    "grad of cond": (
        lambda f: dt.grad(lambda x: lax.cond(x > 0.0, f, lambda x: x, x))(3.0),
        7.0,
        0.0,
        300.0,
    ),
    "grad of checkpoint": (lambda f: dt.grad(dt.checkpoint(f))(3.0), 7.0, 0.0, 300.0),
    "grad of grad of jit": (
        lambda f: dt.grad(lambda x: x * dt.grad(dt.jit(f))(3.0))(1.0),
        7.0,
        0.0,
        300.0,
    ),
}


@pytest.mark.parametrize("make", [_writing_jvp, _writing_vjp], ids=["jvp", "vjp"])
@pytest.mark.parametrize("passed", [True, False], ids=["passed", "captured"])
@pytest.mark.parametrize("places", ["body", "body and rule", "rule"])
@pytest.mark.parametrize("name", WRITING)
def test_functions_with_rules_write_references(
    name: str, places: str, passed: bool, make: Any
) -> None:
    if places == "rule" and not passed:
        places = "body and rule"  # what only a rule captures is unknown when the function is traced
    transform, result, by_body, by_rule = WRITING[name]
    ref = dt.new_ref(jnp.float32(1.0))
    function = make(ref, places)
    given = ref if passed else None
    added = by_body * ("body" in places) + by_rule * ("rule" in places)
    for times in (1, 2):
        np.testing.assert_allclose(transform(lambda x: function(given, x)), result)
        np.testing.assert_allclose(ref[...], 1.0 + times * added)


@pytest.mark.parametrize("make", [_writing_jvp, _writing_vjp], ids=["jvp", "vjp"])
@pytest.mark.parametrize("compiled", [False, True])
def test_rules_write_references_made_in_the_differentiated_function(
    compiled: bool, make: Any
) -> None:
    function = make(None, "body and rule")

    def outer(x: Any) -> Any:
        ref = dt.new_ref(jnp.float32(0.0))
        y = function(ref, x)
        return y + ref[...]

    chosen = dt.jit(outer) if compiled else outer
    assert chosen(3.0) == 36.0
    assert dt.value_and_grad(chosen)(3.0) == (306.0, 7.0)
    assert dt.jit(dt.value_and_grad(chosen))(3.0) == (306.0, 7.0)


@pytest.mark.parametrize("make", [_writing_jvp, _writing_vjp], ids=["jvp", "vjp"])
def test_rules_write_references_that_are_mapped(make: Any) -> None:
    function = make(None, "body and rule")
    ref = dt.new_ref(jnp.zeros(3))
    np.testing.assert_array_equal(dt.vmap(function)(ref, jnp.arange(3.0)), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(ref[...], [0.0, 10.0, 20.0])
    gradients = dt.vmap(dt.grad(dt.jit(lambda x, r: function(r, x))))(jnp.arange(3.0), ref)
    np.testing.assert_array_equal(gradients, [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(ref[...], [0.0, 110.0, 220.0])
