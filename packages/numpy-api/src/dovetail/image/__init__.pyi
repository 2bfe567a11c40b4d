"""The names of `dovetail.image`, for type checkers and at run time."""

from dovetail.image.methods import ResizeMethod as ResizeMethod
from dovetail.image.scaling import resize as resize
from dovetail.image.scaling import scale_and_translate as scale_and_translate
