"""Checks that an export may leave out."""

from __future__ import annotations

__all__ = ["DisabledSafetyCheck"]


class DisabledSafetyCheck:
    """A check of `export` that is left out.

    Args:
        _impl: the check in text, as artifacts hold it.

    Example:
        >>> from dovetail import export
        >>> export.DisabledSafetyCheck.custom_call("my_kernel")
        DisabledSafetyCheck.custom_call('my_kernel')
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls on other platforms than those that the program was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow custom calls of a target whose meaning is not known to be kept for years.

        Args:
            target_name: the name under which the target is registered.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target that is allowed, if this is about custom calls."""
        kind, colon, target = self._impl.partition(":")
        return target if kind == "custom_call" and colon else None

    def __str__(self) -> str:
        return self._impl

    def __repr__(self) -> str:
        target = self.is_custom_call()
        if target is not None:
            return f"DisabledSafetyCheck.custom_call({target!r})"
        return f"DisabledSafetyCheck.{self._impl}()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)
