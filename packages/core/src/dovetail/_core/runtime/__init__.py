"""Devices, arrays, programs and calls, a folder for each, in this order.

Imports the layers up to `lower`.
"""
