"""Common parts of functions with custom rules: arguments, results and messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.caches import HasMemory
from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.base.tracebacks import bounded
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_result, typed_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.trace.mutable_references import Ref, without_references
from dovetail._core.trace.scopes import at_own_lines
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    location_of,
    name_of,
)


@bounded
class HasRules(HasMemory):
    """A function with rules of its own.

    If it is made of another such function, what defines the other's rules is found on it too.
    """

    if not TYPE_CHECKING:  # type checkers must report undeclared attributes

        def __getattr__(self, name: str) -> Any:
            inner = self.__dict__.get("fun")
            if isinstance(inner, HasRules) and not name.startswith("_"):
                return getattr(inner, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class NondiffSignature:
    """The parameters of a function, and which of them are not differentiated.

    Args:
        function: the user's function.
        decorator: the API function that it was passed to.
        nondiff_argnums: numbers of parameters that are not differentiated.
        nondiff_argnames: names of such parameters.

    Attributes:
        nondiff: numbers of the parameters that are not differentiated, in order.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        decorator: str,
        nondiff_argnums: int | Sequence[int],
        nondiff_argnames: str | Sequence[str],
    ) -> None:
        check_callable(function, decorator)
        self.function = function
        self.decorator = decorator
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        parameters = [] if self._signature is None else [*self._signature.parameters.values()]
        self._positional = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        #: The number of positional arguments with which a call needs no resolution.
        self._count = (
            len(self._positional)
            if parameters and not any(p.kind is p.VAR_POSITIONAL for p in parameters)
            else -1
        )
        self.nondiff = self._nondiff(nondiff_argnums, nondiff_argnames)

    def _nondiff(self, numbers: Any, names: Any) -> tuple[int, ...]:
        positions = set()
        for argument, given in (("nondiff_argnums", numbers), ("nondiff_argnames", names)):
            if not isinstance(given, int | str) and not np.iterable(given):
                raise TypeError(f"{self.decorator}: {argument} must be a sequence, got {given!r}")
        if isinstance(names, int):
            raise TypeError(f"{self.decorator}: nondiff_argnames must be names, got {names!r}")
        for number in [numbers] if isinstance(numbers, int) else numbers:
            if not isinstance(number, int) or isinstance(number, bool):
                raise TypeError(
                    f"{self.decorator}: nondiff_argnums must be integers, got {numbers!r}"
                )
            if number < 0 and self._count > 0:
                number += self._count
            if number < 0 or 0 <= self._count <= number:
                raise ValueError(
                    f"{self.decorator}: nondiff_argnums={numbers!r} names no positional parameter "
                    f"of {self}; use numbers below {len(self._positional)}"
                )
            positions.add(number)
        for name in [names] if isinstance(names, str) else names:
            if name not in self._positional:
                raise ValueError(
                    f"{self.decorator}: nondiff_argnames={names!r} names no positional parameter "
                    f"of {self}; its parameters are {', '.join(self._positional) or 'unknown'}"
                )
            positions.add(self._positional.index(name))
        return tuple(sorted(positions))

    def __str__(self) -> str:
        return described(self.function)

    def resolve(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, including defaults.

        Raises:
            TypeError: they do not fit the signature, or a keyword has no position.
        """
        if not kwargs and (len(args) == self._count or self._signature is None):
            return args
        if self._signature is None:
            raise TypeError(
                f"{self} is a {self.decorator} function whose parameters are not known, so that "
                f"arguments by keyword have no positions: {', '.join(kwargs)}; pass them by "
                "position"
            )
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"the arguments do not go to the parameters of the {self.decorator} function "
                f"{self}: {error}"
            ) from None
        bound.apply_defaults()
        passed = [name for name in bound.kwargs if name in kwargs]
        if passed:
            raise TypeError(
                f"the {self.decorator} function {self} was given arguments that have no position: "
                f"{', '.join(passed)}; rules take arguments by position alone, so make these "
                "parameters positional"
            )
        return bound.args


def described(function: Callable[..., Any]) -> str:
    """The name of a function and where it is defined, for messages."""
    place = location_of(function)
    return f"{name_of(function)}{f' ({place})' if place else ''}"


class UserFunction(FlatFunction):
    """A user's function as a function of flat leaves, for one call.

    It does not hold the leaves, since recorded rules keep it alive.

    Args:
        signature: the signature of the function.
        in_tree: the structure of the differentiated arguments.
        fixed: the other arguments, with their numbers.
        refs: the mutable references among the arguments, which are part of the structure.

    Attributes:
        out_avals: avals of the results, after a call.
    """

    __slots__ = ("fixed", "out_avals", "refs", "signature")

    def __init__(
        self,
        signature: NondiffSignature,
        in_tree: Any,
        fixed: Sequence[tuple[int, Any]],
        refs: Sequence[Ref],
    ) -> None:
        user = signature.function
        self.refs = refs
        self.signature = signature
        self.fixed = fixed
        self.out_avals: list[Any] | None = None
        if fixed:

            @wraps(user)
            def merged(*given: Any) -> Any:
                return user(*self.merged(given))

            function: Callable[..., Any] = merged
        else:
            function = user
        super().__init__(function, in_tree)

    @classmethod
    def of_call(
        cls, signature: NondiffSignature, args: tuple[Any, ...]
    ) -> tuple[UserFunction, list[Any]]:
        """The function for a call, and the leaves of the differentiated arguments.

        Raises:
            NonArrayArgumentError: a leaf is not an array.
        """
        nondiff = signature.nondiff
        fixed = [(i, args[i]) for i in nondiff if i < len(args)]
        if fixed:
            args = tuple([a for i, a in enumerate(args) if i not in nondiff])
        moved = without_references(args)
        refs = () if moved is args else [a for a in pytree.leaves(args) if type(a) is Ref]
        leaves, in_tree = pytree.flatten(moved)
        function = cls(signature, in_tree, fixed, refs)
        context = f"{signature.decorator} function {name_of(signature.function)}"
        check_array_leaves(leaves, function.names_of_leaves, context)
        return function, leaves

    def names_of_leaves(self) -> tuple[str, ...]:
        """The names of the leaves, for messages."""
        args = self.in_tree.unflatten([0] * self.in_tree.num_leaves)
        fixed = {i for i, _ in self.fixed}
        positions = [i for i in range(len(args) + len(fixed)) if i not in fixed]
        return leaf_names(self.signature.function, args, None, positions)

    def merged(self, given: Sequence[Any]) -> list[Any]:
        """All arguments: the differentiated ones, and the others in their places."""
        merged = [*given]
        for i, value in self.fixed:
            merged.insert(i, value)
        return merged

    @property
    def extra(self) -> list[Any]:
        """The arguments that are not differentiated."""
        return [value for _, value in self.fixed]

    def __call__(self, *leaves: Any) -> list[Any]:
        with at_own_lines(), users_code(self.signature):
            results = super().__call__(*map(as_result, leaves))
        self.out_avals = [aval_of(r) for r in results]
        return results

    def debug_info(self) -> DebugInfo:
        """Names for messages while the function is staged."""
        user = self.signature.function
        return DebugInfo(
            self.signature.decorator, name_of(user), location_of(user), self.names_of_leaves()
        )

    def checked_results(self, out: Any, rule: Callable[..., Any]) -> tuple[list[Any], Any]:
        """The leaves and the structure of the primal results of a rule.

        Raises:
            TypeError: they differ from those of the function, if these are known.
        """
        leaves, tree = pytree.flatten(out)
        check_array_leaves(
            leaves,
            lambda: [f"result{pytree.keystr(p)}" for p, _ in pytree.flatten_with_path(out)[0]],
            f"the rule {described(rule)}",
        )
        if self.out_tree is None:
            self.out_tree = tree
        elif self.out_tree != tree:
            difference = pytree.structure_difference(
                self.out_tree, tree, "the function", "the rule"
            )
            raise TypeError(
                f"{self.signature.decorator}: the primal results of the rule {described(rule)} "
                f"must have the structure of the results of {self.signature}:\n{difference}"
            )
        if self.out_avals is not None:
            for i, (leaf, expected) in enumerate(zip(leaves, self.out_avals, strict=True)):
                actual = aval_of(leaf)
                if actual.shape != expected.shape or actual.dtype != expected.dtype:
                    raise TypeError(
                        f"{self.signature.decorator}: the primal result{path_of(tree, i)} of the "
                        f"rule {described(rule)} must be {expected.short_name()}, as that of "
                        f"{self.signature} is, got {actual.short_name()}"
                    )
        return leaves, tree


def path_of(tree: Any, number: int) -> str:
    """The path of a leaf for messages, with a leading space; nothing if it is the whole tree."""
    pairs, _ = pytree.flatten_with_path(tree.unflatten([object()] * tree.num_leaves))
    path = pytree.keystr(pairs[number][0])
    return f" at {path}" if path else ""


def converted(value: Any, aval: Any) -> Any:
    """A value in the dtype of an aval if its kind promotes to that, else unchanged."""
    value = typed_like(value, aval)
    dtype = aval_of(value).dtype
    if dtype == aval.dtype or dtypes.is_extended(dtype) or dtype == dtypes.float0:
        return value
    kinds = "biufc"
    if kinds.find(dtypes.kind_of(dtype)) <= kinds.find(dtypes.kind_of(aval.dtype)):
        return convert_element_type(value, aval.dtype)
    return value


@contextmanager
def users_code(what: Any) -> Iterator[None]:
    """Context around calls of a user's function or rule: a captured tracer's error says what to do.

    Within `at_own_lines`, so that what is recorded gets the user's lines.
    """
    try:
        yield
    except UnexpectedTracerError as error:
        tracer = getattr(error, "tracer", None)
        if not isinstance(tracer, Tracer):
            raise
        raise UnexpectedTracerError(
            f"{what} has rules of its own, and it or one of them uses a traced value that it has "
            f"captured: {tracer.origin()}, of type {tracer.aval!r}. The rules say how to "
            "differentiate in its arguments, and nothing about what is captured: pass the value "
            "as an argument, and give the rules this argument too (dovetail.closure_convert makes "
            "arguments of what a function has captured)"
        ) from error
