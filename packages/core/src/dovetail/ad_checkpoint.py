"""What a function keeps for its derivative: names of values, policies, and ways to look."""

from dovetail._core.api.rematerialization import checkpoint as checkpoint
from dovetail._core.api.rematerialization import print_saved_residuals as print_saved_residuals
from dovetail._core.api.rematerialization import saved_residuals as saved_residuals
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.checkpoint.naming import checkpoint_name as checkpoint_name
from dovetail._core.ops.checkpoint.naming import checkpoint_name as checkpoint_name_fwd
from dovetail._core.ops.checkpoint.naming import name_p as name_p
from dovetail._core.ops.checkpoint.policies import Offloadable as Offloadable
from dovetail._core.ops.checkpoint.policies import Recompute as Recompute
from dovetail._core.ops.checkpoint.policies import Saveable as Saveable
from dovetail._core.ops.checkpoint.policies import checkpoint_policies as checkpoint_policies

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "name_p",
    "print_saved_residuals",
    "saved_residuals",
]

_publish(globals())
