"""How functions are called: `jit`, eager evaluation, the C++ path, reasons of cache misses.

Imports `devices`, `arrays` and `programs`.
"""
