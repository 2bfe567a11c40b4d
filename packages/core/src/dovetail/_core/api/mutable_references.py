"""The public functions for mutable references."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike, SupportsShape
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise.conversion import copy_p
from dovetail._core.trace.mutable_references import (
    AbstractRef,
    Index,
    Ref,
    RefState,
    TransformedRef,
)
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.flattening import abstract


def new_ref(
    init_val: ArrayLike, *, memory_space: None = None, kind: str | None = None, pin: bool = False
) -> Ref:
    """A mutable reference: an array that is read and written in place.

    A function that creates its references itself is pure and can be transformed like any other.
    With a reference from outside,

    - `jit`, `checkpoint`, `scan`, `while_loop`, `fori_loop`, `cond`, `switch` and `map` read and
      write in the order that Python would. Compiled functions update the memory in place. Among
      the `xs` of `scan` and `map` it is taken apart: each call gets a reference to its element;
    - `grad`, `vjp` and `jvp` treat it as constant: values written to it may depend on
      differentiated values only through `lax.stop_gradient`. As an argument of `vjp` it is
      differentiated, and its gradient is added to another reference;
    - `vmap` can only read it. To write to it, pass it as an argument with an axis: each element of
      the batch then has its own part;
    - functions with custom rules, and their rules, read and write it, also where they are traced.
      What only a rule uses is an argument then.

    Wherever a reference is an argument, a part of it can be one, ``ref.at[index]``, except where
    it would be taken apart.

    Args:
        init_val: the initial value, an array or number. It is never changed.
        memory_space: must be None, the memory of the device.
        kind: None or ``"no_grad_no_remat"``; all references here behave like the latter.
        pin: must be False.

    Returns:
        The reference; ``ref[...]`` is its value.

    Raises:
        TypeError: `init_val` is not an array.
        ValueError: `memory_space`, `kind` or `pin` has another value.

    Differs:
        A write that would round or cut its value is an error. Under `vmap` a reference from
        outside can be read, not written. Where a compiled function fails, the references that
        it uses keep their values. A backward rule cannot write to a reference that went through
        a `jit` inside of the gradient. What is read is never weakly typed.

        >>> r = dt.new_ref(jnp.zeros(2, int))
        >>> r[0] = 1.5
        Traceback (most recent call last):
            ...
        dovetail...DTypeError: the mutable reference Ref{i32[2]} made at ...

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> total = dt.new_ref(jnp.zeros(2))
        >>> @dt.jit
        ... def add(i, x):
        ...     total[i] += x
        >>> add(0, 1.5)
        >>> add(0, 2.0)
        >>> total
        Ref([3.5, 0. ], dtype=float32)
    """
    if isinstance(init_val, (Ref, TransformedRef)):
        raise TypeError(
            "new_ref: there are no references to references; give it the value, ref[...]"
        )
    value = as_operand(init_val, "new_ref", "init_val")
    if isinstance(value, np.ndarray):  # its owner may write to it
        value = copy_p.bind(value)
    aval = aval_of(value)
    return _made(
        convert_element_type(instantiate_zeros(value), aval.dtype), memory_space, kind, pin
    )


def empty_ref(ty: SupportsShape, memory_space: None = None, pin: bool = False) -> Ref:
    """A mutable reference whose initial value is unspecified.

    Args:
        ty: anything with a shape and a dtype, such as a `ShapeDtypeStruct`.
        memory_space: must be None, the memory of the device.
        pin: must be False.

    Raises:
        TypeError: `ty` has no shape and dtype.
        ValueError: `memory_space` or `pin` has another value.

    Example:
        >>> import dovetail as dt
        >>> dt.empty_ref(dt.ShapeDtypeStruct((3,), "float32")).shape
        (3,)
    """
    aval = abstract(ty)
    if isinstance(aval, AbstractRef):
        aval = aval.inner_aval
    return _made(instantiate_zeros(Zero(aval.strengthen())), memory_space, None, pin)


def _made(value: Any, memory_space: Any, kind: str | None, pin: bool) -> Ref:
    if memory_space is not None or pin:
        raise ValueError(
            "references are in the device's own memory: memory_space must be None and pin False; "
            "device_put moves the array that freeze(ref) returns"
        )
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"kind of a reference must be None or 'no_grad_no_remat', got {kind!r}")
    aval = aval_of(value).strengthen()
    return Ref(AbstractRef(aval, memory_space, kind), RefState(state.trace, value))


def freeze(ref: Ref) -> Array:
    """Return the final value of a mutable reference and make the reference invalid.

    Args:
        ref: the reference. Only the function that created it may freeze it.

    Returns:
        Its value.

    Raises:
        ValueError: it was created elsewhere, or is invalid.

    Example:
        >>> import dovetail as dt
        >>> ref = dt.new_ref(1.0)
        >>> ref[...] = 2.0
        >>> float(dt.freeze(ref))
        2.0
    """
    return _checked(ref, "freeze").end("frozen")


def free_ref(ref: Ref) -> None:
    """Free the memory of a mutable reference and make the reference invalid.

    Args:
        ref: the reference. Only the function that created it may free it.

    Raises:
        ValueError: it was created elsewhere, or is invalid.

    Example:
        >>> import dovetail as dt
        >>> ref = dt.new_ref(1.0)
        >>> dt.free_ref(ref)
    """
    _checked(ref, "free_ref").end("freed")


def _checked(ref: Any, function: str) -> Ref:
    if type(ref) is not Ref:
        raise TypeError(
            f"{function} takes a reference that new_ref has made, got {ref!r:.80} of type "
            f"{type(ref).__name__}"
        )
    return ref


def _part(ref: Any, function: str) -> Ref | TransformedRef:
    return ref if type(ref) is TransformedRef else _checked(ref, function)


def get(ref: Ref | TransformedRef, idx: Index = None) -> Any:
    """Read from a mutable reference: ``ref[idx]``.

    Args:
        ref: the reference, or a part of one, ``ref.at[i]``.
        idx: any index of an array; None for all of it.

    Raises:
        TypeError: `ref` is not a reference.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.ref.get(dt.new_ref(jnp.arange(5)), slice(1, 3))
        Array([1, 2], dtype=int32)
    """
    return _part(ref, "get").get(idx)


def set(ref: Ref | TransformedRef, idx: Index, value: Any) -> None:
    """Write to a mutable reference: ``ref[idx] = value``.

    Args:
        ref: the reference, or a part of one, ``ref.at[i]``.
        idx: any index of an array; None for all of it.
        value: the value to write. Its shape must broadcast to that of the part, and its dtype must
            convert without rounding.

    Raises:
        TypeError: `ref` is not a reference, or `value` has a dtype that the reference does not
            hold.
        ValueError: the reference may not be written to here.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> ref = dt.new_ref(jnp.zeros(3))
        >>> dt.ref.set(ref, 1, 10.0)
        >>> ref
        Ref([ 0., 10.,  0.], dtype=float32)
    """
    _part(ref, "set").set(idx, value)


def swap(ref: Ref | TransformedRef, idx: Index, value: Any, _function_name: str = "swap") -> Any:
    """Write to a mutable reference and return the old value.

    Args:
        ref: the reference, or a part of one, ``ref.at[i]``.
        idx: any index of an array; None for all of it.
        value: the value to write, as for `set`.

    Returns:
        The old value at `idx`.

    Raises:
        TypeError: `ref` is not a reference, or `value` has a dtype that the reference does not
            hold.
        ValueError: the reference may not be written to here.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> ref = dt.new_ref(jnp.arange(3))
        >>> print(dt.ref.swap(ref, 2, 10), ref)
        2 Ref([ 0,  1, 10], dtype=int32)
    """
    return _part(ref, _function_name).swap(idx, value)


def addupdate(ref: Ref | TransformedRef, idx: Index, x: Any) -> None:
    """Add to a mutable reference at an index; repeated indices accumulate.

    Args:
        ref: the reference, or a part of one, ``ref.at[i]``.
        idx: any index of an array; None for all of it.
        x: the value to add, as for `set`.

    Raises:
        TypeError: `ref` is not a reference, or `x` has a dtype that the reference does not hold.
        ValueError: the reference may not be written to here.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> ref = dt.new_ref(jnp.zeros(3))
        >>> dt.ref.addupdate(ref, jnp.array([0, 0, 1]), 1.0)
        >>> ref
        Ref([2., 1., 0.], dtype=float32)
    """
    _part(ref, "addupdate").addupdate(x, idx)
