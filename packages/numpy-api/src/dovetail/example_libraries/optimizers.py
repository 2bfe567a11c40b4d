"""Optimisers of parameters in trees: a step is a function of a number, gradients and a state.

An optimiser is three functions: `init_fn(parameters)` gives a state, `update_fn(i, gradients,
state)` the next one, `params_fn(state)` the parameters in it. A state is a tree, so that it can go
through `jit` and loops. A step size is a number, or a function of the number of the step.

Example:
    >>> import dovetail as dt
    >>> from dovetail.example_libraries import optimizers
    >>> init, update, params = optimizers.adam(0.1)
    >>> @dt.jit
    ... def step(i, state):
    ...     return update(i, dt.grad(lambda p: (p["x"] - 3) ** 2)(params(state)), state)
    >>> state = init({"x": 0.0})
    >>> for i in range(200):
    ...     state = step(i, state)
    >>> abs(float(params(state)["x"]) - 3) < 0.01
    True
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail.numpy as jnp
from dovetail import lax, tree_util
from dovetail.extend import dtypes
from dovetail.extend.tracebacks import boundary
from dovetail.extend.tracebacks import publish as _publish
from dovetail.typing import Array, ArrayLike, PyTree

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]


def __dir__() -> list[str]:
    return __all__


Schedule = Callable[[ArrayLike], ArrayLike]


class OptimizerState(NamedTuple):
    """The state of an optimiser: a tree whose leaves are those of the states of all parameters.

    Attributes:
        packed_state: for each parameter a list of the leaves of its state.
        tree_def: the structure of the parameters.
        subtree_defs: for each parameter the structure of its state.
    """

    packed_state: tuple[list[Any], ...]
    tree_def: tree_util.PyTreeDef
    subtree_defs: tuple[tree_util.PyTreeDef, ...]


tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda static, children: OptimizerState(children[0], *static),
)


class Optimizer(NamedTuple):
    """The three functions of an optimiser.

    Attributes:
        init_fn: of the parameters: gives the first state.
        update_fn: of the number of the step, the gradients and the state: gives the next state.
        params_fn: of a state: gives its parameters.
    """

    init_fn: Callable[[PyTree], OptimizerState]
    update_fn: Callable[[ArrayLike, PyTree, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], PyTree]


class JoinPoint:
    """Marks where the state of one parameter begins in what `unpack_optimizer_state` gives.

    Attributes:
        subtree: the state.
    """

    def __init__(self, subtree: PyTree) -> None:
        self.subtree = subtree

    def __repr__(self) -> str:
        return f"JoinPoint({self.subtree!r})"


def optimizer(opt_maker: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Optimizer]:
    """Make an optimiser of arrays one of trees: a decorator.

    Args:
        opt_maker: a function that returns three functions of one array: ``init(x)`` gives a tree,
            the state, ``update(i, gradient, state)`` the next one in the same structure, and
            ``get_params(state)`` the array.

    Returns:
        A function with the arguments of `opt_maker` that returns an `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> @optimizers.optimizer
        ... def signs(size):
        ...     return lambda x: x, lambda i, g, x: x - size * jnp.sign(g), lambda x: x
        >>> init, update, params = signs(0.5)
        >>> print(params(update(0, [2.0, -0.1], init([1.0, 1.0]))))
        [Array(0.5, dtype=float32, weak_type=True), Array(1.5, dtype=float32, weak_type=True)]
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @functools.wraps(init)
        def tree_init(parameters: PyTree) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(parameters)
            return _packed([init(x) for x in leaves], tree)

        @functools.wraps(update)
        def tree_update(i: ArrayLike, gradients: PyTree, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(gradients)
            if tree != state.tree_def:
                raise TypeError(
                    "an optimizer's update_fn was given gradients of the structure "
                    f"{tree}, and its state is for parameters of the structure {state.tree_def}"
                )
            states = _states(state)
            new = _packed([update(i, g, s) for g, s in zip(leaves, states, strict=True)], tree)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        f"an optimizer's update gave a state of the structure {after}, where it "
                        f"was given one of {before}"
                    )
            return new

        @functools.wraps(get_params)
        def tree_get_params(state: OptimizerState) -> PyTree:
            return tree_util.tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(boundary(tree_init), boundary(tree_update), boundary(tree_get_params))

    return tree_opt_maker


def _packed(states: list[Any], tree: tree_util.PyTreeDef) -> OptimizerState:
    flat = [tree_util.tree_flatten(s) for s in states]
    return OptimizerState(tuple(x for x, _ in flat), tree, tuple(t for _, t in flat))


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree_util.tree_unflatten(tree, leaves) for tree, leaves in pairs]


@optimizer
def sgd(step_size: float | Schedule) -> tuple[Any, Any, Any]:
    """Gradient descent: ``x - step * g``.

    Args:
        step_size: a positive number, or a function of the number of the step.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.sgd(0.5)
        >>> print(params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))))
        [0.]
    """
    step = make_schedule(step_size)

    def init(x: Any) -> Any:
        return x

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - step(i) * g

    def get_params(x: Any) -> Any:
        return x

    return init, update, get_params


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> tuple[Any, Any, Any]:
    """Gradient descent with momentum (Polyak 1964): ``v = mass * v + g``, ``x - step * v``.

    Args:
        step_size: a positive number, or a function of the number of the step.
        mass: the part of the velocity that is kept.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.momentum(0.5, mass=0.5)
        >>> state = update(0, jnp.array([1.0]), init(jnp.array([1.0])))
        >>> print(params(update(1, jnp.array([1.0]), state)))
        [-0.25]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step(i) * velocity, velocity

    return _with_zeros(1), update, _first


def _with_zeros(count: int) -> Callable[[Any], Any]:
    def init(x: Any) -> Any:
        return (x, *(jnp.zeros_like(x) for _ in range(count)))

    return init


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> tuple[Any, Any, Any]:
    """Gradient descent with Nesterov's momentum (1983): ``x - step * (mass * v + g)``.

    Args:
        step_size: a positive number, or a function of the number of the step.
        mass: the part of the velocity that is kept.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.nesterov(0.5, mass=0.5)
        >>> print(params(update(0, jnp.array([1.0]), init(jnp.array([1.0])))))
        [0.25]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


def _inverse_root(total: Any) -> Any:
    """``1 / sqrt(total)``, 0 at 0."""
    positive = total > 0
    return jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, total, 1)), 0)


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> tuple[Any, Any, Any]:
    """Gradients divided by the root of the sum of their squares so far, with momentum.

    Duchi, Hazan and Singer, Adaptive Subgradient Methods (2011).

    Args:
        step_size: a positive number, or a function of the number of the step.
        momentum: the part of the mean of the divided gradients that is kept.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.adagrad(0.5, momentum=0.0)
        >>> print(params(update(0, jnp.array([4.0, 0.0]), init(jnp.array([1.0, 1.0])))))
        [0.5 1. ]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - step(i) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8
) -> tuple[Any, Any, Any]:
    """Gradients divided by the root of a running mean of their squares (Hinton 2012).

    Args:
        step_size: a positive number, or a function of the number of the step.
        gamma: the part of the mean that is kept.
        eps: number added to the mean.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.rmsprop(0.5, gamma=0.75)
        >>> print(params(update(0, jnp.array([4.0]), init(jnp.array([1.0])))))
        [0.]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - step(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> tuple[Any, Any, Any]:
    """`rmsprop` with momentum.

    Args:
        step_size: a positive number, or a function of the number of the step.
        gamma: the part of the mean of squares that is kept.
        eps: number added to the mean.
        momentum: the part of the velocity that is kept.

    Returns:
        An `Optimizer`.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.rmsprop_momentum(0.5, gamma=0.75)
        >>> print(params(update(0, jnp.array([4.0]), init(jnp.array([1.0])))))
        [0.]
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + step(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(
    step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> tuple[Any, Any, Any]:
    """Running means of gradients and of their squares, without bias: Adam.

    Kingma and Ba, Adam: A Method for Stochastic Optimization (2014), algorithm 1.

    Args:
        step_size: a positive number, or a function of the number of the step.
        b1: the part of the mean of gradients that is kept.
        b2: the part of the mean of squares that is kept.
        eps: number added to the root of the mean of squares.

    Returns:
        An `Optimizer`, whose steps are counted from 0.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.adam(0.5)
        >>> x = params(update(0, jnp.array([4.0]), init(jnp.array([1.0]))))
        >>> bool(abs(x[0] - 0.5) < 1e-4)
        True
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - _power(b1, i, mean))
        root = jnp.sqrt(squares / (1 - _power(b2, i, squares)))
        return x - step(i) * unbiased / (root + eps), mean, squares

    return _with_zeros(2), update, _first


def _power(base: float, i: Any, like: Any) -> Any:
    return jnp.asarray(base, jnp.result_type(like)) ** (i + 1)


@optimizer
def adamax(
    step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> tuple[Any, Any, Any]:
    """`adam` with the greatest magnitude in place of the mean of squares: AdaMax.

    Kingma and Ba, Adam: A Method for Stochastic Optimization (2014), algorithm 2.

    Args:
        step_size: a positive number, or a function of the number of the step.
        b1: the part of the mean of gradients that is kept.
        b2: the part of the greatest magnitude that is kept.
        eps: number added to the greatest magnitude.

    Returns:
        An `Optimizer`, whose steps are counted from 0.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.adamax(0.5)
        >>> x = params(update(0, jnp.array([4.0]), init(jnp.array([1.0]))))
        >>> bool(abs(x[0] - 0.5) < 1e-4)
        True
    """
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, most = state
        mean = (1 - b1) * g + b1 * mean
        most = jnp.maximum(b2 * most, jnp.abs(g))
        size = step(i) / (1 - _power(b1, i, mean))
        return x - size * mean / (most + eps), mean, most

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> tuple[Any, Any, Any]:
    """`adagrad` in little memory: a bound of the sums of squares for each row, column ...

    Anil, Gupta, Koren and Singer, Memory-Efficient Adaptive Optimization (2019), SM3-II.

    Args:
        step_size: a positive number, or a function of the number of the step.
        momentum: the part of the mean of the divided gradients that is kept.

    Returns:
        An `Optimizer`.

    Differs:
        The state does not have the shape of the parameter, so that `params_fn` can be traced, and
        a number stays a scalar.

        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.sm3(0.5)
        >>> print(dt.jit(params)(init(jnp.ones(()))))
        1.0

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.sm3(0.5, momentum=0.0)
        >>> print(params(update(0, jnp.array([[4.0, 0.0]]), init(jnp.array([[1.0, 1.0]])))))
        [[0.5 1. ]]
    """
    step = make_schedule(step_size)

    def along(bound: Any, axis: int, rank: int) -> Any:
        return bound.reshape([-1 if d == axis else 1 for d in range(rank)])

    def init(x: Any) -> Any:
        shape = jnp.shape(x) or (1,)
        return x, jnp.zeros_like(x), [jnp.zeros(n, jnp.result_type(x)) for n in shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, bounds = state
        rank = len(bounds)
        least = functools.reduce(jnp.minimum, [along(v, d, rank) for d, v in enumerate(bounds)])
        squares = least + jnp.square(jnp.atleast_1d(g))
        divided = g * _inverse_root(squares).reshape(jnp.shape(g))
        mean = (1 - momentum) * divided + momentum * mean
        bounds = [squares.max(tuple(k for k in range(rank) if k != d)) for d in range(rank)]
        return x - step(i) * mean, mean, bounds

    return init, update, _first


def constant(step_size: ArrayLike) -> Schedule:
    """The same step size for every step.

    Args:
        step_size: a number.

    Returns:
        A function of the number of the step.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> optimizers.constant(0.1)(3)
        0.1
    """

    def schedule(i: ArrayLike) -> ArrayLike:
        return step_size

    return schedule


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """``step_size * decay_rate ** (i / decay_steps)``.

    Args:
        step_size: the first step size.
        decay_steps: after how many steps it is multiplied by `decay_rate`.
        decay_rate: a factor.

    Returns:
        A function of the number of the step.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
        0.25
    """

    def schedule(i: Any) -> ArrayLike:
        return step_size * decay_rate ** (i / decay_steps)

    return schedule


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """``step_size / (1 + decay_rate * i / decay_steps)``.

    Args:
        step_size: the first step size.
        decay_steps: after how many steps the divisor has grown by `decay_rate`.
        decay_rate: a number.
        staircase: whether ``i / decay_steps`` is rounded down.

    Returns:
        A function of the number of the step.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> optimizers.inverse_time_decay(1.0, 10, 0.5)(20)
        0.5
    """

    def smooth(i: Any) -> ArrayLike:
        return step_size / (1 + decay_rate * i / decay_steps)

    def stairs(i: Any) -> ArrayLike:
        return step_size / (1 + decay_rate * jnp.floor(i / decay_steps))

    return stairs if staircase else smooth


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """From `step_size` to `final_step_size`: ``(1 - i / decay_steps) ** power`` of the difference.

    Args:
        step_size: the first step size.
        decay_steps: after how many steps the last step size is reached.
        final_step_size: the last step size.
        power: an exponent.

    Returns:
        A function of the number of the step.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> print(optimizers.polynomial_decay(1.0, 10, 0.5)(5))
        0.75
    """

    def schedule(i: Any) -> ArrayLike:
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: ArrayLike | Any, values: ArrayLike | Any) -> Schedule:
    """One step size up to each boundary, and one after the last.

    Args:
        boundaries: a sequence of numbers of steps, in order.
        values: a sequence of step sizes, one longer.

    Returns:
        A function of the number of the step.

    Raises:
        ValueError: they are not sequences of these lengths.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> schedule = optimizers.piecewise_constant([10, 20], [1.0, 0.5, 0.25])
        >>> print(schedule(10), schedule(11), schedule(30))
        1.0 0.5 0.25
    """
    limits, sizes = jnp.asarray(boundaries), jnp.asarray(values)
    if limits.ndim != 1 or sizes.ndim != 1:
        raise ValueError("piecewise_constant: boundaries and values must be sequences")
    if limits.shape[0] != sizes.shape[0] - 1:
        raise ValueError(
            "piecewise_constant: boundaries must have one element less than values, got "
            f"{limits.shape[0]} and {sizes.shape[0]}"
        )

    def schedule(i: ArrayLike) -> ArrayLike:
        return sizes[jnp.sum(i > limits)]

    return schedule


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """A function of the number of the step, of one or of a number.

    Args:
        scalar_or_schedule: a function, which is returned, or a number.

    Returns:
        A function of the number of the step.

    Raises:
        TypeError: it is neither.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> optimizers.make_schedule(0.1)(5)
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, (str, type(None))) or jnp.ndim(scalar_or_schedule):
        raise TypeError(
            "make_schedule: a step size must be a number or a function of the number of the step, "
            f"got {scalar_or_schedule!r}"
        )
    return constant(scalar_or_schedule)


def l2_norm(tree: PyTree) -> Array:
    """The root of the sum of the squares of all numbers in a tree.

    Args:
        tree: a tree of arrays.

    Returns:
        A scalar of a float dtype.

    Differs:
        The norm of complex numbers is real, and integers do not overflow.

        >>> from dovetail.example_libraries import optimizers
        >>> print(optimizers.l2_norm(jnp.array([30, 40], "int8")), optimizers.l2_norm([3j]))
        50.0 3.0

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> print(optimizers.l2_norm({"a": 3.0, "b": jnp.array([4.0])}))
        5.0
    """
    total: Any = 0.0
    for x in tree_util.tree_leaves(tree):
        x = _inexact(x)
        total = total + jnp.vdot(x, x).real
    return jnp.sqrt(total)


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if dtypes.kind_of(x.dtype) in ("f", "c") else x.astype(dtypes.default_dtype("f"))


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Gradients scaled so that their norm is at most a number.

    Args:
        grad_tree: a tree of arrays.
        max_norm: the greatest norm.

    Returns:
        A tree of the same structure, whose arrays keep their dtypes.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> print(optimizers.clip_grads([jnp.array([3.0, 4.0])], 1.0)[0])
        [0.6 0.8]
    """
    norm = l2_norm(grad_tree)
    small = norm < max_norm
    factor = jnp.where(small, 1, max_norm / jnp.where(small, 1, norm))

    def clipped(g: Any) -> Any:
        g = _inexact(g)
        return g * lax.convert_element_type(factor, g.dtype)

    return tree_util.tree_map(clipped, grad_tree)


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """A state as a tree of the structure of the parameters, to be written to a file.

    Args:
        opt_state: the state.

    Returns:
        A tree of the structure of the parameters, with a `JoinPoint` for each, in which the state
        of the parameter is.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> optimizers.unpack_optimizer_state(optimizers.sgd(0.1).init_fn({"x": 1.0}))
        {'x': JoinPoint(1.0)}
    """
    return tree_util.tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """The state that `unpack_optimizer_state` has made a tree of.

    Args:
        marked_pytree: a tree whose leaves are `JoinPoint` objects.

    Returns:
        The state.

    Raises:
        TypeError: a leaf is something else.

    Example:
        >>> from dovetail.example_libraries import optimizers
        >>> init, update, params = optimizers.sgd(0.1)
        >>> tree = optimizers.unpack_optimizer_state(init({"x": 1.0}))
        >>> params(optimizers.pack_optimizer_state(tree))
        {'x': 1.0}
    """
    marks, tree = tree_util.tree_flatten(marked_pytree)
    for mark in marks:
        if not isinstance(mark, JoinPoint):
            raise TypeError(
                "pack_optimizer_state: the leaves of marked_pytree must be JoinPoint objects, got "
                f"{type(mark).__name__}"
            )
    return _packed([mark.subtree for mark in marks], tree)


_publish(globals())
