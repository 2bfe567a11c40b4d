"""What users of NumPy, PyTorch and TensorFlow write is answered with what to write here."""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base import habits
from dovetail._core.base.habits import ATTRIBUTES, FUNCTIONS, OF_MODULES

X = jnp.ones(3)
IMAGES = jnp.ones((8, 28, 28, 3))
KERNEL = jnp.ones((3, 3, 3, 16))

CALLS: dict[str, tuple[Callable[[], Any], type, str]] = {
    "concatenate": (lambda: jnp.concatenate(X, X), TypeError, "concatenate([a, b])"),
    "stack": (lambda: jnp.stack(X, X), TypeError, "stack([a, b])"),
    "hstack": (lambda: jnp.hstack(X, X), TypeError, "hstack([a, b])"),
    "vstack": (lambda: jnp.vstack(X, X), TypeError, "vstack([a, b])"),
    "dstack": (lambda: jnp.dstack(X, X), TypeError, "dstack([a, b])"),
    "and": (lambda: (X > 0) and (X < 2), ValueError, "& for and"),
    "chain": (lambda: 0 < X < 2, ValueError, "(x > 0) & (x < 1)"),
    "not": (lambda: not X, ValueError, "~ for not"),
    "NHWC": (lambda: lax.conv(IMAGES, KERNEL, (1, 1), "SAME"), ValueError, "'NHWC'"),
    "no loss": (lambda: dt.grad(lambda x: None)(1.0), TypeError, "returned None, in which"),
    "torch dtype": (lambda: X.astype("torch.float16"), TypeError, "did you mean 'float16'?"),
    "dtype": (lambda: jnp.zeros(3, "flaot32"), TypeError, "did you mean 'float32'?"),
    "two sizes": (lambda: jnp.zeros(2, 3), TypeError, "one tuple"),
    "three sizes": (lambda: jnp.ones(2, 3, 4), TypeError, "shape are one tuple"),
    "two axes": (lambda: jnp.ones((2, 3)).sum(0, 1), TypeError, "one tuple"),
    "axes": (lambda: jnp.transpose(X, 0, 1), TypeError, "axes are one tuple"),
    "view": (lambda: X.view(1, 3), ValueError, "x.reshape(shape)"),
    "view of a size": (lambda: X.view(-1), TypeError, "x.reshape(shape)"),
    "assignment": (lambda: X.__setitem__(0, 1.0), TypeError, "x.at[index].set(y)"),
    "list": (lambda: jnp.sum([X, X]), TypeError, "asarray"),
    "seed": (lambda: dt.random.seed(0), AttributeError, "dovetail.random.key(seed)"),
    "no key": (lambda: dt.random.normal((3,)), TypeError, "random.key(seed)"),
    "requires_grad": (lambda: jnp.ones(3, requires_grad=True), TypeError, "dovetail.grad(f)(x)"),  # type: ignore[call-arg]
    "out": (lambda: jnp.sin(X, out=X), TypeError, "results are new ones"),  # type: ignore[call-arg]
    "flatten": (lambda: IMAGES.flatten(1), TypeError, "x.reshape(*x.shape[:n], -1)"),  # type: ignore[arg-type]
    "float of a reference": (lambda: float(dt.new_ref(1.0)), TypeError, "ref[...]"),  # type: ignore[arg-type]
    "leaves": (
        lambda: dt.tree.unflatten(dt.tree.structure([1, 2]), iter([1, 2, 3])),
        ValueError,
        "Too many leaves for PyTreeDef; expected 2, got 3",
    ),
    "fft2": (lambda: jnp.fft.fft2(X), ValueError, "has 1 dimension; for one write fft.fft"),
    "mesh": (lambda: dt.make_mesh((1,), ("x", "y")), ValueError, "make_mesh: got 2 names for 1"),
    "no function": (lambda: dt.grad(argnums=1), TypeError, "@functools.partial(grad, ...)"),  # type: ignore[call-overload]
    "no function of a rule": (
        lambda: dt.custom_jvp(nondiff_argnums=(0,)),  # type: ignore[call-arg]
        TypeError,
        "custom_jvp() missing 1 required positional argument: 'fun'; as a decorator",
    ),
    "no dtype": (lambda: dt.ShapeDtypeStruct((3,)), TypeError, "ShapeDtypeStruct() missing"),  # type: ignore[call-arg]
    "map": (lambda: lax.map(lambda x: x, []), ValueError, "xs has no array, for whose elements"),
    "no format": (
        lambda: dt.exporters.export(jnp.sin, X),  # type: ignore[arg-type]
        TypeError,
        "the format comes first, a name such as 'onnx', got <",
    ),
    "assigned option": (
        lambda: setattr(dt.config, "progress_bars", False),
        AttributeError,
        "write config.update('progress_bars', False)",
    ),
    "keyword": (lambda: dt.nn.softmax(X, dim=-1), TypeError, "write axis="),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call(name: str) -> None:
    call, kind, words = CALLS[name]
    with pytest.raises(kind) as raised:
        call()
    assert words in str(raised.value)


@pytest.mark.parametrize("traced", [False, True])
def test_attributes_of_arrays(traced: bool) -> None:
    def check(x: Any) -> Any:
        for name, advice in ATTRIBUTES.items():
            assert not hasattr(x, name)
            assert name not in dir(dt.Array)
            with pytest.raises(AttributeError, match=f"no attribute '{name}'; write ") as raised:
                getattr(x, name)
            assert advice in str(raised.value)
        assert not set(ATTRIBUTES) & set(dir(x))
        return x

    (dt.jit(check) if traced else check)(X)


def test_attributes_of_numpys_arrays_are_there_or_answered() -> None:
    public = {name for name in dir(np.ndarray) if not name.startswith("_")}
    missing = public - set(dir(X)) - set(ATTRIBUTES)
    assert missing == {"base", "data", "getfield", "setfield", "dump", "dumps"} - set(ATTRIBUTES)


NAMES = [
    ("dovetail", "no_grad", "stop_gradient"),
    ("dovetail", "softmax", "it is dovetail.nn.softmax"),
    ("dovetail", "set_grad_enabled", "stop_gradient"),
    ("dovetail", "slow_compile_secs", "dovetail.config.update('slow_compile_secs', value)"),
    ("dovetail", "tree_map", "it is dovetail.tree_util.tree_map"),
    ("dovetail", "jti", "did you mean 'jit'?"),
    ("dovetail.numpy", "cat", "dovetail.numpy.concatenate(arrays, axis)"),
    ("dovetail.numpy", "svd", "it is dovetail.numpy.linalg.svd"),
    ("dovetail.numpy", "relu", "it is dovetail.nn.relu"),
    ("dovetail.numpy", "fft2", "it is dovetail.numpy.fft.fft2"),
    ("dovetail.numpy.linalg", "nrom", "did you mean 'norm'?"),
    ("dovetail.lax", "scann", "did you mean 'scan'?"),
    ("dovetail.random", "norml", "did you mean 'normal'?"),
    ("dovetail.random", "randn", "dovetail.random.normal(key, shape)"),
    ("dovetail.nn", "Linear", "flax or equinox"),
    ("dovetail.nn", "rellu", "did you mean 'relu'?"),
    ("dovetail.random", "random", "write dovetail.random.uniform(key, shape)"),
    ("dovetail.numpy", "polynomial", "write dovetail.numpy.polyval"),
    ("dovetail.numpy", "numpy", "has no attribute 'numpy'"),
    ("dovetail.extend.core", "create_call_primitive", "not in dovetail; calls of functions"),
    ("dovetail.tree", "mapp", "did you mean 'map'?"),
    ("dovetail.tree_util", "tree_mp", "did you mean 'tree_map'?"),
    ("dovetail.errors", "ShapeEror", "did you mean 'ShapeError'?"),
    ("dovetail.debug", "prnt", "did you mean 'print'?"),
    ("dovetail.experimental", "pallas", "that is not in dovetail; kernels"),
    ("dovetail.experimental", "hijax", "that is not in dovetail; types"),
]


@pytest.mark.parametrize(("module", "name", "words"), NAMES)
def test_a_name_of_a_module(module: str, name: str, words: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(importlib.import_module(module), name)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in OF_MODULES.items() for name in names]
)
def test_a_habit_is_answered_where_it_is_one(module: str, name: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(importlib.import_module(module), name)
    assert str(raised.value).endswith(f"; write {OF_MODULES[module][name]}")


IMPORTS = {
    "from dovetail import nump": "'nump' from 'dovetail'; did you mean 'numpy'?",
    "from dovetail import jit, vmapp": "'vmapp' from 'dovetail'; did you mean 'vmap'?",
    "from dovetail.numpy import cat": "write dovetail.numpy.concatenate(arrays, axis)",
    "from dovetail.experimental import pallas": "a name of JAX that is not in dovetail; kernels",
    "from dovetail.tree import mapp": "did you mean 'map'?",
    "from dovetail.lax import qqqq": "cannot import name 'qqqq' from 'dovetail.lax'",
}


@pytest.mark.parametrize("statement", IMPORTS)
def test_a_name_that_is_imported(statement: str) -> None:
    with pytest.raises(ImportError) as raised:
        exec(compile(statement, "program.py", "exec"), {})
    assert IMPORTS[statement] in str(raised.value)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[-1].filename == "program.py"


def test_python_adds_no_guess_of_its_own() -> None:
    """It does where an AttributeError says for which object a name was looked up."""
    for look in (lambda: X.unsqueeze, lambda: dt.config.enable_x46, lambda: jnp.meen):  # type: ignore[attr-defined]
        with pytest.raises(AttributeError) as raised:
            look()
        assert raised.value.name in repr(raised.value)
        assert len(repr(raised.value)) < 200
        assert not traceback.format_exception(raised.value)[-1].count("Did you mean")


ADVICE = [*FUNCTIONS.values(), *(text for names in OF_MODULES.values() for text in names.values())]


@pytest.mark.parametrize("advice", sorted(set(ADVICE)))
def test_what_is_written_instead_is_there(advice: str) -> None:
    """The names below `dovetail` in the advice."""
    for word in re.split(r"[^\w.]+", advice):
        if word.startswith("dovetail."):
            value: Any = dt
            for part in word.rstrip(".:").split(".")[1:]:
                if not hasattr(value, part):
                    value = importlib.import_module(word)
                    break
                value = getattr(value, part)
            assert value is not None


def test_whether_there_is_a_name_costs_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python asks so for each submodule that is imported by name, and libraries do."""
    monkeypatch.setattr(habits, "missing_name", lambda *args: pytest.fail("a text was made"))
    for module in (dt, jnp, dt.lax, dt.random, dt.nn, dt.tree_util, dt.sharding):
        assert not hasattr(module, "qqqq")
