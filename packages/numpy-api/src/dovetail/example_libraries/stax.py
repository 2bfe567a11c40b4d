"""Layers of networks as pairs of functions.

A layer is a pair: ``init_fun(key, input_shape)`` gives the shape of the output and the parameters,
``apply_fun(params, inputs, **kwargs)`` the output; layers that draw numbers need a keyword ``rng``,
a key. Shapes have a batch dimension, whose size can be -1 where it is not known.

Example:
    >>> from dovetail import random
    >>> from dovetail.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    >>> shape, params = init(random.key(0), (-1, 4))
    >>> shape, apply(params, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.extend.tracebacks import publish as _publish
from dovetail.nn import elu as elu
from dovetail.nn import gelu as gelu
from dovetail.nn import leaky_relu as leaky_relu
from dovetail.nn import log_softmax as log_softmax
from dovetail.nn import relu as relu
from dovetail.nn import selu as selu
from dovetail.nn import sigmoid as sigmoid
from dovetail.nn import softmax as softmax
from dovetail.nn import softplus as softplus
from dovetail.nn import standardize as standardize
from dovetail.nn.initializers import glorot_normal as glorot_normal
from dovetail.nn.initializers import normal as normal
from dovetail.nn.initializers import ones as ones
from dovetail.nn.initializers import zeros as zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]


def __dir__() -> list[str]:
    return __all__


#: A pair of the functions that make parameters and that apply the layer.
Layer = tuple[Callable[..., Any], Callable[..., Any]]

randn = normal
glorot = glorot_normal
logsoftmax = log_softmax

_WEIGHTS, _BIASES, _SMALL = glorot_normal(), normal(), normal(1e-6)


def Dense(out_dim: int, W_init: Any = _WEIGHTS, b_init: Any = _BIASES) -> Layer:
    """A layer of dot products with columns of weights, plus biases.

    Args:
        out_dim: size of the last dimension of the output.
        W_init: initializer of the weights, of shape ``(size of the input, out_dim)``.
        b_init: initializer of the biases.

    Returns:
        A layer, with parameters ``(weights, biases)``.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.Dense(2, stax.ones, stax.zeros)
        >>> shape, params = init(random.key(0), (-1, 3))
        >>> print(shape, apply(params, jnp.array([[1.0, 2.0, 3.0]])))
        (-1, 2) [[6. 6.]]
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        output_shape = (*input_shape[:-1], out_dim)
        first, second = random.split(rng)
        weights = W_init(first, (input_shape[-1], out_dim))
        return output_shape, (weights, b_init(second, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, biases = params
        return jnp.dot(inputs, weights) + biases

    return init_fun, apply_fun


def _known_batch(input_shape: Any, axis: int, shape_of: Callable[[Any], Any]) -> Any:
    """The shape of an output, whose batch has the size of the input's, also if that is -1."""
    batch = input_shape[axis]
    shape = [int(n) for n in shape_of((*input_shape[:axis], 1, *input_shape[axis + 1 :]))]
    return (*shape[:axis], batch, *shape[axis + 1 :])


def _convolution(
    transposed: bool,
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Any,
    strides: Any,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    name = "GeneralConvTranspose" if transposed else "GeneralConv"
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    spatial = [c for c in rhs_spec if c not in "OI"]
    if len(filter_shape) != len(spatial):
        raise ValueError(
            f"stax.{name}: filter_shape must have one size for each of {''.join(spatial)!r}, got "
            f"{tuple(filter_shape)}"
        )
    steps = tuple(strides or (1,) * len(spatial))
    kernel_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init_fun(rng: Any, input_shape: Any) -> Any:
        sizes = iter(filter_shape)
        named = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel_shape = tuple(named[c] if c in named else next(sizes) for c in rhs_spec)

        def of(shape: Any) -> Any:
            if transposed:
                return lax.conv_transpose_shape_tuple(
                    shape, kernel_shape, steps, padding, dimension_numbers
                )
            return lax.conv_general_shape_tuple(
                shape, kernel_shape, steps, padding, dimension_numbers
            )

        shape = _known_batch(input_shape, lhs_spec.index("N"), of)
        bias_shape = tuple(out_chan if c == "C" else 1 for c in out_spec)
        first, second = random.split(rng)
        return shape, (kernel_init(first, kernel_shape), b_init(second, bias_shape))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        kernel, biases = params
        convolve: Any = lax.conv_transpose if transposed else lax.conv_general_dilated
        out = convolve(inputs, kernel, steps, padding, dimension_numbers=dimension_numbers)
        return out + biases

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """A convolution, plus biases.

    Args:
        dimension_numbers: names of the dimensions of the input, the kernel and the output, such as
            ``("NHWC", "HWIO", "NHWC")``.
        out_chan: number of channels of the output.
        filter_shape: sizes of the kernel in space.
        strides: steps in space; 1 if None.
        padding: ``"VALID"``, ``"SAME"``, or pairs of numbers.
        W_init: initializer of the kernel; `glorot_normal` if None.
        b_init: initializer of the biases.

    Returns:
        A layer, with parameters ``(kernel, biases)``.

    Raises:
        ValueError: sizes of the kernel are missing.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (3, 3), padding="SAME")
        >>> shape, params = init(random.key(0), (-1, 3, 8, 8))
        >>> shape, params[0].shape
        ((-1, 4, 8, 8), (4, 3, 3, 3))
    """
    return _convolution(
        False, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """A transposed convolution, as `lax.conv_transpose`, plus biases.

    Args:
        dimension_numbers: names of the dimensions of the input, the kernel and the output, such as
            ``("NHWC", "HWIO", "NHWC")``.
        out_chan: number of channels of the output.
        filter_shape: sizes of the kernel in space.
        strides: steps in space; 1 if None.
        padding: ``"VALID"``, ``"SAME"``, or pairs of numbers.
        W_init: initializer of the kernel; `glorot_normal` if None.
        b_init: initializer of the biases.

    Returns:
        A layer, with parameters ``(kernel, biases)``.

    Raises:
        ValueError: sizes of the kernel are missing.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.ConvTranspose(4, (3, 3), (2, 2), "SAME")
        >>> init(random.key(0), (-1, 8, 8, 3))[0]
        (-1, 16, 16, 4)
    """
    return _convolution(
        True, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Standardised numbers over a batch, times factors, plus biases.

    Args:
        axis: dimensions over which mean and variance are taken.
        epsilon: number added to the variance.
        center: whether there are biases.
        scale: whether there are factors.
        beta_init: initializer of the biases.
        gamma_init: initializer of the factors.

    Returns:
        A layer, with parameters ``(biases, factors)``; ``()`` in place of those that are left out.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.BatchNorm(axis=0, epsilon=0.0)
        >>> shape, params = init(random.key(0), (-1, 1))
        >>> print(apply(params, jnp.array([[1.0], [3.0]])).ravel())
        [-1.  1.]
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        shape = tuple(n for d, n in enumerate(input_shape) if d not in axes)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if d in axes else slice(None) for d in range(jnp.ndim(x)))
        out = standardize(x, axes, epsilon=epsilon)
        if scale:
            out = gamma[spread] * out
        return out + beta[spread] if center else out

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function to its input.

    Args:
        fun: a function of an array that keeps its shape.
        **fun_kwargs: further arguments of it.

    Returns:
        A layer without parameters.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.elementwise(stax.leaky_relu, negative_slope=0.5)
        >>> print(apply((), jnp.array([-2.0, 1.0])))
        [-1.  1.]
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pool(
    reducer: Any,
    start: float,
    means: bool,
    window_shape: Any,
    strides: Any,
    padding: Any,
    spec: Any,
) -> Layer:
    steps = tuple(strides or (1,) * len(window_shape))
    names = spec or "N" + "_" * len(window_shape) + "C"
    places = [d for d, name in enumerate(names) if name not in "NC"]

    def over_all(sizes: Any) -> tuple[int, ...]:
        inner = dict(zip(places, sizes, strict=True))
        return tuple(inner.get(d, 1) for d in range(len(names)))

    window, step = over_all(window_shape), over_all(steps)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        def of(shape: Any) -> Any:
            pads = padding
            if isinstance(padding, str):
                pads = lax.padtype_to_pads(shape, window, step, padding)
            return lax.reduce_window_shape_tuple(shape, window, step, pads)

        return _known_batch(input_shape, names.index("N"), of), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        dtype = jnp.result_type(inputs)
        first = jnp.asarray(start if jnp.issubdtype(dtype, jnp.floating) else _least(start, dtype))
        out = lax.reduce_window(inputs, first.astype(dtype), reducer, window, step, padding)
        if not means:
            return out
        # Where the window reaches beyond the array it has fewer numbers.
        one = jnp.ones([inputs.shape[d] if d in places else 1 for d in range(len(names))], dtype)
        return out / lax.reduce_window(one, first.astype(dtype), reducer, window, step, padding)

    return init_fun, apply_fun


def _least(start: float, dtype: Any) -> Any:
    return jnp.iinfo(dtype).min if math.isinf(start) else int(start)


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The greatest number in each window.

    Args:
        window_shape: sizes of the window in space.
        strides: steps from window to window; 1 if None.
        padding: ``"VALID"`` or ``"SAME"``.
        spec: names of the dimensions, such as ``"NCHW"``; N first and C last if None.

    Returns:
        A layer without parameters.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.MaxPool((2, 2), (2, 2))
        >>> print(apply((), jnp.arange(16.0).reshape(1, 4, 4, 1)).ravel())
        [ 5.  7. 13. 15.]
    """
    return _pool(lax.max, -math.inf, False, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The sum of the numbers in each window.

    Args:
        window_shape: sizes of the window in space.
        strides: steps from window to window; 1 if None.
        padding: ``"VALID"`` or ``"SAME"``.
        spec: names of the dimensions, such as ``"NCHW"``; N first and C last if None.

    Returns:
        A layer without parameters.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.SumPool((2, 2), (2, 2))
        >>> print(apply((), jnp.ones((1, 4, 4, 1))).ravel())
        [4. 4. 4. 4.]
    """
    return _pool(lax.add, 0.0, False, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """The mean of the numbers in each window.

    Args:
        window_shape: sizes of the window in space.
        strides: steps from window to window; 1 if None.
        padding: ``"VALID"`` or ``"SAME"``; what is added does not count.
        spec: names of the dimensions, such as ``"NCHW"``; N first and C last if None.

    Returns:
        A layer without parameters.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.AvgPool((3, 3), padding="SAME")
        >>> print(apply((), jnp.ones((1, 2, 2, 1))).ravel())
        [1. 1. 1. 1.]
    """
    return _pool(lax.add, 0.0, True, window_shape, strides, padding, spec)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Any) -> Any:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))

    return init_fun, apply_fun


Flatten = _flatten()
Identity = elementwise(lambda x: x)


def FanOut(num: int) -> Layer:
    """The input, several times.

    Args:
        num: how many times.

    Returns:
        A layer without parameters, whose output is a list.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> stax.FanOut(2)[0](None, (-1, 3))[0]
        [(-1, 3), (-1, 3)]
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return [input_shape] * num, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return init_fun, apply_fun


def _fan_in_sum() -> Layer:
    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape[0], ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return sum(inputs)

    return init_fun, apply_fun


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Several inputs joined along a dimension.

    Args:
        axis: the dimension.

    Returns:
        A layer without parameters, whose input is a sequence.

    Example:
        >>> from dovetail.example_libraries import stax
        >>> stax.FanInConcat()[0](None, [(-1, 3), (-1, 4)])[0]
        (-1, 7)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        first = list(input_shape[0])
        first[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(first), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Numbers are kept by chance and divided by that chance; the others become 0.

    Args:
        rate: the chance that a number is kept.
        mode: ``"train"``; with ``"test"`` nothing is changed.

    Returns:
        A layer without parameters, whose function needs a keyword argument ``rng``, a key.

    Raises:
        ValueError: `mode` is neither; or, when it is applied, there is no key.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.Dropout(0.5)
        >>> kept = apply((), jnp.ones(1000), rng=random.key(0))
        >>> 400 < int((kept == 2).sum()) < 600
        True
    """
    if mode not in ("train", "test"):
        raise ValueError(f"stax.Dropout: mode must be 'train' or 'test', got {mode!r}")

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "stax.Dropout: the layer needs a key: apply_fun(params, inputs, rng=key)"
            )
        if mode == "test":
            return inputs
        keep = random.bernoulli(rng, rate, jnp.shape(inputs))
        return jnp.where(keep, inputs / rate, 0)

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Args:
        *layers: the layers; each gets the output of the one before.

    Returns:
        A layer, whose parameters are a list.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.serial(stax.Dense(4), stax.Relu)
        >>> shape, params = init(random.key(0), (-1, 2))
        >>> shape, len(params)
        ((-1, 4), 2)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for layer_init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = layer_init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, layer_apply), param, key in zip(layers, params, keys, strict=True):
            inputs = layer_apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other.

    Args:
        *layers: the layers; each gets one of a sequence of inputs.

    Returns:
        A layer, whose parameters are a tuple and whose output is a list.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> both = stax.parallel(stax.Dense(4), stax.Identity)
        >>> init, apply = stax.serial(stax.FanOut(2), both, stax.FanInConcat())
        >>> init(random.key(0), (-1, 3))[0]
        (-1, 7)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        keys = _keys(rng, len(layers))
        made = [
            layer_init(key, shape)
            for (layer_init, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            layer_apply(param, x, rng=key, **kwargs)
            for (_, layer_apply), param, x, key in zip(layers, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its input is known.

    Args:
        make_layer: a function of the shape of the input that returns a layer.

    Returns:
        A layer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.example_libraries import stax
        >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
        >>> init(random.key(0), (-1, 3))[0]
        (-1, 6)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


_publish(globals())
