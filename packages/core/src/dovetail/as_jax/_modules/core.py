"""The module `jax.core`: its documented names, and older ones that libraries look for."""

from typing import Any as Value

from dovetail._core.alias.conversions import pytype_aval_mappings as pytype_aval_mappings
from dovetail._core.alias.own_traces import LibraryTrace as Trace
from dovetail._core.ir.avals import aval_of as get_aval
from dovetail._core.ir.jaxpr import Atom as Atom
from dovetail._core.ir.jaxpr import DropVar as DropVar
from dovetail.extend.core import ClosedJaxpr as ClosedJaxpr
from dovetail.extend.core import Jaxpr as Jaxpr
from dovetail.extend.core import JaxprEqn as JaxprEqn
from dovetail.extend.core import Literal as Literal
from dovetail.extend.core import Primitive as Primitive
from dovetail.extend.core import Var as Var
