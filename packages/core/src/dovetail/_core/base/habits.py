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

__all__ = ["ATTRIBUTES", "FUNCTIONS", "OF_MODULES", "missing_name"]

#: Attributes of arrays of PyTorch and TensorFlow, and what changes arrays of NumPy.
_OTHERWISE: Final[Mapping[str, str]] = {
    "abs": "jnp.abs(x)",
    "add_": "x = x + y: arrays are immutable",
    "assign": "x = value: arrays are immutable",
    "assign_add": "x = x + value: arrays are immutable",
    "assign_sub": "x = x - value: arrays are immutable",
    "append": "jnp.append(x, values), or join all at the end: jnp.concatenate(arrays)",
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
    "extend": "jnp.append(x, values)",
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
    "add": "x + y",
    "addmm": "x + a @ b",
    "baddbmm": "x + a @ b",
    "byte": "x.astype(jnp.uint8)",
    "cholesky": "jnp.linalg.cholesky(x)",
    "clamp_": "x = x.clip(low, high): arrays are immutable",
    "clamp_max": "x.clip(max=high)",
    "clamp_min": "x.clip(low)",
    "copy_": "x = value: arrays are immutable",
    "ctypes": "np.asarray(x).ctypes, or x.unsafe_buffer_pointer() for the address",
    "data_ptr": "x.unsafe_buffer_pointer()",
    "data": "x: it holds no record of derivatives; np.asarray(x).data for its memory",
    "det": "jnp.linalg.det(x)",
    "detach_": "dt.lax.stop_gradient(x)",
    "device_buffer": "x.addressable_data(0)",
    "device_buffers": "x.addressable_shards",
    "digamma": "dt.lax.digamma(x)",
    "div": "x / y",
    "div_": "x = x / y: arrays are immutable",
    "dump": "jnp.save(file, x)",
    "dumps": "pickle.dumps(x)",
    "erf": "dt.lax.erf(x)",
    "eval": "x: nothing is waiting to be computed",
    "fill": "x = jnp.full_like(x, value): arrays are immutable",
    "flags": "np.asarray(x).flags: arrays are immutable, all of them",
    "ge": "x >= y",
    "get_device": "x.devices()",
    "grad_fn": "dt.grad(loss)(params): derivatives are those of functions",
    "gt": "x > y",
    "histc": "jnp.histogram(x, bins)",
    "index_add": "x.at[indices].add(values)",
    "index_copy": "x.at[indices].set(values)",
    "index_fill": "x.at[indices].set(value)",
    "inverse": "jnp.linalg.inv(x)",
    "is_contiguous": "x: where elements lie in memory is XLA's business",
    "is_leaf": "dt.grad(loss)(params): derivatives are those of functions",
    "itemset": "x = x.at[index].set(value): arrays are immutable",
    "le": "x <= y",
    "lgamma": "dt.lax.lgamma(x)",
    "log_softmax": "dt.nn.log_softmax(x, axis)",
    "logsumexp": "dt.nn.logsumexp(x, axis)",
    "lt": "x < y",
    "matrix_power": "jnp.linalg.matrix_power(x, n)",
    "mul": "x * y",
    "mv": "x @ y",
    "ndimension": "x.ndim",
    "ne": "x != y",
    "neg": "-x",
    "new_full": "jnp.full(shape, value, x.dtype)",
    "new_ones": "jnp.ones(shape, x.dtype)",
    "new_tensor": "jnp.asarray(values, x.dtype)",
    "newbyteorder": "x.byteswap()",
    "partition": "x = jnp.partition(x, kth, axis): arrays are immutable",
    "pin_memory": 'dt.device_put(x, x.sharding.with_memory_kind("pinned_host"))',
    "put": "x = jnp.put(x, indices, values, inplace=False): arrays are immutable",
    "qr": "jnp.linalg.qr(x)",
    "read_value": "x",
    "register_hook": "dt.custom_vjp for a function whose derivative does something of its own",
    "repeat_interleave": "x.repeat(repeats, axis)",
    "reshape_as": "x.reshape(y.shape)",
    "resize": "x = jnp.resize(x, shape): arrays are immutable",
    "scatter": "x.at[indices].set(values)",
    "scatter_add": "x.at[indices].add(values)",
    "set_shape": "x.reshape(shape)",
    "setflags": "x: arrays are immutable, all of them",
    "short": "x.astype(jnp.int16)",
    "stride": "np.asarray(x).strides: where elements lie in memory is XLA's business",
    "strides": "np.asarray(x).strides: where elements lie in memory is XLA's business",
    "sub": "x - y",
    "svd": "jnp.linalg.svd(x)",
    "swapdims": "x.swapaxes(axis1, axis2)",
    "take_along_dim": "jnp.take_along_axis(x, indices, axis)",
    "tensor_split": "jnp.array_split(x, sections, axis)",
    "tofile": "np.asarray(x).tofile(file), or jnp.save(file, x)",
    "tostring": "x.tobytes()",
    "unflatten": "x.reshape(shape)",
    "unsafe_raw_buffer": "x.unsafe_buffer_pointer(), its address",
    "view_as": "x.reshape(y.shape)",
}

_SAME: Final = (
    *("allclose", "bincount", "ceil", "cross", "diag", "equal", "expm1", "fliplr", "flipud"),
    *("floor", "fmod", "hsplit", "inner", "isclose", "isfinite", "isinf", "log10", "log1p", "log2"),
    *("logical_and", "logical_not", "logical_or", "maximum", "median", "minimum", "moveaxis"),
    *("outer", "quantile", "reciprocal", "remainder", "rot90", "sign", "square", "tril", "triu"),
    *("true_divide", "unique", "vsplit"),
)

#: What is no attribute of arrays, though other libraries have it, and what to write instead.
ATTRIBUTES: Final[Mapping[str, str]] = {
    **_OTHERWISE,
    **{name: f"jnp.{name}(x, ...)" for name in _SAME},
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
    "Inf": "dovetail.numpy.inf",
    "NaN": "dovetail.numpy.nan",
    "alltrue": "dovetail.numpy.all(x)",
    "amp": "x.astype(dovetail.numpy.bfloat16): functions compute in their arguments' dtype",
    "asanyarray": "dovetail.numpy.asarray(x)",
    "ascontiguousarray": "dovetail.numpy.asarray(x): their order in memory is XLA's business",
    "asfortranarray": "dovetail.numpy.asarray(x): their order in memory is XLA's business",
    "asnumpy": "numpy.asarray(x)",
    "autocast": "x.astype(dovetail.numpy.bfloat16): functions compute in their arguments' dtype",
    "backends": "dovetail.default_backend() for the platform, dovetail.config for options",
    "cuda": 'dovetail.devices("cuda") for the devices, dovetail.device_put(x, device) to move data',
    "cumproduct": "dovetail.numpy.cumprod(x)",
    "host_callback": "dovetail.pure_callback, or dovetail.debug.callback for effects alone",
    "in1d": "dovetail.numpy.isin(x, values)",
    "is_tensor": "isinstance(x, dovetail.Array)",
    "msort": "dovetail.numpy.sort(x, axis=0)",
    "onnx": "dovetail.export, or the distribution dovetail-onnx",
    "optimizers": "an optimizer of optax, or of dovetail.example_libraries.optimizers",
    "optim": "an optimizer of optax, or of dovetail.example_libraries.optimizers",
    "partial": "functools.partial",
    "product": "dovetail.numpy.prod(x)",
    "row_stack": "dovetail.numpy.vstack(arrays)",
    "set_grad_enabled": "dovetail.lax.stop_gradient(x) for a constant inside of dovetail.grad; "
    "elsewhere nothing is recorded",
    "set_default_device": 'dovetail.config.update("default_device", device)',
    "set_default_dtype": "dtype=... in each call, or dovetail.enable_x64(True) for 64 bits",
    "sometrue": "dovetail.numpy.any(x)",
    "synchronize": "dovetail.block_until_ready(x)",
    "to_numpy": "numpy.asarray(x)",
    "trapz": "dovetail.numpy.trapezoid(y, x)",
    "xla_computation": "dovetail.jit(f).lower(x), whose as_text() is the program",
    "value_and_gradient": "dovetail.value_and_grad(f)",
    "value_and_jacobian": "dovetail.vjp, which gives the value and a function for derivatives",
}

_IMMUTABLE: Final = "arrays are immutable"
_CLASSES: Final = "values of strings, dates and records are NumPy's alone"
_ERRORS: Final = (
    "floating-point errors raise nothing; debug_nans finds NaN: dovetail.debug_nans(True)"
)

#: Names of modules of NumPy and PyTorch, by the module here that has their place.
OF_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "dovetail.numpy": {
        "nditer": "whole arrays in operations, dovetail.vmap(f), or numpy.nditer(numpy.asarray(x))",
        "ndenumerate": "whole arrays in operations, or numpy.ndenumerate(numpy.asarray(x))",
        "errstate": _ERRORS,
        "seterr": _ERRORS,
        "geterr": _ERRORS,
        "copyto": f"x = x.at[...].set(y): {_IMMUTABLE}",
        "putmask": f"x = dovetail.numpy.where(mask, values, x): {_IMMUTABLE}",
        "polynomial": "dovetail.numpy.polyval, polyfit, polymul and others of that kind",
        "ma": "a mask of its own, which where=... of reductions takes",
        "matrix": "dovetail.numpy.asarray(x), and x @ y for products",
        "asmatrix": "dovetail.numpy.asarray(x), and x @ y for products",
        "memmap": "numpy.memmap(file), parts of which dovetail.numpy.asarray takes",
        "loadtxt": "dovetail.numpy.asarray(numpy.loadtxt(file))",
        "genfromtxt": "dovetail.numpy.asarray(numpy.genfromtxt(file))",
        "savetxt": "numpy.savetxt(file, numpy.asarray(x))",
        "testing": "numpy.testing, whose functions take arrays of dovetail",
        "may_share_memory": f"False: {_IMMUTABLE}, so that nobody sees whether they share memory",
        "shares_memory": f"False: {_IMMUTABLE}, so that nobody sees whether they share memory",
        "char": f"numpy.char: {_CLASSES}",
        "rec": f"numpy.rec: {_CLASSES}",
        "recarray": f"numpy.recarray: {_CLASSES}",
        "datetime64": f"numpy.datetime64: {_CLASSES}",
        "timedelta64": f"numpy.timedelta64: {_CLASSES}",
        "broadcast": "dovetail.numpy.broadcast_shapes or dovetail.numpy.broadcast_arrays",
        "float": "dovetail.numpy.float32, or the built-in float",
        "int": "dovetail.numpy.int32, or the built-in int",
    },
    "dovetail.random": {
        "random": "dovetail.random.uniform(key, shape)",
        "random_sample": "dovetail.random.uniform(key, shape)",
        "ranf": "dovetail.random.uniform(key, shape)",
        "sample": "dovetail.random.choice(key, values, shape, replace=False)",
        "choices": "dovetail.random.choice(key, values, shape)",
        "default_rng": "key = dovetail.random.key(seed): functions of dovetail.random take keys",
        "RandomState": "key = dovetail.random.key(seed): functions of dovetail.random take keys",
        "Generator": "key = dovetail.random.key(seed): functions of dovetail.random take keys",
        "SeedSequence": "dovetail.random.split(key, count), which makes keys of one",
        "get_state": "the key itself, which is all the state there is",
        "set_state": "the key itself, which is all the state there is",
        "standard_normal": "dovetail.random.normal(key, shape)",
        "standard_exponential": "dovetail.random.exponential(key, shape)",
        "standard_cauchy": "dovetail.random.cauchy(key, shape)",
        "standard_gamma": "dovetail.random.gamma(key, a, shape)",
        "standard_t": "dovetail.random.t(key, df, shape)",
        "integers": "dovetail.random.randint(key, shape, low, high)",
        "random_integers": "dovetail.random.randint(key, shape, low, high)",
        "shuffle": f"x = dovetail.random.permutation(key, x): {_IMMUTABLE}",
        "bytes": "dovetail.random.bits(key, shape, dovetail.numpy.uint8)",
        "power": "dovetail.random.uniform(key, shape) ** (1 / a)",
    },
    "dovetail.nn": {
        "dropout": "mask = dovetail.random.bernoulli(key, keep, x.shape), and "
        "dovetail.numpy.where(mask, x / keep, 0)",
        "layer_norm": "dovetail.nn.standardize(x), times a scale, plus an offset",
        "batch_norm": "dovetail.nn.standardize(x, axis=0), times a scale, plus an offset",
        "rms_norm": "x * dovetail.lax.rsqrt(dovetail.numpy.mean(x**2, -1, keepdims=True) + 1e-6)",
        "normalize": "x / dovetail.numpy.linalg.norm(x, axis=-1, keepdims=True)",
        "mse_loss": "dovetail.numpy.mean((x - y) ** 2)",
        "l1_loss": "dovetail.numpy.mean(dovetail.numpy.abs(x - y))",
        "cross_entropy": "-dovetail.numpy.take_along_axis(dovetail.nn.log_softmax(x), "
        "labels[:, None], 1).mean(), or optax",
        "nll_loss": "-dovetail.numpy.take_along_axis(x, labels[:, None], 1).mean(), or optax",
        "huber_loss": "a loss of optax",
        "smooth_l1_loss": "a loss of optax",
        "binary_cross_entropy": "a loss of optax",
        "binary_cross_entropy_with_logits": "a loss of optax",
        "linear": "x @ weights + bias",
        "embedding": "table[indices]",
        "conv2d": "dovetail.lax.conv_general_dilated(x, kernel, strides, padding)",
        "max_pool2d": "dovetail.lax.reduce_window(x, -dovetail.numpy.inf, dovetail.lax.max, sizes, "
        'strides, "VALID")',
        "avg_pool2d": "dovetail.lax.reduce_window(x, 0.0, dovetail.lax.add, sizes, strides, "
        '"VALID") / count',
        "interpolate": "dovetail.image.resize(x, shape, method)",
        "unfold": "dovetail.lax.conv_general_dilated_patches(x, sizes, strides, padding)",
        "init": "dovetail.nn.initializers",
        "scaled_dot_product_attention": "dovetail.nn.dot_product_attention(query, key, value)",
        "prelu": "dovetail.nn.leaky_relu(x, slope)",
    },
}

#: A name in a stub.
_DECLARED: Final = r"(?m)\bas (\w+),?$|^(\w+) = "
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
    if module == "dovetail" and name in import_module(module).config:
        return f"{text}: it is an option; write dovetail.config.update({name!r}, value)"
    habit = OF_MODULES.get(module, {}).get(name)
    if habit is not None:
        return f"{text}; write {habit}"
    places = [
        f"{other}.{name}"
        for other in _MODULES
        if other != module and f"{other}.{name}" != module and name in _names_of(other)
    ]
    if places:
        return f"{text}; it is {places[0]}"
    if name in FUNCTIONS:
        return f"{text}; write {FUNCTIONS[name]}"
    if name[0].isupper() and module == "dovetail.nn":
        return f"{text}; it has functions alone, and classes of layers are in flax or equinox"
    from difflib import get_close_matches  # deferred: as below

    near = get_close_matches(name, known, 1, 0.75 if len(name) > 4 else 0.6)
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
        return [first or second for first, second in re.findall(_DECLARED, file.read())]
