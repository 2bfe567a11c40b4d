"""Modules as bytes: `dovetail.extend.mlir`."""

from __future__ import annotations

import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import export
from dovetail._core.hlo.mlir import ir
from dovetail._core.hlo.module import ModuleBuilder
from dovetail.extend import mlir

X = dt.ShapeDtypeStruct((4,), "float32")


def test_portable_artifacts_are_read_again():
    module = dt.jit(jnp.sin).lower(X).compiler_ir()
    artifact = mlir.serialize_portable_artifact(module, "1.13.7")
    assert artifact.startswith(b"ML\xefR\rStableHLO_v1.13.7")
    built = ModuleBuilder()
    with built.current():
        assert "stablehlo.sine" in str(mlir.deserialize_portable_artifact(artifact))
    context = built.module.context
    assert "stablehlo.sine" in str(mlir.deserialize_portable_artifact(artifact, context))


def test_hlo_becomes_stablehlo():
    program = dt.jit(jnp.sin).lower(X).compiler_ir("hlo")
    written = mlir.hlo_to_stablehlo(program.as_serialized_hlo_module_proto())
    built = ModuleBuilder()
    with built.current():
        assert "stablehlo.sine" in str(ir.Module.parse(written))


def test_shapes_are_made_static():
    dynamic = """
    func.func @main(%arg0: tensor<4xf32>) -> tensor<?xf32> {
      %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<?xf32>
      %1 = stablehlo.sine %0 : tensor<?xf32>
      return %1 : tensor<?xf32>
    }
    """
    built = ModuleBuilder()
    with built.current():
        refined = mlir.refine_polymorphic_shapes(dynamic.encode())
        text = str(ir.Module.parse(refined))
    assert "stablehlo.sine" in text
    assert "?" not in text


def test_shapes_that_stay_dynamic_are_an_error():
    dynamic = """
    func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
      return %arg0 : tensor<?xf32>
    }
    """
    with pytest.raises(ValueError, match="dynamic"):
        mlir.refine_polymorphic_shapes(dynamic.encode())


def test_types_that_are_not_divided_need_no_annotation():
    (n,) = export.symbolic_shape("n")
    aval = dt.core.ShapedArray((n,), "float32")
    assert mlir.lower_with_sharding_in_types(None, "a value", aval) == "a value"
