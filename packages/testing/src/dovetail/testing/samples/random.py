"""Samples of the primitives on random keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.random.keys import (
    implementation_of,
    rbg_implementation,
    threefry_implementation,
    unsafe_rbg_implementation,
)
from dovetail.testing.keys import key_array
from dovetail.testing.sample import Sample, across_dtypes, rejected, rolled

WORDS = np.array([0, 1, 2**31, 2**32 - 1, 0xDEADBEEF, 12345], np.uint32)


def raw(*shape: int) -> Any:
    """Distinct raw keys."""
    count = int(np.prod(shape, dtype=int))
    words = np.arange(2 * count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(17)
    return words.reshape(*shape, 2)


def keys(*shape: int) -> Any:
    """Distinct keys."""
    return key_array(raw(*shape))


def other_keys(x: Any, i: int) -> Any:
    """Other keys of the same shape: keys of rank 0 cannot be rotated."""
    (name,) = x.dtype.names
    return key_array(x[name] + np.uint32(i), name)


def other_numbers(x: Any, i: int) -> Any:
    """Other numbers, or keys, of the same shape."""
    if x.dtype.names:
        return other_keys(x, i)
    return rolled(x, i) if x.ndim else (x + i).astype(x.dtype)


def other_switch(x: Any, i: int) -> Any:
    """The negated boolean scalar in every other element of a batch, and other keys."""
    return np.asarray(x != (i % 2 == 1)) if x.dtype == bool else other_numbers(x, i)


def key_samples(*args: Any, **params: Any) -> Sample:
    """A sample whose arguments vary in a batch even if they have no dimensions."""
    return Sample(args, params, vary=other_numbers)


#: Keys of the other implementations; their raw keys have four words.
STATES = [
    key_array(raw(*shape, 2).reshape(*shape, 4), implementation.name)
    for implementation in (rbg_implementation, unsafe_rbg_implementation)
    for shape in ((), (2,))
]

#: Keys of the generators on counters, whose raw keys have one, two and four words.
COUNTED = [
    key_array(raw(*shape, 2).reshape(*shape, 4)[..., : implementation.key_shape[0]], name)
    for name in ("philox2x32", "philox4x32", "threefry4x32")
    for implementation in [implementation_of(name)]
    for shape in ((), (2,))
]

FRACTIONS = np.array([-0.9, -0.75, -0.5, -0.1, 0.0, 1e-3, 0.25, 0.6, 0.875])

SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 2), (0,))

SAMPLES: dict[str, list[Sample]] = {
    "threefry2x32": [
        Sample((WORDS, WORDS[::-1].copy(), np.roll(WORDS, 1), np.roll(WORDS, 2)), batched=(0, 3)),
        Sample((np.uint32(1), np.uint32(2), WORDS, WORDS), batched=(), note="one key"),
        Sample(
            (WORDS[:3], WORDS[3:], np.uint32(0), np.uint32(7)),
            batched=(1, 2),
            vary=other_numbers,
            note="one counter",
        ),
        Sample(
            (
                *raw(3)[:, :, None, None].transpose(1, 0, 2, 3),
                WORDS.reshape(1, 2, 3),
                WORDS.reshape(1, 2, 3),
            ),
            batched=(),
        ),
        Sample((WORDS[:0],) * 4, batched=(0,), note="empty"),
        Sample((WORDS, WORDS, WORDS), {}, raises=TypeError, note="three words"),
        Sample((WORDS, WORDS, WORDS, WORDS.astype(np.int32)), {}, raises=TypeError),
    ],
    "erf_inv_fast": [
        *across_dtypes(Sample((FRACTIONS,), {}, tolerance=2**10), ["float32", "float64"]),
        *across_dtypes(Sample((FRACTIONS,), {}), ["float16", "bfloat16"]),
        *rejected(Sample((np.zeros(2),), {}), ["int32", "complex64"]),
    ],
    "random_seed": [
        *(
            key_samples(np.array(seeds, dtype), impl=threefry_implementation)
            for seeds, dtype in (
                (3, "int32"),
                (-1, "int32"),
                (-3, "int8"),
                (255, "uint8"),
                (2**40 + 7, "int64"),
                (-5, "int64"),
                (2**64 - 1, "uint64"),
                ([1, -2, 3], "int32"),
                ([[1, 2**33]], "int64"),
                ([], "int32"),
            )
        ),
        key_samples(np.int64(2**40 + 7), impl=rbg_implementation),
        key_samples(np.array([-3, 5], np.int8), impl=unsafe_rbg_implementation),
        *(
            key_samples(np.array(seeds, "int64"), impl=implementation_of(name))
            for name in ("philox2x32", "philox4x32", "threefry4x32")
            for seeds in (-1, [3, 2**40 + 7])
        ),
        Sample((np.float32(1),), {"impl": threefry_implementation}, raises=TypeError),
        Sample((keys(),), {"impl": threefry_implementation}, raises=TypeError),
    ],
    "random_wrap": [
        *(key_samples(raw(*shape), impl=threefry_implementation) for shape in SHAPES),
        key_samples(raw(3, 2).reshape(3, 4), impl=rbg_implementation),
        Sample((np.zeros(3, np.uint32),), {"impl": threefry_implementation}, raises=TypeError),
        Sample((np.zeros(2, np.int32),), {"impl": threefry_implementation}, raises=TypeError),
        Sample((np.uint32(0),), {"impl": threefry_implementation}, raises=TypeError),
    ],
    "random_unwrap": [
        *(key_samples(keys(*shape)) for shape in SHAPES),
        key_samples(STATES[0]),
        Sample((raw(),), {}, raises=TypeError),
    ],
    "random_clone": [
        *(key_samples(keys(*shape), alternative=False) for shape in SHAPES),
        key_samples(STATES[0], alternative=True),
        Sample((raw(),), {"alternative": False}, raises=TypeError),
    ],
    "random_split": [
        *(
            key_samples(keys(*shape), shape=into)
            for shape in SHAPES
            for into in ((2,), (), (3, 2), (0,))
        ),
        *(key_samples(states, shape=(3,)) for states in STATES + COUNTED),
        Sample((raw(),), {"shape": (2,)}, raises=TypeError),
    ],
    "random_fold_in": [
        *(key_samples(keys(*shape), np.full(shape, 2**32 - 2, np.uint32)) for shape in SHAPES),
        *(key_samples(states, np.full(states.shape, 7, np.uint32)) for states in STATES + COUNTED),
        Sample((raw(), np.uint32(1)), {}, raises=TypeError),
        Sample((keys(), np.int32(1)), {}, raises=TypeError),
        Sample((keys(2), np.uint32(1)), {}, raises=TypeError),
    ],
    "random_bits": [
        *(
            key_samples(keys(*shape), bit_width=width, shape=out)
            for shape in SHAPES
            for width in (8, 16, 32, 64)
            for out in ((), (5,), (2, 3), (0, 2))
        ),
        *(key_samples(STATES[i], bit_width=w, shape=(5,)) for i, w in ((0, 8), (1, 32), (3, 64))),
        *(
            key_samples(states, bit_width=w, shape=(2, 3))
            for states in COUNTED
            for w in (16, 32, 64)
        ),
        Sample((raw(),), {"bit_width": 32, "shape": ()}, raises=TypeError),
        Sample((keys(),), {"bit_width": 24, "shape": ()}, raises=TypeError),
    ],
    # Division of many numbers by one divisor has its own lowering, which random integers use.
    "rem": [
        Sample((np.resize(WORDS, 5000), np.uint32(divisor)), batched=(0,))
        for divisor in (0, 1, 2, 3, 7, 641, 2**16 + 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)
    ],
    # Primitives that move or compare elements take keys too.
    "eq": [
        Sample((keys(3), np.roll(keys(3), 1))),
        Sample((keys(2, 2), key_array(raw(2, 2) // 2 * 2)), note="some words are equal"),
        Sample((keys(), keys(3)), vary=other_numbers),
        Sample((keys(3), raw(3)[:, 0]), raises=TypeError),
    ],
    "ne": [Sample((keys(2, 2), key_array(raw(2, 2) // 2 * 2))), Sample((keys(2, 1), keys(1, 3)))],
    "reshape": [
        key_samples(keys(2, 3), new_sizes=(3, 2), dimensions=None, sharding=None),
        key_samples(keys(), new_sizes=(1,), dimensions=None, sharding=None),
    ],
    "transpose": [key_samples(keys(2, 3), permutation=(1, 0))],
    "broadcast_in_dim": [
        key_samples(keys(), shape=(2,), broadcast_dimensions=(), sharding=None),
        key_samples(keys(3, 1), shape=(2, 3, 2), broadcast_dimensions=(1, 2), sharding=None),
    ],
    "squeeze": [key_samples(keys(1, 3), dimensions=(0,))],
    "slice": [key_samples(keys(5), start_indices=(1,), limit_indices=(5,), strides=(2,))],
    "concatenate": [Sample((keys(2), np.roll(keys(3), 1)), {"dimension": 0})],
    "rev": [key_samples(keys(2, 3), dimensions=(1,))],
    "select_n": [
        Sample((np.array([True, False, True]), keys(3), np.roll(keys(3), 1)), vary=other_numbers),
        Sample((np.array(True), keys(3), np.roll(keys(3), 1)), vary=other_switch, note="scalar"),
    ],
    "copy": [key_samples(keys(3))],
    "stop_gradient": [key_samples(keys(3))],
}
