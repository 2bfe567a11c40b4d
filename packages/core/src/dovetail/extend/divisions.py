"""How a primitive divides its results over the explicit axes of a mesh.

The rule `labels` gives equal labels to dimensions of operands and results that are divided alike. A
dimension without a label (None) must be whole. For a primitive that takes a row of each operand:

    from dovetail.extend import Primitive
    from dovetail.extend.divisions import first_alike

    each_row = Primitive("each_row")

    @each_row.define("labels")
    def _labels(avals, results):
        return first_alike(avals, results, "computes with all of")
"""

from dovetail._core.trace.divisions import Labels as Labels
from dovetail._core.trace.divisions import divided_alike as divided_alike
from dovetail._core.trace.divisions import first_alike as first_alike
from dovetail._core.trace.divisions import gathered_labels as gathered_labels
from dovetail._core.trace.divisions import labels_along as labels_along
from dovetail._core.trace.divisions import leading_labels as leading_labels

__all__ = [
    "Labels",
    "divided_alike",
    "first_alike",
    "gathered_labels",
    "labels_along",
    "leading_labels",
]
