"""Creating operations: the base of the builder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.hlo.attributes import AttributeBuilder
from dovetail._core.hlo.context import entered, load_dialect
from dovetail._core.hlo.mlir import Attribute, Location, Type, Value, ir
from dovetail._core.hlo.types import TypeTable, physical_dimensions
from dovetail._core.ir.avals import ShapedArray, make_aval, physical_aval
from dovetail._core.ir.jaxpr import JaxprEqn

__all__ = ["OperationBuilder", "Region", "Values"]

Values = Value | Sequence[Value]
#: Avals (or types) of a block's arguments, and a function from these arguments to what the block
#: returns.
Region = tuple[Sequence[Any], Callable[..., Values]]

_create: Final = ir.Operation.create
_bits: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def values_of(returned: Any) -> list[Value]:
    """The result of a rule or a region's body, as a list."""
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


class OperationBuilder(AttributeBuilder):
    """Creates operations at the current insertion point.

    Attributes:
        types: MLIR types by aval.
        location: the source location for the operations created now.
        equation: the equation being lowered; None between functions.
    """

    def __init__(self, location: Location) -> None:
        super().__init__()
        self.types = TypeTable()
        self.location = location
        self.equation: JaxprEqn | None = None
        # Broadcasts of the literals of the jaxpr being lowered, see `broadcast_operands`.
        self.literals: dict[int, dict[Any, Value]] = {}
        self._constants: dict[Any, Attribute] = {}
        self._scalar_avals: dict[Any, Any] = {}
        self._mask_avals: dict[Any, Any] = {}
        self._names: dict[str, str] = {}

    # The equation. Avals are computed on demand: most rules need only one of the two tuples.

    @property
    def avals_in(self) -> tuple[Any, ...]:
        """Avals of the operands of the current equation."""
        return () if self.equation is None else tuple([v.aval for v in self.equation.invars])

    @property
    def avals_out(self) -> tuple[Any, ...]:
        """Avals of the results of the current equation."""
        if self.equation is None:
            return ()
        outvars = self.equation.outvars
        return (outvars[0].aval,) if len(outvars) == 1 else tuple([v.aval for v in outvars])

    # Types

    def type(self, aval: Any) -> Type:
        """The type of a value of an aval."""
        return self.types[aval]

    def element_type(self, dtype: Any) -> Type:
        """The type of an element of a dtype."""
        return self.types.element(dtype)

    def physical(self, aval: Any) -> Any:
        """The aval of a value's data: different from `aval` only for extended dtypes."""
        return physical_aval(aval)

    def physical_dimensions(self, aval: Any) -> tuple[int, ...]:
        """The extra dimensions of an extended dtype's data, after those of the aval."""
        return physical_dimensions(aval)

    def scalar(self, aval: Any) -> Any:
        """The aval of an element."""
        scalar = self._scalar_avals.get(aval)
        if scalar is None:
            scalar = self._scalar_avals[aval] = make_aval((), aval.dtype)
        return scalar

    def mask(self, aval: Any) -> Any:
        """The aval of a mask: a bool for each element of a value's data."""
        mask = self._mask_avals.get(aval)
        if mask is None:
            shape = physical_aval(aval).shape
            mask = self._mask_avals[aval] = make_aval(shape, np.dtype(bool))
        return mask

    # Operations

    def _full_name(self, name: str) -> str:
        dialect, dot, _ = name.partition(".")
        if dot:
            load_dialect(dialect)
        full = self._names[name] = name if dot else "stablehlo." + name
        return full

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        out: Any,
        attributes: Mapping[str, Any] | None = None,
    ) -> Value:
        """Create an operation with one result.

        Args:
            name: of the operation; ``stablehlo.`` may be left out.
            operands: values.
            out: aval or type of the result.
            attributes: Python values or MLIR attributes, see `convert_attribute`.

        Returns:
            The result.
        """
        return _create(
            self._names.get(name) or self._full_name(name),
            [self.types[out]],
            operands,
            None if attributes is None else self.attributes(attributes),
            None,
            0,
            self.location,
        ).result

    def ops(
        self,
        name: str,
        operands: Sequence[Value],
        outs: Iterable[Any],
        attributes: Mapping[str, Any] | None = None,
        regions: Sequence[Region] = (),
    ) -> list[Value]:
        """Create an operation with any number of results.

        Args:
            name: of the operation; ``stablehlo.`` may be left out.
            operands: values.
            outs: avals or types of the results.
            attributes: Python values or MLIR attributes, see `convert_attribute`.
            regions: for each region, the avals of its block's arguments and a function that takes
                these arguments, creates the block's operations and returns the block's results.

        Returns:
            The results.
        """
        return list(self.operation(name, operands, outs, attributes, regions).results)

    def operation(
        self,
        name: str,
        operands: Sequence[Value],
        outs: Iterable[Any],
        attributes: Mapping[str, Any] | None = None,
        regions: Sequence[Region] = (),
    ) -> Any:
        """`ops`, of which it returns the operation itself."""
        location = self.location
        types = self.types
        operation = _create(
            self._names.get(name) or self._full_name(name),
            [types[out] for out in outs],
            operands,
            None if attributes is None else self.attributes(attributes),
            None,
            len(regions),
            location,
        )
        for number, (avals, body) in enumerate(regions):
            block = operation.regions[number].blocks.append(
                *[types[aval] for aval in avals], arg_locs=[location] * len(avals)
            )
            with entered(ir.InsertionPoint(block)):
                returned = body(*block.arguments)
                if not isinstance(returned, (list, tuple)):
                    returned = [returned]
                _create("stablehlo.return", [], returned, None, None, 0, location)
        return operation

    def emit(
        self, name: str, operands: Sequence[Value], out: Any, attributes: dict[str, Attribute]
    ) -> Value:
        """`op` for the builder's own methods: takes a full name and MLIR attributes."""
        return _create(name, [self.types[out]], operands, attributes, None, 0, self.location).result

    # Constants

    def constant(self, value: Any, aval: Any = None) -> Value:
        """A constant.

        Args:
            value: a Python or NumPy scalar, or an array. A scalar fills the shape of `aval`.
            aval: the aval of the result; by default that of `value`, in its own dtype.

        Returns:
            The constant, of the type of `aval`.
        """
        if aval is None:
            value = np.asarray(value)
            aval = make_aval(value.shape, value.dtype)
        return _create(
            "stablehlo.constant",
            [self.types[aval]],
            (),
            {"value": self._constant_attribute(value, aval)},
            None,
            0,
            self.location,
        ).result

    def _constant_attribute(self, value: Any, aval: ShapedArray) -> Attribute:
        kind = type(value)
        # Zeros are left out because 0.0 == -0.0, complex numbers because of their zero parts.
        simple = value if kind is int or ((kind is float or kind is bool) and value) else None
        key: Any = None
        if simple is not None:
            key = (aval, kind, simple)
            cached = self._constants.get(key)
            if cached is not None:
                return cached
        array = np.asarray(value)
        physical = physical_aval(aval)
        if array.dtype != physical.dtype or array.dtype == dtypes.float0:
            array = _cast(array, physical.dtype)
        if key is None and array.ndim == 0:
            key = (aval, array.tobytes())
            cached = self._constants.get(key)
            if cached is not None:
                return cached
        attribute = self._dense(array, physical)
        if key is not None:
            self._constants[key] = attribute
        return attribute

    def _dense(self, array: np.ndarray[Any, Any], aval: ShapedArray) -> Attribute:
        dtype = array.dtype
        array = np.asarray(array, order="C")
        if array.size > 1 and array.shape == aval.shape:
            # If all elements have the same bits, one of them is enough.
            bits: Any = array.reshape(-1).view(_bits.get(dtype.itemsize, np.uint64))
            if dtype.itemsize == 16:
                bits = bits.reshape(-1, 2)
            if (bits == bits[0]).all():
                array = array.reshape(-1)[0:1].reshape(())
        if dtype.kind == "V" or dtype.isbuiltin == 2:
            array = array.view(np.int8 if dtype.itemsize == 1 else np.int16)
        if array.ndim and array.shape != aval.shape:
            raise ValueError(f"a constant of shape {array.shape} cannot have the type {aval}")
        return ir.DenseElementsAttr.get(
            array, type=self.types.element(aval.dtype), shape=list(aval.shape)
        )


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """`array` in another dtype; integers out of range wrap around in two's complement."""
    if array.dtype == dtypes.float0:
        return np.zeros(array.shape, bool)
    if dtype == dtypes.float0:
        return np.zeros(array.shape, bool)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    return array.astype(dtype)
