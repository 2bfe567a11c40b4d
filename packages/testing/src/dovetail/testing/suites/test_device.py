"""Devices: transfers to and from them, arrays on them, and the programs they run."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices.sharding import memory_kinds
from dovetail.errors import DeletedArrayError
from dovetail.experimental import serialize_executable
from dovetail.sharding import SingleDeviceSharding
from dovetail.testing.backend import BackendUnderTest, read
from dovetail.testing.capabilities import missing_text

NDArray = np.ndarray[Any, Any]
Backend = BackendUnderTest

full = pytest.mark.dovetail_full


def needs(capability: str) -> pytest.MarkDecorator:
    """Skip a test on backends that do not declare a capability."""
    return pytest.mark.dovetail_needs(capability)


INTEGERS: Final = tuple(f"{kind}{bits}" for bits in (4, 8, 16, 32, 64) for kind in ("int", "uint"))
FLOATS: Final = (
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)
COMPLEXES: Final = ("complex64", "complex128")
DTYPES: Final = ("bool", *INTEGERS, *FLOATS, *COMPLEXES)
ESSENTIAL_DTYPES: Final = ("bool", "int32", "uint8", "bfloat16", "float32", "float64", "complex64")

#: -0.0, infinities, the smallest subnormal number, signalling NaNs and NaNs with a payload, as
#: bits.
SPECIAL: Final = {
    "float16": [0x8000, 0x7C00, 0xFC00, 1, 0x7C01, 0xFE5A],
    "bfloat16": [0x8000, 0x7F80, 0xFF80, 1, 0x7F81, 0xFFDA],
    "float32": [1 << 31, 0x7F800000, 0xFF800000, 1, 0x7F800001, 0xFFC0BEEF],
    "float64": [1 << 63, 0x7FF << 52, 0xFFF << 52, 1, (0x7FF << 52) + 1, (0xFFF8 << 48) + 0xBEEF],
}

#: Shapes of transferred arrays; the last is large enough for any way that avoids small copies.
SHAPES: Final = ((), (0,), (1,), (5,), (2, 0, 3), (2, 3, 4), (3, 1, 70001))


def dtype_of(name: str) -> np.dtype[Any]:
    """A dtype of NumPy or of ml_dtypes, by name."""
    return np.dtype(getattr(ml_dtypes, name, name))


def values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray:
    """Every bit pattern of a dtype, in turn; for wide dtypes, rare ones."""
    size = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        return np.asarray(np.arange(size) % 3 == 0).reshape(shape)
    if dtype.name in ("int4", "uint4", "float4_e2m1fn"):
        # Only four bits of each byte count; NumPy's view of the others is up to ml_dtypes.
        return (np.arange(size) % 8).astype(np.int8).astype(dtype).reshape(shape)
    words = np.arange(2 * size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(17)
    memory = words.view(np.uint8).reshape(size, 16)[:, : dtype.itemsize]
    made = np.ascontiguousarray(memory).reshape(-1).view(dtype)
    special = SPECIAL.get(dtype.name, [])[:size]
    made.view(f"u{min(dtype.itemsize, 8)}")[: len(special)] = special
    return made.reshape(shape)


def bits(array: NDArray) -> bytes:
    """The memory of an array, in the order of its elements."""
    return np.ascontiguousarray(array).tobytes()


def same(got: Any, want: NDArray, what: str) -> None:
    """Assert that two arrays are bitwise equal."""
    value = read(got)
    assert (value.dtype, value.shape) == (want.dtype, want.shape), (
        f"{what}: {value.dtype}{list(value.shape)} instead of {want.dtype}{list(want.shape)}"
    )
    if bits(value) != bits(want):
        differ = np.argwhere(
            np.frombuffer(bits(value), np.uint8) != np.frombuffer(bits(want), np.uint8)
        )
        element = int(differ[0, 0]) // want.dtype.itemsize
        raise AssertionError(
            f"{what}: element {element} of {want.size} is {value.reshape(-1)[element]!r} instead "
            f"of {want.reshape(-1)[element]!r}, compared bit by bit"
        )


def _dtypes() -> list[Any]:
    return [
        pytest.param(name, marks=() if name in ESSENTIAL_DTYPES else full, id=name)
        for name in DTYPES
    ]


@pytest.fixture
def dtype(request: pytest.FixtureRequest, dovetail_backend: Backend) -> np.dtype[Any]:
    """A dtype that the backend supports."""
    found = dtype_of(request.param)
    missing = dovetail_backend.refuses(found)
    if missing:
        pytest.skip(missing_text(dovetail_backend.platform, missing))
    return found


# ---------------------------------------------------------------------------------- transfers


@pytest.mark.parametrize("dtype", _dtypes(), indirect=True)
def test_transfers_keep_every_bit(dovetail_backend: Backend, dtype: np.dtype[Any]) -> None:
    """Arrays of each dtype and of any shape survive a round trip to the device bit by bit,
    including infinities, NaNs with their payload, negative zeros and subnormal numbers."""
    for shape in SHAPES:
        value = values(dtype, shape)
        array = dovetail_backend.put(value)
        assert array.devices() == {dovetail_backend.device}
        same(array, value, f"{dtype}{list(shape)} to the device and back")


@pytest.mark.parametrize("dtype", _dtypes(), indirect=True)
def test_programs_pass_every_bit_on(dovetail_backend: Backend, dtype: np.dtype[Any]) -> None:
    """A program that returns its argument, and the argument reversed, changes no bit, except that a
    NaN may become another one."""
    value = values(dtype, (6,))
    if dtype.kind in "fcV":
        with np.errstate(invalid="ignore"):
            value = np.where(value == value, value, np.ones((), dtype))
    kept, turned = dt.jit(lambda x: (x, lax.rev(x, (0,))))(dovetail_backend.put(value))
    same(kept, value, f"an argument of {dtype} as the result")
    same(turned, value[::-1], f"a reversed argument of {dtype}")


def _layouts() -> dict[str, Callable[[NDArray], NDArray]]:
    return {
        "transposed": lambda x: x.transpose(2, 0, 1),
        "column-major": np.asfortranarray,
        "every second": lambda x: x[:, ::2, 1::2],
        "backwards": lambda x: x[::-1, :, ::-1],
        "repeated": lambda x: np.broadcast_to(x[:1], (4, *x.shape[1:])),
        "unaligned": lambda x: _unaligned(x),
        "read-only": _read_only,
        "a subclass": lambda x: x.view(_Subclass),
        "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    }


class _Subclass(np.ndarray[Any, Any]):
    """The forms that other libraries give arrays."""


def _unaligned(x: NDArray) -> NDArray:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def _read_only(x: NDArray) -> NDArray:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("layout", _layouts())
def test_layouts_of_the_host(dovetail_backend: Backend, layout: str) -> None:
    """NumPy arrays of any strides, alignment and byte order arrive with the values they show."""
    for name in ("float32", "int16", "bool"):
        value = _layouts()[layout](values(np.dtype(name), (3, 4, 6)))
        want = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("=")).view(np.ndarray)
        same(dovetail_backend.put(value), want, f"an array of {name}, {layout}")


@pytest.mark.parametrize("size", [3, 1000, 300_000])
def test_later_writes_on_the_host_do_not_show(dovetail_backend: Backend, size: int) -> None:
    """Transfers to the device copy, even from memory aligned so well that it could be shared:
    writing to the NumPy array afterwards does not change the array."""
    memory = np.zeros(size * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    value = memory[start : start + size * 4].view(np.float32)
    array = dovetail_backend.put(value)
    passed_on = dt.jit(lambda x: lax.add(x, np.float32(1)))(value)
    value[:] = 7
    assert read(array).max() == 0, "an array on the device shows what was written to its source"
    assert read(passed_on).max() == 1, "a program saw what was written after it was called"


def test_what_is_read_is_no_window(dovetail_backend: Backend) -> None:
    """The result of a read is read-only or a copy: nobody can change an array through it."""
    array = dovetail_backend.put(np.arange(5, dtype=np.float32))
    value = read(array)
    if value.flags.writeable:
        value[:] = 7
    assert read(array).tolist() == [0, 1, 2, 3, 4], "writing to what was read changed the array"
    copied = np.array(array)
    copied[:] = 7
    assert read(array).tolist() == [0, 1, 2, 3, 4], "writing to a copy changed the array"


def test_what_is_read_outlives_the_array(dovetail_backend: Backend) -> None:
    """A NumPy array that was read does not change when the array is deleted and its memory is
    reused."""
    array = dovetail_backend.put(np.arange(1000, dtype=np.float32))
    value = read(array)
    array.delete()
    del array
    gc.collect()
    others = [dovetail_backend.put(np.full(1000, 9, np.float32)) for _ in range(4)]
    dt.block_until_ready(others)
    assert value.tolist() == list(range(1000)), "memory that was read is used for another array"


def test_scalars_of_python(dovetail_backend: Backend) -> None:
    """Python's numbers can be arguments of programs, too."""
    negated = dt.jit(lambda x: lax.neg(x))
    for value in (3, -2.5, 1 + 2j) if "complex" in dovetail_backend.capabilities else (3, -2.5):
        assert read(negated(value)).item() == -value


# ------------------------------------------------------------------------------------ placement


def _another_device(backend: Backend) -> Any:
    if len(backend.devices) < 2:
        pytest.skip(f"the backend {backend.platform!r} has one device here; this takes two")
    return backend.devices[1]


def test_copies_between_devices(dovetail_backend: Backend) -> None:
    """An array is copied from each device to each other; computations follow it there."""
    _another_device(dovetail_backend)
    value = values(np.dtype(np.float32), (3, 5))
    for source in dovetail_backend.devices:
        for target in dovetail_backend.devices:
            array = dovetail_backend.put(value, source)
            moved = dovetail_backend.put(array, target)
            assert moved.devices() == {target}, f"moved to {target!r}, found on {moved.devices()}"
            same(moved, value, f"copied from {source!r} to {target!r}")
            assert not array.is_deleted(), "a copy deleted its source"
            turned = lax.rev(moved, (0,))
            assert turned.devices() == {target}, f"computed on {turned.devices()}"
            same(turned, value[::-1], f"computed on {target!r}")


def test_devices_do_not_mix(dovetail_backend: Backend) -> None:
    """Arrays committed to two devices cannot be arguments of one program."""
    other = _another_device(dovetail_backend)
    x = dovetail_backend.put(np.ones(3, np.float32))
    y = dovetail_backend.put(np.ones(3, np.float32), other)
    with pytest.raises(ValueError, match="device"):
        lax.add(x, y)


def test_memory_kinds(dovetail_backend: Backend) -> None:
    """An array can be put into each memory that a device lists, and read back from there."""
    device = dovetail_backend.device
    kinds = memory_kinds(device)
    if is_pjrt(device.client):
        listed = [memory.kind for memory in device.addressable_memories()]
        assert sorted(listed) == sorted(kinds), (
            f"the default memory {kinds[0]!r} of {device!r} is not among addressable_memories: "
            f"{listed}"
        )
    value = values(np.dtype(np.float32), (4, 3))
    for kind in kinds:
        array = dt.device_put(value, SingleDeviceSharding(device, kind))
        assert array.sharding.memory_kind == kind
        same(array, value, f"memory of kind {kind!r}")
        back = dt.device_put(array, SingleDeviceSharding(device))
        same(back, value, f"from memory of kind {kind!r} to the default one")


@needs("offload")
def test_offloaded_values(dovetail_backend: Backend) -> None:
    """Values that a checkpoint policy offloads to another memory come back for the derivative. On a
    platform with a single memory, offloading may do nothing."""
    policy = dt.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["y"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    from dovetail.ad_checkpoint import checkpoint_name  # deferred: this test alone needs it

    def f(x: Any) -> Any:
        return lax.reduce_sum(lax.sin(checkpoint_name(lax.sin(x), "y")), (0,))

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    gradient = dt.jit(dt.grad(dt.checkpoint(f, policy=policy)))(dovetail_backend.put(x))
    np.testing.assert_allclose(read(gradient), np.cos(np.sin(x)) * np.cos(x), rtol=1e-4, atol=1e-6)


# ------------------------------------------------------------------------------- life of arrays


def test_deleted_arrays(dovetail_backend: Backend) -> None:
    """Deleting frees memory at once, twice is no error, and later use raises a clear one."""
    array = dovetail_backend.put(np.ones(3, np.float32))
    array.delete()
    array.delete()
    assert array.is_deleted()
    for use in (read, lambda x: lax.neg(x), dt.jit(lambda x: lax.neg(x)), dt.device_put):
        with pytest.raises(DeletedArrayError):
            use(array)


def test_live_arrays(dovetail_backend: Backend) -> None:
    """`live_arrays` lists an array until it is deleted or no longer referenced."""
    shape = (3, 1, 4, 1, 5)  # unlike all other live arrays

    def alive() -> int:
        gc.collect()
        return sum(a.shape == shape for a in dt.live_arrays(dovetail_backend.platform))

    kept = [dovetail_backend.put(np.ones(shape, np.float32)) for _ in range(2)]
    assert alive() == 2, f"live_arrays lists {alive()} of 2 arrays"
    kept[0].delete()
    assert alive() == 1, "live_arrays lists an array that was deleted"
    kept.clear()
    assert alive() == 0, "live_arrays lists an array that nobody holds"


def test_waiting(dovetail_backend: Backend) -> None:
    """`block_until_ready` returns when the value is available; `is_ready` then says so."""
    heavy = dt.jit(lambda x: lax.fori_loop(0, 50, lambda i, y: lax.tanh(lax.dot(y, y)), x))
    array = heavy(dovetail_backend.put(np.full((128, 128), 0.01, np.float32)))
    assert isinstance(array.is_ready(), bool)
    assert array.block_until_ready() is array
    assert array.is_ready(), "is_ready is False after block_until_ready"
    array.copy_to_host_async()
    assert np.isfinite(read(array)).all()


@needs("donation")
def test_donated_arguments_are_gone(dovetail_backend: Backend) -> None:
    """A donated argument is deleted, the result is right, and using the argument is an error that
    names the function it was donated to."""

    def step(state: Any, change: Any) -> Any:
        return lax.add(state, change)

    update = dt.jit(step, donate_argnums=0)
    change = dovetail_backend.put(np.ones(64, np.float32))
    state = dovetail_backend.put(np.arange(64, dtype=np.float32))
    for turn in range(1, 5):
        before = state
        state = update(before, change)
        assert before.is_deleted(), "a donated argument is not deleted"
        assert not change.is_deleted(), "an argument that was not donated is deleted"
        assert read(state).tolist() == [i + turn for i in range(64)], "the result is wrong"
        with pytest.raises(DeletedArrayError, match="donated to step"):
            lax.neg(before)


@needs("donation")
def test_donations_of_several_sizes(dovetail_backend: Backend) -> None:
    """Only results that fit take over memory, and each memory is taken over once."""

    def f(a: Any, b: Any, c: Any) -> Any:
        return lax.add(a, 1), lax.mul(b, 2), lax.concatenate([a, b, c], 0)

    arrays = [np.arange(n, dtype=np.float32) for n in (4, 7, 4)]
    given = [dovetail_backend.put(a) for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing fits the memory of the last one
        outs = dt.jit(f, donate_argnums=(0, 1, 2))(*given)
    for got, want in zip(outs, (arrays[0] + 1, arrays[1] * 2, np.concatenate(arrays)), strict=True):
        np.testing.assert_array_equal(read(got), want)


def test_copies_of_arrays(dovetail_backend: Backend) -> None:
    """Arrays are pickled and copied by value; a copy lives on when the array is deleted."""
    value = values(np.dtype(np.float32), (3, 2))
    array = dovetail_backend.put(value)
    made = [pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)]
    array.delete()
    for name, other in zip(("pickle", "copy", "deepcopy"), made, strict=True):
        same(other, value, name)


def test_dlpack_to_numpy(dovetail_backend: Backend) -> None:
    """If arrays are in host memory, NumPy accepts them through DLPack."""
    array = dovetail_backend.put(np.arange(6, dtype=np.float32).reshape(2, 3))
    try:
        kind, _ = array.__dlpack_device__()
    except BufferError as error:
        pytest.skip(f"DLPack has no name for the platform {dovetail_backend.platform!r}: {error}")
    if kind != 1:
        pytest.skip(f"NumPy takes memory of the host alone, this is of DLPack's kind {kind}")
    same(np.from_dlpack(array), np.arange(6, dtype=np.float32).reshape(2, 3), "by DLPack")


# ------------------------------------------------------------------------------------- programs


def test_arguments_without_use(dovetail_backend: Backend) -> None:
    """A program may use none of its arguments, some of them, and one of them several times."""
    x, y = (dovetail_backend.put(np.float32(v)) for v in (2, 3))
    assert read(dt.jit(lambda x, y: lax.neg(y))(x, y)).item() == -3
    assert read(dt.jit(lambda x, y: np.float32(5))(x, y)).item() == 5
    twice = dt.jit(lambda x, y: (y, y, x, lax.add(x, x)))(x, y)
    assert [read(v).item() for v in twice] == [3, 3, 2, 4]


def test_programs_without_results(dovetail_backend: Backend) -> None:
    """A program may have no results, and no arguments."""
    assert dt.jit(lambda x: ())(dovetail_backend.put(np.float32(1))) == ()
    assert dt.jit(lambda: None)() is None
    assert read(dt.jit(lambda: lax.iota(np.int32, 3))()).tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=full)])
def test_many_arguments_and_results(dovetail_backend: Backend, count: int) -> None:
    """A network has hundreds of parameter arrays; a step takes and returns them all."""
    arrays = [dovetail_backend.put(np.full((i % 3,), i, np.float32)) for i in range(count)]
    outs = dt.jit(lambda xs: [lax.add(x, 1) for x in reversed(xs)])(arrays)
    for i, out in enumerate(reversed(outs)):
        assert read(out).tolist() == [i + 1] * (i % 3), f"result {count - 1 - i} of {count}"


@full
def test_large_programs(dovetail_backend: Backend) -> None:
    """A program of two thousand operations."""

    def f(x: Any) -> Any:
        for i in range(1000):
            x = lax.add(lax.mul(x, np.float32(0.5)), np.float32(i % 7))
        return x

    start = np.array([1, -3], np.float32)
    want = start
    for i in range(1000):
        want = want * np.float32(0.5) + np.float32(i % 7)
    got = dt.jit(f)(dovetail_backend.put(start))
    np.testing.assert_allclose(read(got), want, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 1000, pytest.param(2_000_000, marks=full)])
def test_constants_of_programs(dovetail_backend: Backend, size: int) -> None:
    """Arrays captured by a function are part of its program, whatever their size."""
    constant = np.arange(size, dtype=np.float32)
    got = dt.jit(lambda x: lax.sub(x, constant))(dovetail_backend.put(constant * 2))
    np.testing.assert_array_equal(read(got), constant)


@full
def test_large_arrays(dovetail_backend: Backend) -> None:
    """Arrays of some ten million elements: 40 MB there, 40 MB back."""
    value = np.arange(10_000_000, dtype=np.int32)
    array = dovetail_backend.put(value)
    same(lax.neg(array), -value, "ten million negated integers")


def test_calls_do_not_get_in_each_others_way(dovetail_backend: Backend) -> None:
    """Results of calls that nobody waited for belong to their own arguments."""
    step = dt.jit(lambda x, i: lax.add(lax.mul(x, 2), i))
    start = dovetail_backend.put(np.ones(257, np.float32))
    outs = [step(start, np.float32(i)) for i in range(100)]
    chain = start
    for i in range(20):
        chain = step(chain, np.float32(i))
    for i, out in enumerate(outs):
        assert read(out).tolist() == [2.0 + i] * 257, f"the result of call {i}"
    want = 1.0
    for i in range(20):
        want = want * 2 + i
    assert read(chain).tolist() == [want] * 257, "a chain of calls"


@pytest.mark.parametrize("workers", [2, pytest.param(8, marks=full)])
def test_threads(dovetail_backend: Backend, workers: int) -> None:
    """Several threads put, compile, compute and read at once."""

    def work(number: int) -> bool:
        with dt.default_device(dovetail_backend.device):
            # Half of the threads share a program, the others compile one each.
            shift = np.float32(number if number % 2 else 0)
            compiled = dt.jit(lambda x: lax.add(lax.sin(x), shift))
            for turn in range(20):
                value = np.linspace(turn, turn + number, 33, dtype=np.float32)
                got = read(compiled(dovetail_backend.put(value)))
                if not np.allclose(got, np.sin(value) + shift, rtol=1e-4, atol=1e-5):
                    return False
        return True

    with ThreadPoolExecutor(workers) as pool:
        right = list(pool.map(work, range(workers)))
    assert all(right), f"wrong results in threads {[i for i, r in enumerate(right) if not r]}"


@needs("host_callbacks")
def test_a_failing_computation(dovetail_backend: Backend) -> None:
    """A failing computation raises where its value is read, and where dependent values are read; it
    harms no other computation, before or after."""

    def fail(x: Any) -> Any:
        raise ArithmeticError("on purpose")

    x = dovetail_backend.put(np.float32(2))
    shape = dt.ShapeDtypeStruct((), np.float32)
    before = dt.jit(lambda x: lax.neg(x))(x)
    broken = dt.jit(lambda x: dt.pure_callback(fail, shape, x))

    def failing() -> Any:
        return read(lax.neg(broken(x)))

    for _ in range(2):
        with pytest.raises(ArithmeticError, match="on purpose"):
            failing()
    after = dt.jit(lambda x: lax.mul(x, 3))(x)
    assert (read(before).item(), read(after).item()) == (-2, 6)


@needs("serialization")
def test_serialized_programs(dovetail_backend: Backend) -> None:
    """A compiled program, written as bytes and loaded again, computes the same."""

    def f(x: Any, y: Any) -> Any:
        return {"sum": lax.add(x, y), "product": lax.dot(x, y)}

    x = np.arange(4, dtype=np.float32)
    compiled = dt.jit(f).lower(x, x).compile()
    data, in_tree, out_tree = serialize_executable.serialize(compiled)
    assert isinstance(data, bytes)
    loaded = serialize_executable.deserialize_and_load(
        data, in_tree, out_tree, backend=dovetail_backend.platform
    )
    for run in (compiled, loaded):
        out = run(x, x)
        assert read(out["sum"]).tolist() == [0, 2, 4, 6]
        assert read(out["product"]).item() == 14


def test_ahead_of_time(dovetail_backend: Backend) -> None:
    """`jit(f).lower(...).compile()` returns a program that can be called and inspected."""
    compiled = dt.jit(lambda x: lax.sin(x)).lower(np.ones(3, np.float32)).compile()
    np.testing.assert_allclose(read(compiled(np.zeros(3, np.float32))), np.zeros(3))
    try:
        text = compiled.as_text()
    except NotImplementedError:
        return  # by the protocol, a backend's programs need not have a text
    assert isinstance(text, str | None)


@pytest.mark.parametrize("of", ["dot", "conv"])
def test_products_of_any_precision(dovetail_backend: Backend, of: str) -> None:
    """Products of float32 with no requested precision may be computed in bfloat16, but not less; at
    the highest precision they have the bits of float32."""
    generator = np.random.default_rng(0)
    x, y = (generator.uniform(-1, 1, (4, 4)).astype(np.float32) for _ in range(2))

    def product(x: Any, y: Any) -> Any:
        if of == "dot":
            return lax.dot(x, y)
        points = lax.conv(lax.reshape(x, (4, 4, 1)), lax.reshape(y, (4, 4, 1)), (1,), "VALID")
        return lax.reshape(points, (4, 4))

    right = y if of == "dot" else y.T
    want = x.astype(np.float64) @ right
    size = np.abs(x) @ np.abs(right)
    for precision, error in ((None, 2**-6), ("highest", 2**-21)):
        with dt.default_matmul_precision(precision):
            got = read(dt.jit(product)(x, y))
        wrong = np.abs(got - want) / size
        assert wrong.max() <= error, f"at the precision {precision}: wrong by {wrong.max():.1e}"


def test_an_error_of_the_compiler(dovetail_backend: Backend) -> None:
    """An unknown compile option is an error, and does not affect anything later."""
    lowered = dt.jit(lambda x: lax.sin(x)).lower(np.float32(1))
    with pytest.raises(Exception, match="no_such_compiler_option"):
        lowered.compile(compiler_options={"no_such_compiler_option": True})
    assert read(dt.jit(lambda x: lax.sin(x))(np.float32(0))).item() == 0


def test_copies_in_programs(dovetail_backend: Backend) -> None:
    """`device_put` inside of a compiled function, to the device that it runs on, is a copy."""
    x = values(np.dtype(np.float32), (7,))
    got = dt.jit(lambda x: lax.rev(dt.device_put(x, dovetail_backend.device), (0,)))(x)
    same(got, x[::-1], "device_put in a program")


def test_inspected_shardings(dovetail_backend: Backend) -> None:
    """`debug.inspect_array_sharding` reports where a value of a compiled function is."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = lax.neg(x)
        dt.debug.inspect_array_sharding(y, callback=seen.append)
        return y

    assert read(dt.jit(f)(np.float32(2))).item() == -2
    assert [set(sharding.device_set) for sharding in seen] == [{dovetail_backend.device}]


def test_numbers_of_the_platforms_generator(dovetail_backend: Backend) -> None:
    """`rng_uniform` gives numbers between its bounds, and not always the same one."""
    draw = dt.jit(lambda low, high: lax.rng_uniform(low, high, (1000,)))
    got = read(draw(np.float32(-1), np.float32(3)))
    assert got.min() >= -1, f"a number of {got.min()} below the lower bound -1"
    assert got.max() < 3, f"a number of {got.max()} not below the upper bound 3"
    assert len(np.unique(got)) > 900, "the numbers repeat"
    assert abs(got.mean() - 1) < 0.3, f"the mean of 1000 numbers is {got.mean()} instead of 1"
