"""The argument `out_sharding` (`sharding` of lax.full): everywhere where a function has it.

What is expected are the types and the errors of JAX 0.12 where it accepts a case. It refuses axes
of the type `Auto`, ignores a `NamedSharding` over another mesh than the current one, and refuses
counts of `bincount` that are divided.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.nn
import dovetail.nn.initializers
import dovetail.numpy as jnp
import dovetail.ops
from dovetail import lax, random
from dovetail.errors import ShardingTypeError
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"))
AUTO = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
MIXED = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
KEY = random.key(3)
F32 = np.float32
MATRIX = (np.arange(32).reshape(8, 4) % 7).astype(F32)
OTHER = (np.arange(24).reshape(4, 6) % 5).astype(F32)
VECTOR = MATRIX[:, 1]
IDS = np.array([0, 3, 1, 7, 3, 3, 0, 2], np.int32)
IMAGE = (np.arange(512).reshape(8, 4, 4, 4) % 11).astype(F32)
KERNEL = (np.arange(64).reshape(4, 4, 2, 2) % 3).astype(F32)
GROUPS = np.arange(48, dtype=F32).reshape(2, 4, 6)
PARAMETERS = 1 + MATRIX
_SUMMED = (((1,), (0,)), ((), ()))
_RAGGED = lax.RaggedDotDimensionNumbers(_SUMMED, (1,), ())


def _array(value: Any, *spec: Any) -> Any:
    return dt.device_put(value, NamedSharding(MESH, P(*spec)))


#: The public name: a function of keywords, among them the sharding. The first dimension of its
#: result is divided.
CALLS: dict[str, Any] = {
    "lax.broadcast": lambda **k: lax.broadcast(VECTOR[:4], (8,), **k),
    "lax.broadcast_in_dim": lambda **k: lax.broadcast_in_dim(VECTOR, (8, 3), (0,), **k),
    "lax.broadcasted_iota": lambda **k: lax.broadcasted_iota("int32", (8, 3), 0, **k),
    "lax.conv_general_dilated": lambda **k: lax.conv_general_dilated(
        IMAGE, KERNEL, (1, 1), "SAME", **k
    ),
    "lax.dot": lambda **k: lax.dot(MATRIX, OTHER, **k),
    "lax.dot_general": lambda **k: lax.dot_general(MATRIX, OTHER, _SUMMED, **k),
    "lax.empty": lambda **k: lax.empty((8, 3), F32, **k),
    "lax.full": lambda **k: lax.full((8, 3), -0.0, **k),
    "lax.full_like": lambda **k: lax.full_like(MATRIX, 2, **k),
    "lax.ragged_dot": lambda **k: lax.ragged_dot(MATRIX, GROUPS, np.array([5, 3]), **k),
    "lax.ragged_dot_general": lambda **k: lax.ragged_dot_general(
        MATRIX, OTHER, np.array([1, 3]), _RAGGED, **k
    ),
    "lax.reduce": lambda **k: lax.reduce(IMAGE, F32(-9), lax.max, (1, 2), **k),
    "lax.reduce_max": lambda **k: lax.reduce_max(IMAGE, (1,), **k),
    "lax.reduce_min": lambda **k: lax.reduce_min(IMAGE, (1,), **k),
    "lax.reduce_sum": lambda **k: lax.reduce_sum(IMAGE, (1, 3), **k),
    "lax.reshape": lambda **k: lax.reshape(MATRIX, (4, 8), **k),
    "lax.rng_bit_generator": lambda **k: lax.rng_bit_generator(
        np.arange(4, dtype=np.uint32), (8, 5), algorithm=lax.RandomAlgorithm.RNG_PHILOX, **k
    )[1],
    "nn.initializers.ones": lambda **k: dt.nn.initializers.ones(KEY, (8, 4), **k),
    "nn.initializers.zeros": lambda **k: dt.nn.initializers.zeros(KEY, (8, 4), **k),
    "nn.one_hot": lambda **k: dt.nn.one_hot(IDS, 5, **k),
    "numpy.arange": lambda **k: jnp.arange(3, 11, **k),
    "numpy.array": lambda **k: jnp.array([[1, 2], [3, 4]], **k),
    "numpy.asarray": lambda **k: jnp.asarray(MATRIX, **k),
    "numpy.bincount": lambda **k: jnp.bincount(IDS, length=8, **k),
    "numpy.broadcast_to": lambda **k: jnp.broadcast_to(OTHER, (2, 4, 6), **k),
    "numpy.dot": lambda **k: jnp.dot(MATRIX, OTHER, **k),
    "numpy.einsum": lambda **k: jnp.einsum("ij,jk,ik->ki", MATRIX, OTHER, MATRIX @ OTHER, **k),
    "numpy.empty": lambda **k: jnp.empty((8, 3), **k),
    "numpy.full": lambda **k: jnp.full((8, 3), 2, **k),
    "numpy.full_like": lambda **k: jnp.full_like(MATRIX, OTHER[1, :4], **k),
    "numpy.histogram": lambda **k: jnp.histogram(VECTOR, bins=4, **k)[0],
    "numpy.linalg.tensordot": lambda **k: jnp.linalg.tensordot(MATRIX, OTHER, axes=1, **k),
    "numpy.matmul": lambda **k: jnp.matmul(IMAGE, KERNEL[0, 0, 0, 0] * IMAGE, **k),
    "numpy.ones": lambda **k: jnp.ones(8, "int32", **k),
    "numpy.ones_like": lambda **k: jnp.ones_like(MATRIX, **k),
    "numpy.percentile": lambda **k: jnp.percentile(MATRIX, 30.0, axis=1, **k),
    "numpy.ravel": lambda **k: jnp.ravel(MATRIX, "F", **k),
    "numpy.repeat": lambda **k: jnp.repeat(MATRIX, np.array([1, 0, 2, 1, 0, 0, 3, 1]), 0, **k),
    "numpy.reshape": lambda **k: jnp.reshape(MATRIX, (4, -1), **k),
    "numpy.tensordot": lambda **k: jnp.tensordot(IMAGE, OTHER, 1, **k),
    "numpy.zeros": lambda **k: jnp.zeros((8, 4), **k),
    "numpy.zeros_like": lambda **k: jnp.zeros_like(MATRIX, shape=(4, 3), **k),
    "ops.segment_max": lambda **k: dt.ops.segment_max(MATRIX, IDS, 8, **k),
    "ops.segment_min": lambda **k: dt.ops.segment_min(MATRIX, IDS, 8, **k),
    "ops.segment_prod": lambda **k: dt.ops.segment_prod(MATRIX, IDS, 8, **k),
    "ops.segment_sum": lambda **k: dt.ops.segment_sum(MATRIX, IDS, 8, bucket_size=3, **k),
    "random.ball": lambda **k: random.ball(KEY, 3, 2.0, (8,), **k),
    "random.bernoulli": lambda **k: random.bernoulli(KEY, 0.3, (8, 2), **k),
    "random.beta": lambda **k: random.beta(KEY, PARAMETERS, 2.0, **k),
    "random.bits": lambda **k: random.bits(KEY, (8, 3), "uint8", **k),
    "random.categorical": lambda **k: random.categorical(KEY, MATRIX, **k),
    "random.cauchy": lambda **k: random.cauchy(KEY, (8,), **k),
    "random.chisquare": lambda **k: random.chisquare(KEY, PARAMETERS, **k),
    "random.dirichlet": lambda **k: random.dirichlet(KEY, PARAMETERS, **k),
    "random.exponential": lambda **k: random.exponential(KEY, (8, 2), **k),
    "random.f": lambda **k: random.f(KEY, PARAMETERS, 3.0, **k),
    "random.gamma": lambda **k: random.gamma(KEY, PARAMETERS, **k),
    "random.generalized_normal": lambda **k: random.generalized_normal(KEY, 3.0, (8,), **k),
    "random.geometric": lambda **k: random.geometric(KEY, 0.2, (8,), **k),
    "random.gumbel": lambda **k: random.gumbel(KEY, (8, 2), mode="high", **k),
    "random.laplace": lambda **k: random.laplace(KEY, (8, 2), **k),
    "random.loggamma": lambda **k: random.loggamma(KEY, PARAMETERS, **k),
    "random.logistic": lambda **k: random.logistic(KEY, (8, 2), **k),
    "random.lognormal": lambda **k: random.lognormal(KEY, 0.5, (8, 2), **k),
    "random.maxwell": lambda **k: random.maxwell(KEY, (8, 2), **k),
    "random.multivariate_normal": lambda **k: random.multivariate_normal(
        KEY, np.zeros(2, F32), np.eye(2, dtype=F32), (8,), **k
    ),
    "random.normal": lambda **k: random.normal(KEY, (8, 2), "complex64", **k),
    "random.orthogonal": lambda **k: random.orthogonal(KEY, 2, (4,), **k),
    "random.pareto": lambda **k: random.pareto(KEY, 2.0, (8, 2), **k),
    "random.permutation": lambda **k: random.permutation(KEY, MATRIX, **k),
    "random.poisson": lambda **k: random.poisson(KEY, PARAMETERS, **k),
    "random.rademacher": lambda **k: random.rademacher(KEY, (8, 2), **k),
    "random.randint": lambda **k: random.randint(KEY, (8, 2), 0, 1000, **k),
    "random.rayleigh": lambda **k: random.rayleigh(KEY, 2.0, (8, 2), **k),
    "random.t": lambda **k: random.t(KEY, 3.0, (8, 2), **k),
    "random.triangular": lambda **k: random.triangular(KEY, 0.0, 1.0, 3.0, (8,), **k),
    "random.truncated_normal": lambda **k: random.truncated_normal(KEY, -1.0, 2.0, (8, 2), **k),
    "random.uniform": lambda **k: random.uniform(KEY, (8, 2), minval=-1.0, **k),
    "random.wald": lambda **k: random.wald(KEY, 2.0, (8,), **k),
    "Array.dot": lambda **k: jnp.asarray(MATRIX).dot(OTHER, **k),
    "Array.flatten": lambda **k: jnp.asarray(MATRIX).flatten(**k),
    "Array.ravel": lambda **k: jnp.asarray(MATRIX).ravel(**k),
    "Array.repeat": lambda **k: jnp.asarray(MATRIX).repeat(2, 0, **k),
    "Array.reshape": lambda **k: jnp.asarray(MATRIX).reshape(16, 2, **k),
    "at.get": lambda **k: jnp.asarray(MATRIX).at[:2].get(**k),
    **{
        f"at.{name}": lambda name=name, **k: getattr(jnp.asarray(MATRIX).at[1], name)(2.0, **k)
        for name in ["add", "divide", "max", "min", "mul", "multiply", "power", "set", "subtract"]
    },
}

#: The factories of initializers: the arguments.
INITIALIZERS: dict[str, tuple[Any, ...]] = {
    "constant": (VECTOR[:4],),
    "delta_orthogonal": (),
    "orthogonal": (),
    "variance_scaling": (2.0, "fan_in", "uniform"),
    **dict.fromkeys(["uniform", "normal", "truncated_normal"], ()),
    **{
        f"{name}_{kind}": ()
        for name in ("glorot", "he", "kaiming", "lecun", "xavier")
        for kind in ("uniform", "normal")
    },
}
for _name, _arguments in INITIALIZERS.items():
    CALLS[f"initializer {_name}"] = lambda name=_name, arguments=_arguments, **k: getattr(
        dt.nn.initializers, name
    )(*arguments)(KEY, (4, 2, 4) if "delta" in name else (8, 4), **k)
CALLS["initializer of complex numbers"] = lambda **k: dt.nn.initializers.he_normal()(
    KEY, (8, 4), "complex64", **k
)


def _argument(name: str) -> str:
    return "sharding" if name.startswith("lax.full") else "out_sharding"


def _parameters(value: Any) -> Any:
    try:
        return inspect.signature(value).parameters
    except (TypeError, ValueError):
        return ()


def test_no_function_is_forgotten() -> None:
    modules: list[ModuleType] = [
        jnp, jnp.linalg, jnp.fft, lax, lax.linalg, dt.nn, dt.nn.initializers, dt.ops, random,
        dt.image, dt.scipy.special, dt.scipy.linalg, dt.scipy.signal,
    ]  # fmt: skip
    found = set()
    for module in modules:
        short = module.__name__.removeprefix("dovetail.")
        for name in module.__all__:
            if _argument(f"{short}.{name}") in _parameters(getattr(module, name)):
                found.add(f"{short}.{name}")
    methods = {"Array": dt.Array, "at": jnp.ones(3).at[0]}
    for short, of in methods.items():
        names = [name for name in dir(of) if not name.startswith("_")]
        found |= {f"{short}.{n}" for n in names if "out_sharding" in _parameters(getattr(of, n))}
    assert found == {name for name in CALLS if not name.startswith("initializer ")}
    factories = set(dt.nn.initializers.__all__) - {"zeros", "ones", "Initializer"}
    assert factories == set(INITIALIZERS)


_GAMMA = "ball beta chisquare dirichlet f generalized_normal loggamma poisson t"
#: What takes seconds to compile, and is divided as `random.gamma` is: its type alone is tested.
SLOW = {"initializer of complex numbers", *[f"random.{name}" for name in _GAMMA.split(" ")]}


@pytest.mark.parametrize("name", CALLS)
def test_types_and_values(name: str) -> None:
    """The type is as asked, eager and traced, and the values are those of one device."""
    call, asked = CALLS[name], {_argument(name): P("x")}
    whole = dt.eval_shape(call)
    sizes = [f"{n}@x" if d == 0 else str(n) for d, n in enumerate(whole.shape)]
    expected = f"{whole.dtype}[{','.join(sizes)}]"
    with dt.set_mesh(MESH):
        assert str(dt.make_jaxpr(lambda: call(**asked))().out_avals[0]) == expected
        results = [] if name in SLOW else [call(**asked), dt.jit(lambda: call(**asked))()]
    for result in results:
        plain = call()
        assert result.sharding.mesh is MESH
        assert str(dt.typeof(result)) == expected
        if "empty" not in name:
            np.testing.assert_allclose(result, plain, rtol=2e-5, atol=1e-6)
            if "complex" not in expected:  # -0.0, too
                np.testing.assert_array_equal(np.signbit(result), np.signbit(plain))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_sharding_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="harding must be a PartitionSpec or a NamedSharding"):
        CALLS[name](**{_argument(name): "x"})
    with pytest.raises(ValueError, match="there is no current mesh: set one"):
        CALLS[name](**{_argument(name): P("x")})


#: One for each way in which functions take the argument.
WAYS = [
    "lax.conv_general_dilated", "lax.dot_general", "lax.full", "lax.reduce_max", "numpy.arange",
    "numpy.asarray", "numpy.einsum", "numpy.matmul", "numpy.percentile", "numpy.reshape",
    "numpy.tensordot", "numpy.zeros", "ops.segment_sum", "random.laplace", "random.uniform",
    "initializer normal", "at.get",
]  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("mesh", [MESH, AUTO, MIXED])
def test_meshes_and_kinds_of_axes(name: str, mesh: Any) -> None:
    """A `NamedSharding` needs no current mesh; along Auto axes the array is divided, too."""
    call, argument = CALLS[name], _argument(name)
    plain = call()
    rank = plain.ndim
    spec = P("x") if rank == 1 or plain.shape[-1] % 2 else P("x", *[None] * (rank - 2), "y")
    asked = {argument: NamedSharding(mesh, spec)}
    results = [call(**asked), dt.jit(lambda: call(**asked))()]
    with dt.set_mesh(mesh):
        asked = {argument: spec}
        results += [call(**asked), dt.jit(lambda: call(**asked))()]
    for result in results:
        assert result.sharding.is_equivalent_to(NamedSharding(mesh, spec), rank)
        shown = {axis for axis in "xy" if f"@{axis}" in str(dt.typeof(result))}
        named = {axis for entry in spec if entry for axis in entry}
        assert shown == named & set(
            mesh.explicit_axes
            if hasattr(mesh, "explicit_axes")
            else mesh.abstract_mesh.explicit_axes
        )
        np.testing.assert_allclose(result, plain, rtol=2e-5, atol=1e-6)


def test_an_array_that_is_filled_is_anywhere() -> None:
    device = dt.devices()[2]
    place = dt.sharding.SingleDeviceSharding(device)
    for call in (lambda s: lax.full(4, 1, sharding=s), lambda s: lax.full_like(A, 2, sharding=s)):
        assert call(place).devices() == {device}


def test_a_mesh_of_one_device() -> None:
    with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        for result in (
            jnp.zeros(4, out_sharding=P("x")),
            jnp.arange(4.0, out_sharding=P("x")),
            random.normal(KEY, (4,), out_sharding=P("x")),
        ):
            assert str(dt.typeof(result)) == "float32[4@x]"


#: The sharding: parts of the message, for results of shape (8, 6).
REFUSED: list[tuple[Any, str]] = [
    (P("z"), r"out_sharding is P\('z'\); .* has no axis 'z'"),
    (P("x", None, "y"), r"with 3 entries, and the result has 2 dimensions"),
    (P("x", "x"), "for each axis once"),
    (P(P.UNCONSTRAINED), "for each axis once"),
    (P(None, ("x", "y")), r"dimension 1 of .*8,\s?6.* 6 is no multiple of 4\. Pad it to 8, or lea"),
]


@pytest.mark.parametrize(("sharding", "message"), REFUSED)
@pytest.mark.parametrize(
    "call",
    [
        lambda s: jnp.zeros((8, 6), out_sharding=s),
        lambda s: jnp.dot(MATRIX, OTHER, out_sharding=s),
        lambda s: jnp.einsum("ij,jk", MATRIX, OTHER, out_sharding=s),
        lambda s: random.normal(KEY, (8, 6), out_sharding=s),
        lambda s: jnp.asarray(np.ones((8, 6)), out_sharding=s),
        lambda s: lax.reduce_sum(np.ones((8, 2, 6), F32), (1,), out_sharding=s),
        lambda s: lax.reduce_min(np.ones((8, 2, 6), F32), (1,), out_sharding=s),
        lambda s: lax.broadcasted_iota("int32", (8, 6), 1, out_sharding=s),
    ],
)
def test_what_cannot_be(call: Any, sharding: Any, message: str) -> None:
    with dt.set_mesh(MESH):
        for way in (call, lambda s: dt.jit(lambda: call(s))()):
            with pytest.raises(ValueError, match=message):
                way(sharding)


def test_two_places_are_refused() -> None:
    device = dt.devices()[1]
    calls = [jnp.zeros, jnp.ones, jnp.empty, lambda n, **k: jnp.full(n, 1, **k), jnp.arange,
             lambda n, **k: jnp.zeros_like(np.ones(n), **k), jnp.asarray]  # fmt: skip
    for call in calls:
        with dt.set_mesh(MESH), pytest.raises(ValueError, match="device and out_sharding both"):
            call(4, device=device, out_sharding=P("x"))


A = _array(MATRIX, "x")
D = _array(MATRIX, "y")
K = _array(MATRIX, None, "x")
W = _array(OTHER)
WX = _array(OTHER, "x")
WY = _array(OTHER, None, "y")
V = _array(VECTOR, "x")
U = _array(VECTOR[:4], "x")
S = _array(MATRIX[:4], "x")
SXY = _array(MATRIX[:4], "x", "y")
BX = _array(IMAGE[:, 0], "x")
BY = _array(IMAGE[:, 1], "y")
LAST = _array((np.arange(18).reshape(6, 3) % 4).astype(F32), "y")

#: The subscripts, out_sharding, operands: the type of the result, or None if it is ambiguous.
EINSUM: list[tuple[str, Any, tuple[Any, ...], str | None]] = [
    ("ij,jk->ik", None, (A, W), "float32[8@x,6]"),
    ("ij,jk->ik", None, (K, WX), None),
    ("ij,jk->ik", P(), (K, WX), "float32[8,6]"),
    ("ij,jk->ik", P("x"), (K, WX), "float32[8@x,6]"),
    ("ij,jk->ik", P(None, "y"), (K, WX), "float32[8,6@y]"),
    ("ij,jk->ki", P("y"), (A, W), "float32[6@y,8]"),
    ("ij,jk->ki", None, (A, WY), "float32[6@y,8@x]"),
    ("ij,jk,kl->il", None, (A, WY, LAST), None),
    ("ij,jk,kl->il", P("x"), (A, WY, LAST), "float32[8@x,3]"),
    ("ij,jk,kl->il", None, (K, WX, LAST), None),
    ("ij,jk,kl->il", P(), (K, WX, LAST), "float32[8,3]"),
    ("ij,jk,kl->il", P("x"), (K, WX, LAST), "float32[8@x,3]"),
    ("ij->i", None, (A,), "float32[8@x]"),
    ("ij->i", P("y"), (A,), "float32[8@y]"),
    ("ij->ji", None, (A,), "float32[4,8@x]"),
    ("ij->ji", P("x"), (A,), "float32[4@x,8]"),
    ("ii->i", P("x"), (S,), "float32[4@x]"),
    ("ii->i", P("x"), (SXY,), "float32[4@x]"),
    ("ii->", P(), (SXY,), "float32[]"),
    ("bij,bjk->bik", None, (BX, BX), "float32[8@x,4,4]"),
    ("bij,bjk->bik", None, (BX, BY), None),
    ("bij,bjk->bik", P("x"), (BX, BY), "float32[8@x,4,4]"),
    ("bij,bjk->bik", P("y"), (BX, BX), "float32[8@y,4,4]"),
    ("...ij,...jk->...ik", P("y"), (BX, BX), "float32[8@y,4,4]"),
    ("i,j->ij", None, (V, U), None),
    ("i,j->ij", P("x", "y"), (V, U), "float32[8@x,4@y]"),
    ("ij,ij->ij", None, (A, D), None),
    ("ij,ij->ij", P("y"), (A, D), "float32[8@y,4]"),
    ("i,i->", None, (V, V), None),
    ("i,i->", P(), (V, V), "float32[]"),
    ("ij,->ij", P("x"), (A, F32(2)), "float32[8@x,4]"),
    ("ij,jk->k", P("x"), (A, W), "float32[6@x]"),
    ("ij,jk->ik", NamedSharding(MESH, P("x")), (K, WX), "float32[8@x,6]"),
]


@pytest.mark.parametrize(("subscripts", "asked", "operands", "expected"), EINSUM)
def test_einsum(subscripts: str, asked: Any, operands: Any, expected: str | None) -> None:
    def function(*x: Any) -> Any:
        return jnp.einsum(subscripts, *x, out_sharding=asked)

    with dt.set_mesh(MESH):
        for way in (function, dt.jit(function)):
            if expected is None:
                with pytest.raises(ShardingTypeError, match=r"reshard\(x, P\("):
                    way(*operands)
                continue
            result = way(*operands)
            assert str(dt.typeof(result)) == expected
            wanted = np.einsum(subscripts, *map(np.asarray, operands))
            np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_einsum_divides_no_intermediate_product_anew() -> None:
    """One collective sums the parts: nothing is gathered, and no product of a step is reshaped."""
    with dt.set_mesh(MESH):
        function = dt.jit(lambda a, b: jnp.einsum("ij,jk->ki", a, b, out_sharding=P()))
        text = function.lower(K, WX).compile().as_text()
    assert text.count(" all-reduce(") + text.count(" all-reduce-start(") == 1
    assert "all-gather" not in text


#: name: (function, operands, the type); operands are divided, and the sharding settles it.
SETTLED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "tensordot": (lambda a, b: jnp.tensordot(a, b, 1, out_sharding=P("x")), (K, WX), "8@x,6"),
    "tensordot, two": (
        lambda a: jnp.tensordot(a, a, ([1, 2], [1, 2]), out_sharding=P("y")),
        (_array(IMAGE[:, 0], None, "x", "y"),),
        "8@y,8",
    ),
    "tensordot, none": (lambda a, b: jnp.tensordot(a, b, 0, out_sharding=P("y")), (V, U), "8@y,4"),
    "matmul": (lambda a, b: jnp.matmul(a, b, out_sharding=P(None, "y")), (BX, BY), "8,4@y,4"),
    "reduce": (
        lambda a: lax.reduce(a, F32(0), lax.add, (1,), out_sharding=P("y")),
        (A,),
        "8@y",
    ),
    "reduce_max": (lambda a: lax.reduce_max(a, (0,), out_sharding=P("x")), (A,), "4@x"),
    "reduce_sum": (lambda a: lax.reduce_sum(a, (0,), out_sharding=P("x")), (A,), "4@x"),
    "ragged_dot": (
        lambda a: lax.ragged_dot(a, GROUPS, np.array([5, 3]), out_sharding=P("x")),
        (A,),
        "8@x,6",
    ),
    "segment_sum": (
        lambda a: dt.ops.segment_sum(a, IDS, 8, out_sharding=P("y")),
        (A,),
        "8@y,4",
    ),
    "bincount": (
        lambda a: jnp.bincount(jnp.int32(a), length=8, out_sharding=P()).astype(F32),
        (V,),
        "8",
    ),
    "percentile": (lambda a: jnp.percentile(a, 50.0, 0, out_sharding=P("x")), (A,), "4@x"),
    "repeat": (lambda a: jnp.repeat(a, 2, 0, out_sharding=P("x")), (A,), "16@x,4"),
    "repeat, flat": (lambda a: jnp.repeat(a, 2, out_sharding=P("y")), (A,), "64@y"),
    "permutation": (lambda a: random.permutation(KEY, a, out_sharding=P("y")), (A,), "8@y,4"),
    "rayleigh": (lambda a: random.rayleigh(KEY, a + 1, out_sharding=P(None, "y")), (A,), "8,4@y"),
    "array": (lambda a: jnp.array(a, out_sharding=P("y")), (A,), "8@y,4"),
    "vmap": (
        dt.vmap(lambda r: jnp.einsum("i,ij->j", r, OTHER, out_sharding=P("y"))),
        (A,),
        "8@x,6@y",
    ),
    "vmap, axis in use": (
        dt.vmap(lambda r: jnp.einsum("i,ij->j", r, OTHER, out_sharding=P("x"))),
        (A,),
        "8,6@x",
    ),
    "vmap of numbers": (
        lambda: dt.vmap(lambda k: random.normal(k, (8,), out_sharding=P("x")))(
            random.split(KEY, 4)
        ),
        (),
        "4,8@x",
    ),
    "grad": (
        dt.grad(
            lambda a, b: (jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x")) ** 2).sum(), argnums=1
        ),
        (K, WX),
        "4@x,6",
    ),
    "grad of numbers": (
        dt.grad(
            lambda a: random.uniform(KEY, (8, 4), minval=a, maxval=9.0, out_sharding=P("y")).sum()
        ),
        (A,),
        "8@x,4",
    ),
}


@pytest.mark.parametrize("name", SETTLED)
def test_divided_operands(name: str) -> None:
    function, operands, expected = SETTLED[name]
    with dt.set_mesh(MESH):
        results = [function(*operands), dt.jit(function)(*operands)]
        plain = function(*map(np.asarray, operands))
    for result in results:
        assert str(dt.typeof(result)) == f"float32[{expected}]"
        np.testing.assert_allclose(result, plain, rtol=2e-5, atol=1e-6)


#: name: (function, the type of the result); a is float32[8@x,4].
ALIKE: dict[str, tuple[Any, str]] = {
    name: (call, expected)
    for like, of in {
        "zeros_like": jnp.zeros_like,
        "ones_like": jnp.ones_like,
        "empty_like": jnp.empty_like,
        "full_like": lambda a, **k: jnp.full_like(a, 2, **k),
        "lax.full_like": lambda a, **k: lax.full_like(a, 2, **k),
    }.items()
    for name, call, expected in (
        (like, of, "float32[8@x,4]"),
        (f"{like} dtype", lambda a, of=of: of(a, dtype="int32"), "int32[8@x,4]"),
        (f"{like} shape", lambda a, of=of: of(a, shape=(8, 4)), "float32[8,4]"),
        (f"{like} other shape", lambda a, of=of: of(a, shape=(3,)), "float32[3]"),
    )
}


@pytest.mark.parametrize("name", ALIKE)
def test_like_a_divided_array(name: str) -> None:
    function, expected = ALIKE[name]
    with dt.set_mesh(MESH):
        for way in (function, dt.jit(function)):
            assert str(dt.typeof(way(A))) == expected


@pytest.mark.parametrize("name", ["random.normal", "random.randint", "random.bernoulli"])
def test_each_device_makes_its_random_numbers(name: str) -> None:
    """No device makes all words: those of a cipher's rounds have the shape of a part."""
    shape = (64, 32)
    arguments = {"random.randint": (0, 9)}.get(name, ())
    draw = getattr(random, name.removeprefix("random."))
    first = (0.3, shape) if name == "random.bernoulli" else (shape, *arguments)
    with dt.set_mesh(MESH):
        function = dt.jit(lambda key: draw(key, *first, out_sharding=P("x", "y")))
        text = function.lower(KEY).compile().as_text()
    parts = len(re.findall(r"= u32\[32,16\]", text))
    wholes = len(re.findall(r"= u32\[(64,32|2048)\]", text))
    assert parts > 50
    assert not wholes
    assert not re.search("all-(gather|reduce|to-all)|collective-permute", text)
