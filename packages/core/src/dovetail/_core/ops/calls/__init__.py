"""Calls of staged functions, and what orders the parts of a program: barriers and tokens.

Imports nothing from the other folders of operators.
"""
