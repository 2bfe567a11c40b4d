"""Minima of functions of a vector: `minimize`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    inexact,
    integer,
    refuse_complex,
    require_real_number,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.scipy.optimize.curvature import Inverse, Memory, product
from dovetail.scipy.optimize.line_search import Point, search
from dovetail.tree_util import tree_leaves
from dovetail.typing import Array, ArrayLike

_LBFGS = "l-bfgs-experimental-do-not-rely-on-this"

#: The options of each method, with their defaults; None depends on the number of unknowns.
_OPTIONS: dict[str, dict[str, Any]] = {
    "bfgs": {"gtol": 1e-5, "norm": math.inf, "maxiter": None, "line_search_maxiter": 10},
    _LBFGS: {
        "maxiter": None,
        "norm": math.inf,
        "maxcor": 10,
        "ftol": 2.220446049250313e-09,
        "gtol": 1e-5,
        "maxfun": None,
        "maxgrad": None,
        "maxls": 20,
    },
}


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
        x: the point that was found.
        success: whether the gradient vanishes there, within the tolerance.
        status: why the method ended. 0: success. 1: `maxiter` steps were made. 2: `maxfun`
            evaluations. 3: no lower point was found along a direction, or, with
            ``options["maxgrad"]``, that many gradients were evaluated. 4: the value fell by less
            than `ftol`. 5: the function fell as far as it was followed.
        fun: the value there.
        jac: the gradient there.
        hess_inv: an approximation of the inverse of the Hessian matrix, or None.
        nfev: evaluations of the function.
        njev: evaluations of the gradient.
        nit: steps.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.optimize import OptimizeResults, minimize
        >>> found = minimize(lambda x: jnp.sum(x * x), jnp.ones(2), method="BFGS")
        >>> isinstance(found, OptimizeResults), bool(found.success)
        (True, True)
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    curvature: Any
    calls: Any
    steps: Any
    status: Any


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Find a local minimum of a function of a vector.

    It works under `jit` and `vmap`. Its gradient with respect to `args` is not defined; use
    `lax.custom_root` for that, with the gradient of `fun` as equation.

    Args:
        fun: function ``fun(x, *args)``, a real scalar; it is differentiated.
        x0: the first guess, shape ``(n,)``, of a real dtype. Integers are promoted to floats;
            narrow floats are worked with in single precision.
        args: tuple of further arguments of `fun`.
        method: ``"BFGS"``, or ``"l-bfgs-experimental-do-not-rely-on-this"``, which needs little
            memory.
        tol: tolerance; `gtol`, and for L-BFGS also `ftol`, where `options` does not say otherwise.
        options: for both methods ``gtol``, the largest norm of a gradient that vanishes; ``norm``,
            the order of that norm; ``maxiter``, the largest number of steps, ``200 * n`` by
            default. For BFGS ``line_search_maxiter``, the largest number of evaluations in a step;
            for L-BFGS ``maxls``, the same; ``maxcor``, how many steps are remembered; ``ftol``,
            the smallest decrease of the value relative to its size; ``maxfun`` and ``maxgrad``,
            the largest numbers of evaluations.

    Returns:
        An `OptimizeResults`.

    Raises:
        TypeError: `args` is no tuple, `fun` does not return a real scalar, `x0` is complex, `tol`
            or an option is no number, or there is no such option.
        ValueError: `x0` has another rank than 1, or there is no such method.

    Algorithms: J. Nocedal, S. J. Wright, Numerical Optimization, 2nd ed., 3.5, 3.6, 6.1 and 7.5.

    Differs:
        A search along a direction that ends with a lower point is no failure, and where values
        differ by rounding alone slopes decide, so that the method goes on where JAX's stops. A
        value that is not finite is no success.

        >>> from dovetail.scipy.optimize import minimize
        >>> def valley(x):
        ...     return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        >>> found = minimize(valley, np.array([-1.2, 1.0]), method="BFGS", tol=1e-3)
        >>> bool(found.success), np.round(found.x, 2).tolist()
        (True, [1.0, 1.0])

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.optimize import minimize
        >>> def far(x, a):
        ...     return jnp.sum((x - a) ** 4)
        >>> found = minimize(far, jnp.zeros(3), (2.0,), method="BFGS")
        >>> np.round(found.x, 1).tolist()
        [2.0, 2.0, 2.0]
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {type(args).__name__}")
    name = method.lower() if isinstance(method, str) else method
    if not isinstance(name, str) or name not in _OPTIONS:
        raise ValueError(f"minimize: method must be 'BFGS' or {_LBFGS!r}, got {method!r}")
    if not callable(fun):
        raise TypeError(f"minimize requires fun to be a function, got {type(fun).__name__}")
    x = inexact("minimize", array_like(x0, "minimize", "x0"))
    refuse_complex("minimize", x)
    if len(aval_of(x).shape) != 1:
        raise ValueError(f"minimize: x0 must have one dimension, got the shape {aval_of(x).shape}")
    kept = aval_of(x).dtype
    start = value(convert(x, dtypes.common_dtype(kept, np.dtype("float32")), False))
    settings = _settings(name, tol, options, aval_of(x).shape[0])

    def called(x: Any) -> Any:
        return fun(x, *args)

    _check_function(dt.eval_shape(called, start))
    result = _minimized(called, start, name, settings)
    return result._replace(x=result.x.astype(kept), jac=result.jac.astype(kept))


def _settings(
    method: str, tol: Any, options: Mapping[str, Any] | None, size: int
) -> dict[str, Any]:
    known = _OPTIONS[method]
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"minimize: options must be a mapping, got {type(options).__name__}")
    given = dict(options or {})
    unknown = sorted(map(str, given.keys() - known.keys()))
    if unknown:
        raise TypeError(
            f"minimize: the method has no option {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    settings = dict(known)
    if tol is not None:
        require_real_number("minimize", "tol", tol)
        settings.update({key: tol for key in ("gtol", "ftol") if key in known})
    settings.update(given)
    for key, setting in given.items():
        if key == "maxcor":
            settings[key] = integer("minimize", "maxcor", setting)
        elif key != "norm" and not (setting is None and known[key] is None):
            require_real_number("minimize", key, setting)
    if settings["maxiter"] is None:
        settings["maxiter"] = 200 * size
    if "maxcor" in settings and settings["maxcor"] < 1:
        raise ValueError(f"minimize: maxcor must be at least 1, got {settings['maxcor']}")
    return settings


def _check_function(result: Any) -> None:
    is_array = [leaf is result for leaf in tree_leaves(result)] == [True]
    if not is_array or result.shape != () or dtypes.kind_of(result.dtype) != "f":
        raise TypeError(f"minimize: fun must return a real scalar, got {result}")


def _minimized(
    fun: Callable[[Any], Any], x: Any, method: str, settings: dict[str, Any]
) -> OptimizeResults:
    evaluate = dt.value_and_grad(lambda x: jnp.asarray(fun(x)).astype(x.dtype))
    memory: Any = Inverse if method == "bfgs" else Memory
    most = settings["line_search_maxiter"] if method == "bfgs" else settings["maxls"]

    def vanishes(value: Any, gradient: Any) -> Any:
        if not gradient.size:
            return jnp.isfinite(value)
        size = jnp.linalg.norm(gradient, ord=settings["norm"])
        return (size <= settings["gtol"]) & jnp.isfinite(value)

    def going(state: _State) -> Any:
        return state.status < 0

    def step(state: _State) -> _State:
        p = state.curvature.direction(state.gradient)
        slope = product(p, state.gradient)
        falls = (slope < 0) & jnp.isfinite(slope)
        p = jnp.where(falls, p, -state.gradient)
        slope = jnp.where(falls, slope, -product(state.gradient, state.gradient))
        # The first direction has the length of the gradient, which says nothing of distances.
        length = jnp.sqrt(-slope)
        first = jnp.where((state.steps == 0) & (length > 1), 1 / length, 1).astype(x.dtype)

        def along(distance: Any) -> Point:
            value, gradient = evaluate(state.x + distance * p)
            return Point(distance, value, product(gradient, p), gradient)

        here = Point(jnp.zeros((), x.dtype), state.value, slope, state.gradient)
        found = search(along, here, first, most)
        point = found.point
        moved = jnp.where(point.at > 0, point.at * p, 0)
        curvature = state.curvature.updated(moved, point.gradient - state.gradient)
        calls, steps = state.calls + found.calls, state.steps + 1
        status = jnp.where(found.status > 0, found.status, -1)
        if method != "bfgs":
            size = jnp.maximum(jnp.maximum(jnp.abs(point.value), jnp.abs(state.value)), 1)
            small = (state.value - point.value) <= settings["ftol"] * size
            status = jnp.where((status < 0) & small, 4, status)
            for limit, code in (("maxgrad", 3), ("maxfun", 2)):
                if settings[limit] is not None:
                    status = jnp.where((status < 0) & (calls >= settings[limit]), code, status)
        status = jnp.where((status < 0) & (steps >= settings["maxiter"]), 1, status)
        status = jnp.where(vanishes(point.value, point.gradient), 0, status)
        return _State(
            state.x + moved,
            point.value,
            point.gradient,
            curvature,
            calls,
            steps,
            status.astype("int32"),
        )

    first, gradient = evaluate(x)
    zero = jnp.zeros((), "int32")
    at_once = jnp.where(settings["maxiter"] > 0, -1, 1)
    status = jnp.where(vanishes(first, gradient), 0, at_once).astype("int32")
    known = memory.start(x, settings.get("maxcor", 0))
    end = lax.while_loop(going, step, _State(x, first, gradient, known, zero + 1, zero, status))
    return OptimizeResults(
        x=end.x,
        success=end.status == 0,
        status=end.status,
        fun=end.value,
        jac=end.gradient,
        hess_inv=end.curvature.matrix if method == "bfgs" else None,
        nfev=end.calls,
        njev=end.calls,
        nit=end.steps,
    )
