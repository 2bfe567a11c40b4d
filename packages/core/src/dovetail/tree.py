"""Functions on trees of containers, such as nested lists and dictionaries of arrays."""

from dovetail._core.base.pytree import all_true as all
from dovetail._core.base.pytree import broadcast as broadcast
from dovetail._core.base.pytree import flatten as flatten
from dovetail._core.base.pytree import flatten_with_path as flatten_with_path
from dovetail._core.base.pytree import leaves as leaves
from dovetail._core.base.pytree import leaves_with_path as leaves_with_path
from dovetail._core.base.pytree import map as map
from dovetail._core.base.pytree import map_with_path as map_with_path
from dovetail._core.base.pytree import reduce as reduce
from dovetail._core.base.pytree import reduce_associative as reduce_associative
from dovetail._core.base.pytree import static as static
from dovetail._core.base.pytree import structure as structure
from dovetail._core.base.pytree import transpose as transpose
from dovetail._core.base.pytree import unflatten as unflatten
from dovetail._core.base.tracebacks import publish as _publish

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

_publish(globals())
