"""The hooks of the exporter. Importing it loads neither onnx nor the converters."""

from __future__ import annotations

from dovetail.extend import ExportedProgram, ExporterInfo, ExportRequest, hookimpl

__all__ = ["dovetail_export", "dovetail_exporter_info"]


@hookimpl
def dovetail_exporter_info() -> ExporterInfo:
    """The exporter's description."""
    return ExporterInfo(
        format="onnx",
        api=(1, 3),
        description="ONNX models",
        suffix=".onnx",
        options={
            "opset": "the version of ONNX's operators, from 18 (by default 21)",
            "dynamic_axes": "names of sizes that may vary: by argument, the name by dimension",
            "input_names": "names of the model's inputs, one for each leaf of the arguments",
            "output_names": "names of the model's outputs, one for each leaf of the result",
        },
    )


@hookimpl
def dovetail_export(request: ExportRequest) -> ExportedProgram:
    """The program as an ONNX model."""
    from dovetail_onnx.model import exported  # deferred: loads onnx and all converters

    return exported(request)
