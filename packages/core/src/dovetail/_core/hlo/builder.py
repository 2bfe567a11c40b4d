"""The builder that lowering rules receive as `context`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from dovetail._core.base.config import config
from dovetail._core.hlo.calls import CallBuilder
from dovetail._core.hlo.context import Locations
from dovetail._core.hlo.mlir import Value
from dovetail._core.hlo.operations import Values
from dovetail._core.ir.jaxpr import ClosedJaxpr

__all__ = ["Builder", "JaxprLowering"]


class JaxprLowering(Protocol):
    """What the builder asks of the layer that knows how equations are lowered."""

    def inline(self, builder: Builder, jaxpr: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr at the insertion point."""

    def call(
        self,
        builder: Builder,
        jaxpr: ClosedJaxpr,
        values: Sequence[Value],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        """Call a function of the module that holds the jaxpr, made on first use."""

    def outline(
        self,
        builder: Builder,
        body: Callable[..., Values],
        values: Sequence[Value],
        outs: Sequence[Any],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        """Call a function of the module that the compiler does not inline, made on first use."""

    def trace(self, function: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
        """The jaxpr of a Python function."""


class Builder(CallBuilder):
    """Creates StableHLO; one for each module, the `context` of every lowering rule in it.

    Rules call its methods, which create operations at the current insertion point, and return a
    value, or a list of values where the primitive has several results. `avals_in` and `avals_out`
    are those of the equation being lowered; `platforms` the names of the platforms that the module
    is made for.

    Args:
        lowering: what lowers jaxprs.
        locations: locations of the module's MLIR context.
        platforms: names of platforms.

    Example:
        >>> def lower(context, x, *, exponent):  # a rule that multiplies repeatedly
        ...     (out,) = context.avals_out
        ...     result = context.constant(1, out)
        ...     for _ in range(exponent):
        ...         result = context.mul(result, x, out)
        ...     return result
    """

    def __init__(
        self, lowering: JaxprLowering, locations: Locations, platforms: Sequence[str]
    ) -> None:
        super().__init__(locations.unknown)
        self.lowering = lowering
        self.locations = locations
        self.platforms = tuple(platforms)
        #: What precedes the names of operations in profiles; `scope` is what rules add to it.
        self.name_stack = ""
        self.scope = ""
        #: Which of the platforms the program runs on, where there are several.
        self.platform_index: Value | None = None
        self.host_callbacks: list[Any] = []
        #: What is called with the sharding of the program's values when it is compiled.
        self.inspections: list[Callable[[Any], object]] = []
        #: What is called before the program is loaded, in the order of the first requests.
        self.preparations: dict[Callable[[], object], None] = {}

    # Jaxprs

    def inline_jaxpr(self, jaxpr: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr here.

        Args:
            jaxpr: the jaxpr with its constants.
            values: its arguments.

        Returns:
            Its results.
        """
        return self.lowering.inline(self, jaxpr, values)

    def call_jaxpr(
        self,
        jaxpr: ClosedJaxpr,
        values: Sequence[Value],
        name: str,
        cache_key: Hashable = None,
    ) -> list[Value]:
        """Call a private function of the module, which is made once for each jaxpr object.

        Args:
            jaxpr: the jaxpr with its constants.
            values: its arguments.
            name: what the function is called; numbers are added to make it unique.
            cache_key: distinguishes functions that are made from the same jaxpr and differ
                otherwise.

        Returns:
            Its results.
        """
        return self.lowering.call(self, jaxpr, values, name, cache_key)

    def outlined(
        self,
        body: Callable[..., Values],
        values: Sequence[Value],
        outs: Sequence[Any],
        name: str,
        cache_key: Hashable = None,
    ) -> list[Value]:
        """Put operations into a function of their own, which the compiler does not inline.

        Its results are computed once and kept in memory. Otherwise the compiler may fuse them with
        what uses them, and compute them anew for each use.

        Args:
            body: from values to a value or a list of them; it uses no others from outside.
            values: its arguments.
            outs: avals of its results.
            name: what the function is called; numbers are added to make it unique.
            cache_key: equal keys say that bodies do the same on values of the same types, so that
                one function is enough; None for a function of its own.

        Returns:
            The results.
        """
        return self.lowering.outline(self, body, values, outs, name, cache_key)

    def lower_function(self, function: Callable[..., Any], avals: Sequence[Any]) -> Any:
        """Turn a Python function of arrays into a function of values.

        For rules that are most easily said in terms of other primitives.

        Args:
            function: takes arrays, returns an array or a tuple of arrays.
            avals: avals of its arguments.

        Returns:
            A function from values to a list of values, which creates the operations.

        Example:
            >>> def lower(context, x):  # a rule made of other primitives
            ...     from dovetail import lax
            ...     softplus = lambda x: lax.log1p(lax.exp(x))
            ...     return context.lower_function(softplus, context.avals_in)(x)
        """
        jaxpr = self.lowering.trace(function, avals)
        return lambda *values: self.inline_jaxpr(jaxpr, values)

    # Names, callbacks, what programs need of their process

    def option(self, name: str) -> Any:
        """The value of an option of the framework, for rules of backends.

        Args:
            name: of an option that belongs to the key of a program, such as ``"enable_x64"``: for
                others a program would be found that was lowered with another value.
        """
        found = config.option(name)
        if not found.affects_tracing:
            raise ValueError(f"programs are not told apart by the option {name}")
        return found.value

    @contextmanager
    def named_scope(self, name: str) -> Iterator[None]:
        """Put `name` into the names that profiles show for jaxprs lowered inside."""
        before = self.scope
        self.scope = f"{before}{name}/"
        try:
            yield
        finally:
            self.scope = before

    def host_callback(self, function: Any) -> int:
        """Register a Python function that the program calls back.

        Args:
            function: takes NumPy arrays and returns a tuple of arrays; or a call that the runtime
                knows how to make.

        Returns:
            Its index, for the ``backend_config`` of the custom call.
        """
        self.host_callbacks.append(function)
        return len(self.host_callbacks) - 1

    def prepare(self, function: Callable[[], object]) -> None:
        """Have a function called before the program is loaded, now and in every other process.

        For what a program needs of its process, such as custom calls that have to be registered.

        Args:
            function: takes no arguments, and is cheap when it is called again. It is found by name
                where a serialized program is loaded, and is therefore defined at the top level of
                a module.
        """
        self.preparations[function] = None
        function()
