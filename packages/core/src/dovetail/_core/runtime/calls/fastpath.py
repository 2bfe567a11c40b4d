"""The C++ path of compiled calls: its function objects, and the data it needs about a program.

A jaxlib `PjitFunction` looks up a call by the types, shardings and static values of its arguments.
On a miss it calls Python (``cache_miss``), which runs the program and returns the result together
with the data that C++ needs to serve later calls with that signature on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from dovetail._core.base import bindings, caches, config, native
from dovetail._core.base.bindings import _jax
from dovetail._core.base.pytree import dispatch_registry
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.runtime.arrays.array import Array, KeyArray
from dovetail._core.runtime.arrays.compiled_path import MOST_COPIED
from dovetail._core.runtime.arrays.memory import byte_count
from dovetail._core.runtime.arrays.results import result_tree
from dovetail._core.runtime.devices import process_ends
from dovetail._core.runtime.devices.sharding import default_sharding
from dovetail._core.runtime.programs.arguments import HostArgument, place_host_argument

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram

__all__ = ["FastpathData", "fastpath", "pjit_function"]


class FastpathData(NamedTuple):
    """The data that C++ needs to run a program for one signature; field names are jaxlib's."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[Any]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[Any]
    const_args: Sequence[Any]


# One LRU cache for all functions; a function's entries also go when the function does.
_cache: Final = _jax.PjitFunctionCache(8192)
caches.register(_cache.clear)
process_ends.on_end(_cache.clear)


#: Explains an error: called with it, the positional and the keyword arguments. It raises a clearer
#: one, or returns the result of the call in a tuple, or None.
Explain = Callable[[BaseException, tuple[Any, ...], dict[str, Any]], tuple[Any] | None]

#: The most arguments of which the compiled path knows which are static or donated.
_MOST_POSITIONS: Final = 64

# C++ keeps entries by the function. The compiled path gives it one object for each function.
_originals: Final[WeakKeyDictionary[Any, Any]] = WeakKeyDictionary()


def _original(function: Any, held: bool) -> Any:
    """What C++ calls in place of a function: calls it with arrays in place of their buffers."""
    if not held or type(function) is not FunctionType:
        return native.calls.Original(function)
    found = _originals.get(function)
    if found is None:
        found = _originals[function] = native.calls.Original(ref(function))
    return found


def does_all(donate_argnums: Sequence[int]) -> bool:
    """Whether the functions explain errors and mark donated arrays themselves."""
    return native.calls is not None and all(n < _MOST_POSITIONS for n in donate_argnums)


def _bits(numbers: Sequence[int]) -> int:
    return sum(1 << number for number in numbers if number < _MOST_POSITIONS)


def pjit_function(
    name: str,
    fun: Callable[..., Any],
    cache_miss: Callable[..., tuple[Any, FastpathData | None, bool]],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    donate_argnums: Sequence[int] = (),
    donate_argnames: Sequence[str] = (),
    explain: Explain | None = None,
    offer: Callable[..., Any] | None = None,
    offer_once: bool = False,
    held: bool = False,
    key: Hashable,
) -> Any:
    """Create a function whose calls C++ serves.

    Where the compiled path is used (`does_all`), it marks donated arrays, and errors are explained.

    Args:
        name: the function's name in profiles.
        fun: called instead while ``disable_jit`` is on. Cache entries live as long as it does.
        cache_miss: called with the arguments of a call that C++ cannot serve; returns the result,
            data for the fast path or None, and whether C++ should cache nothing. Before it raises,
            it must call this function's ``_clear_cache()``; otherwise calls with that signature
            never become fast.
        static_argnums: indices of the arguments that are compared by value.
        static_argnames: names of such keyword arguments.
        donate_argnums: indices of the arguments whose memory the program takes.
        donate_argnames: names of such keyword arguments.
        explain: explains errors of calls.
        offer: called with positional arguments one of which holds a value, for a result that needs
            no program, or None. Only the compiled path calls it.
        offer_once: whether it is called with any arguments, but only before a first program.
        held: whether the caller holds ``fun``, which then shares entries with others of this key.
        key: distinguishes functions that share ``fun``; not None.

    Returns:
        A function object, jaxlib's or one around it: it has a ``__dict__``, binds as a method, and
        supports weak references. In the child of a fork, a function of Python in its place: a lock
        of C++ may be held there for ever, and nothing is computed anyway.
    """
    if process_ends.in_child():
        return _uncached(cache_miss)
    compiled = native.calls is not None
    function = _jax.pjit(
        name,
        _original(fun, held) if compiled else fun,
        native.calls.Original(cache_miss) if compiled else cache_miss,
        list(static_argnums),
        list(static_argnames),
        key,
        dispatch_registry,
        place_host_argument,
        _cache,
    )
    if not compiled:
        return function
    donates = donate_argnums or donate_argnames
    return native.calls.Function(
        function,
        explain=explain,
        offer=offer,
        offer_once=offer_once,
        statics=_bits(static_argnums),
        static_names=tuple(static_argnames),
        donated=_bits(donate_argnums),
        donated_names=tuple(donate_argnames),
        action=f"donated to {name}" if donates and does_all(donate_argnums) else None,
    )


def _uncached(cache_miss: Callable[..., tuple[Any, FastpathData | None, bool]]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return cache_miss(*args, **kwargs)[0]

    call._clear_cache = lambda: None  # type: ignore[attr-defined]
    return call


_float64_aval: Final = make_aval((), np.dtype(np.float64))


def _cpp_sees_our_x64() -> bool:
    """Whether C++ treats 64-bit scalars and NumPy arrays as the option ``enable_x64`` says.

    C++ reads a process-wide switch, which jax takes over once it is imported.
    """
    if not bindings.jax_owns_jit_state():
        return True
    sharding = default_sharding()
    # Without the argument enable_x64, C++ reads its switch.
    probe = _jax.batched_device_put(_float64_aval, sharding, [1.0], sharding._device_list)
    return bool((probe.on_device_size_in_bytes() == 8) == config.enable_x64.value)


def _takes_or_makes_keys(leaves: Sequence[Any], out_avals: Sequence[Any]) -> bool:
    from dovetail._core.transform.key_reuse import holds_keys  # deferred: an option asks for it

    return any(type(leaf) is KeyArray for leaf in leaves) or any(map(holds_keys, out_avals))


def fastpath(
    program: LoadedProgram,
    leaves: Sequence[Any],
    result: Any,
    committed: bool = False,
    describe: Callable[[int], str] | None = None,
    explains: bool = False,
) -> FastpathData | None:
    """The data with which C++ serves later calls of this signature; None if it must not.

    Args:
        program: the program that was run.
        leaves: the flat dynamic arguments, in C++'s flattening order: positional ones, then
            keyword arguments by name.
        result: the result of the call: a pytree of arrays.
        committed: whether results are committed to the device.
        describe: returns a phrase for an argument by its index, for messages of later calls.
        explains: whether the caller of C++ raises what a callback has raised, of which C++ gives
            only the text.
    """
    if process_ends.ended or program.effects or not program.returns_arrays:
        return None
    if program.calls_host and (program.watched or not explains):
        return None
    if program.sharding._plugin_client is not None:
        return None
    if program.exchanges:
        return None  # C++ would not say which process has died
    if config.debug_nans.value or config.debug_infs.value:
        return None
    if program.large:
        return None  # memory may not suffice, and C++ would not say for what
    if config.debug_key_reuse.value and _takes_or_makes_keys(leaves, program.out_avals):
        return None  # C++ would not follow the keys
    if config.transfer_guard_device_to_device.value is not None and any(
        type(leaf) in (Array, KeyArray) and leaf.sharding is not place
        for leaf, place in zip(leaves, program.in_shardings, strict=True)
    ):
        return None  # C++ would move it without a look at the guard
    layouts: list[Any] = [None] * len(program.constants)
    places: list[Any] = [program.sharding._replicated] * len(program.constants)
    on_host, several = False, len(program.sharding._device_list) > 1
    copies = native.calls is not None and not several and native.calls.copies()
    for number, (leaf, keep) in enumerate(zip(leaves, program.kept, strict=True)):
        kind = type(leaf)
        layout = None
        place = program.in_shardings[number]
        if kind is not Array and kind is not KeyArray:
            on_host = True
            # C++ transfers Python scalars to one device alone.
            if isinstance(leaf, _NUMPY_TYPES) or (several and isinstance(leaf, _PYTHON_SCALARS)):
                aval = aval_of(leaf)
                if not copies or byte_count(aval) > MOST_COPIED:
                    layout = HostArgument(aval, describe, number)
            elif not isinstance(leaf, _PYTHON_SCALARS):
                return None
        elif several and keep and leaf._buffer._sharding is not place:
            return None  # C++ would ask Python, which knows nothing of it
        if keep:
            layouts.append(layout)
            places.append(place)
    if on_host and not _cpp_sees_our_x64():
        return None
    count = len(program.out_avals)
    return FastpathData(
        xla_executable=program.executable,
        out_pytree_def=result_tree(result),
        in_shardings=places,
        out_shardings=program.out_shardings,
        out_avals=program.physical_out_avals,
        out_committed=[committed] * count,
        kept_var_bitvec=[True] * len(program.constants) + list(program.kept),
        in_device_local_layouts=layouts,
        const_args=program.constants,
    )


# C++ transfers Python scalars, which is faster. It must not transfer NumPy values: it would
# misread arrays in another byte order, silently truncate 64-bit integers, and share memory with
# the caller.
_NUMPY_TYPES: Final = (np.ndarray, np.generic)
_PYTHON_SCALARS: Final = (bool, int, float, complex)
