"""Errors: their classes, and that they say what happened, where, and what to write instead."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import traceback
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import dovetail.errors as public
from dovetail._core.base import errors


class Tracer:
    aval = "f32[3]"

    def origin(self) -> str:
        return "the argument x of f, traced by jit at train.py:3"


# class, arguments, bases, parts of the message
CASES: list[tuple[Any, tuple[Any, ...], tuple[type, ...], list[str]]] = [
    (
        errors.ConcretizationTypeError,
        (Tracer(), "the shape of zeros"),
        (TypeError, errors.JAXTypeError),
        ["concrete value", "the shape of zeros", "static_argnums"],
    ),
    (
        errors.TracerBoolConversionError,
        (Tracer(),),
        (TypeError, errors.ConcretizationTypeError),
        ["control flow", "lax.cond", "dovetail.numpy.where", "lax.while_loop", "static_argnums"],
    ),
    (
        errors.TracerIntegerConversionError,
        (Tracer(),),
        (TypeError, errors.JAXTypeError),
        ["Python integer", "lax.fori_loop", "static_argnums"],
    ),
    (
        errors.TracerArrayConversionError,
        (Tracer(),),
        (TypeError, errors.JAXTypeError),
        ["NumPy array", "dovetail.numpy", "pure_callback"],
    ),
    (
        errors.TracerAttributeError,
        (Tracer(), "devices"),
        (AttributeError, errors.ConcretizationTypeError),
        ["devices is there for arrays alone", "outside of the transformed function"],
    ),
    (
        errors.NonConcreteBooleanIndexError,
        (Tracer(),),
        (IndexError, errors.JAXIndexError),
        ["boolean", "dovetail.numpy.where", "size=n"],
    ),
    (
        errors.UnexpectedTracerError,
        (Tracer(),),
        (TypeError, errors.JAXTypeError),
        ["outside of the transformed function", "check_tracer_leaks", "Return the value"],
    ),
]


@pytest.mark.parametrize(
    ("kind", "arguments", "bases", "parts"), CASES, ids=lambda value: getattr(value, "__name__", "")
)
def test_errors_about_tracers(
    kind: Any, arguments: tuple[Any, ...], bases: tuple[type, ...], parts: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        raise kind(*arguments)
    for base in bases:
        assert isinstance(caught.value, base)
    message = str(caught.value)
    for part in [
        "a tracer of type f32[3]",
        "the argument x of f, traced by jit at train.py:3",
        f"{__file__}:",
        "(test_errors_about_tracers)",
        *parts,
    ]:
        assert part in message
    assert caught.value.tracer is arguments[0]
    assert all(len(line) < 400 for line in message.splitlines())


def test_context_is_optional() -> None:
    assert "found:" not in str(errors.ConcretizationTypeError(Tracer()))


def test_an_origin_that_cannot_be_told_does_not_hide_the_error() -> None:
    class Broken(Tracer):
        def origin(self) -> str:
            raise KeyError("lost")

    assert "from:  unknown (KeyError: 'lost')" in str(errors.TracerBoolConversionError(Broken()))


def test_unexpected_tracer_takes_a_message() -> None:
    assert str(errors.UnexpectedTracerError("a message")) == "a message"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("JAXTypeError", TypeError),
        ("JAXIndexError", IndexError),
        ("KeyReuseError", public.JAXTypeError),
        ("JaxprTypeError", TypeError),
        ("InconclusiveDimensionOperation", Exception),
        ("DeletedArrayError", RuntimeError),
        ("DeletedArrayError", ValueError),
        ("ShapeError", ValueError),
        ("ShapeError", TypeError),
        ("IndexShapeError", public.ShapeError),
        ("IndexShapeError", IndexError),
        ("DTypeError", TypeError),
        ("DTypeError", ValueError),
        ("MissingRuleError", NotImplementedError),
        ("BackendUnavailableError", RuntimeError),
        ("DeviceMismatchError", ValueError),
        ("NonArrayArgumentError", TypeError),
        ("NonArrayArgumentError", ValueError),
        ("CompilationCacheWarning", UserWarning),
        ("JaxRuntimeError", RuntimeError),
    ],
)
def test_errors_with_a_message(name: str, base: type[Exception]) -> None:
    kind = getattr(public, name)
    assert issubclass(kind, base)
    assert str(kind("a message")) == "a message"


#: Errors that derive from jaxlib's, which importing the others must not load.
WITH_JAXLIB = {"CompilerOptionError", "JaxRuntimeError", "OutOfMemoryError"}


def test_public_names() -> None:
    for name in set(public.__all__) - WITH_JAXLIB:
        assert getattr(public, name) is getattr(errors, name)
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    kinds = {c.__name__ for c in classes if issubclass(c, Exception)}
    assert set(public.__all__) == kinds | WITH_JAXLIB
    with pytest.raises(AttributeError, match="Nonsense"):
        public.Nonsense  # noqa: B018  (the access is the test)


def test_importing_errors_loads_nothing_else() -> None:
    code = (
        "import sys, dovetail.errors as e; print('numpy' in sys.modules, 'jaxlib' in sys.modules);"
        "e.JaxRuntimeError; print('jaxlib' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.split() == ["False", "False", "True"]


#: Not for users' programs, or with an effect on the process that imports them.
APART = ("dovetail.as_jax", "dovetail.extend", "dovetail.testing")


def _public_modules(package: str = "dovetail") -> Iterator[str]:
    yield package
    for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if "._" in found.name or found.name.startswith(APART):
            continue
        if found.ispkg:
            yield from _public_modules(found.name)
        else:
            yield found.name


def _public_exceptions() -> dict[str, type[Exception]]:
    """The exception classes of ours in all public modules, by the names that users write."""
    found = {}
    for module in _public_modules():
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", ()):
            value = getattr(loaded, name)
            if (
                isinstance(value, type)
                and issubclass(value, Exception)
                and value.__module__.startswith("dovetail")  # others are jaxlib's
            ):
                found[f"{module}.{name}"] = value
    return found


EXCEPTIONS = _public_exceptions()


def test_public_exceptions_are_found() -> None:
    assert len(EXCEPTIONS) > 20
    assert {"dovetail.errors.ShapeError", "dovetail.dtypes.TypePromotionError"} <= set(EXCEPTIONS)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_users_see_the_public_name(name: str) -> None:
    kind = EXCEPTIONS[name]
    shown = f"{kind.__module__}.{kind.__qualname__}"
    assert EXCEPTIONS.get(shown) is kind
    assert shown in repr(kind)
    assert shown in traceback.format_exception_only(kind.__new__(kind))[-1]
    assert pickle.loads(pickle.dumps(kind)) is kind
    typing.get_type_hints(kind)
    if kind.__module__ == "dovetail.errors" and kind.__name__ not in WITH_JAXLIB:
        assert inspect.getsource(kind).startswith(f"class {kind.__name__}")
