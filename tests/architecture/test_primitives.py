"""What is to be known of a primitive its class says: no code asks for its name.

A name is printed, and it is the key of the registry and of lowering tables. The conformance kit,
`dovetail.testing`, names the samples and expected failures of primitives in tables of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

#: Where names of primitives are looked up, and why.
KEYED_BY_NAME = {
    "dovetail._core.api.explanation": "says what lowering tables hold",
    "dovetail._core.lower.rules": "lowering tables",
    "dovetail._core.runtime.calls.fallback": "counts what was computed elsewhere",
    "dovetail._core.runtime.devices.host_functions": "functions of backends, as lowering tables",
    "dovetail_cpu.lowerings.expressions": "steps of a kernel, as functions of backends",
    "dovetail_onnx.conversion": "converters to another format, as lowering tables",
}


def _is_primitive(node: ast.AST) -> bool:
    """Whether an expression is a primitive by its name: `primitive`, `eqn.primitive`, `add_p`."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "primitive" or name.endswith(("_p", "_primitive"))


def _names(function: ast.AST) -> set[str]:
    """Variables that hold the name of a primitive, in a function or module."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_name_of_primitive(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_name_of_primitive(node: ast.AST | None, variables: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in variables
    return isinstance(node, ast.Attribute) and node.attr == "name" and _is_primitive(node.value)


def _is_table(node: ast.AST) -> bool:
    """Whether an expression is a literal, a display, or a constant by its name."""
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_").isupper()
    if isinstance(node, ast.Name):
        return node.id.lstrip("_").isupper()
    return isinstance(node, ast.Constant | ast.Set | ast.Tuple | ast.List | ast.Dict)


def _offences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that compare the name of a primitive with a literal, or look it up in a table."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = [(function, _names(function)) for function in functions]
    none: set[str] = set()
    for scope, variables in [(tree, none), *(pair for pair in named if pair[1])]:
        for node in ast.walk(scope):
            if isinstance(node, ast.Compare):
                operands = [node.left, *node.comparators]
                if any(_is_name_of_primitive(o, variables) for o in operands) and any(
                    map(_is_table, operands)
                ):
                    yield node.lineno, ast.unparse(node)
            elif isinstance(node, ast.Subscript):
                keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if any(_is_name_of_primitive(key, variables) or _of_class(key) for key in keys):
                    yield node.lineno, ast.unparse(node)
            elif isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                by_name = any(_is_name_of_primitive(a, variables) for a in node.args)
                if by_name and (called in ("get", "setdefault") or _is_getattr(node.func)):
                    yield node.lineno, ast.unparse(node)
            elif isinstance(node, ast.Dict | ast.Set | ast.DictComp):
                keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
                keys = [node.key] if isinstance(node, ast.DictComp) else keys
                if any(k is not None and (_is_primitive(k) or _of_class(k)) for k in keys or ()):
                    yield node.lineno, ast.unparse(node)


def _of_class(node: ast.AST) -> bool:
    """Whether an expression is the name of the primitive of a class: `Jit.name`, `add_p.name`."""
    if not (isinstance(node, ast.Attribute) and node.attr == "name"):
        return False
    owner = node.value
    return _is_primitive(owner) or (isinstance(owner, ast.Name) and owner.id[:1].isupper())


def _is_getattr(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "getattr"


def test_no_code_asks_for_the_name_of_a_primitive(source_tree):
    found = {
        f"{module.label}:{line}: {text}"
        for module in source_tree.modules.values()
        if module.name not in KEYED_BY_NAME and not module.name.startswith("dovetail.testing")
        for line, text in _offences(module.tree)
    }
    assert not found, "\n".join(sorted(found))


def test_every_exception_is_needed(source_tree):
    unneeded = [n for n in KEYED_BY_NAME if not list(_offences(source_tree.modules[n].tree))]
    assert not unneeded


@pytest.mark.parametrize(
    "text",
    [
        'primitive.name == "jit"',
        'eqn.primitive.name in ("cond", "while")',
        "eqn.primitive.name not in _NO_NEW_NAN",
        "_WORTH_SHOWING.get(eqn.primitive.name, nothing)",
        "dce_rules[Jit.name] = rule",
        "TABLE = {Jit.name: rule}",
        "_RULES[eqn.primitive.name](eqn)",
        "TABLE = {add_p: 1}",
        "TABLE = {add_p, mul_p}",
        "def f(eqn):\n    name = eqn.primitive.name\n    return name in _MONOIDS",
        "getattr(operator, primitive.name)",
    ],
)
def test_what_is_found(text):
    assert list(_offences(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        'f"primitive {primitive.name} has no rule"',
        "eqn.primitive is scan_p",
        "primitive in (lax.eq_p, lax.ne_p)",
        "eqn.primitive.is_call",
        "compiled_function(primitive.name, run)",
    ],
)
def test_what_is_not(text):
    assert not list(_offences(ast.parse(text)))
