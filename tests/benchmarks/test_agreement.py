"""The comparison of C with JAX finds them alike where they are, and tells where they are not."""

from __future__ import annotations

import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.estimators.ekf import EKF, ekf
from rotorid.estimators.onboard.golden_samples import draw_samples
from tests.systems import Pendulum

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import agreement

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler on this machine")


def test_rows_and_runs_are_alike_and_what_is_not_is_told(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        filter_ = ekf(Pendulum())
        samples = draw_samples(filter_, 0.3 * np.sin(0.1 * np.arange(120.0))[:, None])
        found = agreement.Comparison(filter_, tmp_path)
        found.fly(samples)
        assert found.rows == 120
        for kind in (found.step, found.run):
            assert 0.0 < kind["double"].worst < 1e-12
            assert 1e-8 < kind["float"].worst < 1e-2
            assert kind["double"].otherwise == 0
            assert len(kind["double"].off) == 120

        wrong = _with_noise(filter_, 1.0 + 1e-9)
        found._estimator = wrong
        found.step["double"] = agreement.Differences()
        found.fly(samples)
        assert found.step["double"].worst > 1e-10
        assert all(nudge is None or nudge > 1e-12 for nudge in found.step["double"].nudges)
        assert found.step["double"].nudges


def _with_noise(filter_: EKF, factor: float) -> EKF:
    return eqx.tree_at(
        lambda f: f.tuning.measurement_noise, filter_, filter_.tuning.measurement_noise * factor
    )
