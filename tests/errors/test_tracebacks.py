"""Tracebacks end at the user's line: the frames of the framework are left out, or all are there."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.errors.test_messages import MISTAKES

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.api.event_logs import EventLog
from dovetail._core.base import config
from dovetail._core.base.tracebacks import is_hidden, without_hidden
from dovetail.example_libraries import optimizers
from dovetail.experimental import sparse
from dovetail.extend.tracebacks import publish
from dovetail.scipy.spatial.transform import Rotation

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def filtering() -> Iterator[None]:
    with config.traceback_filtering("auto"):
        yield


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def hidden(error: BaseException) -> list[str]:
    """The frames of the framework in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{f.filename}:{f.lineno}" for f in frames if is_hidden(f.filename)]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_shows_one_frame_of_the_framework_at_most(name: str) -> None:
    error = raised(MISTAKES[name])
    assert len(hidden(error)) <= 1
    assert error.__context__ is None or error.__suppress_context__


ENTRIES: dict[str, Callable[[], Any]] = {
    "len": lambda: len(jnp.array(1)),
    "name of a lazy package": lambda: jnp.catt,  # type: ignore[attr-defined]
    "name of dovetail": lambda: dt.jitt,  # type: ignore[attr-defined]
    "log of events": lambda: EventLog().of("fooo"),  # type: ignore[arg-type]
    "option": lambda: dt.config.update("fooo", 1),
    "constructor of sparse matrices": lambda: sparse.BCSR("a", shape=(1,)),  # type: ignore[arg-type]
    "product of sparse matrices": lambda: sparse.BCOO.fromdense(jnp.eye(3)) @ jnp.ones(4),
    "reflected product": lambda: jnp.ones(4) @ sparse.BCOO.fromdense(jnp.eye(3)),
    "step of an optimizer": lambda: optimizers.adam(0.1)[1](0, [1.0], optimizers.adam(0.1)[0](1.0)),
    "rotation": lambda: Rotation.from_euler("zz", 3),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_no_frame_of_the_framework(name: str) -> None:
    assert not hidden(raised(ENTRIES[name]))


def test_the_first_attribute_that_is_missing_shows_no_frame() -> None:
    """Before the methods of arrays are loaded."""
    program = "import dovetail as dt; x = dt.numpy.ones(1); x.unsqueeze"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "write jnp.expand_dims" in done.stderr
    assert "tracer.py" not in done.stderr
    assert "Did you mean" not in done.stderr


def test_the_code_is_the_last_line() -> None:
    """Notes about the backward pass stand before it."""

    def root(x: Any) -> Any:
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)

    with dt.debug_nans(True):
        error = raised(lambda: dt.grad(root)(0.0))
    first, last = error.__notes__
    assert first.startswith("While transposing")
    assert last.startswith("DT1312")


@pytest.mark.parametrize("name", MISTAKES)
def test_all_frames_are_there_on_demand(name: str) -> None:
    with config.traceback_filtering("off"):
        assert hidden(raised(MISTAKES[name]))


WRAPPERS = {
    "jit": dt.jit,
    "grad": lambda f: dt.grad(lambda x: f(x).sum()),
    "vmap": dt.vmap,
    "jvp": lambda f: lambda x: dt.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: dt.vjp(f, x)[1](f(x)),
    "checkpoint": dt.checkpoint,
    "jacfwd": dt.jacfwd,
    "hessian": dt.hessian,
    "make_jaxpr": dt.make_jaxpr,
    "eval_shape": lambda f: lambda x: dt.eval_shape(f, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2),
    "cond": lambda f: lambda x: lax.cond(x.sum() > 0, f, f, x),
    "while_loop": lambda f: lambda x: lax.while_loop(lambda c: c.sum() < 3, f, x),
    "map": lambda f: lambda x: lax.map(f, x),
    "tree.map": lambda f: lambda x: dt.tree.map(f, [x]),
}


@pytest.mark.parametrize("outer", WRAPPERS)
@pytest.mark.parametrize("inner", WRAPPERS)
def test_the_users_own_exceptions_pass(outer: str, inner: str) -> None:
    def function(x: Any) -> Any:
        raise RuntimeError("of the user")

    wrapped = WRAPPERS[outer](WRAPPERS[inner](function))
    error = raised(lambda: wrapped(jnp.ones((2, 2))))
    assert str(error) == "of the user"
    assert not hidden(error)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "function"


def test_what_an_exception_followed_stays() -> None:
    def function(x: Any) -> Any:
        try:
            raise KeyError("first")
        except KeyError:
            return x @ jnp.ones((5, 5))

    error = raised(lambda: dt.jit(function)(jnp.ones((2, 3))))
    assert isinstance(error.__context__, KeyError)
    assert not error.__suppress_context__
    causes = "".join(traceback.format_exception(error))
    assert "KeyError: 'first'" in causes
    assert not hidden(error) + hidden(error.__context__)


def test_a_mistake_of_the_framework_shows_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("dovetail._core.api.derivatives.check_callable")
    error = raised(lambda: dt.jit(dt.grad(abs))(1.0))
    assert type(error) is NameError
    assert hidden(error)


OUT_OF_PLACE: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: x + x,
    "number": lambda x: x * 2.0,
    "reflected": lambda x: 1.0 - x,
    "array": lambda x: jnp.ones(3) + x,
    "comparison": lambda x: x < 1,
    "function": lambda x: jnp.sin(x),
}


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_a_tracer_out_of_place_shows_no_frame_of_the_framework(name: str) -> None:
    kept: list[Any] = []
    dt.jit(lambda x: kept.append(x) or x)(jnp.ones(3))
    error = raised(lambda: OUT_OF_PLACE[name](kept[0]))
    assert type(error) is dt.errors.UnexpectedTracerError
    assert not hidden(error)


def test_a_filtered_traceback_leaves_the_first_as_it_was() -> None:
    with config.traceback_filtering("off"):
        error = raised(lambda: jnp.ones(3) @ jnp.ones(4))
    before = hidden(error)
    left = without_hidden(error.__traceback__)
    assert before
    assert hidden(error) == before
    assert [f.name for f in traceback.extract_tb(left)] == ["raised", "<lambda>"]


KEYWORDS = {
    "sum": (lambda: jnp.sum(jnp.ones(3), dim=0), "axis"),
    "method": (lambda: jnp.ones(3).sum(dim=0), "axis"),
    "mean": (lambda: jnp.mean(jnp.ones(3), keepdim=True), "keepdims"),
    "max": (lambda: jnp.max(jnp.ones(3), keep_dims=True), "keepdims"),
    "concatenate": (lambda: jnp.concatenate([jnp.ones(3)], dim=0), "axis"),
    "stack": (lambda: jnp.stack([jnp.ones(3)], dim=0), "axis"),
    "softmax": (lambda: dt.nn.softmax(jnp.ones(3), dim=0), "axis"),
    "argmax": (lambda: lax.argmax(jnp.ones(3), dim=0, index_dtype=np.int32), "axis"),
    "cumsum": (lambda: lax.cumsum(jnp.ones(3), dim=0), "axis"),
    "reshape": (lambda: jnp.reshape(jnp.ones(3), newshap=3), "shape"),
    "norm": (lambda: jnp.linalg.norm(jnp.ones(3), dim=0), "axis"),
    "fft": (lambda: jnp.fft.fft(jnp.ones(3), dim=0), "axis"),
    "uniform": (lambda: dt.random.uniform(dt.random.key(0), (3,), low=1.0), "minval"),
    "normal": (lambda: dt.random.normal(dt.random.key(0), size=(3,)), "shape"),
    "jit": (lambda: dt.jit(abs, static_argnum=0), "static_argnums"),
    "grad": (lambda: dt.grad(abs, argnum=0), "argnums"),
    "vmap": (lambda: dt.vmap(abs, in_axis=0), "in_axes"),
    "scan": (lambda: lax.scan(abs, 0, None, lenght=3), "length"),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", KEYWORDS)
def test_a_wrong_keyword_names_the_argument_that_was_meant(name: str, jit: bool) -> None:
    call, meant = KEYWORDS[name]
    error = raised(dt.jit(call) if jit else call)
    assert type(error) is TypeError
    assert "got an unexpected keyword argument" in str(error)
    assert f"write {meant}=" in str(error), str(error)
    assert not hidden(error)


MODULES = (
    *("dovetail", "dovetail.numpy", "dovetail.lax", "dovetail.random", "dovetail.nn"),
    *("dovetail.numpy.linalg", "dovetail.numpy.fft", "dovetail.nn.initializers"),
    *("dovetail.tree", "dovetail.tree_util", "dovetail.flatten_util", "dovetail.sharding"),
    *("dovetail.stages", "dovetail.dtypes", "dovetail.export", "dovetail.ffi", "dovetail.ref"),
    *("dovetail.custom_batching", "dovetail.custom_derivatives", "dovetail.debug"),
    *("dovetail.profiler", "dovetail.experimental.layout", "dovetail.experimental.sparse"),
    *("dovetail.image", "dovetail.ops", "dovetail.scipy.special", "dovetail.scipy.stats"),
)


@pytest.mark.parametrize("module", MODULES)
def test_a_public_name_that_is_called_wrongly_shows_one_frame_at_most(module: str) -> None:
    thing = object()
    wrong: list[tuple[Any, dict[str, Any]]] = [((thing,), {}), ((thing,) * 2, {}), ((), {"x_": 0})]
    found = importlib.import_module(module)
    shown = []
    for name in dir(found):
        function = getattr(found, name)
        is_error = isinstance(function, type) and issubclass(function, BaseException)
        if name.startswith("_") or not callable(function) or is_error:
            continue
        for args, kwargs in wrong:
            try:
                function(*args, **kwargs)
            except Exception as error:
                shown += [f"{name}: {frame}" for frame in hidden(error)[1:]]
    assert not shown


@dt.custom_jvp
def squared(x: Any) -> Any:
    return x * x


def without_jit() -> Any:
    with dt.disable_jit():
        return X @ X


X = jnp.ones((2, 3))
KEYS = dt.random.split(dt.random.key(0))
MESH = dt.make_mesh((1,), ("x",))
COMPILED = dt.jit(lambda x: x @ x.T)
REF = dt.new_ref(jnp.ones(3))
#: What passes no function of a module: methods, operators, indices, `with`.
PLACES: dict[str, tuple[Callable[[], Any], str]] = {
    "x[i] =": (lambda: X.__setitem__(0, 1.0), "DT0201"),
    "bool": (lambda: bool(X > 0), "DT0309"),
    "float": (lambda: float(X), ""),
    "int": (lambda: int(X), ""),
    "index": (lambda: [1, 2][X], ""),  # type: ignore[call-overload]
    "iter": (lambda: iter(jnp.float32(1)), "DT0310"),
    "format": (lambda: f"{X:.2f}", ""),
    "x[str]": (lambda: X["a"], "DT0206"),  # type: ignore[index]
    "operator": (lambda: ~X, ""),
    "without jit": (lambda: without_jit(), "DT0102"),
    "attribute": (lambda: X.unsqueeze(0), ""),  # type: ignore[attr-defined]
    "property": (lambda: jnp.ones(3).mT, ""),
    "array of keys": (lambda: np.asarray(KEYS), ""),
    "truth of keys": (lambda: bool(KEYS[0]), ""),
    "Array": (lambda: dt.Array([1.0]), ""),
    "scalar type": (lambda: jnp.float32("one"), ""),
    "item": (lambda: X.item(), ""),
    "device": (lambda: X.to_device("tpu:7"), ""),
    "flat": (lambda: X.flat["a"], "DT0206"),
    "at": (lambda: X.at(0), ""),  # type: ignore[operator]
    "at[i] =": (lambda: X.at.__setitem__(0, 1), ""),  # type: ignore[attr-defined]
    "at + ": (lambda: X.at[0] + 1, ""),  # type: ignore[operator]
    "at.set": (lambda: X.at[0].set(jnp.ones(7)), ""),
    "ref[i]": (lambda: REF[1.5], ""),
    "ref +": (lambda: REF + 1, "DT1109"),
    "ref as array": (lambda: np.asarray(REF), "DT1109"),
    "update": (lambda: dt.config.update("no_such", 1), ""),
    "value": (lambda: dt.config.update("enable_x64", "perhaps"), ""),
    "option": (lambda: dt.config.no_such, ""),
    "assigned": (lambda: setattr(dt.config, "enable_x64", True), ""),
    "with": (lambda: dt.default_matmul_precision("best"), ""),
    "set_mesh": (lambda: dt.set_mesh(3), ""),  # type: ignore[arg-type]
    "make_mesh": (lambda: dt.make_mesh((0,), ("x",)), ""),
    "sharding": (lambda: dt.NamedSharding(MESH, dt.P("q")), "DT1205"),
    "shard_shape": (lambda: dt.NamedSharding(MESH, dt.P("x")).shard_shape(()), ""),
    "mesh": (lambda: dt.sharding.Mesh(dt.devices()[:1], ("x", "y")), ""),
    "custom_vjp": (lambda: dt.custom_vjp(abs, nondiff_argnums="a"), ""),  # type: ignore[arg-type]
    "no rule": (lambda: squared(X), "DT1001"),
    "rule": (lambda: squared.defjvp(3), "DT0407"),  # type: ignore[arg-type]
    "lower": (lambda: COMPILED.lower("a"), "DT0401"),
    "trace": (lambda: COMPILED.trace(), ""),
    "stage": (lambda: COMPILED.lower(X).as_text("nonsense"), ""),
    "compiled": (lambda: COMPILED.lower(X).compile()(X.T), ""),
    "vjp": (lambda: dt.vjp(jnp.sin, X)[1](1.0), ""),
    "node": (lambda: dt.tree_util.register_pytree_node_class(3), ""),  # type: ignore[type-var]
}


@pytest.mark.parametrize("place", PLACES)
def test_no_other_place_shows_frames_of_the_framework(place: str) -> None:
    call, code = PLACES[place]
    error = raised(call)
    assert not hidden(error)
    notes = getattr(error, "__notes__", [""])
    assert notes[-1].startswith(code)
    assert not isinstance(error, AssertionError)


def test_a_method_without_arguments_looks_as_before() -> None:
    assert list(inspect.signature(dt.Array.is_ready).parameters) == ["self"]
    assert list(inspect.signature(dt.NamedSharding).parameters)[:2] == ["mesh", "spec"]
    with pytest.raises(TypeError, match=r"NamedSharding\(\) got an unexpected keyword argument"):
        dt.NamedSharding(MESH, dt.P(), memory="device")  # type: ignore[call-arg]


def test_public_functions_are_one_object_and_pickled_by_name() -> None:
    for function in (lax.add, jnp.where, dt.grad, dt.tree.map, jnp.linalg.cholesky, jnp.fft.fft):
        assert pickle.loads(pickle.dumps(function)) is function
    assert dt.tree_util.tree_map is dt.tree.map
    assert jnp.amax is jnp.max
    assert dt.config.traceback_filtering == "auto"


PROGRAM = """
    import sys
    import dovetail.numpy as jnp
    def loss(x):
        return x @ x
    def main():
        loss(jnp.ones((2, 3)))
"""
CONTEXTS = {
    "plain": "main()",
    "thread": "import threading; t = threading.Thread(target=main); t.start(); t.join()",
    "hook": """
        import traceback
        sys.excepthook = lambda kind, error, tb: traceback.print_exception(error)
        main()
    """,
    "logging": """
        import logging
        try:
            main()
        except Exception:
            logging.exception("it failed")
    """,
    "group": """
        try:
            main()
        except Exception as error:
            raise ExceptionGroup("several", [error])
    """,
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("filtering", ["auto", "off"])
def test_what_is_printed(context: str, filtering: str) -> None:
    source = textwrap.dedent(PROGRAM) + textwrap.dedent(CONTEXTS[context])
    program = [sys.executable, "-c", source]
    environment = {"DOVETAIL_TRACEBACK_FILTERING": filtering}
    error = run(program, environment)
    assert ("eager_functions.py" in error) == (filtering == "off")
    assert "in loss" in error
    assert "ShapeError" in error


def test_a_debugger_stops_at_the_users_line(tmp_path: Any) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM) + "main()\n")
    text = run([sys.executable, "-m", "pdb", "-c", "continue", str(path)], {}, "p x.shape\nq\n")
    assert "(2, 3)" in text


def run(program: list[str], environment: dict[str, str], given: str = "") -> str:
    """What a program writes."""
    done = subprocess.run(
        program, input=given, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.stdout + done.stderr


def test_an_api_of_ones_own_hides_its_frames(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail._core.base import source

    (tmp_path / "acme_api.py").write_text(
        "from dovetail.extend.tracebacks import add_internal_folder, publish\n"
        "import dovetail.numpy as jnp\n"
        "__all__ = ['twice']\n"
        "def _product(x): return x @ x\n"
        "def twice(x): return _product(_product(x))\n"
        "add_internal_folder(__file__)\n"
        "publish(globals())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = list(source._extra_folders)
    try:
        import acme_api  # type: ignore[import-not-found]  # deferred: made here

        error = raised(lambda: acme_api.twice(jnp.ones((2, 3))))
        assert not hidden(error)
        assert [f.name for f in traceback.extract_tb(error.__traceback__)] == ["raised", "<lambda>"]
    finally:
        source._extra_folders[:] = before
        source.is_internal.cache_clear()


def test_a_module_that_does_not_list_its_names() -> None:
    with pytest.raises(TypeError, match=r"acme, which has no __all__: list"):
        publish({"__name__": "acme"})
