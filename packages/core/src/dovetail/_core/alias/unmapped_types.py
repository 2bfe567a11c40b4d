"""Types with rules of their own for `vmap`, which there are not here: such values are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from dovetail._core.api import vectorization
from dovetail._core.base import pytree

P = ParamSpec("P")
R = TypeVar("R")

_kinds: Final[set[type]] = set()


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Note that a type has rules of its own for `vmap`, which refuses its values from here on.

    Args:
        data_type: the type.
        spec_type: the type of what `in_axes` says for it.
        axis_size_type: the type of the size of its axis.
        to_elt: makes an element of a value.
        from_elt: makes a value of an element.
        make_iota: makes the positions along an axis.
    """
    _kinds.add(data_type)


def unregister_vmappable(data_type: type) -> None:
    """Let `vmap` treat a type as any other again."""
    _kinds.discard(data_type)


@wraps(vectorization.vmap)
def vmap(fun: Callable[P, R], *options: Any, **keywords: Any) -> Callable[P, R]:
    """`dovetail.vmap`, which refuses values of the types that are registered here."""
    mapped = vectorization.vmap(fun, *options, **keywords)

    @wraps(mapped)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _refuse("an argument", (args, kwargs))
        result = mapped(*args, **kwargs)
        _refuse("a result", result)
        return result

    return call if _kinds else mapped


def _refuse(what: str, tree: Any) -> None:
    for leaf in pytree.leaves(tree, is_leaf=lambda x: type(x) in _kinds):
        if type(leaf) in _kinds:
            raise TypeError(
                f"{what} of a function that vmap maps is a {type(leaf).__qualname__}, a type with "
                "rules of its own for vmap (register_vmappable), which dovetail does not have: "
                "map over its arrays"
            )
