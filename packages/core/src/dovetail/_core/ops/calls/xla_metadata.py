"""What a program tells XLA about its operations, as names with values: frontend attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

from dovetail._core.base import pytree
from dovetail._core.base.restoring import Restoring, within
from dovetail._core.base.source import Metadata
from dovetail._core.base.typing import PyTree
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import SameValue
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.calls.program_primitive import CallPrimitive
from dovetail._core.trace.scopes import scope
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import check_callable, location_of, name_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

P = ParamSpec("P")
R = TypeVar("R")

#: Names and values, sorted by name.
Pairs = tuple[tuple[str, str], ...]
#: "same" or "drop", or what holds for derivatives instead.
ForDerivatives = str | Pairs


def _pairs(given: Mapping[str, Any], caller: str) -> Pairs:
    written = []
    for name, value in sorted(given.items()):
        if not isinstance(value, bool | int | float | str):
            raise TypeError(
                f"{caller}: the value of {name} is a string, a number or a bool, got {value!r:.80}"
            )
        written.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return tuple(written)


class XlaMetadataCall(CallPrimitive):
    """A call of a function of the program, of which XLA is told something."""

    name = "xla_metadata_call"

    def for_derivatives(self, params: dict[str, Any]) -> dict[str, Any]:
        said: ForDerivatives = params["ad_metadata"]
        if said == "same":
            return params
        pairs = () if isinstance(said, str) else said
        return params | {"xla_metadata": pairs, "ad_metadata": "same"}

    def lower(
        self, context: Builder, *values: Any, jaxpr: ClosedJaxpr, xla_metadata: Pairs, **params: Any
    ) -> Any:
        results = context.call_jaxpr(jaxpr, values, self.name)
        context.tell(results, xla_metadata)
        return results


xla_metadata_call_p: Final = XlaMetadataCall()


class XlaMetadataValue(SameValue):
    """The value itself, of whose operation XLA is told something."""

    name = "xla_metadata_value"

    def lower(self, context: Builder, x: Any, *, xla_metadata_kvs: Pairs) -> Any:
        context.tell([x], xla_metadata_kvs)
        return x


xla_metadata_value_p: Final = XlaMetadataValue()


class MetadataScope(Restoring[None]):
    """A block whose operations XLA is told something of; also a decorator."""

    __slots__ = ("_names",)

    def __init__(self, pairs: Pairs) -> None:
        self._names = (Metadata(pairs),) if pairs else ()
        super().__init__(*scope(self._names))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` in such a block."""
        return within(partial(Restoring, *scope(self._names)), function)


@overload
def set_xla_metadata(x: None = None, **kwargs: bool | float | str) -> MetadataScope: ...


@overload
def set_xla_metadata(x: PyTree, **kwargs: bool | float | str) -> PyTree: ...


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Tell XLA something of operations, in its own terms.

    They become entries of the attribute ``mhlo.frontend_attributes``, which XLA's passes look at.
    What is told does not change results.

    Args:
        x: arrays, a tree of them: it is told of the operations that compute them.
        **kwargs: what is told: names, and strings, numbers or bools.

    Returns:
        `x`; without it, a context manager and decorator, inside which it is told of every
        operation, also of those that are derived from them. Those of a jitted function that is
        called there are not changed: it is told of the call.

    Raises:
        TypeError: a value is none of these.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.xla_metadata import set_xla_metadata
        >>> @dt.jit
        ... def f(x):
        ...     with set_xla_metadata(color="red"):
        ...         y = jnp.sin(x)
        ...     return set_xla_metadata(jnp.cos(y), size=3)
        >>> text = f.lower(1.0).as_text()
        >>> 'sine %arg0 {mhlo.frontend_attributes = {color = "red"}}' in text
        True
        >>> 'cosine %0 {mhlo.frontend_attributes = {size = "3"}}' in text
        True
    """
    pairs = _pairs(kwargs, "set_xla_metadata")
    if x is None:
        return MetadataScope(pairs)
    leaves, tree = pytree.flatten_with_path(x)
    operands = [
        as_operand(leaf, "set_xla_metadata", f"x{pytree.keystr(path)}") for path, leaf in leaves
    ]
    return pytree.unflatten(
        tree, [xla_metadata_value_p.bind(leaf, xla_metadata_kvs=pairs) for leaf in operands]
    )


@overload
def xla_metadata_call(
    f: None = None, /, **meta: bool | float | str
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@overload
def xla_metadata_call(f: Callable[P, R], /, **meta: bool | float | str) -> Callable[P, R]: ...


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """Make a function one call in a program, of which XLA is told something.

    Args:
        f: the function; without it, a decorator is returned.
        **meta: what is told: names, and strings, numbers or bools.

    Returns:
        The function. Its derivatives and its batches are such calls, too.

    Raises:
        TypeError: a value is none of these, or `f` is no function.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.xla_metadata import xla_metadata_call
        >>> @xla_metadata_call(color="red")
        ... def wave(x):
        ...     return jnp.sin(x)
        >>> '{mhlo.frontend_attributes = {color = "red"}}' in dt.jit(wave).lower(1.0).as_text()
        True
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable[..., Any] | None = None,
    /,
    metadata: Mapping[str, Any] | None = None,
    *,
    ad_metadata: Any = "same",
) -> Any:
    """`xla_metadata_call` that says what is told of derivatives.

    Args:
        f: the function; without it, a decorator is returned.
        metadata: what is told.
        ad_metadata: what is told of the calls that compute tangents and cotangents: ``"same"``,
            ``"drop"`` for nothing, or a dictionary.

    Returns:
        The function.

    Raises:
        TypeError: `ad_metadata` or a value is none of these, or `f` is no function.
    """
    pairs = _pairs(metadata or {}, "xla_metadata_call")
    if isinstance(ad_metadata, Mapping):
        derived: ForDerivatives = _pairs(ad_metadata, "xla_metadata_call")
    elif ad_metadata in ("same", "drop"):
        derived = ad_metadata
    else:
        raise TypeError(
            "xla_metadata_call: ad_metadata is 'same', 'drop' or a dictionary, got "
            f"{ad_metadata!r:.80}"
        )
    if f is None:
        return lambda function: _called(function, pairs, derived)
    return _called(f, pairs, derived)


def _called(
    function: Callable[..., Any], pairs: Pairs, derived: ForDerivatives
) -> Callable[..., Any]:
    check_callable(function, "xla_metadata_call")
    name = name_of(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten_with_path((args, kwargs))
        operands = [
            as_operand(
                leaf,
                f"xla_metadata_call of {name}",
                f"{'args' if path[0].idx == 0 else 'kwargs'}{pytree.keystr(path[1:])}",
            )
            for path, leaf in leaves
        ]
        out_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            given, named = pytree.unflatten(tree, values)
            results, structure = pytree.flatten(function(*given, **named))
            out_tree[:] = [structure]
            return results

        info = DebugInfo("xla_metadata_call", name, location_of(function))
        closed = stage(flat, tuple(map(aval_of, operands)), info)
        jaxpr, constants = hoist_consts(closed)
        outs = xla_metadata_call_p.bind(
            *constants, *operands, jaxpr=jaxpr, xla_metadata=pairs, ad_metadata=derived
        )
        return pytree.unflatten(out_tree[0], outs)

    return call


def must_fuse_call(identifier: str) -> Any:
    """A decorator: XLA is to make one kernel of a function.

    Args:
        identifier: the value of ``MUST_FUSE``, which tells such calls apart.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.xla_metadata import must_fuse_call
        >>> print(must_fuse_call("wave")(lambda x: 2 * jnp.sin(x))(0.0))
        0.0
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def fuse_limit() -> MetadataScope:
    """A block, or a decorator: XLA is not to make one kernel of these operations and others.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.xla_metadata import fuse_limit
        >>> with fuse_limit():
        ...     x = jnp.sin(0.0)
    """
    return MetadataScope((("FUSE_LIMIT", "true"),))


def scheduling_group(name: str) -> Any:
    """A decorator: XLA is to run the operations of a function one after another, as one group.

    Args:
        name: the name of the group.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.scheduling_groups import scheduling_group
        >>> print(scheduling_group("wave")(lambda x: 2 * jnp.sin(x))(0.0))
        0.0
    """
    return xla_metadata_call(scheduling_group=name)
