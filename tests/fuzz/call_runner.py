"""Make calls, and tell what came of each.

    python call_runner.py GIGABYTES

Requests and answers go over the standard input and output as in tests/differential. The process may
take so much memory beyond what it begins with, and tells on the standard error where it was when it
crashed or hung.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
import tempfile
import warnings
from typing import Any

import numpy as np
from call_drawing import PRELUDE
from judging import CALL, what_is_wrong
from public_functions import public_functions
from runner import receive, send

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base.config import trace_key
from dovetail.extend.eager import evaluation_trace, trace_state

#: Names of functions that errors may tell of.
KNOWN = frozenset({"<lambda>", *(f.name.rpartition(".")[2] for f in public_functions())})
#: Elements up to which results are looked at.
SMALL = 1000
SECONDS = 15


def limit_memory(gigabytes: float) -> None:
    """Let the process have so much memory beyond what it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@dt.jit
def _known(x: Any) -> Any:
    return jnp.sum(x * 2 + 1)


def state() -> str:
    """What a call must leave as it was: options, the trace, and that results are right."""
    wrong = []
    if type(jnp.add(1, 2)) is not dt.Array or int(jnp.add(1, 2)) != 3:
        wrong.append("1 + 2 is not 3")
    if float(_known(np.arange(3, dtype=np.float32))) != 9.0:
        wrong.append("a compiled program gives another result")
    if trace_state.trace is not evaluation_trace:
        wrong.append(f"the trace is {trace_state.trace}")
    return repr((wrong, jnp.zeros(1, int).dtype, trace_key()))


def look_at(result: Any) -> None:
    """Wait for what was computed, read it and print it."""
    for leaf in dt.tree.leaves(result):
        if isinstance(leaf, dt.Array) and not leaf.is_deleted():
            leaf.block_until_ready()
            if leaf.size <= SMALL:
                repr(leaf)
    if not isinstance(result, dt.Array):
        repr(result)


def outcome(line: str) -> tuple[str, str] | tuple[()] | None:
    """What is wrong with a call; None if it was refused, as it should be, () if it was made."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)
    try:
        result = eval(compile(line, CALL, "eval"), names)
        names["look_at"], names["result"] = look_at, result
        eval(compile("look_at(result)", CALL, "eval"), names)
    except Exception as error:
        found = what_is_wrong(error, KNOWN)
        if found is None:
            return None
        why, where = found
        return f"{type(error).__name__}: {str(error)[:300]}", f"{why}, {where}"
    return ()


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # calls may print
    faulthandler.enable()
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp(prefix="dovetail-fuzz-"))
    dt.config.update("traceback_filtering", "off")  # which statement has raised is looked at
    jnp.linalg.inv(jnp.eye(2))
    before = dict.fromkeys((False, True), "")
    for x64 in before:
        dt.config.update("enable_x64", x64)
        before[x64] = state()
    limit_memory(float(sys.argv[1]))
    while True:
        try:
            request = receive(sys.stdin.buffer)
        except EOFError:
            return
        dt.config.update("enable_x64", request["x64"])
        faulthandler.dump_traceback_later(SECONDS)
        found = outcome(request["line"])
        faulthandler.cancel_dump_traceback_later()
        changed = ""
        try:
            after = state()
            if after != before[request["x64"]]:
                changed = f"{before[request['x64']]} became {after}"
        except Exception as error:
            changed = f"what is always right raises {type(error).__name__}: {error}"
        send(answers, {"found": found or None, "made": found == (), "changed": changed})


if __name__ == "__main__":
    main()
