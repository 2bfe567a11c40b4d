"""The short form of what `nox -s fuzz` does for hours, and whether it would find anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from call_drawing import Call, CallDraw
from fuzz import Caller, Callers
from judging import CALL, what_is_wrong
from public_functions import NOT_CALLED, public_functions

SEED = 20_000
CALLS = 500


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    """A process that makes calls."""
    made = Caller(sys.executable)
    yield made
    made.process.close()


def test_calls_find_nothing() -> None:
    callers = Callers(sys.executable, 1)
    found = [finding for each in callers.make_all(SEED, CALLS) for finding in each]
    accepted = callers.accepted()
    callers.close()
    assert "\n".join(map(str, found)) == ""
    assert 0.25 * CALLS < accepted < 0.75 * CALLS  # neither all mistakes nor none


def test_a_seed_has_one_call() -> None:
    for seed in range(50):
        call = CallDraw(seed).call()
        assert call == CallDraw(seed).call()
        compile(call.script(), "<call>", "exec")


def test_every_public_function_is_called() -> None:
    names = {function.name for function in public_functions()}
    assert len(names) > 900
    for name in ("jnp.pad", "lax.scan", "nn.gelu", "random.split", "tree.map", "dt.vmap"):
        assert name in names
    assert {".sum", ".at[INDEX].add", "jnp.linalg.svd", "lax.linalg.lu"} <= names
    drawn = {CallDraw(seed).call().function for seed in range(12_000)}
    assert len(names - drawn) < 0.01 * len(names)
    assert not {name for group in NOT_CALLED.values() for name in group.split()} & {
        name.rpartition(".")[2] for name in names
    }


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("jnp.zeros(3) + 1", None),
        ("jnp.zeros(3) + jnp.zeros(4)", None),
        ("jnp.zeros(2**40)", None),
        ("[].no_such_method()", None),
        ("jnp.sum()", None),
        ("np.linalg.inv(np.zeros((2, 2)))", None),
        ("eval(compile('{}[1]', 'src/dovetail/y.py', 'eval'))", "raised by no statement of ours"),
        ("jnp.zeros(exec('raise ValueError(\"MLIR\")'))", "the message says 'MLIR'"),
        ("exec('import ctypes; ctypes.string_at(0)')", "Crashed"),
        ("exec('import time; time.sleep(60)')", "Hung"),
        ("jnp.asarray(dt.config.update('numpy_rank_promotion', 'raise') or 0)", " became "),
    ],
)
def test_what_must_not_be_is_found(caller: Caller, line: str, found: str | None) -> None:
    patience, caller.process.patience = caller.process.patience, 4.0 if found == "Hung" else 60.0
    findings = caller.make(Call(0, "planted", line, False))
    caller.process.patience = patience
    assert [(found or "") in finding.where for finding in findings] == ([True] if found else [])
    assert caller.make(Call(1, "known", "jnp.zeros(3)", False)) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("raise ValueError('INVALID_ARGUMENT: stablehlo')", "the message says"),
        ("raise ValueError('this axis is out of bounds')", None),
        ("raise ValueError", "there is no message"),
        ("{}['key']", "raised by no"),
        ("None.shape", "the message says \"'NoneType' object"),
        ("assert 1 > 2, 'text'", "raised by no"),
        ("def inner(x): pass\ninner()", "raised by no"),
        ("def pad(x): pass\npad()", None),
        ("(lambda x: x)()", None),
        ("open('there is no such file')", None),
    ],
)
def test_an_error_must_tell_what_a_user_wrote(code: str, found: str | None, tmp_path: Path) -> None:
    file = tmp_path / "src" / "dovetail" / "code.py"
    file.parent.mkdir(parents=True)
    file.write_text(code, encoding="utf-8")
    known = frozenset({"<lambda>", "pad"})
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any class
        exec(compile(code, str(file), "exec"), {})
    judged = what_is_wrong(caught.value, known)
    assert judged is None if found is None else judged is not None and found in judged[0]
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the same in the user's own code
        exec(compile(code, CALL, "exec"), {})
    judged = what_is_wrong(caught.value, known)
    assert (judged is None) == ("INVALID" not in code)
