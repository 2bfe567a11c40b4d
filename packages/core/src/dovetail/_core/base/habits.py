"""What users of other frameworks write, and what to write here; names that are not there.

Nothing here is loaded before a name is missing.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from typing import Final

__all__ = ["ATTRIBUTES", "FUNCTIONS", "missing_name"]

#: Attributes of arrays of PyTorch and TensorFlow.
ATTRIBUTES: Final[Mapping[str, str]] = {
    "abs": "jnp.abs(x)",
    "add_": "x = x + y: arrays are immutable",
    "assign": "x = value: arrays are immutable",
    "assign_add": "x = x + value: arrays are immutable",
    "assign_sub": "x = x - value: arrays are immutable",
    "backward": "dt.grad(loss)(params): derivatives are those of functions",
    "bfloat16": "x.astype(jnp.bfloat16)",
    "bmm": "x @ y",
    "bool": "x.astype(bool)",
    "chunk": "jnp.array_split(x, chunks, axis)",
    "clamp": "x.clip(low, high)",
    "contiguous": "x: where elements lie in memory is XLA's business",
    "cos": "jnp.cos(x)",
    "cpu": 'dt.device_put(x, dt.devices("cpu")[0]), or np.asarray(x) for an array of NumPy',
    "cuda": 'dt.device_put(x, dt.devices("cuda")[0])',
    "detach": "dt.lax.stop_gradient(x)",
    "dim": "x.ndim",
    "double": "x.astype(jnp.float64), with dt.enable_x64(True)",
    "element_size": "x.itemsize",
    "eq": "x == y",
    "exp": "jnp.exp(x)",
    "expand": "jnp.broadcast_to(x, shape)",
    "expand_as": "jnp.broadcast_to(x, y.shape)",
    "fill_": "jnp.full_like(x, value): arrays are immutable",
    "flip": "jnp.flip(x, axis)",
    "float": "x.astype(jnp.float32)",
    "gather": "jnp.take_along_axis(x, indices, axis)",
    "get_shape": "x.shape",
    "grad": "dt.grad(loss)(params): derivatives are those of functions",
    "half": "x.astype(jnp.float16)",
    "index_select": "jnp.take(x, indices, axis)",
    "int": "x.astype(jnp.int32)",
    "is_cuda": "x.devices()",
    "isnan": "jnp.isnan(x)",
    "log": "jnp.log(x)",
    "long": "x.astype(int)",
    "masked_fill": "jnp.where(mask, value, x)",
    "masked_fill_": "jnp.where(mask, value, x): arrays are immutable",
    "masked_select": "x[mask], outside of compiled functions",
    "matmul": "x @ y",
    "mm": "x @ y",
    "movedim": "jnp.moveaxis(x, source, destination)",
    "mul_": "x = x * y: arrays are immutable",
    "narrow": "dt.lax.dynamic_slice_in_dim(x, start, length, axis)",
    "new_zeros": "jnp.zeros(shape, x.dtype)",
    "norm": "jnp.linalg.norm(x)",
    "numel": "x.size",
    "numpy": "np.asarray(x)",
    "permute": "x.transpose(axes)",
    "pow": "x ** y",
    "relu": "dt.nn.relu(x)",
    "requires_grad": "dt.grad(loss, argnums=...): which arguments to differentiate is said there",
    "requires_grad_": "dt.grad(loss, argnums=...): which arguments to differentiate is said there",
    "retain_grad": "dt.grad(loss, argnums=...): which arguments to differentiate is said there",
    "roll": "jnp.roll(x, shift, axis)",
    "rsqrt": "dt.lax.rsqrt(x)",
    "scatter_": "x.at[indices].set(values)",
    "scatter_add_": "x.at[indices].add(values)",
    "sigmoid": "dt.nn.sigmoid(x)",
    "sin": "jnp.sin(x)",
    "softmax": "dt.nn.softmax(x, axis)",
    "split": "jnp.split(x, indices, axis)",
    "sqrt": "jnp.sqrt(x)",
    "sub_": "x = x - y: arrays are immutable",
    "t": "x.T",
    "tanh": "jnp.tanh(x)",
    "tile": "jnp.tile(x, reps)",
    "to": "dt.device_put(x, device), or x.astype(dtype)",
    "topk": "dt.lax.top_k(x, k)",
    "type": "x.astype(dtype)",
    "type_as": "x.astype(y.dtype)",
    "unbind": "jnp.unstack(x, axis=axis)",
    "unfold": "dt.lax.conv_general_dilated_patches(...)",
    "unsqueeze": "jnp.expand_dims(x, axis), or x[:, None]",
    "unsqueeze_": "x = jnp.expand_dims(x, axis): arrays are immutable",
    "where": "jnp.where(condition, x, y)",
    "zero_": "jnp.zeros_like(x): arrays are immutable",
}

#: Functions of PyTorch and TensorFlow, and classes.
FUNCTIONS: Final[Mapping[str, str]] = {
    "Adam": "an optimizer of optax, or of dovetail.example_libraries.optimizers",
    "GradientTape": "dovetail.grad(loss)(params)",
    "Tensor": "dovetail.Array for the type, dovetail.numpy.asarray to make one",
    "Variable": "dovetail.numpy.asarray(value): programs take values and return new ones",
    "as_tensor": "dovetail.numpy.asarray(x)",
    "autograd": "dovetail.grad, dovetail.vjp or dovetail.jvp",
    "bmm": "x @ y",
    "cast": "x.astype(dtype)",
    "cat": "dovetail.numpy.concatenate(arrays, axis)",
    "chunk": "dovetail.numpy.array_split(x, chunks, axis)",
    "clamp": "dovetail.numpy.clip(x, low, high)",
    "compile": "dovetail.jit(f)",
    "constant": "dovetail.numpy.asarray(x)",
    "convert_to_tensor": "dovetail.numpy.asarray(x)",
    "detach": "dovetail.lax.stop_gradient(x)",
    "device": "dovetail.devices() for the devices, dovetail.default_device(device) to choose one",
    "enable_grad": "dovetail.grad(f) where a derivative is wanted",
    "from_numpy": "dovetail.numpy.asarray(x)",
    "function": "dovetail.jit(f)",
    "functional": "dovetail.nn, whose functions take arrays",
    "inference_mode": "dovetail.lax.stop_gradient(x) for a constant inside of dovetail.grad; "
    "elsewhere nothing is recorded",
    "load": "dovetail.numpy.load(file)",
    "manual_seed": "key = dovetail.random.key(seed): functions of dovetail.random take keys",
    "matmul": "dovetail.numpy.matmul(x, y)",
    "mm": "x @ y",
    "no_grad": "dovetail.lax.stop_gradient(x) for a constant inside of dovetail.grad; elsewhere "
    "nothing is recorded",
    "permute": "dovetail.numpy.transpose(x, axes)",
    "rand": "dovetail.random.uniform(key, shape)",
    "randint": "dovetail.random.randint(key, shape, low, high)",
    "randn": "dovetail.random.normal(key, shape)",
    "randperm": "dovetail.random.permutation(key, n)",
    "range": "dovetail.numpy.arange(start, stop, step)",
    "reduce_mean": "dovetail.numpy.mean(x, axis)",
    "reduce_sum": "dovetail.numpy.sum(x, axis)",
    "save": "dovetail.numpy.save(file, x)",
    "seed": "key = dovetail.random.key(seed): functions of dovetail.random take keys",
    "tensor": "dovetail.numpy.asarray(x)",
    "unsqueeze": "dovetail.numpy.expand_dims(x, axis)",
}

#: A name in a stub.
_DECLARED: Final = re.compile(r"\bas (\w+),?$|^(\w+) = ", re.MULTILINE)
#: Where a name may be meant.
_MODULES: Final = (
    *("dovetail", "dovetail.numpy", "dovetail.lax", "dovetail.nn", "dovetail.random"),
    *("dovetail.scipy.special", "dovetail.image", "dovetail.ops", "dovetail.tree_util"),
    *("dovetail.numpy.linalg", "dovetail.numpy.fft"),
)


def missing_name(module: str, name: str, known: Iterable[str]) -> str:
    """The message about a name that a public module does not have, and what to write instead.

    Args:
        module: the module.
        name: the name.
        known: the names that it has.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return text
    reason = _left_out().get(module, {}).get(name)
    if reason is not None:
        return f"{text}: it is a name of JAX that is not in dovetail; {reason}"
    places = [other for other in _MODULES if other != module and name in _names_of(other)]
    if places:
        return f"{text}; it is {places[0]}.{name}"
    if name in FUNCTIONS:
        return f"{text}; write {FUNCTIONS[name]}"
    if name[0].isupper() and module == "dovetail.nn":
        return f"{text}; it has functions alone, and classes of layers are in flax or equinox"
    from difflib import get_close_matches  # deferred: as below

    near = get_close_matches(name, known, 1)
    return f"{text}; did you mean {near[0]!r}?" if near else text


@functools.cache
def _left_out() -> dict[str, dict[str, str]]:
    """The names of JAX that are left out on purpose, by module, with the reasons."""
    import json  # deferred: no program without mistakes needs it

    with open(os.path.join(os.path.dirname(__file__), "left_out.json"), encoding="utf-8") as file:
        found: dict[str, dict[str, str]] = json.load(file)
    return found


def _names_of(module: str) -> Collection[str]:
    """The public names of a module; a package with a stub is not imported for that."""
    from importlib.util import find_spec  # deferred: as above

    try:
        spec = find_spec(module)
        if spec is None:
            return ()
        folder = os.path.dirname(spec.origin or "")
        stub = os.path.join(folder, "__init__.pyi")
        if spec.submodule_search_locations is None or not os.path.exists(stub):
            names: list[str] = import_module(module).__all__
            return names
    except ImportError:
        return ()
    with open(stub, encoding="utf-8") as file:
        return [first or second for first, second in _DECLARED.findall(file.read())]
