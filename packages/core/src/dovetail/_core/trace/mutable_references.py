"""Mutable references: arrays that are read and written in place.

Jaxprs do not record them. A reference holds its value at this point of the program, and each write
computes the next value. A staged function takes the values of the outer references that it uses as
arguments, and returns those that it has changed. So jaxprs contain only values, and every
transformation works on functions that use references inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import describe
from dovetail._core.base.tracebacks import boundary, bounded
from dovetail._core.ir.avals import ShapedArray, aval_of, forbid_as_array
from dovetail._core.ir.index_slices import Slice
from dovetail._core.trace.state import Trace, state
from dovetail._core.trace.tracer import OPERATORS, Tracer

#: Anything that indexes an array, or None for all of it.
Index = Any


class _OfArray:
    """Base of classes that have the shape and dtype of `inner_aval`, an array's aval."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        shape: tuple[int, ...] = self.inner_aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ndim: int = self.inner_aval.ndim
        return ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self.inner_aval.size
        return size

    if TYPE_CHECKING:
        inner_aval: Any


class AbstractRef(_OfArray):
    """The type of a mutable reference, given by the type of its value.

    Args:
        inner_aval: shape and dtype of the value.
        memory_space: the memory that holds it; None for the device's own.
        kind: what may be done with it; see `new_ref`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.ref import new_ref
        >>> new_ref(jnp.zeros(3)).aval
        Ref{f32[3]}
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind

    @property
    def weak_type(self) -> bool:
        """False: a reference has one fixed dtype."""
        return False

    def _key(self) -> tuple[Any, ...]:
        return (self.inner_aval, self.memory_space, self.kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def short_name(self) -> str:
        """The form used in messages."""
        return f"Ref{{{self.inner_aval.short_name()}}}"

    def __repr__(self) -> str:
        return self.short_name()


class RefState:
    """The state of a mutable reference within one trace.

    Attributes:
        trace: the trace in which the value can be used.
        lent: whether the reference stands for one from outside the trace.
        value: the current value.
        changed: whether it has been written to in this trace.
        shared: whether the array `value` may also be held elsewhere.
    """

    __slots__ = ("changed", "lent", "shared", "trace", "value")

    def __init__(self, trace: Trace, value: Any, *, lent: bool = False) -> None:
        self.trace = trace
        self.lent = lent
        self.value = value
        self.changed = False
        self.shared = True


@bounded
class RefView(_OfArray):
    """Something read and written in place by index: a reference, or a part of one."""

    __slots__ = ()

    if TYPE_CHECKING:

        def get(self, index: Index = None) -> Any:
            """The array at `index`, or all of it if None."""

        def write(self, value: Any) -> None:
            """Replace all of it with `value`, which has its type."""

        def described(self) -> str:
            """A phrase that names it."""

        def _current(self) -> Any:
            """All of it, for a write."""

    def set(self, index: Index, value: Any) -> None:
        """Write `value` at `index`. See `dovetail.ref.set`."""
        self.write(self._old(index).set(self._typed(value)))

    def swap(self, index: Index, value: Any) -> Any:
        """Write `value` at `index`, and return what was there. See `dovetail.ref.swap`."""
        before = self.get(index)
        self.set(index, value)
        return before

    def addupdate(self, value: Any, index: Index = ...) -> None:
        """Add `value` at `index`. See `dovetail.ref.addupdate`."""
        self.write(self._old(index).add(self._typed(value)))

    def _old(self, index: Index) -> Any:
        return self._current().at[... if index is None else index]

    def _typed(self, value: Any) -> Any:
        if isinstance(value, RefView):
            raise TypeError(
                f"{value.described()} cannot be written to a reference: write its value, ref[...]"
            )
        dtype = self.dtype
        aval = aval_of(value)
        if aval.dtype != dtype and (
            dtypes.is_extended(dtype)
            or dtypes.is_extended(aval.dtype)
            or dtypes.result_type(self.inner_aval, aval) != dtype
        ):
            raise DTypeError(
                f"{self.described()} holds {dtype}, and the value written to it is "
                f"{aval.short_name()}, which would be rounded or cut; convert it with "
                f".astype({str(dtype)!r})"
            )
        return value

    def __getitem__(self, index: Index) -> Any:
        return self.get(index)

    def __setitem__(self, index: Index, value: Any) -> None:
        self.set(index, value)

    @property
    def at(self) -> _Parts:
        """Parts of it: ``ref.at[i][j]`` is ``ref[i][j]``, and can be written to."""
        return _Parts(self)


@bounded
class Ref(RefView):
    """A mutable reference: an array that is read and written in place. `new_ref` makes one.

    ``ref[index]`` reads the array that is there now, and ``ref[index] = value`` writes;
    ``ref[...]`` is all of it. Indices work as for arrays. To compute, read it first: functions of
    arrays do not take references.

    Compiled functions, branches and loop bodies may use references from outside, or take them as
    arguments. Reads and writes happen in program order. Such functions cannot return references,
    or take the same reference twice.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> count = dt.new_ref(0)
        >>> @dt.jit
        ... def step(x):
        ...     count[...] += 1
        ...     return 2 * x
        >>> print(step(1.0), step(2.0), count)
        2.0 4.0 Ref(2, dtype=int32)
    """

    __slots__ = ("__weakref__", "_end", "_holder", "_ref_state", "_traceback", "aval")

    def __init__(self, aval: AbstractRef, ref_state: RefState) -> None:
        self.aval = aval
        self._ref_state: RefState | None = ref_state
        self._traceback = get_traceback()
        self._end = ""
        self._holder = ""

    @classmethod
    def lent(cls, value: Any) -> Ref:
        """The reference that a function gets, in the current trace, for one passed to it."""
        return cls(
            AbstractRef(aval_of(value).strengthen()), RefState(state.trace, value, lent=True)
        )

    @property
    def ref_state(self) -> RefState:
        """The state in the trace in which the reference was made.

        Raises:
            ValueError: the reference is no longer valid.
        """
        if self._ref_state is None:
            raise ValueError(f"{self.described()} is not valid any more: it was {self._end}")
        if self._holder:
            raise ValueError(
                f"{self.described()} was passed to {self._holder}, which may not use it by another "
                "name than that of its argument: the order of reads and writes would be unknown. "
                "Use the argument"
            )
        return self._ref_state

    def held(self, holder: str) -> Restoring[None]:
        """Forbid using the reference while another one stands for it.

        Args:
            holder: the function that it was passed to.
        """
        hold = partial(setattr, self, "_holder")
        return Restoring(lambda: "", partial(hold, holder), hold)

    def described(self) -> str:
        """A phrase that names the reference."""
        return f"the mutable reference {self.aval!r} made at {describe(self._traceback)}"

    def end(self, how: str) -> Any:
        """Make the reference invalid, and return its last value.

        Args:
            how: a verb for messages.

        Raises:
            ValueError: it is not valid, or was made in a function other than the one running now.
        """
        ref_state = self.ref_state
        if ref_state.lent or ref_state.trace is not state.trace:
            raise ValueError(
                f"{self.described()} cannot be {how} here: only the function that has made a "
                "reference may do so, outside of the functions that are transformed in it. Read "
                "it with ref[...] instead"
            )
        self._ref_state = None
        self._end = f"{how} at {describe()}"
        return ref_state.value

    def here(self, writing: bool = False) -> RefState:
        """The state for code that runs now.

        Args:
            writing: whether it is about to be changed.

        Raises:
            ValueError: the reference is no longer valid, or may not be used here.
            UnexpectedTracerError: it belongs to a transformation that has ended.
        """
        return state.trace.cell_of(self, writing)

    def write(self, value: Any) -> None:
        """Replace the whole value with `value`, which has its type.

        Raises:
            ValueError: `value` comes from a transformation inside the one that made the reference.
        """
        ref_state = self.here(writing=True)
        if isinstance(value, Tracer) and not ref_state.trace.is_inside(value._trace):
            raise ValueError(
                f"{self.described()} was made outside of the transformation in which the value "
                f"was computed that is written to it: {value.origin()}. Write "
                "lax.stop_gradient(value), or return the value (has_aux=True of grad and vjp), or "
                "make the reference inside"
            )
        ref_state.value, ref_state.changed, ref_state.shared = value, True, True

    def get(self, index: Index = None) -> Any:
        """The array at `index`, or all of it if None. See `dovetail.ref.get`."""
        ref_state = self.here()
        value = ref_state.value
        if _is_all(index):
            ref_state.shared = True
            return value
        part = value[index]
        # Indexing everything gives the array itself, or another one that shares its memory.
        ref_state.shared = ref_state.shared or aval_of(part).shape == aval_of(value).shape
        return part

    def _current(self) -> Any:
        return self.here(writing=True).value

    @property
    def inner_aval(self) -> ShapedArray:
        """Shape and dtype of the value."""
        aval: ShapedArray = self.aval.inner_aval
        return aval

    @property
    def sharding(self) -> Any:
        """The sharding of the value."""
        return self.here().value.sharding

    @property
    def committed(self) -> bool:
        """Whether the value is committed to its place."""
        committed: bool = self.here().value.committed
        return committed

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value."""
        pointer: int = self.here().value.unsafe_buffer_pointer()
        return pointer

    def __len__(self) -> int:
        return len(self.aval.inner_aval)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> NoReturn:
        _refuse(self, "bool")

    def __int__(self) -> NoReturn:
        _refuse(self, "int")

    def __float__(self) -> NoReturn:
        _refuse(self, "float")

    def __complex__(self) -> NoReturn:
        _refuse(self, "complex")

    def __index__(self) -> NoReturn:
        _refuse(self, "a Python index")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(self, "a function of NumPy")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.described()} cannot be pickled or copied: pickle its value")

    def __repr__(self) -> str:
        if self._ref_state is None:
            return f"Ref(<{self._end}>)"
        value = self._ref_state.value
        shown = "" if isinstance(value, Tracer) else repr(value)
        if not shown.startswith("Array("):
            return repr(self.aval)
        return f"Ref{shown[len('Array') :]}".replace("\n  ", "\n")  # keeps the lines aligned


@bounded
class TransformedRef(RefView):
    """A part of a mutable reference, made by ``ref.at[index]``."""

    __slots__ = ("index", "ref")

    def __init__(self, ref: RefView, index: Index) -> None:
        self.ref = ref
        self.index = index

    @property
    def inner_aval(self) -> ShapedArray:
        """Shape and dtype of the part."""
        aval: ShapedArray = aval_of(self._current())
        return aval

    def get(self, index: Index = None) -> Any:
        """The array at `index` of the part."""
        part = self._current()
        return part if _is_all(index) else part[index]

    def write(self, value: Any) -> None:
        """Replace all of the part with `value`, which has its type."""
        self.ref.set(self.index, value)

    def described(self) -> str:
        """A phrase that names the part."""
        return f"a part of {self.ref.described()}"

    def _current(self) -> Any:
        return self.ref.get(self.index)

    def __repr__(self) -> str:
        return f"{self.ref!r}.at[{self.index!r}]"


#: In the key of an index, what stands for a number or an array.
_CHILD: Final = ()


def _flatten_index(index: Index) -> tuple[list[Any], tuple[Any, ...]]:
    """The numbers and arrays of an index, and all else, as a key."""
    children: list[Any] = []

    def key(part: Any, *, in_slice: bool = False) -> Any:
        if type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            return (slice, *(key(bound, in_slice=True) for bound in bounds))
        if type(part) is Slice:
            children.append(part.start)
            return (Slice, part.size, part.stride)
        if part is None or part is ... or type(part) is bool or (in_slice and type(part) is int):
            return (part,)
        children.append(part)
        return _CHILD

    items = index if isinstance(index, tuple) else (index,)
    return children, (isinstance(index, tuple), *map(key, items))


def _unflatten_index(key: tuple[Any, ...], children: Sequence[Any]) -> Index:
    """The index that `_flatten_index` has taken apart."""
    remaining = iter(children)

    def part(key: Any) -> Any:
        if not key:
            return next(remaining)
        if key[0] is Slice:
            return Slice(next(remaining), *key[1:])
        return key[0] if len(key) == 1 else slice(*map(part, key[1:]))

    items = tuple(map(part, key[1:]))
    return items if key[0] else items[0]


def _flatten_part(view: TransformedRef) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
    children, key = _flatten_index(view.index)
    return (
        (pytree.GetAttrKey("ref"), view.ref),
        (pytree.GetAttrKey("index"), children),
    ), key


def _unflatten_part(key: tuple[Any, ...], children: Sequence[Any]) -> TransformedRef:
    return TransformedRef(children[0], _unflatten_index(key, children[1]))


# The reference is a leaf, and so are the numbers and arrays of the index.
pytree.register_pytree_with_keys(TransformedRef, _flatten_part, _unflatten_part)


def refuse_parts(tree: Any, function: str) -> None:
    """Raise TypeError if a tree holds parts of references, whose leaves are no elements of them."""
    for leaf in pytree.leaves(tree, is_leaf=lambda node: type(node) is TransformedRef):
        if type(leaf) is TransformedRef:
            raise TypeError(
                f"{function} cannot go through {leaf.described()} element by element: pass the "
                "whole reference, or read the part, ref.at[index][...]"
            )


@bounded
class _Parts:
    """The value of `ref.at`: an object to index."""

    __slots__ = ("ref",)

    def __init__(self, ref: RefView) -> None:
        self.ref = ref

    def __getitem__(self, index: Index) -> TransformedRef:
        return TransformedRef(self.ref, index)


def _is_all(index: Index) -> bool:
    if isinstance(index, tuple):
        return not index or (len(index) == 1 and index[0] is ...)
    return index is None or index is ...


_ADVICE: Final = "read its value first, with ref[...]"


def _refuse(ref: Ref, what: str) -> NoReturn:
    raise TypeError(f"{what} takes an array, and got {ref.described()}; {_ADVICE}")


def _refused_operator(name: str) -> Any:
    @boundary
    def operator(self: Ref, *others: Any) -> NoReturn:
        _refuse(self, f"the operator {name}")

    return operator


for _name in OPERATORS:
    if _name not in ("__getitem__", "__eq__", "__ne__"):
        setattr(Ref, _name, _refused_operator(_name))

forbid_as_array(Ref, lambda ref: f"{ref.described()}; {_ADVICE}")


def last_values(ref_states: Iterable[RefState]) -> list[Any]:
    """The last values of the states that changed; afterwards no state holds a value."""
    values = []
    for ref_state in ref_states:
        if ref_state.changed:
            values.append(ref_state.value)
        ref_state.value = None
    return values


class Captured:
    """The outer mutable references that a function uses while it is staged.

    Attributes:
        ref_states: the state of each within the function, in order of first use.
    """

    def __init__(self) -> None:
        self.ref_states: dict[Ref, RefState] = {}

    def results(self) -> list[Any]:
        """The last values of the references that changed; afterwards no state holds a value."""
        return last_values(self.ref_states.values())

    def parted(self) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
        """The references that are only read, and those that are changed."""
        items = self.ref_states.items()
        return (
            tuple([ref for ref, ref_state in items if not ref_state.changed]),
            tuple([ref for ref, ref_state in items if ref_state.changed]),
        )


class _Held:
    """A reference as part of a tree's structure."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


pytree.register_pytree_node(_Held, lambda held: ((), held.ref), lambda ref, _: ref)


def without_references(tree: Any) -> Any:
    """A tree with references moved from its leaves into its structure.

    Flattening it yields no references as leaves; unflattening puts them back in their places.
    """
    leaves = pytree.leaves(tree)
    if not any(type(leaf) is Ref for leaf in leaves):
        return tree
    return pytree.map(lambda leaf: _Held(leaf) if type(leaf) is Ref else leaf, tree)
