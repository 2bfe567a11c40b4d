"""`cond` and `switch`: the functions that choose between branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.typing import ArrayLike, PyTree
from dovetail._core.base.unspecified import UNSPECIFIED
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Literal,
    Var,
)
from dovetail._core.ops.control.bodies import (
    Body,
    named,
    operands_of,
    same_type,
    stage_body,
)
from dovetail._core.ops.control.branches import cond_p, with_leading
from dovetail._core.ops.elementwise.comparison import ne
from dovetail._core.ops.elementwise.extrema import clamp
from dovetail._core.trace.mutable_references import Ref, without_references
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import (
    derived_info,
    function_of,
    remembered,
)
from dovetail._core.transform.flattening import FlatFunction, check_callable, leaf_names
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    pass

_INDEX: Final = np.dtype(np.int32)
R = TypeVar("R")
S = TypeVar("S")


def _is_known(x: Any) -> bool:
    return not isinstance(x, Tracer) or x.concrete() is not None


def _value(x: Any) -> Any:
    return x.val if type(x) is Literal else x


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., R],
    false_fun: Callable[..., S],
    *operands: PyTree,
    operand: PyTree = UNSPECIFIED,
) -> R | S:
    """Call one of two functions.

    Both are traced and are part of the compiled program, but only one runs. If `vmap` maps over
    `pred`, both run, and the result is selected for each element.

    An older form is taken, too: ``cond(pred, true_operand, true_fun, false_operand, false_fun)``.

    Args:
        pred: a scalar bool, or a number, which is true unless it is zero.
        true_fun: called if it is true.
        false_fun: called if it is false. Both return trees of arrays with the same structure,
            shapes and dtypes; a Python number takes the dtype that the other function returns.
        operands: arguments for both, trees of arrays.
        operand: a single argument, by keyword, instead of `operands`.

    Returns:
        The result of the function.

    Raises:
        TypeError: `pred` is not a scalar number, or the functions return different types.

    Differs:
        A number of Python that a branch returns takes the dtype of what the other branch
        returns.

        >>> print(lax.cond(True, lambda x: 0, lambda x: x, jnp.ones(2, "bfloat16")[0]).dtype)
        bfloat16

        A result is weakly typed only if that of every branch is.

        >>> print(lax.cond(True, jnp.float32, lambda x: 1.0, 2).weak_type)
        False

    Example:
        >>> from dovetail import lax
        >>> float(lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 3.0))
        4.0
    """
    if operand is not UNSPECIFIED:
        if operands:
            raise TypeError("lax.cond: give operands by position or as operand=, not both")
        operands = (operand,)
    is_older = not callable(true_fun) and callable(false_fun) and len(operands) == 2
    if is_older and callable(operands[1]):
        return _cond_of_two_operands(pred, true_fun, false_fun, *operands)
    for function, name in ((true_fun, "true_fun"), (false_fun, "false_fun")):
        if not callable(function):
            raise TypeError(
                f"lax.cond takes functions as its second and third arguments; {name} is "
                f"{function!r:.80} of type {type(function).__name__}. Write "
                "lax.cond(pred, true_fun, false_fun, *operands)"
            )
    pred = as_operand(pred, "lax.cond", "pred")
    aval = aval_of(pred)
    if aval.shape:
        raise TypeError(
            f"lax.cond: pred must be a scalar, got {aval.short_name()}; combine its elements with "
            ".all() or .any(), or choose elements with dovetail.numpy.where"
        )
    kind = dtypes.kind_of(aval.dtype)
    if kind not in ("b", "i", "u", "f"):
        raise TypeError(f"lax.cond: pred must be true or false, got {aval.short_name()}")
    if config.disable_jit.value and _is_known(pred):
        return (true_fun if bool(_value(pred)) else false_fun)(*operands)
    if kind != "b":
        pred = ne(pred, literal_like(0, pred))
    index = convert_element_type(pred, _INDEX)
    functions = {"true_fun": true_fun, "false_fun": false_fun}
    return choose("lax.cond", index, functions, operands, last_first=True)


def _cond_of_two_operands(
    pred: ArrayLike,
    true_operand: PyTree,
    true_fun: Callable[[Any], R],
    false_operand: PyTree,
    false_fun: Callable[[Any], S],
) -> R | S:
    """The older form, in which each function has an operand of its own."""
    return cond(
        pred,
        lambda operands: true_fun(operands[0]),
        lambda operands: false_fun(operands[1]),
        (true_operand, false_operand),
    )


def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., R]],
    *operands: PyTree,
    operand: PyTree = UNSPECIFIED,
) -> R:
    """Call one of several functions.

    All are traced and are part of the compiled program, but only one runs. If `vmap` maps over
    `index`, all run, and the result is selected for each element.

    Args:
        index: a scalar integer, clamped to the valid range.
        branches: functions that return trees of arrays with the same structure, shapes and dtypes;
            a Python number takes the dtype that the others return.
        operands: arguments for all, trees of arrays.
        operand: a single argument, by keyword, instead of `operands`.

    Returns:
        The result of the function.

    Raises:
        TypeError: `index` is not a scalar integer, or the functions return different types.
        ValueError: there are no branches.

    Example:
        >>> from dovetail import lax
        >>> int(lax.switch(2, [lambda n: n, lambda n: n + 1, lambda n: n * n], 5))
        25
    """
    if operand is not UNSPECIFIED:
        if operands:
            raise TypeError("lax.switch: give operands by position or as operand=, not both")
        operands = (operand,)
    if not np.iterable(branches):
        raise TypeError(f"lax.switch: branches must be functions, got {branches!r:.80}")
    functions = tuple(branches)
    for i, function in enumerate(functions):
        check_callable(function, f"lax.switch, in branches[{i}],")
    if not functions:
        raise ValueError("lax.switch: branches holds no function")
    index = as_operand(index, "lax.switch", "index")
    aval = aval_of(index)
    if aval.shape or dtypes.kind_of(aval.dtype) not in ("i", "u"):
        raise TypeError(f"lax.switch: index must be a scalar integer, got {aval.short_name()}")
    if len(functions) == 1:
        return functions[0](*operands)
    low, high = (literal_like(n, index) for n in (0, len(functions) - 1))
    if config.disable_jit.value and _is_known(index):
        number = int(np.clip(int(_value(index)), 0, len(functions) - 1))
        return functions[number](*operands)
    index = convert_element_type(clamp(low, index, high), _INDEX)
    named_branches = {f"branches[{i}]": f for i, f in enumerate(functions)}
    return choose("lax.switch", index, named_branches, operands)


def choose(
    caller: str,
    index: Any,
    functions: Mapping[str, Callable[..., Any]],
    operands: tuple[Any, ...],
    *,
    last_first: bool = False,
    **platforms: Any,
) -> Any:
    """Run one of several user functions, which are traced one after another.

    Args:
        caller: the API function.
        index: the number of the function.
        functions: the functions, by their names for messages.
        operands: arguments for all.
        last_first: whether the numbers begin with the last function.
        **platforms: `branches_platforms`, if the platform chooses.
    """
    arguments = operands_of(without_references(operands), caller, "operands")
    bodies = {
        f"{argument} {named(function)}": stage_body(
            caller,
            FlatFunction(function, arguments.tree),
            arguments.avals,
            leaf_names(function, operands),
        )
        for argument, function in functions.items()
    }
    if last_first:
        bodies = dict(reversed(bodies.items()))
    changed = tuple(dict.fromkeys(ref for body in bodies.values() for ref in body.changed))
    bodies = {name: _changing(body, changed) for name, body in bodies.items()}
    closed = _alike(caller, bodies)
    captured = list({id(v): v for body in bodies.values() for v in body.captured}.values())
    number = {id(v): i for i, v in enumerate(captured)}
    leading = tuple(map(aval_of, captured))
    branches = [
        with_leading(c, tuple([number[id(v)] for v in body.captured]), leading) if captured else c
        for c, body in zip(closed, bodies.values(), strict=True)
    ]
    first = next(iter(bodies.values()))
    operands = (index, *captured, *first.held(), *arguments.leaves)
    outs = cond_p.rebind(branches, operands, platforms)
    return pytree.unflatten(first.out_tree, first.finish(outs))


def _changing(body: Body, refs: tuple[Ref, ...]) -> Body:
    """A branch that takes and returns the values of all references changed by any branch."""
    if body.changed == refs:
        return body
    jaxpr = body.closed.jaxpr
    first = len(body.captured)
    own = dict(
        zip(body.changed, zip(jaxpr.invars[first:], jaxpr.outvars, strict=False), strict=False)
    )
    for ref in refs:
        if ref not in own:
            passed = Var(ref.aval.inner_aval)
            own[ref] = (passed, passed)
    pairs = [own[ref] for ref in refs]
    count = len(body.changed)
    changing = jaxpr.replace(
        invars=[*jaxpr.invars[:first], *(v for v, _ in pairs), *jaxpr.invars[first + count :]],
        outvars=[*(v for _, v in pairs), *jaxpr.outvars[count:]],
        debug_info=None,
    )
    return body._replace(closed=interned(ClosedJaxpr(changing, [])), changed=refs)


def _alike(caller: str, bodies: Mapping[str, Body]) -> list[ClosedJaxpr]:
    """The branches, with weakly typed results converted to the dtypes of other branches.

    Args:
        caller: the API function.
        bodies: the branches by their names.

    Raises:
        TypeError: they return different types.
    """
    first_name, first = next(iter(bodies.items()))
    for name, body in bodies.items():
        if body.out_tree != first.out_tree:
            difference = pytree.structure_difference(
                first.out_tree, body.out_tree, first_name, name
            )
            raise TypeError(
                f"{caller} branch outputs must have the same pytree structure:\n{difference}"
            )
    wrong = []
    targets = []
    for i, same in enumerate(zip(*(body.out_avals for body in bodies.values()), strict=True)):
        which = next((n for n, a in enumerate(same) if not a.weak_type), 0)
        strong = same[which]
        targets.append(strong)
        for (name, body), aval in zip(bodies.items(), same, strict=True):
            if same_type(aval, strong) or (
                aval.weak_type
                and aval.shape == strong.shape
                and dtypes.result_type(aval, strong) == strong.dtype
            ):
                continue
            wrong.append((i, name, body, aval, list(bodies)[which], strong))
    if wrong:
        numbered = pytree.unflatten(first.out_tree, range(len(targets)))
        paths = [pytree.keystr(path) for path, _ in pytree.leaves_with_path(numbered)]
        lines = "".join(
            f"\n  result{paths[i]} of {name} is {aval.short_name()}"
            f"{body.made_at(i)},\n    that of {other} is {strong.short_name()}"
            f"{bodies[other].made_at(i)}"
            for i, name, body, aval, other, strong in wrong
        )
        raise TypeError(
            f"{caller}: branches must return the same shapes and dtypes:{lines}\nConvert the "
            "results, for example with .astype or .reshape"
        )
    wanted = (*(ref.dtype for ref in first.changed), *(t.dtype for t in targets))
    return [_converted(body.closed, wanted) for body in bodies.values()]


def _converted(closed: ClosedJaxpr, wanted: tuple[Any, ...]) -> ClosedJaxpr:
    if all(a.dtype == dtype for a, dtype in zip(closed.out_avals, wanted, strict=True)):
        return closed
    converted: ClosedJaxpr = _with_results(closed, wanted)
    return converted


@remembered
def _with_results(closed: ClosedJaxpr, wanted: tuple[Any, ...]) -> ClosedJaxpr:
    """A branch with its results converted to other dtypes."""

    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        return [
            o if aval_of(o).dtype == dtype else convert_element_type(o, dtype)
            for o, dtype in zip(outs, wanted, strict=True)
        ]

    return stage(function, closed.in_avals, derived_info(closed, "cond"))
