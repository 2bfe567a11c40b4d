"""The workloads that `compare_operations.py` compares, by family."""

from __future__ import annotations

from workloads import (
    contractions,
    convolutions,
    elementwise,
    fused,
    indexing,
    linear_algebra,
    random_numbers,
    reductions,
    sets,
    sorting,
    training,
    transforms,
)
from workloads.base import Workload

FAMILIES: dict[str, list[Workload]] = {
    "elementwise": elementwise.WORKLOADS,
    "reductions": reductions.WORKLOADS,
    "sorting and cumulative": sorting.WORKLOADS,
    "gathers, scatters, shapes": indexing.WORKLOADS,
    "sets and histograms": sets.WORKLOADS,
    "random": random_numbers.WORKLOADS,
    "convolutions, pools, images": convolutions.WORKLOADS,
    "Fourier transforms": transforms.WORKLOADS,
    "contractions": contractions.WORKLOADS,
    "linear algebra": linear_algebra.WORKLOADS,
    "fused chains and loops": fused.WORKLOADS,
    "training": training.WORKLOADS,
}
