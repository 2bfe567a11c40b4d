"""Primitives that no model can have, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Value

table = LoweringTable()

_REASONS: Final[Mapping[str, Sequence[str]]] = {
    "a model calls no Python: leave it out of the exported function": (
        *("buffer_callback", "debug_callback", "debug_check", "debug_print", "io_callback"),
        *("pure_callback", "inspect_sharding", "check"),
    ),
    "a model runs on one device: export the function for one of them": (
        *("all_gather", "all_gather_invariant", "all_to_all", "axis_index", "pbroadcast"),
        *("pmax", "pmin", "ppermute", "psum", "psum_invariant", "ragged_all_to_all"),
        *("reduce_scatter", "shard_map", "all_gather_reduced", "preduced", "reduced_vary_cast"),
        *("unreduced_psum", "unreduced_reduce_scatter", "unreduced_vary_cast"),
        *("vary_reduced_cast", "vary_unreduced_cast"),
    ),
    "ONNX has no such random bits: use keys of threefry2x32": (
        *("philox4x32", "rng_bit_generator", "rng_uniform"),
    ),
    "ONNX has arrays alone, no tokens": ("after_all", "create_token"),
    "ONNX has no next floating-point number": ("nextafter",),
    "ONNX has no operators on complex numbers: compute with real and imaginary parts": (
        *("complex", "conj", "fft", "imag", "real"),
    ),
}


def _refusing(reason: str) -> Callable[..., Value]:
    def refuse(*operands: Any, **params: Any) -> Value:
        raise Refusal(reason)

    return refuse


for _reason, _names in _REASONS.items():
    for _name in _names:
        table.rule(_name)(_refusing(_reason))
