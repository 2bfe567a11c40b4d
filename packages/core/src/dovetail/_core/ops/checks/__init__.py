"""`checkify`: a trace that carries one error beside the values, and the errors it carries.

Imports `elementwise`, `indexing` and `reduction`.
"""
