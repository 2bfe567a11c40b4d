"""Writes docs/primitives.md: which rules each primitive has, and which backends override it.

python docs/write_primitives.py
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dovetail._core.trace.primitive import OPTIONAL_RULES, RULES
from dovetail.extend import Primitive, primitives

OUTPUT = Path(__file__).with_name("primitives.md")

BACKENDS = ("cpu", "cuda", "tpu")

HEAD = """# Primitives

Every primitive, the rules that its class has, and the backends whose lowering tables override its
rule `lower`. A name leads to the file that defines the primitive, a backend's mark to the file of
its rule. `dovetail.extend.explain` tells the line of each rule.

Every primitive may have the rules {rules};
the others are for those that need them: elsewhere, what a primitive does follows from the first. A
dash stands where a primitive has no derivative, or nothing to transpose, by its nature.

`python docs/write_primitives.py` writes this file.
"""


def _link(text: str, thing: Any) -> str:
    """A link to the file that defines a class or function."""
    path = os.path.relpath(inspect.getfile(inspect.unwrap(thing)), OUTPUT.parent)
    return f"[{text}]({Path(path).as_posix()})"


def _overrides(backend: str) -> Mapping[str, Any]:
    """The lowering table of a backend, which need not be able to run here."""
    table: Mapping[str, Any] = import_module(f"dovetail_{backend}.plugin").dovetail_lowerings(
        backend
    )
    return table


def _rule(primitive: Any, rule: str) -> str:
    if primitive.has_rule(rule):
        return "x"
    return "-" if primitive.no_derivative and rule in ("jvp", "transpose") else ""


def text() -> str:
    """The text of the file."""
    overrides = {backend: _overrides(backend) for backend in BACKENDS}
    columns = ["primitive", *RULES, *OPTIONAL_RULES, *BACKENDS]
    lines = [
        HEAD.format(rules=", ".join(f"`{rule}`" for rule in RULES)),
        "| " + " | ".join(columns) + " |",
        "|---" + "|:-:" * (len(columns) - 1) + "|",
    ]
    for name, primitive in sorted(primitives().items()):
        if isinstance(primitive, Primitive):
            continue  # a user's
        cells = [_link(f"`{name}`", type(primitive))]
        cells += [_rule(primitive, rule) for rule in (*RULES, *OPTIONAL_RULES)]
        cells += [_link("x", table[name]) if name in table else "" for table in overrides.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(text(), encoding="utf-8")
