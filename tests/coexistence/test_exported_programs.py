"""Exported programs that JAX has written and dovetail reads, and the other way round.

Each framework runs in a process of its own. Run by `nox -s coexistence`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.coexistence

COMMON = """
import collections, pickle, sys
import numpy as np
import {framework} as framework, {framework}.numpy as jnp
from {framework} import export, lax

S, folder = framework.ShapeDtypeStruct, sys.argv[1]
Point = collections.namedtuple("Point", "x y")
export.register_namedtuple_serialization(Point, serialized_name="Point")
X = np.arange(12, dtype=np.float32).reshape(3, 4)
SQUARE = X[:, :3]
A, B = export.symbolic_shape("a, b", constraints=("a >= 2",))
FLOATS = S((A, B), "float32")
CASES = {{
    "tree": (lambda p: {{"sum": p.x.sum(), "rest": [p.y, None]}}, [Point(X, X[0])], None),
    "integers": (lambda x: x // 2, [X.astype("int32")], None),
    "bfloat16": (lambda x: x.astype("bfloat16") * 2, [X], None),
    "platforms": (jnp.sin, [X], None),
    "unused": (lambda x, y: y * 2, [X, X[0]], None),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x), [X], [FLOATS]),
    "sizes": (lambda x: jnp.concatenate([x.reshape(-1), x[1:, 0] * x.shape[0]]), [X], [FLOATS]),
    "cumsum": (lambda x: jnp.cumsum(x, 0), [X], [FLOATS]),
    "gather": (lambda x, i: x[i], [X, np.array([2, 0])], [FLOATS, S((A - 1,), "int32")]),
    "mean": (lambda x: jnp.mean(x, 1), [X], [FLOATS]),
    "sort": (lambda x: jnp.sort(-x, 1), [X], [FLOATS]),
    "random": (lambda x: framework.random.uniform(framework.random.key(1), x.shape), [X], [FLOATS]),
    "matrices": (lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(3)), [SQUARE], None),
}}
"""
WRITE = """
for name, (function, args, specs) in CASES.items():
    platforms = ["tpu", "cpu"] if name == "platforms" else None
    args = [a.astype("int32") if getattr(a, "dtype", None) == np.int64 else a for a in args]
    program = export.export(framework.jit(function), platforms=platforms)(*(specs or args))
    with open(f"{folder}/{name}", "wb") as file:
        file.write(program.serialize(vjp_order=1))
"""
READ = """
for name, (function, args, specs) in CASES.items():
    args = [a.astype("int32") if getattr(a, "dtype", None) == np.int64 else a for a in args]
    with open(f"{folder}/{name}", "rb") as file:
        program = export.deserialize(bytearray(file.read()))
    for call in (program.call, framework.jit(program.call)):
        found, expected = (framework.tree.leaves(f(*args)) for f in (call, function))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype, name
            a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
    if name in ("sizes", "platforms", "mean"):
        f, g = (lambda *xs, h=h: h(*xs).sum() for h in (program.call, function))
        np.testing.assert_allclose(framework.grad(f)(*args), framework.grad(g)(*args), rtol=1e-5)
"""


def _run(framework: str, code: str, folder: Path) -> None:
    program = COMMON.format(framework=framework) + code
    answer = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=600
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(("writer", "reader"), [("jax", "dovetail"), ("dovetail", "jax")])
def test_each_reads_what_the_other_writes(writer, reader, tmp_path):
    pytest.importorskip("flatbuffers", reason="the extra `export` brings it")
    _run(writer, WRITE, tmp_path)
    _run(reader, READ, tmp_path)
