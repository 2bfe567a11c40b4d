"""Python functions called from programs: results, printing, checks, buffers, breakpoints.

Imports `checks`, `control` and `checkpoint`.
"""
