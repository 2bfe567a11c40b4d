"""Programs as data, and the Python that they stand for.

A program is what JSON holds:

    {"seed": 7, "x64": false, "mode": "vmap", "compiled": true,
     "inputs": [{"name": "x0", "flavour": "array", "dtype": "float32", "shape": [2],
                 "values": [0.5, 1.0], "batched": true}],
     "operations": [{"result": "v0", "function": "jnp.sum", "arguments": [["ref", "x0"]],
                     "keywords": {"axis": 0}}]}

A `transform` takes a function, the first argument, and what it gives takes the others.
An input is an `array`, a `numpy` array, a scalar of `python` or a `weak` array. An argument is a
number, a string, None, or a list that begins with what it is: see `expression`. Functions that an
operation takes are in its `bodies`, each with `name`, `parameters`, `operations` and `result`.

The text is what runs, so that what is printed is what was compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

Program = dict[str, Any]
Operation = dict[str, Any]

OPERATOR = "operator "
TRANSFORM = "transform "
METHOD = "method "
UPDATE = "at "
THROUGH = "through "
"""Before a function that is called in the last of the bodies, by which all of it is run."""


def _number(value: float) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "np.nan"
    if isinstance(value, float) and math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def expression(argument: Any) -> str:
    """The text of an argument."""
    if not isinstance(argument, list):
        return _number(argument)
    kind, *rest = argument
    if kind == "ref":
        return str(rest[0]) + "".join(f"[{item}]" for item in rest[1:])
    if kind == "name":
        return str(rest[0])
    if kind == "complex":
        return f"complex({_number(rest[0])}, {_number(rest[1])})"
    if kind == "list":
        return f"[{', '.join(map(expression, rest))}]"
    if kind == "tuple":
        return f"({', '.join(map(expression, rest))}{',' if len(rest) == 1 else ''})"
    if kind == "slice":
        return f"slice({', '.join(map(expression, rest))})"
    if kind == "array":
        dtype, shape, values = rest
        return f"np.array({array_values(values)}, {dtype!r}).reshape({tuple(shape)})"
    if kind == "like":
        return f"{expression(rest[0])}.astype({expression(rest[1])}.dtype)"
    if kind == "attribute":
        return f"{expression(rest[0])}.{rest[1]}"
    if kind == "call":
        function, arguments, keywords = rest
        return _call(function, arguments, keywords)
    raise ValueError(f"no argument: {argument}")


def array_values(values: list[Any]) -> str:
    """The text of a flat list of numbers."""
    return f"[{', '.join(expression(value) for value in values)}]"


def _call(function: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
    words = [expression(argument) for argument in arguments]
    words += [f"{key}={expression(value)}" for key, value in keywords.items()]
    return f"{function}({', '.join(words)})"


def operation_lines(operation: Operation) -> list[str]:
    """The lines of one operation, with the functions that it takes before it."""
    lines = []
    for body in operation.get("bodies", ()):
        lines.append(f"def {body['name']}({', '.join(body['parameters'])}):")
        for inner in body["operations"]:
            lines += ["    " + line for line in operation_lines(inner)]
        lines.append(f"    return {expression(body['result'])}")
    function, arguments = operation["function"], operation["arguments"]
    keywords = operation.get("keywords", {})
    if function.startswith(OPERATOR):
        sign = function.removeprefix(OPERATOR)
        words = [expression(argument) for argument in arguments]
        text = f"{sign}{words[0]}" if len(words) == 1 else f"{words[0]} {sign} {words[1]}"
    elif function.startswith(TRANSFORM):
        function = function.removeprefix(TRANSFORM)
        words = [expression(argument) for argument in arguments[1:]]
        text = f"{_call(function, arguments[:1], keywords)}({', '.join(words)})"
    elif function.startswith(THROUGH):
        text = _call(operation["bodies"][-1]["name"], arguments, keywords)
    elif function == "getitem":
        text = f"{expression(arguments[0])}[{expression(arguments[1])}]"
    elif function.startswith(UPDATE):
        place = f"{expression(arguments[0])}.at[{expression(arguments[1])}]"
        text = _call(f"{place}.{function.removeprefix(UPDATE)}", arguments[2:], keywords)
    elif function.startswith(METHOD):
        method = f"{expression(arguments[0])}.{function.removeprefix(METHOD)}"
        text = _call(method, arguments[1:], keywords)
    else:
        text = _call(function, arguments, keywords)
    return [*lines, f"{operation['result']} = {text}"]


def input_line(entry: dict[str, Any]) -> str:
    """The line that makes an input."""
    values, shape = entry["values"], tuple(entry["shape"])
    if entry["flavour"] == "python":
        text = expression(values[0])
    elif entry["flavour"] == "weak" and not values:
        text = f"jnp.broadcast_to(jnp.asarray({weak_zero(entry['dtype'])}), {shape})"
    elif entry["flavour"] == "weak":
        # A stack of weakly typed scalars is weakly typed.
        text = f"jnp.stack([jnp.asarray(x) for x in {array_values(values)}]).reshape({shape})"
    else:
        text = expression(["array", entry["dtype"], entry["shape"], values])
        if entry["flavour"] == "array":
            text = f"jnp.asarray({text})"
    return f"{entry['name']} = {text}"


def stack(entry: dict[str, Any]) -> dict[str, Any]:
    """An input of two elements: the values of an input, and the same in reverse."""
    values = [*entry["values"], *reversed(entry["values"])]
    return entry | {"shape": [2, *entry["shape"]], "values": values}


def weak_zero(dtype: str) -> str:
    """A scalar of Python that is weakly typed as a dtype is."""
    return "0j" if dtype.startswith("c") else "0.0" if dtype.startswith("f") else "0"


def references(data: Any) -> Iterator[str]:
    """The names that an argument or an operation refers to, those of its own bodies included."""
    if isinstance(data, list):
        if data and data[0] == "ref":
            yield data[1]
        else:
            for item in data:
                yield from references(item)
    elif isinstance(data, dict):
        for key in ("arguments", "keywords", "bodies", "operations", "result"):
            if isinstance(data.get(key), list | dict):
                yield from references(data[key])
        if "function" not in data and "parameters" not in data:
            for item in data.values():
                yield from references(item)


def operands(operation: Operation) -> list[str]:
    """The inputs and results that an operation uses, each once."""
    return [name for name in dict.fromkeys(references(operation)) if name[0] in "xv"]


def script(program: Program, library: str, mode: str = "eager") -> str:
    """A whole program as Python, for reading and for trying out."""
    names = [entry["name"] for entry in program["inputs"]]
    lines = [
        "import ml_dtypes",
        "import numpy as np",
        f"import {library}",
        f"import {library} as dt",
        f"import {library}.numpy as jnp",
        f"from {library} import lax, nn, random",
        "",
        f'{library}.config.update("jax_enable_x64", {program["x64"]})',
        *(
            input_line(stack(entry) if mode == "vmap" and entry["batched"] else entry)
            for entry in program["inputs"]
        ),
    ]
    body = [line for operation in program["operations"] for line in operation_lines(operation)]
    last = program["operations"][-1]["result"]
    if mode == "eager":
        return "\n".join([*lines, *body, f"print(repr({last}))"]) + "\n"
    lines += [f"def f({', '.join(names)}):", *("    " + line for line in body)]
    lines.append(f"    return {last}")
    arguments = ", ".join(names)
    if mode == "vmap":
        axes = tuple(0 if entry["batched"] else None for entry in program["inputs"])
        lines.append(f"print(repr({library}.vmap(f, in_axes={axes})({arguments})))")
    elif mode == "grad":
        numbers = tuple(i for i, entry in enumerate(program["inputs"]) if differentiable(entry))
        lines.append("loss = lambda *args: jnp.sum(jnp.real(f(*args))).astype(float)")
        lines.append(f"print(repr({library}.grad(loss, {numbers})({arguments})))")
    else:
        lines.append(f"print(repr({library}.jit(f)({arguments})))")
    return "\n".join(lines) + "\n"


def differentiable(entry: dict[str, Any]) -> bool:
    """Whether gradients are taken with respect to an input."""
    inexact: bool = entry["dtype"].startswith(("float", "bfloat", "complex"))
    return inexact and entry["flavour"] != "numpy"
