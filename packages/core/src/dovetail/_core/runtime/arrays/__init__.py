"""Arrays and their buffers, transfers, donation, DLPack, tokens.

Imports `processes` and `devices`.
"""
