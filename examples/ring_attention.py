"""Attention over a text too long for one device: each of eight has an eighth of it.

Queries stay; keys and values go round the ring of devices, one block each turn (`lax.ppermute`),
and every device adds what its queries see in the block that it has. The softmax is computed as the
blocks come, with the largest score so far and the sum relative to it, so that no device ever has
more than one block of the scores. Derivatives go round the ring the other way.

The program promises what `nn.dot_product_attention` gives on one device, causal and not, and the
same gradients, but for rounding.

    python examples/ring_attention.py --length 2048
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.sharding import NamedSharding
from dovetail.sharding import PartitionSpec as P

DEVICES, BATCH, HEADS, SIZE = 8, 1, 4, 32
ROUNDING = 1e-5


def ring_attention(query: Any, key: Any, value: Any, is_causal: bool) -> Any:
    """Attention in `shard_map`, of parts (batch, part of the length, heads, size of a head)."""
    devices, here = lax.axis_size("ring"), lax.axis_index("ring")
    batch, length, heads, size = query.shape
    following = [(i, (i + 1) % devices) for i in range(devices)]
    query = query / jnp.sqrt(size)

    @dt.checkpoint
    def add_block(seen: Any, key: Any, value: Any, source: Any) -> Any:
        """What queries have seen, and in the block of keys and values that `source` began with."""
        largest, total, result = seen
        scores = jnp.einsum("bqhs,bkhs->bhqk", query, key)
        if is_causal:
            places = jnp.arange(length)
            may_see = (here * length + places)[:, None] >= source * length + places
            scores = jnp.where(may_see, scores, -jnp.inf)
        larger = jnp.maximum(largest, scores.max(-1))
        weights = jnp.exp(scores - larger[..., None])
        fade = jnp.exp(largest - larger)
        total = fade * total + weights.sum(-1)
        result = fade[..., None] * result + jnp.einsum("bhqk,bkhs->bhqs", weights, value)
        return larger, total, result

    def turn(carry: Any, i: Any) -> Any:
        seen, blocks = carry
        seen = add_block(seen, *blocks, (here - i) % devices)
        return (seen, lax.ppermute(blocks, "ring", following)), None

    # The first block is a device's own, in which each query sees its own place at least: from
    # then on the largest score is finite.
    nothing = (
        jnp.full((batch, heads, length), -jnp.inf),
        jnp.zeros((batch, heads, length)),
        jnp.zeros((batch, heads, length, size)),
    )
    (seen, _), _ = lax.scan(turn, (nothing, (key, value)), jnp.arange(devices))
    _, total, result = seen
    return jnp.swapaxes(result / total[..., None], 1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=2048, help="of the text, a multiple of 8")
    parser.add_argument("--seed", type=int, default=0, help="of queries, keys and values")
    options = parser.parse_args()
    dt.config.update("num_cpu_devices", DEVICES)
    mesh = dt.make_mesh((DEVICES,), ("ring",))
    split = P(None, "ring")
    print(f"devices: {len(dt.devices())} x {dt.devices()[0].platform}")

    shape = (4, BATCH, options.length, HEADS, SIZE)
    *qkv, direction = dt.device_get(random.normal(random.key(options.seed), shape))
    away: list[float] = []
    for is_causal in (False, True):
        ring = dt.shard_map(
            partial(ring_attention, is_causal=is_causal),
            mesh=mesh,
            in_specs=(split, split, split),
            out_specs=split,
        )
        plain = partial(nn.dot_product_attention, is_causal=is_causal)
        parts = dt.device_put((*qkv, direction), NamedSharding(mesh, split))
        found, temporary = evaluate(ring, parts)
        expected, at_once = evaluate(plain, (*qkv, direction))
        off = list(map(difference, found, expected))
        away += off
        print(
            f"{'causal' if is_causal else 'all see all'}: result {off[0]:.1e} and gradients "
            f"{max(off[1:]):.1e} off from one device; on the way each of {DEVICES} takes "
            f"{temporary:.0f} MiB, one {at_once:.0f} MiB"
        )
    if not np.max(away) <= ROUNDING:
        raise SystemExit(f"attention differs by more than the {ROUNDING} that is promised")


def evaluate(attention: Any, arguments: Any) -> tuple[list[np.ndarray], float]:
    """Attention and its gradients in a direction, and the MiB of memory that they take."""

    @dt.jit
    def run(query: Any, key: Any, value: Any, direction: Any) -> Any:
        result, pull_back = dt.vjp(attention, query, key, value)
        return (result, *pull_back(direction))

    program = run.lower(*arguments).compile()
    temporary = program.memory_analysis().temp_size_in_bytes / 2**20
    return dt.device_get(program(*arguments)), temporary


def difference(x: np.ndarray, y: np.ndarray) -> float:
    """The largest difference, as a part of the largest number."""
    return float(np.abs(x - y).max() / np.abs(y).max())


if __name__ == "__main__":
    main()
