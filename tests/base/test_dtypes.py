"""Dtypes: promotion against the documented lattice, canonical dtypes, what values are taken as."""

from __future__ import annotations

import copy
import enum
import itertools
import pickle
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail.dtypes as public
import dovetail.numpy as jnp
from dovetail import ShapeDtypeStruct, enable_x64, jit, lax, random
from dovetail._core.base import config, dtypes
from dovetail.errors import NonArrayArgumentError

# The documented table ("Type promotion semantics"), with 64-bit types; a star marks weak types.
STANDARD = """
   b1 u1 u2 u4 u8 i1 i2 i4 i8 i* bf f2 f4 f8 f* c4 c8 c*
b1 b1 u1 u2 u4 u8 i1 i2 i4 i8 i* bf f2 f4 f8 f* c4 c8 c*
u1 u1 u1 u2 u4 u8 i2 i2 i4 i8 u1 bf f2 f4 f8 f* c4 c8 c*
u2 u2 u2 u2 u4 u8 i4 i4 i4 i8 u2 bf f2 f4 f8 f* c4 c8 c*
u4 u4 u4 u4 u4 u8 i8 i8 i8 i8 u4 bf f2 f4 f8 f* c4 c8 c*
u8 u8 u8 u8 u8 u8 f* f* f* f* u8 bf f2 f4 f8 f* c4 c8 c*
i1 i1 i2 i4 i8 f* i1 i2 i4 i8 i1 bf f2 f4 f8 f* c4 c8 c*
i2 i2 i2 i4 i8 f* i2 i2 i4 i8 i2 bf f2 f4 f8 f* c4 c8 c*
i4 i4 i4 i4 i8 f* i4 i4 i4 i8 i4 bf f2 f4 f8 f* c4 c8 c*
i8 i8 i8 i8 i8 f* i8 i8 i8 i8 i8 bf f2 f4 f8 f* c4 c8 c*
i* i* u1 u2 u4 u8 i1 i2 i4 i8 i* bf f2 f4 f8 f* c4 c8 c*
bf bf bf bf bf bf bf bf bf bf bf bf f4 f4 f8 bf c4 c8 c4
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 f8 f2 c4 c8 c4
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 f4 c4 c8 c4
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c8 c8 c8
f* f* f* f* f* f* f* f* f* f* f* bf f2 f4 f8 f* c4 c8 c*
c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c8 c4 c4 c8 c4
c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8
c* c* c* c* c* c* c* c* c* c* c* c4 c4 c4 c8 c* c4 c8 c*
"""

NAMES = {
    "b1": "bool",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "i*": "int64",
    "bf": "bfloat16",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "f*": "float64",
    "c4": "complex64",
    "c8": "complex128",
    "c*": "complex128",
}
NARROWED = {"uint64": "uint32", "int64": "int32", "float64": "float32", "complex128": "complex64"}
FP8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
NARROW_INTS = ["int2", "int4", "uint2", "uint4"]


@dataclass(frozen=True)
class Value:
    """Stands for an array: something with an abstract value."""

    dtype: Any
    weak_type: bool = False

    @property
    def aval(self) -> Value:
        return self


def table(text: str) -> list[tuple[str, str, str]]:
    header, *rows = [line.split() for line in text.strip().splitlines()]
    return [
        (row[0], column, cell) for row in rows for column, cell in zip(header, row[1:], strict=True)
    ]


def value(code: str) -> Value:
    return Value(np.dtype(NAMES[code]), code.endswith("*"))


def promoted(*values: Any) -> tuple[str, bool]:
    dtype, weak = dtypes.result_type(*values, return_weak_type_flag=True)
    return str(dtype), weak


@pytest.mark.parametrize("x64", [True, False])
def test_promotion_follows_the_documented_table(x64: bool) -> None:
    with config.enable_x64(x64):
        for a, b, expected in table(STANDARD):
            name, weak = NAMES[expected], expected.endswith("*")
            if not x64:
                # 64-bit arguments are 32-bit ones then, which changes what they have in common.
                narrow = {"u8": "u4", "i8": "i4", "f8": "f4", "c8": "c4"}
                pair = narrow.get(a, a), narrow.get(b, b)
                expected = {(x, y): z for x, y, z in table(STANDARD)}[pair]
                name = NARROWED.get(NAMES[expected], NAMES[expected])
                weak = expected.endswith("*")
            assert promoted(value(a), value(b)) == (name, weak), (a, b)
            pair_result = dtypes.result_of_pair(
                value(a).dtype, value(a).weak_type, value(b).dtype, value(b).weak_type
            )
            assert (str(pair_result[0]), pair_result[1]) == (name, weak), (a, b)


def test_strict_promotion_combines_only_weak_types_of_no_higher_kind() -> None:
    kinds = {"i*": "iu", "f*": "f", "c*": "c"}
    order = "iufc"
    with config.enable_x64(True), config.numpy_dtype_promotion("strict"):
        for a, b, expected in table(STANDARD):
            kind = {code: "f" if code == "bf" else code[0] for code in (a, b)}
            if a == b or (a in kinds and b in kinds):
                allowed = True
            elif "b1" in (a, b) or not (a in kinds or b in kinds):
                allowed = False
            else:
                weak, strong = (a, b) if a in kinds else (b, a)
                allowed = order.index(kinds[weak][0]) <= order.index(kind[strong])
            if allowed:
                assert promoted(value(a), value(b))[0] == NAMES[expected], (a, b)
            else:
                with pytest.raises(dtypes.TypePromotionError, match="strict"):
                    promoted(value(a), value(b))


@pytest.mark.parametrize("name", FP8 + NARROW_INTS)
def test_narrow_types_combine_with_themselves_and_bool(name: str) -> None:
    narrow = np.dtype(getattr(ml_dtypes, name))
    assert promoted(Value(narrow), Value(narrow)) == (name, False)
    assert promoted(Value(narrow), Value(np.dtype(bool))) == (name, False)
    assert promoted(Value(narrow), 1) == (name, False)


@pytest.mark.parametrize("name", FP8)
def test_narrow_floats_take_weak_floats_and_integers_but_no_other_floats(name: str) -> None:
    narrow = Value(np.dtype(getattr(ml_dtypes, name)))
    assert promoted(narrow, 1.5) == (name, False)
    assert promoted(narrow, np.int32(1)) == (name, False)
    for other in ("bfloat16", "float16", "float32", "complex64", *FP8):
        if other != name:
            with pytest.raises(
                dtypes.TypePromotionError, match="8 bits and less are not promoted implicitly"
            ):
                promoted(narrow, Value(np.dtype(other)))
    with pytest.raises(dtypes.TypePromotionError, match=r"complex\*"):
        promoted(narrow, 1j)


@pytest.mark.parametrize("name", NARROW_INTS)
def test_narrow_integers_combine_with_no_other_type(name: str) -> None:
    narrow = Value(np.dtype(getattr(ml_dtypes, name)))
    for other in ("int8", "uint8", "int32", "float32", "bfloat16", *NARROW_INTS):
        if other != name:
            with pytest.raises(dtypes.TypePromotionError, match=r"astype\('int32'\)"):
                promoted(narrow, Value(np.dtype(other)))
    with pytest.raises(dtypes.TypePromotionError, match="less than 8 bits"):
        promoted(narrow, 1.0)


def test_promotion_of_several_does_not_depend_on_their_order() -> None:
    codes = ["u1", "i1", "i4", "bf", "f2", "i*", "f*", "c4"]
    for triple in itertools.combinations(codes, 3):
        results = {promoted(*map(value, order)) for order in itertools.permutations(triple)}
        assert len(results) == 1, triple


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((int, "int8"), "int8"),
        ((float, "bfloat16"), "bfloat16"),
        ((int, float), "float32"),
        ((None,), "float32"),
        ((int,), "int32"),
        ((bool, int), "int32"),
        (("int8", 2.0), "float32"),
        ((complex, "float16"), "complex64"),
        ((np.arange(3), 1), "int32"),
        ((np.float64(1), np.float16(1)), "float32"),
        ((np.dtype(">f4"), np.float16), "float32"),
        ((np.zeros(2, ">i2"), 1), "int16"),
        ((True, 1), "int32"),
        ((2**40, np.uint8(1)), "uint8"),
        ((np.float32, 1), "float32"),
    ],
)
def test_result_type_takes_values_and_dtypes(arguments: tuple[Any, ...], expected: str) -> None:
    assert dtypes.result_type(*arguments) == np.dtype(expected)


def test_result_type_without_arguments() -> None:
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_promote_types() -> None:
    assert dtypes.promote_types("int8", "uint8") == np.int16
    assert dtypes.promote_types(float, "float16") == np.float16
    assert dtypes.promote_types("int32", "float64") == np.float32


class FakeKey(dtypes.ExtendedDType):
    type = dtypes.prng_key
    name = "key<fry>"

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return (*shape, 2), np.dtype("uint32")


KEY = FakeKey()


def test_extended_dtypes_combine_only_with_themselves() -> None:
    assert promoted(Value(KEY), Value(KEY)) == ("key<fry>", False)
    with pytest.raises(dtypes.TypePromotionError, match="key<fry>"):
        promoted(Value(KEY), 1)
    with pytest.raises(dtypes.TypePromotionError, match="float0"):
        promoted(Value(dtypes.float0), Value(np.dtype("float32")))


def test_extended_dtypes_describe_themselves() -> None:
    assert (KEY.itemsize, str(KEY), dtypes.short_name(KEY)) == (8, "key<fry>", "key<fry>")
    assert dtypes.itemsize_bits(KEY) == 64
    assert dtypes.is_extended(KEY)
    assert not dtypes.is_extended(np.dtype("float32"))
    assert dtypes.dtype_of(Value(KEY)) is KEY
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(ValueError, match="dtype of numbers"):
        dtypes.canonicalize_dtype(KEY)
    with pytest.raises(TypeError, match="key<fry>"):
        dtypes.scalar_type_of(Value(KEY))


@pytest.mark.parametrize(
    ("dtype", "narrow"),
    [
        ("int64", "int32"),
        ("uint64", "uint32"),
        (np.float64, "float32"),
        (np.dtype("complex128"), "complex64"),
        (int, "int32"),
        (float, "float32"),
        (complex, "complex64"),
        (bool, "bool"),
        ("bfloat16", "bfloat16"),
        (ml_dtypes.int4, "int4"),
        (">f4", "float32"),
        ("float16", "float16"),
    ],
)
def test_canonicalize_dtype(dtype: Any, narrow: str) -> None:
    assert dtypes.canonicalize_dtype(dtype) == np.dtype(narrow)
    with config.enable_x64(True):
        assert dtypes.canonicalize_dtype(dtype) == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize("wrong", ["foo", object, dict, 3, [1]])
def test_what_is_no_dtype_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"zeros: .*dtype"):
        dtypes.check_user_dtype(wrong, "zeros")


@pytest.mark.parametrize("wrong", ["S3", "U2", "datetime64[s]", "O"])
def test_dtypes_that_arrays_cannot_have_are_refused(wrong: str) -> None:
    for function in (
        lambda: dtypes.check_user_dtype(wrong, "zeros"),
        lambda: dtypes.result_type(wrong),
        lambda: dtypes.result_type(wrong, 1.0),
        lambda: dtypes.promote_types("float32", wrong),
    ):
        with pytest.raises(TypeError, match="numbers and booleans"):
            function()


@pytest.mark.parametrize("wide", ["float64", np.int64, np.dtype("complex128"), "uint64"])
def test_asking_for_64_bits_warns_when_they_are_off(wide: Any) -> None:
    with pytest.warns(UserWarning, match=r"zeros: the dtype .*64.*enable_x64") as caught:
        given = dtypes.check_user_dtype(wide, "zeros")
    assert given == dtypes.canonicalize_dtype(wide) != np.dtype(wide)
    assert caught[0].filename == __file__
    with config.enable_x64(True):
        assert dtypes.check_user_dtype(wide, "zeros") == np.dtype(wide)


@pytest.mark.parametrize("silent", [int, float, complex, bool, "float32", "bfloat16", KEY])
def test_asking_for_defaults_does_not_warn(silent: Any) -> None:
    dtypes.check_user_dtype(silent, "zeros")


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (True, "bool"),
        (1, "int32"),
        (1.0, "float32"),
        (1j, "complex64"),
        (Color.RED, "int32"),
        (np.float64(1), "float32"),
        (np.arange(2), "int32"),
        (np.zeros(2, "bfloat16"), "bfloat16"),
        (np.zeros(2, ">f2"), "float16"),
        (Value(np.dtype("float64")), "float64"),
    ],
)
def test_dtype_of(given: Any, expected: str) -> None:
    assert dtypes.dtype_of(given) == np.dtype(expected)


@pytest.mark.parametrize("wrong", ["text", [1, 2], None, object(), np.array(["a"]), {1: 2}])
def test_dtype_of_refuses_what_is_no_array(wrong: Any) -> None:
    with pytest.raises(NonArrayArgumentError):
        dtypes.dtype_of(wrong)


@pytest.mark.parametrize(
    ("number", "x64", "message"),
    [
        (2**31, False, r"int32.*np\.uint32\(2147483648\).*enable_x64"),
        (-(2**31) - 1, False, "int32.*float"),
        (2**40, False, "int32.*enable_x64"),
        (2**63, True, r"int64.*np\.uint64"),
    ],
)
def test_integers_that_do_not_fit(number: int, x64: bool, message: str) -> None:
    with config.enable_x64(x64), pytest.raises(OverflowError, match=message):
        dtypes.dtype_of(number)


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31), 0])
def test_integers_that_just_fit(number: int) -> None:
    assert dtypes.dtype_of(number) == np.int32
    with config.enable_x64(True):
        assert dtypes.dtype_of(2**32 * number) == np.int64


@pytest.mark.parametrize(
    ("given", "weak"),
    [
        (1, True),
        (1.0, True),
        (True, True),
        (Color.RED, True),
        (np.float64(1), False),
        (np.ones(2), False),
        (Value(np.dtype("float32"), weak_type=True), True),
        (Value(np.dtype("float32")), False),
        ("text", False),
    ],
)
def test_is_weakly_typed(given: Any, weak: bool) -> None:
    assert dtypes.is_weakly_typed(given) is weak


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bool", bool), ("int4", int), ("uint64", int), ("bfloat16", float), ("complex64", complex)],
)
def test_scalar_type_of(dtype: str, expected: type) -> None:
    assert dtypes.scalar_type_of(dtype) is expected
    assert dtypes.scalar_type_of(Value(np.dtype(dtype))) is expected


KINDS = {
    np.bool_: ["bool"],
    np.signedinteger: ["int8", "int32", "int64", "int4", "int2"],
    np.unsignedinteger: ["uint8", "uint64", "uint4"],
    np.floating: ["float16", "float64", "bfloat16", "float8_e5m2", "float4_e2m1fn"],
    np.complexfloating: ["complex64", "complex128"],
}
ABOVE = {
    np.signedinteger: {np.signedinteger, np.integer, np.number, np.generic},
    np.unsignedinteger: {np.unsignedinteger, np.integer, np.number, np.generic},
    np.floating: {np.floating, np.inexact, np.number, np.generic},
    np.complexfloating: {np.complexfloating, np.inexact, np.number, np.generic},
    np.bool_: {np.bool_, np.generic},
}


def test_issubdtype_knows_every_kind() -> None:
    for kind, names in KINDS.items():
        for name in names:
            for target in {*ABOVE, np.integer, np.inexact, np.number, np.generic}:
                expected = target in ABOVE[kind]
                assert dtypes.issubdtype(name, target) is expected, (name, target)
                assert dtypes.issubdtype(np.dtype(name).type, target) is expected, (name, target)
            assert dtypes.issubdtype(name, name)
            assert not dtypes.issubdtype(name, "uint16")
            assert not dtypes.issubdtype(name, dtypes.extended)


def test_issubdtype_of_kinds_and_extended_dtypes() -> None:
    assert dtypes.issubdtype(np.floating, np.number)
    assert not dtypes.issubdtype(np.number, np.floating)
    assert not dtypes.issubdtype(np.floating, "float32")
    assert dtypes.issubdtype(KEY, dtypes.prng_key)
    assert dtypes.issubdtype(KEY, dtypes.extended)
    assert dtypes.issubdtype(KEY, KEY)
    assert dtypes.issubdtype(KEY, np.generic)
    assert not dtypes.issubdtype(KEY, np.number)
    assert not dtypes.issubdtype("float32", KEY)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.extended, dtypes.prng_key)
    assert not dtypes.issubdtype(np.floating, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.float0, np.number)


def test_limits() -> None:
    assert float(dtypes.finfo("bfloat16").max) > 3e38
    assert dtypes.finfo("complex64").dtype == np.float32
    assert dtypes.finfo(np.float64).bits == 64
    assert float(dtypes.finfo("float8_e4m3fn").max) == 448
    assert (dtypes.iinfo("int4").min, dtypes.iinfo(np.uint8).max) == (-8, 255)
    for module in (dtypes, jnp):
        for name in ("float16", "bfloat16", "float32", "complex64", "float8_e5m2"):
            assert isinstance(module.finfo(name), module.finfo)
            assert not isinstance(module.finfo(name), module.iinfo)
        for name in ("int4", "int8", "uint64"):
            assert isinstance(module.iinfo(name), module.iinfo)
            assert not isinstance(module.iinfo(name), module.finfo)
    assert isinstance(np.finfo(np.float32), public.finfo)
    assert not isinstance(np.float32(1), dtypes.finfo)
    with pytest.raises(ValueError, match="use iinfo"):
        dtypes.finfo("int32")
    with pytest.raises(ValueError, match="use finfo"):
        dtypes.iinfo("float32")
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.finfo(KEY)


@pytest.mark.parametrize(
    ("name", "bits", "short"),
    [
        ("bool", 8, "bool"),
        ("int4", 4, "i4"),
        ("uint2", 2, "u2"),
        ("int8", 8, "i8"),
        ("uint32", 32, "u32"),
        ("bfloat16", 16, "bf16"),
        ("float16", 16, "f16"),
        ("float32", 32, "f32"),
        ("float8_e4m3fn", 8, "f8_e4m3fn"),
        ("float4_e2m1fn", 4, "f4_e2m1fn"),
        ("complex64", 64, "c64"),
        ("complex128", 128, "c128"),
    ],
)
def test_size_and_short_name(name: str, bits: int, short: str) -> None:
    assert dtypes.itemsize_bits(name) == bits
    assert dtypes.short_name(np.dtype(name)) == short


def test_float0() -> None:
    assert dtypes.float0.itemsize == 0
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert np.zeros(3, dtypes.float0).shape == (3,)
    assert dtypes.dtype_of(np.zeros(3, dtypes.float0)) == dtypes.float0


def test_public_module_gives_the_same_names() -> None:
    for name in public.__all__:
        value = getattr(public, name)
        own = getattr(value, "__wrapped__", value)  # functions are behind boundaries
        assert own is getattr(dtypes, name)


def test_lax_dtype() -> None:
    """Of values, and of what dtypes can be given as."""
    expected = {"float32": (1.0, np.float64(1), np.ones(2), "float32", float, np.float32)}
    expected |= {"int32": (1, np.int64(3), int, "i4"), "bool": (True, bool, np.array([False]))}
    expected |= {"complex64": (1j, complex), "bfloat16": (ml_dtypes.bfloat16, jnp.bfloat16)}
    expected |= {"int8": (jnp.ones(2, "int8"), ShapeDtypeStruct((2,), np.int8))}
    for name, values in expected.items():
        for value in values:
            assert lax.dtype(value) == np.dtype(name), value
    assert lax.dtype(random.key(0)) == lax.dtype(random.key_dtype()) == random.key_dtype()
    with enable_x64(True):
        assert lax.dtype(1.0) == lax.dtype(float) == np.dtype("float64")
    with pytest.warns(UserWarning, match="64-bit types are off"):
        assert lax.dtype("int64") == np.dtype("int32")
    with pytest.raises(ValueError, match="None has no dtype"):
        lax.dtype(None)
    for wrong in ("abc", [1.0], object(), lax.dtype, np.datetime64("2020")):
        with pytest.raises(TypeError, match="dtype"):
            lax.dtype(wrong)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float16", "bool", "complex64"])
@pytest.mark.parametrize("way", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_arrays_with_copies_of_dtypes(dtype: str, way: Any) -> None:
    """NumPy's arrays have copies of its dtypes once they have been pickled."""
    for shape in ((), (3, 5, 7, 2), (2, 3, 5, 7)):
        x = way(np.ones(shape, dtype))
        given = jit(lambda x: x)(x)
        assert given.dtype is np.dtype(dtype)
        found = jit(
            lambda x: lax.scan(
                lambda c, y: (c, jnp.stack([c, y, jnp.zeros_like(y), jnp.ones((), x.dtype)])),
                jnp.zeros((), x.dtype),
                x.reshape(-1),
            )[1]
        )(x)
        np.testing.assert_array_equal(found, np.tile(np.array([0, 1, 0, 1], dtype), (x.size, 1)))
