"""The operators of arrays and tracers that compare."""

from __future__ import annotations

from typing import Any

from dovetail.lax import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from dovetail.numpy import logic
from dovetail.numpy.arrays.operators import binary_operator
from dovetail.numpy.compiled import plain

eq_, _ = binary_operator("eq", plain(logic.equal), eq_p, "biufc", by_value=True)
ne_, _ = binary_operator("ne", plain(logic.not_equal), ne_p, "biufc", by_value=True)
lt_, _ = binary_operator("lt", plain(logic.less), lt_p, "biuf", by_value=True)
le_, _ = binary_operator("le", plain(logic.less_equal), le_p, "biuf", by_value=True)
gt_, _ = binary_operator("gt", plain(logic.greater), gt_p, "biuf", by_value=True)
ge_, _ = binary_operator("ge", plain(logic.greater_equal), ge_p, "biuf", by_value=True)


def contains_(self: Any, other: Any) -> Any:
    """Whether an element equals `other`."""
    from dovetail.numpy.reductions import any as any_of  # deferred: rarely used

    return any_of(logic.equal(self, other))
