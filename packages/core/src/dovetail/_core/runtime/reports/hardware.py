"""Rates of hardware by the data sheets of those who make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from dovetail._core.base.records import record

__all__ = ["HARDWARE", "Hardware", "hardware_of"]


@record
class Hardware:
    """The peak rates of one kind of device, by which reports estimate time.

    Attributes:
        name: its short name.
        peak_flops: operations per second in matrix products, by the type of the factors in XLA's
            words: ``"bf16"``, ``"f32"``; with a precision, ``"f32:highest"``.
        memory_bandwidth: bytes per second between a device and its memory.
        memory: bytes of this memory.
        link_bandwidth: bytes per second in one direction: of one link of a torus, or of all links
            of a device to a switch.
        network_bandwidth: bytes per second in one direction that a device has of the network
            between slices or hosts; None if that is not published.
        torus_axes: the axes of the torus; 0 if all devices of a host reach each other at full rate.
        closes_at: an axis of the torus is a ring if its size is a multiple of this, else a line.
        kinds: how the names of such devices begin (`device_kind`).
        sources: where the numbers are published.

    Raises:
        ValueError: a rate or size is not positive.

    Example:
        >>> from dovetail.experimental import topologies
        >>> topologies.HARDWARE["v5e"].peak_flops["bf16"]
        197000000000000.0
    """

    name: str
    peak_flops: Mapping[str, float]
    memory_bandwidth: float
    memory: int
    link_bandwidth: float
    network_bandwidth: float | None = None
    torus_axes: int = 0
    closes_at: int = 1
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        numbers = {
            "memory_bandwidth": self.memory_bandwidth,
            "memory": self.memory,
            "link_bandwidth": self.link_bandwidth,
            "closes_at": self.closes_at,
            **{f"peak_flops[{kind!r}]": rate for kind, rate in self.peak_flops.items()},
        }
        if self.network_bandwidth is not None:
            numbers["network_bandwidth"] = self.network_bandwidth
        for name, number in numbers.items():
            if not number > 0:
                raise ValueError(f"Hardware: {name} of {self.name!r} is positive; got {number!r}")


def _tpu_rates(bf16: float, **others: float) -> dict[str, float]:
    """TPUs multiply float32 in 1, 3 or 6 passes of bfloat16, by precision."""
    passes = {"f32": bf16, "f32:high": bf16 / 3, "f32:highest": bf16 / 6}
    return {"bf16": bf16, "f16": bf16, **passes, **others}


def _gpu_rates(
    *, bf16: float, tf32: float, f32: float, f64: float, f8: float, s8: float
) -> dict[str, float]:
    """GPUs multiply float32 as TF32 unless a higher precision is asked for."""
    exact = {"f32:high": f32, "f32:highest": f32, "f64": f64}
    return {"bf16": bf16, "f16": bf16, "f32": tf32, **exact, "f8": f8, "s8": s8}


_CLOUD: Final = "https://cloud.google.com/tpu/docs/"
_NVIDIA: Final = "https://www.nvidia.com/en-us/data-center/"

# Rates of NVIDIA's data sheets are for sparse matrices where they say so: half of these here.
# Their link bandwidths, and the "bidirectional" ones of TPUs, count both directions.
HARDWARE: Final[Mapping[str, Hardware]] = {
    hardware.name: hardware
    for hardware in (
        Hardware(
            # 275 TFLOP/s, 32 GiB, 1200 GB/s. The links are not in the table: all-reduce of a pod of
            # 4096 chips with 6 links each at 1.1 PB/s is 45 GB/s for each link and direction.
            name="v4",
            peak_flops=_tpu_rates(275e12, s8=275e12),
            memory_bandwidth=1.2e12,
            memory=32 * 2**30,
            link_bandwidth=45e9,
            torus_axes=3,
            closes_at=4,
            kinds=("TPU v4",),
            sources=(_CLOUD + "v4",),
        ),
        Hardware(
            # 197 TFLOP/s, 393 TOP/s, 16 GB, 819 GB/s; 400 GB/s in both directions over 4 ports;
            # the network of a pod of 256 chips is 6.4 Tb/s.
            name="v5e",
            peak_flops=_tpu_rates(197e12, s8=393e12),
            memory_bandwidth=819e9,
            memory=16 * 10**9,
            link_bandwidth=50e9,
            network_bandwidth=6.4e12 / 8 / 256,
            torus_axes=2,
            closes_at=16,
            kinds=("TPU v5 lite", "TPU v5e"),
            sources=(_CLOUD + "v5e",),
        ),
        Hardware(
            # 459 TFLOP/s (bf16 and f8), 95 GB, 2765 GB/s; 1200 GB/s in both directions, 3D torus;
            # the network is 50 Gb/s for each chip.
            name="v5p",
            peak_flops=_tpu_rates(459e12, f8=459e12),
            memory_bandwidth=2.765e12,
            memory=95 * 10**9,
            link_bandwidth=100e9,
            network_bandwidth=50e9 / 8,
            torus_axes=3,
            closes_at=4,
            kinds=("TPU v5p", "TPU v5"),
            sources=(_CLOUD + "v5p",),
        ),
        Hardware(
            # 918 TFLOP/s, 1836 TOP/s, 32 GB, 1600 GB/s; 800 GB/s in both directions over 4 ports;
            # the network of a pod of 256 chips is 25.6 Tb/s.
            name="v6e",
            peak_flops=_tpu_rates(918e12, s8=1836e12),
            memory_bandwidth=1.6e12,
            memory=32 * 10**9,
            link_bandwidth=100e9,
            network_bandwidth=25.6e12 / 8 / 256,
            torus_axes=2,
            closes_at=16,
            kinds=("TPU v6 lite", "TPU v6e"),
            sources=(_CLOUD + "v6e",),
        ),
        Hardware(
            # SXM. TF32 989, BF16 1979, FP8 3958, INT8 3958 (sparse), FP32 67, FP64 tensor 67;
            # 80 GB, 3.35 TB/s, NVLink 900 GB/s. DGX H100: 400 Gb/s of network for each GPU.
            name="h100",
            peak_flops=_gpu_rates(
                bf16=989.5e12, tf32=494.5e12, f32=67e12, f64=67e12, f8=1979e12, s8=1979e12
            ),
            memory_bandwidth=3.35e12,
            memory=80 * 10**9,
            link_bandwidth=450e9,
            network_bandwidth=400e9 / 8,
            kinds=("NVIDIA H100",),
            sources=(_NVIDIA + "h100/", _NVIDIA + "dgx-h100/"),
        ),
        Hardware(
            # SXM. As H100, with 141 GB and 4.8 TB/s.
            name="h200",
            peak_flops=_gpu_rates(
                bf16=989.5e12, tf32=494.5e12, f32=67e12, f64=67e12, f8=1979e12, s8=1979e12
            ),
            memory_bandwidth=4.8e12,
            memory=141 * 10**9,
            link_bandwidth=450e9,
            network_bandwidth=400e9 / 8,
            kinds=("NVIDIA H200",),
            sources=(_NVIDIA + "h200/", _NVIDIA + "dgx-h200/"),
        ),
        Hardware(
            # In HGX B200. TF32 2.2, BF16 4.5, FP8 9, INT8 9 PFLOP/s (sparse), FP32 80, FP64 40
            # TFLOP/s; 8 TB/s, NVLink 1.8 TB/s. DGX B200: 1440 GB and 8 times 400 Gb/s for 8 GPUs.
            name="b200",
            peak_flops=_gpu_rates(
                bf16=2250e12, tf32=1100e12, f32=80e12, f64=40e12, f8=4500e12, s8=4500e12
            ),
            memory_bandwidth=8e12,
            memory=180 * 10**9,
            link_bandwidth=900e9,
            network_bandwidth=400e9 / 8,
            kinds=("NVIDIA B200",),
            sources=(
                "https://resources.nvidia.com/en-us-blackwell-architecture (technical brief)",
                _NVIDIA + "dgx-b200/",
            ),
        ),
    )
}
"""The hardware that reports know, by short name."""


def hardware_of(devices: Sequence[Any], asked: str | Hardware | None) -> Hardware | None:
    """The rates for a program's devices; None if they are not known.

    Args:
        devices: the devices; if there are several on a chip, each has its part of the rates.
        asked: what the user asks for instead.

    Raises:
        TypeError: `asked` is neither a name nor a `Hardware`.
        ValueError: there is no hardware of that name.
    """
    if isinstance(asked, Hardware):
        return asked
    if isinstance(asked, str):
        if asked not in HARDWARE:
            raise ValueError(
                f"report: there are no rates of hardware {asked!r}; there are those of "
                f"{', '.join(HARDWARE)}, and for others give a dovetail.experimental.topologies."
                "Hardware"
            )
        return HARDWARE[asked]
    if asked is not None:
        raise TypeError(
            "report: hardware is a name, such as 'v5e', or a dovetail.experimental.topologies."
            f"Hardware; got {asked!r:.80}"
        )
    kind = devices[0].device_kind
    # The longest beginning counts: "TPU v5" is another chip than "TPU v5 lite".
    fitting = [
        (len(beginning), hardware)
        for hardware in HARDWARE.values()
        for beginning in hardware.kinds
        if kind.startswith(beginning)
    ]
    if not fitting:
        return None
    hardware = max(fitting, key=lambda pair: pair[0])[1]
    cores = 1 + max(getattr(device, "core_on_chip", None) or 0 for device in devices)
    return hardware if cores == 1 else _core(hardware, cores)


def _core(hardware: Hardware, count: int) -> Hardware:
    """The rates of one of so many cores of a chip."""
    network = hardware.network_bandwidth
    return replace(
        hardware,
        name=f"a core of {hardware.name}",
        peak_flops={kind: rate / count for kind, rate in hardware.peak_flops.items()},
        memory_bandwidth=hardware.memory_bandwidth / count,
        memory=hardware.memory // count,
        link_bandwidth=hardware.link_bandwidth / count,
        network_bandwidth=None if network is None else network / count,
    )
