"""Which of the generated tests are laws of transformations, that no backend has a part in."""

from __future__ import annotations

import pytest

from dovetail.testing.checks import LAWS


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the checks of derivatives and batches: no jaxlib has a part in their rules."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and callspec.params.get("check") in LAWS:
        item.add_marker("laws")
