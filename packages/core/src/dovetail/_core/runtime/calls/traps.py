"""Known traps: the ways in which programs that look right come to a nan or an infinity.

Which it is, say the operation that made the bad value, what its operands hold, and the operations
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dovetail._core.runtime.calls.value_nodes import Node, walk_up

__all__ = ["Trap", "known_trap"]


class Trap(NamedTuple):
    """A trap.

    Attributes:
        cause: what happened.
        remedy: what to write instead.
    """

    cause: str
    remedy: str


# Operations that only change the form of an array, or its sign.
_FORMS: Final = frozenset(
    {
        "broadcast_in_dim",
        "convert_element_type",
        "copy",
        "neg",
        "reshape",
        "squeeze",
        "stop_gradient",
        "transpose",
    }
)
_SQUARES: Final = frozenset({"square", "integer_pow", "mul", "abs"})

_WHERE: Final = (
    "a `where` hides the value of a branch, but not its derivative: 0 times infinity or nan is nan",
    "Use `where` twice, first inside, so that the branch gets a harmless argument: "
    "safe = jnp.where(ok, x, 1.0); jnp.where(ok, f(safe), 0.0)",
)
_NORM: Final = Trap(
    "the derivative of a norm, a square root of a sum of squares, is infinite at 0",
    "Keep zero vectors away from it: n2 = jnp.sum(x * x); "
    "jnp.where(n2 > 0, jnp.sqrt(jnp.where(n2 > 0, n2, 1.0)), 0.0), or jnp.sqrt(n2 + 1e-12)",
)
_DEVIATION: Final = Trap(
    "the derivative of a standard deviation is infinite where all values are the same",
    "Add a small number inside the square root: jnp.sqrt(jnp.var(x) + 1e-6)",
)
_ROOT: Final = Trap(
    "the derivative of a square root is infinite at 0",
    "Add a small number inside, jnp.sqrt(x + 1e-12), or use `where` twice: "
    "jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)",
)
_LOG_SLOPE: Final = Trap(
    "the derivative of log is infinite at 0",
    "Keep the argument above 0, jnp.log(jnp.maximum(x, 1e-12)); for x * log(x) use "
    "dovetail.scipy.special.xlogy(x, x)",
)
_QUOTIENT_SLOPE: Final = Trap(
    "a derivative divides by 0, as that of log(y) and that of x / y do at y = 0",
    "Keep y away from 0: jnp.log(jnp.maximum(y, 1e-12)), x / jnp.where(y != 0, y, 1.0)",
)
_POWER: Final = Trap(
    "a derivative of x ** y is infinite at x = 0 (that by x if y < 1; that by y has log(x) in it)",
    "Write an integer exponent as a Python number, x ** 2, or keep x above 0: "
    "jnp.maximum(x, 1e-12) ** y",
)
_ARC: Final = Trap(
    "the derivatives of arcsin and arccos are infinite at -1 and 1, and nan outside",
    "Stay within, jnp.arccos(jnp.clip(x, -1 + 1e-6, 1 - 1e-6)), or compute the angle by "
    "jnp.arctan2",
)
_SOFTMAX: Final = Trap(
    "a softmax or logsumexp of a row in which all values are -inf",
    "Mask by a large negative number such as -1e9 instead of -inf, or replace the rows that are "
    "masked as a whole",
)
_OVERFLOW: Final = Trap(
    "exp overflows (in float32 above 88.7, in float64 above 709.7, in float16 above 11)",
    "Subtract the maximum first, or use a function that does so: dovetail.nn.softmax, "
    "log_softmax, logsumexp, softplus, sigmoid, or jnp.logaddexp",
)
_HALF: Final = Trap(
    "float16 holds no number beyond 65504",
    "Use bfloat16 or float32 for this part, or scale the values (for gradients, the loss) down",
)
_EMPTY: Final = Trap(
    "a mean of no elements is 0 / 0",
    "Look at the shape, or give an empty array a mean of its own: jnp.sum(x) / max(x.size, 1)",
)
_ZERO_NORM: Final = Trap(
    "a vector of norm 0 is divided by its norm",
    "Give the norm a least value: x * dovetail.lax.rsqrt(jnp.maximum(jnp.sum(x * x), 1e-12))",
)
_ZERO_DEVIATION: Final = Trap(
    "a division by a standard deviation of 0, as all values are the same",
    "Add a small number: (x - jnp.mean(x)) / jnp.sqrt(jnp.var(x) + 1e-6)",
)
_OUTSIDE: Final = Trap(
    "an index is out of bounds, where nan stands for the element",
    'Look at the indices, or clip them: jnp.take(x, i, mode="clip"), x.at[i].get(mode="clip")',
)
_NOT_POSITIVE: Final = Trap(
    "a matrix that is not positive definite has no Cholesky factor",
    "Make it symmetric and add to its diagonal: (a + a.T) / 2 + 1e-6 * jnp.eye(len(a))",
)
_SINGULAR: Final = Trap(
    "a system of equations whose matrix is singular, with a 0 on the diagonal of a factor",
    "Use jnp.linalg.lstsq or pinv, or add to the diagonal: a + 1e-6 * jnp.eye(len(a))",
)
_SAFE_QUOTIENT: Final = (
    "Say what it is to be there, with `where` twice: "
    "jnp.where(y != 0, x / jnp.where(y != 0, y, 1.0), 0.0)"
)
_NO_NUMBER: Final = Trap("0 / 0 is nan", _SAFE_QUOTIENT)
_DIVIDED: Final = Trap("a division by 0", _SAFE_QUOTIENT)


def known_trap(node: Node, path: Sequence[Node], origin: Callable[[Node], Node]) -> Trap | None:
    """The trap, if it is a known one.

    Args:
        node: the operation that made the bad value.
        path: the bad values from the result to that of the operation.
        origin: goes back from an infinity to the operation that made it.
    """
    trap = _of_backward_pass(node, origin) if node.backward else None
    trap = trap or _of_operation(node)
    if trap is None:
        for operand in filter(_infinite, node.operands):
            trap = _of_infinity(origin(operand))
            break
    if _hidden_by_where(path):
        cause, remedy = _WHERE
        trap = Trap(cause if trap is None else f"{trap.cause}, and {cause}", remedy)
    return trap


def _zero(node: Node) -> bool:
    return node.statistics is not None and bool(node.statistics.zeros)


def _infinite(node: Node) -> bool:
    return node.statistics is not None and bool(node.statistics.infinities)


def _half(node: Node) -> bool:
    return node.statistics is not None and node.statistics.type.startswith("f16")


def _below(node: Node, limit: float) -> bool:
    statistics = node.statistics
    if statistics is None:
        return False
    return bool(statistics.negative) or (statistics.least is not None and statistics.least < limit)


def _above(node: Node, limit: float) -> bool:
    statistics = node.statistics
    if statistics is None:
        return False
    return statistics.infinities > statistics.negative or (
        statistics.largest is not None and statistics.largest > limit
    )


def _maker(node: Node, through: frozenset[str] = _FORMS) -> Node:
    """The node in which a zero, or none at all, began."""
    return walk_up(node, lambda operand: operand.name != "a number", through)


def _of_operation(node: Node) -> Trap | None:
    """The trap of an operation by itself."""
    rule = _RULES.get(node.name)
    trap = rule(node, *node.operands) if rule is not None and node.operands else None
    if trap is None and _half(node) and _infinite(node) and not any(map(_infinite, node.operands)):
        return _HALF
    return trap


def _of_log(node: Node, x: Node) -> Trap | None:
    limit, least = (0.0, "1e-12") if node.name == "log" else (-1.0, "-1 + 1e-6")
    remedy = f"Keep the argument above: jnp.{node.name}(jnp.maximum(x, {least}))"
    if _below(x, limit):
        return Trap(f"{node.name} of a number below {limit:g} is nan", remedy)
    if _infinite(node):
        return Trap(f"{node.name} of {limit:g} is -inf", remedy)
    return None


def _of_root(node: Node, x: Node) -> Trap | None:
    if _below(x, 0.0):
        if _maker(x).name == "one_minus_square":
            return _ARC
        return Trap(
            f"{node.name} of a negative number is nan",
            "What should not be negative may be by rounding: jnp.sqrt(jnp.maximum(x, 0.0))",
        )
    return _root_cause(x) if node.name == "rsqrt" and _zero(x) else None


def _of_arc(node: Node, x: Node) -> Trap | None:
    if not _below(x, -1.0) and not _above(x, 1.0):
        return None
    name = {"asin": "arcsin", "acos": "arccos", "atanh": "arctanh"}[node.name]
    return Trap(
        f"{name} of a number outside [-1, 1] is nan, as one may be by rounding",
        f"Clip the argument: jnp.{name}(jnp.clip(x, -1.0, 1.0))",
    )


def _of_arccosh(node: Node, x: Node) -> Trap | None:
    remedy = "Use jnp.arccosh(jnp.maximum(x, 1.0))"
    return Trap("arccosh of a number below 1 is nan", remedy) if _below(x, 1.0) else None


def _of_exp(node: Node, x: Node) -> Trap | None:
    return _OVERFLOW if _infinite(node) else None


def _of_power(node: Node, x: Node, *_: Node) -> Trap | None:
    if _below(x, 0.0) and not _infinite(node):
        return Trap(
            "a negative number to a power that is no integer is nan",
            "Use jnp.abs(x) ** y, or write an integer power as a Python number, x ** 3",
        )
    if _zero(x) and _infinite(node):
        remedy = "Keep x above 0: jnp.maximum(x, 1e-12) ** y"
        return Trap("0 to a negative power is infinite", remedy)
    return None


def _of_difference(node: Node, x: Node, y: Node) -> Trap | None:
    if not _infinite(x) or not _infinite(y):
        return None
    made = walk_up(y, _infinite, _FORMS | {"max"})
    largest = made.name in ("reduce_max", "reduce_max_of_numbers")
    return _SOFTMAX if largest and _below(x, float("-inf")) else None


def _of_division(node: Node, top: Node, bottom: Node) -> Trap | None:
    if not _zero(bottom):
        return None
    above, below = _maker(top), _maker(bottom, _FORMS | {"mul", "select_n"})
    if above.name == "reduce_sum" and above.operands and _is_empty(above.operands[0]):
        return _EMPTY
    if above.name == "exp" and below.name == "reduce_sum":
        return _SOFTMAX
    under = below.operands[0] if below.name == "sqrt" and below.operands else None
    if below.name == "std" or (under is not None and _deviates(under)):
        return _ZERO_DEVIATION
    if below.name == "norm" or (under is not None and _is_sum_of_squares(under)):
        return _ZERO_NORM
    return _NO_NUMBER if _zero(top) else _DIVIDED


def _of_gather(node: Node, x: Node, *_: Node) -> Trap | None:
    return None if x.statistics is None or x.statistics.nans else _OUTSIDE


def _of_cholesky(node: Node, x: Node) -> Trap | None:
    return _NOT_POSITIVE


def _of_triangular(node: Node, matrix: Node, *_: Node) -> Trap | None:
    return _SINGULAR if _zero(matrix) else None


_RULES: Final[dict[str, Callable[..., Trap | None]]] = {
    "acos": _of_arc,
    "acosh": _of_arccosh,
    "asin": _of_arc,
    "atanh": _of_arc,
    "cholesky": _of_cholesky,
    "div": _of_division,
    "exp": _of_exp,
    "gather": _of_gather,
    "log": _of_log,
    "log1p": _of_log,
    "pow": _of_power,
    "integer_pow": _of_power,
    "rem": _of_division,
    "rsqrt": _of_root,
    "sqrt": _of_root,
    "sub": _of_difference,
    "triangular_solve": _of_triangular,
}


def _of_infinity(made: Node) -> Trap | None:
    """The trap that made an infinity."""
    divided = made.name == "div" and bool(made.operands) and _zero(made.operands[-1])
    if divided and (made.backward or _is_half(made.operands[0])):
        return _slope(made.operands[-1])
    return _of_operation(made)


def _of_backward_pass(node: Node, origin: Callable[[Node], Node]) -> Trap | None:
    """The trap of a derivative: a cotangent meets a slope that is infinite."""
    if node.name == "div" and node.operands and _zero(node.operands[-1]):
        return _slope(node.operands[-1])
    for operand in filter(_infinite, node.operands):
        made = origin(operand)
        if not made.operands:
            continue
        if made.name in ("div", "rsqrt") and _zero(made.operands[-1]):
            return _slope(made.operands[-1], made.name == "rsqrt")
        if made.name in ("pow", "integer_pow"):
            return _POWER
        if made.name == "log" and _zero(made.operands[0]) and "pow" in made.operands[0].users:
            return _POWER
    return None


def _slope(below: Node, root: bool = False) -> Trap:
    """The trap whose derivative divides by a value that is 0, or by its square root."""
    made = _maker(below)
    if made.name == "reduce_sum" and made.operands and _maker(made.operands[0]).name == "exp":
        return _SOFTMAX
    if "log" in below.users | made.users:
        return _LOG_SLOPE
    made = _maker(below, _FORMS | {"mul"})
    if made.name in ("sqrt", "rsqrt") and made.operands:
        return _root_cause(made.operands[0])
    if root:
        return _root_cause(below)
    return _POWER if "pow" in below.users else _QUOTIENT_SLOPE


def _root_cause(under: Node) -> Trap:
    """The trap of the derivative of a square root, by what that is taken of."""
    if _maker(under).name == "one_minus_square":
        return _ARC
    if _deviates(under):
        return _DEVIATION
    return _NORM if _is_sum_of_squares(under) else _ROOT


def _sum(node: Node) -> Node | None:
    """The sum that a value is, but for its form and a factor."""
    made = _maker(node, _FORMS | {"div", "mul", "max", "select_n"})
    return made if made.name in ("reduce_sum", "dot_general") and made.operands else None


def _square_in(total: Node) -> Node | None:
    """The operation that makes the squares of a sum."""
    made = _maker(total.operands[0])
    return made if made.name in _SQUARES and made.operands else None


def _is_sum_of_squares(node: Node) -> bool:
    total = _sum(node)
    if total is None:
        return False
    return total.name == "dot_general" or _square_in(total) is not None


def _deviates(node: Node) -> bool:
    """Whether it is a mean of squares of differences from a mean."""
    total = _sum(node)
    square = None if total is None or total.name != "reduce_sum" else _square_in(total)
    return square is not None and _maker(square.operands[0]).name == "sub"


def _is_half(node: Node) -> bool:
    """Whether it is the number 1/2, as in the derivative of a square root, 1 / (2 sqrt(x))."""
    statistics = node.statistics
    return statistics is not None and statistics.size == 1 and statistics.mean == 0.5


def _is_empty(node: Node) -> bool:
    return node.statistics is not None and not node.statistics.size


def _hidden_by_where(path: Sequence[Node]) -> bool:
    """Whether the value, or the cotangent that meets it, comes from a branch of a `where`."""
    backward = [node for node in path if node.backward]
    if backward and any("select_n" in node.users for node in path if not node.backward):
        return True
    return any(
        _is_chosen_zero(operand) for node in backward for operand in filter(_zero, node.operands)
    )


def _is_chosen_zero(node: Node) -> bool:
    made = walk_up(node, _zero, _FORMS | {"mul", "add_any", "reduce_sum"})
    return made.name == "select_n" and made.backward
