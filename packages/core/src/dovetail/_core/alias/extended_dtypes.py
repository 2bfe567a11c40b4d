"""Extended dtypes as libraries define them for JAX: a class with rules, in ``_rules``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.ops.elementwise.conversion import convert_element_type
from dovetail._core.ops.shape.reshaping import broadcast


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of floats has infinity: some of eight bits have not."""
    return bool(np.isinf(np.array(np.inf).astype(dtype)))


class ExtendedDType(dtypes.ExtendedDType):
    """The base of such dtypes.

    ``_rules`` has static methods that take the dtype: ``physical_element_aval`` says how an element
    is held; ``convert_from`` and ``convert_to`` whether it is converted to and from another dtype;
    ``tangent_dtype`` what its tangents are, ``add`` and ``zero`` how cotangents are summed.
    """

    _rules: Any

    def _rule(self, name: str) -> Any:
        return getattr(self._rules, name, None)

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], dtypes.DType]:
        """The shape and dtype of the numbers that store an array of the given shape."""
        element = self._rules.physical_element_aval(self)
        return (*shape, *element.shape), element.dtype

    def of_physical(self, numbers: Any) -> Any:
        """The array of this dtype that is stored as an array of numbers."""
        wanted: Any = self
        return convert_element_type(numbers, wanted)

    def converts_from(self, dtype: Any) -> bool:
        """Whether arrays of this dtype are made from those of another."""
        rule = self._rule("convert_to")
        return rule is not None and bool(rule(dtype, self))

    def converts_to(self, dtype: Any) -> bool:
        """Whether arrays of another dtype are made from those of this."""
        rule = self._rule("convert_from")
        return rule is not None and bool(rule(self, dtype))

    @property
    def tangent(self) -> Any:
        """The dtype of tangents."""
        rule = self._rule("tangent_dtype")
        return dtypes.float0 if rule is None else rule(self)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two cotangents."""
        return self._rules.add(self, x, y)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """The cotangent that changes no sum."""
        return broadcast(self._rules.zero(self), shape)
