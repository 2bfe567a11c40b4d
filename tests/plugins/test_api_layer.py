"""An API beside the NumPy API: the example works, and is written with public names alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt

SOURCE = Path(__file__).parents[2] / "examples" / "api-torchlike" / "src"
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.fixture(scope="module")
def torch():
    """The example's package."""
    sys.path.insert(0, str(SOURCE))
    import dovetail_torchlike

    yield dovetail_torchlike
    sys.path.remove(str(SOURCE))
    for name in [n for n in sys.modules if n.startswith("dovetail_torchlike")]:
        del sys.modules[name]


def test_it_has_at_most_300_lines():
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES) <= 300


def test_it_imports_public_names_alone():
    allowed = {"dovetail", "dovetail_torchlike", "numpy", *sys.stdlib_module_names}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                assert module.partition(".")[0] in allowed, f"{path.name}:{node.lineno}"
                assert "._" not in module, f"{path.name}:{node.lineno}"
                # It stands beside the NumPy API, not on it.
                assert not module.startswith(("dovetail.numpy", "dovetail.nn", "dovetail.random"))


def test_reductions_have_dim_and_keepdim(torch):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_allclose(torch.sum(x), x.sum())
    np.testing.assert_allclose(torch.mean(x, dim=(0, -1)), x.mean((0, 2)))
    np.testing.assert_allclose(torch.amax(x, 1, keepdim=True), x.max(1, keepdims=True))
    np.testing.assert_array_equal(torch.argmax(-x, dim=2), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"^sum: dim 3 is out of bounds"):
        torch.sum(x, dim=3)


def test_arithmetic_promotes_and_broadcasts(torch):
    x = np.array([[1], [2]], np.int32)
    assert torch.add(x, 1).dtype == np.int32
    assert torch.div(x, 2).dtype == np.float32
    np.testing.assert_allclose(torch.mul(x, np.array([0.5, 2.0], np.float32)), [[0.5, 2], [1, 4]])
    np.testing.assert_allclose(torch.maximum(1.5, torch.tensor([1, 2])), [1.5, 2.0])
    with pytest.raises(OverflowError, match="add: the Python integer 300 does not fit uint8"):
        torch.add(torch.tensor([1], dtype="uint8"), 300)
    with pytest.raises(TypeError, match="add got incompatible shapes"):
        torch.add(torch.ones(2), torch.ones(3))


def test_shapes(torch):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert torch.reshape(x, 3, -1).shape == (3, 2)
    assert torch.unsqueeze(x, -1).shape == (2, 3, 1)
    np.testing.assert_array_equal(torch.permute(x, 1, 0), x.T)
    np.testing.assert_array_equal(torch.cat([x, x], dim=-1), np.concatenate([x, x], 1))
    np.testing.assert_allclose(torch.matmul(x, torch.ones(3)), x.sum(1))


def test_random_numbers(torch):
    x = np.asarray(torch.randn(torch.manual_seed(3), 10_000))
    assert abs(x.mean()) < 0.05
    assert abs(x.std() - 1) < 0.05
    first, second = torch.split(torch.manual_seed(3))
    assert not np.array_equal(torch.rand(first, 4), torch.rand(second, 4))


def test_transformations_take_its_functions(torch):
    x = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
    y = np.array([1, 0], np.int32)
    cross_entropy = torch.functional.cross_entropy
    gradient, loss = torch.grad_and_value(cross_entropy)(x, y)
    expected = (np.exp(x) / np.exp(x).sum(1, keepdims=True) - np.eye(2)[y]) / 2
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    np.testing.assert_allclose(dt.jit(cross_entropy)(x, y), loss, rtol=1e-6)
    rows = torch.vmap(lambda row: torch.functional.softmax(row, dim=0), out_dims=1)(x)
    np.testing.assert_allclose(np.asarray(rows).sum(0), [1, 1], rtol=1e-6)
    np.testing.assert_allclose(torch.functional.mse_loss(x, 0), (x**2).mean(), rtol=1e-6)


METHODS = """
import dovetail as dt
from dovetail.extend import manager
import dovetail_torchlike.plugin
manager().register(dovetail_torchlike.plugin, "torchlike")
x = dt.device_put(-2.0)
print(x.unsqueeze(0).shape, x.relu(), dt.jit(lambda x: x.unsqueeze(0).numel())(x))
"""


def test_arrays_and_tracers_have_its_methods():
    ran = subprocess.run(
        [sys.executable, "-c", METHODS],
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.split() == ["(1,)", "0.0", "1"], ran.stderr


def test_the_network_learns(torch):
    from dovetail_torchlike.train import train

    losses, answers = train()
    assert losses[-1] < 0.02 < losses[0]
    assert answers == [0, 1, 1, 0]
