"""Programs that other processes, machines and frameworks run: `dovetail.export`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.api.backward_passes import vjp
from dovetail._core.api.export.artifacts import (
    maximum_supported_calling_convention_version,
    read,
    write,
)
from dovetail._core.api.export.checks import DisabledSafetyCheck
from dovetail._core.api.export.obstacles import Obstacle, Report, as_text, obstacles_in
from dovetail._core.api.inspection import ShapeDtypeStruct, struct_of
from dovetail._core.api.jit import jit
from dovetail._core.api.stages import Traced
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import InconclusiveDimensionOperation, close_matches
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.tree_difference import structure_difference
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.dimension_solving import scope_of
from dovetail._core.ir.dimension_syntax import SymbolicScope
from dovetail._core.ir.dimensions import SymbolicDimension, of_variable
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn
from dovetail._core.ir.walk import eval_jaxpr
from dovetail._core.ops.calls.exported import call_exported_p, solution_for
from dovetail._core.ops.custom.custom_vjp import custom_vjp
from dovetail._core.ops.custom.custom_vmap import custom_vmap
from dovetail._core.ops.loops.loops import map as loop
from dovetail._core.ops.random.keys import random_unwrap_p
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.calls.staged_program import StagedProgram
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.devices.sharding import default_sharding
from dovetail._core.runtime.programs.arguments import partitioning
from dovetail._core.transform.derived import derived_info, function_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["Exported", "default_export_platform", "deserialize", "export", "report"]


@bounded
@dataclass(frozen=True, eq=False)
class Exported:
    """A function as a StableHLO program, with what is needed to call it.

    Attributes:
        fun_name: the name of the function.
        in_tree: the structure of ``(args, kwargs)``.
        in_avals: avals of the flat arguments; sizes may be symbolic.
        out_tree: the structure of the result.
        out_avals: avals of the flat results.
        in_shardings_hlo: for each argument how it is divided over devices; None if nothing is said.
        out_shardings_hlo: the same for each result.
        nr_devices: the number of devices that the program runs on.
        platforms: the platforms that it is for. If there are several, the first argument of the
            module is the index of the one that it runs on.
        ordered_effects: side effects that happen in the order of the program.
        unordered_effects: other side effects.
        disabled_safety_checks: the checks that were left out when it was exported.
        mlir_module_serialized: the program as a portable artifact of StableHLO.
        calling_convention_version: the version of what arguments the module takes.
        module_kept_var_idx: the indices of the arguments that the module takes.
        uses_global_constants: whether functions inside take sizes or the platform as arguments.

    Differs:
        Under `vmap` what `call` runs is the program for one element after the other.

        >>> import dovetail as dt
        >>> from dovetail import export
        >>> double = export.export(dt.jit(lambda x: 2 * x))(0.0)
        >>> dt.vmap(double.call)(jnp.arange(3.0)).tolist()
        [0.0, 2.0, 4.0]
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[Any, ...]
    out_tree: Any
    out_avals: tuple[Any, ...]
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The program as text."""
        from dovetail._core.hlo.portable import artifact_text  # deferred: loads MLIR

        return artifact_text(self.mlir_module_serialized)

    def has_vjp(self) -> bool:
        """Whether the program's derivative is known."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported function from arguments and cotangents of results to those of arguments.

        Raises:
            ValueError: the derivative was not serialized with the program.
        """
        return self._derivative

    @cached_property
    def _derivative(self) -> Exported:
        if self._get_vjp is None:
            raise ValueError(
                f"the derivative of {self.fun_name} is not part of what was serialized: write "
                "exported.serialize(vjp_order=1)"
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The exported function as bytes, which JAX reads too.

        Args:
            vjp_order: how many derivatives, one of the other, are written with it.

        Raises:
            ImportError: the distribution flatbuffers is not installed.
            ValueError: a type of tree node has no name for serialization.
        """
        return write(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program; under `jit` it becomes part of the program around it.

        It has derivatives in reverse mode (`grad`, `vjp`).

        Args:
            *args: as those of the function that was exported, with the same structure.
            **kwargs: the same.

        Raises:
            ValueError: they have another structure, dtype or shape.
        """
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != self.in_tree:
            difference = structure_difference(
                tree, self.in_tree, "(args, kwargs) of this call", "that of the exported function"
            )
            raise ValueError(
                f"{self.fun_name} was exported for arguments of another structure: {difference}"
            )
        solution_for(self, list(map(aval_of, leaves)))
        return self.out_tree.unflatten(self._function(*leaves))

    @cached_property
    def _function(self) -> Callable[..., Sequence[Any]]:
        """The program as a function of flat arguments, with a derivative."""

        def flat(*args: Any) -> list[Any]:
            return call_exported_p.bind(*args, exported=self)

        flat.__name__ = flat.__qualname__ = self.fun_name
        function = custom_vjp(flat)

        def forward(*args: Any) -> tuple[list[Any], tuple[Any, ...]]:
            return function(*args), args

        def backward(args: tuple[Any, ...], cotangents: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(self.vjp().call(*args, *cotangents))

        function.defvjp(forward, backward)

        def one_by_one(
            size: int, batched: Sequence[bool], *args: Any
        ) -> tuple[Any, Sequence[bool]]:
            taken = [x for x, b in zip(args, batched, strict=True) if b]

            def element(elements: Sequence[Any]) -> Any:
                own = iter(elements)
                return function(
                    *(next(own) if b else x for x, b in zip(args, batched, strict=True))
                )

            return loop(element, taken), [True] * len(self.out_avals)

        mapped = custom_vmap(function)
        mapped.def_vmap(one_by_one)
        return jit(mapped)

    def in_shardings_jax(self, mesh: Mesh) -> Sequence[NamedSharding | None]:
        """For each flat argument how it is divided over the devices of a mesh, or None.

        Args:
            mesh: a mesh with the axes of the one that the program was exported for.
        """
        return _over(mesh, self._in_named_shardings)

    def out_shardings_jax(self, mesh: Mesh) -> Sequence[NamedSharding | None]:
        """For each flat result how it is divided over the devices of a mesh, or None.

        Args:
            mesh: a mesh with the axes of the one that the program was exported for.
        """
        return _over(mesh, self._out_named_shardings)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the derivative, which may never be asked for.
        return deserialize, (bytes(self.serialize()),)

    def __deepcopy__(self, memo: Any) -> Exported:
        return self

    # What calls of the program need.

    def places(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """For each argument and each result its sharding, or None."""
        return self._in_named_shardings, self._out_named_shardings

    def argument_names(self) -> Sequence[str]:
        """Names of the flat arguments, for messages."""
        tree = self.in_tree.unflatten(range(self.in_tree.num_leaves))
        return [
            f"{('args', 'kwargs')[path[0].idx]}{pytree.keystr(path[1:])}"
            for path, _ in pytree.leaves_with_path(tree)
        ]

    def platform_index(self, platform: str) -> int:
        """The number of a platform among those of the program.

        Raises:
            ValueError: it was not exported for the platform.
        """
        if platform in self.platforms:
            return self.platforms.index(platform)
        if DisabledSafetyCheck.platform() in self.disabled_safety_checks:
            return 0
        raise ValueError(
            f"{self.fun_name} was exported for {', '.join(self.platforms)}, and is called on "
            f"{platform}: export it with platforms=[..., {platform!r}]"
        )


def deserialize(blob: bytes | bytearray) -> Exported:
    """An exported program from bytes, which `Exported.serialize` or JAX's has written.

    Args:
        blob: the bytes.

    Returns:
        The exported program. Weak types are not kept.

    Raises:
        TypeError: `blob` is not bytes.
        ValueError: it is damaged, or of a version that is not supported.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail import export
        >>> blob = export.export(dt.jit(jnp.sin))(0.0).serialize()
        >>> float(export.deserialize(blob).call(jnp.float32(0)))
        0.0
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize takes bytes, got {type(blob).__name__}")
    return read(bytes(blob), Exported)


def _over(mesh: Mesh, places: Sequence[Any]) -> Sequence[NamedSharding | None]:
    return [None if own is None else NamedSharding(mesh, own.spec) for own in places]


def default_export_platform() -> str:
    """The platform that functions are exported for if none is given: the default one.

    Example:
        >>> from dovetail import export
        >>> export.default_export_platform()
        'cpu'
    """
    return clients.platform_of(default_sharding()._device)


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a function as a program for other processes, machines and frameworks.

    Sizes may be symbolic, so that one program serves all sizes: see `symbolic_args_specs`. The
    program has the portable lowering of each primitive, which every platform runs.

    Args:
        fun_jit: the result of `dovetail.jit`.
        platforms: the platforms that the program is to run on, such as ``("cpu", "cuda")``, whether
            they are here or not; by default that of the default device.
        disabled_checks: checks to leave out.

    Returns:
        A function that takes arguments, arrays or `ShapeDtypeStruct`\\ s, and returns the
        `Exported`.

    Raises:
        ValueError: `fun_jit` is not the result of `jit`; a platform is unknown; or something in the
            function cannot be exported: the message lists all of it, as `report` does.

    Differs:
        Names of platforms that do not exist are refused.

        >>> from dovetail import export
        >>> export.export(dt.jit(jnp.sin), platforms=["gpus"])
        Traceback (most recent call last):
            ...
        ValueError: there is no platform 'gpus'; platforms are ...

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail import export
        >>> n, = export.symbolic_shape("n")
        >>> mean = export.export(dt.jit(jnp.mean))(dt.ShapeDtypeStruct((n,), "float32"))
        >>> float(mean.call(jnp.arange(4.0)))
        1.5
    """
    trace = _tracer_of(fun_jit, "export")
    names = checked_platforms(platforms)
    checks = _checked(disabled_checks)

    def exporting(*args: Any, **kwargs: Any) -> Exported:
        return export_traced(trace(*args, **kwargs), names, checks)

    return exporting


def _tracer_of(fun_jit: Any, function: str) -> Callable[..., Traced]:
    trace: Callable[..., Traced] | None = getattr(fun_jit, "trace", None)
    if not callable(trace):
        raise ValueError(
            f"{function} takes the result of jit, which says what is static: write "
            f"{function}(dovetail.jit(f)); got {type(fun_jit).__name__}: {fun_jit!r:.80}"
        )
    return trace


def _checked(disabled_checks: Sequence[DisabledSafetyCheck]) -> tuple[DisabledSafetyCheck, ...]:
    for check in disabled_checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(
                f"disabled_checks holds DisabledSafetyCheck.platform() and the like, got {check!r}"
            )
    return tuple(disabled_checks)


#: The platforms of JAX, for which programs are written wherever they run.
_KNOWN: Final = ("cpu", "cuda", "rocm", "tpu")


def checked_platforms(platforms: Any) -> tuple[str, ...]:
    """The names of platforms to export for.

    Raises:
        ValueError: one is unknown.
    """
    if platforms is None or (isinstance(platforms, (tuple, list)) and not platforms):
        return (default_export_platform(),)
    if not isinstance(platforms, (tuple, list)) or not all(isinstance(p, str) for p in platforms):
        raise TypeError(
            f"platforms is a sequence of names, such as ('cpu', 'cuda'); got {platforms!r:.80}"
        )
    known = {*_KNOWN, *manager().backend_names()}
    for name in platforms:
        if name not in known:
            close = close_matches(name, known)
            raise ValueError(
                f"there is no platform {name!r}; platforms are {', '.join(sorted(known))}"
                + (f". Did you mean {close[0]!r}?" if close else "")
            )
    return tuple(dict.fromkeys(platforms))


def export_traced(
    traced: Traced, platforms: tuple[str, ...], checks: Sequence[DisabledSafetyCheck]
) -> Exported:
    """Export a traced function.

    Raises:
        ValueError: something in it cannot be exported.
    """
    staged = traced._staged
    place = traced._place()
    lowered, found = lower_for_export(staged, platforms, checks, place)
    if found:
        raise ValueError(as_text(staged.options.name, found)) from found[0].error
    closed = staged.closed
    devices = 1 if place is None else len(place._device_list)
    nothing = (None,) * len(staged.in_avals), (None,) * len(staged.out_avals)
    places = nothing if devices == 1 else _named(place, staged)
    return Exported(
        fun_name=staged.options.name,
        in_tree=traced.in_tree,
        in_avals=tuple(staged.in_avals),
        out_tree=traced.out_tree,
        out_avals=tuple(staged.out_avals),
        _in_named_shardings=places[0],
        _out_named_shardings=places[1],
        in_shardings_hlo=nothing[0],
        out_shardings_hlo=nothing[1],
        nr_devices=devices,
        platforms=platforms,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=tuple(checks),
        mlir_module_serialized=lowered.portable(),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(i for i, kept in enumerate(lowered.kept) if kept),
        uses_global_constants=scope_of(staged.in_avals) is not None or len(platforms) > 1,
        _get_vjp=lambda exported: _exported_derivative(closed, exported),
    )


def _named(place: Any, staged: StagedProgram) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The shardings of arguments and results, over a mesh without devices."""

    def abstract(own: Any) -> Any:
        return None if own is None else NamedSharding(own.mesh.abstract_mesh, own.spec)

    asked = staged.asked
    results = [None] * len(staged.out_avals) if asked is None else asked.results
    return tuple(map(abstract, place._shardings)), tuple(map(abstract, results))


def lower_for_export(
    staged: StagedProgram,
    platforms: tuple[str, ...],
    checks: Sequence[DisabledSafetyCheck],
    place: Any,
) -> tuple[LoweredModule, list[Obstacle]]:
    """A program in StableHLO that every platform runs, and what of it cannot be exported.

    Raises:
        ValueError: the backend of a platform takes no StableHLO.
    """
    from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

    for platform in filter(manager().reads_equations, platforms):
        raise ValueError(
            f"{staged.options.name} cannot be exported for {platform!r}, whose backend reads "
            "equations: an exported program is StableHLO. Export it for a platform that takes "
            'that, such as platforms=("cpu",)'
        )

    closed = _with_plain_constants(staged.closed)
    failures: list[tuple[JaxprEqn, Exception]] = []
    if place is not None:
        place = place._typing(closed.out_avals)
    lowered: Any = lower_jaxpr(
        closed,
        name=staged.options.name,
        platforms=platforms,
        keep_unused=staged.options.keep_unused,
        arg_names=staged.names,
        constants_threshold=sys.maxsize,
        portable=True,
        failures=failures,
        **partitioning(place, len(closed.in_avals)),
    )
    found = obstacles_in(closed.jaxpr, failures, lowered.custom_calls, platforms, checks)
    if staged.uses:
        found.append(
            Obstacle(
                "reference",
                "it reads or writes mutable references, which exist in this process alone: pass "
                "their values as arguments, and return the new ones",
                staged.options.name,
            )
        )
    return lowered, found


def _with_plain_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with arrays of numbers for its constants, in the place of random keys."""
    if not any(dtypes.is_extended(aval_of(c).dtype) for c in closed.consts):
        return closed
    keys = [dtypes.is_extended(aval_of(c).dtype) for c in closed.consts]
    numbers = [
        np.asarray(random_unwrap_p.bind(c)) if k else c
        for c, k in zip(closed.consts, keys, strict=True)
    ]
    kinds = [aval_of(c).dtype for c in closed.consts]

    def function(*args: Any) -> list[Any]:
        consts = [
            kind.of_physical(c) if k else c for c, k, kind in zip(numbers, keys, kinds, strict=True)
        ]
        return eval_jaxpr(closed.jaxpr, consts, *args)

    return stage(function, closed.in_avals, derived_info(closed, "export"))


def _exported_derivative(closed: ClosedJaxpr, exported: Exported) -> Exported:
    """The exported derivative of a program in reverse mode."""
    count = len(exported.in_avals)
    function = function_of(closed)

    def fun_vjp(*args_and_cotangents: Any) -> tuple[Any, ...]:
        args, cotangents = args_and_cotangents[:count], args_and_cotangents[count:]
        _, pull_back = vjp(function, *args)
        return tuple(pull_back(list(cotangents)))

    fun_vjp.__name__ = f"{exported.fun_name}_vjp"
    avals = [*exported.in_avals, *(aval.tangent() for aval in exported.out_avals)]
    traced = jit(fun_vjp).trace(*map(struct_of, avals))
    return export_traced(traced, exported.platforms, exported.disabled_safety_checks)


def report(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Report]:
    """Look for everything that stands in the way of exporting a function, by line of its code.

    Args:
        fun_jit: as for `export`.
        platforms: as for `export`.
        disabled_checks: as for `export`.

    Returns:
        A function that takes arguments as the one of `export` does, and returns a `Report`, which
        is true if there are obstacles, prints them, and can be gone through.

    Differs:
        There is none in JAX, where `export` fails at the first obstacle.

        >>> import dovetail as dt
        >>> from dovetail import export
        >>> def f(x):
        ...     dt.debug.print("{}", x)
        ...     return x if x.shape[0] > 8 else 2 * x
        >>> x = dt.ShapeDtypeStruct(export.symbolic_shape("n"), "float32")
        >>> [obstacle.kind for obstacle in export.report(dt.jit(f))(x)]
        ['symbolic size', 'callback']
    """
    trace = _tracer_of(fun_jit, "report")
    names = checked_platforms(platforms)
    checks = _checked(disabled_checks)
    name = getattr(fun_jit, "__name__", type(fun_jit).__name__)

    def reporting(*args: Any, **kwargs: Any) -> Report:
        leaves, tree = pytree.flatten((args, kwargs))
        leaves, undecided = _noting_comparisons(leaves)
        args, kwargs = tree.unflatten(leaves)
        found: list[Obstacle] = []
        try:
            traced = trace(*args, **kwargs)
            _, found = lower_for_export(traced._staged, names, checks, traced._place())
        except InconclusiveDimensionOperation as error:
            found = [Obstacle("symbolic size", error.what, error.where)]
        comparisons = [Obstacle("symbolic size", what, where) for where, what in undecided]
        return Report(name, names, tuple(dict.fromkeys([*comparisons, *found])))

    return reporting


def _noting_comparisons(leaves: Sequence[Any]) -> tuple[list[Any], list[tuple[str, str]]]:
    """Arguments whose symbolic sizes note undecided comparisons, and the list of these.

    They are of a scope of their own, so that nothing that is traced for them serves others.
    """
    undecided: list[tuple[str, str]] = []
    scope = scope_of(leaves)
    if not isinstance(scope, SymbolicScope):
        return list(leaves), undecided
    noting = SymbolicScope(scope.texts)
    noting.undecided = undecided

    def renewed(leaf: Any) -> Any:
        if not isinstance(leaf, ShapeDtypeStruct):
            return leaf
        shape = [
            n.evaluate({v: of_variable(v, noting) for v in n.variables()})
            if isinstance(n, SymbolicDimension)
            else n
            for n in leaf.shape
        ]
        return leaf.update(shape=tuple(shape))

    return list(map(renewed, leaves)), undecided
