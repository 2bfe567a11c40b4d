"""The module `jax._src.flattree`: flat values in groups."""

from dovetail._core.alias.flat_trees import FlatTree as FlatTree
from dovetail._core.alias.flat_trees import nones as nones
from dovetail._core.alias.flat_trees import pack as pack
