"""Convolutions by the native kernel: every layout, stride, dilation and group, and gradients.

Operands are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail_cpu import kernels
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings import convolution_kernel

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

NDArray = np.ndarray[tuple[int, ...], np.dtype[Any]]

CALL: Final = "dovetail_convolve"


class Case(NamedTuple):
    """Sizes of a convolution; features are those of one group."""

    batch: int
    inputs: int
    outputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...] | int = 1
    padding: tuple[tuple[int, int], ...] | tuple[int, int] = (0, 0)
    lhs_dilation: tuple[int, ...] | int = 1
    rhs_dilation: tuple[int, ...] | int = 1
    feature_groups: int = 1
    batch_groups: int = 1


CASES: Final = {
    "3x3": Case(2, 5, 40, (9, 17), (3, 3), padding=(1, 1)),
    "a vector of features": Case(2, 3, 16, (20, 30), (3, 3)),
    "few features": Case(3, 3, 3, (21, 33), (3, 3), padding=(1, 1)),
    "one feature": Case(1, 1, 1, (40, 50), (5, 5), padding=(2, 2)),
    "many input features": Case(1, 256, 33, (4, 5), (3, 3), padding=(1, 1)),
    "1x1": Case(2, 33, 32, (8, 9), (1, 1)),
    "1x1 in strides": Case(2, 8, 48, (15, 16), (1, 1), strides=2),
    "stem": Case(1, 3, 64, (32, 31), (7, 7), strides=2, padding=(3, 3)),
    "strides without common measure": Case(2, 4, 7, (20, 30), (3, 4), strides=(2, 3)),
    "dilated": Case(2, 4, 20, (15, 16), (3, 3), padding=(2, 2), rhs_dilation=2),
    "dilated in strides": Case(2, 3, 5, (25, 26), (3, 3), strides=2, rhs_dilation=(3, 2)),
    "transposed": Case(2, 6, 32, (8, 7), (4, 4), padding=(2, 2), lhs_dilation=2),
    "transposed by single places": Case(1, 5, 18, (8, 7), (2, 2), (1, 1), (0, 0), 3),
    "transposed with holes": Case(1, 9, 18, (8, 7), (2, 2), (1, 1), (4, 5), 4),
    "transposed in strides": Case(1, 4, 9, (9, 11), (5, 3), (3, 2), (3, 2), (2, 3), (1, 2)),
    "dilated all over": Case(1, 4, 4, (14, 13), (3, 3), 2, (3, 4), 4, 6),
    "cropped": Case(2, 4, 24, (14, 15), (3, 3), padding=(-2, -1)),
    "cropped and padded": Case(2, 4, 4, (14, 15), (3, 3), padding=((-3, 2), (4, -2))),
    "beyond the input": Case(1, 4, 24, (5, 6), (3, 3), padding=((9, 1), (1, 9))),
    "groups": Case(2, 4, 4, (9, 17), (3, 3), padding=(1, 1), feature_groups=8),
    "depthwise": Case(2, 1, 1, (9, 17), (3, 3), padding=(1, 1), feature_groups=75),
    "depthwise in strides": Case(2, 1, 1, (19, 17), (3, 3), 2, (1, 1), feature_groups=64),
    "depthwise, several outputs": Case(2, 1, 3, (12, 13), (3, 3), 1, (1, 1), feature_groups=30),
    "depthwise, several inputs": Case(2, 3, 1, (12, 13), (3, 3), 1, (1, 1), feature_groups=30),
    "depthwise, uneven edges": Case(2, 1, 1, (7, 41), (3, 3), 1, ((1, 2), (3, 0)), 1, 1, 48),
    "depthwise, dilated": Case(1, 1, 1, (9, 33), (2, 3), 2, ((2, 1), (3, 4)), 1, (1, 2), 32),
    "depthwise 5x5": Case(1, 1, 1, (9, 33), (5, 5), padding=(2, 2), feature_groups=64),
    "depthwise, transposed": Case(1, 1, 1, (9, 10), (3, 3), 1, (2, 2), 2, feature_groups=32),
    "depthwise beyond the input": Case(1, 1, 1, (2, 2), (3, 3), 1, (4, 5), feature_groups=32),
    "depthwise of volumes": Case(1, 1, 1, (4, 5, 9), (3, 2, 3), 1, (1, 1), feature_groups=32),
    "two by two": Case(1, 2, 2, (12, 13), (5, 5), 1, (2, 2), 1, 2, feature_groups=20),
    "line": Case(2, 8, 24, (300,), (5,), padding=(2, 2)),
    "line of one feature": Case(3, 1, 8, (500,), (15,), padding=(7, 7)),
    "long kernel": Case(2, 1, 1, (300,), (100,), padding=(99, 99)),
    "long kernel of rows": Case(2, 1, 1, (7, 600), (1, 70), (2, 1), ((1, 0), (3, 90))),
    "long kernels of groups": Case(2, 1, 1, (1500,), (64,), padding=(-2, 5), feature_groups=3),
    "long kernel, transposed": Case(1, 1, 1, (300,), (190,), 1, (0, 0), 2),
    "three dimensions": Case(1, 4, 17, (5, 6, 7), (3, 2, 3), (1, 2, 1), (1, 1), 1, (2, 1, 1)),
    "three dimensions, transposed": Case(1, 4, 17, (5, 4, 3), (3, 2, 3), 1, (1, 2), (2, 1, 2)),
    "three dimensions in strides": Case(2, 4, 17, (9, 6, 7), (4, 2, 3), (2, 1, 1), (2, 1)),
    "three dimensions, dilated": Case(1, 3, 17, (12, 5, 6), (3, 2, 3), 1, (1, 2), 1, (2, 1, 1)),
    "dilated depth in strides": Case(1, 3, 9, (25, 5, 6), (3, 2, 3), (2, 1, 1), (1, 2), 1, 3),
    "column": Case(1, 4, 40, (60, 1), (3, 1), padding=((1, 1), (0, 0))),
    "kernel as large as the input": Case(19, 3, 40, (8, 9), (7, 9)),
    "one result": Case(5, 4, 3, (20, 20), (20, 20)),
    "few results in strides": Case(7, 4, 33, (20, 20), (12, 12), strides=(4, 3)),
    "gradient of a depthwise kernel": Case(1, 4, 1, (18, 18), (16, 16), feature_groups=33),
    "few results of several outputs": Case(1, 4, 3, (18, 18), (16, 16), feature_groups=23),
    "few results of groups": Case(3, 4, 8, (12, 12), (10, 11), feature_groups=5),
    "groups of examples": Case(6, 3, 4, (12, 13), (10, 11), batch_groups=3),
    "groups of many examples": Case(40, 3, 1, (12, 13), (3, 3), batch_groups=40),
    "rows that fill vectors": Case(2, 3, 18, (5, 64), (3, 3), padding=(1, 1)),
    "large kernel": Case(2, 96, 104, (9, 10), (3, 3), padding=(1, 1)),
    "large kernel, transposed": Case(1, 96, 104, (5, 6), (3, 3), 1, (2, 2), 2),
    "transposed by more than the kernel": Case(1, 5, 72, (8, 7), (2, 3), 1, (1, 2), (3, 2)),
    "many rows": Case(1, 16, 32, (130, 40), (3, 3), padding=(1, 1)),
}
LAYOUTS: Final = ("features first", "features last", "mixed")


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Kernels are called for few products, too, but for the test of that."""
    if request.function is not test_few_products_call_no_kernel:
        monkeypatch.setattr(convolution_kernel, "MANY", 1)
        monkeypatch.setattr(convolution_kernel, "MANY_OF_A_TASK", 1)
        monkeypatch.setattr(convolution_kernel, "FEW", 0)


def expanded(value: Any, rank: int) -> Any:
    return (value,) * rank if isinstance(value, int) else value


def pads(case: Case) -> list[tuple[int, int]]:
    first = case.padding[0]
    if isinstance(first, int):
        return [case.padding] * len(case.sizes)  # type: ignore[list-item]
    return list(case.padding)  # type: ignore[arg-type]


def layout(name: str, rank: int) -> tuple[str, str, str]:
    """Letters of the dimensions of the input, the kernel and the result."""
    spatial = "DHW"[3 - rank :]
    if name == "features first":
        return "NC" + spatial, "OI" + spatial, "NC" + spatial
    if name == "features last":
        return "N" + spatial + "C", spatial + "IO", "N" + spatial + "C"
    return spatial[::-1] + "CN", "I" + spatial + "O", "C" + spatial + "N"


def reference(x: NDArray, w: NDArray, case: Case) -> NDArray:
    """The sum of products, place by place: x is (N, C, ...), w is (O, I, ...)."""
    rank = len(case.sizes)
    strides, dilation = expanded(case.strides, rank), expanded(case.rhs_dilation, rank)
    spread = expanded(case.lhs_dilation, rank)
    wide = np.zeros(
        (*x.shape[:2], *[(s - 1) * d + 1 for s, d in zip(case.sizes, spread, strict=True)])
    )
    wide[(..., *[slice(None, None, d) for d in spread])] = x
    low = [(max(a, 0), max(b, 0)) for a, b in pads(case)]
    wide = np.pad(wide, [(0, 0), (0, 0), *low])
    cut = [
        slice(max(-a, 0), n - max(-b, 0))
        for (a, b), n in zip(pads(case), wide.shape[2:], strict=True)
    ]
    wide = wide[(..., *cut)]
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(wide.shape[2:], case.kernel, dilation, strides, strict=True)
    ]
    groups = case.feature_groups * case.batch_groups
    if case.batch_groups > 1:
        wide = wide.reshape(groups, -1, *wide.shape[1:])
    else:
        split = wide.reshape(wide.shape[0], groups, -1, *wide.shape[2:])
        wide = np.moveaxis(split, 1, 0)
    taps = w.reshape(groups, -1, *w.shape[1:])
    total = np.zeros((groups, wide.shape[1], taps.shape[1], *counts))
    for place in product(*map(range, case.kernel)):
        seen = [
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilation, counts, strides, strict=True)
        ]
        total += np.einsum("gni...,goi->gno...", wide[(..., *seen)], taps[(..., *place)])
    return np.moveaxis(total, 0, 1).reshape(wide.shape[1], -1, *counts)


def operands(case: Case) -> tuple[NDArray, NDArray]:
    groups = case.feature_groups * case.batch_groups
    generator = np.random.default_rng(len(str(case)))
    x_shape = (case.batch, case.inputs * case.feature_groups, *case.sizes)
    w_shape = (case.outputs * groups, case.inputs, *case.kernel)
    x, w = generator.integers(-3, 4, x_shape), generator.integers(-3, 4, w_shape)
    return x.astype(np.float32), w.astype(np.float32)


def ordered(array: NDArray, letters: str, order: str) -> NDArray:
    return np.ascontiguousarray(array.transpose([letters.index(letter) for letter in order]))


def convolution(
    case: Case, spec: tuple[str, str, str], out: str | None = None
) -> Callable[[Any, Any], Any]:
    rank = len(case.sizes)
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        expanded(case.strides, rank),
        pads(case),
        expanded(case.lhs_dilation, rank),
        expanded(case.rhs_dilation, rank),
        spec,
        case.feature_groups,
        case.batch_groups,
        preferred_element_type=out,
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", LAYOUTS)
def test_sums_of_products(name: str, order: str) -> None:
    case = CASES[name]
    plain, spec = layout("features first", len(case.sizes)), layout(order, len(case.sizes))
    x, w = operands(case)
    want = ordered(reference(x, w, case), plain[2], spec[2])
    f = dt.jit(convolution(case, spec))
    x, w = ordered(x, plain[0], spec[0]), ordered(w, plain[1], spec[1])
    calls = CALL in f.lower(x, w).as_text()
    assert calls
    np.testing.assert_array_equal(f(x, w), want)


@pytest.mark.parametrize(
    "name",
    ["3x3", "stem", "transposed", "depthwise", "depthwise, several outputs", "groups", "line"],
)
@pytest.mark.parametrize("order", LAYOUTS)
def test_gradients(name: str, order: str) -> None:
    case = CASES[name]
    plain, spec = layout("features first", len(case.sizes)), layout(order, len(case.sizes))
    x, w = operands(case)
    y = reference(x, w, case)
    dy = np.random.default_rng(0).integers(-3, 4, y.shape).astype(np.float32)

    @dt.jit
    def gradients(x: Any, w: Any, dy: Any) -> Any:
        return dt.vjp(convolution(case, spec), x, w)[1](dy)

    given = [
        ordered(array, before, after)
        for array, before, after in zip((x, w, dy), plain, spec, strict=True)
    ]
    # The kernel is read backwards, and not reversed.
    assert gradients.lower(*given).as_text().count("stablehlo.custom_call") == 2
    dx, dw = gradients(*given)
    # The result is linear in each operand, so the products with any one of these agree.
    other_x, other_w = np.roll(x, 1), np.roll(w, 1)
    along_x, along_w = reference(other_x, w, case), reference(x, other_w, case)
    assert np.vdot(dx, ordered(other_x, plain[0], spec[0])) == np.vdot(dy, along_x)
    assert np.vdot(dw, ordered(other_w, plain[1], spec[1])) == np.vdot(dy, along_w)


@pytest.mark.parametrize(
    "name", ["float64", "bfloat16", "float16", "int8", "uint16", "int32", "uint32", "int64"]
)
@pytest.mark.parametrize("case", ["3x3", "few features", "depthwise", "one result"])
def test_other_dtypes(name: str, case: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    x, w = operands(CASES[case])
    want = reference(x, w, CASES[case])
    whole = np.int64 if dtype.kind in "iu" else np.float32
    x, w = (array.astype(whole).astype(dtype) for array in (x, w))
    with dt.enable_x64(True):
        f = dt.jit(convolution(CASES[case], layout("features first", 2)))
        assert CALL in f.lower(x, w).as_text()
        y = f(x, w)
    assert y.dtype == dtype
    np.testing.assert_array_equal(np.asarray(y), want.astype(whole).astype(dtype))


@pytest.fixture(params=["tiles", "vectors"])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of the processor, if it has them; or what takes their place on others."""
    use = kernels.prepare().dovetail_use_tiles
    if not use(request.param == "tiles") and request.param == "tiles":
        pytest.skip("the processor has no tiles")
    monkeypatch.setattr(kernels, "have_tiles", lambda: True)
    for name in ("MANY_IN_TILES", "FEATURES_IN_TILES", "POSITIONS_IN_TILES"):
        monkeypatch.setattr(convolution_kernel, name, 1)
    yield
    use(1)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("name", [*CASES, "several steps", "several panels"])
def test_narrow_numbers_in_tiles(name: str) -> None:
    """Sums are exact, and rounded once."""
    more = {
        "several steps": Case(2, 150, 35, (9, 11), (3, 3), padding=(1, 1)),
        "several panels": Case(1, 33, 100, (9, 40), (1, 3), 2, (1, 1)),
    }
    case = {**CASES, **more}[name]
    x, w = operands(case)
    exact = reference(x, w, case)
    plain = layout("features first", len(case.sizes))
    dtypes = [
        ("bfloat16", "bfloat16"),
        ("bfloat16", "float32"),
        ("int8", "int32"),
        ("uint8", "uint8"),
    ]

    def convolutions(given: Any) -> Any:
        return [
            convolution(case, layout(order, len(case.sizes)), out)(*pair)
            for order, pairs in zip(LAYOUTS, given, strict=True)
            for (_, out), pair in zip(dtypes, pairs, strict=True)
        ]

    given = []
    for order in LAYOUTS:
        spec = layout(order, len(case.sizes))
        given.append(
            [
                [
                    ordered(array, *letters).astype(np.int64).astype(np.dtype(dtype))
                    for array, letters in ((x, (plain[0], spec[0])), (w, (plain[1], spec[1])))
                ]
                for dtype, _ in dtypes
            ]
        )
    f = dt.jit(convolutions)
    fits = expanded(case.lhs_dilation, len(case.sizes)) == (1,) * len(case.sizes)
    fits = fits and np.prod(exact.shape[2:]) >= np.prod(case.kernel)
    assert f.lower(given).as_text().count("@dovetail_convolve_narrow") == (12 if fits else 0)
    found = iter(f(given))
    for order in LAYOUTS:
        want = ordered(exact, plain[2], layout(order, len(case.sizes))[2])
        for _, out in dtypes:
            y = np.asarray(next(found))
            assert y.dtype == out
            whole = np.int64 if "int" in out else np.float32
            np.testing.assert_array_equal(y, want.astype(whole).astype(np.dtype(out)))


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("name", ["3x3", "a vector of features", "groups", "stem", "line"])
@pytest.mark.parametrize("order", LAYOUTS)
def test_gradients_of_narrow_numbers(name: str, order: str) -> None:
    """Sums are exact, so that they are those of float32, rounded."""
    case = CASES[name]
    plain, spec = layout("features first", len(case.sizes)), layout(order, len(case.sizes))
    x, w = operands(case)
    dy = np.random.default_rng(0).integers(-3, 4, reference(x, w, case).shape).astype(np.float32)
    given = [
        ordered(array, before, after)
        for array, before, after in zip((x, w, dy), plain, spec, strict=True)
    ]
    f = convolution(case, spec)

    def gradients(x: Any, w: Any, dy: Any) -> Any:
        return dt.vjp(f, x, w)[1](dy)

    want = dt.jit(gradients)(*given)
    found = dt.jit(gradients)(*[array.astype(ml_dtypes.bfloat16) for array in given])
    for gradient, exact in zip(found, want, strict=True):
        rounded = np.asarray(exact).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(np.asarray(gradient), rounded)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("case", ["3x3", "stem", "a vector of features"])
def test_nan_in_tiles_reaches_what_it_is_multiplied_for(case: str) -> None:
    x, w = operands(CASES[case])
    x[0, 0, 3, 4], x[0, 0, 5, 5] = np.nan, np.inf
    x, w = x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    f = dt.jit(convolution(CASES[case], layout("features first", 2), "float32"))
    assert "dovetail_convolve_narrow" in f.lower(x, w).as_text()
    with dt.cpu_kernels(False):
        want = dt.jit(convolution(CASES[case], layout("features first", 2), "float32"))(x, w)
    np.testing.assert_array_equal(f(x, w), want)


@pytest.mark.parametrize(
    "case", ["3x3", "few features", "depthwise", "one result", "long kernel of rows"]
)
def test_nan_and_infinities_reach_what_they_are_multiplied_for(case: str) -> None:
    x, w = operands(CASES[case])
    x[0, 0, 3, 4], x[0, 0, 5, 5] = np.nan, np.inf
    f = convolution(CASES[case], layout("features first", 2))
    with dt.cpu_kernels(False):
        want = dt.jit(lambda x, w: f(x, w))(x, w)
    np.testing.assert_array_equal(dt.jit(f)(x, w), want)


def test_batches_and_loops() -> None:
    case = CASES["3x3"]
    f = convolution(case, layout("features first", 2))
    x, w = operands(case)
    many = np.stack([x, x + 1, 2 * x])
    want = np.stack([reference(each, w, case) for each in many])
    np.testing.assert_array_equal(dt.jit(dt.vmap(f, (0, None)))(many, w), want)
    np.testing.assert_array_equal(dt.jit(lambda x: lax.map(lambda x: f(x, w), x))(many), want)


def test_few_products_call_no_kernel() -> None:
    f = dt.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"))
    small = np.ones((1, 2, 8, 8), np.float32), np.ones((2, 2, 3, 3), np.float32)
    assert CALL not in f.lower(*small).as_text()
