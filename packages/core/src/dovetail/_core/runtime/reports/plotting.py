"""Reports as pictures."""

from __future__ import annotations

import importlib
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Protocol

from dovetail._core.runtime.arrays.memory import in_words
from dovetail._core.runtime.reports import tables

if TYPE_CHECKING:
    from dovetail._core.runtime.reports.report import Report

__all__ = ["Figure", "drawn"]

_BARS: Final = 12
_MIB: Final = 2**20


class Figure(Protocol):
    """A figure of matplotlib (`matplotlib.figure.Figure`)."""

    def savefig(self, fname: str | PathLike[str], **kwargs: object) -> None:
        """Write it to a file."""


def drawn(report: Report, path: str | PathLike[str] | None) -> Figure:
    """A figure with the report's memory, collective operations and time.

    Args:
        report: the report.
        path: a file to write it to, or None.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ImportError(
            "Report.plot draws with matplotlib, which is not installed: pip install matplotlib, or "
            "print the report"
        ) from error
    figure: Any = figures.Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplot_mosaic([["memory", "time"], ["collectives", "collectives"]])
    _memory(panels["memory"], report)
    _time(panels["time"], report)
    _collectives(panels["collectives"], report)
    figure.suptitle(f"{report.name}: {report.device_count} x {report.device_kind}, one device")
    if path is not None:
        figure.savefig(path)
    drawing: Figure = figure
    return drawing


def _bars(axes: Any, labels: list[str], values: list[float], unit: str) -> None:
    places = range(len(values))
    axes.barh(places, values)
    axes.set_yticks(places, labels, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel(unit)


def _memory(axes: Any, report: Report) -> None:
    memory = report.memory
    arrays = [*memory.arguments, *memory.results]
    parts = [(array.path, array.bytes) for array in arrays]
    parts += [("temporaries", memory.temporary_bytes), ("code", memory.code_bytes)]
    parts = sorted(filter(lambda part: part[1], parts), key=lambda part: -part[1])
    rest = sum(size for _, size in parts[_BARS:])
    parts = parts[:_BARS] + ([("others", rest)] if rest else [])
    _bars(axes, [name for name, _ in parts], [size / _MIB for _, size in parts], "MiB")
    axes.set_title(f"memory: {in_words(memory.total_bytes)}")


def _time(axes: Any, report: Report) -> None:
    time = report.time
    if time is None:
        axes.text(0.5, 0.5, "no rates of this hardware", ha="center", va="center")
        axes.set_axis_off()
        return
    _bars(axes, list(time.shares), [100 * share for share in time.shares.values()], "% of the time")
    name = report.hardware.name if report.hardware else ""
    axes.set_title(f"time: {tables.seconds_in_words(time.total)} by the rates of {name}")


def _collectives(axes: Any, report: Report) -> None:
    ranked = sorted(report.collectives, key=lambda each: -each.sent_bytes * each.times)[:_BARS]
    if not ranked:
        axes.text(0.5, 0.5, "no collectives", ha="center", va="center")
        axes.set_axis_off()
        return
    labels = [
        f"{each.kind} over {tables.axes_in_words(each)}, {each.times} x, "
        f"{tables.place(each.source)}"
        for each in ranked
    ]
    sent = [each.sent_bytes * each.times / _MIB for each in ranked]
    _bars(axes, labels, sent, "MiB sent by each device")
    axes.set_title(f"collectives: {in_words(report.sent_bytes)} sent")
