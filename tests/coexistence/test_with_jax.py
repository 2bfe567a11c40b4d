"""dovetail and JAX in one process, in both orders. Run by `nox -s coexistence`."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.coexistence

USE = """
def {name}():
    import {framework} as framework, {framework}.numpy as jnp, numpy as np
    rows = np.arange(6.0).reshape(2, 3)
    x = jnp.asarray(rows)
    np.testing.assert_allclose(framework.jit(lambda v: (v * v).sum())(x), 55.0)
    np.testing.assert_allclose(framework.grad(lambda v: (v * v).sum())(x), 2 * rows)
    np.testing.assert_allclose(framework.vmap(lambda v: v @ v)(x), [5.0, 50.0])
    more = framework.jit(lambda v: v + 1)
    for _ in range(3):
        assert more(2) == 3 and more(np.float32(2)) == 3
    assert repr(x + 1).startswith("Array(")
"""
OURS = USE.format(name="ours", framework="dovetail")
THEIRS = USE.format(name="theirs", framework="jax")

ORDERS = {
    "jax first": "import jax; theirs(); ours(); theirs(); ours()",
    "dovetail first": "ours(); import jax; theirs(); ours(); theirs()",
    "jax imported and unused until the end": "import jax; import dovetail; ours(); theirs()",
    "both imported, ours used last": "import dovetail; import jax; theirs(); ours()",
}

WIDE = {
    "neither": ("", ""),
    "ours": ("import dovetail; dovetail.config.update('enable_x64', True)", ""),
    "theirs": ("", "import jax; jax.config.update('jax_enable_x64', True)"),
    "both": (
        "import dovetail; dovetail.config.update('enable_x64', True)",
        "import jax; jax.config.update('jax_enable_x64', True)",
    ),
}


def _run(code):
    answer = subprocess.run(
        [sys.executable, "-c", OURS + THEIRS + code], capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_orders(order):
    _run(order)


@pytest.mark.parametrize("wide", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_each_has_its_own_x64(wide, first):
    mine, other = wide
    imports = "import dovetail, jax" if first == "ours" else "import jax, dovetail"
    check = (
        f"{imports}\n{mine}\n{other}\n"
        "import dovetail.numpy, jax.numpy\n"
        f"ours_wide, theirs_wide = {bool(mine)}, {bool(other)}\n"
        "for _ in range(3):\n"
        "    for value in (1.5, 2, dovetail.numpy.ones(())):\n"
        "        got = dovetail.jit(lambda v: v * 1.0)(value).dtype.itemsize\n"
        "        assert got == (8 if ours_wide else 4), (value, got)\n"
        "    for value in (1.5, 2, jax.numpy.ones(())):\n"
        "        got = jax.jit(lambda v: v * 1.0)(value).dtype.itemsize\n"
        "        assert got == (8 if theirs_wide else 4), (value, got)\n"
        "ours(); theirs()\n"
    )
    _run(check)


def test_arrays_pass_between_them_as_numpy_and_dlpack():
    _run(
        "import dovetail.numpy as ours_np, jax.numpy as theirs_np, numpy as np\n"
        "rows = np.arange(4.0, dtype=np.float32)\n"
        "x, y = ours_np.asarray(rows), theirs_np.asarray(rows)\n"
        "for there in (theirs_np.asarray(x), theirs_np.from_dlpack(x), ours_np.asarray(y)):\n"
        "    np.testing.assert_array_equal(np.asarray(there), rows)\n"
    )


def test_dovetail_does_not_import_an_installed_jax():
    printed = _run("ours(); import sys; print('jax' in sys.modules)")
    assert printed.strip() == "False"


def test_reading_narrow_numbers_does_not_import_it_either():
    printed = _run(
        "import ml_dtypes, numpy as np, dovetail, sys\n"
        "for name in ('int4', 'uint4', 'int2', 'uint2', 'float4_e2m1fn', 'bool', 'bfloat16'):\n"
        "    dtype = np.dtype(getattr(ml_dtypes, name, name))\n"
        "    value = np.array([0, 1, 1]).astype(dtype)\n"
        "    got = np.asarray(dovetail.device_put(value))\n"
        "    assert got.dtype == dtype and (got == value).all(), (got, value)\n"
        "print('jax' in sys.modules)"
    )
    assert printed.strip() == "False"


@pytest.mark.parametrize("first", ["dovetail, jax", "jax, dovetail"])
def test_our_options_are_ours(first):
    _run(
        f"import {first}\n"
        "seen = []\n"
        "f = dovetail.jit(lambda x: seen.append(type(x)) or x + 1)\n"
        "with dovetail.disable_jit():\n"
        "    assert f(1.0) == 2.0 and seen == [float]\n"
        "with jax.disable_jit():\n"
        "    assert f(1.0) == 2.0\n"
    )


SEVERAL = """
import os
os.environ["DOVETAIL_NUM_CPU_DEVICES"] = os.environ["JAX_NUM_CPU_DEVICES"] = "4"
import sys
import numpy as np
ROWS = np.arange(32.0, dtype=np.float32).reshape(8, 4)

def ours_apart():
    import dovetail as dt
    from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(np.array(dt.devices()).reshape(2, 2), ("x", "y"))
    x = dt.device_put(ROWS, NamedSharding(mesh, P("x", "y")))
    y = dt.device_put(x, NamedSharding(mesh, P("y")))
    for array in (x, y, x + 0):
        np.testing.assert_array_equal(np.asarray(array), ROWS)
        for shard in array.addressable_shards:
            assert type(shard.data) is type(x)
            np.testing.assert_array_equal(np.asarray(shard.data + 0), ROWS[shard.index])

def theirs_apart():
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P
    for rows in (ROWS, ROWS[:4, :2], ROWS[:4]):
        taken = jnp.from_dlpack(np.ascontiguousarray(rows))
        np.testing.assert_array_equal(jnp.cumsum(taken), np.cumsum(rows))
    x = jax.device_put(ROWS, NamedSharding(jax.make_mesh((4,), ("x",)), P("x")))
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(jnp.sin(shard.data), jnp.sin(ROWS[shard.index]))
"""


@pytest.mark.parametrize(
    "order",
    [
        "ours_apart(); assert 'jax' not in sys.modules; theirs_apart(); ours_apart()",
        "theirs_apart(); ours_apart(); theirs_apart()",
        "import jax; ours_apart(); theirs_apart(); ours_apart()",
        "import dovetail, jax; theirs_apart(); ours_apart()",
    ],
)
def test_arrays_over_several_devices_are_taken_apart(order):
    _run(SEVERAL + order)
