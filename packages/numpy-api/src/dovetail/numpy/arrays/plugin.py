"""The operators, methods and properties that this distribution adds to arrays and tracers."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import ArrayMethods, hookimpl

#: Methods that are functions of `dovetail.numpy` under the same name.
_METHODS: Final = (
    "all any argmax argmin argpartition argsort choose clip conj cumprod cumsum diagonal dot max "
    "mean min nonzero prod ptp ravel repeat round searchsorted sort squeeze std sum swapaxes take "
    "trace var"
)
#: Methods and properties that differ from the function of the same name.
_OWN_METHODS: Final = (
    "astype byteswap compress conjugate copy flatten reshape to_device transpose view"
)
#: Methods without descriptive names, and the functions behind them.
_SPECIAL_METHODS: Final = {
    "__array_module__": "array_module",
    "__hex__": "hexadecimal",
    "__oct__": "octal",
    "__reversed__": "backwards",
}
#: Operators that are not those of arithmetic, by the modules that define them.
_OTHER_OPERATORS: Final = {
    "bit_operators": "and rand or ror xor rxor lshift rlshift rshift rrshift invert",
    "comparisons": "eq ne lt le gt ge contains",
}
#: Operators that inspect Python integers or indices; all others depend on values alone.
_NOT_COMPILED: Final = frozenset(
    {"__contains__", "__getitem__", "__pos__", "__pow__", "__round__", "__rpow__"}
)
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
    """The tables of operators, methods and properties."""
    from dovetail.numpy.arrays import operators  # deferred: loads the functions behind them

    own = {name: name for name in _OWN_METHODS.split()} | _SPECIAL_METHODS
    own = {name: f"dovetail.numpy.arrays.methods:{function}" for name, function in own.items()}
    same = {name: f"dovetail.numpy:{name}" for name in _METHODS.split()}
    table: dict[str, Any] = {
        **operators.OPERATORS,
        "__getitem__": "dovetail.numpy.indexing.reading:getitem",
    }
    for module, names in _OTHER_OPERATORS.items():
        table |= {f"__{n}__": f"dovetail.numpy.arrays.{module}:{n}_" for n in names.split()}
    return ArrayMethods(
        operators=table,
        methods={**same, **own},
        properties={name: f"dovetail.numpy.{place}" for name, place in _PROPERTIES.items()},
        compiled=frozenset(table) - _NOT_COMPILED,
    )
