"""dovetail: composable function transformations over arrays, compiled by pluggable backends.

Every public name is loaded when it is first used; `import dovetail` itself loads nothing.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # the name is enough for type checkers; importing typing costs 5 ms
if TYPE_CHECKING:
    from dovetail import ad as ad
    from dovetail import ad_checkpoint as ad_checkpoint
    from dovetail import custom_batching as custom_batching
    from dovetail import custom_derivatives as custom_derivatives
    from dovetail import debug as debug
    from dovetail import dlpack as dlpack
    from dovetail import dtypes as dtypes
    from dovetail import errors as errors
    from dovetail import experimental as experimental
    from dovetail import extend as extend
    from dovetail import flatten_util as flatten_util
    from dovetail import lax as lax
    from dovetail import nn as nn
    from dovetail import numpy as numpy
    from dovetail import random as random
    from dovetail import ref as ref
    from dovetail import sharding as sharding
    from dovetail import stages as stages
    from dovetail import tree as tree
    from dovetail import tree_util as tree_util
    from dovetail._core.api.backward_passes import fwd_and_bwd as fwd_and_bwd
    from dovetail._core.api.backward_passes import vjp as vjp
    from dovetail._core.api.derivatives import grad as grad
    from dovetail._core.api.derivatives import jvp as jvp
    from dovetail._core.api.derivatives import linear_transpose as linear_transpose
    from dovetail._core.api.derivatives import linearize as linearize
    from dovetail._core.api.derivatives import value_and_grad as value_and_grad
    from dovetail._core.api.environment import print_environment_info as print_environment_info
    from dovetail._core.api.inspection import ShapeDtypeStruct as ShapeDtypeStruct
    from dovetail._core.api.inspection import ensure_compile_time_eval as ensure_compile_time_eval
    from dovetail._core.api.inspection import eval_shape as eval_shape
    from dovetail._core.api.inspection import make_jaxpr as make_jaxpr
    from dovetail._core.api.inspection import typeof as typeof
    from dovetail._core.api.jacobians import hessian as hessian
    from dovetail._core.api.jacobians import jacfwd as jacfwd
    from dovetail._core.api.jacobians import jacrev as jacobian
    from dovetail._core.api.jacobians import jacrev as jacrev
    from dovetail._core.api.jit import clear_caches as clear_caches
    from dovetail._core.api.jit import jit as jit
    from dovetail._core.api.mutable_references import empty_ref as empty_ref
    from dovetail._core.api.mutable_references import free_ref as free_ref
    from dovetail._core.api.mutable_references import freeze as freeze
    from dovetail._core.api.mutable_references import new_ref as new_ref
    from dovetail._core.api.named_scopes import named_call as named_call
    from dovetail._core.api.named_scopes import named_scope as named_scope
    from dovetail._core.api.rematerialization import checkpoint as checkpoint
    from dovetail._core.api.rematerialization import checkpoint as remat
    from dovetail._core.api.vectorization import vmap as vmap
    from dovetail._core.base.config import check_tracer_leaks as check_tracer_leaks
    from dovetail._core.base.config import check_tracer_leaks as checking_leaks
    from dovetail._core.base.config import config as config
    from dovetail._core.base.config import debug_checks as debug_checks
    from dovetail._core.base.config import debug_infs as debug_infs
    from dovetail._core.base.config import debug_nans as debug_nans
    from dovetail._core.base.config import default_device as default_device
    from dovetail._core.base.config import default_matmul_precision as default_matmul_precision
    from dovetail._core.base.config import default_prng_impl as default_prng_impl
    from dovetail._core.base.config import disable_jit as disable_jit
    from dovetail._core.base.config import enable_checks as enable_checks
    from dovetail._core.base.config import enable_x64 as enable_x64
    from dovetail._core.base.config import explain_cache_misses as explain_cache_misses
    from dovetail._core.base.config import index_mode as index_mode
    from dovetail._core.base.config import legacy_prng_key as legacy_prng_key
    from dovetail._core.base.config import log_compiles as log_compiles
    from dovetail._core.base.config import no_tracing as no_tracing
    from dovetail._core.base.config import numpy_dtype_promotion as numpy_dtype_promotion
    from dovetail._core.base.config import numpy_rank_promotion as numpy_rank_promotion
    from dovetail._core.base.config import optimization_level as optimization_level
    from dovetail._core.base.config import threefry_partitionable as threefry_partitionable
    from dovetail._core.base.dtypes import float0 as float0
    from dovetail._core.ops.callbacks.values import pure_callback as pure_callback
    from dovetail._core.ops.checkpoint.policies import checkpoint_policies as checkpoint_policies
    from dovetail._core.ops.custom.custom_gradient import closure_convert as closure_convert
    from dovetail._core.ops.custom.custom_gradient import custom_gradient as custom_gradient
    from dovetail._core.ops.custom.custom_jvp import custom_jvp as custom_jvp
    from dovetail._core.ops.custom.custom_vjp import custom_vjp as custom_vjp
    from dovetail._core.runtime.arrays.array import Array as Array
    from dovetail._core.runtime.arrays.array import Shard as Shard
    from dovetail._core.runtime.arrays.array import live_arrays as live_arrays
    from dovetail._core.runtime.arrays.transfer import block_until_ready as block_until_ready
    from dovetail._core.runtime.arrays.transfer import copy_to_host_async as copy_to_host_async
    from dovetail._core.runtime.arrays.transfer import device_get as device_get
    from dovetail._core.runtime.arrays.transfer import device_put as device_put
    from dovetail._core.runtime.devices.clients import default_backend as default_backend
    from dovetail._core.runtime.devices.clients import device_count as device_count
    from dovetail._core.runtime.devices.clients import devices as devices
    from dovetail._core.runtime.devices.clients import local_device_count as local_device_count
    from dovetail._core.runtime.devices.clients import local_devices as local_devices
    from dovetail._core.runtime.devices.clients import process_count as process_count
    from dovetail._core.runtime.devices.clients import process_index as process_index
    from dovetail._core.runtime.devices.clients import process_indices as process_indices
    from dovetail._core.runtime.programs.effects import effects_barrier as effects_barrier
    from dovetail._core.trace.mutable_references import Ref as Ref

__version__ = "0.1.0"

_NAMES = {
    "Array": "dovetail._core.runtime.arrays.array",
    "Ref": "dovetail._core.trace.mutable_references",
    "ShapeDtypeStruct": "dovetail._core.api.inspection",
    "Shard": "dovetail._core.runtime.arrays.array",
    "block_until_ready": "dovetail._core.runtime.arrays.transfer",
    "check_tracer_leaks": "dovetail._core.base.config",
    "checking_leaks": "dovetail._core.base.config:check_tracer_leaks",
    "checkpoint": "dovetail._core.api.rematerialization",
    "checkpoint_policies": "dovetail._core.ops.checkpoint.policies",
    "clear_caches": "dovetail._core.api.jit",
    "closure_convert": "dovetail._core.ops.custom.custom_gradient",
    "config": "dovetail._core.base.config",
    "copy_to_host_async": "dovetail._core.runtime.arrays.transfer",
    "custom_gradient": "dovetail._core.ops.custom.custom_gradient",
    "custom_jvp": "dovetail._core.ops.custom.custom_jvp",
    "custom_vjp": "dovetail._core.ops.custom.custom_vjp",
    "debug_checks": "dovetail._core.base.config",
    "debug_infs": "dovetail._core.base.config",
    "debug_nans": "dovetail._core.base.config",
    "default_backend": "dovetail._core.runtime.devices.clients",
    "default_device": "dovetail._core.base.config",
    "default_matmul_precision": "dovetail._core.base.config",
    "default_prng_impl": "dovetail._core.base.config",
    "device_count": "dovetail._core.runtime.devices.clients",
    "device_get": "dovetail._core.runtime.arrays.transfer",
    "device_put": "dovetail._core.runtime.arrays.transfer",
    "devices": "dovetail._core.runtime.devices.clients",
    "disable_jit": "dovetail._core.base.config",
    "effects_barrier": "dovetail._core.runtime.programs.effects",
    "empty_ref": "dovetail._core.api.mutable_references",
    "enable_checks": "dovetail._core.base.config",
    "enable_x64": "dovetail._core.base.config",
    "ensure_compile_time_eval": "dovetail._core.api.inspection",
    "eval_shape": "dovetail._core.api.inspection",
    "explain_cache_misses": "dovetail._core.base.config",
    "float0": "dovetail._core.base.dtypes",
    "free_ref": "dovetail._core.api.mutable_references",
    "freeze": "dovetail._core.api.mutable_references",
    "fwd_and_bwd": "dovetail._core.api.backward_passes",
    "grad": "dovetail._core.api.derivatives",
    "hessian": "dovetail._core.api.jacobians",
    "index_mode": "dovetail._core.base.config",
    "jacfwd": "dovetail._core.api.jacobians",
    "jacobian": "dovetail._core.api.jacobians:jacrev",
    "jacrev": "dovetail._core.api.jacobians",
    "jit": "dovetail._core.api.jit",
    "jvp": "dovetail._core.api.derivatives",
    "legacy_prng_key": "dovetail._core.base.config",
    "linear_transpose": "dovetail._core.api.derivatives",
    "linearize": "dovetail._core.api.derivatives",
    "live_arrays": "dovetail._core.runtime.arrays.array",
    "local_device_count": "dovetail._core.runtime.devices.clients",
    "local_devices": "dovetail._core.runtime.devices.clients",
    "log_compiles": "dovetail._core.base.config",
    "make_jaxpr": "dovetail._core.api.inspection",
    "named_call": "dovetail._core.api.named_scopes",
    "named_scope": "dovetail._core.api.named_scopes",
    "new_ref": "dovetail._core.api.mutable_references",
    "no_tracing": "dovetail._core.base.config",
    "numpy_dtype_promotion": "dovetail._core.base.config",
    "numpy_rank_promotion": "dovetail._core.base.config",
    "optimization_level": "dovetail._core.base.config",
    "print_environment_info": "dovetail._core.api.environment",
    "process_count": "dovetail._core.runtime.devices.clients",
    "process_index": "dovetail._core.runtime.devices.clients",
    "process_indices": "dovetail._core.runtime.devices.clients",
    "pure_callback": "dovetail._core.ops.callbacks.values",
    "remat": "dovetail._core.api.rematerialization:checkpoint",
    "threefry_partitionable": "dovetail._core.base.config",
    "typeof": "dovetail._core.api.inspection",
    "value_and_grad": "dovetail._core.api.derivatives",
    "vjp": "dovetail._core.api.backward_passes",
    "vmap": "dovetail._core.api.vectorization",
}
"""The module that a public name is in; after a colon, the name that it has there."""

_MODULES = (
    "ad",
    "ad_checkpoint",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "dlpack",
    "dtypes",
    "errors",
    "experimental",
    "extend",
    "flatten_util",
    "lax",
    "ref",
    "sharding",
    "stages",
    "tree",
    "tree_util",
)
_NUMPY_API = ("nn", "numpy", "random")

__all__ = [
    "Array",
    "Ref",
    "ShapeDtypeStruct",
    "Shard",
    "__version__",
    "ad",
    "ad_checkpoint",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_checks",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "empty_ref",
    "enable_checks",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain_cache_misses",
    "extend",
    "flatten_util",
    "float0",
    "free_ref",
    "freeze",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "index_mode",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "legacy_prng_key",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_jaxpr",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "optimization_level",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "pure_callback",
    "random",
    "ref",
    "remat",
    "sharding",
    "stages",
    "threefry_partitionable",
    "tree",
    "tree_util",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]


def _joined_path(home: str) -> list[str]:
    """Where to look for submodules: this folder, and those that other distributions of ours bring.

    In wheels they are one folder. In editable installs they are several, and only the one that
    holds `numpy/__init__.py` (dovetail-numpy) and the one that holds `testing/__init__.py`
    (dovetail-testing) join: any other folder named dovetail on `sys.path` stays out. What
    `pkgutil.extend_path` does, without the 10 ms that importing pkgutil takes.
    """
    folders = [home]
    missing = [
        mark
        for mark in ("numpy", "testing")
        if not os.path.isfile(os.path.join(home, mark, "__init__.py"))
    ]
    for entry in sys.path:
        if not isinstance(entry, str):
            continue  # Python passes over it, too
        folder = os.path.join(os.path.abspath(entry), "dovetail")
        there = [m for m in missing if os.path.isfile(os.path.join(folder, m, "__init__.py"))]
        if there:
            folders.append(folder)
            missing = [mark for mark in missing if mark not in there]
    return folders


__path__ = _joined_path(__path__[0])


def __getattr__(name: str) -> object:
    value: object
    if name in _NAMES:
        module, _, attribute = _NAMES[name].partition(":")
        value = getattr(import_module(module), attribute or name)
        if name == "Array":  # its methods are otherwise filled in by the first use of one
            import_module("dovetail._core.trace.tracer").load_array_methods()
    elif name in _MODULES:
        value = import_module(f"dovetail.{name}")
    elif name in _NUMPY_API:
        try:
            value = import_module(f"dovetail.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"dovetail.{name}":
                raise
            raise AttributeError(
                f"dovetail.{name} is part of the distribution dovetail-numpy, which is not "
                "installed: pip install dovetail-numpy"
            ) from None
    else:
        raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
