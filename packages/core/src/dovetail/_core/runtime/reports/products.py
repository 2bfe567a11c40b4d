"""How many floating-point operations an instruction does."""

from __future__ import annotations

import math
import re
from typing import Final

from dovetail._core.runtime.reports.hlo_text import Computation, Instruction

__all__ = ["FREE_CALLS", "elementwise", "product"]

_ARITHMETIC: Final = re.compile(
    "add|subtract|multiply|divide|remainder|power|maximum|minimum|negate|abs|sign|floor|ceil|"
    "round-nearest-afz|round-nearest-even|sqrt|rsqrt|cbrt|exponential|exponential-minus-one|log|"
    "log-plus-one|logistic|tanh|tan|sine|cosine|atan2|erf"
)

FREE_CALLS: Final = re.compile(
    "AllocateBuffer|ProduceBuffer|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|MoveToDevice|"
    "MoveToHost|annotate_device_placement|AssumeGatherIndicesInBound|LayoutConstraint|SliceId|"
    "ConcatBitcast|AsyncCollectiveStart|AsyncCollectiveDone"
)
"""Calls that compute nothing."""

_FLOAT: Final = re.compile(r"b?f\d|c\d")
_ESTIMATE: Final = re.compile(r'"cost_estimate\\*":\s*\{\\*"flops\\*":\\*"?(\d+)')
#: Sizes of a product of matrices by a kernel of the CPU backend, of which the third is summed over.
_SIZES: Final = re.compile(r'="dovetail_products_.*sizes = array<i64: \d+, \d+, (\d+)')
_LIBRARY_PRODUCT: Final = re.compile(r"gemm|matmul", re.IGNORECASE)


def elementwise(computation: Computation, instruction: Instruction) -> int:
    """The operations outside of products: one for each element that is computed."""
    shapes = instruction.shapes
    if not shapes or not _FLOAT.match(shapes[0].dtype):
        return 0
    if _ARITHMETIC.fullmatch(instruction.opcode):
        return shapes[0].elements
    if instruction.opcode == "reduce":
        return sum(s.elements for s in computation.shapes_of(instruction.operands[0]))
    if instruction.opcode == "reduce-window":
        return shapes[0].elements * math.prod(_window(instruction, "size"))
    if instruction.opcode == "scatter":
        return sum(s.elements for s in computation.shapes_of(instruction.operands[-1]))
    return 0


def product(computation: Computation, instruction: Instruction) -> tuple[str, int] | None:
    """The operations of a product of matrices or a convolution: its kind of factors, and how many.

    The kind is XLA's name of their type, with the precision if it is not the default one:
    ``f32:highest``. None if the instruction is none of these.
    """
    opcode = instruction.opcode
    if opcode not in ("dot", "convolution", "custom-call"):
        return None
    estimate = _ESTIMATE.search(instruction.attributes) if opcode == "custom-call" else None
    if estimate:  # kernels for TPUs say what they do
        shapes = computation.shapes_of(next(iter(instruction.operands), ""))
        return _kind(instruction, shapes[0].dtype if shapes else "f32"), int(estimate.group(1))
    factors = [computation.shapes_of(name) for name in instruction.operands[:2]]
    if len(factors) < 2 or not all(factors) or not instruction.shapes:
        return None
    left, right = factors[0][0], factors[1][0]
    out = instruction.shapes[0]
    if opcode == "dot":
        contracted = [left.dims[n] for n in instruction.numbers("lhs_contracting_dims")]
        count = out.elements * math.prod(contracted)
    elif opcode == "convolution":
        count = _convolution(instruction, left.dims, right.dims, out.dims)
    elif sizes := _SIZES.search(instruction.attributes):
        count = out.elements * int(sizes.group(1))
    elif _LIBRARY_PRODUCT.search(_target(instruction)):
        found = re.search(r'lhs_contracting_dimensions\\*":\[([^\]]*)\]', instruction.attributes)
        if found:
            numbers = map(int, re.findall(r"\d+", found.group(1)))
            count = out.elements * math.prod(left.dims[n] for n in numbers)
        else:  # a plain product of matrices
            count = math.isqrt(left.elements * right.elements * out.elements)
    else:
        return None
    # A complex product is four products and two sums, of which one sum is counted anyway.
    scale = 8 if left.dtype.startswith("c") else 2
    return _kind(instruction, left.dtype), scale * count


def _target(instruction: Instruction) -> str:
    found = re.search(r'custom_call_target="([^"]*)"', instruction.attributes)
    return found.group(1) if found else ""


def _kind(instruction: Instruction, dtype: str) -> str:
    dtype = {"c64": "f32", "c128": "f64", "u8": "s8"}.get(dtype, dtype)
    if dtype.startswith("f8"):
        dtype = "f8"
    precision = re.search(r"operand_precision=\{(\w+)", instruction.bare)
    word = precision.group(1) if precision else "default"
    algorithm = re.search(r"algorithm=dot_\w+_x(\d)", instruction.bare)
    if algorithm:
        word = "highest" if algorithm.group(1) in "69" else "high"
    return f"{dtype}:{word}" if dtype == "f32" and word in ("high", "highest") else dtype


def _convolution(
    instruction: Instruction, left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...]
) -> int:
    """Multiplications of a convolution, without those by padding and by holes.

    Products of matrices are written so for TPUs, batches of them as convolutions with holes.
    """
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", instruction.bare)
    if labels is None:
        return 0
    inputs, kernel, outputs = labels.groups()
    count = out[outputs.index("b")] * out[outputs.index("f")] * right[kernel.index("i")]
    spatial = sorted(set(inputs) - {"b", "f"})
    rank = len(spatial)
    pads = _window_pairs(instruction, "pad") or [(0, 0)] * rank
    strides = _window(instruction, "stride") or [1] * rank
    holes = _window(instruction, "lhs_dilate") or [1] * rank
    spread = _window(instruction, "rhs_dilate") or [1] * rank
    for number, label in enumerate(spatial):
        n, k, m = (
            dims[names.index(label)]
            for dims, names in ((left, inputs), (right, kernel), (out, outputs))
        )
        window = (k, strides[number], pads[number][0], holes[number], spread[number])
        count *= _meetings(n, m, *window)
    return count


def _meetings(
    inputs: int, outputs: int, taps: int, stride: int, pad: int, holes: int, spread: int
) -> int:
    """How often an element of the kernel meets one of the input, along one dimension."""
    common = math.gcd(stride, holes)
    period = holes // common
    inverse = pow(stride // common, -1, period) if period > 1 else 0
    end = (inputs - 1) * holes
    total = 0
    for tap in range(taps):
        # Outputs o with 0 <= stride * o - back <= end that do not fall into a hole.
        back = pad - tap * spread
        first, last = max(0, -(-back // stride)), min(outputs - 1, (end + back) // stride)
        if back % common == 0 and first <= last:
            first += (back // common * inverse - first) % period
            total += max(0, (last - first) // period + 1)
    return total


def _window_text(instruction: Instruction, name: str) -> str:
    window = instruction.attribute("window") or ""
    found = re.search(rf"(?:^|\s){name}=(\S+)", window)
    return found.group(1) if found else ""


def _window(instruction: Instruction, name: str) -> list[int]:
    text = _window_text(instruction, name)
    return [int(size) for size in text.split("x")] if text else []


def _window_pairs(instruction: Instruction, name: str) -> list[tuple[int, int]]:
    pairs = [part.split("_") for part in _window_text(instruction, name).split("x") if part]
    return [(int(low), int(high)) for low, high in pairs]
