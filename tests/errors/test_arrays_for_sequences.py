"""Arrays of rank 0, whose class can be iterated over and which cannot, given for sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, tree_util

NUMBERS = np.arange(3.0)

SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "padding_config": lambda v: lax.pad(NUMBERS, 0.0, v),
    "branches": lambda v: lax.switch(0, v, 1.0),
    "allow_negative_indices": lambda v: lax.dynamic_slice(
        NUMBERS, (0,), (1,), allow_negative_indices=v
    ),
    "idxs": lambda v: lax.index_take(NUMBERS, v, (0,)),
    "dimensions": lambda v: lax.expand_dims(NUMBERS, v),
    "window_dimensions": lambda v: lax.reduce_window(NUMBERS, 0.0, lax.add, v, v, "SAME"),
    "donate_argnames": lambda v: dt.jit(lambda x: x, donate_argnames=v)(1.0),
    "nondiff_argnums": lambda v: dt.custom_jvp(lambda x: x, nondiff_argnums=v)(1.0),
    "leaves": lambda v: tree_util.tree_unflatten(tree_util.tree_structure((0, 0)), v),
    "treedef_tuple": tree_util.treedef_tuple,
    "all_leaves": tree_util.all_leaves,
    "keystr": tree_util.keystr,
    "fromiter": lambda v: jnp.fromiter(v, int),
    "arrays": jnp.concatenate,
}


@pytest.mark.parametrize("array", [np.asarray(1), jnp.asarray(1)], ids=["NumPy", "dovetail"])
@pytest.mark.parametrize("argument", SEQUENCES)
def test_the_error_names_the_argument(argument: str, array: Any) -> None:
    with pytest.raises(TypeError, match=argument):
        SEQUENCES[argument](array)


def test_what_is_read_from_an_iterator_are_numbers() -> None:
    with pytest.raises(TypeError, match="fromiter takes an iterable of numbers"):
        jnp.fromiter(jnp.ones((2, 3)), int)
