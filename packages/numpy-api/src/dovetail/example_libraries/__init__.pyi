"""The names of `dovetail.example_libraries`, for type checkers and at run time."""

from dovetail.example_libraries import optimizers as optimizers
from dovetail.example_libraries import stax as stax
