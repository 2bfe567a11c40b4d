"""Clients, devices, shardings and layouts, topologies, PJRT libraries.

Imports nothing from the other folders of the runtime.
"""
