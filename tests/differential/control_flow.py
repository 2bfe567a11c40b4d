"""How branches, loops and transformations are drawn, and the functions that they take."""

from __future__ import annotations

from typing import Any

from drawing import Draw, Value
from numpy_operations import Made, Maker, call, tupled
from source import THROUGH, TRANSFORM, Operation

Body = dict[str, Any]

UNARY = ("jnp.sin", "jnp.tanh", "jnp.negative", "jnp.abs", "jnp.square", "lax.neg", "jnp.cos")
BINARY = ("jnp.add", "jnp.multiply", "jnp.maximum", "jnp.subtract", "jnp.minimum")


def _body(draw: Draw, parameters: int, results: int, depth: int = 0) -> Body:
    """A function that computes element by element with its parameters and what is outside."""
    draw.bodies += 1
    number = draw.bodies
    names = [f"p{number}_{i}" for i in range(parameters)]
    known: list[list[Any]] = [["ref", name] for name in names]
    if not known or draw.chance(0.2):
        known.append(draw.value(shape=() if draw.chance(0.7) else None).reference)
    operations: list[Operation] = []
    for i in range(draw.integer(1, 3)):
        operand = draw.pick(known)
        if depth == 0 and draw.chance(0.15):
            inner = [_body(draw, 1, 1, 1) for _ in range(2)]
            words = [["name", body["name"]] for body in inner]
            pred = ["call", "jnp.any", [["call", "jnp.greater", [operand, 0], {}]], {}]
            operation = call("lax.cond", pred, *words, operand)
            operation["bodies"] = inner
        elif draw.chance(0.5):
            operation = call(draw.pick(UNARY), operand)
        else:
            other = draw.scalar("f" if draw.mistake() else "i")
            if draw.chance(0.5):
                other = draw.pick(known)
            operation = call(draw.pick(BINARY), operand, other)
        operation["result"] = f"p{number}_{len(names) + i}"
        operations.append(operation)
        known.append(["ref", operation["result"]])
    found = [draw.pick(known[-2:]) for _ in range(results)]
    # Loops and branches need results of certain types; now and then they are left as they are.
    if parameters >= results and not draw.chance(0.15):
        found = [
            [
                "call",
                "jnp.broadcast_to",
                [
                    ["like", ["call", "jnp.asarray", [value], {}], ["ref", name]],
                    ["name", f"jnp.shape({name})"],
                ],
                {},
            ]
            for value, name in zip(found, names, strict=False)
        ]
    result = found[0] if results == 1 else tupled(found)
    return {
        "name": f"body{number}",
        "parameters": names,
        "operations": operations,
        "result": result,
    }


def _with(operation: Operation, *bodies: Body) -> Operation:
    return operation | {"bodies": list(bodies)}


def _name(body: Body) -> list[Any]:
    return ["name", body["name"]]


def branches(draw: Draw, function: str) -> Made:
    operand = draw.value()
    if function == "lax.cond":
        pred: Any = draw.value("b", shape=()) if draw.chance(0.7) else draw.chance(0.5)
        if draw.chance(0.2):
            other = draw.value()
            bodies = [_body(draw, 2, 2) for _ in range(2)]
            words = call(function, pred, *map(_name, bodies), operand, other)
            return _with(words, *bodies), [(operand.shape, operand.kind), (other.shape, other.kind)]
        bodies = [_body(draw, 1, 1) for _ in range(2)]
        words = call(function, pred, *map(_name, bodies), operand)
        return _with(words, *bodies), (operand.shape, operand.kind)
    bodies = [_body(draw, 1, 1) for _ in range(draw.integer(1, 3))]
    index: Any = draw.value("i", shape=()) if draw.chance(0.7) else draw.integer(-1, 3)
    words = call(function, index, ["list", *map(_name, bodies)], operand)
    return _with(words, *bodies), (operand.shape, operand.kind)


def scanning(draw: Draw, function: str) -> Made:
    if function == "lax.map":
        body = _body(draw, 1, 1)
        x = draw.value(least=1)
        keywords = {"batch_size": draw.integer(1, 3)} if draw.chance(0.2) else {}
        return _with(call(function, _name(body), x, **keywords), body), (x.shape, x.kind)
    if function == "lax.associative_scan":
        x = draw.value("iff", least=1)
        operation = ["name", draw.pick(("jnp.add", "jnp.maximum", "jnp.multiply"))]
        keywords = {"reverse": True} if draw.chance(0.3) else {}
        return call(function, operation, x, **keywords), (x.shape, x.kind)
    x = draw.value(least=1)
    carry: Any = draw.value(shape=x.shape[1:] if draw.chance(0.5) else ())
    shape, kind = carry.shape, carry.kind
    if draw.chance(0.3):
        carry, shape, kind = draw.scalar(), (), "f"
    body = _body(draw, 2, 2)
    keywords = {"reverse": True} if draw.chance(0.2) else {}
    if draw.chance(0.2):
        keywords["unroll"] = draw.integer(1, 3)
    if draw.chance(0.2):
        keywords["length"] = draw.size(x.shape[0])
    words = call(function, _name(body), carry, x, **keywords)
    return _with(words, body), [(shape, kind), (x.shape, x.kind)]


def looping(draw: Draw, function: str) -> Made:
    start: Any = draw.value()
    shape, kind = start.shape, start.kind
    if draw.chance(0.3):
        start, shape, kind = draw.scalar(), (), "f"
    if function == "lax.fori_loop":
        body = _body(draw, 2, 1)
        # The state of the loop is the second parameter.
        body["parameters"].reverse()
        upper: Any = draw.value("i", shape=()) if draw.chance(0.3) else draw.integer(0, 4)
        lower: Any = draw.value("i", shape=()) if draw.chance(0.2) else draw.integer(-1, 2)
        keywords = {"unroll": draw.integer(1, 2)} if draw.chance(0.1) else {}
        words = call(function, lower, upper, _name(body), start, **keywords)
        return _with(words, body), (shape, kind)
    body = _body(draw, 1, 1)
    inner, draw.bodies = body["name"], draw.bodies + 1
    test, step = f"test{draw.bodies}", f"body{draw.bodies}"
    count: Body = {
        "name": test,
        "parameters": ["state"],
        "operations": [],
        "result": ["call", "jnp.less", [["ref", "state", 0], draw.integer(0, 3)], {}],
    }
    advance = ["call", "jnp.add", [["ref", "state", 0], 1], {}]
    one: Body = {
        "name": step,
        "parameters": ["state"],
        "operations": [],
        "result": tupled([advance, ["call", inner, [["ref", "state", 1]], {}]]),
    }
    first = draw.pick((0, 0, ["call", "jnp.int32", [0], {}]))
    state = tupled([first, start.reference if isinstance(start, Value) else start])
    words = call(function, ["name", test], ["name", step], state)
    return _with(words, body, count, one), [((), "i"), (shape, kind)]


def transforming(draw: Draw, function: str) -> Made:
    """Transformations inside of programs."""
    name = function.rpartition(".")[2]
    if name == "vmap":
        x = draw.value(least=1)
        body = _body(draw, 1, 1)
        axes = draw.axis(len(x.shape))
        keywords = {"in_axes": axes, "out_axes": axes} if draw.chance(0.5) else {}
        return _with(call(function, _name(body), x, **keywords), body), (x.shape, x.kind)
    x = draw.value("f" if name not in ("jit", "checkpoint") else "biufc")
    body = _body(draw, 1, 1)
    if name in ("jit", "checkpoint", "custom_gradient"):
        if name == "custom_gradient":
            body["result"] = tupled([body["result"], ["name", "lambda g: 2 * g"]])
        return _with(call(function, _name(body), x), body), (x.shape, x.kind)
    if name == "jvp":
        words = call(function, _name(body), tupled([x]), tupled([draw.like(x)]))
        return _with(words, body), [(x.shape, x.kind)] * 2
    if name in ("jacfwd", "jacrev"):
        return _with(call(function, _name(body), x), body), (x.shape * 2, x.kind)
    body["result"] = ["call", "jnp.sum", [body["result"]], {}]
    result: Any = (x.shape * (2 if name == "hessian" else 1), x.kind)
    if name == "value_and_grad":
        result = [((), x.kind), result]
    return _with(call(function, _name(body), x), body), result


def _whole(draw: Draw, parameters: list[str], steps: list[Operation], result: Any) -> Body:
    """A function that runs steps, each of which has its result."""
    draw.bodies += 1
    return {
        "name": f"body{draw.bodies}",
        "parameters": parameters,
        "operations": steps,
        "result": result,
    }


def _step(result: str, operation: Operation) -> Operation:
    return operation | {"result": result}


def _applied(function: Any, *arguments: Any) -> list[Any]:
    """A call inside of an expression; the function is a body, a name or text."""
    name = function["name"] if isinstance(function, dict) else function
    return ["call", name, list(arguments), {}]


def linearizing(draw: Draw, function: str) -> Made:
    """Values with linear functions, which are applied."""
    x = draw.value("f")
    draw.own(x.reference)
    body = _body(draw, 1, 1)
    p, t, found = ["ref", "p"], ["ref", "t"], ["ref", "found", 0]
    if function.endswith("linearize"):
        linear = _applied("found[1]", t)
        if draw.chance(0.3):
            linear = tupled(
                [linear, _applied("dt.vmap(found[1])", ["call", "jnp.stack", [["list", t, t]], {}])]
            )
    else:
        linear = _applied("found[1]", _applied("jnp.ones_like", found))
        if draw.chance(0.3):
            linear = tupled([linear, _applied("found[1]", ["like", t, found])])
    start = _with(call(function.removeprefix(THROUGH), _name(body), p), body)
    whole = _whole(draw, ["p", "t"], [_step("found", start)], tupled([found, linear]))
    operation = call(function, x, draw.like(x))
    return _with(operation, whole), [(x.shape, x.kind)]


def customizing(draw: Draw, function: str) -> Made:
    """Functions with derivatives of their own, which are not those of what they compute."""
    x = draw.value("f")
    draw.own(x.reference)
    body, other = _body(draw, 1, 1), _body(draw, 1, 1)
    p, t = ["ref", "p"], ["ref", "t"]
    draw.bodies += 1
    rule, backward = f"rule{draw.bodies}", f"backward{draw.bodies}"
    rules: list[Body]
    if function.endswith("custom_jvp"):
        point, tangent = ["ref", "primals", 0], ["ref", "tangents", 0]
        scaled = _applied("jnp.multiply", tangent, _applied(other, point))
        result = tupled([_applied(body, point), scaled])
        rules = [
            {
                "name": rule,
                "parameters": ["primals", "tangents"],
                "operations": [],
                "result": result,
            }
        ]
    else:
        scaled = _applied("jnp.multiply", ["ref", "g"], _applied(other, ["ref", "kept"]))
        rules = [
            {
                "name": rule,
                "parameters": ["q"],
                "operations": [],
                "result": tupled([_applied(body, ["ref", "q"]), ["ref", "q"]]),
            },
            {
                "name": backward,
                "parameters": ["kept", "g"],
                "operations": [],
                "result": tupled([scaled]),
            },
        ]
    steps = [
        _step("custom", call(function.removeprefix(THROUGH), _name(body))),
        _step(
            "nothing",
            call("custom.defjvp" if len(rules) == 1 else "custom.defvjp", *map(_name, rules)),
        ),
    ]
    how = draw.integer(0, 3)
    result = _applied("custom", p)
    if how == 1 and len(rules) == 1:
        result = _applied("dt.jvp", ["name", "custom"], tupled([p]), tupled([t]))
    elif how == 1:
        result = _applied("dt.vjp(custom, p)[1]", ["like", t, p])
    elif how == 2:
        result = _applied("dt.grad(lambda p: jnp.sum(custom(p)))", p)
    elif how == 3:
        result = _applied("dt.jit(custom)", p)
    whole = _whole(draw, ["p", "t"], steps, result)
    operation = call(function, x, draw.like(x))
    return _with(operation, body, other, *rules, whole), None if how == 1 else (x.shape, x.kind)


def referring(draw: Draw, function: str) -> Made:
    """Arrays that change in place, also inside of loops, branches and compiled functions."""
    x = draw.value()
    ref = ["name", "ref"]
    bodies, steps = [], [_step("ref", call("dt.new_ref", ["ref", "p"]))]
    places = ["...", "()"]
    if x.shape and x.shape[0]:
        places += ["0", "-1", "slice(0, 1)", "np.array([0])"]
    for number in range(draw.integer(1, 3)):
        place = draw.pick(places)
        body = _body(draw, 1, 1)
        bodies.append(body)
        value = _applied(body, ["name", f"ref[{place}]"])
        change = _applied(
            f"dt.ref.{draw.pick(('set', 'swap', 'addupdate'))}", ref, ["name", place], value
        )
        name = f"step{number}"
        around = draw.integer(0, 6)
        if around == 0:
            inner = _whole(draw, ["i", "c"], [_step("done", _as_operation(change))], ["ref", "c"])
            change = _applied("lax.fori_loop", 0, draw.integer(0, 3), _name(inner), 0)
        elif around == 1:
            inner = _whole(draw, [], [_step("done", _as_operation(change))], 0)
            change = _applied("lax.cond", draw.chance(0.5), _name(inner), ["name", "lambda: 0"])
        elif around == 2:
            inner = _whole(draw, [], [_step("done", _as_operation(change))], 0)
            change = _applied(f"dt.jit({inner['name']})")
        elif around == 3:
            inner = _whole(
                draw,
                ["c", "i"],
                [_step("done", _as_operation(change))],
                tupled([["ref", "c"], ["ref", "i"]]),
            )
            change = _applied("lax.scan", _name(inner), 0, ["array", "int32", [2], [0, 1]])
        step = _step(name, _as_operation(change))
        steps.append(_with(step, inner) if around <= 3 else step)
    result: Any = _applied("dt.freeze", ref)
    if draw.chance(0.5):
        result = tupled([["name", f"ref[{draw.pick(places)}]"], ["name", "ref[...]"]])
        made: Any = None
    else:
        made = (x.shape, x.kind)
    whole = _whole(draw, ["p"], steps, result)
    return _with(call(function, x), *bodies, whole), made


def _as_operation(expression: list[Any]) -> Operation:
    _, function, arguments, keywords = expression
    return {"function": function, "arguments": arguments, "keywords": keywords}


CONTROL_FLOW: dict[Maker, list[str]] = {
    branches: ["lax.cond", "lax.switch"],
    scanning: ["lax.scan", "lax.scan", "lax.map", "lax.associative_scan"],
    looping: ["lax.while_loop", "lax.fori_loop"],
    transforming: [
        "dt.jvp",
        *(
            f"{TRANSFORM}dt.{name}"
            for name in (
                "jit",
                "vmap",
                "grad",
                "value_and_grad",
                "jacfwd",
                "jacrev",
                "hessian",
                "checkpoint",
                "custom_gradient",
            )
        ),
    ],
    linearizing: [f"{THROUGH}dt.linearize", f"{THROUGH}dt.vjp"],
    customizing: [f"{THROUGH}dt.custom_jvp", f"{THROUGH}dt.custom_vjp"],
    referring: [f"{THROUGH}dt.new_ref"],
}
