"""When devices may wait for other processes, by the calls of programs that were made."""

from __future__ import annotations

import pytest

from dovetail._core.runtime.processes import waits


class Result:
    def __init__(self, *, ready=False, deleted=False):
        self.ready, self.deleted = ready, deleted

    def is_ready(self):
        return self.ready

    def is_deleted(self):
        return self.deleted


@pytest.fixture
def made():
    yield waits.exchange(frozenset({0, 1}), (0, 2048))
    waits.forget()


def call(made, results, *, small=True, fails=False):
    try:
        with waits.Call(made, "f", small) as noted:
            assert made.state() == "busy"
            if fails:
                raise RuntimeError
            noted.results = results
    except RuntimeError:
        assert fails


def test_states(made):
    assert made.state() == "idle"
    result = Result()
    call(made, [result])
    assert made.state() == "busy"
    assert waits.may_last({1, 7})
    assert not waits.may_last({7})
    call(made, [], fails=True)
    assert made.state() == "busy", "the call before the one that has failed is under way"
    result.ready = True
    assert made.state() == "idle"
    assert not waits.may_last({1})
    earlier = Result()
    call(made, [earlier])
    call(made, [Result(ready=True)])
    assert made.state() == "busy", "one may overtake another"
    earlier.ready = True
    call(made, [Result(deleted=True)])
    assert made.state() == "unknown", "it was given away, to whatever it is"
    call(made, [Result()], small=False)
    assert made.state() == "unknown", "nobody has kept it"
    assert waits.may_last({1})
    assert waits.state()["0, 2048"]["count"] == 6
    assert waits.exchange(frozenset({0, 1}), (0, 2048)) is made


def test_a_first_call_that_fails(made):
    call(made, [], fails=True)
    assert made.state() == "idle"
    assert waits.state() == {}
