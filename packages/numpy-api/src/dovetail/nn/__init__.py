"""Functions of neural networks: activations, softmax, normalisation, one-hot vectors.

Every name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # the name is enough for type checkers; importing typing costs 5 ms
if TYPE_CHECKING:
    from dovetail.nn.activations import celu as celu
    from dovetail.nn.activations import elu as elu
    from dovetail.nn.activations import gelu as gelu
    from dovetail.nn.activations import glu as glu
    from dovetail.nn.activations import hard_sigmoid as hard_sigmoid
    from dovetail.nn.activations import hard_silu as hard_silu
    from dovetail.nn.activations import hard_silu as hard_swish
    from dovetail.nn.activations import hard_tanh as hard_tanh
    from dovetail.nn.activations import identity as identity
    from dovetail.nn.activations import leaky_relu as leaky_relu
    from dovetail.nn.activations import log1mexp as log1mexp
    from dovetail.nn.activations import log_sigmoid as log_sigmoid
    from dovetail.nn.activations import mish as mish
    from dovetail.nn.activations import relu as relu
    from dovetail.nn.activations import relu6 as relu6
    from dovetail.nn.activations import selu as selu
    from dovetail.nn.activations import sigmoid as sigmoid
    from dovetail.nn.activations import silu as silu
    from dovetail.nn.activations import silu as swish
    from dovetail.nn.activations import soft_sign as soft_sign
    from dovetail.nn.activations import softplus as softplus
    from dovetail.nn.activations import sparse_plus as sparse_plus
    from dovetail.nn.activations import sparse_sigmoid as sparse_sigmoid
    from dovetail.nn.activations import squareplus as squareplus
    from dovetail.nn.normalisation import log_softmax as log_softmax
    from dovetail.nn.normalisation import logmeanexp as logmeanexp
    from dovetail.nn.normalisation import logsumexp as logsumexp
    from dovetail.nn.normalisation import one_hot as one_hot
    from dovetail.nn.normalisation import softmax as softmax
    from dovetail.nn.normalisation import standardize as standardize
    from dovetail.numpy.trigonometry import tanh as tanh

_NAMES = {
    "celu": "dovetail.nn.activations",
    "elu": "dovetail.nn.activations",
    "gelu": "dovetail.nn.activations",
    "glu": "dovetail.nn.activations",
    "hard_sigmoid": "dovetail.nn.activations",
    "hard_silu": "dovetail.nn.activations",
    "hard_swish": "dovetail.nn.activations:hard_silu",
    "hard_tanh": "dovetail.nn.activations",
    "identity": "dovetail.nn.activations",
    "leaky_relu": "dovetail.nn.activations",
    "log1mexp": "dovetail.nn.activations",
    "log_sigmoid": "dovetail.nn.activations",
    "log_softmax": "dovetail.nn.normalisation",
    "logmeanexp": "dovetail.nn.normalisation",
    "logsumexp": "dovetail.nn.normalisation",
    "mish": "dovetail.nn.activations",
    "one_hot": "dovetail.nn.normalisation",
    "relu": "dovetail.nn.activations",
    "relu6": "dovetail.nn.activations",
    "selu": "dovetail.nn.activations",
    "sigmoid": "dovetail.nn.activations",
    "silu": "dovetail.nn.activations",
    "soft_sign": "dovetail.nn.activations",
    "softmax": "dovetail.nn.normalisation",
    "softplus": "dovetail.nn.activations",
    "sparse_plus": "dovetail.nn.activations",
    "sparse_sigmoid": "dovetail.nn.activations",
    "squareplus": "dovetail.nn.activations",
    "standardize": "dovetail.nn.normalisation",
    "swish": "dovetail.nn.activations:silu",
    "tanh": "dovetail.numpy.trigonometry",
}
"""The module that a public name is in; after a colon, the name that it has there."""

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def __getattr__(name: str) -> object:
    entry = _NAMES.get(name)
    if entry is None:
        raise AttributeError(f"module 'dovetail.nn' has no attribute {name!r}")
    module, _, attribute = entry.partition(":")
    value: object = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
