"""Tracers: the values that stand in for arrays while a function is transformed.

Array operators and methods are not defined here. The NumPy API installs them, through a hook, in
every class passed to `register_array_class`. Until then, operator stubs and `__getattr__` load it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from dovetail._core.base.dtypes import kind_of
from dovetail._core.base.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerAttributeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from dovetail._core.base.habits import ATTRIBUTES
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.tracebacks import boundary, boundary_of_reader, bounded

if TYPE_CHECKING:
    from dovetail._core.trace.array_methods import ArrayMethods
    from dovetail._core.trace.state import Trace
else:
    ArrayMethods = object

OPERATORS: Final = (
    *(f"__{name}__" for name in ("pos", "neg", "abs", "invert", "round", "divmod", "rdivmod")),
    *(
        f"__{side}{name}__"
        for name in (
            [
                "add",
                "sub",
                "mul",
                "truediv",
                "floordiv",
                "mod",
                "pow",
                "matmul",
                "and",
                "or",
                "xor",
                "lshift",
                "rshift",
            ]
        )
        for side in ("", "r")
    ),
    *(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "contains")),
)


class ArrayClass(ArrayMethods):
    """Base of the classes that get their operators and methods from the NumPy API."""

    __slots__ = ()
    __array_priority__: ClassVar[int] = 100
    aval: Any

    if not TYPE_CHECKING:  # type checkers must report undeclared attributes

        @boundary
        def __getattr__(self, name: str) -> Any:
            special = name.startswith("__") and name.endswith("__")
            if not special:
                load_array_methods()
            if special or name in ATTRIBUTES or "__getattr__" not in ArrayClass.__dict__:
                return object.__getattribute__(self, name)  # raises what it has raised before
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; methods of arrays are "
                "in the distribution dovetail-numpy, which is not installed: pip install "
                "dovetail-numpy"
            )

    def __dir__(self) -> list[str]:
        load_array_methods()
        return [name for name in super().__dir__() if name not in ATTRIBUTES]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import dovetail  # deferred: says what to install if the NumPy API is missing

        namespace: Any = dovetail.numpy
        version = getattr(namespace, "__array_api_version__", "2025.12")
        if api_version is not None and api_version > version:
            raise ValueError(
                f"dovetail.numpy follows the array API standard {version}, not {api_version}"
            )
        return namespace

    # Equality is elementwise, so arrays have no hash.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]


class _OfOtherFrameworks:
    """An attribute that arrays of other frameworks have; its error says what to write."""

    def __init__(self, name: str) -> None:
        self.name = name

    @boundary
    def __get__(self, array: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self.name!r}; write "
            f"{ATTRIBUTES[self.name]}",
            name=self.name,  # with an object Python would add a guess of its own
        )


for _name in ATTRIBUTES:
    setattr(ArrayClass, _name, _OfOtherFrameworks(_name))

_classes: Final[list[tuple[type, Callable[[str, Callable[..., Any]], Any]]]] = []
_loaded = False
_loading: Final = shared_lock()


def _as_it_is(name: str, function: Callable[..., Any]) -> Any:
    return function


def register_array_class(
    cls: type, adapt: Callable[[str, Callable[..., Any]], Any] = _as_it_is
) -> None:
    """Register `cls` to receive operators and methods; `adapt(name, function)` may wrap each."""
    _classes.append((cls, adapt))
    if _loaded:
        from dovetail._core.plugins.manager import (  # deferred: reads installed metadata
            manager,
        )

        _install(cls, adapt, manager().array_methods())


def load_array_methods() -> bool:
    """Install the methods that extensions supply; False if this was done before.

    Several threads may use their first arrays at once: each returns when all is installed.
    """
    global _loaded
    if _loaded:
        return False
    from dovetail._core.plugins.manager import manager  # deferred: reads installed metadata

    methods = manager().array_methods()  # without the lock: it imports
    with _loading:
        if _loaded:
            return True
        for cls, adapt in _classes:
            _install(cls, adapt, methods)
        _loaded = True
        if methods.methods and "__getattr__" in ArrayClass.__dict__:
            # A class with `__getattr__` pays for it on every attribute access.
            del ArrayClass.__getattr__  # type: ignore[attr-defined]
    return True


def _install(cls: type, adapt: Callable[[str, Callable[..., Any]], Any], methods: Any) -> None:
    tables = ({n: f for n, f in methods.operators.items() if n in OPERATORS}, methods.methods)
    for name, function in [item for table in tables for item in table.items()]:
        if name not in cls.__dict__:
            late = adapt is not _as_it_is or isinstance(function, str)
            setattr(cls, name, _Late(cls, name, function, adapt) if late else function)
    for name, function in methods.properties.items():
        if name not in cls.__dict__:
            late = isinstance(function, str)
            setattr(cls, name, _late_property(cls, name, function) if late else _property(function))


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except ImportError:
        if not sys.is_finalizing():
            raise
    raise _too_late(name.rstrip("_"))


def _too_late(name: str) -> RuntimeError:
    return RuntimeError(
        f"the function {name} of arrays was not used before the interpreter began to exit, and "
        "nothing can be imported any more: use it once before, or compute in a function that is "
        "registered with atexit"
    )


class _Late:
    """A method that is imported and adapted on first lookup, and replaces itself with the result.

    Args:
        cls: the class that it is a method of.
        name: its name there.
        function: the function behind it, or its place.
        adapt: makes the method of it.
    """

    def __init__(
        self,
        cls: type,
        name: str,
        function: Callable[..., Any] | str,
        adapt: Callable[[str, Callable[..., Any]], Any],
    ) -> None:
        self.cls, self.name, self.function, self.adapt = cls, name, function, adapt

    def __get__(self, instance: Any, owner: type) -> Any:
        function = self.function
        method = self.adapt(
            self.name, _imported(function) if isinstance(function, str) else function
        )
        setattr(self.cls, self.name, method)
        return method.__get__(instance, owner)


def _property(function: Callable[[Any], Any]) -> property:
    return property(boundary_of_reader(function))


def _late_property(cls: type, name: str, place: str) -> property:
    """A property that imports its function on first read and replaces itself with it."""

    def read(self: Any) -> Any:
        function = _imported(place)
        setattr(cls, name, _property(function))
        return function(self)

    return _property(read)


def _stub(name: str) -> Callable[..., Any]:
    def load_and_retry(self: Any, *args: Any) -> Any:
        if sys.is_finalizing():
            raise _too_late(name)
        load_array_methods()
        method = getattr(type(self), name)
        if method is stub:
            raise TypeError(
                f"the operator {name} of arrays is in the distribution dovetail-numpy: pip "
                "install dovetail-numpy"
            )
        return method(self, *args)

    load_and_retry.__name__ = name
    stub = boundary(load_and_retry)
    return stub


for _name in OPERATORS:
    setattr(ArrayClass, _name, _stub(_name))


def ambiguous_truth(shape: tuple[int, ...]) -> ValueError:
    """The error about the truth value of several elements, or of none."""
    instead = (
        "to ask whether it is empty, use x.size == 0"
        if 0 in shape
        else "use x.any() or x.all(); to combine masks, & for and, | for or, ~ for not, with each "
        "comparison in parentheses: (x > 0) & (x < 1)"
    )
    return ValueError(f"the truth value of an array of shape {shape} is ambiguous: {instead}")


class _OfValues:
    """An attribute that arrays have and tracers lack; its error says where a tracer came from."""

    def __init__(self, name: str) -> None:
        self.name = name

    @boundary
    def __get__(self, tracer: Any, owner: type) -> Any:
        if tracer is None:
            raise AttributeError(f"{owner.__name__} has no attribute {self.name!r}")
        raise TracerAttributeError(tracer, self.name)


@bounded
class Tracer(ArrayClass):
    """A value inside a transformation.

    Args:
        trace: the trace that it belongs to.
        aval: its abstract value.

    Attributes:
        aval: its abstract value.
    """

    __slots__ = ("__weakref__", "_trace", "aval")

    _trace: Trace

    def __init__(self, trace: Trace, aval: Any) -> None:
        self._trace = trace
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        shape: tuple[int, ...] = self.aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ndim: int = self.aval.ndim
        return ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self.aval.size
        return size

    @property
    def itemsize(self) -> int:
        """The number of bytes that one element takes."""
        return int(self.aval.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.size * self.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to others in promotion."""
        weak: bool = self.aval.weak_type
        return weak

    def origin(self) -> str:
        """A phrase that says where this tracer came from."""
        return self._trace.describe(self)

    def concrete(self) -> Any:
        """The value behind the tracer if it is known, else None."""
        return None

    def full_lower(self) -> Any:
        """Itself; where it stands for a value that needs no tracer, that value."""
        return self

    def _scalar_number(self, conversion: str) -> NoReturn:
        """Refuse to become a number of Python, because of the shape or because this is a tracer."""
        if self.aval.shape:
            raise TypeError(
                f"{conversion} is for a single number, and the array has shape {self.shape}"
            )
        raise ConcretizationTypeError(self, conversion)

    def __len__(self) -> int:
        return len(self.aval)

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over an array without dimensions")
        return iter([self[i] for i in range(len(self.aval))])

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ambiguous_truth(self.shape)
        value = self.concrete()
        if value is None:
            raise TracerBoolConversionError(self)
        return bool(value)

    def __int__(self) -> int:
        self._scalar_number("int()")

    def __float__(self) -> float:
        self._scalar_number("float()")

    def __complex__(self) -> complex:
        self._scalar_number("complex()")

    def __index__(self) -> int:
        if self.aval.shape or kind_of(self.aval.dtype) not in ("i", "u"):
            raise TypeError(
                "only an integer array without dimensions can be used as a Python index, and this "
                f"one is {self.aval}"
            )
        raise TracerIntegerConversionError(self)

    @boundary
    def __hash__(self) -> NoReturn:  # type: ignore[override]
        raise TypeError(
            f"unhashable type: a tracer ({self.aval}), here {self.origin()}. What looks it up, in "
            "a dict or a set or as a static argument, would compare values that are not known: "
            "use a Python number, known outside of the transformed function, or lax.switch"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TracerArrayConversionError(self)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function.__name__ in ("array_equal", "array_equiv"):
            raise TracerArrayConversionError(self)  # they would take this error for a difference
        return function._implementation(*args, **kwargs)

    def tolist(self) -> NoReturn:
        """Nested lists of Python scalars; not of a tracer, so this is an error."""
        raise ConcretizationTypeError(self, "tolist()")

    def item(self, *args: int) -> NoReturn:
        """One element as a Python scalar; not of a tracer, so this is an error."""
        raise ConcretizationTypeError(self, "item()")

    def tobytes(self, order: str = "C") -> NoReturn:
        """The elements as bytes; not of a tracer, so this is an error."""
        raise ConcretizationTypeError(self, "tobytes()")

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> NoReturn:
        raise ConcretizationTypeError(self, "A tracer cannot be pickled.")

    def __format__(self, spec: str) -> str:
        if spec:
            self._scalar_number(f"the format {spec!r}")
        return str(self)

    def __str__(self) -> str:
        return f"{self.aval.short_name()} traced by {self._trace.traced_by(self)}"

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}>with<{type(self).__name__}>"

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "arrays cannot be changed: instead of x[index] = y write x = x.at[index].set(y); "
            "instead of x[index] += y write x = x.at[index].add(y)"
        )


for _name in (
    *("addressable_data", "addressable_shards", "global_shards", "sharding"),
    *("is_fully_addressable", "is_fully_replicated", "platform", "clone", "traceback"),
    *("block_until_ready", "copy_to_host_async", "is_ready"),
    *("committed", "device", "devices"),
    *("delete", "is_deleted", "on_device_size_in_bytes", "unsafe_buffer_pointer"),
    *("__dlpack__", "__dlpack_device__"),
):
    setattr(Tracer, _name, _OfValues(_name))

register_array_class(Tracer)
