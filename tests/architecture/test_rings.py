"""The rule by which tests/conftest.py says which cases of a test are in the inner ring."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dovetail.testing.checks import CHECKS


@dataclass(frozen=True)
class Case:
    """A test as pytest collects it, as far as the rule looks at it."""

    nodeid: str
    callspec: SimpleNamespace


@pytest.fixture(scope="module")
def rule(root):
    spec = importlib.util.spec_from_file_location(
        "copy_of_conftest", root / "tests" / "conftest.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _cases(**values):
    found = itertools.product(*values.values())
    return [
        Case(f"test[{case}]", SimpleNamespace(params=dict(zip(values, case, strict=True))))
        for case in found
    ]


def test_every_value_of_every_parameter_occurs(rule):
    cases = _cases(function=range(8), dtype="abc", jit=(False, True))
    chosen = rule._covering(cases, 100)
    assert len(chosen) < len(cases) / 2
    for name in ("function", "dtype", "jit"):
        every = {case.callspec.params[name] for case in cases}
        assert {case.callspec.params[name] for case in chosen} == every
    assert rule._covering(cases[::-1], 100) == chosen


def test_no_more_cases_than_allowed_and_never_none(rule):
    assert len(rule._covering(_cases(function=range(50)), 7)) == 7
    (alone,) = [SimpleNamespace(nodeid="test")]
    assert rule._covering([alone], 7) == [alone]


def test_what_the_rule_names_is_there(rule, root):
    for folder in rule.THIN:
        assert (root / folder).is_dir()
    for test in (*rule.OUTER, rule.SAMPLED):
        file, _, function = test.partition("::")
        assert function in (root / file).read_text(encoding="utf-8")
    assert set(rule.OUTER_CHECKS) < CHECKS.keys()
    assert f"def {rule.EXAMPLE}(" in (root / "tests/documents/test_examples.py").read_text("utf-8")
