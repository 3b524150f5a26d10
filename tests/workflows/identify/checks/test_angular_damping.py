"""The damping of rotation about each axis."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.models.airframe.airframe import load_airframe, with_numbers
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.workflows.identify.checks.angular_damping import axis_dampings
from rotorid.workflows.identify.preparation import TorqueBalance

AIRFRAME = load_airframe("px4-sih-quad")


def rows(damping: np.ndarray, noise: float, wrong: float = 1.0) -> TorqueBalance:
    """40 s of rotations of a damped body. wrong: factor on the inertia of the airframe."""
    rng, t = np.random.default_rng(0), np.arange(0.0, 40.0, 0.08)
    rate = np.stack([np.sin(2.0 * t), np.cos(1.7 * t), np.sin(1.3 * t + 1.0)], axis=1)
    torque = np.array([0.025, 0.025, 0.03]) * np.gradient(rate, t, axis=0)
    G = np.asarray(allocation(AIRFRAME.rotors, torque_ratio_of(AIRFRAME)))[3:]
    thrust = 2.5 + (torque + damping * rate) @ np.linalg.pinv(G).T
    return TorqueBalance(t, wrong * torque + noise * rng.standard_normal(torque.shape), thrust, rate)


def test_the_damping_of_each_axis_does_not_depend_on_the_inertia() -> None:
    damping = np.array([0.02, 0.03, 0.1])
    for wrong in (1.0, 1.5):
        estimates = axis_dampings(
            rows(damping, 0.002, wrong), with_numbers(AIRFRAME, {"inertia_x": 0.025 * wrong})
        )
        for found, truth in zip(estimates, damping, strict=True):
            assert found is not None
            assert found[0] == pytest.approx(truth, rel=0.1)
            assert abs(found[0] - truth) < 4.0 * found[1]


def test_rotations_by_disturbances_give_no_estimate() -> None:
    assert axis_dampings(rows(np.full(3, 0.02), 0.2), AIRFRAME) == [None, None, None]
    short = TorqueBalance(*(v[:40] for v in vars(rows(np.full(3, 0.02), 0.001)).values()))
    assert axis_dampings(short, AIRFRAME) == [None, None, None]
