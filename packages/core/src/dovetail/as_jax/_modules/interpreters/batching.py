"""The module `jax.interpreters.batching`: vectorization of primitives."""

from dovetail._core.alias.rules import AxisData as AxisData
from dovetail._core.alias.rules import axis_primitive_batchers as axis_primitive_batchers
from dovetail._core.alias.rules import bdim_at_front as bdim_at_front
from dovetail._core.alias.rules import broadcast as broadcast
from dovetail._core.alias.rules import defbroadcasting as defbroadcasting
from dovetail._core.alias.rules import defvectorized as defvectorized
from dovetail._core.alias.rules import fancy_primitive_batchers as fancy_primitive_batchers
from dovetail._core.alias.rules import not_mapped as not_mapped
from dovetail._core.alias.rules import primitive_batchers as primitive_batchers
from dovetail._core.alias.unmapped_types import register_vmappable as register_vmappable
from dovetail._core.alias.unmapped_types import unregister_vmappable as unregister_vmappable
from dovetail._core.basis.structural import move_dimension as moveaxis
from dovetail._core.transform.batch import BatchTrace as BatchTrace
from dovetail._core.transform.batch import BatchTracer as BatchTracer
