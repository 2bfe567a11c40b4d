"""Branches, loops, and functions that are solved for their argument.

Imports `elementwise`, `shape`, `reduction` and `checks`.
"""
