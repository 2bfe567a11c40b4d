"""From a jaxpr to a StableHLO module.

Imports the layers up to `ops`.
"""
