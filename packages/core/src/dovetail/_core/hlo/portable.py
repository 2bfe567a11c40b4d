"""Programs as portable artifacts: StableHLO that other versions, and other frameworks, read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail._core.base import config
from dovetail._core.base.bindings import _jax
from dovetail._core.hlo.context import load_dialect, module_bytecode
from dovetail._core.hlo.mlir import Module, Operation, Value, ir, stablehlo
from dovetail._core.hlo.module import ModuleBuilder

__all__ = [
    "artifact_text",
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "import_artifact",
    "lower_with_sharding_in_types",
    "portable_artifact",
    "refine_polymorphic_shapes",
    "refined_artifact",
    "serialize_portable_artifact",
]

_ENTRY: Final = "main"
#: What begins a portable artifact, after the mark of MLIR's bytecode.
_MARK: Final = b"StableHLO_v"


def written_version() -> str:
    """The version of StableHLO to write: one that programs twelve weeks old read."""
    if config.export_ignore_forward_compatibility.value:
        current: str = stablehlo.get_current_version()
        return current
    requirement = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    version: str = stablehlo.get_version_from_compatibility_requirement(requirement)
    return version


def portable_artifact(module: Module) -> bytes:
    """A module as a portable artifact, which older versions of StableHLO read."""
    artifact: bytes = stablehlo.serialize_portable_artifact(module, written_version(), True)
    return artifact


def _parse(artifact: bytes) -> Module:
    """An artifact as a module of the current context."""
    load_dialect("sdy")
    load_dialect("chlo")
    try:
        if _MARK not in artifact[:32]:
            return ir.Module.parse(artifact)
        return stablehlo.deserialize_portable_artifact(ir.Context.current, artifact)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"this is no StableHLO artifact that this version of jaxlib reads: {error}. It may "
            "have been written by a newer one"
        ) from None


def artifact_text(artifact: bytes) -> str:
    """The program in an artifact as text."""
    built = ModuleBuilder()
    with built.current():
        return str(_parse(artifact))


def _functions(module: Module) -> list[Operation]:
    return [op.operation for op in module.body.operations]


def _entry(module: Module) -> Operation:
    for operation in _functions(module):
        symbol = operation.attributes
        if operation.name == "func.func" and symbol["sym_name"].value == _ENTRY:
            return operation
    raise ValueError("the artifact has no function main")


def refined_artifact(artifact: bytes, types: Callable[[], Sequence[Any]]) -> bytes:
    """The program for arguments of static types, as MLIR bytecode.

    Args:
        artifact: a program with dynamic shapes.
        types: makes, in the context that is current then, the types of the arguments.

    Raises:
        ValueError: an assertion about the shapes does not hold, or one that depends on more than
            the shapes of arguments stays dynamic.
    """
    built = ModuleBuilder()
    with built.current():
        module = _parse(artifact)
        entry = _entry(module)
        inner = "exported_main"
        _rename(module, entry, inner)
        entry.attributes["sym_visibility"] = ir.StringAttr.get("private")
        given = list(types())
        kind = ir.TypeAttr(entry.attributes["function_type"]).value
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(_ENTRY),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(given, kind.results)),
                "sym_visibility": ir.StringAttr.get("public"),
            },
            regions=1,
            ip=ir.InsertionPoint(module.body),
        )
        block = function.regions[0].blocks.append(
            *given, arg_locs=[ir.Location.unknown()] * len(given)
        )
        with built.inside(block):
            operands = converted(list(block.arguments), kind.inputs)
            results = call(inner, operands, kind.results)
            ir.Operation.create("func.return", operands=results)
        written = module_bytecode(module)
    return refine_polymorphic_shapes(written)


def converted(values: Sequence[Value], types: Sequence[Any]) -> list[Value]:
    """Values as values of types that differ in which sizes are known."""
    return [
        value
        if value.type == kind
        else ir.Operation.create("stablehlo.convert", results=[kind], operands=[value]).result
        for value, kind in zip(values, types, strict=True)
    ]


def call(symbol: str, operands: Sequence[Value], types: Sequence[Any]) -> list[Value]:
    """Call a function of the module."""
    callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
    operation = ir.Operation.create("func.call", list(types), list(operands), callee)
    return list(operation.results)


def _rename(module: Module, operation: Operation, name: str) -> None:
    old = operation.attributes["sym_name"].value
    ir.SymbolTable.replace_all_symbol_uses(old, name, module.operation)
    operation.attributes["sym_name"] = ir.StringAttr.get(name)


def import_artifact(
    artifact: bytes, into: ModuleBuilder, name: str
) -> tuple[str, Sequence[Any], Sequence[Any]]:
    """Copy the functions of an artifact, or of bytecode, into a module that is being built.

    Args:
        artifact: the program.
        into: the module; its context is current.
        name: what its entry function is called.

    Returns:
        The symbol of its entry function, the types of its arguments and of its results.
    """
    module = _parse(artifact)
    entry = _entry(module)
    # In two steps, since a new name may be an old one of another function.
    fresh = [
        (op, into.unique_symbol(f"{name}_{op.attributes['sym_name'].value}"))
        for op in _functions(module)
        if "sym_name" in op.attributes
    ]
    for number, (operation, _) in enumerate(fresh):
        _rename(module, operation, f"{number}!")
    for operation, symbol in fresh:
        _rename(module, operation, symbol)
    for operation in _functions(module):
        copy = operation.clone(ip=ir.InsertionPoint(into.module.body))
        if copy.operation.name == "func.func":
            attributes = copy.operation.attributes
            attributes["sym_visibility"] = ir.StringAttr.get("private")
            # How arguments are divided is said where the function is called.
            for name in ("arg_attrs", "res_attrs"):
                if name in attributes:
                    del attributes[name]
    kind = ir.TypeAttr(entry.attributes["function_type"]).value
    return entry.attributes["sym_name"].value, list(kind.inputs), list(kind.results)


# What `dovetail.extend.mlir` offers: modules as bytes.


def refine_polymorphic_shapes(
    mlir_module: bytes,
    enable_shape_assertions: bool = True,
    validate_static_shapes: bool = True,
    enable_shardy: bool = False,
) -> bytes:
    """A program with static shapes throughout, from one whose arguments alone have them.

    Args:
        mlir_module: a module as bytecode; the arguments of its entry function have static shapes.
        enable_shape_assertions: whether calls of ``shape_assertion`` are checked.
        validate_static_shapes: whether a shape that stays dynamic is an error.
        enable_shardy: whether the module has shardings of the Shardy dialect.

    Returns:
        A module as bytecode.

    Raises:
        ValueError: an assertion does not hold, or a shape stays dynamic.
    """
    try:
        refined: bytes = _jax.mlir.refine_polymorphic_shapes(
            mlir_module, enable_shape_assertions, validate_static_shapes, enable_shardy
        )
    except (_jax.JaxRuntimeError, ValueError) as error:
        found = re.search(r"error: (.*)", str(error))
        raise ValueError(found.group(1) if found else str(error)) from None
    return refined


def serialize_portable_artifact(
    mlir_module: Any, target: str, use_mixed_serialization: bool = False
) -> bytes:
    """A module as a portable artifact.

    Args:
        mlir_module: an MLIR module.
        target: the version of StableHLO that is to be able to read it, such as ``"1.16.0"``.
        use_mixed_serialization: whether operations of other dialects are allowed.
    """
    artifact: bytes = _jax.mlir.serialize_portable_artifact(
        mlir_module, target, use_mixed_serialization
    )
    return artifact


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any:
    """The module in a portable artifact.

    Args:
        mlir_module: the artifact.
        context: the MLIR context that it is to belong to; the current one by default.
    """
    return _jax.mlir.deserialize_portable_artifact(mlir_module, context)


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """A program in StableHLO, as MLIR bytecode, from one in HLO.

    Args:
        computation: a serialized ``HloModuleProto``.
    """
    module: bytes = _jax.mlir.hlo_to_stablehlo(computation)
    return module


def lower_with_sharding_in_types(ctx: Any, op: Value, aval: Any) -> Value:
    """A value of a program, divided over the axes of a mesh as its type says.

    For rules of primitives whose results are divided, which otherwise need not say so.

    Args:
        ctx: the `context` of a lowering rule.
        op: the value.
        aval: its aval.

    Returns:
        The value; `op` itself where the aval is not divided.
    """
    return op if aval.division is None else ctx.typed(op, aval)
