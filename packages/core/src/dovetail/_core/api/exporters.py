"""Writing functions in the formats of other programs, by exporters that are plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dovetail._core.base import pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import (
    ConcretizationTypeError,
    NonArrayArgumentError,
    ShapeError,
    close_matches,
)
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.walk import dce
from dovetail._core.plugins.exports import ExportedProgram, ExporterInfo, ExportRequest
from dovetail._core.plugins.manager import manager
from dovetail._core.trace.mutable_references import AbstractRef
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.flattening import (
    FlatFunction,
    abstract,
    check_array_leaves,
    check_callable,
    debug_info,
)
from dovetail._core.transform.stage import stage

__all__ = ["describe", "export", "formats"]


def export(format: str, fun: Callable[..., Any], *args: Any, **options: Any) -> ExportedProgram:
    """Write a function in another format, by the exporter that is installed for it.

    Args:
        format: the format, such as ``"onnx"``; `formats` lists those that are installed.
        fun: function of arrays and pytrees of them. What it captures becomes part of the program.
        *args: examples of its arguments: arrays, scalars, or anything with a shape and a dtype,
            such as `dovetail.ShapeDtypeStruct`.
        **options: options of the exporter, which `describe` lists.

    Returns:
        The program: ``bytes(program)`` or ``program.data``, and ``program.save(path)``.

    Raises:
        ExporterUnavailableError: there is no exporter for the format, or it is broken.
        TypeError: `fun` is not a function, the exporter has no such option, or an argument is not
            an array.
        NotImplementedError: the format cannot express the program; the error of the exporter says
            what, and at which lines.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail import exporters
        >>> if "onnx" in exporters.formats():
        ...     x = dt.ShapeDtypeStruct((2, 3), "float32")
        ...     program = exporters.export("onnx", lambda x: jnp.tanh(x) * 2, x)
        ...     assert bytes(program) == program.data
    """
    exporter = manager().require_exporter(format)
    known = exporter.info.options
    for name in options:
        if name not in known:
            near = close_matches(name, known)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
            raise TypeError(f"the exporter of {format!r} has no option {name!r}; {hint}")
    return manager().export(exporter, _request(fun, args, options))


def formats() -> tuple[str, ...]:
    """The formats for which an exporter is installed, sorted; none of them is imported.

    Example:
        >>> from dovetail import exporters
        >>> isinstance(exporters.formats(), tuple)
        True
    """
    return manager().exporter_names()


def describe(format: str) -> ExporterInfo:
    """What the exporter of a format says of itself: description, usual suffix, options.

    Args:
        format: the format.

    Raises:
        ExporterUnavailableError: there is no exporter for the format, or it is broken.

    Example:
        >>> from dovetail import exporters
        >>> if "onnx" in exporters.formats():
        ...     assert exporters.describe("onnx").suffix == ".onnx"
    """
    return manager().require_exporter(format).info


def _request(
    fun: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> ExportRequest:
    check_callable(fun, "export")
    leaves, tree = pytree.flatten(args)
    info = debug_info("export", fun, args)
    names = info.argument_names or ()
    check_array_leaves(leaves, lambda: names, f"export of {info.function}", shapes=True)
    avals = [abstract(x) for x in leaves]
    for name, aval in zip(names, avals, strict=True):
        if type(aval) is AbstractRef:
            raise NonArrayArgumentError(
                f"Argument {name} of export of {info.function} describes a mutable reference: "
                "describe its value, and return what is written to it"
            )

    def traced(avals: Sequence[Any]) -> ExportRequest:
        flat = FlatFunction(fun, tree)
        closed = stage(flat, avals, info)
        for constant in closed.consts:
            if isinstance(constant, Tracer):
                raise ConcretizationTypeError(
                    constant, f"{info.function} captures it, and is exported with its value"
                )
        jaxpr, _ = dce(closed.jaxpr, instantiate=True)
        marks = flat.out_tree.unflatten(range(flat.out_tree.num_leaves))
        paths = [pytree.keystr(path) for path, _ in pytree.flatten_with_path(marks)[0]]
        return ExportRequest(
            info.function,
            ClosedJaxpr(jaxpr, closed.consts),
            tree,
            flat.out_tree,
            names,
            tuple([f"result{path}" for path in paths]),
            dict(options),
            trace_again,
        )

    def trace_again(shapes: Sequence[tuple[int, ...]]) -> ExportRequest:
        if len(shapes) != len(avals):
            raise ShapeError(
                f"{counted(len(shapes), 'shape')} for {counted(len(avals), 'argument')} of "
                f"{info.function}"
            )
        changed = [
            aval.update(shape=tuple(shape)) for aval, shape in zip(avals, shapes, strict=True)
        ]
        return traced(changed)

    return traced(avals)
