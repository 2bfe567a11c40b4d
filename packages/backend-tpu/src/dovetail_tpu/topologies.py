"""TPUs to compile for, which need not be present."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail.extend import Device
from dovetail.extend.pjrt import PjrtError
from dovetail_tpu.runtime import library

DEFAULT: Final = "v5e:2x2"

EXAMPLES: Final = {
    "v2": "v2:2x2",
    "v3": "v3:2x2",
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}
"""The generations that libtpu compiles for, and the chips of one host of each."""


def _is_int(value: object) -> bool:
    return type(value) is int and value > 0


def _are_three(kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, (list, tuple)) and len(value) == 3 and all(map(kind, value))
    )


OPTIONS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "chips_per_host_bounds": (_are_three(_is_int), "three positive ints, such as (2, 2, 1)"),
    "num_slices": (_is_int, "a positive int"),
    "wrap": (_are_three(lambda value: isinstance(value, bool)), "three bools"),
}


def topology_devices(name: str, options: Mapping[str, object]) -> list[Device]:
    """The devices of a topology, for which libtpu compiles.

    Args:
        name: such as `"v5e:2x2"`, which is also the meaning of `""`.
        options: see `dovetail_tpu.plugin.dovetail_topology`.

    Raises:
        TypeError: an option is unknown.
        ValueError: the topology does not exist, or an option has an invalid value.
        FileNotFoundError: libtpu is not installed.
        PjrtError: this jaxlib cannot use the libtpu that is installed.
    """
    checked: dict[str, Any] = {}
    for option, value in options.items():
        if option not in OPTIONS:
            raise TypeError(
                f"TPU topologies have no option {option!r}; they have {', '.join(OPTIONS)}"
            )
        fits, form = OPTIONS[option]
        if not fits(value):
            raise ValueError(f"{option} of a TPU topology must be {form}; got {value!r}")
        checked[option] = list(value) if isinstance(value, tuple) else value
    plugin = library()
    try:
        return plugin.topology_devices(name or DEFAULT, **checked)
    except PjrtError as error:
        asked = "".join(f", {option}={value}" for option, value in checked.items())
        raise ValueError(
            f"there is no TPU topology {name!r}{asked}: write a generation and the number of chips "
            f"in each direction, in multiples of a host's, such as {', '.join(EXAMPLES.values())}. "
            f"libtpu says: {error.__cause__ or error}"
        ) from error
