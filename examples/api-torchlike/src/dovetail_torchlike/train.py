"""A network of two layers learns the exclusive or: ``python -m dovetail_torchlike.train``."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import dovetail_torchlike as torch
from dovetail_torchlike import functional


def logits(params: dict[str, Any], x: Any) -> Any:
    """Scores of both answers."""
    hidden = torch.tanh(functional.linear(x, params["w1"], params["b1"]))
    return functional.linear(hidden, params["w2"])


def train(steps: int = 200, lr: float = 0.5) -> tuple[list[float], list[int]]:
    """The losses of all steps, and what the network answers in the end."""
    first, second = torch.split(torch.manual_seed(0))
    params = {"w1": torch.randn(first, 8, 2), "b1": torch.zeros(8), "w2": torch.randn(second, 2, 8)}
    x, y = (
        torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
        torch.tensor([0, 1, 1, 0]),
    )

    @dt.jit
    def step(params: dict[str, Any]) -> Any:
        loss = torch.grad_and_value(lambda p: functional.cross_entropy(logits(p, x), y))
        grads, now = loss(params)
        return functional.sgd(params, grads, lr), now

    losses = []
    for _ in range(steps):
        params, loss = step(params)
        losses.append(float(loss))
    return losses, [int(answer) for answer in torch.argmax(logits(params, x), dim=1)]


if __name__ == "__main__":
    losses, answers = train()
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last")
    print("answers", answers)
