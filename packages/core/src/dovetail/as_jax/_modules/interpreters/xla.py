"""The module `jax.interpreters.xla`."""

from dovetail._core.runtime.calls.dispatch import apply_primitive as _apply_primitive
from dovetail._core.trace.primitive import Primitive as _Primitive


def apply_primitive(prim: _Primitive, *args: object, **params: object) -> object:
    """Evaluate a primitive on arrays."""
    return _apply_primitive(prim, args, params)
