"""Random numbers from explicit keys.

A key is made from a seed, and the same key always gives the same numbers: there is no hidden state.
Split a key for independent numbers, and use each key once::

    from dovetail import random

    key = random.key(0)
    key, subkey = random.split(key)
    noise = random.normal(subkey, (3,))

Keys made by `key` are arrays of the dtype ``key<fry>``; `PRNGKey` makes raw ones, arrays of two
uint32, which every function takes too and which `split` and `fold_in` give back.

There are three generators (``random.key(0, impl=name)``, or the option ``default_prng_impl``).
Their streams equal those of `jax.random` for the same seeds:

- ``threefry2x32``, the default: the same numbers on every backend.
- ``rbg``: bits from the backend's own generator, which is Philox on CPUs and may be another
  elsewhere. Keys are made by Threefry.
- ``unsafe_rbg``: keys too are made by the backend's generator; how independent they are has not
  been tested.

Under `vmap` each key gives the numbers that it gives alone, with every generator on CPUs. (In JAX,
``rbg`` and ``unsafe_rbg`` give others.)

Every name is loaded when it is first used.
"""

from __future__ import annotations

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
