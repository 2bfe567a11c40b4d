"""MLIR attributes from Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.hlo.mlir import Attribute, Type, ir, stablehlo

__all__ = ["AttributeBuilder", "convert_attribute", "dot_dimension_numbers"]

_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def dot_dimension_numbers(operation: Any) -> tuple[_Pair, _Pair]:
    """The dimensions of a product that was made before.

    Args:
        operation: a `stablehlo.dot_general`, such as the owner of an operand.

    Returns:
        Those that are summed over, and those of the batch, each of both operands: what
        `lax.dot_general` takes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.extend import LoweringTable
        >>> from dovetail.extend.lowering import dot_dimension_numbers
        >>> table = LoweringTable()
        >>> @table.rule("neg")
        ... def neg(context, x):
        ...     if getattr(x.owner, "name", "") == "stablehlo.dot_general":
        ...         print(dot_dimension_numbers(x.owner))
        ...     return NotImplemented
    """
    numbers = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    summed = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    return (tuple(summed[0]), tuple(summed[1])), (tuple(batch[0]), tuple(batch[1]))


def _of_int(value: int) -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _of_sequence(values: Sequence[Any]) -> Attribute:
    if all(type(v) is int for v in values):
        return ir.DenseI64ArrayAttr.get(values)
    if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        return ir.DenseI64ArrayAttr.get([int(v) for v in values])
    if all(isinstance(v, (bool, np.bool_)) for v in values):
        return ir.DenseBoolArrayAttr.get([bool(v) for v in values])
    return ir.ArrayAttr.get([convert_attribute(v) for v in values])


def _of_array(value: np.ndarray[Any, Any]) -> Attribute:
    return ir.DenseElementsAttr.get(
        np.asarray(value, order="C"), type=_NUMPY_TYPES[value.dtype.name](), shape=value.shape
    )


def _of_mapping(value: Mapping[str, Any]) -> Attribute:
    return ir.DictAttr.get({k: convert_attribute(v) for k, v in value.items()})


def _of_numpy_scalar(value: np.generic) -> Attribute:
    kind = value.dtype.kind
    if kind == "b":
        return ir.BoolAttr.get(bool(value))
    make = _NUMPY_TYPES.get(value.dtype.name)
    if make is not None and kind in "iu":
        return ir.IntegerAttr.get(make(), int(value))
    if make is not None and kind == "f":
        return ir.FloatAttr.get(make(), float(value))
    raise TypeError(f"a NumPy scalar of dtype {value.dtype} cannot be an attribute")


def _integer_type(maker: str, bits: int) -> Type:
    return getattr(ir.IntegerType, maker)(bits)


def _numpy_types() -> dict[str, Callable[[], Type]]:
    types: dict[str, Callable[[], Type]] = {
        "bool": lambda: ir.IntegerType.get_signless(1),
        "float16": ir.F16Type.get,
        "float32": ir.F32Type.get,
        "float64": ir.F64Type.get,
    }
    for bits in (8, 16, 32, 64):
        types[f"int{bits}"] = partial(_integer_type, "get_signless", bits)
        types[f"uint{bits}"] = partial(_integer_type, "get_unsigned", bits)
    return types


_NUMPY_TYPES: Final = _numpy_types()

_converters: Final[dict[type, Callable[[Any], Attribute]]] = {
    bool: lambda value: ir.BoolAttr.get(value),
    int: _of_int,
    str: lambda value: ir.StringAttr.get(value),
    bytes: lambda value: ir.StringAttr.get(value),
    float: lambda value: ir.FloatAttr.get(ir.F64Type.get(), value),
    tuple: _of_sequence,
    list: _of_sequence,
    dict: _of_mapping,
    np.ndarray: _of_array,
}


#: MLIR attribute classes seen so far.
_attribute_classes: Final[set[type]] = set()


def convert_attribute(value: Any) -> Attribute:
    """Convert a Python value to an attribute, which the current context owns.

    Args:
        value: ``bool``; ``int`` (i64), ``float`` (f64), ``str``; a NumPy scalar (exactly its width,
            unsigned ones as ``ui``); a sequence of ints (i64 array) or of anything (array of
            attributes); a mapping (dictionary); a NumPy array (dense elements); an MLIR attribute
            or type.

    Raises:
        TypeError: `value` is none of these.
    """
    convert = _converters.get(type(value))
    if convert is not None:
        return convert(value)
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, ir.Type):
        return ir.TypeAttr.get(value)
    if isinstance(value, np.generic):
        return _of_numpy_scalar(value)
    for kind, convert in _converters.items():
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    raise TypeError(f"{type(value).__name__} cannot be an attribute of an operation: {value!r}")


def _comparison_kind(dtype: Any, total_order: bool) -> str:
    if isinstance(dtype, dtypes.ExtendedDType):
        return "UNSIGNED"
    if dtypes.issubdtype(dtype, np.inexact):
        return "TOTALORDER" if total_order else "FLOAT"
    return "SIGNED" if dtypes.issubdtype(dtype, np.signedinteger) else "UNSIGNED"


class AttributeBuilder:
    """Constructors of attributes that are not plain Python values."""

    def __init__(self) -> None:
        # Caches: programs use the same attributes again and again.
        self._i64_arrays: dict[tuple[int, ...], Attribute] = {}
        self._scalars: dict[Any, Attribute] = {}
        self._composed: dict[Any, Attribute] = {}
        self._comparisons: dict[Any, dict[str, Attribute]] = {}

    def attribute(self, value: Any) -> Attribute:
        """`convert_attribute`."""
        return convert_attribute(value)

    def attributes(self, values: Mapping[str, Any]) -> dict[str, Attribute]:
        """The attributes of an operation."""
        converted = {}
        for name, value in values.items():
            kind = type(value)
            if kind in _attribute_classes:
                converted[name] = value
            elif kind is int or kind is bool or kind is str:
                key = (kind, value)
                cached = self._scalars.get(key)
                if cached is None:
                    cached = self._scalars[key] = convert_attribute(value)
                converted[name] = cached
            else:
                if isinstance(value, ir.Attribute):
                    _attribute_classes.add(kind)
                converted[name] = convert_attribute(value)
        return converted

    def _remember(self, key: Any, make: Callable[[], Attribute]) -> Attribute:
        cached = self._composed.get(key)
        if cached is None:
            cached = self._composed[key] = make()
        return cached

    def i64_array(self, values: Sequence[int]) -> Attribute:
        """``array<i64: ...>``, the form of dimensions, sizes and strides."""
        key = values if type(values) is tuple else tuple(values)
        cached = self._i64_arrays.get(key)
        if cached is None:
            cached = self._i64_arrays[key] = ir.DenseI64ArrayAttr.get([int(v) for v in key])
        return cached

    def i64_elements(self, values: Any) -> Attribute:
        """``dense<...> : tensor<...xi64>``, the form of two-dimensional paddings."""
        array = np.asarray(values, dtype=np.int64, order="C")
        return ir.DenseElementsAttr.get(
            array, type=ir.IntegerType.get_signless(64), shape=array.shape
        )

    def bool_array(self, values: Sequence[bool]) -> Attribute:
        """``array<i1: ...>``."""
        return ir.DenseBoolArrayAttr.get([bool(v) for v in values])

    def i32(self, value: int) -> Attribute:
        """A 32-bit integer attribute."""
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)

    def i64(self, value: int) -> Attribute:
        """A 64-bit integer attribute."""
        return _of_int(value)

    def f32(self, value: float) -> Attribute:
        """A 32-bit float attribute."""
        return ir.FloatAttr.get(ir.F32Type.get(), value)

    def array(self, values: Sequence[Any]) -> Attribute:
        """An array of attributes of any kind."""
        return ir.ArrayAttr.get([convert_attribute(v) for v in values])

    def dictionary(self, values: Mapping[str, Any]) -> Attribute:
        """A dictionary of attributes."""
        return _of_mapping(values)

    def symbol(self, name: str) -> Attribute:
        """A reference to a function of the module."""
        return ir.FlatSymbolRefAttr.get(name)

    def _named(self, kind: Any, name: str) -> Attribute:
        key = (kind, name)
        cached = self._composed.get(key)
        if cached is None:
            cached = self._composed[key] = kind.get(name)
        return cached

    def direction(self, name: str) -> Attribute:
        """A comparison direction: ``EQ NE LT LE GT GE``."""
        return self._named(stablehlo.ComparisonDirectionAttr, name)

    def comparison_type(self, aval: Any, total_order: bool = False) -> Attribute:
        """The type of a comparison: ``FLOAT``, ``TOTALORDER``, ``SIGNED`` or ``UNSIGNED``."""
        return self.comparison("EQ", aval, total_order)["compare_type"]

    def comparison(
        self, direction: str, aval: Any, total_order: bool = False
    ) -> dict[str, Attribute]:
        """The attributes of ``stablehlo.compare`` for operands of an aval."""
        key = (direction, aval.dtype, total_order)
        cached = self._comparisons.get(key)
        if cached is None:
            kind = stablehlo.ComparisonTypeAttr.get(_comparison_kind(aval.dtype, total_order))
            cached = {"comparison_direction": self.direction(direction), "compare_type": kind}
            self._comparisons[key] = cached
        return cached

    def precision(self, names: Sequence[Any] | None) -> Attribute:
        """A precision for each operand of a contraction.

        Args:
            names: ``DEFAULT``, ``HIGH`` or ``HIGHEST`` for each operand (objects with such a
                ``name``, and None for the default, are taken as well); None for the default of two
                operands.
        """
        if names is None:
            names = ("DEFAULT", "DEFAULT")
        key = tuple(
            [
                "DEFAULT" if n is None else (n if isinstance(n, str) else n.name).upper()
                for n in names
            ]
        )
        return self._remember(
            ("precision", key),
            lambda: ir.ArrayAttr.get([stablehlo.PrecisionAttr.get(name) for name in key]),
        )

    def fft_type(self, name: str) -> Attribute:
        """``FFT``, ``IFFT``, ``RFFT`` or ``IRFFT``."""
        return self._named(stablehlo.FftTypeAttr, name)

    def transpose_kind(self, name: str) -> Attribute:
        """``NO_TRANSPOSE``, ``TRANSPOSE`` or ``ADJOINT``, for a triangular solve."""
        return self._named(stablehlo.TransposeAttr, name)

    def rng_algorithm(self, name: str) -> Attribute:
        """``THREE_FRY``, ``PHILOX`` or ``DEFAULT``."""
        return self._named(stablehlo.RngAlgorithmAttr, name)

    def rng_distribution(self, name: str) -> Attribute:
        """``UNIFORM`` or ``NORMAL``, for generators whose state is hidden."""
        return self._named(stablehlo.RngDistributionAttr, name)

    def result_accuracy(
        self, mode: str, *, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0
    ) -> ir.Attribute:
        """The accuracy of an elementary function: ``DEFAULT``, ``HIGHEST`` or ``TOLERANCE``."""
        return stablehlo.ResultAccuracyAttr.get(atol, rtol, ulps, mode)

    def unit(self) -> Attribute:
        """An attribute that says something by being there."""
        return ir.UnitAttr.get()

    def channel(self, handle: int, kind: int) -> Attribute:
        """A channel of a collective: its number and its type."""
        return stablehlo.ChannelHandle.get(handle, kind)

    def dot_dimension_numbers(
        self,
        *,
        lhs_contracting: Sequence[int],
        rhs_contracting: Sequence[int],
        lhs_batching: Sequence[int] = (),
        rhs_batching: Sequence[int] = (),
    ) -> Attribute:
        """Dimension numbers of ``stablehlo.dot_general``."""
        dims = tuple(map(tuple, (lhs_batching, rhs_batching, lhs_contracting, rhs_contracting)))
        return self._remember(
            ("dot", dims),
            lambda: stablehlo.DotDimensionNumbers.get(
                lhs_batching_dimensions=dims[0],
                rhs_batching_dimensions=dims[1],
                lhs_contracting_dimensions=dims[2],
                rhs_contracting_dimensions=dims[3],
            ),
        )

    def dot_algorithm(
        self,
        lhs_precision_type: Type | str,
        rhs_precision_type: Type | str,
        accumulation_type: Type,
        lhs_component_count: int = 1,
        rhs_component_count: int = 1,
        num_primitive_operations: int = 1,
        allow_imprecise_accumulation: bool = False,
    ) -> Attribute:
        """The algorithm of a float contraction; ``"tf32"`` is a type that no dtype represents."""
        precisions = (lhs_precision_type, rhs_precision_type)
        return stablehlo.DotAlgorithm.get(
            *[ir.FloatTF32Type.get() if t == "tf32" else t for t in precisions],
            accumulation_type,
            lhs_component_count,
            rhs_component_count,
            num_primitive_operations,
            allow_imprecise_accumulation,
        )

    def gather_dimension_numbers(
        self,
        *,
        offset_dims: Sequence[int],
        collapsed_slice_dims: Sequence[int],
        start_index_map: Sequence[int],
        index_vector_dim: int,
        operand_batching_dims: Sequence[int] = (),
        start_indices_batching_dims: Sequence[int] = (),
    ) -> Attribute:
        """Dimension numbers of ``stablehlo.gather``."""
        return stablehlo.GatherDimensionNumbers.get(
            offset_dims=list(offset_dims),
            collapsed_slice_dims=list(collapsed_slice_dims),
            operand_batching_dims=list(operand_batching_dims),
            start_indices_batching_dims=list(start_indices_batching_dims),
            start_index_map=list(start_index_map),
            index_vector_dim=index_vector_dim,
        )

    def scatter_dimension_numbers(
        self,
        *,
        update_window_dims: Sequence[int],
        inserted_window_dims: Sequence[int],
        scattered_dims_to_operand_dims: Sequence[int],
        index_vector_dim: int,
        input_batching_dims: Sequence[int] = (),
        scatter_indices_batching_dims: Sequence[int] = (),
    ) -> Attribute:
        """Dimension numbers of ``stablehlo.scatter``."""
        return stablehlo.ScatterDimensionNumbers.get(
            update_window_dims=list(update_window_dims),
            inserted_window_dims=list(inserted_window_dims),
            input_batching_dims=list(input_batching_dims),
            scatter_indices_batching_dims=list(scatter_indices_batching_dims),
            scattered_dims_to_operand_dims=list(scattered_dims_to_operand_dims),
            index_vector_dim=index_vector_dim,
        )

    def conv_dimension_numbers(
        self, lhs_spec: Sequence[int], rhs_spec: Sequence[int], out_spec: Sequence[int]
    ) -> Attribute:
        """Dimension numbers of ``stablehlo.convolution``.

        Args:
            lhs_spec: positions in the input of (batch, feature, *spatial).
            rhs_spec: positions in the kernel of (output feature, input feature, *spatial).
            out_spec: positions in the result of (batch, feature, *spatial).
        """
        return stablehlo.ConvDimensionNumbers.get(
            input_batch_dimension=lhs_spec[0],
            input_feature_dimension=lhs_spec[1],
            input_spatial_dimensions=list(lhs_spec[2:]),
            kernel_output_feature_dimension=rhs_spec[0],
            kernel_input_feature_dimension=rhs_spec[1],
            kernel_spatial_dimensions=list(rhs_spec[2:]),
            output_batch_dimension=out_spec[0],
            output_feature_dimension=out_spec[1],
            output_spatial_dimensions=list(out_spec[2:]),
        )

    def output_operand_alias(self, output: int, operand: int, outputs: int) -> Attribute:
        """Alias of a custom call's result `output`, of `outputs` results, to an operand."""
        return stablehlo.OutputOperandAlias.get(
            output_tuple_indices=[output] if outputs > 1 else [],
            operand_index=operand,
            operand_tuple_indices=[],
        )
