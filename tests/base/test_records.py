"""Records behave as frozen dataclasses with slots do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest

from dovetail._core.base.records import record


def _body(make):
    @make
    class Point:
        """A point."""

        x: int
        y: int = 2
        names: list[str] = field(default_factory=list, compare=False)
        secret: int = field(default=0, repr=False, kw_only=True)

    return Point


PAIR = [_body(record), _body(dataclass(frozen=True, slots=True))]


@record
class Base:
    """A record that can be pickled, with a check."""

    x: int
    y: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


@record
class Derived(Base):
    """One with another field."""

    z: int = 5


@record
class Single:
    """One field."""

    x: float


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1,), {}),
        ((1, 3), {}),
        ((1, 3, ["a"]), {}),
        ((1, 3, ["a"]), {"secret": 4}),
        ((), {"y": 3, "x": 1}),
        ((1,), {"names": ["b"], "secret": 4}),
    ],
)
def test_made_and_shown_as_dataclasses_are(arguments, named):
    own, theirs = (cls(*arguments, **named) for cls in PAIR)
    assert repr(own) == repr(theirs)
    assert dataclasses.asdict(own) == dataclasses.asdict(theirs)
    assert hash(own) == hash(theirs)
    assert own == PAIR[0](*arguments, **named)
    assert own != theirs
    assert own != PAIR[0](7)
    assert not hasattr(own, "__dict__")


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "missing 1 required argument: 'x'"),
        ((1, 2, [], 4), {}, "takes 4 positional arguments but 5 were given"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
        ((1,), {"w": 2}, "unexpected keyword argument 'w'"),
    ],
)
def test_wrong_arguments_are_errors(arguments, named, message):
    with pytest.raises(TypeError, match=message):
        PAIR[0](*arguments, **named)
    with pytest.raises(TypeError):
        PAIR[1](*arguments, **named)


def test_several_missing_arguments_are_named():
    @record
    class Needy:
        """Two fields."""

        x: int
        y: int

    with pytest.raises(TypeError, match="missing 2 required arguments: 'x', 'y'"):
        Needy()


def test_defaults_are_made_for_each_instance():
    first, second = PAIR[0](1), PAIR[0](1)
    assert first.names is not second.names


def test_fields_cannot_be_assigned_nor_deleted():
    own = PAIR[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        own.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del own.x
    assert own.x == 1


def test_signature():
    own, theirs = map(inspect.signature, PAIR)
    assert list(own.parameters) == list(theirs.parameters)
    assert [p.kind for p in own.parameters.values()] == [p.kind for p in theirs.parameters.values()]
    assert own.parameters["y"].default == 2
    assert own.parameters["x"].default is inspect.Parameter.empty


def test_replaced_copied_and_pickled():
    own = Derived(1, (2,))
    assert dataclasses.replace(own, z=6) == Derived(1, (2,), 6)
    for again in (copy.copy(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert again == own
        assert again.z == 5
    assert [f.name for f in dataclasses.fields(own)] == ["x", "y", "z"]
    assert own != Base(1, (2,))


def test_checked_after_they_are_made():
    with pytest.raises(ValueError, match="negative"):
        Derived(-1)


def test_one_field_is_compared_as_in_a_tuple():
    nan = float("nan")
    assert Single(nan) == Single(nan)
    assert hash(Single(1.0)) == hash((1.0,))


def test_without_equality_they_are_themselves():
    @record(eq=False)
    class Thing:
        """A thing."""

        x: int

    one = Thing(1)
    assert one != Thing(1)
    assert len({one, Thing(1)}) == 2


def test_by_keyword_alone():
    @record(kw_only=True)
    class Options:
        """Options."""

        x: int
        y: int = 1

    assert Options(x=3) == Options(y=1, x=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        Options(3)


def test_methods_that_a_class_defines_are_kept():
    @record
    class Own:
        """With methods of its own."""

        x: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return True

    assert repr(Own(1)) == "own"
    assert hash(Own(1)) == 7
    assert Own(1) == 3


def test_a_callable_record_has_the_signature_of_its_call():
    @record
    class Call:
        """Something to call."""

        x: int

        def __call__(self, other: int) -> int:
            return self.x + other

    assert list(inspect.signature(Call(1)).parameters) == ["other"]


@pytest.mark.parametrize("slots", [False, True])
def test_frozen_dataclasses_inherit_from_records(slots):
    @dataclass(frozen=True, slots=slots)
    class Inner(Base):
        """One of somebody else's."""

        w: int = 4

    one = Inner(1, (2,), 3)
    assert (one.x, one.y, one.w) == (1, (2,), 3)
    assert list(inspect.signature(Inner).parameters) == ["x", "y", "w"]
    assert copy.copy(one) == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 2


def test_a_class_with_a_constructor_of_its_own_has_its_signature():
    class Other(Base):
        """Not a dataclass."""

        def __init__(self, count: int) -> None:
            super().__init__(count, (count,))

    assert list(inspect.signature(Other).parameters) == ["count"]
    assert Other(3).y == (3,)
