"""Programs over meshes give what they give on one device, divided as they are asked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.errors import DeviceMismatchError
from dovetail.experimental import io_callback, serialize_executable
from dovetail.experimental.layout import Format
from dovetail.scipy import special
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
VALUE = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
ROWS, COLUMNS, BOTH, WHOLE, FLAT = (
    NamedSharding(MESH, spec) for spec in (P("x"), P(None, "y"), P("x", "y"), P(), P(("y", "x")))
)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: jnp.sin(x) + 1,
    "sum": lambda x: x.sum(),
    "sum of columns": lambda x: x.sum(0),
    "maximum of rows": lambda x: x.max(1),
    "product": lambda x: x @ x.T,
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(4, 16),
    "element": lambda x: x[3],
    "slice": lambda x: x[1:5, ::2],
    "update": lambda x: x.at[2].set(0.0),
    "take": lambda x: x[jnp.array([5, 1])],
    "sort": lambda x: jnp.sort(x, 0),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "softmax": lambda x: dt.nn.softmax(x, 0),
    "concatenate": lambda x: jnp.concatenate([x, x], 1),
    "roll": lambda x: jnp.roll(x, 3, 0),
    "convolution": lambda x: jnp.convolve(x[0], x[1]),
    "fft": lambda x: jnp.fft.fft(x).real,
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(x @ x.T),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(8), x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: 2 * c + 1, abs(x)),
    "cond": lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "vmap": lambda x: dt.vmap(jnp.dot, (0, 1))(x, x),
    "grad": lambda x: dt.grad(lambda y: (y @ y.T).std())(x),
    "several": lambda x: (x, {"a": x[0], "b": jnp.float32(2)}),
    "nested": lambda x: dt.jit(lambda y: 2 * y)(x) - x,
    "random": lambda x: x + random.normal(random.key(0), x.shape),
    "gammainc": lambda x: special.gammainc(abs(x), 2 * abs(x) + 0.1),
    "betainc": lambda x: special.betainc(abs(x) + 0.1, 2.0, abs(jnp.sin(x))),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
}


def close(found: Any, expected: Any) -> None:
    ours, theirs = dt.tree.leaves(found), dt.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_are_those_of_one_device(name: str) -> None:
    function = FUNCTIONS[name]
    expected = dt.jit(function)(VALUE)
    for place in (BOTH, FLAT):
        found = dt.jit(function)(dt.device_put(VALUE, place))
        close(found, expected)
        for leaf in dt.tree.leaves(found):
            assert leaf.committed
            assert leaf.sharding.mesh is MESH
    close(function(dt.device_put(VALUE, ROWS)), expected)


def test_shardings_follow_the_arguments() -> None:
    x = dt.device_put(VALUE, BOTH)
    for place in (ROWS, COLUMNS, BOTH, WHOLE, FLAT):
        y = dt.device_put(VALUE, place)
        assert jnp.exp(y).sharding is place
        assert dt.jit(lambda y: y * 2 + 1)(y).sharding is place
    assert x.T.sharding.spec == P("y", "x")
    assert x.sum(0).sharding.spec == P("y")
    assert x.sum().sharding.spec == P()
    for other in (VALUE, jnp.asarray(VALUE), 2, np.float32(2), jnp.float32(2)):
        assert (x + other).sharding is BOTH
        assert (other * x).sharding is BOTH
    assert [row.sharding.spec for row in x] == [P("y")] * 8


@pytest.mark.parametrize("kind", [dt.sharding.AxisType.Auto, dt.sharding.AxisType.Explicit])
@pytest.mark.parametrize("spec", [P(), P(None), P(None, None), P("x"), P("x", None), P(None, "x")])
def test_results_are_described_as_arguments_are(spec: P, kind: Any) -> None:
    """`P("x", None)` stays as it was written, so that a loop finds its program again."""
    mesh = Mesh(np.array(DEVICES), ("x",), axis_types=(kind,))
    given = NamedSharding(mesh, spec)
    x = dt.device_put(VALUE, given)
    step = dt.jit(lambda x: 2 * x)
    for y in (step(x), step(step(x)), x + 1, dt.jit(lambda x: x)(x)):
        assert y.sharding is given
    assert step._cache_size() == 1
    # Of fewer dimensions than the specification says.
    shorter = {P("x", None): P("x"), P(None, "x"): P(), P(None, None): P()}.get(spec, spec)
    assert step(x).sum(-1).sharding.spec == shorter


def test_calls_are_fast_paths_for_every_kind_of_argument() -> None:
    f = dt.jit(lambda x, y: x + y)
    for place in (ROWS, BOTH):
        x = dt.device_put(VALUE, place)
        for other in (x, VALUE, 2.0, np.float32(2), jnp.asarray(VALUE), dt.device_put(VALUE, FLAT)):
            for _ in range(3):
                close(f(x, other), VALUE + np.asarray(other, np.float32))


ASKED: dict[str, tuple[Any, Any]] = {
    "rows": (ROWS, ROWS),
    "rows to columns": (ROWS, COLUMNS),
    "only in": (BOTH, None),
    "only out": (None, BOTH),
    "tuples": ((COLUMNS,), BOTH),
    "format": (Format(None, ROWS), WHOLE),
}


@pytest.mark.parametrize("name", ASKED)
def test_shardings_that_are_asked_for(name: str) -> None:
    given, asked = ASKED[name]
    options = {"in_shardings": given, "out_shardings": asked}
    f = dt.jit(lambda x: jnp.sin(x) * 2, **{k: v for k, v in options.items() if v is not None})
    for value in (VALUE, jnp.asarray(VALUE)):
        for _ in range(2):
            y = f(value)
            close(y, np.sin(VALUE) * 2)
            if asked is not None:
                assert y.sharding is asked
    assert dt.jit(lambda x: f(x) + 1)(VALUE).sharding.mesh is MESH
    close(dt.grad(lambda x: f(x).sum())(VALUE), 2 * np.cos(VALUE))
    compiled = f.lower(VALUE).compile()
    close(compiled(VALUE), np.sin(VALUE) * 2)
    if asked is not None:
        assert compiled.output_shardings is asked


def test_trees_of_shardings() -> None:
    f = dt.jit(
        lambda x, tree: {"sum": x + tree["a"], "rest": (tree["b"], x)},
        in_shardings=(ROWS, {"a": BOTH, "b": None}),
        out_shardings={"sum": COLUMNS, "rest": WHOLE},
    )
    found = f(VALUE, {"a": VALUE, "b": 1.0})
    close(found, {"rest": (jnp.float32(1), VALUE), "sum": 2 * VALUE})
    assert found["sum"].sharding is COLUMNS
    assert found["rest"][1].sharding is WHOLE


def test_options_beside_shardings() -> None:
    f = dt.jit(lambda n, x: n * x, static_argnums=0, in_shardings=ROWS, donate_argnums=1)
    x = dt.device_put(VALUE, ROWS)
    close(f(3, x), 3 * VALUE)
    assert x.is_deleted()
    empty = dt.jit(lambda x: x, in_shardings=None, out_shardings=None)
    assert isinstance(empty(VALUE).sharding, SingleDeviceSharding)


def test_constraints_over_a_mesh_without_devices() -> None:
    constrain = lax.with_sharding_constraint
    without = NamedSharding(ROWS.mesh.abstract_mesh, ROWS.spec)
    with dt.set_mesh(ROWS.mesh):
        for found in (constrain(VALUE, without), dt.jit(lambda x: constrain(x, without))(VALUE)):
            assert found.sharding.is_equivalent_to(ROWS, VALUE.ndim)
    placed = dt.device_put(VALUE, ROWS)
    assert constrain(placed, without).sharding.is_equivalent_to(ROWS, VALUE.ndim)
    with pytest.raises(ValueError, match=r"whose mesh has no devices.*set_mesh"):
        constrain(VALUE, without)


def test_constraints() -> None:
    constrain = lax.with_sharding_constraint
    assert constrain(VALUE, ROWS).sharding is ROWS
    f = dt.jit(lambda x: constrain(x * 2, COLUMNS))
    for value in (VALUE, jnp.asarray(VALUE), dt.device_put(VALUE, ROWS)):
        assert f(value).sharding is COLUMNS
        close(f(value), 2 * VALUE)
    assert "sdy.sharding_constraint" in f.lower(VALUE).as_text()
    tangent = dt.jvp(f, (VALUE,), (VALUE,))[1]
    close(tangent, 2 * VALUE)
    assert dt.grad(lambda x: (constrain(x, ROWS) ** 2).sum())(VALUE).sharding is ROWS
    row = NamedSharding(MESH, P("y"))
    mapped = dt.vmap(lambda x: constrain(2 * x, row))
    close(mapped(VALUE), 2 * VALUE)
    assert dt.jit(mapped)(VALUE).sharding is COLUMNS
    # The compiler chooses for the new dimension: here it is divided, and stays so.
    assert dt.jit(mapped)(dt.device_put(VALUE, ROWS)).sharding is BOTH
    assert mapped(VALUE).sharding is COLUMNS
    close(dt.vmap(lambda x: constrain(2 * x, row), 1, 1)(VALUE), 2 * VALUE)
    scanned = dt.jit(lambda x: lax.scan(lambda c, y: (constrain(c + y, row), None), x[0], x)[0])
    close(scanned(VALUE), VALUE[0] + VALUE.sum(0))
    assert dt.jit(lambda x: dt.device_put(x, COLUMNS))(VALUE).sharding is COLUMNS
    both = constrain({"a": VALUE, "b": VALUE}, {"a": ROWS, "b": None})
    assert both["a"].sharding is ROWS
    one = constrain(VALUE, SingleDeviceSharding(DEVICES[1]))
    assert one.devices() == {DEVICES[1]}


def test_a_mesh_of_one_device() -> None:
    alone = NamedSharding(Mesh(DEVICES[2:3], "x"), P("x"))
    x = dt.device_put(VALUE, alone)
    assert x.sharding is alone
    for y in (
        x + 1,
        dt.jit(lambda x: x + 1)(x),
        dt.jit(lambda x: x + 1, in_shardings=alone)(VALUE),
    ):
        close(y, VALUE + 1)
        assert y.devices() == {DEVICES[2]}
    close(dt.jit(lambda x: x + 1).lower(x).compile()(x), VALUE + 1)


def test_callbacks_run_once(capfd: Any) -> None:
    seen: list[Any] = []

    def note(x: Any) -> Any:
        seen.append(np.asarray(x))
        return 2 * np.asarray(x)

    shape = dt.ShapeDtypeStruct((8, 8), np.float32)
    x = dt.device_put(VALUE, BOTH)
    close(dt.jit(lambda x: dt.pure_callback(note, shape, x) + 1)(x), 2 * VALUE + 1)
    close(dt.jit(lambda x: io_callback(note, shape, x, ordered=True))(x), 2 * VALUE)
    dt.jit(lambda x: (dt.debug.print("the sum is {}", x.sum()), x)[1])(x).block_until_ready()
    dt.effects_barrier()
    assert len(seen) == 2
    for value in seen:
        np.testing.assert_array_equal(value, VALUE)
    assert capfd.readouterr().out.count("the sum is") == 1


def test_compiled_ahead_of_time() -> None:
    x = dt.device_put(VALUE, ROWS)
    lowered = dt.jit(lambda x, y: (x + y, x.sum(1))).lower(
        x, dt.ShapeDtypeStruct((8, 8), np.float32, sharding=BOTH)
    )
    compiled = lowered.compile()
    assert dt.tree.leaves(compiled.input_shardings) == [ROWS, BOTH]
    total, sums = compiled(x, dt.device_put(VALUE, BOTH))
    close((total, sums), (2 * VALUE, VALUE.sum(1)))
    assert (total.sharding, sums.sharding) == compiled.output_shardings
    with pytest.raises(
        ValueError, match=r"its argument y with the sharding .* but it got one with"
    ):
        compiled(x, x)
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    close(loaded(x, dt.device_put(VALUE, BOTH)), (2 * VALUE, VALUE.sum(1)))
    assert dt.tree.leaves(loaded.output_shardings) == [total.sharding, sums.sharding]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: dt.device_put(VALUE, ROWS) + dt.device_put(VALUE, DEVICES[0]),
            DeviceMismatchError,
            "self of add .* has the sharding NamedSharding.* Move one of them",
        ),
        (
            lambda: (
                dt.device_put(VALUE, ROWS)
                + dt.device_put(VALUE, NamedSharding(Mesh(DEVICES[::-1], "z"), P("z")))
            ),
            DeviceMismatchError,
            "the same devices in the same order",
        ),
        (
            lambda: dt.jit(lambda x: x, in_shardings=ROWS)(dt.device_put(VALUE, BOTH)),
            DeviceMismatchError,
            "got the argument x of .* and in_shardings asks for",
        ),
        (
            lambda: dt.jit(lambda p: p, in_shardings=ROWS)({"w": np.ones((3, 2))}),
            ValueError,
            r"with in_shardings, argument \[0\]\['w'\]: dimension 0 .* Pad it to 4",
        ),
        (
            lambda: dt.jit(lambda x: x[:3], out_shardings=ROWS)(VALUE),
            ValueError,
            "with out_shardings, result: dimension 0 of an array of shape .3, 8. cannot",
        ),
        (lambda: dt.jit(lambda x: x, in_shardings=P("x"))(VALUE), ValueError, "no current mesh"),
        (lambda: dt.jit(lambda x: x, in_shardings="x"), ValueError, "must be a device"),
        (
            lambda: dt.jit(lambda x, y: x, in_shardings=(ROWS,))(VALUE, VALUE),
            ValueError,
            "in_shardings of jit has a tuple of length 1",
        ),
        (
            lambda: dt.jit(lambda x: (x, x), out_shardings=(ROWS,))(VALUE),
            ValueError,
            "tuple of length",
        ),
        (
            lambda: dt.jit(
                lambda x: lax.with_sharding_constraint(
                    lax.with_sharding_constraint(x, ROWS),
                    NamedSharding(Mesh(DEVICES[:2], "z"), P("z")),
                )
            )(VALUE),
            DeviceMismatchError,
            "different devices",
        ),
        (lambda: dt.device_put(VALUE, ROWS).unsafe_buffer_pointer(), BufferError, "no address"),
        (lambda: np.from_dlpack(dt.device_put(VALUE, ROWS)), BufferError, "several devices"),
        (lambda: lax.with_sharding_constraint(VALUE, P("x")), ValueError, r"write NamedSharding\("),
        (
            lambda: dt.jit(lambda x: lax.with_sharding_constraint(x, ROWS))(np.ones(3)),
            ValueError,
            "lax.with_sharding_constraint: x: dimension 0",
        ),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_large_constants_are_whole_on_every_device():
    rows = NamedSharding(Mesh(dt.devices(), "x"), P("x"))
    count = len(dt.devices())
    large = np.arange(4 * count * 3000, dtype=np.float32).reshape(4 * count, 3000)
    x = dt.device_put(np.ones((4 * count, 1), np.float32), rows)
    y = dt.jit(lambda x: x * jnp.asarray(large))(x)
    np.testing.assert_array_equal(np.asarray(y), large)
