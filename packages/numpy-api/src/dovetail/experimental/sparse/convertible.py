"""Operators of the formats that are not BCOO: they are those of BCOO arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from dovetail.experimental.sparse.bcoo import BCOO
from dovetail.experimental.sparse.bcoo_elements import bcoo_todense_p
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.extend.tracebacks import bounded


@bounded
class Convertible(JAXSparse):
    """A format of matrices that goes to BCOO and back."""

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The array of this format that a BCOO array is."""
        raise NotImplementedError(f"{cls.__name__} is not made of BCOO")

    @classmethod
    def _holds(cls, arr: BCOO) -> bool:
        """Whether a BCOO array goes to this format."""
        return arr.ndim == 2

    def _reference(self) -> Any:
        mat = self.to_bcoo()
        return bcoo_todense_p.reference(mat.data, mat.indices, spinfo=mat.info)

    def _back(self, result: Any) -> Any:
        """The result of an operator, in this format if it is one for it."""
        fits = isinstance(result, BCOO) and self._holds(result)
        return self.from_bcoo(result) if fits else result

    def _applied(self, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        operand = other.to_bcoo() if isinstance(other, (Convertible, BCOO)) else other
        return self._back(operation(self.to_bcoo(), operand))

    def sum(
        self, axis: int | Sequence[int] | None = None, dtype: Any = None, *, keepdims: bool = False
    ) -> Any:
        """The sum over some dimensions, or all: as of a BCOO array."""
        return self._back(self.to_bcoo().sum(axis, dtype, keepdims=keepdims))

    def astype(self, dtype: Any) -> Self:
        """The array with elements of another dtype."""
        result: Self = self._back(self.to_bcoo().astype(dtype))
        return result

    def __getitem__(self, index: Any) -> Any:
        return self._back(self.to_bcoo()[index])

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __neg__(self) -> Self:
        result: Self = self._back(-self.to_bcoo())
        return result

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        result: Self = self._back(abs(self.to_bcoo()))
        return result

    def __add__(self, other: Any) -> Any:
        return self._applied(BCOO.__add__, other)

    def __radd__(self, other: Any) -> Any:
        return self._applied(BCOO.__radd__, other)

    def __sub__(self, other: Any) -> Any:
        return self._applied(BCOO.__sub__, other)

    def __rsub__(self, other: Any) -> Any:
        return self._applied(BCOO.__rsub__, other)

    def __mul__(self, other: Any) -> Any:
        return self._applied(BCOO.__mul__, other)

    def __rmul__(self, other: Any) -> Any:
        return self._applied(BCOO.__rmul__, other)

    def __truediv__(self, other: Any) -> Any:
        return self._applied(BCOO.__truediv__, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._applied(BCOO.__rtruediv__, other)

    def __pow__(self, other: Any) -> Any:
        return self._applied(BCOO.__pow__, other)

    def __matmul__(self, other: Any) -> Any:
        return self._applied(BCOO.__matmul__, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._applied(BCOO.__rmatmul__, other)
