"""The names of `dovetail.ops`: the one list of them, for type checkers and at run time."""

from dovetail.ops.segments import segment_max as segment_max
from dovetail.ops.segments import segment_min as segment_min
from dovetail.ops.segments import segment_prod as segment_prod
from dovetail.ops.segments import segment_sum as segment_sum
