"""Abstract values: what is known about an array before it exists.

Instances are interned: two avals are equal exactly when they are the same object, so hashing and
comparing them, which tracing does for every equation, runs no Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from math import prod
from typing import Any, Final, NoReturn, cast
from weakref import WeakValueDictionary

import numpy as np

from dovetail._core.base import caches, dtypes
from dovetail._core.base.errors import NonArrayArgumentError, NoValueError
from dovetail._core.ir.dimensions import as_size, is_symbolic_dim
from dovetail._core.ir.division import Division
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying

Shape = tuple[int, ...]


class AbstractValue:
    """Base of everything a variable of a jaxpr can stand for."""

    __slots__ = ()

    #: How the value differs from device to device along the axes of a mesh.
    manual_axis_type: ManualAxisType = invarying
    #: How it is divided over the explicit axes of a mesh; None if it is not.
    division: Division | None = None

    def cotangent(self) -> AbstractValue:
        """The aval of a cotangent of a value of this aval that has a tangent."""
        return self

    def short_name(self) -> str:
        """The form used when a jaxpr is printed, such as ``f32[3,4]``."""
        raise TypeError(
            f"{type(self).__name__} does not say how it is printed: override short_name"
        )

    @property
    def vma(self) -> frozenset[Hashable]:
        """The axes of a mesh along which the value may differ from device to device."""
        return self.manual_axis_type.varying

    def tangent(self) -> AbstractValue:
        """The aval of a tangent at a value of this aval."""
        raise TypeError(f"{type(self).__name__} has no tangent space")


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    Args:
        shape: sizes of the dimensions, non-negative integers or symbolic dimensions.
        dtype: a NumPy dtype (or what ``np.dtype`` accepts) or an extended dtype such as a PRNG
            key's.
        weak_type: whether the value came from a Python scalar and yields to other dtypes in
            promotion.
        sharding: how the value is divided over the axes of a mesh, a `NamedSharding`; axes of the
            type `Explicit` become part of the type (`division`).
        manual_axis_type: how the value differs from device to device along the axes of a mesh,
            inside `dovetail.shard_map`.

    Example:
        >>> ShapedArray((2, 3), np.float32)
        ShapedArray(float32[2,3])
        >>> ShapedArray((2, 3), np.float32) is ShapedArray((2, 3), "float32")
        True
    """

    __slots__ = (
        "__weakref__",
        "division",
        "dtype",
        "manual_axis_type",
        "ndim",
        "shape",
        "size",
        "symbolic",
        "weak_type",
    )

    shape: Shape
    dtype: Any
    weak_type: bool
    division: Division | None
    manual_axis_type: ManualAxisType
    ndim: int
    size: int
    #: Whether a size depends on dimension variables: is a `SymbolicDimension`.
    symbolic: bool

    def __new__(
        cls,
        shape: Iterable[Any],
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        manual_axis_type: ManualAxisType = invarying,
    ) -> ShapedArray:
        if not isinstance(dtype, dtypes.ExtendedDType):
            dtype = np.dtype(dtype)
        shape = tuple(map(as_size, shape))
        divided = sharding if sharding is None else sharding._division(len(shape))
        return make_aval(shape, dtype, bool(weak_type), divided, manual_axis_type)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self}{weak})"

    def __str__(self) -> str:
        name = self.dtype.name if isinstance(self.dtype, np.dtype) else str(self.dtype)
        return f"{name}[{self._dims()}]{self.manual_axis_type.shown()}"

    def short_name(self) -> str:
        return f"{dtypes.short_name(self.dtype)}[{self._dims()}]{self.manual_axis_type.shown()}"

    def _dims(self) -> str:
        divided = self.division
        if divided is None:
            return ",".join(map(str, self.shape))
        return ",".join([f"{n}{divided.shown(i)}" for i, n in enumerate(self.shape)])

    str_short = short_name

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: the array has rank 0")
        return self.shape[0]

    @property
    def sharding(self) -> Any:
        """How the value is divided, as a `NamedSharding` over a mesh without devices.

        The mesh is the current one where the value is not divided, one without axes if there is
        none.
        """
        return _shown_sharding(self)

    @property
    def aval(self) -> ShapedArray:
        """Itself: transposition rules receive the aval of an argument that they are linear in."""
        return self

    def update(
        self,
        *,
        shape: Shape | None = None,
        dtype: Any = None,
        weak_type: bool | None = None,
        vma: frozenset[Hashable] | None = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> ShapedArray:
        """The same aval with some of its parts replaced.

        An array of another shape is not divided until `with_division` says so.
        """
        if manual_axis_type is None:
            manual_axis_type = self.manual_axis_type
            if vma is not None:
                manual_axis_type = manual_axis_type.update(varying=vma)
        return make_aval(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.division if shape is None else None,
            manual_axis_type,
        )

    def with_division(self, division: Division | None) -> ShapedArray:
        """The same aval, divided in another way; what is empty is never divided."""
        if not self.size:
            division = None
        if division is self.division:
            return self
        return make_aval(self.shape, self.dtype, self.weak_type, division, self.manual_axis_type)

    def strengthen(self) -> ShapedArray:
        """The same aval, not weakly typed."""
        return self if not self.weak_type else self.update(weak_type=False)

    def tangent(self) -> ShapedArray:
        if isinstance(self.dtype, np.dtype) and dtypes.issubdtype(self.dtype, np.inexact):
            return self
        tangent = self.dtype.tangent if dtypes.is_extended(self.dtype) else dtypes.float0
        if tangent == self.dtype:
            return self
        return make_aval(self.shape, tangent, False, None)

    def cotangent(self) -> ShapedArray:
        return self.update(manual_axis_type=self.manual_axis_type.dual)

    #: Names of the same in JAX.
    strip_weak_type = strengthen
    to_tangent_aval = at_least_vspace = tangent

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            make_aval,
            (self.shape, self.dtype, self.weak_type, self.division, self.manual_axis_type),
        )

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self


_shown_sharding: Callable[[ShapedArray], Any] = lambda aval: None  # noqa: E731


def set_shown_sharding(shown: Callable[[ShapedArray], Any]) -> None:
    """Install what makes a sharding of the division of an aval. For the runtime."""
    global _shown_sharding
    _shown_sharding = shown


_interned: Final[WeakValueDictionary[Any, ShapedArray]] = WeakValueDictionary()
_new: Final = object.__new__


# Holds what was last in use: otherwise one would be made for each look at a small array.
@caches.lru_cache(maxsize=4096)
def make_aval(
    shape: Shape,
    dtype: Any,
    weak_type: bool = False,
    division: Division | None = None,
    manual_axis_type: ManualAxisType = invarying,
) -> ShapedArray:
    """`ShapedArray` for parts that are already canonical: a tuple of ints and a dtype object."""
    key = (shape, dtype, weak_type, division, manual_axis_type)
    aval = _interned.get(key)
    if aval is None:
        assert not isinstance(dtype, str), "names of dtypes are no dtypes"
        candidate = _new(ShapedArray)
        candidate.shape = shape
        candidate.dtype = dtypes.plain_dtype(dtype)
        candidate.weak_type = weak_type
        candidate.division = division
        candidate.manual_axis_type = manual_axis_type
        candidate.ndim = len(shape)
        candidate.size = prod(shape)
        candidate.symbolic = any(map(is_symbolic_dim, shape))
        aval = _interned.setdefault(key, candidate)
    return aval


class AbstractToken(AbstractValue):
    """The value that orders side effects; it holds no data."""

    __slots__ = ()

    def short_name(self) -> str:
        return "Tok"

    def _no_data(self) -> NoReturn:
        raise NonArrayArgumentError(
            "a token is no array: it holds no data, and only lax.after_all and "
            "lax.optimization_barrier take it"
        )

    shape = dtype = ndim = size = weak_type = sharding = update = strengthen = property(_no_data)

    def tangent(self) -> AbstractValue:
        return self

    def __repr__(self) -> str:
        return "AbstractToken()"

    def __reduce__(self) -> str:
        return "abstract_token"


abstract_token: Final = AbstractToken()
runtime_token: Final = make_aval((0,), np.dtype(bool))
"""The array that orders one program after another; it is there when a program has ended."""


def outer_aval(aval: Any) -> Any:
    """The aval that programs take and return for this one: an empty array for a token."""
    return runtime_token if type(aval) is AbstractToken else aval


# Python scalars have the default dtype of their kind and are weakly typed.
_of_type: Final[dict[type, Callable[[Any], AbstractValue]]] = {}
_foreign: Final[dict[type, Callable[[Any], str]]] = {}


def _scalar_aval(x: Any) -> ShapedArray:
    return make_aval((), dtypes.dtype_of(x), True)


def _numpy_aval(x: Any) -> ShapedArray:
    refusal = numpy_refusal(x, "the value")
    if refusal:
        raise refusal
    return make_aval(x.shape, dtypes.canonicalize_dtype(x.dtype))


def numpy_refusal(value: Any, what: str) -> NonArrayArgumentError | None:
    """Why a NumPy value is unfit to compute with; None for numbers, booleans and float0.

    Args:
        value: a NumPy array or scalar.
        what: a phrase for it.
    """
    dtype = value.dtype
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):
        return NoValueError(
            f"{what} is a masked array, and its mask would be lost; fill it first, "
            "with value.filled(number)"
        )
    if dtypes.kind_of(dtypes.canonicalize_dtype(dtype)) or dtype == dtypes.float0:
        return None
    advice = {
        "O": "a list of rows of different lengths becomes such an array, for one",
        "U": "text stays on the host",
        "S": "text stays on the host",
        "M": "convert it to numbers first, such as value.astype('int64')",
        "m": "convert it to numbers first, such as value.astype('int64')",
        "f": "convert it first, with value.astype('float64')",
        "c": "convert it first, with value.astype('complex128')",
    }.get(dtype.kind, "take a field of it" if dtype.names else "convert it to another dtype first")
    return NonArrayArgumentError(
        f"{what} is a NumPy array of dtype {dtype}, and arrays hold numbers and booleans, of "
        f"dtypes that devices have; {advice}"
    )


for _type in (int, float, complex):
    _of_type[_type] = _scalar_aval
_of_type[bool] = lambda x: make_aval((), np.dtype(bool))  # yields to all others anyhow
_of_type[np.ndarray] = _numpy_aval


def aval_of(x: Any) -> Any:
    """The aval of an array, tracer, NumPy value or Python scalar.

    Args:
        x: the value.

    Returns:
        Its `ShapedArray` (or another `AbstractValue`).

    Raises:
        NonArrayArgumentError: `x` is none of these, or a NumPy value of something other than
            numbers.

    Example:
        >>> aval_of(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    make = _of_type.get(type(x))
    if make is not None:
        return make(x)
    try:
        return x.aval
    except AttributeError:
        pass
    if isinstance(x, (np.ndarray, np.generic)):
        return _numpy_aval(x)
    if isinstance(x, (bool, int, float, complex)):
        return _scalar_aval(x)
    if hasattr(x, "__array__") or array_conversion(x) is not None:
        return aval_of(as_array(x))
    raise NonArrayArgumentError(
        f"expected an array or a scalar, got {type(x).__name__}: {_excerpt(x)}"
    )


def forbid_as_array(
    kind: type, describe: Callable[[Any], str], *, convertible: bool = False
) -> None:
    """Refuse values of a type as arrays.

    Args:
        kind: the type.
        describe: says in the message what a value is.
        convertible: whether functions of arrays convert them all the same.
    """
    _foreign[kind] = describe
    if convertible:
        return

    def refuse(x: Any) -> NoReturn:
        raise NonArrayArgumentError(f"expected an array or a scalar, got {describe(x)}")

    _of_type[kind] = refuse


def is_forbidden(x: Any) -> bool:
    """Whether values of this type are refused as arrays."""
    return type(x) in _foreign


def named_kind(x: Any) -> str:
    """A description of a value that is not an array, for messages."""
    describe = _foreign.get(type(x))
    return type(x).__name__ if describe is None else describe(x)


def is_array_like(x: Any) -> bool:
    """Whether primitives accept `x`: an array, tracer, NumPy value or Python scalar."""
    if isinstance(x, (np.ndarray, np.generic)):
        return not numpy_refusal(x, "")
    if type(x) in _of_type:
        return type(x) not in _foreign
    # An object that hands on the attributes of an array that it wraps converts itself.
    if hasattr(type(x), "aval") and isinstance(x.aval, AbstractValue):
        return not isinstance(x, AbstractValue) and type(x) not in _foreign
    return isinstance(x, (bool, int, float, complex))


def as_array(x: Any) -> Any:
    """The array behind an object that converts itself, or has ``__array__``."""
    convert = array_conversion(x)
    return convert() if convert is not None else np.asarray(x)


def array_conversion(x: Any) -> Callable[[], Any] | None:
    """The method by which an object that is no array makes one of itself; None if it has none.

    Example:
        >>> class Celsius:
        ...     def __jax_array__(self):
        ...         return np.float32(20.0)
        >>> array_conversion(Celsius())()
        np.float32(20.0)
    """
    method: Callable[[], Any] | None = getattr(x, "__dovetail_array__", None)
    return getattr(x, "__jax_array__", None) if method is None else method


def _excerpt(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 80 else text[:77] + "..."


def shape_of(x: Any) -> Shape:
    """The shape of a value that `aval_of` accepts."""
    return cast(Shape, aval_of(x).shape)


def physical_aval(aval: Any) -> Any:
    """The aval of the numbers that hold a value; differs from `aval` only for extended dtypes."""
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        shape, numbers = dtype.physical(aval.shape)
        return make_aval(tuple(shape), numbers, manual_axis_type=aval.manual_axis_type)
    return aval
