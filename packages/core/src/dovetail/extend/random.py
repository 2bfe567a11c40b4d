"""Random generators behind keys: those that there are, and generators of one's own."""

from dovetail._core.ops.random.keys import rbg_implementation as rbg_prng_impl
from dovetail._core.ops.random.keys import threefry_implementation as threefry_prng_impl
from dovetail._core.ops.random.keys import unsafe_rbg_implementation as unsafe_rbg_prng_impl
from dovetail._core.ops.random.seeding import define_prng_impl as define_prng_impl
from dovetail._core.ops.random.seeding import random_seed as random_seed
from dovetail._core.ops.random.seeding import seed_with_impl as seed_with_impl
from dovetail._core.ops.random.threefry import threefry2x32_p as threefry2x32_p
from dovetail._core.ops.random.threefry import threefry_2x32 as threefry_2x32

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
