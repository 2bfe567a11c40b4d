"""The networks of the examples as ONNX models, run by onnxruntime: inference and gradients."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import dovetail as dt
from dovetail import random

EXAMPLES = Path(__file__).parents[2] / "examples"
BATCH = {1: {0: "batch"}}


@pytest.fixture(scope="module")
def example() -> Callable[[str], ModuleType]:
    """Imports an example, without what draws its pictures and loads its data."""

    def load(name: str) -> ModuleType:
        tops = {"matplotlib", "matplotlib.pyplot", "rich", "rich.progress"}
        tops |= {"sklearn", "sklearn.datasets"}
        with pytest.MonkeyPatch.context() as patch:
            for top in tops:
                patch.setitem(sys.modules, top, MagicMock())
            spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        return module

    return load


def images(count: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).uniform(size=(count, *shape)).astype(np.float32)


def test_the_digits_network(example, same) -> None:
    digits = example("train_digits")
    params = digits.initial_parameters(random.key(0), [64, 128, 64, 10])
    logits = dt.vmap(digits.logits_of, in_axes=(None, 0))
    others = [(params, images(n, 64)) for n in (1, 200)]
    program = same(logits, params, images(5, 64), others=others, dynamic_axes=BATCH)
    assert program.input_names[-1] == "image"
    dims = program.model.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 10]
    same(digits.predict, params, images(5, 64), others=others, dynamic_axes=BATCH)


def test_a_step_of_training(example, same) -> None:
    digits = example("train_digits")
    params = digits.initial_parameters(random.key(0), [64, 32, 10])
    labels = np.arange(8, dtype=np.int32)
    others = [(params, images(3, 64), labels[:3])]
    gradient = dt.grad(lambda p, x, y: digits.loss_of(p, x, y, 1e-4))
    both = {1: {0: "batch"}, 2: {0: "batch"}}
    same(gradient, params, images(8, 64), labels, others=others, dynamic_axes=both)


def test_a_convolutional_network(example, same) -> None:
    convolutions = example("convolutions")
    params = convolutions.init_network(random.key(0), (-1, 8, 8, 1))[1]
    others = [(params, images(1, 8, 8, 1))]
    apply = convolutions.apply_network
    same(apply, params, images(5, 8, 8, 1), others=others, dynamic_axes=BATCH)
    gradient = dt.grad(convolutions.loss_of)
    same(gradient, params, images(4, 8, 8, 1), np.arange(4, dtype=np.int32))


def test_a_transformer(example, same) -> None:
    transformer = example("transformer")
    params = transformer.initial_parameters(random.key(0), 30)
    params["read"] = images(1, *params["read"].shape)[0] - 0.5
    text = np.random.default_rng(0).integers(0, 30, (6, 64)).astype(np.int32)
    others = [(params, text[:1])]
    logits = transformer.logits_of
    same(logits, params, text[:2], others=others, dynamic_axes=BATCH, tolerance=1e-4)
    layer = {name: x[0] for name, x in params["layers"].items()}
    block = lambda x, layer: transformer.block(x, layer)[0]
    x = images(3, 64, 64) - 0.5
    same(block, x, layer, others=[(x[:1], layer)], dynamic_axes={0: {0: "batch"}}, tolerance=1e-5)
