"""The module `jax._src.config`: options, each with its `value`."""

from dovetail import config as config
from dovetail._core.base import config as _options


def __getattr__(name: str) -> object:
    option = getattr(_options, name)
    if not isinstance(option, _options.Option):
        raise AttributeError(name)
    return option
