"""Derivatives compared with finite differences: the functions of `dovetail.test_util`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dovetail._core.api.backward_passes import vjp
from dovetail._core.api.derivatives import jvp
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.typing import PyTree

# Half of the digits that finite differences leave, by the dtype of the numbers.
_TOLERANCES: Final = {16: 1e-1, 32: 6e-3, 64: 1e-5}
_EPSILON: Final = 1e-4

#: A difference that is allowed, for all dtypes or by dtype; None for a default.
Tolerance = float | Mapping[Any, float] | None


def check_grads(
    f: Callable[..., PyTree],
    args: Sequence[PyTree],
    order: int,
    modes: Sequence[str] | str = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of a function with finite differences in random directions.

    Args:
        f: a function of trees of arrays of floats or complex numbers.
        args: where.
        order: the highest order of derivatives that is compared.
        modes: ``"fwd"`` and ``"rev"``: in forward mode, in reverse mode, or both.
        atol: the absolute error that is allowed; by the dtype by default.
        rtol: the relative error that is allowed; by the dtype by default.
        eps: the step of the differences; 1e-4 by default.

    Raises:
        AssertionError: a derivative differs.
        ValueError: `modes` holds something else.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.test_util import check_grads
        >>> check_grads(jnp.sin, (0.5,), order=2)
    """
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(chosen) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"modes holds {sorted(unknown)}: 'fwd' and 'rev' are the modes")
    random = np.random.RandomState(0)
    _check_order(f, tuple(args), order, chosen, (atol, rtol, eps), random, "")


def _check_order(
    f: Callable[..., PyTree],
    args: tuple[PyTree, ...],
    order: int,
    modes: tuple[str, ...],
    limits: tuple[float | None, float | None, float | None],
    random: np.random.RandomState,
    path: str,
) -> None:
    atol, rtol, eps = limits
    step = _EPSILON if eps is None else eps
    if "fwd" in modes:
        name = f"{path}jvp of " if path else "jvp"
        check_jvp(f, partial(jvp, f), args, atol, rtol, step, name)
        if order > 1:

            def pushed(*values: PyTree) -> PyTree:
                return jvp(f, values, tangents)

            tangents = _random_like(args, random)
            _check_order(pushed, args, order - 1, modes, limits, random, f"{name}: ")
    if "rev" in modes:
        name = f"{path}vjp of " if path else "vjp"
        check_vjp(f, partial(vjp, f), args, atol, rtol, step, name)
        if order > 1:

            def pulled(*values: PyTree) -> PyTree:
                out, pull = vjp(f, *values)
                return out, pull(cotangent)

            cotangent = _random_like(f(*args), random)
            _check_order(pulled, args, order - 1, modes, limits, random, f"{name}: ")


def check_jvp(
    f: Callable[..., PyTree],
    f_jvp: Callable[..., tuple[PyTree, PyTree]],
    args: Sequence[PyTree],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = _EPSILON,
    err_msg: str = "",
) -> None:
    """Compare a forward derivative with finite differences in a random direction.

    Args:
        f: the function.
        f_jvp: maps primals and tangents to the result and its tangent, as `dovetail.jvp` of `f`.
        args: where.
        atol: the absolute error that is allowed; by the dtype by default.
        rtol: the relative error that is allowed; by the dtype by default.
        eps: the step of the differences.
        err_msg: what the message begins with.

    Raises:
        AssertionError: values or derivatives differ.

    Example:
        >>> import dovetail as dt, dovetail.numpy as jnp
        >>> from dovetail.test_util import check_jvp
        >>> check_jvp(jnp.sin, lambda x, t: dt.jvp(jnp.sin, x, t), (0.5,))
    """
    tangents = _random_like(tuple(args), np.random.RandomState(0))
    expected = f(*args)
    numerical = _difference(f, tuple(args), tangents, eps)
    value, tangent = f_jvp(tuple(args), tangents)
    like = (args, expected)
    _assert_close(value, expected, atol, rtol, f"{err_msg} primal".strip(), like)
    _assert_close(tangent, numerical, atol, rtol, f"{err_msg} tangent".strip(), like)


def check_vjp(
    f: Callable[..., PyTree],
    f_vjp: Callable[..., tuple[PyTree, Callable[..., PyTree]]],
    args: Sequence[PyTree],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = _EPSILON,
    err_msg: str = "",
) -> None:
    """Compare a backward derivative with finite differences in a random direction.

    Args:
        f: the function.
        f_vjp: maps arguments to the result and a function of its cotangent, as `dovetail.vjp` of
            `f`.
        args: where.
        atol: the absolute error that is allowed; by the dtype by default.
        rtol: the relative error that is allowed; by the dtype by default.
        eps: the step of the differences.
        err_msg: what the message begins with.

    Raises:
        AssertionError: values or derivatives differ.

    Example:
        >>> import dovetail as dt, dovetail.numpy as jnp
        >>> from dovetail.test_util import check_vjp
        >>> check_vjp(jnp.sin, lambda x: dt.vjp(jnp.sin, x), (0.5,))
    """
    random = np.random.RandomState(0)
    expected = f(*args)
    value, pull = f_vjp(*args)
    like = (args, expected)
    _assert_close(value, expected, atol, rtol, f"{err_msg} primal".strip(), like)
    tangents = _random_like(tuple(args), random)
    cotangent = _random_like(expected, random)
    numerical = _difference(f, tuple(args), tangents, eps)
    pulled = pull(cotangent)
    # Both sides are <ct, J t>: a number that is linear in all elements of the derivative.
    left, right = _inner(pulled, tangents), _inner(cotangent, numerical)
    _assert_close(left, right, atol, rtol, f"{err_msg} cotangent".strip(), like)


def _random_like(tree: PyTree, random: np.random.RandomState) -> PyTree:
    def draw(x: Any) -> Any:
        dtype = dtypes.canonicalize_dtype(getattr(x, "dtype", None) or dtypes.dtype_of(x))
        if not dtypes.issubdtype(dtype, np.inexact):
            return np.zeros(np.shape(x), dtypes.float0)
        drawn = random.standard_normal(np.shape(x))
        if dtypes.issubdtype(dtype, np.complexfloating):
            drawn = drawn + 1j * random.standard_normal(np.shape(x))
        return np.asarray(drawn).astype(dtype)[()]

    return pytree.map(draw, tree)


def _moved(x: Any, tangent: Any, step: float) -> Any:
    if tangent.dtype == dtypes.float0:
        return x
    return (np.asarray(x) + np.asarray(step, np.asarray(x).real.dtype) * tangent).astype(
        tangent.dtype
    )[()]


def _difference(
    f: Callable[..., PyTree], args: tuple[PyTree, ...], tangents: PyTree, eps: float
) -> PyTree:
    above = f(*pytree.map(lambda x, t: _moved(x, t, eps / 2), args, tangents))
    below = f(*pytree.map(lambda x, t: _moved(x, t, -eps / 2), args, tangents))

    def quotient(a: Any, b: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return np.zeros(a.shape, dtypes.float0)
        wide = np.complex128 if dtypes.issubdtype(a.dtype, np.complexfloating) else np.float64
        return ((a.astype(wide) - b.astype(wide)) / eps).astype(a.dtype)

    return pytree.map(quotient, above, below)


def _inner(a: PyTree, b: PyTree) -> float:
    total = 0.0
    for x, y in zip(pytree.leaves(a), pytree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if dtypes.float0 in (x.dtype, y.dtype):
            continue
        wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
        # Derivatives with respect to complex numbers are linear over them: no conjugate.
        total += float(np.sum(x.astype(wide) * y.astype(wide)).real)
    return total


def check_close(
    xs: PyTree,
    ys: PyTree,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    err_msg: str = "",
) -> None:
    """Check that two trees of arrays are nearly equal.

    Args:
        xs: a tree of arrays.
        ys: what it should be.
        atol: the absolute difference that is allowed, or a dictionary of it by dtype; by default,
            as dtypes allow it.
        rtol: the relative difference, likewise.
        err_msg: begins the message.

    Raises:
        AssertionError: they differ.
    """
    _assert_close(xs, ys, atol, rtol, err_msg or "check_close", like=(xs, ys))


def _assert_close(
    got: PyTree,
    expected: PyTree,
    atol: Tolerance,
    rtol: Tolerance,
    message: str,
    like: PyTree,
) -> None:
    got_leaves, tree = pytree.flatten(got)
    expected_leaves, expected_tree = pytree.flatten(expected)
    if tree != expected_tree:
        raise AssertionError(f"{message}: the trees differ: {tree} and {expected_tree}")
    default = _TOLERANCES[min(map(_bits, pytree.leaves(like)), default=64)]
    for x, y in zip(got_leaves, expected_leaves, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if dtypes.float0 in (x.dtype, y.dtype):
            continue
        wide = np.complex128 if np.iscomplexobj(y) else np.float64
        np.testing.assert_allclose(
            x.astype(wide),
            y.astype(wide),
            atol=_tolerance(atol, (x, y), default),
            rtol=_tolerance(rtol, (x, y), default),
            err_msg=message,
        )


def _tolerance(given: Tolerance, values: Iterable[Any], default: float) -> float:
    """The tolerance for values: of several dtypes, the larger."""
    if given is None:
        return default
    if not isinstance(given, Mapping):
        return given
    by_dtype = {np.dtype(dtype): tolerance for dtype, tolerance in given.items()}
    return max(by_dtype.get(value.dtype, default) for value in values)


def _bits(x: Any) -> int:
    """The bits of a real number among the elements."""
    dtype = np.asarray(x).dtype
    if dtype == dtypes.float0 or not dtypes.issubdtype(dtype, np.inexact):
        return 64
    bits = dtype.itemsize * 8
    if dtypes.issubdtype(dtype, np.complexfloating):
        bits //= 2
    return 16 if bits < 32 else bits
