"""The names of `dovetail.testing`: the one list of them, for type checkers and at run time."""

from dovetail.testing.sample import Sample as Sample
from dovetail.testing.sample import across_dtypes as across_dtypes
from dovetail.testing.sample import rejected as rejected
