"""Functions in the formats of other programs, written by plug-ins.

`export` takes a function and examples of its arguments, as `dovetail.jit` would trace it. A format
is there if a distribution with an entry point in the group `dovetail.exporters` is installed:
dovetail-onnx brings ``"onnx"``, and docs/write-an-exporter.md says how to write another.
"""

from dovetail._core.api.exporters import describe as describe
from dovetail._core.api.exporters import export as export
from dovetail._core.api.exporters import formats as formats
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.plugins.exports import ExportedProgram as ExportedProgram
from dovetail._core.plugins.exports import ExporterInfo as ExporterInfo

__all__ = ["ExportedProgram", "ExporterInfo", "describe", "export", "formats"]

_publish(globals())
