"""Special functions: error, gamma, beta, zeta and Bessel functions, and polynomials.

Imports `elementwise` and `shape`.
"""
