"""Branches, loops, and solvers of equations.

Imports `elementwise`, `shape`, `reduction` and `checks`.
"""
