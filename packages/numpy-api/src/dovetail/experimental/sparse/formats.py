"""What all sparse formats share, and the warnings and errors about what would be slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from dovetail.extend.arguments import canonical_shape
from dovetail.extend.tracebacks import bounded
from dovetail.tree_util import GetAttrKey, register_pytree_with_keys
from dovetail.typing import Array


class SparseEfficiencyWarning(UserWarning):
    """An operation on a sparse array takes much more memory than the array does."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation cannot use a library for sparse arrays.

    It is there so that programs which filter it run; nothing here gives it.
    """


class SparseEfficiencyError(ValueError):
    """An operation on a sparse array would take much more memory than the array does."""


for _kind in (CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning):
    _kind.__module__ = "dovetail.experimental.sparse"  # where users find it


@bounded
class JAXSparse:
    """Base class of the sparse formats.

    They are pytrees, whose leaves are the arrays that they are made of, so that they can be
    arguments and results of every transformed function.

    Args:
        args: the arrays, of which the first holds the elements.
        shape: sizes of the dimensions.

    Attributes:
        data: the stored elements.
        shape: sizes of the dimensions.

    Example:
        >>> from dovetail.experimental import sparse
        >>> isinstance(sparse.eye(3), sparse.JAXSparse)
        True
    """

    data: Array
    shape: tuple[int, ...]

    #: The names of the arrays, in the order of the leaves.
    _parts: ClassVar[tuple[str, ...]] = ("data",)

    # NumPy must leave `x @ mat` and its like to the methods of this class.
    __array_ufunc__: ClassVar[None] = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.shape = canonical_shape(type(self).__name__, shape)
        for name, part in zip(self._parts, args, strict=True):
            setattr(self, name, part)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)

        def with_keys(mat: Any) -> tuple[Any, Any]:
            children, description = mat.tree_flatten()
            keys = map(GetAttrKey, mat._parts)
            return tuple(zip(keys, children, strict=True)), description

        register_pytree_with_keys(cls, with_keys, cls.tree_unflatten, cls.tree_flatten)

    def _description(self) -> Any:
        """What is known of the array besides its leaves; it can be hashed."""
        return self.shape

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays, and what else there is to know."""
        return tuple(getattr(self, name) for name in self._parts), self._description()

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> Self:
        """The inverse of `tree_flatten`; the leaves need not be arrays."""
        raise NotImplementedError(f"{cls.__name__} does not say how it is put together")

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of stored elements, of each matrix if there are several."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it stores")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:
        """The array with its dimensions in reverse order."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions in another order."""
        raise NotImplementedError(f"{type(self).__name__} has no transpose")

    def todense(self) -> Array:
        """The array with all its elements."""
        raise NotImplementedError(f"{type(self).__name__} has no todense")

    def to_bcoo(self) -> Any:
        """The array as a BCOO array."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it is as BCOO")

    def _reference(self) -> Any:
        """For NumPy: the dense array."""
        raise NotImplementedError(f"{type(self).__name__} has no reference")

    def block_until_ready(self) -> Self:
        """Wait until the arrays have been computed, and return this object."""
        for part in self.tree_flatten()[0]:
            part.block_until_ready()
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len() of a {type(self).__name__} without dimensions")
        return self.shape[0]

    def __bool__(self) -> NoReturn:
        raise ValueError(
            f"the truth value of a {type(self).__name__} is ambiguous: to ask whether it stores "
            "anything use mat.nse > 0; for elements use mat.todense()"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} does not become a dense array by itself: use mat.todense()"
        )

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            dtype, nse, others = np.dtype(self.dtype).name, self.nse, self._further()
        except (AttributeError, TypeError, ValueError, IndexError):
            # Its leaves are not arrays, as in a tree of axes.
            parts = ", ".join(repr(part) for part in self.tree_flatten()[0])
            return f"{name}({parts}, shape={self.shape})"
        text = f"{name}({dtype}{list(self.shape)}, nse={nse}{others})"
        traced = type(self.data).__name__
        return f"{traced}[{text}]" if traced.endswith("Tracer") else text

    def _further(self) -> str:
        """What else `repr` tells."""
        return ""
