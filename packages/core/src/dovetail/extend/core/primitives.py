"""All primitives as variables, `NAME_p`, under JAX's names.

A primitive of the name `NAME` is the variable `NAME_p`; of those that JAX calls otherwise there is
a table.
"""

from __future__ import annotations

from dovetail._core.api.explanation import all_primitives as _all_primitives
from dovetail._core.trace.primitive import Primitive as _Primitive
from dovetail._core.trace.primitive import primitives as _primitives

_OTHERS = {
    "add_jaxvals_p": "add_any",
    "call_p": "jit",
    "closed_call_p": "jit",
    "linear_solve_p": "custom_linear_solve",
    "remat_p": "remat2",
    "scatter_add_p": "scatter-add",
    "scatter_max_p": "scatter-max",
    "scatter_min_p": "scatter-min",
    "scatter_mul_p": "scatter-mul",
}


def __getattr__(name: str) -> _Primitive:
    if name.endswith("_p"):
        own = _OTHERS.get(name, name[:-2])
        found = _primitives().get(own) or _all_primitives().get(own)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    regular = {f"{name}_p" for name in _all_primitives() if name.isidentifier()}
    return sorted(regular | _OTHERS.keys())
