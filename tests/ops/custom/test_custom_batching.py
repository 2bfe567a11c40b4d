"""custom_vmap and sequential_vmap.

The laws: where a rule computes what vmap would compute, nothing that is done with the function can
tell the two apart; and where it computes something else, it is the rule that vmap uses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ops.custom.custom_vmap import custom_vmap_call_p
from dovetail.custom_batching import custom_vmap, sequential_vmap

X = jnp.array([0.5, -1.0, 2.0])
Y = jnp.array([1.5, 3.0, -0.5])
TWO = jnp.stack([X, Y])
Function = Callable[..., Any]


def plain(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y + x * x


def of_trees(x: Any, y: Any) -> Any:
    return plain(x, y) + y


def by_its_own_rule() -> Function:
    function = custom_vmap(plain)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[bool], x: Any, y: Any) -> Any:
        assert in_batched[0] or in_batched[1]
        x, y = (
            v if b else jnp.broadcast_to(v, (axis_size, *v.shape))
            for v, b in zip((x, y), in_batched, strict=True)
        )
        return dt.vmap(plain)(x, y), True

    return function


def by_a_rule_of_trees() -> Function:
    @custom_vmap
    def function(given: Any) -> Any:
        return {"sum": plain(**given), "y": (given["y"],)}

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], given: Any) -> Any:
        axes = {name: 0 if b else None for name, b in in_batched[0].items()}
        sums = dt.vmap(lambda g: plain(**g), (axes,))(given)
        return {"sum": sums, "y": (given["y"],)}, {"sum": True, "y": (in_batched[0]["y"],)}

    def call(x: Any, y: Any) -> Any:
        out = function({"x": x, "y": y})
        return out["sum"] + out["y"][0]

    return call


FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "rule": (by_its_own_rule(), plain),
    "rule of trees": (by_a_rule_of_trees(), of_trees),
    "sequential": (sequential_vmap(plain), plain),
    "sequential in jit": (dt.jit(sequential_vmap(plain)), plain),
    "by keyword": ((lambda f: lambda x, y: f(y=y, x=x))(by_its_own_rule()), plain),
}


def in_scan(f: Function) -> Function:
    return lambda x, y: lax.scan(lambda c, e: (dt.vmap(f)(c, e), c), x, jnp.stack([y, 2 * y]))


TRANSFORMATIONS: dict[str, Callable[[Function], Any]] = {
    "value": lambda f: f(0.5, 2.0),
    "jit": lambda f: dt.jit(f)(0.5, 2.0),
    "vmap": lambda f: dt.vmap(f)(X, Y),
    "vmap of x": lambda f: dt.vmap(f, (0, None))(X, 2.0),
    "vmap of y": lambda f: dt.vmap(f, (None, 0))(2.0, Y),
    "vmap of columns": lambda f: dt.vmap(f, (1, 1), 1)(TWO, 2 * TWO),
    "vmap of nothing": lambda f: dt.vmap(lambda: f(0.5, 2.0), axis_size=2)(),
    "jit of vmap": lambda f: dt.jit(dt.vmap(f))(X, Y),
    "vmap of jit": lambda f: dt.vmap(dt.jit(f))(X, Y),
    "vmap of vmap": lambda f: dt.vmap(dt.vmap(f))(TWO, TWO + 1),
    "vmap of x of vmap of y": lambda f: dt.vmap(dt.vmap(f, (None, 0)), (0, None))(X, Y),
    "jvp": lambda f: dt.jvp(f, (0.5, 2.0), (1.0, 3.0)),
    "jvp of x": lambda f: dt.jvp(lambda x: f(x, 2.0), (0.5,), (3.0,)),
    "linearize": lambda f: dt.linearize(f, 0.5, 2.0)[1](1.0, 3.0),
    "grad": lambda f: dt.grad(f, (0, 1))(0.5, 2.0),
    "grad of jit": lambda f: dt.grad(dt.jit(f), (0, 1))(0.5, 2.0),
    "hessian": lambda f: dt.hessian(f, (0, 1))(0.5, 2.0),
    "third order": lambda f: dt.grad(dt.grad(dt.grad(f)))(0.5, 2.0),
    "jvp of vmap": lambda f: dt.jvp(dt.vmap(f), (X, Y), (Y, X)),
    "vmap of jvp": lambda f: dt.vmap(lambda x, y: dt.jvp(f, (x, y), (y, x)))(X, Y),
    "vmap of jvp, tangents": lambda f: dt.vmap(
        lambda t: dt.jvp(f, (jnp.float32(0.5), jnp.float32(2.0)), (t, t))
    )(X),
    "vmap of jvp, a value": lambda f: dt.vmap(
        lambda x: dt.jvp(f, (x, jnp.float32(2.0)), (jnp.float32(1.0), x))
    )(X),
    "grad of vmap": lambda f: dt.grad(lambda x, y: dt.vmap(f)(x, y).sum(), (0, 1))(X, Y),
    "vmap of grad": lambda f: dt.vmap(dt.grad(f, (0, 1)))(X, Y),
    "vmap of grad of x": lambda f: dt.vmap(dt.grad(f), (None, 0))(0.5, Y),
    "vmap of vjp": lambda f: dt.vmap(lambda ct: dt.vjp(f, 0.5, 2.0)[1](ct))(X),
    "jit of vmap of grad": lambda f: dt.jit(dt.vmap(dt.grad(f, (0, 1))))(X, Y),
    "grad of vmap of grad": lambda f: dt.grad(lambda x: dt.vmap(dt.grad(f))(x, Y).sum())(X),
    "vmap of hessian": lambda f: dt.vmap(dt.hessian(f))(X, Y),
    "vmap of jacrev of jacrev": lambda f: dt.vmap(dt.jacrev(dt.jacrev(f)))(X, Y),
    "jacfwd of vmap": lambda f: dt.jacfwd(lambda x: dt.vmap(f)(x, Y))(X),
    "jacrev of vmap": lambda f: dt.jacrev(lambda x: dt.vmap(f)(x, Y))(X),
    "scan": lambda f: in_scan(f)(X, Y),
    "grad of scan": lambda f: dt.grad(lambda x: in_scan(f)(x, Y)[0].sum())(X),
    "vmap of scan": lambda f: dt.vmap(lambda x: lax.scan(lambda c, e: (f(c, e), c), x, Y))(X),
    "vmap of cond": lambda f: dt.vmap(lambda x: lax.cond(x > 0, f, lambda x, y: x, x, 2.0))(X),
    "checked": lambda f: _checked(f),
}


def _checked(f: Function) -> Any:
    with dt.enable_checks(True):
        return dt.jit(dt.vmap(dt.grad(f)))(X, Y)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_rule_that_does_what_vmap_does_changes_nothing(
    function: str, transformation: str
) -> None:
    custom, ordinary = FUNCTIONS[function]
    transform = TRANSFORMATIONS[transformation]
    found, wanted = transform(custom), transform(ordinary)
    assert dt.tree.structure(found) == dt.tree.structure(wanted)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def thousandfold() -> Function:
    """Its rule gives a thousand times the result."""
    function = custom_vmap(plain)
    function.def_vmap(lambda size, in_batched, x, y: (1000 * plain(x, y) + 0 * (x + y), True))
    return function


def test_vmap_uses_the_rule_and_nothing_else_does() -> None:
    f = thousandfold()
    np.testing.assert_allclose(f(X, Y), plain(X, Y))
    for transform in (dt.jit, lambda f: f):
        np.testing.assert_allclose(transform(dt.vmap(f))(X, Y), 1000 * plain(X, Y), rtol=1e-5)
        np.testing.assert_allclose(
            transform(dt.vmap(dt.grad(f)))(X, Y), 1000 * dt.vmap(dt.grad(plain))(X, Y), rtol=1e-5
        )
        tangents = transform(dt.vmap(lambda x: dt.jvp(f, (x, 2.0), (1.0, x))[1]))(X)
        wanted = dt.vmap(lambda x: dt.jvp(plain, (x, 2.0), (1.0, x))[1])(X)
        np.testing.assert_allclose(tangents, 1000 * wanted, rtol=1e-5)
        np.testing.assert_allclose(
            transform(dt.grad(lambda x: dt.vmap(f)(x, Y).sum()))(X),
            1000 * dt.grad(lambda x: plain(x, Y).sum())(X),
            rtol=1e-5,
        )
    carried, _ = lax.scan(lambda c, _: (dt.vmap(f)(c, Y), None), X, None, length=1)
    np.testing.assert_allclose(carried, 1000 * plain(X, Y), rtol=1e-5)


def seen_by_rule(transform: Callable[[Function], Any]) -> list[Any]:
    seen = []

    @custom_vmap
    def function(tree: Any, factor: Any = 2.0) -> Any:
        return tree["a"] * factor + tree["b"][0]

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], tree: Any, factor: Any) -> Any:
        seen.append((axis_size, in_batched, dt.tree.map(jnp.shape, (tree, factor))))
        return jnp.zeros((axis_size, *tree["a"].shape[in_batched[0]["a"] :])), True

    transform(function)
    return seen


ROW = np.ones((2, 3), np.float32)
CALLS: dict[str, tuple[Callable[[Function], Any], list[Any]]] = {
    "a tree": (
        lambda f: dt.vmap(lambda a: f({"a": a, "b": [1.0]}))(X),
        [(3, [{"a": True, "b": [False]}, False], ({"a": (3,), "b": [()]}, ()))],
    ),
    "another leaf, by keyword": (
        lambda f: dt.vmap(lambda b: f(factor=b, tree={"a": 1.0, "b": [b]}))(X),
        [(3, [{"a": False, "b": [True]}, True], ({"a": (), "b": [(3,)]}, (3,)))],
    ),
    "the dimension comes first": (
        lambda f: dt.vmap(lambda a: f({"a": a, "b": [1.0]}), 1)(ROW),
        [(3, [{"a": True, "b": [False]}, False], ({"a": (3, 2), "b": [()]}, ()))],
    ),
    "nested: the inner first, for what the outer leaves": (
        lambda f: dt.vmap(dt.vmap(lambda a: f({"a": a, "b": [1.0]})))(ROW),
        [(3, [{"a": True, "b": [False]}, False], ({"a": (3,), "b": [()]}, ()))],
    ),
    "not batched": (lambda f: f({"a": X, "b": [1.0]}), []),
    "in jit": (
        lambda f: dt.jit(dt.vmap(dt.jit(lambda a: f({"a": a, "b": [1.0]}))))(X),
        [(3, [{"a": True, "b": [False]}, False], ({"a": (3,), "b": [()]}, ()))],
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_what_a_rule_is_given(case: str) -> None:
    transform, expected = CALLS[case]
    assert seen_by_rule(transform) == expected


def test_results_that_are_not_batched() -> None:
    @custom_vmap
    def function(x: Any) -> Any:
        return x, 2.0

    function.def_vmap(lambda size, in_batched, x: ((x, 3.0), (True, False)))
    assert [x.tolist() for x in dt.vmap(function)(X)] == [X.tolist(), [3.0] * 3]
    assert float(dt.vmap(function, out_axes=(0, None))(X)[1]) == 3.0


def test_captured_values() -> None:
    def outer(y: Any) -> Any:
        function = custom_vmap(lambda x: x * y)
        function.def_vmap(lambda size, in_batched, x: (x * y, True))
        return dt.vmap(function)(X).sum() + function(2.0)

    assert float(outer(3.0)) == 3 * float(X.sum()) + 6
    assert float(dt.jit(outer)(3.0)) == 3 * float(X.sum()) + 6
    assert float(dt.grad(outer)(3.0)) == float(X.sum()) + 2


def test_sequential_is_a_loop_of_single_calls() -> None:
    shapes = []

    @sequential_vmap
    def function(x: Any) -> Any:
        shapes.append(x.shape)
        return jnp.sin(x)

    text = str(dt.make_jaxpr(dt.vmap(dt.vmap(function)))(jnp.ones((2, 3, 4))))
    assert set(shapes) == {(4,)}
    assert text.count("scan[") == 2
    assert text.count("sin ") == 1


def test_a_function_is_traced_once_for_each_kind_of_arguments() -> None:
    traced = []

    @custom_vmap
    def function(x: Any) -> Any:
        traced.append(x.shape)
        return x + 1

    function.def_vmap(lambda size, in_batched, x: (x + 1, True))
    for x in (1.0, 2.0, X, Y, X):
        function(x)
    assert traced == [(), (3,)]


def test_attributes_and_programs() -> None:
    def documented(x: Any) -> Any:
        """Says something."""
        return x

    function = custom_vmap(documented)

    def rule(size: int, in_batched: list[bool], x: Any) -> Any:
        return x, True

    assert function.def_vmap(rule) is rule
    assert (function.__name__, function.__doc__) == ("documented", "Says something.")
    (eqn,) = dt.make_jaxpr(function)(1.0).eqns
    assert eqn.primitive is custom_vmap_call_p
    assert str(dt.make_jaxpr(function)(1.0)).count("custom_vmap_call[") == 1
    assert "rule=rule" in str(dt.make_jaxpr(function)(1.0))


def with_rule(rule: Function) -> Function:
    @custom_vmap
    def pair(x: Any, y: Any) -> Any:
        return {"a": x, "b": (y, 2.0)}

    pair.def_vmap(rule)
    return lambda: dt.vmap(pair)(X, Y)


def of_captured(transform: Callable[[Function], Any]) -> Any:
    def outer(x: Any, y: Any) -> Any:
        @custom_vmap
        def function(x: Any) -> Any:
            return x * y

        function.def_vmap(lambda size, in_batched, x: (x, True))
        return function(x)

    return transform(outer)


def keyword_only(x: Any, *, y: Any) -> Any:
    return x


RESULT = {"a": X, "b": (Y, X)}
ALL = {"a": True, "b": (True, True)}
ERRORS: dict[str, tuple[Function, type[Exception], tuple[str, ...]]] = {
    "no rule": (
        lambda: custom_vmap(plain)(1.0, 2.0),
        AttributeError,
        ("plain (", "test_custom_batching.py:", "@plain.def_vmap"),
    ),
    "no function": (lambda: custom_vmap(3), TypeError, ("custom_vmap takes a function",)),  # type: ignore[arg-type]
    "no rule function": (
        lambda: custom_vmap(plain).def_vmap(3),  # type: ignore[type-var]
        TypeError,
        ("def_vmap takes a function",),
    ),
    "missing argument": (
        lambda: FUNCTIONS["rule"][0](1.0),
        TypeError,
        ("plain(x", "missing a required argument: 'y'"),
    ),
    "keyword only": (
        lambda: sequential_vmap(keyword_only)(1.0, y=2.0),
        TypeError,
        ("keyword_only", "by position", "y can be given only by keyword"),
    ),
    "argument is no array": (
        lambda: FUNCTIONS["rule"][0](1.0, {"k": "text"}),
        TypeError,
        ("plain", "y['k']", "str"),
    ),
    "no pair": (
        with_rule(lambda size, in_batched, x, y: x),
        TypeError,
        ("<lambda> (", "test_custom_batching.py:", "of pair", "must return a pair"),
    ),
    "too few parameters": (
        with_rule(lambda size, in_batched, x: x),
        TypeError,
        ("rule(axis_size, in_batched, *args), here with 4 arguments",),
    ),
    "structure of the result": (
        with_rule(lambda size, in_batched, x, y: ({"a": x, "b": (y,)}, ALL)),
        ValueError,
        ("of pair", "at key path ['b']", "a tuple of length 2", "a tuple of length 1"),
    ),
    "structure of out_batched": (
        with_rule(lambda size, in_batched, x, y: (RESULT, {"a": True, "b": True})),
        ValueError,
        ("out_batched", "a bool for each array", "at key path ['b']"),
    ),
    "an axis instead of a bool": (
        with_rule(lambda size, in_batched, x, y: (RESULT, {"a": 0, "b": (0, 0)})),
        TypeError,
        ("out_batched", "got 0 for result['a']"),
    ),
    "batched and says it is not": (
        with_rule(lambda size, in_batched, x, y: (RESULT, ALL | {"a": False})),
        ValueError,
        ("result['a'] has the shape (3,) and must have ()", "out_batched is False"),
    ),
    "not batched and says it is": (
        with_rule(lambda size, in_batched, x, y: (RESULT | {"b": (y, 2.0)}, ALL)),
        ValueError,
        ("result['b'][1] has the shape () and must have (3,)", "axis_size is 3"),
    ),
    "wrong size": (
        with_rule(lambda size, in_batched, x, y: (RESULT | {"a": X[:2]}, ALL)),
        ValueError,
        ("result['a'] has the shape (2,) and must have (3,)",),
    ),
    "wrong dtype": (
        with_rule(lambda size, in_batched, x, y: (RESULT | {"a": X.astype(int)}, ALL)),
        TypeError,
        ("result['a'] has the dtype int32", "pair returns f32[]"),
    ),
    "result is no array": (
        with_rule(lambda size, in_batched, x, y: (RESULT | {"a": "text"}, ALL)),
        TypeError,
        ("result['a']", "str"),
    ),
    "captures a mapped value": (
        lambda: of_captured(lambda f: dt.vmap(f)(X, Y)),
        ValueError,
        ("function (", "mapped by vmap", "make it an argument"),
    ),
    "captures what is differentiated": (
        lambda: of_captured(lambda f: dt.vmap(dt.grad(f, 1), (0, None))(X, 2.0)),
        ValueError,
        ("function (", "differentiated", "make it an argument"),
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, parts = ERRORS[case]
    with pytest.raises(kind) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


#: How each decorator's rule is defined; as no rule of mathematics would be, so that its use shows.
DECORATORS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "custom_jvp": (
        dt.custom_jvp,
        lambda f: f.defjvp(lambda primals, tangents: (f(*primals), 10 * tangents[0])),
    ),
    "custom_vjp": (
        dt.custom_vjp,
        lambda f: f.defvjp(lambda x: (f(x), None), lambda _, cotangent: (20 * cotangent,)),
    ),
    "custom_vmap": (
        custom_vmap,
        lambda f: f.def_vmap(lambda size, batched, x: (x + 100, True)),
    ),
}


@pytest.mark.parametrize("inner", DECORATORS)
@pytest.mark.parametrize("outer", DECORATORS)
def test_rules_of_the_function_inside_are_defined_on_the_one_outside(
    outer: str, inner: str
) -> None:
    (decorate, define), (decorate_inner, define_inner) = DECORATORS[outer], DECORATORS[inner]
    function = decorate(decorate_inner(lambda x: 3 * x))
    define(function)
    if outer != inner:
        define_inner(function)
        assert type(function.fun) is decorate_inner
    else:
        define_inner(function.fun)
    assert float(function(2.0)) == 6.0
    if "custom_vmap" in (outer, inner):
        assert list(dt.vmap(function)(jnp.ones(2))) == [101.0, 101.0]
    factors = {"custom_jvp": 10.0, "custom_vjp": 20.0}
    expected = [factors[name] for name in (outer, inner) if name in factors]
    if expected:
        assert float(dt.grad(function)(2.0)) == expected[0]
        assert float(dt.jit(dt.grad(function))(2.0)) == expected[0]
    with pytest.raises(AttributeError, match=f"'{inner}' object has no attribute 'nothing'"):
        _ = function.nothing
    copied = copy.copy(function)
    assert float(copied(2.0)) == 6.0
