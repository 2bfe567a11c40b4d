"""optimization_barrier, stage and dce_sink: values that stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import dtypes, lax, random

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def names(function: Any, *args: Any) -> list[str]:
    return [e.primitive.name for e in dt.make_jaxpr(function)(*args).eqns]


class TestBarrier:
    def test_trees(self) -> None:
        held = {"x": X, "n": [1, 2.5, None], "key": random.key(0), "none": ()}
        for function in (lax.optimization_barrier, dt.jit(lax.optimization_barrier)):
            out = function(held)
            assert out["x"].tolist() == X.tolist()
            assert (int(out["n"][0]), float(out["n"][1]), out["n"][2]) == (1, 2.5, None)
            assert out["key"].dtype == held["key"].dtype
            assert out["none"] == ()
        assert lax.optimization_barrier(()) == ()
        assert lax.optimization_barrier(None) is None
        zero = np.zeros(2, dtypes.float0)
        assert lax.optimization_barrier((X, zero))[1] is zero

    def test_it_is_in_the_program(self) -> None:
        function = dt.jit(lambda x: lax.optimization_barrier(x * 2) + 1)
        assert "stablehlo.optimization_barrier" in function.lower(X).as_text()

    def test_derivatives_hold_tangents_that_are_not_zero(self) -> None:
        def function(x: Any, y: Any) -> Any:
            a, b, _ = lax.optimization_barrier((x * 2, y * 3, np.arange(3)))
            return lax.reduce_sum(a * b, (0, 1))

        for_x, for_y = dt.grad(function, (0, 1))(X, X)
        assert for_x.tolist() == for_y.tolist() == (6 * X).tolist()
        jaxpr = dt.make_jaxpr(dt.grad(function))(X, X)
        barriers = [e for e in jaxpr.eqns if e.primitive.name == "optimization_barrier"]
        assert [len(e.invars) for e in barriers] == [3, 1]

    def test_vmap_repeats_nothing(self) -> None:
        mapped = dt.vmap(lambda x, y: lax.optimization_barrier((x, y)), (0, None), (0, None))
        out = mapped(X, X[0])
        assert (out[0].shape, out[1].shape) == ((2, 3), (3,))
        assert names(mapped, X, X[0]) == ["optimization_barrier"]

    def test_errors(self) -> None:
        with pytest.raises(
            TypeError, match=r"lax\.optimization_barrier requires its argument operand"
        ):
            lax.optimization_barrier({"a": "text"})


class TestStage:
    def test_values(self) -> None:
        for value in (1, 2.5, True, X, random.key(0)):
            staged = lax.stage(value)
            assert isinstance(staged, dt.Array)
            assert bool((staged == value).all() if staged.ndim else staged == value)
        assert lax.stage(2).aval.weak_type
        with pytest.raises(TypeError, match=r"lax\.stage"):
            lax.stage([1])

    def test_constants_become_values(self) -> None:
        seen = []
        dt.jit(lambda: seen.append(lax.stage(3.0)))()
        assert not isinstance(seen[0], float)
        assert dt.grad(lambda x: lax.stage(x * x))(3.0) == 6


class TestSink:
    def test_what_nothing_uses_stays(self) -> None:
        def function(x: Any) -> Any:
            lax.dce_sink({"a": lax.sin(x), "b": 2.0})
            lax.cos(x)
            return x + 1

        assert names(function, X) == ["sin", "dce_sink", "dce_sink", "cos", "add"]
        text = dt.jit(function).lower(X).as_text()
        assert "stablehlo.sine" in text
        assert "stablehlo.cosine" not in text
        assert "dce_sink" not in text

    def test_the_compiler_can_be_told(self) -> None:
        def function(x: Any) -> Any:
            lax.dce_sink(lax.sin(x), prevent_mlir_dce=True)
            return x * 3

        compiled = dt.jit(function).lower(X).compile()
        assert "dce_sink" in compiled.as_text()
        for _ in range(2):
            assert dt.jit(function)(X).tolist() == (3 * X).tolist()

    def test_under_transformations(self) -> None:
        def function(x: Any) -> Any:
            lax.dce_sink(x * 2)
            return lax.reduce_sum(x * 3, (0, 1))

        for gradient in (dt.grad(function), dt.grad(dt.jit(function)), dt.jit(dt.grad(function))):
            assert gradient(X).tolist() == np.full((2, 3), 3).tolist()
        assert names(dt.vmap(lambda x: lax.dce_sink(x)), X) == ["dce_sink"]
        _, tangent = dt.jvp(function, (X,), (X,))
        assert float(tangent) == 45

    def test_arrays_are_computed_already(self) -> None:
        assert lax.dce_sink((X, random.key(0), 1)) is None  # type: ignore[func-returns-value]
        with pytest.raises(TypeError, match=r"lax\.dce_sink requires its argument val"):
            lax.dce_sink("text")
