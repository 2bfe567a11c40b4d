"""Functions of tensors under PyTorch's names, on dovetail: tensors as in `torch`, `functional`."""

from __future__ import annotations

from dovetail_torchlike import functional as functional
from dovetail_torchlike.functional import grad as grad
from dovetail_torchlike.functional import grad_and_value as grad_and_value
from dovetail_torchlike.functional import vmap as vmap
from dovetail_torchlike.tensors import *  # noqa: F403 (all names without an underscore)
