"""The methods and properties of arrays and tracers, against those of NumPy's arrays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.core import Tracer

X = np.array([[3.0, -1.0, 2.0], [0.0, 5.0, -4.0]], np.float32)

DOCUMENTED = """
T __abs__ __add__ __and__ __array__ __array_module__ __array_namespace__ __array_priority__ __bool__
__complex__ __contains__ __copy__ __deepcopy__ __divmod__ __dlpack__ __dlpack_device__ __float__
__floordiv__ __getitem__ __hex__ __index__ __int__ __invert__ __iter__ __len__ __lshift__ __matmul__
__mod__ __mul__ __neg__ __oct__ __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__ __reversed__
__rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__ __rpow__ __rrshift__
__rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__ addressable_data
addressable_shards all any argmax argmin argpartition argsort astype at aval block_until_ready
byteswap choose clip clone committed compress conj conjugate copy copy_to_host_async cumprod cumsum
delete device devices diagonal dot dtype flat flatten global_shards imag is_deleted
is_fully_addressable is_fully_replicated is_ready item itemsize mT max mean min nbytes ndim nonzero
on_device_size_in_bytes platform prod ptp ravel real repeat reshape round searchsorted shape
sharding size sort squeeze std sum swapaxes take to_device tobytes tolist trace traceback transpose
unsafe_buffer_pointer var view weak_type
"""
# What needs the memory or the place of an array: a tracer says so.
OF_VALUES = {
    *("__dlpack__", "__dlpack_device__", "addressable_data", "addressable_shards"),
    *("block_until_ready", "clone", "committed", "copy_to_host_async", "delete", "device"),
    *("devices", "global_shards", "is_deleted", "is_fully_addressable", "is_fully_replicated"),
    *("is_ready", "on_device_size_in_bytes", "platform", "sharding", "traceback"),
    "unsafe_buffer_pointer",
}


def test_every_documented_name_is_there() -> None:
    x = jnp.asarray(X)
    assert [name for name in DOCUMENTED.split() if not hasattr(x, name)] == []

    def look(tracer: Any) -> Any:
        for name in DOCUMENTED.split():
            if name in OF_VALUES:
                with pytest.raises(AttributeError, match="there for arrays alone"):
                    getattr(tracer, name)
            else:
                getattr(tracer, name)
        return tracer

    dt.make_jaxpr(look)(x)


@pytest.mark.parametrize("place", ["dt.Array", "dt.device_put(1.0)"])
def test_names_are_listed_before_the_first_use(place: str) -> None:
    code = f"import dovetail as dt; print(*dir({place}))"
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert set(DOCUMENTED.split()) <= set(listed.stdout.split())


def test_no_tracer_has_a_field_where_arrays_have_a_method() -> None:
    names = {name for name in DOCUMENTED.split() if not name.startswith("__")}
    classes = Tracer.__subclasses__()
    for cls in classes:
        classes += cls.__subclasses__()
        assert names & set(cls.__dict__.get("__slots__", ())) == set(), cls


METHODS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *(
        (name, (), {})
        for name in ("all", "any", "argmax", "argmin", "argsort", "conj", "conjugate")
    ),
    *(
        (name, (), {})
        for name in ("copy", "cumprod", "cumsum", "diagonal", "flatten", "max", "mean")
    ),
    *((name, (), {}) for name in ("min", "nonzero", "prod", "ravel", "round", "squeeze", "std")),
    *((name, (), {}) for name in ("sum", "trace", "transpose", "var", "byteswap")),
    *((name, (1,), {}) for name in ("argsort", "cumsum", "std")),
    *(
        (name, (), {"axis": 0, "keepdims": True})
        for name in ("any", "argmax", "min", "mean", "sum")
    ),
    ("sum", (), {"axis": 1, "where": X > 0, "initial": 2.0}),
    ("max", (), {"axis": 1, "where": X > 0, "initial": -9.0}),
    ("var", (), {"axis": 0, "ddof": 1}),
    ("mean", (), {"axis": 0, "dtype": "float32"}),
    ("astype", ("int32",), {}),
    ("clip", (0, 2), {}),
    ("clip", (), {"min": 0}),
    ("compress", (np.array([True, False, True]),), {"axis": 1}),
    ("dot", (X.T,), {}),
    ("diagonal", (1, 1, 0), {}),
    ("repeat", (2,), {"axis": 1}),
    ("reshape", (3, 2), {}),
    ("reshape", ((-1, 2),), {"order": "C"}),
    ("round", (1,), {}),
    ("swapaxes", (0, 1), {}),
    ("take", (np.array([1, 0]),), {"axis": 1}),
    ("take", (np.array([5, 0]),), {}),
    ("trace", (1,), {}),
    ("transpose", (1, 0), {}),
    ("transpose", ((0, 1),), {}),
    ("view", ("int32",), {}),
]


@pytest.mark.parametrize("number", range(len(METHODS)))
def test_methods(number: int) -> None:
    name, args, options = METHODS[number]
    static = name in ("nonzero", "compress")
    expected = getattr(X, name)(*args, **options)
    results = [getattr(jnp.asarray(X), name)(*args, **options)]
    if not static:
        results.append(dt.jit(lambda x: getattr(x, name)(*args, **options))(X))
    for result in results:
        for a, b in zip(
            *([r] if not isinstance(r, tuple) else r for r in (result, expected)), strict=True
        ):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)
            assert isinstance(a, jnp.ndarray)


def test_methods_that_sort_and_search() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(np.asarray(x.sort(0)), np.sort(X, 0))
    np.testing.assert_array_equal(np.asarray(x.sort(descending=True)), -np.sort(-X))
    np.testing.assert_array_equal(np.asarray(x[0].sort().searchsorted(2.0)), 1)
    np.testing.assert_array_equal(np.asarray(x.ptp(1)), np.ptp(X, 1))
    order = np.asarray(x.argpartition(1))
    assert (np.take_along_axis(X, order, 1)[:, 1] == np.sort(X, 1)[:, 1]).all()
    assert jnp.array([1, 0, 1]).choose([np.arange(3), -np.arange(3)]).tolist() == [0, 1, -2]
    assert x.nonzero(size=1, fill_value=-1)[0].tolist() == [0]


def test_properties() -> None:
    z = (X + 1j * X[::-1]).astype("complex64")
    for name in ("T", "real", "imag", "mT"):
        expected = np.swapaxes(z, -1, -2) if name == "mT" else getattr(z, name)
        for result in (getattr(jnp.asarray(z), name), dt.jit(lambda x: getattr(x, name))(z)):  # noqa: B023
            np.testing.assert_array_equal(np.asarray(result), expected)
    for dtype in ("bool", "int8", "bfloat16", "float32", "complex64"):
        value = np.ones((2, 3), getattr(ml_dtypes, dtype, dtype))
        seen: list[Any] = [jnp.asarray(value)]
        dt.make_jaxpr(seen.append)(value)
        for x in seen:
            for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes"):
                assert getattr(x, name) == getattr(value, name)
            assert len(x) == 2
            assert x.__array_namespace__() is jnp
            assert not x.weak_type


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float32", "complex64"])
def test_bytes(dtype: str) -> None:
    value = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))
    x = jnp.asarray(value)
    assert x.byteswap().tobytes() == value.byteswap().tobytes()
    assert dt.jit(lambda v: v.byteswap().byteswap())(x).tobytes() == value.tobytes()
    assert x.tobytes("F") == value.tobytes("F") == bytes(x.T)
    assert x.clone().tobytes() == x.tobytes()
    assert x.clone().unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_flat() -> None:
    x = jnp.asarray(X)

    def check(v: Any) -> Any:
        flat = v.flat
        assert len(flat) == 6
        assert flat.base is v
        return flat[4], flat[1:3], flat[jnp.array([0, 5])], sum(flat), jnp.sum(flat), flat.copy()

    for result in (check(x), dt.jit(check)(x)):
        expected = (X.flat[4], X.flat[1:3], X.flat[[0, 5]], X.sum(), X.sum(), X.flat.copy())
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)
    np.testing.assert_array_equal(np.asarray(x.flat), X.ravel())
    np.testing.assert_array_equal(np.asarray(x.ravel() + x.flat), 2 * X.ravel())
    assert (x.flat == 5).tolist() == (X.flat == 5).tolist()
    assert (x.flat != 5).tolist() == (X.flat != 5).tolist()
    with pytest.raises(TypeError, match=r"x.ravel\(\).at\[index\].set"):
        x.flat[0] = 1


def test_python_s_own_functions() -> None:
    x = jnp.asarray(X)
    assert [row.tolist() for row in reversed(x)] == X[::-1].tolist()
    assert dt.jit(lambda v: next(reversed(v)))(x).tolist() == X[1].tolist()
    with pytest.raises(TypeError, match="without dimensions"):
        reversed(jnp.array(1))
    n = jnp.array(26)
    assert (hex(n), oct(n), n.__hex__(), n.__oct__()) == ("0x1a", "0o32", "0x1a", "0o32")
    assert x.__array_module__([type(x), np.ndarray]) is jnp
    assert x.__array_module__([type(x), dict]) is NotImplemented
    assert x.platform() == next(iter(x.devices())).platform
    with pytest.raises(TypeError, match="has no bytes"):
        dt.random.key(0).byteswap()
    with pytest.raises(dt.errors.ConcretizationTypeError):
        dt.jit(lambda v: v.tobytes())(x)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda x, y: y,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_options_of_updates(name: str) -> None:
    """Indices out of bounds are dropped or clipped, negative ones wrap or are out of bounds."""
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    index = np.array([-1, 1, 7])
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [1, 3]),
        ({"mode": "drop"}, [1, 3]),
        ({"mode": "fill", "unique_indices": True}, [1, 3]),
        ({"wrap_negative_indices": False}, [1]),
        ({"wrap_negative_indices": False, "indices_are_sorted": True}, [1]),
    ]
    for options, touched in cases:
        expected = x.copy()
        expected[touched] = OPERATIONS[name](x[touched], np.float32(3))
        result = getattr(jnp.asarray(x).at[index], name)(3.0, out_sharding=None, **options)
        np.testing.assert_allclose(np.asarray(result), expected)
    clipped = getattr(jnp.asarray(x).at[np.array([7])], name)(3.0, mode="clip")
    np.testing.assert_allclose(np.asarray(clipped)[3], OPERATIONS[name](x[3], np.float32(3)))
    with pytest.raises(ValueError, match="mode"):
        getattr(jnp.asarray(x).at[index], name)(3.0, mode="nonsense")


def test_options_of_reading() -> None:
    x = jnp.arange(4.0)
    index = np.array([-1, 1, 7])
    for options, expected in (
        ({"mode": "fill", "fill_value": 9}, [3, 1, 9]),
        ({"mode": "clip"}, [3, 1, 3]),
        ({"mode": "fill", "fill_value": 9, "wrap_negative_indices": False}, [9, 1, 9]),
    ):
        assert x.at[index].get(**options).tolist() == expected
    assert x.at[index[:2]].apply(lambda v: v * 10, wrap_negative_indices=False).tolist() == [
        0,
        10,
        2,
        3,
    ]
    reference = x.at[1]
    assert reference.array is x
    assert reference.index == 1


def test_strategies_of_reading() -> None:
    x = jnp.arange(4.0)
    for strategy in ("auto", "gather", "static_slice", "dynamic_slice"):
        assert x.at[1:3].get(strategy=strategy).tolist() == [1, 2]
        assert x.at[..., -1].get(strategy=strategy) == 3
    assert x.at[jnp.array(2)].get(strategy="dynamic_slice") == 2
    for strategy, index in (("static_slice", jnp.array(2)), ("dynamic_slice", jnp.array([2]))):
        with pytest.raises(TypeError, match=f"strategy='{strategy}' does not allow"):
            x.at[index].get(strategy=strategy)
    for wrong in ("nonsense", None):
        with pytest.raises(ValueError, match="strategy must be one of"):
            x.at[0].get(strategy=wrong)


def test_methods_are_what_they_are_before_the_first_call() -> None:
    program = (
        "import inspect, dovetail as dt\n"
        "assert 'keepdims' in inspect.signature(dt.Array.sum).parameters\n"
        "x = dt.device_put(1.0)\n"
        "assert 'self' not in inspect.signature(x.mean).parameters\n"
        "assert x.max.__doc__ == dt.numpy.max.__doc__\n"
        "assert not hasattr(dt.Array, 'total')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
