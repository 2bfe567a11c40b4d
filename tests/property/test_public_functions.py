"""What public functions return: arrays, and the same value where a derivative is taken.

All functions of the public modules that take real arrays are found by their names, and called with
the first of `ARGUMENTS` that they take. What is compared are compiled programs, bit for bit: one of
the function, the others of the values alone that jvp, vjp, linearize and value_and_grad compute.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from types import GenericAlias, ModuleType
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn

pytestmark = pytest.mark.laws

GENERATOR = np.random.default_rng(0)


def numbers(*shape: int) -> Any:
    return GENERATOR.uniform(0.1, 0.9, shape).astype(np.float32)


V, W, M, N = numbers(4), numbers(4), numbers(4, 4), numbers(4, 4)
POSITIVE = np.asarray(M @ M.T + 4 * np.eye(4), np.float32)
SCALAR = np.float32(0.5)
IMAGES, KERNELS = numbers(2, 3, 6, 6), numbers(4, 3, 3, 3)

#: Of these, each function is called with the first that it takes.
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (V,),
    (V, W),
    (V, W, V + 1),
    (M,),
    (POSITIVE,),
    (POSITIVE, M),
    (M, V),
    (SCALAR,),
    (V, 2),
    (M, 1),
    (M, 1, 0),
    (M, (0,)),
    (M, (1, 0)),
    (M, (4, 4)),
    (V, (4,)),
    ([V, V],),
    ([M, M], 0),
    (SCALAR, (3,)),
    (V, V, V, V),
    (1, V),
    (M, (2, 2)),
    (M, V, 0),
    (numbers(2, 4, 4),),
    (M, (0, 0), (2, 2)),
    ("ij,jk", M, M),
    (M, 0, 2),
    (V, V.astype(int)),
    (V, V.astype(int) * 0, 0),
)

#: Arguments that many functions leave as they are.
UNCHANGED: tuple[tuple[Any, ...], ...] = ((V, (4,)), (M, (4, 4)), (M, M), (M, 0), (M, ()))

#: Functions that need other arguments, by the name of their module and their own.
SPECIAL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "numpy.cross": (jnp.cross, (V[:3], W[:3])),
    "numpy.polyfit": (lambda x, y: jnp.polyfit(x, y, 1), (V, W)),
    "numpy.dsplit": (lambda x: jnp.dsplit(x, 2), (numbers(2, 2, 4),)),
    "numpy.put": (lambda x, y: jnp.put(x, np.array([0]), y, inplace=False), (V, SCALAR)),
    "numpy.fill_diagonal": (lambda x, y: jnp.fill_diagonal(x, y, inplace=False), (M, SCALAR)),
    "numpy.full": (lambda x: jnp.full((2, 4), x), (V,)),
    "lax.associative_scan": (lambda x: lax.associative_scan(lax.add, x), (V,)),
    "lax.betainc": (lambda x: lax.betainc(2.0, 3.0, x), (V,)),
    "lax.broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (4, 2), (0,)), (V,)),
    "lax.cond": (lambda x: lax.cond(x[0] > 0.5, lax.sin, lax.cos, x), (V,)),
    "lax.conv": (lambda x, k: lax.conv(x, k, (1, 2), "SAME"), (IMAGES, KERNELS)),
    "lax.conv_transpose": (
        lambda x, k: lax.conv_transpose(x, k, (2, 1), "SAME"),
        (numbers(2, 5, 5, 3), numbers(3, 3, 3, 4)),
    ),
    "lax.custom_linear_solve": (
        lambda a, b: lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, b: jnp.linalg.solve(a, b), lambda _, b: b @ a
        ),
        (POSITIVE, V),
    ),
    "lax.dot_general": (
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))),
        (M, N),
    ),
    "lax.dynamic_update_slice": (lambda x, y: lax.dynamic_update_slice(x, y, (1,)), (V, W[:2])),
    "lax.fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, y: lax.sin(y) + i, x), (V,)),
    "lax.map": (lambda x: lax.map(lax.sin, x), (V,)),
    "lax.pad": (lambda x, y: lax.pad(x, y, [(1, 2, 1)]), (V, SCALAR)),
    "lax.reduce": (lambda x, y: lax.reduce(x, y, lax.add, (0,)), (V, SCALAR)),
    "lax.reduce of many": (lambda x: lax.reduce(x, SCALAR, lax.mul, (0,)), (numbers(1000),)),
    "lax.reduce of a function": (
        lambda x, y: lax.reduce(x, y, lambda a, b: a + b + a * b, (0,)),
        (numbers(20), np.float32(0)),
    ),
    "lax.scan": (lambda x: lax.scan(lambda c, y: (c * y, c + y), 1.0, x), (V,)),
    "lax.select": (lambda x, y: lax.select(V > 0.5, x, y), (V, W)),
    "lax.switch": (lambda x: lax.switch(1, [lax.sin, lax.cos], x), (V,)),
    "lax.while_loop": (
        lambda x: lax.while_loop(lambda y: y[0] < 2, lax.exp, x),
        (V,),
    ),
    "lax.linalg.tridiagonal_solve": (
        lambda x, y: lax.linalg.tridiagonal_solve(x, x + 3, x, y),
        (V, M),
    ),
    **{
        f"lax.scatter_{name}": (
            lambda x, y, name=name: getattr(x.at[np.array([0, 2, 0])], name)(y),
            (jnp.asarray(V), W[:3]),
        )
        for name in ("set", "add", "multiply", "min", "max")
    },
    **{
        f"lax.reduce_window of {name} from {start}, {padding}, {dilation}": (
            lambda x, y, of=of, padding=padding, dilation=dilation: lax.reduce_window(
                x, y, of, (2,), (1,), ((0, padding),), (dilation,)
            ),
            (V, np.float32(start)),
        )
        for name, of in {
            "add": lax.add,
            "mul": lax.mul,
            "max": lax.max,
            "min": lax.min,
            "a function": lambda a, b: a + b + a * b,
        }.items()
        for start in (0.0, 2.0)
        for padding, dilation in ((1, 1), (0, 2), (2, 3))
        if name != "a function" or not start
    },
}

#: Values alone are computed by another algorithm than values with the vectors of a derivative.
ROUNDED = ("numpy.linalg.cond", "numpy.linalg.svdvals", "numpy.linalg.norm", "lax.linalg.svd")

#: They have no gradient.
FORWARD_ONLY = ("lax.while_loop",)

#: The modules, and of how many functions at least the law has to be seen to hold.
MODULES: dict[str, tuple[ModuleType, int]] = {
    "numpy": (jnp, 190),
    "numpy.linalg": (jnp.linalg, 24),
    "numpy.fft": (jnp.fft, 14),
    "lax": (lax, 100),
    "lax.linalg": (lax.linalg, 8),
    "nn": (nn, 25),
}


def is_real(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.floating, dt.Array)) and x.dtype.kind == "f"


def of_real_arrays(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., list[Any]], list[Any]] | None:
    """The function of its real arguments alone, to its results in a list, and these arguments.

    None if it does not take them, or has no derivative there.
    """
    leaves, tree = dt.tree.flatten(arguments)

    def of_reals(*reals: Any) -> list[Any]:
        given = iter(reals)
        full = [next(given) if is_real(x) else x for x in leaves]
        return list(dt.tree.leaves(function(*tree.unflatten(full))))

    reals = list(filter(is_real, leaves))
    try:
        results, _ = dt.eval_shape(lambda *x: dt.jvp(of_reals, x, x), *reals)
    except Exception:
        return None
    return (of_reals, reals) if any(r.dtype.kind in "fc" for r in results) else None


WRITING = ("save", "savez")
"""Functions that write a file of the name that they are given."""


def functions(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a module, with their names."""
    members = MODULES[module][0]
    for name in getattr(members, "__all__", dir(members)):
        member = getattr(members, name)
        if (
            callable(member)
            and not isinstance(member, (type, GenericAlias))
            and not name.startswith("_")
            and not name.endswith("_p")
            and name not in WRITING
        ):
            yield name, member


def found(module: str) -> Iterator[tuple[str, Callable[..., list[Any]], list[Any]]]:
    """The functions of a module that have derivatives, as functions of real arrays."""
    for name, function in functions(module):
        for arguments in ARGUMENTS:
            case = of_real_arrays(function, arguments)
            if case is not None:
                yield (f"{module}.{name}", *case)
                break
    for name, (function, arguments) in SPECIAL.items():
        if name.rpartition(".")[0] == module or name.startswith(f"{module}.reduce"):
            case = of_real_arrays(function, arguments)
            assert case is not None, name
            yield (name, *case)


def values(function: Callable[..., list[Any]], reals: list[Any], backward: bool) -> dict[str, Any]:
    """The value of the function, alone and as each transformation computes it."""

    def total(*x: Any) -> Any:
        results = [r for r in function(*x) if r.dtype.kind == "f"]
        return functools.reduce(operator.add, (r.sum() for r in results)), results

    programs: dict[str, Callable[..., Any]] = {
        "the function": function,
        "jvp": lambda *x: dt.jvp(function, x, x)[0],
        "vjp": lambda *x: dt.vjp(function, *x)[0],
        "linearize": lambda *x: dt.linearize(function, *x)[0],
        "value_and_grad": lambda *x: dt.value_and_grad(total, has_aux=True)(*x)[0][1],
    }
    if any(r.dtype.kind != "f" for r in dt.eval_shape(function, *reals)) or not backward:
        del programs["value_and_grad"]
    return {
        name: list(map(np.asarray, dt.jit(program)(*reals))) for name, program in programs.items()
    }


@pytest.mark.parametrize("module", MODULES)
def test_derivatives_keep_the_value(module: str) -> None:
    wrong, count = [], 0
    for name, function, reals in found(module):
        count += 1
        wants, *others = values(function, reals, name not in FORWARD_ONLY).items()
        for transformation, results in others:
            for got, want in zip(results, wants[1], strict=True):
                same = got.dtype == want.dtype and got.tobytes() == want.tobytes()
                if not same and not (name in ROUNDED and np.allclose(got, want, rtol=1e-5)):
                    wrong.append(f"{name}: {transformation} has {got}, and not {want}")
    assert not wrong, "\n".join(wrong)
    assert count >= MODULES[module][1]


@pytest.mark.parametrize("module", MODULES)
def test_results_for_numpy_arrays_are_arrays(module: str) -> None:
    wrong, taken = [], 0
    for name, function in functions(module):
        for arguments in ((V,), (M,), (V, W), *UNCHANGED):
            try:
                leaves = dt.tree.leaves(function(*arguments))
            except Exception:
                continue
            taken += 1
            if any(is_real(leaf) and not isinstance(leaf, dt.Array) for leaf in leaves):
                wrong.append(f"{module}.{name} of {dt.typeof(arguments[0])}")
    assert not wrong, "\n".join(wrong)
    assert taken >= MODULES[module][1]


#: Functions for which the dtype of an argument is more than the dtype that it is computed in.
OF_OTHER_DTYPES = ("numpy.frombuffer", "lax.iota")


@pytest.mark.parametrize("module", MODULES)
def test_numpy_arrays_of_double_precision_count_as_single(module: str) -> None:
    """In a trace, too, where they stay NumPy arrays until a primitive takes them."""
    wrong, taken = [], 0
    for name, function in functions(module):
        for arguments in ARGUMENTS:
            wide = dt.tree.map(lambda x: np.float64(x) if is_real(x) else x, arguments)
            try:
                want = [(r.shape, r.dtype) for r in staged(function, arguments)]
            except Exception:
                continue
            taken += 1
            if f"{module}.{name}" in OF_OTHER_DTYPES:
                continue
            got = [(r.shape, r.dtype) for r in staged(function, wide)]
            if got != want:
                wrong.append(f"{module}.{name} of {arguments} has {got} and not {want}")
    assert not wrong, "\n".join(wrong)
    assert taken >= MODULES[module][1]


def staged(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    """The avals of a function's results."""
    return list(dt.tree.leaves(dt.eval_shape(lambda: function(*arguments))))
