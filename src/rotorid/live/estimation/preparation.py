"""Compiles the estimators of a session in a thread, while messages are already received."""

from __future__ import annotations

import threading
from collections.abc import Callable

import jax
import numpy as np


class Preparation:
    """A function that runs in a thread, with the floating-point precision of the calling thread.

    Args:
        prepare: the function.
    """

    def __init__(self, prepare: Callable[[], object]) -> None:
        self._prepare = prepare
        self._error: BaseException | None = None
        self._has_64_bits = jax.dtypes.canonicalize_dtype(float) == np.float64  # a matter of each thread
        self._thread = threading.Thread(target=self._run, name="rotorid compilation", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with jax.enable_x64(bool(self._has_64_bits)):
                self._prepare()
        except BaseException as error:
            self._error = error

    @property
    def is_running(self) -> bool:
        """Whether the function has not returned yet."""
        return self._thread.is_alive()

    def result(self) -> None:
        """Wait until the function has returned. Raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
