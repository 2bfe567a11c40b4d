"""What libraries use of JAX beside its documented API, each in a process of its own."""

from __future__ import annotations

import pytest
from tests.alias.test_as_jax import under_alias

PROGRAMS = {
    "types_of_hijax_are_refused_in_programs": """
        import jax, jax.numpy as jnp
        from jax.experimental import hijax

        class Pair:
            def __init__(self, a): self.a = a
            def __jax_array__(self): return jnp.asarray(self.a)

        class PairType(hijax.HiType):
            def __eq__(self, other): return isinstance(other, PairType)
            def __hash__(self): return 0

        class Make(hijax.HiPrim):
            def __init__(self, count):
                self.in_avals, self.out_aval, self.params = (), PairType(), dict(count=count)
                super().__init__()
            def expand(self, *args): return Pair(args[0] * self.count)

        hijax.register_hitype(Pair, lambda pair: PairType())
        pair = Make(2)(1.5)
        assert jax.typeof(pair) == PairType() and jax.typeof(1.5).shape == ()
        assert float(jnp.sin(pair)) == float(jnp.sin(3.0))
        for call in (lambda: jax.jit(lambda p: p)(pair), lambda: jax.jit(Make(2))(1.5)):
            try:
                call()
            except TypeError as error:
                assert "hijax" in str(error), error
            else:
                raise AssertionError
        try:
            hijax.HiPrim()
        except NotImplementedError as error:
            assert "expand" in str(error)
        assert hijax.aval_property(len).fget is len and hijax.aval_method(len).fun is len
        """,
    "functions_beside_the_devices": """
        import jax, jax.numpy as jnp
        from jax.experimental import colocated_python as beside

        assert beside.colocated_cpu_devices(jax.devices("cpu")) == jax.devices("cpu")
        mesh = jax.make_mesh((1,), ("x",))
        assert beside.colocated_cpu_devices(mesh) == mesh
        add = beside.colocated_python(lambda x: x + 1)
        assert float(add.specialize(devices=jax.devices())(jnp.float32(2))) == 3
        try:
            jax.jit(add)(1.0)
        except TypeError as error:
            assert "pure_callback" in str(error)
        else:
            raise AssertionError
        """,
    "what_is_known_of_processes_and_devices": """
        import jax
        from jax._src import distributed
        from jax.extend import backend

        state = distributed.global_state
        assert (state.process_id, state.num_processes, state.client) == (0, 1, None)
        assert backend.backends()["cpu"] is backend.get_backend("cpu")
        place = jax.numpy.ones(2).sharding
        assert place._device_assignment == place._addressable_device_assignment
        assert list(place._device_assignment) == jax.devices()[:1]
        """,
    "trees": """
        import collections
        from jax._src.tree_util import _registry, prefix_errors

        assert dict in _registry and collections.OrderedDict in _registry
        assert int not in _registry
        assert prefix_errors((1, (2, 3)), (1, (2, 3))) == []
        (error,) = prefix_errors({"a": (1, [2])}, {"a": (1, 2)})
        assert "in_axes['a'][1]" in str(error("in_axes"))
        """,
    "vmap_refuses_types_with_rules_of_their_own": """
        import jax, jax.numpy as jnp
        from jax.interpreters import batching

        @jax.tree_util.register_dataclass
        @__import__("dataclasses").dataclass
        class Box:
            x: object

        batching.register_vmappable(Box, int, int, None, None, None)
        assert jax.vmap(lambda x: x + 1)(jnp.arange(3)).tolist() == [1, 2, 3]
        for call in (
            lambda: jax.vmap(lambda box: box.x)(Box(jnp.arange(3))),
            lambda: jax.vmap(Box)(jnp.arange(3)),
        ):
            try:
                call()
            except TypeError as error:
                assert "Box" in str(error)
            else:
                raise AssertionError
        batching.unregister_vmappable(Box)
        assert jax.vmap(Box)(jnp.arange(3)).x.tolist() == [0, 1, 2]
        """,
    "an_extended_dtype_says_how_cotangents_are_summed": """
        import dataclasses, jax, jax.numpy as jnp, numpy as np
        from jax import lax
        from jax._src import core, dtypes

        class Rules:
            physical_element_aval = staticmethod(lambda dtype: core.ShapedArray((), dtype.stored))
            convert_from = staticmethod(lambda dtype, other: other == dtype.stored)
            convert_to = staticmethod(lambda other, dtype: other == dtype.stored)
            tangent_dtype = staticmethod(lambda dtype: dtype)
            def add(dtype, x, y):
                x, y = (lax.convert_element_type(v, dtype.stored) for v in (x, y))
                return lax.convert_element_type(lax.max(x, y), dtype)
            def zero(dtype):
                return lax.convert_element_type(np.array(-np.inf, dtype.stored), dtype)

        class largest(dtypes.extended): pass

        @dataclasses.dataclass(frozen=True)
        class Largest(dtypes.ExtendedDType):
            stored: object
            _rules: type = Rules
            type: type = largest
            name = property(lambda self: f"largest_{self.stored}")

        single, half = Largest(jnp.dtype("float32")), Largest(jnp.dtype("bfloat16"))
        assert single != half and dtypes.issubdtype(single, largest)

        def numbers(x): return lax.convert_element_type(x, x.dtype.stored)
        def twice(x): return (3 * numbers(x) + 5 * numbers(x).sum()).sum()
        def looped(x):
            def body(carry, y): return carry + y * numbers(x).sum(), None
            zero, factors = jnp.zeros((), x.dtype.stored), jnp.array([2, 7, 1], x.dtype.stored)
            return lax.scan(body, zero, factors)[0]

        for dtype in (single, half):
            x = jnp.array([1, 2], dtype.stored)
            def of(f): return lambda x: f(lax.convert_element_type(x, dtype))
            for f, expected in ((twice, [10, 10]), (looped, [7, 7])):
                gradient = jax.grad(of(f))
                for call in (gradient, jax.jit(gradient), jax.grad(jax.checkpoint(of(f)))):
                    assert call(x).tolist() == expected, call(x)
                rows = jax.vmap(gradient)(jnp.stack([x, x]))
                assert rows.tolist() == [expected, expected]
            extended = lax.convert_element_type(x, dtype)
            assert extended.dtype == dtype and extended.shape == (2,)
            assert numbers(extended).tolist() == [1, 2] and numbers(extended[1]) == 2
            assert f"dtype=largest_{dtype.stored}" in repr(extended)
            for wrong in (
                lambda: extended + extended,
                lambda: np.asarray(extended),
                lambda: bool(extended[0]),
                lambda: lax.convert_element_type(extended, "int32"),
                lambda: lax.convert_element_type(jnp.arange(2), dtype),
            ):
                try: wrong()
                except TypeError as error: assert "largest_" in str(error) or "values" in str(error)
                else: raise AssertionError
        assert not dtypes.supports_inf(jnp.float8_e4m3fn) and dtypes.supports_inf(jnp.float8_e5m2)
        """,
    "one_cotangent_for_an_argument_of_several_arrays": """
        import jax, jax.numpy as jnp
        @jax.custom_vjp
        def f(x): return x["a"] * x["b"][0]
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (3 * ct,))
        x = {"a": jnp.float32(1), "b": (jnp.float32(2),)}
        assert jax.tree.map(float, jax.grad(f)(x)) == {"a": 3.0, "b": (3.0,)}
        """,
    "an_axis_of_weights_counts_twice": """
        import jax
        made = jax.nn.initializers.variance_scaling(1.0, "fan_in", "uniform", -2, 0)
        assert made(jax.random.key(0), (3, 4)).shape == (3, 4)
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    under_alias(PROGRAMS[name])


def test_arrays_in_files(tmp_path):
    pytest.importorskip("tensorstore", reason="arrays are written to files by tensorstore")
    under_alias(
        """
        import sys, numpy as np, jax, jax.numpy as jnp
        from jax.experimental.array_serialization import serialization

        folder = sys.argv[1]
        place = jax.numpy.ones(2).sharding
        manager = serialization.GlobalAsyncCheckpointManager()
        arrays = [jnp.arange(6.0).reshape(2, 3), jnp.ones(2, jnp.bfloat16), np.int8(3)]
        paths = [f"{folder}/{i}" for i in range(3)]
        done = []
        specs = [serialization.get_tensorstore_spec(path) for path in paths]
        manager.serialize(arrays, specs, on_commit_callback=lambda: done.append(1))
        manager.wait_until_finished()
        assert done == [1]
        found = manager.deserialize_with_paths([place] * 3, paths)
        for array, read in zip(arrays, found, strict=True):
            assert read.dtype == array.dtype and (read == array).all()
        (larger,) = manager.deserialize([place], specs[:1], [(3, 2)], [np.int32])
        assert larger.tolist() == [[0, 1], [3, 4], [0, 0]]
        missing = serialization.get_tensorstore_spec(f"{folder}/none")
        try:
            manager.deserialize([place], [missing])
        except ValueError as error:
            assert "NOT_FOUND" in str(error)
        else:
            raise AssertionError
        """,
        str(tmp_path),
    )
