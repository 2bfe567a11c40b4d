"""The framework's options: typed, readable from C++, global or scoped to a thread.

Each option is an `Option` object, declared once below. Its value comes from the first of these that
is set: the thread (inside ``with option(value):``), the process (`config.update`), the environment
variable ``DOVETAIL_<NAME>``, the default.
"""

from __future__ import annotations

import functools
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from dovetail._core.base import bindings
from dovetail._core.base.errors import close_matches
from dovetail._core.base.option_kinds import (
    Bool,
    Choice,
    DeviceName,
    Float,
    Int,
    Kind,
    Platforms,
    Text,
)

__all__ = ["Option", "Options", "config", "names_in_trace_key", "trace_key", "trace_state"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

_registry: dict[str, Option[Any]] = {}


class _Missing:
    def __repr__(self) -> str:
        return "<no value>"


_MISSING: Any = _Missing()


class OptionScope(typing.Generic[T]):
    """Sets an option for one thread, as a context manager or a decorator."""

    __slots__ = ("_option", "_previous", "_value")

    def __init__(self, option: Option[T], value: T) -> None:
        self._option = option
        self._value = value
        self._previous: list[Any] = []

    def __enter__(self) -> None:
        self._previous.append(self._option.swap_local(self._value))

    def __exit__(self, *exception: object) -> None:
        self._option.set_local(self._previous.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` with the option at this value."""
        option, value = self._option, self._value

        @functools.wraps(function)
        def with_option(*args: P.args, **kwargs: P.kwargs) -> R:
            previous = option.swap_local(value)
            try:
                return function(*args, **kwargs)
            finally:
                option.set_local(previous)

        return with_option

    def __repr__(self) -> str:
        return f"{self._option.name}({self._value!r})"


if typing.TYPE_CHECKING:

    class _Cell(bindings.Config[T], typing.Generic[T]):
        """The C++ object that holds the values."""

else:

    class _Cell(bindings.Config):
        # The C++ class cannot have `Generic` as a second base.
        def __class_getitem__(cls, _):
            return cls


class Option(_Cell[T]):
    """An option: its name, kind, default, help and value.

    Reading ``option.value`` is one attribute access in C++. Calling an option, ``option(value)``,
    returns a scope for the current thread that is a context manager and a decorator.
    """

    kind: Kind[T]
    default: T
    help: str
    affects_tracing: bool
    environment: tuple[str, ...]

    def __init__(
        self,
        name: str,
        kind: Kind[T],
        default: T,
        help: str,
        *,
        affects_tracing: bool = False,
        environment: tuple[str, ...] = (),
    ) -> None:
        variables = (f"DOVETAIL_{name.upper()}", *environment)
        super().__init__(
            name,
            _from_environment(variables, kind, default),
            include_in_jit_key=affects_tracing,
            include_in_trace_context=affects_tracing,
        )
        self.kind = kind
        self.default = default
        self.help = help
        self.affects_tracing = affects_tracing
        self.environment = variables
        self.__doc__ = help
        _registry[name] = self

    def checked(self, value: Any) -> T:
        """Convert ``value`` to its stored form.

        Raises:
            TypeError: it has the wrong type.
            ValueError: it is not among the allowed values.
        """
        try:
            return self.kind.check(value)
        except (TypeError, ValueError) as error:
            close = ""
            if isinstance(value, str) and isinstance(self.kind, Choice):
                names = [choice for choice in self.kind.choices if choice is not None]
                matches = close_matches(value, names, 1)
                close = f" Did you mean {matches[0]!r}?" if matches else ""
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"the option {self.name!r} takes {self.kind.description}; "
                f"got {value!r} of type {type(value).__name__}.{close}"
            ) from None

    def set_global(self, value: T) -> None:
        """Set the value for every thread without a value of its own."""
        super().set_global(self.checked(value))

    def __call__(self, new_val: T = _MISSING) -> OptionScope[T]:
        """A scope in which the option has ``new_val`` for the current thread.

        Args:
            new_val: the value; without it, a boolean option is switched on.

        Returns:
            A context manager, which is also a decorator.

        Example:
            >>> from dovetail._core.base.config import enable_x64
            >>> with enable_x64(True):
            ...     enable_x64.value
            True
            >>> @enable_x64(True)
            ... def widest():
            ...     return enable_x64.value
            >>> widest(), enable_x64.value
            (True, False)
        """
        if new_val is _MISSING:
            if not isinstance(self.kind, Bool):
                raise TypeError(
                    f"{self.name}() needs a value: {self.kind.description}. "
                    f"Write for example: with dovetail.{self.name}({self.default!r}): ..."
                )
            return OptionScope(self, True)  # type: ignore[arg-type]
        return OptionScope(self, self.checked(new_val))

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"

    def __reduce__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise TypeError(
            f"the option {self.name} is an object, which is neither true nor false; "
            f"read dovetail.config.{self.name}"
        )


class _DisableJit(Option[bool]):
    """The option `disable_jit`, whose scope takes an argument with another name."""

    def __call__(self, disable: bool = True) -> OptionScope[bool]:
        """A scope in which jit is disabled, or enabled again.

        Args:
            disable: whether to run operation by operation.
        """
        return super().__call__(disable)


def _from_environment(variables: tuple[str, ...], kind: Kind[T], default: T) -> T:
    """The value of the first variable that is set, else the default."""
    for variable in variables:
        text = os.environ.get(variable)
        if text is None:
            continue
        try:
            return kind.parse(text)
        except (TypeError, ValueError):
            raise ValueError(
                f"the environment variable {variable} is {text!r}, which is not {kind.description}"
            ) from None
    return default


BOOL = Bool()

_PRECISIONS = (
    None,
    "default",
    "high",
    "highest",
    "fastest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "bfloat16_3x",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)

# Numbers and their types.
enable_x64 = Option(
    "enable_x64",
    BOOL,
    False,
    "Keep 64-bit types. When off, 64-bit integers, floats and complex numbers become 32-bit.",
    affects_tracing=True,
)
"""Differs:
    Integers become the float of their own width wherever a function computes in floats, and
    8 and 16 bits become float32, with or without this option.

    >>> with dt.enable_x64(True):
    ...     print(jnp.sin(jnp.ones(2, "int8")).dtype, jnp.sin(jnp.ones(2, "int64")).dtype)
    float32 float64
"""
default_matmul_precision = Option(
    "default_matmul_precision",
    Choice(*_PRECISIONS),
    None,
    "Precision of matrix multiplications and convolutions that name none: an accuracy or an "
    "algorithm.",
    affects_tracing=True,
)
numpy_dtype_promotion = Option(
    "numpy_dtype_promotion",
    Choice("standard", "strict"),
    "standard",
    'How arguments of different dtypes combine; "strict" allows only Python scalars with arrays.',
    affects_tracing=True,
)
numpy_rank_promotion = Option(
    "numpy_rank_promotion",
    Choice("allow", "warn", "raise"),
    "allow",
    "What to do when arguments of different ranks are broadcast without saying so.",
    affects_tracing=True,
)
index_mode = Option(
    "index_mode",
    Choice("allow", "raise"),
    "allow",
    "What to do about positions out of bounds in indices that name no mode: by default they are "
    "moved into bounds where elements are read, and left out where elements are written; "
    '"raise" is an IndexError, which a compiled program raises when it runs.',
    affects_tracing=True,
)
"""Differs:
    JAX has no such option. An index that names no mode can be made to raise where it is out
    of bounds: at once for arrays, when the program runs for traced positions.

    >>> with dt.index_mode("raise"):
    ...     jnp.arange(3)[7]
    Traceback (most recent call last):
        ...
    IndexError: index 7 is out of bounds for axis 0 with size 3, and index_mode ...
"""

# Random numbers.
default_prng_impl = Option(
    "default_prng_impl",
    Choice("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"),
    "threefry2x32",
    "The generator behind random.key and random.PRNGKey where none is named.",
    affects_tracing=True,
)
threefry_partitionable = Option(
    "threefry_partitionable",
    BOOL,
    True,
    "Generate threefry bits so that each device can compute its part alone.",
    affects_tracing=True,
)
threefry_gpu_kernel_lowering = Option(
    "threefry_gpu_kernel_lowering",
    BOOL,
    False,
    "Make threefry bits on NVIDIA GPUs by a ready-made kernel: programs compile sooner, and the "
    "bits take memory, since they are not made where they are used.",
    affects_tracing=True,
)
legacy_prng_key = Option(
    "legacy_prng_key",
    Choice("allow", "warn", "error"),
    "allow",
    "What to do when a raw uint32 array is used as a random key.",
)
random_seed_offset = Option(
    "random_seed_offset",
    Int(),
    0,
    "A number added to every seed given to random.key and random.PRNGKey.",
    affects_tracing=True,
)

# Where programs run.
platforms = Option(
    "platforms",
    Platforms(),
    None,
    "The platforms that may be used, most wanted first; None lets every installed backend take "
    "part.",
    environment=("JAX_PLATFORMS",),
)
default_device = Option(
    "default_device",
    DeviceName(),
    None,
    "Where data that is committed to no device is placed.",
    affects_tracing=True,
)
num_cpu_devices = Option(
    "num_cpu_devices",
    Int("a number of devices, or -1 to leave it to XLA_FLAGS", minimum=-1, refused=0),
    -1,
    "How many devices the CPU appears as; read when the CPU backend starts.",
)
cpu_asynchronous_dispatch = Option(
    "cpu_asynchronous_dispatch",
    BOOL,
    True,
    "Let programs run on the CPU while Python goes on; read when the CPU backend starts.",
)
cpu_retained_memory = Option(
    "cpu_retained_memory",
    Int("a number of bytes, or 0 to leave the C library's allocator as it is", minimum=0),
    1 << 30,
    "How much freed memory the process keeps for later arrays on the CPU, rather than have the "
    "system map and clear fresh pages for each; read when the CPU backend starts.",
)
"""Differs:
    JAX has no such option. Without it glibc maps and clears fresh pages for every large
    result, which makes an addition of 1e7 numbers take four times as long.

    >>> print(dt.config.option("cpu_retained_memory").default)
    1073741824
"""
cuda_visible_devices = Option(
    "cuda_visible_devices",
    Text(),
    "all",
    'The GPUs that this process uses, such as "0,2", counted among those that CUDA_VISIBLE_DEVICES '
    "leaves; read when the CUDA backend starts.",
    environment=("JAX_CUDA_VISIBLE_DEVICES",),
)

# How programs are compiled.
optimization_level = Option(
    "optimization_level",
    Choice("UNKNOWN", "O0", "O1", "O2", "O3"),
    "UNKNOWN",
    'How much time compilers spend on making programs fast: "O0" for little, as tests want it; '
    '"UNKNOWN" leaves it to them.',
    affects_tracing=True,
)
"""Differs:
    The option is part of the keys of traces and of programs, so that programs of several
    levels live side by side in a process.

    >>> double = dt.jit(lambda x: 2 * x)
    >>> with dt.optimization_level("O0"):
    ...     print(double(3))
    6
"""

# Finding mistakes.
disable_jit = _DisableJit(
    "disable_jit",
    BOOL,
    False,
    "Run jit-compiled functions and control flow operation by operation, in Python.",
    affects_tracing=True,
)
"""Differs:
    Checkpointed functions, too, run as Python; scans of no elements and batched conditions
    work.

    >>> with dt.disable_jit():
    ...     print(dt.checkpoint(lambda x: type(x).__name__)(jnp.ones(2)))
    Array
"""
debug_nans = Option(
    "debug_nans",
    BOOL,
    False,
    "Check every result for NaN, and name the operation that made the first one.",
    affects_tracing=True,
)
"""Differs:
    The program is run again operation by operation, and the error names the first operation
    that made a nan and its line. Programs with effects are not run twice.

    >>> with dt.debug_nans():
    ...     dt.jit(lambda x: jnp.log(x) + 1)(-1.0)
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (nan) encountered in log at <doctest ...
"""
debug_infs = Option(
    "debug_infs",
    BOOL,
    False,
    "Check every result for infinities, and name the operation that made the first one.",
    affects_tracing=True,
)
debug_checks = Option(
    "debug_checks",
    BOOL,
    True,
    "Run the checks of dovetail.debug.check; off, they are no part of programs.",
    affects_tracing=True,
)
check_tracer_leaks = Option(
    "check_tracer_leaks",
    BOOL,
    False,
    "Raise when a tracer outlives the transformation that made it.",
    affects_tracing=True,
)
"""Differs:
    The error says where the tracer was made, and the shortest chain of references to it
    from something that has a name in the user's code.

    >>> kept = []
    >>> try:
    ...     with dt.check_tracer_leaks():
    ...         dt.jit(kept.append)(1.0)
    ... except dt.errors.UnexpectedTracerError as error:
    ...     print("kept[0], where kept is a global" in str(error))
    True
"""
enable_checks = Option(
    "enable_checks",
    BOOL,
    False,
    "Run the jaxpr checker on the result of every transformation.",
    affects_tracing=True,
)
log_compiles = Option(
    "log_compiles",
    BOOL,
    False,
    "Log a warning with the duration of every tracing, lowering and compilation.",
)
log_checkpoint_residuals = Option(
    "log_checkpoint_residuals",
    BOOL,
    False,
    "Log a warning with what a checkpointed function keeps when it is differentiated.",
)
explain_cache_misses = Option(
    "explain_cache_misses",
    BOOL,
    False,
    "Log why a function had to be traced or a program compiled, and what to change.",
)
"""Differs:
    Every trace and every compilation is explained, those of eager operations included: the
    line, the time, the argument by its path, the static value or the option, and what to
    change.

    >>> import logging
    >>> records = []
    >>> handler = logging.Handler()
    >>> handler.emit = lambda record: records.append(record.getMessage())
    >>> logger = logging.getLogger("dovetail")
    >>> logger.addHandler(handler)
    >>> with dt.explain_cache_misses(True):
    ...     _ = dt.jit(lambda vector: vector * 2)(jnp.ones(3))
    >>> logger.removeHandler(handler)
    >>> any("<lambda>" in record for record in records)
    True
"""
no_tracing = Option(
    "no_tracing",
    BOOL,
    False,
    "Refuse to trace a jit-compiled function: every call must be one that was made before.",
)
"""Differs:
    A trace is an error that gives the reason which `explain_cache_misses` gives.

    >>> with dt.no_tracing(True):
    ...     dt.jit(lambda x: x + 1)(1.0)
    Traceback (most recent call last):
        ...
    RuntimeError: <lambda>, called at ... would have to be traced, and ...
"""
captured_constants_warn_bytes = Option(
    "captured_constants_warn_bytes",
    Int("a number of bytes, or -1 for no warning", minimum=-1),
    2_000_000_000,
    "Warn when a compiled function has captured at least this many bytes of constants.",
)

# Compiled programs on disk.
compilation_cache_dir = Option(
    "compilation_cache_dir",
    Text(),
    None,
    "The folder for compiled programs that later processes use; in the user's cache if None.",
)
enable_compilation_cache = Option(
    "enable_compilation_cache",
    BOOL,
    True,
    "Keep compiled programs on disk for later processes.",
)
"""Differs:
    Programs are kept on disk unless this option is off. A damaged or foreign entry is
    compiled again; a folder that others can write to is refused, because loading a program
    runs its code.

    >>> print(dt.config.option("enable_compilation_cache").default)
    True
"""
compilation_cache_max_size = Option(
    "compilation_cache_max_size",
    Int("a number of bytes, or -1 for no limit", minimum=-1),
    1 << 30,
    "The size above which the least recently used programs are removed from the cache on disk.",
)
persistent_cache_min_compile_time_secs = Option(
    "persistent_cache_min_compile_time_secs",
    Float(),
    0.0,
    "Programs that compile in less than this many seconds are not written to disk.",
)
raise_persistent_cache_errors = Option(
    "raise_persistent_cache_errors",
    BOOL,
    False,
    "Raise errors of the cache on disk, which are otherwise warnings.",
)

trace_state: bindings.Config[Any] = bindings.Config(
    "dovetail_trace_state", None, include_in_jit_key=True
)
"""Set by the trace layer while a trace is current, to keep the C++ jit off its fast path."""

callback_depth: bindings.Config[int] = bindings.Config(
    "dovetail_callback_depth", 0, include_in_jit_key=True
)
"""Which of the callbacks that run now this thread is in, 0 for none.

A call in a callback must not wait for the call around it, as the C++ jit has calls of one signature
do while the first of them is being served.
"""

post_hook: bindings.Config[Callable[..., None] | None] = bindings.Config("dovetail_post_hook", None)
"""Called after every call on the fast path: ``hook(function, args, kwargs, result)``."""

if not bindings.jax_owns_jit_state():
    # The slots are process-wide, and the last writer wins: if jax is imported, its objects stay.
    bindings._jax.jax_jit.set_enable_x64_state(enable_x64)
    bindings._jax.jax_jit.set_disable_jit_state(disable_jit)
    bindings._jax.jax_jit.set_post_hook_state(post_hook)


trace_key: Callable[[], tuple[Any, ...]] = bindings.trace_context
"""The values of all options that affect tracing: a key for caches that are filled while tracing.

The tuple is made in C++. In a process that has imported jax, the values of jax's own options are
part of it.
"""


def names_in_trace_key() -> list[str]:
    """The names of the options whose values `trace_key` gives, in its order."""
    return [name for name, option in _registry.items() if option.affects_tracing]


def _canonical_name(name: str) -> str:
    return name[4:] if name.startswith("jax_") and name not in _registry else name


class Options:
    """All options: read one as an attribute, set one with `update`.

    Differs:
        An option can be looked up with its help and its default, and options have no prefix;
        `jax_` before a name is accepted.

        >>> option = dt.config.option("jax_enable_x64")
        >>> print(option.name, option.default)
        enable_x64 False

    Example:
        >>> from dovetail._core.base.config import config
        >>> config.enable_x64
        False
        >>> config.update("numpy_rank_promotion", "warn")
        >>> config.numpy_rank_promotion, config.jax_numpy_rank_promotion
        ('warn', 'warn')
        >>> config.update("numpy_rank_promotion", "allow")
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        option = _registry.get(_canonical_name(name))
        if option is None:
            raise AttributeError(_unknown(name))
        return option.value

    def __setattr__(self, name: str, value: object) -> None:
        if _canonical_name(name) not in _registry:
            raise AttributeError(_unknown(name))
        raise AttributeError(
            f"options are not set by assignment; write config.update({name!r}, {value!r}), "
            f"or for one block: with dovetail.{_canonical_name(name)}({value!r}): ..."
        )

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_registry})

    def __iter__(self) -> Iterator[str]:
        return iter(_registry)

    def update(self, name: str, value: Any) -> None:
        """Set an option for the whole process.

        Args:
            name: the option's name, with or without the prefix ``jax_``.
            value: its new value.

        Raises:
            AttributeError: there is no such option; the message suggests similar names.
            TypeError: the value has the wrong type.
            ValueError: the value is not among those allowed.
        """
        self.option(name).set_global(value)

    def option(self, name: str) -> Option[Any]:
        """The option of that name, with its help, default and allowed values."""
        option = _registry.get(_canonical_name(name))
        if option is None:
            raise AttributeError(_unknown(name))
        return option

    def values(self) -> Mapping[str, Any]:
        """The current value of every option, by name."""
        return {name: option.value for name, option in _registry.items()}

    def __repr__(self) -> str:
        width = max(len(name) for name in _registry)
        lines = []
        for name, option in _registry.items():
            changed = "" if option.value == option.default else f"  (default {option.default!r})"
            lines.append(f"  {name:<{width}} = {option.value!r}{changed}")
        return "config:\n" + "\n".join(lines)


def _unknown(name: str) -> str:
    canonical = _canonical_name(name)
    matches = close_matches(canonical, _registry, 3)
    matches += [known for known in _registry if canonical in known and known not in matches]
    hint = f"; did you mean {' or '.join(map(repr, matches[:3]))}?" if matches else ""
    return f"there is no option {name!r}{hint or '; print(dovetail.config) lists them'}"


config = Options()
