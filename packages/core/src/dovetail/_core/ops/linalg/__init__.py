"""Linear algebra on stacks of matrices: factorisations, eigenvalues, solvers.

Imports `elementwise`, `shape`, `indexing`, `reduction` and `contraction`.
"""
