"""Compiling ahead of time: stages, calls of compiled programs, programs as bytes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, stages
from dovetail._core.api import serialization
from dovetail.experimental import serialize_executable
from dovetail.experimental.layout import Format, Layout
from dovetail.experimental.serialize_executable import deserialize_and_load, serialize
from dovetail.extend import Primitive
from dovetail.sharding import SingleDeviceSharding

F = np.float32
W, Y = np.ones((2, 3), F), np.arange(3, dtype=F)


def model(parameters: Any, y: Any) -> Any:
    return {"product": parameters["w"] @ y, "sine": jnp.sin(y)}


def struct(*shape: int, dtype: Any = F) -> dt.ShapeDtypeStruct:
    return dt.ShapeDtypeStruct(shape, dtype)


@pytest.fixture(scope="module")
def compiled() -> Any:
    return dt.jit(model).lower({"w": struct(2, 3)}, struct(3)).compile()


def test_the_names_of_stages() -> None:
    assert set(stages.__all__) >= {"ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"}
    traced = dt.jit(model).trace({"w": struct(2, 3)}, struct(3))
    lowered = traced.lower()
    done = lowered.compile()
    for value, kind in (
        (traced, stages.Traced),
        (lowered, stages.Lowered),
        (done, stages.Compiled),
        (lowered.args_info[0][1], stages.ArgInfo),
    ):
        assert type(value) is kind
    for stage in (traced, lowered, done):
        assert stage.in_tree == dt.tree.structure((({"w": 0}, 0), {}))
        assert stage.out_tree == dt.tree.structure({"product": 0, "sine": 0})
        place = SingleDeviceSharding(dt.devices()[0]) if stage is done else None
        expected = {"product": struct(2), "sine": struct(3)}
        assert stage.out_info == {k: s.update(sharding=place) for k, s in expected.items()}


def test_avals_of_the_result() -> None:
    traced = dt.jit(model).trace({"w": struct(2, 3)}, struct(3))
    assert {name: aval.shape for name, aval in traced.out_avals.items()} == {
        "product": (2,),
        "sine": (3,),
    }


def test_how_they_are_shown() -> None:
    traced = dt.jit(model).trace({"w": W}, Y)
    for stage in (traced, traced.lower(), traced.lower().compile()):
        shown = f"<{type(stage).__name__} model(parameters['w']: f32[2,3], y: f32[3])>"
        assert repr(stage) == shown


def test_protocols_are_checked_at_run_time() -> None:
    class Counter:
        @dt.jit
        def step(self, x: Any) -> Any:
            return x

    for function in (dt.jit(model), dt.jit(abs, static_argnums=0), jnp.linalg.norm, Counter.step):
        assert isinstance(function, stages.Wrapped) == hasattr(function, "lower")
    assert isinstance(dt.jit(model), stages.Wrapped)
    for other in (model, dt.grad(model), dt.jit(model).lower({"w": W}, Y), 3):
        assert not isinstance(other, stages.Wrapped)


def test_formats() -> None:
    function = dt.jit(lambda matrix, unused, key: {"rows": (matrix + 1, matrix.T), "key": key})
    compiled = function.lower(W, Y, key=dt.random.key(0)).compile()
    (of_matrix, of_unused), keywords = compiled.input_formats
    place = SingleDeviceSharding(dt.devices()[0])
    assert of_matrix == jnp.asarray(W).format == Format(Layout((0, 1), ()), place)
    assert of_unused == Format()
    assert keywords["key"].layout.major_to_minor == (0,)
    results = compiled.output_formats
    expected = function(W, Y, key=dt.random.key(0))
    assert results["rows"] == tuple(x.format for x in expected["rows"])
    assert results["key"].sharding == place


@pytest.mark.parametrize("auto", [Format(Layout.AUTO), (Format(Layout.AUTO), None), None], ids=str)
def test_layouts_that_the_compiler_chooses(auto: Any) -> None:
    function = dt.jit(lambda x, y: x.T + y, in_shardings=auto, out_shardings=Format(Layout.AUTO))
    compiled = function.lower(struct(2, 3), struct(3, 2)).compile()
    placed = [dt.device_put(x, f) for x, f in zip((W, W.T), compiled.input_formats[0], strict=True)]
    np.testing.assert_array_equal(compiled(*placed), 2 * W.T)
    np.testing.assert_array_equal(function(W, W.T), 2 * W.T)
    assert function(W, W.T).format == compiled.output_formats


def test_a_choice_is_for_programs_alone() -> None:
    place = SingleDeviceSharding(dt.devices()[0])
    with pytest.raises(ValueError, match=r"device_put: Layout\.AUTO leaves the layout"):
        dt.device_put(W, Format(Layout.AUTO, place))
    with pytest.raises(TypeError, match="no choice of a compiler"):
        dt.ShapeDtypeStruct((2,), F, sharding=Format(Layout.AUTO, place))
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(NotImplementedError, match=f"{option} of jit: .* Leave the layout out"):
            dt.jit(model, **{option: Format(Layout((1, 0)), place)})


def test_a_device_that_is_asked_for() -> None:
    device = dt.devices()[-1]
    place = SingleDeviceSharding(device)
    for places in (place, Format(Layout.AUTO, place), Format(None, place)):
        for option in ("in_shardings", "out_shardings"):
            function = dt.jit(lambda w: w @ w.T, **{option: places})
            for value in (W, jnp.asarray(W), dt.device_put(W, device)):
                assert function(value).devices() == {device}
            np.testing.assert_allclose(function.lower(W).compile()(W), W @ W.T, rtol=1e-6)


ABSTRACT: dict[str, Callable[[], Any]] = {
    "struct": lambda: struct(3),
    "aval": lambda: dt.typeof(Y),
    "array": lambda: jnp.asarray(Y),
    "numpy": lambda: Y,
    "duck": lambda: type("Duck", (), {"shape": (3,), "dtype": np.dtype(F)})(),
}


@pytest.mark.parametrize("kind", ABSTRACT)
def test_abstract_arguments(kind: str) -> None:
    argument = ABSTRACT[kind]()
    assert dt.eval_shape(jnp.sin, argument) == struct(3)
    assert dt.jit(jnp.sin).eval_shape(argument) == struct(3)
    assert str(dt.make_jaxpr(jnp.sin)(argument)) == str(dt.make_jaxpr(jnp.sin)(Y))
    program = dt.jit(jnp.sin).trace(argument).lower().compile()
    np.testing.assert_array_equal(program(Y), dt.jit(jnp.sin)(Y))


WRONG_CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "too few": (lambda c: c({"w": W}), r"\[0\]:\n.*a tuple of length 2\n.*a tuple of length 1"),
    "too many": (lambda c: c({"w": W}, Y, Y), r"\[0\]:\n.*length 2\n.*length 3"),
    "key": (lambda c: c({"v": W}, Y), r"\[0\]\[0\]:\n.*keys \['w'\]\n.*keys \['v'\]"),
    "kind": (lambda c: c([W], Y), r"\[0\]\[0\]:\n.*a dict .*\n.*a list of length 1"),
    "keyword": (lambda c: c({"w": W}, y=Y), r"\[0\]:\n.*length 2\n.*length 1"),
    "shape": (lambda c: c({"w": W}, np.ones(4, F)), r"f32\[3\] for its argument y, got f32\[4\]"),
    "dtype": (
        lambda c: c({"w": W.astype(np.int32)}, Y),
        r"f32\[2,3\] for its argument parameters\['w'\], got i32\[2,3\]",
    ),
    "no array": (lambda c: c({"w": W}, "s"), "Argument y of model is 's'"),
    "tracer": (lambda c: dt.grad(lambda y: c({"w": W}, y)["sine"].sum())(Y), "is a tracer"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls(compiled: Any, case: str) -> None:
    call, message = WRONG_CALLS[case]
    with pytest.raises(TypeError, match=message):
        call(compiled)


def test_analyses(compiled: Any) -> None:
    lowered = dt.jit(model).lower({"w": W}, Y)
    for costs in (lowered.cost_analysis(), compiled.cost_analysis()):
        assert costs["flops"] >= 12
        assert costs["transcendentals"] == 3
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 9 * 4
    assert memory.output_size_in_bytes >= 5 * 4


PLATFORMS = [("cpu",), ("cuda",), ("tpu",), ("cpu", "cuda"), ("tpu", "cuda", "cpu")]


@pytest.mark.parametrize("platforms", PLATFORMS, ids="-".join)
def test_lowering_for_platforms(platforms: tuple[str, ...]) -> None:
    def function(x: Any) -> Any:
        return jnp.sort(jnp.sin(x))

    lowered = dt.jit(function).lower(struct(5000), lowering_platforms=platforms)
    text = lowered.as_text()
    signature = next(line for line in text.splitlines() if "@main" in line)
    assert ("tensor<i32>" in signature) == (len(platforms) > 1)
    assert ("stablehlo.case" in text) == (len(platforms) > 1 and "cpu" in platforms)
    if "cpu" in platforms:
        x = np.linspace(0, 9, 5000, dtype=F)
        np.testing.assert_array_equal(lowered.compile()(x), dt.jit(function)(x))


BAD_PLATFORMS: list[tuple[Any, type[Exception], str]] = [
    ("cpu", TypeError, "a sequence of names"),
    (("cpu", 3), TypeError, "a sequence of names"),
    ((), ValueError, "at least one platform"),
    (("cpu", "cpu"), ValueError, "each once"),
    (("abacus",), RuntimeError, "unknown platform 'abacus'"),
]


@pytest.mark.parametrize(("platforms", "kind", "message"), BAD_PLATFORMS)
def test_bad_platforms(platforms: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        dt.jit(model).lower({"w": W}, Y, lowering_platforms=platforms)


TABLE = np.arange(5000, dtype=F)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "trees": (model, ({"w": W}, Y)),
    "scalar": (lambda x: x * 2, (1.5,)),
    "no result": (lambda x: None, (Y,)),
    "unused argument": (lambda x, y: x + 1, (Y, W)),
    "captured table": (lambda x: TABLE[:3] * x, (Y,)),
    "empty": (lambda x: x, (np.ones((0, 2), F),)),
    "bfloat16": (lambda x: x + x, (jnp.ones(3, jnp.bfloat16),)),
    "complex": (lambda x: x * 1j, (Y,)),
    "LAPACK": (lambda x: lax.linalg.cholesky(x), (np.eye(3, dtype=F) * 4,)),
    "eigenvalues": (lambda x: jnp.linalg.eig(x), (np.diag(Y),)),
    "keys": (lambda x: dt.random.key_data(dt.random.split(dt.random.key(3))), (Y,)),
}


@pytest.mark.parametrize("case", CASES)
def test_round_trip(case: str) -> None:
    function, arguments = CASES[case]
    program = dt.jit(function).lower(*arguments).compile()
    loaded = deserialize_and_load(*serialize(program))
    again = deserialize_and_load(*serialize(loaded))
    for other in (loaded, again):
        assert type(other) is stages.Compiled
        assert other.out_info == program.out_info
        dt.tree.map(np.testing.assert_array_equal, other(*arguments), program(*arguments))


def test_programs_out_of_the_cache_on_disk(tmp_path: Any) -> None:
    def function(x: Any) -> Any:
        return jnp.cos(x) * 3.25

    names = {
        "compilation_cache_dir": str(tmp_path / "cache"),
        "persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(dt.config, name) for name in names}
    try:
        for name, value in names.items():
            dt.config.update(name, value)
        for _ in range(2):
            dt.clear_caches()
            program = dt.jit(function).lower(Y).compile()
        parts = serialize(program)
        for file in (tmp_path / "cache").iterdir():
            file.unlink()
        np.testing.assert_array_equal(deserialize_and_load(*parts)(Y), program(Y))
    finally:
        for name, value in before.items():
            dt.config.update(name, value)


def test_donation_survives() -> None:
    program = dt.jit(lambda x: x + 1, donate_argnums=0).lower(Y).compile()
    loaded = deserialize_and_load(*serialize(program))
    x = jnp.asarray(Y)
    np.testing.assert_array_equal(loaded(x), Y + 1)
    assert x.is_deleted()


def test_another_process(tmp_path: Any) -> None:
    """It has lowered nothing: what the rules did for this process has to be done for it."""
    programs = {
        name: (
            *serialize(dt.jit(function).lower(*arguments).compile()),
            dt.tree.map(np.asarray, arguments),
        )
        for name, (function, arguments) in CASES.items()
    }
    file = tmp_path / "programs"
    file.write_bytes(pickle.dumps(programs))
    code = (
        "import pickle, sys, dovetail as dt, numpy as np\n"
        "from dovetail.experimental.serialize_executable import deserialize_and_load\n"
        "found = {}\n"
        "for name, (*parts, arguments) in pickle.load(open(sys.argv[1], 'rb')).items():\n"
        "    result = deserialize_and_load(*parts)(*arguments)\n"
        "    found[name] = dt.tree.map(np.asarray, result)\n"
        "pickle.dump(found, open(sys.argv[1], 'wb'))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)
    for name, found in pickle.loads(file.read_bytes()).items():
        function, arguments = CASES[name]
        dt.tree.map(np.testing.assert_array_equal, found, dt.jit(function)(*arguments))


DAMAGE: dict[str, tuple[Callable[[bytes], Any], type[Exception], str]] = {
    "empty": (lambda b: b"", ValueError, "no serialized program"),
    "foreign": (lambda b: b"\x80\x04 a pickle" * 9, ValueError, "no serialized program"),
    "text": (lambda b: "program", TypeError, "takes the bytes"),
    "format": (lambda b: b[:18] + b"\x09" + b[19:], ValueError, "another version"),
    "cut": (lambda b: b[:-1], ValueError, "damaged"),
    "cut in the header": (lambda b: b[:30], ValueError, "damaged"),
    "longer": (lambda b: b + b"\n", ValueError, "damaged"),
    "a bit": (lambda b: b[:-50] + bytes([b[-50] ^ 1]) + b[-49:], ValueError, "damaged"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_payloads(compiled: Any, case: str) -> None:
    change, kind, message = DAMAGE[case]
    payload, *trees = serialize(compiled)
    with pytest.raises(kind, match=message):
        deserialize_and_load(change(payload), *trees)


@pytest.mark.parametrize(
    "fact", ["dovetail", "jaxlib", "platform", "runtime", "device", "processor"]
)
def test_other_surroundings(compiled: Any, fact: str, monkeypatch: Any) -> None:
    facts = serialization._facts(dt.devices()[0])
    other = {**facts, fact: "cuda" if fact == "platform" else "something else"}
    with monkeypatch.context() as patch:
        patch.setattr(serialization, "_facts", lambda device: other)
        payload, *trees = serialize(compiled)
    if fact == "platform":
        with pytest.raises(RuntimeError, match="platform 'cuda' cannot run"):
            deserialize_and_load(payload, *trees)
    with pytest.raises(ValueError, match=r"the serialized program is for .*, here is"):
        deserialize_and_load(payload, *trees, backend="cpu")


def test_misuse(compiled: Any) -> None:
    payload, in_tree, out_tree = serialize(compiled)
    with pytest.raises(TypeError, match="serialize takes a compiled program"):
        serialize(dt.jit(model))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"out_tree of .* has 3 leaves, the program of model has 2"
    ):
        deserialize_and_load(payload, in_tree, dt.tree.structure([1, 2, 3]))
    with pytest.raises(TypeError, match=r"in_tree of .* is a tree definition"):
        deserialize_and_load(payload, 3, out_tree)
    with pytest.raises(ValueError, match="a sequence of one device"):
        deserialize_and_load(payload, in_tree, out_tree, execution_devices=[])
    loaded = deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=dt.devices("cpu")[:1]
    )
    with pytest.raises(TypeError, match=r"argument parameters\['w'\], got"):
        loaded({"w": Y}, Y)
    assert serialize_executable.__all__ == ["deserialize_and_load", "serialize"]


def test_arguments_in_another_memory_of_the_device() -> None:
    device = dt.devices("cpu")[0]
    program = dt.jit(jnp.sin).lower(struct(3)).compile()
    other = dt.device_put(Y, SingleDeviceSharding(device, memory_kind="pinned_host"))
    with pytest.raises(
        ValueError, match=r"it got one with .*memory_kind='pinned_host'.*device_put"
    ):
        program(other)


def test_a_rule_that_prepares_by_a_function_which_others_cannot_find() -> None:
    primitive = Primitive("prepared_by_a_lambda")
    primitive.define("abstract")(lambda x: x)

    @primitive.define("lower")
    def lower(context: Any, x: Any) -> Any:
        context.prepare(lambda: None)
        return x

    program = dt.jit(lambda x: primitive.bind(x)).lower(struct(3)).compile()
    with pytest.raises(ValueError, match="define it at the top level"):
        serialize(program)
