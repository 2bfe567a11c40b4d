"""`Array`: what it is, protocols, text, life cycle."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import Array, lax, live_arrays
from dovetail._core.base import dtypes, pytree
from dovetail._core.runtime.arrays import buffers, host
from dovetail._core.runtime.arrays.array import KeyArray, wrap_value
from dovetail._core.runtime.arrays.results import result_tree
from dovetail._core.transform.stage import stage
from dovetail.errors import DeletedArrayError
from dovetail.experimental.layout import Format, Layout
from dovetail.extend.arrays import array_from_buffer, default_sharding
from dovetail.extend.avals import make_aval
from dovetail.sharding import SingleDeviceSharding

DTYPES = [
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "float32", "complex64"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
]


class FryDType(dtypes.ExtendedDType):
    """A key dtype as dovetail.random has them."""

    type = dtypes.prng_key
    name = "key<fry>"
    elements, advice = "keys", "ask for key_data"

    def physical(self, shape):
        return (*shape, 2), np.dtype(np.uint32)

    def __eq__(self, other):
        return isinstance(other, FryDType)

    def __hash__(self):
        return 7


KEY_DTYPE = FryDType()


def make_keys(*shape):
    numbers = np.arange(2 * int(np.prod(shape)), dtype=np.uint32).reshape(*shape, 2)
    buffer = buffers.put(numbers, host.numpy_aval(numbers), default_sharding())
    return wrap_value(KEY_DTYPE, buffer)


def weak(value):
    return dt.device_put(value)


def test_attributes():
    x = dt.device_put(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes) == (
        (2, 3),
        np.dtype("float32"),
        2,
        6,
        4,
        24,
    )
    assert x.aval is make_aval((2, 3), np.dtype("float32"))
    assert not x.weak_type
    assert weak(1.0).weak_type
    assert x.devices() == {dt.devices()[0]}
    assert x.device is dt.devices()[0]
    assert x.sharding is default_sharding()
    assert not x.committed
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert x.on_device_size_in_bytes() == 24
    assert len(x) == 2
    (shard,) = x.addressable_shards
    assert shard.device is x.device
    assert shard.index == (slice(None), slice(None))
    assert shard.replica_id == 0
    assert shard.data is x
    same = dt.Shard(x.device, x.sharding, x.shape, x)
    assert (same.device, same.index, same.data) == (shard.device, shard.index, shard.data)
    assert same != shard, "their data could not be compared"
    assert "index=(slice(None, None, None), slice(None, None, None))" in repr(shard)
    assert dt.Shard(x.device, x.sharding, x.shape).data is None
    assert x.addressable_data(0) is x


def test_class_is_not_called():
    with pytest.raises(TypeError, match=r"dovetail\.numpy\.array"):
        Array([1.0])


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = dt.device_put(1).nope
    assert not hasattr(dt.device_put(1), "__cuda_array_interface__")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_to_numpy_and_back(dtype, shape):
    value = np.ones(shape).astype(dtype)
    x = dt.device_put(value)
    assert x.dtype == value.dtype
    back = np.asarray(x)
    assert back.dtype == value.dtype
    assert back.shape == shape
    np.testing.assert_array_equal(back, value)
    assert not back.flags.writeable


def test_array_protocol_dtype_and_copy():
    x = dt.device_put(np.arange(3, dtype=np.float32))
    assert np.asarray(x, dtype=np.int16).dtype == np.int16
    assert np.array(x).flags.writeable
    assert x.__array__(copy=True).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        x.__array__(np.float64, copy=False)
    # No copy is made for reading what has a buffer.
    pointer = x.unsafe_buffer_pointer()
    assert np.asarray(x).__array_interface__["data"][0] == pointer


def test_a_view_keeps_the_memory():
    view = np.asarray(dt.device_put(np.arange(1000.0, dtype=np.float32)))
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(1000.0))


def test_scalars():
    assert int(dt.device_put(3)) == 3
    assert float(dt.device_put(2.5)) == 2.5
    assert complex(dt.device_put(1 + 2j)) == 1 + 2j
    assert bool(dt.device_put(np.array([[True]])))
    assert [10, 20, 30][dt.device_put(1)] == 20
    assert dt.device_put(np.float32(4)).item() == 4.0
    assert dt.device_put(np.arange(3)).tolist() == [0, 1, 2]
    assert dt.device_put(np.arange(3)).item(2) == 2
    assert isinstance(dt.device_put(ml_dtypes.bfloat16(2)).item(), float)


@pytest.mark.parametrize(
    ("convert", "value", "error", "message"),
    [
        (int, [1, 2], TypeError, r"shape \(2,\)"),
        (float, [1.0], TypeError, r"x\.item\(\)"),
        (complex, [1.0], TypeError, "complex"),
        (bool, [1, 2], ValueError, r"use x\.any\(\) or x\.all\(\)"),
        (bool, [], ValueError, "empty"),
        (len, 1.0, TypeError, "no dimensions"),
        (iter, 1.0, TypeError, "without dimensions"),
        (lambda x: [1][x], 1.0, TypeError, r"integer array.*float32\[\]"),
        (lambda x: [1][x], [0], TypeError, "index"),
        (hash, 1.0, TypeError, "unhashable"),
        (lambda x: f"{x:.2f}", [1.0], TypeError, "one number"),
        (lambda x: x.__setitem__(0, 1), [1.0], TypeError, r"x\.at\[index\]\.set"),
        (lambda x: x.to_device("cpu"), 1.0, ValueError, r"devices\('cpu'\)"),
    ],
)
def test_refusals(convert, value, error, message):
    x = dt.device_put(np.asarray(value, np.float32) if not isinstance(value, float) else value)
    with pytest.raises(error, match=message):
        convert(x)


def test_iteration():
    x = dt.device_put(np.arange(6).reshape(3, 2), dt.devices()[1])
    rows = list(x)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    assert all(type(row) is Array and row.committed and row.device is x.device for row in rows)
    (element,) = dt.device_put(np.ones((1,), ml_dtypes.bfloat16))
    assert element.shape == ()
    assert element.dtype == ml_dtypes.bfloat16
    assert list(dt.device_put(np.zeros((0, 3)))) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32([1, 2]), "Array([1., 2.], dtype=float32)"),
        (1.0, "Array(1., dtype=float32, weak_type=True)"),
        (True, "Array(True, dtype=bool)"),
        (np.zeros((0, 3), np.float32), "Array([], shape=(0, 3), dtype=float32)"),
        (np.zeros((0,), np.int32), "Array([], dtype=int32)"),
        (
            np.ones((2, 2), ml_dtypes.bfloat16),
            "Array([[1, 1],\n       [1, 1]], dtype=bfloat16)",
        ),
        (np.arange(2000), "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    ],
)
def test_repr(value, text):
    assert repr(dt.device_put(value)) == text


def test_repr_breaks_long_lines():
    text = repr(dt.device_put(np.linspace(0, 1, 6, dtype=np.float32) * 1.2345))
    assert max(map(len, text.splitlines())) <= 75
    assert text.replace("\n", " ").endswith("dtype=float32)")


def test_str_and_format():
    assert str(dt.device_put(np.float32([1, 2]))) == "[1. 2.]"
    assert f"{dt.device_put(np.float32(1.5)):.3f}" == "1.500"
    assert f"{dt.device_put(np.float32([1, 2]))}" == "[1. 2.]"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies(copied, dtype):
    x = dt.device_put(np.array([0, 1, 1]).astype(dtype))
    y = copied(x)
    assert type(y) is Array
    assert (y.aval, y.weak_type) == (x.aval, x.weak_type)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    x.delete()
    assert y.tolist() is not None
    assert pickle.loads(pickle.dumps(weak(2))).weak_type


def test_weak_references():
    x = dt.device_put(1.0)
    reference = weakref.ref(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None


def test_deleted():
    x = dt.device_put(np.ones((2, 3), np.float32))
    other = array_from_buffer(x._buffer)
    assert x.is_ready()
    x.delete()
    assert x.is_deleted()
    assert (x.shape, x.dtype) == ((2, 3), np.dtype("float32"))
    assert repr(x) == "<deleted Array of float32[2,3]>"
    x.delete()
    for use in (np.asarray, list, x.__class__.block_until_ready, copy.copy, pickle.dumps):
        with pytest.raises(DeletedArrayError, match=r"float32\[2,3\].*deleted.*test_array\.py:\d+"):
            use(x)
    # A second object around the same memory does not know where it was deleted.
    for use in (np.asarray, copy.copy, Array.block_until_ready, Array.is_ready, dt.device_put):
        with pytest.raises(
            DeletedArrayError, match=r"float32\[2,3\].*or donated to a compiled function"
        ):
            use(other)


def test_live_arrays():
    x = dt.device_put(np.full((17, 3), 5.0, np.float32))
    found = [y for y in live_arrays() if y.shape == (17, 3)]
    assert len(found) == 1
    assert found[0].unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert found[0].devices() == x.devices()
    del x, found
    assert not [y for y in live_arrays("cpu") if y.shape == (17, 3)]


def test_arrays_are_leaves_for_users_and_nodes_for_the_dispatch():
    x, keys = dt.device_put(1.0), make_keys(3)
    leaves, _ = pytree.flatten([x, {"k": keys}])
    assert leaves[0] is x
    assert leaves[1] is keys
    buffers_found, _ = pytree.dispatch_registry.flatten([x, {"k": keys}])
    assert all(map(buffers.is_buffer, buffers_found))
    again = result_tree([x, {"k": keys}]).unflatten(buffers_found)
    assert type(again[0]) is Array
    assert type(again[1]["k"]) is KeyArray
    assert again[1]["k"].dtype == KEY_DTYPE


def test_tracers_are_arrays():
    seen = []

    def function(x):
        seen.append((isinstance(x, dt.Array), type(x) is Array))
        return [x]

    from dovetail._core.ir.jaxpr import DebugInfo

    stage(function, [make_aval((), np.dtype(np.float32))], DebugInfo("a test", "function"))
    assert seen == [(True, False)]
    assert not isinstance(1.0, dt.Array)
    assert not isinstance(np.ones(3), dt.Array)
    assert isinstance(make_keys(1), dt.Array)


def test_keys():
    keys = make_keys(2, 3)
    assert type(keys) is KeyArray
    assert (keys.shape, keys.ndim, keys.size, keys.dtype) == ((2, 3), 2, 6, KEY_DTYPE)
    assert (keys.itemsize, keys.nbytes) == (8, 48)
    assert repr(make_keys()) == "Array((), dtype=key<fry>) overlaying:\n[0 1]"
    assert [row.shape for row in keys] == [(3,), (3,)]
    assert type(next(iter(keys))) is KeyArray
    assert type(copy.copy(keys)) is KeyArray
    moved = dt.device_put(keys, dt.devices()[1])
    assert type(moved) is KeyArray
    assert moved.devices() == {dt.devices()[1]}
    for use in (np.asarray, KeyArray.item, KeyArray.tolist, lambda k: k.__dlpack__()):
        with pytest.raises(TypeError, match=r"of keys \(key<fry>\) is no.*ask for key_data"):
            use(keys)
    with pytest.raises(TypeError, match="an array of keys is neither true nor false"):
        bool(keys)
    keys.delete()
    with pytest.raises(DeletedArrayError, match="uint32"):
        list(keys)


def test_to_device():
    x = dt.device_put(np.arange(3))
    y = x.to_device(dt.devices()[2])
    assert y.devices() == {dt.devices()[2]}
    assert y.committed
    assert y.tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(dt.devices()[0], stream=1)


def test_asynchronous_calls():
    x = dt.device_put(np.ones(3))
    assert x.block_until_ready() is x
    x.copy_to_host_async()
    assert x.tolist() == [1, 1, 1]


def test_array_namespace():
    x = dt.device_put(1.0)
    assert x.__array_namespace__() is dt.numpy
    with pytest.raises(ValueError, match="array API standard"):
        x.__array_namespace__(api_version="3000.01")


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool"])
def test_bytes(dtype):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    x = dt.device_put(value)
    assert bytes(x) == x.tobytes() == value.tobytes()


class TestFormat:
    def test_arrays_tell_theirs(self):
        x = dt.device_put(np.ones((2, 3), np.float32))
        device = dt.devices()[0]
        assert x.format == Format(Layout((0, 1), ()), SingleDeviceSharding(device))
        assert x.format == dt.device_put(np.zeros((2, 3))).format != dt.device_put(1.0).format
        assert x.format.layout.is_default
        assert hash(x.format) == hash(dt.device_put(np.zeros((2, 3))).format)
        assert dt.random.key(0).format.sharding == x.sharding
        x.delete()
        with pytest.raises(DeletedArrayError):
            _ = x.format

    def test_arrays_are_placed_by_them(self):
        x = dt.device_put(np.arange(6).reshape(2, 3))
        there = dt.devices()[1]
        moved = dt.device_put({"a": x}, Format(x.format.layout, SingleDeviceSharding(there)))
        assert moved["a"].device == there
        assert moved["a"].tolist() == x.tolist()
        assert dt.device_put(x, Format()).device == x.device

    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (lambda: Layout(3), TypeError, "tuple of dimensions as major_to_minor, got 3"),
            (lambda: Layout((0, 2)), ValueError, r"each dimension from 0 to 1 once, got \(0, 2\)"),
            (lambda: Format("x"), TypeError, "a Layout or None as layout, got 'x'"),
            (lambda: Format(None, "cpu"), TypeError, "a sharding or None as sharding, got 'cpu'"),
            (lambda: Format(Layout((0,))), ValueError, "a layout needs a sharding"),
            (
                lambda: dt.device_put(1, Format(Layout((1, 0)), dt.device_put(1).sharding)),
                NotImplementedError,
                "row-major order alone",
            ),
        ],
    )
    def test_what_is_wrong_is_said(self, call, kind, message):
        with pytest.raises(kind, match=message):
            call()


def test_more_dimensions_than_numpy_has() -> None:
    x = lax.reshape(np.arange(2.0, dtype=np.float32), (1,) * 63 + (2,))
    wide = dt.jit(lambda x: lax.broadcast(x, (1, 1)))(x)
    assert wide.shape == (1,) * 65 + (2,)
    with pytest.raises(ValueError, match=r"of 66 dimensions .* reshape it first"):
        wide.tolist()
    assert lax.reshape(wide, (2,)).tolist() == [0, 1]
