"""Forks, and the exit of the interpreter, each in a process of its own with a time-out."""

import os
import subprocess
import sys
import textwrap

import pytest

#: Seconds that a process has; a hang is a failure.
PATIENCE = 120

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(script, *args):
    """The exit code of a script, and what it has written."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *args]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=-3
    )
    return done.returncode, done.stdout + done.stderr


FORK = """
    import faulthandler, gc, os, pickle, sys, threading, time, traceback
    import numpy as np
    import dovetail as dt
    import dovetail.numpy as jnp
    from dovetail import errors

    f = dt.jit(lambda x: (x @ x.T).sum())
    a = jnp.ones((30, 30))
    compiled = f.lower(a).compile()
    callback = dt.jit(
        lambda x: dt.pure_callback(np.sin, dt.ShapeDtypeStruct(x.shape, x.dtype), x)
    )
    f(a), a + 1, jnp.sum(a), callback(a)
    ready = (jnp.ones(1000) * 3).block_until_ready()
    pickled = pickle.dumps([ready, dt.random.key(0)])
    host = np.ones(3)

    USES = {
        "a warm call": lambda: f(a),
        "a warm operator": lambda: a + 1,
        "a warm function": lambda: jnp.sum(a),
        "a warm callback": lambda: callback(a),
        "a compiled program": lambda: compiled(a),
        "a new function": lambda: dt.jit(lambda x: x * 2)(a),
        "a scalar": lambda: dt.jit(lambda x: x + 1)(1.5),
        "data": lambda: jnp.asarray(host),
        "a copy": lambda: a.copy(),
        "a row": lambda: next(iter(a)),
        "an element": lambda: a[0],
        "a gradient": lambda: dt.grad(f)(a),
        "LAPACK": lambda: jnp.linalg.eigh(a),
        "lowering": lambda: dt.jit(lambda x: x * 3).lower(a),
        "unpickled": lambda: pickle.loads(pickled)[0] + 1,
        "unpickled, read": lambda: np.asarray(pickle.loads(pickled)[0]),
        "unpickled keys": lambda: dt.random.key_data(pickle.loads(pickled)[1]),
    }

    def child():
        faulthandler.dump_traceback_later(60, exit=True)
        for name, use in USES.items():
            try:
                use()
            except errors.BackendUnavailableError as error:
                if "spawn" not in str(error):
                    raise
            else:
                raise AssertionError(name)
        try:
            pending.block_until_ready()  # it is computed by now, or never will be
        except errors.BackendUnavailableError:
            pass
        assert ready.shape == (1000,) and np.asarray(ready)[5] == 3
        dt.make_jaxpr(lambda x: jnp.sin(x) * 2)(a)
        dt.make_jaxpr(dt.jit(lambda x: jnp.sin(x) * 2))(a)
        assert gc.get_freeze_count()
        dt.clear_caches()
        dt.effects_barrier()
        ready.delete()
        gc.collect()

    def work(use):
        count = 0
        while True:
            count += 1
            use(count)

    WORK = {
        "nothing": [],
        "computing": [lambda n: f(a), lambda n: jnp.ones(100_000) * n],
        "compiling": [lambda n: float(dt.jit(lambda x: jnp.sin(x * n).sum())(a))],
    }
    for use in WORK[sys.argv[1]]:
        threading.Thread(target=work, args=(use,), daemon=True).start()
    for number in range(4):
        time.sleep(0.01 * number)
        pending = jnp.ones((500, 500)) @ jnp.ones((500, 500))
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child()
                code = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            if number % 2:
                os._exit(code)
            sys.exit(code)
        status = os.waitpid(pid, 0)[1]
        assert not status, status
    assert float(f(a)) == 27000  # the parent goes on
"""


@needs_fork
@pytest.mark.parametrize("work", ["nothing", "computing", "compiling"])
def test_whatever_computes_in_the_child_of_a_fork_raises_at_once(work):
    assert run(FORK, work) == (0, "")


POOLS = """
    import concurrent.futures, multiprocessing, sys
    import numpy as np
    import dovetail as dt
    import dovetail.numpy as jnp

    def double(x):
        return np.asarray(dt.jit(lambda x: x * 2)(x))

    context = multiprocessing.get_context("fork")
    if sys.argv[1] in ("pool", "futures"):
        dt.devices()  # which starts threads
    if sys.argv[1] == "early":
        with context.Pool(1) as pool:
            print(pool.map_async(double, [np.arange(2)]).get(60)[0])
    if sys.argv[1] == "threads":
        dt.set_num_threads(3)
        with context.Pool(1, initializer=dt.set_num_threads, initargs=(1,)) as pool:
            print(pool.map_async(double, [np.arange(2)]).get(60)[0])
            print(pool.apply_async(dt.get_num_threads).get(60), dt.get_num_threads())
    if sys.argv[1] == "pool":
        array = jnp.arange(3)
        with context.Pool(1) as pool:
            for argument in (np.arange(3), array):
                try:
                    pool.map_async(double, [argument]).get(60)
                except dt.errors.BackendUnavailableError as error:
                    print("spawn" in str(error))
    if sys.argv[1] == "futures":
        array = jnp.arange(3)
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            for argument in (np.arange(3), array):
                print("spawn" in str(pool.submit(double, argument).exception(60)))
"""


@needs_fork
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("early", "[0 2]"),
        ("threads", "[0 2]\n1 3"),
        ("pool", "True\nTrue"),
        ("futures", "True\nTrue"),
    ],
)
def test_a_pool_of_forked_processes_gets_the_error(kind, said):
    assert run(POOLS, kind) == (0, f"{said}\n")


EXIT = """
    import atexit, sys, threading, time

    @atexit.register
    def last():  # registered first, so called last
        print(float(f(a)), float(dt.jit(lambda x: jnp.cos(x).sum())(a * 0)))

    import numpy as np
    import dovetail as dt
    import dovetail.numpy as jnp

    def slow(x):
        time.sleep(0.2)
        return np.asarray(x)

    f = dt.jit(lambda x: (x @ x.T).sum())
    a = jnp.ones((30, 30))
    f(a)
    host = np.ones(100_000, np.float32)
    struct = dt.ShapeDtypeStruct(a.shape, a.dtype)
    USES = {
        "idle": lambda n: time.sleep(1000),
        "warm": lambda n: f(a),
        "read": lambda n: float(f(a)),
        "compile": lambda n: dt.jit(lambda x: jnp.sin(x * n).sum())(a),
        "eager": lambda n: np.asarray(jnp.asarray(host) + n),
        "put": lambda n: dt.device_put(host),
        "callback": lambda n: dt.jit(lambda x: dt.pure_callback(slow, struct, x))(a),
    }

    def work(use):
        count = 0
        while True:
            count += 1
            use(count)

    for name in sys.argv[1:]:
        for _ in range(2):
            threading.Thread(target=work, args=(USES[name],), daemon=True).start()
    time.sleep(0.3)
    sys.exit(7)
"""


@pytest.mark.parametrize(
    "uses",
    [["idle"], ["warm"], ["read", "warm"], ["compile"], ["eager", "put"], ["callback", "warm"]],
    ids="+".join,
)
def test_daemon_threads_that_compute_do_not_end_the_process(uses):
    assert run(EXIT, *uses) == (7, "27000.0 900.0\n")


SHUTDOWN = """
    import os, sys
    import numpy as np
    import dovetail as dt
    import dovetail.numpy as jnp

    class Late:
        def __init__(self, use):
            self.use = use
            self.array = jnp.ones(10)
            self.double = dt.jit(lambda x: x * 2)
            self.callback = dt.jit(lambda x: dt.pure_callback(lambda v: v, x, x))

        def __del__(self, write=os.write):
            try:
                write(1, repr(self.use(self)).encode())
            except BaseException as error:
                write(1, repr(error).encode())

    USES = {
        "nothing": lambda late: 1,
        "delete": lambda late: late.array.delete(),
        "warm": lambda late: float((late.double(late.array) + 1)[0]),
        "first": lambda late: late.array - 1,
        "read": lambda late: late.array.tolist(),
        "name": lambda late: dt.nn.relu,
    }
    name, place = sys.argv[1:]
    late = Late(USES[name])
    if name == "warm":
        USES[name](late), late.callback(late.array)
    if place == "cycle":
        late.late = late
        del late
"""


@pytest.mark.parametrize(
    ("use", "place", "said"),
    [
        ("nothing", "module", "1"),
        ("delete", "cycle", "None"),
        ("warm", "cycle", "3.0"),
        ("first", "module", "RuntimeError('the function {} of arrays was not used before"),
        ("read", "cycle", "[1.0"),
        ("name", "module", "RuntimeError('dovetail.nn was not used before"),
    ],
)
def test_objects_that_compute_when_the_interpreter_deletes_them(use, place, said):
    code, text = run(SHUTDOWN, use, place)
    assert code == 0
    begin, _, end = said.partition("{}")
    assert text.startswith(begin)
    assert end in text
