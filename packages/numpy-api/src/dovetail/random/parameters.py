"""Checks of the parameters of distributions: real numbers that are broadcast to the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, broadcast_result
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import plain
from dovetail.numpy.shapes import broadcast_to
from dovetail.random.arguments import Shape, check_broadcast, converted, shape_argument


def real_shape(function: str, name: str, given: Any) -> Shape:
    """The shape of a parameter.

    Raises:
        TypeError: it is no array of real numbers.
    """
    aval = aval_of(array_like(given, f"random.{function}", name))
    if dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
        raise TypeError(f"random.{function}: {name} must be a real number, got {aval.dtype}")
    shape: Shape = aval.shape
    return shape


def common_shape(function: str, shapes: Mapping[str, Shape], shape: Any) -> Shape:
    """The shape that parameters are broadcast to.

    Args:
        function: name of the user's function.
        shapes: of the parameters, by name.
        shape: the shape asked for, or None for the common one of the parameters.

    Raises:
        TypeError: `shape` is no shape.
        ValueError: a parameter cannot be broadcast to the shape.
    """
    if shape is None:
        return broadcast_result(f"random.{function}", list(shapes.values()))
    wanted = shape_argument(function, shape)
    for name, found in shapes.items():
        check_broadcast(function, name, found, wanted)
    return wanted


def result_shape(function: str, parameters: Mapping[str, Any], shape: Any) -> Shape:
    """`common_shape` of parameters that are checked to be real."""
    shapes = {name: real_shape(function, name, given) for name, given in parameters.items()}
    return common_shape(function, shapes, shape)


def parameter(function: str, name: str, given: Any, shape: Shape, dtype: Any) -> Any:
    """A checked parameter in the shape and dtype of the result."""
    known = array_like(given, f"random.{function}", name)
    return plain(broadcast_to)(converted(known, dtype), shape)


def check_method(function: str, method: Any) -> None:
    """Check the name of a method.

    Raises:
        ValueError: there is no such method.
    """
    if not isinstance(method, str) or method not in ("exact", "approximate"):
        raise ValueError(
            f"random.{function}: method must be 'exact' or 'approximate', got {method!r}"
        )
