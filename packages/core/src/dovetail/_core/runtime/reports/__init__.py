"""What a compiled program will need: memory, communication, operations, and time by a model.

Reads the optimised program's text. Imports `devices`, `arrays` and `programs`.
"""
