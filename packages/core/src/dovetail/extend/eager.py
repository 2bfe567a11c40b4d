"""Functions that are one compiled program when they are called eagerly, and what they remember.

`compile_eager` makes such a function; while a function is transformed it is called as it is.

    from dovetail import lax
    from dovetail.extend.eager import compile_eager

    hypotenuse = compile_eager(lambda x, y: lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y))))

Nothing is being transformed where `trace_state.trace is evaluation_trace`: a comparison, not a
function, since it stands in calls of a few microseconds. Results that do not depend on elements
are kept by `lru_cache`, which `dovetail.clear_caches` empties, as it does what `register_cache`
was told of.
"""

from __future__ import annotations

from dovetail._core.base.caches import lru_cache as lru_cache
from dovetail._core.base.caches import register as register_cache
from dovetail._core.runtime.calls.dispatch import compile_eager as compile_eager
from dovetail._core.trace.state import evaluation_trace as evaluation_trace
from dovetail._core.trace.state import state as trace_state
from dovetail._core.trace.state import use_trace as use_trace

__all__ = [
    "compile_eager",
    "evaluation_trace",
    "lru_cache",
    "register_cache",
    "trace_state",
    "use_trace",
]
