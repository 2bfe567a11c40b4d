"""The whole public API is there, or it is said why not.

`public_api.json` lists the names of JAX's documented API by the places where they are here, with
the parameters and defaults of functions, but for those of which a manifest beside it has more. What
is left out on purpose stands with its reason in `base/left_out.json`, and so in
docs/differences-from-jax.md.
"""

from __future__ import annotations

import ast
import enum
import inspect
import json
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
import dovetail.numpy as jnp

ROOT = Path(__file__).parents[2]
API: dict[str, dict[str, str | None]] = json.loads(
    Path(__file__).with_name("public_api.json").read_text(encoding="utf-8")
)
LEFT_OUT: dict[str, dict[str, str]] = json.loads(
    (ROOT / "packages/core/src/dovetail/_core/base/left_out.json").read_text(encoding="utf-8")
)


#: Signatures that differ, and why.
OTHERWISE: dict[str, dict[str, str]] = {
    "dovetail": {"Ref": "new_ref and empty_ref make references; the class is for isinstance"},
    "dovetail.Array": {
        "__abs__": "the list has the function behind the method",
        "__array__": "NumPy's own protocol, which has no context",
        "__invert__": "the list has the function behind the method",
        "__neg__": "the list has the function behind the method",
        "__pos__": "the list has the function behind the method",
        "__round__": "the list has the function behind the method",
        "__setitem__": "always an error, with Python's own names of its arguments",
    },
    "dovetail.core": {
        "ShapedArray": "memories and layouts are no part of types",
        "Trace": "a class for isinstance; transformations make traces",
        "eval_jaxpr": "equations always keep their lines",
    },
    "dovetail.experimental.topologies": {
        "TopologyDescription": "get_topology_desc makes it, and says of which platform it is"
    },
    "dovetail.extend.core": {
        "ClosedJaxpr": "a jaxpr with its constants; in JAX it is a jaxpr itself",
        "DebugInfo": "jit and its relatives make it; api_util.debug_info under the alias",
        "Jaxpr": "the constants are in ClosedJaxpr",
        "JaxprEqn": "new_jaxpr_eqn makes equations, with JAX's arguments",
        "find_top_trace": "the argument, which makes no difference, has a name",
        "jaxpr_as_fun": "what is returned takes the arguments, as in JAX",
    },
    "dovetail.ffi": {"register_ffi_target": "the further argument is named: traits"},
    "dovetail.ref": {"Ref": "new_ref and empty_ref make references; the class is for isinstance"},
    "dovetail.sharding": {
        "no_collectives": "it says along which axes, as JAX's function of the name does"
    },
    "dovetail.stages": {
        "ArgInfo": "made by lower() and compile()",
        "Compiled": "made by lower().compile()",
        "Lowered": "made by jit(f).lower()",
        "Traced": "made by jit(f).trace()",
    },
}


@cache
def objects() -> dict[str, Any]:
    """The objects whose attributes are listed, by how the list calls them."""
    jitted = dt.jit(lambda x: x + 1)
    lowered = jitted.lower(1.0)
    return {
        "dovetail.Array": jnp.ones((1, 1)),
        "x.at[index]": jnp.ones(2).at[0],
        "jit(f)": jitted,
        "jit(f).lower(...)": lowered,
        "jit(f).lower(...).compile()": lowered.compile(),
        "dtypes": jnp,
    }


def thing(place: str) -> Any:
    """What has the names of a place; None if there is no such module."""
    if place in objects():
        return objects()[place]
    try:
        return import_module(place)
    except ModuleNotFoundError:
        return None


def has(owner: Any, place: str, name: str) -> bool:
    """Whether something has a name, or is a package with a module of it."""
    if owner is None or hasattr(owner, name):
        return owner is not None
    return hasattr(owner, "__path__") and find_spec(f"{place}.{name}") is not None


@pytest.mark.parametrize("place", [place for place in API if place != "dovetail.config"])
def test_names(place: str) -> None:
    """Each name is there, or is left out on purpose."""
    owner = thing(place)
    there = {name for name in API[place] if has(owner, place, name)}
    left_out = LEFT_OUT.get(place, {}).keys()
    assert sorted(API[place].keys() - there - left_out) == [], "missing"
    assert sorted(left_out & there) == [], "left out, and yet there"


class Parameter:
    """A parameter of a documented signature."""

    def __init__(self, name: str, kind: Any, default: str | None) -> None:
        self.name = name
        self.kind = kind
        self.default = default


def documented(signature: str) -> list[Parameter]:
    """The parameters in a signature of the list."""
    arguments = ast.parse(f"def f{signature}: pass").body[0].args  # type: ignore[attr-defined]
    kinds = inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    found = [
        Parameter(
            node.arg,
            kinds.POSITIONAL_ONLY if node in arguments.posonlyargs else kinds.POSITIONAL_OR_KEYWORD,
            None if default is None else ast.unparse(default),
        )
        for node, default in zip(positional, defaults, strict=True)
    ]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, kinds.VAR_POSITIONAL, None))
    for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown = None if default is None else ast.unparse(default)
        found.append(Parameter(node.arg, kinds.KEYWORD_ONLY, shown))
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, kinds.VAR_KEYWORD, None))
    return [p for p in found if p.name != "self"]


def differences(function: Any, signature: str) -> list[str]:
    """How calls that the list documents could fail or do something else."""
    ours = inspect.signature(function).parameters
    wanted = documented(signature)
    kinds = inspect.Parameter
    found = []
    positional = [
        p for p in ours.values() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    takes_all = {p.kind for p in ours.values()}
    named = {p.name for p in ours.values() if p.kind is not kinds.POSITIONAL_ONLY}
    place = 0
    for parameter in wanted:
        if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            if parameter.kind not in takes_all:
                found.append(
                    f"no {'*' if parameter.kind is kinds.VAR_POSITIONAL else '**'}{parameter.name}"
                )
            continue
        if parameter.name.startswith("_") and parameter.default is not None:
            continue  # no part of the API
        own = ours.get(parameter.name)
        if parameter.kind is not kinds.KEYWORD_ONLY:
            at = positional[place] if place < len(positional) else None
            place += 1
            if parameter.kind is kinds.POSITIONAL_ONLY:
                own = at
            if at is None and kinds.VAR_POSITIONAL not in takes_all:
                found.append(f"{parameter.name} is not taken by position")
            elif at is not None and own is not at and own is not None:
                found.append(f"{parameter.name} has another position")
        if parameter.kind is not kinds.POSITIONAL_ONLY and parameter.name not in named:
            if kinds.VAR_KEYWORD not in takes_all:
                found.append(f"no {parameter.name}")
            continue
        if own is None or own.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            continue
        if parameter.default is not None and own.default is own.empty:
            found.append(f"{parameter.name} has no default")
        elif parameter.default is not None:
            try:
                default = ast.literal_eval(parameter.default)
            except ValueError:
                continue  # an object, which is another one here
            if own.default != default:
                found.append(f"the default of {parameter.name} is {own.default!r}, not {default!r}")
    known = {p.name for p in wanted}
    required = [
        p.name
        for n, p in enumerate(ours.values())
        if p.default is p.empty
        and p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        and p.name not in known
        and not (p in positional and n < place)
    ]
    return found + [f"{name} must be given" for name in required]


#: Classes that users do not call: exceptions are raised, and enumerations have members.
NOT_CALLED = (BaseException, enum.Enum)

SIGNATURES = {
    place: {name: text for name, text in names.items() if text is not None}
    for place, names in API.items()
    if any(names.values())
}


@pytest.mark.parametrize("place", SIGNATURES)
def test_signatures(place: str) -> None:
    """Functions take the documented arguments, unless it is said why not."""
    owner = thing(place)
    found = {}
    for name, text in SIGNATURES[place].items():
        value = getattr(owner, name, None)
        if value is None or (isinstance(value, type) and issubclass(value, NOT_CALLED)):
            continue
        differs = differences(value, text)
        if differs:
            found[name] = f"{name}{inspect.signature(value)} is documented {text}: {differs}"
    excused = OTHERWISE.get(place, {}).keys()
    assert [text for name, text in found.items() if name not in excused] == []
    assert sorted(excused - found.keys()) == [], "excused, and yet as documented"


def test_options() -> None:
    """Each option can be read, and set to what it is."""
    for name in API["dovetail.config"]:
        dt.config.update(name, dt.config.read(name))


def test_reasons() -> None:
    """What is left out is something of the API, and has a reason."""
    for place, reasons in LEFT_OUT.items():
        assert place in API
        assert reasons.keys() <= API[place].keys()
        assert all(len(text) > 10 and not text.endswith(".") for text in reasons.values())


@pytest.mark.parametrize(
    ("signature", "function", "expected"),
    [
        ("(a, b=1)", lambda a, b=1: None, []),
        ("(a, b=1)", lambda a, b=1, c=2: None, []),
        ("(a, /, b)", lambda x, b: None, []),
        ("(self, a)", lambda a: None, []),
        ("(a, *rest, **others)", lambda a, *rest, **others: None, []),
        ("(a, *, b)", lambda a, b: None, []),
        ("(a, b)", lambda *args, **kwargs: None, []),
        ("(a)", lambda: None, ["a is not taken by position", "no a"]),
        (
            "(a)",
            lambda b: None,
            [
                "no a",
            ],
        ),
        ("(a, b)", lambda b, a: None, ["a has another position", "b has another position"]),
        ("(a=1)", lambda a: None, ["a has no default"]),
        ("(a=1)", lambda a=2: None, ["the default of a is 2, not 1"]),
        ("(a=NOTSAID)", lambda a=2: None, []),
        ("(*rest)", lambda: None, ["no *rest"]),
        ("(**others)", lambda: None, ["no **others"]),
        ("(a)", lambda a, *, b: None, ["b must be given"]),
    ],
)
def test_differences(signature: str, function: Any, expected: list[str]) -> None:
    assert differences(function, signature) == expected
