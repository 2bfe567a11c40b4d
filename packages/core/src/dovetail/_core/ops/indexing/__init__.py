"""Reading and updating slices at positions known at run time, and sorting, which permutes them.

Imports `elementwise` and `shape`.
"""
