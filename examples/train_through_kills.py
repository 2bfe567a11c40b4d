"""Train on in spite of processes that are killed, to the very parameters of undisturbed training.

Processes train together, each with a part of every batch and a part of the parameters. After some
steps they write a checkpoint. When one of them is killed, the others get an error that names it,
and go on without it from the newest checkpoint; when none is left, a new group of processes does.

However many they are, they add the same gradients of the same small batches in the same order. So
the parameters at the end are those that training without a kill finds, bit for bit.

    python examples/train_through_kills.py --kills 5
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import checkpoints
import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.multihost_utils import live_devices
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

MICROBATCHES = 12
"""The parts of a batch: devices may be 12, 6, 4, 3, 2 or 1, and have as many of them each."""
SIZES, SIZE, RATE = (2, 48, 48, 1), 16, 0.05


# ------------------------------------------------------------------------- what is trained, and how


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on two spirals, one in the other, and which one each of them is on."""
    label = rng.integers(0, 2, count)
    angle = np.sqrt(rng.uniform(0.02, 1, count)) * 3 * np.pi
    radius = angle / (3 * np.pi) + rng.normal(0, 0.02, count)
    turned = angle + np.pi * label
    points = np.stack([radius * np.cos(turned), radius * np.sin(turned)], 1)
    return points.astype(np.float32), label.astype(np.float32)


def layers(vector: Any) -> list[tuple[Any, Any]]:
    """Weights and biases, which are one vector."""
    found, start = [], 0
    for fan_in, fan_out in pairwise(SIZES):
        end = start + fan_in * fan_out
        weight = vector[start:end].reshape(fan_in, fan_out)
        start = end + fan_out
        found.append((weight, vector[end:start]))
    return found


LENGTH = 2640
"""Of the vector, which has zeros at its end so that any number of devices divides it."""


def initial_vector() -> np.ndarray:
    """Random weights and zero biases."""
    rng, vector = np.random.default_rng(0), np.zeros(LENGTH, np.float32)
    for weight, _ in layers(vector):
        weight[:] = rng.normal(0, weight.shape[0] ** -0.5, weight.shape)
    return vector


def outputs(vector: Any, points: Any) -> Any:
    """For each point a number that is positive on the second spiral."""
    x = 3 * points
    *hidden, (last, bias) = layers(vector)
    for weight, shift in hidden:
        x = jnp.sin(x @ weight + shift)
    return (x @ last + bias)[:, 0]


def loss_of(vector: Any, points: Any, labels: Any) -> Any:
    """Mean cross entropy."""
    out = outputs(vector, points)
    return jnp.mean(jnp.logaddexp(0, out) - labels * out)


def step(state: Any, points: Any, labels: Any) -> Any:
    """One step of SGD with momentum, on each device: it has a part of the vectors and the batch."""
    whole = lax.all_gather(state["parameters"], "data", tiled=True)
    own = lax.map(lambda batch: dt.grad(loss_of)(whole, *batch), (points, labels))
    # The sum must not depend on the devices: all get all gradients, and add them in one order.
    gradients = lax.all_to_all(own, "data", 1, 0, tiled=True)
    gradient = sum(gradients[1:], gradients[0]) / MICROBATCHES
    velocity = 0.9 * state["velocity"] - RATE * gradient
    return {"parameters": state["parameters"] + velocity, "velocity": velocity}


# --------------------------------------------------------------------------------- in each process


def train(folder: Path, steps: int, every: int) -> None:
    """Train with the others, until all steps are done."""
    dt.distributed.initialize(heartbeat_timeout_seconds=20)
    while True:
        try:
            with live_devices(dt.devices()) as devices:
                train_with(Mesh(np.array(devices), "data"), folder, steps, every)
            return
        except dt.errors.DistributedError as error:
            if dt.process_index() in error.processes:
                raise  # the others go on without this one
            print(f"process {dt.process_index()}: {error}", file=sys.stderr, flush=True)


def train_with(mesh: Mesh, folder: Path, steps: int, every: int) -> None:
    """Train on some devices from the newest checkpoint on."""
    divided = NamedSharding(mesh, P("data"))
    like = dt.ShapeDtypeStruct((LENGTH,), np.float32, sharding=divided)
    found = checkpoints.restore(folder, {"parameters": like, "velocity": like}, mesh)
    if found is None:
        vector = initial_vector()
        state = {"parameters": vector, "velocity": np.zeros_like(vector)}
        found = 0, placed(state, divided)
    done, state = found
    if mesh.devices[0].process_index == dt.process_index():
        print(f"{mesh.size} processes train from step {done} on", file=sys.stderr, flush=True)
    run = dt.jit(dt.shard_map(step, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
    while done < steps:
        rng = np.random.default_rng(done)  # each step has its own batch, which all can make
        points, labels = spirals(MICROBATCHES * SIZE, rng)
        batch = points.reshape(MICROBATCHES, SIZE, 2), labels.reshape(MICROBATCHES, SIZE)
        state = run(state, *placed(batch, divided))
        done += 1
        if done % every == 0 or done == steps:
            checkpoints.save(folder, done, state, mesh)


def placed(tree: Any, sharding: NamedSharding) -> Any:
    """Arrays of which each process holds a part; all have the same values here."""

    def divide(x: np.ndarray) -> Any:
        return dt.make_array_from_callback(x.shape, sharding, x.__getitem__)

    return dt.tree.map(divide, tree)


# --------------------------------------------------------------------- the one who starts and kills


def start(folder: Path, count: int, options: argparse.Namespace) -> list[subprocess.Popen[bytes]]:
    """Start a group of processes, of one device each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["--folder", str(folder), "--steps", str(options.steps), "--every", str(options.every)]
    variables = {
        "DOVETAIL_COORDINATOR_ADDRESS": address,
        "DOVETAIL_NUM_PROCESSES": str(count),
        "DOVETAIL_NUM_CPU_DEVICES": "1",
    }
    return [
        subprocess.Popen(
            [sys.executable, __file__, *words],
            env=os.environ | variables | {"DOVETAIL_PROCESS_ID": str(number)},
            stdout=subprocess.DEVNULL,  # where Gloo tells of its connections
        )
        for number in range(count)
    ]


def run(folder: Path, counts: list[int], kills: int, options: argparse.Namespace) -> None:
    """Train in one group of processes after the other, and kill some of them at random."""
    chance = random.Random(options.seed)
    until = time.monotonic() + options.patience
    killed = 0
    for count in counts:
        processes = start(folder, count, options)
        try:
            living = list(processes)
            while living:
                if killed < kills:
                    # Somewhere between two checkpoints, or while one is written.
                    newest = max(checkpoints.steps(folder), default=0)
                    while max(checkpoints.steps(folder), default=0) == newest < options.steps:
                        time.sleep(0.005)
                        if time.monotonic() > until:
                            raise TimeoutError(f"no new checkpoint after that of step {newest}")
                    time.sleep(chance.uniform(0, 0.1))
                    victim = living.pop(chance.randrange(len(living)))
                    if victim.poll() is None:
                        victim.kill()
                        killed += 1
                        print(f"kill {killed}: process {processes.index(victim)}", flush=True)
                else:
                    for process in living:
                        if process.wait(max(until - time.monotonic(), 0)) != 0:
                            raise SystemExit(f"a process ended with status {process.returncode}")
                    return
        finally:
            for process in processes:
                process.kill()
                process.wait()
    raise SystemExit(f"{killed} processes were killed, and none is left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600, help="steps of SGD")
    parser.add_argument("--every", type=int, default=20, help="steps from checkpoint to checkpoint")
    parser.add_argument("--kills", type=int, default=5, help="how many processes are killed")
    parser.add_argument("--seed", type=int, help="of who is killed, and when")
    parser.add_argument("--patience", type=float, default=300, help="seconds that it may take")
    parser.add_argument("--folder", type=Path, help="train in this process, as one of a group")
    options = parser.parse_args()
    if options.folder is not None:
        train(options.folder, options.steps, options.every)
        return
    with tempfile.TemporaryDirectory() as name:
        undisturbed, disturbed = Path(name, "undisturbed"), Path(name, "disturbed")
        run(undisturbed, [2], 0, options)
        # Three kills end the first group, and the others happen in the next.
        run(disturbed, [3, 4], options.kills, options)
        expected, found = map(vectors, (undisturbed, disturbed))
    points, labels = spirals(1000, np.random.default_rng(10**6))
    right = np.mean((np.asarray(outputs(found["parameters"], points)) > 0) == labels)
    print(f"accuracy on new points: {right:.1%}")
    if any(found[name].tobytes() != expected[name].tobytes() for name in expected):
        raise SystemExit("the parameters are not those of undisturbed training")
    print("the parameters are those of undisturbed training, bit for bit")


def vectors(folder: Path) -> dict[str, np.ndarray]:
    """The state at the end, read by one process that was none of those that wrote it."""
    mesh = dt.make_mesh((1,), ("data",), devices=dt.devices()[:1])
    like = dt.ShapeDtypeStruct((LENGTH,), np.float32, sharding=NamedSharding(mesh, P()))
    found = checkpoints.restore(folder, {"parameters": like, "velocity": like}, mesh)
    assert found is not None
    return dt.tree.map(np.asarray, found[1])


if __name__ == "__main__":
    main()
