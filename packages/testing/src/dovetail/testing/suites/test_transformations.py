"""Transformed programs: gradients, batches and calls of small programs of every kind.

The device's results are compared with the same transformed program, evaluated on the host by the
`reference` rules of its primitives, without the backend; and with mathematical laws. A failing test
names the program (in `dovetail.testing.programs`) and the transformation. If a test of the
primitives suite fails as well, look at that one first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
from dovetail import export, lax
from dovetail._core.transform.derived import reference_of
from dovetail.custom_batching import custom_vmap
from dovetail.custom_derivatives import linear_call
from dovetail.experimental import checkify
from dovetail.experimental.xla_metadata import xla_metadata_call
from dovetail.testing.backend import BackendUnderTest, read
from dovetail.testing.capabilities import missing_text
from dovetail.testing.numerics import directional_derivative, far
from dovetail.testing.programs import PROGRAMS, Program, loss

NDArray = np.ndarray[Any, Any]
Function = Callable[..., Any]
Backend = BackendUnderTest
full = pytest.mark.dovetail_full


def leaves(tree: Any) -> list[NDArray]:
    """The arrays in a tree, on the host."""
    return [read(leaf) for leaf in dt.tree.leaves(tree)]


def referred(function: Function, args: Sequence[Any]) -> list[NDArray]:
    """The results of a function, by the references of its primitives: without the backend."""
    closed = dt.make_jaxpr(function)(*args)
    consts = [read(c) for c in closed.consts]
    results = reference_of(closed.replace(consts=consts), leaves(args))
    return [np.asarray(r) for r in results]


def agree(
    backend: Backend, got: Any, want: Sequence[NDArray], what: str, tolerance: float = 1.0
) -> None:
    """Assert that results agree as closely as the backend's floats allow."""
    results = leaves(got)
    assert len(results) == len(want), f"{what}: {len(results)} results instead of {len(want)}"
    for number, (a, b) in enumerate(zip(results, want, strict=True)):
        assert a.dtype == b.dtype, f"{what}: result {number} is {a.dtype} instead of {b.dtype}"
        wrong = far(a, b, backend.within(tolerance))
        assert not wrong, f"{what}: result {number}: {wrong}"


def directions(args: Sequence[Any], seed: int = 1) -> tuple[Any, ...]:
    """Numbers between 0.5 and 1 of either sign, in trees like those of the arguments."""
    generator = np.random.default_rng(seed)

    def draw(x: NDArray) -> NDArray:
        drawn = generator.uniform(0.5, 1, x.shape) * generator.choice([-1.0, 1.0], x.shape)
        return np.asarray(drawn, x.dtype)

    return tuple(dt.tree.map(draw, arg) for arg in args)


def batches(args: Sequence[Any], size: int = 3) -> tuple[Any, ...]:
    """Arguments with a leading dimension: each element a little smaller than the one before."""

    def stack(x: NDArray) -> NDArray:
        return np.stack([x * x.dtype.type(1 - i / 16) for i in range(size)])

    return tuple(dt.tree.map(stack, arg) for arg in args)


@pytest.fixture
def program(request: pytest.FixtureRequest, dovetail_backend: Backend) -> Program:
    """One of the programs, if the backend supports it."""
    found = PROGRAMS[request.param]
    for name in found.needs:
        if name not in dovetail_backend.capabilities:
            pytest.skip(missing_text(dovetail_backend.platform, name))
    return found


def programs(*, forward: bool = False, reverse: bool = False) -> pytest.MarkDecorator:
    """A decorator that parametrizes a test over the programs with some kinds of derivatives."""
    return pytest.mark.parametrize(
        "program",
        [
            pytest.param(name, marks=() if program.essential else full, id=name)
            for name, program in PROGRAMS.items()
            if (program.forward or not forward) and (program.reverse or not reverse)
        ],
        indirect=True,
    )


def differentiated(function: Function, args: Sequence[Any]) -> Function:
    """The gradient, in all arguments, of a number computed from a function's results."""
    return dt.grad(loss(function), argnums=tuple(range(len(args))))


#: From a function and its arguments to another function and its arguments; and the derivatives that
#: the function needs.
TRANSFORMATIONS: Final[dict[str, tuple[Callable[..., tuple[Function, tuple[Any, ...]]], str]]] = {
    "nothing": (lambda f, a: (f, a), ""),
    "jvp": (lambda f, a: (lambda *x: dt.jvp(f, x, directions(a)), a), "forward"),
    "linearize": (
        lambda f, a: (lambda *x: dt.linearize(f, *x)[1](*directions(a)), a),
        "forward",
    ),
    "grad": (lambda f, a: (differentiated(f, a), a), "reverse"),
    "value_and_grad": (
        lambda f, a: (dt.value_and_grad(loss(f), argnums=tuple(range(len(a)))), a),
        "reverse",
    ),
    "grad of checkpoint": (lambda f, a: (differentiated(dt.checkpoint(f), a), a), "reverse"),
    "grad of jit": (lambda f, a: (differentiated(dt.jit(f), a), a), "reverse"),
    "jvp of grad": (
        lambda f, a: (lambda *x: dt.jvp(differentiated(f, a), x, directions(a))[1], a),
        "forward reverse",
    ),
    "vmap": (lambda f, a: (dt.vmap(f), batches(a)), ""),
    "vmap, one argument": (
        lambda f, a: (
            dt.vmap(f, in_axes=(0, *[None] * (len(a) - 1)), out_axes=-1),
            (batches(a[:1])[0], *a[1:]),
        ),
        "",
    ),
    "vmap of vmap": (lambda f, a: (dt.vmap(dt.vmap(f)), batches(batches(a, 2), 2)), ""),
    "vmap of jvp": (
        lambda f, a: (dt.vmap(lambda *x: dt.jvp(f, x, directions(a))), batches(a)),
        "forward",
    ),
    "vmap of grad": (lambda f, a: (dt.vmap(differentiated(f, a)), batches(a)), "reverse"),
    "grad of vmap": (lambda f, a: (differentiated(dt.vmap(f), a), batches(a)), "reverse"),
}


def _transformed() -> list[Any]:
    """Each program with each transformation that it supports."""
    cases = []
    for name, program in PROGRAMS.items():
        for transformation, (_, derivatives) in TRANSFORMATIONS.items():
            if ("forward" in derivatives and not program.forward) or (
                "reverse" in derivatives and not program.reverse
            ):
                continue
            essential = program.essential and transformation in ("nothing", "grad", "vmap")
            marks = () if essential else full
            cases.append(
                pytest.param(name, transformation, marks=marks, id=f"{name}-{transformation}")
            )
    return cases


@pytest.mark.parametrize(("program", "transformation"), _transformed(), indirect=["program"])
def test_transformed_programs(
    dovetail_backend: Backend, program: Program, transformation: str
) -> None:
    """A transformed program, compiled for the device, matches the references of its primitives on
    the host."""
    function, args = TRANSFORMATIONS[transformation][0](
        program.function, dovetail_backend.fitted(program.args)
    )
    args = dovetail_backend.fitted(args)
    agree(
        dovetail_backend,
        dt.jit(function)(*args),
        referred(function, args),
        f"{transformation} of {program.function.__name__}, compiled, against the references",
        program.tolerance,
    )


@programs()
def test_eager_is_compiled(dovetail_backend: Backend, program: Program) -> None:
    """A function that is not compiled runs operation by operation, with the same results."""
    args = dovetail_backend.fitted(program.args)
    agree(
        dovetail_backend,
        program.function(*dt.tree.map(dovetail_backend.put, args)),
        leaves(dt.jit(program.function)(*args)),
        f"{program.function.__name__}, eagerly, against compiled",
        program.tolerance,
    )


@full
@programs()
def test_vmap_is_a_loop(dovetail_backend: Backend, program: Program) -> None:
    """A batch through `vmap` matches its elements one by one."""
    stacked = batches(dovetail_backend.fitted(program.args))
    compiled = dt.jit(program.function)
    rows = [leaves(compiled(*dt.tree.map(lambda x, i=i: x[i], stacked))) for i in range(3)]
    agree(
        dovetail_backend,
        dt.jit(dt.vmap(program.function))(*stacked),
        [np.stack(column) for column in zip(*rows, strict=True)],
        f"vmap of {program.function.__name__} against a loop",
        program.tolerance,
    )


@full
@programs(reverse=True)
def test_gradients_are_differences(dovetail_backend: Backend, program: Program) -> None:
    """The gradient along a direction matches central differences of the references."""
    if "float64" not in dovetail_backend.capabilities:
        pytest.skip(missing_text(dovetail_backend.platform, "float64"))
    args = program.args
    tangents = directions(args)
    gradient = dt.jit(differentiated(program.function, args))(*args)
    along = sum(
        float(np.sum(g * t)) for g, t in zip(leaves(gradient), leaves(tangents), strict=True)
    )
    structure = dt.tree.structure(args)
    closed = dt.make_jaxpr(loss(program.function))(*args)
    consts = [read(c) for c in closed.consts]

    def number(*flat: Any) -> list[Any]:
        assert structure.num_leaves == len(flat)
        return reference_of(closed.replace(consts=consts), flat)

    (want,) = directional_derivative(number, leaves(args), leaves(tangents), step=2e-4)
    np.testing.assert_allclose(
        along,
        want,
        rtol=1e-3 if program.tolerance > 1e3 else 1e-6,
        atol=1e-7,
        err_msg=f"the gradient of {program.function.__name__} along a direction",
    )


@full
@programs(forward=True, reverse=True)
def test_reverse_mode_is_the_adjoint(dovetail_backend: Backend, program: Program) -> None:
    """Cotangents times a Jacobian times tangents is the same number from either end."""
    args = dovetail_backend.fitted(program.args)
    tangents = directions(args)

    @dt.jit
    def both(*x: Any) -> Any:
        outs, forward = dt.jvp(program.function, x, tangents)
        flat = [lax.cos(lax.mul(o, 3.0)) for o in dt.tree.leaves(outs)]
        weights = dt.tree.unflatten(dt.tree.structure(outs), flat)
        return weights, forward, dt.vjp(program.function, *x)[1](weights)

    weights, forward, reverse = map(leaves, both(*args))
    left = sum(float(np.sum(w * f)) for w, f in zip(weights, forward, strict=True))
    right = sum(float(np.sum(r * t)) for r, t in zip(reverse, leaves(tangents), strict=True))
    np.testing.assert_allclose(
        left,
        right,
        rtol=dovetail_backend.within(10 * program.tolerance),
        atol=dovetail_backend.within(10 * program.tolerance),
        err_msg=f"vjp of {program.function.__name__} is not the adjoint of its jvp",
    )


def quadratic(x: Any) -> Any:
    """A function of three numbers with known second derivatives."""
    a, b, c = (lax.index_in_dim(x, i, keepdims=False) for i in range(3))
    return lax.add(lax.mul(lax.square(a), b), lax.mul(lax.sin(c), a))


def test_jacobians_and_hessians(dovetail_backend: Backend) -> None:
    """Jacobians in both modes, and second derivatives in each order of the modes."""
    a, b, c = 0.5, -1.5, 0.25
    x = np.array([a, b, c], dovetail_backend.widest)
    gradient = np.array([2 * a * b + np.sin(c), a * a, a * np.cos(c)], x.dtype)
    second = np.array(
        [[2 * b, 2 * a, np.cos(c)], [2 * a, 0, 0], [np.cos(c), 0, -a * np.sin(c)]], x.dtype
    )
    for name, of in (("jacfwd", dt.jacfwd), ("jacrev", dt.jacrev), ("grad", dt.grad)):
        agree(dovetail_backend, dt.jit(of(quadratic))(x), [gradient], name)
    for outer in (dt.jacfwd, dt.jacrev):
        for inner in (dt.jacfwd, dt.jacrev):
            got = dt.jit(outer(inner(quadratic)))(x)
            agree(dovetail_backend, got, [second], f"{outer.__name__} of {inner.__name__}")
    agree(dovetail_backend, dt.jit(dt.hessian(quadratic))(x), [second], "hessian")


@full
def test_high_derivatives(dovetail_backend: Backend) -> None:
    """The first five derivatives of a sine, nested, in both modes."""
    x = np.asarray(0.7, dovetail_backend.widest)
    exact = [np.sin(x), np.cos(x), -np.sin(x), -np.cos(x), np.sin(x), np.cos(x)]
    reverse: Function = lax.sin
    forward: Function = lax.sin
    for order in range(1, 6):
        reverse = dt.grad(reverse)
        forward = dt.jacfwd(forward)
        want = [np.asarray(exact[order], x.dtype)]
        agree(dovetail_backend, dt.jit(reverse)(x), want, f"grad {order} times", 10)
        agree(dovetail_backend, dt.jit(forward)(x), want, f"jacfwd {order} times", 10)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_vmap_axes(dovetail_backend: Backend, axis: int) -> None:
    """Any dimension of arguments and results can be the mapped one."""
    x = np.arange(24, dtype=dovetail_backend.widest).reshape(2, 3, 4)
    mapped = dt.vmap(lambda y: lax.rev(lax.neg(y), (0,)), in_axes=axis, out_axes=axis)
    moved = np.moveaxis(x, axis, 0)
    want = np.moveaxis(np.stack([-row[::-1] for row in moved]), 0, axis)
    agree(dovetail_backend, dt.jit(mapped)(x), [want], f"vmap over dimension {axis}")


@pytest.mark.dovetail_needs("donation")
def test_donation_in_a_training_loop(dovetail_backend: Backend) -> None:
    """Gradient descent steps that donate the parameters match steps that keep them."""
    program = PROGRAMS["network"]
    params, x, labels = dovetail_backend.fitted(program.args)

    def step(params: Any, x: Any, labels: Any) -> Any:
        gradients = dt.grad(lambda p: loss(program.function)(p, x, labels))(params)
        return dt.tree.map(lambda p, g: lax.sub(p, lax.mul(0.1, g)), params, gradients)

    kept = donated = dt.tree.map(dovetail_backend.put, params)
    donated = dt.tree.map(lambda p: lax.add(p, 0.0), donated)
    keeping, donating = dt.jit(step), dt.jit(step, donate_argnums=0)
    for _ in range(10):
        before = dt.tree.leaves(donated)
        kept, donated = keeping(kept, x, labels), donating(donated, x, labels)
        assert all(array.is_deleted() for array in before)
    agree(dovetail_backend, donated, leaves(kept), "ten steps, donated against kept")


def test_references_change_in_programs(dovetail_backend: Backend) -> None:
    """A mutable reference that a compiled function writes to holds the new value afterwards."""
    pytest.importorskip("dovetail.numpy", reason="writing to references takes dovetail-numpy")
    ref = dt.new_ref(dovetail_backend.put(np.zeros(3, np.float32)))

    @dt.jit
    def add(x: Any) -> Any:
        ref[...] = lax.add(ref[...], x)
        return ref[...]

    for turn in range(1, 4):
        out = add(np.ones(3, np.float32))
        assert read(out).tolist() == read(ref[...]).tolist() == [turn] * 3


def _composite() -> Function:
    return lax.composite(lambda x: lax.mul(lax.sin(x), 2.0), "dovetail.kit", version=1)


def _linear() -> Function:
    return lambda x: linear_call(
        lambda d, x: lax.mul(x, d), lambda d, ct: lax.mul(ct, d), np.float32(2), lax.sin(x)
    )


def _batched_by_hand() -> Function:
    doubled = custom_vmap(lambda x: lax.mul(lax.sin(x), 2.0))

    def rule(size: int, batched: Any, x: Any) -> Any:
        return lax.mul(lax.sin(x), 2.0), batched[0]

    doubled.def_vmap(rule)
    return doubled


def _saved_by_hand() -> Function:
    f = dt.custom_vjp(lambda x: lax.mul(lax.sin(x), 2.0))
    f.defvjp(
        lambda x: (lax.mul(lax.sin(x), 2.0), x),
        lambda x, ct: (lax.mul(lax.mul(lax.cos(x), 2.0), ct),),
        optimize_remat=True,
    )
    return f


def _told() -> Function:
    return xla_metadata_call(lambda x: lax.mul(lax.sin(x), 2.0), color="red")


@pytest.mark.parametrize("kind", [_composite, _linear, _batched_by_hand, _saved_by_hand, _told])
def test_calls_of_every_kind(dovetail_backend: Backend, kind: Callable[[], Function]) -> None:
    """Calls with a program and rules for it: named ones, linear ones, ones with a batching rule,
    ones with an optional forward pass, and ones of which the compiler is told something."""
    function = kind()
    x = np.array([0.25, -1.5, 3.0], np.float32)
    for name, transformed, want in (
        ("the call", function, 2 * np.sin(x)),
        ("its vmap", dt.vmap(function), 2 * np.sin(x)),
        ("its grad", dt.vmap(dt.grad(function)), 2 * np.cos(x)),
        ("its checkpointed grad", dt.vmap(dt.grad(dt.checkpoint(function))), 2 * np.cos(x)),
    ):
        np.testing.assert_allclose(
            read(dt.jit(transformed)(x)), want, rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_exported_programs(dovetail_backend: Backend) -> None:
    """An exported program for arguments of any size is called by others: the sizes are values."""
    if dt.extend.manager().reads_equations(dovetail_backend.platform):
        pytest.skip("the backend reads equations, and an exported program is StableHLO")

    def mean_of_sines(x: Any) -> Any:
        count = dt.numpy.asarray(x.shape[0], np.float32)
        return lax.div(lax.reduce_sum(lax.sin(x), axes=(0,)), count)

    (size,) = export.symbolic_shape("n")
    platforms = (dovetail_backend.platform,)
    exported = export.export(dt.jit(mean_of_sines), platforms=platforms)(
        dt.ShapeDtypeStruct((size,), np.float32)
    )
    again = export.deserialize(exported.serialize(vjp_order=1))
    for length in (1, 5):
        x = np.linspace(-1, 1, length, dtype=np.float32)
        for name, function, want in (
            ("the call", again.call, np.sin(x).mean()),
            ("its grad", dt.grad(again.call), np.cos(x) / length),
        ):
            np.testing.assert_allclose(
                read(dt.jit(function)(x)), want, rtol=1e-5, atol=1e-6, err_msg=name
            )


def test_checks_are_values(dovetail_backend: Backend) -> None:
    """A function through `checkify` returns its error beside its results."""

    def f(x: Any) -> Any:
        checkify.check(lax.gt(x, 0.0), "x is {x}", x=x)
        return lax.log(x)

    compiled = dt.jit(checkify.checkify(f))
    error, value = compiled(np.float32(1))
    assert (error.get(), read(value).item()) == (None, 0)
    error, _ = compiled(np.float32(-2))
    assert "x is -2.0" in str(error.get())
