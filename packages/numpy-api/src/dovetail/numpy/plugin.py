"""What arrays and tracers gain from this distribution: operators, methods, properties."""

from __future__ import annotations

from typing import Final

from dovetail._core.plugins.hookspecs import ArrayMethods, hookimpl

#: Methods that are functions of this package under the same name, and the modules that these are
# in.
_METHODS: Final = {
    "all": "reductions",
    "any": "reductions",
    "argmax": "searching",
    "argmin": "searching",
    "argpartition": "sorting",
    "argsort": "sorting",
    "choose": "selection",
    "clip": "selection",
    "conj": "complex_numbers",
    "cumprod": "cumulative",
    "cumsum": "cumulative",
    "diagonal": "matrices",
    "dot": "contraction",
    "max": "reductions",
    "mean": "reductions",
    "min": "reductions",
    "nonzero": "searching",
    "prod": "reductions",
    "ptp": "reductions",
    "ravel": "shapes",
    "repeat": "joining",
    "round": "rounding",
    "searchsorted": "searching",
    "sort": "sorting",
    "squeeze": "shapes",
    "std": "reductions",
    "sum": "reductions",
    "swapaxes": "shapes",
    "take": "gathering",
    "trace": "matrices",
    "var": "reductions",
}


#: Methods and properties that differ from the function of the same name.
_OWN_METHODS: Final = (
    "astype",
    "byteswap",
    "compress",
    "conjugate",
    "copy",
    "flatten",
    "reshape",
    "transpose",
    "view",
)
#: Methods whose names say nothing, and the functions behind them.
_SPECIAL_METHODS: Final = {
    "__array_module__": "array_module",
    "__hex__": "hexadecimal",
    "__oct__": "octal",
    "__reversed__": "backwards",
}
_PROPERTIES: Final = {
    "T": "arrays.methods:transposed",
    "at": "indexing.indexed_update:at",
    "flat": "arrays.methods:flat",
    "imag": "arrays.methods:imag",
    "mT": "arrays.methods:matrix_transposed",
    "real": "arrays.methods:real",
}


@hookimpl
def dovetail_array_methods() -> ArrayMethods:
    """The tables."""
    from dovetail.numpy.arrays import operators  # deferred: loads the functions behind them

    own = {name: name for name in _OWN_METHODS} | _SPECIAL_METHODS
    own = {name: f"dovetail.numpy.arrays.methods:{function}" for name, function in own.items()}
    same = {name: f"dovetail.numpy.{module}:{name}" for name, module in _METHODS.items()}
    return ArrayMethods(
        operators={**operators.OPERATORS, "__getitem__": "dovetail.numpy.indexing.reading:getitem"},
        methods={**same, **own},
        properties={name: f"dovetail.numpy.{place}" for name, place in _PROPERTIES.items()},
        compiled=operators.COMPILED,
    )
