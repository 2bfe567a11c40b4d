"""Print the seconds that the first call of the demo's training step takes in this process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import numpy as np
import train_digits as demo

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random

parameters = demo.initial_parameters(random.key(0), [64, 128, 64, 10])
velocity = dt.tree.map(jnp.zeros_like, parameters)
images, labels = np.zeros((64, 64), np.float32), np.zeros(64, np.int32)
start = time.perf_counter()
*_, loss = demo.train_step(parameters, velocity, images, labels, np.float32(0.05))
loss.block_until_ready()
print(time.perf_counter() - start)
