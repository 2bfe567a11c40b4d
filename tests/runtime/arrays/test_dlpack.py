"""Exchange with NumPy and with other libraries through DLPack."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail.dlpack import from_dlpack, is_supported_dtype

NATIVE = [
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "float32", "complex64"),
]


class External:
    """An array of another library, known by the protocol alone."""

    def __init__(self, array, versioned=True):
        self.array = array
        self.versioned = versioned
        self.exports = 0

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("unexpected keyword")
        self.exports += 1
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("shape", [(), (0, 2), (3,), (2, 3)], ids=str)
def test_to_numpy(dtype, shape):
    value = np.ones(shape, dtype)
    x = dt.device_put(value)
    out = np.from_dlpack(x)
    assert out.dtype == value.dtype
    np.testing.assert_array_equal(out, value)
    copied = np.from_dlpack(x, copy=True)
    if value.size:
        assert out.__array_interface__["data"][0] == x.unsafe_buffer_pointer()
        assert copied.__array_interface__["data"][0] != x.unsafe_buffer_pointer()
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("versioned", [True, False])
def test_from_another_library(dtype, versioned):
    value = np.arange(6).reshape(2, 3).astype(dtype)
    external = External(value, versioned)
    x = from_dlpack(external_array=external)
    assert external.exports == 1
    np.testing.assert_array_equal(np.asarray(x), value)
    assert x.dtype == value.dtype
    value[:] = 1
    assert np.asarray(x).tolist() != value.tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "float32"])
def test_own_arrays_by_the_protocol(dtype):
    x = dt.device_put(np.arange(4).astype(dtype))
    y = from_dlpack(External(x))
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    assert from_dlpack(x) is x
    assert from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


@pytest.mark.parametrize(
    "view",
    [
        lambda v: v.T,
        lambda v: v[::2, 1:],
        lambda v: v[::-1, ::-1],
        lambda v: np.broadcast_to(v[0], (3, 4)),
        lambda v: v[:, 2],
    ],
)
def test_strides(view):
    value = view(np.arange(16, dtype=np.float32).reshape(4, 4))
    np.testing.assert_array_equal(np.asarray(from_dlpack(value)), value)
    np.testing.assert_array_equal(np.asarray(from_dlpack(External(value))), value)


def aligned(count):
    memory = np.zeros(4 * count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * count].view(np.float32)


def test_sharing():
    value = aligned(10)
    x = from_dlpack(value, copy=False)
    assert x.unsafe_buffer_pointer() == value.ctypes.data
    del value
    gc.collect()
    assert np.asarray(x).sum() == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (aligned(11)[1:], "multiple of 64"),
        (aligned(12).reshape(3, 4).T, "not contiguous"),
        (aligned(12).view(np.float64), "float64 becomes float32"),
    ],
)
def test_sharing_that_is_impossible(value, message):
    with pytest.raises(BufferError, match=message):
        from_dlpack(value, copy=False)
    np.testing.assert_array_equal(np.asarray(from_dlpack(value)), value)


def test_64_bits():
    value = np.arange(3.0)
    assert from_dlpack(value).dtype == np.float32
    with dt.enable_x64(True):
        assert from_dlpack(External(value)).dtype == np.float64
        assert np.from_dlpack(from_dlpack(value)).dtype == np.float64


def test_devices():
    device = dt.devices()[1]
    x = from_dlpack(np.arange(3), device=device)
    assert x.device is device
    assert x.committed
    assert from_dlpack(x).device is device
    moved = from_dlpack(x, device=dt.devices()[0])
    assert moved.device is dt.devices()[0]
    with pytest.raises(BufferError, match="needs a copy"):
        from_dlpack(x, device=dt.devices()[0], copy=False)


def test_the_external_array_may_go_first():
    external = External(np.arange(100, dtype=np.float32))
    x = from_dlpack(external)
    del external
    gc.collect()
    assert np.asarray(x).tolist() == list(range(100))
    view = np.from_dlpack(x)
    del x
    gc.collect()
    assert view.tolist() == list(range(100))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], TypeError, "such as a PyTorch tensor; got list"),
        (np.arange(3).__dlpack__(), TypeError, "instead of a capsule"),
    ],
)
def test_what_is_no_array(value, error, message):
    with pytest.raises(error, match=message):
        from_dlpack(value)


def test_tracers():
    with pytest.raises(dt.errors.TracerArrayConversionError):
        dt.jit(from_dlpack)(np.ones(3))
    with pytest.raises(dt.errors.TracerArrayConversionError):
        dt.vmap(lambda v: from_dlpack(v))(np.ones(3))


def test_dtypes_without_a_place():
    x = dt.device_put(np.array([1, 2]).astype(ml_dtypes.int4))
    assert not is_supported_dtype(x.dtype)
    assert is_supported_dtype(np.dtype(ml_dtypes.bfloat16))
    with pytest.raises(BufferError, match="int4"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="accelerator"):
        dt.device_put(1.0).__dlpack__(dl_device=(2, 0))


def test_deleted_arrays():
    x = dt.device_put(np.ones(3))
    view = np.from_dlpack(x)
    other = dt.device_put(np.ones(3))
    other.delete()
    with pytest.raises(dt.errors.DeletedArrayError):
        other.__dlpack__()
    assert view.tolist() == [1, 1, 1]
