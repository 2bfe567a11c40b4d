"""Arrays as text and in files, and arrays from text, files and other libraries."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

DTYPES = (
    *("bool", "int8", "uint8", "int32", "uint32", "float16", "float32", "complex64"),
    *("bfloat16", "int4", "uint2", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
)


def make(dtype: str, shape: tuple[int, ...] = (2, 3)) -> np.ndarray[Any, Any]:
    values = np.arange(np.prod(shape)) % 3
    return values.reshape(shape).astype(getattr(ml_dtypes, dtype, dtype))


def same(actual: Any, expected: np.ndarray[Any, Any]) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert np.asarray(actual).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_files_keep_shapes_and_dtypes(dtype: str, tmp_path: pathlib.Path) -> None:
    for shape in ((2, 3), (), (0, 2)):
        x = make(dtype, shape)
        file = io.BytesIO()
        jnp.save(file, jnp.asarray(x))
        file.seek(0)
        same(jnp.load(file), x)
        jnp.save(tmp_path / "x", x)
        same(jnp.load(tmp_path / "x.npy"), x)


def test_files_are_those_of_numpy(tmp_path: pathlib.Path) -> None:
    for dtype in ("int32", "bfloat16"):
        x = make(dtype)
        ours, theirs = io.BytesIO(), io.BytesIO()
        jnp.save(ours, jnp.asarray(x))
        np.save(theirs, x)
        assert ours.getvalue() == theirs.getvalue()
    np.save(tmp_path / "wide.npy", np.array([1.0, 2.0]))
    same(jnp.load(tmp_path / "wide.npy"), np.array([1, 2], "float32"))
    same(jnp.load(str(tmp_path / "wide.npy"), mmap_mode="r"), np.array([1, 2], "float32"))
    np.save(tmp_path / "swapped.npy", np.array([1, 2], ">i4"))
    same(jnp.load(tmp_path / "swapped.npy"), np.array([1, 2], "int32"))
    np.save(tmp_path / "fields.npy", np.zeros(2, [("a", "i4"), ("b", "f4")]))
    with pytest.raises(TypeError):
        jnp.load(tmp_path / "fields.npy")
    np.save(tmp_path / "large.npy", np.array([2**40]))
    with pytest.raises(OverflowError):
        jnp.load(tmp_path / "large.npy")


def test_several_arrays_in_a_file() -> None:
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(3), np.ones(2), b=make("bfloat16"), allow_pickle=False)
    file.seek(0)
    with jnp.load(file) as found:
        assert repr(found) == "Archive of b, arr_0, arr_1"
        assert sorted(found) == sorted(found.files) == ["arr_0", "arr_1", "b"]
        assert (len(found), "b" in found, "c" in found) == (3, True, False)
        assert found["arr_0"].tolist() == [0, 1, 2]
        assert found["b"].dtype == ml_dtypes.bfloat16
        assert found["b"].tolist() == make("bfloat16").tolist()
    with pytest.raises(ValueError, match="arr_0 is the name of an argument without a name"):
        jnp.savez(file, jnp.ones(1), arr_0=jnp.ones(1))
    with pytest.raises(ValueError, match="x is an array of Python objects"):
        jnp.savez(file, x=np.array([None]), allow_pickle=False)


def test_tracers_and_keys_are_not_written() -> None:
    for write in (jnp.save, jnp.savez):
        with pytest.raises(dt.errors.TracerArrayConversionError):
            dt.jit(lambda x, write=write: write(io.BytesIO(), x))(1.0)
        with pytest.raises(TypeError, match="key_data"):
            write(io.BytesIO(), dt.random.key(0))


def test_printing() -> None:
    x = jnp.array([1 / 3, 1e-9, 2.0])
    assert jnp.array_repr(x, precision=2, suppress_small=True) == (
        "Array([0.33, 0.  , 2.  ], dtype=float32)"
    )
    assert jnp.array_str(x, precision=2, suppress_small=True) == "[0.33 0.   2.  ]"
    assert jnp.array_str(jnp.arange(9), max_line_width=12).count("\n") == 1
    assert jnp.array_repr(x) == repr(x)
    assert jnp.array_str(x) == str(x)
    assert jnp.array_repr(np.arange(2)) == "array([0, 1])"
    assert jnp.array_str([1, 2]) == "[1 2]"
    seen: list[str] = []
    dt.make_jaxpr(lambda v: seen.append(jnp.array_repr(v) + jnp.array_str(v)) or v)(x)
    assert seen[0].startswith("Traced<")
    before = jnp.get_printoptions()
    with jnp.printoptions(precision=3) as options:
        assert options["precision"] == 3
        assert str(x[:1]) == "[0.333]"
    jnp.set_printoptions(precision=3)
    assert jnp.array_str(x[:1]) == "[0.333]"
    jnp.set_printoptions(**before)
    assert jnp.get_printoptions() == before == np.get_printoptions()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16", ">i2", jnp.int32, None])
def test_numbers_in_files(dtype: Any, tmp_path: pathlib.Path) -> None:
    own = float if dtype is None else dtype
    raw = np.arange(5).astype(jnp.dtype(own) if not isinstance(own, str) else own)
    raw.tofile(tmp_path / "numbers")
    given = {} if dtype is None else {"dtype": dtype}
    wanted = raw.astype("float32" if dtype is None else raw.dtype.newbyteorder("="))
    same(jnp.fromfile(tmp_path / "numbers", **given), wanted)
    same(jnp.fromfile(tmp_path / "numbers", count=2, offset=raw.itemsize, **given), wanted[1:3])
    if dtype is not None:
        same(jnp.fromfile(tmp_path / "numbers", dtype, 2), wanted[:2])
        if dtype != ">i2":
            same(jnp.fromiter(iter(range(5)), dtype), wanted)
            same(jnp.fromiter((n for n in range(9)), dtype=dtype, count=5), wanted)


def test_numbers_in_text(tmp_path: pathlib.Path) -> None:
    same(jnp.fromstring("1 2 3", sep=" "), np.array([1, 2, 3], "float32"))
    same(jnp.fromstring("1, 2, 3", int, sep=","), np.array([1, 2, 3], "int32"))
    same(jnp.fromstring("1,2,3", jnp.int8, 2, sep=","), np.array([1, 2], "int8"))
    (tmp_path / "text").write_text("1.5;2.5")
    same(jnp.fromfile(tmp_path / "text", sep=";"), np.array([1.5, 2.5], "float32"))
    constant = dt.jit(lambda x: x + jnp.fromiter([1, 2], dtype="float32"))
    assert constant(1.0).tolist() == [2, 3]


def test_from_dlpack() -> None:
    theirs = np.arange(4, dtype="float32")
    same(jnp.from_dlpack(theirs), theirs)
    ours = jnp.arange(4.0)
    same(jnp.from_dlpack(ours), np.asarray(ours))
    same(jnp.from_dlpack(theirs, device=dt.devices()[0], copy=True), theirs)
    shared = jnp.from_dlpack(ours, copy=False)
    assert shared.unsafe_buffer_pointer() == ours.unsafe_buffer_pointer()


def test_scalars_and_iterables() -> None:
    scalars = [1, 1.0, True, 1j, "a", b"a", np.float32(1), np.array(1), jnp.array(1)]
    assert all(map(jnp.isscalar, scalars))
    assert not any(map(jnp.isscalar, [None, [1], np.ones(1), jnp.ones(1), {}, object()]))
    assert all(map(jnp.iterable, [[1], "a", {}, np.ones(1), jnp.ones((0, 1))]))
    assert not any(map(jnp.iterable, [1, np.array(1), jnp.array(1), None]))
    seen: list[Any] = []
    dt.make_jaxpr(
        lambda x, y: [seen.append((jnp.isscalar(v), jnp.iterable(v))) for v in (x, y)] and x
    )(1.0, np.ones(2))
    assert seen == [(True, False), (False, True)]


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.fromstring("12", sep=""), ValueError, "frombuffer"),
    (lambda: jnp.fromstring("12", dtype=int), TypeError, "sep"),
    (lambda: jnp.fromiter([1], dtype="nonsense"), TypeError, "nonsense"),
    (lambda: jnp.fromiter([2**40], dtype=int), OverflowError, "fit"),
    (lambda: jnp.from_dlpack(object()), TypeError, "__dlpack__"),
    (lambda: jnp.load("/nonexistent/file.npy"), FileNotFoundError, "file.npy"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, kind, message = ERRORS[number]
    with pytest.raises(kind, match=message):
        call()
