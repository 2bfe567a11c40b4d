"""Products of vectors, matrices and tensors against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

NUMBERS = [np.random.default_rng(1)]


@pytest.fixture(autouse=True)
def numbers() -> None:
    """Values do not depend on which tests run."""
    NUMBERS[0] = np.random.default_rng(1)


def rand(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    rng = NUMBERS[0]
    if dtype.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 5, size=shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def agree(function: Callable[..., Any], reference: Callable[..., Any], *args: Any) -> None:
    expected = np.asarray(reference(*args))
    for run in (function, dt.jit(function)):
        result = run(*args)
        assert result.shape == expected.shape
        if expected.dtype.name != "float64":
            assert result.dtype == dt.dtypes.canonicalize_dtype(expected.dtype)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4, atol=1e-4)
    if all(np.ndim(a) for a in args):
        mapped = dt.vmap(function)(*(np.stack([a, 2 * a]) for a in args))
        np.testing.assert_allclose(np.asarray(mapped[0]), expected, rtol=1e-4, atol=1e-4)


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (1, 5, 3, 4)),
    ((6, 1, 2, 3), (6, 5, 3, 4)),
    ((1, 1, 2, 3), (1, 3, 4)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((0, 2, 3), (1, 3, 2)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = rand(*left), rand(*right)
    agree(jnp.matmul, np.matmul, x, y)
    np.testing.assert_allclose(
        np.asarray(jnp.asarray(x) @ jnp.asarray(y)), x @ y, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int32", "int8", "uint8", "bool", "complex64"]
)
def test_dtypes(dtype: str) -> None:
    x, y = rand(2, 3, dtype=dtype), rand(3, 2, dtype=dtype)
    for name in ("matmul", "dot"):
        result = getattr(jnp, name)(x, y)
        assert result.dtype.name == dtype
        expected = getattr(np, name)(x, y)
        tolerance = 1e-2 if dtype == "float16" else 1e-4
        np.testing.assert_allclose(
            np.asarray(result).astype(np.complex128),
            expected.astype(np.complex128),
            rtol=tolerance,
            atol=tolerance,
        )
    mixed = jnp.matmul(jnp.ones((2, 2), "int8"), jnp.ones((2, 2), "float32"))
    assert mixed.dtype == jnp.float32
    wide = jnp.matmul(
        jnp.ones((2, 2), "int8"), jnp.ones((2, 2), "int8"), preferred_element_type="int32"
    )
    assert wide.dtype == jnp.int32


DOTS = [
    ((), ()),
    ((), (3,)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((4, 2, 3), (5, 3, 2)),
    ((3,), (5, 3, 2)),
]


@pytest.mark.parametrize(("left", "right"), DOTS)
def test_dot_and_inner(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    agree(jnp.dot, np.dot, rand(*left), rand(*right))
    if left and right:
        swapped = right[:-2] + right[:-3:-1] if len(right) > 1 else right
        agree(jnp.inner, np.inner, rand(*left), rand(*swapped))
    x = rand(*left)
    np.testing.assert_allclose(np.asarray(jnp.asarray(x).dot(2.0)), 2 * x, rtol=1e-6)


def test_other_products() -> None:
    x, y = rand(2, 3, dtype="complex64"), rand(2, 3, dtype="complex64")
    agree(jnp.vdot, np.vdot, x, y)
    agree(jnp.outer, np.outer, rand(2, 3), rand(4))
    agree(jnp.kron, np.kron, rand(2, 3), rand(4))
    agree(jnp.kron, np.kron, rand(2, 3), rand(2, 2, 2))
    for left, right in (((32, 32), (16, 2)), ((3, 5), (70, 90)), ((200,), (2, 100))):
        agree(jnp.kron, np.kron, rand(*left), rand(*right))
    agree(jnp.cross, np.cross, rand(5, 3), rand(3))
    agree(
        lambda a, b: jnp.cross(a, b, axis=0),
        lambda a, b: np.cross(a, b, axis=0),
        rand(3, 5),
        rand(3, 5),
    )
    a, b = rand(4, 2), rand(4, 2)
    expected = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    np.testing.assert_allclose(np.asarray(jnp.cross(a, b)), expected, rtol=1e-5, atol=1e-6)
    c = rand(4, 3)
    padded = np.concatenate([a, np.zeros((4, 1), np.float32)], 1)
    np.testing.assert_allclose(
        np.asarray(jnp.cross(a, c)), np.cross(padded, c), rtol=1e-4, atol=1e-5
    )
    x, y = rand(5, 3, dtype="complex64"), rand(3, dtype="complex64")
    np.testing.assert_allclose(np.asarray(jnp.vecdot(x, y)), (x.conj() * y).sum(-1), rtol=1e-4)
    np.testing.assert_allclose(
        np.asarray(jnp.vecdot(rand(3, 5) * 0 + 1, np.ones((3, 5)), axis=0)), np.full(5, 3.0)
    )


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 2), (1, 0)), ([2], [0]), (-1, 0), ((), ())])
def test_tensordot(axes: Any) -> None:
    x, y = rand(2, 3, 4), rand(4, 3, 5)
    if axes == 2:
        y = rand(3, 4, 5)
    if axes == ((1, 2), (1, 0)) or axes != 2:
        agree(lambda a, b: jnp.tensordot(a, b, axes), lambda a, b: np.tensordot(a, b, axes), x, y)
    else:
        agree(lambda a, b: jnp.tensordot(a, b, axes), lambda a, b: np.tensordot(a, b, axes), x, y)


EINSUMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,kj->ik", [(2, 3), (4, 3)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("ij->ji", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("iii->i", [(3, 3, 3)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl->li", [(2, 3), (3, 4), (4, 5)]),
    ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("abc,cd,d,ae->be", [(2, 3, 4), (4, 5), (5,), (2, 6)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,jk->...ik", [(5, 6, 2, 3), (3, 4)]),
    ("...ij,...jk->...ik", [(1, 2, 3), (5, 3, 4)]),
    ("...,...", [(2, 3), (3,)]),
    ("i...->...i", [(2, 3, 4)]),
    ("...i->...", [(2, 3)]),
    ("ij,jk->k", [(2, 3), (3, 4)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("ij,j", [(2, 3), (3,)]),
    ("ba", [(2, 3)]),
    (",ij", [(), (2, 3)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [rand(*shape) for shape in shapes]
    agree(lambda *xs: jnp.einsum(subscripts, *xs), lambda *xs: np.einsum(subscripts, *xs), *arrays)
    np.testing.assert_allclose(
        np.asarray(jnp.einsum(subscripts, *arrays, optimize=False)),
        np.einsum(subscripts, *arrays),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("names", ["12", "_é", "αβ", "βα", "δ0"])
@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "...ij,jk->...ik", "ij,jk", "ij,kj,j->ki"])
def test_characters_of_subscripts(subscripts: str, names: str) -> None:
    """Any character names a dimension, also one that stands for those of dots."""
    shapes = {"...ij": (2, 3, 4), "ij": (3, 4), "jk": (4, 5), "kj": (5, 4), "j": (4,)}
    arrays = [rand(*shapes[term]) for term in subscripts.split("->")[0].split(",")]
    other = subscripts.translate(str.maketrans("ij", names))
    expected = np.einsum(subscripts, *arrays)
    result = np.asarray(jnp.einsum(other, *arrays))
    if "->" not in subscripts and names[0] > "k":
        result = result.T  # in the order of the characters
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("subscripts", ["i->j->k", "i-i", "i>i", "i-", ">i"])
def test_stray_arrows_are_refused(subscripts: str) -> None:
    with pytest.raises(ValueError, match="no other - or >"):
        jnp.einsum(subscripts, np.ones(3))


@pytest.mark.parametrize(
    ("subscripts", "shapes", "full"),
    [
        ("...ij,i->j", [(2, 3, 4), (3,)], "aij,i->j"),
        ("...i->i", [(2, 5, 3)], "abi->i"),
        ("...->", [(2, 3)], "ab->"),
        ("i...j->ji", [(2, 5, 3)], "iaj->ji"),
        ("i...,...i->i", [(3, 2), (2, 3)], "ia,ai->i"),
        ("...i,...j->ij", [(5, 1, 3), (2, 4)], "abi,bj->ij"),
        ("...ij,...jk,...->ik", [(2, 2, 3), (3, 4), (2,)], "aij,jk,a->ik"),
        ("i...->...", [(2, 3)], "ia->a"),
        ("...ij,i->j", [(0, 3, 4), (3,)], "aij,i->j"),
    ],
)
def test_dots_that_are_summed_over(
    subscripts: str, shapes: list[tuple[int, ...]], full: str
) -> None:
    """Where the result has no dots, their dimensions are summed over."""
    values = [np.arange(np.prod(s), dtype=np.float32).reshape(s) + 1 for s in shapes]
    expected = np.einsum(full, *values)
    for options in ({}, {"optimize": False}):
        np.testing.assert_allclose(jnp.einsum(subscripts, *values, **options), expected, 1e-5)


def test_einsum_multiplies_with_a_given_function() -> None:
    calls = []

    def doubled(x: Any, y: Any, numbers: Any, precision: Any, **options: Any) -> Any:
        calls.append((numbers, precision, options))
        return 2 * dt.lax.dot_general(x, y, numbers, precision, **options)

    x, y, z = rand(2, 3), rand(3, 4), rand(4, 5)
    result = jnp.einsum("ij,jk,kl", x, y, z, precision="highest", _dot_general=doubled)
    np.testing.assert_allclose(np.asarray(result), 4 * (x @ y @ z), rtol=1e-5)
    assert [len(pairs[0]) for (pairs, _), *_ in calls] == [1, 1]
    options = {"preferred_element_type": np.dtype("float32")}
    assert [call[1:] for call in calls] == [("highest", options)] * 2


def test_einsum_details() -> None:
    x, y = rand(2, 3), rand(3, 4)
    np.testing.assert_allclose(np.asarray(jnp.einsum(x, [0, 1], y, [1, 2])), x @ y, rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(jnp.einsum(x, [0, 1], y, [1, 2], [2, 0])), (x @ y).T, rtol=1e-5
    )
    integers = rand(2, 3, dtype="int8"), rand(3, 4, dtype="int8")
    assert jnp.einsum("ij,jk", *integers).dtype == jnp.int8
    assert jnp.einsum("ij,jk", *integers, preferred_element_type="int32").dtype == jnp.int32
    assert jnp.einsum("ij,jk", x, integers[1]).dtype == jnp.float32
    z = rand(2, 3, dtype="complex64")
    np.testing.assert_allclose(
        np.asarray(jnp.einsum("ij,ij->i", z, z)), np.einsum("ij,ij->i", z, z), rtol=1e-4
    )
    path, info = jnp.einsum_path("ij,jk,kl", rand(2, 3), rand(3, 4), rand(4, 5))
    assert len(path) == 2
    assert "FLOP" in str(info)


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,kj->", "ij,jk,kl->il", "ii,ij->j"])
def test_einsum_gradients(subscripts: str) -> None:
    with dt.enable_x64(True):
        arrays = [
            rand(3, 3, dtype="float64") for _ in range(subscripts.split("->")[0].count(",") + 1)
        ]

        def function(*xs: Any) -> Any:
            return (jnp.einsum(subscripts, *xs) ** 2).sum()

        for number, x in enumerate(arrays):
            step = rand(*x.shape, dtype="float64")
            gradient = dt.grad(function, number)(*arrays)
            moved = [[*arrays[:number], x + s * step, *arrays[number + 1 :]] for s in (1e-6, -1e-6)]
            slope = (float(function(*moved[0])) - float(function(*moved[1]))) / 2e-6
            assert float((gradient * step).sum()) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.matmul(np.ones(3), np.ones(4)), TypeError, "matmul.*equal sizes, got 3 and 4"),
        (lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), TypeError, "matmul.*equal sizes"),
        (
            lambda: jnp.matmul(np.ones((2, 2, 3)), np.ones((3, 3, 4))),
            TypeError,
            "matmul.*broadcast",
        ),
        (lambda: jnp.matmul(2.0, np.ones(3)), ValueError, "operand 0 is a scalar"),
        (lambda: jnp.ones(3) @ 1.0, ValueError, "operand 1 is a scalar"),
        (lambda: jnp.dot(np.ones((2, 3)), np.ones((2, 3))), TypeError, "dot.*equal sizes"),
        (lambda: jnp.inner(np.ones(3), np.ones(4)), TypeError, "inner.*equal sizes"),
        (lambda: jnp.vdot(np.ones(3), np.ones(4)), TypeError, "vdot.*equally many"),
        (lambda: jnp.dot([1, 2], np.ones(2)), TypeError, "dot.*a.*list"),
        (lambda: jnp.tensordot(np.ones(3), np.ones(4), 1), TypeError, "tensordot.*equal sizes"),
        (lambda: jnp.tensordot(np.ones(3), np.ones(4), 2), ValueError, "axes=2"),
        (
            lambda: jnp.tensordot(np.ones((3, 3)), np.ones(3), ((0, 1), (0,))),
            ValueError,
            "equally many",
        ),
        (lambda: jnp.matvec(np.ones(3), np.ones(3)), ValueError, "matvec needs matrices as x1"),
        (lambda: jnp.vecmat(np.ones(3), np.ones(3)), ValueError, "vecmat needs matrices as x2"),
        (lambda: jnp.cross(np.ones(4), np.ones(4)), ValueError, "2 or 3 components"),
        (
            lambda: jnp.einsum("ij,jk", np.ones((2, 3)), np.ones((4, 5))),
            ValueError,
            "'j' has the sizes 3 and 4",
        ),
        (lambda: jnp.einsum("ij", np.ones(3)), ValueError, "'ij' does not fit operand 0"),
        (lambda: jnp.einsum("ij,j", np.ones((3, 3))), ValueError, "2 terms"),
        (lambda: jnp.einsum("i->j", np.ones(3)), ValueError, "names j"),
        (lambda: jnp.einsum("i->ii", np.ones(3)), ValueError, "twice"),
        (lambda: jnp.einsum("....i->i", np.ones((2, 3))), ValueError, "no other dots"),
        (lambda: jnp.einsum("...i...", np.ones((2, 3))), ValueError, "no other dots"),
        (lambda: jnp.matmul(np.ones(2), np.ones(2), precision="foo"), ValueError, "precision|foo"),
        (lambda: jnp.tensordot(np.ones(3), np.ones(3), "ab"), TypeError, "tensordot.*axes.*str"),
        (lambda: jnp.tensordot(np.ones(3), np.ones(3), 1.5), TypeError, "tensordot.*axes.*float"),
        (lambda: jnp.cross(np.ones(3, bool), np.ones(3, bool)), TypeError, "cross.*bool"),
        (lambda: jnp.linalg.multi_dot([]), ValueError, "multi_dot.*two arrays"),
        (lambda: jnp.einsum(np.ones(2), [0.5]), TypeError, "einsum.*subscript.*float"),
        (lambda: jnp.einsum(None, np.ones(2)), TypeError, "einsum.*'ij,jk->ik'|einsum.*subscript"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
