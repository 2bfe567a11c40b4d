"""A third party's backend, from its wheel's metadata to a result."""

from __future__ import annotations

import json
import subprocess
import sys

BACKEND = '''
from dovetail.extend import BackendInfo, LoweringTable, hookimpl

table = LoweringTable()

@table.rule("sin")
def sin(context, x, **params):
    """Twice the argument, so that the test can see who lowered it."""
    return context.op("add", (x, x), context.avals_out[0])

@table.rule("cos")
def cos(context, x, **params):
    return NotImplemented

@hookimpl
def dovetail_backend_info():
    return BackendInfo("acme", (1, 0), priority=150, aliases=("board",), description="Acme boards")

@hookimpl
def dovetail_make_client(platform, options):
    from jaxlib import xla_client
    return xla_client.make_cpu_client(num_devices=2)

@hookimpl
def dovetail_lowerings(platform):
    return table
'''

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import dovetail as dt
from dovetail import lax
here = dt.devices()[0]
cpu = dt.device_put(0.5, dt.devices("cpu")[0])
acme = dt.device_put(0.5, dt.devices("board")[1])
print(json.dumps({
    "default": dt.default_backend(),
    "count": dt.device_count(),
    "on cpu": float(dt.jit(lax.sin)(cpu)),
    "on acme": float(dt.jit(lax.sin)(acme)),
    "eager on acme": float(lax.sin(acme)),
    "left to core": float(lax.cos(acme)),
    "stayed": next(iter(lax.sin(acme).devices())).id,
}))
"""


def test_a_backend_of_a_third_party(install):
    install("acme-boards", {"acme": "acme_boards"}, {"acme_boards": BACKEND})
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(install.folder)], capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["default"] == "acme"
    assert found["count"] == 2
    assert abs(found["on cpu"] - 0.479425) < 1e-5
    assert found["on acme"] == found["eager on acme"] == 1.0
    assert abs(found["left to core"] - 0.877582) < 1e-5
    assert found["stayed"] == 1


def test_a_program_on_the_cpu_loads_nothing_for_other_backends():
    """What only some backends need costs the start of no process."""
    code = (
        "import sys\n"
        "import dovetail as dt\n"
        "import dovetail.numpy as jnp\n"
        "dt.jit(lambda x: x + 1)(jnp.ones(3)).block_until_ready()\n"
        "print(*sorted(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "dovetail_cpu.runtime" in loaded
    unwanted = ("dovetail._core.lower.equations", "dovetail._core.runtime.devices.pjrt", "json")
    assert not loaded & {*unwanted, "dovetail_cuda.runtime", "dovetail_tpu.runtime"}
