"""Writes docs/options.md: every option, and JAX's options that there are not.

python docs/write_options.py
"""

from __future__ import annotations

from pathlib import Path

import dovetail as dt
from dovetail._core.base.unavailable_options import UNAVAILABLE

OUTPUT = Path(__file__).with_name("options.md")

HEAD = """# Options

An option has the value that was given to it in the first of these places:

1. the thread: `with dovetail.enable_x64(True): ...`, which is a decorator, too; for options that
   are not names of `dovetail`, `with dovetail.config.option("dump_ir_to")("programs"): ...`;
2. the process: `dovetail.config.update("enable_x64", True)`, or a flag of absl,
   `--jax_enable_x64` or `--dovetail_enable_x64`, in programs that call
   `dovetail.config.parse_flags_with_absl()` or, before `absl.app.run`,
   `dovetail.config.config_with_absl()`;
3. the environment: `DOVETAIL_ENABLE_X64=1`;
4. the environment: `JAX_ENABLE_X64=1`, unless JAX has no such option;
5. its default.

`dovetail.config.enable_x64`, `config.read("enable_x64")` and `config.values["enable_x64"]` are its
value, and `config.option("enable_x64")` is the option, with its help and default. A name may begin
with `jax_`. A name that there is not is an error with the nearest one; a variable that begins with
`DOVETAIL_` and is unknown gives a warning, but for those of plug-ins (`DOVETAIL_PLUGIN_...`) and of
tools for testing (`DOVETAIL_TESTING_...`). Variables that begin with `JAX_` and are unknown are
left to JAX.

Options marked with * are read when a backend starts, and cannot be changed afterwards.

| option | default | what it does |
|---|---|---|
"""
MIDDLE = """
## Options of JAX that there are not

Programs may set them to the values given here, which are what dovetail does. Any other is a
NotImplementedError, from `config.update`, from a flag or from a variable that begins with
`DOVETAIL_`. One that begins with `JAX_` gives a warning.

| options | instead |
|---|---|
"""
TAIL = """
`python docs/write_options.py` writes this file.
"""


def text() -> str:
    """The text of the file."""
    rows = []
    for name in sorted(dt.config):
        option = dt.config.option(name)
        mark = " *" if hasattr(option, "reader") else ""
        scope = f"`dovetail.{name}`" if hasattr(dt, name) else f"`{name}`"
        ours = " Not in JAX." if len(option.environment) == 1 else ""
        rows.append(f"| {scope}{mark} | `{option.default!r}` | {option.help}{ours} |\n")
    instead: dict[str, list[str]] = {}
    for name, unavailable in UNAVAILABLE.items():
        values = " or ".join(map(repr, (unavailable.default, *unavailable.also)))
        instead.setdefault(unavailable.reason, []).append(f"`{name}` = `{values}`")
    others = [f"| {', '.join(names)} | {reason} |\n" for reason, names in instead.items()]
    return HEAD + "".join(rows) + MIDDLE + "".join(others) + TAIL


if __name__ == "__main__":
    OUTPUT.write_text(text(), encoding="utf-8")
