"""Tables of FlatBuffers: records of numbered fields, as exported programs are written.

The format is that of JAX, learnt from what it writes. Fields that a reader does not know are passed
over, and those that are missing have a default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

__all__ = ["Record", "Table", "decode", "encode"]

T = TypeVar("T")

#: A field: its number, its kind, and its value.
Record: TypeAlias = "Sequence[tuple[int, str, Any]]"

_SIZES: Final = {"u8": 1, "u16": 2, "u32": 4}
_CODES: Final = {"u8": "<B", "u16": "<H", "u32": "<I"}


def _flatbuffers() -> Any:
    try:
        import flatbuffers  # deferred: an optional dependency
    except ImportError:
        raise ImportError(
            "exported programs are written and read by the distribution flatbuffers, which is not "
            'installed: pip install "dovetail-core[export]"'
        ) from None
    return flatbuffers


def encode(record: Record) -> bytearray:
    """A record as bytes.

    Fields are of the kinds ``u8``, ``u16``, ``u32``, ``str``, ``bytes``, ``table`` (a record), and
    lists of these: ``[u16]``, ``[u32]``, ``[str]``, ``[table]``. None is a field that is missing.

    Raises:
        ImportError: the distribution flatbuffers is not installed.
    """
    builder = _flatbuffers().Builder(1024)
    builder.Finish(_Encoder(builder).table(record))
    return bytearray(builder.Output())


class _Encoder:
    """Writes records, parts before what refers to them."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self._put = {
            "u8": builder.PrependUint8,
            "u16": builder.PrependUint16,
            "u32": builder.PrependUint32,
        }

    def part(self, kind: str, value: Any) -> Any:
        """The offset of a value that is stored elsewhere; a number as it is."""
        if kind in _SIZES:
            return value
        if kind == "str":
            return self.builder.CreateString(value)
        if kind == "bytes":
            return self.builder.CreateByteVector(value)
        if kind == "table":
            return self.table(value)
        inner = kind[1:-1]
        parts = [self.part(inner, v) for v in value]
        size = _SIZES.get(inner, 4)
        self.builder.StartVector(size, len(parts), size)
        put = self._put.get(inner, self.builder.PrependUOffsetTRelative)
        for part in reversed(parts):
            put(part)
        return self.builder.EndVector()

    def table(self, record: Record) -> int:
        parts = [(n, kind, self.part(kind, v)) for n, kind, v in record if v is not None]
        self.builder.StartObject(1 + max((n for n, _, _ in parts), default=-1))
        for number, kind, part in parts:
            if kind in _SIZES:
                self._put[kind](part)
            else:
                self.builder.PrependUOffsetTRelative(part)
            self.builder.Slot(number)
        offset: int = self.builder.EndObject()
        return offset


def decode(data: bytes, read: Callable[[Table], T]) -> T:
    """What `read` makes of the record in some bytes.

    Raises:
        ValueError: the bytes are damaged, or something else.
    """
    try:
        return read(Table(data, _number(data, 0, "u32")))
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"these bytes are no exported program, or not a whole one: {error}"
        ) from None


def _number(data: bytes, at: int, kind: str) -> int:
    if at < 0:
        raise IndexError("an offset points before the beginning")
    value: int = struct.unpack_from(_CODES[kind], data, at)[0]
    return value


class Table:
    """A record in bytes.

    Args:
        data: the bytes.
        at: where it begins.
    """

    __slots__ = ("_at", "_data", "_fields", "_length")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        (distance,) = struct.unpack_from("<i", data, at)
        self._fields = at - distance
        self._length = _number(data, self._fields, "u16")

    def _place(self, number: int) -> int:
        """Where a field is; 0 if it is missing."""
        entry = 4 + 2 * number
        if entry + 2 > self._length:
            return 0
        offset = _number(self._data, self._fields + entry, "u16")
        return self._at + offset if offset else 0

    def has(self, number: int) -> bool:
        """Whether a field is there."""
        return bool(self._place(number))

    def number(self, number: int, kind: str, default: int = 0) -> int:
        """A field that is a number."""
        at = self._place(number)
        return _number(self._data, at, kind) if at else default

    def _target(self, at: int) -> int:
        return at + _number(self._data, at, "u32")

    def _bytes_at(self, at: int) -> bytes:
        size = _number(self._data, at, "u32")
        if at + 4 + size > len(self._data):
            raise IndexError("a part is longer than the whole")
        return bytes(self._data[at + 4 : at + 4 + size])

    def bytes(self, number: int) -> bytes:
        """A field that is bytes; empty if it is missing."""
        at = self._place(number)
        return self._bytes_at(self._target(at)) if at else b""

    def text(self, number: int) -> str:
        """A field that is text."""
        return self.bytes(number).decode()

    def table(self, number: int) -> Table | None:
        """A field that is a record; None if it is missing."""
        at = self._place(number)
        return Table(self._data, self._target(at)) if at else None

    def _items(self, number: int, size: int) -> list[int]:
        at = self._place(number)
        if not at:
            return []
        start = self._target(at)
        count = _number(self._data, start, "u32")
        if start + 4 + count * size > len(self._data):
            raise IndexError("a list is longer than the whole")
        return [start + 4 + i * size for i in range(count)]

    def numbers(self, number: int, kind: str) -> list[int]:
        """A field that is a list of numbers."""
        return [_number(self._data, at, kind) for at in self._items(number, _SIZES[kind])]

    def texts(self, number: int) -> list[str]:
        """A field that is a list of texts."""
        return [self._bytes_at(self._target(at)).decode() for at in self._items(number, 4)]

    def tables(self, number: int) -> list[Table]:
        """A field that is a list of records."""
        return [Table(self._data, self._target(at)) for at in self._items(number, 4)]
