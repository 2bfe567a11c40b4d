"""Reverse mode in two passes: vjp, fwd_and_bwd, and the entries of with_refs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from dovetail._core.api.derivatives import (
    check_reduce_axes,
    flags_of_leaves,
    hoist_residuals,
    match_weak_type,
    nonzero_leaves,
    pull_back,
    released,
)
from dovetail._core.api.jit import jit
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_result, typed_like
from dovetail._core.ir.avals import aval_of, is_array_like
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    debug_info,
    leaf_names,
    name_of,
    normalized_argnums,
)
from dovetail._core.transform.linearize import LinearProgram, linearize_flat
from dovetail._core.transform.referencing import Lending, inner

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")


class _Sign:
    """A marker without content; all instances of a class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Sign):
    """In `with_refs` of a vjp function: return the gradient of this argument. The default.

    Example:
        >>> import dovetail as dt
        >>> y, f_vjp = dt.vjp(lambda a, b: a * b, 3.0, 4.0)
        >>> gradient, _ = f_vjp.with_refs(dt.ad.GradValue(), dt.ad.DontWant())(1.0)
        >>> float(gradient)
        4.0
    """

    __slots__ = ()


class DontWant(_Sign):
    """In `with_refs` of a vjp function: do not compute the gradient of this argument.

    Work that only this gradient needs is skipped, too.

    Example:
        >>> import dovetail as dt
        >>> y, f_vjp = dt.vjp(lambda a, b: a * b, 3.0, 4.0)
        >>> f_vjp.with_refs(dt.ad.DontWant(), dt.ad.DontWant())(1.0)
        (DidntWant(), DidntWant())
    """

    __slots__ = ()


class _Placeholder(_Sign):
    """An empty pytree node."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pytree.register_pytree_node(cls, lambda _: ((), None), lambda _, __: cls())


class GradRef(_Placeholder):
    """Returned by a vjp function for a gradient that was added to a reference. It has no leaves.

    Example:
        >>> import dovetail as dt
        >>> y, f_vjp = dt.vjp(lambda a: a * a, 3.0)
        >>> f_vjp.with_refs(dt.new_ref(0.0))(1.0)
        (GradRef(),)
    """

    __slots__ = ()


class DidntWant(_Placeholder):
    """Returned by a vjp function for an argument bound to `DontWant`. It has no leaves.

    Example:
        >>> import dovetail as dt
        >>> y, f_vjp = dt.vjp(lambda a: a * a, 3.0)
        >>> f_vjp.with_refs(dt.ad.DontWant())(1.0)
        (DidntWant(),)
    """

    __slots__ = ()


class NotNeeded(_Placeholder):
    """In `args_res` of a vjp function: this argument is not needed. It has no leaves."""

    __slots__ = ()


class NotSaveable(_Placeholder):
    """In `args_res` of a vjp function: this argument is needed but was not saved. No leaves."""

    __slots__ = ()


def _is_placeholder(x: Any) -> bool:
    return isinstance(x, _Placeholder)


@record(eq=False)
class _BackwardPass:
    """The static data of a vjp function, apart from its residuals; compared by identity.

    Attributes:
        program: the linear program; its residuals are its leading parameters.
        forwarded: for each residual, the index of the argument leaf that it equals, or None.
        in_avals: types of the argument leaves; for references, types of their values.
        in_tree: structure of the arguments.
        out_tree: structure of the result.
        info: names of the function and its arguments, for messages.
        references: indices of the leaves that are differentiated references.
        changed: those of them that the function writes to. The program returns their final values
            after the results of the function.
    """

    program: LinearProgram
    forwarded: Sequence[int | None]
    in_avals: Sequence[Any]
    in_tree: Any
    out_tree: Any
    info: DebugInfo
    references: Sequence[int]
    changed: Sequence[int]

    def name(self, number: int) -> str:
        """The name of an argument leaf."""
        names = self.info.argument_names
        assert names is not None
        return f"{names[number]} of {self.info.function}"


#: What to do with the gradient of each argument leaf: `GradValue`, `DontWant` or `Ref`.
_Wishes = tuple[type, ...]


@bounded
@pytree.register_pytree_node_class
class Pullback:
    """The function returned by `vjp`, from result cotangent to argument cotangents.

    It is a pytree of the residuals and of the references bound to it, so it can be passed to and
    returned from compiled and other transformed functions.

    Attributes:
        args_res: the parts of the arguments that were saved unchanged, as trees like the arguments.
            ``NotNeeded()`` marks parts that were not saved; ``NotSaveable()`` marks parts that must
            be filled in before the function is called.
        opaque_residuals: all other residuals.
    """

    def __init__(
        self,
        args_res: Any,
        opaque_residuals: Any,
        static: _BackwardPass,
        wishes: _Wishes | None = None,
        refs: tuple[Ref, ...] = (),
    ) -> None:
        self.args_res = args_res
        self.opaque_residuals = opaque_residuals
        self._static = static
        self._wishes = wishes
        self._refs = refs

    def tree_flatten(self) -> tuple[Any, Any]:
        """Residuals and bound references as children, the program as static data."""
        return (self.args_res, self.opaque_residuals, self._refs), (self._static, self._wishes)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, Any], children: Any) -> Pullback:
        """The inverse of `tree_flatten`."""
        args_res, opaque_residuals, refs = children
        return cls(args_res, opaque_residuals, *static, refs)

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self._static.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._static.out_tree

    @property
    def out_nzs(self) -> Any:
        """For each part of the result, whether its tangent may be nonzero."""
        count = self.out_tree.num_leaves
        return self.out_tree.unflatten(self._static.program.nonzero_out[:count])

    def __repr__(self) -> str:
        return f"<vjp function from {self.out_tree} to {self.in_tree}>"

    def replace(self, *, args_res: Any = None, opaque_residuals: Any = None) -> Pullback:
        """The same function with other saved values.

        Args:
            args_res: replaces `args_res`.
            opaque_residuals: replaces `opaque_residuals`.

        Example:
            >>> import dovetail as dt
            >>> import dovetail.numpy as jnp
            >>> W, x = jnp.ones((2, 2)), jnp.ones(2)
            >>> y, f_vjp = dt.vjp(jnp.dot, W, x, saveable_args=(False, True))
            >>> f_vjp.args_res
            [NotSaveable(), Array([1., 1.], dtype=float32)]
            >>> f_vjp = f_vjp.replace(args_res=[W, f_vjp.args_res[1]])
            >>> f_vjp(y)[1]
            Array([4., 4.], dtype=float32)
        """
        return Pullback(
            self.args_res if args_res is None else args_res,
            self.opaque_residuals if opaque_residuals is None else opaque_residuals,
            self._static,
            self._wishes,
            self._refs,
        )

    def with_refs(self, *entries: Any) -> Pullback:
        """The same function, with each gradient returned, added to a reference, or left out.

        Args:
            *entries: one for each argument, or a tree with one for each part of it. A reference:
                the call adds the gradient to it, and returns ``GradRef()`` in its place.
                ``GradValue()``: the gradient is returned. ``DontWant()``: it is not computed, and
                ``DidntWant()`` is returned. The last two may stand for an argument with many parts.

                An argument that is itself a reference needs a reference, or ``DontWant()``. If the
                function writes to it, the gradient reference holds the cotangent of the final value
                before the call, and that of the initial value after it.

        Returns:
            The function.

        Raises:
            TypeError: an entry is neither a reference, nor ``GradValue()``, nor ``DontWant()``.
            ValueError: the number of entries differs from that of the arguments, or a reference has
                another shape or dtype than the gradient, or is bound to two arguments that are
                written to.

        Example:
            >>> import dovetail as dt
            >>> import dovetail.numpy as jnp
            >>> total = dt.new_ref(jnp.zeros(3))
            >>> for i in (0, 2, 2):
            ...     y, f_vjp = dt.vjp(lambda x: x[i] ** 2, jnp.arange(3.0))
            ...     _ = f_vjp.with_refs(total)(1.0)
            >>> total
            Ref([0., 0., 8.], dtype=float32)
        """
        static = self._static
        name = f"with_refs of the vjp of {static.info.function}"
        if len(entries) != len(static.in_tree.children()):
            raise ValueError(
                f"{name} takes an entry for each argument, which are "
                f"{len(static.in_tree.children())}, got {len(entries)}; an entry is a reference, "
                "GradValue() or DontWant()"
            )
        flat = pytree.flatten_up_to_prefix(f"the entries of {name}", entries, static.in_tree)
        entry_leaves = pytree.leaves(entries)
        for i, entry in enumerate(flat):
            if not isinstance(entry, (Ref, GradValue, DontWant)):
                instance = f"; write {entry.__name__}()" if isinstance(entry, type) else ""
                raise TypeError(
                    f"{name} got {entry!r:.80} of type {type(entry).__name__} for "
                    f"{static.name(i)}; an entry is a reference to add the gradient to, "
                    f"GradValue() or DontWant(){instance}"
                )
            if type(entry) is Ref:
                if flat.count(entry) > entry_leaves.count(entry):
                    raise ValueError(
                        f"{name} got {entry.described()} for an argument with several parts, "
                        f"{static.name(i)} among them; give a tree with a reference for each"
                    )
                _check_gradient(entry, static.in_avals[i].tangent(), static.name(i), name)
            elif type(entry) is GradValue:
                _refuse_value(static, i)
        written = [flat[i] for i in static.changed if type(flat[i]) is Ref]
        if len(set(written)) != len(written):
            raise ValueError(
                f"{name} got one reference for the gradients of several arguments that "
                f"{static.info.function} writes to; give each its own"
            )
        refs = tuple([entry for entry in flat if type(entry) is Ref])
        wishes = tuple([type(entry) for entry in flat])
        return Pullback(self.args_res, self.opaque_residuals, static, wishes, refs)

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        static = self._static
        program = static.program
        leaves = self._checked_cotangents(cotangents)
        count = len(static.in_avals)
        wishes = self._wishes
        if wishes is None:
            wishes = (GradValue,) * count
            for i in static.references:
                _refuse_value(static, i)
        refs = iter(self._refs)
        bound = [next(refs) if wish is Ref else None for wish in wishes]
        for i in static.changed:
            ref = bound[i]
            leaves.append(Zero(static.in_avals[i].tangent()) if ref is None else ref.get())
        wanted = [wish is not DontWant for wish in wishes] if DontWant in wishes else None
        gradients = pull_back(program, self._residuals(), leaves, static.in_avals, wanted)
        for i in static.changed:
            ref = bound[i]
            if ref is not None:
                ref[...] = as_result(gradients[i])
        results: list[Any] = []
        for i, (wish, ref) in enumerate(zip(wishes, bound, strict=True)):
            if wish is DontWant:
                results.append(DidntWant())
            elif ref is not None:
                if i not in static.changed and type(gradients[i]) is not Zero:
                    ref.addupdate(gradients[i])
                results.append(GradRef())
            else:
                results.append(match_weak_type(as_result(gradients[i]), static.in_avals[i]))
        unflattened: tuple[Any, ...] = static.in_tree.unflatten(results)
        return unflattened

    def _checked_cotangents(self, cotangents: tuple[Any, ...]) -> list[Any]:
        static = self._static
        if len(cotangents) != 1:
            raise TypeError(
                "a vjp function takes one argument, the cotangent of the function's result, got "
                f"{len(cotangents)}; for a result that is a tuple, pass one tuple"
            )
        leaves, tree = pytree.flatten(cotangents[0])
        if tree != static.out_tree:
            difference = pytree.structure_difference(
                static.out_tree, tree, "the result", "the cotangent"
            )
            raise ValueError(
                "a vjp function takes a cotangent that must have the structure of the function's "
                f"result:\n{difference}"
            )
        for i, (ct, aval) in enumerate(zip(leaves, static.program.out_avals, strict=False)):
            if aval.dtype == dtypes.float0 or type(ct) is Zero:
                continue
            ct = leaves[i] = typed_like(ct, aval)
            ct_aval = aval_of(ct)
            if ct_aval.shape != aval.shape or ct_aval.dtype != aval.dtype:
                raise ValueError(
                    f"cotangent number {i} of a vjp function must be {aval.short_name()}, the "
                    f"type of the result, got {ct_aval.short_name()}"
                )
        return leaves

    def _residuals(self) -> list[Any]:
        """The values of the program's residuals."""
        static = self._static
        function = static.info.function
        saved = _aligned(self.args_res, static.in_tree, f"args_res of the vjp of {function}")
        opaque = list(self.opaque_residuals)
        if len(opaque) != static.forwarded.count(None):
            raise ValueError(
                f"opaque_residuals of the vjp of {function} must hold "
                f"{static.forwarded.count(None)} values, got {len(opaque)}"
            )
        missing = [i for i in static.forwarded if i is not None and _is_placeholder(saved[i])]
        if missing:
            raise ValueError(
                f"the vjp of {function} was called without values that it needs and that "
                "saveable_args has kept it from saving: "
                + ", ".join(static.name(i) for i in missing)
                + "; put them into args_res first, as in f_vjp.args_res[0] = value"
            )
        rest = iter(opaque)
        residuals = [next(rest) if i is None else saved[i] for i in static.forwarded]
        parameters = static.program.closed.jaxpr.invars
        for value, number, var in zip(residuals, static.forwarded, parameters, strict=False):
            if not is_array_like(value) or not _same_type(aval_of(value), var.aval):
                what = "a value of the forward pass" if number is None else static.name(number)
                found = aval_of(value).short_name() if is_array_like(value) else repr(value)
                raise ValueError(
                    f"the vjp of {function} was given {found:.80} for {what}, which is "
                    f"{var.aval.short_name()}"
                )
        return residuals


def _refuse_value(static: _BackwardPass, number: int) -> None:
    """Raise if a leaf is a reference, whose gradient cannot be returned."""
    if number in static.references:
        raise ValueError(
            f"{static.name(number)} is a mutable reference, so that its gradient cannot be "
            "returned but is added to one: f_vjp.with_refs(gradient_ref)(cotangent), with an entry "
            "for each argument; DontWant() as an entry leaves it out"
        )


def _check_gradient(ref: Ref, aval: Any, argument: str, name: str) -> None:
    # The gradient of integers is zero, so nothing is added and any reference will do.
    if not _same_type(ref.aval, aval) and aval.dtype != dtypes.float0:
        raise ValueError(
            f"{name} got {ref.described()} for {argument}, whose gradient is {aval.short_name()}; "
            "give a reference of the shape and dtype of the gradient"
        )


def _same_type(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _aligned(tree: Any, structure: Any, name: str) -> list[Any]:
    """Parts of a tree for the leaves of a structure; only lengths of containers must agree."""
    if pytree.treedef_is_leaf(structure):
        return [tree]
    parts = pytree.leaves(tree, is_leaf=lambda part: part is not tree)
    inner_structures = structure.children()
    if len(parts) != len(inner_structures) or (parts and parts[0] is tree):
        raise ValueError(
            f"{name} must be arranged as the arguments are, which have {len(inner_structures)} "
            f"parts there, and not be a {type(tree).__name__} with {len(parts)}"
        )
    return [
        leaf
        for i, (part, below) in enumerate(zip(parts, inner_structures, strict=True))
        for leaf in _aligned(part, below, f"{name}[{i}]")
    ]


@overload
def vjp(
    fun: Callable[..., R],
    *primals: PyTree,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> tuple[R, Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]],
    *primals: PyTree,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> tuple[R, Pullback, Aux]: ...
def vjp(
    fun: Callable[..., Any],
    *primals: PyTree,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> tuple[PyTree, Pullback] | tuple[PyTree, Pullback, PyTree]:
    """The value of a function and its derivative backwards (reverse mode).

    The derivative is a function, and also a pytree of its residuals: it can be returned from
    compiled functions and passed to others.

    Args:
        fun: function of arrays and pytrees of them, and of mutable references.
        *primals: arguments at which to differentiate. References to floating-point numbers are
            differentiated, too: `fun` works on references of its own, whose final values are
            written back.
        has_aux: whether `fun` returns a pair whose second part is passed through.
        reduce_axes: accepted for compatibility; must be empty.
        saveable_args: which arguments the derivative may hold on to: a bool, or a tuple with a bool
            for each argument, or a nested tuple for an argument that is a container. Of the others,
            put the values that are needed into `args_res` of the derivative before calling it.
            Values computed from them are still saved.
        in_nzs: which arguments to differentiate, in the same form; all by default. The gradients of
            the others are zero.

    Returns:
        ``(result, f_vjp)``, and the auxiliary data if `has_aux`. ``f_vjp(cotangent)`` returns a
        tuple with the cotangent of each argument. ``f_vjp.with_refs(...)`` chooses which of them to
        compute, and which to add to references.

    Raises:
        TypeError: an argument is not an array, or a flag is not a bool.
        ValueError: the flags do not match the structure of the arguments, or a reference is passed
            twice.

    Differs:
        One reference for two arguments, or one that is used from outside as well, is refused.
        What `with_refs` returns can be passed to compiled functions, ``GradValue()`` and
        ``DontWant()`` may stand for a whole argument there, and references to integers need no
        entry. Values that are put into `args_res` are checked.

        >>> r = dt.new_ref(1.0)
        >>> dt.vjp(lambda a, b: a[...] * b[...], r, r)
        Traceback (most recent call last):
            ...
        ValueError: vjp of <lambda> was passed the mutable reference Ref{f32[]} made ...

    Example:
        >>> import dovetail as dt
        >>> y, f_vjp = dt.vjp(lambda a, b: a * b, 3.0, 4.0)
        >>> [float(g) for g in f_vjp(1.0)]
        [4.0, 3.0]
        >>> state, gradient = dt.new_ref(2.0), dt.new_ref(0.0)
        >>> y, f_vjp = dt.vjp(lambda ref: ref[...] ** 2, state)
        >>> f_vjp.with_refs(gradient)(1.0), gradient
        ((GradRef(),), Ref(4., dtype=float32))
    """
    check_callable(fun, "vjp")
    check_reduce_axes(reduce_axes)
    return _vjp(fun, fun, range(len(primals)), primals, has_aux, saveable_args, in_nzs)


def _vjp(
    fun: Callable[..., Any],
    named: Callable[..., Any],
    numbers: Sequence[int],
    primals: tuple[Any, ...],
    has_aux: bool,
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """`vjp` of `fun`, which takes the arguments of `named` with these numbers."""
    leaves, tree = pytree.flatten(primals)
    name = f"vjp of {name_of(named)}"
    check_array_leaves(
        leaves, lambda: leaf_names(named, primals, None, numbers), name, references=True
    )
    saveable = flags_of_leaves("saveable_args of vjp", saveable_args, tree)
    in_avals = [inner(x.aval) if type(x) is Ref else aval_of(x) for x in leaves]
    nonzero = [
        v and a.tangent().dtype != dtypes.float0
        for v, a in zip(nonzero_leaves(in_nzs, "vjp", tree), in_avals, strict=True)
    ]
    flat = FlatFunction(fun, tree, has_aux=has_aux)
    lent = [i for i, x in enumerate(leaves) if type(x) is Ref and nonzero[i]]
    info = debug_info("vjp", named, primals, None, numbers)
    function = Lending(flat, leaves, lent, name) if lent else flat
    values = function.values() if isinstance(function, Lending) else leaves
    outs, program = linearize_flat(function, values, nonzero, info)
    changed = function.changed if isinstance(function, Lending) else []
    count = len(outs) - len(changed)
    for i, value in zip(changed, outs[count:], strict=True):
        leaves[i].write(value)
    residuals = hoist_residuals(program)
    forwarded = [None if i in lent else i for i in program.forwarded]
    saved = {i: r for i, r in zip(forwarded, residuals, strict=True) if i is not None}
    static = _BackwardPass(
        program, forwarded, in_avals, tree, flat.out_tree, info, tuple(lent), tuple(changed)
    )
    args_res = tree.unflatten(
        [
            NotNeeded() if i not in saved else saved[i] if save else NotSaveable()
            for i, save in enumerate(saveable)
        ]
    )
    opaque = [r for i, r in zip(forwarded, residuals, strict=True) if i is None]
    pullback = Pullback(list(args_res), opaque, static)
    result = flat.out_tree.unflatten(map(as_result, outs[:count]))
    return (result, pullback, released(flat.aux)) if has_aux else (result, pullback)


def fwd_and_bwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[P, tuple[PyTree, ...]], Callable[[PyTree, PyTree], PyTree]]:
    """The forward and the backward pass of a function, as two functions, each compiled once.

    Called outside a compiled function, `vjp` returns a new derivative function each time, which is
    not compiled as a whole.

    Args:
        fun: function of arrays and pytrees of them.
        argnums: which positional arguments to differentiate: a number, or a sequence of them.
        has_aux: whether `fun` returns a pair whose second part is passed through.
        jitted: whether the two functions are compiled.

    Returns:
        ``fwd`` and ``bwd``. ``fwd(*args, **kwargs)`` takes the arguments of `fun` and returns
        ``(result, residuals)``, and the auxiliary data if `has_aux`. ``bwd(residuals, cotangent)``
        returns the cotangent of the argument, or a tuple of them for a sequence of `argnums`. The
        residuals are the pytree that `vjp` returns.

    Raises:
        TypeError: `fun` is not callable, or `argnums` are not integers.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> fwd, bwd = dt.fwd_and_bwd(lambda W, x: jnp.sin(W @ x), argnums=(0, 1))
        >>> for _ in range(3):
        ...     y, residuals = fwd(jnp.ones((2, 2)), jnp.zeros(2))
        ...     of_W, of_x = bwd(residuals, jnp.ones(2))
        >>> of_x
        Array([2., 2.], dtype=float32)
    """
    check_callable(fun, "fwd_and_bwd")
    name = name_of(fun)
    several = isinstance(argnums, (tuple, list))

    @wraps(fun)
    def fwd(*args: Any, **kwargs: Any) -> Any:
        numbers = normalized_argnums(argnums, len(args), f"fwd_and_bwd of {name}")

        def function(*differentiated: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, differentiated, strict=True):
                full[i] = value
            return fun(*full, **kwargs)

        function.__name__ = name  # for messages
        return _vjp(function, fun, numbers, tuple(args[i] for i in numbers), has_aux)

    def bwd(residuals: Any, cotangent: Any, /) -> Any:
        if not isinstance(residuals, Pullback):
            raise TypeError(
                f"the backward pass of {name} takes the residuals that the forward pass returned, "
                f"got {type(residuals).__name__}"
            )
        cotangents = residuals(cotangent)
        return cotangents if several else cotangents[0]

    bwd.__name__ = f"{name}_bwd"
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
