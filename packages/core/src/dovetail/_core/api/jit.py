"""The public `jit`."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

import numpy as np

from dovetail._core.api.call_caches import cache_info
from dovetail._core.base import caches, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.tracebacks import boundary
from dovetail._core.base.typing import Device, PyTree
from dovetail._core.base.unspecified import UNSPECIFIED
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.calls.jit import JitFunction
from dovetail._core.runtime.calls.staged_program import AskedShardings, JitOptions
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.layout import AutoLayout, Format, in_own_order
from dovetail._core.runtime.devices.sharding import as_sharding
from dovetail._core.transform.flattening import abstract, check_callable, name_of

if TYPE_CHECKING:
    from dovetail._core.api.stages import Lowered, Traced, Wrapped

P = ParamSpec("P")
R = TypeVar("R")


class Inline(enum.Enum):
    """When the calls of a jitted function in another one are replaced by its body.

    ``JAX_EARLY`` records the body in place, as ``inline=True`` does. With the others a call stays
    one equation, and the compiler inlines it when it likes.

    Example:
        >>> import dovetail as dt
        >>> double = dt.jit(lambda x: 2 * x, inline=dt.Inline.JAX_EARLY)
        >>> [str(e.primitive) for e in dt.make_jaxpr(double)(1.0).eqns]
        ['mul']
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: PyTree = ...,
    out_shardings: PyTree = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Device | None = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    compiler_options: Mapping[str, Any] | None = ...,
) -> Wrapped[P, R]: ...
@overload
def jit(
    *,
    in_shardings: PyTree = ...,
    out_shardings: PyTree = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Device | None = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    compiler_options: Mapping[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...
def jit(
    fun: Callable[..., Any] = UNSPECIFIED,
    /,
    *,
    in_shardings: PyTree = UNSPECIFIED,
    out_shardings: PyTree = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a function on its first call with each signature of arguments.

    For each combination of structures, shapes, dtypes and static arguments, the function runs once
    with tracers. The recorded program is compiled and cached.

    Args:
        fun: a pure function of arrays and pytrees of them. If left out, a decorator with these
            options is returned.
        in_shardings: the shardings of positional arguments: a sharding, or a tree that is a prefix
            of the tuple of those that are not static; None for those that stay where they are.
            What is not committed is placed so.
        out_shardings: the shardings of results, likewise; None leaves them to the compiler.
        static_argnums: positional arguments that are part of the program. They must be hashable;
            each new value is compiled anew.
        static_argnames: keyword arguments that are part of the program. Numbers and names imply
            each other through the signature of `fun`.
        donate_argnums: positional arguments whose memory may be reused for results; they are
            invalid after the call.
        donate_argnames: keyword arguments whose memory may be reused for results.
        keep_unused: whether unused arguments stay arguments of the program.
        device: the device to run on; by default, that of the arguments.
        backend: the platform to run on.
        inline: whether calls from a traced function record the body in place; or an `Inline`.
        compiler_options: compiler options by name.

    Returns:
        The compiled function, with the methods `trace`, `lower`, `eval_shape`, `clear_cache` and
        `cache_info`.

    Raises:
        TypeError: `fun` is not callable, or an option has the wrong type.
        ValueError: an option names an argument that `fun` does not have.

    Differs:
        A program of more nested branches and loops than XLA's stack holds (128) is refused, and
        so is an array of more than 2**56 bytes, at which XLA ends the process.

        >>> dt.jit(lambda: jnp.zeros((2**28, 2**28))).lower()
        Traceback (most recent call last):
            ...
        ValueError: an array f32[268435456,268435456] would take 2.9e+17 bytes ...

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.jit
        ... def selu(x, alpha=1.67, scale=1.05):
        ...     return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)
        >>> selu(jnp.arange(3.0))
        Array([0.  , 1.05, 2.1 ], dtype=float32)
    """
    options: dict[str, Any] = {
        "in_shardings": _asked("in_shardings", in_shardings),
        "out_shardings": _asked("out_shardings", out_shardings),
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device,
        "backend": backend,
        "inline": inline,
        "compiler_options": compiler_options,
    }
    if fun is UNSPECIFIED:
        return partial(_jit, **options)
    return _jit(fun, **options)


def _jit(
    fun: Callable[..., Any],
    *,
    in_shardings: AskedShardings | None,
    out_shardings: AskedShardings | None,
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    donate_argnames: Any,
    keep_unused: bool,
    device: Any,
    backend: str | None,
    inline: bool | Inline,
    compiler_options: Mapping[str, Any] | None,
) -> Any:
    check_callable(fun, "jit")
    name = name_of(fun)
    statics = _arguments(fun, static_argnums, static_argnames, "static")
    donated = _arguments(fun, donate_argnums, donate_argnames, "donate")
    both = set(statics[0]) & set(donated[0]) or set(statics[1]) & set(donated[1])
    if both:
        raise ValueError(
            f"jit of {name}: static arguments have no memory to donate, but "
            f"{sorted(both, key=str)} are given as both; leave them out of one"
        )
    if device is not None and backend is not None:
        raise ValueError("jit takes device or backend, not both")
    if backend is not None:
        device = clients.local_devices(backend=backend)[0]
    if device is not None and not clients.is_device(device):
        raise TypeError(
            f"device of jit must be a device, such as dovetail.devices()[0], got {device!r}"
        )
    if not isinstance(inline, bool | Inline):
        raise ValueError(
            f"inline of jit must be True, False or a dovetail.Inline, got {inline!r:.80}"
        )
    options = JitOptions(
        name=name,
        static_argnums=statics[0],
        static_argnames=statics[1],
        donate_argnums=donated[0],
        donate_argnames=donated[1],
        keep_unused=bool(keep_unused),
        inline=inline in (True, Inline.JAX_EARLY),
        device=device,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        compiler_options=tuple(sorted((compiler_options or {}).items())),
    )
    engine = JitFunction(fun, options)
    jitted = engine.callable
    jitted.trace = partial(_trace, engine)
    jitted.lower = partial(_lower, engine)
    jitted.eval_shape = partial(_eval_shape, engine)
    jitted.clear_cache = engine.clear
    jitted.cache_info = partial(cache_info, engine)
    return jitted


def _traced(engine: JitFunction, args: Any, kwargs: Any) -> Traced:
    from dovetail._core.api.stages import Traced  # deferred: calls need no stages, nor programs

    arguments = engine.flatten_args(args, kwargs, abstract=True)
    staged = engine.staged_for(arguments, [abstract(leaf) for leaf in arguments.leaves])

    def place() -> Any:
        return engine.place_for(arguments, staged)

    return Traced(staged, place)


@boundary
def _trace(engine: JitFunction, /, *args: Any, **kwargs: Any) -> Traced:
    return _traced(engine, args, kwargs)


@boundary
def _lower(
    engine: JitFunction,
    /,
    *args: Any,
    lowering_platforms: Sequence[str] | None = None,
    **kwargs: Any,
) -> Lowered:
    return _traced(engine, args, kwargs).lower(lowering_platforms=lowering_platforms)


@boundary
def _eval_shape(engine: JitFunction, /, *args: Any, **kwargs: Any) -> Any:
    return _traced(engine, args, kwargs).out_info


def _arguments(
    fun: Callable[..., Any], numbers: Any, names: Any, kind: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Argument numbers and names, each completed from the other through the signature."""
    if numbers is None and names is None:
        return (), ()
    function = name_of(fun)
    argnums = _integers(numbers, f"{kind}_argnums", function)
    argnames = _strings(names, f"{kind}_argnames", function)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        if any(n < 0 for n in argnums):
            raise ValueError(
                f"{kind}_argnums={numbers!r} of jit of {function}: the signature of the function "
                "is not known, so numbers cannot count from the end"
            ) from None
        return argnums, argnames
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    positions = []
    for number in argnums:
        if number < 0 and not variadic:
            number += len(positional)
        if number < 0 and variadic:
            raise ValueError(
                f"{kind}_argnums={numbers!r} of jit: {function} takes any number of positional "
                "arguments, so numbers cannot count from the end"
            )
        if number < 0 or (number >= len(positional) and not variadic):
            raise ValueError(
                f"{kind}_argnums={numbers!r} of jit: {function} has "
                f"{counted(len(positional), 'positional argument')}"
            )
        positions.append(number)
    for name in argnames:
        if name not in keywords and not any_keyword:
            raise ValueError(
                f"{kind}_argnames={names!r} of jit: {function} has no argument {name!r}; use one "
                f"that it has: {', '.join(sorted(keywords)) or 'none'}"
            )
    implied_names = (
        [positional[n].name for n in positions if n < len(positional)] if names is None else []
    )
    implied_numbers = (
        [i for i, p in enumerate(positional) if p.name in argnames] if numbers is None else []
    )
    implied_names = [n for n in implied_names if n in keywords]
    return (
        tuple(sorted({*positions, *implied_numbers})),
        tuple(sorted({*argnames, *implied_names})),
    )


def _asked(option: str, given: Any) -> AskedShardings | None:
    """The shardings asked of `jit`; None if there are none."""
    if given is UNSPECIFIED:
        return None
    leaves, tree = pytree.flatten(given, is_leaf=lambda x: x is None)
    places = [_asked_sharding(option, leaf) for leaf in leaves]
    if all(place is None for place in places):
        return None
    return AskedShardings(option, tree.unflatten(places))


def _asked_sharding(option: str, place: Any) -> Any:
    if isinstance(place, Format):
        place = (
            place.sharding
            if isinstance(place.layout, AutoLayout)
            else in_own_order(place, f"{option} of jit")
        )
    if place is None or place is UNSPECIFIED:
        return None
    if isinstance(place, PartitionSpec):
        return place  # it is over the mesh that is set when the function is called
    return as_sharding(place, option)


def _integers(value: Any, option: str, function: str) -> tuple[int, ...]:
    if value is None:
        return ()
    try:
        values = (value.__index__(),) if hasattr(value, "__index__") else tuple(value)
        return tuple(cast(int, v.__index__()) for v in values)
    except (TypeError, AttributeError):
        raise TypeError(
            f"{option} of jit of {function} must be an integer or a sequence of integers, got "
            f"{value!r}"
        ) from None


def _strings(value: Any, option: str, function: str) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = np.iterable(value) and not isinstance(value, str)
    values = tuple(value) if listed else (value,)
    if not all(isinstance(v, str) for v in values):
        raise TypeError(f"{option} of jit of {function} must be a string or strings, got {value!r}")
    return values


def pjit(
    fun: Callable[P, R],
    in_shardings: PyTree = UNSPECIFIED,
    out_shardings: PyTree = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Wrapped[P, R]:
    """`dovetail.jit` by its older name, with arguments that may be given by position.

    Args:
        fun: as for `dovetail.jit`.
        in_shardings: the same.
        out_shardings: the same.
        static_argnums: the same.
        static_argnames: the same.
        donate_argnums: the same.
        donate_argnames: the same.
        keep_unused: the same.
        device: the same.
        backend: the same.
        inline: the same.
        compiler_options: the same.

    Returns:
        What `dovetail.jit` returns.

    Example:
        >>> from dovetail.experimental.pjit import pjit
        >>> print(pjit(lambda x: x + 1)(1))
        2
    """
    return jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )


def clear_caches() -> None:
    """Drop everything traced or compiled in this process; the cache on disk stays.

    Example:
        >>> import dovetail as dt
        >>> dt.clear_caches()
    """
    caches.clear_all()
