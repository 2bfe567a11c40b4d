"""Abstract values (avals): shape, dtype, and whether the dtype is weak.

`aval_of` takes arrays, tracers, NumPy values and Python scalars. `ArrayClass` is the base class of
arrays and tracers, `Tracer` that of values whose elements are unknown under a transformation.
`Zero` stands for a tangent or cotangent that vanishes, in the rules of a primitive that
`accepts_zeros`:

    from dovetail.extend.avals import Tracer, aval_of

    def length(x):
        return aval_of(x).shape[0]
"""

from dovetail._core.ir.avals import ShapedArray as ShapedArray
from dovetail._core.ir.avals import array_conversion as array_conversion
from dovetail._core.ir.avals import as_array as as_array
from dovetail._core.ir.avals import aval_of as aval_of
from dovetail._core.ir.avals import make_aval as make_aval
from dovetail._core.ir.avals import shape_of as shape_of
from dovetail._core.trace.tracer import ArrayClass as ArrayClass
from dovetail._core.trace.tracer import Tracer as Tracer
from dovetail._core.trace.zeros import Zero as Zero

__all__ = [
    "ArrayClass",
    "ShapedArray",
    "Tracer",
    "Zero",
    "array_conversion",
    "as_array",
    "aval_of",
    "make_aval",
    "shape_of",
]
