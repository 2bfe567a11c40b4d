"""The names of `dovetail`: the one list of them, for type checkers and at run time."""

from dovetail import ad as ad
from dovetail import ad_checkpoint as ad_checkpoint
from dovetail import core as core
from dovetail import custom_batching as custom_batching
from dovetail import custom_derivatives as custom_derivatives
from dovetail import debug as debug
from dovetail import distributed as distributed
from dovetail import dlpack as dlpack
from dovetail import dtypes as dtypes
from dovetail import errors as errors
from dovetail import example_libraries as example_libraries
from dovetail import experimental as experimental
from dovetail import export as export
from dovetail import exporters as exporters
from dovetail import extend as extend
from dovetail import ffi as ffi
from dovetail import flatten_util as flatten_util
from dovetail import image as image
from dovetail import lax as lax
from dovetail import monitoring as monitoring
from dovetail import nn as nn
from dovetail import numpy as numpy
from dovetail import ops as ops
from dovetail import profiler as profiler
from dovetail import random as random
from dovetail import ref as ref
from dovetail import scipy as scipy
from dovetail import sharding as sharding
from dovetail import stages as stages
from dovetail import test_util as test_util
from dovetail import tree as tree
from dovetail import tree_util as tree_util
from dovetail import typing as typing
from dovetail._core.api.backward_passes import fwd_and_bwd as fwd_and_bwd
from dovetail._core.api.backward_passes import vjp as vjp
from dovetail._core.api.call_caches import explain as explain
from dovetail._core.api.derivatives import grad as grad
from dovetail._core.api.derivatives import jvp as jvp
from dovetail._core.api.derivatives import linear_transpose as linear_transpose
from dovetail._core.api.derivatives import linearize as linearize
from dovetail._core.api.derivatives import value_and_grad as value_and_grad
from dovetail._core.api.environment import print_environment_info as print_environment_info
from dovetail._core.api.event_logs import events as events
from dovetail._core.api.event_logs import no_recompiles as no_recompiles
from dovetail._core.api.inspection import ShapeDtypeStruct as ShapeDtypeStruct
from dovetail._core.api.inspection import ensure_compile_time_eval as ensure_compile_time_eval
from dovetail._core.api.inspection import eval_shape as eval_shape
from dovetail._core.api.inspection import make_jaxpr as make_jaxpr
from dovetail._core.api.inspection import typeof as typeof
from dovetail._core.api.jacobians import hessian as hessian
from dovetail._core.api.jacobians import jacfwd as jacfwd
from dovetail._core.api.jacobians import jacrev as jacrev
from dovetail._core.api.jit import Inline as Inline
from dovetail._core.api.jit import clear_caches as clear_caches
from dovetail._core.api.jit import jit as jit
from dovetail._core.api.linting.lint import lint as lint
from dovetail._core.api.mapping import shard_map as shard_map
from dovetail._core.api.mapping import smap as smap
from dovetail._core.api.meshes import get_mesh as get_mesh
from dovetail._core.api.meshes import make_mesh as make_mesh
from dovetail._core.api.meshes import set_mesh as set_mesh
from dovetail._core.api.meshes import use_abstract_mesh as use_abstract_mesh
from dovetail._core.api.mutable_references import empty_ref as empty_ref
from dovetail._core.api.mutable_references import free_ref as free_ref
from dovetail._core.api.mutable_references import freeze as freeze
from dovetail._core.api.mutable_references import new_ref as new_ref
from dovetail._core.api.named_scopes import named_call as named_call
from dovetail._core.api.named_scopes import named_scope as named_scope
from dovetail._core.api.pmap import pmap as pmap
from dovetail._core.api.profiling import profile as profile
from dovetail._core.api.rematerialization import checkpoint as checkpoint
from dovetail._core.api.showing import show as show
from dovetail._core.api.threads import get_num_threads as get_num_threads
from dovetail._core.api.threads import set_num_threads as set_num_threads
from dovetail._core.api.vectorization import vmap as vmap
from dovetail._core.base.config import allow_f16_reductions as allow_f16_reductions
from dovetail._core.base.config import (
    array_garbage_collection_guard as array_garbage_collection_guard,
)
from dovetail._core.base.config import auto_pcast as auto_pcast
from dovetail._core.base.config import check_tracer_leaks as check_tracer_leaks
from dovetail._core.base.config import config as config
from dovetail._core.base.config import cpu_kernels as cpu_kernels
from dovetail._core.base.config import debug_checks as debug_checks
from dovetail._core.base.config import debug_infs as debug_infs
from dovetail._core.base.config import debug_key_reuse as debug_key_reuse
from dovetail._core.base.config import debug_nans as debug_nans
from dovetail._core.base.config import default_device as default_device
from dovetail._core.base.config import default_matmul_precision as default_matmul_precision
from dovetail._core.base.config import default_prng_impl as default_prng_impl
from dovetail._core.base.config import direct_calls as direct_calls
from dovetail._core.base.config import disable_jit as disable_jit
from dovetail._core.base.config import enable_checks as enable_checks
from dovetail._core.base.config import enable_custom_prng as enable_custom_prng
from dovetail._core.base.config import enable_x64 as enable_x64
from dovetail._core.base.config import explain_cache_misses as explain_cache_misses
from dovetail._core.base.config import index_mode as index_mode
from dovetail._core.base.config import legacy_prng_key as legacy_prng_key
from dovetail._core.base.config import log_compiles as log_compiles
from dovetail._core.base.config import no_execution as no_execution
from dovetail._core.base.config import no_tracing as no_tracing
from dovetail._core.base.config import numpy_dtype_promotion as numpy_dtype_promotion
from dovetail._core.base.config import numpy_rank_promotion as numpy_rank_promotion
from dovetail._core.base.config import optimization_level as optimization_level
from dovetail._core.base.config import softmax_custom_jvp as softmax_custom_jvp
from dovetail._core.base.config import thread_guard as thread_guard
from dovetail._core.base.config import threefry_partitionable as threefry_partitionable
from dovetail._core.base.config import transfer_guard as transfer_guard
from dovetail._core.base.config import (
    transfer_guard_device_to_device as transfer_guard_device_to_device,
)
from dovetail._core.base.config import (
    transfer_guard_device_to_host as transfer_guard_device_to_host,
)
from dovetail._core.base.config import (
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from dovetail._core.base.dtypes import float0 as float0
from dovetail._core.base.option_kinds import CompilerEffortLevel as CompilerEffortLevel
from dovetail._core.base.typing import Device as Device
from dovetail._core.base.unavailable_options import (
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
)
from dovetail._core.base.unavailable_options import (
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
)
from dovetail._core.base.user_contexts import make_user_context as make_user_context
from dovetail._core.ir.index_slices import ds as ds
from dovetail._core.ir.partition_spec import PartitionSpec as _PartitionSpec
from dovetail._core.ops.callbacks.values import pure_callback as pure_callback
from dovetail._core.ops.calls.sharding_constraint import reshard as reshard
from dovetail._core.ops.checkpoint.policies import checkpoint_policies as checkpoint_policies
from dovetail._core.ops.custom.custom_gradient import closure_convert as closure_convert
from dovetail._core.ops.custom.custom_gradient import custom_gradient as custom_gradient
from dovetail._core.ops.custom.custom_jvp import custom_jvp as custom_jvp
from dovetail._core.ops.custom.custom_vjp import custom_vjp as custom_vjp
from dovetail._core.runtime.arrays.array import Array as Array
from dovetail._core.runtime.arrays.assembly import (
    make_array_from_callback as make_array_from_callback,
)
from dovetail._core.runtime.arrays.assembly import (
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from dovetail._core.runtime.arrays.assembly import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from dovetail._core.runtime.arrays.shards import Shard as Shard
from dovetail._core.runtime.arrays.transfer import block_until_ready as block_until_ready
from dovetail._core.runtime.arrays.transfer import copy_to_host_async as copy_to_host_async
from dovetail._core.runtime.arrays.transfer import device_get as device_get
from dovetail._core.runtime.arrays.transfer import device_put as device_put
from dovetail._core.runtime.arrays.transfer import live_arrays as live_arrays
from dovetail._core.runtime.devices.clients import default_backend as default_backend
from dovetail._core.runtime.devices.clients import device_count as device_count
from dovetail._core.runtime.devices.clients import devices as devices
from dovetail._core.runtime.devices.clients import host_count as host_count
from dovetail._core.runtime.devices.clients import host_id as host_id
from dovetail._core.runtime.devices.clients import host_ids as host_ids
from dovetail._core.runtime.devices.clients import local_device_count as local_device_count
from dovetail._core.runtime.devices.clients import local_devices as local_devices
from dovetail._core.runtime.devices.clients import process_count as process_count
from dovetail._core.runtime.devices.clients import process_index as process_index
from dovetail._core.runtime.devices.clients import process_indices as process_indices
from dovetail._core.runtime.devices.named_sharding import NamedSharding as NamedSharding
from dovetail._core.runtime.programs.effects import effects_barrier as effects_barrier
from dovetail._core.trace.current_mesh import get_abstract_mesh as get_abstract_mesh
from dovetail._core.trace.mutable_references import Ref as Ref
from dovetail.memory import callable_module as _callable_module

P = _PartitionSpec
checking_leaks = check_tracer_leaks
jacobian = jacrev
memory = _callable_module
remat = checkpoint

__version__: str
__version_info__: tuple[int | str, ...]
