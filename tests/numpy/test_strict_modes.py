"""Options that make promotion and precision explicit, and what explains dtypes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
import dovetail.scipy.sparse.linalg
from dovetail import image, lax, nn, random, scipy
from dovetail.dtypes import TypePromotionError
from dovetail.experimental.ode import odeint
from dovetail.scipy.spatial.transform import Rotation

INTS = jnp.arange(1, 4)
FLOATS = jnp.arange(1.0, 4.0)
MATRIX = jnp.ones((3, 3))

#: Functions of two arrays that promote dtypes and ranks.
ELEMENTWISE = (  # noqa: SIM905 - words read better than a list
    "add subtract multiply divide floor_divide remainder divmod power float_power maximum minimum "
    "fmax fmin arctan2 hypot logaddexp logaddexp2 copysign nextafter heaviside fmod equal "
    "not_equal less less_equal greater greater_equal isclose allclose"
).split()
#: Functions of two arrays that promote dtypes; their ranks are part of what they do.
OTHERS = "array_equiv dot matmul inner outer kron cross vecdot append searchsorted isin".split()  # noqa: SIM905
MIXED: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(jnp, name) for name in ELEMENTWISE + OTHERS},
    "where": lambda x, y: jnp.where(True, x, y),
    "select": lambda x, y: jnp.select([x > 1], [x], y),
    "clip": lambda x, y: jnp.clip(x, y),
    "concatenate": lambda x, y: jnp.concatenate([x, y]),
    "stack": lambda x, y: jnp.stack([x, y]),
    "linspace": jnp.linspace,
    "einsum": lambda x, y: jnp.einsum("i,i", x, y),
    "tensordot": lambda x, y: jnp.tensordot(x, y, 1),
    "operator": lambda x, y: x + y,
    "reflected": lambda x, y: np.ones(3, x.dtype) - y,
    "comparison": lambda x, y: x < y,
}
RANKS = [*ELEMENTWISE, "where", "select", "clip", "operator", "comparison"]


@contextmanager
def everywhere(option: str, value: Any) -> Iterator[None]:
    """A global setting, undone at the end."""
    before = getattr(dt.config, option)
    dt.config.update(option, value)
    try:
        yield
    finally:
        dt.config.update(option, before)


def scoped(option: str, value: Any) -> Any:
    return getattr(dt, option)(value)


SETTINGS = pytest.mark.parametrize("setting", [scoped, everywhere])


@pytest.mark.parametrize("name", MIXED)
def test_strict_promotion_refuses_other_dtypes(name: str) -> None:
    function = MIXED[name]
    dt.eval_shape(function, INTS, FLOATS)
    with dt.numpy_dtype_promotion("strict"):
        for call in (function, dt.jit(function)):
            with pytest.raises(TypePromotionError, match='numpy_dtype_promotion is "strict"'):
                call(INTS, FLOATS)
        dt.eval_shape(function, FLOATS, FLOATS)
        dt.eval_shape(function, INTS, INTS)


#: Functions that compute in other dtypes than those of their arguments.
OF_ONE_DTYPE: dict[str, Callable[[Any], Any]] = {
    "wofz": scipy.special.wofz,
    "csd": lambda x: scipy.signal.csd(x, x),
    "welch": scipy.signal.welch,
    "stft": lambda x: scipy.signal.stft(x, nperseg=4),
    "istft": lambda x: scipy.signal.istft(scipy.signal.stft(x, nperseg=4)[2], nperseg=4),
    "fftfreq": lambda x: jnp.fft.fftfreq(8, dtype=x.dtype),
    "roots": lambda x: jnp.roots(x, strip_zeros=False),
    "roots of a constant": lambda x: jnp.roots(x[:1], strip_zeros=False),
    "dot_product_attention": lambda x: nn.dot_product_attention(
        *3 * [jnp.broadcast_to(x, (1, 4, 2, 8))], is_causal=True
    ),
    "minimize": lambda x: scipy.optimize.minimize(lambda x: (x * x).sum(), x, method="bfgs"),
    **{
        name: lambda x, name=name: getattr(scipy.sparse.linalg, name)(lambda x: 2 * x, x)
        for name in ("cg", "bicgstab", "gmres")
    },
    "Rotation.as_rotvec": lambda x: Rotation.from_quat(x[:4]).as_rotvec(),
    "Rotation.mean": lambda x: Rotation.from_quat(x.reshape(2, 4)).mean().as_quat(),
    "Rotation.apply": lambda x: Rotation.from_quat(x[:4]).apply(x[:3]),
    "resize": lambda x: image.resize(x, (16,), "linear"),
    "map_coordinates": lambda x: scipy.ndimage.map_coordinates(x, [x], 1),
    "vq": lambda x: scipy.cluster.vq.vq(x[:, None], x[:, None]),
    "odeint": lambda x: odeint(lambda y, t: -y, x[:2], x),
    **{
        f"random.{name}": lambda x, name=name, of=of: getattr(random, name)(random.key(0), *of(x))
        for name, of in {
            "normal": lambda x: (x.shape, x.dtype),
            "gamma": lambda x: (x,),
            "beta": lambda x: (x, x),
            "poisson": lambda x: (x,),
            "binomial": lambda x: (x, x),
            "multinomial": lambda x: (x[0], x),
            "dirichlet": lambda x: (x,),
            "categorical": lambda x: (x,),
            "truncated_normal": lambda x: (-x, x),
            "multivariate_normal": lambda x: (x, jnp.diag(x)),
            "orthogonal": lambda x: (3, (), x.dtype),
        }.items()
    },
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", OF_ONE_DTYPE)
def test_strict_promotion_is_no_matter_inside(name: str, dtype: str) -> None:
    """What the user gave has one dtype; which others a function takes for its work is its own."""
    x = jnp.linspace(0.1, 0.9, 8, dtype=dtype)
    want = dt.eval_shape(OF_ONE_DTYPE[name], x)
    with dt.numpy_dtype_promotion("strict"):
        assert dt.eval_shape(OF_ONE_DTYPE[name], x) == want


@pytest.mark.parametrize("name", RANKS)
def test_rank_promotion(name: str) -> None:
    function = MIXED[name]
    dt.eval_shape(function, FLOATS, MATRIX)
    message = "arrays of different ranks were combined, with shapes"
    with dt.numpy_rank_promotion("raise"):
        for call in (function, dt.jit(function)):
            with pytest.raises(ValueError, match=message):
                call(FLOATS, MATRIX)
        dt.eval_shape(function, FLOATS[None], MATRIX)
        dt.eval_shape(function, FLOATS, jnp.array(2.0))
    with dt.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match=message):
        dt.eval_shape(function, FLOATS, MATRIX)


@SETTINGS
def test_programs_that_are_remembered_know_the_setting(setting: Any) -> None:
    assert (INTS + FLOATS).dtype == jnp.float32
    assert (FLOATS + MATRIX).shape == (3, 3)
    program = dt.jit(lambda x, y: x * y)
    assert program(INTS, FLOATS).dtype == jnp.float32
    with setting("numpy_dtype_promotion", "strict"):
        for call in (lambda: INTS + FLOATS, lambda: program(INTS, FLOATS)):
            with pytest.raises(TypePromotionError):
                call()
        with dt.numpy_dtype_promotion("standard"):
            assert (INTS + FLOATS).dtype == jnp.float32
        assert (FLOATS + 1).dtype == (1.5 * FLOATS).dtype == jnp.float32
        assert jnp.result_type(INTS, 1) == jnp.int32
    with setting("numpy_rank_promotion", "raise"):
        for call in (lambda: FLOATS + MATRIX, lambda: program(FLOATS, MATRIX)):
            with pytest.raises(ValueError, match="different ranks"):
                call()
        assert jnp.broadcast_to(FLOATS, (3, 3)).shape == (3, 3)
    assert (INTS + FLOATS).dtype == jnp.float32
    assert (FLOATS + MATRIX).shape == (3, 3)


@pytest.mark.parametrize("dtype", ["bfloat16", "int32"])
def test_functions_promote_nothing_of_their_own(dtype: str) -> None:
    """What takes arrays of one dtype and rank takes them in strict modes, too."""
    matrix = jnp.ones((3, 3), dtype)
    arguments = ((matrix,), (matrix, matrix), (matrix[0],), (matrix[0], matrix[0]))

    def works(function: Any, args: Any) -> bool:
        try:
            dt.eval_shape(function, *args)
        except Exception:
            return False
        return True

    wrong = set()
    for module in (jnp, jnp.linalg, jnp.fft, lax.linalg, nn):
        for name in module.__all__:
            function = getattr(module, name)
            if not callable(function) or inspect.isclass(function) or inspect.ismodule(function):
                continue
            for args in arguments:
                if works(function, args):
                    with dt.numpy_dtype_promotion("strict"), dt.numpy_rank_promotion("raise"):
                        if not works(function, args):
                            wrong.add(name)
    assert not wrong


HALF = jnp.ones(3, "float16")
BRAIN = jnp.ones(3, "bfloat16")
WIDE: Any = {"preferred_element_type": "float32"}
#: Calls whose operands differ in what the user wrote, asked for, or left to the function.
OWN_DTYPES: dict[str, Callable[[], Any]] = {
    "mgrid": lambda: jnp.mgrid[0:2, 0:1:3j],
    "ogrid": lambda: jnp.ogrid[0:2, 0:1:3j],
    "lax.dot": lambda: lax.dot(HALF, BRAIN, **WIDE),
    "lax.dot alone": lambda: lax.dot(HALF, BRAIN),
    "lax.dot_general": lambda: lax.dot_general(HALF, INTS, (((0,), (0,)), ((), ())), **WIDE),
    "lax.batch_matmul": lambda: lax.batch_matmul(HALF[None, None], BRAIN[None, :, None]),
    "lax.ragged_dot": lambda: lax.ragged_dot(
        HALF[None], BRAIN[None, :, None], jnp.array([1]), **WIDE
    ),
    "matmul": lambda: jnp.matmul(HALF, BRAIN, **WIDE),
    "dot": lambda: jnp.dot(HALF, BRAIN, **WIDE),
    "vdot": lambda: jnp.vdot(HALF, BRAIN, **WIDE),
    "inner": lambda: jnp.inner(HALF, BRAIN, **WIDE),
    "vecdot": lambda: jnp.vecdot(HALF, BRAIN, **WIDE),
    "tensordot": lambda: jnp.tensordot(HALF, BRAIN, 1, **WIDE),
    "einsum": lambda: jnp.einsum("i,i", HALF, BRAIN, **WIDE),
    "linspace": lambda: jnp.linspace(0, 1, 3, dtype="bfloat16"),
    "geomspace": lambda: jnp.geomspace(1, 2, 3, dtype="bfloat16"),
    "logspace": lambda: jnp.logspace(1, 2, 3, dtype="bfloat16"),
    "var": lambda: jnp.var(BRAIN, dtype="float32"),
    "std": lambda: jnp.std(BRAIN, dtype="float32"),
    "nanvar": lambda: jnp.nanvar(BRAIN, dtype="float32"),
    "nanstd": lambda: jnp.nanstd(BRAIN, dtype="float32"),
    "mean": lambda: jnp.mean(INTS, dtype="float32"),
    "histogram": lambda: jnp.histogram(BRAIN, weights=BRAIN),
    "full_like": lambda: jnp.full_like(BRAIN, 2, "int32"),
    "pad": lambda: jnp.pad(BRAIN, 1, constant_values=2),
}


@pytest.mark.parametrize("name", OWN_DTYPES)
def test_what_is_no_promotion(name: str) -> None:
    """Dtypes that were asked for, and those that a function chooses, are not promoted."""
    expected = dt.tree.map(lambda x: (x.shape, x.dtype), dt.eval_shape(OWN_DTYPES[name]))
    with dt.numpy_dtype_promotion("strict"):
        found = dt.tree.map(lambda x: (x.shape, x.dtype), dt.eval_shape(OWN_DTYPES[name]))
    assert found == expected


BY_DOCUMENTATION = (  # noqa: SIM905 - words read better than a list
    "sum prod mean var std any all nansum nanprod nanmean nanvar nanstd"
).split()


@pytest.mark.parametrize("name", BY_DOCUMENTATION)
def test_masks_broadcast(name: str) -> None:
    """An argument that broadcasts by its documentation does so whatever its rank is."""
    function = getattr(jnp, name)
    with dt.numpy_rank_promotion("raise"):
        dt.eval_shape(lambda x: function(x, where=FLOATS > 1), MATRIX)


def test_other_arguments_that_broadcast() -> None:
    mask = FLOATS > 1
    with dt.numpy_rank_promotion("raise"):
        for call in (
            lambda: jnp.max(MATRIX, where=mask, initial=0),
            lambda: jnp.nanmin(MATRIX, where=mask, initial=0),
            lambda: jnp.where(mask, MATRIX, 0),
            lambda: jnp.add.reduce(MATRIX, where=mask),
            lambda: nn.softmax(MATRIX, where=mask),
            lambda: nn.log_softmax(MATRIX, where=mask),
            lambda: nn.logsumexp(MATRIX, where=mask),
            lambda: nn.standardize(MATRIX, where=mask),
            lambda: jnp.array_equiv(MATRIX, FLOATS),
            lambda: jnp.broadcast_arrays(MATRIX, FLOATS),
            lambda: jnp.full((3, 3), FLOATS),
            lambda: MATRIX.at[0].set(1.0),
        ):
            dt.eval_shape(call)


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, y: x @ y,
    **{name: getattr(jnp, name) for name in ("matmul", "dot", "inner", "vdot", "vecdot")},
    "tensordot": jnp.tensordot,
    "einsum": lambda x, y: jnp.einsum("ij,jk", x, y),
    "matvec": lambda x, y: jnp.matvec(x, y[0]),
    "vecmat": lambda x, y: jnp.vecmat(x[0], y),
    "convolve": lambda x, y: jnp.convolve(x[0], y[0]),
    "correlate": lambda x, y: jnp.correlate(x[0], y[0]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_precision_of_products(name: str) -> None:
    function = PRODUCTS[name]
    shown = lambda: str(dt.make_jaxpr(function)(MATRIX, MATRIX))
    assert "HIGH" not in shown()
    with dt.default_matmul_precision("highest"):
        assert "Precision.HIGHEST, Precision.HIGHEST" in shown()
        with dt.default_matmul_precision("high"):
            assert "Precision.HIGH, Precision.HIGH" in shown()
        if name not in ("convolve", "correlate"):  # algorithms are those of dot_general
            with dt.default_matmul_precision("BF16_BF16_F32"):
                assert "BF16_BF16_F32" in shown()


@SETTINGS
def test_precision_that_is_set(setting: Any) -> None:
    MATRIX @ MATRIX
    with dt.no_tracing(True):
        MATRIX @ MATRIX
        with (
            setting("default_matmul_precision", "high"),
            pytest.raises(RuntimeError, match="default_matmul_precision is 'high'; it was"),
        ):
            MATRIX @ MATRIX
    with setting("default_matmul_precision", "highest"):
        chosen = dt.make_jaxpr(lambda x: jnp.matmul(x, x, precision="high"))(MATRIX)
        assert "Precision.HIGH," in str(chosen), "what the call says comes first"
        np.testing.assert_array_equal(MATRIX @ MATRIX, np.full((3, 3), 3))


# ------------------------------------------------------------------------------- explain_dtype


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((jnp.ones(2, "bfloat16"), 2.5), "bfloat16, because operand 1 has it, and nothing else"),
        ((INTS, INTS), "int32, because operands 1, 2 have it"),
        ((INTS, 2.5), "float32, weakly typed, because operand 2 is floating point, a higher kind"),
        ((1, 2.5), "float32, weakly typed, because all operands are weakly typed, and of their"),
        ((True, jnp.bool), "bool, because operands 1, 2 have it"),
        (("int8", "uint8"), "int16, .* uint8 can be promoted to; unsigned integers fit the next"),
        (("int32", "uint32"), "int32, .* up to the 32 bits that are there while 64-bit types are"),
        (("bfloat16", "float16"), "float32, .* neither of bfloat16 and float16 holds the other"),
        ((INTS, jnp.ones(2, "float16")), "float16, .* integers of any width take the width of"),
        ((jnp.ones(2, "bfloat16"), 1j), "complex64, .*operand 2 is complex, a higher kind than"),
        (("int8", "uint8", 2.5), "float32, .* which gives int16; then operand 3 is floating"),
    ],
)
def test_explanations(operands: Any, expected: str) -> None:
    lines = jnp.explain_dtype(*operands).splitlines()
    assert len(lines) == len(operands) + 1
    assert re.match(f"result: {expected}", lines[-1]), lines[-1]
    assert lines[-1].startswith(f"result: {jnp.result_type(*operands)}")


def test_explanations_of_operands() -> None:
    text = jnp.explain_dtype(np.float64(1), np.ones((2, 3)), float, jnp.asarray(2), True, "uint8")
    assert text.splitlines()[:-1] == [
        "operand 1: float32, the dtype of a NumPy scalar of float64, which becomes float32 because "
        "64-bit types are off (enable_x64)",
        "operand 2: float32, the dtype of a NumPy array of shape (2, 3) of float64, which becomes "
        "float32 because 64-bit types are off (enable_x64)",
        "operand 3: Python's type float: weakly typed, so it gives way to other floats",
        "operand 4: int32, the dtype of a scalar array: weakly typed, so it gives way to other "
        "integers",
        "operand 5: a Python bool, of dtype bool, which gives way to all others",
        "operand 6: uint8, given as a dtype",
    ]


def test_explanations_of_what_does_not_combine() -> None:
    with dt.numpy_dtype_promotion("strict"):
        text = jnp.explain_dtype(INTS, FLOATS)
    assert text.splitlines()[-1].startswith("no result: values of the types float32, int32 do not")
    with pytest.raises(ValueError, match="at least one operand"):
        jnp.explain_dtype()
    traced = []
    dt.eval_shape(lambda x: traced.append(jnp.explain_dtype(x, 1)), FLOATS)
    assert "result: float32, because operand 1 has it" in traced[0]
