"""`debug.visualize_sharding`: draws which part of an array is on which device."""

from __future__ import annotations

import colorsys
import html
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from dovetail._core.base.notebooks import notebook
from dovetail._core.base.terminals import shows_color
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.callbacks.inspections import inspect_array_sharding

ColorMap = Callable[[float], Sequence[float]]

_HEIGHT: Final = 10  # lines of a whole picture, including one border
_PIXELS: Final = 9  # of a character, in a notebook
_ASPECT: Final = 2.5  # height of a character divided by its width


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Draw which part of an array is on which device.

    In compiled functions it is drawn once, when the program is compiled.

    Args:
        arr: an array of one or two dimensions.
        **kwargs: as for `dovetail.debug.visualize_sharding`.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: it has no dimension or more than two.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.debug.visualize_array_sharding(jnp.zeros((8, 2)))
        ┌───────┐
        │       │
        │       │
        │       │
        │       │
        │ CPU 0 │
        │       │
        │       │
        │       │
        │       │
        └───────┘
    """
    shape = aval_of(as_operand(arr, "debug.visualize_array_sharding", "arr")).shape
    _check_shape(shape)
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs)
    )


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Draw which part of an array a sharding puts on which device.

    Each box is a part, drawn in proportion to its size, and lists the devices that hold it. In a
    notebook it is a table of HTML.

    Args:
        shape: the shape of the array, of one or two dimensions.
        sharding: any object whose ``devices_indices_map(shape)`` returns the part of an array on
            each device.
        use_color: whether to colour boxes if the terminal shows colours. (The environment variables
            ``NO_COLOR`` and ``FORCE_COLOR`` turn this off and on.)
        scale: the size of the picture, relative to the usual one.
        min_width: the minimum width of a box in characters, including borders.
        max_width: the maximum length of a line in characters.
        color_map: a function from a number between 0 and 1 to the red, green and blue of a box,
            each between 0 and 1, such as a colour map of matplotlib.

    Raises:
        TypeError: `sharding` is not a sharding.
        ValueError: the shape has no dimension or more than two, the parts of the array do not form
            a grid, or a size is not positive.

    Example:
        >>> import dovetail as dt
        >>> place = dt.sharding.SingleDeviceSharding(dt.devices()[0])
        >>> dt.debug.visualize_sharding((1000,), place)
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    shape = tuple(shape)
    _check_shape(shape)
    for name, value in {"scale": scale, "min_width": min_width, "max_width": max_width}.items():
        if not value > 0:
            raise ValueError(f"visualize_sharding: {name} must be positive, got {value!r}")
    if not hasattr(sharding, "devices_indices_map"):
        raise TypeError(
            "visualize_sharding takes a sharding, such as x.sharding, after the shape; got "
            f"{type(sharding).__name__}. For an array write visualize_array_sharding(x)"
        )
    rows, columns, owners = _grid(shape, sharding)
    labels = [[_label(owners[row, column]) for column in columns] for row in rows]
    # An array of one dimension is drawn as a row, with the aspect ratio of a column.
    down, across = shape if len(shape) == 2 else (1, shape[0])
    aspect = max(across if len(shape) == 2 else 1, 1) / max(shape[0], 1)
    whole = _HEIGHT * scale
    widths = _widths(
        labels, _fractions(columns, across), whole * aspect * _ASPECT, min_width, max_width
    )
    texts = [
        [_wrapped(label, width) for label, width in zip(line, widths, strict=True)]
        for line in labels
    ]
    heights = [
        max(int(whole * part) - 1 if len(shape) == 2 else 1, *map(len, line))
        for part, line in zip(_fractions(rows, down), texts, strict=True)
    ]
    colors = color_map or _pastel
    paints = _paints(len(rows), len(columns), colors if use_color and shows_color() else None)
    text = "\n".join(_drawn(texts, widths, heights, paints)) + "\n"
    publish = notebook()
    if publish is None:
        sys.stdout.write(text)
        return
    sizes = [[line * _PIXELS * n for n in part] for line, part in ((2, heights), (1, widths))]
    page = _page(labels, sizes, colors if use_color else None)
    publish({"text/plain": text, "text/html": page})


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) not in (1, 2):
        raise ValueError(
            "visualize_sharding draws arrays of one or two dimensions; got the shape "
            f"{shape}. Draw a reshaped array or a part of one, such as x[0]"
        )


Range = tuple[int, int]


def _grid(
    shape: tuple[int, ...], sharding: Any
) -> tuple[list[Range], list[Range], dict[tuple[Range, Range], list[Any]]]:
    """Ranges of rows, ranges of columns, and the devices that hold the parts between them."""
    owners: dict[tuple[Range, Range], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        ranges = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        row, column = ranges if len(ranges) == 2 else [(0, 1), *ranges]
        owners.setdefault((row, column), []).append(device)
    rows = sorted({row for row, _ in owners})
    columns = sorted({column for _, column in owners})
    if len(owners) != len(rows) * len(columns):
        raise ValueError(
            f"visualize_sharding: the parts of an array of shape {shape} under {sharding!r} are "
            "not the boxes of one grid"
        )
    return rows, columns, owners


def _label(devices: Iterable[Any]) -> str:
    listed = sorted(devices, key=lambda device: device.id)
    return f"{listed[0].platform.upper()} {','.join(str(device.id) for device in listed)}"


def _fractions(ranges: Sequence[Range], size: int) -> list[float]:
    if not size:
        return [1 / len(ranges)] * len(ranges)
    return [(stop - start) / size for start, stop in ranges]


def _widths(
    labels: Sequence[Sequence[str]],
    fractions: Sequence[float],
    whole: float,
    min_width: int,
    max_width: int,
) -> list[int]:
    """The width of each column in characters, without borders."""
    columns = list(zip(*labels, strict=True))
    preferred = [
        max(min(max(int(whole * part), min_width), max_width) - 2, *map(len, column))
        for part, column in zip(fractions, columns, strict=True)
    ]
    count = len(columns)
    if sum(preferred) + count + 1 <= max_width:
        return preferred
    equal = (max_width - 1) // count - 1
    # Names and numbers are never broken.
    least = [max(len(word) for label in column for word in _words(label)) for column in columns]
    return [max(min(width, equal), word) for width, word in zip(preferred, least, strict=True)]


def _words(label: str) -> list[str]:
    return label.replace(",", ", ").split()


def _wrapped(label: str, width: int) -> list[str]:
    """A label, wrapped into lines."""
    if len(label) <= width:
        return [label]
    lines = textwrap.wrap(" ".join(_words(label)), width)
    return [line.replace(", ", ",") for line in lines]


def _drawn(
    texts: Sequence[Sequence[Sequence[str]]],
    widths: Sequence[int],
    heights: Sequence[int],
    paints: Sequence[Sequence[Callable[[str], str]]],
) -> Iterator[str]:
    """The lines of the picture."""
    for number, (row, height, painted) in enumerate(zip(texts, heights, paints, strict=True)):
        yield _border("├┼┤" if number else "┌┬┐", widths)
        for position in range(height):
            cells = []
            for lines, width, paint in zip(row, widths, painted, strict=True):
                line = position - (height - len(lines)) // 2
                text = lines[line] if 0 <= line < len(lines) else ""
                left = (width - len(text)) // 2
                cells.append(paint(" " * left + text + " " * (width - len(text) - left)))
            yield f"│{'│'.join(cells)}│"
    yield _border("└┴┘", widths)


def _border(corners: str, widths: Sequence[int]) -> str:
    return corners[0] + corners[1].join("─" * width for width in widths) + corners[2]


# ------------------------------------------------------------------------------------------ colours


def _page(
    labels: Sequence[Sequence[str]],
    sizes: Sequence[Sequence[float]],
    color_map: ColorMap | None,
) -> str:
    """A picture in HTML.

    Args:
        labels: the text of each box.
        sizes: heights of rows and widths of columns, in pixels.
        color_map: the colours of boxes; None for none.
    """
    heights, widths = sizes
    boxes = max(len(heights) * len(widths) - 1, 1)
    lines = []
    for row, (texts, height) in enumerate(zip(labels, heights, strict=True)):
        cells = []
        for column, (text, width) in enumerate(zip(texts, widths, strict=True)):
            style = f"width:{width:.0f}px;border:1px solid;text-align:center"
            if color_map is not None:
                color = _channels(color_map((row * len(widths) + column) / boxes))
                shown = ",".join(str(round(255 * part)) for part in color)
                ink = "black" if _is_light(color) else "white"
                style += f";background:rgb({shown});color:{ink}"
            cells.append(f'<td style="{style}">{html.escape(text)}</td>')
        lines.append(f'<tr style="height:{height:.0f}px">{"".join(cells)}</tr>')
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def _channels(color: Sequence[float]) -> list[float]:
    """Red, green and blue between 0 and 1."""
    return [min(max(float(part), 0.0), 1.0) for part in color[:3]]


def _is_light(color: Sequence[float]) -> bool:
    red, green, blue = color
    return 0.3 * red + 0.6 * green + 0.1 * blue > 0.5


def _pastel(position: float) -> Sequence[float]:
    return colorsys.hsv_to_rgb(0.8 * position, 0.35, 0.9)


def _plain(text: str) -> str:
    return text


def _paints(rows: int, columns: int, color_map: ColorMap | None) -> list[list[Any]]:
    """For each box, the function that colours its text."""
    if color_map is None:
        return [[_plain] * columns] * rows
    boxes = max(rows * columns - 1, 1)
    return [
        [_paint(color_map((row * columns + column) / boxes)) for column in range(columns)]
        for row in range(rows)
    ]


def _paint(color: Sequence[float]) -> Callable[[str], str]:
    """A function that colours a background by escape sequences for 256 colours."""
    channels = red, green, blue = _channels(color)
    code = 16 + 36 * round(5 * red) + 6 * round(5 * green) + round(5 * blue)
    ink = 16 if _is_light(channels) else 231
    return lambda text: f"\x1b[38;5;{ink};48;5;{code}m{text}\x1b[0m"
