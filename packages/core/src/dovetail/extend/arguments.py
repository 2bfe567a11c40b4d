"""Converts user arguments to operands of primitives: argument checks, promotion, constants.

Messages name the function and the argument. A function of two arrays, with any dtypes and shapes
that promotion and broadcasting allow:

    from dovetail import lax
    from dovetail.extend.arguments import inexact_pair, value

    def ratio(x, y):
        return value(lax.div(*inexact_pair("ratio", x, y)))

Host scalars become operands of type `Literal`, which primitives take but users never see: `value`
converts one to an array.
"""

from dovetail._core.api.arguments import Axis as Axis
from dovetail._core.api.arguments import Shape as Shape
from dovetail._core.api.arguments import array_like as array_like
from dovetail._core.api.arguments import array_sequence as array_sequence
from dovetail._core.api.arguments import broadcast_ranks as broadcast_ranks
from dovetail._core.api.arguments import broadcast_result as broadcast_result
from dovetail._core.api.arguments import canonical_axes as canonical_axes
from dovetail._core.api.arguments import canonical_axis as canonical_axis
from dovetail._core.api.arguments import canonical_shape as canonical_shape
from dovetail._core.api.arguments import convert as convert
from dovetail._core.api.arguments import dtype_by_value as dtype_by_value
from dovetail._core.api.arguments import fits as fits
from dovetail._core.api.arguments import float_pair as float_pair
from dovetail._core.api.arguments import host_array as host_array
from dovetail._core.api.arguments import inexact as inexact
from dovetail._core.api.arguments import inexact_dtype as inexact_dtype
from dovetail._core.api.arguments import inexact_pair as inexact_pair
from dovetail._core.api.arguments import integer as integer
from dovetail._core.api.arguments import literal as literal
from dovetail._core.api.arguments import no_out as no_out
from dovetail._core.api.arguments import promoted as promoted
from dovetail._core.api.arguments import promoted_pair as promoted_pair
from dovetail._core.api.arguments import refuse_complex as refuse_complex
from dovetail._core.api.arguments import requested_dtype as requested_dtype
from dovetail._core.api.arguments import require_callable as require_callable
from dovetail._core.api.arguments import require_kind as require_kind
from dovetail._core.api.arguments import require_real_number as require_real_number
from dovetail._core.api.arguments import same_dtype as same_dtype
from dovetail._core.api.arguments import shape_of_argument as shape_of_argument
from dovetail._core.api.arguments import undivided as undivided
from dovetail._core.api.arguments import value as value
from dovetail._core.api.arguments import weak_of as weak_of
from dovetail._core.api.arguments import with_rank as with_rank
from dovetail._core.base.counting import counted as counted
from dovetail._core.base.source import describe as user_line
from dovetail._core.base.source import warn as warn_user
from dovetail._core.ir.jaxpr import Literal as Literal
from dovetail._core.ops.calls.out_sharding import asked_division as asked_division
from dovetail._core.ops.calls.out_sharding import divided as divided
from dovetail._core.ops.calls.out_sharding import placed as placed

__all__ = [
    "Axis",
    "Literal",
    "Shape",
    "array_like",
    "array_sequence",
    "asked_division",
    "broadcast_ranks",
    "broadcast_result",
    "canonical_axes",
    "canonical_axis",
    "canonical_shape",
    "convert",
    "counted",
    "divided",
    "dtype_by_value",
    "fits",
    "float_pair",
    "host_array",
    "inexact",
    "inexact_dtype",
    "inexact_pair",
    "integer",
    "literal",
    "no_out",
    "placed",
    "promoted",
    "promoted_pair",
    "refuse_complex",
    "requested_dtype",
    "require_callable",
    "require_kind",
    "require_real_number",
    "same_dtype",
    "shape_of_argument",
    "undivided",
    "user_line",
    "value",
    "warn_user",
    "weak_of",
    "with_rank",
]
