"""Calling functions: `jit`, eager evaluation, the C++ path, reasons for cache misses.

Imports `processes`, `devices`, `arrays` and `programs`.
"""
