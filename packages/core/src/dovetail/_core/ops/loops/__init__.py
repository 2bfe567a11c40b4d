"""Loops as users write them: of known length, as long as a condition holds, with a bound.

Imports `elementwise`, `shape`, `reduction`, `checks`, `control`, `checkpoint` and `callbacks`.
"""
