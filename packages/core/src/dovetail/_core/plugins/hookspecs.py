"""Every hook that a plug-in of dovetail can implement, and the data that hooks exchange.

A plug-in is a module (or any object) with functions marked by `hookimpl`. A backend is named by an
entry point in the group `dovetail.backends`, whose name is the platform; anything else (array
methods, primitives, wrappers around compilation) by one in the group `dovetail.extensions`.

    [project.entry-points."dovetail.backends"]
    acme = "dovetail_acme.plugin"

An implementation may leave out arguments that it does not need: a later version of a hook can add
arguments without breaking it. Backends are called one at a time and never together, so that one
plug-in's exception is kept as its `PluginFailure` and touches no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import pluggy

from dovetail._core.plugins.protocols import Client, Device, Executable

if TYPE_CHECKING:
    from dovetail._core.ir.jaxpr import ClosedJaxpr

PLUGIN_API: Final[tuple[int, int]] = (1, 1)
"""Version of the hooks in this file: a change of the first number breaks plug-ins, one of the
second only adds. A backend says in `BackendInfo.api` which version it was written for.

1.1 added the hook `dovetail_topology` and `CompileRequest.load`; backends written in Python, with
`BackendInfo.programs`, `CompileRequest.jaxpr` and `CompileRequest.donated`; and expressions in
`dovetail.extend.lowering`."""

hookspec: Final = pluggy.HookspecMarker("dovetail")
hookimpl: Final = pluggy.HookimplMarker("dovetail")

OptionValue: TypeAlias = bool | int | float | str
LoweringRule: TypeAlias = Callable[..., Any]
_Rule = TypeVar("_Rule", bound=LoweringRule)


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """What a backend says about itself before any of its drivers is loaded.

    Attributes:
        platform: the platform's name; equal to the name of the entry point.
        api: the `PLUGIN_API` that the backend was written for; write the numbers, not the constant.
        priority: where several platforms can run, the highest is the default (cpu 0, cuda 200,
            tpu 300). Leave 0 to 99 to platforms that should not be chosen over an accelerator;
            below 0 a backend also may fail to start without anything being wrong.
        aliases: further names that a user may write, such as `"gpu"`.
        description: one line for `python -m dovetail doctor`.
        capabilities: names of optional abilities, which `dovetail.testing.capabilities` explains:
            `"buffer_callbacks"`, `"complex"`, `"donation"`, `"float64"`, `"host_callbacks"`,
            `"serialization"`, `"spmd"`; and the names `"eig"`, `"offload"` and `"schur"` of
            primitives that only a platform's own rule can lower. The conformance kit tests what is
            declared. Names of one's own begin with `"x-"`.
        programs: what its compiler takes: `"stablehlo"`, or `"jaxpr"` for a backend that reads the
            program as equations of primitives, and so needs no lowerings.
    """

    platform: str
    api: tuple[int, int]
    priority: int = 0
    aliases: tuple[str, ...] = ()
    description: str = ""
    capabilities: frozenset[str] = frozenset()
    programs: Literal["stablehlo", "jaxpr"] = "stablehlo"


class LoweringTable(Mapping[str, LoweringRule]):
    """Lowering rules of one platform, by primitive name.

    A rule has the signature of `Primitive.lower`; where it returns `NotImplemented`, the
    primitive's own rule is used.

    Example:
        >>> from dovetail.extend import LoweringTable
        >>> table = LoweringTable()
        >>> @table.rule("cumsum")
        ... def cumsum(context, x, *, axis, reverse):
        ...     return NotImplemented
        >>> sorted(table)
        ['cumsum']
    """

    __slots__ = ("_rules",)

    def __init__(self, tables: Iterable[Mapping[str, LoweringRule]] = ()) -> None:
        """Start from `tables`, one per operator family; a primitive may be in one of them only."""
        self._rules: dict[str, LoweringRule] = {}
        for table in tables:
            for name, rule in table.items():
                self._add(name, rule)

    def rule(self, primitive: str) -> Callable[[_Rule], _Rule]:
        """Decorator that makes a function the rule for the primitive of this name."""

        def add(function: _Rule) -> _Rule:
            self._add(primitive, function)
            return function

        return add

    def _add(self, primitive: str, function: LoweringRule) -> None:
        if primitive in self._rules:
            first = getattr(self._rules[primitive], "__module__", "an earlier table")
            raise ValueError(
                f"two lowering rules for the primitive {primitive!r} in one table: the first is in "
                f"{first}; keep one of them"
            )
        self._rules[primitive] = function

    def __getitem__(self, primitive: str) -> LoweringRule:
        return self._rules[primitive]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"LoweringTable({', '.join(sorted(self._rules)) or 'empty'})"


@dataclass(frozen=True, slots=True)
class ArrayMethods:
    """What arrays and tracers gain from an extension: the NumPy layer fills it.

    A function may also be given by its place, ``"module:name"``; it is then imported when it is
    first used.

    Attributes:
        operators: special methods by name (`"__add__"`), called with the array first.
        methods: ordinary methods by name (`"sum"`), called with the array first.
        properties: attributes computed from the array alone, by name (`"T"`).
        compiled: names out of `operators` and `methods` whose eager call on an `Array` is to be
            compiled as one unit; under a trace they are inlined.
    """

    operators: Mapping[str, Callable[..., Any] | str] = field(default_factory=dict)
    methods: Mapping[str, Callable[..., Any] | str] = field(default_factory=dict)
    properties: Mapping[str, Callable[[Any], Any] | str] = field(default_factory=dict)
    compiled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One program on its way to the compiler.

    Attributes:
        platform: the platform to compile for.
        client: the platform's client.
        module: StableHLO, as MLIR bytecode or text; as jaxlib's own module object where the program
            has host callbacks or is not to be loaded, with which its clients take nothing else.
            None where there is a jaxpr in its place.
        devices: the devices that the program spans: for a client on a PJRT library as jaxlib's
            list type, otherwise as a tuple.
        options: compile options: for a client on a PJRT library jaxlib's object, otherwise values
            by name.
        host_callbacks: Python functions that the program calls, by index.
        name: the module's name, as profiles show it.
        load: whether the program is to run here. False for devices out of `dovetail_topology`: the
            answer is then a program that can be looked at, and not be run.
        jaxpr: the program for a backend whose `BackendInfo.programs` is ``"jaxpr"``: a closed jaxpr
            without constants, whose arguments and results are arrays of numbers.
        donated: numbers of the arguments whose memory the program may take for its results.
    """

    platform: str
    client: Any
    module: bytes | str | None
    devices: Any
    options: Any
    host_callbacks: Sequence[Callable[..., Any]] = ()
    name: str = ""
    load: bool = True
    jaxpr: ClosedJaxpr | None = None
    donated: tuple[int, ...] = ()


# ------------------------------------------------------------------------------------- backends


@hookspec(firstresult=True)
def dovetail_backend_info() -> BackendInfo | None:
    """Describe the backend. Required of every backend.

    Must be cheap: it imports nothing but `dovetail.extend` and loads no driver, since every
    installed backend is asked when the default platform is chosen.

    Returns:
        The description. Its `platform` must be the name of the entry point.
    """


@hookspec(firstresult=True)
def dovetail_probe(platform: str) -> str | None:
    """Say whether the backend can run on this machine, without creating a client.

    Look for device files and libraries; load no driver. A backend without this hook can always
    run.

    Args:
        platform: the platform asked about.

    Returns:
        `""` when the backend can run; otherwise one sentence that says which hardware is not
        there. A machine without the hardware is nothing wrong.

    Raises:
        Exception: any exception means that something which is installed is broken (the hardware
            is there and its driver library is not, say). The doctor shows it, and a default that
            falls back to another platform because of it warns.
    """


@hookspec
def dovetail_environment(platform: str) -> Mapping[str, str] | None:
    """Environment variables that the backend's driver must find when it is loaded.

    They are set before the client is created, and only where the user has not set them.

    Args:
        platform: the platform whose client is about to be created.

    Returns:
        Values by name of the variable; None or an empty mapping for none.
    """


@hookspec(firstresult=True)
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Client | None:
    """Create the client of a platform. Required of every backend.

    Called at most once for each platform and process, under the lock of the plug-ins, after
    `dovetail_probe` returned `""`. It must not wait for another thread that asks for devices.

    Args:
        platform: the platform to connect to.
        options: the user's options for it, such as `num_devices`. An option that the backend does
            not know is an error that names it and lists the known ones.

    Returns:
        A client that `dovetail.extend.pjrt` made, or an object that satisfies
        `dovetail.extend.Client`.
    """


@hookspec
def dovetail_lowerings(platform: str) -> Mapping[str, LoweringRule] | None:
    """Lowering rules that take the place of the primitives' own on a platform.

    Args:
        platform: the platform lowered for.

    Returns:
        Rules by primitive name, usually a `LoweringTable`. A rule that returns `NotImplemented`
        leaves the case to the primitive's own rule.
    """


@hookspec
def dovetail_compile_options(
    platform: str, options: Mapping[str, OptionValue], operations: frozenset[str]
) -> Mapping[str, OptionValue] | None:
    """Compiler options that a backend wants by default.

    Args:
        platform: the platform compiled for.
        options: what the user asked for with `compiler_options`; these win over what is returned.
        operations: the names of the program's operations, such as ``"stablehlo.add"``; empty where
            there is no program yet.

    Returns:
        Values by name of the option, as the platform's compiler spells it; None for none.
    """


@hookspec(firstresult=True)
def dovetail_compile(request: CompileRequest) -> Executable | None:
    """Compile a module; the first answer that is not None is taken.

    The default answer, tried last, is `request.client.compile_and_load(...)`, or where the program
    is not to be loaded, `request.client.compile(...)`. To time, log, rewrite or replace
    compilation, an extension implements the hook with `@hookimpl(wrapper=True)`: a generator that
    yields once and returns the executable.

    Args:
        request: the module and where it goes.

    Returns:
        The loaded program, or None to leave it to the next plug-in.
    """


@hookspec(firstresult=True)
def dovetail_topology(
    platform: str, name: str, options: Mapping[str, object]
) -> Sequence[Device] | None:
    """Devices that are only compiled for: hardware that need not be on this machine.

    Called for `dovetail.experimental.topologies.get_topology_desc`. The probe is not asked before
    it, and no client is made; the variables of `dovetail_environment` are set.

    Args:
        platform: the platform asked for.
        name: which hardware, in the backend's own words, such as ``"v5e:2x2"``; `""` for what the
            backend thinks most useful.
        options: the user's further options.

    Returns:
        The devices, by increasing id, all of one client: those of
        `dovetail.extend.pjrt.Plugin.topology_devices`, say. Of a client that is written in Python
        nothing is asked but ``compile(request)``, for a program with the methods
        ``hlo_modules()``, ``cost_analysis()`` and ``get_compiled_memory_stats()`` of jaxlib's. None
        where nothing can be compiled ahead of time.

    Raises:
        ValueError: there is no hardware of that name, or an option has a wrong value; say which
            there are. The user gets it as it is.
        TypeError: there is no such option. The user gets it as it is.
    """


# ----------------------------------------------------------------------------------- extensions


@hookspec
def dovetail_primitives() -> Sequence[object] | None:
    """Primitives that an extension adds.

    Returns:
        Instances of `dovetail.extend.Primitive`. That they exist is enough for them to be found by
        name when a serialised program is read; their lowerings are their own.
    """


@hookspec
def dovetail_array_methods() -> ArrayMethods | None:
    """Operators, methods and properties that arrays and tracers gain.

    Called once, when the first array or tracer needs one. Two extensions that define the same name
    are a failure of the second, in the order of their names.

    Returns:
        The tables; None for none.
    """
