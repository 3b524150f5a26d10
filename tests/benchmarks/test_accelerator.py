"""The benchmark of accelerators, with small sizes on whatever JAX finds; float32 is compared with float64 in C."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rotorid.codegen.native import compiler

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import accelerator
from benchmarks.metrics import WrongResultError


@pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")
def test_filters_run_and_agree() -> None:
    """Without KNODE, which takes half a minute to compile."""
    sizes = accelerator.QUICK[0]._replace(logs=0)
    rows = {row.name: row for row in accelerator.benchmark(sizes, False, set())}
    assert len(rows) == 9
    assert all(row.value > 0.0 and row.tolerance is None for row in rows.values())
    if accelerator.platform() == "cpu":
        assert accelerator.benchmark(*accelerator.FULL, set()) == []
        assert accelerator.absent().startswith("no accelerator: ")


def _measurement(**changed: object) -> accelerator.Measurement:
    mass, log_likelihoods = np.ones((2, 3)), [1.0, 1.1, 0.9]
    return accelerator.Measurement("cpu", {}, mass, 0.1 * mass, log_likelihoods, np.ones((2, 1, 2)))._replace(
        **changed
    )


def test_wrong_numbers_in_float32_are_errors() -> None:
    right = _measurement()
    accelerator.check(right, _measurement(mass=right.mass + 0.001))
    with pytest.raises(WrongResultError, match=r"masses .* 0.06 standard deviations"):
        accelerator.check(right, _measurement(mass=right.mass + 0.006))
    with pytest.raises(WrongResultError, match=r"masses .* nan"):
        accelerator.check(right, _measurement(mass=np.full((2, 3), np.nan)))
    with pytest.raises(WrongResultError, match="log-likelihoods"):
        accelerator.check(right, _measurement(log_likelihoods=[3.0, 3.1, 2.9]))
    with pytest.raises(WrongResultError, match=r"losses .* 0.02 of them"):
        accelerator.check(right, _measurement(losses=1.02 * right.losses))
