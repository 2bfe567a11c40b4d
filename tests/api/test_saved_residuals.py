"""What functions keep for their derivatives, as it is listed and printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ir.walk import all_equations
from dovetail.ad_checkpoint import (
    checkpoint_name,
    checkpoint_policies,
    print_saved_residuals,
    saved_residuals,
)

Function = Callable[..., Any]

ARRAY = jnp.linspace(0.1, 0.6, 3)


def layer(w: Any, x: Any) -> Any:
    return jnp.sin(w @ x)


def saved(f: Function, *args: Any) -> list[str]:
    """What a function keeps, without the places."""
    return [
        f"{aval.short_name()} {source.split(' from /')[0]}"
        for aval, source in saved_residuals(f, *args)
    ]


def network(params: Any, x: Any) -> Any:
    for i, w in enumerate(params[:-1]):
        x = checkpoint_name(layer(w, x), f"layer{i}")
    return params[-1] @ x


PARAMS = [jnp.ones((5, 4)), jnp.ones((6, 5)), jnp.ones((7, 6))]
WEIGHTS = [
    f"f32[{p.shape[0]},{p.shape[1]}] from the argument params[{i}]" for i, p in enumerate(PARAMS)
]
INPUT = "f32[4] from the argument x"


class TestSavedResiduals:
    # What JAX 0.10.2 prints, but for the places and `save_anything_except_these_names`, where JAX
    # keeps the value that is not to be kept, as it was before it got its name.
    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            (checkpoint_policies.nothing_saveable, []),
            (None, []),
            (
                checkpoint_policies.everything_saveable,
                [
                    "f32[5] output of cos",
                    "f32[5] named 'layer0'",
                    "f32[6] output of cos",
                    "f32[6] named 'layer1'",
                ],
            ),
            (
                checkpoint_policies.dots_saveable,
                ["f32[5] output of dot_general", "f32[6] output of dot_general"],
            ),
            (
                checkpoint_policies.save_only_these_names("layer0"),
                ["f32[5] named 'layer0'"],
            ),
            (
                checkpoint_policies.save_any_names_but_these("layer0"),
                ["f32[6] named 'layer1'"],
            ),
            (
                checkpoint_policies.save_anything_except_these_names("layer0"),
                [
                    "f32[5] output of dot_general",
                    "f32[5] output of cos",
                    "f32[6] output of cos",
                    "f32[6] named 'layer1'",
                ],
            ),
            (
                checkpoint_policies.save_from_both_policies(
                    checkpoint_policies.dots_saveable,
                    checkpoint_policies.save_only_these_names("layer1"),
                ),
                [
                    "f32[5] output of dot_general",
                    "f32[6] output of dot_general",
                    "f32[6] named 'layer1'",
                ],
            ),
            (
                checkpoint_policies.save_and_offload_only_these_names(
                    names_which_can_be_saved=["layer0"],
                    names_which_can_be_offloaded=["layer1"],
                    offload_src="device",
                    offload_dst="pinned_host",
                ),
                ["f32[5] named 'layer0'", "f32[6] kept in the memory 'pinned_host'"],
            ),
        ],
    )
    def test_policies(self, policy: Any, expected: list[str]) -> None:
        f = dt.checkpoint(network, policy=policy)
        assert saved(f, PARAMS, jnp.ones(4)) == [*WEIGHTS, INPUT, *expected]

    def test_without_checkpoint(self) -> None:
        everything = dt.checkpoint(network, policy=checkpoint_policies.everything_saveable)
        args = (PARAMS, jnp.ones(4))
        assert saved(network, *args) == saved(everything, *args)

    def test_arguments_of_each_layer(self) -> None:
        def f(w: Any, x: Any) -> Any:
            for _ in range(3):
                x = dt.checkpoint(layer)(w, x)
            return x

        assert saved(f, jnp.ones((3, 3)), ARRAY) == [
            "f32[3,3] from the argument w",
            "f32[3] from the argument x",
            "f32[3] output of sin",
            "f32[3] output of sin",
        ]

    @pytest.mark.parametrize("wrap", [dt.jit, dt.checkpoint], ids=["jit", "checkpoint"])
    def test_policies_see_into_calls(self, wrap: Any) -> None:
        f = dt.checkpoint(
            lambda w, x: wrap(layer)(w, wrap(layer)(w, x)), policy=checkpoint_policies.dots_saveable
        )
        plain = dt.checkpoint(
            lambda w, x: layer(w, layer(w, x)), policy=checkpoint_policies.dots_saveable
        )
        args = (jnp.ones((3, 3)), ARRAY)
        if wrap is dt.jit:
            assert saved(f, *args) == saved(plain, *args)
        else:
            # The functions within are computed again from their arguments in any case.
            assert set(saved(f, *args)) <= set(saved(plain, *args))

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            (None, []),
            (checkpoint_policies.dots_saveable, ["f32[5,3] output of scan"]),
            (checkpoint_policies.save_only_these_names("y"), ["f32[5,3] output of scan"]),
            (checkpoint_policies.save_only_these_names("z"), []),
            (
                checkpoint_policies.save_anything_except_these_names("y"),
                ["f32[5,3] output of scan"] * 2,
            ),
            (checkpoint_policies.everything_saveable, ["f32[5,3] output of scan"] * 2),
            (
                checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
                ["f32[5,3] kept in the memory 'pinned_host'"],
            ),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit], ids=["plain", "jit"])
    def test_policies_see_into_loops(self, wrap: Any, policy: Any, expected: list[str]) -> None:
        def f(w: Any, x: Any) -> Any:
            def body(c: Any, _: Any) -> Any:
                return checkpoint_name(layer(w, c), "y"), None

            return lax.scan(wrap(body), x, None, length=5)[0]

        found = saved(dt.checkpoint(f, policy=policy), jnp.ones((3, 3)), ARRAY)
        assert [line for line in found if "argument" not in line] == expected

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            (None, []),
            # Two of the first branch, one of the second, in room for two.
            (checkpoint_policies.dots_saveable, ["f32[3] output of cond"] * 2),
            # What all branches return under this name.
            (checkpoint_policies.save_only_these_names("y"), ["f32[3] output of cond"]),
            (checkpoint_policies.save_only_these_names("z"), ["f32[3] output of cond"]),
            (checkpoint_policies.save_only_these_names("other"), []),
            (
                checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
                ["f32[3] kept in the memory 'pinned_host'"] * 2,
            ),
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit], ids=["plain", "jit"])
    def test_policies_see_into_branches(self, wrap: Any, policy: Any, expected: list[str]) -> None:
        def first(w: Any, x: Any) -> Any:
            return checkpoint_name(layer(w, layer(w, x)), "y")

        def second(w: Any, x: Any) -> Any:
            return checkpoint_name(layer(w, checkpoint_name(jnp.exp(x), "z")), "y")

        def third(w: Any, x: Any) -> Any:
            return checkpoint_name(x * 2.0, "y")

        def f(w: Any, x: Any) -> Any:
            index = x[0].astype(int)
            return jnp.sin(lax.switch(index, [wrap(first), wrap(second), third], w, x))

        args = jnp.ones((3, 3)), ARRAY
        found = saved(dt.checkpoint(f, policy=policy), *args)
        assert [line for line in found if "argument" not in line] == expected

    def test_what_branches_keep_is_not_computed_again(self) -> None:
        def f(w: Any, x: Any) -> Any:
            y = lax.cond(x[0] > 0, lambda: jnp.sin(w @ x), lambda: jnp.cos(x))
            return (y * y).sum()

        def products(policy: Any) -> int:
            gradient = dt.grad(dt.checkpoint(f, policy=policy))
            closed = dt.make_jaxpr(gradient)(jnp.ones((3, 3)), ARRAY)
            return sum(e.primitive.name == "dot_general" for e in all_equations(closed.jaxpr))

        assert products(None) == products(checkpoint_policies.dots_saveable) + 1

    @pytest.mark.parametrize(
        ("function", "args", "expected"),
        [
            (lambda x: jnp.sin(x) * 3, (1.0,), ["f32[] output of cos"]),
            (lambda x: 2 * x, (ARRAY,), []),
            (
                lambda x: jnp.sin(x) * ARRAY,
                (1.0,),
                ["f32[3] from a constant", "f32[] output of cos"],
            ),
            (
                lambda d: jnp.sin(d["a"]) * d["b"][0],
                ({"a": ARRAY, "b": [ARRAY]},),
                [
                    "f32[3] from the argument d['b'][0]",
                    "f32[3] output of sin",
                    "f32[3] output of cos",
                ],
            ),
            (
                dt.jit(lambda x: jnp.sin(jnp.sin(x))),
                (ARRAY,),
                ["f32[3] output of jitted function '<lambda>'"] * 2,
            ),
            (
                lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=4)[0],
                (ARRAY,),
                ["f32[4,3] output of scan"],
            ),
            (
                lambda x: lax.scan(
                    dt.checkpoint(lambda c, _: (jnp.sin(jnp.sin(c)), None)), x, None, length=4
                )[0],
                (ARRAY,),
                ["f32[4,3] output of scan"],
            ),
            (lambda x, n: x * n, (ARRAY, 3), ["f32[] output of convert_element_type"]),
            (
                lambda x: jnp.sin(x) * x,
                (dt.ShapeDtypeStruct((2,), jnp.float32),),
                ["f32[2] from the argument x", "f32[2] output of sin", "f32[2] output of cos"],
            ),
        ],
    )
    def test_sources(self, function: Function, args: Any, expected: list[str]) -> None:
        assert saved(function, *args) == expected

    @pytest.mark.parametrize("wrap", [lambda f: f, dt.checkpoint], ids=["plain", "checkpoint"])
    def test_the_line_of_the_user(self, wrap: Any, capsys: pytest.CaptureFixture[str]) -> None:
        def f(x: Any) -> Any:
            return jnp.sin(x)  # this line

        policy = (
            {"policy": checkpoint_policies.everything_saveable} if wrap is dt.checkpoint else {}
        )
        print_saved_residuals(wrap(f, **policy), ARRAY)
        line = inspect.getsourcelines(f)[1] + 1
        (printed,) = capsys.readouterr().out.splitlines()
        assert printed.startswith(f"f32[3] output of cos from {__file__}:{line}:")
        assert printed.endswith("f)")

    def test_keyword_arguments(self, capsys: pytest.CaptureFixture[str]) -> None:
        print_saved_residuals(lambda x, *, y: x * y, 2.0, y=3.0)
        assert capsys.readouterr().out == "f32[] from the argument x\nf32[] from the argument y\n"
