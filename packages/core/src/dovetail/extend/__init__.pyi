"""The names of `dovetail.extend`: the one list of them, for type checkers and at run time."""

from dovetail._core.api.explanation import all_primitives as _all_primitives
from dovetail._core.api.explanation import explain as explain
from dovetail._core.base.errors import BackendUnavailableError as BackendUnavailableError
from dovetail._core.base.errors import MissingRuleError as MissingRuleError
from dovetail._core.ir.avals import ShapedArray as ShapedArray
from dovetail._core.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from dovetail._core.ir.jaxpr import Jaxpr as Jaxpr
from dovetail._core.ir.jaxpr import JaxprEqn as JaxprEqn
from dovetail._core.ir.jaxpr import Literal as Literal
from dovetail._core.ir.jaxpr import Var as Var
from dovetail._core.ir.walk import Wanted as Wanted
from dovetail._core.ir.walk import dce_call as dce_call
from dovetail._core.ir.walk import dce_inside as dce_inside
from dovetail._core.plugins.failures import PluginFailure as PluginFailure
from dovetail._core.plugins.hookspecs import PLUGIN_API as PLUGIN_API
from dovetail._core.plugins.hookspecs import ArrayMethods as ArrayMethods
from dovetail._core.plugins.hookspecs import BackendInfo as BackendInfo
from dovetail._core.plugins.hookspecs import CompileRequest as CompileRequest
from dovetail._core.plugins.hookspecs import LoweringTable as LoweringTable
from dovetail._core.plugins.hookspecs import hookimpl as hookimpl
from dovetail._core.plugins.manager import manager as manager
from dovetail._core.plugins.process_group import ProcessGroup as ProcessGroup
from dovetail._core.plugins.protocols import Buffer as Buffer
from dovetail._core.plugins.protocols import Client as Client
from dovetail._core.plugins.protocols import Device as Device
from dovetail._core.plugins.protocols import Executable as Executable
from dovetail._core.runtime.calls.fallback import Fallback as Fallback
from dovetail._core.trace.primitive import RuntimePrimitive as _RuntimePrimitive
from dovetail._core.transform.derived import evaluate as evaluate
from dovetail._lazy_names import lazy_names as lazy_names
from dovetail.extend import arguments as arguments
from dovetail.extend import arrays as arrays
from dovetail.extend import avals as avals
from dovetail.extend import batching as batching
from dovetail.extend import checks as checks
from dovetail.extend import contractions as contractions
from dovetail.extend import divisions as divisions
from dovetail.extend import dtypes as dtypes
from dovetail.extend import eager as eager
from dovetail.extend import indexing as indexing
from dovetail.extend import lowering as lowering
from dovetail.extend import matrices as matrices
from dovetail.extend import pjrt as pjrt
from dovetail.extend import random_keys as random_keys
from dovetail.extend import unchecked as unchecked

Primitive = _RuntimePrimitive
primitives = _all_primitives
