"""The names of `dovetail.extend` for type checkers; the table of modules beside it is what runs."""

from dovetail.core.base.errors import BackendUnavailableError as BackendUnavailableError
from dovetail.core.base.errors import MissingRuleError as MissingRuleError
from dovetail.core.ir.avals import ShapedArray as ShapedArray
from dovetail.core.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from dovetail.core.ir.jaxpr import Jaxpr as Jaxpr
from dovetail.core.ir.jaxpr import JaxprEqn as JaxprEqn
from dovetail.core.ir.jaxpr import Literal as Literal
from dovetail.core.ir.jaxpr import Var as Var
from dovetail.core.plugins.failures import PluginFailure as PluginFailure
from dovetail.core.plugins.hookspecs import PLUGIN_API as PLUGIN_API
from dovetail.core.plugins.hookspecs import ArrayMethods as ArrayMethods
from dovetail.core.plugins.hookspecs import BackendInfo as BackendInfo
from dovetail.core.plugins.hookspecs import CompileRequest as CompileRequest
from dovetail.core.plugins.hookspecs import LoweringTable as LoweringTable
from dovetail.core.plugins.hookspecs import hookimpl as hookimpl
from dovetail.core.plugins.manager import manager as manager
from dovetail.core.plugins.protocols import Buffer as Buffer
from dovetail.core.plugins.protocols import Client as Client
from dovetail.core.plugins.protocols import Device as Device
from dovetail.core.plugins.protocols import Executable as Executable
from dovetail.core.runtime.fallback import Fallback as Fallback
from dovetail.core.trace.explanation import explain as explain
from dovetail.core.trace.primitive import RuntimePrimitive as Primitive
from dovetail.core.trace.primitive import primitives as primitives
from dovetail.core.transform.derived import evaluate as evaluate
from dovetail.extend import pjrt as pjrt
