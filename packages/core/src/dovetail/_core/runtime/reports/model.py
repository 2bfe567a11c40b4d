"""The model of time: peak rates, and rings of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail._core.runtime.reports.costs import Exchange
from dovetail._core.runtime.reports.groups import Groups
from dovetail._core.runtime.reports.hardware import Hardware

__all__ = ["exchanged_bytes", "group_size", "ring_bandwidth", "sent_bytes"]


def group_size(exchange: Exchange, count: int) -> int:
    """The number of devices in a group of a collective operation; 2 in a permutation.

    Args:
        exchange: the operation.
        count: the number of devices of the program, which counts if the groups are not known.
    """
    if exchange.groups is None:
        return count
    return max(map(len, exchange.groups), default=1)


def exchanged_bytes(exchange: Exchange, size: int) -> int:
    """The bytes of the whole array of a group that a device has in hand: before or after."""
    return exchange.operand_bytes * (size if exchange.kind == "all-gather" else 1)


def sent_bytes(exchange: Exchange, size: int) -> int:
    """The bytes that each device sends, if the devices of a group are a ring.

    Args:
        exchange: the operation.
        size: the number of devices in a group.
    """
    whole = exchanged_bytes(exchange, size)
    if exchange.kind == "collective-permute":
        pairs = exchange.groups
        return whole if pairs is None or any(a != b for a, b in pairs) else 0
    if exchange.kind == "collective-broadcast":
        return whole if size > 1 else 0
    around = whole * (size - 1) // size
    return 2 * around if exchange.kind == "all-reduce" else around


def ring_bandwidth(
    groups: Groups | None, devices: Sequence[Any], hardware: Hardware
) -> float | None:
    """Bytes per second that each device sends to the others of its group; None if unknown.

    Along an axis of a torus that is a ring, both links of a device are used, along one that is a
    line one of them; axes add up. Groups over several slices, or hosts without a torus, have the
    rate of the network. Devices without coordinates, which stand for others, have one ring.

    Args:
        groups: the groups, as places in `devices`.
        devices: the devices of the program.
        hardware: their rates.
    """
    members = [[devices[place] for place in group] for group in groups or [range(len(devices))]]
    if any(_crosses(group, "slice_index") for group in members):
        return hardware.network_bandwidth
    if not hardware.torus_axes:
        apart = any(_crosses(group, "process_index") for group in members)
        return hardware.network_bandwidth if apart else hardware.link_bandwidth
    if getattr(devices[0], "coords", None) is None or len(devices[0].coords) < hardware.torus_axes:
        return 2 * hardware.link_bandwidth
    lengths = [len(set(along)) for along in zip(*(d.coords for d in devices), strict=True)]
    links = 0
    for axis, length in enumerate(lengths):
        spread = max(len({device.coords[axis] for device in group}) for group in members)
        if spread > 1:
            closed = spread == length and length % hardware.closes_at == 0
            links += 2 if closed else 1
    return max(links, 1) * hardware.link_bandwidth


def _crosses(group: Sequence[Any], attribute: str) -> bool:
    return len({getattr(device, attribute, None) for device in group}) > 1
