"""Files from which an interrupted training is resumed.

A checkpoint is one safetensors file, which is replaced as a whole. It holds the complete state of the training, and a
digest of settings and training data. A training is resumed only if the digest is the same; it then ends with the same
weights as an uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from rotorid.errors import OutputError
from rotorid.learning.knode import TrainingState

_INTERVAL = 10.0  # least time between two files, s


@dataclasses.dataclass
class Checkpoint:
    """The file of a training. digest: of settings and training data, see `digest_of`."""

    path: Path
    digest: str
    _last_write: float = dataclasses.field(default_factory=time.monotonic)

    def resume(self, initial: TrainingState) -> TrainingState:
        """Read the state of the training; the initial state if there is no file with this digest, or with other shapes."""
        leaves, tree = jax.tree.flatten(_tensors(initial))
        try:
            with safe_open(self.path, "np") as file:
                if (file.metadata() or {}).get("digest") != self.digest:
                    return initial
                tensors = [file.get_tensor(str(i)) for i in range(len(leaves))]
                losses = file.get_tensor("losses")
                stagnant_epochs = file.get_tensor("stagnant_epochs")
        except (OSError, SafetensorError):
            return initial
        shapes = [np.shape(leaf) for leaf in leaves]
        members = np.shape(initial.stagnant_epochs)
        is_complete = [v.shape for v in tensors] == shapes and stagnant_epochs.shape == members
        if not is_complete or losses.shape[1:] != (*members, 2) or not len(losses):
            return initial
        restored = jax.tree.unflatten(tree, [jnp.asarray(v) for v in tensors])
        return dataclasses.replace(
            initial, **restored, best_loss=np.nanmin(losses[:, :, 1], axis=0), stagnant_epochs=stagnant_epochs,
            epoch=len(losses) - 1, losses=losses,
        )  # fmt: skip

    def save(self, state: TrainingState, *, now: bool = False) -> None:
        """Write the file, and create its folder, at most every ten seconds; now: in any case. Raises OutputError."""
        if now or time.monotonic() - self._last_write >= _INTERVAL:
            self.writer(state)()

    def writer(self, state: TrainingState) -> Callable[[], None]:
        """A function that writes the file. It computes nothing, so a signal handler may call it. It raises OutputError."""
        tensors = {str(i): np.asarray(v) for i, v in enumerate(jax.tree.leaves(_tensors(state)))}
        tensors |= {"losses": state.losses, "stagnant_epochs": state.stagnant_epochs}

        def write() -> None:
            partial = self.path.with_suffix(".partial")
            try:
                self.path.parent.mkdir(exist_ok=True)
                partial.write_bytes(to_bytes(tensors, {"digest": self.digest}))
                partial.replace(self.path)
            except (OSError, SafetensorError) as error:
                raise OutputError(
                    f"{self.path}: the state of the training cannot be written ({error})"
                ) from None
            self._last_write = time.monotonic()

        return write

    def remove(self) -> None:
        """Delete the file after the end of the training."""
        for path in (self.path, self.path.with_suffix(".partial")):
            path.unlink(missing_ok=True)


def _tensors(state: TrainingState) -> dict[str, Any]:
    return {"weights": state.weights, "best_weights": state.best_weights, "optimiser": state.optimiser}


def digest_of(settings: Sequence[Any], arrays: Sequence[np.ndarray]) -> str:
    """SHA-256 of the settings, as `repr` prints them, and of the training data."""
    digest = hashlib.sha256(repr(tuple(settings)).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
