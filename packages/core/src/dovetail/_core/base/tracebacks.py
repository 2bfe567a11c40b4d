"""Tracebacks without the frames of the framework.

Where the user's code enters the framework there is a boundary: public functions, methods of arrays,
what transformations return, and what C++ calls when it has no program. An exception that passes one
loses the frames of the framework below it, so that a traceback ends at the user's line, wherever it
is shown: by Python, a debugger, pytest, a notebook, a log.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from opcode import opmap
from types import FrameType, FunctionType, TracebackType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from dovetail._core.base.error_codes import add_code
from dovetail._core.base.errors import UnknownNameError, close_matches
from dovetail._core.base.option_kinds import Choice
from dovetail._core.base.options import Option, Options
from dovetail._core.base.source import is_internal
from dovetail._core.base.wrapping import update_wrapper

__all__ = [
    "boundary",
    "boundary_of_reader",
    "bounded",
    "explain_call",
    "hide_frames",
    "is_hidden",
    "publish",
    "published",
    "traceback_filtering",
    "unknown_name",
    "without_hidden",
]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
S = TypeVar("S")

traceback_filtering = Option(
    "traceback_filtering",
    Choice("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "auto",
    "Leave the framework's own frames out of tracebacks, which end at your line whatever the value "
    'is, if it is not "off".',
)

#: What other frameworks call an argument, and what it may be called here.
_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "dim": ("axis", "axes", "dimension", "axis1"),
    "dims": ("axis", "axes", "dimensions", "shape"),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
    "axis": ("dimension", "axes", "dimensions"),
    "axes": ("axis", "dimensions"),
    "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",),
    "reduction_indices": ("axis",),
    "input": ("a", "x", "x1", "ary", "lhs"),
    "tensor": ("a", "x", "arrays", "ary"),
    "tensors": ("arrays",),
    "other": ("x2", "b", "y", "rhs"),
    "size": ("shape",),
    "unbiased": ("correction", "ddof"),
    "generator": ("key",),
    "seed": ("key",),
    "low": ("minval",),
    "high": ("maxval",),
    "split_size_or_sections": ("indices_or_sections",),
}
#: What no function here takes, and what to write instead.
_NOT_ARGUMENTS: Final[Mapping[str, str]] = {
    "requires_grad": "dovetail.grad(f)(x): derivatives are those of functions",
    "inplace": "x = f(x): arrays are immutable",
    "out": "x = f(...): arrays are immutable, and results are new ones",
    "pin_memory": "dovetail.device_put(x, sharding) with a memory_kind",
}
_MISMATCH: Final = (
    r"(?P<function>\S+)\(\) (?:got an unexpected keyword argument '(?P<word>\w+)'"
    r"|(?P<problem>takes .* positional arguments? but \d+ (?:was|were) given)"
    r"|(?P<missing>missing \d+ required .* arguments?: .*))"
)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MISTAKES: Final = (AttributeError, IndexError, KeyError, NameError)
#: The mark of an exception that the framework raised, when it has passed a boundary inside of it.
_MEANT: Final = "_dovetail_meant"
_ALIAS: Final = os.path.join("_core", "alias", "")
#: The names of first arguments that are functions.
_TRANSFORMED: Final = ("fun", "f", "fn")
_CONSTRUCTORS: Final = ("__init__", "__new__", "__post_init__")
#: The special methods by which users call, enter and change objects.
_ENTRIES: Final = frozenset(
    f"__{name}__"
    for name in (
        *("new", "init", "post_init", "call", "enter", "exit", "iter", "contains"),
        *("getitem", "setitem", "delitem", "getattr", "setattr"),
        *("bool", "int", "float", "complex", "index", "array", "format", "reduce", "len"),
        *(side + name for side in ("", "r") for name in ("add", "sub", "mul", "truediv", "matmul")),
    )
)
#: The instructions that raise these where the program itself is wrong.
_READS: Final = tuple(
    code
    for name, code in opmap.items()
    if name in ("LOAD_ATTR", "LOAD_METHOD", "BINARY_SUBSCR") or name.startswith("LOAD_GLOBAL")
)


def is_hidden(filename: str) -> bool:
    """Whether frames of a file are left out: the framework's, but not NumPy's."""
    folders = getattr(sys.modules.get("numpy"), "__path__", ())
    return is_internal(filename) and not any(
        filename.startswith(os.path.join(folder, "")) for folder in folders
    )


def hide_frames(error: BaseException) -> None:
    """Take the framework's frames out of the traceback of an exception, and of its causes.

    An exception that the framework raises gets its code, see `error_codes`.

    Args:
        error: the exception; its frames stay if the option `traceback_filtering` is off, or if it
            is a mistake of the framework's own.
    """
    if _own_entry(error) is not None and not _is_own_mistake(error):
        if not isinstance(error, UnknownNameError):  # its text is only made where it is read
            add_code(error)
        error.__dict__[_MEANT] = True
    if traceback_filtering.value == "off":
        return
    for one in _chain(error):
        if not _is_own_mistake(one):
            one.__traceback__ = without_hidden(one.__traceback__)
        before = one.__context__
        if before is not None and all(map(_is_hidden_entry, _entries(before.__traceback__))):
            one.__suppress_context__ = True  # how the framework found out


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and all that were raised before and led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def without_hidden(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are left out; None if there are no others."""
    left = [entry for entry in _entries(traceback) if not _is_hidden_entry(entry)]
    result = None
    for entry in reversed(left):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden_entry(entry: TracebackType) -> bool:
    return is_hidden(entry.tb_frame.f_code.co_filename)


def _own_entry(error: BaseException) -> TracebackType | None:
    """The entry of the frame that raised an exception, if that is the framework's."""
    *_, last = (None, *_entries(error.__traceback__))
    return last if last is not None and _is_hidden_entry(last) else None


def _is_own_mistake(error: BaseException) -> bool:
    """Whether the framework itself has failed: by an assertion, or an error that nothing raises."""
    entry = _own_entry(error)
    if entry is None or _MEANT in error.__dict__:
        return False
    reads = entry.tb_frame.f_code.co_code[entry.tb_lasti] in _READS
    return isinstance(error, AssertionError) or (isinstance(error, _MISTAKES) and reads)


def explain_call(error: TypeError, function: Callable[..., Any], name: str) -> None:
    """Say which argument was meant, if an exception says that a call has too few or others.

    Args:
        error: the exception that a call of the function raised.
        function: the function.
        name: its name, for the message.
    """
    found = re.match(_MISMATCH, str(error))
    if found is None or found["function"] != function.__qualname__:
        return
    parameters = inspect.signature(function).parameters
    names = [n for n, p in parameters.items() if p.kind in _NAMED]
    word = found["word"]
    if word is not None:
        meant = [n for n in _OTHER_WORDS.get(word, ()) if n in names] or close_matches(word, names)
        advice = f"write {meant[0]}=..." if meant else f"its arguments are {', '.join(names)}"
        if word in _NOT_ARGUMENTS:
            advice = f"write {_NOT_ARGUMENTS[word]}"
        error.args = (f"{name}() got an unexpected keyword argument {word!r}: {advice}",)
        return
    if found["missing"] is not None:
        advice = ""
        first = next((n for n in names if n != "self"), "")
        if first in _TRANSFORMED and f"'{first}'" in found["missing"]:
            advice = f"; as a decorator with options write @functools.partial({name}, ...)"
        error.args = (f"{name}() {found['missing']}{advice}",)
        return
    plural = next((n for n in names if n in ("shape", "axes", "sizes")), None)
    if plural is not None:
        error.args = (f"{name}() {found['problem']}: several numbers for {plural} are one tuple",)


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with tracebacks of what it raises that hold the user's frames alone."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result: Any = function(*args, **kwargs)
        except Exception as error:
            if type(error) is TypeError:
                explain_call(error, function, _shown_name(function))
            hide_frames(error)
            raise
        if type(result) is FunctionType and is_hidden(result.__code__.co_filename):
            inner = result  # what a transformation returns, which says what it is made of
            result = boundary(inner)
            result.__wrapped__ = getattr(inner, "__wrapped__", inner)
        value: R = result
        return value

    return update_wrapper(call, function)


def _shown_name(function: Callable[..., Any]) -> str:
    """The name by which users call a function: for a constructor, that of the class."""
    owner, _, name = function.__qualname__.rpartition(".")
    return owner.rpartition(".")[2] if name in _CONSTRUCTORS else function.__name__


def boundary_of_reader(method: Callable[[S], R]) -> Callable[[S], R]:
    """As `boundary`, for a method without arguments, which it makes slower by 20 ns alone."""

    def read(self: S) -> R:
        try:
            return method(self)
        except Exception as error:
            hide_frames(error)
            raise

    return update_wrapper(read, method)


def bounded(cls: C) -> C:
    """A class whose constructor and public methods are behind boundaries, and with them the class.

    Properties are not, nor is what compares and prints.
    """
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in _ENTRIES:
            continue
        kind = type(value)
        if kind is FunctionType and value.__code__ not in _BOUNDARIES:
            setattr(cls, name, (boundary_of_reader if _is_reader(value) else boundary)(value))
        elif kind is classmethod or kind is staticmethod:
            setattr(cls, name, kind(boundary(value.__func__)))
    return cls


def _is_reader(method: FunctionType) -> bool:
    code = method.__code__
    more = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & more


_BOUNDARIES: Final = (boundary(len).__code__, boundary_of_reader(len).__code__)

for _class in (Option, Options):  # which this module uses
    bounded(_class)

_published: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def published(function: Callable[P, R], module: str, name: str) -> Callable[P, R]:
    """The function as users get it from a module: behind a `boundary`, always the same one.

    Args:
        function: the function.
        module: a public module that has it, where pickle finds it.
        name: its name there.
    """
    found = _published.get(function)
    if found is None:
        found = _published[function] = boundary(function)
        found.__module__, found.__qualname__ = module, name
    return found


def publish(namespace: dict[str, Any]) -> None:
    """Put the public functions of a module behind boundaries; the last line of such a module.

    A name that the module does not have is an error which says what to write, and ``dir`` shows no
    names that begin with one underscore.

    Args:
        namespace: the module's ``globals()``, with ``__all__``.

    Raises:
        TypeError: there is no ``__all__``.
    """
    module, names = namespace["__name__"], namespace.get("__all__")
    if names is None:
        raise TypeError(
            f"publish was given the names of {module}, which has no __all__: list its public names "
            "there, before the call"
        )
    for name in names:
        value = namespace[name]
        if type(value) is FunctionType:
            namespace[name] = published(value, module, name)

    def missing(name: str) -> NoReturn:
        unknown_name(module, name, names)

    def shown() -> list[str]:
        return sorted(n for n in namespace if n[0] != "_" or n.startswith("__"))

    namespace.setdefault("__getattr__", boundary(missing))
    namespace.setdefault("__dir__", shown)


@boundary
def unknown_name(module: str, name: str, known: Iterable[str]) -> NoReturn:
    """Raise the error about a name that a public module does not have, which says what to write.

    Python makes an error of its own where ``from module import name`` finds an AttributeError; what
    to write would be lost.
    """
    error = UnknownNameError(module, name, known)
    if not name.startswith("_") and _is_imported() and f"{module}.{name}" not in sys.modules:
        advice = str(error).removeprefix(f"module {module!r} has no attribute {name!r}")
        raise ImportError(f"cannot import name {name!r} from {module!r}{advice}", name=module)
    raise error


def _is_imported() -> bool:
    """Whether the user's line takes a name out of a module by ``from module import name``.

    Not if it is the module `jax`, which stands for one of ours and makes an error of its own.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        if _ALIAS in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
