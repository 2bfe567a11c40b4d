"""While a mesh is set, programs that are told of no devices run on those of the mesh."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.errors import DeviceMismatchError
from dovetail.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = np.array(dt.devices("cpu")[:4])
VALUE = np.linspace(-1, 1, 8).astype(np.float32)
KINDS = (AxisType.Auto, AxisType.Explicit)

added = dt.jit(lambda x: jnp.add(x, 1))
same = dt.jit(lambda x: x)
both = dt.jit(lambda x, y: x + y)


def plainly(x: Any) -> Any:
    with dt.disable_jit():
        return added(x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: 1 + jnp.asarray(x),
    "function": jnp.sin,
    "primitive": lax.sin,
    "jit": added,
    "jit of the identity": same,
    "jit with an array from elsewhere": lambda x: both(x, ELSEWHERE),
    "without jit": plainly,
    "grad": lambda x: dt.grad(lambda y: jnp.sin(y).sum())(x),
    "linearize": lambda x: dt.linearize(jnp.sin, x)[1](x),
    "vmap": lambda x: dt.vmap(lambda y: 2 * y)(x),
    "sum": jnp.sum,
    "stack": lambda x: jnp.stack([x, x]),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x),
    "branch": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
}
CREATED: dict[str, Callable[[], Any]] = {
    "zeros": lambda: jnp.zeros(7),
    "large zeros": lambda: jnp.zeros((100, 100)),
    "arange": lambda: jnp.arange(7),
    "linspace": lambda: jnp.linspace(0, 1, 7),
    "eye": lambda: jnp.eye(3),
    "numbers": lambda: jnp.array([1, 2]),
    "scalar": lambda: jnp.float32(3),
    "asarray": lambda: jnp.asarray(VALUE),
    "copy": lambda: jnp.array(ELSEWHERE),
    "copy.copy": lambda: copy.copy(ELSEWHERE),
    "zeros_like": lambda: jnp.zeros_like(ELSEWHERE),
    "lax.full": lambda: lax.full((3,), 2.0),
    "key": lambda: random.key(0),
    "normal": lambda: random.normal(random.key(0), (7,)),
    "split": lambda: random.split(random.key(0)),
    "jit": dt.jit(lambda: jnp.arange(3)),
    "jit of a constant": dt.jit(lambda: ELSEWHERE),
    "callback": lambda: dt.pure_callback(
        lambda x: np.asarray(x), dt.ShapeDtypeStruct((8,), np.float32), ELSEWHERE
    ),
}
ELSEWHERE = jnp.asarray(VALUE)  # on the default device, and not committed


def meshes(kind: AxisType) -> tuple[Mesh, Mesh, Mesh]:
    """A mesh, another one of its devices, and one of fewer."""
    kinds = (kind, kind)
    return (
        Mesh(DEVICES.reshape(2, 2), ("x", "y"), axis_types=kinds),
        Mesh(DEVICES.reshape(4, 1), ("a", "b"), axis_types=kinds),
        Mesh(DEVICES[:2].reshape(2, 1), ("x", "y"), axis_types=kinds),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_that_are_not_committed(name: str, kind: AxisType) -> None:
    mesh, _, _ = meshes(kind)
    function = FUNCTIONS[name]
    expected = np.asarray(function(VALUE))
    before = function(ELSEWHERE)
    with dt.set_mesh(mesh):
        for operand in (VALUE, ELSEWHERE, VALUE, ELSEWHERE):  # cold and warm
            result = function(operand)
            assert result.sharding == NamedSharding(mesh, P())
            assert result.committed
            np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    for result in (before, function(ELSEWHERE)):
        assert type(result.sharding) is SingleDeviceSharding
        assert not result.committed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_on_the_mesh(name: str, kind: AxisType) -> None:
    mesh, _, _ = meshes(kind)
    function = FUNCTIONS[name]
    expected = np.asarray(function(VALUE))
    divided = dt.device_put(VALUE, NamedSharding(mesh, P("x")))
    with dt.set_mesh(mesh):
        result = function(divided)
    assert result.sharding.mesh == mesh
    whole = name == "sum"
    assert result.sharding.is_fully_replicated == whole
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["function", "primitive", "jit", "jit of the identity", "sum"])
def test_operands_elsewhere(name: str, kind: AxisType) -> None:
    mesh, other, fewer = meshes(kind)
    function = FUNCTIONS[name]
    with dt.set_mesh(mesh):
        result = function(dt.device_put(VALUE, NamedSharding(other, P("a"))))
        assert result.sharding.mesh == other
        for place in (DEVICES[1], NamedSharding(fewer, P("x"))):
            x = dt.device_put(VALUE, place)
            with pytest.raises(DeviceMismatchError, match="committed to other devices than those"):
                function(x)
            np.testing.assert_array_equal(dt.device_put(x, P("x")), VALUE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CREATED)
def test_what_is_made(name: str, kind: AxisType) -> None:
    mesh, _, _ = meshes(kind)
    make = CREATED[name]
    with dt.set_mesh(mesh):
        result = make()
    assert result.sharding == NamedSharding(mesh, P())
    assert result.committed
    outside = make()
    assert type(outside.sharding) is SingleDeviceSharding
    assert not outside.committed
    keys = dt.dtypes.issubdtype(result.dtype, dt.dtypes.prng_key)
    if keys:
        result, outside = map(random.key_data, (result, outside))
    # Outside it may be computed without a program, which rounds otherwise.
    np.testing.assert_allclose(result, outside, rtol=1.2e-7)


def test_what_says_where_it_is() -> None:
    mesh, other, _ = meshes(AxisType.Auto)
    rows = NamedSharding(other, P("a"))
    x = dt.device_put(VALUE, DEVICES[1])
    with dt.set_mesh(mesh), dt.default_device(DEVICES[2]):
        assert jnp.zeros(4, device=DEVICES[1]).sharding == SingleDeviceSharding(DEVICES[1])
        assert jnp.zeros_like(x).sharding == x.sharding
        assert jnp.asarray(x) is x
        assert dt.device_put(VALUE).sharding == SingleDeviceSharding(DEVICES[2])
        assert dt.jit(lambda x: x, out_shardings=rows)(VALUE).sharding == rows
        assert jnp.zeros(4).sharding == NamedSharding(mesh, P())
        struct = dt.ShapeDtypeStruct((8,), np.float32, sharding=rows)
        assert jnp.zeros_like(struct).sharding == rows
        assert jnp.zeros_like(struct, shape=(3,)).sharding == NamedSharding(mesh, P())


def test_other_scopes_leave_arrays_where_they_are() -> None:
    mesh, other, _ = meshes(AxisType.Auto)
    default = SingleDeviceSharding(dt.devices()[0])

    def place() -> Any:
        return added(ELSEWHERE).sharding

    with mesh:
        assert place() == default
    with dt.sharding.use_abstract_mesh(mesh.abstract_mesh):
        assert place() == default
    found = []
    with dt.set_mesh(mesh):
        assert place() == NamedSharding(mesh, P())
        with dt.set_mesh(other):
            assert place() == NamedSharding(other, P())
            with dt.set_mesh(None):
                assert place() == default
        with pytest.raises(ZeroDivisionError), dt.set_mesh(other):
            1 / 0  # noqa: B018
        assert place() == NamedSharding(mesh, P())
        thread = threading.Thread(target=lambda: found.append(place()))
        thread.start()
        thread.join()
    assert found == [default]
    assert place() == default


def test_callbacks_compute_on_one_device() -> None:
    mesh, _, _ = meshes(AxisType.Auto)
    found = []

    def host(x: Any) -> Any:
        found.append(jnp.zeros(2).sharding)
        return np.asarray(x)

    with dt.set_mesh(mesh):
        for call in (lambda f: f, dt.jit):
            call(lambda x: dt.pure_callback(host, dt.ShapeDtypeStruct((8,), np.float32), x))(VALUE)
    assert found == [SingleDeviceSharding(dt.devices()[0])] * 2


def test_lowered_programs() -> None:
    mesh, _, _ = meshes(AxisType.Auto)
    whole = NamedSharding(mesh, P())
    before = added.lower(VALUE).compile()
    with dt.set_mesh(mesh):
        compiled = added.lower(dt.ShapeDtypeStruct((8,), np.float32)).compile()
        assert type(before(VALUE).sharding) is SingleDeviceSharding
    assert compiled.input_shardings == ((whole,), {})
    assert compiled.output_shardings == whole
    assert compiled(VALUE).sharding == whole
    np.testing.assert_array_equal(compiled(ELSEWHERE), VALUE + 1)


def test_programs_with_references() -> None:
    mesh, _, _ = meshes(AxisType.Auto)
    total = dt.new_ref(jnp.zeros(8))

    @dt.jit
    def added_to(total: Any, x: Any) -> Any:
        total[...] += x
        return total[...]

    @dt.jit
    def captured(x: Any) -> Any:
        total[...] += x
        return total[...]

    with dt.set_mesh(mesh):
        for lowered in (added_to.lower(total, VALUE), captured.lower(VALUE)):
            assert lowered.compile().output_shardings == NamedSharding(mesh, P())
        assert added_to(total, VALUE).sharding == NamedSharding(mesh, P())
        result = captured(VALUE)
    assert result.sharding == NamedSharding(mesh, P())
    np.testing.assert_array_equal(total[...], 2 * VALUE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_meshes_of_one_device(name: str, kind: AxisType) -> None:
    mesh = Mesh(DEVICES[1:2].reshape(1, 1), ("x", "y"), axis_types=(kind, kind))
    function = FUNCTIONS[name]
    expected = np.asarray(function(VALUE))
    divided = dt.device_put(VALUE, NamedSharding(mesh, P("x")))
    for operand, scope in ((divided, None), (divided, mesh), (VALUE, mesh), (ELSEWHERE, mesh)):
        with dt.set_mesh(scope):
            for _ in range(2):
                result = function(operand)
                assert result.sharding.mesh == mesh
                assert result.committed
                np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


def test_asked_shardings_on_a_mesh_of_one_device() -> None:
    mesh = Mesh(DEVICES[:1], "x")
    rows = NamedSharding(mesh, P("x"))
    for function in (
        dt.jit(lambda x: x + 1, out_shardings=rows),
        dt.jit(lambda x: x + 1, in_shardings=rows, out_shardings=rows),
        lambda x: lax.with_sharding_constraint(x + 1, rows),
    ):
        result = function(VALUE)
        assert result.sharding == rows
        np.testing.assert_array_equal(result, VALUE + 1)
