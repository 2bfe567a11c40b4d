"""Reports as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.runtime.arrays.memory import in_words

if TYPE_CHECKING:
    from dovetail._core.runtime.reports.report import ArrayMemory, Collective, Report

__all__ = ["aligned", "axes_in_words", "place", "seconds_in_words", "written"]

_LONGEST: Final = 16
"""Rows of a table; the rest is summed up."""


def written(report: Report) -> str:
    """The text of a report."""
    devices = f"{report.device_count} x {report.device_kind}"
    mesh = report.mesh
    if mesh is not None:
        devices += ", mesh " + ", ".join(f"{name!r}: {size}" for name, size in mesh.shape_tuple)
    parts = [f"{report.name} on {devices}; all numbers are for one device and one call"]
    parts += [_memory(report), _collectives(report), _operations(report)]
    if report.time is not None:
        parts.append(_time(report))
    if report.notes:
        parts.append("Not counted:\n" + "\n".join(f"  {note}" for note in report.notes))
    return "\n\n".join(part for part in parts if part)


def _memory(report: Report) -> str:
    memory = report.memory
    capacity = memory.capacity
    of = ""
    if capacity:
        of = f"of {in_words(capacity)}, {100 * memory.total_bytes / capacity:.0f} %"
        if memory.total_bytes > capacity:
            of += ": too much"
    rows: list[Sequence[str]] = [("memory", in_words(memory.total_bytes), of)]
    rows.append(
        (
            "  arguments",
            in_words(memory.argument_bytes),
            _padding(memory.argument_bytes, memory.arguments),
        )
    )
    rows += _arrays(memory.arguments)
    padding = _padding(memory.result_bytes, memory.results)
    rows.append(("  results", in_words(memory.result_bytes), padding))
    rows += _arrays(memory.results)
    if memory.aliased_bytes:
        rows.append(("  in place of donated arguments", f"-{in_words(memory.aliased_bytes)}", ""))
    rows.append(("  temporaries", in_words(memory.temporary_bytes), ""))
    if memory.code_bytes:
        rows.append(("  code", in_words(memory.code_bytes), ""))
    return aligned(rows, ("left", "right", "left"))


def _padding(count: int, arrays: Sequence[ArrayMemory]) -> str:
    more = count - sum(array.bytes for array in arrays)
    return f"with {in_words(more)} of padding" if more > 0 else ""


def _largest(sizes: Sequence[int]) -> list[int]:
    """The places of the largest of some numbers, in order."""
    ranked = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    return sorted(ranked[:_LONGEST])


def _arrays(arrays: Sequence[ArrayMemory]) -> list[Sequence[str]]:
    shown = [arrays[number] for number in _largest([array.bytes for array in arrays])]
    rows: list[Sequence[str]] = []
    for array in shown:
        sizes = ",".join(map(str, array.shape))
        part = ",".join(map(str, array.shard_shape))
        divided = f", [{part}] each, {array.sharding}" if part != sizes else ""
        rows.append(
            (f"    {array.path}", in_words(array.bytes), f"{array.dtype}[{sizes}]{divided}")
        )
    if len(arrays) > len(shown):
        left = sum(a.bytes for a in arrays) - sum(a.bytes for a in shown)
        rows.append((f"    {len(arrays) - len(shown)} more", in_words(left), ""))
    return rows


def axes_in_words(collective: Collective) -> str:
    """The axes of a collective operation: ``x, y``."""
    if collective.groups is None:
        return "?"
    if collective.axes is None:
        return "-"
    names = ", ".join(map(str, collective.axes)) or "-"
    partly = collective.axes and not collective.whole_axes
    return f"{names} (in part)" if partly and collective.kind != "collective-permute" else names


def _collectives(report: Report) -> str:
    if not report.collectives:
        return "collectives: none" if report.device_count > 1 else ""
    alike: dict[Any, list[Collective]] = {}
    for each in report.collectives:
        key = (each.kind, each.axes, each.groups, each.times, each.exact, each.shapes, each.source)
        alike.setdefault(key, []).append(each)
    groups = list(alike.values())
    sent = [sum(each.sent_bytes * each.times for each in group) for group in groups]
    rows: list[Sequence[str]] = [
        ("collectives", "axes", "runs", "bytes", "sent in all", "time", "line", "operands")
    ]
    shown = _largest(sent)
    for number in shown:
        group = groups[number]
        each = group[0]
        seconds = None if each.seconds is None else sum(one.seconds or 0.0 for one in group)
        runs = each.times * len(group)
        rows.append(
            (
                f"  {each.kind}",
                axes_in_words(each),
                f"{runs}" if each.exact else f"{runs}?",
                in_words(each.bytes),
                in_words(sent[number]),
                seconds_in_words(seconds),
                place(each.source),
                each.shapes if len(each.shapes) <= 40 else f"{each.shapes[:37]}...",
            )
        )
    if len(groups) > len(shown):
        count = len(report.collectives) - sum(len(groups[number]) for number in shown)
        left = in_words(sum(sent) - sum(sent[number] for number in shown))
        rows.append((f"  {count} more", "", "", "", left, "", "", ""))
    return aligned(rows, ("left", "left", "right", "right", "right", "right", "left", "left"))


def _operations(report: Report) -> str:
    rows: list[Sequence[str]] = [
        ("operations", f"{report.flops:.4g}", "floating-point"),
        ("  in products", f"{report.product_flops:.4g}", ""),
        ("  others", f"{report.elementwise_flops:.4g}", ""),
        ("moved to and from memory", in_words(report.moved_bytes), ""),
    ]
    if report.collectives:
        rows.append(("sent to other devices", in_words(report.sent_bytes), ""))
    return aligned(rows, ("left", "right", "left"))


def _time(report: Report) -> str:
    time, hardware = report.time, report.hardware
    assert time is not None
    assert hardware is not None
    rates = f"by the rates of {hardware.name}, nothing overlapped"
    rows: list[Sequence[str]] = [("time", seconds_in_words(time.total), rates)]
    for what, share in time.shares.items():
        bound = "" if what == "collectives" else "bound by "
        seconds = seconds_in_words(getattr(time, what))
        rows.append((f"  {bound}{what}", seconds, f"{100 * share:.0f} %"))
    for line in report.lines[:8]:
        share = 100 * (line.seconds or 0.0) / (time.total or 1.0)
        if line.seconds and share >= 0.5:
            seconds = seconds_in_words(line.seconds)
            rows.append((f"  {place(line.source)}", seconds, f"{share:.0f} %"))
    return aligned(rows, ("left", "right", "left"))


def place(source: str) -> str:
    """The file, without its folder, and line of a source."""
    return os.path.basename(source)


def seconds_in_words(seconds: float | None) -> str:
    """A time, such as ``3.2 ms``."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us" if seconds == 0 or seconds >= 1e-7 else "< 0.1 us"


def aligned(rows: Sequence[Sequence[Any]], sides: Sequence[str]) -> str:
    """Rows of text in columns, each of which is aligned to a side, ``"left"`` or ``"right"``."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(sides))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if side == "left" else cell.rjust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
