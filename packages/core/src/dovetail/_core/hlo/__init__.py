"""A typed builder of StableHLO on jaxlib's MLIR bindings, independent of primitives.

Imports `base` and `ir`.
"""
