"""Compiled programs as bytes, for another process on the same kind of machine."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from dovetail._core.api.stages import Compiled
from dovetail._core.base import pytree
from dovetail._core.base.bindings import JAXLIB_VERSION, JaxRuntimeError
from dovetail._core.base.records import record
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from dovetail._core.lower.donation import Donation
from dovetail._core.runtime.calls.staged_program import JitOptions, StagedProgram
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.client_libraries import library_text
from dovetail._core.runtime.devices.placement import Placement
from dovetail._core.runtime.devices.sharding import as_sharding
from dovetail._core.runtime.programs.compilation import deserialized
from dovetail._core.runtime.programs.disk_cache import host_processor
from dovetail._core.runtime.programs.program import LoadedProgram
from dovetail._core.transform.referencing import RefEffects

__all__ = ["deserialize_and_load", "serialize"]

_MAGIC: Final = b"dovetail compiled\x00\x01"
# Magic, lengths of the description and of the program, SHA-256 of both.
_HEADER: Final = struct.Struct(f"<{len(_MAGIC)}sQQ32s")


@record(kw_only=True)
class _Interface:
    """The facts needed to call a program."""

    name: str
    function: str
    argument_names: tuple[str, ...]
    arguments: tuple[Any, ...]
    donated: tuple[bool, ...]
    kept: tuple[bool, ...]
    results: tuple[Any, ...]
    taken: tuple[int, ...]
    effects: frozenset[Any]
    constants: tuple[Any, ...]
    preparations: tuple[Callable[[], object], ...]
    executable: bytes
    places: tuple[Any, ...] | None
    memories: tuple[str | None, ...]


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes, with the structures of its arguments and its result.

    Args:
        compiled: made by ``jit(f).lower(...).compile()``.

    Returns:
        The bytes, the structure of the arguments and that of the result: the arguments of
        `deserialize_and_load`.

    Raises:
        TypeError: `compiled` is something else.
        ValueError: the program calls Python functions of this process, or the backend cannot
            serialize its programs.
        BackendUnavailableError: it was compiled for hardware that is not present.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental import serialize_executable
        >>> compiled = dt.jit(jnp.sin).lower(0.0).compile()
        >>> payload, in_tree, out_tree = serialize_executable.serialize(compiled)
        >>> loaded = serialize_executable.deserialize_and_load(payload, in_tree, out_tree)
        >>> float(loaded(0.0))
        0.0
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            "serialize takes a compiled program, made by jit(f).lower(...).compile(); got "
            f"{compiled!r:.80} of type {type(compiled).__name__}"
        )
    staged, program = compiled._staged, compiled._program
    clients.check_runs(
        program.device,
        f"the program of {staged.options.name} cannot be written down for another process",
        "compile and serialize it where the hardware is",
    )
    if compiled._lowered.calls_host:
        raise ValueError(
            f"the program of {staged.options.name} calls Python functions, which are objects of "
            "this process and cannot be written down; leave callbacks out of what is serialized"
        )
    if staged.uses:
        raise ValueError(
            f"the program of {staged.options.name} uses mutable references, which are objects of "
            "this process; pass their values as arguments, and return the new ones"
        )
    try:
        executable = compiled._write()
    except (JaxRuntimeError, RuntimeError) as error:
        raise ValueError(
            f"the program of {staged.options.name} cannot be written down: {error}"
        ) from error
    preparations = compiled._lowered.preparations
    for function in preparations:
        if "." in getattr(function, "__qualname__", ""):
            raise ValueError(
                f"the program of {staged.options.name} cannot be written down: a lowering rule "
                f"gave context.prepare the function {function.__qualname__}, which other processes "
                "cannot find; define it at the top level of its module"
            )
    body = pickle.dumps(
        _Interface(
            name=program.name,
            function=staged.options.name,
            argument_names=tuple(staged.names),
            arguments=tuple(staged.closed.in_avals),
            donated=tuple(staged.donated),
            kept=tuple(program.kept),
            results=tuple(staged.closed.out_avals),
            taken=tuple(program.donated),
            effects=frozenset(program.effects),
            constants=tuple(compiled._lowered.hoisted),
            preparations=preparations,
            executable=executable,
            places=_places(program),
            memories=tuple(compiled._lowered.result_memories),
        )
    )
    description = json.dumps(_facts(program.device)).encode()
    digest = hashlib.sha256(description + body).digest()
    payload = _HEADER.pack(_MAGIC, len(description), len(body), digest) + description + body
    return payload, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Load a compiled program from the bytes of `serialize`.

    Loading runs code from the bytes: load only programs that you trust.

    Args:
        serialized: the bytes.
        in_tree: the structure of the arguments.
        out_tree: the structure of the result.
        backend: the platform to load it on; by default, the one it was compiled for.
        execution_devices: the one device to run it on.

    Returns:
        The program, called like the one that was serialized.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the bytes are damaged or not from `serialize`; they are for another platform,
            device, or version of dovetail or jaxlib; or a structure does not fit.
    """
    description, body = _parts(serialized)
    platform = description["platform"]
    device = _device(platform, backend, execution_devices)
    for fact, expected in _facts(device).items():
        if description.get(fact) != expected:
            raise ValueError(
                f"the serialized program is for {_shown(fact, description.get(fact))}, here is "
                f"{_shown(fact, expected)}; compile and serialize it here"
            )
    interface: _Interface = pickle.loads(body)
    for name, tree, count in (
        ("in_tree", in_tree, len(interface.arguments)),
        ("out_tree", out_tree, len(interface.results)),
    ):
        if not isinstance(tree, pytree.PyTreeDef):
            raise TypeError(
                f"{name} of deserialize_and_load is a tree definition, as serialize returns it; "
                f"got {tree!r:.80} of type {type(tree).__name__}"
            )
        if tree.num_leaves != count:
            raise ValueError(
                f"{name} of deserialize_and_load has {tree.num_leaves} leaves, the program of "
                f"{interface.function} has {count}; pass what serialize returned with it"
            )
    sharding = as_sharding(device)
    if interface.places is not None:
        if execution_devices is not None:
            raise ValueError(
                f"the serialized program of {interface.function} runs on the devices that it was "
                "compiled for; leave execution_devices out"
            )
        sharding = Placement(*interface.places)
    donation = Donation({}, interface.taken)
    lowered: Any = SimpleNamespace(
        name=interface.name,
        in_avals=tuple(
            a for a, kept in zip(interface.arguments, interface.kept, strict=True) if kept
        ),
        kept=interface.kept,
        out_avals=interface.results,
        effects=interface.effects,
        host_callbacks=(),
        calls_host=False,
        hoisted=interface.constants,
        preparations=interface.preparations,
        result_memories=interface.memories,
        donated=donation.positions(interface.kept, len(interface.constants)),
        donation=donation,
    )
    for prepare in interface.preparations:
        prepare()
    try:
        executable = deserialized(interface.executable, lowered, sharding)
    except (JaxRuntimeError, RuntimeError) as error:
        raise ValueError(
            f"the backend cannot load the serialized program of {interface.function}: {error}"
        ) from error
    # Only the types of the jaxpr remain.
    types = Jaxpr(
        [], [Var(a) for a in interface.arguments], [Var(a) for a in interface.results], []
    )
    staged = StagedProgram(
        ClosedJaxpr(types, []),
        in_tree,
        out_tree,
        interface.donated,
        interface.argument_names,
        JitOptions(name=interface.function),
        RefEffects(),
    )
    program = LoadedProgram(lowered, executable, sharding)
    return Compiled(staged, program, lowered, lambda: interface.executable)


def _places(program: LoadedProgram) -> tuple[Any, ...] | None:
    """The arguments of the `Placement` of a program; None if it has a sharding instead."""
    if not isinstance(program.sharding, Placement):
        return None
    return program.in_shardings, program.out_shardings, program.sharding._replicated


def _parts(serialized: bytes) -> tuple[dict[str, Any], bytes]:
    if not isinstance(serialized, (bytes, bytearray, memoryview)):
        raise TypeError(
            "deserialize_and_load takes the bytes that serialize returned first; got "
            f"{serialized!r:.80} of type {type(serialized).__name__}"
        )
    data = bytes(serialized)
    if data[: len(_MAGIC) - 1] != _MAGIC[:-1]:
        raise ValueError(
            "these bytes are no serialized program: dovetail.experimental.serialize_executable."
            "serialize did not make them"
        )
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError(
            "the serialized program was written by another version of dovetail, in another format; "
            "compile and serialize it here"
        )
    start = _HEADER.size
    if len(data) >= start:
        _, first, second, digest = _HEADER.unpack_from(data)
        rest = data[start:]
        if len(rest) == first + second and hashlib.sha256(rest).digest() == digest:
            return json.loads(rest[:first]), rest[first:]
    raise ValueError(
        f"the serialized program is damaged: its {len(data)} bytes are not those that were "
        "written; copy the file again, in binary mode"
    )


def _facts(device: Any) -> dict[str, Any]:
    """The facts that must be the same where a program is loaded."""
    import dovetail  # deferred: the package is being imported when this module is

    platform = clients.platform_of(device)
    return {
        "platform": platform,
        "dovetail": dovetail.__version__,
        "jaxlib": ".".join(map(str, JAXLIB_VERSION)),
        "runtime": device.client.platform_version,
        "library": library_text(device.client, exact=False),
        "device": device.device_kind,
        "processor": host_processor() if "cpu" in (platform, device.platform) else "",
    }


def _shown(fact: str, value: Any) -> str:
    return "another processor" if fact == "processor" else f"{fact} {value!r}"


def _device(platform: str, backend: Any, execution_devices: Sequence[Any] | None) -> Any:
    client = clients.backend(platform if backend is None else backend)
    if execution_devices is None:
        default = clients.default_device()
        return default if default.client is client else client.local_devices()[0]
    devices = list(execution_devices)
    if len(devices) != 1 or not clients.is_device(devices[0]):
        raise ValueError(
            "execution_devices of deserialize_and_load is a sequence of one device, such as "
            f"dovetail.devices()[:1]; got {execution_devices!r:.80}"
        )
    return devices[0]
