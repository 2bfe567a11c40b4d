"""What operators and functions do with operands of other classes: defer, convert, refuse."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import NonArrayArgumentError

X = jnp.arange(1.0, 4.0)

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "divmod": divmod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, f"i{name}") for name in ARITHMETIC if name != "divmod"
}
COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "eq": (operator.eq, "eq"),
    "ne": (operator.ne, "ne"),
    "lt": (operator.lt, "gt"),
    "le": (operator.le, "ge"),
    "gt": (operator.gt, "lt"),
    "ge": (operator.ge, "le"),
}
OPERATIONS = {
    **ARITHMETIC,
    **{f"i{name}": function for name, function in IN_PLACE.items()},
    **{name: function for name, (function, _) in COMPARISONS.items()},
}
INTEGER = {"and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"}


def _answers(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: (name, isinstance(other, dt.Array))


OWN = {
    f"__{name}__": _answers(name)
    for name in (
        *(f"r{name}" for name in ARITHMETIC),
        *(reflection for _, reflection in COMPARISONS.values()),
    )
}
KINDS: dict[str, Callable[[], Any]] = {
    "plain": lambda: type("Plain", (), OWN)(),
    "namedtuple": lambda: type("Pair", (collections.namedtuple("Pair", "a b"),), OWN)(1.0, 2.0),
    "tuple": lambda: type("Row", (tuple,), OWN)((1.0,)),
    "list": lambda: type("Rows", (list,), OWN)([1.0]),
    "dict": lambda: type("Table", (dict,), OWN)(a=1.0),
    "defaultdict": lambda: type("Counts", (collections.defaultdict,), OWN)(int),
    "set": lambda: type("Names", (set,), OWN)(),
}
EXPECTED = {
    **{name: f"r{name}" for name in ARITHMETIC},
    **{f"i{name}": f"r{name}" for name in IN_PLACE},
    **{name: reflection for name, (_, reflection) in COMPARISONS.items()},
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_operators_defer_to_classes_with_their_own(kind: str, name: str) -> None:
    other, answer = KINDS[kind](), (EXPECTED[name], True)
    assert OPERATIONS[name](X, other) == answer
    traced: list[Any] = []

    def record(x: Any) -> Any:
        traced.append(OPERATIONS[name](x, other))
        return x

    dt.jit(record)(X)
    dt.vmap(record)(X)
    dt.grad(lambda x: record(x).sum())(X)
    assert traced == [answer] * 3


def test_the_third_operand_of_pow() -> None:
    assert X.__pow__(KINDS["plain"]()) is NotImplemented
    with pytest.raises(TypeError):
        pow(X, 2, 3)


@pytest.mark.parametrize("kind", [list, tuple])
def test_sequences_are_not_repeated(kind: type) -> None:
    """The product of a sequence and an integer would repeat it, which nobody means."""
    inherits = type("Inherits", (kind,), {})([1, 2])
    for number in (jnp.int32(2), X):
        for call in (lambda n: n * inherits, lambda n: inherits * n):
            with pytest.raises(TypeError, match="asarray"):
                call(number)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("value", [[1.0], (1.0,), {1.0}, {"a": 1.0}], ids=str)
def test_containers_are_refused(value: Any, name: str) -> None:
    with pytest.raises(TypeError, match=r"dovetail\.numpy\.asarray"):
        OPERATIONS[name](X, value)


@pytest.mark.parametrize("name", ["eq", "ne"])
def test_a_namedtuple_is_equal_to_no_array(name: str) -> None:
    pair = collections.namedtuple("Pair", "a b")(1.0, 2.0)
    assert OPERATIONS[name](X, pair) is (name == "ne")


class Wrapped:
    """An object that converts itself, as JAX's own protocol asks."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


@dt.tree_util.register_pytree_node_class
class Forwarding(Wrapped):
    """One that hands on all attributes of the array, and whose array is a leaf of trees."""

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "value"), name)

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, static: None, children: tuple[Any]) -> Any:
        return cls(*children)


@pytest.mark.parametrize("kind", [Wrapped, Forwarding])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_convert(name: str, kind: type[Wrapped]) -> None:
    x = X.astype("int32") if name in INTEGER else X
    function, wrapped = OPERATIONS[name], kind(x)
    expected = jnp.asarray(function(x, x))

    def check(result: Any) -> None:
        np.testing.assert_array_equal(jnp.asarray(result), expected)

    check(function(x, wrapped))
    check(function(x, kind(np.asarray(x))))
    check(dt.jit(lambda x: function(x, kind(x)))(x))
    if name in ARITHMETIC or name in COMPARISONS:
        check(function(wrapped, x))
        check(dt.jit(lambda x: function(Wrapped(x), x))(x))


def test_the_array_is_asked_before_the_other_operator() -> None:
    both = type("Both", (Wrapped,), OWN)(X)
    np.testing.assert_array_equal(X * both, X * X)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "asarray": jnp.asarray,
    "array": lambda v: jnp.array(v, dtype="int32"),
    "nested": lambda v: jnp.array([v, v]),
    "sin": jnp.sin,
    "sum": jnp.sum,
    "matmul": lambda v: jnp.matmul(v, v),
    "concatenate": lambda v: jnp.concatenate([v, v]),
    "where": lambda v: jnp.where(X > 2, v, 0),
    "einsum": lambda v: jnp.einsum("i,i", v, v),
    "zeros_like": jnp.zeros_like,
    "shape": jnp.shape,
    "float32": jnp.float32,
    "norm": jnp.linalg.norm,
    "fft": jnp.fft.fft,
    "relu": dt.nn.relu,
    "lax.sin": lax.sin,
    "lax.add": lambda v: lax.add(v, X),
    "lax.reshape": lambda v: lax.reshape(v, (3, 1)),
    "lax.cumsum": lax.cumsum,
    "cond": lambda v: lax.cond(True, jnp.sin, jnp.cos, v),
    "scan": lambda v: lax.scan(lambda c, y: (c + y, y), 0.0, v),
    "while_loop": lambda v: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, v),
    "set": lambda v: jnp.zeros(3).at[:].set(v),
    "ravel_pytree": lambda v: dt.flatten_util.ravel_pytree(v)[0],
    "device_put": dt.device_put,
    "stop_gradient": lax.stop_gradient,
    "uniform": lambda v: dt.random.uniform(dt.random.key(0), (3,), minval=v, maxval=9),
    "permutation": lambda v: dt.random.permutation(dt.random.key(0), v),
    "choice": lambda v: dt.random.choice(dt.random.key(0), v, (2,)),
    "choice by weight": lambda v: dt.random.choice(dt.random.key(0), v, (2,), p=v),
    "categorical": lambda v: dt.random.categorical(dt.random.key(0), v),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_convert(name: str) -> None:
    function = FUNCTIONS[name]
    for expected, found in (
        (function(X), function(Wrapped(X))),
        (function(X), function(Wrapped(np.asarray(X)))),
    ):
        dt.tree.map(np.testing.assert_array_equal, expected, found)
    if name != "device_put":
        traced = dt.jit(lambda x: function(Wrapped(x)))(X)
        dt.tree.map(np.testing.assert_array_equal, dt.jit(function)(X), traced)


@pytest.mark.parametrize("index", [1, [0, 2], [True, False, True]], ids=str)
def test_indices_convert(index: Any) -> None:
    wrapped = Wrapped(jnp.asarray(index))
    np.testing.assert_array_equal(X[wrapped], X[jnp.asarray(index)])
    np.testing.assert_array_equal(X.at[wrapped].set(0), X.at[jnp.asarray(index)].set(0))


def test_the_conversion_is_asked_first() -> None:
    class Row(tuple[float, ...]):
        def __jax_array__(self) -> Any:
            return X

    class Both(Wrapped):
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise AssertionError

    np.testing.assert_array_equal(jnp.asarray(Row()), X)
    np.testing.assert_array_equal(jnp.asarray(Both(X)), X)
    assert jnp.asarray(Wrapped(3.0)).dtype == np.float32
    assert jnp.isscalar(Wrapped(1.0))


def test_no_gradient_flows_through_what_is_stopped() -> None:
    assert dt.grad(lambda x: jnp.sum(x * lax.stop_gradient(Wrapped(x))))(3.0) == 3.0


@pytest.mark.parametrize(
    "transformed",
    [dt.jit, dt.grad, dt.vmap, dt.checkpoint, dt.make_jaxpr, dt.jacfwd],
    ids=lambda transformation: transformation.__name__,
)
def test_transformations_refuse_what_would_convert(transformed: Any) -> None:
    with pytest.raises(NonArrayArgumentError, match=r"Argument x of .*dovetail\.numpy\.asarray"):
        transformed(lambda x: jnp.sum(x))(Wrapped(X))
