"""MLIR contexts, source locations, and the bytecode and text forms of modules."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any, Final

from dovetail._core.base import config, source
from dovetail._core.base.restoring import Restoring
from dovetail._core.hlo.mlir import (
    Context,
    Location,
    Module,
    chlo,
    extension,
    ir,
    mhlo,
    passmanager,
    sdy,
    stablehlo,
)

__all__ = [
    "Locations",
    "array_shapes",
    "load_dialect",
    "make_context",
    "module_bytecode",
    "module_text",
    "operation_names",
    "parsed_alone",
    "stripped_bytecode",
]

_registry: Final = ir.DialectRegistry()
extension.register_dialects(_registry)

_ALL_FRAMES: Final = 2**31 - 1


def make_context() -> Context:
    """A new MLIR context, without threads, with the dialects that most programs need."""
    context = ir.Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(_registry)
    # Loading every registered dialect would take ten times as long, and `context.dialects` imports
    # the Python module of a dialect.
    ir.Module.parse("func.func private @f()", context)
    stablehlo.register_dialect(context)
    return context


_rare_dialects: Final = {
    "chlo": chlo.register_dialect,
    "sdy": sdy.register_dialect,
    "mhlo": mhlo.register_mhlo_dialect,
}


def load_dialect(name: str) -> None:
    """Load a dialect that `make_context` leaves out into the current context.

    Each of them takes as long to load as lowering a small program.
    """
    load = _rare_dialects.get(name)
    if load is not None:
        load(ir.Context.current)


def _file_of_user_code(code: CodeType) -> str | None:
    filename = code.co_filename
    return None if source.is_internal(filename) else filename


def _frame_limit() -> int:
    if not config.include_full_tracebacks_in_locations.value:
        return 1
    limit = config.traceback_in_locations_limit.value
    return _ALL_FRAMES if limit < 0 else limit


class Locations:
    """Turns the tracebacks of equations into locations of one context.

    Args:
        context: the context that the locations belong to.

    Attributes:
        name: creates a named location from a name and a location.
        of_traceback: the location in the user's code of a captured `Traceback`.
        unknown: the location of operations that do not come from the user's code.
    """

    __slots__ = ("_cache", "name", "of_traceback", "unknown")

    def __init__(self, context: Context) -> None:
        self._cache = extension.TracebackToLocationCache(
            code_to_filename=_file_of_user_code, frame_limit=_frame_limit(), context=context
        )
        self.name = ir.Location.name
        self.of_traceback = self._cache.get
        self.unknown = ir.Location.unknown(context)

    def of_equation(self, name: str, place: Any = None) -> Location:
        """The user's code at `place`, under the name that profiles will show.

        Args:
            name: such as ``jit(f)/sin``.
            place: a captured `Traceback`, a `SourceLocation`, or None.
        """
        if place is None:
            return self.name(name, self.unknown)
        traceback = place.traceback if type(place) is source.SourceLocation else place
        return self.name(name, self.of_traceback(traceback))


def entered(*things: Any) -> Restoring[None]:
    """A context manager for contexts, locations and insertion points of MLIR, in this order.

    One that is left on the stack that MLIR has for each thread would end the process by an abort
    when it exits.
    """
    return Restoring(_nothing, partial(_push, things), partial(_pop, things))


def _nothing() -> None:
    return None


def _push(things: Sequence[Any]) -> None:
    for thing in things:
        thing.__enter__()


def _pop(things: Sequence[Any], _: None) -> None:
    """Take off MLIR's stack what `_push` has put there, as far as it came."""
    for thing in reversed(things):
        try:
            current = type(thing).current
        except ValueError:
            continue  # there is none
        if current is thing:
            thing.__exit__(None, None, None)


def module_bytecode(module: Module) -> bytes:
    """The module as MLIR bytecode with locations: the form passed to the compiler."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def stripped_bytecode(module: Module) -> bytes:
    """The module as bytecode without locations, so that these do not affect cache keys."""
    # Otherwise the copy joins the program around this one, where one is being lowered.
    copy = module.operation.clone(ip=False)
    pipeline = "builtin.module(strip-debuginfo)"
    passmanager.PassManager.parse(pipeline, context=module.context).run(copy)
    buffer = io.BytesIO()
    copy.write_bytecode(buffer)
    return buffer.getvalue()


def operation_names(module: Module) -> frozenset[str]:
    """The names of the operations in a module, such as ``"stablehlo.add"``."""
    names: set[str] = set()
    for operation, _ in _operations_and_values(module):
        names.add(operation.name)
    return frozenset(names)


def array_shapes(module: Module) -> frozenset[tuple[int, ...]]:
    """The shapes of a module's arrays; arrays of any size do not count."""
    types = {value.type for _, values in _operations_and_values(module) for value in values}
    arrays = [kind for kind in types if isinstance(kind, ir.RankedTensorType)]
    return frozenset(tuple(kind.shape) for kind in arrays if kind.has_static_shape)


def _operations_and_values(module: Module) -> Iterator[tuple[Any, Sequence[Any]]]:
    """All operations, with their results and the arguments of their blocks."""
    # MLIR's own walk makes a RuntimeError of what a signal handler raises in its callback.
    pending = [module.operation]
    while pending:
        operation = pending.pop()
        blocks = [block for region in operation.regions for block in region]
        yield operation, [*operation.results, *(v for block in blocks for v in block.arguments)]
        pending += [inner.operation for block in blocks for inner in block]


#: Contexts that nobody uses, in which the compiler has loaded its dialects, and how often they were
#: used.
_spare: Final[list[tuple[Context, int]]] = []
_MOST_SPARE: Final = 2
#: What a context has seen stays in memory, so it is used so often, and not for larger programs.
_MOST_USES: Final = 256
_SMALL: Final = 1 << 16


@contextmanager
def parsed_alone(bytecode: bytes) -> Iterator[Module | bytes]:
    """A scope with a module from bytecode, in a context that no other thread uses meanwhile.

    jaxlib would make a context for the bytecode, and load all dialects: 2 ms of the 10 that the
    smallest program takes to compile. The bytecode itself is left to it if it cannot be read here.
    """
    try:
        context, uses = _spare.pop()
    except IndexError:
        context, uses = make_context(), 0
        for load in _rare_dialects.values():
            load(context)
    try:
        module = ir.Module.parse(bytecode, context)
    except ir.MLIRError:
        yield bytecode
        return
    yield module
    if uses < _MOST_USES and len(bytecode) < _SMALL and len(_spare) < _MOST_SPARE:
        _spare.append((context, uses + 1))


def module_text(module: Module, *, debug_info: bool = False) -> str:
    """The module in MLIR's textual form.

    Args:
        module: the module.
        debug_info: whether to write the locations as well.
    """
    text: str = module.operation.get_asm(enable_debug_info=debug_info)
    return text
