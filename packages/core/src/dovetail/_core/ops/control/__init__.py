"""Branches, loops, and solvers of equations.

Imports `elementwise`, `shape`, `random`, `reduction` and `checks`.
"""
