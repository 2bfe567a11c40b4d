"""`Lowered.memory`: what a program takes before it runs, by line and argument."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.reports import allocations
from dovetail._core.runtime.reports.planning import memory_plan
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

N = 256
MATRIX = 4 * N * N
SQUARE = dt.ShapeDtypeStruct((N, N), np.float32)


def layer(params: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ params["w"])

    def step(c: Any, _: Any) -> Any:
        return jnp.cos(c @ params["w"]), None

    out, _ = lax.scan(step, hidden, None, length=5)
    return (out * hidden).sum()


PARAMS = {"w": SQUARE}


def line_of(function: Any, offset: int) -> str:
    return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1] + offset}"


def plan_of(function: Any, *args: Any, **options: Any) -> Any:
    return dt.jit(function, **options).lower(*args).memory()


def kinds(plan: Any, kind: str) -> list[Any]:
    return [buffer for buffer in plan.buffers if buffer.kind == kind]


def test_the_sums_are_those_of_the_compiler() -> None:
    compiled = dt.jit(dt.grad(layer)).lower(PARAMS, SQUARE).compile()
    plan, stats = compiled.memory(), compiled.memory_analysis()
    assert plan.argument_bytes == stats.argument_size_in_bytes == 2 * MATRIX
    assert plan.result_bytes == stats.output_size_in_bytes
    assert plan.temporary_bytes == stats.temp_size_in_bytes
    parts = plan.argument_bytes + plan.result_bytes + plan.temporary_bytes
    assert plan.peak_bytes == parts + plan.constant_bytes
    for kind, total in (
        ("argument", plan.argument_bytes),
        ("result", plan.result_bytes),
        ("temporary", plan.temporary_bytes),
    ):
        # All of a block is told; what is between values is for alignment.
        found = sum(buffer.bytes for buffer in kinds(plan, kind))
        assert 0.95 * total - 1024 <= found <= total, kind


def test_arguments_and_results_are_named() -> None:
    def f(params: Any, x: Any, *, scale: Any) -> Any:
        return {"loss": (x @ params["w"] * scale).sum(), "grads": [params["w"] * 2 * scale]}

    plan = dt.jit(f).lower(PARAMS, SQUARE, scale=1.0).memory()
    named = {buffer.path: buffer.bytes for buffer in kinds(plan, "argument")}
    assert named == {"params['w']": MATRIX, "x": MATRIX, "scale": 4}
    paths = {buffer.path: buffer for buffer in kinds(plan, "result") if buffer.path}
    assert set(paths) == {"result['loss']", "result['grads'][0]"}
    large = paths["result['grads'][0]"]
    assert (large.type, large.bytes, large.source) == (f"f32[{N},{N}]", MATRIX, line_of(f, 1))


def test_what_is_not_used_is_not_taken() -> None:
    plan = plan_of(lambda x, y: x + 1, SQUARE, SQUARE)
    assert [buffer.path for buffer in kinds(plan, "argument")] == ["x"]


def test_donated_arguments() -> None:
    def update(state: Any, x: Any) -> Any:
        return {"a": state["a"] + x}

    plan = plan_of(update, {"a": SQUARE}, SQUARE, donate_argnums=0)
    assert plan.aliased_bytes == MATRIX
    assert plan.argument_bytes == 2 * MATRIX
    assert plan.peak_bytes < 2 * MATRIX + 1024
    (donated,) = [buffer for buffer in plan.buffers if buffer.donated_to]
    assert (donated.path, donated.donated_to) == ("state['a']", "result['a']")
    assert (donated.operation, donated.source) == ("add", line_of(update, 1))
    assert "state['a'], donated to result['a']" in str(plan)


def test_residuals_of_a_loop_are_told_by_its_line() -> None:
    plan = plan_of(dt.grad(layer), PARAMS, SQUARE)
    largest = plan.buffers[0]
    assert (largest.kind, largest.bytes) == ("temporary", 5 * MATRIX)
    assert largest.type == f"f32[5,{N},{N}]"
    assert largest.source == line_of(layer, 6)
    source, size = next(iter(plan.by_line().items()))
    assert source == largest.source
    assert size >= 5 * MATRIX


def test_checkpointing_shows() -> None:
    def deep(x: Any, w: Any, wrap: Any) -> Any:
        body = wrap(lambda c: jnp.sin(jnp.sin(jnp.sin(c @ w))))
        return lax.scan(lambda c, _: (body(c), None), x, None, length=8)[0].sum()

    plain = plan_of(dt.grad(lambda x, w: deep(x, w, lambda f: f)), SQUARE, SQUARE)
    spared = plan_of(dt.grad(lambda x, w: deep(x, w, dt.checkpoint)), SQUARE, SQUARE)
    assert spared.peak_bytes < 0.7 * plain.peak_bytes


def test_captured_constants() -> None:
    captured = jnp.ones((N, N)) + 1
    plan = plan_of(lambda x: x @ captured, SQUARE)
    (constant,) = [b for b in plan.buffers if b.path.startswith("a constant of ")]
    assert constant.bytes == MATRIX


def test_parts_on_each_device() -> None:
    mesh = Mesh(np.array(dt.devices("cpu")[:4]), "i")
    place = NamedSharding(mesh, P("i"))
    divided = dt.ShapeDtypeStruct((N, N), np.float32, sharding=place)
    plan = plan_of(lambda x: x * 2, divided)
    assert plan.device_count == 4
    assert plan.argument_bytes == plan.result_bytes == MATRIX // 4
    types = {(b.kind, b.type, b.bytes) for b in plan.buffers if b.path}
    part = (f"f32[{N // 4},{N}]", MATRIX // 4)
    assert types == {("argument", *part), ("result", *part)}


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda k: dt.random.normal(k, (3,)), (dt.random.key(0),)),
        (lambda: jnp.float32(3), ()),
        (lambda x: x, (SQUARE,)),
        (lambda x: (x, x, {"a": ()}), (SQUARE,)),
        (lambda x: jnp.linalg.svd(x), (SQUARE,)),
        (lambda x: jnp.sort(x[:, 0]), (SQUARE,)),
        (lambda x: x[:0], (SQUARE,)),
        (
            lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] @ x, c[1] + 1), (x, 0)),
            [SQUARE],
        ),
        (lambda x: lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x.T, x), (SQUARE,)),
    ],
)
def test_every_program_has_a_plan(function: Any, args: Any) -> None:
    with dt.cpu_kernels(True):  # packed keys, which else are sorted, share places in part
        plan = plan_of(function, *args)
    text = str(plan)
    assert text.startswith("<lambda> on 1 x cpu; all numbers are for one device\n\npeak ")
    assert sum(buffer.bytes for buffer in plan.buffers) <= plan.peak_bytes + plan.aliased_bytes
    assert plan._repr_html_().startswith("<div><b>&lt;lambda&gt;: ")


def test_the_table_is_no_longer_than_a_screen() -> None:
    plan = plan_of(lambda xs: [x + 1 for x in xs], [SQUARE] * 40)
    assert len(str(plan).splitlines()) < 24
    assert " more" in str(plan).splitlines()[-1]


def test_equal_programs_have_their_own_names() -> None:
    def first(a: Any) -> Any:
        return a * 3 + 1

    def second(b: Any) -> Any:
        return b * 3 + 1

    for function, name in ((first, "a"), (second, "b")):
        plan = plan_of(function, SQUARE)
        assert [buffer.path for buffer in kinds(plan, "argument")] == [name]
        (result,) = [buffer for buffer in plan.buffers if buffer.path == "result"]
        assert result.source == line_of(function, 1)


def test_symbolic_sizes_are_refused() -> None:
    (n,) = dt.export.symbolic_shape("n")
    lowered = dt.jit(lambda x: x + 1).lower(dt.ShapeDtypeStruct((n,), np.float32))
    with pytest.raises(dt.errors.InconclusiveDimensionOperation, match="symbolic sizes"):
        lowered.memory()


def test_compilers_that_say_less() -> None:
    compiled = dt.jit(lambda x: x * 2).lower(SQUARE).compile()
    program, aval = compiled._program, dt.typeof(jnp.ones((N, N)))
    names = [("x", aval)], [("result", aval)], []

    def refuse() -> Any:
        raise NotImplementedError

    silent = SimpleNamespace(get_compiled_memory_stats=refuse)
    plan = memory_plan("f", program, silent, *names)
    assert plan.argument_bytes == plan.result_bytes == MATRIX
    assert "does not say what temporaries" in str(plan)
    stats = compiled.memory_analysis()
    few = SimpleNamespace(
        **{name: getattr(stats, name) for name in dir(stats) if name.endswith("_in_bytes")}
    )
    plan = memory_plan("f", program, SimpleNamespace(get_compiled_memory_stats=lambda: few), *names)
    assert plan.peak_bytes == 2 * MATRIX
    assert "which values its temporaries are" in str(plan)
    few.serialized_buffer_assignment_proto = b"\x0f"
    modules = program.executable.hlo_modules
    broken = SimpleNamespace(get_compiled_memory_stats=lambda: few, hlo_modules=modules)
    assert memory_plan("f", program, broken, *names).notes


@pytest.mark.parametrize("data", [b"\x0f", b"\x08", b"\x08\x80"])
def test_what_is_no_protocol_buffer(data: bytes) -> None:
    with pytest.raises(ValueError, match="a protocol buffer"):
        list(allocations.fields(data))


def test_fields_of_a_protocol_buffer() -> None:
    data = b"\x08\x96\x01" + b"\x12\x02hi" + b"\x1d1234" + b"\x2112345678"
    assert list(allocations.fields(data)) == [(1, 150), (2, b"hi"), (3, b"1234"), (4, b"12345678")]
