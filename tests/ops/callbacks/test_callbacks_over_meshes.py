"""Callbacks of programs over several devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.experimental import io_callback
from dovetail.experimental.buffer_callback import buffer_callback
from dovetail.sharding import AxisType, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.tables
MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
DEVICES = dt.devices()
X = np.arange(32, dtype=np.float32).reshape(8, 4)
SEEN: list[Any] = []
ROWS = NamedSharding(MESH, P("x"))
THIRD = SingleDeviceSharding(DEVICES[2])


def _double(x: Any) -> Any:
    SEEN.append(x.shape)
    return np.asarray(x) * 2


def _look(*args: Any) -> None:
    SEEN.append(args[0].shape if len(args) == 1 else tuple(x.shape for x in args))


def _write(context: Any, out: Any, x: Any) -> None:
    SEEN.append(np.shape(x))
    np.asarray(out)[...] = np.asarray(x) * 2


def _placed() -> Any:
    return dt.device_put(X, NamedSharding(MESH, P("x", "y")))


def _type(x: Any) -> Any:
    return dt.ShapeDtypeStruct(x.shape, x.dtype)


def _pure(x: Any, **options: Any) -> Any:
    return dt.pure_callback(_double, _type(x), x, **options)


def _io(x: Any, **options: Any) -> Any:
    return io_callback(_double, _type(x), x, **options)


def _shown(x: Any, **options: Any) -> Any:
    dt.debug.callback(_look, x, **options)
    return x * 2


def _in_parts(function: Callable[..., Any], *axes: str) -> Callable[..., Any]:
    return dt.shard_map(
        function, mesh=MESH, in_specs=P(*axes), out_specs=P(*axes), axis_names=set(axes)
    )


#: Function, how often it calls Python, the shape that Python sees, and how the result is divided.
CASES: dict[str, tuple[Callable[..., Any], int, Any, P]] = {
    "pure": (_pure, 1, (8, 4), P()),
    "pure, by a device": (lambda x: _pure(x, sharding=THIRD), 1, (8, 4), P()),
    "io": (_io, 1, (8, 4), P()),
    "io, by a device": (lambda x: _io(x, sharding=THIRD), 1, (8, 4), P()),
    "io in order": (lambda x: _io(x, sharding=THIRD, ordered=True), 1, (8, 4), P()),
    "debug": (_shown, 1, (8, 4), P("x", "y")),
    "debug in order": (lambda x: _shown(x, ordered=True), 1, (8, 4), P("x", "y")),
    "debug of parts": (lambda x: _shown(x, partitioned=True), 4, (4, 2), P("x", "y")),
    "buffers": (lambda x: buffer_callback(_write, _type(x))(x), 4, (8, 4), P()),
    "divided again": (
        lambda x: lax.with_sharding_constraint(_pure(x), ROWS),
        1,
        (8, 4),
        P("x"),
    ),
    "one call of a batch": (
        dt.vmap(lambda row: _pure(row, vmap_method="broadcast_all")),
        1,
        (8, 4),
        P(),
    ),
    "a call of each row": (
        dt.vmap(lambda row: _pure(row, vmap_method="sequential")),
        8,
        (4,),
        P(),
    ),
    "in a loop": (
        lambda x: lax.fori_loop(0, 3, lambda _, y: _pure(y), x) / 4,
        3,
        (8, 4),
        P(),
    ),
    "in parts": (_in_parts(_pure, "x", "y"), 4, (4, 2), P("x", "y")),
    "in parts along one axis": (_in_parts(_pure, "x"), 4, (4, 4), P("x")),
    "io in parts": (_in_parts(_io, "x", "y"), 4, (4, 2), P("x", "y")),
    "debug in parts along one axis": (_in_parts(_shown, "x"), 4, (4, 4), P("x", "y")),
    "eager": (_pure, 1, (8, 4), P()),
    "eager, by a device": (lambda x: _io(x, sharding=THIRD), 1, (8, 4), P()),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_and_results(name: str) -> None:
    function, count, shape, spec = CASES[name]
    if not name.startswith("eager"):
        function = dt.jit(function)
    SEEN.clear()
    result = function(_placed())
    dt.block_until_ready(result)
    dt.effects_barrier()
    assert [shape] * count == SEEN
    np.testing.assert_array_equal(result, X * 2)
    if name != "in a loop":  # the compiler chooses
        assert result.sharding == NamedSharding(MESH, spec)


def test_the_device_that_calls() -> None:
    """It is a branch of the program, which that device alone takes."""
    for number, sharding in ((0, None), (2, THIRD)):
        function = dt.jit(lambda x, sharding=sharding: _pure(x, sharding=sharding))
        text = function.lower(_placed()).as_text()
        (symbol,) = re.findall(rf"sdy\.mesh @(\w+) = <\[\], device_ids=\[{number}\]>", text)
        assert re.search(rf"callback\(.*sharding_per_value<\[<@{symbol}, \[\]>\]>", text)


def test_parts_of_several_values(capsys: pytest.CaptureFixture[str]) -> None:
    keys = dt.device_put(dt.random.split(dt.random.key(0), 8), NamedSharding(MESH, P("y")))

    @dt.jit
    def function(x: Any, keys: Any) -> None:
        dt.debug.callback(_look, x, x.sum(0), keys, 3.0, partitioned=True)
        dt.debug.print("{}", x[:, 0], partitioned=True)

    SEEN.clear()
    function(_placed(), keys)
    dt.effects_barrier()
    assert SEEN == [((4, 2), (2,), (4,), ())] * 4
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["[ 0.  4.  8. 12.]"] * 2 + ["[16. 20. 24. 28.]"] * 2


@pytest.mark.parametrize("call", [_pure, _io])
@pytest.mark.parametrize(
    ("sharding", "error", "message"),
    [
        (P("x"), TypeError, r"sharding must be a SingleDeviceSharding.*got P\('x'\)"),
        (DEVICES[0], TypeError, "sharding must be a SingleDeviceSharding"),
        (ROWS, NotImplementedError, r"one device calls the function.*got NamedSharding"),
    ],
)
def test_what_is_no_device(
    call: Callable[..., Any], sharding: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(X, sharding=sharding)


def test_devices_that_do_not_run_the_program() -> None:
    two = dt.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=DEVICES[:2])
    placed = dt.device_put(X, NamedSharding(two, P("x")))
    for function, x, named in (
        (dt.jit(lambda x: _pure(x, sharding=THIRD)), X, "cpu:0;"),
        (dt.jit(lambda x: _pure(x, sharding=THIRD)), placed, "cpu:0, cpu:1;"),
        (lambda x: _io(x, sharding=THIRD), placed, "cpu:0, cpu:1;"),
    ):
        with pytest.raises(ValueError, match=f"cpu:2 calls _double .*the program runs on {named}"):
            function(x)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            _in_parts(lambda x: _pure(x, sharding=THIRD), "x", "y"),
            NotImplementedError,
            "inside shard_map each device calls _double .*leave sharding out",
        ),
        (
            _in_parts(_io, "x"),
            NotImplementedError,
            "along only some axes .*the devices along 'y' share a part",
        ),
        (
            lambda x: _shown(x, partitioned=True, ordered=True),
            ValueError,
            "partitioned=True .*leave out ordered=True",
        ),
        (
            lambda x: buffer_callback(_write, _type(x), has_side_effect=True)(x),
            NotImplementedError,
            "buffer_callback with has_side_effect=True .*call it in shard_map",
        ),
    ],
    ids=["device in shard_map", "io along one axis", "parts in order", "buffers with effect"],
)
def test_what_cannot_be_called(
    function: Callable[..., Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        dt.jit(function)(_placed())


def _fail(*args: Any) -> Any:
    raise KeyError("no such row")


#: Ways to call Python while devices have operations in common, or are about to.
FAILING: dict[str, Callable[[Any], Any]] = {
    "result": lambda x: dt.pure_callback(_fail, _type(x), x),
    "used": lambda x: dt.pure_callback(_fail, _type(x), x) + x.sum(),
    "in a loop": lambda x: lax.fori_loop(
        0, 3, lambda _, y: dt.pure_callback(_fail, _type(x), y), x
    ),
    "in order": lambda x: io_callback(_fail, _type(x), x, ordered=True),
    "debug": lambda x: (dt.debug.callback(_fail, x), x.sum())[1],
    "parts": lambda x: (dt.debug.callback(_fail, x, partitioned=True), x.sum())[1],
    "in parts": _in_parts(
        lambda x: dt.pure_callback(_fail, _type(x), x) + lax.psum(x, "x"), "x", "y"
    ),
    "buffers": lambda x: buffer_callback(_fail, _type(x))(x) + x.sum(),
}


@pytest.mark.parametrize("name", FAILING)
def test_exceptions_end_no_process_and_let_no_device_wait(name: str) -> None:
    function = dt.jit(FAILING[name])
    for _ in range(2):
        with pytest.raises(KeyError, match="no such row") as raised:
            function(_placed())
        assert any("raised by _fail" in note for note in raised.value.__notes__)
    dt.effects_barrier()
    np.testing.assert_array_equal(dt.jit(_pure)(_placed()), X * 2)


def test_an_exception_is_that_of_its_call() -> None:
    def check(x: Any) -> Any:
        if float(x[0, 0]) > 50:
            raise ValueError("large")
        return np.asarray(x)

    function = dt.jit(lambda x: dt.pure_callback(check, _type(x), x))
    small, large = _placed(), _placed() + 100

    def call(number: int) -> bool:
        try:
            return bool((function(small if number % 2 else large) == small).all())
        except ValueError:
            return False

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(call, range(12))) == [False, True] * 6


def test_computing_in_a_callback() -> None:
    """On one device; those of the program wait for it."""
    double = dt.jit(lambda x: x * 2)
    outer = dt.jit(lambda x: dt.pure_callback(lambda x: double(x + 0), _type(x), x) + x.sum())
    np.testing.assert_array_equal(outer(_placed()), X * 2 + X.sum())
    nested = dt.jit(lambda x: dt.pure_callback(lambda _: double(_placed()), _type(x), x))
    with pytest.raises(RuntimeError, match="is called in a callback of a program that does, too"):
        nested(_placed())
