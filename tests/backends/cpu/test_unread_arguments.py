"""Small functions of many arguments, most of which they do not read."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.devices.host_functions import host_functions

pytestmark = [
    pytest.mark.usefixtures("directly"),
    pytest.mark.skipif(not host_functions(), reason="every call here needs a program"),
]

ROW = np.float32([1, -2, 0, 4, 0.5])
COUNT = 40
#: Calls after which arrays are known that all of them had.
ENOUGH = 12


def in_buffers(value: Any = ROW, count: int = COUNT) -> list[dt.Array]:
    with dt.direct_calls("none"):
        made: list[dt.Array] = dt.jit(lambda x: [x + i for i in range(count)])(value)
    return made


def flat(*values: Any) -> Any:
    return values[0] * 2 + values[-1]


def of_list(values: Any) -> Any:
    return values[0] * 2 + values[-1]


def of_keywords(**values: Any) -> Any:
    return values["v0"] * 2 + values[f"v{len(values) - 1}"]


def of_tree(first: Any, tree: Any, last: Any) -> Any:
    return first * 2 + last


#: How a function is given arrays: the function, and its arguments of a list of them.
GIVEN: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, dict[str, Any]]]]] = {
    "flat": (flat, lambda v: (v, {})),
    "list": (of_list, lambda v: ([v], {})),
    "keywords": (of_keywords, lambda v: ((), {f"v{i}": x for i, x in enumerate(v)})),
    "tree": (
        of_tree,
        lambda v: ((v[0], {"b": tuple(v[1:9]), "a": [None, {"c": v[9:-1]}]}, v[-1]), {}),
    ),
}


def called(function: Callable[..., Any], name: str, values: list[Any]) -> Any:
    args, kwargs = GIVEN[name][1](values)
    return function(*args, **kwargs)


def compiled_for(name: str, ahead: bool, values: list[Any]) -> tuple[Callable[..., Any], list[int]]:
    """A compiled function that has been called often, and a list of one for each trace."""
    traces: list[int] = []

    def function(*args: Any, **kwargs: Any) -> Any:
        traces.append(1)
        return GIVEN[name][0](*args, **kwargs)

    compiled: Any = dt.jit(function)
    if ahead:
        args, kwargs = GIVEN[name][1](values)
        compiled = compiled.lower(*args, **kwargs).compile()
    for _ in range(ENOUGH):
        called(compiled, name, values)
    return compiled, traces


@pytest.mark.parametrize("ahead", [False, True], ids=["jit", "ahead of time"])
@pytest.mark.parametrize("name", GIVEN)
def test_arrays_that_are_met_often_need_no_program(name: str, ahead: bool) -> None:
    values = in_buffers()
    compiled, traces = compiled_for(name, ahead, values)
    for given in (values, [*values[:7], *map(jnp.asarray, values[7:])], values):
        result = called(compiled, name, given)
        assert held_value(result) is not None
        np.testing.assert_array_equal(result, ROW * 2 + (ROW + COUNT - 1))
    others = in_buffers(ROW + 1)
    result = called(compiled, name, others)
    assert held_value(result) is None
    np.testing.assert_array_equal(result, (ROW + 1) * 2 + (ROW + COUNT))
    assert len(traces) == 1


def other_memory(array: dt.Array) -> dt.Array:
    mesh = dt.make_mesh((1,), ("x",), devices=dt.devices()[:1])
    return dt.device_put(array, dt.sharding.NamedSharding(mesh, dt.P()))


def in_other_type(dtype: str) -> Callable[[dt.Array], Any]:
    def convert(array: dt.Array) -> Any:
        return in_buffers(np.asarray(array).astype(dtype), 1)[0]

    return convert


def deleted(array: dt.Array) -> dt.Array:
    (copy,) = in_buffers(array, 1)
    copy.delete()
    return copy


def donated(array: dt.Array) -> dt.Array:
    (copy,) = in_buffers(array, 1)
    with dt.direct_calls("none"):
        dt.jit(lambda x: x + 1, donate_argnums=0)(copy)
    assert copy.is_deleted()
    return copy


#: What stands in the place of an argument that is not read, and whether it is traced again, what a
#: program that is there says of it, and whether the result is committed.
OTHERS: dict[str, tuple[Callable[[dt.Array], Any], bool, str | None, bool]] = {
    "the same type": (lambda x: in_buffers(x, 1)[0], False, None, False),
    "value": (jnp.asarray, False, None, False),
    "NumPy": (np.asarray, False, None, False),
    "committed": (lambda x: dt.device_put(x, dt.devices()[0]), False, None, True),
    "mesh": (other_memory, False, None, True),
    "deleted": (deleted, False, None, False),
    "donated": (donated, False, None, False),
    "shape": (lambda x: in_buffers(x[:4], 1)[0], True, r"takes f32\[5\] .*, got f32\[4\]", False),
    "rank": (lambda x: in_buffers(x[None], 1)[0], True, r"f32\[5\] .*, got f32\[1,5\]", False),
    "dtype": (in_other_type("int32"), True, r"takes f32\[5\] .*, got i32\[5\]", False),
    "narrow": (in_other_type("float16"), True, r"takes f32\[5\] .*, got f16\[5\]", False),
    "number": (lambda x: 2.0, True, r"takes f32\[5\] .*, got f32\[\]", False),
    "text": (lambda x: "text", False, "text", False),
    "list": (lambda x: [x], True, "of another structure", False),
    "None": (lambda x: None, True, "of another structure", False),
}


@pytest.mark.parametrize("ahead", [False, True], ids=["jit", "ahead of time"])
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("other", OTHERS)
def test_another_argument_that_is_not_read(other: str, name: str, ahead: bool) -> None:
    values = in_buffers()
    compiled, traces = compiled_for(name, ahead, values)
    make, again, message, committed = OTHERS[other]
    given = [*values[:5], make(values[5]), *values[6:]]
    for _ in range(ENOUGH):
        if message is not None and (ahead or not again):
            with pytest.raises(TypeError, match=message):
                called(compiled, name, given)
            continue
        result = called(compiled, name, given)
        np.testing.assert_array_equal(result, ROW * 2 + (ROW + COUNT - 1))
        assert result.committed == committed
    assert len(traces) == 1 + (again and not ahead)
    result = called(compiled, name, values)
    assert held_value(result) is not None
    assert not result.committed


@pytest.mark.parametrize("ahead", [False, True], ids=["jit", "ahead of time"])
def test_another_number_of_arguments(ahead: bool) -> None:
    values = in_buffers()
    compiled, _ = compiled_for("flat", ahead, values)
    for given in (values[:-1], [*values, values[0]], []):
        for _ in range(3):
            if ahead or not given:
                kind: type[Exception] = TypeError if ahead else IndexError
                with pytest.raises(kind, match="of another structure" if ahead else "range"):
                    compiled(*given)
            else:
                np.testing.assert_array_equal(compiled(*given), ROW * 2 + given[-1])
    assert held_value(compiled(*values)) is not None


@pytest.mark.parametrize("place", [0, 5])
def test_tracers_among_arguments(place: int) -> None:
    values = in_buffers()
    compiled, _ = compiled_for("flat", False, values)
    ahead, _ = compiled_for("flat", True, values)

    def of_one(function: Callable[..., Any], x: Any) -> Any:
        return function(*values[:place], x, *values[place + 1 :]).sum()

    for _ in range(3):
        gradient = dt.grad(lambda x: of_one(compiled, x))(values[place])
        np.testing.assert_array_equal(gradient, np.full(5, 2.0 * (place == 0)))
        with pytest.raises(TypeError, match="cannot be transformed, but its argument"):
            dt.grad(lambda x: of_one(ahead, x))(values[place])
        assert held_value(compiled(*values)) is not None


def test_weak_types_are_other_types() -> None:
    with dt.direct_calls("none"):
        weak, strong = dt.jit(lambda x: (x + 1, jnp.float32(1) + x))(1.0)
    assert weak.weak_type
    assert not strong.weak_type
    values = in_buffers()
    seen: list[bool] = []

    def function(*args: Any) -> Any:
        seen.append(args[5].weak_type)
        return args[0] * 2 + args[-1]

    compiled = dt.jit(function)
    for _ in range(ENOUGH):
        for scalar in (strong, weak):
            compiled(*values[:5], scalar, *values[6:])
    assert seen == [False, True]
    for scalar in (strong, weak):
        assert held_value(compiled(*values[:5], scalar, *values[6:])) is not None


def test_keys_that_are_not_read() -> None:
    with dt.direct_calls("none"):
        keys = list(random.split(random.key(0), 30))
        others = list(random.split(random.key(0, impl="rbg"), 30))
    compiled = dt.jit(lambda keys, x: x * 2)
    for given in (keys, others, keys):
        for _ in range(ENOUGH):
            result = compiled(given, ROW)
        assert held_value(result) is not None
        np.testing.assert_array_equal(result, ROW * 2)
    raw = [random.key_data(key) for key in keys]
    np.testing.assert_array_equal(compiled(raw, ROW), ROW * 2)


def test_donated_arguments_that_are_not_read_stay() -> None:
    values = in_buffers()
    compiled = dt.jit(lambda x, rest: x + 1, donate_argnums=0)
    for _ in range(ENOUGH):
        (x,) = in_buffers(ROW, 1)
        np.testing.assert_array_equal(compiled(x, values), ROW + 1)
        assert x.is_deleted()
    assert not any(value.is_deleted() for value in values)


def test_there_is_one_entry_for_a_signature() -> None:
    values = in_buffers()
    compiled = dt.jit(flat)
    for _ in range(ENOUGH):
        compiled(*values)
        assert compiled._cache_size() == 1
    compiled.clear_cache()
    assert compiled._cache_size() == 0
    np.testing.assert_array_equal(compiled(*values), ROW * 2 + values[-1])


def test_ever_new_arrays_have_a_program() -> None:
    compiled = dt.jit(flat)
    for _ in range(80):
        assert held_value(compiled(*in_buffers())) is None
    values = in_buffers()
    for _ in range(ENOUGH):
        assert held_value(compiled(*values)) is None


def test_arrays_elsewhere_have_a_program() -> None:
    values = [dt.device_put(x, dt.devices()[0]) for x in in_buffers()]
    compiled = dt.jit(flat)
    for _ in range(3 * ENOUGH):
        result = compiled(*values)
        assert held_value(result) is None
        assert result.committed


def test_options_are_asked_for() -> None:
    values = in_buffers()
    compiled, _ = compiled_for("flat", False, values)
    with dt.direct_calls("none"):
        assert held_value(compiled(*values)) is None
    with dt.disable_jit():
        np.testing.assert_array_equal(compiled(*values), ROW * 2 + values[-1])
    dt.clear_caches()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(*values), ROW * 2 + values[-1])


# ---------------------------------------------------------------------------- objects with methods


class Model:
    """An object that equals nothing else."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def scaled(self, x: Any) -> Any:
        return x * self.factor


class Equal(Model):
    """An object that equals others."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and other.factor == self.factor

    def __hash__(self) -> int:
        return hash(self.factor)


class Slotted:
    """An object without weak references."""

    __slots__ = ("factor",)
    scaled = Model.scaled

    def __init__(self, factor: float) -> None:
        self.factor = factor


@pytest.mark.parametrize(
    ("kind", "direct"), [(Model, True), (Equal, False), (Slotted, False)], ids=lambda x: str(x)
)
def test_methods_of_objects(kind: Any, direct: bool) -> None:
    compiled = dt.jit(kind.scaled, static_argnums=0)
    first, second = kind(2.0), kind(3.0)
    for _ in range(3):
        for model in (first, second):
            result = compiled(model, ROW)
            assert (held_value(result) is not None) == direct
            np.testing.assert_array_equal(result, ROW * model.factor)
    with pytest.raises(AttributeError):
        compiled(None, ROW)


def test_functions_as_static_arguments() -> None:
    compiled = dt.jit(lambda function, x: function(x), static_argnums=0)
    for function in (jnp.sin, lambda x: x * 2, jnp.sin, lambda x: x * 3):
        result = compiled(function, ROW)
        assert held_value(result) is not None
        np.testing.assert_allclose(result, function(ROW), rtol=1e-6)


def test_objects_are_not_held_after_caches_are_cleared() -> None:
    compiled = dt.jit(Model.scaled, static_argnums=0)
    model = Model(2.0)
    compiled(model, ROW)
    held = weakref.ref(model)
    del model
    compiled.clear_cache()
    gc.collect()
    assert held() is None
    for factor in (4.0, 5.0):  # perhaps where the first one was
        np.testing.assert_array_equal(compiled(Model(factor), ROW), ROW * factor)
