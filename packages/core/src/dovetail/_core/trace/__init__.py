"""What a primitive, a trace and a tracer are, and which trace is the current one.

Imports `base`, `ir` and `plugins`.
"""
