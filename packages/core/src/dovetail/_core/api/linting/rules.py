"""The rules of `lint`, and those of them that look at one equation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.large_constants import large_constants
from dovetail._core.api.linting.reused_keys import reused_keys
from dovetail._core.api.linting.sites import Program
from dovetail._core.api.linting.unrolled_loops import unrolled_loops
from dovetail._core.api.linting.unused_results import unused_results
from dovetail._core.api.linting.widening import widenings
from dovetail._core.ops.callbacks.debugging import DebugCallback, DebugPrint
from dovetail._core.ops.callbacks.values import ValueCallback
from dovetail._core.ops.control import conditionals
from dovetail._core.ops.control.branches import ALL_RUN

__all__ = ["RULES"]

_CALLBACKS: Final = (DebugCallback, DebugPrint, ValueCallback)


def vmapped_conditionals(program: Program) -> Iterator[Finding]:
    """Conditionals all branches of which run, since `vmap` maps over the predicate."""
    for site in program.sites():
        for note in site.notes:
            if note != ALL_RUN or site.called_file() != conditionals.__file__:
                continue
            where, function = where_is(site.frame())
            counts = " and ".join(map(str, note.facts))
            yield Finding(
                "vmapped-cond",
                where,
                function,
                "dovetail.vmap maps over what lax.cond or lax.switch decides by, so that all "
                "branches run for all elements, and the result is selected: they have "
                f"{counts} operations",
                "Decide once for the whole batch (in_axes=None for it, or .any() or .all() outside "
                "of vmap), or loop over elements with lax.map; if branches are cheap, "
                "dovetail.numpy.where says the same",
            )


def host_calls_in_loops(program: Program) -> Iterator[Finding]:
    """Calls of Python in the body of a compiled loop, which waits for each of them."""
    for site in program.sites():
        if not site.body.in_loop or not isinstance(site.eqn.primitive, _CALLBACKS):
            continue
        if not site.is_callback():  # but a bar that shows how far the loop is
            continue
        where, function = where_is(site.frame())
        yield Finding(
            "host-in-loop",
            where,
            function,
            f"each turn of a compiled loop calls Python here ({site.eqn.primitive.name}), and the "
            "device waits for it",
            "Return what is wanted from the loop, as a stacked result of lax.scan, and look at it "
            "after the loop; or call Python in few turns, with lax.cond",
        )


RULES: Final[tuple[Callable[[Program], Iterator[Finding]], ...]] = (
    vmapped_conditionals,
    unrolled_loops,
    large_constants,
    unused_results,
    host_calls_in_loops,
    widenings,
    reused_keys,
)
