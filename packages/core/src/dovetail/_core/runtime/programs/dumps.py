"""Writing programs into files, by the option ``dump_ir_to``."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dovetail._core.base import config

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["dump"]

_numbers: Final = itertools.count()


def dump(lowered: LoweredModule | EquationProgram) -> Path | None:
    """Write a program that is about to be compiled, if the option asks for it.

    Args:
        lowered: the program: StableHLO, or a jaxpr for a backend that compiles those.

    Returns:
        The file, or None if nothing was asked for.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    chosen = config.dump_ir_to.value
    if not chosen:
        return None
    if chosen == "sponge":
        chosen = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "")
        if not chosen:
            raise ValueError('dump_ir_to="sponge" needs the variable TEST_UNDECLARED_OUTPUTS_DIR')
    folder = Path(chosen).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]", "_", lowered.name)
    if lowered.equations is None:
        from dovetail._core.hlo.context import module_text  # deferred: loads MLIR

        text, suffix = (
            module_text(lowered.module, debug_info=config.include_debug_info_in_dumps.value),
            "mlir",
        )
    else:
        text, suffix = str(lowered.equations), "jaxpr.txt"
    file = folder / f"dovetail_ir{next(_numbers)}_{name}_compile.{suffix}"
    file.write_text(text, encoding="utf-8")
    return file
