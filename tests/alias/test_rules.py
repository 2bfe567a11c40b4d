"""Rules in JAX's form are ordinary rules: what is set through a view, transformations use."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.alias import lowering, rules
from dovetail._core.alias.flat_functions import (
    PartialVal,
    argnums_partial,
    dce_jaxpr,
    flatten_fun,
    flatten_fun_nokwargs,
    trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits,
)
from dovetail._core.alias.wrapped_functions import (
    StoreException,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    wrap_init,
)
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.trace.zeros import Zero
from dovetail.core import ShapedArray, eval_jaxpr
from dovetail.errors import MissingRuleError
from dovetail.extend.core import Literal, Primitive
from dovetail.tree_util import tree_structure

_numbers = itertools.count()


def made(**attributes):
    """A new primitive, whose result has the type of its first operand."""
    primitive = Primitive(f"alias_test_{next(_numbers)}")
    for name, value in attributes.items():
        setattr(primitive, name, value)
    primitive.def_abstract_eval(
        lambda *avals, **params: [avals[0]] if primitive.multiple_results else avals[0]
    )
    return primitive


def cube():
    """x ** 3 with all rules, written as for JAX."""
    primitive = made()
    lowering.register_lowering(
        primitive, lowering.lower_fun(lambda x: x * x * x, multiple_results=False)
    )

    def jvp(primals, tangents):
        (x,), (t,) = primals, tangents
        out = primitive.bind(x)
        return out, Zero.from_primal_value(out) if type(t) is Zero else 3 * x * x * t

    rules.primitive_jvps[primitive] = jvp
    rules.primitive_batchers[primitive] = lambda args, dims: (primitive.bind(*args), dims[0])
    return primitive.bind


def scaled():
    """2 x, by `deflinear2` and `defvectorized`."""
    primitive = made()
    lowering.register_lowering(primitive, lowering.lower_fun(lambda x: 2 * x, False))

    def transpose(ct, x):
        assert rules.is_undefined_primal(x)
        assert x.aval.shape == ct.shape
        return (2 * ct,)

    rules.deflinear2(primitive, transpose)
    rules.defvectorized(primitive)
    return primitive.bind


def product():
    """x y, by `defbilinear` and `defbroadcasting`."""
    primitive = made()
    lowering.register_lowering(primitive, lowering.lower_fun(lambda x, y: x * y, False))
    rules.defbilinear(primitive, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)
    rules.defbroadcasting(primitive)
    return lambda x: primitive.bind(x, x)


def exponential():
    """exp(x), by `defjvp2` and a batching rule that is told of the axis."""
    primitive = made()
    lowering.register_lowering(primitive, lowering.lower_fun(jnp.exp, False))
    rules.defjvp2(primitive, lambda t, out, x: out * t)

    def batch(axis, args, dims):
        assert axis.size == args[0].shape[dims[0]]
        return primitive.bind(*args), dims[0]

    rules.fancy_primitive_batchers[primitive] = batch
    return primitive.bind


def sine():
    """sin(x), by a call of NumPy, and a batching rule that is told size and name of the axis."""
    primitive = made()

    def lower(context, x):
        results, token, kept = lowering.emit_python_callback(
            context,
            lambda x: (np.sin(x),),
            None,
            [x],
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
        )
        context.module_context.add_keepalive(kept)
        assert token is None
        return results

    lowering.register_lowering(primitive, lower)
    rules.defjvp(primitive, lambda t, x: jnp.cos(x) * t)

    def batch(size, name, kind, args, dims):
        assert (size, name, kind) == (args[0].shape[dims[0]], None, None)
        return primitive.bind(*args), dims[0]

    rules.axis_primitive_batchers[primitive] = batch
    return primitive.bind


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (cube, lambda x: x**3),
        (sine, jnp.sin),
        (scaled, lambda x: 2 * x),
        (product, lambda x: x * x),
        (exponential, jnp.exp),
    ],
)
def test_all_transformations_use_them(make, expected):
    own = make()
    x = jnp.array([0.5, -1.0, 2.0])
    for transform in (
        lambda f: f,
        dt.jit,
        dt.vmap,
        lambda f: dt.jit(dt.vmap(f)),
        lambda f: dt.grad(lambda x: f(x).sum()),
        lambda f: dt.vmap(dt.grad(f)),
        lambda f: dt.jit(dt.grad(lambda x: dt.vmap(f)(x).sum())),
        lambda f: lambda x: dt.jvp(f, (x,), (x,))[1],
    ):
        np.testing.assert_allclose(transform(own)(x), transform(expected)(x), rtol=1e-6)


def test_rules_are_read_in_the_form_in_which_they_are_set():
    x = jnp.array([1.0, 2.0])
    zero = Zero.from_primal_value(x)
    out, tangent = rules.primitive_jvps[lax.mul_p]((x, x), (x, zero))
    assert (out == x * x).all()
    assert (instantiate_zeros(tangent) == x * x).all()
    undefined = rules.UndefinedPrimal(ShapedArray((2,), "float32"))
    assert (rules.primitive_transposes[lax.mul_p](x, undefined, x)[0] == x * x).all()
    assert (rules.get_primitive_transpose(lax.neg_p)(x, undefined)[0] == -x).all()
    batched, dim = rules.primitive_batchers[lax.sin_p]((x,), (0,))
    assert dim == 0
    assert (batched == jnp.sin(x)).all()
    assert lax.sin_p in rules.primitive_jvps
    assert lax.sin_p not in rules.primitive_transposes
    assert lax.sin_p in set(rules.primitive_jvps)
    assert len(rules.primitive_transposes) < len(rules.primitive_jvps)
    with pytest.raises(KeyError):
        rules.primitive_transposes[lax.sin_p]
    with pytest.raises(MissingRuleError, match="sin has no transposition rule"):
        rules.get_primitive_transpose(lax.sin_p)


def test_rules_that_a_class_has_stay():
    for view in (rules.primitive_jvps, rules.primitive_batchers):
        with pytest.raises(TypeError, match=r"sin has a rule .* cannot be replaced"):
            view[lax.sin_p] = lambda *args: None
        with pytest.raises(TypeError, match="not taken away"):
            del view[lax.sin_p]
    with pytest.raises(TypeError, match="LoweringTable"):
        lowering.register_lowering(lax.sin_p, lambda context, x: [x])


def test_what_is_read_is_what_was_written():
    primitive = made()

    def rule(primals, tangents):
        raise AssertionError

    rules.primitive_jvps[primitive] = rule
    assert rules.primitive_jvps[primitive] is rule


def test_evaluation_by_a_function_of_python():
    primitive = made(multiple_results=True)
    primitive.def_impl(lambda x, *, by: [np.asarray(x) + by])
    assert primitive.bind(jnp.arange(2), by=3)[0].tolist() == [3, 4]
    with pytest.raises(MissingRuleError, match="no lowering"):
        dt.jit(lambda x: primitive.bind(x, by=3))(jnp.arange(2))


def test_effects_by_one_function():
    primitive = Primitive(f"alias_test_{next(_numbers)}")
    primitive.def_effectful_abstract_eval(lambda x: (x, {"seen"}))
    assert dt.make_jaxpr(primitive.bind)(1.0).effects == {"seen"}


def test_lowering_by_platform():
    primitive = made()
    twice = lowering.lower_fun(lambda x: 2 * x, False)
    lowering.register_lowering(primitive, twice, platform="tpu")
    with pytest.raises(MissingRuleError, match="no lowering rule"):
        primitive.bind(1.0)
    seen = []

    def direct(context, x):
        seen.append((context.primitive, context.avals_in, context.module_context.platforms))
        return [context.builder.add(x, x, context.avals_out[0])]

    lowering.register_lowering(primitive, direct)
    assert primitive.bind(jnp.float32(1.5)) == 3
    assert seen == [(primitive, seen[0][1], ("cpu",))]


def test_flat_functions():
    def f(x, *, y):
        return {"sum": x[0] + y, "x": x}

    in_tree = tree_structure((([1, 2],), {"y": 3}))
    flat, out_tree = flatten_fun(wrap_init(f), in_tree)
    with pytest.raises(StoreException):
        out_tree()
    assert flat.call_wrapped(1, 2, 3) == [4, 1, 2]
    assert out_tree() == tree_structure({"sum": 0, "x": [1, 2]})
    flat, out_tree = flatten_fun_nokwargs(wrap_init(f, {"y": 5}), tree_structure(([1, 2],)))
    assert flat.call_wrapped(1, 2) == [6, 1, 2]
    partly, given = argnums_partial(wrap_init(lambda a, b: (a, b)), 1, (1, 2))
    assert given == (2,)
    assert partly.call_wrapped(7) == (1, 7)
    with pytest.raises(ValueError, match="argument 0 is static and has to be hashable"):
        argnums_partial(wrap_init(f), 1, ([], 2))


def test_transformations_of_functions():
    @transformation
    def shifted(by, *args):
        result = yield [a + by for a in args], {}
        yield result * 10

    @transformation2
    def doubled(call, *args):
        return 2 * call(*args)

    @transformation_with_aux
    def counted(*args):
        result = yield args, {}
        yield result, len(args)

    assert doubled(shifted(wrap_init(lambda x: x), 1)).call_wrapped(2) == 60
    both, count = counted(wrap_init(lambda x, y: x - y))
    other = counted(wrap_init(abs))[1]
    assert both.call_wrapped(5, 3) == 2
    assert count() == 2
    assert merge_linear_aux(count, other) == (True, 2)
    assert merge_linear_aux(other, count) == (False, 2)


def test_jaxprs_of_flat_functions():
    aval = ShapedArray((), "float32")
    captured = jnp.arange(3.0)
    jaxpr, avals, consts = trace_to_jaxpr_dynamic(
        wrap_init(lambda x, y: [x * captured, y]), [aval, aval]
    )
    assert [a.shape for a in avals] == [(3,), ()]
    assert eval_jaxpr(jaxpr, consts, 2.0, 1.0)[0].tolist() == [0, 2, 4]
    reduced, used = dce_jaxpr(jaxpr, [False, True])
    assert used == [False, True]
    assert not reduced.eqns
    kept, used = dce_jaxpr(jaxpr, [False, True], instantiate=True)
    assert used == [True, True]
    assert len(kept.invars) == 2

    known = PartialVal.known(2.0)
    function = wrap_init(lambda x, y: [x + 1, x * y])
    jaxpr, outs, consts = trace_to_jaxpr_nounits(function, [known, PartialVal.unknown(aval)])
    assert [out.is_known() for out in outs] == [True, False]
    assert outs[0].get_known() == 3
    assert outs[1].get_aval() is aval
    assert eval_jaxpr(jaxpr, consts, 5.0) == [10]
    jaxpr, outs, _ = trace_to_jaxpr_nounits(function, [known, PartialVal.unknown(aval)], True)
    assert not any(out.is_known() for out in outs)
    assert len(jaxpr.outvars) == 2


def test_literals_are_arrays_in_rules():
    primitive = made()
    seen = []

    def note(*values):
        seen.extend([(v.shape, v.dtype) for v in values])

    def jvp(primals, tangents):
        note(*primals)
        return primitive.bind(*primals), tangents[1]

    def batch(args, dims):
        note(*args)
        return primitive.bind(*args), dims[1]

    def transpose(ct, x, y):
        note(ct, x)
        return [None, ct]

    primitive.def_abstract_eval(lambda x, y: y)
    rules.primitive_jvps[primitive] = jvp
    rules.primitive_batchers[primitive] = batch
    rules.primitive_transposes[primitive] = transpose
    lowering.register_lowering(primitive, lambda context, x, y: [y])
    closed = dt.make_jaxpr(lambda y: primitive.bind(2.0, y))(1.0)

    def function(y):
        return eval_jaxpr(closed.jaxpr, closed.consts, y)[0]

    assert dt.jvp(function, (jnp.float32(1),), (jnp.float32(3),)) == (1, 3)
    assert dt.vmap(function)(jnp.arange(2.0)).tolist() == [0, 1]
    assert dt.linear_transpose(function, 1.0)(5.0) == (5,)
    assert len(seen) == 6
    assert {dtype for _, dtype in seen} == {np.dtype(np.float32)}


def test_callbacks_of_lowerings_have_no_order():
    primitive = made()
    given = {"token": object(), "sharding": None}

    def lower(context, x):
        return lowering.emit_python_callback(
            context, lambda x: (x,), given["token"], [x], context.avals_in, context.avals_out,
            has_side_effect=True, sharding=given["sharding"],
        )[0]  # fmt: skip

    lowering.register_lowering(primitive, lower)
    for token, sharding in ((object(), None), (None, object())):
        given |= {"token": token, "sharding": sharding}
        with pytest.raises(NotImplementedError, match="io_callback"):
            primitive.bind(1.0)
    given |= {"token": None, "sharding": None}
    assert primitive.bind(1.5) == 1.5


def test_all_primitives_are_primitives():
    primitive = made()
    assert all(isinstance(p, Primitive) for p in (lax.add_p, lax.cond_p, primitive))
    assert not isinstance(lax.add, Primitive)

    class Own(Primitive):
        pass

    own = Own(f"alias_test_{next(_numbers)}")
    assert isinstance(own, Primitive)
    assert isinstance(own, Own)
    assert not isinstance(lax.add_p, Own)
    assert not isinstance(primitive, Own)


@dt.custom_jvp
def halved(x):
    return x / 2


halved.defjvp(lambda primals, tangents: (halved(*primals), tangents[0] / 2))


@dt.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (ct * 2,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.cond(x > 1, jnp.sin, jnp.cos, x),
        lambda x: lax.scan(lambda c, _: (c * x, c), x, None, 3)[0],
        lambda x: dt.jit(dt.checkpoint(jnp.exp))(x) + x,
        lambda x: doubled(halved(x)),
    ],
)
def test_equations_are_bound_again(function):
    closed = dt.make_jaxpr(function)(2.0)

    def interpreted(x):
        values = dict(zip(closed.jaxpr.invars, [x], strict=True))
        for eqn in closed.jaxpr.eqns:
            operands = [v.val if isinstance(v, Literal) else values[v] for v in eqn.invars]
            out = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
            outs = out if eqn.primitive.multiple_results else [out]
            values.update(zip(eqn.outvars, outs, strict=True))
        return values[closed.jaxpr.outvars[0]]

    assert interpreted(2.0) == function(2.0)
    np.testing.assert_allclose(dt.grad(interpreted)(2.0), dt.grad(function)(2.0), rtol=1e-6)


def test_functions_with_rules_can_be_inlined():
    (eqn,) = dt.make_jaxpr(halved)(2.0).jaxpr.eqns
    function, rule = eqn.primitive.get_bind_params(eqn.params)["subfuns"]
    assert function.call_wrapped(3.0) == [1.5]
    assert rule.call_wrapped(3.0, jnp.float32(1)) == [1.5, 0.5]


def test_evaluation_whatever_is_traced():
    primitive = made()
    lowering.register_lowering(primitive, lowering.lower_fun(lambda x: 2 * x, False))
    inside = []
    dt.jit(lambda x: inside.append(primitive.impl(1.5)) or x)(1.0)
    assert inside[0] == 3
    primitive.def_impl(lambda x: 3 * x)
    assert dt.jit(primitive.impl)(1.5) == 4.5
    assert lax.add_p.impl(np.float32(1), np.float32(2)) == 3
