"""Dtypes whose elements are not numbers, but are stored as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]

float0: DType = np.dtype([("float0", np.void, 0)])
"""The dtype of the tangents of integers and booleans: they hold nothing."""


class extended(np.generic):
    """The base of the scalar types of non-numeric dtypes; for `issubdtype`."""


class prng_key(extended):
    """The scalar type of random keys; for `issubdtype`."""


class ExtendedDType:
    """The dtype of arrays whose elements are not numbers, but are stored as arrays of numbers.

    Concrete extended dtypes compare and hash by value. One whose `tangent` is a dtype other than
    `float0` defines `add` and `zeros`, too, of arrays of that dtype.
    """

    type: Any = extended
    """The scalar type, a subclass of `extended`."""

    name: str = "extended"
    """The dtype's name, as in ``key<fry>``."""

    kind = "V"

    elements: str = "values"
    """What an array holds, for messages."""

    advice: str = "convert it first, with lax.convert_element_type"
    """How to come to the numbers, for messages."""

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], DType]:
        """The shape and dtype of the numbers that store an array of the given shape."""
        raise NotImplementedError(f"the dtype {self.name} does not say how it is held")

    def of_physical(self, numbers: Any) -> Any:
        """The array of this dtype that is stored as an array of numbers."""
        raise NotImplementedError(f"the dtype {self.name} cannot be made from numbers")

    def converts_from(self, dtype: DType | ExtendedDType) -> bool:
        """Whether `lax.convert_element_type` makes arrays of this dtype from those of another."""
        return False

    def converts_to(self, dtype: DType | ExtendedDType) -> bool:
        """Whether `lax.convert_element_type` makes arrays of another dtype from those of this."""
        return False

    @property
    def tangent(self) -> DType | ExtendedDType:
        """The dtype of the tangents and cotangents of arrays of this dtype."""
        return float0

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two cotangents of this dtype."""
        raise NotImplementedError(f"the dtype {self.name} does not say what a sum of cotangents is")

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """The cotangent of this dtype that changes no sum."""
        raise NotImplementedError(f"the dtype {self.name} does not say what cotangent is zero")

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        shape, dtype = self.physical(())
        return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name
