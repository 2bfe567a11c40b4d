"""StableHLO, typed, on jaxlib's MLIR bindings. It knows no primitive.

Imports `base` and `ir`.
"""
