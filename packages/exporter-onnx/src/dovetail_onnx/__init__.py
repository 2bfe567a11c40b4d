"""The exporter of dovetail for ONNX: `plugin` has the hooks, `converters` a rule per primitive."""
