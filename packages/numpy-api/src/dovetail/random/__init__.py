"""Random numbers from explicit keys.

A key is made from a seed. The same key always gives the same numbers: there is no hidden state.
Split a key to get independent numbers, and use each key only once::

    from dovetail import random

    key = random.key(0)
    key, subkey = random.split(key)
    noise = random.normal(subkey, (3,))

Keys made by `key` are arrays of dtype ``key<fry>``. `PRNGKey` makes raw keys, arrays of two uint32:
every function accepts them too, and for them `split` and `fold_in` return raw keys.

There are six generators (``random.key(0, impl=name)``, or the option ``default_prng_impl``).
Their streams equal those of `jax.random` for the same seeds:

- ``threefry2x32``, the default: the same numbers on every backend.
- ``threefry4x32``, ``philox2x32``, ``philox4x32``: likewise, with keys of 128, 32 and 64 bits.
- ``rbg``: bits from the backend's own generator: Philox on CPUs, possibly another one elsewhere.
  Keys are made by Threefry.
- ``unsafe_rbg``: keys, too, are made by the backend's generator; their independence has not been
  tested.

Under `vmap` each key gives the same numbers as alone, with every generator on CPUs. (In JAX,
``rbg`` and ``unsafe_rbg`` give different ones.)

Every name is loaded on first use.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
