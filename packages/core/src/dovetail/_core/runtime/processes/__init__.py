"""Several processes that compute together: finding each other, meeting, and noticing a death.

Imports nothing from the other folders of the runtime.
"""
