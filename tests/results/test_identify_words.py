"""What is said of an identified airframe."""

from __future__ import annotations

import numpy as np

from rotorid.identification.fit import Fit
from rotorid.results.identify_words import _groups


def fit(covariance: np.ndarray, **values: float) -> Fit:
    names = tuple(values)
    std = dict(zip(names, np.sqrt(np.diag(covariance)), strict=True))
    one = dict.fromkeys(names, 1.0)
    return Fit(
        names, values, std, dict.fromkeys(names, ""), covariance, values, one, (), one, (), {}, {}, {}, (), 1, 1, True, {}
    )  # fmt: skip


def test_all_that_goes_with_the_thrust_is_one_sentence() -> None:
    values = {"mass": 1.0, "inertia_x": 0.02, "inertia_y": 0.03, "drag": 0.5, "motor_time_constant": 0.05}
    v = np.array([1.0, 0.02, 0.03, 0.5, 0.0])
    own = np.diag((1e-3 * np.array([1.0, 0.02, 0.03, 0.5, 0.05])) ** 2)
    (said,) = _groups(fit(0.008**2 * np.outer(v, v) + own, **values))
    assert said.startswith("Mass, inertia x and y and drag are larger or smaller together")
    assert "sure to 0.8 %" in said


def test_others_that_are_tied_are_a_sentence_of_their_own() -> None:
    values = {"mass": 1.0, "motor_time_constant": 0.05, "command_delay": 0.01, "drag": 0.5}
    covariance = np.diag([1e-4, 1e-6, 1e-6, 1e-4])
    covariance[1, 2] = covariance[2, 1] = -0.97e-6
    assert _groups(fit(covariance, **values)) == [
        "Motor time constant and command delay are known better together than each alone (correlation 0.97)."
    ]


def test_what_is_not_scaled_together_does_not_go_with_the_thrust() -> None:
    """One that grows as the other shrinks, and one whose share changes more."""
    covariance = 1e-4 * np.array([[1.0, -0.97], [-0.97, 1.0]])
    (said,) = _groups(fit(covariance, drag=0.7, drag_area=0.16))
    assert said == "Drag and drag area are known better together than each alone (correlation 0.97)."
    (said,) = _groups(fit(covariance, thrust_curve_0=-0.2, thrust_curve_1=7.0))
    assert "known better together than each alone (correlation 0.97)" in said
