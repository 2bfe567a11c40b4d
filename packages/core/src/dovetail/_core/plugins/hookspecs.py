"""Every hook that a dovetail plug-in can implement, and the data that hooks exchange.

A plug-in is a module (or any object) with functions marked by `hookimpl`. A backend has an entry
point in the group `dovetail.backends`, named after its platform; an exporter has one in the group
`dovetail.exporters`, named after its format. Everything else (array methods, primitives, wrappers
around compilation) has one in the group `dovetail.extensions`.

    [project.entry-points."dovetail.backends"]
    acme = "dovetail_acme.plugin"

An implementation may leave out arguments that it does not need, so later versions of a hook can
add arguments without breaking it. Backends are called one at a time: an exception is recorded as
that plug-in's `PluginFailure` and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import pluggy

from dovetail._core.base.records import record
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.plugins.protocols import Client, Device, Executable

if TYPE_CHECKING:
    from dovetail._core.ir.jaxpr import ClosedJaxpr
    from dovetail._core.plugins.exports import ExportedProgram, ExporterInfo, ExportRequest

PLUGIN_API: Final[tuple[int, int]] = (1, 4)
"""Version of the hooks in this file: a change of the first number breaks plug-ins, one of the
second only adds. A backend says in `BackendInfo.api` which version it was written for.

1.1 added the hook `dovetail_topology` and `CompileRequest.load`; backends written in Python, with
`BackendInfo.programs`, `CompileRequest.jaxpr` and `CompileRequest.donated`; and expressions in
`dovetail.extend.lowering`.

1.2 added the argument `processes` of `dovetail_make_client`, with `ProcessGroup` and the capability
``"processes"``.

1.3 added exporters: `ExporterInfo`, `ExportRequest`, `ExportedProgram` and their two hooks.

1.4 added the hook `dovetail_host_functions`, with `HostFunction`, and the argument `elements` of
`dovetail_compile_options`."""

hookspec: Final = pluggy.HookspecMarker("dovetail")
hookimpl: Final = pluggy.HookimplMarker("dovetail")

OptionValue: TypeAlias = bool | int | float | str
LoweringRule: TypeAlias = Callable[..., Any]
_Rule = TypeVar("_Rule", bound=LoweringRule)


@record
class BackendInfo:
    """A backend's description of itself, read before any of its drivers is loaded.

    Attributes:
        platform: the platform's name; the same as the entry point's.
        api: the `PLUGIN_API` that the backend was written for; write the numbers, not the constant.
        priority: the platform with the highest priority that can run is the default (cpu 0, cuda
            200, tpu 300). Leave 0 to 99 to platforms that should not be chosen over an accelerator;
            below 0 are PJRT plug-ins for other frameworks, whose failure to start is no problem.
        aliases: further names that users may write, such as `"gpu"`.
        description: one line for `python -m dovetail doctor`, or a function that makes it, for what
            takes time to find out.
        capabilities: names of optional abilities, which `dovetail.testing.capabilities` explains:
            `"buffer_callbacks"`, `"complex"`, `"donation"`, `"float64"`, `"host_callbacks"`,
            `"processes"`, `"serialization"`, `"spmd"`; and the names `"eig"`, `"offload"` and
            `"schur"` of primitives that only a platform's own rule can lower. The conformance kit
            tests what is declared. Custom names begin with `"x-"`.
        programs: what its compiler takes: `"stablehlo"`, or `"jaxpr"` for a backend that reads the
            equations of the program directly and so needs no lowerings.
    """

    platform: str
    api: tuple[int, int]
    priority: int = 0
    aliases: tuple[str, ...] = ()
    description: str | Callable[[], str] = ""
    capabilities: frozenset[str] = frozenset()
    programs: Literal["stablehlo", "jaxpr"] = "stablehlo"

    def described(self) -> str:
        """The description, made if it is a function."""
        return self.description if isinstance(self.description, str) else self.description()


class LoweringTable(Mapping[str, LoweringRule]):
    """Lowering rules of one platform, by primitive name.

    A rule has the signature of `Primitive.lower`; if it returns `NotImplemented`, the primitive's
    own rule is used.

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
        """Merge `tables`, one per operator family; no primitive may be in two of them."""
        self._rules: dict[str, LoweringRule] = {}
        for table in tables:
            for name, rule in table.items():
                self._add(name, rule)

    def rule(self, primitive: str) -> Callable[[_Rule], _Rule]:
        """Return a decorator that registers a function as the rule for a primitive."""

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


@record
class ArrayMethods:
    """Methods that an extension adds to arrays and tracers, as the NumPy layer does.

    A function may also be a string ``"module:name"``; it is then imported on first use.

    Attributes:
        operators: special methods by name (`"__add__"`), called with the array first.
        methods: ordinary methods by name (`"sum"`), called with the array first.
        properties: attributes computed from the array alone, by name (`"T"`).
        compiled: names from `operators` and `methods` whose eager calls on an `Array` are compiled
            as one unit; under a trace they are inlined.
    """

    operators: Mapping[str, Callable[..., Any] | str] = field(default_factory=dict)
    methods: Mapping[str, Callable[..., Any] | str] = field(default_factory=dict)
    properties: Mapping[str, Callable[[Any], Any] | str] = field(default_factory=dict)
    compiled: frozenset[str] = frozenset()


@record
class HostFunction:
    """A function of C that computes a primitive in the memory of the host.

    Its type is ``void (*)(const void *const *operands, const ptrdiff_t *numbers, void *result,
    ptrdiff_t count)``. It writes `count` elements, all of the result or, of an elementwise
    primitive, some. The elements of arrays follow each other in the order of rows. The function
    runs in the calling thread, which holds the GIL; it raises nothing.

    Attributes:
        address: where the function is, for the life of the process.
        most: the number of elements, of the result or the largest operand, up to which it takes
            less time than the start of a program.
        numbers: what the function gets for `numbers`, from the parameters of an equation, the avals
            of its operands, and that of its result; None if it cannot compute the equation. If
            there are several results, it gets a list of their avals, each result begins at the next
            multiple of 64 bytes, and `count` is that of the first. A function without it is
            elementwise, of operands of one dtype, and of a primitive without parameters: its
            numbers are a step for each operand, which is 1, or 0 if the operand is one element for
            all. One of arithmetic that rounds to 16 bits is only called where it is the whole
            call: a program may round several such operations once.
        terms: what a function of `reduce_sum` can add besides the elements of its operand, as
            `params["terms"]` then says: "numbers", elements that are not NaN; "numbers counted", 1
            for each of these; "nonzero counted", 1 for each that is not 0, to integers; "squares".
            Its numbers are None for what it cannot.
        in_rows: of an elementwise function, the address of another one that calls it for each of
            several rows of the result, perhaps on several threads; 0 if they are called one after
            the other. Its numbers are the address of this function, the numbers of operands and of
            rows, the bytes from one row to the next of each operand and of the result, then steps.
            Its `count` is that of all rows.
    """

    address: int
    most: int
    numbers: Callable[[Mapping[str, Any], Sequence[Any], Any], Sequence[int] | None] | None = None
    terms: frozenset[str] = frozenset()
    in_rows: int = 0


@record
class CompileRequest:
    """One program on its way to the compiler.

    Attributes:
        platform: the platform to compile for.
        client: the platform's client.
        module: StableHLO, as MLIR bytecode or text. It is jaxlib's own module object if the program
            has host callbacks or is not to be loaded: jaxlib's clients take nothing else then. None
            if the program is in `jaxpr`.
        devices: the devices that the program runs on: jaxlib's list type for a client on a PJRT
            library, otherwise a tuple.
        options: compile options: jaxlib's object for a client on a PJRT library, otherwise values
            by name.
        host_callbacks: Python functions that the program calls, by index.
        name: the module's name, as profiles show it.
        load: whether the program is to run here. False for devices from `dovetail_topology`: the
            result can then be inspected but not run.
        jaxpr: the program for a backend whose `BackendInfo.programs` is ``"jaxpr"``: a closed jaxpr
            without constants, whose arguments and results are arrays of numbers.
        donated: indices of the arguments whose memory the program may reuse for its results.
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

    Must be cheap: import nothing but `dovetail.extend` and load no driver, because every installed
    backend is called when the default platform is chosen.

    Returns:
        The description. Its `platform` must equal the name of the entry point.
    """


@hookspec(firstresult=True)
def dovetail_probe(platform: str) -> str | None:
    """Say whether the backend can run on this machine, without creating a client.

    Look for device files and libraries, but load no driver. A backend without this hook is assumed
    to run everywhere.

    Args:
        platform: the backend's platform.

    Returns:
        `""` if the backend can run; otherwise one sentence that names the missing hardware.
        Missing hardware is not an error.

    Raises:
        Exception: any exception means that something installed is broken, for example that the
            hardware is present but its driver library is not. The doctor shows it, and falling
            back to another default platform because of it emits a warning.
    """


@hookspec
def dovetail_environment(platform: str) -> Mapping[str, str] | None:
    """Environment variables that the backend's driver needs when it is loaded.

    They are set before the client is created, unless the user has set them.

    Args:
        platform: the platform whose client is about to be created.

    Returns:
        Values by variable name; None or an empty mapping for none.
    """


@hookspec(firstresult=True)
def dovetail_make_client(
    platform: str, options: Mapping[str, object], processes: ProcessGroup | None
) -> Client | None:
    """Create the client of a platform. Required of every backend.

    The runtime calls it at most once per platform and process, under the plug-in lock, after
    `dovetail_probe` returned `""`. It must not wait for another thread that asks for devices.

    Args:
        platform: the platform to connect to.
        options: the user's options for it, such as `num_devices`. Raise an error for an unknown
            option that names it and lists the known ones.
        processes: the processes that compute together; None if there is one alone, and always None
            for a backend that does not declare the capability ``"processes"``. The client's
            `devices()` are then those of all processes, by increasing id, and `local_devices()`
            and `process_index()` are this one's.

    Returns:
        A client created by `dovetail.extend.pjrt`, or an object that satisfies
        `dovetail.extend.Client`.
    """


@hookspec
def dovetail_lowerings(platform: str) -> Mapping[str, LoweringRule] | None:
    """Lowering rules that override the primitives' own rules on a platform.

    Args:
        platform: the target platform.

    Returns:
        Rules by primitive name, usually a `LoweringTable`. A rule that returns `NotImplemented`
        defers to the primitive's own rule.
    """


@hookspec
def dovetail_compile_options(
    platform: str,
    options: Mapping[str, OptionValue],
    operations: frozenset[str],
    shapes: frozenset[tuple[int, ...]],
) -> Mapping[str, OptionValue] | None:
    """Compiler options that a backend wants by default.

    Args:
        platform: the target platform.
        options: the user's `compiler_options`; they take precedence over the returned ones.
        operations: the names of the program's operations, such as ``"stablehlo.add"``; empty if
            there is no program yet.
        shapes: the shapes of the program's arrays; empty if there is no program yet.

    Returns:
        Values by option name, as the platform's compiler spells it; None for none.
    """


@hookspec(firstresult=True)
def dovetail_host_functions(platform: str) -> Mapping[tuple[str, str], HostFunction] | None:
    """Functions that compute small arrays without a program, for a platform of the host's memory.

    They serve eager calls, and calls of small compiled functions all of whose operations have one,
    while nothing is traced, and no option asks for more. Results are kept in the memory of the host
    until a program needs them. So they must be what a program computes, up to rounding: denormal
    numbers are flushed to zero if programs flush them.

    Args:
        platform: the backend's platform.

    Returns:
        Functions by the primitive's name and the dtype of its last operand. None for none.
    """


@hookspec(firstresult=True)
def dovetail_compile(request: CompileRequest) -> Executable | None:
    """Compile a module; the first result that is not None is used.

    The default implementation, tried last, calls `request.client.compile_and_load(...)`, or
    `request.client.compile(...)` if the program is not to be loaded. To time, log, rewrite or
    replace compilation, an extension implements the hook with `@hookimpl(wrapper=True)`: a
    generator that yields once and returns the executable.

    Args:
        request: the module and its target.

    Returns:
        The loaded program, or None to leave it to the next plug-in.
    """


@hookspec(firstresult=True)
def dovetail_topology(
    platform: str, name: str, options: Mapping[str, object]
) -> Sequence[Device] | None:
    """Devices for ahead-of-time compilation: hardware that need not be on this machine.

    Called for `dovetail.experimental.topologies.get_topology_desc`. The variables of
    `dovetail_environment` are set before, but the probe is not called and no client is created.

    Args:
        platform: the requested platform.
        name: the backend's name for the hardware, such as ``"v5e:2x2"``; `""` for what the backend
            considers most useful.
        options: the user's further options.

    Returns:
        The devices, by increasing id, all of one client, for example from
        `dovetail.extend.pjrt.Plugin.topology_devices`. A client written in Python needs only
        ``compile(request)``, which returns a program with jaxlib's methods ``hlo_modules()``,
        ``cost_analysis()`` and ``get_compiled_memory_stats()``. None if nothing can be compiled
        ahead of time.

    Raises:
        ValueError: there is no hardware of that name, or an option has an invalid value; list the
            valid ones. The error reaches the user unchanged.
        TypeError: there is no such option. The error reaches the user unchanged.
    """


# ------------------------------------------------------------------------------------ exporters


@hookspec(firstresult=True)
def dovetail_exporter_info() -> ExporterInfo | None:
    """Describe the exporter. Required of every exporter.

    Must be cheap: import nothing but `dovetail.extend`, because every installed exporter is called
    when formats are listed.

    Returns:
        The description. Its `format` must equal the name of the entry point.
    """


@hookspec(firstresult=True)
def dovetail_export(request: ExportRequest) -> ExportedProgram | None:
    """Write a program in the exporter's format. Required of every exporter.

    Args:
        request: the program.

    Returns:
        The program in that format.

    Raises:
        Exception: the program cannot be expressed, or an option has an invalid value. The error
            reaches the user unchanged: name the equations, with the user's lines
            (`dovetail.extend.programs.place_of`), and say what to write instead.
    """


# ----------------------------------------------------------------------------------- extensions


@hookspec
def dovetail_primitives() -> Sequence[object] | None:
    """Primitives that an extension adds.

    Returns:
        Instances of `dovetail.extend.Primitive`. They need only exist to be found by name when a
        serialised program is read; they bring their own lowerings.
    """


@hookspec
def dovetail_array_methods() -> ArrayMethods | None:
    """Operators, methods and properties to add to arrays and tracers.

    Called once, when the first array or tracer needs one. If two extensions define the same name,
    the second, in the order of their names, fails.

    Returns:
        The tables; None for none.
    """
