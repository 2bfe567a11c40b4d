"""`device_put`, `device_get` and their like."""

from __future__ import annotations

import copy
import inspect
import pickle
import weakref

import numpy as np
import pytest

import dovetail as dt
from dovetail import enable_x64
from dovetail._core.runtime.arrays import transfer
from dovetail.errors import NonArrayArgumentError
from dovetail.extend.avals import make_aval
from dovetail.sharding import SingleDeviceSharding


@pytest.fixture
def devices():
    return dt.devices()


def test_placing_host_values(devices):
    x = dt.device_put(np.arange(3.0))
    assert (x.device, x.committed, x.dtype) == (devices[0], False, np.float32)
    x = dt.device_put(np.arange(3.0), devices[2])
    assert (x.device, x.committed) == (devices[2], True)
    with dt.default_device(devices[1]):
        x = dt.device_put(1)
        assert (x.device, x.committed) == (devices[1], False)
    with dt.default_device("cpu"):
        assert dt.device_put(1).device is devices[0]


def test_arrays_stay_where_they_are(devices):
    x = dt.device_put(1.0)
    assert dt.device_put(x) is x
    there = dt.device_put(1.0, devices[1])
    assert dt.device_put(there) is there
    assert dt.device_put(there, devices[1]) is there
    with dt.default_device(devices[2]):
        assert dt.device_put(x) is x


def test_committing_shares_memory(devices):
    x = dt.device_put(np.arange(3.0))
    y = dt.device_put(x, devices[0])
    assert y is not x
    assert y.committed
    assert not x.committed
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    z = dt.device_put(x, devices[0], may_alias=False)
    assert z.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert z.committed


def test_moving(devices):
    x = dt.device_put(np.arange(3.0))
    y = dt.device_put(x, SingleDeviceSharding(devices[3]))
    assert (y.device, y.committed, y.aval) == (devices[3], True, x.aval)
    assert y.tolist() == [0, 1, 2]
    assert not x.is_deleted()
    z = dt.device_put(y, devices[0], donate=True)
    assert y.is_deleted()
    assert z.tolist() == [0, 1, 2]
    with pytest.raises(
        dt.errors.DeletedArrayError, match=r"donated to device_put at test_transfer"
    ):
        y.tolist()
    assert dt.device_put(2, devices[1]).weak_type


def test_trees(devices):
    x = {"a": np.ones(2), "b": (1, [2.0, None])}
    out = dt.device_put(x, devices[1])
    assert {leaf.device for leaf in dt.tree.leaves(out)} == {devices[1]}
    assert out["b"][1][1] is None
    out = dt.device_put(x, {"a": devices[1], "b": (devices[2], None)})
    assert out["a"].device is devices[1]
    assert out["b"][0].device is devices[2]
    assert out["b"][1][0].device is devices[0]
    assert not out["b"][1][0].committed
    assert dt.device_put(None) is None


def test_tree_of_devices_must_fit(devices):
    with pytest.raises(ValueError, match="device of device_put"):
        dt.device_put({"a": 1}, {"b": devices[0]})


@pytest.mark.parametrize("place", ["cpu", 3, object()], ids=lambda x: type(x).__name__)
def test_places_that_are_none(place):
    with pytest.raises(ValueError, match="device must be a device"):
        dt.device_put(1, place)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "x is of type str"),
        ({"a": [1, object()]}, r"x\['a'\]\[1\] is of type object"),
        (np.array(["a"]), "dtype <U1"),
        (np.array([None]), "dtype object"),
        (np.array(["2020"], "M8[D]"), "datetime64"),
        (np.zeros(2, [("f", "i4")]), "take a field"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "masked"),
    ],
)
def test_values_that_are_no_arrays(value, message):
    with pytest.raises(NonArrayArgumentError, match=message):
        dt.device_put(value)


def test_64_bit_values():
    assert dt.device_put(np.arange(3)).dtype == np.int32
    assert dt.device_put(np.float64(2)).dtype == np.float32
    assert dt.device_put(np.complex128(2)).dtype == np.complex64
    assert dt.device_put(np.uint64(2)).dtype == np.uint32
    with enable_x64(True):
        assert dt.device_put(np.arange(3)).dtype == np.int64
        assert dt.device_put(2**40).item() == 2**40
        assert dt.device_put(np.float64(0.1)).item() == 0.1


@pytest.mark.parametrize(
    "value",
    [2**40, -(2**31) - 1, np.int64(2**40), np.array([1, -(2**33)]), np.array([2**32], np.uint64)],
    ids=repr,
)
def test_integers_that_do_not_fit(value):
    with pytest.raises(OverflowError, match="enable_x64"):
        dt.device_put(value)
    with enable_x64(True):
        assert np.asarray(dt.device_put(value)).tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c8", ">f8", ">u4"])
def test_byte_order(dtype):
    value = np.arange(6).astype(dtype).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(dt.device_put(value)), value)
    np.testing.assert_array_equal(np.asarray(transfer.array_from_numpy(value)), value)


@pytest.mark.parametrize("size", [3, 1000, 100_000])
def test_later_writes_do_not_show(size):
    memory = np.zeros(size * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    value = memory[start : start + size * 4].view(np.float32)  # aligned, as XLA would share it
    x, y = dt.device_put(value), transfer.array_from_numpy(value)
    value[:] = 7
    assert np.asarray(x).max() == np.asarray(y).max() == 0


def test_odd_layouts():
    value = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for view in (
        value.T,
        value[::-1, :, ::2],
        np.asfortranarray(value),
        np.broadcast_to(value[0], (5, 3, 4)),
    ):
        np.testing.assert_array_equal(np.asarray(dt.device_put(view)), view)


def test_subclasses_of_numpy_arrays():
    class Own(np.ndarray):
        pass

    assert dt.device_put(np.ones((1, 2)).view(Own)).shape == (1, 2)


def test_objects_that_convert():
    class Converts:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    class OurProtocol:
        def __dovetail_array__(self):
            return dt.device_put(np.arange(4.0))

    assert dt.device_put(Converts()).shape == (3,)
    assert dt.device_put(OurProtocol()).shape == (4,)


def test_array_from_value_keeps_the_weak_type():
    x = transfer.array_from_value(2, make_aval((), np.dtype(np.float32), True))
    assert (x.dtype, x.weak_type, x.item()) == (np.float32, True, 2.0)


def test_device_get(devices):
    x = {"a": dt.device_put(1.5), "b": "text", "c": [np.ones(2), 3, dt.device_put(2, devices[1])]}
    out = dt.device_get(x)
    assert isinstance(out["a"], np.ndarray)
    assert out["a"] == 1.5
    assert out["b"] == "text"
    assert out["c"][1] == 3
    assert out["c"][2] == 2
    assert not out["a"].flags.writeable


def test_block_until_ready():
    class Waits:
        waited = False

        def block_until_ready(self):
            self.waited = True

    other = Waits()
    tree = [dt.device_put(1), "text", None, other]
    assert dt.block_until_ready(tree) is tree
    assert other.waited


@pytest.mark.parametrize("name", ["value", "buffer", "keys"])
def test_block_until_ready_of_a_single_array(name):
    made = {
        "value": lambda: dt.numpy.ones(3) * 2,
        "buffer": lambda: dt.jit(lambda x: x @ x)(dt.device_put(np.ones((300, 300)))),
        "keys": lambda: dt.random.key(0),
    }
    array = made[name]()
    assert dt.block_until_ready(array) is array
    assert dt.block_until_ready(x=array) is array
    assert dt.jit(lambda x: dt.block_until_ready(x))(array) is not None


def test_block_until_ready_of_what_is_deleted():
    array = dt.device_put(np.ones(3))
    array.delete()
    with pytest.raises(RuntimeError, match=r"deleted by \.delete\(\)"):
        dt.block_until_ready(array)


def test_block_until_ready_is_a_function():
    wait = dt.block_until_ready
    assert pickle.loads(pickle.dumps(wait)) is wait
    assert copy.deepcopy(wait) is wait
    assert list(inspect.signature(wait).parameters) == ["x"]
    assert (wait.__name__, wait.__module__) == ("block_until_ready", "dovetail")
    assert "block_until_ready" in repr(wait)
    assert weakref.ref(wait)() is wait
    for arguments in ((), (1, 2)):
        with pytest.raises(TypeError, match="block_until_ready"):
            wait(*arguments)

    class Holder:
        method = wait

    holder = Holder()
    assert holder.method() is holder
    assert Holder.method is wait


def test_device_put_under_transformations(devices):
    def f(x):
        return dt.device_put(x, devices[0])

    x = dt.device_put(np.arange(3.0))
    assert dt.jit(f)(x).tolist() == [0, 1, 2]
    assert dt.vmap(f)(x).tolist() == [0, 1, 2]
    primal, tangent = dt.jvp(f, (x,), (x,))
    assert primal.tolist() == tangent.tolist() == [0, 1, 2]
    assert primal.devices() == {devices[0]}
    moved, _ = dt.jvp(lambda v: dt.device_put(v, devices[2]), (x,), (x,))
    assert moved.device is devices[2]
