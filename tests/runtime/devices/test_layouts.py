"""Orders of elements in memory: which are taken, and what is said of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.experimental.layout import Format, Layout, with_layout_constraint
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
PLACES = {
    "one device": SingleDeviceSharding(DEVICES[0]),
    "rows": NamedSharding(Mesh(np.array(DEVICES), "i"), P("i")),
}
VALUE = np.arange(64, dtype=np.float32).reshape(8, 8)
COLUMN_MAJOR = Layout((1, 0))


@pytest.fixture(params=PLACES)
def place(request: Any) -> Any:
    return PLACES[request.param]


def test_formats_of_arrays_are_taken_everywhere(place: Any) -> None:
    x = dt.device_put(VALUE, place)
    assert x.format == Format(Layout((0, 1), ()), place)
    assert dt.device_put(VALUE, x.format).format == x.format
    for asked in (x.format, Format(None, place), Format(Layout.AUTO, place)):
        f = dt.jit(lambda x: 2 * x, in_shardings=asked, out_shardings=asked)
        assert f(x).format == x.format
        compiled = f.lower(VALUE).compile()
        assert compiled.input_formats == ((x.format,), {})
        assert compiled.output_formats == x.format
    made = dt.make_array_from_callback(VALUE.shape, x.format, lambda index: VALUE[index])
    assert (np.asarray(made) == VALUE).all()


def test_other_orders_are_refused(place: Any) -> None:
    columns = Format(COLUMN_MAJOR, place)
    calls: dict[str, Any] = {
        "device_put places": lambda: dt.device_put(VALUE, columns),
        "in_shardings of jit": lambda: dt.jit(lambda x: x, in_shardings=columns),
        "out_shardings of jit": lambda: dt.jit(lambda x: x, out_shardings=columns),
        "make_array_from_callback": lambda: dt.make_array_from_callback(
            VALUE.shape, columns, lambda index: VALUE[index]
        ),
    }
    for text, call in calls.items():
        with pytest.raises(NotImplementedError, match=f"{text}.*row-major order"):
            call()


def test_values_inside_programs(place: Any) -> None:
    x = dt.device_put(VALUE, place)

    def f(x: Any) -> Any:
        y = with_layout_constraint({"a": jnp.sin(x), "b": 2 * x}, COLUMN_MAJOR)
        return (y["a"] @ y["b"].T).sum(0)

    expected = (np.sin(VALUE) @ (2 * VALUE).T).sum(0)
    np.testing.assert_allclose(dt.jit(f)(x), expected, rtol=1e-3)
    np.testing.assert_allclose(f(x), expected, rtol=1e-3)
    assert dt.jit(f).lower(x).as_text().count("dense<[0, 1]>") == 4
    assert "{0,1}" in dt.jit(f).lower(x).compile().as_text()
    gradient = dt.grad(lambda x: with_layout_constraint(x**2, COLUMN_MAJOR).sum())(x)
    np.testing.assert_allclose(gradient, 2 * VALUE)
    for axis in (0, 1):
        y = dt.vmap(lambda x: with_layout_constraint(2 * x, Layout((0,))), axis, axis)(x)
        assert (np.asarray(y) == 2 * VALUE).all()
    result = dt.jit(lambda x: with_layout_constraint(x, COLUMN_MAJOR))(x)
    assert result.format == x.format
    assert (np.asarray(result) == VALUE).all()
    keys = random.split(random.key(0), (2, 3))
    same = dt.jit(lambda k: with_layout_constraint(k, COLUMN_MAJOR))(keys)
    assert (random.key_data(same) == random.key_data(keys)).all()


def test_constraints_of_both(place: Any) -> None:
    for layout in (COLUMN_MAJOR, Layout((0, 1)), Layout.AUTO, None):
        asked = Format(layout, place)

        def f(x: Any, asked: Any = asked) -> Any:
            return jnp.sin(lax.with_sharding_constraint({"a": 2 * x}, asked)["a"]).sum(0)

        np.testing.assert_allclose(dt.jit(f)(VALUE), np.sin(2 * VALUE).sum(0), rtol=1e-4, atol=1e-4)
        text = dt.jit(f).lower(VALUE).as_text()
        assert text.count("LayoutConstraint") == isinstance(layout, Layout)
        assert ("sharding_constraint" in text) == (len(place.device_set) > 1)
        result = lax.with_sharding_constraint(VALUE, asked)
        if len(place.device_set) > 1:
            assert result.sharding == place
        np.testing.assert_array_equal(result, VALUE)
    with pytest.raises(ValueError, match=r"orders 2 dimensions, and .*: x\['a'\] of shape \(8,\)"):
        lax.with_sharding_constraint({"a": VALUE[0]}, Format(COLUMN_MAJOR, place))


@pytest.mark.parametrize(
    ("x", "layouts", "error", "text"),
    [
        (VALUE, None, TypeError, "takes a Layout for x, got None"),
        (VALUE, Format(), TypeError, "takes a Layout for x, got Format"),
        ("text", COLUMN_MAJOR, TypeError, "with_layout_constraint"),
        ([VALUE], [COLUMN_MAJOR] * 2, ValueError, "layouts of with_layout_constraint"),
        ({"a": VALUE[0]}, COLUMN_MAJOR, ValueError, r"orders 2 dimensions, and x\['a'\] of shape"),
        (VALUE, Layout((1, 0), ((8, 128),)), NotImplementedError, "leave tiling"),
    ],
)
def test_misuse(x: Any, layouts: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        with_layout_constraint(x, layouts)
