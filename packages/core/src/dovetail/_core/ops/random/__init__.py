"""Bit generators, and typed random keys with the implementations behind them.

Imports `elementwise`, `shape` and `special`.
"""
