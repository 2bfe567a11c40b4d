"""What people do thousands of times in one process: each must leave nothing behind.

A pattern is a function that prepares, and returns the step that is repeated; the step gets its
number. They are written on what dovetail and JAX share, so that both are measured by the same code;
`Library` holds the modules of one of them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Step = Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Library:
    """The modules of the library that is measured.

    Attributes:
        name: ``dovetail`` or ``jax``.
        top: its module.
        numpy: its module of NumPy's functions.
        lax: its module of primitives.
        errors: the classes of errors that its users catch.
    """

    name: str
    top: Any
    numpy: Any
    lax: Any
    errors: tuple[type[Exception], ...]

    @classmethod
    def load(cls, name: str) -> Library:
        """Import a library."""
        top, jnp, lax, errors = map(
            importlib.import_module, (name, f"{name}.numpy", f"{name}.lax", f"{name}.errors")
        )
        raised = (TypeError, ValueError, errors.JaxRuntimeError)
        return cls(name, top, jnp, lax, raised)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One row of the table of leaks.

    Attributes:
        make: prepares for a library, and returns the step.
        fills: whether caches with a limit fill up, and are emptied before memory is measured.
        only: the library that has what it needs; empty for both.
    """

    make: Callable[[Library], Step]
    fills: bool = False
    only: str = ""


PATTERNS: Final[dict[str, Pattern]] = {}

#: Bytes of the arrays that steps make: a few hundred that are left behind are seen.
BYTES: Final = 2**16
VALUE: Final = np.linspace(0.1, 1.0, BYTES // 4, dtype=np.float32)


def pattern(name: str, **options: Any) -> Callable[[Callable[[Library], Step]], None]:
    """Add a pattern to the table."""

    def add(make: Callable[[Library], Step]) -> None:
        PATTERNS[name] = Pattern(make=make, **options)

    return add


@pattern("eager operations")
def _eager(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    return lambda n: jnp.sin(x) * 2.0 + x[n % 7]


@pattern("indexed updates")
def _updates(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)
    return lambda n: x.at[n % 5].set(1.0).at[2:9].add(float(n))


@pattern("jit, called again")
def _jit(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    f = lib.top.jit(lambda x, y: {"a": jnp.sum(x) + y, "b": x * 2})
    return lambda n: f(x, float(n))


@pattern("jit of new functions", fills=True)
def _new_functions(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)
    return lambda n: lib.top.jit(lambda y: y * 2.0 + x)(x)


@pattern("jit of new shapes", fills=True)
def _new_shapes(lib: Library) -> Step:
    f = lib.top.jit(lambda x: x + 1.0)
    return lambda n: f(np.ones(n + 2, np.float32))


@pattern("jit with new static arguments", fills=True)
def _static(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)
    f = lib.top.jit(lambda x, power: x if power else -x, static_argnums=1)
    return lambda n: f(x, n)


@pattern("lower and compile", fills=True)
def _stages(lib: Library) -> Step:
    return lambda n: lib.top.jit(lambda x: x * 3.0).lower(VALUE).compile()(VALUE)


@pattern("jit of bound methods", fills=True)
def _methods(lib: Library) -> Step:
    class Model:
        def __init__(self) -> None:
            self.weights = lib.numpy.asarray(VALUE)

        def __call__(self, x: Any) -> Any:
            return x * self.weights

    return lambda n: lib.top.jit(Model().__call__)(VALUE)


@pattern("grad")
def _grad(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    return lambda n: lib.top.grad(lambda x: jnp.sum(jnp.sin(x) * x))(x)


@pattern("jit of grad, called again")
def _jit_grad(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    f = lib.top.jit(lib.top.value_and_grad(lambda x: jnp.sum(jnp.sin(x) * x)))
    return lambda n: f(x)


@pattern("vjp and jvp")
def _vjp(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        _, pull = lib.top.vjp(lambda x: jnp.cos(x) * x, x)
        lib.top.jvp(jnp.sin, (x,), pull(x))

    return step


@pattern("vmap")
def _vmap(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE).reshape(4, -1)
    return lambda n: lib.top.vmap(lambda row: jnp.sum(row) * row)(x)


@pattern("hessian of new functions", fills=True)
def _hessian(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.arange(3.0)
    return lambda n: lib.top.jit(lib.top.hessian(lambda x: jnp.sum(x**3)))(x)


@pattern("scan of new bodies", fills=True)
def _scan(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE).reshape(4, -1)
    return lambda n: lib.lax.scan(lambda carry, row: (carry + row, None), x[0], x)


@pattern("while_loop and fori_loop of new bodies", fills=True)
def _while(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        lib.lax.fori_loop(0, 3, lambda i, x: x * 2.0, x)
        lib.lax.while_loop(lambda x: x[0] < 2.0, lambda x: x * 2.0, x)

    return step


@pattern("cond of new branches", fills=True)
def _cond(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)
    return lambda n: lib.lax.cond(n % 2 == 0, lambda x: x * 2.0, lambda x: x - 1.0, x)


@pattern("functions with rules of their own", fills=True)
def _custom(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        forward = lib.top.custom_jvp(lambda x: jnp.sin(x))
        forward.defjvp(lambda p, t: (forward(*p), jnp.cos(p[0]) * t[0]))
        reverse = lib.top.custom_vjp(lambda x: jnp.sin(x))
        reverse.defvjp(lambda x: (reverse(x), x), lambda x, ct: (ct * jnp.cos(x),))
        lib.top.grad(lambda x: jnp.sum(forward(x) + reverse(x)))(x)

    return step


@pattern("checkpoint", fills=True)
def _checkpoint(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    return lambda n: lib.top.grad(lib.top.checkpoint(lambda x: jnp.sum(jnp.sin(x))))(x)


@pattern("callbacks")
def _callbacks(lib: Library) -> Step:
    shape = lib.top.ShapeDtypeStruct(VALUE.shape, VALUE.dtype)
    f = lib.top.jit(lambda x: lib.top.pure_callback(lambda x: np.asarray(x) * 2, shape, x))
    return lambda n: np.asarray(f(VALUE))


@pattern("callbacks of new functions", fills=True)
def _new_callbacks(lib: Library) -> Step:
    shape = lib.top.ShapeDtypeStruct(VALUE.shape, VALUE.dtype)

    def step(n: int) -> None:
        kept = VALUE + n
        f = lib.top.jit(lambda x: lib.top.pure_callback(lambda x: kept, shape, x))
        np.asarray(f(VALUE))

    return step


@pattern("donated arguments")
def _donated(lib: Library) -> Step:
    f = lib.top.jit(lambda x: x + 1.0, donate_argnums=0)
    kept = [lib.numpy.asarray(VALUE)]

    def step(n: int) -> None:
        kept[0] = f(kept[0])

    return step


@pattern("mutable references")
def _references(lib: Library) -> Step:
    @lib.top.jit
    def add(ref: Any, x: Any) -> None:
        ref[...] = ref[...] + x

    def step(n: int) -> Any:
        ref = lib.top.new_ref(lib.numpy.asarray(VALUE))
        add(ref, 1.0)
        return lib.top.freeze(ref)

    return step


@pattern("to NumPy and back")
def _numpy(lib: Library) -> Step:
    def step(n: int) -> None:
        x = lib.numpy.asarray(VALUE + n)
        np.asarray(x).sum()
        float(x[0])
        x.tolist()[:1]

    return step


@pattern("dlpack")
def _dlpack(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        np.from_dlpack(x + 1.0)
        lib.numpy.from_dlpack(VALUE + n)

    return step


@pattern("device_put and device_get of trees")
def _device_put(lib: Library) -> Step:
    device = lib.top.devices()[0]
    return lambda n: lib.top.device_get(
        lib.top.device_put({"a": VALUE, "b": [n, 1.5, None]}, device)
    )


@pattern("instances of a registered class")
def _instances(lib: Library) -> Step:
    class Point:
        def __init__(self, x: Any, name: int) -> None:
            self.x, self.name = x, name

    lib.top.tree_util.register_pytree_node(
        Point, lambda p: ((p.x,), p.name), lambda name, children: Point(*children, name)
    )
    f = lib.top.jit(lambda p: Point(p.x * 2, p.name))
    return lambda n: f(Point(VALUE, n % 3))


@pattern("an error while tracing")
def _trace_error(lib: Library) -> Step:
    def wrong(x: Any) -> Any:
        return x[:3] + x[:4]

    f = lib.top.jit(wrong)

    def step(n: int) -> None:
        with contextlib.suppress(*lib.errors):
            f(VALUE)
        with contextlib.suppress(*lib.errors):
            lib.top.grad(wrong)(VALUE)
        with contextlib.suppress(*lib.errors):
            lib.top.vmap(lambda x: bool(x))(VALUE)

    return step


@pattern("an error in a callback")
def _callback_error(lib: Library) -> Step:
    def fail(x: Any) -> Any:
        kept = VALUE * 2  # lives as long as the frame that raised
        raise ValueError(f"number {kept[0]}")

    shape = lib.top.ShapeDtypeStruct(VALUE.shape, VALUE.dtype)
    f = lib.top.jit(lambda x: lib.top.pure_callback(fail, shape, x))

    def step(n: int) -> None:
        with contextlib.suppress(*lib.errors):
            np.asarray(f(VALUE))

    return step


@pattern("memory that there is not")
def _out_of_memory(lib: Library) -> Step:
    f = lib.top.jit(lambda x: lib.numpy.broadcast_to(x[:1], (2**44,)))

    def step(n: int) -> None:
        with contextlib.suppress(*lib.errors):
            f(VALUE)
        with contextlib.suppress(*lib.errors):
            lib.top.device_put(np.broadcast_to(np.float32(1), (2**42,)))

    return step


@pattern("an error of eager calls")
def _eager_error(lib: Library) -> Step:
    x = lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        with contextlib.suppress(*lib.errors):
            x + x[:3]
        with contextlib.suppress(*lib.errors):
            lib.numpy.sin("text")

    return step


@pattern("leaked tracers, caught", only="dovetail", fills=True)
def _leaked(lib: Library) -> Step:
    def step(n: int) -> None:
        kept: list[Any] = []
        with lib.top.check_tracer_leaks(True), contextlib.suppress(TypeError):
            lib.top.jit(lambda x: kept.append(x * 2.0))(1.0)

    return step


@pattern("scopes of options")
def _options(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)

    def step(n: int) -> None:
        with lib.top.default_matmul_precision("float32"), lib.top.named_scope(f"scope {n}"):
            jnp.sin(x)

    return step


@pattern("splitting keys")
def _keys(lib: Library) -> Step:
    random = importlib.import_module(f"{lib.name}.random")
    kept = [random.key(0)]

    def step(n: int) -> None:
        kept[0], now = random.split(kept[0])
        random.normal(now, (BYTES // 4,))
        random.fold_in(random.PRNGKey(n), n)

    return step


@pattern("linear algebra and sorting")
def _linalg(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE[:4096]).reshape(64, 64)
    x = x @ x.T + 64 * jnp.eye(64)
    return lambda n: (jnp.linalg.cholesky(x), jnp.linalg.solve(x, x[0]), jnp.sort(x[n % 64]))


@pattern("printing jaxprs and arrays", fills=True)
def _printing(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    return lambda n: (repr(x), str(lib.top.make_jaxpr(lambda x: jnp.sin(x) * n)(x)))


@pattern("programs written and read", fills=True)
def _serialized(lib: Library) -> Step:
    module = importlib.import_module(f"{lib.name}.experimental.serialize_executable")

    def step(n: int) -> None:
        compiled = lib.top.jit(lambda x: x * float(n % 10)).lower(VALUE).compile()
        module.deserialize_and_load(*module.serialize(compiled))(VALUE)

    return step


@pattern("the disk cache, written and read", fills=True)
def _disk_cache(lib: Library) -> Step:
    folder = tempfile.mkdtemp()
    prefix = "jax_" if lib.name == "jax" else ""
    update = lib.top.config.update
    update(f"{prefix}compilation_cache_dir", folder)
    update(f"{prefix}persistent_cache_min_compile_time_secs", 0.0)

    def step(n: int) -> None:
        if n % 2 == 0:  # a program that is new, and then read again
            lib.top.clear_caches()
        if n % 20 == 0:
            for entry in os.scandir(folder):
                os.unlink(entry)
        lib.top.jit(lambda x: x * float(n % 20 // 2))(VALUE)

    return step


@pattern("threads made and ended")
def _threads(lib: Library) -> Step:
    jnp, x = lib.numpy, lib.numpy.asarray(VALUE)
    f = lib.top.jit(lambda x: x * 2.0)

    def step(n: int) -> None:
        thread = threading.Thread(target=lambda: jnp.sin(f(x)))
        thread.start()
        thread.join()

    return step


@pattern("caches emptied")
def _clear_caches(lib: Library) -> Step:
    def step(n: int) -> None:
        lib.top.jit(lambda x: x * 2.0)(VALUE)
        lib.top.clear_caches()

    return step
