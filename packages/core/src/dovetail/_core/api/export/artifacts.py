"""Exported programs as bytes, in the format of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from dovetail import __version__
from dovetail._core.api.export.checks import DisabledSafetyCheck
from dovetail._core.api.export.nodes import read_tree, tree_record
from dovetail._core.api.export.records import Record, Table, decode, encode
from dovetail._core.base import dtypes
from dovetail._core.ir.abstract_mesh import AbstractMesh, AxisType
from dovetail._core.ir.avals import ShapedArray, make_aval
from dovetail._core.ir.dimension_syntax import SymbolicScope, symbolic_shape
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ops.random.keys import key_dtype
from dovetail._core.runtime.devices.named_sharding import NamedSharding

__all__ = ["read", "write"]

minimum_supported_calling_convention_version: Final = 9
maximum_supported_calling_convention_version: Final = 10

#: The version of the format that is written.
_VERSION: Final = 3
#: Names of dtypes by their number.
_DTYPES: Final = {
    0: "bool",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "uint8",
    6: "uint16",
    7: "uint32",
    8: "uint64",
    9: "float16",
    10: "float32",
    11: "float64",
    12: "complex64",
    13: "complex128",
    14: "bfloat16",
    15: "int4",
    16: "uint4",
    17: "float8_e4m3b11fnuz",
    18: "float8_e4m3fn",
    19: "float8_e4m3fnuz",
    20: "float8_e5m2",
    21: "float8_e5m2fnuz",
    22: "float0",
    23: "float8_e4m3",
    24: "float8_e3m4",
    25: "float8_e8m0fnu",
    26: "float4_e2m1fn",
}
_KEYS: Final = {27: "threefry2x32", 28: "rbg", 29: "unsafe_rbg"}


def _dtype_of(number: int) -> Any:
    if number in _KEYS:
        return key_dtype(_KEYS[number])
    name = _DTYPES.get(number)
    if name is None:
        raise ValueError(f"the program has arrays of a dtype, number {number}, unknown here")
    if name == "float0":
        return dtypes.float0
    return np.dtype(getattr(ml_dtypes, name, name))


def _number_of(dtype: Any) -> int:
    for number in (*_DTYPES, *_KEYS):
        if _dtype_of(number) == dtype:
            return number
    raise ValueError(f"arrays of dtype {dtype} have no form in serialized programs")


def write(exported: Any, vjp_order: int) -> bytearray:
    """An exported program as bytes, with derivatives up to an order."""
    if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(f"vjp_order is a number of derivatives, 0 or more; got {vjp_order!r}")
    return encode(_record(exported, vjp_order))


def _record(exported: Any, vjp_order: int) -> Record:
    if exported.ordered_effects or exported.unordered_effects:
        raise ValueError(f"{exported.fun_name} has side effects, which are not written")
    avals = _Pool()
    meshes = _Pool()
    shardings = _Pool()
    places = (exported._in_named_shardings, exported._out_named_shardings)
    for place in (*places[0], *places[1]):
        if place is not None:
            meshes.number(_mesh_key(place.mesh), lambda place=place: _mesh_record(place.mesh))
    numbers = [
        [
            0
            if place is None
            else 1 + shardings.number(_place_key(place), lambda place=place: _named_record(place))
            for place in group
        ]
        for group in places
    ]
    taken, given = (
        [avals.number(_strong(aval), lambda aval=aval: _aval_record(aval)) for aval in group]
        for group in (exported.in_avals, exported.out_avals)
    )
    derivative = _record(exported.vjp(), vjp_order - 1) if vjp_order else None
    return [
        (0, "u16", _VERSION),
        (1, "str", exported.fun_name),
        (2, "table", tree_record(exported.in_tree)),
        (3, "[table]", [_aval_record(aval) for aval in exported.in_avals]),
        (4, "table", tree_record(exported.out_tree)),
        (5, "[table]", [_aval_record(aval) for aval in exported.out_avals]),
        (7, "[table]", [_sharding_record(place) for place in places[0]]),
        (8, "[table]", [_sharding_record(place) for place in places[1]]),
        (9, "[str]", list(exported.platforms)),
        (10, "[table]", []),
        (11, "[table]", []),
        (12, "[table]", [_check_record(check) for check in exported.disabled_safety_checks]),
        (13, "bytes", exported.mlir_module_serialized),
        (14, "u16", exported.calling_convention_version),
        (15, "[u16]", list(exported.module_kept_var_idx)),
        (16, "u8", int(exported.uses_global_constants)),
        (17, "table", derivative),
        (18, "u32", exported.nr_devices),
        (19, "[table]", avals.records),
        (20, "[table]", meshes.records),
        (21, "[table]", shardings.records),
        (22, "[u32]", taken),
        (23, "[u32]", given),
        (24, "[u32]", numbers[0]),
        (25, "[u32]", numbers[1]),
        (26, "str", f"dovetail {__version__}"),
    ]


class _Pool:
    """Records that others refer to by number, each once."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, record: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.records)
            self.records.append(record())
        return self._numbers[key]


def _strong(aval: Any) -> Any:
    return aval.strengthen().with_division(None)


def _aval_record(aval: Any) -> Record:
    # A 1 stands for the memory in which devices compute.
    return [
        (1, "[str]", list(map(str, aval.shape))),
        (2, "u8", _number_of(aval.dtype)),
        (3, "u8", 1),
    ]


def _check_record(check: DisabledSafetyCheck) -> Record:
    target = check.is_custom_call()
    return [] if target is None else [(0, "u8", 1), (1, "str", target)]


_AXIS_TYPES: Final = {AxisType.Auto: 1, AxisType.Explicit: 2}


def _mesh_key(mesh: Any) -> Any:
    return mesh.shape_tuple, tuple(mesh.axis_types)


def _place_key(place: Any) -> Any:
    return _mesh_key(place.mesh), place.spec, place.memory_kind


def _mesh_record(mesh: Any) -> Record:
    return [
        (0, "[u32]", [size for _, size in mesh.shape_tuple]),
        (1, "[str]", [name for name, _ in mesh.shape_tuple]),
        (2, "bytes", bytes(_AXIS_TYPES[kind] for kind in mesh.axis_types)),
    ]


def _named_record(place: Any) -> Record:
    parts = [
        () if part is None else (part,) if isinstance(part, str) else tuple(part)
        for part in place.spec
    ]
    spec: Record = [(0, "[table]", [[(0, "[str]", list(part))] for part in parts])]
    return [
        (0, "table", _mesh_record(place.mesh)),
        (1, "table", [*spec, (1, "[str]", []), (2, "[str]", [])]),
        (2, "str", place.memory_kind),
    ]


def _sharding_record(place: Any) -> Record:
    return [] if place is None else [(2, "table", _named_record(place))]


def read(blob: bytes, build: Callable[..., Any]) -> Any:
    """What `build` makes of the fields of an exported program.

    Raises:
        ValueError: the bytes are damaged, or of a version that is not supported.
    """
    return decode(blob, lambda table: _read(table, SymbolicScope(), build))


def _read(table: Table, scope: SymbolicScope, build: Callable[..., Any]) -> Any:
    version = table.number(14, "u16")
    least = minimum_supported_calling_convention_version
    most = maximum_supported_calling_convention_version
    if not table.has(0) or not table.has(13):
        raise IndexError("parts are missing")
    if not least <= version <= most:
        raise ValueError(
            f"the program has version {version} of the calling convention, and those from {least} "
            f"to {most} are supported: export it again"
        )
    if table.tables(10) or table.tables(11):
        raise ValueError(
            f"the program {table.text(1)} has side effects of a kind that is unknown here"
        )
    pool = [_read_aval(t, scope) for t in table.tables(19)]
    places = [_read_named(t) for t in table.tables(21)]
    taken, given = (
        tuple(_read_aval(t, scope) for t in table.tables(own))
        if table.has(own)
        else tuple(pool[n] for n in table.numbers(others, "u32"))
        for own, others in ((3, 22), (5, 23))
    )
    in_places, out_places = (
        tuple(_read_sharding(t) for t in table.tables(own))
        if table.has(own)
        else tuple(places[n - 1] if n else None for n in table.numbers(others, "u32"))
        for own, others in ((7, 24), (8, 25))
    )
    derivative = table.table(17)
    # The derivative has the dimension variables of the program.
    vjp = None if derivative is None else _read(derivative, scope, build)
    return build(
        fun_name=table.text(1),
        in_tree=read_tree(table.table(2)),
        in_avals=taken,
        out_tree=read_tree(table.table(4)),
        out_avals=given,
        _in_named_shardings=in_places,
        _out_named_shardings=out_places,
        in_shardings_hlo=(None,) * len(taken),
        out_shardings_hlo=(None,) * len(given),
        nr_devices=table.number(18, "u32", table.number(6, "u16", 1)),
        platforms=tuple(table.texts(9)),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=tuple(map(_read_check, table.tables(12))),
        mlir_module_serialized=table.bytes(13),
        calling_convention_version=version,
        module_kept_var_idx=tuple(table.numbers(15, "u16")),
        uses_global_constants=bool(table.number(16, "u8")),
        _get_vjp=None if vjp is None else lambda exported: vjp,
    )


def _read_aval(table: Table, scope: SymbolicScope) -> ShapedArray:
    shape = symbolic_shape(",".join(table.texts(1)), scope=scope)
    return make_aval(shape, _dtype_of(table.number(2, "u8")))


def _read_check(table: Table) -> DisabledSafetyCheck:
    if table.number(0, "u8") == 1:
        return DisabledSafetyCheck.custom_call(table.text(1))
    return DisabledSafetyCheck.platform()


def _read_sharding(table: Table) -> Any:
    named = table.table(2)
    return None if named is None else _read_named(named)


def _read_named(table: Table) -> NamedSharding:
    mesh, spec = table.table(0), table.table(1)
    if mesh is None or spec is None:
        raise IndexError("a sharding is incomplete")
    kinds = {number: kind for kind, number in _AXIS_TYPES.items()}
    axes = tuple(kinds.get(number, AxisType.Auto) for number in mesh.bytes(2))
    abstract = AbstractMesh(tuple(mesh.numbers(0, "u32")), tuple(mesh.texts(1)), axis_types=axes)
    parts: Sequence[Any] = [tuple(t.texts(0)) for t in spec.tables(0)]
    parts = [None if not p else p[0] if len(p) == 1 else p for p in parts]
    return NamedSharding(abstract, PartitionSpec(*parts))
