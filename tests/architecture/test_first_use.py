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

# What a first sum does not load, as the first thing that a process computes.
OTHERS = {
    "comparison": "assert (jnp.ones(3) > 0).all()",
    "reflected comparison": "assert (0 < jnp.ones(3)).all()",
    "equality": "assert (jnp.ones(3) == 1).all()",
    "membership": "assert 1 in jnp.ones(3)",
    "inversion": "assert not (~jnp.ones(3, bool)).any()",
    "bits": "assert ((jnp.ones(3, int) | 2) == 3).all() and ((1 << jnp.ones(3, int)) == 2).all()",
    "power": "assert ((jnp.ones(3) * 3) ** 2 == 9).all() and (2 ** jnp.ones(3) == 2).all()",
    "remainder": "assert (jnp.full(3, 7) % 4 == 3).all() and lax.rem(7, 4) == 3",
    "absolute value": "assert (abs(-jnp.ones(3)) == 1).all() and lax.sign(-2.0) == -1",
    "comparison of tracers": "assert dt.jit(lambda x: (x > 0) & ~(x != 1))(np.ones(3)).all()",
    "operator on a class": "assert dt.Array.__and__ is not None and dt.Array.__lt__ is not None",
    "jit in jit": "assert dt.jit(lambda x: dt.jit(jnp.sin)(x) + 1)(0.0) == 1",
    "one primitive": "assert lax.reduce_max(np.ones(3), axes=(0,)) == 1",
    "derivatives of a quotient": (
        "from dovetail.experimental.jet import jet; jet(lax.div, (1.0, 2.0), ((1.0,), (1.0,)))"
    ),
    "reuse of keys": (
        "dt.config.update('debug_key_reuse', True); dt.random.normal(dt.random.key(0), (3,))"
    ),
    "cache misses": "dt.config.update('explain_cache_misses', True); dt.jit(jnp.sin)(np.ones(3))",
    "compilations": "dt.config.update('log_compiles', True); dt.jit(jnp.fft.fft)(np.ones(3))",
    "transfers": "dt.config.update('transfer_guard', 'log'); jnp.sin(np.ones(3)) + 1",
    "shards": "assert jnp.ones(3).addressable_shards[0].replica_id == 0",
    "a nan": (
        "dt.config.update('debug_nans', True)\n"
        "try: dt.jit(lambda x: jnp.log(x) + 1)(-np.ones(3))\n"
        "except FloatingPointError as error: assert 'log' in str(error)"
    ),
    "a parameter that is not there": (
        "try: jnp.ones(3, dtipe=int)\n"
        "except TypeError as error: assert 'dtype' in str(error), error"
    ),
}
#: Those that log a warning.
TELLING = ("cache misses", "compilations", "transfers")


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_first_sum_does_not_load(name: str) -> None:
    code = f"""
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
{OTHERS[name]}
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert bool(ended.stderr) == (name in TELLING)


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
