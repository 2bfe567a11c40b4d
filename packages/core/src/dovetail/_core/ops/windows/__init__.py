"""Operators with windows that slide over an array: convolutions, reductions, selections.

Imports `elementwise`, `shape`, `indexing`, `reduction` and `contraction`.
"""
