"""The transformations: jvp, linearize, transpose, batch, stage, taylor.

Imports the layers up to `basis`.
"""
