"""The model of a program: names, declarations, and what becomes of sizes that may vary."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dovetail.extend import ExportedProgram, ExportRequest
from dovetail_onnx.conversion import Conversion
from dovetail_onnx.converters import CONVERTERS
from dovetail_onnx.errors import ExportError, Refusal
from dovetail_onnx.graph import Graph, Value, info, needed, read_by
from dovetail_onnx.sizes import Drawing, dynamic_sizes, probes, with_dynamic_sizes
from dovetail_onnx.types import numeric, onnx_type

__all__ = ["OnnxProgram", "exported"]

_DEFAULT_OPSET: Final = 21
_OLDEST_OPSET: Final = 18
_LIMIT: Final = 2**31 - 2**16


@dataclass(frozen=True)
class OnnxProgram(ExportedProgram):
    """A program as an ONNX model.

    Attributes:
        model: the model, as the package onnx represents it.
    """

    model: onnx.ModelProto = field(repr=False)


def exported(request: ExportRequest) -> OnnxProgram:
    """The program as a model.

    Args:
        request: the program.

    Raises:
        ExportError: ONNX cannot express it.
        TypeError: an option has a value of the wrong type.
        ValueError: an option has a wrong value.
    """
    opset = _opset(request.options.get("opset", _DEFAULT_OPSET))
    inputs = _names(request, "input_names", request.input_names)
    outputs = _names(request, "output_names", request.output_names, inputs)
    if not outputs:
        raise ExportError(
            f"{request.name} returns no array, and an ONNX model has at least one output"
        )
    if twice := sorted(set(inputs) & set(outputs)):
        raise ValueError(f"an input and an output have one name: {', '.join(twice)}")
    dynamic = dynamic_sizes(request, inputs)
    if dynamic:
        probed = {
            sizes: _drawn(again, opset, inputs, outputs)
            for sizes, again in probes(request, dynamic)
        }
        drawing = with_dynamic_sizes(request.name, dynamic, probed)
    else:
        drawing = _drawn(request, opset, inputs, outputs)
    model = _model(request, opset, *drawing)
    onnx.checker.check_model(model)
    return OnnxProgram("onnx", model.SerializeToString(), inputs, outputs, model)


def _drawn(
    request: ExportRequest, opset: int, inputs: Sequence[str], outputs: Sequence[str]
) -> Drawing:
    """The graph of a program, and its constants.

    Args:
        request: the program.
        opset: the version of the operators.
        inputs: names of the inputs.
        outputs: names of the outputs.

    Raises:
        ExportError: ONNX cannot express it.
    """
    graph = Graph(opset, {*inputs, *outputs})
    avals = request.jaxpr.in_avals
    for name, aval in zip(request.input_names, avals, strict=True):
        try:
            onnx_type(numeric(aval).dtype)
        except Refusal as refusal:
            raise ExportError(
                f"{request.name} cannot be written as an ONNX model: its argument {name}: {refusal}"
            ) from None
    types = map(numeric, avals)
    values = [Value(name, a.dtype, a.shape) for name, a in zip(inputs, types, strict=True)]
    conversion = Conversion(graph, CONVERTERS)
    results = conversion.convert(request.jaxpr, values)
    conversion.check(request.name)
    named = []
    for value, name in zip(results, outputs, strict=True):
        graph.block.append(helper.make_node("Identity", [value.name], [name]))
        named.append(Value(name, value.dtype, value.shape))
    drawn = helper.make_graph(
        needed(graph.block, outputs),
        re.sub(r"\W", "_", request.name) or "program",
        list(map(info, values)),
        list(map(info, named)),
    )
    return drawn, graph.initializers


def _model(
    request: ExportRequest,
    opset: int,
    graph: onnx.GraphProto,
    constants: Mapping[str, np.ndarray[Any, Any]],
) -> onnx.ModelProto:
    """The model of a graph, with those constants that it uses."""
    used = {name for node in graph.node for name in read_by(node)}
    kept = {name: array for name, array in constants.items() if name in used}
    size = sum(array.nbytes for array in kept.values())
    if size > _LIMIT:
        raise ExportError(
            f"{request.name} has constants of {size / 2**30:.1f} GiB, and an ONNX model holds 2 "
            "GiB: pass parameters as arguments, and they become inputs of the model"
        )
    graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in kept.items())
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="dovetail",
        producer_version=version("dovetail-onnx"),
    )


# ------------------------------------------------------------------------------------- options


def _opset(opset: Any) -> int:
    newest = onnx.defs.onnx_opset_version()
    if isinstance(opset, bool) or not isinstance(opset, (int, np.integer)):
        raise TypeError(f"opset must be an integer, got {opset!r:.80}")
    if not _OLDEST_OPSET <= opset <= newest:
        raise ValueError(
            f"opset={opset}: from {_OLDEST_OPSET} to {newest}, the newest that the installed onnx "
            "knows"
        )
    return int(opset)


def _names(
    request: ExportRequest, option: str, defaults: Sequence[str], taken: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of inputs or outputs: the user's, or such as ``params.w`` for ``params['w']``.

    Args:
        request: the program.
        option: the option with the user's names.
        defaults: the names as core gives them.
        taken: other names, from which these differ unless they are the user's.
    """
    given = request.options.get(option)
    if given is None:
        short = [re.sub(r"\['?(.*?)'?\]", r".\1", name) for name in defaults]
        return _distinct([*taken, *short])[len(taken) :]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"{option} must be a list of names, got {given!r:.80}")
    if not all(isinstance(name, str) and name for name in given):
        raise TypeError(f"{option} must be names, got {list(given)!r:.200}")
    if len(given) != len(defaults):
        raise ValueError(
            f"{option} has {len(given)} names for {len(defaults)}: {', '.join(defaults)}"
        )
    if len(set(given)) != len(given):
        raise ValueError(f"{option} has a name twice: {', '.join(given)}")
    return tuple(given)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names, with a number behind those that another one is equal to."""
    made: dict[str, None] = {}
    for name in names:
        candidates = (f"{name}.{number}" if number else name for number in itertools.count())
        made[next(candidate for candidate in candidates if candidate not in made)] = None
    return tuple(made)
