"""The intermediate language: avals, jaxprs, their checker, printer and walkers.

Imports `base`.
"""
