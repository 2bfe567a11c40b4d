"""Calling functions: `jit`, eager evaluation, the C++ path, reasons for cache misses.

Imports `devices`, `arrays` and `programs`.
"""
