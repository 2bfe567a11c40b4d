"""Compiling ahead of time for several devices: shardings, calls, programs of other processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.serialize_executable import serialize
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

AUTO = (AxisType.Auto, AxisType.Auto)
MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=AUTO)
F4 = np.dtype(np.float32)
W, B, X = np.ones((8, 4), F4), np.arange(4, dtype=F4), np.arange(64, dtype=F4).reshape(8, 8) / 64
SPECS = ({"b": P(), "w": P("y")}, P("x", "y"))
RESULTS = {"loss": P(), "y": P("x")}


def over(*spec: Any) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def layer(p: Any, x: Any) -> Any:
    product = dt.shard_map(
        lambda x, w: lax.psum(x @ w, "y"),
        mesh=MESH,
        in_specs=(P("x", "y"), P("y")),
        out_specs=P("x"),
    )(x, p["w"])
    return {"y": jnp.tanh(product + p["b"]), "loss": product.sum()}


def struct(x: Any, *spec: Any) -> Any:
    return dt.ShapeDtypeStruct(x.shape, F4, sharding=over(*spec) if spec else None)


def shardings(specs: Any) -> Any:
    return dt.tree.map(
        lambda spec: NamedSharding(MESH, spec), specs, is_leaf=lambda spec: isinstance(spec, P)
    )


def by_structs() -> Any:
    """The shardings of arguments say where the program runs."""
    parameters = {"w": struct(W, "y"), "b": struct(B)}
    return dt.jit(layer).lower(parameters, struct(X, "x", "y"))


def by_jit() -> Any:
    """The shardings that jit is given do."""
    places = {"in_shardings": shardings(SPECS), "out_shardings": shardings(RESULTS)}
    return dt.jit(layer, **places).lower({"w": struct(W), "b": struct(B)}, struct(X))


@pytest.mark.parametrize("lower", [by_structs, by_jit])
def test_shardings_and_calls(lower: Any) -> None:
    lowered = lower()
    program = lowered.compile()
    assert program.input_shardings == (shardings(SPECS), {})
    assert program.output_shardings == shardings(RESULTS)
    types = {"loss": ((), P()), "y": ((8, 4), P("x"))}
    assert program.out_info == {
        name: dt.ShapeDtypeStruct(shape, F4, sharding=NamedSharding(MESH, spec))
        for name, (shape, spec) in types.items()
    }
    if lower is by_jit:
        assert lowered.out_info == program.out_info
    parameters = {"w": dt.device_put(W, over("y")), "b": dt.device_put(B, over())}
    placed = (parameters, dt.device_put(X, over("x", "y")))
    on_host = ({"w": W, "b": B}, X)
    mixed = ({"w": parameters["w"], "b": jnp.asarray(B)}, X)
    for arguments in (placed, on_host, mixed):
        results = program(*arguments)
        assert {name: x.sharding for name, x in results.items()} == shardings(RESULTS)
        np.testing.assert_allclose(results["y"], np.tanh(X @ W + B), rtol=1e-5)
        np.testing.assert_allclose(results["loss"], (X @ W).sum(), rtol=1e-5)
    lines = str(program.report()).splitlines()
    assert any("all-reduce" in line for line in lines)
    assert any("p['w']" in line and "[4,4] each, P('y')" in line for line in lines)


def test_arguments_that_are_elsewhere() -> None:
    program = by_structs().compile()
    x = dt.device_put(X, over("x", "y"))
    for w, b, error, message in (
        (dt.device_put(W, over("x")), B, ValueError, r"takes its argument p\['w'\] with the shard"),
        (dt.device_put(W, over("y")), dt.device_put(B, dt.devices()[0]), ValueError, r"p\['b'\]"),
        (W[:4], B, TypeError, r"takes f32\[8,4\] for its argument p\['w'\], got f32\[4,4\]"),
    ):
        with pytest.raises(error, match=message):
            program({"w": w, "b": b}, x)


def test_structs_that_cannot_be_divided() -> None:
    five = dt.ShapeDtypeStruct((5,), F4, sharding=over("x"))
    with pytest.raises(ValueError, match=r"argument a of <lambda>: dimension 0 .*Pad it to 6"):
        dt.jit(lambda a: a).lower(five)
    with pytest.raises(ValueError, match=r"argument a of <lambda>: dimension 0 .*Pad it to 6"):
        dt.jit(lambda a: a, out_shardings=over()).lower(five)


_OTHER = """
import pickle, sys
import numpy as np
import dovetail as dt
from dovetail.experimental.serialize_executable import deserialize_and_load
from tests_module import by_structs, over, W, B, X
from dovetail._core.runtime.programs.compilation import statistics

program = by_structs().compile()
loaded = deserialize_and_load(*pickle.load(open(sys.argv[1], "rb")))
for one in (program, loaded):
    y = one({"w": W, "b": B}, X)["y"]
    print(y.sharding.spec, one.output_shardings["y"].spec, one.input_shardings[0][1].spec)
    np.testing.assert_allclose(y, np.tanh(X @ W + B), rtol=1e-5)
print(statistics().compiled, statistics().loaded)
"""


def test_another_process_loads_them(tmp_path: Path) -> None:
    """From the cache on disk, and as bytes."""
    (tmp_path / "tests_module.py").write_text(Path(__file__).read_text())
    (tmp_path / "program.py").write_text(_OTHER)
    written = tmp_path / "bytes"
    written.write_bytes(pickle.dumps(serialize(by_structs().compile())))
    environment = {
        "DOVETAIL_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "DOVETAIL_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "DOVETAIL_NUM_CPU_DEVICES": "4",
    }
    outputs = [
        subprocess.run(
            [sys.executable, str(tmp_path / "program.py"), str(written)],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | environment,
        )
        for _ in range(2)
    ]
    lines = "P('x') P('x') P('x', 'y')\n" * 2
    assert [ran.stderr for ran in outputs] == ["", ""]
    assert outputs[0].stdout == f"{lines}1 0\n"
    assert outputs[1].stdout == f"{lines}0 1\n"
