"""Building blocks for lowering rules that several backends use.

They are expressions, which are values with operators for writing formulas; helpers for library
calls on stacks of matrices; and rules that only some of XLA's compilers support. A rule for
Cholesky decompositions by a library that reports failures:

    from dovetail.extend import LoweringTable
    from dovetail.extend.lowering import keep_alive, report_of, triangle, where_succeeded

    TABLE = LoweringTable()

    @TABLE.rule("cholesky")
    def cholesky(context, x):
        (aval,) = context.avals_out
        report = report_of(aval)
        root, failed = context.custom_call("acme_potrf", [x], [aval, report])
        (root,) = where_succeeded(context, failed, report, [root], [aval])
        return triangle(context, root, aval)

    TABLE.rule("dce_sink")(keep_alive)
"""

from dovetail._core.hlo.attributes import dot_dimension_numbers as dot_dimension_numbers
from dovetail._core.hlo.expressions import Expression as Expression
from dovetail._core.hlo.expressions import by_kind as by_kind
from dovetail._core.hlo.expressions import repeat_downwards as repeat_downwards
from dovetail._core.hlo.expressions import stacked as stacked
from dovetail._core.hlo.expressions import unstacked as unstacked
from dovetail._core.lower.annotations import copy_to_memory as copy_to_memory
from dovetail._core.lower.annotations import keep_alive as keep_alive
from dovetail._core.lower.exchanges import exchange_rows as exchange_rows
from dovetail._core.lower.matrices import adjoint as adjoint
from dovetail._core.lower.matrices import columns_from as columns_from
from dovetail._core.lower.matrices import conjugate as conjugate
from dovetail._core.lower.matrices import divided_by_power_of_two as divided_by_power_of_two
from dovetail._core.lower.matrices import multiplied_by_power_of_two as multiplied_by_power_of_two
from dovetail._core.lower.matrices import pivots_from_one as pivots_from_one
from dovetail._core.lower.matrices import report_of as report_of
from dovetail._core.lower.matrices import rows_from as rows_from
from dovetail._core.lower.matrices import transpose as transpose
from dovetail._core.lower.matrices import transposed as transposed
from dovetail._core.lower.matrices import triangle as triangle
from dovetail._core.lower.matrices import where_succeeded as where_succeeded
from dovetail._core.lower.matrices import with_finite as with_finite
from dovetail._core.ops.elementwise.operands import real_dtype as real_dtype

__all__ = [
    "Expression",
    "adjoint",
    "by_kind",
    "columns_from",
    "conjugate",
    "copy_to_memory",
    "divided_by_power_of_two",
    "dot_dimension_numbers",
    "exchange_rows",
    "keep_alive",
    "multiplied_by_power_of_two",
    "pivots_from_one",
    "real_dtype",
    "repeat_downwards",
    "report_of",
    "rows_from",
    "stacked",
    "transpose",
    "transposed",
    "triangle",
    "unstacked",
    "where_succeeded",
    "with_finite",
]
