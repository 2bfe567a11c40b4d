"""Differentiation: jvp, linearize, grad, value_and_grad, linear_transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, ParamSpec, TypeVar, overload
from typing import Literal as Lit

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_result, make_literal, typed_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Literal
from dovetail._core.ir.walk import dce, eval_jaxpr
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.scopes import replaying
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.flattening import (
    FlatFunction,
    abstract_leaves,
    check_array_leaves,
    check_callable,
    debug_info,
    leaf_names,
    name_of,
    normalized_argnums,
)
from dovetail._core.transform.jvp import jvp_flat
from dovetail._core.transform.linearize import LinearProgram, linearize_flat
from dovetail._core.transform.stage import replace_constants, stage
from dovetail._core.transform.transposition import transpose_jaxpr

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    has_aux: Lit[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]],
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    has_aux: Lit[True],
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    has_aux: bool,
) -> tuple[PyTree, ...]: ...
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    has_aux: bool = False,
) -> tuple[PyTree, ...]:
    """The value of a function and its derivative in one direction (forward mode).

    Args:
        fun: function of arrays and pytrees of them.
        primals: tuple or list of arguments at which to differentiate.
        tangents: the direction: the same structure, shapes and dtypes as `primals` (float0 for
            integers).
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        ``(result, tangent of the result)``, and the auxiliary data if `has_aux`.

    Raises:
        TypeError: primals and tangents do not match.

    Differs:
        An integer of Python is a tangent of a float, too; so are cotangents of `vjp`.

        >>> print(*dt.jvp(lambda x: x * x, (3.0,), (1,)))
        9.0 6.0

        Tangents have the types of primals: a number of Python is no weakly typed tangent of an
        array that is not.

        >>> _, t = dt.jvp(lambda x: x, (jnp.ones(()),), (1.0,))
        >>> print(t.weak_type)
        False

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> y, t = dt.jvp(lambda x: x * x, (3.0,), (1.0,))
        >>> float(y), float(t)
        (9.0, 6.0)
    """
    check_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primals and tangents of jvp must be tuples or lists of the arguments of the "
            f"function, got {type(primals).__name__} and {type(tangents).__name__}"
        )
    leaves, tree = pytree.flatten(tuple(primals))
    tangent_leaves, tangent_tree = pytree.flatten(tuple(tangents))
    if tree != tangent_tree:
        raise TypeError(
            "primals and tangents of jvp must have the same structure\n"
            + pytree.structure_difference(tuple(primals), tuple(tangents))
        )
    names = leaf_names(fun, tuple(primals))
    check_array_leaves(leaves, lambda: names, f"jvp of {name_of(fun)}")
    flat_tangents = [
        _checked_tangent(p, t, n, fun)
        for p, t, n in zip(leaves, tangent_leaves, names, strict=True)
    ]
    flat = FlatFunction(fun, tree, has_aux=has_aux)
    outs, out_tangents = jvp_flat(flat, leaves, flat_tangents)
    result = flat.out_tree.unflatten(map(as_result, outs))
    typed = (
        match_weak_type(as_result(t), aval_of(out))
        for t, out in zip(out_tangents, outs, strict=True)
    )
    tangent = flat.out_tree.unflatten(typed)
    return (result, tangent, released(flat.aux)) if has_aux else (result, tangent)


def _checked_tangent(primal: Any, tangent: Any, name: str, fun: Any) -> Any:
    expected = aval_of(primal).tangent()
    if type(tangent) is Zero:
        return tangent
    if expected.dtype == dtypes.float0:
        if getattr(tangent, "dtype", None) != dtypes.float0:
            raise TypeError(
                f"the tangent of the argument {name} of {name_of(fun)} must have dtype float0, "
                f"since the primal has dtype {aval_of(primal).dtype}; make it with "
                "numpy.zeros(shape, dovetail.float0)"
            )
        return Zero(expected)
    check_array_leaves([tangent], lambda: [f"{name} (its tangent)"], f"jvp of {name_of(fun)}")
    tangent = typed_like(tangent, expected)
    tangent_aval = aval_of(tangent)
    if tangent_aval.dtype != expected.dtype:
        raise TypeError(
            f"primal and tangent of the argument {name} of {name_of(fun)} must have the same "
            f"dtype, got {expected.dtype} and {tangent_aval.dtype}"
        )
    if tangent_aval.shape != expected.shape:
        raise ValueError(
            f"primal and tangent of the argument {name} of {name_of(fun)} must have the same "
            f"shape, got {expected.shape} and {tangent_aval.shape}"
        )
    return tangent


def released(aux: Any) -> Any:
    """Auxiliary data with tracers of finished differentiation replaced by their primals."""

    def release(x: Any) -> Any:
        primal = getattr(x, "primal", None)
        return x if primal is None or not x._trace.finished else as_result(release(primal))

    return pytree.map(release, aux)


def flags_of_leaves(name: str, flags: Any, tree: Any) -> list[bool]:
    """One bool for each leaf of a tree, from bools for parts of it.

    Args:
        name: what the bools are called, for messages.
        flags: one bool for all, or a container with a part for each part of the tree.
        tree: a structure.

    Raises:
        TypeError: a flag is not a bool.
        ValueError: lengths of containers differ.
    """
    if isinstance(flags, bool):
        return [flags] * tree.num_leaves
    if flags is not None and pytree.all_leaves([flags]):
        raise TypeError(
            f"{name} must hold bools: one for all, or a tuple with one for each argument, got "
            f"{flags!r:.80} of type {type(flags).__name__}"
        )
    parts = pytree.leaves(flags, is_leaf=lambda part: part is not flags)
    inner = tree.children()
    if len(parts) != len(inner) or pytree.treedef_is_leaf(tree):
        found = "an array" if pytree.treedef_is_leaf(tree) else f"{counted(len(inner), 'part')}"
        raise ValueError(
            f"{name} is a {type(flags).__name__} with {counted(len(parts), 'part')} where the "
            "arguments have "
            f"{found}; give a tuple with a bool for each argument or part of one, or a bool for "
            "all of it"
        )
    return [
        flag
        for i, (part, structure) in enumerate(zip(parts, inner, strict=True))
        for flag in flags_of_leaves(f"{name}[{i}]", part, structure)
    ]


def nonzero_leaves(in_nzs: Any, transformation: str, tree: Any) -> list[bool]:
    """For each argument leaf, whether it has a tangent according to `in_nzs`."""
    flags = True if in_nzs is None else in_nzs
    return flags_of_leaves(f"in_nzs of {transformation}", flags, tree)


@bounded
@pytree.register_pytree_node_class
class LinearFunction:
    """The linear function returned by `linearize`, from argument tangents to result tangent.

    It is a pytree of its residuals, so it can be passed to and returned from transformed functions.

    Args:
        residuals: values from the forward pass.
        program: the linear program, opened.
        in_tree: structure of the arguments.
        out_tree: structure of the result.
        in_avals: types of the tangents.
    """

    def __init__(
        self,
        residuals: Sequence[Any],
        program: LinearProgram,
        in_tree: Any,
        out_tree: Any,
        in_avals: tuple[Any, ...],
    ) -> None:
        self.residuals = residuals
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = in_avals

    def tree_flatten(self) -> tuple[Any, Any]:
        """Residuals as children, the program as static data."""
        return tuple(self.residuals), (self.program, self.in_tree, self.out_tree, self.in_avals)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], residuals: Any) -> LinearFunction:
        """The inverse of `tree_flatten`."""
        return cls(residuals, *static)

    @property
    def out_nzs(self) -> Any:
        """For each part of the result, whether its tangent may be nonzero."""
        return self.out_tree.unflatten(self.program.nonzero_out)

    def __repr__(self) -> str:
        return f"<linear function from {self.in_tree} to {self.out_tree}>"

    def __call__(self, *tangents: Any) -> Any:
        leaves, tree = pytree.flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(
                "a linearized function takes tangents of the structure of its primals: expected "
                f"{self.in_tree}, got {tree}"
            )
        checked = []
        for i, (aval, leaf) in enumerate(zip(self.in_avals, leaves, strict=True)):
            leaf = typed_like(leaf, aval)
            found = aval_of(leaf)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise ValueError(
                    f"tangent number {i} of a linearized function must be {aval.short_name()}, "
                    f"the type of the primal, got {found.short_name()}"
                )
            checked.append(leaf)
        program = self.program
        nonzero_tangents, _ = partition(program.nonzero_in, checked)
        with replaying() as replay:
            operands = (*self.residuals, *nonzero_tangents)
            found = eval_jaxpr(program.closed.jaxpr, [], *operands, before=replay.at)
        _, zero_avals = partition(program.nonzero_out, program.out_avals)
        outs = merge(program.nonzero_out, found, map(Zero, zero_avals))
        typed = (
            match_weak_type(as_result(t), aval)
            for t, aval in zip(outs, program.out_avals, strict=True)
        )
        return self.out_tree.unflatten(typed)


@overload
def linearize(
    fun: Callable[..., R],
    *primals: PyTree,
    has_aux: Lit[False] = False,
    in_nzs: PyTree = None,
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]],
    *primals: PyTree,
    has_aux: Lit[True],
    in_nzs: PyTree = None,
) -> tuple[R, Callable[..., R], Aux]: ...
def linearize(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False, in_nzs: PyTree = None
) -> tuple[PyTree, Callable[..., PyTree]] | tuple[PyTree, Callable[..., PyTree], PyTree]:
    """The value of a function and its derivative as a linear function.

    `fun` runs once; the linear function may be called many times.

    Args:
        fun: function of arrays and pytrees of them.
        *primals: arguments at which to linearize.
        has_aux: whether `fun` returns a pair whose second part is passed through.
        in_nzs: which arguments have nonzero tangents, all by default: a bool, or a tuple with a
            bool for each argument, or a nested tuple for an argument that is a container. Values
            computed only from the others are not differentiated; their tangents are taken to be
            zero.

    Returns:
        ``(result, f_jvp)`` and the auxiliary data if `has_aux`; ``f_jvp(*tangents)`` is the tangent
        of the result, and ``f_jvp.out_nzs`` says which parts of it may be nonzero.

    Raises:
        TypeError: `in_nzs` holds something other than a bool.
        ValueError: `in_nzs` does not match the structure of the arguments.

    Differs:
        The linear function refuses numbers as tangents of integers.

        >>> _, f_jvp = dt.linearize(lambda n: n * 2.0, 3)
        >>> f_jvp(1.0)
        Traceback (most recent call last):
            ...
        ValueError: tangent number 0 of a linearized function must be float0[], the ...

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> y, f_jvp = dt.linearize(jnp.sin, 0.0)
        >>> float(y), float(f_jvp(2.0))
        (0.0, 2.0)
    """
    check_callable(fun, "linearize")
    leaves, tree = pytree.flatten(primals)
    check_array_leaves(leaves, lambda: leaf_names(fun, primals), f"linearize of {name_of(fun)}")
    flat = FlatFunction(fun, tree, has_aux=has_aux)
    flags = nonzero_leaves(in_nzs, "linearize", tree)
    nonzero = [f and is_differentiable(aval_of(x)) for f, x in zip(flags, leaves, strict=True)]
    outs, program = linearize_flat(flat, leaves, nonzero, debug_info("linearize", fun, primals))
    result = flat.out_tree.unflatten(map(as_result, outs))
    in_avals = tuple([aval_of(x).tangent() for x in leaves])
    linear = LinearFunction(hoist_residuals(program), program, tree, flat.out_tree, in_avals)
    return (result, linear, released(flat.aux)) if has_aux else (result, linear)


def hoist_residuals(program: LinearProgram) -> list[Any]:
    """Make the residuals of a program its leading parameters, drop dead code, return residuals."""
    # Dead code goes first: the program may be called many times, and an unused equation may be one
    # that cannot be evaluated, such as the derivative of a custom_vjp function.
    closed = program.closed
    jaxpr = dce(closed.jaxpr, instantiate=True)[0]
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    used.update(v for v in jaxpr.outvars if type(v) is not Literal)
    needed = [i for i, v in enumerate(jaxpr.constvars) if v in used]
    jaxpr = jaxpr.replace(constvars=[jaxpr.constvars[i] for i in needed])
    jaxpr, residuals = replace_constants(ClosedJaxpr(jaxpr, [closed.consts[i] for i in needed]))
    program.closed = ClosedJaxpr(jaxpr, [])
    program.forwarded = tuple([program.forwarded[i] for i in needed])
    return residuals


def is_differentiable(aval: Any) -> bool:
    """Whether values of an aval can have nonzero tangents."""
    return bool(aval.tangent().dtype != dtypes.float0)


def pull_back(
    program: LinearProgram,
    residuals: Sequence[Any],
    cotangents: Sequence[Any],
    in_avals: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Cotangents of all arguments of a linearized function, `Zero` where they have no tangent.

    Args:
        program: the linear program; its residuals are constants or leading parameters of its jaxpr.
        residuals: the values of its residuals.
        cotangents: one for each result.
        in_avals: one for each argument.
        wanted: for each argument, whether its cotangent is wanted; the others are `Zero`.
    """
    jaxpr = program.closed.jaxpr
    nonzero_cts, _ = partition(program.nonzero_out, cotangents)
    moving, fixed = partition(program.nonzero_in, in_avals)
    others = [False] * (len(jaxpr.invars) - len(moving))
    linear = [*others, *[True] * len(moving)]
    if wanted is not None:
        wanted = [*others, *partition(program.nonzero_in, wanted)[0]]
    in_cotangents = transpose_jaxpr(jaxpr, residuals, nonzero_cts, linear, wanted)
    return merge(program.nonzero_in, in_cotangents, (Zero(a.tangent()) for a in fixed))


def check_reduce_axes(reduce_axes: Any) -> None:
    """Raise unless `reduce_axes` is empty."""
    if reduce_axes:
        raise NotImplementedError("reduce_axes must be empty: it has no meaning any more")


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, PyTree]]:
    """A function that returns the value of `fun` and its gradient.

    Args:
        fun: function whose result is a scalar array (rank 0, one element).
        argnums: which positional arguments to differentiate: a number, or a sequence of them.
        has_aux: whether `fun` returns a pair ``(value, auxiliary data)``.
        holomorphic: whether `fun` is holomorphic; then arguments and result must be complex.
            Otherwise the result must be real, and the gradient with respect to a complex argument
            ``x + 1j * y`` is ``df/dx - 1j * df/dy``.
        allow_int: whether integer arguments may be differentiated (their gradient is float0 zeros).
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function of the same arguments that returns ``(value, gradient)`` or ``((value, aux),
        gradient)``. The gradient has the structure of the argument; for a sequence of `argnums`, it
        is a tuple with one for each.

    Raises:
        TypeError: the result is not a scalar, or has a dtype that cannot be differentiated.

    Example:
        >>> import dovetail as dt
        >>> value, gradient = dt.value_and_grad(lambda x: x ** 2)(3.0)
        >>> float(value), float(gradient)
        (9.0, 6.0)
    """
    check_callable(fun, "value_and_grad")
    check_reduce_axes(reduce_axes)
    own_name = name_of(fun)
    what = f"grad of {own_name}"
    #: The numbers of arguments that were arrays, the last time, and what messages say about them.
    described: tuple[tuple[int, ...], DebugInfo] | None = None

    @wraps(fun)
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        nonlocal described
        numbers = normalized_argnums(argnums, len(args), what, missing=TypeError)
        chosen = tuple([args[i] for i in numbers])

        def function(*differentiated: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, differentiated, strict=True):
                full[i] = value
            return fun(*full, **kwargs)

        function.__name__ = own_name  # for messages
        leaves, tree = pytree.flatten(chosen)
        _refuse_references(leaves, fun, chosen, numbers)
        check_array_leaves(leaves, lambda: leaf_names(fun, chosen, None, numbers), what)
        in_avals = [aval_of(x) for x in leaves]
        for i, aval in enumerate(in_avals):
            _check_input(aval, i, fun, chosen, numbers, holomorphic, allow_int)
        flat = FlatFunction(function, tree, has_aux=has_aux)
        nonzero = [is_differentiable(aval) for aval in in_avals]
        are_leaves = len(leaves) == len(chosen) and all(map(is_, leaves, chosen))
        known = described if are_leaves else None
        if known is None or known[0] != numbers:
            known = numbers, debug_info("grad", fun, chosen, None, numbers)
            if are_leaves:
                described = known
        outs, program = linearize_flat(flat, leaves, nonzero, known[1])
        _check_scalar(outs, flat.out_tree, fun, holomorphic)
        out_aval = program.out_avals[0]
        seed = make_literal(1, out_aval.dtype, out_aval.weak_type)
        cotangents = pull_back(program, program.closed.consts, [seed], in_avals)
        gradients = tree.unflatten(
            [
                match_weak_type(as_result(ct), aval)
                for ct, aval in zip(cotangents, in_avals, strict=True)
            ]
        )
        gradient = gradients if isinstance(argnums, (tuple, list)) else gradients[0]
        value = as_result(outs[0])
        return ((value, released(flat.aux)), gradient) if has_aux else (value, gradient)

    return value_and_grad_fun


def _refuse_references(leaves: Any, fun: Any, chosen: Any, numbers: Any) -> None:
    for i, leaf in enumerate(leaves):
        if type(leaf) is Ref:
            name = leaf_names(fun, chosen, None, numbers)[i]
            raise TypeError(
                f"grad of {name_of(fun)} cannot differentiate with respect to {name}, "
                f"{leaf.described()}: the gradient of a reference is added to one. Use vjp, as in "
                "f_vjp.with_refs(gradient_ref)(cotangent), or choose other arguments with argnums"
            )


def match_weak_type(gradient: Any, aval: Any) -> Any:
    """A gradient, weakly typed if its argument is, so that a gradient step keeps the type."""
    if not aval.weak_type or aval.dtype != gradient.dtype:
        return gradient
    return convert_element_type(gradient, aval.dtype, True)


def _check_input(
    aval: Any,
    position: int,
    fun: Any,
    chosen: Any,
    numbers: Any,
    holomorphic: bool,
    allow_int: bool,
) -> None:
    kind = dtypes.kind_of(aval.dtype)

    def name() -> str:
        return leaf_names(fun, chosen, None, numbers)[position]

    if holomorphic:
        if kind != "c":
            raise TypeError(
                f"grad of {name_of(fun)} with holomorphic=True requires complex arguments, but "
                f"{name()} has dtype {aval.dtype}"
            )
    elif kind not in ("f", "c") and not allow_int:
        raise TypeError(
            f"grad of {name_of(fun)} requires real or complex floating-point arguments, but "
            f"{name()} has dtype {aval.dtype}; convert it to a float, choose others with argnums, "
            "or pass allow_int=True for a gradient of dtype float0"
        )


def _check_scalar(outs: Any, out_tree: Any, fun: Any, holomorphic: bool) -> None:
    if not outs:
        raise TypeError(
            f"gradients are defined for functions with a scalar result, but {name_of(fun)} "
            f"returned {out_tree.unflatten(())}, in which there is none; end it with return loss"
        )
    if len(outs) != 1 or out_tree.num_nodes != 1:
        raise TypeError(
            f"gradients are defined for functions with a scalar result, but {name_of(fun)} "
            f"returned a tree of {counted(len(outs), 'value')} ({out_tree}); if the others are "
            "auxiliary data, return a pair and pass has_aux=True"
        )
    aval = aval_of(outs[0])
    if aval.shape:
        raise TypeError(
            f"gradients are defined for functions with a scalar result, but {name_of(fun)} "
            f"returned an array of shape {aval.shape}; reduce it (for example with .sum()), or "
            "use jacrev or vjp"
        )
    kind = dtypes.kind_of(aval.dtype)
    if holomorphic and kind != "c":
        raise TypeError(
            f"grad of {name_of(fun)} with holomorphic=True requires a complex result, got "
            f"{aval.dtype}"
        )
    if not holomorphic and kind != "f":
        raise TypeError(
            f"grad of {name_of(fun)} requires a real floating-point result, got {aval.dtype}"
            + (
                "; for holomorphic functions pass holomorphic=True, for others use vjp"
                if kind == "c"
                else "; integers and booleans do not change smoothly: return a float"
            )
        )


@overload
def grad(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Lit[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, PyTree]: ...
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, PyTree]:
    """A function that returns the gradient of `fun`.

    Args:
        fun: function whose result is a scalar array (rank 0, one element).
        argnums: which positional arguments to differentiate: a number, or a sequence of them.
        has_aux: whether `fun` returns a pair ``(value, auxiliary data)``.
        holomorphic: whether `fun` is holomorphic; then arguments and result must be complex.
            Otherwise the result must be real, and the gradient with respect to a complex argument
            ``x + 1j * y`` is ``df/dx - 1j * df/dy``.
        allow_int: whether integer arguments may be differentiated (their gradient is float0 zeros).
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function of the same arguments that returns the gradient, or ``(gradient, aux)``.

    Raises:
        TypeError: the result is not a scalar, or has a dtype that cannot be differentiated.

    Differs:
        A gradient is weakly typed where its argument is, whatever operations lie between.

        >>> x = jnp.stack([jnp.asarray(1.0), jnp.asarray(2.0)])
        >>> print(x.weak_type, dt.grad(lambda x: x[0])(x).weak_type)
        True True

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> float(dt.grad(jnp.tanh)(0.0))
        1.0
    """
    check_callable(fun, "grad")
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps(fun)
    def grad_fun(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


def linear_transpose(
    fun: Callable[..., Any], *primals: PyTree, reduce_axes: Sequence[Any] = ()
) -> Callable[[PyTree], tuple[PyTree, ...]]:
    """The transpose of a linear function.

    Args:
        fun: a linear function.
        *primals: examples of its arguments; only shapes and dtypes matter, so `ShapeDtypeStruct`
            will do.
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
        TypeError: arguments and results are not all floating-point numbers, or all integers, or
            `fun` uses an operation that cannot be transposed.

    Differs:
        A function that is not linear is an error that names the operation, also where an
        integer, a predicate or a position depends on the argument.

        >>> dt.linear_transpose(lambda x: x * x, 1.0)(1.0)
        Traceback (most recent call last):
            ...
        TypeError: a product of two values that both depend on a tangent cannot be ...

    Example:
        >>> import dovetail as dt
        >>> f_transpose = dt.linear_transpose(lambda x: 2.0 * x, 1.0)
        >>> float(f_transpose(3.0)[0])
        6.0
    """
    check_callable(fun, "linear_transpose")
    check_reduce_axes(reduce_axes)
    leaves, tree = pytree.flatten(primals)
    info = debug_info("linear_transpose", fun, primals)
    avals = abstract_leaves(leaves, info)
    flat = FlatFunction(fun, tree)
    closed = stage(flat, avals, info)
    out_tree = flat.out_tree
    kinds = {dtypes.kind_of(a.dtype) or "?" for a in (*avals, *closed.out_avals)}
    if not (kinds <= set("fc") or kinds <= set("iu")):
        arguments, results = (
            ", ".join(str(a.dtype) for a in several) for several in (avals, closed.out_avals)
        )
        raise TypeError(
            "linear_transpose takes functions from floating-point numbers to such, or from "
            f"integers to integers; {name_of(fun)} maps ({arguments}) to ({results})"
        )

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        cts, ct_tree = pytree.flatten(cotangent)
        if ct_tree != out_tree:
            raise TypeError(
                f"the transpose of {name_of(fun)} takes a cotangent of the structure of its "
                f"result: expected {out_tree}, got {ct_tree}"
            )
        for i, aval in enumerate(closed.out_avals):
            cts[i] = typed_like(cts[i], aval)
            ct_aval = aval_of(cts[i])
            if ct_aval.shape != aval.shape or ct_aval.dtype != aval.dtype:
                raise TypeError(
                    f"the transpose of {name_of(fun)} takes a cotangent of type "
                    f"{aval.short_name()}, got {ct_aval.short_name()}"
                )
        results = transpose_jaxpr(closed.jaxpr, closed.consts, cts, [True] * len(leaves))
        unflattened: tuple[Any, ...] = tree.unflatten(map(as_result, results))
        return unflattened

    return transposed
