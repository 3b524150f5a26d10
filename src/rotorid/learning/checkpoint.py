"""Training that can be broken off: where it stands, in one safetensors file that is replaced as a whole.

The file holds every number that training goes on from, and the digest of what is trained on what. It is taken up only where
that is the same, so that a resumed training ends with the weights of one that was never broken off.
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

_EVERY = 10.0  # s between files


@dataclasses.dataclass
class Checkpoint:
    """The file of a training. digest: of what is trained, see `digest_of`."""

    path: Path
    digest: str
    _written: float = dataclasses.field(default_factory=time.monotonic)

    def resume(self, fresh: TrainingState) -> TrainingState:
        """Where the training stood; fresh, one that has not begun, where there is no file of it."""
        leaves, tree = jax.tree.flatten(_tensors(fresh))
        try:
            with safe_open(self.path, "np") as file:
                if (file.metadata() or {}).get("digest") != self.digest:
                    return fresh
                found = [file.get_tensor(str(i)) for i in range(len(leaves))]
                losses, since = file.get_tensor("losses"), file.get_tensor("since")
        except (OSError, SafetensorError):
            return fresh
        restored = jax.tree.unflatten(tree, [jnp.asarray(v) for v in found])
        return dataclasses.replace(
            fresh, **restored, least=np.nanmin(losses[:, :, 1], axis=0), since=since,
            epoch=len(losses) - 1, losses=losses,
        )  # fmt: skip

    def save(self, state: TrainingState, *, now: bool = False) -> None:
        """Write the file, and its folder, at most every ten seconds; now: in any case. Raises OutputError."""
        if now or time.monotonic() - self._written >= _EVERY:
            self.writer(state)()

    def writer(self, state: TrainingState) -> Callable[[], None]:
        """What writes the file, with nothing left to compute: a signal handler may call it. It raises OutputError."""
        tensors = {str(i): np.asarray(v) for i, v in enumerate(jax.tree.leaves(_tensors(state)))}
        tensors |= {"losses": state.losses, "since": state.since}

        def write() -> None:
            partial = self.path.with_suffix(".partial")
            try:
                self.path.parent.mkdir(exist_ok=True)
                partial.write_bytes(to_bytes(tensors, {"digest": self.digest}))
                partial.replace(self.path)
            except (OSError, SafetensorError) as error:
                raise OutputError(f"{self.path}: the training's state cannot be written ({error})") from None
            self._written = time.monotonic()

        return write

    def remove(self) -> None:
        """Delete the file, where training ended."""
        for path in (self.path, self.path.with_suffix(".partial")):
            path.unlink(missing_ok=True)


def _tensors(state: TrainingState) -> dict[str, Any]:
    return {"weights": state.weights, "best": state.best, "optimiser": state.optimiser}


def digest_of(settings: Sequence[Any], arrays: Sequence[np.ndarray]) -> str:
    """Of settings, by how they print, and of the numbers that are trained on."""
    found = hashlib.sha256(repr(tuple(settings)).encode())
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
