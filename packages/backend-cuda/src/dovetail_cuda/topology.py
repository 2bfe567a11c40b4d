"""GPUs that need not be present: what the compiler has to know about them, by model.

Programs are compiled for them but cannot be run. The descriptions in `targets/` come from NVIDIA's
data sheets, in the text form of XLA's ``GpuTargetConfigProto``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dovetail.extend import Device
from dovetail.extend.pjrt import PjrtError
from dovetail_cuda.runtime import load

TARGETS: Final = Path(__file__).parent / "targets"
DEFAULT: Final = "h200"

_SHAPE: Final = re.compile(r"[1-9]\d*x[1-9]\d*x[1-9]\d*")


def models() -> list[str]:
    """The models that have descriptions."""
    return sorted(path.stem for path in TARGETS.glob("*.txtpb"))


def devices(name: str, options: Mapping[str, object]) -> Sequence[Device]:
    """Compile-only devices.

    Args:
        name: a model and a number of GPUs: ``"h200"``, or ``"h200:1x2x8"`` for one slice of two
            hosts with eight GPUs each; without a model, `DEFAULT`.
        options: ``target_config`` (str): a description instead of a model's; ``topology`` (str):
            slices, hosts and GPUs, such as ``"1x1x4"``, if the name has none.

    Raises:
        TypeError: an option is unknown or not a str.
        ValueError: the model or shape does not exist, both name and option have a shape, or the
            description is malformed.
    """
    unknown = sorted(set(options) - {"target_config", "topology"})
    if unknown:
        raise TypeError(
            f"a topology of GPUs has no option {', '.join(unknown)}; it has target_config, topology"
        )
    for option, value in options.items():
        if not isinstance(value, str):
            raise TypeError(f"the option {option} of a topology must be a str, got {value!r}")
    model, _, shape = name.partition(":")
    if shape and "topology" in options:
        raise ValueError(
            f"the name {name!r} and the option topology both say how many GPUs: give one"
        )
    shape = shape or str(options.get("topology", "1x1x1"))
    if not _SHAPE.fullmatch(shape):
        raise ValueError(
            f"{shape!r} is no topology of GPUs: write slices, hosts and GPUs per host as 1x1x4"
        )
    config = _description(model, options)
    _, library = load(compiling=True)
    try:
        created: list[Any] = library.topology_devices("", target_config=config, topology=shape)
    except PjrtError as error:
        raise ValueError(
            f"the description of the GPU {model or 'in target_config'} cannot be used: {error}"
        ) from error
    return created


def _description(model: str, options: Mapping[str, object]) -> str:
    """The text of a description."""
    if "target_config" in options:
        if model:
            raise ValueError(
                f"the model {model!r} and target_config are two descriptions of a GPU: give one"
            )
        return str(options["target_config"])
    model = model or DEFAULT
    if model not in models():
        raise ValueError(
            f"no GPU {model!r} is described; there are {', '.join(models())}, to be written as "
            "h200 or h200:1x1x4, and target_config takes the text of an XLA GpuTargetConfigProto"
        )
    return (TARGETS / f"{model}.txtpb").read_text(encoding="utf-8")
