"""Profiles of what runs: recorded, annotated, written for viewers; of memory on devices.

Imports `devices`.
"""
