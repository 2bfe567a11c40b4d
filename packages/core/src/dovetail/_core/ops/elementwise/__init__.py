"""Operators that compute each element of the result from the elements at its position.

Imports nothing from the other folders of operators; all of them may import it.
"""
