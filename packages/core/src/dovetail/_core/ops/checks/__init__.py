"""`checkify`: a trace that carries an error along with the values, and these errors.

Imports `elementwise`, `indexing` and `reduction`.
"""
