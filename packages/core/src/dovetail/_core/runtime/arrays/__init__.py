"""What is in memory: arrays and the buffers below them, transfers, donation, DLPack, tokens.

Imports `devices`.
"""
