"""The errors that the framework raises, beyond Python's own. Importing them loads nothing else.

An error about a tracer says what happened to which value, where in the user's code, where the value
came from, and what to write instead.

They are defined here, and not in the private part of core, which uses them: tracebacks show the
module in which a class is defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dovetail._core.base.bindings import JaxRuntimeError as JaxRuntimeError
    from dovetail._core.base.runtime_errors import CompilerOptionError as CompilerOptionError
    from dovetail._core.base.runtime_errors import OutOfMemoryError as OutOfMemoryError

__all__ = [
    "BackendUnavailableError",
    "CompilationCacheWarning",
    "CompilerOptionError",
    "ConcretizationTypeError",
    "DTypeError",
    "DeletedArrayError",
    "DeviceMismatchError",
    "DistributedError",
    "ExporterUnavailableError",
    "ForbiddenCollectiveError",
    "InconclusiveDimensionOperation",
    "IndexShapeError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingRuleError",
    "NoValueError",
    "NonArrayArgumentError",
    "NonConcreteBooleanIndexError",
    "OutOfMemoryError",
    "RecompilationError",
    "ShapeError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerAttributeError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
    "UnknownNameError",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "JaxRuntimeError":
        from dovetail._core.base.bindings import JaxRuntimeError  # deferred: loads jaxlib

        return JaxRuntimeError
    if name in ("CompilerOptionError", "OutOfMemoryError"):
        from dovetail._core.base import runtime_errors  # deferred: loads jaxlib

        return getattr(runtime_errors, name)
    raise UnknownNameError(__name__, name, __all__)


class _TracerLike(Protocol):
    """The parts of a tracer that error messages use."""

    @property
    def aval(self) -> Any:
        """The abstract value; its text is a type such as ``f32[3]``."""

    def origin(self) -> str:
        """The tracer's origin, such as ``the argument x of f, traced by jit at train.py:3``."""


def _about(tracer: _TracerLike, happened: str, instead: str) -> str:
    """The text of an error about a tracer, in paragraphs."""
    return "\n".join([happened, *_facts(tracer), instead])


def _facts(tracer: Any) -> list[str]:
    from dovetail._core.base import source  # deferred: only needed for errors

    aval = getattr(tracer, "aval", None)
    facts = [f"  value: a tracer of type {aval}"] if aval is not None else []
    frame = source.user_frame()
    if frame is not None:
        facts.append(f"  where: {frame.place} ({frame.function})")
    origin = getattr(tracer, "origin", None)
    if callable(origin):
        try:
            text = origin()
        except Exception as error:  # an error report must not fail because of a detail
            text = f"unknown ({type(error).__name__}: {error})"
        if text:
            facts.append(f"  from:  {text}")
    return facts


def _is_differentiated(tracer: Any) -> bool:
    """Whether the value is known, and what is traced is how it varies."""
    concrete = getattr(tracer, "concrete", None)
    return callable(concrete) and concrete() is not None


def _about_derivative(tracer: _TracerLike, context: str) -> str:
    """The text of an error about a value that is known, but is being differentiated."""
    return _about(
        tracer,
        "a value that is being differentiated would become a constant"
        + (f" ({context})" if context else "")
        + ", without a derivative",
        "Use the function of dovetail.numpy instead of the one of Python or NumPy (jnp.sin(x) "
        "instead of math.sin(x), x.astype(int) instead of int(x)). If no derivative is wanted, "
        "convert lax.stop_gradient(x).",
    )


class JAXTypeError(TypeError):
    """A TypeError raised by a transformation; the base of the errors about tracers.

    Args:
        message: the text of the error.
    """


class JAXIndexError(IndexError):
    """An IndexError raised by a transformation.

    Args:
        message: the text of the error.
    """


class ConcretizationTypeError(JAXTypeError):
    """A concrete value was needed, but there was a tracer.

    A transformed function is run with tracers in place of values; anything that depends on the
    values themselves, such as a shape, cannot be computed from tracers. While a function is
    differentiated its values may be known, and may decide an `if`; but a number of Python or NumPy
    that is made of a value that varies would have no derivative, and is this error.

    Differs:
        `int(x)`, `x.item()` and `arange(x)` of a value that is being differentiated are errors, as
        `float(x)` is. JAX computes them, and their derivatives are silently zero.

        >>> def f(x):
        ...     return x * int(x)
        >>> try:
        ...     dt.grad(f)(2.5)
        ... except dt.errors.ConcretizationTypeError as error:
        ...     print(str(error).splitlines()[0])
        a value that is being differentiated would become a constant (int()), without a derivative
        >>> float(dt.grad(lambda x: x * int(lax.stop_gradient(x)))(2.5))
        2.0

    Args:
        tracer: the tracer.
        context: what needed the value.
    """

    def __init__(self, tracer: _TracerLike, context: str = "") -> None:
        self.tracer = tracer
        if _is_differentiated(tracer):
            super().__init__(_about_derivative(tracer, context))
            return
        super().__init__(
            _about(
                tracer,
                "a concrete value was needed, and a tracer was found"
                + (f": {context}" if context else ""),
                "If the value decides shapes or control flow, pass it as a static argument "
                "(jit's static_argnums or static_argnames), or compute it with NumPy outside of "
                "the transformed function.",
            )
        )


class TracerArrayConversionError(JAXTypeError):
    """A tracer was given to something that needs a NumPy array.

    Differs:
        `numpy.array_equal` of a traced value is an error. In JAX it is False, whatever the value.

        >>> def f(x):
        ...     return np.array_equal(x, x)
        >>> try:
        ...     dt.jit(f)(1.0)
        ... except dt.errors.TracerArrayConversionError as error:
        ...     print(str(error).splitlines()[0])
        a tracer cannot become a NumPy array: it stands for values that are not known yet

    Args:
        tracer: the tracer.
    """

    def __init__(self, tracer: _TracerLike) -> None:
        self.tracer = tracer
        if _is_differentiated(tracer):
            super().__init__(_about_derivative(tracer, "a NumPy array"))
            return
        super().__init__(
            _about(
                tracer,
                "a tracer cannot become a NumPy array: it stands for values that are not known yet",
                "Use the function of dovetail.numpy instead of the one of numpy (and "
                "dovetail.numpy.asarray(x) for a NumPy array x that is indexed with a tracer), or "
                "dovetail.pure_callback to call NumPy code when the program runs. If the value "
                "is needed while tracing, make it a static argument (static_argnums) or compute "
                "it outside of the transformed function.",
            )
        )


class TracerIntegerConversionError(JAXTypeError):
    """A tracer was used where Python needs an integer.

    Args:
        tracer: the tracer.
    """

    def __init__(self, tracer: _TracerLike) -> None:
        self.tracer = tracer
        super().__init__(
            _about(
                tracer,
                "a tracer cannot be used as a Python integer: its value is not known while tracing",
                "If it is a shape, an axis or the bound of a Python loop, make it a static "
                "argument (jit's static_argnums or static_argnames), or use lax.fori_loop for "
                "the loop. To index a list or a NumPy array with it, convert that with "
                "dovetail.numpy.asarray first.",
            )
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was used as the condition of Python's `if`, `while`, `and`, `or` or `not`.

    Args:
        tracer: the tracer.
    """

    def __init__(self, tracer: _TracerLike) -> None:
        self.tracer = tracer
        TypeError.__init__(
            self,
            _about(
                tracer,
                # JAX's words, which people look for and libraries test.
                "Attempted boolean conversion of traced array: it cannot decide Python control "
                "flow (if, while, and, or, not, assert), since its value is not known while "
                "tracing",
                "Use dovetail.numpy.where(condition, a, b) to choose between values, lax.cond to "
                "choose between computations, lax.while_loop to repeat, and & | ~ instead of "
                "and, or, not. If the condition depends only on an option of the function, make "
                "that a static argument (static_argnums or static_argnames).",
            ),
        )


class TracerAttributeError(ConcretizationTypeError, AttributeError):
    """An attribute was read of a tracer that only arrays have, such as their devices.

    It is an AttributeError, too, so that `hasattr` is false.

    Args:
        tracer: the tracer.
        name: the name of the attribute.
    """

    def __init__(self, tracer: _TracerLike, name: str) -> None:
        self.tracer = tracer
        TypeError.__init__(
            self,
            _about(
                tracer,
                f"{name} is there for arrays alone, and a tracer stands for values that are not "
                "known yet",
                "Use it on the result, outside of the transformed function.",
            ),
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """An array was indexed with a traced mask, so the size of the result is unknown.

    Args:
        tracer: the mask.
    """

    def __init__(self, tracer: _TracerLike) -> None:
        self.tracer = tracer
        super().__init__(
            _about(
                tracer,
                "an array was indexed with a boolean tracer: the shape of the result would depend "
                "on values that are not known while tracing",
                "Use dovetail.numpy.where(mask, x, fill) to keep the shape, the argument where= of "
                "reductions such as sum, or dovetail.numpy.nonzero(mask, size=n) for at most n "
                "elements.",
            )
        )


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that created it had ended.

    Args:
        msg: the text of the error, or the tracer that leaked.
    """

    def __init__(self, msg: Any) -> None:
        if isinstance(msg, str):
            super().__init__(msg)
            return
        self.tracer = msg
        super().__init__(
            _about(
                msg,
                "a tracer was used outside of the transformed function in which it was made: a "
                "side effect has kept it, for example in a global variable, an attribute or a "
                "list",
                "Return the value from the function instead of storing it. To find the place, run "
                "the function inside of: with dovetail.check_tracer_leaks(): ...",
            )
        )


class ShapeError(ValueError, TypeError):
    """Shapes, sizes or axes do not fit each other, or a size is negative.

    NumPy raises a ValueError for most of these mistakes, and JAX now that, now a TypeError: this is
    both.

    Args:
        message: the text of the error.
    """


class IndexShapeError(ShapeError, IndexError):
    """Arrays of indices do not broadcast, or an array does not have the dimension that is named.

    For the first, NumPy raises an IndexError, and JAX a ValueError; for the second, NumPy an
    `AxisError`, which is both, and JAX now one, now the other. This is both.

    Args:
        message: the text of the error.
    """


class DTypeError(TypeError, ValueError):
    """A function does not take the dtype of an argument.

    NumPy raises a TypeError for most of these mistakes, and JAX now that, now a ValueError: this is
    both.

    Args:
        message: the text of the error.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice, while the option ``debug_key_reuse`` is on.

    Args:
        message: the text of the error.
    """


class JaxprTypeError(TypeError):
    """A jaxpr is malformed: a bug in a transformation or in a primitive's rule."""


class InconclusiveDimensionOperation(Exception):
    """Symbolic sizes of dimensions cannot be compared, or would have to be numbers.

    Attributes:
        what: the first sentence of the message.
        where: the user's line, such as ``train.py:12 (loss)``.
    """

    what: str = ""
    where: str = ""


class DeletedArrayError(RuntimeError, ValueError):
    """An array was used after it was deleted or donated.

    JAX raises a RuntimeError or a ValueError, by the function that finds it out: this is both.

    Args:
        message: the text of the error.
    """


class RecompilationError(RuntimeError):
    """A function would be traced or compiled again, in a block of `dovetail.no_recompiles`.

    Args:
        message: the text of the error.
    """


class MissingRuleError(NotImplementedError):
    """A primitive has no rule for a transformation or a platform.

    Args:
        message: the text of the error, which names the primitive, the rule and the user's line.
    """


class BackendUnavailableError(RuntimeError):
    """A requested platform is not installed or did not start.

    A backend raises it if its probe or its client fails for a known reason. The text is then shown
    unchanged, without the usual advice.

    Args:
        message: the text of the error, with the reason.
    """


class ExporterUnavailableError(RuntimeError):
    """The exporter of a requested format is not installed, or did not load.

    Args:
        message: the text of the error, with the reason.
    """


class ShardingTypeError(ValueError, TypeError):
    """The types of arrays do not tell how a result is divided over the axes of a mesh.

    Args:
        message: the text of the error.

    Example:
        >>> from dovetail.errors import ShardingTypeError
        >>> issubclass(ShardingTypeError, ValueError)
        True
    """


class ForbiddenCollectiveError(RuntimeError):
    """Devices would communicate along an axis for which `no_collectives` forbids it.

    Args:
        message: the text of the error.
    """


class DistributedError(RuntimeError):
    """Processes do not compute together: one has died, has not come, or does something else.

    Args:
        message: the text of the error, which names them.
        processes: their numbers.

    Attributes:
        processes: the numbers of the processes that are to blame; empty if it is this one.
    """

    def __init__(self, message: str, processes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.processes = processes

    def __reduce__(self) -> tuple[type, tuple[str, tuple[int, ...]]]:
        return (type(self), (str(self), self.processes))


class DeviceMismatchError(ValueError):
    """An operation got arrays that are committed to different devices.

    Args:
        message: the text of the error.
    """


class NonArrayArgumentError(TypeError, ValueError):
    """A value that is not an array and cannot become one was passed as an array.

    It is a TypeError; of None and of text JAX makes a ValueError, so that it is that, too.

    Args:
        message: the text of the error, which names the argument.
    """


class NoValueError(NonArrayArgumentError, ValueError):
    """An array was needed, and elements of what was passed have no value: some are masked or None.

    Args:
        message: the text of the error, which names the argument.
    """


class CompilationCacheWarning(UserWarning):
    """The disk cache of compiled programs could not be read or written."""


class UnknownNameError(AttributeError):
    """A module of dovetail does not have a name.

    The text, which says what to write instead, is made when it is read: Python itself looks for
    names that there are not, and drops the error.

    Args:
        module: the module.
        unknown: the name.
        known: the names that it has.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.cat  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dovetail.errors.UnknownNameError: module 'dovetail.numpy' has no attribute 'cat'; write ...
    """

    def __init__(self, module: str, unknown: str, known: Iterable[str]) -> None:
        # With the object, too, Python would add a guess of its own.
        super().__init__(module, unknown, tuple(known), name=unknown)

    def __str__(self) -> str:
        from dovetail._core.base.habits import missing_name  # deferred: for messages alone

        return missing_name(*self.args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"
