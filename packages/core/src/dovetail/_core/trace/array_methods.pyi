"""What the NumPy API adds to arrays and tracers, declared for type checkers.

While a program runs, the operators, methods and properties come from the installed extensions; a
test compares these declarations with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from dovetail._core.base.typing import (
    Array,
    ArrayLike,
    AxisLike,
    DeviceLike,
    DTypeLike,
    IntLike,
    ShapeLike,
    Sharding,
)
from dovetail._core.ops.contraction.dot_general import PrecisionLike
from dovetail._core.ops.indexing.gather import GatherScatterMode

_Item: TypeAlias = SupportsIndex | slice | EllipsisType | ArrayLike | Sequence[Any] | None
Index: TypeAlias = _Item | tuple[_Item, ...]
_Mode: TypeAlias = str | GatherScatterMode | None

class IndexUpdateRef:
    """Part of an array: what `x.at[index]` is."""

    array: Array
    index: Index
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        fill_value: ArrayLike | None = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
        strategy: Literal["auto", "gather", "dynamic_slice", "static_slice"] = "auto",
    ) -> Array: ...
    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def apply(
        self,
        func: Callable[[Array], ArrayLike],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...

class IndexUpdateHelper:
    """An array to be indexed: what `x.at` is."""

    array: Array
    def __getitem__(self, index: Index) -> IndexUpdateRef: ...

class FlatElements:
    """The elements of an array in row-major order: what `x.flat` is."""

    base: Array
    def copy(self) -> Array: ...
    def __dovetail_array__(self) -> Array: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __getitem__(self, index: Index) -> Array: ...

class ArrayMethods:
    """Operators, methods and properties of arrays."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def T(self) -> Array: ...
    @property
    def mT(self) -> Array: ...
    @property
    def at(self) -> IndexUpdateHelper: ...
    @property
    def flat(self) -> FlatElements: ...
    @property
    def imag(self) -> Array: ...
    @property
    def real(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __neg__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __add__(self, other: ArrayLike) -> Array: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __pow__(self, other: ArrayLike) -> Array: ...
    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __or__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __gt__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __eq__(self, other: object) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Array: ...  # type: ignore[override]
    def __getitem__(self, index: Index) -> Array: ...
    def __contains__(self, value: ArrayLike) -> bool: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __len__(self) -> int: ...
    def __reversed__(self) -> Iterator[Array]: ...
    def all(
        self,
        axis: AxisLike = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def any(
        self,
        axis: AxisLike = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...
    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...
    def argpartition(self, kth: int, axis: int = -1) -> Array: ...
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array: ...
    def astype(
        self, dtype: DTypeLike | None, copy: bool = False, device: DeviceLike | None = None
    ) -> Array: ...
    def byteswap(self) -> Array: ...
    def choose(
        self, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
    ) -> Array: ...
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array: ...
    def conj(self) -> Array: ...
    def conjugate(self) -> Array: ...
    def copy(self) -> Array: ...
    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...
    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
    def dot(
        self,
        b: ArrayLike,
        *,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array: ...
    def flatten(self, order: str = "C", *, out_sharding: Sharding | None = None) -> Array: ...
    def max(
        self,
        axis: AxisLike = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def mean(
        self,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def min(
        self,
        axis: AxisLike = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def nonzero(
        self, *, size: int | None = None, fill_value: ArrayLike | None = None
    ) -> tuple[Array, ...]: ...
    def prod(
        self,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...
    def ptp(self, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Array: ...
    def ravel(self, order: str = "C", *, out_sharding: Sharding | None = None) -> Array: ...
    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array: ...
    def reshape(
        self, *args: ShapeLike, order: str = "C", out_sharding: Sharding | None = None
    ) -> Array: ...
    def round(self, decimals: int = 0, out: None = None) -> Array: ...
    def searchsorted(
        self,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array: ...
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array: ...
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array: ...
    def std(
        self,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: ArrayLike | None = None,
    ) -> Array: ...
    def sum(
        self,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...
    def swapaxes(self, axis1: int, axis2: int) -> Array: ...
    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array: ...
    def to_device(self, device: DeviceLike, *, stream: Any = None) -> Array: ...
    def trace(
        self,
        offset: IntLike = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array: ...
    def transpose(self, *args: int | Sequence[int] | None) -> Array: ...
    def var(
        self,
        axis: AxisLike = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: ArrayLike | None = None,
    ) -> Array: ...
    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array: ...
