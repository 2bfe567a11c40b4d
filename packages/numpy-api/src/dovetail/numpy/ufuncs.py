"""Universal functions: elementwise functions with methods that fold them over arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from dovetail.extend.arguments import array_like, counted, integer, no_out
from dovetail.extend.eager import compile_eager
from dovetail.extend.tracebacks import bounded
from dovetail.numpy.compiled import plain
from dovetail.typing import Array, ArrayLike, AxisLike, DTypeLike


@bounded
class ufunc(functools.partial):  # type: ignore[type-arg]
    """An elementwise function that broadcasts, with methods to fold and accumulate over arrays.

    The functions `add`, `subtract`, `multiply`, `negative`, `maximum`, `minimum`, `logaddexp`,
    `logaddexp2`, `logical_and`, `logical_or`, `logical_xor`, `bitwise_and`, `bitwise_or` and
    `bitwise_xor` are ufuncs; `frompyfunc` makes more of them. Differences from NumPy: calls accept
    only None for `out` and `where`; `at` returns a copy; and `reduce`, `accumulate` and `reduceat`
    of any other function process one element at a time.

    A call costs no more than a call of the compiled function: the class is `functools.partial`
    without arguments, which forwards calls in C.

    Args:
        func: function of `nin` scalars that returns `nout` scalars.
        nin: number of arguments.
        nout: number of results.
        name: its name; that of `func` if None.
        nargs: number of arguments that calls take; `nin` if None.
        identity: scalar that leaves the other argument unchanged, if there is one.
        call: function of arrays that implements calls; if None, `func` mapped over all elements.
        reduce: function that replaces the method `reduce`, with the same arguments.
        accumulate: function that replaces the method `accumulate`, with the same arguments.
        at: function ``at(a, indices, b)`` that returns the updated copy.
        reduceat: function that replaces the method `reduceat`, with the same arguments.

    Attributes:
        nin: number of arguments.
        nout: number of results.
        nargs: number of arguments that calls take.
        identity: the identity, or None.

    Differs:
        `reduceat` counts negative indices from the end.

        >>> print(jnp.add.reduceat(jnp.arange(4), jnp.array([0, -1])))
        [3 3]

        A scalar has no dimension to accumulate along, and is refused, as in NumPy; JAX makes a
        vector of it.

        >>> jnp.add.accumulate(2)
        Traceback (most recent call last):
            ...
        numpy.exceptions.AxisError: add.accumulate: axis 0 is out of bounds for an array of ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.add, jnp.add.nin, jnp.add.identity
        (<ufunc 'add'>, 2, 0)
        >>> x = jnp.arange(3)
        >>> print(jnp.add.reduce(x), jnp.add.accumulate(x))
        3 [0 1 3]
        >>> print(jnp.multiply.outer(x, x))
        [[0 0 0]
         [0 1 2]
         [0 2 4]]
    """

    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    _func: Callable[..., Any]
    _call: Callable[..., Any] | None
    _given: dict[str, Callable[..., Any] | None]
    _compiled: dict[str, Callable[..., Any]]
    # The name if it is one of this package's own, whose folds are known; otherwise None.
    _family: str | None

    if TYPE_CHECKING:

        def __call__(self, /, *args: ArrayLike, out: None = None, where: None = None) -> Array: ...

    def __new__(
        cls,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> ufunc:
        if not callable(func):
            raise TypeError(f"ufunc requires func to be callable, got {type(func).__name__}")
        counts = integer("ufunc", "nin", nin), integer("ufunc", "nout", nout)
        if counts[0] < 1 or counts[1] < 1:
            raise ValueError(
                f"ufunc requires nin and nout to be at least 1, got {nin} and {nout}: a function "
                "of elements has arguments and results"
            )
        shown = name or str(getattr(func, "__name__", type(func).__name__))
        given_call = call
        if call is None:
            call = _mapped(func, shown, *counts)
        instance = super().__new__(cls, call)
        functools.update_wrapper(instance, func)
        instance.__dict__.update(
            __wrapped__=plain(call),
            __name__=shown,
            nin=counts[0],
            nout=counts[1],
            nargs=counts[0] if nargs is None else integer("ufunc", "nargs", nargs),
            identity=identity,
            _func=func,
            _given={"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat},
            _call=given_call,
            _compiled={},
            _family=None,
        )
        return instance

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        if self._family is not None:
            return self.__name__
        options = {"name": self.__name__, "nargs": self.nargs, "identity": self.identity}
        options.update(call=self._call, **self._given)
        return functools.partial(type(self), **options), (self._func, self.nin, self.nout)

    def _method(self, name: str, *static: int) -> Callable[..., Any]:
        """The compiled form of a method; `static` are the numbers of its static arguments."""
        method = self._compiled.get(name)
        if method is None:
            from dovetail.numpy import ufunc_methods  # deferred: loads reductions and loops

            function = getattr(ufunc_methods, name)(self)
            shown = f"{self.__name__}_{name}"
            method = compile_eager(function, name=shown, static_argnums=static)
            self._compiled[name] = method
        return cast("Callable[..., Any]", method)

    def _require_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(
                f"{self.__name__}.{method}: only functions of two arguments with one result have "
                f"this method, and {self.__name__} has nin={self.nin} and nout={self.nout}"
            )

    def reduce(
        self,
        a: ArrayLike,
        axis: AxisLike = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Fold the function over dimensions: ``f(f(f(a[0], a[1]), a[2]), ...)``.

        Args:
            a: array or scalar.
            axis: dimension or dimensions; all if None. Elements along several dimensions are taken
                in row-major order.
            dtype: dtype of the result and of the computation.
            out: not supported, since arrays are immutable.
            keepdims: whether to keep the dimensions, with size one.
            initial: scalar that the fold starts with, before the first element.
            where: boolean array that broadcasts with `a`: which elements to include. A function
                without an identity also requires `initial`.

        Returns:
            An array without these dimensions; the identity if there are no elements.

        Raises:
            ValueError: the function does not take two arguments; a dimension is out of bounds; or
                there are no elements, or `where` is given, and there is neither an identity nor
                `initial`.

        Example:
            >>> import dovetail.numpy as jnp
            >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
            >>> print(jnp.add.reduce(x), jnp.subtract.reduce(x, axis=1))
            [5 7 9] [-4 -7]
        """
        self._require_binary("reduce")
        no_out(f"{self.__name__}.reduce", out)
        override = self._given["reduce"]
        if override is not None:
            return override(a, axis, dtype, None, keepdims, initial, where)
        return self._method("reduce", 1, 2, 3)(a, axis, dtype, keepdims, initial, where)

    def accumulate(
        self, a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Accumulate the function over a dimension: all steps of the fold.

        Args:
            a: array.
            axis: dimension; None to flatten the array first.
            dtype: dtype of the result and of the computation.
            out: not supported, since arrays are immutable.

        Returns:
            An array of the shape of `a`; element ``i`` is the fold of the first ``i + 1`` elements.

        Raises:
            ValueError: the function does not take two arguments, or the dimension is out of bounds.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.maximum.accumulate(jnp.array([1, 3, 2, 5, 4])))
            [1 3 3 5 5]
        """
        self._require_binary("accumulate")
        no_out(f"{self.__name__}.accumulate", out)
        override = self._given["accumulate"]
        if override is not None:
            return override(a, axis, dtype, None)
        return self._method("accumulate", 1, 2)(a, axis, dtype)

    def at(
        self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """Combine indexed elements with values, in a copy of the array.

        An element that is indexed several times receives all of its updates.

        Args:
            a: array.
            indices: any NumPy index; positions out of bounds are ignored.
            b: array or scalar that broadcasts to ``a[indices]``; None for functions of one
                argument.
            inplace: must be False, since arrays are immutable.

        Returns:
            An array of the shape of `a`. `add`, `subtract`, `multiply`, `maximum` and `minimum`
            keep the dtype; for other functions it is that of their result.

        Raises:
            NotImplementedError: `inplace` is True, as it is by default in NumPy.
            TypeError: `b` is missing, or is given for a function of one argument.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.add.at(jnp.arange(4), jnp.array([1, 1]), 10, inplace=False))
            [ 0 21  2  3]
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at cannot write to its argument: arrays are immutable. Write "
                f"x = {self.__name__}.at(x, indices, b, inplace=False)"
            )
        if self.nin > 2 or self.nout != 1:
            self._require_binary("at")
        if (b is None) != (self.nin == 1):
            raise TypeError(
                f"{self.__name__}.at takes {1 + self.nin} arguments, as {self.__name__} takes "
                f"{self.nin}: " + ("b is missing" if b is None else "leave b out")
            )
        override = self._given["at"]
        if override is not None:
            return override(a, indices, b)
        from dovetail.numpy.ufunc_methods import updated  # deferred: loads reductions and loops

        return updated(self, a, indices, b, self._method("update"))

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """Apply the function to each pair of elements of two arrays.

        Args:
            A: array or scalar.
            B: array or scalar.

        Returns:
            An array of shape ``(*A.shape, *B.shape)``.

        Raises:
            ValueError: the function does not take two arguments.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.add.outer(jnp.array([10, 20]), jnp.arange(3)))
            [[10 11 12]
             [20 21 22]]
        """
        self._require_binary("outer")
        return self._method("outer")(A, B)

    def reduceat(
        self,
        a: ArrayLike,
        indices: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Fold the function over parts of a dimension.

        Args:
            a: array.
            indices: integer array of one dimension. Part ``i`` goes from ``indices[i]`` to before
                ``indices[i + 1]``, the last one to the end; if that range is empty, the part is the
                single element ``indices[i]``. Negative ones count from the end. Differs from NumPy:
                parts that begin out of bounds are filled as by `take`.
            axis: dimension.
            dtype: dtype of the result and of the computation.
            out: not supported, since arrays are immutable.

        Returns:
            An array like `a` with as many elements along `axis` as there are indices. Small
            integers keep their dtype.

        Raises:
            TypeError: `indices` are not integers.
            ValueError: the function does not take two arguments, `indices` is not one-dimensional,
                or `axis` is out of bounds.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.add.reduceat(jnp.arange(8), jnp.array([0, 4, 1, 5])))
            [ 6  4 10 18]
        """
        self._require_binary("reduceat")
        no_out(f"{self.__name__}.reduceat", out)
        override = self._given["reduceat"]
        if override is not None:
            return override(a, indices, axis, dtype, None)
        return self._method("reduceat", 2, 3)(a, indices, axis, dtype)


_PLACES: Final = """\
    out: not supported, since arrays are immutable.
    where: not supported; see `where`, which chooses elements of results."""


def _refuse_places(function: str, out: Any, where: Any) -> None:
    """Refuse the arguments `out` and `where` in the call of a ufunc.

    Callers first check for None themselves, since calls happen for every traced operation.
    """
    for argument, given in (("out", out), ("where", where)):
        if given is not None:
            raise NotImplementedError(
                f"{function} does not take {argument}=; write y = {function}(...), and choose "
                "elements with dovetail.numpy.where"
            )


def _mapped(func: Callable[..., Any], name: str, nin: int, nout: int) -> Callable[..., Any]:
    """A function of scalars as a compiled function of arrays that broadcast."""

    def call(*args: Any, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            _refuse_places(name, out, where)
        if len(args) != nin:
            raise TypeError(f"{name} takes nin={counted(nin, 'argument')} and got {len(args)}")
        from dovetail.numpy.vectorization import map_elements  # deferred: loads `vmap`

        values = [array_like(x, name, f"x{i + 1}") for i, x in enumerate(args)]
        return map_elements(checked, name, values)

    def checked(*scalars: Any) -> Any:
        results = func(*scalars)
        several = len(results) if isinstance(results, (tuple, list)) else None
        if several != (None if nout == 1 else nout):
            raise TypeError(
                f"{name} must return {nout} result{'s' * (nout > 1)}, as nout says, and returned "
                + (type(results).__name__ if several is None else f"a sequence of {several}")
            )
        return results

    return cast("Callable[..., Any]", compile_eager(call, name=name))


def universal(nin: int, identity: Any = None) -> Callable[[Callable[..., Any]], ufunc]:
    """Turn a function of this package into a compiled ufunc; calls refuse `out` and `where`.

    Args:
        nin: number of its arguments: one or two.
        identity: its identity.
    """

    def decorate(function: Callable[..., Any]) -> ufunc:
        name = function.__name__

        def unary(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
            if out is not None or where is not None:
                _refuse_places(name, out, where)
            return function(x)

        def binary(
            x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None
        ) -> Array:
            if out is not None or where is not None:
                _refuse_places(name, out, where)
            return function(x1, x2)

        called: Callable[..., Any] = unary if nin == 1 else binary
        called.__name__, called.__qualname__, called.__module__ = name, name, function.__module__
        if function.__doc__ is not None:
            head, _, rest = inspect.cleandoc(function.__doc__).partition("\n\nReturns:")
            called.__doc__ = f"{head}\n{_PLACES}\n\nReturns:{rest}"
        instance = ufunc(
            called,
            nin,
            1,
            identity=identity,
            call=compile_eager(called, name=name, elementwise=True),
        )
        instance.__dict__.update(_family=name, _func=function)
        return instance

    return decorate


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make a ufunc from a function of scalars.

    Differs from NumPy in that `func` is traced, not called for each element, so results have dtypes
    of their own.

    Args:
        func: function of `nin` scalars that returns `nout` scalars, as a tuple if there are
            several.
        nin: number of arguments.
        nout: number of results.
        identity: scalar that leaves the other argument unchanged, if there is one.

    Returns:
        A `ufunc`.

    Raises:
        TypeError: `func` is not callable, or a number is not an integer.
        ValueError: a number is less than one.

    Example:
        >>> import dovetail.numpy as jnp
        >>> both = jnp.frompyfunc(lambda x, y: x + y - x * y, 2, 1, identity=0)
        >>> print(both(0.5, jnp.array([0.5, 0.0])), both.reduce(jnp.full(3, 0.5)))
        [0.75 0.5 ] 0.875
    """
    return ufunc(func, nin, nout, identity=identity)
