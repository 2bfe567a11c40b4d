"""dovetail.ffi: native code called from programs."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import ffi, lax
from dovetail.experimental.layout import Layout
from dovetail.experimental.serialize_executable import deserialize_and_load, serialize
from dovetail.extend import LoweringTable
from dovetail.sharding import AxisType, NamedSharding

COMPILER = os.environ.get("CXX") or shutil.which("c++")
SOURCE = Path(__file__).with_name("native_calls.cc")
HANDLERS = ("scale", "add", "copy", "increment", "extremes", "attributes", "fail", "calls")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
WAYS = {"eager": lambda f: f, "jit": dt.jit}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The library with the handlers, which are registered."""
    file = tmp_path_factory.mktemp("native") / "native_calls.so"
    include = ("-isystem", ffi.include_dir())
    options = ("-std=c++17", "-O0", "-fPIC", "-shared")
    subprocess.run(
        [*str(COMPILER).split(), *options, *include, str(SOURCE), "-o", str(file)], check=True
    )
    loaded = ctypes.CDLL(str(file))
    for name in HANDLERS:
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(loaded, f"test_{name}")))
    return loaded


def like(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return dt.ShapeDtypeStruct(shape, dtype)


def scaled(x: Any, factor: float = 2, **options: Any) -> Any:
    call = ffi.ffi_call("test_scale", like(np.shape(x)), **options)
    return call(x, factor=np.float32(factor))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)])
def test_dtypes_and_shapes(shape: tuple[int, ...], dtype: str, way: str) -> None:
    x = jnp.arange(np.prod(shape)).reshape(shape).astype(dtype)
    result = WAYS[way](ffi.ffi_call("test_copy", like(shape, x.dtype)))(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("way", WAYS)
def test_static_arguments_of_every_kind(way: str) -> None:
    def call() -> Any:
        return ffi.ffi_call("test_attributes", like((9,)))(
            flag=True,
            whole=-7,
            real=2.5,
            text="four",
            narrow=np.int8(-3),
            natural=np.uint32(9),
            wholes=np.array([1, 2, 3]),
            reals=np.float32([0.5, 1.5]),
            nested={"inner": 11},
        )

    np.testing.assert_array_equal(WAYS[way](call)(), [1, -7, 2.5, 4, -3, 9, 303, 201.5, 11])


def test_static_arguments_are_told_apart() -> None:
    """Numbers that are equal but of different types are different static arguments."""
    texts = [
        dt.jit(lambda x, a=a: ffi.ffi_call("acme", like((3,)))(x, a=a)).lower(X[0]).as_text()
        for a in (1, 1.0, True, np.float32(1), np.int8(1), np.ones(1), (1,), "1", {"b": 1})
    ]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("way", WAYS)
def test_several_results(way: str) -> None:
    for kind in (list, tuple):
        results = WAYS[way](ffi.ffi_call("test_extremes", kind([like(()), like(())])))(X)
        assert isinstance(results, list)
        assert [float(r) for r in results] == [0, 5]
    (alone,) = WAYS[way](ffi.ffi_call("test_copy", [like((3,))]))(X[0])
    np.testing.assert_array_equal(alone, X[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", [lambda order: order, Layout, list])
def test_layouts(form: Any, way: str) -> None:
    """Native code sees the memory in the order that was asked for."""
    columns, rows = form((1, 0)), form((0, 1))
    by_columns = X.T.reshape(2, 3)  # the memory of X in column-major order, read by rows
    read = ffi.ffi_call("test_copy", like((2, 3)), input_layouts=[columns])
    np.testing.assert_array_equal(WAYS[way](read)(X), by_columns)
    written = ffi.ffi_call("test_copy", like((2, 3)), output_layouts=columns)
    np.testing.assert_array_equal(WAYS[way](written)(X), X.ravel().reshape(3, 2).T)
    both = ffi.ffi_call("test_copy", [like((2, 3))], input_layouts=[rows], output_layouts=[None])
    np.testing.assert_array_equal(WAYS[way](both)(X)[0], X)


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "legacy_vectorized"])
def test_layouts_under_vmap(method: str) -> None:
    """The batch dimension is the slowest varying one; the others keep their order."""
    batch = np.stack([X, X + 10])

    def call(x: Any) -> Any:
        return ffi.ffi_call("test_copy", like((2, 3)), input_layouts=[(1, 0)], vmap_method=method)(
            x
        )

    expected = np.stack([x.T.reshape(2, 3) for x in batch])
    np.testing.assert_array_equal(dt.vmap(call)(batch), expected)


@pytest.mark.parametrize("way", WAYS)
def test_aliases(way: str) -> None:
    """A result starts with the value of the argument that it is written over."""
    call = ffi.ffi_call("test_increment", like((2, 3)), input_output_aliases={0: 0})
    given = jnp.asarray(X)
    np.testing.assert_array_equal(WAYS[way](call)(given), X + 1)
    np.testing.assert_array_equal(given, X)
    mapped = dt.vmap(
        ffi.ffi_call(
            "test_increment", like((3,)), input_output_aliases={0: 0}, vmap_method="expand_dims"
        )
    )
    np.testing.assert_array_equal(WAYS[way](mapped)(X), X + 1)


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        ("sequential", 2),
        ("sequential_unrolled", 2),
        ("expand_dims", 1),
        ("broadcast_all", 1),
        ("legacy_vectorized", 1),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_vmap_methods(method: str, calls: int, way: str, library: ctypes.CDLL) -> None:
    call = ffi.ffi_call("test_add", like((3,)), vmap_method=method)
    y = np.float32([10, 20, 30])
    before = library.test_calls_so_far()
    result = np.asarray(WAYS[way](dt.vmap(call, in_axes=(0, None)))(X, y))
    np.testing.assert_array_equal(result, X + y)
    assert library.test_calls_so_far() - before == calls
    nested = dt.vmap(dt.vmap(call), in_axes=(1, None), out_axes=1)
    cube, ys = np.stack([X, X + 6], 1), np.stack([y, y])
    np.testing.assert_array_equal(WAYS[way](nested)(cube, ys), cube + ys[:, None])


def test_side_effects(library: ctypes.CDLL) -> None:
    """A call with side effects is made though nobody needs its results."""
    for has_side_effect in (False, True):
        before = library.test_calls_so_far()

        @dt.jit
        def run(x: Any, effect: bool = has_side_effect) -> Any:
            scaled(x, has_side_effect=effect)
            return x + 1

        run(X).block_until_ready()
        dt.effects_barrier()
        assert library.test_calls_so_far() - before == has_side_effect


def test_tokens(library: ctypes.CDLL) -> None:
    call = ffi.ffi_call("test_calls", [like((), np.int32), ffi.abstract_token])
    calls, token = dt.jit(lambda: call(lax.create_token()))()
    assert calls == library.test_calls_so_far()
    assert int(call(token)[0]) == calls


def test_derivatives() -> None:
    """The function has those that its caller gives it."""

    @dt.custom_vjp
    def double(x: Any) -> Any:
        return scaled(x, vmap_method="broadcast_all")

    double.defvjp(
        lambda x: (double(x), None), lambda _, ct: (scaled(ct, vmap_method="expand_dims"),)
    )
    np.testing.assert_array_equal(dt.grad(lambda x: (double(x) ** 2).sum())(X), 8 * X)
    per_row = dt.vmap(dt.grad(lambda x: (double(x) ** 2).sum()))
    np.testing.assert_array_equal(dt.jit(per_row)(X), 8 * X)
    with pytest.raises(ValueError, match=r"ffi_call has no derivative.*custom_vjp"):
        dt.grad(lambda x: scaled(x).sum())(X)


def test_in_control_flow() -> None:
    assert float(lax.fori_loop(0, 3, lambda _, x: scaled(x), np.float32(1))) == 8
    branch = dt.jit(lambda p, x: lax.cond(p, scaled, lambda x: x, x))
    assert [float(branch(p, np.float32(3))) for p in (True, False)] == [6, 3]


def test_several_devices(library: ctypes.CDLL) -> None:
    mesh = dt.make_mesh((4,), ("i",), (AxisType.Auto,), devices=dt.devices("cpu")[:4])
    rows = NamedSharding(mesh, dt.P("i"))
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    given = dt.device_put(x, rows)
    ffi.register_ffi_target("test_scale_rows", ffi.pycapsule(library.test_scale))
    ffi.register_ffi_target_as_batch_partitionable("test_scale_rows")

    def call(target: str, **options: Any) -> Any:
        def run(x: Any) -> Any:
            return ffi.ffi_call(target, like(x.shape), vmap_method="broadcast_all", **options)(
                x, factor=np.float32(2)
            )

        return run

    cases = [
        (call("test_scale"), False),
        (call("test_scale", has_side_effect=True), False),
        (dt.vmap(call("test_scale")), False),
        (dt.vmap(call("test_scale_rows")), True),
        (dt.vmap(call("test_scale_rows", has_side_effect=True)), False),
        (
            dt.shard_map(call("test_scale"), mesh=mesh, in_specs=dt.P("i"), out_specs=dt.P("i")),
            True,
        ),
    ]
    for number, (function, divided) in enumerate(cases):
        result = dt.jit(function)(given)
        np.testing.assert_array_equal(result, 2 * x, str(number))
        assert result.sharding.is_equivalent_to(rows, 2) == divided, number


def test_part_of_the_axes() -> None:
    """In a shard_map along one of two axes, each device makes the call with the whole part."""
    mesh = dt.make_mesh((2, 2), ("i", "j"), (AxisType.Auto,) * 2, devices=dt.devices("cpu")[:4])
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for effect in (False, True):
        function = dt.shard_map(
            lambda x, effect=effect: scaled(x, has_side_effect=effect),
            mesh=mesh,
            in_specs=dt.P("i"),
            out_specs=dt.P("i"),
            axis_names={"i"},
            check_vma=False,
        )
        np.testing.assert_array_equal(dt.jit(function)(x), 2 * x)


def test_stages_and_types(library: ctypes.CDLL) -> None:
    """A handler with several stages, which keep an object of a registered type."""
    address = {}
    for part in ("id", "info"):
        function = getattr(library, f"test_kept_{part}")
        function.restype = ctypes.c_void_p
        address[f"type_{part}"] = ffi.pycapsule(ctypes.c_void_p(function()))
    ffi.register_ffi_type("test_kept", address)
    stages = {"instantiate": library.test_make, "execute": library.test_read}
    ffi.register_ffi_target("test_stages", {k: ffi.pycapsule(f) for k, f in stages.items()})
    assert float(ffi.ffi_call("test_stages", like(()))(number=5)) == 5


def test_function_of_plain_pointers(library: ctypes.CDLL) -> None:
    capsule = ffi.pycapsule(library.test_untyped)
    ffi.register_ffi_target("test_untyped", capsule, api_version=0)
    call = ffi.ffi_call("test_untyped", like(()), custom_call_api_version=1)
    assert float(call(np.float32(4))) == 8
    text = dt.jit(
        ffi.ffi_call(
            "test_untyped", like(()), custom_call_api_version=2, legacy_backend_config="how"
        )
    )
    assert 'backend_config = "how"' in text.lower(np.float32(4)).as_text()


def test_lowering_rules() -> None:
    """A rule of a lowering table, as a plug-in gives it."""
    table = LoweringTable()
    rule = table.rule("acme")(ffi.ffi_lowering("acme", operand_layouts=[(1, 0)]))
    assert table["acme"] is rule
    build = ffi.build_ffi_lowering_function("acme", backend_config={"a": 1}, has_side_effect=True)
    written: list[str] = []

    class Context:
        avals_in = avals_out = (dt.typeof(X),)
        platforms = ("cpu",)

        def require(self, check: Any) -> None:
            written.append(check.name)

        def custom_call_operation(self, *args: Any, **options: Any) -> Any:
            written.append((args, options))
            return type("Operation", (), {"results": [1]})

    assert rule(Context(), "x", factor=2) == [1]
    assert build(Context(), "x", b=2).results == [1]
    (_, first, _, second) = written
    assert first[0][:2] == ("acme", ("x",))
    assert first[0][3] == {"factor": 2}
    assert first[1]["operand_layouts"] == [(0, 1)]
    assert second[0][3] == {"a": 1, "b": 2}
    assert second[1]["has_side_effect"] is True
    with pytest.raises(TypeError, match=r"takes has_side_effect.*not called_computations"):
        ffi.build_ffi_lowering_function("acme", called_computations=[])
    with pytest.raises(TypeError, match="takes no static arguments: b"):
        ffi.build_ffi_lowering_function("acme", backend_config="text")(Context(), "x", b=1)


def test_ahead_of_time() -> None:
    """Programs are lowered without the function, and compiled with it."""
    call = dt.jit(ffi.ffi_call("test_nowhere", like((2, 3))))
    lowered = call.lower(X)
    assert "stablehlo.custom_call @test_nowhere" in lowered.as_text()
    message = r"'test_nowhere', under which no native function.*register_ffi_target"
    with pytest.raises(RuntimeError, match=message):
        lowered.compile()
    for run in (call, ffi.ffi_call("test_nowhere", like((2, 3)))):
        with pytest.raises(RuntimeError, match=message):
            run(X)


def test_programs_of_other_processes(tmp_path: Path) -> None:
    """A written program runs where the function is registered, and is refused elsewhere."""
    written = serialize(dt.jit(scaled).lower(X).compile())
    np.testing.assert_array_equal(deserialize_and_load(*written)(X), 2 * X)
    file = tmp_path / "program"
    file.write_bytes(pickle.dumps(written))
    code = f"""
        import pickle
        from dovetail.experimental.serialize_executable import deserialize_and_load
        try:
            deserialize_and_load(*pickle.load(open({str(file)!r}, "rb")))
        except RuntimeError as error:
            print(error)
    """
    answer = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert "'test_scale', under which no native function is registered" in answer.stdout


def bad(match: str, *, options: Any = None, error: Any = ValueError, **case: Any) -> Any:
    return pytest.param(options or {}, case, error, match, id=match[:40])


@pytest.mark.parametrize(
    ("options", "case", "error", "match"),
    [
        bad("target_name is a string", error=TypeError, target=3),
        bad("must have a shape", error=TypeError, result={"a": like((3,))}),
        bad(r"result_shape_dtypes\[1\] must have a shape", error=TypeError, result=[like(()), 1]),
        bad("64-bit types are off", result=like((3,), np.float64)),
        bad("vmap_method of ffi_call must be one of", options={"vmap_method": "no"}),
        bad("1 array|one for each", options={"input_layouts": []}),
        bad(r"input_layouts\[0\]: a layout of an array of 2", options={"input_layouts": [(0, 2)]}),
        bad("layout for each array", error=TypeError, options={"input_layouts": 3}),
        bad("output_layouts has 2", options={"output_layouts": [None] * 2}, result=[like((3,))]),
        bad("with 1 argument and 1", options={"input_output_aliases": {0: 1}}),
        bad("differ: float32|differ: f32", options={"input_output_aliases": {0: 0}}),
        bad("for custom_call_api_version < 4", options={"legacy_backend_config": "x"}),
        bad("take no static", options={"custom_call_api_version": 2}, attributes={"a": 1}),
        bad("a: a static argument.*NoneType", error=TypeError, attributes={"a": None}),
        bad("a: a static argument.*list", error=TypeError, attributes={"a": [1]}),
        bad("a: a static argument.*complex", error=TypeError, attributes={"a": 1j}),
        bad(r"a\['b'\]: a static", error=TypeError, attributes={"a": {"b": object()}}),
        bad("names in a dictionary", error=TypeError, attributes={"a": {1: 1}}),
        bad("a: native code takes an int as int64", error=OverflowError, attributes={"a": 2**63}),
        bad("not trees of them", error=TypeError, args=((X, X),)),
        bad("args.0. is of key", error=TypeError, args=(dt.random.key(0),)),
    ],
)
def test_mistakes(options: Any, case: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ffi.ffi_call(case.get("target", "acme"), case.get("result", like((3,))), **options)(
            *case.get("args", (X,)), **case.get("attributes", {})
        )


def test_mistakes_under_vmap() -> None:
    with pytest.raises(NotImplementedError, match=r"vmap of a ffi_call.*'test_scale'.*vmap_method"):
        dt.vmap(scaled)(X)


def test_errors_of_native_code() -> None:
    with pytest.raises(Exception, match="the kernel does not like it"):
        ffi.ffi_call("test_fail", like((2, 3)))(X).block_until_ready()


def test_mistakes_of_registration(library: ctypes.CDLL) -> None:
    capsule = ffi.pycapsule(library.test_scale)
    with pytest.raises(TypeError, match="is no capsule"):
        ffi.register_ffi_target("test_bad", library.test_scale)
    with pytest.raises(TypeError, match=r"'prepare' is no capsule"):
        ffi.register_ffi_target("test_bad", {"prepare": 3})
    with pytest.raises(TypeError, match="are strings"):
        ffi.register_ffi_target(3, capsule)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="execute"):
        ffi.register_ffi_target("test_bad", {"prepare": capsule})
    with pytest.raises(ValueError, match="Duplicate"):
        ffi.register_ffi_target("test_scale", ffi.pycapsule(library.test_add))
    with pytest.raises(ValueError, match=r"api_version=0 are called on the CPU"):
        ffi.register_ffi_target("test_bad", capsule, platform="CUDA", api_version=0)
    with pytest.raises(NotImplementedError, match="types are registered for the CPU"):
        ffi.register_ffi_type("test_bad", {"type_id": capsule}, "CUDA")
    with pytest.raises(TypeError, match="lacks the capsule 'type_id'"):
        ffi.register_ffi_type("test_bad", {})
    with pytest.raises(TypeError, match="takes capsules as 'type_id'"):
        ffi.register_ffi_type_id("test_bad", 3)
    with pytest.raises(TypeError, match="pycapsule takes a function"):
        ffi.pycapsule(None)
    ffi.register_ffi_target("test_scale", capsule)  # the same once more
    ffi.register_ffi_target("test_scale", capsule, platform="CUDA")  # for a backend to come
