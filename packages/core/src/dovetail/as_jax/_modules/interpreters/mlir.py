"""The module `jax.interpreters.mlir`: lowering of primitives."""

from dovetail._core.alias.lowering import LoweringRuleContext as LoweringRuleContext
from dovetail._core.alias.lowering import ModuleContext as ModuleContext
from dovetail._core.alias.lowering import emit_python_callback as emit_python_callback
from dovetail._core.alias.lowering import lower_fun as lower_fun
from dovetail._core.alias.lowering import register_lowering as register_lowering
from dovetail._core.hlo.mlir import ir as ir
