"""Measure workloads in one process with one framework, as another process asks for them.

    python operations.py jax|dovetail|numpy|torch

The first line written is a JSON list of the workloads' names. Every line read is a request, a JSON
object, and a line answers it. With `seconds`, calls of the workload `name` follow one another for
about that time, each until its result is there, and the answer has their median time in `seconds`;
with `busy`, for one core of a machine that does other things, too, that is the least CPU time. The
first answer for a workload also has `compile`: how long tracing, lowering and compiling took, the
least of three times, each with empty caches: the first may have loaded modules. With
`results`, the results are written to that file. A workload that fails is answered with an `error`.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from workloads import FAMILIES
from workloads.base import Workload

Call = Callable[[], Any]
#: Of the dotted names of a framework that workloads use; importing the package alone may not do.
MODULES = """
    numpy numpy.linalg numpy.fft lax lax.linalg nn random ops image scipy.special scipy.linalg
    scipy.signal scipy.ndimage
"""

#: How often a workload is compiled.
COMPILATIONS = 3


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Lists and tuples with the results for what is in them."""
    if isinstance(tree, (list, tuple)):
        return [map_arrays(function, x) for x in tree]
    return function(tree)


def arrays_of(tree: Any) -> list[Any]:
    """What is in lists and tuples."""
    if isinstance(tree, (list, tuple)):
        return [array for x in tree for array in arrays_of(x)]
    return [tree]


class Programs:
    """Calls of compiled programs of dovetail or JAX."""

    def __init__(self, name: str) -> None:
        self._module = import_module(name)
        for part in MODULES.split():
            import_module(f"{name}.{part}")
        self.wait = self._module.block_until_ready
        # The first program of a process starts the backend, and loads what programs are lowered by.
        self._module.jit(self._module.numpy.sin).lower(np.ones(10**4, np.float32)).compile()

    def has(self, workload: Workload) -> bool:
        return True

    def function(self, workload: Workload) -> Callable[..., Any]:
        self._module.config.update("jax_enable_x64", workload.x64)
        compiled: Callable[..., Any] = self._module.jit(partial(workload.function, self._module))
        return compiled

    def forget(self) -> None:
        """Drop what was traced, lowered and compiled."""
        self._module.clear_caches()

    def compile(self, function: Any, arguments: Any) -> None:
        """Compile a function, which is then not done again when it is called."""
        function.lower(*arguments).compile()

    def put(self, workload: Workload, arguments: Any) -> Any:
        placed = self._module.device_put(arguments)
        if workload.cast is None:
            return placed
        return map_arrays(lambda x: x.astype(workload.cast), placed)

    def to_numpy(self, x: Any) -> Any:
        host = np.asarray(x)
        return host.astype(np.float32) if host.dtype.name == "bfloat16" else host


class Numpy:
    """Plain calls of NumPy and SciPy."""

    wait = staticmethod(lambda results: results)
    to_numpy = staticmethod(np.asarray)

    def has(self, workload: Workload) -> bool:
        return workload.numpy is not None

    def function(self, workload: Workload) -> Callable[..., Any]:
        assert workload.numpy is not None
        return workload.numpy

    def forget(self) -> None:
        pass

    def compile(self, function: Any, arguments: Any) -> None:
        pass

    def put(self, workload: Workload, arguments: Any) -> Any:
        return map_arrays(lambda x: x.copy(), arguments)


class Torch:
    """Plain calls of PyTorch."""

    wait = staticmethod(lambda results: results)

    def __init__(self) -> None:
        self._torch: Any = import_module("torch")
        self._torch.set_num_threads(len(os.sched_getaffinity(0)))

    def has(self, workload: Workload) -> bool:
        return workload.torch is not None

    def function(self, workload: Workload) -> Callable[..., Any]:
        assert workload.torch is not None
        return partial(workload.torch, self._torch)

    def forget(self) -> None:
        pass

    def compile(self, function: Any, arguments: Any) -> None:
        pass

    def put(self, workload: Workload, arguments: Any) -> Any:
        def place(x: Any) -> Any:
            tensor = self._torch.from_numpy(np.array(x))
            if workload.cast is None or not tensor.is_floating_point():
                return tensor
            return tensor.to(getattr(self._torch, workload.cast))

        return map_arrays(place, arguments)

    def to_numpy(self, x: Any) -> Any:
        tensor = x.detach().resolve_conj()
        return (tensor.float() if tensor.dtype == self._torch.bfloat16 else tensor).numpy()


def measure(
    call: Call, wait: Callable[[Any], Any], seconds: float, clock: Callable[[], float]
) -> list[float]:
    """Times of calls that follow one another for about so many seconds."""
    start = clock()
    wait(call())
    if (first := clock() - start) > seconds:
        return [first]
    times: list[float] = []
    end = clock() + seconds
    while (start := clock()) < end or len(times) < 3:
        wait(call())
        times.append(clock() - start)
    return times


class Measured:
    """A workload, whose function is compiled before it is called.

    Args:
        framework: what it runs with.
        workload: which.
        busy: whether CPU time counts.
    """

    def __init__(self, framework: Any, workload: Workload, busy: bool) -> None:
        self._framework, self._workload = framework, workload
        self._arguments = workload.arguments()
        self._clock = time.process_time if busy else time.perf_counter
        placed = framework.put(workload, self._arguments)
        times = []
        for _ in range(COMPILATIONS):
            framework.forget()
            self._function = framework.function(workload)
            start = self._clock()
            framework.compile(self._function, placed)
            times.append(self._clock() - start)
        self._compilation: float | None = min(times)

    def call(self) -> Call:
        """A call with arrays that are made anew: their places in memory have an influence."""
        placed = self._framework.wait(self._framework.put(self._workload, self._arguments))
        return partial(self._function, *placed)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What is answered to a request."""
        if "results" in request:
            results = map_arrays(self._framework.to_numpy, self.call()())
            np.savez(request["results"], *arrays_of(self._workload.compared(results)))
            return {}
        times = measure(self.call(), self._framework.wait, request["seconds"], self._clock)
        seconds = min(times) if self._clock is time.process_time else statistics.median(times)
        answer = {"seconds": seconds}
        if self._compilation is not None:
            answer["compile"], self._compilation = self._compilation, None
        return answer


def main() -> None:
    name = sys.argv[1]
    framework: Any = {"numpy": Numpy, "torch": Torch}.get(name, partial(Programs, name))()
    workloads = {w.name: w for found in FAMILIES.values() for w in found if framework.has(w)}
    print(json.dumps(list(workloads)), flush=True)
    current: str | None = None
    measured: Measured | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if measured is None or request["name"] != current:
                measured = None  # frees its arrays
                measured = Measured(
                    framework, workloads[request["name"]], request.get("busy", False)
                )
                current = request["name"]
            answer = measured.answer(request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
