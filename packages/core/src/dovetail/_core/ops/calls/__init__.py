"""Calls of staged functions, and barriers and tokens, which order the parts of a program.

Imports nothing from the other folders of operators.
"""
