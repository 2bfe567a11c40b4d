"""Linear algebra: factorisations, solvers and products of matrices, by topic."""
