"""The multi-step metric against a case by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import ExcitationError
from rotorid.geometry.gravity import GRAVITY
from rotorid.models.system import parameter_values
from rotorid.signals.samples import Samples
from rotorid.studies.benchmarks.nanodrone import prior_airframe
from rotorid.studies.benchmarks.prediction import BLOCKS, band_widths, multi_step_errors, unchanged_errors
from rotorid.workflows.learn.training_rows import system_of

SYSTEM = system_of(prior_airframe(), "rotor_speed")
STEP, HORIZON = 0.01, 5


def samples(rows: int) -> Samples:
    """A vehicle at rest with rotors at rest."""
    outputs = SYSTEM.outputs
    t = STEP * np.arange(rows)
    t, dt, u, y = map(
        jnp.asarray,
        (t, np.diff(t, prepend=0.0), np.zeros((rows, 4)), np.tile(outputs.initial(), (rows, 1))),
    )
    return Samples(t, dt, u, y, jnp.ones((rows, outputs.dim), bool))


def test_free_fall_of_a_vehicle_that_was_measured_at_rest() -> None:
    """The model falls without drag: its error is g t^2 / 2 in position and g t in velocity; attitude and rate are right."""
    errors = multi_step_errors(SYSTEM, parameter_values(SYSTEM, drag=0.0), [samples(12)], horizon=HORIZON)
    t = STEP * np.arange(1, HORIZON + 1)
    expected = [0.5 * GRAVITY * t**2, GRAVITY * t, 0.0 * t, 0.0 * t]
    np.testing.assert_allclose(errors.mean, expected, atol=1e-8)
    assert errors.coverage is None


def test_nothing_changes() -> None:
    """A vehicle that moves at 2 m/s along y: the position is wrong by 2 m/s times t."""
    flight = samples(12)
    y, t = np.array(flight.y), np.asarray(flight.t)
    y[:, SYSTEM.outputs.stored["position"]] += np.outer(t, [0.0, 2.0, 0.0])
    errors = unchanged_errors(
        SYSTEM, [Samples(flight.t, flight.dt, flight.u, jnp.asarray(y), flight.mask)], horizon=HORIZON
    )
    np.testing.assert_allclose(errors[BLOCKS.index("position")], 2.0 * STEP * np.arange(1, HORIZON + 1))
    np.testing.assert_allclose(errors[1:], 0.0, atol=1e-12)


def test_windows_do_not_contain_a_gap() -> None:
    """Of nine rows with a gap in the middle, none has five rows after it."""
    flight = samples(9)
    dt = np.array(flight.dt)
    dt[4] = 1.0
    gap = Samples(flight.t, jnp.asarray(dt), flight.u, flight.y, flight.mask)
    with pytest.raises(ExcitationError, match="no flight has 5 consecutive rows"):
        multi_step_errors(SYSTEM, parameter_values(SYSTEM), [gap], horizon=HORIZON)


def test_bands_hold_as_often_as_the_errors_are_alike() -> None:
    """Bands from errors hold 95 % of the same errors, and none where the other flight falls from its supports."""
    rng = np.random.default_rng(0)
    flight = samples(400)
    y = np.array(flight.y)
    y[:, SYSTEM.outputs.stored["position"]] += rng.normal(0.0, 0.01, (400, 3))
    noisy = Samples(flight.t, flight.dt, flight.u, jnp.asarray(y), flight.mask)
    p = parameter_values(SYSTEM, drag=0.0)
    widths = band_widths(SYSTEM, p, [noisy], horizon=HORIZON)
    coverage = multi_step_errors(SYSTEM, p, [noisy], horizon=HORIZON, widths=widths).coverage
    assert coverage is not None
    assert coverage[BLOCKS.index("position")] == pytest.approx(0.95, abs=0.01)
    moved = np.array(y)
    moved[:, SYSTEM.outputs.stored["position"]] += np.asarray(flight.t)[:, None] * 5.0
    fast = Samples(flight.t, flight.dt, flight.u, jnp.asarray(moved), flight.mask)
    outside = multi_step_errors(SYSTEM, p, [fast], horizon=HORIZON, widths=widths).coverage
    assert outside is not None
    assert outside[BLOCKS.index("position")] < 0.4
