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

from importlib import import_module

TYPE_CHECKING = False  # the name is enough for type checkers; importing typing costs time
if TYPE_CHECKING:
    from dovetail.random.continuous import cauchy as cauchy
    from dovetail.random.continuous import exponential as exponential
    from dovetail.random.continuous import gumbel as gumbel
    from dovetail.random.continuous import laplace as laplace
    from dovetail.random.continuous import logistic as logistic
    from dovetail.random.continuous import normal as normal
    from dovetail.random.continuous import truncated_normal as truncated_normal
    from dovetail.random.intervals import bernoulli as bernoulli
    from dovetail.random.intervals import bits as bits
    from dovetail.random.intervals import rademacher as rademacher
    from dovetail.random.intervals import randint as randint
    from dovetail.random.intervals import uniform as uniform
    from dovetail.random.keys import PRNGKey as PRNGKey
    from dovetail.random.keys import clone as clone
    from dovetail.random.keys import fold_in as fold_in
    from dovetail.random.keys import key as key
    from dovetail.random.keys import key_data as key_data
    from dovetail.random.keys import key_dtype as key_dtype
    from dovetail.random.keys import key_impl as key_impl
    from dovetail.random.keys import split as split
    from dovetail.random.keys import wrap_key_data as wrap_key_data
    from dovetail.random.resampling import categorical as categorical
    from dovetail.random.resampling import choice as choice
    from dovetail.random.resampling import permutation as permutation

_MODULE_OF = {
    "PRNGKey": "keys",
    "bernoulli": "intervals",
    "bits": "intervals",
    "categorical": "resampling",
    "cauchy": "continuous",
    "choice": "resampling",
    "clone": "keys",
    "exponential": "continuous",
    "fold_in": "keys",
    "gumbel": "continuous",
    "key": "keys",
    "key_data": "keys",
    "key_dtype": "keys",
    "key_impl": "keys",
    "laplace": "continuous",
    "logistic": "continuous",
    "normal": "continuous",
    "permutation": "resampling",
    "rademacher": "intervals",
    "randint": "intervals",
    "split": "keys",
    "truncated_normal": "continuous",
    "uniform": "intervals",
    "wrap_key_data": "keys",
}

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'dovetail.random' has no attribute {name!r}")
    value: object = getattr(import_module(f"dovetail.random.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
