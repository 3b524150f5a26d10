"""Drag: the motion that excites it, and the residual forces of another shape."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import ExcitationError
from rotorid.workflows.identify.checks.drag import axis_drag, check_excitation, speed_variation
from rotorid.workflows.identify.preparation import prepare_flights
from rotorid.workflows.identify.request import FitRequest
from tests.workflows.flights_for_tests import TRUTH, made_flight

FREE = ("mass", "drag", "inertia", "rotor_drag")


@pytest.fixture(scope="module")
def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity, autocorrelated noise as of an estimator, and blocks, of 100 s at 10 Hz."""
    rng, t = np.random.default_rng(0), np.arange(1000) / 10.0
    v = np.stack([4.0 * np.sin(0.7 * t), 3.0 * np.sin(0.45 * t + 1.0), 1.5 * np.sin(1.1 * t)], axis=1)
    noise = 0.04 * rng.standard_normal(v.shape)
    for k in range(1, len(t)):
        noise[k] += 0.8 * noise[k - 1]
    return v, noise, (t // 2.0).astype(int)


def test_a_body_of_plates_is_found(motion) -> None:
    v, noise, block = motion
    wrong = -0.1 * (np.abs(v) * v - np.linalg.norm(v, axis=1, keepdims=True) * v)
    share, z = axis_drag(wrong + noise, v, block)
    assert share > 0.4
    assert z > 20.0


def test_noise_and_the_drags_of_models_are_not(motion) -> None:
    """A drag that is estimated too small has the same shape."""
    v, noise, block = motion
    for left in (
        noise,
        noise - 0.3 * v - 0.05 * np.linalg.norm(v, axis=1, keepdims=True) * v + [0.1, 0.0, 0.2],
    ):
        share, z = axis_drag(left, v, block)
        assert share < 0.05
        assert z < 4.0


def test_along_one_axis_the_shapes_are_the_same(motion) -> None:
    v, noise, block = motion
    assert axis_drag(noise, v * np.array([1.0, 0.0, 0.0]), block) == (0.0, 0.0)


def test_drag_is_not_estimated_from_a_hover() -> None:
    flight = made_flight()
    v = flight["velocity"]
    drift = 0.03 * np.sin(2.0 * v.times[:, None] + np.arange(3)) + 5.0  # in a constant wind
    hover = flight.with_signals(dataclasses.replace(v, values=drift))
    parts = [[(0.0, 12.0)]]
    prepared = prepare_flights([hover], TRUTH, parts)
    assert speed_variation(prepared) == pytest.approx(0.03 * np.sqrt(1.5), rel=0.05)
    request, (finding,) = check_excitation(FitRequest(prepared, FREE, "thrust"))
    assert request.free == ("mass", "inertia")
    assert finding.code == "drag_not_excited"
    assert finding.values["speed_variation"] == speed_variation(prepared)
    with pytest.raises(ExcitationError, match=r"made\.csv: the vehicle hardly moved"):
        check_excitation(FitRequest(prepared, ("drag",), "thrust"))
    for preparation, free in (
        (prepared, ("mass",)),
        (prepare_flights([hover, flight], TRUTH, parts * 2), FREE),
    ):
        request = FitRequest(preparation, free, "thrust")
        assert check_excitation(request) == (request, [])
