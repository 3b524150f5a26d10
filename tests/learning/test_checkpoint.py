"""A checkpoint that does not fit is not resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from rotorid.learning.checkpoint import Checkpoint
from rotorid.learning.knode import TrainingState


@pytest.mark.parametrize("losses", [np.ones(()), np.zeros(3), np.zeros((0, 1, 2)), np.zeros((2, 1, 3))])
def test_losses_of_another_shape_are_not_resumed(losses: np.ndarray, tmp_path: Path) -> None:
    pair = np.zeros(2)
    initial = object.__new__(TrainingState)
    for name, value in {
        "weights": pair,
        "best_weights": pair,
        "optimiser": pair,
        "stagnant_epochs": np.zeros(1),
    }.items():
        object.__setattr__(initial, name, value)
    tensors = {str(i): pair for i in range(3)} | {"stagnant_epochs": np.zeros(1), "losses": losses}
    path = tmp_path / "a.safetensors"
    path.write_bytes(save(tensors, {"digest": "d"}))
    assert Checkpoint(path, "d").resume(initial) is initial
