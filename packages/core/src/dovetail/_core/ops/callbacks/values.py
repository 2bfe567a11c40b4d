"""`pure_callback` and `io_callback`: Python functions that return values to programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.runtime_errors import raised_by_callback
from dovetail._core.base.source import describe
from dovetail._core.base.typing import PyTree, Sharding
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import batch_size, broadcast_in_dim, to_front
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.effects import io_effect, ordered_io_effect
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.ops.callbacks.calls import (
    FlatCallback,
    batched_results,
    call_in_program,
    call_now,
    check_device_sharding,
    for_each,
)
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.manual_axes import joined, wanted_types
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.transform.flattening import check_callable, declared_axes

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_VMAP_METHODS: Final = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


class ValueCallback(Primitive):
    """Returns the results of a Python function, which is otherwise opaque.

    Attributes:
        way_out: the advice in messages about missing derivatives.
    """

    multiple_results = True
    types_axes = True
    no_derivative = "nothing is known of a Python function but its results"
    way_out: ClassVar[str]

    def abstract(self, *avals: Any, result_avals: tuple[Any, ...], **params: Any) -> Any:
        together = joined(wanted_types(self.name, avals, ()))
        return [
            out.update(manual_axis_type=out.manual_axis_type | together) for out in result_avals
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> NoReturn:
        raise ValueError(
            f"{self.name} has no derivative: dovetail cannot see into "
            f"{params['callback'].place} (called at {describe()}). Give the function that calls "
            f"it a rule with dovetail.custom_jvp or dovetail.custom_vjp, or {self.way_out}"
        )


class ReturningCallback(ValueCallback):
    """Gets its results as return values of a Python function."""

    calls_host = True

    def evaluate(self, *args: Any, callback: FlatCallback, result_avals: Any, **params: Any) -> Any:
        """Call the function directly, outside compiled programs."""
        ordered = params.get("ordered", False)
        try:
            return call_now(self.name, callback, args, result_avals, ordered, params["sharding"])
        except Exception as error:
            failure = raised_by_callback(error)
            if failure is error:
                raise
            raise failure from None

    def reference(self, *args: Any, callback: FlatCallback, **params: Any) -> Any:
        return callback.called_on(args)


class PureCallback(ReturningCallback):
    """Calls a Python function without side effects."""

    name = "pure_callback"
    way_out = (
        "keep it out of what is differentiated with dovetail.lax.stop_gradient around its arguments"
    )

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batched_by_method(self, args, dims, params, params["callback"].place)

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        callback, sharding = params["callback"], params["sharding"]
        return call_in_program(context, values, self.name, callback, None, sharding=sharding)


def batched_by_method(
    primitive: Primitive,
    args: Sequence[Any],
    dims: Sequence[int | None],
    params: dict[str, Any],
    callee: str,
) -> tuple[Any, Any]:
    """A batching rule, chosen by the parameter `vmap_method`.

    Args:
        primitive: the primitive.
        args: its operands.
        dims: their batch dimensions.
        params: its parameters.
        callee: the function that it calls, for the message.
    """
    method = params["vmap_method"]
    if method is None:
        raise NotImplementedError(
            f"vmap of a {primitive.name} needs to know what the function "
            f"{callee} makes of a batch (called at {describe()}): give "
            "vmap_method, one of 'sequential' (one call for each element), "
            "'sequential_unrolled', 'expand_dims' and 'broadcast_all' (one call for all, "
            "with a leading dimension) and 'legacy_vectorized'"
        )
    if method.startswith("sequential"):
        return for_each(primitive, args, dims, params, unrolled=method == "sequential_unrolled")
    size = batch_size(args, dims)
    if method == "broadcast_all":
        values = [to_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    else:
        values = [
            to_front(x, d, size)
            if d is not None
            else _with_leading_one(x)
            if method == "expand_dims"
            else x
            for x, d in zip(args, dims, strict=True)
        ]
    outs = primitive.bind(
        *values, **params | {"result_avals": batched_results(params["result_avals"], size)}
    )
    return outs, [0] * len(outs)


def check_vmap_method(method: Any, caller: str) -> None:
    """Raise ValueError unless `method` exists."""
    if method is not None and method not in _VMAP_METHODS:
        raise ValueError(
            f"vmap_method of {caller} must be one of {', '.join(map(repr, _VMAP_METHODS))} "
            f"or None, got {method!r}"
        )


def _with_leading_one(x: Any) -> Any:
    shape = shape_of(x)
    return broadcast_in_dim(x, (1, *shape), tuple(range(1, len(shape) + 1)))


class IOCallback(ReturningCallback):
    """Calls a Python function with side effects or state."""

    name = "io_callback"
    has_effects = True
    way_out = "pass its arguments through dovetail.lax.stop_gradient"

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        if params["ordered"]:
            raise ValueError(
                f"Cannot `vmap` ordered IO callback: the calls of {params['callback'].place} "
                f"(called at {describe()}) for the elements of a batch have no order in the "
                "program; write the loop with lax.scan or lax.map, or leave out ordered=True"
            )
        return for_each(self, args, dims, params)

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        effect = ordered_io_effect if params["ordered"] else io_effect
        callback, sharding = params["callback"], params["sharding"]
        return call_in_program(context, values, self.name, callback, effect, sharding=sharding)

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({ordered_io_effect if params["ordered"] else io_effect})


pure_callback_p: Final = PureCallback()
io_callback_p: Final = IOCallback()


# Public functions.


def promised(result_shape_dtypes: Any, caller: str) -> tuple[tuple[Any, ...], Any]:
    """The avals of promised results, and their structure."""
    pairs, tree = pytree.flatten_with_path(result_shape_dtypes)
    return tuple([promised_one(x, caller, pytree.keystr(path)) for path, x in pairs]), tree


def promised_one(x: Any, caller: str, path: str) -> ShapedArray:
    """The aval of a promised result."""
    if isinstance(x, ArrayClass):
        x = aval_of(x)
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        raise TypeError(
            f"{caller}: result_shape_dtypes{path} must have a shape and a dtype, as "
            "dovetail.ShapeDtypeStruct((3,), dovetail.numpy.float32) has, or None for no result; "
            f"got {x!r:.80} of type {type(x).__name__}"
        )
    if dtypes.is_extended(dtype):
        raise TypeError(
            f"{caller}: result_shape_dtypes{path} is of {dtype}, which NumPy does not have; return "
            "the numbers (dovetail.random.key_data) and make keys of them in the program"
        )
    wanted = np.dtype(dtype)
    canonical = dtypes.canonicalize_dtype(wanted)
    if canonical != wanted:
        raise ValueError(
            f"{caller}: result_shape_dtypes{path} is of {wanted}, but 64-bit types are off; write "
            f'{canonical}, or switch them on with dovetail.config.update("enable_x64", True)'
        )
    return make_aval(tuple(map(int, shape)), canonical, manual_axis_type=declared_axes(x))


def flat_operands(
    args: tuple[Any, ...], kwargs: dict[str, Any], caller: str
) -> tuple[list[Any], Any]:
    """The checked leaves of arguments, and their structure."""
    pairs, tree = pytree.flatten_with_path((args, kwargs))
    leaves = [
        as_operand(
            x, caller, f"{'args' if path[0].idx == 0 else 'kwargs'}{pytree.keystr(path[1:])}"
        )
        for path, x in pairs
    ]
    return leaves, tree


def pure_callback(
    callback: Callable[..., PyTree],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> PyTree:
    """Call a pure Python function, also from compiled programs.

    The function must be pure: same arguments, same results, and no side effects. It may be called
    more often than the program says, or not at all if its results are unused, in any order, and on
    any thread. It gets host arrays, which both NumPy and dovetail accept.

    Args:
        callback: the function.
        result_shape_dtypes: a tree of objects with ``shape`` and ``dtype``, such as
            `dovetail.ShapeDtypeStruct`, for the results. A program must know these types before the
            function is called.
        *args: arguments of the function, trees of arrays.
        sharding: the `SingleDeviceSharding` of the device that calls it, one of those of the
            program; None for the first one.
        vmap_method: how to vectorize under `vmap`. ``"sequential"``: a loop with one call for each
            element; ``"sequential_unrolled"``: the same loop, unrolled; ``"expand_dims"``: one
            call, with a new leading dimension for mapped arguments, and one of size 1 for others;
            ``"broadcast_all"``: one call, with the full leading dimension for all;
            ``"legacy_vectorized"``: one call, with unmapped arguments unchanged. With None, the
            function cannot be mapped.
        **kwargs: keyword arguments, trees of arrays.

    Returns:
        The results: a tree of arrays with the given shapes and dtypes. A float64 or int64 result is
        converted to 32 bits where that is expected.

    Raises:
        TypeError: the results differ from `result_shape_dtypes`, or an argument is not an array.
        ValueError: `vmap_method` is none of these, the function is differentiated, or the program
            does not run on the device that `sharding` names.
        NotImplementedError: the function is mapped, but has no `vmap_method`, or `sharding` is on
            several devices.

    A program over several devices calls it once, with whole values, and all devices get the
    results; inside `dovetail.shard_map` each device calls it with its part. Such a program is
    waited for, and raises what the function raises. The function cannot run another one.

    An exception in the function is raised where the result is first needed.

    Differs:
        A callback that raises raises that exception, not another one with its text. Scalars of
        Python are taken as results of any width.

        >>> def fail(x):
        ...     raise KeyError("no such row")
        >>> try:
        ...     dt.jit(lambda x: dt.pure_callback(fail, x, x))(1.0)
        ... except KeyError as error:
        ...     print(error)
        'no such row'

    Example:
        >>> import numpy as np
        >>> import dovetail as dt
        >>> def median(x):
        ...     return np.median(x)
        >>> result = dt.ShapeDtypeStruct((), np.float32)
        >>> dt.jit(lambda x: dt.pure_callback(median, result, x))(np.float32([3, 1, 2]))
        Array(2., dtype=float32)
    """
    check_callable(callback, "pure_callback")
    check_vmap_method(vmap_method, "pure_callback")
    check_device_sharding(sharding, "pure_callback")
    avals, out_tree = promised(result_shape_dtypes, "pure_callback")
    leaves, in_tree = flat_operands(args, kwargs, "pure_callback")
    outs = pure_callback_p.bind(
        *leaves,
        callback=FlatCallback(callback, in_tree, out_tree),
        result_avals=avals,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return pytree.unflatten(out_tree, outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects or state, also from compiled programs.

    It is called exactly as often as the program says, even if its results are unused.

    Args:
        callback: the function.
        result_shape_dtypes: a tree of objects with ``shape`` and ``dtype`` for the results; None if
            the function returns None.
        *args: arguments of the function, trees of arrays.
        sharding: the `SingleDeviceSharding` of the device that calls it, one of those of the
            program; None for the first one.
        ordered: whether this call keeps its order among other ordered calls, within a program and
            from one program to the next. Ordered calls cannot be mapped by `vmap`.
        **kwargs: keyword arguments, trees of arrays.

    Returns:
        The results: a tree of arrays with the given shapes and dtypes.

    Raises:
        TypeError: the results differ from `result_shape_dtypes`, or an argument is not an array.
        ValueError: the function is differentiated, an ordered call is mapped, or the program does
            not run on the device that `sharding` names.
        NotImplementedError: `sharding` is on several devices.

    A program over several devices calls it once, with whole values, and all devices get the
    results; inside `dovetail.shard_map` each device calls it with its part. Such a program is
    waited for, and raises what the function raises. The function cannot run another one.

    An exception in the function is raised where the results of the program are first needed, or by
    `dovetail.effects_barrier`.

    Example:
        >>> import numpy as np
        >>> import dovetail as dt
        >>> from dovetail.experimental import io_callback
        >>> seen = []
        >>> @dt.jit
        ... def double(x):
        ...     io_callback(lambda x: seen.append(float(x)), None, x, ordered=True)
        ...     return 2 * x
        >>> [float(double(x)) for x in (1.0, 2.0)], dt.effects_barrier(), seen
        ([2.0, 4.0], None, [1.0, 2.0])
    """
    check_callable(callback, "io_callback")
    check_device_sharding(sharding, "io_callback")
    avals, out_tree = promised(result_shape_dtypes, "io_callback")
    leaves, in_tree = flat_operands(args, kwargs, "io_callback")
    outs = io_callback_p.bind(
        *leaves,
        callback=FlatCallback(callback, in_tree, out_tree),
        ordered=bool(ordered),
        result_avals=avals,
        sharding=sharding,
    )
    return pytree.unflatten(out_tree, outs)
