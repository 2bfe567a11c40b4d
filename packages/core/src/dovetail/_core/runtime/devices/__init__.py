"""Clients, devices, shardings and layouts, topologies, PJRT libraries.

Imports `processes`.
"""
