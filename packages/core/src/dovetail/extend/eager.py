"""Functions that run as one compiled program when called eagerly, and their caches.

`compile_eager` creates such a function; under a transformation the function is called directly.

    from dovetail import lax
    from dovetail.extend.eager import compile_eager

    hypotenuse = compile_eager(lambda x, y: lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y))))

No transformation is active if `trace_state.trace is evaluation_trace`: a comparison, not a
function call, since it is part of calls that take a few microseconds. `lru_cache` caches results
that do not depend on elements; `dovetail.clear_caches` empties it, and also the caches registered
with `register_cache`.
"""

from dovetail._core.base.caches import lru_cache as lru_cache
from dovetail._core.base.caches import register as register_cache
from dovetail._core.runtime.calls.dispatch import compile_eager as compile_eager
from dovetail._core.runtime.calls.eager_functions import (
    unsupported_operands as unsupported_operands,
)
from dovetail._core.trace.state import evaluation_trace as evaluation_trace
from dovetail._core.trace.state import state as trace_state
from dovetail._core.trace.state import use_trace as use_trace

__all__ = [
    "compile_eager",
    "evaluation_trace",
    "lru_cache",
    "register_cache",
    "trace_state",
    "unsupported_operands",
    "use_trace",
]
