"""`eval_shape` says what a call would return, and computes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import NonArrayArgumentError
from dovetail.sharding import AxisType, ManualAxisType, NamedSharding, UnreducedKind
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.laws

S = dt.ShapeDtypeStruct
F4 = np.dtype(np.float32)
MATRIX = np.ones((2, 3), np.float32)


@dt.custom_vjp
def with_rule(x: Any) -> Any:
    return jnp.sin(x)


with_rule.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * x,))


# Functions of one array of any numeric dtype and any shape with at least one dimension.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "add": lambda x: x + 1,
    "add a float": lambda x: x + 1.5,
    "multiply": lambda x: x * x,
    "divide": lambda x: x / 2,
    "sin": jnp.sin,
    "sum": jnp.sum,
    "sum along": lambda x: x.sum(0, keepdims=True),
    "mean": jnp.mean,
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1, 1),
    "compare": lambda x: x != 0,
    "astype": lambda x: x.astype(jnp.complex64),
    "index": lambda x: x[0],
    "index with None": lambda x: x[None, ..., :1],
    "update": lambda x: x.at[0].set(0),
    "argsort": lambda x: jnp.argsort(x, axis=0),
    "where": lambda x: jnp.where(x == 0, x, 1),
    "constants": lambda x: (1, 2.0, True, np.float32(3), jnp.zeros(3)),
    "tree": lambda x: {"a": [x, (x + x, None)], "b": ()},
    "nothing": lambda x: None,
    "jit": dt.jit(lambda x: (x * 2, x.shape[0])),
    "jit with a static argument": lambda x: dt.jit(lambda y, n: y[:n], static_argnums=1)(x, 1),
    "vmap": lambda x: dt.vmap(lambda y: (y, 1.0))(x),
    "scan": lambda x: lax.scan(lambda c, y: (c + 1, y * 2), 0, x),
    "scan of a number": lambda x: lax.scan(lambda c, y: (c * y.sum(), c), 1, x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + c, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x)),
    "cond": lambda x: lax.cond(x.size > 2, lambda y: (y, 1), lambda y: (y + y, 2), x),
    "switch": lambda x: lax.switch(1, [lambda y: y, lambda y: y * 2], x),
    "map": lambda x: lax.map(lambda y: y * 2, x),
    "associative_scan": lambda x: lax.associative_scan(lambda a, b: a + b, x),
    "checkpoint": lambda x: dt.checkpoint(lambda y: y + 1)(x),
    "random": lambda x: dt.random.uniform(dt.random.key(0), x.shape),
    "key": lambda x: dt.random.split(dt.random.key(0), x.shape[0]),
    "eval_shape": lambda x: jnp.zeros_like(dt.eval_shape(lambda y: y + 1, x)),
    "mutable reference": lambda x: dt.freeze(dt.new_ref(x)),
}
# Functions of arrays of real floats.
OF_FLOATS: dict[str, Callable[[Any], Any]] = {
    "grad": dt.grad(lambda x: jnp.sum(x * x)),
    "value_and_grad": dt.value_and_grad(lambda x: (jnp.sum(x), {"aux": x}), has_aux=True),
    "jvp": lambda x: dt.jvp(jnp.sin, (x,), (x,)),
    "hessian": dt.hessian(lambda x: jnp.sum(x**3)),
    "custom_vjp": with_rule,
    "grad of custom_vjp": dt.grad(lambda x: with_rule(x).sum()),
    "grad of scan": dt.grad(lambda x: lax.scan(lambda c, y: (c * y.sum(), c), 1.0, x)[0].sum()),
}
DTYPES = ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"]
WITHOUT_BOOL = {"fori_loop", "switch", "update"}


def types(tree: Any) -> list[tuple[Any, ...]]:
    return [(x.shape, x.dtype, x.weak_type) for x in map(jnp.asarray, dt.tree.leaves(tree))]


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A real call returns what `eval_shape` says, also of shapes alone."""
    real = dt.jit(function)(*args, **kwargs)
    for given in ((args, kwargs), dt.tree.map(dt.typeof, (args, kwargs)), structs((args, kwargs))):
        found = dt.eval_shape(function, *given[0], **given[1])
        assert dt.tree.structure(found) == dt.tree.structure(real)
        assert all(type(leaf) is S for leaf in dt.tree.leaves(found))
        assert [(x.shape, x.dtype, x.weak_type) for x in dt.tree.leaves(found)] == types(real)


def structs(tree: Any) -> Any:
    avals = dt.tree.map(dt.typeof, tree)
    return dt.tree.map(lambda a: S(a.shape, a.dtype, weak_type=a.weak_type), avals)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_types(name: str, dtype: str) -> None:
    if dtype == "bool" and name in WITHOUT_BOOL:
        dtype = "int16"
    for shape in ((3,), (2, 3)):
        check(FUNCTIONS[name], jnp.ones(shape, dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", OF_FLOATS)
def test_types_of_derivatives(name: str, dtype: str) -> None:
    check(OF_FLOATS[name], jnp.ones((2, 3), dtype))


@pytest.mark.parametrize("value", [True, 2, 2.0, 2j], ids=str)
@pytest.mark.parametrize("name", ["identity", "add", "add a float", "multiply", "divide", "tree"])
def test_python_numbers(name: str, value: Any) -> None:
    check(FUNCTIONS[name], value)


def test_64_bits() -> None:
    with dt.enable_x64(True):
        check(lambda x, n: (x * n, x.sum(), n / 2), jnp.ones(3, "float64"), jnp.ones((), "int64"))
        check(lambda n: n + 1, 1)
        struct = S((2,), "float64")
        assert dt.eval_shape(lambda x: x, struct).dtype == np.float64
    assert dt.eval_shape(lambda x: x, S((2,), "float64")).dtype == np.float32


def test_arguments_of_all_kinds() -> None:
    check(lambda a, *rest, b, **more: (a, rest, b, more), 1, MATRIX, [MATRIX], b={"c": 2.0}, d=())
    check(lambda x=MATRIX: x)
    key = dt.random.key(0)
    (out,) = dt.tree.leaves(dt.eval_shape(lambda k: dt.random.split(k), key))
    assert (out.shape, out.dtype) == ((2,), key.dtype)
    assert dt.eval_shape(lambda k: k, S((), key.dtype)).dtype == key.dtype
    # Objects of others that have a shape and a dtype.
    foreign = type("Foreign", (), {"shape": (2,), "dtype": np.dtype("int32")})()
    assert dt.eval_shape(lambda x: x + 1.0, foreign) == S((2,), "float32", weak_type=True)


def test_what_is_static_is_bound() -> None:
    """All arguments are arrays: what else a function takes is captured."""
    with pytest.raises(
        dt.errors.NonArrayArgumentError, match="name of eval_shape of _named is 's'"
    ):
        dt.eval_shape(_named, "s")
    assert dt.eval_shape(lambda x: _scaled(x, n=2), S((1, 2), "float32")).shape == (1, 4)


def _named(name: Any) -> Any:
    return name


def _scaled(x: Any, n: int) -> Any:
    return jnp.concatenate([x] * n, axis=1)


def _raise(*args: Any) -> Any:
    raise AssertionError("computed")


NEVER: dict[str, Callable[[Any], Any]] = {
    "pure_callback": lambda x: dt.pure_callback(_raise, x, x),
    "io_callback": lambda x: dt.experimental.io_callback(_raise, x, x, ordered=True),
    "debug.callback": lambda x: (dt.debug.callback(_raise, x), x)[1],
    "grad of pure_callback": lambda x: dt.grad(
        lambda y: (dt.pure_callback(_raise, x, lax.stop_gradient(x)) * y).sum()
    )(x),
    "callback in scan": lambda x: lax.scan(
        lambda c, y: (dt.pure_callback(_raise, c, c), y), x[0], x
    )[1],
    "callback of a known value": lambda x: x + dt.pure_callback(_raise, S((), "float32"), 1.0),
    "jit": dt.jit(lambda x: dt.pure_callback(_raise, x, x)),
    "checkpoint": dt.checkpoint(lambda x: dt.pure_callback(_raise, x, x)),
}


@pytest.mark.parametrize("name", NEVER)
def test_nothing_is_computed(name: str) -> None:
    found = dt.eval_shape(NEVER[name], MATRIX)
    assert (found.shape, found.dtype) == (MATRIX.shape, MATRIX.dtype)
    dt.effects_barrier()


def test_memory_that_there_is_not() -> None:
    huge = S((1 << 20, 1 << 20), "float32")
    assert dt.eval_shape(lambda x: x @ x + jnp.zeros(huge.shape), huge).shape == huge.shape


class TestReferences:
    def test_values(self) -> None:
        ref = dt.new_ref(jnp.ones(3))

        def write(r: Any, x: Any) -> Any:
            r[...] = r[...] * x
            return r[0], x

        for given in (ref, S((3,), "float32", is_ref=True)):
            found = dt.eval_shape(write, given, S((), "float32"))
            assert [x.shape for x in found] == [(), ()]
        assert ref[...].tolist() == [1, 1, 1]

    def test_captured(self) -> None:
        ref = dt.new_ref(jnp.ones(3))

        def write(x: Any) -> Any:
            ref[...] += x
            return ref[...]

        assert dt.eval_shape(write, 1.0) == S((3,), "float32")
        assert ref[...].tolist() == [1, 1, 1]

    def test_in_trees_and_loops(self) -> None:
        def sums(refs: Any) -> Any:
            def body(i: Any, c: Any) -> Any:
                refs["a"][i] += 1
                return c + refs["a"][i]

            return lax.fori_loop(0, 3, body, 0.0)

        found = dt.eval_shape(sums, {"a": S((3,), "float32", is_ref=True)})
        assert (found.shape, found.dtype) == ((), np.float32)
        real = dt.jit(sums)({"a": dt.new_ref(jnp.ones(3))})
        assert (real.shape, real.dtype) == ((), np.float32)

    def test_cannot_be_returned(self) -> None:
        with pytest.raises(ValueError, match=r"Return the value, ref\[\.\.\.\]"):
            dt.eval_shape(lambda r: r, S((3,), "float32", is_ref=True))


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: dt.eval_shape(3, 1), TypeError, "eval_shape takes a function"),
    "no array returned": (
        lambda: dt.eval_shape(lambda x: "s", 1),
        TypeError,
        "returned a value of type str",
    ),
    "a value asked for": (
        lambda: dt.eval_shape(lambda x: float(x), 1.0),
        dt.errors.ConcretizationTypeError,
        "float",
    ),
    "a dtype that there is not": (
        lambda: dt.eval_shape(lambda x: x, np.array(["s"])),
        TypeError,
        "dtype",
    ),
    "shapes that do not fit": (
        lambda: dt.eval_shape(lambda x, y: x + y, S((2,), "float32"), S((3,), "float32")),
        TypeError,
        r"\(2,\).*\(3,\)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


LIKE: dict[str, tuple[Callable[[], Any], dt.ShapeDtypeStruct]] = {
    "array": (lambda: jnp.ones((2, 3)), S((2, 3), "float32")),
    "weak array": (lambda: jnp.asarray(1.0), S((), "float32", weak_type=True)),
    "array of NumPy": (lambda: np.ones(2, np.int16), S((2,), "int16")),
    "float": (lambda: 1.5, S((), "float32", weak_type=True)),
    "struct": (lambda: S((2,), "int8", weak_type=True), S((2,), "int8", weak_type=True)),
    "aval": (lambda: dt.typeof(jnp.ones(2, bool)), S((2,), "bool")),
    "reference": (lambda: dt.ref.new_ref(jnp.ones(2)), S((2,), "float32", is_ref=True)),
    "key": (lambda: dt.random.key(0), S((), dt.random.key_dtype())),
    "committed array": (
        lambda: dt.device_put(jnp.ones(2), dt.devices()[0]),
        S((2,), "float32", sharding=jnp.ones(2).format),
    ),
}


@pytest.mark.parametrize("name", LIKE)
def test_structs_like_a_value(name: str) -> None:
    make, expected = LIKE[name]
    assert dt.ShapeDtypeStruct.like(make()) == expected
    assert S((7,), "int8").like(make()) == expected
    assert expected.update() == expected


def test_structs_like_a_tracer() -> None:
    seen: list[Any] = []
    dt.vmap(lambda x: seen.append(dt.ShapeDtypeStruct.like(x)) or x)(jnp.ones((2, 3)))
    assert seen == [S((3,), "float32")]
    with pytest.raises(TypeError, match="list"):
        dt.ShapeDtypeStruct.like([1, 2])


def test_the_format_of_a_struct() -> None:
    committed = dt.device_put(jnp.ones((2, 3)), dt.devices()[0])
    struct = S((2, 3), "float32", sharding=committed.format)
    assert struct.format == committed.format
    assert struct.sharding == committed.sharding
    assert struct.update(shape=(3, 2)).format == committed.format
    assert struct != S((2, 3), "float32", sharding=committed.sharding)
    assert "layout=Layout(" in repr(struct)
    assert S((2, 3), "float32").format.sharding is None


def test_shardings_of_structs() -> None:
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows = NamedSharding(mesh, P("x"))
    with dt.set_mesh(mesh):
        assert S((4,), F4, sharding=P("x")) == S((4,), F4, sharding=rows)
    double = dt.jit(lambda x: (x * 2, {"sum": x.sum()}), out_shardings=(rows, None))
    expected = (S((4,), F4, sharding=rows), {"sum": S((), F4)})
    for found in (dt.eval_shape(double, S((4,), F4)), double.eval_shape(np.ones(4, F4))):
        assert found == expected
    for sharding, error, message in (
        (P("x"), ValueError, "sharding of ShapeDtypeStruct is .*no current mesh"),
        (
            NamedSharding(mesh, P(None, "x")),
            ValueError,
            r"divides 2 dimensions, and the shape \(4,",
        ),
        ("x", TypeError, "sharding must be a sharding"),
    ):
        with pytest.raises(error, match=message):
            S((4,), F4, sharding=sharding)


def test_manual_axis_types() -> None:
    varying = ManualAxisType(varying={"x"})
    assert hash(varying) == hash(ManualAxisType(varying=frozenset("x")))
    assert ManualAxisType(unreduced={"x"}).unreduced_kind is UnreducedKind.sum
    for given, error, message in (
        ({"varying": "x"}, TypeError, "varying is a set of names"),
        ({"varying": {"x"}, "reduced": {"x", "y"}}, ValueError, r"varying and reduced both.*'x'"),
    ):
        with pytest.raises(error, match=message):
            ManualAxisType(**given)
    struct = S((4,), F4, manual_axis_type=varying)
    assert struct != S((4,), F4)
    assert len({struct, S((4,), F4), struct.update(shape=(2,)).update(shape=(4,))}) == 2
    assert "manual_axis_type=ManualAxisType(varying=frozenset({'x'})" in repr(struct)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: manual_axis_type must be a"):
        S((2,), F4, manual_axis_type="x")  # type: ignore[arg-type]
    with pytest.raises(NameError, match=r"manual_axis_type.*unbound axis name"):
        dt.eval_shape(lambda x: x, struct)


@pytest.mark.parametrize("checked", [True, False])
def test_structs_inside_shard_map(checked: bool) -> None:
    """What varies along an axis says so, and types of results of callbacks are what was asked."""
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    along_x, along_y = (ManualAxisType(varying={name}) for name in "xy")

    def part(x: Any) -> Any:
        own = S((2,), F4, manual_axis_type=along_x if checked else None)
        total = S((2,), F4)
        assert dt.eval_shape(lambda x: (x * 2, lax.psum(x, "x")), x) == (own, total)
        assert dt.eval_shape(lambda x: (x * 2, lax.psum(x, "x")), own) == (own, total)
        assert dt.ShapeDtypeStruct.like(x) == own
        assert dt.typeof(own) == dt.typeof(x)
        results = dt.pure_callback(
            lambda x: (x, x, x), (total, own, total.update(manual_axis_type=along_y)), x
        )
        shown = [dt.typeof(result).vma for result in results]
        assert shown == ([{"x"}, {"x"}, {"x", "y"}] if checked else [set()] * 3)
        return results

    specs = (P("x"), P("x"), P(("y", "x")))
    function = dt.shard_map(part, mesh=mesh, in_specs=P("x"), out_specs=specs, check_vma=checked)
    first, second, third = function(np.arange(4, dtype=F4))
    np.testing.assert_array_equal(first, [0, 1, 2, 3])
    np.testing.assert_array_equal(second, first)
    np.testing.assert_array_equal(third, [0, 1, 2, 3, 0, 1, 2, 3])


def test_types_among_results_stay() -> None:
    """A function may return types: of another `eval_shape`, say."""
    weak, own = S((), F4, weak_type=True), S((2,), "i4")

    def f(x: Any) -> Any:
        return {"a": [own, x], "b": dt.eval_shape(jnp.sin, x), "c": (None, x > 0)}

    bools = S((), "?")
    assert dt.eval_shape(f, 1.0) == {"a": [own, weak], "b": weak, "c": (None, bools)}
    assert dt.eval_shape(lambda: own) == own
    assert dt.eval_shape(lambda: (own, S((0, 3), F4))) == (own, S((0, 3), F4))
    with pytest.raises(NonArrayArgumentError, match=r"<lambda> returned .* str at \['b'\]\[1\]"):
        dt.eval_shape(lambda x: {"a": own, "b": [x, "text"]}, 1.0)
