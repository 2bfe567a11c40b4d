"""What the runtime gives to lower layers is there for the first thing that a process does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FIRST = {
    "callback": "dt.pure_callback(np.sin, dt.ShapeDtypeStruct((), 'float32'), 1.0)",
    "callback for effects": "dt.experimental.io_callback(print, None, 1.0)",
    "debug.print": "dt.debug.print('{}', 1.0)",
    "debug.callback": "dt.debug.callback(print, 1.0)",
    "debug.print under vmap": "dt.vmap(lambda x: dt.debug.print('{}', x))(np.ones(2))",
    "placement": "dt.device_put(1.0, dt.devices()[1])",
    "placement of a trace": "dt.vmap(lambda x: dt.device_put(x, dt.devices()[1]))(np.ones(2))",
    "constraint": "dt.lax.with_sharding_constraint(np.ones(2), dt.P('x'))",
    "constraint of a trace": (
        "dt.make_jaxpr(lambda x: dt.lax.with_sharding_constraint(x, dt.P('x')))(np.ones(2))"
    ),
    "resharding": "dt.reshard(np.ones(2), dt.P('x'))",
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_call_of_a_process(name: str) -> None:
    code = f"""
import numpy as np
import dovetail as dt
import dovetail.experimental
with dt.set_mesh(dt.make_mesh((2,), ("x",))):
    {FIRST[name]}
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "DOVETAIL_NUM_CPU_DEVICES": "2"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
