"""Run programs with one library, and tell what came of each operation.

    python runner.py dovetail|jax

Requests and answers are pickles on the standard input and output, each after its length: a request
has a program, modes and a seed of noise or None, an answer has a list of outcomes for each mode. An
outcome is `{"skipped": True}` where an operand failed, `{"error": [class, and those above it],
"message": ...}`, or `{"structure": ..., "leaves": [...]}`.

With noise each result is multiplied by a number close to one, which shows how much rounding
changes what follows; so is each operand of a function that is continuous and may cancel most of
what it is given, which shows how much its own rounding changes. The numbers are arguments of what
is compiled, so that every seed has the same program.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import random
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable
from typing import IO, Any

import ml_dtypes
import numpy as np
from source import Program, differentiable, input_line, operands, operation_lines, stack

MESSAGE = 300
PROGRAMS_KEPT = 80
FOLDERS = 64
NOISE = 4.0

CANCELLING = re.compile(
    r".*linalg\..*|jnp\.(fft\..*|polyfit|roots|cov|corrcoef|unwrap|diff|ediff1d|gradient|trapezoid)"
)
"""Functions whose results are accurate relative to what they are given, not to themselves."""

INEXACT_ZEROS = ("lax.lgamma", "lax.digamma", "jnp.blackman", "jnp.sinc")
"""Functions with zeros where their results are accurate relative to their terms alone."""

HASH = 0x9E3779B97F4A7C15
"""Odd, and its bits are evenly spread (the golden ratio, as in Fibonacci hashing)."""

Factors = list[float] | None

FINFO: Any = ml_dtypes.finfo  # which has no types


def send(file: IO[bytes], message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message)
    file.write(struct.pack("<Q", len(data)) + data)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """Read one message; EOFError where there is none."""
    head = file.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", head)
    return pickle.loads(file.read(size))


def error_outcome(error: BaseException) -> dict[str, Any]:
    """What is told of an error."""
    classes = [cls.__name__ for cls in type(error).__mro__ if issubclass(cls, BaseException)]
    return {"error": classes, "message": str(error)[:MESSAGE]}


class Library:
    """One of the two libraries, by the name of its package."""

    def __init__(self, name: str, cache: str | None = None) -> None:
        self.package = importlib.import_module(name)
        self.cache = cache
        self.names = {
            "np": np,
            "ml_dtypes": ml_dtypes,
            "jnp": importlib.import_module(f"{name}.numpy"),
            "lax": importlib.import_module(f"{name}.lax"),
            "nn": importlib.import_module(f"{name}.nn"),
            "random": importlib.import_module(f"{name}.random"),
            "dt": self.package,
            "tree": importlib.import_module(f"{name}.tree"),
        }

    def run(self, program: Program, modes: list[str], noise: int | None = None) -> dict[str, Any]:
        """The outcomes of a program in each of the modes."""
        self.package.config.update("jax_enable_x64", program["x64"])
        try:
            inputs = self.inputs(program["inputs"])
        except Exception as error:
            return {mode: [error_outcome(error)] for mode in modes}
        factors = None
        if noise is not None:
            source = random.Random(noise)
            count = len(program["operations"])
            factors = [source.choice((-1, 1)) * source.uniform(0.5, 1) for _ in range(count)]
        return {mode: getattr(self, mode)(program, inputs, factors) for mode in modes}

    def keep_by(self, name: str) -> None:
        """Keep what is compiled next in one of many folders: one of dovetail holds 16,384."""
        if self.cache is not None:
            folder = f"{self.cache}-{zlib.crc32(name.encode()) % FOLDERS}"
            self.package.config.update("compilation_cache_dir", folder)

    def inputs(self, entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The values of inputs by name."""
        self.keep_by("inputs")
        values = {}
        for entry in entries:
            namespace = dict(self.names)
            exec(input_line(entry), namespace)
            values[entry["name"]] = namespace[entry["name"]]
        return values

    def execute(self, program: Program, values: dict[str, Any], factors: Factors) -> list[Any]:
        """The results of all operations, each an error or a pair of leaves and structure."""
        namespace = self.names | values
        found: list[Any] = []
        failed: set[str] = set()
        for number, operation in enumerate(program["operations"]):
            name = operation["result"]
            if not failed.isdisjoint(operands(operation)):
                failed.add(name)
                found.append({"skipped": True})
                continue
            try:
                self.keep_by(operation["function"])
                names = namespace
                if factors is not None and CANCELLING.fullmatch(operation["function"]):
                    names = namespace | {
                        operand: self.disturb(namespace[operand], factors[number])
                        for operand in operands(operation)
                    }
                exec("\n".join(operation_lines(operation)), names)
                namespace[name] = names[name]
                if factors is not None:
                    inexact = operation["function"] in INEXACT_ZEROS
                    namespace[name] = self.disturb(namespace[name], factors[number], inexact)
                leaves: list[Any] = []
                structure = self.take_apart(namespace[name], leaves)
                found.append((leaves, structure))
            except Exception as error:
                failed.add(name)
                found.append(error_outcome(error))
        return found

    def disturb(self, tree: Any, factor: Any, inexact_zeros: bool = False) -> Any:
        """Results with a little noise, equal elements remaining equal.

        Args:
            tree: results.
            factor: how much noise.
            inexact_zeros: whether zeros change, too.
        """

        jnp, lax = self.names["jnp"], self.names["lax"]

        def change(leaf: Any) -> Any:
            if not isinstance(leaf, self.package.Array):
                return leaf
            if not jnp.issubdtype(leaf.dtype, np.inexact):
                return leaf
            step = factor * (NOISE * float(FINFO(leaf.dtype).eps))
            if jnp.issubdtype(leaf.dtype, np.floating):
                # Up or down by a hash of the element, so that neighbours change places.
                width = 8 * leaf.dtype.itemsize
                bits = lax.bitcast_convert_type(leaf, f"uint{width}")
                start = jnp.asarray(np.float32(1e4) * abs(factor)).astype(bits.dtype)
                spread = np.asarray(HASH % 2**width, bits.dtype)
                mixed = (bits + start) * spread
                mixed = (mixed ^ (mixed >> (width // 2))) * spread
                step = step * (1 - 2 * (mixed >> (width - 1)).astype(leaf.dtype))
            moved = leaf * (1 + step).astype(leaf.dtype)
            if not inexact_zeros:
                return moved
            # Exactly zero by half of the seeds: what follows may have a pole there.
            is_zero = (factor < 0) & (abs(leaf) <= NOISE * float(FINFO(leaf.dtype).eps))
            return jnp.where(is_zero, 0, moved + 2 * step.astype(leaf.dtype)).astype(leaf.dtype)

        return self.names["tree"].map(change, tree)

    def take_apart(self, value: Any, leaves: list[Any]) -> str:
        """The structure of a result as text; its arrays are appended to `leaves`."""
        if getattr(value, "dtype", None) == self.package.dtypes.float0:
            return f"float0 {np.shape(value)}"
        if isinstance(value, self.package.Array):
            if self.names["jnp"].issubdtype(value.dtype, self.package.dtypes.prng_key):
                leaves.append(self.names["random"].key_data(value))
                return "key *"
            leaves.append(value)
            return "*"
        if isinstance(value, dict):
            inner = ", ".join(f"{k}: {self.take_apart(v, leaves)}" for k, v in value.items())
            return f"{{{inner}}}"
        if isinstance(value, list | tuple):
            inner = ", ".join(self.take_apart(item, leaves) for item in value)
            return f"{type(value).__name__}({inner})"
        if isinstance(value, np.ndarray | np.generic):
            return f"numpy {value.dtype} {value.shape} {value.tolist()}"
        return f"{type(value).__name__} {value}"

    def outcome(self, found: Any) -> dict[str, Any]:
        """What is told of one result."""
        if isinstance(found, dict):
            return found
        leaves, structure = found
        try:
            told = [self.leaf(leaf) for leaf in leaves]
        except Exception as error:
            return error_outcome(error)
        return {"structure": structure, "leaves": told}

    def leaf(self, leaf: Any) -> dict[str, Any]:
        """What is told of an array, or of the type of one, whose elements are zeros here."""
        if isinstance(leaf, self.package.Array):
            return {"value": np.asarray(leaf), "weak_type": bool(leaf.aval.weak_type)}
        zeros = np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
        return {"value": zeros, "weak_type": bool(leaf.weak_type)}

    def eager(self, program: Program, inputs: dict[str, Any], factors: Factors) -> list[Any]:
        """Operation by operation."""
        return [self.outcome(found) for found in self.execute(program, inputs, factors)]

    def traced(
        self,
        program: Program,
        inputs: dict[str, Any],
        factors: Factors,
        transformation: Callable[..., Any],
    ) -> list[Any]:
        """The outcomes of a program in a transformed function."""
        found: list[Any] = []

        def function(numbers: Factors, *arguments: Any) -> list[Any]:
            found[:] = self.execute(program, dict(zip(inputs, arguments, strict=True)), numbers)
            return [one[0] for one in found if isinstance(one, tuple)]

        try:
            results = iter(transformation(function)(factors, *inputs.values()))
        except Exception as error:
            return [error_outcome(error)]
        return [
            self.outcome((next(results), one[1]) if isinstance(one, tuple) else one)
            for one in found
        ]

    def types(self, program: Program, inputs: dict[str, Any], factors: Factors) -> list[Any]:
        """Types alone: nothing is compiled."""

        def transformation(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments: self.package.eval_shape(function, *arguments)

        return self.traced(program, inputs, factors, transformation)

    def jit(self, program: Program, inputs: dict[str, Any], factors: Factors) -> list[Any]:
        """Under `jit`."""
        return self.traced(program, inputs, factors, self.package.jit)

    def vmap(self, program: Program, inputs: dict[str, Any], factors: Factors) -> list[Any]:
        """Under `vmap`, over two elements for inputs that are batched."""
        batched = [entry for entry in program["inputs"] if entry["batched"]]
        if not batched:
            return []
        stacked = inputs | self.inputs(map(stack, batched))
        axes = tuple(0 if entry["batched"] else None for entry in program["inputs"])

        def transformation(function: Callable[..., Any]) -> Callable[..., Any]:
            mapped: Callable[..., Any] = self.package.vmap(function, in_axes=(None, *axes))
            if program["compiled"]:
                mapped = self.package.jit(mapped)
            return mapped

        return self.traced(program, stacked, factors, transformation)

    def grad(self, program: Program, inputs: dict[str, Any], factors: Factors) -> list[Any]:
        """The gradients of the sum of the results that the program names as its loss, and the
        errors of operations that cannot be traced.
        """
        numbers = [i for i, entry in enumerate(program["inputs"]) if differentiable(entry)]
        if not numbers or not program.get("loss"):
            return []
        jnp = self.names["jnp"]
        wanted = [tuple(place) for place in program["loss"]]
        failed: list[Any] = []

        def loss(factors: Factors, *arguments: Any) -> Any:
            found = self.execute(program, dict(zip(inputs, arguments, strict=True)), factors)
            failed[:] = [
                one | {"operation": operation["result"]}
                for operation, one in zip(program["operations"], found, strict=True)
                if isinstance(one, dict) and "error" in one
            ]
            total: Any = 0.0
            for operation, one in zip(program["operations"], found, strict=True):
                leaves = one[0] if isinstance(one, tuple) else ()
                for place, leaf in enumerate(leaves):
                    if (operation["result"], place) in wanted:
                        total = total + jnp.real(leaf).astype(np.float32).sum()
            return jnp.asarray(total)

        gradient = self.package.grad(loss, tuple(i + 1 for i in numbers))
        try:
            function = self.package.jit(gradient) if program["compiled"] else gradient
            results = function(factors, *inputs.values())
        except Exception as error:
            return [error_outcome(error)]
        return [self.outcome(([one], "*")) for one in results] + failed


def main() -> None:
    """Answer requests until there are no more."""
    # What the libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    name = sys.argv[1]
    folder = os.environ.get("DOVETAIL_COMPILATION_CACHE_DIR")
    library = Library(name, folder if name == "dovetail" else None)
    # There are few cycles, and looking for them in what was imported and compiled takes a tenth.
    gc.freeze()
    gc.disable()
    count = 0
    while True:
        try:
            request = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(answers, library.run(**request))
        count += 1
        if count % PROGRAMS_KEPT == 0:
            library.package.clear_caches()
            gc.collect()


if __name__ == "__main__":
    main()
