"""What exporters and core exchange: descriptions, programs to export, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail._core.base.records import record

if TYPE_CHECKING:
    from dovetail._core.ir.jaxpr import ClosedJaxpr


@record
class ExporterInfo:
    """An exporter's description of itself, read before it exports anything.

    Attributes:
        format: the format's name; the same as the entry point's.
        api: the `PLUGIN_API` that the exporter was written for; write the numbers.
        description: one line for `python -m dovetail doctor`.
        suffix: the usual end of a file's name, such as ``".onnx"``.
        options: the names of the options that `dovetail.exporters.export` passes on, each with one
            line that says what it does. Any other name is refused before the exporter is called.
    """

    format: str
    api: tuple[int, int]
    description: str = ""
    suffix: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@record
class ExportRequest:
    """One program on its way to an exporter.

    Attributes:
        name: the name of the function.
        jaxpr: its program, without what no result needs. The parameters are the flat leaves of the
            arguments, all of them, used or not.
        in_tree: the structure of the tuple of arguments.
        out_tree: the structure of the result.
        input_names: a name such as ``params['w']`` for each parameter of the jaxpr.
        output_names: a name such as ``result[0]`` for each result of the jaxpr.
        options: what the user passed to `dovetail.exporters.export`.
        trace_again: returns the request for other shapes of the flat arguments, by tracing the
            function once more; for formats in which a program has sizes that are not known yet.
    """

    name: str
    jaxpr: ClosedJaxpr
    in_tree: Any
    out_tree: Any
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    options: Mapping[str, Any]
    trace_again: Callable[[Sequence[tuple[int, ...]]], ExportRequest]


@record
class ExportedProgram:
    """A program in another format. Exporters return it, or a class derived from it.

    Attributes:
        format: the format's name.
        data: the program.
        input_names: names of its inputs, in the order of the flat leaves of the arguments.
        output_names: names of its outputs, in the order of the flat leaves of the result.

    Example:
        >>> program = ExportedProgram("text", b"an example", ("x",), ("result",))
        >>> bytes(program)
        b'an example'
    """

    format: str
    data: bytes = field(repr=False)
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __bytes__(self) -> bytes:
        """The program."""
        return self.data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a file.

        Args:
            path: the file; one that is there is replaced.
        """
        Path(path).write_bytes(self.data)
