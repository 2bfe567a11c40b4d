"""The intermediate language: avals and jaxprs, with a checker, a printer and walkers.

Imports `base`.
"""
