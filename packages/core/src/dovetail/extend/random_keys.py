"""Random keys and the bits that are drawn with them, for authors of an API."""

from dovetail._core.base.config import high_dynamic_range_gumbel as high_dynamic_range_gumbel
from dovetail._core.base.config import random_seed_offset as random_seed_offset
from dovetail._core.ops.random.keys import BIT_WIDTHS as BIT_WIDTHS
from dovetail._core.ops.random.keys import KeyDType as KeyDType
from dovetail._core.ops.random.keys import KeyImplementation as KeyImplementation
from dovetail._core.ops.random.keys import clone as clone
from dovetail._core.ops.random.keys import erf_inv_fast_p as erf_inv_fast_p
from dovetail._core.ops.random.keys import fold_in as fold_in
from dovetail._core.ops.random.keys import implementation_of as implementation_of
from dovetail._core.ops.random.keys import is_key as is_key
from dovetail._core.ops.random.keys import key_dtype as key_dtype
from dovetail._core.ops.random.keys import random_bits as random_bits
from dovetail._core.ops.random.keys import seed as seed
from dovetail._core.ops.random.keys import split as split
from dovetail._core.ops.random.keys import unwrap as unwrap
from dovetail._core.ops.random.keys import wrap as wrap

__all__ = [
    "BIT_WIDTHS",
    "KeyDType",
    "KeyImplementation",
    "clone",
    "erf_inv_fast_p",
    "fold_in",
    "high_dynamic_range_gumbel",
    "implementation_of",
    "is_key",
    "key_dtype",
    "random_bits",
    "random_seed_offset",
    "seed",
    "split",
    "unwrap",
    "wrap",
]
