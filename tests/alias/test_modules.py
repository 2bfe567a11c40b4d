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
    "private_names_of_public_things": """
        import importlib, jax, jax.numpy as jnp
        same = {
            "api.vmap": jax.vmap, "api.jit": jax.jit, "array.ArrayImpl": jax.Array,
            "ad_checkpoint.checkpoint": jax.checkpoint, "image.scale.ResizeMethod":
            jax.image.ResizeMethod, "lax.add": jax.lax.add, "lax.control_flow.scan": jax.lax.scan,
            "lax.lax.mul_p": jax.lax.mul_p, "lax.linalg.cholesky": jax.lax.linalg.cholesky,
            "lax.parallel.psum": jax.lax.psum, "lax.slicing.gather": jax.lax.gather,
            "nn.functions.glu": jax.nn.glu, "nn.relu": jax.nn.relu, "numpy.sin": jnp.sin,
            "numpy.lax_numpy.split": jnp.split, "pjit.jit_p": jax.extend.core.primitives.jit_p,
            "pjit.auto_axes": jax.sharding.auto_axes, "scipy.special.gammaln":
            jax.scipy.special.gammaln, "sharding_impls.NamedSharding": jax.NamedSharding,
            "ad_util.add_any_p": jax.interpreters.ad.add_jaxvals_p, "api_util.flatten_fun":
            jax.api_util.flatten_fun, "xla_bridge._clear_backends":
            jax.extend.backend.clear_backends, "core.eval_context": jax.core.eval_context,
        }
        for name, expected in same.items():
            module, _, attribute = f"jax._src.{name}".rpartition(".")
            found = getattr(importlib.import_module(module), attribute)
            assert found is expected, name
        for module in (jax.lax, jnp, jax.nn):
            assert not {"control_flow", "lax_numpy", "functions"} & set(dir(module)), module
        from jax._src import config, lib
        assert config.enable_x64.value is False and not hasattr(config, "Options")
        assert lib.jaxlib_extension_version > 0 and lib.xla_client.XlaRuntimeError
        import jax._src.core
        assert jax.core.Value is jax._src.core.Value
        for name in ("pjit.pjit_p", "core.nothing", "lax.nothing", "numpy.util.nothing"):
            module, _, attribute = f"jax._src.{name}".rpartition(".")
            assert not hasattr(importlib.import_module(module), attribute), name
        """,
    "operands_are_promoted": """
        import numpy as np, jax.numpy as jnp
        from jax._src import dtypes
        from jax._src.numpy import util
        half = np.float16(2)
        for function, args, dtype, weak in (
            (util.promote_dtypes, (1, 2.5), "float32", True),
            (util.promote_dtypes, (jnp.arange(2), half), "float16", False),
            (util.promote_dtypes_inexact, (1, half), "float16", False),
            (util.promote_dtypes_inexact, (np.int8(1), np.ones(2, "int16")), "float32", False),
            (util.promote_dtypes_complex, (1.0, 2), "complex64", True),
            (util.promote_dtypes_complex, (half,), "complex64", False),
        ):
            found = function(*args)
            assert [x.dtype for x in found] == [dtype] * len(args), (function, args)
            assert [x.weak_type for x in found] == [weak] * len(args), (function, args)
            for x, given in zip(found, args, strict=True):
                assert np.array_equal(x, given)
        for dtype in ("float32", "int8", "bool", "bfloat16", "complex64"):
            assert dtypes.to_complex_dtype(dtype) == "complex64"
        """,
    "shapes_and_sequences": """
        import jax.numpy as jnp, numpy as np
        from jax._src import core, util
        assert core.canonicalize_shape((np.int64(2), jnp.int32(3))) == (2, 3)
        assert util.canonicalize_axis(-1, 3) == util.canonicalize_axis(np.int8(2), 3) == 2
        assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
        assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
        assert util.unzip3([]) == ((), (), ()) and util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
        assert util.partition_list([True, False], [1, 2]) == ([2], [1])
        for call, kind in (
            (lambda: core.canonicalize_shape((2.5,)), TypeError),
            (lambda: core.canonicalize_shape("a"), TypeError),
            (lambda: util.canonicalize_axis(3, 3), ValueError),
        ):
            try: call()
            except kind: pass
            else: raise AssertionError
        """,
    "prefixes_and_signatures": """
        import inspect, jax
        from jax._src.api_util import infer_argnums_and_argnames as infer
        from jax.api_util import flatten_axes
        tree = jax.tree.structure({"a": 1, "b": (2, 3)})
        assert flatten_axes("axes", tree, {"a": 0, "b": None}) == [0, None, None]
        assert flatten_axes("axes", tree, 1) == [1, 1, 1]
        try: flatten_axes("axes", tree, (0, 1))
        except ValueError as error: assert "axes" in str(error)
        else: raise AssertionError
        sig = inspect.signature(lambda a, b, c=1: 0)
        assert infer(sig, 1, None) == ((1,), ("b",))
        assert infer(sig, None, ("c", "b")) == ((1, 2), ("c", "b"))
        assert infer(sig, None, "a") == ((0,), ("a",))
        assert infer(sig, None, None) == ((), ()) and infer(sig, (0,), ("c",)) == ((0,), ("c",))
        """,
    "places": """
        import jax
        from jax._src import source_info_util as private, traceback_util
        from jax.extend import source_info_util as public
        def here(): return public.current()
        assert "(here)" in public.summarize(here()) and ":5:" in public.summarize(here())
        assert public.summarize(public.new_source_info()) == "unknown"
        (eqn,) = jax.make_jaxpr(lambda x: x + 1)(1).jaxpr.eqns
        frame = private.user_frame(eqn.source_info)
        assert isinstance(frame, private.Frame) and frame == private.user_frame(
            eqn.source_info.traceback
        )
        assert (frame.start_line, frame.function_name) == (8, "<lambda>")
        assert private.user_frame(None) is None
        def moved(x):
            with public.user_context(eqn.source_info.traceback): return x * 2
        (other,) = jax.make_jaxpr(moved)(1).jaxpr.eqns
        assert private.user_frame(other.source_info).start_line == 8
        try: jax.numpy.zeros(-1)
        except Exception as error:
            traceback, frames = traceback_util.filter_traceback(error.__traceback__), []
            while traceback is not None:
                frames.append(traceback.tb_frame.f_code.co_filename)
                traceback = traceback.tb_next
            assert frames == ["<string>"], frames
        """,
    "values_are_nearly_equal": """
        import numpy as np
        from jax._src.public_test_util import check_close
        single = np.float32(1)
        check_close({"a": single}, {"a": single + 1e-3})
        check_close(single, single + np.float32(0.1), atol=0.2)
        check_close(single, np.float64(1.001), atol={"float32": 0, np.float64: 1e-2}, rtol=0)
        by_dtype = {"float32": 1e-6}
        for words in (dict(atol=1e-6, rtol=1e-6), dict(atol=by_dtype, rtol=by_dtype)):
            try: check_close(single, single + np.float32(1e-3), err_msg="here", **words)
            except AssertionError as error: assert "here" in str(error)
            else: raise RuntimeError
        """,
    "values_of_types_of_nodes": """
        import dataclasses, jax
        from jax._src.tree_util import _registry

        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class Pair:
            x: object
            y: object = dataclasses.field(metadata={"static": True})

        entry = _registry[Pair]
        children, held = entry.to_iter(Pair([1, 2], "y"))
        assert list(children) == [[1, 2]] and entry.from_iter(held, [3]) == Pair(3, "y")
        assert _registry[dict].from_iter(["a"], [[4]]) == {"a": [4]}
        try: _registry[int]
        except KeyError: pass
        else: raise AssertionError
        """,
    "divisions_over_the_mesh_that_is_set": """
        import jax, jax.numpy as jnp
        from jax._src.sharding_impls import canonicalize_sharding
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding
        mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
        assert canonicalize_sharding(None, "f") is None
        assert canonicalize_sharding(jax.typeof(jnp.ones(2)).sharding, "f") is None
        expected = NamedSharding(mesh.abstract_mesh, P("x"))
        assert canonicalize_sharding(NamedSharding(mesh, P("x")), "f") == expected
        with jax.set_mesh(mesh):
            assert canonicalize_sharding(P("x"), "f") == expected
        for wrong in (P("x"), SingleDeviceSharding(jax.devices()[0])):
            try: canonicalize_sharding(wrong, "f")
            except (TypeError, ValueError) as error: assert "f " in str(error)
            else: raise AssertionError
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
