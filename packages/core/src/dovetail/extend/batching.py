"""What `vmap` has to know of classes of trees: which axes of their leaves can be mapped over.

A class of nodes whose leaves have dimensions of a batch in front is a `BatchedNode`:

    from dovetail.extend.batching import register_batched_node

    register_batched_node(Samples)

`vmap` then spreads the leaves of its nodes to their full sizes, and lets them refuse axes.
"""

from dovetail._core.api.vectorization import BatchedNode as BatchedNode
from dovetail._core.api.vectorization import register_batched_node as register_batched_node

__all__ = [
    "BatchedNode",
    "register_batched_node",
]
