"""Finds random keys that are used twice, for the option ``debug_key_reuse``.

A program is followed once with a number for each key in place of the key, which tells apart keys
that differ and finds a key again wherever it was moved. Positions that are known are followed too,
so that `keys[i]` is one key. What cannot be known, such as the element at a traced position, counts
as a key that nobody else holds: a reuse may be missed. What is reported is one. Programs that all
run though one of them counts may use the same keys, and so may what is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import KeyReuseError
from dovetail._core.base.source import UserFrame, user_frames
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import remembered
from dovetail._core.transform.stage import stage

_MAX_POSITIONS: Final = 64
_MAX_FRAMES: Final = 20
_MARK: Final = 0x6B657973  # tells a followed key from numbers that a primitive fills in


Stacks: TypeAlias = tuple[Any, ...]
"""Where a key is used: the stack of an equation, those of the calls around it, that of the user."""


class KeyIdentity:
    """One random key, wherever copies of it are.

    Attributes:
        use: the stacks of what used it, innermost first; None as long as nothing did.
        alternative_to: the key that it stands for in one of several programs that all run.
    """

    __slots__ = ("alternative_to", "use")

    def __init__(self, alternative_to: KeyIdentity | None = None) -> None:
        self.use: Stacks | None = None if alternative_to is None else alternative_to.use
        self.alternative_to = alternative_to


def new_identities(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Identities of new keys, as an array of that shape."""
    identities = np.empty(shape, object)
    identities.reshape(-1)[:] = [KeyIdentity() for _ in range(identities.size)]
    return identities


class KeyTracker:
    """Follows keys through the equations of one call.

    In place of each array there is an array of numbers if it holds keys, its NumPy value if it
    holds few integers and is known, or else None.

    Args:
        read: what stands in place of a value that is no part of the program: a constant.
        stack: the stack of the call.
    """

    def __init__(self, read: Callable[[KeyTracker, Any], Any], stack: Any) -> None:
        self._read = read
        self._stack = stack
        self._identities: list[KeyIdentity] = []
        self._numbers: dict[KeyIdentity, int] = {}
        self._uses: dict[int, Stacks] = {}
        self._repeated: set[int] = set()
        self._where: list[Any] = []
        self._in_later_turn = False
        self._in_repetition = False

    # Numbers and identities

    def numbers_of(self, identities: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The numbers of keys, which stand for them in this call."""
        numbers = np.empty(identities.shape, np.int64)
        for place, identity in np.ndenumerate(identities):
            numbers[place] = self._number(identity)
        return numbers

    def _number(self, identity: KeyIdentity) -> int:
        number = self._numbers.setdefault(identity, len(self._identities))
        if number == len(self._identities):
            self._identities.append(identity)
        return number

    def identities_of(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The keys that numbers stand for."""
        identities = np.empty(numbers.shape, object)
        identities.reshape(-1)[:] = [self._identities[number] for number in numbers.flat]
        return identities

    def alternatives(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Keys for one of several programs that all run, in place of those that it would use."""
        own = {}
        for number in set(numbers.flat):
            own[number] = self._number(KeyIdentity(self._identities[number]))
            if number in self._uses:
                self._uses[own[number]] = self._uses[number]
        return np.array([own[number] for number in numbers.flat], np.int64).reshape(numbers.shape)

    def commit(self) -> None:
        """Remember the uses for later calls, after this one has succeeded."""
        for number, stacks in self._uses.items():
            identity = self._identities[number]
            identity.use = identity.use or stacks

    # Equations

    def follow(self, closed: ClosedJaxpr, operands: Sequence[Any], known: bool = False) -> Any:
        """What stands in place of the results of a program.

        Args:
            closed: the program.
            operands: what stands in place of its arguments.
            known: whether to follow integers even if there are no keys in the program.

        Raises:
            KeyReuseError: a key is used twice.
        """
        jaxpr = closed.jaxpr
        plan = _plan(closed, known)
        values: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
        for var, constant in zip(jaxpr.constvars, closed.consts, strict=True):
            if var in plan.wanted:
                values[var] = self._read(self, constant)

        def read(atom: Any) -> Any:
            return np.asarray(atom.val) if type(atom) is Literal else values.get(atom)

        for eqn in plan.equations:
            self._where.append(eqn.traceback)
            avals = [v.aval for v in eqn.outvars]
            given = [v.aval for v in eqn.invars]
            outs = self.apply(eqn.primitive, list(map(read, eqn.invars)), eqn.params, given, avals)
            values.update(zip(eqn.outvars, outs, strict=True))
            self._where.pop()
        return [
            self._settled(read(atom), atom.aval) if holds_keys(atom.aval) else read(atom)
            for atom in jaxpr.outvars
        ]

    def apply(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        params: Any,
        avals_in: Sequence[Any],
        avals_out: Sequence[Any],
    ) -> list[Any]:
        """What stands in place of the results of a primitive."""
        outs: Any = None
        if primitive.has_rule("follow_keys"):
            outs = primitive.follow_keys(self, *operands, **params)
        elif primitive.key_use == "consumes":
            self.use(operands[0])
        elif primitive.key_use == "moves" and all(x is not None for x in operands):
            outs = _moved(primitive, operands, params, avals_in)
            self._refuse_copies(operands, avals_in, outs)
        if outs is None:
            outs = [None] * len(avals_out)
        return list(map(self._settled, outs, avals_out))

    def _settled(self, value: Any, aval: Any) -> Any:
        """A followed result; keys of which nothing is known are new ones."""
        if not holds_keys(aval):
            return value if is_position(aval) else None
        if value is None:
            return self.numbers_of(new_identities(aval.shape))
        unknown = value < 0
        if unknown.any():
            value = value.copy()
            value[unknown] = self.numbers_of(new_identities((int(unknown.sum()),)))
        return value

    def use(self, numbers: Any) -> None:
        """Note that random numbers, or other keys, are made from keys.

        Raises:
            KeyReuseError: that was done before.
        """
        if numbers is None:
            return
        stacks = self._stacks()
        distinct = set(numbers.flat)
        for number in distinct:
            self._refuse_second_use(number, stacks)
        self._uses.update(dict.fromkeys(distinct, stacks))
        for number in distinct:
            identity = self._identities[number].alternative_to
            while identity is not None:
                self._uses.setdefault(self._number(identity), stacks)
                identity = identity.alternative_to

    def _stacks(self) -> Stacks:
        return (*self._where[::-1], self._stack)

    def _refuse_second_use(self, number: int, stacks: Stacks) -> None:
        earlier = self._uses.get(number)
        if earlier is None and not self._in_repetition:
            earlier = self._identities[number].use
        if earlier is None:
            return
        first_lines, second_lines = _lines(earlier), _lines(stacks)
        first, again = first_lines[0], f"again at {second_lines[0]}"
        if first == second_lines[0]:
            again = "by the next turn of the loop" if self._in_later_turn else "again there"
            calls = zip(first_lines, second_lines, strict=False)
            parted = next((pair for pair in calls if pair[0] != pair[1]), None)
            if parted is not None and not self._in_later_turn:
                first += f", called at {parted[0]}"
                again += f", called at {parted[1]}"
        self._refuse(
            f"a random key was used at {first}, and is used {again}, "
            "where it gives the same numbers once more",
            "Split it before, and use each new key once: key, subkey = random.split(key)",
            stacks,
            number,
        )

    def _refuse(self, mistake: str, remedy: str, stacks: Stacks, number: int) -> None:
        """Raise the error about a key.

        Args:
            mistake: what is done with the key.
            remedy: what to do instead.
            stacks: where.
            number: the key.
        """
        raise KeyReuseError(
            f"{mistake}. {remedy}; random.clone(key) says that this is intended, "
            "and the option debug_key_reuse, which is on under pytest, can be turned off"
        )

    def _refuse_copies(
        self, operands: Sequence[Any], avals: Sequence[Any], outs: Sequence[Any]
    ) -> None:
        """Raise KeyReuseError if one key of two operands is twice in a result.

        An array whose keys are repeated is no mistake in itself: `vmap` makes some.
        """
        keys = [x for x, aval in zip(operands, avals, strict=True) if holds_keys(aval)]
        if len(keys) < 2:
            return
        counts = [Counter(x.flat) for x in keys]
        for number, count in Counter([] if outs[0] is None else outs[0].flat).items():
            if number >= 0 and count > max(of_operand[number] for of_operand in counts):
                place = _lines(self._stacks())[0]
                self._refuse(
                    f"a random key is twice in the array made at {place}, so that "
                    "the same numbers come from both",
                    "Split it instead: keys = random.split(key, 2)",
                    self._stacks(),
                    number,
                )

    # Programs inside of equations

    def follow_one_of(self, programs: Iterable[ClosedJaxpr], operands: Sequence[Any]) -> list[Any]:
        """`follow` several programs of which one will run: each may use the same keys."""
        before = dict(self._uses)
        together = dict(before)
        results = []
        for closed in programs:
            self._uses = dict(before)
            results.append(self.follow(closed, operands))
            together |= self._uses
        self._uses = together
        return [common(values) for values in zip(*results, strict=True)]

    def follow_repetition(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """`follow` what computes something again: it may use each key that was used before."""
        before, self._uses = self._uses, {}
        outer, self._in_repetition = self._in_repetition, True
        try:
            results: list[Any] = self.follow(closed, operands)
        finally:
            self._in_repetition = outer
            new = [n for n in self._uses if self._identities[n].use is None]
            self._repeated.update(n for n in new if n not in before)
            self._uses = {n: self._uses[n] for n in new} | before
        return results

    def follow_again(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """`follow` the body of a loop for a later turn."""
        outer, self._in_later_turn = self._in_later_turn, True
        try:
            results: list[Any] = self.follow(closed, operands)
        finally:
            self._in_later_turn = outer
        return results

    def carried_on(
        self, body: Callable[[Sequence[Any]], Sequence[Any]], states: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """What stands in place of what a loop carries, after more turns than were followed.

        Args:
            body: follows a turn of which nothing but what is carried is known.
            states: what is carried, before and after turns that were followed.
        """
        state = list(map(common, zip(*states, strict=True)))
        uses, depth = dict(self._uses), len(self._where)
        while any(x is not None for x in state):
            try:
                after = list(map(common, zip(state, body(state), strict=True)))
            except KeyReuseError:  # in a turn that may never be
                del self._where[depth:]
                after = [None] * len(state)
            self._uses = dict(uses)
            if all(a is b for a, b in zip(state, after, strict=True)):
                break
            state = after
        return state

    def used(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Which of some keys have been used in this call."""
        return _which(numbers, self._uses)

    def use_in_other_turns(
        self,
        numbers: np.ndarray[Any, Any],
        before: np.ndarray[Any, Any],
        others: np.ndarray[Any, Any],
    ) -> None:
        """Note that the other turns of a loop use keys as its first one did.

        Args:
            numbers: the keys of the first turn.
            before: which of them had been used before it.
            others: the keys of other turns, along the first dimension.

        Raises:
            KeyReuseError: that was done before, and no turn only computes something again.
        """
        used, repeated = self.used(numbers) & ~before, _which(numbers, self._repeated)
        self.use(others[:, used & ~repeated])
        again = others[:, used & repeated].flat
        self._repeated.update(number for number in again if number not in self._uses)
        self._uses = dict.fromkeys(again, self._stacks()) | self._uses


class Reuse(NamedTuple):
    """A key that is used for the second time.

    Attributes:
        number: the key's number.
        mistake: what is done with it.
        remedy: what to do instead.
        stacks: where it is used for the second time.
    """

    number: int
    mistake: str
    remedy: str
    stacks: Stacks


class ReuseCollector(KeyTracker):
    """Goes on where a `KeyTracker` raises an error, and keeps what it is about.

    Args: those of `KeyTracker`.

    Attributes:
        found: the keys that are used twice.
    """

    def __init__(self, read: Callable[[KeyTracker, Any], Any], stack: Any) -> None:
        super().__init__(read, stack)
        self.found: list[Reuse] = []
        self._is_trying = False

    def _refuse(self, mistake: str, remedy: str, stacks: Stacks, number: int) -> None:
        if self._is_trying:
            super()._refuse(mistake, remedy, stacks, number)
        self.found.append(Reuse(number, mistake, remedy, stacks))

    def carried_on(
        self, body: Callable[[Sequence[Any]], Sequence[Any]], states: Sequence[Sequence[Any]]
    ) -> list[Any]:
        outer, self._is_trying = self._is_trying, True
        try:
            return super().carried_on(body, states)
        finally:
            self._is_trying = outer


def frames_of(stacks: Stacks) -> list[UserFrame]:
    """The user's frames, innermost first: each stack up to the function that was traced.

    What is beyond belongs to its first call, which may be another one. All of the last stack
    counts, which is that of the user's call.
    """
    *of_equations, of_user = stacks
    frames = [
        frame
        for stack in of_equations
        if stack is not None
        for frame in user_frames(stack, _MAX_FRAMES, within=stage.__code__)
    ]
    return frames + user_frames(of_user, _MAX_FRAMES)


def _which(numbers: np.ndarray[Any, Any], these: Container[int]) -> np.ndarray[Any, Any]:
    return np.array([number in these for number in numbers.flat], bool).reshape(numbers.shape)


def _lines(stacks: Stacks) -> list[str]:
    return list(map(str, frames_of(stacks))) or ["an unknown place"]


def common(values: Sequence[Any]) -> Any:
    """What stands in place of one of several arrays: the first, if all are equal, or None."""
    first, *others = values
    if first is None or any(x is None or not np.array_equal(x, first) for x in others):
        return None
    return first


def holds_keys(aval: Any) -> bool:
    """Whether arrays of a type hold random keys."""
    return type(aval) is ShapedArray and dtypes.issubdtype(aval.dtype, dtypes.prng_key)


def is_position(aval: Any) -> bool:
    """Whether arrays of a type are followed by value: few integers or booleans."""
    return (
        type(aval) is ShapedArray
        and isinstance(aval.dtype, np.dtype)
        and aval.dtype.kind in "biu"
        and aval.size <= _MAX_POSITIONS
    )


def _moved(
    primitive: Primitive, operands: Sequence[Any], params: Any, avals: Sequence[Any]
) -> list[Any]:
    """What a primitive does with numbers of keys, as its reference does it with keys."""
    arrays = [
        _written(x, aval) if holds_keys(aval) else np.asarray(x, aval.dtype)
        for x, aval in zip(operands, avals, strict=True)
    ]
    out = primitive.reference(*arrays, **params)
    of_keys = any(map(holds_keys, avals))
    outs = [_read(np.asarray(x)) for x in (out if primitive.multiple_results else [out])]
    return [None if of_keys and array.dtype.kind == "b" else array for array in outs]


def _written(numbers: Any, aval: Any) -> np.ndarray[Any, Any]:
    dtype = aval.dtype.numpy
    keys = np.zeros(numbers.shape, dtype)
    raw = keys[dtype.names[0]]
    raw[..., 0], raw[..., 1] = numbers, _MARK
    return keys


def _read(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.names is None:
        return array
    raw = array[array.dtype.names[0]]
    return np.where(raw[..., 1] == _MARK, raw[..., 0].astype(np.int64), -1)


class _Plan(NamedTuple):
    """What of a program is followed: its equations with keys, and what their positions need."""

    equations: list[JaxprEqn]
    wanted: frozenset[Any]


@remembered
def _plan(closed: ClosedJaxpr, known: bool) -> _Plan:
    jaxpr = closed.jaxpr
    of_keys = {id(eqn) for eqn in jaxpr.eqns if _has_keys(eqn)}
    outs = [v for v in jaxpr.outvars if type(v) is not Literal]
    if not of_keys and not known:
        return _Plan([], frozenset(v for v in outs if holds_keys(v.aval)))
    wanted = {v for v in outs if holds_keys(v.aval) or is_position(v.aval)}
    equations = []
    for eqn in reversed(jaxpr.eqns):
        if id(eqn) in of_keys or (
            not wanted.isdisjoint(eqn.outvars)
            and all(is_position(v.aval) for v in eqn.invars)
            and not jaxprs_and_closed_jaxprs(eqn.params)
        ):
            equations.append(eqn)
            operands = [v for v in eqn.invars if type(v) is not Literal]
            wanted.update(v for v in operands if holds_keys(v.aval) or is_position(v.aval))
    return _Plan(equations[::-1], frozenset(wanted))


def _has_keys(eqn: JaxprEqn) -> bool:
    return any(holds_keys(v.aval) for v in (*eqn.invars, *eqn.outvars)) or any(
        bool(_plan(inner, False).equations)
        for inner in jaxprs_and_closed_jaxprs(eqn.params)
        if type(inner) is ClosedJaxpr
    )


def has_keys(closed: ClosedJaxpr) -> bool:
    """Whether a program makes or takes random keys."""
    return bool(_plan(closed, False).equations) or any(map(holds_keys, closed.in_avals))
