"""Arrays and their buffers, transfers, donation, DLPack, tokens.

Imports `devices`.
"""
