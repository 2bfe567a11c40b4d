"""jvp, linearize, vjp, grad, value_and_grad, linear_transpose."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax


def numeric_gradient(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    """Central differences of a scalar function in double precision."""
    x = np.asarray(x, np.float64)
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        out[index] = (float(function(up)) - float(function(down))) / (2 * step)
    return out


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "polynomial": lambda x: jnp.sum(x * x * x - 2.0 * x),
    "fan-out": lambda x: jnp.sum(jnp.sin(x) * x + jnp.sin(x)),
    "matmul": lambda x: jnp.sum(jnp.tanh(x @ x.T)),
    "broadcast": lambda x: jnp.sum((x - jnp.mean(x, axis=0)) ** 2),
    "indexing": lambda x: jnp.sum(x[0] * x[-1]) + x[1, 1] ** 2,
    "update": lambda x: jnp.sum(x.at[0].set(x[1] * 2.0) ** 2),
    "reductions": lambda x: jnp.max(x) * jnp.prod(x[0]) + jnp.min(x[:, 0]),
    "where": lambda x: jnp.sum(jnp.where(x > 0.5, x**2, jnp.exp(x))),
    "shapes": lambda x: jnp.sum(jnp.concatenate([x.T.reshape(-1), x[0]]) ** 3),
    "nested jit": lambda x: jnp.sum(dt.jit(lambda y: y * jnp.cos(y))(x)),
    "captured": lambda x: dt.jit(lambda: jnp.sum(x * x * x))(),
    "vmap": lambda x: jnp.sum(dt.vmap(lambda row: row * jnp.sum(row))(x)),
}
POINT = np.array([[0.3, 0.9, 0.4], [0.8, 0.2, 0.7], [0.45, 0.6, 0.35]])


@pytest.fixture(autouse=True)
def _double_precision() -> Any:
    with dt.enable_x64(True):
        yield


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_agrees_with_finite_differences(name: str) -> None:
    function = FUNCTIONS[name]
    expected = numeric_gradient(dt.jit(function), POINT)
    np.testing.assert_allclose(dt.grad(function)(POINT), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(dt.jit(dt.grad(function))(POINT), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(dt.grad(dt.jit(function))(POINT), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_agree_with_finite_differences(name: str) -> None:
    function = FUNCTIONS[name]
    direction = np.cos(np.arange(9.0)).reshape(3, 3)
    once = lambda x: jnp.sum(dt.grad(function)(x) * direction)
    expected = numeric_gradient(once, POINT)
    ways = {
        "reverse over reverse": dt.grad(once)(POINT),
        "forward over reverse": dt.jvp(dt.grad(function), (POINT,), (direction,))[1],
        "reverse over forward": dt.grad(lambda x: dt.jvp(function, (x,), (direction,))[1])(POINT),
        "jit inside": dt.grad(lambda x: jnp.sum(dt.jit(dt.grad(function))(x) * direction))(POINT),
    }
    for way, value in ways.items():
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7, err_msg=way)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_reverse_mode_agree(name: str) -> None:
    function = FUNCTIONS[name]
    direction = np.sin(np.arange(9.0)).reshape(3, 3)
    value, tangent = dt.jvp(function, (POINT,), (direction,))
    linear_value, linear = dt.linearize(function, POINT)
    reverse_value, pullback = dt.vjp(function, POINT)
    (gradient,) = pullback(np.float64(1.0))
    expected = np.vdot(gradient, direction)
    np.testing.assert_allclose(tangent, expected, rtol=1e-9)
    np.testing.assert_allclose(linear(direction), expected, rtol=1e-9)
    np.testing.assert_allclose([linear_value, reverse_value], [value, value], rtol=1e-12)


@pytest.mark.parametrize("x", [1.0, np.float32(1)])
def test_tangents_that_are_zero_have_the_types_of_others(x: Any) -> None:
    x = jnp.asarray(x)
    results, linear = dt.linearize(lambda p: (jnp.sin(p), x), x)
    for result, tangent in zip(results, linear(x), strict=True):
        assert tangent.aval == result.aval


def test_linearized_function_is_linear_and_reusable() -> None:
    _, linear = dt.linearize(lambda x: jnp.sin(x) * x, POINT)
    a, b = np.ones((3, 3)), POINT
    np.testing.assert_allclose(linear(2.0 * a + b), 2.0 * linear(a) + linear(b), rtol=1e-12)
    with pytest.raises(ValueError, match=r"must be f64\[3,3\]"):
        linear(np.ones(3))
    with pytest.raises(TypeError, match="structure"):
        linear(a, b)


def test_trees_of_arguments_and_results() -> None:
    def function(parameters: Any, x: Any) -> Any:
        return {"y": parameters["w"] * x + parameters["b"], "n": (x,)}

    parameters = {"w": 2.0, "b": np.array([1.0, 2.0])}
    out, pullback = dt.vjp(function, parameters, 3.0)
    cotangent = {"y": np.array([1.0, 10.0]), "n": (5.0,)}
    grads, x_grad = pullback(cotangent)
    assert set(grads) == {"w", "b"}
    np.testing.assert_allclose(grads["w"], 33.0)
    np.testing.assert_allclose(grads["b"], [1.0, 10.0])
    np.testing.assert_allclose(x_grad, 27.0)
    assert dt.tree.structure(out) == dt.tree.structure(cotangent)


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 6.0), (1, 3.0), (-1, 3.0), ((0, 1), (6.0, 3.0)), ([1], (3.0,)), ((0,), (6.0,))],
)
def test_argnums(argnums: Any, expected: Any) -> None:
    result = dt.grad(lambda x, y: x * y, argnums=argnums)(3.0, 6.0)
    assert isinstance(result, tuple) == isinstance(expected, tuple)
    np.testing.assert_allclose(result, expected)


def test_keyword_arguments_are_passed_and_not_differentiated() -> None:
    assert float(dt.grad(lambda x, *, n: x**n)(2.0, n=3)) == 12.0


def test_auxiliary_data_is_free_of_tracers() -> None:
    def loss(x: Any) -> Any:
        return x**2, {"double": 2 * x, "name": "text"}

    (value, aux), gradient = dt.value_and_grad(loss, has_aux=True)(3.0)
    assert (float(value), float(gradient), float(aux["double"])) == (9.0, 6.0, 6.0)
    assert aux["name"] == "text"
    gradient, aux = dt.grad(loss, has_aux=True)(3.0)
    assert float(aux["double"]) == 6.0
    *_, aux = dt.vjp(loss, 3.0, has_aux=True)
    assert float(aux["double"]) == 6.0
    *_, aux = dt.linearize(loss, 3.0, has_aux=True)
    assert float(aux["double"]) == 6.0
    second = dt.grad(lambda x: dt.grad(loss, has_aux=True)(x)[1]["double"] ** 2)(3.0)
    assert float(second) == 24.0


def test_holomorphic_and_complex() -> None:
    z = np.complex128(0.3 + 0.4j)
    derivative = dt.grad(lambda z: jnp.sin(z) * z, holomorphic=True)(z)
    np.testing.assert_allclose(derivative, np.cos(z) * z + np.sin(z), rtol=1e-12)
    _, pullback = dt.vjp(lambda z: jnp.real(z * jnp.conj(z)), z)
    np.testing.assert_allclose(pullback(np.float64(1.0))[0], 2 * np.conj(z), rtol=1e-12)


@pytest.mark.parametrize("z", [0.3 + 0.4j, np.complex64(1 - 2j), np.array(-1.5 + 0.5j)], ids=repr)
def test_real_functions_of_complex_arguments(z: Any) -> None:
    step = 1e-6
    function = dt.jit(lambda z: jnp.abs(z) ** 2 + jnp.real(z) * jnp.imag(z) ** 2)
    wide = complex(z)
    along = [float(function(wide + s) - function(wide - s)) / 2 / step for s in (step, step * 1j)]
    gradient = dt.grad(function)(z)
    assert gradient.dtype == dt.typeof(z).dtype
    np.testing.assert_allclose(gradient, along[0] - 1j * along[1], rtol=1e-6)
    np.testing.assert_allclose(dt.jacrev(function)(z), gradient, rtol=1e-6)
    both = dt.grad(lambda z, x: function(z) * x, argnums=(0, 1))(z, 2.0)
    np.testing.assert_allclose(both[0], 2 * gradient, rtol=1e-6)


def test_gradients_are_as_weakly_typed_as_their_arguments() -> None:
    strong = np.float32(2.0)
    functions = (
        lambda x: x * x,
        lambda x: x * strong,
        lambda x: 1.0,
        lambda x: jnp.sin(x) / strong,
    )
    for function in functions:
        for wrapped in (dt.grad(function), dt.jit(dt.grad(function))):
            assert wrapped(3.0).weak_type
            assert not wrapped(strong).weak_type
            assert (wrapped(strong) * jnp.ones(2, "bfloat16")).dtype == np.float32
    step = dt.grad(functions[0])(3.0)
    assert (step * jnp.ones(2, "bfloat16")).dtype == jnp.bfloat16


NUMBERS: list[Any] = [True, 1, 1.0, 1j, np.int32(1), np.float32(1), np.float64(1), np.complex64(1)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("x", [np.float32(2), np.float64(2), np.complex64(2), 2.0], ids=repr)
def test_tangents_have_the_type_of_what_they_belong_to(number: Any, x: Any) -> None:
    # A number of Python becomes what is expected; of everything else the dtype must be right.
    expected = dt.typeof(x).dtype
    double = lambda x: x * 2
    fits = np.asarray(number).dtype == expected or (
        type(number) in (bool, int, float) or (type(number) is complex and expected.kind == "c")
    )
    arrays = [number] if isinstance(number, np.generic) else [number, jnp.array(number)]
    for given in arrays:
        accepted = fits and (given is number or given.dtype == expected)
        for call in (
            lambda t: dt.jvp(double, (x,), (t,))[1],
            lambda t: dt.vjp(double, x)[1](t)[0],
            lambda t: dt.linearize(double, x)[1](t),
            lambda t: dt.linear_transpose(double, x)(t)[0],
        ):
            if accepted:
                assert call(given).dtype == expected
                assert complex(call(given)) == 2 * complex(given)
            else:
                with pytest.raises((TypeError, ValueError), match="type"):
                    call(given)


def test_transposes_of_integer_functions() -> None:
    transposed = dt.linear_transpose(lambda x, y: 3 * x + jnp.sum(y), 1, np.ones(2, int))
    x, y = transposed(2)
    assert (int(x), y.tolist(), y.dtype) == (6, [2, 2], np.dtype(int))


FLOAT0: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda g: g,
    "jit": dt.jit,
    "jit twice": lambda g: lambda *args: (dt.jit(g)(*args), dt.jit(g)(*args))[1],
    "inside of jit": lambda g: dt.jit(lambda *args: dt.jit(g)(*args)),
    "compiled": lambda g: lambda *args: dt.jit(g).lower(*args).compile()(*args),
    "vmap": lambda g: lambda n, x: dt.vmap(g, (None, 0), (None, 0))(n, np.full(1, x)),
    "disable_jit": lambda g: lambda *args: dt.disable_jit()(dt.jit(g))(*args),
}


@pytest.mark.parametrize("name", FLOAT0)
def test_tangents_that_hold_nothing_are_numpy_arrays(name: str) -> None:
    gradient = FLOAT0[name](dt.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True))
    for _ in range(2):
        nothing, something = gradient(3, 2.0)
        assert type(nothing) is np.ndarray
        assert (nothing.dtype, nothing.shape) == (dt.float0, ())
        assert isinstance(something, dt.Array)
        assert float(something[0] if something.shape else something) == 3.0


def test_tangents_that_hold_nothing_go_through_transformations() -> None:
    zeros = np.zeros(3, dt.float0)
    assert dt.jit(lambda t: t)(zeros).dtype == dt.float0
    gradient = dt.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True)
    nothing, something = dt.vmap(gradient)(np.arange(3), np.ones(3))
    assert (nothing.dtype, nothing.shape) == (dt.float0, (3,))
    assert something.tolist() == [0, 1, 2]
    integers = np.arange(3)
    for function in (dt.vmap(lambda n, t: dt.jvp(lambda n: n + 1, (n,), (t,))),):
        assert function(integers, zeros)[1].dtype == dt.float0
    assert dt.jit(dt.vjp(lambda n: n + 1, integers)[1])(zeros)[0].shape == (3,)


def test_integer_arguments() -> None:
    function = lambda n, x: x * n
    gradient = dt.grad(function, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert gradient[0].dtype == dt.float0
    assert float(gradient[1]) == 3.0
    _, tangent = dt.jvp(function, (3, 2.0), (np.zeros((), dt.float0), 1.0))
    assert float(tangent) == 3.0


def test_unused_arguments_have_zero_gradients() -> None:
    gradients = dt.grad(lambda x, y: x * 1.0, argnums=(0, 1))(1.0, np.ones((2, 2)))
    np.testing.assert_array_equal(gradients[1], np.zeros((2, 2)))


def test_constant_functions() -> None:
    assert float(dt.grad(lambda x: 3.0)(1.0)) == 0.0
    _, tangent = dt.jvp(lambda x: 3.0, (1.0,), (1.0,))
    assert float(tangent) == 0.0


def test_python_control_flow_on_differentiated_values() -> None:
    function = lambda x: x * x if x > 2.0 else 3.0 * x
    assert float(dt.grad(function)(3.0)) == 6.0
    assert float(dt.grad(function)(1.0)) == 3.0
    assert float(dt.grad(dt.grad(function))(3.0)) == 2.0


def test_gradient_where_a_value_is_used_many_times() -> None:
    def chain(x: Any) -> Any:
        for _ in range(200):
            x = x * 1.01 + 0.001 * x
        return x

    np.testing.assert_allclose(dt.grad(chain)(1.0), 1.011**200, rtol=1e-10)


def test_linear_transpose() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    transposed = dt.linear_transpose(lambda x: matrix @ x, np.zeros(3))
    (out,) = transposed(np.array([1.0, 2.0]))
    np.testing.assert_allclose(out, matrix.T @ [1.0, 2.0])
    struct = dt.ShapeDtypeStruct((3,), np.float64)
    (out,) = dt.jit(dt.linear_transpose(lambda x: 2.0 * x[::-1], struct))(np.arange(3.0))
    np.testing.assert_allclose(out, [4.0, 2.0, 0.0])


def test_pullback_is_a_pytree_and_works_under_jit() -> None:
    _, pullback = dt.vjp(jnp.sin, np.float64(0.5))
    assert len(dt.tree.leaves(pullback)) >= 1
    (out,) = dt.jit(lambda f, ct: f(ct))(pullback, 2.0)
    np.testing.assert_allclose(out, 2.0 * np.cos(0.5), rtol=1e-12)


ERRORS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("not callable", lambda: dt.grad(3), TypeError, "grad takes a function"),
    (
        "not a scalar",
        lambda: dt.grad(lambda x: x)(np.ones(3)),
        TypeError,
        r"shape \(3,\); reduce it",
    ),
    ("tree result", lambda: dt.grad(lambda x: (x, x))(1.0), TypeError, "has_aux=True"),
    (
        "not a pair",
        lambda: dt.grad(lambda x: x, has_aux=True)(1.0),
        TypeError,
        "must return a pair",
    ),
    ("integer", lambda: dt.grad(lambda n: n * 1.0)(3), TypeError, "n has dtype int64"),
    ("integer result", lambda: dt.grad(lambda x: jnp.int32(3))(1.0), TypeError, "got int32"),
    ("complex", lambda: dt.grad(lambda z: z * z)(1j), TypeError, "holomorphic=True"),
    (
        "not complex",
        lambda: dt.grad(lambda z: z, holomorphic=True)(1.0),
        TypeError,
        "requires complex",
    ),
    ("argnums", lambda: dt.grad(lambda x: x, argnums=2)(1.0), TypeError, "has 1"),
    ("argnums twice", lambda: dt.grad(lambda x: x, argnums=(0, -1))(1.0), ValueError, "twice"),
    ("argnums type", lambda: dt.grad(lambda x: x, argnums="x")(1.0), TypeError, "integer"),
    ("a string", lambda: dt.grad(lambda x: 1.0)("text"), TypeError, "Argument x .* 'text'"),
    (
        "tangent shape",
        lambda: dt.jvp(jnp.sin, (np.ones(3),), (np.ones(2),)),
        ValueError,
        r"\(3,\) and \(2,\)",
    ),
    (
        "tangent dtype",
        lambda: dt.jvp(jnp.sin, (np.ones(3),), (np.ones(3, np.float32),)),
        TypeError,
        "float64 and float32",
    ),
    ("tangent tree", lambda: dt.jvp(jnp.sin, (1.0,), (1.0, 2.0)), TypeError, "same structure"),
    ("primals", lambda: dt.jvp(jnp.sin, 1.0, 1.0), TypeError, "tuples or lists"),
    ("int tangent", lambda: dt.jvp(lambda n: n, (1,), (1,)), TypeError, "float0"),
    ("int linear", lambda: dt.linearize(lambda n: n * 2.0, 1)[1](1), ValueError, "float0"),
    (
        "cotangent tree",
        lambda: dt.vjp(lambda x: (x, x), 1.0)[1](1.0),
        ValueError,
        "structure",
    ),
    (
        "cotangent shape",
        lambda: dt.vjp(lambda x: x, np.ones(3))[1](np.ones(2)),
        ValueError,
        r"f64\[3\]",
    ),
    (
        "not linear",
        lambda: dt.linear_transpose(jnp.sin, 1.0)(1.0),
        NotImplementedError,
        "'sin' has no 'transpose' rule",
    ),
    (
        "transpose to floats",
        lambda: dt.linear_transpose(lambda x: x * 1.5, 1),
        TypeError,
        r"\(int64\) to \(float64\)",
    ),
    (
        "transpose to integers",
        lambda: dt.linear_transpose(lambda x: x.astype(int), 1.0),
        TypeError,
        r"\(float64\) to \(int64\)",
    ),
    ("cotangents", lambda: dt.vjp(jnp.sin, 1.0)[1](1.0, 1.0), TypeError, "pass one tuple"),
    ("grad of no function", lambda: dt.grad(3), TypeError, "^grad takes a function"),
]


@pytest.mark.parametrize(
    ("call", "error", "text"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS]
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_names_and_documentation_are_kept() -> None:
    def loss(x: float) -> float:
        """The loss."""
        return x

    for transformed in (dt.grad(loss), dt.value_and_grad(loss), dt.jacfwd(loss), dt.vmap(loss)):
        assert transformed.__name__ == "loss"
        assert transformed.__doc__ == "The loss."


def test_tracers_do_not_pickle() -> None:
    with pytest.raises(TypeError, match="pickled"):
        dt.grad(lambda x: pickle.dumps(x) and x)(1.0)


def test_lax_functions_differentiate_too() -> None:
    np.testing.assert_allclose(dt.grad(lambda x: lax.sin(x))(0.5), np.cos(0.5), rtol=1e-12)
