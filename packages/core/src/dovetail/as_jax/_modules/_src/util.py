"""The module `jax._src.util`."""

from dovetail._core.alias.sequences import canonicalize_axis as canonicalize_axis
from dovetail._core.alias.sequences import partition_list as partition_list
from dovetail._core.alias.sequences import safe_map as safe_map
from dovetail._core.alias.sequences import safe_zip as safe_zip
from dovetail._core.alias.sequences import split_list as split_list
from dovetail._core.alias.sequences import unzip2 as unzip2
from dovetail._core.alias.sequences import unzip3 as unzip3
