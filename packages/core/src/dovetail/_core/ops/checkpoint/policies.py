"""Policies of checkpointed functions: which values to save for the derivative."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from dovetail._core.base.records import record
from dovetail._core.ops.checkpoint.naming import name_p
from dovetail._core.ops.contraction.dot_general import dot_general_p
from dovetail._core.ops.windows.convolution import conv_general_dilated_p
from dovetail._core.trace.primitive import Primitive


class SaveableType:
    """The answer that the results of an operation are saved, like True."""

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """The answer that the results of an operation are recomputed, like False."""

    def __repr__(self) -> str:
        return "Recompute"


#: The answer that the results of an operation are saved, like True.
Saveable: Final = SaveableType()
#: The answer that the results of an operation are recomputed, like False.
Recompute: Final = RecomputeType()


@record
class Offloadable:
    """The answer that the results of an operation are saved in another memory.

    Attributes:
        src: the kind of memory that the results are in, such as ``"device"``.
        dst: the kind of memory that they are saved in, such as ``"pinned_host"``.
    """

    src: str
    dst: str


Answer = bool | SaveableType | RecomputeType | Offloadable
#: (primitive, *operand avals, **parameters) -> what becomes of the results.
Policy = Callable[..., Any]


def answer_of(policy: Policy | None, primitive: Primitive, avals: Any, params: Any) -> Answer:
    """The answer of a policy about an operation: True, False or an `Offloadable`.

    Raises:
        TypeError: the answer is none of these.
    """
    if policy is None:
        return False
    answer = policy(primitive, *avals, **params)
    if answer is Saveable or answer is Recompute:
        return answer is Saveable
    if isinstance(answer, (bool, Offloadable)):
        return answer
    raise TypeError(
        f"a policy of checkpoint says what becomes of the results of {primitive.name}: it returns "
        "True or False, or Saveable, Recompute or Offloadable(src, dst) of dovetail.ad_checkpoint; "
        f"{policy_name(policy)} returned {answer!r:.80} of type {type(answer).__name__}"
    )


def policy_name(policy: Any) -> str:
    """The name of a policy, for messages."""
    return getattr(policy, "__qualname__", None) or repr(policy)


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save everything, as if the function were not checkpointed."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Recompute everything, as if there were no policy."""
    return False


def dots_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Save the results of contractions and convolutions, recompute everything else."""
    return prim is dot_general_p or prim is conv_general_dilated_p


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Save the results of contractions without batch dimensions: mostly those with weights."""
    return prim is dot_general_p and not any(params["dimension_numbers"][1])


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Save the results of contractions without batch dimensions in another memory.

    Args:
        offload_src: the kind of memory that they are in, such as ``"device"``.
        offload_dst: the kind of memory that they are saved in, such as ``"pinned_host"``.
    """
    answer = Offloadable(_memory(offload_src), _memory(offload_dst))

    def policy(prim: Primitive, *avals: Any, **params: Any) -> Answer:
        return answer if dots_with_no_batch_dims_saveable(prim, *avals, **params) else False

    return policy


@record
class AnythingExcept:
    """Saves all values except those with some names."""

    names: frozenset[str]

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        return not (prim is name_p and params["name"] in self.names)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save all values, named or not, except those with these names.

    Args:
        *names_not_to_save: names given by `checkpoint_name`. The value before naming is not saved
            either.
    """
    return AnythingExcept(_names(names_not_to_save, "save_anything_except_these_names"))


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save all named values except those with these names.

    Args:
        *names_not_to_save: names given by `checkpoint_name`.
    """
    excluded = _names(names_not_to_save, "save_any_names_but_these")

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in excluded

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save only the values with these names.

    Args:
        *names_which_can_be_saved: names given by `checkpoint_name`.
    """
    names = _names(names_which_can_be_saved, "save_only_these_names")

    def policy(prim: Primitive, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Any,
    names_which_can_be_offloaded: Any,
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save only the values with these names, some of them in another memory.

    Args:
        names_which_can_be_saved: names given by `checkpoint_name` to values that are saved where
            they are.
        names_which_can_be_offloaded: names of values that are saved in another memory.
        offload_src: the kind of memory that they are in, such as ``"device"``.
        offload_dst: the kind of memory that they are saved in, such as ``"pinned_host"``.

    Raises:
        ValueError: a name is in both lists.
    """
    caller = "save_and_offload_only_these_names"
    saved = _names(names_which_can_be_saved, caller)
    offloaded = _names(names_which_can_be_offloaded, caller)
    if saved & offloaded:
        raise ValueError(
            f"{caller}: a value is either kept where it is or offloaded, but "
            f"{sorted(saved & offloaded)} are in both lists; leave them out of one"
        )
    answer = Offloadable(_memory(offload_src), _memory(offload_dst))

    def policy(prim: Primitive, *_: Any, **params: Any) -> Answer:
        if prim is not name_p:
            return False
        return answer if params["name"] in offloaded else params["name"] in saved

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save the values that at least one of two policies saves.

    Args:
        policy_1: the first policy. If both save a value, one of them in another memory, it stays
            where it is.
        policy_2: the second policy.
    """
    for policy in (policy_1, policy_2):
        check_policy(policy, "save_from_both_policies")

    def both(prim: Primitive, *avals: Any, **params: Any) -> Answer:
        answers = [answer_of(p, prim, avals, params) for p in (policy_1, policy_2)]
        if True in answers:
            return True
        return next((a for a in answers if a), False)

    return both


def check_policy(policy: Any, caller: str) -> None:
    """Raise unless an object is a policy by which programs can be cached."""
    if not callable(policy):
        raise TypeError(
            f"{caller} takes a policy, a function of a primitive, the types of its operands and "
            f"its parameters, got {policy!r:.80} of type {type(policy).__name__}; pass one of "
            "those in dovetail.checkpoint_policies, such as dots_saveable"
        )
    try:
        hash(policy)
    except TypeError as error:
        raise TypeError(
            f"{caller}: a policy is a key of the programs that are made with it and needs a hash, "
            f"which {policy!r:.80} does not have ({error}); pass a function"
        ) from None


def _names(names: Any, caller: str) -> frozenset[str]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{caller} takes names that were given by checkpoint_name, which are strings; got "
            f"{names!r:.80}"
        )
    return frozenset(names)


_MEMORIES: Final = ("device", "pinned_host", "unpinned_host")


def _memory(kind: Any) -> str:
    if kind not in _MEMORIES:
        raise ValueError(
            f"offload_src and offload_dst are kinds of memory, one of {', '.join(_MEMORIES)}; got "
            f"{kind!r}"
        )
    return str(kind)


checkpoint_policies: Final = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
"""The policies that come with dovetail, for the argument `policy` of `checkpoint`."""
